// Colours and lines from fairlane/results/palette.py, lighter where they would be hard to see on a dark page.

const DASHES = { "-": [], "--": [8, 5], "-.": [9, 4, 2, 4], ":": [2, 4] };

export const dash = (line) => DASHES[line] ?? [];

export const isDark = () => document.documentElement.dataset.theme === "dark";

const inks = new Map();

// A colour of style.css. Asked for often, worked out once for each theme.
export function ink(name) {
  const key = `${document.documentElement.dataset.theme} ${name}`;
  if (!inks.has(key)) inks.set(key, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  return inks.get(key);
}

const luminance = (rgb) => {
  const [r, g, b] = rgb.map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const known = new Map();

// The colour, mixed with white on a dark page until it stands out 4 to 1.
export function colour(hex) {
  if (!isDark()) return hex;
  if (known.has(hex)) return known.get(hex);
  let rgb = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  const ground = luminance([26, 31, 38]);
  for (let i = 0; i < 20 && (luminance(rgb) + 0.05) / (ground + 0.05) < 4; i++) rgb = rgb.map((v) => v + (255 - v) * 0.1);
  const found = `rgb(${rgb.map(Math.round).join(" ")})`;
  known.set(hex, found);
  return found;
}

// A piece of line for a legend.
export function sample(hex, dashes = [], width = 2.4) {
  const svg = `<svg viewBox="0 0 28 8" aria-hidden="true"><line x1="1" y1="4" x2="27" y2="4" stroke-width="${width}" stroke-dasharray="${dashes.join(" ")}"/></svg>`;
  const holder = document.createElement("template");
  holder.innerHTML = svg;
  holder.content.firstChild.firstChild.style.stroke = colour(hex);
  return holder.content.firstChild;
}

// As the reader's system has it, unless the button says otherwise.
export function themes(button, changed) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const names = { auto: "automatic", light: "light", dark: "dark" };
  let chosen = "auto";
  try {
    chosen = localStorage.getItem("fairlane-theme") ?? "auto";
  } catch {
    /* no storage: nothing is remembered */
  }
  const apply = () => {
    document.documentElement.dataset.theme = chosen === "auto" ? (system.matches ? "dark" : "light") : chosen;
    button.textContent = `Theme: ${names[chosen] ?? "automatic"}`;
    changed();
  };
  button.addEventListener("click", () => {
    chosen = { auto: "light", light: "dark", dark: "auto" }[chosen] ?? "auto";
    try {
      localStorage.setItem("fairlane-theme", chosen);
    } catch {
      /* as above */
    }
    apply();
  });
  system.addEventListener("change", apply);
  apply();
}

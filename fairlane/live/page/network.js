// The picture of the network: each direction of a link is a line of its own, whose width shows its load.

import { store } from "./store.js";

const SVG = "http://www.w3.org/2000/svg";
const ways = new Map();
let choose = () => {};

function element(name, attributes, parent, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

export function buildNetwork(chosen) {
  choose = chosen;
  const { nodes, links, columns, rows } = store.hello.network;
  const step = 128;
  const width = columns * step + 70;
  const height = Math.max(190, Math.min(520, rows * 46));
  const crowded = rows > 14;
  const at = new Map(nodes.map((n) => [n.name, { ...n, x: 35 + n.x * step, y: 14 + n.y * (height - 28) }]));
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", "the network; the table of links has its values");
  ways.clear();
  const trunks = element("g", {}, svg);
  const edges = element("g", {}, svg);
  const dots = element("g", {}, svg);
  const labels = element("g", {}, svg);
  for (const link of links) {
    const a = at.get(link.from);
    const b = at.get(link.to);
    const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
    const shift = link.back ? 4.5 : 0;
    const [nx, ny] = [(-(b.y - a.y) / length) * shift, ((b.x - a.x) / length) * shift];
    const group = element("g", link.back ? { class: "trunk" } : {}, link.back ? trunks : edges);
    if (link.back) {
      // To the right of who drives along it.
      way(link.port, group, a, b, nx, ny, true, labels);
      way(link.back, group, b, a, -nx, -ny, true, labels);
    } else way(link.port, group, a, b, 0, 0, false, labels, true);
  }
  for (const node of at.values()) {
    if (node.kind === "switch") {
      element("rect", { class: "switch", x: node.x - 20, y: node.y - 14, width: 40, height: 28, rx: 6 }, dots);
      element("text", { x: node.x, y: node.y }, dots, node.name);
    } else if (crowded) {
      element("title", {}, element("circle", { class: "host", cx: node.x, cy: node.y, r: 3.5 }, dots), node.name);
    } else {
      element("circle", { class: "host", cx: node.x, cy: node.y, r: 13 }, dots);
      element("text", { x: node.x, y: node.y }, dots, node.name);
    }
  }
  document.getElementById("network").replaceChildren(svg);
  markPort();
}

// port: the output port of this direction. withBack: one line shows both directions, with the busier one's load.
function way(port, group, a, b, nx, ny, labelled, labels, withBack = false) {
  const from = { x: a.x + nx, y: a.y + ny };
  const to = { x: b.x + nx, y: b.y + ny };
  const line = element("line", { class: "way", x1: from.x, y1: from.y, x2: to.x, y2: to.y }, group);
  const title = element("title", {}, line);
  let label = null;
  let mark = null;
  if (labelled) {
    mark = element("line", { x1: from.x, y1: from.y, x2: to.x, y2: to.y, "stroke-width": 14, stroke: "transparent" }, group);
    element("title", {}, mark, `${a.name}→${b.name}: choose this port`);
    mark.addEventListener("click", () => choose(port));
    label = element("text", { class: "load", x: a.x + 0.58 * (b.x - a.x) + nx * 3.4, y: a.y + 0.58 * (b.y - a.y) + ny * 3.4 }, labels);
  }
  ways.set(port, { line, title, label, withBack, name: `${a.name}→${b.name}`, mark });
}

export function drawNetwork() {
  if (!store.now) return;
  for (const [id, { line, title, label, withBack, name }] of ways) {
    const port = store.now.ports[id];
    if (!port) continue;
    const load = Math.min(1, withBack ? Math.max(port.load ?? 0, port.back ?? 0) : (port.load ?? 0));
    const percent = `${Math.round(100 * (port.load ?? 0))} %`;
    const words = withBack ? `${name}: ${percent}, back ${Math.round(100 * (port.back ?? 0))} %` : `${name}: ${percent}`;
    if (title.textContent === words) continue;
    title.textContent = words;
    line.style.strokeWidth = (1.4 + 5.6 * load).toFixed(1);
    line.style.stroke = `color-mix(in oklab, var(--busy) ${Math.round(100 * load)}%, var(--idle))`;
    if (label) label.textContent = percent;
  }
}

export function markPort() {
  for (const [id, { mark, label }] of ways) {
    if (!mark) continue;
    mark.setAttribute("class", store.port?.id === id ? "chosen" : "");
    mark.setAttribute("stroke-width", 14);
    if (label) label.style.fontWeight = store.port?.id === id ? "700" : "";
  }
}

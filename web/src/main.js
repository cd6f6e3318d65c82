// The page: labs and experiments, their files, checks and runs. All that computes is in worker.js.

import { strToU8, zipSync } from "fflate";
import { marked } from "marked";
import { Curves } from "./curves.js";
import { Editor } from "./editor.js";
import { Ended, Engine } from "./engine.js";

const at = (id) => document.getElementById(id);
const content = await (await fetch("content.json")).json();
const LABS = Object.fromEntries(content.labs.map((lab) => [lab.number, lab]));
const EXPERIMENTS = Object.fromEntries(content.experiments.map((one) => [one.name, one]));
const OWN = "my_rate.py";
// Experiments of the page alone.
const OTHERS = ["my-rate", "example"];
const BESIDE = ["als.p4", "red.p4", "fair_rate.p4"];
// A check that loops outside Python is ended so much later than the grader would end it.
const GRACE_S = 15;

let ready = false;
let busy = false;
let timer;
let lab = null;
// The experiment that is shown where no lab is: one of the list, or a text of the documentation.
let shown = null;
// A packet test that a check has played, and what it said.
let tested = { text: null, said: "" };
const curves = new Curves(at("rates"), at("queue"));
const engine = new Engine({
  state: (text) => (at("state").textContent = text),
  ready: (now) => {
    ready = now;
    buttons();
    if (now) check_program();
  },
  point: (point) => {
    curves.add(point);
    say(`${Math.max(0, point.at_s).toFixed(1)} of ${point.of_s} s`);
  },
});
const editor = new Editor(at("tabs"), at("editor"), () => {
  at("said").textContent = "";
  clearTimeout(timer);
  timer = setTimeout(check_program, 400);
});

function say(text) {
  at("state").textContent = text;
}

function buttons() {
  at("check").disabled = !ready || busy;
  at("run").disabled = !ready || busy || (!lab && shown?.file?.endsWith(".p4") === true);
  at("records").disabled = !ready || busy || curves.count === 0;
  at("stop").disabled = !busy;
}

// The compiler's messages for the program that is open, or the last check's for a packet test that has not changed since.
async function check_program() {
  const name = editor.open;
  if (name.endsWith(".stf")) editor.mark(editor.texts()[name] === tested.text ? tested.said : "", name);
  if (!ready || busy || !name.endsWith(".p4")) return;
  const text = editor.texts()[name];
  try {
    const { said } = await engine.ask("compiled", name, text);
    if (name !== editor.open || text !== editor.texts()[name]) return;
    at("said").textContent = said;
    editor.mark(said, name);
  } catch (error) {
    if (!(error instanceof Ended)) say(String(error));
  }
}

// What is asked of the worker while nothing else may be. Stop ends it.
async function alone(work) {
  busy = true;
  buttons();
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Ended)) say(String(error.message ?? error));
  } finally {
    busy = false;
    buttons();
  }
}

// ------------------------------------------------------------------------------------------------------------ places

function go() {
  const [kind, rest = ""] = location.hash.slice(1).split("=");
  const [name, page] = rest.split("/");
  if (busy) engine.restart();
  lab = kind === "lab" ? (LABS[name] ?? LABS[name.padStart(2, "0")]) : null;
  document.body.classList.toggle("lab", lab !== null && lab !== undefined);
  at("said").textContent = at("ended").textContent = at("points").textContent = "";
  at("score").replaceChildren();
  if (ready) say("Ready.");
  if (lab) {
    curves.clear();
    at("place").value = `lab=${lab.number}`;
    document.title = `Lab ${Number(lab.number)}: ${lab.title}`;
    task(page && lab.pages[`${page}.md`] ? `${page}.md` : "README.md");
    editor.fill(at("place").value, lab.files);
    at("experiment").value = "als-3";
    scores(lab.checks.map((check) => ({ ...check, points: null })));
    at("seconds").value = EXPERIMENTS[at("experiment").value].duration_s;
  } else {
    shown = kind === "try" ? tried(rest) : (EXPERIMENTS[name] ?? EXPERIMENTS["als-3"]);
    at("place").value = `experiment=${shown.name}`;
    document.title = `${shown.name}: ${shown.title}`;
    const programs = shown.name === "my-rate" ? [OWN] : BESIDE;
    const own = {
      [shown.file ?? `${shown.name}.toml`]: shown.text,
      ...Object.fromEntries(programs.map((file) => [file, content.files[file]])),
    };
    curves.clear();
    editor.fill(kind === "try" ? "" : at("place").value, own);
    at("seconds").value = shown.duration_s;
  }
  buttons();
}

// A text of the documentation, as tools/site/hooks.py writes it into a link: its kind, ":", and UTF-8 in base64url.
function tried(rest) {
  const [end, code = ""] = rest.split(":");
  const bytes = Uint8Array.from(atob(code.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
  const text = new TextDecoder().decode(bytes);
  const duration_s = Number(text.match(/^duration_s\s*=\s*([\d.]+)/m)?.[1] ?? 60);
  return { name: "example", title: "an example of the documentation", file: `example.${end === "p4" ? "p4" : "toml"}`, text, duration_s };
}

function task(page) {
  const panel = at("task");
  panel.innerHTML = marked.parse(lab.pages[page]);
  for (const link of panel.querySelectorAll("a[href]")) {
    const href = link.getAttribute("href");
    if (/^[a-z]+:|^#/.test(href)) continue;
    const name = href.split("/").pop();
    if (name in lab.pages) link.href = `#lab=${lab.number}${name === "README.md" ? "" : `/${name.replace(".md", "")}`}`;
    else link.replaceWith(Object.assign(document.createElement("code"), { textContent: name }));
  }
  const note = document.createElement("p");
  note.className = "note";
  const rest = lab.mininet ? " The lab's last step runs on Mininet, which needs one, too." : "";
  note.textContent = `In this page, Check grades your files. Commands such as make, and plots, need a checkout: Export files gives an archive that unpacks over it.${rest}`;
  panel.querySelector("h1")?.after(note);
  panel.scrollTop = 0;
}

// ------------------------------------------------------------------------------------------------------------ checks

const element = (name, className, text) => Object.assign(document.createElement(name), { className, textContent: text });

function scores(found) {
  at("score").replaceChildren(
    ...found.map((score) => {
      const item = element("li", score.points == null ? "" : score.points >= score.of ? "all" : score.points > 0 ? "part" : "none", "");
      item.append(element("span", "points", `${score.points ?? "–"}/${score.of}`), ` ${score.title}`);
      if (score.message) item.append(element(score.message.includes("\n") ? "pre" : "p", "message", score.message));
      if (score.hint) item.append(element("p", "hint", `Hint: ${score.hint}`));
      if (score.printed) item.append(element("pre", "printed", `Your program prints:\n${score.printed}`));
      return item;
    }),
  );
}

at("check").onclick = () => alone(grade);

async function grade() {
  const grading = { lab: lab.number, files: editor.texts() };
  const before = [];
  let looped = false;
  let told = [];
  const begun = performance.now();
  at("points").textContent = "";
  for (const [index, check] of lab.checks.entries()) {
    scores([...told, ...lab.checks.slice(told.length).map((one) => ({ ...one, points: null }))]);
    say(`Check ${index + 1} of ${lab.checks.length}: ${check.title}`);
    const request = JSON.stringify({ ...grading, index, before, looped });
    let late = false;
    const clock = setTimeout(
      () => {
        late = true;
        engine.restart();
      },
      1000 * (check.limit_s + GRACE_S),
    );
    let found;
    try {
      found = await engine.ask("graded", request);
    } catch (error) {
      // Ended by its time, or by itself: another worker goes on. Stop ends the grading.
      if (error instanceof Ended && !late) throw error;
      if (!late) engine.restart();
      found = await engine.ask("not_graded", request, late ? "late" : String(error.message));
    } finally {
      clearTimeout(clock);
    }
    before.push(found.score);
    looped = found.looped;
    told = found.shown;
  }
  scores(told);
  const test = Object.keys(grading.files).find((name) => name.endsWith(".stf"));
  const differs = told.find((score) => score.message.includes("(expected in line ") || score.message.startsWith(`${test}:`));
  tested = { text: grading.files[test], said: differs?.message ?? "" };
  check_program();
  const points = before.reduce((sum, score) => sum + score.points, 0);
  const of = before.reduce((sum, score) => sum + score.of, 0);
  at("points").textContent = `Lab ${lab.number}: ${Math.round(points * 10) / 10} of ${of} points`;
  say(`Checked in ${((performance.now() - begun) / 1000).toFixed(1)} s.`);
}

// -------------------------------------------------------------------------------------------------------------- runs

at("controls").onsubmit = (event) => {
  event.preventDefault();
  if (!at("run").disabled) alone(run);
};

async function run() {
  curves.clear();
  at("ended").textContent = "";
  const chosen = lab ? EXPERIMENTS[at("experiment").value] : shown;
  const name = chosen.name;
  const changed = editor.changed();
  const texts = editor.texts();
  const pick = (from, end) => Object.fromEntries(Object.entries(from).filter(([file]) => file.endsWith(end)));
  const request = { experiment: name, duration_s: Number(at("seconds").value), seed: Number(at("seed").value) };
  // An experiment of Fairlane's own is taken by its name, unless its text was changed.
  if (changed[`${name}.toml`] !== undefined || OTHERS.includes(name)) request.text = texts[`${name}.toml`] ?? chosen.text;
  request.programs = pick(changed, ".p4");
  request.algorithms = pick(texts, ".py");
  const { error, records } = await engine.ask("run", JSON.stringify(request));
  at("ended").textContent = error ?? "";
  say(error ? "The run ended early." : `Done: ${Object.keys(records).length} records.`);
  performance.mark("fairlane-ended");
}

at("records").onclick = () => alone(async () => save(await engine.ask("records"), "records.zip"));

at("stop").onclick = () => {
  engine.restart();
};

// ------------------------------------------------------------------------------------------------------------- files

function save(bytes, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([bytes], { type: "application/zip" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Paths are those of a checkout.
at("files").onclick = () => {
  const folder = (name) => (lab ? `labs/${lab.number}` : name.endsWith(".p4") ? "p4src" : "experiments");
  // All that the checkout has not.
  const chosen = lab || OTHERS.includes(shown.name) ? editor.texts() : editor.changed();
  const paths = Object.entries(chosen).map(([name, text]) => [`${folder(name)}/${name}`, strToU8(text)]);
  if (paths.length === 0) return say("No file is changed: there is nothing to export.");
  save(zipSync(Object.fromEntries(paths)), `fairlane-${lab ? `lab-${lab.number}` : shown.name}.zip`);
  const own = paths.filter(([path]) => path.endsWith(".py")).map(([path]) => ` --algorithm ${path}`);
  const command = lab ? `make -C labs/${lab.number} check` : `.venv/bin/fairlane run experiments/${shown.name}.toml${own.join("")}`;
  say(shown?.file?.endsWith(".p4") ? "Unpack it over a checkout." : `Unpack it over a checkout, and there: ${command}`);
};

at("reset").onclick = () => {
  if (confirm(`Give ${editor.open} its first text again? Your changes to it are lost.`)) editor.reset();
};

at("more").onchange = () => {
  const name = at("more").value;
  at("more").value = "";
  if (name) editor.add(name, content.files[name]);
};

at("place").append(
  ...[
    ["Labs", content.labs.map((one) => new Option(`Lab ${Number(one.number)}: ${one.title} (${one.minutes} min)`, `lab=${one.number}`))],
    ["Experiments", content.experiments.map((one) => new Option(`${one.name}: ${one.title}`, `experiment=${one.name}`))],
  ].map(([label, options]) => {
    const group = Object.assign(document.createElement("optgroup"), { label });
    group.append(...options);
    return group;
  }),
);
at("experiment").append(...content.experiments.map((one) => new Option(one.name)));
at("more").append(new Option("", ""), ...Object.keys(content.files).map((name) => new Option(name)));
at("place").onchange = () => (location.hash = at("place").value);
at("experiment").onchange = () => (at("seconds").value = EXPERIMENTS[at("experiment").value].duration_s);
addEventListener("hashchange", go);
addEventListener(
  "keydown",
  (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    event.stopPropagation();
    at(lab ? "check" : "run").click();
  },
  true,
);
go();
performance.mark("fairlane-shown");
// Not everywhere: only pages of https and of loopback may.
navigator.serviceWorker?.register("offline.js");

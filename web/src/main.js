// The page: files in an editor, the run's controls, and its curves. All that computes is in worker.js.

import { python } from "@codemirror/lang-python";
import { StreamLanguage } from "@codemirror/language";
import { clike } from "@codemirror/legacy-modes/mode/clike";
import { toml } from "@codemirror/legacy-modes/mode/toml";
import { setDiagnostics } from "@codemirror/lint";
import { EditorView, basicSetup } from "codemirror";
import uPlot from "uplot";

const words = (text) => Object.fromEntries(text.split(" ").map((word) => [word, true]));
const p4 = clike({
  name: "p4",
  keywords: words(
    "abstract action actions apply const control default default_action else entries enum error exit extern false for header header_union if in inout key list " +
      "match_kind out package parser priority return select size state struct switch table transition true tuple type typedef value_set void with",
  ),
  types: words("bit bool int string varbit match_kind packet_in packet_out"),
  atoms: words("accept reject true false"),
});
const LANGUAGES = { p4: () => StreamLanguage.define(p4), toml: () => StreamLanguage.define(toml), py: python };

const EXPERIMENTS = ["als-3", "als-2", "als-4", "ssvp-3", "rap-4"];
const PROGRAMS = ["als.p4", "red.p4"];
const KEPT = "fairlane/files";
const at = (id) => document.getElementById(id);

let worker;
let busy = false;
let files = {};
let open = "";
let points = [];

function start() {
  worker?.terminate();
  worker = new Worker("worker.js", { type: "module" });
  worker.onmessage = ({ data }) => HEARD[data.is](data);
  state("Loading…");
  ready(false);
}

function ready(now) {
  at("run").disabled = !now;
  at("stop").disabled = !busy;
  at("export").disabled = busy || points.length === 0 || !now;
}

function state(text) {
  at("state").textContent = text;
}

const HEARD = {
  ready() {
    state("Ready.");
    ready(true);
    for (const name of PROGRAMS) if (!(name in files)) worker.postMessage({ do: "source", name });
    ask_experiment();
    performance.mark("fairlane-ready");
  },
  broken({ said }) {
    state(`The page cannot start: ${said}`);
  },
  source({ name, text }) {
    files[PROGRAMS.includes(name) ? name : "experiment.toml"] ??= { text, own: text };
    const file = PROGRAMS.includes(name) ? name : "experiment.toml";
    if (!files[file].changed) files[file] = { text, own: text };
    tabs();
    if (!open || open === file) show(file);
  },
  point(point) {
    points.push(point);
    draw();
    state(`${Math.max(0, point.at_s).toFixed(1)} of ${point.of_s} s`);
  },
  ended({ error, records }) {
    busy = false;
    ready(true);
    at("said").textContent = error ?? "";
    state(error ? "The run ended early." : `Done: ${Object.keys(records).length} records.`);
    performance.mark("fairlane-ended");
  },
  checked({ name, ok, said }) {
    if (name !== open) return;
    at("said").textContent = said;
    view.dispatch(setDiagnostics(view.state, ok && !said ? [] : marks(said, name)));
  },
  records({ archive }) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([archive], { type: "application/zip" }));
    link.download = "records.zip";
    link.click();
    URL.revokeObjectURL(link.href);
  },
};

// The compiler's messages at their places: file(line): kind: text, and a caret below.
function marks(said, name) {
  const found = [];
  const all = said.split("\n");
  all.forEach((line, index) => {
    const place = line.match(/([^\s/:()]+\.p4)[:(](\d+)\)?(?::(\d+))?/);
    if (!place || place[1] !== name) return;
    const number = Math.min(Number(place[2]), view.state.doc.lines);
    const where = view.state.doc.line(number);
    const severity = line.includes("warning") ? "warning" : "error";
    found.push({ from: where.from, to: where.to, severity, message: all.slice(index, index + 4).join("\n") });
  });
  return found;
}

let timer;
const changed = EditorView.updateListener.of((update) => {
  if (!update.docChanged || !open) return;
  const text = update.state.doc.toString();
  files[open] = { ...files[open], text, changed: text !== files[open].own };
  keep();
  clearTimeout(timer);
  if (open.endsWith(".p4") && !busy) timer = setTimeout(() => worker.postMessage({ do: "check", name: open, text }), 400);
});

let view;
function show(name) {
  open = "";
  view?.destroy();
  const kind = name.split(".").pop();
  view = new EditorView({ doc: files[name].text, extensions: [basicSetup, LANGUAGES[kind](), changed], parent: at("editor") });
  view.contentDOM.setAttribute("aria-label", name);
  open = name;
  at("said").textContent = "";
  tabs();
}

function tabs() {
  at("tabs").replaceChildren(
    ...Object.keys(files).map((name) => {
      const tab = document.createElement("button");
      tab.role = "tab";
      tab.textContent = files[name].changed ? `${name} *` : name;
      tab.ariaSelected = String(name === open);
      tab.onclick = () => show(name);
      return tab;
    }),
  );
}

function keep() {
  const own = Object.fromEntries(Object.entries(files).filter(([, file]) => file.changed));
  try {
    localStorage.setItem(KEPT, JSON.stringify(own));
  } catch {
    // A browser that keeps nothing: the page works without.
  }
}

function kept() {
  try {
    return JSON.parse(localStorage.getItem(KEPT)) ?? {};
  } catch {
    return {};
  }
}

function ask_experiment() {
  worker.postMessage({ do: "source", name: at("experiment").value });
}

const COLOURS = ["#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b", "#e377c2", "#17becf", "#bcbd22", "#7f7f7f"];
let plots = [];

function curves() {
  plots.forEach((plot) => plot.destroy());
  const names = Object.keys(points[0].rates_bps);
  const width = at("rates").clientWidth;
  const axes = [{ label: "seconds" }, { size: 55 }].map((axis) => ({ ...axis, stroke: () => getComputedStyle(document.body).color }));
  const common = { width, height: 260, axes, scales: { x: { time: false } }, cursor: { drag: { x: false, y: false } } };
  const lines = names.map((label, i) => ({ label, stroke: COLOURS[i % COLOURS.length], width: 1.5 }));
  plots = [
    new uPlot({ ...common, series: [{ label: "s" }, ...lines, { label: "fair rate", stroke: "#888", dash: [6, 4] }] }, [[]], at("rates")),
    new uPlot({ ...common, height: 180, series: [{ label: "s" }, { label: "packets", stroke: COLOURS[0] }] }, [[]], at("queue")),
  ];
}

let drawing = false;
function draw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    if (points.length === 0) return;
    const names = Object.keys(points[0].rates_bps);
    if (plots.length === 0) curves();
    const x = points.map((point) => point.at_s);
    const mega = (value) => (value == null ? null : value / 1e6);
    plots[0].setData([x, ...names.map((name) => points.map((point) => mega(point.rates_bps[name]))), points.map((point) => mega(point.fair_rate_bps))]);
    plots[1].setData([x, points.map((point) => point.queue_packets)]);
    performance.mark("fairlane-drawn");
  });
}

function clear() {
  points = [];
  plots.forEach((plot) => plot.destroy());
  plots = [];
}

at("controls").onsubmit = (event) => {
  event.preventDefault();
  clear();
  busy = true;
  ready(false);
  const changedPrograms = Object.entries(files).filter(([name, file]) => name.endsWith(".p4") && file.changed);
  const request = { experiment: at("experiment").value, duration_s: Number(at("seconds").value), seed: Number(at("seed").value) };
  if (files["experiment.toml"]?.changed) request.text = files["experiment.toml"].text;
  request.programs = Object.fromEntries(changedPrograms.map(([name, file]) => [name, file.text]));
  worker.postMessage({ do: "run", request });
};
at("stop").onclick = () => {
  busy = false;
  start();
};
at("export").onclick = () => worker.postMessage({ do: "records" });
at("experiment").onchange = () => {
  delete files["experiment.toml"];
  keep();
  ask_experiment();
};
at("experiment").append(...EXPERIMENTS.map((name) => new Option(name)));
addEventListener("resize", () => {
  if (plots.length) curves();
  draw();
});
files = kept();
tabs();
if (Object.keys(files).length) show(Object.keys(files)[0]);
start();
// Not everywhere: only pages of https and of loopback may.
navigator.serviceWorker?.register("offline.js");

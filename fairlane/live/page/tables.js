// Tables: of flows, of links, and the values next to each chart.

import { causeName, view } from "./charts.js";
import { dash, sample } from "./look.js";
import { megabits, portOf, store } from "./store.js";

const body = (id) => document.querySelector(`#${id} tbody`);
const percent = (value) => (value == null ? "–" : `${(100 * value).toFixed(value < 0.1 ? 1 : 0)} %`);
let rows = [];
let showHosts = false;

function cell(row, text = "", className = "", tag = "td") {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.textContent = text;
  row.append(made);
  return made;
}

// Write only changed text: each change causes a new layout of its table.
export function put(node, text) {
  const there = node.firstChild;
  if (there === null) {
    if (text) node.textContent = text;
  } else if (there.data !== text) there.data = text;
}

// actions: {highlight(name), stop(flow)}; stop is null if flows cannot be stopped.
export function buildFlows(actions) {
  rows = store.flows.map((flow) => {
    const row = document.createElement("tr");
    const name = cell(row, "", "", "th");
    name.scope = "row";
    const button = document.createElement("button");
    button.type = "button";
    button.className = "flow";
    button.setAttribute("aria-pressed", String(view.highlighted === flow.name));
    button.title = "bring its line forward";
    const kind = store.hello.kinds[flow.kind];
    button.append(sample(kind.colour, dash(kind.line)), flow.name);
    button.addEventListener("click", () => actions.highlight(flow.name));
    name.append(button);
    cell(row, `${flow.from} → ${flow.to}`);
    const cells = {
      rate: cell(row, "–", "n"),
      share: cell(row, "–", "n"),
      part: cell(row, "", "n"),
      sends: cell(row, "–", "n"),
      lost: cell(row, "–", "n"),
    };
    cells.percent = document.createElement("span");
    const meter = document.createElement("span");
    meter.className = "meter";
    meter.setAttribute("aria-hidden", "true");
    cells.bar = meter.appendChild(document.createElement("i"));
    cells.part.append(cells.percent, meter);
    const last = cell(row);
    if (actions.stop) {
      cells.stop = document.createElement("button");
      cells.stop.type = "button";
      cells.stop.textContent = "Stop";
      cells.stop.setAttribute("aria-label", `Stop ${flow.name}`);
      cells.stop.addEventListener("click", () => actions.stop(flow.flow));
      last.append(cells.stop);
    }
    return { row, cells, flow };
  });
  body("flows").replaceChildren(...rows.map((r) => r.row));
  drawFlows();
}

export function drawFlows() {
  const now = store.now;
  if (!now || now.time == null) return;
  rows.forEach(({ row, cells, flow }, i) => {
    const [rate, share, sent, lost, sends] = now.flows[i] ?? [];
    const over = flow.stop != null && now.time > flow.stop;
    const waiting = now.time < flow.start;
    row.classList.toggle("gone", over || waiting);
    put(cells.rate, waiting ? `from ${flow.start.toFixed(1)} s` : over ? "stopped" : megabits(rate));
    put(cells.share, megabits(share));
    const part = rate != null && share ? rate / share : null;
    put(cells.percent, part == null ? "–" : `${Math.round(100 * part)} %`);
    const wide = `${Math.min(100, Math.round(100 * (part ?? 0)))}%`;
    if (cells.bar.style.width !== wide) cells.bar.style.width = wide;
    put(cells.sends, megabits(sends));
    put(cells.lost, sent ? `${lost} (${((100 * lost) / sent).toFixed(2)} %)` : "–");
    if (cells.stop) cells.stop.disabled = over || waiting || store.state.finished;
  });
}

export function drawPorts() {
  const now = store.now;
  if (!now || now.time == null) return;
  const list = store.hello.ports.filter((port) => showHosts || port.trunk || !store.hello.ports.some((p) => p.trunk));
  const table = body("ports");
  while (table.rows.length > list.length) table.deleteRow(-1);
  list.forEach((about, i) => {
    const row = table.rows[i] ?? table.insertRow();
    if (!row.cells.length) {
      cell(row, "", "", "th").scope = "row";
      for (let k = 0; k < 7; k++) cell(row, "", "n");
      cell(row);
    }
    const port = now.ports[about.id] ?? { drops: {} };
    const drops = Object.entries(port.drops)
      .map(([cause, n]) => `${causeName(cause)}: ${n}`)
      .join("; ");
    [
      about.name,
      megabits(port.rate, 3).replace(/\.?0+$/, ""),
      percent(port.load),
      port.queue?.toFixed(1) ?? "–",
      about.average ? (port.average?.toFixed(2) ?? "–") : "none",
      about.average ? (port.probability?.toFixed(4) ?? "–") : "–",
      String(port.connections ?? "–"),
      megabits(port.fair_rate),
      drops || "none",
    ].forEach((text, k) => {
      put(row.cells[k], text);
    });
  });
}

export function hostsToo(show) {
  showHosts = show;
  drawPorts();
}

function values(id, pairs) {
  const table = document.getElementById(id);
  if (!table.parentElement.open) return;
  pairs.forEach(([name, text], i) => {
    const row = table.rows[i] ?? table.insertRow();
    if (!row.cells.length) {
      cell(row, "", "", "th").scope = "row";
      cell(row, "", "n");
    }
    put(row.cells[0], name);
    put(row.cells[1], text);
  });
  while (table.rows.length > pairs.length) table.deleteRow(-1);
}

export function drawValues() {
  const port = store.now && store.port && store.now.ports[store.port.id];
  const about = store.port && portOf(store.port.id);
  if (!port) return;
  values("queue-values", [
    ["waiting, packets", port.queue?.toFixed(1) ?? "–"],
    [
      about.average ? `${about.average.title}'s average, packets` : "average, packets",
      about.average ? (port.average?.toFixed(2) ?? "–") : "none",
    ],
    ["buffer, packets", String(about.buffer)],
  ]);
  values("probability-values", [["p_b", port.probability?.toFixed(5) ?? "none"]]);
  values("fair-values", [
    ["connections n", String(port.connections ?? "–")],
    ["R_f, Mb/s", megabits(port.fair_rate)],
  ]);
  values(
    "drops-values",
    Object.entries(port.drops).length ? Object.entries(port.drops).map(([cause, n]) => [causeName(cause), String(n)]) : [["none", "0"]],
  );
}

export function change(what) {
  const at = `${what.time_s.toFixed(1)} s: `;
  if (what.do === "add") return `${at}${what.flow} started, ${what.from} to ${what.to}`;
  if (what.do === "stop") return `${at}${what.flow} stopped`;
  return `${at}${what.link} has ${+(what.rate_bps / 1e6).toPrecision(6)} Mb/s`;
}

export function drawChanges() {
  if (!store.changes.length) return;
  document.getElementById("changes").replaceChildren(
    ...store.changes.map((what) => {
      const item = document.createElement("li");
      item.textContent = change(what);
      return item;
    }),
  );
}

// The charts, drawn by uPlot from slices of the store.

import {colour, dash, ink, sample} from "./look.js";
import {indexAt, portOf, store} from "./store.js";

// A line has at most so many points: what a screen can show.
const MOST_POINTS = 900;
const SHARE = "#000000", FAIR = "#009E73", COUNT = "#CC79A7", QUEUE = "#56B4E9", MINIMUM = "#009E73", MAXIMUM = "#CC79A7", AVERAGE = "#D55E00", CHANCE = "#0072B2";
const CAUSES = {red_early: "#0072B2", red_forced: "#D55E00", tail: "#000000"};
const OTHER_CAUSES = ["#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#999933"];

export const view = {from: 0, to: 10, highlighted: null};
const charts = {};

const number = value => value == null ? "–" : String(+value.toPrecision(4));

function axes(left, right) {
  const common = {stroke: () => ink("quiet"), grid: {stroke: () => ink("grid"), width: 1}, ticks: {stroke: () => ink("rule"), width: 1}, font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif"};
  const list = [
    {...common, values: (_, ticks) => ticks.map(t => number(t)), label: "time (s)", labelSize: 18, size: 30, space: 60},
    {...common, scale: "y", label: left, labelSize: 18, size: 46, values: (_, ticks) => ticks.map(t => number(t)), space: 34},
  ];
  if (right) list.push({...common, scale: "z", side: 1, label: right, labelSize: 18, size: 40, grid: {show: false}, values: (_, ticks) => ticks.map(t => number(t)), space: 34});
  return list;
}

class Chart {
  // series: [{label, colour, dash, width, scale, step}]; tops: {y: () => largest value}
  constructor(id, left, right) {
    this.place = document.getElementById(id);
    this.left = left;
    this.right = right;
    this.top = {y: 1, z: 1};
    this.key = "";
    this.plot = null;
    new ResizeObserver(() => this.plot?.setSize(this.size())).observe(this.place);
  }

  size() {
    return {width: Math.max(160, this.place.clientWidth), height: this.place.clientHeight};
  }

  // Other lines need another plot.
  build(series) {
    const key = JSON.stringify([series, document.documentElement.dataset.theme]);
    if (key === this.key) return;
    this.key = key;
    this.plot?.destroy();
    this.place.replaceChildren();
    const lines = series.map(s => ({
      label: s.label, scale: s.scale ?? "y", stroke: colour(s.colour), dash: s.dash ?? [], width: s.width ?? 1.6, alpha: s.alpha ?? 1,
      points: {show: false}, spanGaps: false, paths: s.step ? uPlot.paths.stepped({align: 1}) : undefined,
    }));
    const range = name => () => [0, this.top[name]];
    this.plot = new uPlot({
      ...this.size(), padding: [8, this.right ? 0 : 10, 0, 0], legend: {show: false}, axes: axes(this.left, this.right),
      cursor: {sync: {key: "fairlane"}, drag: {x: false, y: false}, points: {show: false}},
      scales: {x: {time: false, range: () => [view.from, view.to]}, y: {range: range("y")}, z: {range: range("z")}},
      series: [{label: "time"}, ...lines],
    }, [[], ...lines.map(() => [])], this.place);
  }

  say(text) {
    if (this.key === text) return;
    this.key = text;
    this.plot?.destroy();
    this.plot = null;
    const line = document.createElement("p");
    line.className = "empty";
    line.textContent = text;
    this.place.replaceChildren(line);
  }

  draw(data) {
    this.plot?.setData(data, true);
  }
}

// The samples in view: their first index, the one after the last, and how many stand for one.
function slice() {
  const first = Math.max(0, indexAt(view.from) - 1), end = indexAt(view.to) + 1;
  return {first, end, every: Math.max(1, Math.ceil((end - first) / MOST_POINTS))};
}

function cut(list, {first, end, every}) {
  if (!list) return [];
  if (every === 1) return list.slice(first, end);
  const found = [];
  for (let i = first; i < end; i += every) found.push(list[i] ?? null);
  return found;
}

const largest = lists => {
  let most = 0;
  for (const list of lists) for (const value of list) if (value > most) most = value;
  return most;
};

function roundUp(value) {
  if (!(value > 0)) return 1;
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find(m => m * unit >= value) * unit;
}

function shareLines(times) {
  const lines = [[], []];
  let next = 0, values = [];
  for (const time of times) {
    while (next < store.shares.length && store.shares[next][0] <= time) {
      const [, shares, distinct] = store.shares[next++];
      values = view.highlighted ? [shares[view.highlighted] ?? null] : [distinct[0] ?? null, distinct.length > 1 ? distinct[distinct.length - 1] : null];
    }
    lines[0].push(values[0] == null ? null : values[0] / 1e6);
    lines[1].push(values[1] == null ? null : values[1] / 1e6);
  }
  return lines;
}

function rateSeries() {
  const seen = new Set();
  return store.flows.map(flow => {
    const kind = store.hello.kinds[flow.kind];
    const leads = view.highlighted ? flow.name === view.highlighted : !seen.has(flow.kind);
    seen.add(flow.kind);
    return {label: flow.name, colour: kind.colour, dash: dash(kind.line), width: leads ? 2.4 : 1, alpha: leads ? 1 : view.highlighted ? 0.25 : 0.5};
  });
}

const hasFairRate = () => store.flows.some(flow => flow.kind.startsWith("als"));

function drawRates() {
  const chart = charts.rates;
  chart.build([...rateSeries(), {label: "fair share", colour: SHARE, dash: [7, 5], width: 1.6}, {label: "least fair share", colour: SHARE, dash: [3, 5], width: 1.4},
    ...(hasFairRate() ? [{label: "R_f", colour: FAIR, dash: [2, 4], width: 2}] : [])]);
  const part = slice(), times = cut(store.times, part);
  const rates = store.flows.map((_, i) => {
    const values = cut(store.rates[i], part);
    for (let k = 0; k < values.length; k++) if (values[k] != null) values[k] /= 1e6;
    while (values.length < times.length) values.push(null);
    return values;
  });
  const shares = shareLines(times);
  const fair = hasFairRate() ? [cut(store.port?.fair_rate, part).map(v => v == null ? null : v / 1e6)] : [];
  // What shoots up for a moment may leave the picture: it would squeeze all else.
  const share = largest(shares);
  chart.top.y = roundUp(Math.max(1.2 * share, share ? Math.min(1.08 * largest(rates), 3 * share) : 1.08 * largest(rates)));
  chart.draw([times, ...rates, ...shares, ...fair]);
}

function drawPort() {
  const port = store.port, about = port && portOf(port.id);
  if (!port) return;
  const part = slice(), times = cut(store.times, part), flat = value => times.map(() => value);
  const pad = list => { const values = cut(list, part); while (values.length < times.length) values.push(null); return values; };

  const red = about.red;
  charts.queue.build([{label: "queue", colour: QUEUE, width: 1.6}, {label: "buffer", colour: SHARE, width: 1},
    ...(red ? [{label: "average", colour: AVERAGE, width: 2}, {label: "minimum", colour: MINIMUM, dash: [7, 5], width: 1.2}, {label: "maximum", colour: MAXIMUM, dash: [7, 5], width: 1.2}] : [])]);
  const queue = pad(port.queue), average = red ? pad(port.average) : [];
  // A buffer far above everything is left out of the picture.
  const most = Math.max(largest([queue, average]), red ? red.maximum : 0);
  charts.queue.top.y = about.buffer <= 4 * Math.max(most, 5) ? about.buffer * 1.12 : roundUp(Math.max(5, 1.2 * most));
  charts.queue.draw([times, queue, flat(about.buffer), ...(red ? [average, flat(red.minimum), flat(red.maximum)] : [])]);

  if (red) {
    charts.probability.build([{label: "probability", colour: CHANCE, width: 1.8}]);
    const chance = pad(port.probability);
    charts.probability.top.y = Math.max(roundUp(1.1 * largest([chance])), red.max_p);
    charts.probability.draw([times, chance]);
  } else charts.probability.say("This port's queue is drop-tail: only a full queue drops.");

  charts.fair.build([{label: "R_f", colour: FAIR, width: 2, step: true}, {label: "n", colour: COUNT, width: 1.6, scale: "z", step: true, dash: [7, 4]}]);
  const fair = pad(port.fair_rate).map(v => v == null ? null : v / 1e6), count = pad(port.connections);
  charts.fair.top.y = roundUp(1.15 * largest([fair]));
  charts.fair.top.z = Math.max(4, Math.ceil(1.3 * largest([count])));
  charts.fair.draw([times, fair, count]);

  const causes = Object.keys(port.drops);
  charts.drops.build(causes.map((cause, i) => ({label: cause, colour: causeColour(cause, i), dash: causeDash(i), width: 2})));
  const drops = causes.map(cause => pad(port.drops[cause]));
  charts.drops.top.y = Math.max(5, roundUp(1.1 * largest(drops)));
  charts.drops.draw([times, ...drops]);
}

const causeColour = (cause, i) => CAUSES[cause] ?? OTHER_CAUSES[i % OTHER_CAUSES.length];
const causeDash = i => [[], [8, 4], [2, 3], [9, 4, 2, 4]][i % 4];
export const causeName = cause => ({red_early: "RED, early", red_forced: "RED, forced", tail: "full queue"})[cause] ?? cause.replaceAll("_", " ");

export function makeCharts() {
  charts.rates = new Chart("rates", "goodput (Mb/s)");
  charts.queue = new Chart("queue", "packets");
  charts.probability = new Chart("probability", "probability");
  charts.fair = new Chart("fair", "Mb/s", "connections");
  charts.drops = new Chart("drops", "packets");
}

export function drawCharts() {
  drawRates();
  drawPort();
}

export const canvases = () => ["rates", "queue", "probability", "fair", "drops"].map(id => [id, document.querySelector(`#${id} canvas`)]).filter(([, c]) => c);

function legend(id, entries) {
  document.getElementById(id).replaceChildren(...entries.map(([hex, dashes, text]) => {
    const item = document.createElement("li");
    item.append(sample(hex, dashes), text);
    return item;
  }));
}

// What lines mean; after the flows, the port or the theme changed.
export function legends() {
  const kinds = new Map();
  for (const flow of store.flows) kinds.set(flow.kind, (kinds.get(flow.kind) ?? 0) + 1);
  const many = store.shares.some(([, , distinct]) => distinct.length > 1);
  legend("legend", [
    ...[...kinds].map(([kind, n]) => {
      const about = store.hello.kinds[kind];
      return [about.colour, dash(about.line), n > 1 ? `${about.label}, ${n} flows (the first thick)` : about.label];
    }),
    [SHARE, [7, 5], many ? "largest fair share" : "fair share"], ...(many ? [[SHARE, [3, 5], "least fair share"]] : []),
    ...(hasFairRate() ? [[FAIR, [2, 4], "R_f in force at the port below"]] : []),
  ]);
  const about = store.port && portOf(store.port.id);
  if (!about) return;
  const estimate = store.hello.estimated ? " (estimated from the recorded queue)" : "";
  legend("queue-legend", [[QUEUE, [], "waiting"], [SHARE, [], `buffer, ${about.buffer}`],
    ...(about.red ? [[AVERAGE, [], `RED's average${estimate}`], [MINIMUM, [7, 5], `minimum, ${number(about.red.minimum)}`], [MAXIMUM, [7, 5], `maximum, ${number(about.red.maximum)}`]] : [])]);
  legend("probability-legend", about.red ? [[CHANCE, [], `p_b of the average; ${number(about.red.max_p)} below the maximum, then 1`]] : []);
  legend("fair-legend", [[FAIR, [], "R_f = b U_l / n"], [COUNT, [7, 4], "n, connections counted"]]);
  legend("drops-legend", Object.keys(store.port.drops).map((cause, i) => [causeColour(cause, i), causeDash(i), causeName(cause)]));
}

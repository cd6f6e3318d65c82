// The charts: axes by uPlot, lines from the store.

import { colour, dash, ink, sample } from "./look.js";
import { indexAt, portOf, store } from "./store.js";
import { Strip } from "./strip.js";

const SHARE = "#000000";
const FAIR = "#009E73";
const COUNT = "#CC79A7";
const QUEUE = "#56B4E9";
const MINIMUM = "#009E73";
const MAXIMUM = "#CC79A7";
const AVERAGE = "#D55E00";
const CHANCE = "#0072B2";
const CAUSES = { tail: "#000000" };
const OTHER_CAUSES = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#999933"];

// from, to: the range of the charts. moves: it follows the run's time. now: the moment of tables and clock. runs: the run continues.
// glides: `now` goes on in each frame.
export const view = { from: 0, to: 10, moves: false, now: 0, runs: false, glides: false, highlighted: null };
const charts = {};
// Pixels around what changed that are drawn again.
const MARGIN = 8;
let wake = () => {};

const number = (value) => (value == null ? "–" : String(+value.toPrecision(4)));

function axes(left, right) {
  const common = {
    stroke: () => ink("quiet"),
    grid: { stroke: () => ink("grid"), width: 1 },
    ticks: { stroke: () => ink("rule"), width: 1 },
    font: "12px system-ui, sans-serif",
    labelFont: "12px system-ui, sans-serif",
  };
  const list = [
    { ...common, values: (_, ticks) => ticks.map((t) => number(t)), label: "time (s)", labelSize: 18, size: 30, space: 60 },
    { ...common, scale: "y", label: left, labelSize: 18, size: 46, values: (_, ticks) => ticks.map((t) => number(t)), space: 34 },
  ];
  if (right)
    list.push({
      ...common,
      scale: "z",
      side: 1,
      label: right,
      labelSize: 18,
      size: 40,
      grid: { show: false },
      values: (_, ticks) => ticks.map((t) => number(t)),
      space: 34,
    });
  return list;
}

class Chart {
  // grain: steps to a pixel in which the line of now moves.
  constructor(id, left, right, grain = 1) {
    this.grain = grain;
    this.place = document.getElementById(id);
    this.left = left;
    this.right = right;
    this.top = { y: 1, z: 1 };
    this.text = null;
    this.plot = null;
    this.strip = null;
    this.seen = true;
    // uPlot's picture without the lines, and the last one drawn.
    this.ground = document.createElement("canvas");
    this.last = {};
    new ResizeObserver(() => {
      this.plot?.setSize(this.size());
      wake();
    }).observe(this.place);
    new IntersectionObserver(
      (entries) => {
        this.seen = entries.at(-1).isIntersecting;
        if (this.seen) wake();
      },
      { rootMargin: "50px" },
    ).observe(this.place);
  }

  size() {
    return { width: Math.max(160, this.place.clientWidth), height: this.place.clientHeight };
  }

  // uPlot has the axes, the grid and the cursor; the lines are the strip's.
  build() {
    this.text = null;
    this.place.replaceChildren();
    this.strip = new Strip();
    const range = (name) => () => [0, this.top[name]];
    const line = (scale) => ({ scale, auto: false, paths: () => null, points: { show: false } });
    this.plot = new uPlot(
      {
        ...this.size(),
        padding: [8, this.right ? 0 : 10, 0, 0],
        legend: { show: false },
        axes: axes(this.left, this.right),
        cursor: { sync: { key: "fairlane" }, drag: { x: false, y: false }, points: { show: false } },
        scales: {
          x: { time: false, range: () => [this.from, this.to] },
          y: { range: range("y") },
          ...(this.right ? { z: { range: range("z") } } : {}),
        },
        series: [{ label: "time" }, line("y"), ...(this.right ? [line("z")] : [])],
        hooks: { drawAxes: [() => this.keepGround()], draw: [() => this.paint(0, this.plot.bbox.width)] },
      },
      [[0, 1], [null, null], ...(this.right ? [[null, null]] : [])],
      this.place,
    );
    this.last = {};
  }

  // Lines, and the line of now, over what uPlot drew: from one pixel of the plot to another.
  paint(begin, end) {
    const {
      bbox: { left, top, width, height },
      ctx: pen,
    } = this.plot;
    const { canvas, origin } = this.strip;
    const wide = end - begin;
    // While time glides, later values stay hidden.
    const shown = Math.min(wide, view.glides ? Math.ceil(this.here) - begin : wide);
    if (shown > 0) pen.drawImage(canvas, this.shown - origin + begin, 0, shown, height, left + begin, top, shown, height);
    if (this.here < 0 || this.here > width + 1) return;
    const thick = 1.5 * devicePixelRatio;
    pen.save();
    pen.beginPath();
    pen.rect(left, top, width, height);
    pen.clip();
    pen.globalAlpha = 0.7;
    pen.fillStyle = ink("accent");
    pen.fillRect(left + this.here - thick / 2, top, thick, height);
    pen.restore();
  }

  // If only time and lines advanced: draws the new part.
  patch(begin, end) {
    const {
      bbox: { left, top, height },
      ctx: pen,
    } = this.plot;
    const wide = end - begin;
    pen.save();
    pen.beginPath();
    pen.rect(left + begin, top, wide, height);
    pen.clip();
    pen.clearRect(left + begin, top, wide, height);
    pen.drawImage(this.ground, begin, 0, wide, height, left + begin, top, wide, height);
    this.paint(begin, end);
    pen.restore();
  }

  keepGround() {
    const { left, top, width, height } = this.plot.bbox;
    const { ground } = this;
    [ground.width, ground.height] = [width, height];
    ground.getContext("2d").drawImage(this.plot.ctx.canvas, left, top, width, height, 0, 0, width, height);
  }

  say(text) {
    if (this.text === text) return;
    this.text = text;
    this.plot?.destroy();
    this.plot = null;
    const line = document.createElement("p");
    line.className = "empty";
    line.textContent = text;
    this.place.replaceChildren(line);
  }

  // lines: as in `Strip.update`, and `key`, which changes with the drawn lines.
  draw(lines, key) {
    if (!this.plot) {
      [this.from, this.to, this.shown] = [view.from, view.to, 0];
      this.build();
    }
    const { width, height } = this.plot.bbox;
    const ratio = devicePixelRatio || 1;
    if (!width || !height) {
      wake(); // uPlot lays itself out after this frame
      return;
    }
    // The picture moves by whole pixels, with its grid; the present moment lies in it.
    const perSecond = width / (view.to - view.from);
    const left = Math.ceil(view.from * perSecond - 1e-6);
    const { strip, last } = this;
    const settled = strip.settled;
    const fresh = strip.update({
      times: store.times,
      lines,
      tops: this.top,
      left,
      width,
      height,
      ratio,
      perSecond,
      spare: view.moves ? 2 : 1,
      key,
    });
    [this.from, this.to, this.shown] = [left / perSecond, (left + width) / perSecond, left];
    // In the large chart time goes on with each frame, be it a part of a pixel; the small ones wait for a whole one.
    this.here = Math.round((view.now - this.from) * perSecond * this.grain) / this.grain;
    const frame = [left, perSecond, this.top.y, this.top.z, width, height, view.glides, strip.key].join();
    if (frame !== last.frame) this.plot.setData(this.plot.data.with(0, [this.from, this.to]), true);
    else if (fresh || this.here !== last.here) {
      const ends = [this.here, last.here, ...(fresh ? [settled - left, strip.settled - left + MARGIN] : [])];
      this.patch(Math.max(0, Math.floor(Math.min(...ends)) - MARGIN), Math.min(width, Math.ceil(Math.max(...ends)) + MARGIN));
    }
    this.last = { frame, here: this.here };
  }
}

// The samples in view: the first index, and the one after the last.
const part = () => [Math.max(0, indexAt(view.from) - 1), indexAt(view.to) + 1];

// The largest value of lists in view, 0 at least.
function largest(...lists) {
  const [first, end] = part();
  let most = 0;
  for (const list of lists) for (let i = first; i < end; i++) if (list[i] > most) most = list[i];
  return most;
}

function roundUp(value) {
  if (!(value > 0)) return 1;
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((m) => m * unit >= value) * unit;
}

// Fair shares at each sample: the largest and the least, or the one of the flow brought forward.
const shares = { largest: [], least: [], next: 0, now: [], key: "" };

function shareLines() {
  const key = `${view.highlighted} ${store.epoch}`;
  if (key !== shares.key) Object.assign(shares, { largest: [], least: [], next: 0, now: [], key });
  for (let i = shares.largest.length; i < store.times.length; i++) {
    while (shares.next < store.shares.length && store.shares[shares.next][0] <= store.times[i]) {
      const [, values, distinct] = store.shares[shares.next++];
      shares.now = view.highlighted
        ? [values[view.highlighted] ?? null]
        : [distinct[0] ?? null, distinct.length > 1 ? distinct[distinct.length - 1] : null];
    }
    shares.largest.push(shares.now[0] ?? null);
    shares.least.push(shares.now[1] ?? null);
  }
  return shares;
}

const MEGA = 1e-6;

let rates = { key: null, lines: [] };

function rateLines() {
  if (rates.key === key()) return rates.lines;
  const seen = new Set();
  const lines = store.flows.map((flow, i) => {
    const kind = store.hello.kinds[flow.kind];
    const leads = view.highlighted ? flow.name === view.highlighted : !seen.has(flow.kind);
    seen.add(flow.kind);
    store.rates[i] ??= [];
    return {
      values: store.rates[i],
      factor: MEGA,
      colour: colour(kind.colour),
      dash: dash(kind.line),
      width: leads ? 2.4 : 1,
      alpha: leads ? 1 : view.highlighted ? 0.25 : 0.5,
    };
  });
  rates = { key: key(), lines };
  return lines;
}

const hasFairRate = () => store.flows.some((flow) => flow.kind.startsWith("als"));

// What changes lines that are drawn already.
const key = () => [store.epoch, view.highlighted, document.documentElement.dataset.theme].join();

function drawRates() {
  const chart = charts.rates;
  const { largest: most, least } = shareLines();
  const lines = [
    ...rateLines(),
    { values: most, factor: MEGA, colour: colour(SHARE), dash: [7, 5], width: 1.6 },
    { values: least, factor: MEGA, colour: colour(SHARE), dash: [3, 5], width: 1.4 },
  ];
  if (hasFairRate()) lines.push({ values: store.port?.fair_rate ?? [], factor: MEGA, colour: colour(FAIR), dash: [2, 4], width: 2 });
  // What shoots up for a moment may leave the picture: it would squeeze all else.
  const share = MEGA * largest(most, least);
  const rate = MEGA * 1.08 * largest(store.peaks);
  settle(chart, "y", roundUp(Math.max(1.2 * share, share ? Math.min(rate, 3 * share) : rate)));
  chart.draw(lines, key());
}

// A scale grows at once, and shrinks when much of it is empty: each change redraws everything.
function settle(chart, scale, top) {
  if (!view.runs || top > chart.top[scale] || top < 0.6 * chart.top[scale]) chart.top[scale] = top;
}

// turn: 0 or 1, the half of the charts that are to be drawn; null: all.
function drawPort(turn) {
  const port = store.port;
  const about = port && portOf(port.id);
  if (!port) return;
  const average = about.average;
  const { queue, probability, fair, drops } = charts;
  if (queue.seen && turn !== 1) {
    // A buffer far above everything is left out of the picture.
    const most = Math.max(largest(port.queue, average ? port.average : []), average ? average.maximum : 0);
    settle(queue, "y", about.buffer <= 4 * Math.max(most, 5) ? about.buffer * 1.12 : roundUp(Math.max(5, 1.2 * most)));
    queue.draw(
      [
        { values: port.queue, colour: colour(QUEUE), width: 1.6 },
        { flat: about.buffer, colour: colour(SHARE), width: 1 },
        ...(average
          ? [
              { values: port.average, colour: colour(AVERAGE), width: 2 },
              { flat: average.minimum, colour: colour(MINIMUM), dash: [7, 5], width: 1.2 },
              { flat: average.maximum, colour: colour(MAXIMUM), dash: [7, 5], width: 1.2 },
            ]
          : []),
      ],
      key(),
    );
  }
  if (!average) probability.say("This port's queue has no average that decides.");
  else if (probability.seen && turn !== 0) {
    settle(probability, "y", Math.max(roundUp(1.1 * largest(port.probability)), average.most));
    probability.draw([{ values: port.probability, colour: colour(CHANCE), width: 1.8 }], key());
  }
  if (fair.seen && turn !== 1) {
    settle(fair, "y", roundUp(1.15 * MEGA * largest(port.fair_rate)));
    settle(fair, "z", Math.max(4, Math.ceil(1.3 * largest(port.connections))));
    fair.draw(
      [
        { values: port.fair_rate, factor: MEGA, colour: colour(FAIR), width: 2, step: true },
        { values: port.connections, colour: colour(COUNT), width: 1.6, scale: "z", step: true, dash: [7, 4] },
      ],
      key(),
    );
  }
  if (drops.seen && turn !== 0) {
    const causes = Object.entries(port.drops);
    settle(drops, "y", Math.max(5, roundUp(1.1 * largest(...Object.values(port.drops)))));
    drops.draw(
      causes.map(([cause, values], i) => ({ values, colour: colour(causeColour(cause, i)), dash: causeDash(i), width: 2 })),
      key(),
    );
  }
}

const causeColour = (cause, i) => CAUSES[cause] ?? OTHER_CAUSES[i % OTHER_CAUSES.length];
const causeDash = (i) => [[], [8, 4], [2, 3], [9, 4, 2, 4]][i % 4];
export const causeName = (cause) => ({ ...store.hello.causes, tail: "full queue" })[cause] ?? cause.replaceAll("_", " ");

// stale: called when a chart wants to be drawn.
export function makeCharts(stale) {
  wake = stale;
  charts.rates = new Chart("rates", "goodput (Mb/s)", null, 100);
  charts.queue = new Chart("queue", "packets");
  charts.probability = new Chart("probability", "probability");
  charts.fair = new Chart("fair", "Mb/s", "connections");
  charts.drops = new Chart("drops", "packets");
}

// turn: as of `drawPort`.
export function drawCharts(turn = null) {
  if (charts.rates.seen) drawRates();
  drawPort(turn);
}

// All of them, also those out of sight: once uPlot has drawn, too.
export async function drawAll() {
  const hidden = Object.values(charts).filter((chart) => !chart.seen);
  for (let i = 0; i < 2; i++) {
    for (const chart of hidden) chart.seen = true;
    drawCharts();
    for (const chart of hidden) chart.seen = false;
    await new Promise((done) => setTimeout(done));
  }
}

export const canvases = () =>
  ["rates", "queue", "probability", "fair", "drops"].map((id) => [id, document.querySelector(`#${id} canvas`)]).filter(([, c]) => c);

function legend(id, entries) {
  document.getElementById(id).replaceChildren(
    ...entries.map(([hex, dashes, text]) => {
      const item = document.createElement("li");
      item.append(sample(hex, dashes), text);
      return item;
    }),
  );
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
    [SHARE, [7, 5], many ? "largest max-min fair share" : "max-min fair share"],
    ...(many ? [[SHARE, [3, 5], "least max-min fair share"]] : []),
    ...(hasFairRate() ? [[FAIR, [2, 4], "R_f in force at the port below"]] : []),
  ]);
  const about = store.port && portOf(store.port.id);
  if (!about) return;
  const estimate = store.hello.estimated ? " (estimated from the recorded queue)" : "";
  legend("queue-legend", [
    [QUEUE, [], "waiting"],
    [SHARE, [], `buffer, ${about.buffer}`],
    ...(about.average
      ? [
          [AVERAGE, [], `${about.average.title}'s average${estimate}`],
          [MINIMUM, [7, 5], `minimum, ${number(about.average.minimum)}`],
          [MAXIMUM, [7, 5], `maximum, ${number(about.average.maximum)}`],
        ]
      : []),
  ]);
  legend(
    "probability-legend",
    about.average ? [[CHANCE, [], `p_b of the average; ${number(about.average.most)} below the maximum, then 1`]] : [],
  );
  legend("fair-legend", [
    [FAIR, [], "R_f = b U_l / n"],
    [COUNT, [7, 4], "n, connections counted"],
  ]);
  legend(
    "drops-legend",
    Object.keys(store.port.drops).map((cause, i) => [causeColour(cause, i), causeDash(i), causeName(cause)]),
  );
}

// A run's curves, drawn while it goes on.

import uPlot from "uplot";

// Drawing at each point would take half as long as the run itself.
const BETWEEN_MS = 50;
const COLOURS = ["#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b", "#e377c2", "#17becf", "#bcbd22", "#7f7f7f"];
const mega = (value) => (value == null ? null : value / 1e6);
const short = (digits) => (_, value) => (value == null ? "–" : value.toFixed(digits));

export class Curves {
  #rates;
  #queue;
  #plots = [];
  #points = [];
  #waiting = false;

  constructor(rates, queue) {
    this.#rates = rates;
    this.#queue = queue;
    addEventListener("resize", () => {
      const width = this.#rates.clientWidth;
      for (const plot of this.#plots) if (plot.width !== width) plot.setSize({ width, height: plot.height });
    });
  }

  get count() {
    return this.#points.length;
  }

  clear() {
    this.#points = [];
    this.#show(false);
    for (const plot of this.#plots) plot.destroy();
    this.#plots = [];
  }

  add(point) {
    this.#points.push(point);
    this.#draw();
  }

  // With their captions.
  #show(now) {
    for (const plot of [this.#rates, this.#queue]) plot.parentElement.hidden = !now;
  }

  #make() {
    // Before its width is asked for: what is not shown has none.
    this.#show(true);
    const names = Object.keys(this.#points[0].rates_bps);
    const ink = () => getComputedStyle(document.body).color;
    const grid = { stroke: "#8884" };
    const axes = [{ label: "seconds", size: 32, labelSize: 18, labelFont: "13px system-ui" }, { size: 48 }].map((axis) => ({
      ...axis,
      stroke: ink,
      grid,
      ticks: grid,
    }));
    const common = { width: this.#rates.clientWidth, axes, scales: { x: { time: false } }, cursor: { drag: { x: false, y: false } } };
    const x = { label: "s", value: short(1) };
    const lines = names.map((label, i) => ({
      label,
      stroke: COLOURS[i % COLOURS.length],
      width: 1.5,
      value: short(2),
      points: { show: false },
    }));
    const fair = { label: "fair rate", stroke: ink, dash: [6, 4], value: short(2), points: { show: false } };
    const packets = { label: "packets", stroke: COLOURS[0], value: short(0), points: { show: false } };
    this.#plots = [
      new uPlot({ ...common, height: 260, series: [x, ...lines, fair], legend: { show: names.length <= 12 } }, [[]], this.#rates),
      new uPlot({ ...common, height: 180, series: [x, packets] }, [[]], this.#queue),
    ];
  }

  #draw() {
    if (this.#waiting) return;
    this.#waiting = true;
    setTimeout(
      () =>
        requestAnimationFrame(() => {
          this.#waiting = false;
          const points = this.#points;
          if (points.length === 0) return;
          if (this.#plots.length === 0) this.#make();
          const x = points.map((point) => point.at_s);
          const flows = Object.keys(points[0].rates_bps).map((name) => points.map((point) => mega(point.rates_bps[name])));
          this.#plots[0].setData([x, ...flows, points.map((point) => mega(point.fair_rate_bps))]);
          this.#plots[1].setData([x, points.map((point) => point.queue_packets)]);
          performance.mark("fairlane-drawn");
        }),
      BETWEEN_MS,
    );
  }
}

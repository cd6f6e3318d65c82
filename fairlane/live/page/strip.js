// The lines of a chart, kept as pixels: drawn parts stay, and a frame draws only new samples. A chart shows a part of it.
//
// Pixels are counted from time 0 of the run at the scale of the chart ("absolute"), so that what is drawn piece by piece is the same as what is
// drawn at once, dashes too.

// In device-independent pixels: how far a sample's line can change what is before it, and how far the end of a line reaches.
const BEFORE = 3;
const REACH = 4;
// A column with this many samples or fewer is drawn in full.
const FEW = 4;

// The samples from `first` to `end` that a picture needs: of each column of pixels the first, the least, the largest and the last one.
// columns: of each sample from `offset` on. A column with a gap is kept whole.
export function needed(columns, values, first, end, offset = 0) {
  const found = [];
  for (let i = first; i < end; ) {
    const column = columns[i - offset];
    let next = i;
    let least = i;
    let most = i;
    let whole = true;
    for (; next < end && columns[next - offset] === column; next++) {
      const value = values[next];
      if (value == null) whole = false;
      else if (value < values[least]) least = next;
      else if (value > values[most]) most = next;
    }
    if (!whole || next - i <= FEW) for (let k = i; k < next; k++) found.push(k);
    else {
      const [a, b] = least < most ? [least, most] : [most, least];
      found.push(i);
      if (a > i) found.push(a);
      if (b > a && b < next - 1) found.push(b);
      found.push(next - 1);
    }
    i = next;
  }
  return found;
}

export class Strip {
  constructor() {
    this.canvas = document.createElement("canvas");
    this.pen = this.canvas.getContext("2d");
    this.key = null;
  }

  // Bring the pixels from `left` to `left + width` up to date; true when something was drawn.
  // lines: [{values or flat, factor, scale, colour, width, dash, alpha, step}]; values: one for each of `times`, null for a gap; flat: one for
  // all. tops: {scale: value at the upper edge}. perSecond: pixels. spare: how many times `width` is kept, for a view that moves.
  // key: of everything else that changes the drawn lines.
  update({ times, lines, tops, left, width, height, ratio, perSecond, spare, key }) {
    const length = Math.ceil(width * spare);
    const whole = [key, perSecond, width, height, ratio, spare, lines.length, ...Object.values(tops)].join();
    const right = this.origin + length;
    if (whole !== this.key || left < this.origin || left > right || this.count > times.length) {
      const back = whole === this.key && left < this.origin;
      this.key = whole;
      this.restart(back ? Math.max(0, left - Math.floor(0.75 * (length - width))) : left, length, height, times, lines, perSecond);
    } else if (left + width > right) this.shift(left);
    return this.extend(times, lines, tops, height, ratio, perSecond);
  }

  restart(origin, length, height, times, lines, perSecond) {
    if (this.canvas.width !== length || this.canvas.height !== height) [this.canvas.width, this.canvas.height] = [length, height];
    this.origin = this.settled = origin;
    const first = Math.max(0, firstAfter(times, (origin - REACH) / perSecond) - 1);
    this.starts = lines.map(() => ({ index: first, along: 0 }));
    this.count = 0;
  }

  shift(origin) {
    this.pen.globalCompositeOperation = "copy";
    this.pen.drawImage(this.canvas, this.origin - origin, 0);
    this.pen.globalCompositeOperation = "source-over";
    this.origin = origin;
  }

  extend(times, lines, tops, height, ratio, perSecond) {
    const right = this.origin + this.canvas.width;
    const end = Math.min(times.length, firstAfter(times, right / perSecond) + 1);
    if (end <= this.count) return false;
    this.count = end;
    const { pen, settled: from } = this;
    const before = Math.ceil(BEFORE * ratio);
    const reach = Math.ceil(REACH * ratio);
    this.settled = Math.max(from, Math.min(Math.floor(times[end - 1] * perSecond), right) - before);
    const first = Math.min(end - 1, ...this.starts.map((start) => start.index));
    const across = new Float64Array(end - first);
    const columns = new Int32Array(end - first);
    for (let i = first; i < end; i++) {
      across[i - first] = times[i] * perSecond;
      columns[i - first] = Math.floor(across[i - first]);
    }
    pen.save();
    pen.clearRect(from - this.origin, 0, right - from, height);
    pen.beginPath();
    pen.rect(from - this.origin, 0, right - from, height);
    pen.clip();
    pen.translate(-this.origin, 0);
    pen.lineJoin = "round";
    lines.forEach((line, i) => {
      const thick = Math.max(1, Math.round(10 * line.width * ratio) / 10);
      const dashes = line.dash?.map((d) => d * ratio) ?? [];
      pen.strokeStyle = line.colour;
      pen.globalAlpha = line.alpha ?? 1;
      pen.lineWidth = thick;
      pen.setLineDash(dashes);
      const shift = (Math.round(thick) % 2) / 2;
      const high = (height / tops[line.scale ?? "y"]) * (line.factor ?? 1);
      const level = (value) => Math.round(height - value * high) + shift;
      if (line.flat != null) {
        const begin = Math.max(across[0], from - reach);
        pen.lineDashOffset = begin;
        pen.beginPath();
        pen.moveTo(begin, level(line.flat));
        pen.lineTo(across[end - 1 - first], level(line.flat));
        pen.stroke();
      } else {
        const period = dashes.reduce((a, b) => a + b, 0);
        this.starts[i] = stroke(pen, this.starts[i], line, first, end, across, columns, level, this.settled - reach, period);
      }
    });
    pen.restore();
    return true;
  }
}

// The first of `times` that is after `time`.
function firstAfter(times, time) {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Draw a line on from `start`: {index: of a sample, along: how far along its dashes the line is there}. Returns where the next piece is to
// start: the last sample of a column before `until`. across, columns: pixels of the samples from `offset` on.
function stroke(pen, start, { values, step }, offset, end, across, columns, level, until, period) {
  let { along } = start;
  let next = start;
  let open = false;
  let x = 0;
  let y = 0;
  const samples = needed(columns, values, start.index + 1, end, offset);
  pen.lineDashOffset = along;
  pen.beginPath();
  for (let i = -1; i < samples.length; i++) {
    const k = i < 0 ? start.index : samples[i];
    const value = values[k];
    const column = columns[k - offset];
    if (value != null) {
      const toX = across[k - offset];
      const toY = level(value);
      if (!open) pen.moveTo(toX, toY);
      else if (step) {
        pen.lineTo(toX, y);
        pen.lineTo(toX, toY);
        along += toX - x + Math.abs(toY - y);
      } else {
        pen.lineTo(toX, toY);
        if (period) along += Math.hypot(toX - x, toY - y);
      }
      [open, x, y] = [true, toX, toY];
    } else {
      // The dashes restart after a gap.
      if (open) {
        pen.stroke();
        pen.beginPath();
      }
      pen.lineDashOffset = along = 0;
      open = false;
    }
    if (column < until && !(k + 1 < end && columns[k + 1 - offset] === column)) next = { index: k, along: period ? along % period : 0 };
  }
  if (open) pen.stroke();
  return next;
}

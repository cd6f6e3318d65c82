// The charts as one picture, as on the screen.

import { canvases, drawAll } from "./charts.js";
import { ink } from "./look.js";
import { store } from "./store.js";

export async function saveFigure() {
  await drawAll();
  const ratio = devicePixelRatio || 1;
  const gap = 16 * ratio;
  const line = 19 * ratio;
  const [[, rates], ...small] = canvases();
  const cell = Math.max(...small.map(([, c]) => c.width), (rates.width - gap) / 2);
  const width = Math.max(rates.width, 2 * cell + gap) + 2 * gap;
  const canvas = document.createElement("canvas");
  const pen = canvas.getContext("2d");
  // Once to see how high it becomes, once to draw.
  for (const drawing of [false, true]) {
    if (drawing) {
      pen.fillStyle = ink("card");
      pen.fillRect(0, 0, canvas.width, canvas.height);
    }
    let y = gap + line / 2;
    say(pen, `${store.hello.id}: ${store.hello.title}`, gap, y, ratio, "ink", true);
    y += line;
    say(pen, `seed ${store.hello.seed}${store.changes.length ? ", changed by hand while it ran" : ""}`, gap, y, ratio, "quiet");
    y = legend(pen, "legend", gap, y + line, width - 2 * gap, ratio);
    pen.drawImage(rates, gap, y);
    y += rates.height + 1.5 * line;
    for (let i = 0; i < small.length; i += 2) {
      const row = small.slice(i, i + 2).map(([id, chart], k) => {
        const x = gap + k * (cell + gap);
        say(
          pen,
          `${document.getElementById(`${id}-title`).textContent}, ${store.hello.ports.find((p) => p.id === store.port.id).name}`,
          x,
          y,
          ratio,
          "ink",
          true,
        );
        return { chart, x, below: legend(pen, `${id}-legend`, x, y + line, cell, ratio) };
      });
      const top = Math.max(...row.map((r) => r.below));
      for (const { chart, x } of row) pen.drawImage(chart, x, top);
      y = top + Math.max(...row.map((r) => r.chart.height)) + 1.5 * line;
    }
    if (!drawing) [canvas.width, canvas.height] = [width, y - line];
  }
  const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `${store.hello.id}.png`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function say(pen, text, x, y, ratio, colour, bold = false) {
  pen.font = `${bold ? "600 " : ""}${13 * ratio}px system-ui, sans-serif`;
  pen.fillStyle = ink(colour);
  pen.fillText(text, x, y);
  return pen.measureText(text).width;
}

// The entries of a legend, wrapped; returns where the next thing may stand.
function legend(pen, id, left, top, width, ratio) {
  let x = left;
  let y = top;
  pen.font = `${13 * ratio}px system-ui, sans-serif`;
  for (const item of document.getElementById(id).children) {
    const sample = item.querySelector("line");
    const long = 32 * ratio + pen.measureText(item.textContent).width;
    if (x > left && x + long > left + width) {
      x = left;
      y += 18 * ratio;
    }
    pen.save();
    pen.strokeStyle = sample.style.stroke;
    pen.lineWidth = 2.4 * ratio;
    pen.setLineDash(
      (sample.getAttribute("stroke-dasharray") || "")
        .split(" ")
        .filter(Boolean)
        .map((v) => v * ratio),
    );
    pen.beginPath();
    pen.moveTo(x, y - 4 * ratio);
    pen.lineTo(x + 26 * ratio, y - 4 * ratio);
    pen.stroke();
    pen.restore();
    x += 32 * ratio;
    x += say(pen, item.textContent, x, y, ratio, "quiet") + 16 * ratio;
  }
  return y + 10 * ratio;
}

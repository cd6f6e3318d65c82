// The charts as one picture, as they are on the screen.

import {canvases} from "./charts.js";
import {ink} from "./look.js";
import {store} from "./store.js";

export async function saveFigure() {
  const all = canvases(), ratio = devicePixelRatio || 1, gap = 14 * ratio, line = 20 * ratio;
  const wide = all[0][1].width, small = all.slice(1);
  const columns = 2, cellWidth = Math.max(...small.map(([, c]) => c.width));
  const width = Math.max(wide, columns * cellWidth + gap) + 2 * gap;
  const cellHeight = Math.max(...small.map(([, c]) => c.height)) + 2 * line;
  const height = 3 * line + all[0][1].height + line + Math.ceil(small.length / columns) * cellHeight + gap;
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width, height];
  const pen = canvas.getContext("2d");
  pen.fillStyle = ink("card");
  pen.fillRect(0, 0, width, height);
  const say = (text, x, y, bold, quiet) => {
    pen.font = `${bold ? "600 " : ""}${13 * ratio}px system-ui, sans-serif`;
    pen.fillStyle = ink(quiet ? "quiet" : "ink");
    pen.fillText(text, x, y);
  };
  const h = store.hello;
  say(`${h.id}: ${h.title}`, gap, line, true);
  say(`seed ${h.seed}${store.changes.length ? ", changed by hand while it ran" : ""}. ${legendOf("legend")}`, gap, 2 * line, false, true);
  pen.drawImage(all[0][1], gap, 2.5 * line);
  const top = 3 * line + all[0][1].height + line;
  small.forEach(([id, chart], i) => {
    const x = gap + (i % columns) * (cellWidth + gap), y = top + Math.floor(i / columns) * cellHeight;
    say(`${document.getElementById(`${id}-title`).textContent} at ${store.hello.ports.find(p => p.id === store.port.id).name}`, x, y, true);
    say(legendOf(`${id}-legend`), x, y + 0.85 * line, false, true);
    pen.drawImage(chart, x, y + line);
  });
  const blob = await new Promise(done => canvas.toBlob(done, "image/png"));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `${h.id}.png`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

const legendOf = id => [...document.getElementById(id).children].map(item => item.textContent).join("; ");

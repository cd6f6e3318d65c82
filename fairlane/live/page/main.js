// The page: updates from the server go into the store, a frame at a time onto the screen; buttons and keys become requests.

import { drawCharts, legends, makeCharts, view } from "./charts.js";
import { saveFigure } from "./figure.js";
import { glide } from "./glide.js";
import { themes } from "./look.js";
import { buildNetwork, drawNetwork, markPort } from "./network.js";
import { lastTime, megabits, store, take } from "./store.js";
import { buildFlows, change, drawChanges, drawFlows, drawPorts, drawValues, hostsToo, put } from "./tables.js";

const $ = (id) => document.getElementById(id);
const SPEAK_EVERY_S = 10;
const TABLES_EVERY_MS = 500;
const CLOCK_EVERY_MS = 200;
// Each frame of a browser takes something from the run, so there are no more than an eye needs.
const FRAME_MS = 1000 / 33;
// A frame is asked for so long before it is due: between two of them the browser has nothing to do.
const BEFOREHAND_MS = 6;
// A view through which time would pass in less than so many seconds stands still, and goes on by so much of its width at once.
const FAST_S = 6;
const TURN = 0.25;
const still = matchMedia("(prefers-reduced-motion: reduce)");
let socket = null;
let number = 0;
let dirty = false;
let cursor = null;
let playing = false;
let playSpeed = 1;
let lastFrame = 0;
let tablesDirty = false;
let tabled = 0;
let clocked = 0;
let asked = false;
let spoken = 0;
let due = 0;
let shown = 0;
const requests = new Map();

// For tests: a record of the page's work. frames: those in which time or the samples advanced.
window.fairlane = { frames: 0, drawMs: [], counted: {}, store, view };

const live = () => store.hello?.mode === "virtual" && !store.state.finished && socket?.readyState === 1;
const replay = () => store.hello && (store.hello.mode === "finished" || store.state.finished);

function connect() {
  socket = new WebSocket(`ws://${location.host}${location.pathname}socket`);
  socket.addEventListener("message", (event) => receive(JSON.parse(event.data)));
  socket.addEventListener("close", () => {
    $("note").hidden = false;
    $("note").textContent = store.hello
      ? "The run's process has ended. What is here stays; downloads of data do not work any more."
      : "There is no run at this address.";
    for (const link of document.querySelectorAll(".downloads a")) link.removeAttribute("href");
    controls();
  });
}

function request(what, done = () => {}) {
  number += 1;
  requests.set(number, done);
  socket.send(JSON.stringify({ ...what, number }));
}

function receive(message) {
  if (message.is === "hello") hello(message);
  else if (message.is === "update") update(message);
  else if (message.is === "moment") {
    asked = false;
    store.now = message.now;
    tables();
    if (Math.abs((store.now.time ?? 0) - (cursor ?? 0)) > store.hello.step * 1.5) look();
  } else if (message.is === "answer") {
    $("refusal").textContent = message.refusal ?? "";
    requests.get(message.number)?.(message.refusal);
    requests.delete(message.number);
  }
}

function hello(message) {
  store.hello = message;
  document.title = `${message.id}, live`;
  $("title").textContent = message.id;
  $("subtitle").textContent =
    `${message.title}. ${{ virtual: "Virtual time", mininet: "Mininet, wall clock", finished: "A finished run" }[message.mode]}, seed ${message.seed}`;
  if (message.note) {
    $("note").textContent = message.note;
    $("note").hidden = false;
  }
  makeCharts(() => {
    dirty = true;
  });
  buildNetwork(choose);
  const trunks = message.ports.filter((p) => p.trunk);
  const others = message.ports.filter((p) => !p.trunk);
  fill(
    $("port"),
    [...trunks, ...others].map((p) => [p.id, p.name]),
    message.bottleneck,
  );
  fill(
    $("rate-port"),
    [...trunks, ...others].map((p) => [p.id, p.name]),
    message.bottleneck,
  );
  fill(
    $("add-kind"),
    message.addable.map((kind) => [kind, kind]),
  );
  fill(
    $("add-from"),
    message.hosts.map((h) => [h, h]),
  );
  fill(
    $("add-to"),
    message.hosts.map((h) => [h, h]),
  );
  $("slider").max = message.duration;
  $("slider").step = message.step;
  if (message.duration <= 40) $("window").value = "all";
  controls();
}

function fill(select, options, chosen) {
  select.replaceChildren(...options.map(([value, text]) => new Option(text, value, false, value === chosen)));
}

function update(message) {
  const before = { ...store.state };
  const wasLast = cursor == null;
  const fresh = take(message);
  if (fresh.flows) {
    buildFlows({ highlight, stop: live() ? (flow) => request({ do: "stop", flow }) : null });
    propose();
    legends();
  }
  if (fresh.port) {
    legends();
    markPort();
  }
  if (message.shares) legends();
  if (fresh.changes) {
    drawChanges();
    speak(fresh.changes.map(change).join(". "));
  }
  if (fresh.state) {
    $("doubt").textContent = store.state.doubt;
    $("doubt").hidden = !store.state.doubt;
    if (store.state.finished && !before.finished) finished();
    else if (store.state.paused !== before.paused) speak(store.state.paused ? `Paused. ${summary()}` : "Running.");
    // The achieved pace changes each time: the clock shows it.
    if (["paused", "speed", "finished"].some((name) => store.state[name] !== before[name])) {
      glide.begin();
      dirty = true;
      controls();
    }
  }
  if (fresh.now) tables();
  if (fresh.samples || fresh.flows) dirty = true;
  if (message.times) glide.to(lastTime(), performance.now());
  if (replay() && !store.changes.length) $("changes").firstElementChild.textContent = "nothing";
  if (wasLast && replay() && store.times.length && cursor == null) {
    cursor = lastTime();
    buildFlows({ highlight, stop: null });
  }
}

function finished() {
  cursor = lastTime();
  playing = false;
  $("window").value = "all";
  dirty = true;
  buildFlows({ highlight, stop: null });
  speak(`The run is over. ${summary()}`);
}

function tables() {
  tablesDirty = true;
}

function highlight(name) {
  view.highlighted = view.highlighted === name ? null : name;
  for (const button of document.querySelectorAll("#flows .flow"))
    button.setAttribute("aria-pressed", String(button.textContent === view.highlighted));
  dirty = true;
}

function choose(port) {
  $("port").value = port;
  request({ do: "choose", port });
}

// The chosen link's values, unless the user is typing.
function currentRate() {
  const port = store.now?.ports[$("rate-port").value];
  if (port && document.activeElement !== $("rate-value")) $("rate-value").value = +(port.rate / 1e6).toPrecision(9);
}

// A pair of hosts that no flow has now.
function propose() {
  const now = store.now?.time ?? 0;
  const taken = new Set(store.flows.filter((f) => f.stop == null || f.stop > now).map((f) => `${f.from} ${f.to}`));
  const senders = [...new Set(store.flows.map((f) => f.from))];
  const receivers = [...new Set(store.flows.map((f) => f.to))];
  for (const from of senders)
    for (const to of receivers) {
      if (from !== to && !taken.has(`${from} ${to}`)) {
        $("add-from").value = from;
        $("add-to").value = to;
        return;
      }
    }
}

const time = () => (replay() ? (cursor ?? 0) : lastTime());

function controls() {
  const steered = live();
  const again = replay();
  const paused = again ? !playing : store.state.paused;
  $("pause").disabled = $("step").disabled = $("speed").disabled = !(steered || again);
  $("pause").textContent = paused ? (again ? "Play" : "Go on") : "Pause";
  $("add").hidden = $("rate").hidden = !steered;
  $("slider-label").hidden = !again;
  const speed = again ? playSpeed : store.state.speed;
  const value = speed == null ? "max" : String(speed);
  if (![...$("speed").options].some((o) => o.value === value))
    $("speed").add(new Option(`${value}×`, value), $("speed").options.length - 1);
  if (document.activeElement !== $("speed")) $("speed").value = value;
  for (const option of $("speed").options) if (option.value === "max") option.hidden = option.disabled = Boolean(again);
  clock();
}

function clock() {
  if (!store.hello) return;
  put($("time"), `${(view.glides ? view.now : time()).toFixed(1)} of ${store.hello.duration} s`);
  const share = Math.round((1000 * time()) / store.hello.duration) / 1000;
  if ($("progress").value !== share) $("progress").value = share;
  const { finished, paused, reached } = store.state;
  put(
    $("pace"),
    replay()
      ? playing
        ? `playing at ${playSpeed}×`
        : "finished"
      : paused
        ? "paused"
        : reached == null || store.hello.mode !== "virtual"
          ? ""
          : `at ${reached.toFixed(reached < 10 ? 1 : 0)}×`,
  );
  if (replay() && document.activeElement !== $("slider")) $("slider").value = time();
  if (finished) $("slider").setAttribute("aria-valuetext", `${time().toFixed(1)} seconds`);
}

// In a finished run the server is asked for the tables of another moment, one question at a time.
function look() {
  if (!replay() || asked || socket?.readyState !== 1) return;
  asked = true;
  socket.send(JSON.stringify({ do: "look", at: cursor }));
}

function seek(to) {
  cursor = Math.max(0, Math.min(lastTime(), to));
  dirty = true;
  look();
  clock();
}

function summary() {
  const now = store.now;
  if (!now || now.time == null) return "";
  const running = now.flows.filter((f) => f[0] != null);
  const rates = running.map((f) => f[0]);
  const shares = running.map((f) => f[1]).filter((s) => s != null);
  const mean = (list) => list.reduce((a, b) => a + b, 0) / list.length;
  const port = now.ports[$("port").value];
  const parts = [`${now.time.toFixed(0)} seconds`, `${running.length} flow${running.length === 1 ? "" : "s"}`];
  if (rates.length)
    parts.push(
      `on average ${megabits(mean(rates), 2)} megabits a second` +
        (shares.length
          ? `, max-min fair share ${[...new Set([Math.min(...shares), Math.max(...shares)].map((s) => megabits(s, 2)))].join(" to ")}`
          : ""),
    );
  if (port)
    parts.push(
      `queue ${port.queue == null ? "unknown" : Math.round(port.queue)} packets`,
      `link load ${Math.round(100 * (port.load ?? 0))} percent`,
    );
  return `${parts.join(". ")}.`;
}

function speak(text) {
  spoken = performance.now();
  $("spoken").textContent = text;
}

function frame(at) {
  try {
    show(at);
  } finally {
    setTimeout(() => requestAnimationFrame(frame), Math.max(0, (due >= at ? due : at + FRAME_MS) - BEFOREHAND_MS - performance.now()));
  }
}

function show(at) {
  if (!store.hello) return;
  if (playing && replay()) {
    const to = cursor + playSpeed * Math.min(0.5, (at - lastFrame) / 1000);
    if (to >= lastTime()) {
      playing = false;
      controls();
    }
    seek(to);
  }
  lastFrame = at;
  if (tablesDirty && (at - tabled >= TABLES_EVERY_MS || (replay() ? !playing : store.state.paused))) {
    tablesDirty = false;
    tabled = at;
    drawFlows();
    drawPorts();
    drawValues();
    drawNetwork();
    if (!$("rate-value").value) currentRate();
    if (!replay() && !store.state.paused && at - spoken > SPEAK_EVERY_S * 1000) speak(summary());
  }
  // From one sample to the next time glides.
  const runs = !replay() && !store.state.paused && socket?.readyState === 1;
  const glides = runs && !still.matches;
  if (!store.times.length || !(dirty || glides) || at < due - 2) return;
  dirty = false;
  due = Math.max(at, due + FRAME_MS);
  const begun = performance.now();
  const samples = store.times.length;
  view.runs = runs;
  view.glides = glides;
  view.now = glides ? glide.at(begun) : time();
  const span = $("window").value;
  view.moves = span !== "all";
  if (!view.moves) [view.from, view.to] = [0, Math.max(store.hello.duration, view.now)];
  else {
    // What would rush past stands, and is turned like a page.
    const turns = glides && span < FAST_S * (store.state.reached ?? 0);
    if (!turns || view.now > view.to || view.now < view.from || Math.abs(view.to - view.from - span) > 1e-6) {
      const to = Math.max(+span, view.now + (turns ? TURN * span : 0));
      [view.from, view.to] = [to - span, to];
    }
  }
  // The small charts take turns with each other.
  shown += 1;
  drawCharts(glides ? shown % 2 : null);
  if (!glides || at - clocked >= CLOCK_EVERY_MS) {
    clocked = at;
    clock();
  }
  const { counted } = window.fairlane;
  if (counted.now === view.now && counted.samples === samples) return;
  window.fairlane.counted = { now: view.now, samples };
  window.fairlane.frames += 1;
  window.fairlane.drawMs.push(performance.now() - begun);
  if (window.fairlane.drawMs.length > 600) window.fairlane.drawMs.shift();
}

function pause() {
  if (replay()) {
    playing = !playing;
    if (playing && cursor >= lastTime() - 1e-6) cursor = 0;
    if ($("window").value === "all" && playing) $("window").value = "30";
    controls();
  } else if (live()) request({ do: "pause", paused: !store.state.paused });
}

function step() {
  const seconds = +$("step-size").value;
  if (replay()) {
    playing = false;
    seek(cursor + seconds);
    controls();
  } else if (live()) request({ do: "step", seconds });
}

$("pause").addEventListener("click", pause);
$("step").addEventListener("click", step);
$("speed").addEventListener("change", () => {
  const value = $("speed").value;
  if (replay()) playSpeed = +value || 1;
  else request({ do: "speed", speed: value === "max" ? null : +value });
  clock();
});
$("window").addEventListener("change", () => {
  dirty = true;
});
$("slider").addEventListener("input", () => {
  playing = false;
  seek(+$("slider").value);
  controls();
});
$("port").addEventListener("change", () => choose($("port").value));
$("all-ports").addEventListener("change", (event) => {
  request({ do: "hosts", show: event.target.checked });
  hostsToo(event.target.checked);
  look();
});
$("figure").addEventListener("click", saveFigure);
$("add").addEventListener("submit", (event) => {
  event.preventDefault();
  request({ do: "add", kind: $("add-kind").value, from: $("add-from").value, to: $("add-to").value });
});
$("rate").addEventListener("submit", (event) => {
  event.preventDefault();
  request({ do: "rate", port: $("rate-port").value, rate_bps: 1e6 * $("rate-value").value, both: $("rate-both").checked });
});
$("rate-port").addEventListener("change", currentRate);
for (const details of document.querySelectorAll("details")) details.addEventListener("toggle", drawValues);
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("button, input, select, textarea, summary, a")) return;
  if (event.key === " ") pause();
  else if (event.key === ".") step();
  else return;
  event.preventDefault();
});
themes($("theme"), () => {
  dirty = true;
  if (store.hello) {
    legends();
    if (store.flows.length) buildFlows({ highlight, stop: live() ? (flow) => request({ do: "stop", flow }) : null });
  }
});
connect();
requestAnimationFrame(frame);

// What the page knows of the run: grows with the updates from the server, and is read by charts and tables.

export const store = {
  hello: null,
  state: { paused: false, speed: 1, reached: null, finished: false, note: "", doubt: "" },
  times: [],
  flows: [],
  rates: [], // one list for each flow, as long as `times`
  peaks: [], // of each sample, the largest rate
  shares: [], // [time, {flow: bit/s}, [distinct values, falling]]
  port: null, // {id, load: [], queue: [], ..., drops: {cause: []}}
  now: null, // tables of the last sample
  changes: [],
  epoch: 0, // grows when something changes that samples taken before are drawn with
};

// Merge an update into the store. Returns the changes: {flows, samples, port, now, state, changes}.
export function take(update) {
  const fresh = {};
  if (update.flows) {
    store.flows = update.flows;
    store.epoch += 1;
    fresh.flows = true;
  }
  if (update.times) {
    const before = update.from;
    for (const time of update.times) {
      store.times.push(time);
      store.peaks.push(0);
    }
    update.rates.forEach((values, i) => {
      store.rates[i] ??= [];
      const list = store.rates[i];
      while (list.length < before) list.push(null);
      for (const value of values) {
        if (value > store.peaks[list.length]) store.peaks[list.length] = value;
        list.push(value);
      }
    });
    fresh.samples = true;
  }
  if (update.port) {
    const { id, from, drops, ...columns } = update.port;
    if (from === 0 || !store.port || store.port.id !== id) {
      store.port = { id, drops: {} };
      store.epoch += 1;
      fresh.port = true;
    }
    for (const [name, values] of Object.entries(columns)) append(store.port, name, values);
    for (const [cause, values] of Object.entries(drops)) append(store.port.drops, cause, values);
    fresh.samples = true;
  }
  for (const [time, shares] of update.shares ?? []) {
    if (time <= lastTime()) store.epoch += 1;
    store.shares.push([time, shares, [...new Set(Object.values(shares))].sort((a, b) => b - a)]);
  }
  if (update.changes) {
    store.changes.push(...update.changes);
    fresh.changes = update.changes;
  }
  if (update.state) {
    store.state = update.state;
    fresh.state = true;
  }
  if (update.now) {
    store.now = update.now;
    fresh.now = true;
  }
  return fresh;
}

function append(object, name, values) {
  object[name] ??= [];
  for (const value of values) object[name].push(value);
}

// The last index whose time is not after `time`, or -1.
export function indexAt(time) {
  let low = 0;
  let high = store.times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (store.times[middle] <= time + 1e-6) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

export const lastTime = () => (store.times.length ? store.times[store.times.length - 1] : 0);
export const megabits = (bps, digits = 3) => (bps == null ? "–" : (bps / 1e6).toFixed(digits));
export const portOf = (id) => store.hello.ports.find((port) => port.id === id);

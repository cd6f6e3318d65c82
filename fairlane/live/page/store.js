// What the page knows of the run: grows with the news from the server, and is read by charts and tables.

export const store = {
  hello: null,
  state: {paused: false, speed: 1, reached: null, finished: false, note: ""},
  times: [],
  flows: [],
  rates: [],      // one list for each flow, as long as `times`
  peaks: [],      // of each sample, the largest rate
  shares: [],     // [time, {flow: bit/s}, [distinct values, falling]]
  port: null,     // {id, load: [], queue: [], ..., drops: {cause: []}}
  now: null,      // tables of the last sample
  changes: [],
  epoch: 0,       // grows when something changes that samples taken before are drawn with
};

// Lay news over what is known. Returns what is new: {flows, samples, port, now, state, changes}.
export function take(news) {
  const fresh = {};
  if (news.flows) {
    store.flows = news.flows;
    store.epoch += 1;
    fresh.flows = true;
  }
  if (news.times) {
    const before = news.from;
    for (const time of news.times) {
      store.times.push(time);
      store.peaks.push(0);
    }
    news.rates.forEach((values, i) => {
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
  if (news.port) {
    const {id, from, drops, ...columns} = news.port;
    if (from === 0 || !store.port || store.port.id !== id) {
      store.port = {id, drops: {}};
      store.epoch += 1;
      fresh.port = true;
    }
    for (const [name, values] of Object.entries(columns)) append(store.port, name, values);
    for (const [cause, values] of Object.entries(drops)) append(store.port.drops, cause, values);
    fresh.samples = true;
  }
  for (const [time, shares] of news.shares ?? []) {
    if (time <= lastTime()) store.epoch += 1;
    store.shares.push([time, shares, [...new Set(Object.values(shares))].sort((a, b) => b - a)]);
  }
  if (news.changes) {
    store.changes.push(...news.changes);
    fresh.changes = news.changes;
  }
  if (news.state) {
    store.state = news.state;
    fresh.state = true;
  }
  if (news.now) {
    store.now = news.now;
    fresh.now = true;
  }
  return fresh;
}

function append(object, name, values) {
  object[name] ??= [];
  for (const value of values) object[name].push(value);
}

// The last index whose time is not after `time`; -1 when there is none.
export function indexAt(time) {
  let low = 0, high = store.times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (store.times[middle] <= time + 1e-6) low = middle + 1; else high = middle;
  }
  return low - 1;
}

export const lastTime = () => store.times.length ? store.times[store.times.length - 1] : 0;
export const megabits = (bps, digits = 3) => bps == null ? "–" : (bps / 1e6).toFixed(digits);
export const portOf = id => store.hello.ports.find(port => port.id === id);

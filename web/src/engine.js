// The worker that computes, asked from the page. It can be ended at any time, and another one takes its place.

export class Ended extends Error {}

export class Engine {
  #worker;
  #asked = new Map();
  #number = 0;
  #on;

  // on: { state(text), ready(now), point(point) }
  constructor(on) {
    this.#on = on;
    this.restart();
  }

  restart() {
    this.#worker?.terminate();
    for (const { reject } of this.#asked.values()) reject(new Ended("ended"));
    this.#asked.clear();
    this.#on.ready(false);
    this.#on.state("Loading…");
    this.#worker = new Worker("worker.js", { type: "module" });
    this.#worker.onmessage = ({ data }) => this.#hear(data);
    this.#worker.onerror = (event) => this.#on.state(`The page cannot start: ${event.message ?? "worker.js could not be loaded"}`);
  }

  #hear({ is, number, ...data }) {
    if (is === "ready") {
      this.#on.state("Ready.");
      this.#on.ready(true);
      performance.mark("fairlane-ready");
    } else if (is === "broken") {
      this.#on.state(`The page cannot start: ${data.said}`);
    } else if (is === "point") {
      this.#on.point(data);
    } else {
      const asked = this.#asked.get(number);
      this.#asked.delete(number);
      if (is === "fault") asked?.reject(new Error(data.said));
      else asked?.resolve(data.answer);
    }
  }

  // What a function of bridge.py answers. Rejected with Ended when the worker is ended first.
  ask(what, ...words) {
    const number = ++this.#number;
    return new Promise((resolve, reject) => {
      this.#asked.set(number, { resolve, reject });
      this.#worker.postMessage({ number, what, words });
    });
  }
}

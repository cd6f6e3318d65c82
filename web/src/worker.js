// Computes: Pyodide with Fairlane's Python and its compiled core. In a worker, so that the page never stalls and an endless loop can be ended.

import { install } from "./install.js";

const base = new URL(".", self.location.href);

async function got(name) {
  const answer = await fetch(new URL(name, base));
  if (!answer.ok) throw new Error(`${name}: ${answer.status} ${answer.statusText}`);
  return answer;
}

const bytes = async (name) => new Uint8Array(await (await got(name)).arrayBuffer());
// A file that is stored as gzip makes it, whether the server compresses or not.
const unpacked = async (name, type) => {
  const body = (await got(name)).body.pipeThrough(new DecompressionStream("gzip"));
  return new Response(body, { headers: { "Content-Type": type } });
};

async function begin() {
  const files = [bytes("packages.zip"), bytes("bridge.py")];
  const kept = unpacked("memory.packed", "application/octet-stream").then((answer) => answer.arrayBuffer());
  const module = unpacked("pyodide/pyodide.asm.wasm.packed", "application/wasm");
  // Pyodide asks for its module itself.
  const plain = self.fetch;
  self.fetch = (what, ...more) => (String(what).endsWith("/pyodide.asm.wasm") ? module : plain.call(self, what, ...more));
  const [{ loadPyodide }, { default: create }] = await Promise.all(
    ["pyodide/pyodide.mjs", "pyodide/pyodide.asm.mjs"].map((name) => import(new URL(name, base).href)),
  );
  // Python as snapshot.mjs left it, with its modules imported. Pyodide copies this memory over its own, which has to be as large before.
  const createPyodideModule = async (settings) => {
    const made = await create(settings);
    made._malloc((await kept).byteLength);
    return made;
  };
  const python = await loadPyodide({ createPyodideModule, _loadSnapshot: kept });
  self.fetch = plain;
  // Pyodide keeps what it has copied; a buffer that is handed over is empty.
  const copied = await kept;
  structuredClone(copied, { transfer: [copied] });
  // Its files are put where they were.
  install(python, ...(await Promise.all(files)));
  const page = python.pyimport("fairlane_page");
  page.begin();
  return page;
}

const page = begin();
page.then(
  () => self.postMessage({ is: "ready" }),
  (error) => self.postMessage({ is: "broken", said: String(error) }),
);

const tell = (point) => self.postMessage({ is: "point", ...JSON.parse(point) });

self.onmessage = async ({ data: { number, what, words } }) => {
  try {
    const fairlane = await page;
    const given = what === "run" ? [...words, tell] : words;
    let answer = fairlane[what](...given);
    if (what === "records") {
      const proxy = answer;
      answer = proxy.toJs();
      proxy.destroy();
    } else {
      answer = JSON.parse(answer);
    }
    self.postMessage({ is: "answer", number, answer });
  } catch (error) {
    self.postMessage({ is: "fault", number, said: String(error) });
  }
};

// Computes: Pyodide with Fairlane's Python and its compiled core. In a worker, so that the page never stalls and an endless loop can be ended.

const base = new URL(".", self.location.href);

async function bytes(name) {
  const answer = await fetch(new URL(name, base));
  if (!answer.ok) throw new Error(`${name}: ${answer.status} ${answer.statusText}`);
  return answer.arrayBuffer();
}

async function begin() {
  const { loadPyodide } = await import(new URL("pyodide/pyodide.mjs", base).href);
  const [python, packages, bridge] = await Promise.all([loadPyodide(), bytes("packages.zip"), bytes("bridge.py")]);
  const site = python.runPython("import site; site.getsitepackages()[0]");
  python.unpackArchive(packages, "zip", { extractDir: site });
  python.FS.writeFile(`${site}/fairlane_page.py`, new Uint8Array(bridge));
  return python.pyimport("fairlane_page");
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

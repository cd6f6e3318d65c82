// The run: Pyodide with Fairlane's Python and its compiled core. In a worker, so that the page never stalls and an endless loop can be ended.

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

const DO = {
  run: (fairlane, { request }) => ({
    is: "ended",
    ...JSON.parse(fairlane.run(JSON.stringify(request), (point) => self.postMessage({ is: "point", ...JSON.parse(point) }))),
  }),
  check: (fairlane, { name, text }) => ({ is: "checked", name, ...JSON.parse(fairlane.check(name, text)) }),
  source: (fairlane, { name }) => ({ is: "source", name, text: fairlane.source(name) }),
  records: (fairlane) => {
    const proxy = fairlane.records();
    const archive = proxy.toJs();
    proxy.destroy();
    return { is: "records", archive };
  },
};

self.onmessage = async ({ data }) => {
  try {
    self.postMessage(DO[data.do](await page, data));
  } catch (error) {
    self.postMessage({ is: "ended", error: String(error) });
  }
};

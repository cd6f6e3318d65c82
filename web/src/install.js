// Puts our Python in its place: the same for the page's worker, and for snapshot.mjs, which imports it beforehand.

import { unzipSync } from "fflate";

// By fflate, as what Python unpacks would stay in the memory that snapshot.mjs writes.
export function install(python, packages, bridge) {
  const { FS } = python;
  const site = python.runPython("import site; site.getsitepackages()[0]");
  for (const [name, bytes] of Object.entries(unzipSync(packages))) {
    FS.mkdirTree(`${site}/${name.slice(0, name.lastIndexOf("/") + 1)}`);
    FS.writeFile(`${site}/${name}`, bytes);
  }
  FS.writeFile(`${site}/fairlane_page.py`, bridge);
  python.runPython("import importlib; importlib.invalidate_caches()");
}

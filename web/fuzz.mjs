// Runs a fuzz target's inputs through the WebAssembly module, in node: tools/web/fuzz.py starts it and writes a line of JSON for each.
//     node fuzz.mjs MODULE FOLDER     MODULE: built with --features fuzz. FOLDER: of the checkout, whose test programs targets read

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { loadPyodide } from "pyodide";

const [module, folder] = process.argv.slice(2);
const python = await loadPyodide();
python.FS.mkdirTree(folder);
python.FS.mount(python.FS.filesystems.NODEFS, { root: folder }, folder);
python.FS.writeFile("/native.abi3.so", readFileSync(module));
const run = python.runPython(`
import base64, sys
sys.path.insert(0, "/")
import native
lambda target, data: native.fuzz(target, base64.b64decode(data))
`);
console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  const { target, data } = JSON.parse(line);
  run(target, data);
  console.log("done");
}

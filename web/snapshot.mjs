// Writes the memory of a Python that has imported the page's Python, which the page starts from: tools/web runs it in node.
//     node snapshot.mjs PACKAGES BRIDGE OUT     PACKAGES: packages.zip. BRIDGE: bridge.py. OUT: the memory, compressed by gzip

import { readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { loadPyodide } from "pyodide";
import { install } from "./src/install.js";

// What is left of the arguments would be in the memory.
const [packages, bridge, out] = process.argv.splice(1).slice(1);
// Without node's print of the line of Pyodide, which has a million characters.
process.on("uncaughtException", (error) => {
  console.error(String(error.message ?? error));
  process.exit(1);
});
const python = await loadPyodide({ _makeSnapshot: true });
install(python, readFileSync(packages), readFileSync(bridge));
// The standard library's modules that graders and students' files import, too: each is compiled from its source otherwise.
python.runPython(`
import gc, sys
import fairlane_page
import fractions, functools, itertools, math, operator, queue, random, runpy, statistics, struct, tempfile, traceback
assert not hasattr(fairlane_page.native, "Network"), "a memory does not hold a library"
del sys.argv[:]
gc.collect()
top = max(map(id, gc.get_objects()))
# What was freed is made zero, which compresses.
for size in [1 << power for power in range(22, 8, -1)]:
    blocks = [bytes(size)]
    while id(blocks[-1]) < top:
        blocks.append(bytes(size))
del blocks
gc.collect()
`);
writeFileSync(out, gzipSync(python.makeMemorySnapshot(), { level: 9 }));

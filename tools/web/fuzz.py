"""make web-fuzz: the fuzzers' corpora, and seeded changes of them, through the WebAssembly module: no trap, no hang.

    python -m tools.web.fuzz --native FILE [--changes 20] [--seed 1]

FILE is built with the targets of switch/bin/fuzz in it: scripts/web --features fuzz. Node runs Pyodide, as the page does. Inputs are the corpora of
switch/bin/fuzz, the P4 programs and packet tests of the tests, and changed copies of each. An input that ends the module, or takes longer than 25 s, is
written to build/web-fuzz, named, and makes the exit code 1.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import queue
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "switch" / "bin" / "fuzz" / "corpus"
FOUND = ROOT / "build" / "web-fuzz"
TARGETS = ("preprocess", "parse", "compile", "json", "packet", "p4runtime", "stf")
LIMIT_S = 25.0
_START_S = 120.0
_LEAST = (b"", b"\x00", b"\xff" * 3, b"\x00" * 64, b"\xff" * 64)
_MOST_BYTES = 8192


def seeds() -> Iterator[tuple[str, bytes]]:
    """Target and bytes of each input that is not changed."""
    for target in TARGETS:
        for path in sorted((CORPUS / target).iterdir()):
            yield target, path.read_bytes()
        for data in _LEAST:
            yield target, data
    for path in sorted([*(ROOT / "tests").rglob("*.p4"), *(ROOT / "p4src").rglob("*.p4"), *(ROOT / "labs").rglob("*.p4")]):
        if "build" in path.relative_to(ROOT).parts:  # a lab's copies
            continue
        for target in ("parse", "compile"):
            yield target, path.read_bytes()[:_MOST_BYTES]
    for path in sorted((ROOT / "tests").rglob("*.stf")):
        yield "stf", path.read_bytes()[:_MOST_BYTES]


def changed(data: bytes, draw: random.Random) -> bytes:
    """A copy with some bytes other, more or fewer."""
    found = bytearray(data)
    for _ in range(draw.randint(1, 8)):
        at = draw.randrange(len(found) + 1)
        kind = draw.randrange(5)
        if kind == 0:
            found[at:at] = draw.randbytes(draw.randint(1, 4))
        elif kind == 1:
            del found[at : at + draw.randint(1, 16)]
        elif kind == 2 and found:
            found[draw.randrange(len(found))] = draw.randrange(256)
        elif kind == 3:
            other = draw.randrange(len(found) + 1)
            found[at:at] = found[other : other + draw.randint(1, 64)]
        else:
            found[at:at] = draw.choice(
                (b"(", b")", b"{", b"}", b";", b"*" * 40, b"(" * 200, b"<", b"0", b"32w0xffffffff", b"\n")
            ) * draw.randint(1, 3)
    return bytes(found[:_MOST_BYTES])


class Node:
    """A process of node with the module in it."""

    def __init__(self, native: Path) -> None:
        command = ["node", str(ROOT / "web" / "fuzz.mjs"), str(native.resolve()), str(ROOT)]
        self._process = subprocess.Popen(
            command, cwd=ROOT / "web", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        if self._said(_START_S) != "ready":
            raise SystemExit(
                f"web: node could not load {native}: was it built by 'scripts/web --features fuzz', and is web/node_modules there?"
            )

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.strip())
        self._lines.put("")

    def _said(self, seconds: float) -> str | None:
        try:
            return self._lines.get(timeout=seconds)
        except queue.Empty:
            return None

    def run(self, target: str, data: bytes) -> str:
        """ "" when it came back, else what happened."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"target": target, "data": base64.b64encode(data).decode()}) + "\n")
        self._process.stdin.flush()
        said = self._said(LIMIT_S)
        return "" if said == "done" else "hangs" if said is None else "traps"

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--native", type=Path, required=True, help="the module with the fuzz targets: scripts/web --features fuzz")
    parser.add_argument("--changes", type=int, default=20, metavar="N", help="changed copies of each input (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    inputs = [
        one for target, data in seeds() for one in [(target, data), *((target, changed(data, draw)) for _ in range(arguments.changes))]
    ]
    counts: Counter[str] = Counter()
    findings, slowest = [], (0.0, "", b"")
    node = Node(arguments.native)
    for target, data in inputs:
        begun = time.monotonic()
        what = node.run(target, data)
        slowest = max(slowest, (time.monotonic() - begun, target, data))
        counts[target] += 1
        if what:
            path = FOUND / f"{target}-{hashlib.sha256(data).hexdigest()[:12]}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            findings.append(f"{target}: {what}: {path.relative_to(ROOT)}")
            print(findings[-1], flush=True)
            node.end()
            node = Node(arguments.native)
    node.end()
    for target, count in counts.items():
        print(f"{target}: {count} inputs")
    print(f"{len(inputs)} inputs through WebAssembly, {len(findings)} findings; the slowest took {slowest[0]:.1f} s ({slowest[1]})")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Runs in virtual time, and the digest of what each writes: the same on every machine. digests.json beside this file has the runs and their digests.

    tests/digests.py                     compare; --fairlane PROGRAM: an installed one's, default .venv/bin/fairlane
    tests/digests.py --only als-3        one of them
    tests/digests.py --write             after a change that moves results

Of a folder of results: the SHA-256 of lines "SHA-256  NAME", sorted by name, as sha256sum writes them; without made.json, which says what made the
results, and pictures, which another matplotlib draws otherwise. Needs nothing but Python's standard library.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
FILE = HERE / "digests.json"


def known() -> dict[str, dict[str, str]]:
    return dict(json.loads(FILE.read_text()))


def of_folder(folder: Path) -> str:
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    lines = (
        f"{hashlib.sha256((folder / n).read_bytes()).hexdigest()}  {n}\n" for n in names if n != "made.json" and not n.endswith(".png")
    )
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def of_run(fairlane: list[str], name: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        command = [*fairlane, "run", *known()[name]["run"].split(), "--out", "out"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return of_folder(Path(folder) / "out")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fairlane", default=str(HERE.parent / ".venv/bin/fairlane"))
    parser.add_argument("--only", action="append", choices=list(known()))
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    runs, others = known(), 0
    for name in options.only or runs:
        found = of_run([options.fairlane], name)
        same = found == runs[name]["sha256"]
        others += not same
        print(f"{name:8} {found} {'as in digests.json' if same else 'OTHER than in digests.json'}", flush=True)
        runs[name]["sha256"] = found
    if options.write:
        FILE.write_text(json.dumps(runs, indent=2) + "\n")
        return 0
    return 1 if others else 0


if __name__ == "__main__":
    sys.exit(main())

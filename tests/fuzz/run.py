"""Runs a Python fuzz target under Atheris (libFuzzer with Python's own coverage): python tests/fuzz/run.py TARGET [libFuzzer's options].

`make fuzz TARGET=rtcp` calls it; Atheris comes from the group `fuzz` of pyproject.toml.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2])]

with atheris.instrument_imports(include=["hosts", "controller", "experiments", "fairlane", "inputs", "topologies"]):
    import targets


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in targets.TARGETS:
        sys.exit(f"tests/fuzz/run.py: no target {name!r}: give one of {', '.join(targets.TARGETS)}")
    target = targets.TARGETS[name]
    atheris.Setup([sys.argv[0], *sys.argv[2:]], lambda data: target(bytes(data)))
    atheris.Fuzz()


if __name__ == "__main__":
    main()

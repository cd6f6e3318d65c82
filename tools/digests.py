"""Digests of what Fairlane writes, to compare systems: python -m tools.digests > here.txt

One line each: the compiler's files for each program of tests/p4, what `fairlane-stf` prints for each packet test, and the files of runs in
virtual time. `made.json`, which names the system, is left out. Everything is written below a temporary folder. Exit status 1: a packet test failed.
With --wine FOLDER: of the programs for Windows in it, without messages and runs.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from matplotlib.image import imread

from fairlane import probes, python_child

TESTS = Path("tests") / "p4"
RUNS = {
    "als-3": ["als-3", "--duration", "20"],
    "als-t1": ["als-t1", "--duration", "20"],
    "codel": ["dumbbell", "--flow", "rap:2", "--flow", "tcp-cubic:2", "--queue", "codel", "--duration", "10"],
}


def line(what: str, content: bytes) -> str:
    return f"{hashlib.sha256(content).hexdigest()}  {what}"


def program(name: str, windows: Path | None) -> list[str]:
    """The beginning of its command line."""
    if windows is not None:
        return ["wine", str(windows / f"{name}.exe")]
    found = probes.program(name)
    if found is None:
        sys.exit(f"tools.digests: {name} is not installed")
    return [str(found)]


def compiled(folder: Path, windows: Path | None) -> Iterator[str]:
    for source in sorted(TESTS.glob("*/*.p4")):
        outputs = folder / f"{source.stem}.json", folder / f"{source.stem}.p4info.txtpb"
        # Named as on every system, since the compiler repeats it.
        options = ["-o", str(outputs[0]), "--p4runtime-files", str(outputs[1])]
        done = subprocess.run([*program("fairlane-compile", windows), *options, source.as_posix()], capture_output=True)
        if windows is None:  # wine adds messages of its own
            yield line(f"{source.as_posix()}: messages of fairlane-compile, exit status {done.returncode}", done.stderr)
        for output in outputs:
            yield line(output.name, output.read_bytes() if output.exists() else b"")


def packet_tests(windows: Path | None) -> Iterator[tuple[str, bool]]:
    for test in sorted(TESTS.glob("*/*.stf")):
        files = test.with_suffix(".p4").as_posix(), test.as_posix()
        done = subprocess.run([*program("fairlane-stf", windows), "--verbose", *files], capture_output=True)
        yield line(f"{test.as_posix()}: fairlane-stf, exit status {done.returncode}", done.stdout), done.returncode == 0


def runs(folder: Path) -> Iterator[str]:
    for name, arguments in RUNS.items():
        out = folder / name
        subprocess.run([*python_child.of_module("fairlane"), "run", *arguments, "--out", str(out)], check=True, stdout=subprocess.DEVNULL)
        for path in sorted(path for path in out.rglob("*") if path.is_file() and path.name != "made.json"):
            # Of a picture the pixels: its compression is the library's.
            content = imread(path).tobytes() if path.suffix == ".png" else path.read_bytes()
            yield line(f"{name}: {path.relative_to(out).as_posix()}", content)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.digests")
    parser.add_argument("--wine", type=Path, metavar="FOLDER", help="of fairlane-compile.exe and fairlane-stf.exe, which wine runs")
    windows = parser.parse_args().wine
    passed = True
    with tempfile.TemporaryDirectory(prefix="fairlane-digests-") as folder:
        for text in compiled(Path(folder), windows):
            print(text)
        for text, passes in packet_tests(windows):
            print(text)
            passed = passed and passes
        for text in runs(Path(folder)) if windows is None else ():
            print(text)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())

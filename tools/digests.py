"""Digests of what Fairlane writes, to compare systems: python -m tools.digests > here.txt

One line each: the compiler's files for each program of tests/p4, and what `fairlane-stf` prints for each packet test. With --wine FOLDER: of the
programs for Windows in it, without messages. tests/digests.py has the runs. Everything is written below a temporary folder. Exit status 1: a packet test failed.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fairlane import probes

TESTS = Path("tests") / "p4"


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
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())

"""Formats all P4 programs of folders, and compares what they compile to before and after.

    python -m tools.formatting FOLDER... [-I DIR]... [-D MACRO]... [--keep DIR]

Works on a copy of each folder. Each program is compiled, all `.p4` files are formatted, each a second time, and each program is compiled
again: the JSON without its places in the source (`source_info`, and lines in the names of hidden actions), the P4Info and the outcome must be the same. Exit status 1 when something differs.
docs/fmt.md has the numbers.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlane import probes

_MAIN = re.compile(rb"\)\s*main\s*;")
_LEFT = re.compile(r"^(?P<place>.*): left as it is: (?P<why>.*)$", re.MULTILINE)
# A message without its place.
_MESSAGE = re.compile(r"(?:error|warning)\[[^\]]*\]: .*")
# A hidden action is called by its file and line, as p4c does it: `routerl71`.
_HIDDEN = re.compile(r'"([A-Za-z_]\w*l)\d+(?:_\d+)?(?=")')
TIMEOUT_S = 120


@dataclass
class Compared:
    """One folder: files, programs, and what went otherwise than it should."""

    files: int = 0
    changed: int = 0
    left: list[str] = field(default_factory=list)
    compiled: int = 0
    refused: int = 0
    differences: list[str] = field(default_factory=list)


def _without_places(value: Any) -> Any:
    """The JSON without `source_info`."""
    if isinstance(value, dict):
        return {key: _without_places(item) for key, item in value.items() if key != "source_info"}
    return [_without_places(item) for item in value] if isinstance(value, list) else value


def _compiled(compiler: Path, program: Path, flags: list[str], folder: Path) -> tuple[bool, str]:
    """Whether a program compiles, and the result: JSON and P4Info, or the messages without their places."""
    out, info = folder / "out.json", folder / "out.txtpb"
    command = [str(compiler), *flags, "-o", str(out), "--p4runtime-files", str(info), str(program)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=False)
    if done.returncode == 0:
        return True, _HIDDEN.sub(r'"\1', json.dumps(_without_places(json.loads(out.read_text())))) + info.read_text()
    return False, "\n".join([str(done.returncode), *_MESSAGE.findall(done.stderr)])


def _all(compiler: Path, programs: list[Path], flags: list[str]) -> list[tuple[bool, str]]:
    def one(program: Path) -> tuple[bool, str]:
        with tempfile.TemporaryDirectory() as folder:
            return _compiled(compiler, program, flags, Path(folder))

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, programs))


def compare(folder: Path, flags: list[str], compiler: Path, formatter: Path) -> Compared:
    """Formats the files of a folder in place, and compares the programs in it before and after."""
    out = Compared()
    files = sorted(path for path in folder.rglob("*.p4") if path.is_file() and not path.is_symlink())
    programs = [path for path in files if _MAIN.search(path.read_bytes())]
    texts = {path: path.read_bytes() for path in files}
    before = _all(compiler, programs, flags)
    for _ in range(2):
        first = {path: path.read_bytes() for path in files}
        # Files that git has as links are passed by their names, so that they are formatted once.
        done = subprocess.run([str(formatter), *map(str, files)], capture_output=True, text=True, errors="replace", check=False)
        if done.returncode not in (0, 7):
            out.differences.append(f"{folder}: the formatter ended with {done.returncode}: {done.stderr[-500:]}")
            return out
    out.differences += [f"{path}: formatted again, it is another text" for path in files if path.read_bytes() != first[path]]
    out.left = [f"{found['place']}: {found['why']}" for found in _LEFT.finditer(done.stderr)]
    out.files, out.changed = len(files), sum(path.read_bytes() != texts[path] for path in files)
    for program, old, new in zip(programs, before, _all(compiler, programs, flags), strict=True):
        if old != new:
            at = next((i for i, (a, b) in enumerate(zip(old[1], new[1], strict=False)) if a != b), min(len(old[1]), len(new[1])))
            part = slice(max(at - 60, 0), at + 60)
            out.differences.append(f"{program}: {old[1][part]!r} before, {new[1][part]!r} after")
        elif old[0]:
            out.compiled += 1
        else:
            out.refused += 1
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("-I", dest="include", action="append", default=[], type=Path, metavar="DIR", help="folders of included files")
    parser.add_argument("-D", dest="define", action="append", default=[], metavar="MACRO", help="macros, NAME or NAME=VALUE")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave the formatted copies in this folder")
    arguments = parser.parse_args()
    compiler, formatter = probes.program("fairlane-compile"), probes.program("fairlane-fmt")
    if compiler is None or formatter is None:
        sys.exit("fairlane-compile and fairlane-fmt are not built: run 'make build'")
    print(
        "| folder | files | changed | left | programs, same result | refused before and after | differences |\n|---|---|---|---|---|---|---|"
    )
    failed = False
    flags = [f"-I{path.resolve()}" for path in arguments.include] + [f"-D{macro}" for macro in arguments.define]
    with tempfile.TemporaryDirectory() as temporary:
        for given in arguments.folders:
            copy = (arguments.keep or Path(temporary)) / given.resolve().name
            shutil.copytree(given, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
            found = compare(copy, flags, compiler, formatter)
            row = [given, found.files, found.changed, len(found.left), found.compiled, found.refused, len(found.differences)]
            print(f"| {' | '.join(map(str, row))} |", flush=True)
            for line in found.left + found.differences:
                print(line, file=sys.stderr)
            failed |= bool(found.differences)
    sys.exit(failed)


if __name__ == "__main__":
    main()

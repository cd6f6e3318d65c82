"""A lab's skeletons, which are made from its solution: the only source of both.

In a file of `teaching/NN/solution`, comments mark the lines that a student has to write, and the lines that stand there in the skeleton:

    def share(rate_bps, n):
        # BEGIN SOLUTION
        return rate_bps / n
        # SKELETON
        # return 0.0  # TODO 1
        # END SOLUTION

SKELETON and the lines after it may be left out. In P4 a comment begins with `//`. `python -m fairlane.labs.skeletons` writes each skeleton
that is missing in a checkout; `make build` calls it. A student changes these files in place, so nothing overwrites them. A wheel has the skeletons as they are, and no
solutions: `scripts/hatch_build.py` puts them in.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parent
TEACHING = FOLDER.parent / "teaching"
"""Solutions, wrong answers and model answers: of a checkout, never of a wheel."""
_MARK = re.compile(r" *(?:#|//) (BEGIN SOLUTION|SKELETON|END SOLUTION)\n")
_COMMENT = re.compile(r"( *)(?:#|//) ?(.*\n)")
_AFTER = {"": ("BEGIN SOLUTION",), "BEGIN SOLUTION": ("SKELETON", "END SOLUTION"), "SKELETON": ("END SOLUTION",)}


class Halves(NamedTuple):
    """The two texts of one source: what a student gets, and the answer, without marks."""

    skeleton: str
    solution: str


def read(source: Path) -> Halves:
    """Both texts of a file of `teaching/NN/solution`. ValueError names the line of a mark that is out of place."""
    skeleton, solution, within = [], [], ""
    lines = source.read_text(encoding="utf-8").splitlines(keepends=True)
    for number, line in enumerate([*lines, ""], 1):
        if mark := _MARK.fullmatch(line):
            if mark[1] not in _AFTER[within]:
                raise ValueError(f"{source}:{number}: {mark[1]} here; write {' or '.join(_AFTER[within])}, or remove the line")
            within = "" if mark[1] == "END SOLUTION" else mark[1]
        elif not line and within:
            raise ValueError(f"{source}:{number}: the file ends within a solution; write END SOLUTION")
        elif within == "SKELETON":
            if not (comment := _COMMENT.fullmatch(line)):
                raise ValueError(f"{source}:{number}: a line of a skeleton has to be a comment: {line.strip()!r}")
            skeleton.append((comment[1] + comment[2]) if comment[2].strip() else "\n")
        else:
            solution.append(line)
            skeleton += [line] if not within else []
    return Halves("".join(skeleton), "".join(solution))


def sources() -> list[Path]:
    """The files of all solutions."""
    return sorted(TEACHING.glob("[0-9][0-9]/solution/*.*"))


if __name__ == "__main__":
    for source in sources():
        skeleton = FOLDER / source.parents[1].name / source.name
        if not skeleton.exists():
            skeleton.write_text(read(source).skeleton, encoding="utf-8", newline="\n")

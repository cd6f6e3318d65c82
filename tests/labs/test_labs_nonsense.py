"""Random edits of skeletons: what nobody has thought about earns nothing that the skeleton does not, and stops no grading."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from fairlane.labs.grading import labs, runner

SEEDS = [*range(10), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(10, 500))]
_TOKEN = re.compile(r"\d+\.\d+|\d+|[-+*/<>]=?|\b(?:and|or|not|True|False|None|return|if|else|max|min|sum|len)\b|\b[a-z_]{4,}\b")


def nonsense(text: str, draw: random.Random) -> str:
    """A text with one to five edits: tokens replaced by others of the same text, lines left out, doubled or moved."""
    lines = text.splitlines(keepends=True)
    for _ in range(draw.randint(1, 5)):
        code = [n for n, line in enumerate(lines) if line.strip() and not line.lstrip().startswith(("#", "//", '"', "from ", "import "))]
        if not code:
            break
        number = draw.choice(code)
        kind = draw.choice(("token", "token", "token", "leave", "double", "move"))
        if kind == "leave":
            del lines[number]
        elif kind == "double":
            lines.insert(number, lines[number])
        elif kind == "move":
            lines.insert(draw.choice(code), lines.pop(number))
        else:
            tokens = list(_TOKEN.finditer(lines[number]))
            if tokens:
                found, others = draw.choice(tokens), [one[0] for one in _TOKEN.finditer(text)]
                lines[number] = lines[number][: found.start()] + draw.choice(others) + lines[number][found.end() :]
    return "".join(lines)


@pytest.mark.parametrize("seed", SEEDS)
def test_nonsense_earns_nothing(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    number = labs.numbers()[seed % len(labs.numbers())]
    lab = labs.load(number)
    labs.skeleton(lab, tmp_path)
    name = draw.choice(lab.settings.files)
    (tmp_path / name).write_text(nonsense((tmp_path / name).read_text(), draw))
    grade = runner.grade(lab.number, lab.checks, tmp_path, lab.settings.files, lab.settings.gives)
    assert grade.points == 0, f"{(tmp_path / name).read_text()}\n{runner.text(grade)}"
    assert len(grade.scores) == len(lab.checks)

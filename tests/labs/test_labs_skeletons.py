"""Skeletons and solutions have one source: both come out of it, no mark is left in either, and a student gets no solution."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane import probes
from fairlane.labs import skeletons
from fairlane.labs.grading import labs

LABS = [labs.load(n) for n in labs.numbers()]
WORDS = ("SOLUTION", "# SKELETON", "// SKELETON")
SIGNS = st.sampled_from(["#", "//"])
LINES = st.lists(st.sampled_from(["", "x = 1", "    y", "# why", "// why", "#", "  # TODO 1"]), max_size=4)


@given(SIGNS, st.lists(st.tuples(LINES, LINES, LINES), max_size=3), st.integers(0, 3))
def test_both_halves_come_back(tmp_path_factory: pytest.TempPathFactory, sign: str, parts: list[tuple[list[str], ...]], depth: int) -> None:
    """parts: lines of both, of the solution alone, of the skeleton alone."""
    indent = " " * 4 * depth
    source, skeleton, solution = [], [], []
    for both, solved, begun in parts:
        skeleton += [*both, *(f"{indent}{line}".rstrip() for line in begun)]
        solution += [*both, *solved]
        marked = [f"{indent}{sign} {line}".rstrip() for line in begun]
        source += [*both, f"{indent}{sign} BEGIN SOLUTION", *solved, f"{indent}{sign} SKELETON", *marked, f"{indent}{sign} END SOLUTION"]
    path = tmp_path_factory.mktemp("source") / "source"
    path.write_text("".join(f"{line}\n" for line in source))
    assert skeletons.read(path) == tuple("".join(f"{line}\n" for line in half) for half in (skeleton, solution))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x\n# SKELETON\n", ":2: SKELETON here; write BEGIN SOLUTION, or remove the line"),
        ("# END SOLUTION\n", ":1: END SOLUTION here"),
        ("# BEGIN SOLUTION\n# BEGIN SOLUTION\n", ":2: BEGIN SOLUTION here; write SKELETON or END SOLUTION"),
        ("# BEGIN SOLUTION\n# SKELETON\n# SKELETON\n", ":3: SKELETON here; write END SOLUTION"),
        ("# BEGIN SOLUTION\n# SKELETON\nreturn 0\n# END SOLUTION\n", ":3: a line of a skeleton has to be a comment: 'return 0'"),
        ("# BEGIN SOLUTION\nx\n", ":3: the file ends within a solution; write END SOLUTION"),
    ],
)
def test_a_mark_out_of_place_is_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.py").write_text(text)
    with pytest.raises(ValueError) as caught:
        skeletons.read(tmp_path / "a.py")
    assert f"a.py{message}" in str(caught.value)


def test_a_copy_is_what_students_get(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    labs.copy(copy)
    for lab in LABS:
        for name in lab.settings.files:
            assert (copy / lab.number / name).read_text() == skeletons.read(lab.folder / "solution" / name).skeleton
    files = [path for path in copy.rglob("*") if path.is_file()]
    assert not [path for path in files if {"solution", "grade.py", "lab.toml"} & set(path.parts)]
    assert not [path for path in files if path.parent != copy and any(word in path.read_text() for word in WORDS)]


@pytest.mark.parametrize("half", [labs.skeleton, labs.solution])
def test_no_mark_is_left(half: object, tmp_path: Path) -> None:
    assert callable(half)
    for lab in LABS:
        folder = half(lab, tmp_path / lab.number)
        assert not [name for name in lab.settings.files if any(word in (folder / name).read_text() for word in WORDS)]


def test_the_answer_in_a_checkout_is_the_students_own(tmp_path: Path) -> None:
    """What is missing is written, and nothing else."""
    (tmp_path / "04" / "solution").mkdir(parents=True)
    source = labs.FOLDER / "04" / "solution" / "fair_rate.p4"
    (tmp_path / "04" / "solution" / source.name).write_bytes(source.read_bytes())
    (tmp_path / "skeletons.py").write_bytes(Path(skeletons.__file__).read_bytes())
    mine = tmp_path / "04" / source.name
    for text in (skeletons.read(source).skeleton, "mine"):
        subprocess.run([sys.executable, tmp_path / "skeletons.py"], check=True)
        assert mine.read_text() == text
        mine.write_text("mine")


@pytest.mark.skipif(not probes.in_checkout(), reason="no checkout")
def test_git_ignores_skeletons_alone() -> None:
    """Hatch and ruff read .gitignore, too: no wheel has a student's file."""
    of_labs = [f"labs/{lab.number}/{name}" for lab in LABS for name in lab.settings.files]
    solutions = [f"labs/{lab.number}/{path.name}" for lab in LABS for path in (lab.folder / "solution").glob("*.*")]
    assert sorted(of_labs) == sorted(solutions)
    git = ["git", "-C", str(probes.ROOT)]
    ignored = subprocess.run([*git, "check-ignore", *of_labs], capture_output=True, text=True, check=True).stdout.splitlines()
    tracked = subprocess.run([*git, "ls-files", "-ci", "--exclude-standard"], capture_output=True, text=True, check=True).stdout
    assert (ignored, tracked) == (of_labs, "")

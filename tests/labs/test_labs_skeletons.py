"""Skeletons and solutions have one source: both come out of it, no mark is left in either, and a student gets no solution."""

from __future__ import annotations

import re
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
            assert (copy / lab.number / name).read_text() == skeletons.read(lab.source / name).skeleton
    files = [path for path in copy.rglob("*") if path.is_file()]
    assert not [path for path in files if {"solution", "teaching", "grade.py", "lab.toml", "wrong.toml"} & set(path.parts)]
    assert not [path for path in files if path.parent != copy and any(word in path.read_text() for word in WORDS)]


# Made by the command before it, or a place for results.
_MADE = ("results/", "build/", "/tmp/")


@pytest.mark.parametrize("name", ["labs", "mine"])
def test_every_path_and_link_of_a_copy_is_there(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a student reads it, who has no checkout: links from their page, paths in the text from the copy, those in commands from the folder around it."""
    monkeypatch.chdir(tmp_path)
    copy = Path(name)
    labs.copy(copy)
    lacking = []
    for page in copy.rglob("*.md"):
        text = page.read_text()
        for target in re.findall(r"\]\(([^)\s#]+)[^)]*\)", text):
            if "://" not in target and not (page.parent / target).exists():
                lacking.append(f"{page}: link {target}")
        if "docs" in page.parts:
            continue
        for path in re.findall(r"`((?:docs|hosts|p4src|experiments|controller|ranking|network|labs|mine)/[\w./-]+)`", text):
            if not any((place / path).exists() for place in (page.parent, copy, Path())) and not path.startswith(_MADE):
                lacking.append(f"{page}: {path}")
        for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
            assert ".venv" not in block and "make " not in block
            for path in re.findall(r"(?<![\w/])(?:labs|mine)/[\w./-]+", block):
                if not Path(path).exists():
                    lacking.append(f"{page}: command with {path}")
        if name == "mine":
            assert "labs/0" not in text and "labs/1" not in text, page
    assert not lacking


def test_no_package_has_a_solution() -> None:
    """What a wheel takes is under fairlane/: no solution is, and the labs' settings hold no piece of one."""
    for lab in LABS:
        assert not [path for path in (lab.folder / "solution").glob("*") if path.is_file()]
        assert "find =" not in (lab.folder / "lab.toml").read_text()
        assert lab.source.parts[-3] == "teaching" and not lab.source.is_relative_to(labs.FOLDER)


@pytest.mark.parametrize("half", [labs.skeleton, labs.solution])
def test_no_mark_is_left(half: object, tmp_path: Path) -> None:
    assert callable(half)
    for lab in LABS:
        folder = half(lab, tmp_path / lab.number)
        assert not [name for name in lab.settings.files if any(word in (folder / name).read_text() for word in WORDS)]


def test_the_answer_in_a_checkout_is_the_students_own(tmp_path: Path) -> None:
    """What is missing is written, and nothing else."""
    (tmp_path / "teaching" / "04" / "solution").mkdir(parents=True)
    (tmp_path / "labs" / "04").mkdir(parents=True)
    source = labs.load("04").source / "fair_rate.p4"
    (tmp_path / "teaching" / "04" / "solution" / source.name).write_bytes(source.read_bytes())
    (tmp_path / "labs" / "skeletons.py").write_bytes(Path(skeletons.__file__).read_bytes())
    mine = tmp_path / "labs" / "04" / source.name
    for text in (skeletons.read(source).skeleton, "mine"):
        subprocess.run([sys.executable, tmp_path / "labs" / "skeletons.py"], check=True)
        assert mine.read_text() == text
        mine.write_text("mine")


@pytest.mark.skipif(not probes.in_checkout(), reason="no checkout")
def test_git_ignores_skeletons_alone() -> None:
    """Hatch and ruff read .gitignore, too: no wheel has a student's file."""
    of_labs = [f"labs/{lab.number}/{name}" for lab in LABS for name in lab.settings.files]
    solutions = [f"labs/{lab.number}/{path.name}" for lab in LABS for path in lab.source.glob("*.*")]
    assert sorted(of_labs) == sorted(solutions)
    git = ["git", "-C", str(probes.ROOT)]
    ignored = subprocess.run([*git, "check-ignore", *of_labs], capture_output=True, text=True, check=True).stdout.splitlines()
    tracked = subprocess.run([*git, "ls-files", "-ci", "--exclude-standard"], capture_output=True, text=True, check=True).stdout
    assert (ignored, tracked) == (of_labs, "")

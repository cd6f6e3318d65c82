"""`fairlane new lab`: what it writes is a lab whose skeleton earns nothing, whose solution all, and whose wrong answer has its hint."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from fairlane.errors import Refusal
from fairlane.labs import begun, skeletons
from fairlane.labs.grading import labs, runner


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty one."""
    for name in ("labs", "teaching"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(skeletons, "FOLDER", tmp_path / "labs")
    monkeypatch.setattr(skeletons, "TEACHING", tmp_path / "teaching")
    monkeypatch.setattr(labs, "FOLDER", tmp_path / "labs")
    return tmp_path


def test_a_new_lab_is_graded(checkout: Path, tmp_path: Path) -> None:
    files = begun.begin("11", 'A "title"')
    assert len(files) == 8 and all(path.is_file() for path in files)
    lab = labs.load("11")
    spec = importlib.util.spec_from_file_location("grade_11", lab.folder / "grade.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def points(folder: Path) -> runner.Grade:
        return runner.grade("11", module.CHECKS, folder, lab.settings.files, lab.settings.gives)

    assert points(labs.solution(lab, tmp_path / "right")).points == 2
    assert points(lab.folder).points == points(labs.skeleton(lab, tmp_path / "begun")).points == 0
    (mistake,) = labs.mistakes(lab)
    grade = points(labs.wrong(lab, mistake, tmp_path / "wrong"))
    assert grade.points == 0 and mistake.hint in grade.scores[0].hint


@pytest.mark.parametrize(("number", "title"), [("1", "x"), ("ab", "x"), ("../1", "x"), ("11", ""), ("11", "a\nb")])
def test_bad_names_are_refused(number: str, title: str, checkout: Path) -> None:
    with pytest.raises(Refusal):
        begun.begin(number, title)
    assert not list((checkout / "labs").iterdir())


def test_a_lab_is_not_overwritten(checkout: Path) -> None:
    begun.begin("11", "x")
    with pytest.raises(Refusal, match="exists already"):
        begun.begin("11", "x")

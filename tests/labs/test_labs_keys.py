"""A lab for each student: two keys, two labs, two right answers, and the answer of one is wrong for the other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairlane.errors import Refusal
from fairlane.labs import keys
from fairlane.labs.classes import answers as classes
from fairlane.labs.grading import labs

SECRET = b"a secret of the teacher"
VARIED = [labs.load(number) for number in labs.numbers() if labs.load(number).settings.vary]


def numbers(student: str, number: str = "07") -> dict[str, float]:
    return keys.drawn(number, labs.load(number).settings.vary, SECRET, student)


def two() -> tuple[str, str]:
    """Students whose numbers differ."""
    return "ada", next(name for name in ("bob", "eve", "grace", "mallory", "linus") if numbers(name) != numbers("ada"))


def test_numbers_are_drawn_from_name_and_secret() -> None:
    assert numbers("ada") == numbers(" Ada ")
    drawn = [keys.drawn("09", labs.load("09").settings.vary, SECRET, f"student {n}")["seed"] for n in range(300)]
    assert set(drawn) == set(labs.load("09").settings.vary[0].choices)
    other = [keys.drawn("09", labs.load("09").settings.vary, b"another secret", f"student {n}")["seed"] for n in range(300)]
    assert sum(a == b for a, b in zip(drawn, other)) < 75


class Short(labs.Lab):
    """Lab 7 without its shares and its network."""

    @property
    def checks(self):
        return super().checks[3:6]


def test_the_answer_of_one_is_wrong_for_the_other(tmp_path: Path) -> None:
    lab = Short(**vars(labs.load("07")))
    first, second = two()
    answers = tmp_path / "answers"
    labs.solution(lab, answers / first / "07", numbers(first))
    labs.solution(lab, answers / second / "07", numbers(first))  # copied
    rows = classes.grade(classes.students(answers), [lab], tmp_path / "out", 2, secret=SECRET)
    points = {row.student.name: row.total for row in rows}
    assert points[first] == 5 and points[second] < 5
    labs.solution(lab, answers / second / "07", numbers(second))
    assert [row.total for row in classes.grade(classes.students(answers), [lab], tmp_path / "out", 2, secret=SECRET)] == [5, 5]
    assert (answers / first / "07" / "my_als.py").read_text() != (answers / second / "07" / "my_als.py").read_text()


def test_a_copy_says_its_numbers_and_a_check_at_home_takes_them(tmp_path: Path) -> None:
    first, second = two()
    for name in (first, second, ""):
        labs.copy(tmp_path / (name or "own"), SECRET if name else None, name)
    pages = [(tmp_path / name / "07" / "README.md").read_text() for name in (first, second, "own")]
    for page, air in zip(pages, (numbers(first)["air"], numbers(second)["air"], 5)):
        assert f"AIR <- {air:g} kb/s" in page and f"doubled from {air:g} kb/s" in page
    assert keys.own(tmp_path / first / "07", labs.load("07").settings.vary) == numbers(first)
    assert keys.own(tmp_path / "own" / "07", labs.load("07").settings.vary) == {}
    seed = numbers(first, "09")["seed"]
    assert f"09.runs --seed {seed:g} --answer {first}/09" in (tmp_path / first / "09" / "README.md").read_text()
    assert f"seed {seed:g}." in (tmp_path / first / "09" / "findings.toml").read_text()


@pytest.mark.parametrize("text", ['{"air": 7}', '{"air": "5"}', "[", '"air"', '{"air": NaN}'])
def test_invented_numbers_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / keys.FILE).write_text(text)
    with pytest.raises(Refusal):
        keys.own(tmp_path, labs.load("07").settings.vary)


@pytest.mark.parametrize("lab", VARIED, ids=lambda lab: lab.number)
def test_every_place_is_in_its_file(lab: labs.Lab, tmp_path: Path) -> None:
    labs.solution(lab, tmp_path)
    (tmp_path / "README.md").write_text((lab.folder / "README.md").read_text())
    for one in lab.settings.vary:
        other = {one.name: one.choices[1]}
        for place in one.places:
            file, _, form = place.partition(": ")
            text = keys.written(lab.settings.vary, other, file, (tmp_path / file).read_text())
            assert form.format(one.choices[1]) in text and form.format(one.choices[0]) not in text


def test_a_secret_is_long_enough(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("short")
    for file in ("secret", "none"):
        with pytest.raises(Refusal, match="--secret"):
            keys.secret(tmp_path / file)
    assert json.dumps(numbers("ada"))

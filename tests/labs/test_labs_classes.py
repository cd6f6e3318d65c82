"""A class is graded: everybody's points in tables and a page, hostile answers named, one fault stops nothing, and only what has changed is graded again."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairlane.commands.labs import app
from fairlane.errors import Refusal
from fairlane.labs.classes import answers as classes
from fairlane.labs.classes import page, tables
from fairlane.labs.grading import labs, runner

FORK = "import os\ndef layer_rates_bps(x):\n    os.fork()\n"


class Short(labs.Lab):
    """Lab 8 without its networks."""

    @property
    def checks(self):
        return super().checks[:3]


@pytest.fixture
def lab() -> Short:
    return Short(**vars(labs.load("08")))


@pytest.fixture
def answers(tmp_path: Path, lab: Short) -> Path:
    """Ada has the solution, Bob the skeleton, Eve forks, Mallory hands in Ada's folder by a link, Nobody has nothing."""
    folder = tmp_path / "answers"
    labs.solution(lab, folder / "ada" / "08")
    labs.skeleton(lab, folder / "Bob <script>_123_assignsubmission_file_")
    (folder / "eve" / "labs" / "08").mkdir(parents=True)
    (folder / "eve" / "labs" / "08" / "my_layers.py").write_text(FORK)
    (folder / "mallory").mkdir()
    (folder / "mallory" / "08").symlink_to(folder / "ada" / "08")
    (folder / "=nobody").mkdir()
    (folder / ".git").mkdir()
    return folder


def graded(answers: Path, lab: labs.Lab, said: list[str] | None = None) -> dict[str, classes.Row]:
    said = [] if said is None else said
    rows = classes.grade(classes.students(answers), [lab], answers.parent / "out", 2, said.append)
    return {row.student.name: row for row in rows}


def test_a_class(answers: Path, lab: Short, tmp_path: Path) -> None:
    said: list[str] = []
    rows = graded(answers, lab, said)
    points = {name: row.graded[0].points for name, row in rows.items()}
    assert points == {"=nobody": None, "Bob <script>": 0, "ada": 6, "eve": 0, "mallory": None}
    assert [name for name, row in rows.items() if row.tried] == ["eve", "mallory"]
    assert "asked the system" in rows["eve"].tried[0] and "leads out of" in rows["mallory"].tried[0]
    assert len(said) == 3

    again: list[str] = []
    assert {name: row.total for name, row in graded(answers, lab, again).items()} == {name: row.total for name, row in rows.items()}
    assert again == []
    own = answers / "ada" / "08" / "my_layers.py"
    own.write_text(own.read_text().replace("floor(lowest)", "floor(highest)"))
    assert graded(answers, lab, again)["ada"].total < 6 and len(again) == 1

    tables.plain(list(rows.values()), tmp_path / "grades.csv")
    lines = list(csv.DictReader((tmp_path / "grades.csv").open(newline="")))
    assert [(line["student"], line["lab_08"], line["total"], line["of"]) for line in lines] == [
        ("'=nobody", "", "0", "6"),
        ("Bob <script>", "0", "0", "6"),
        ("ada", "6", "6", "6"),
        ("eve", "0", "0", "6"),
        ("mallory", "", "0", "6"),
    ]
    page.write(list(rows.values()), [lab], 12.0, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "Bob &lt;script&gt;" in text and "<script>" not in text
    assert "asked the system" in text and "color-scheme: light dark" in text


@pytest.mark.parametrize("fault", ["raises", "ends"])
def test_a_fault_of_the_grader_stops_nothing(fault: str, answers: Path, lab: Short, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = labs.graded

    def faulty(lab: labs.Lab, folder: Path, numbers: object = None) -> runner.Grade:
        if "eve" in folder.parts and fault == "raises":
            raise ZeroDivisionError
        if "eve" in folder.parts:
            os._exit(3)
        return whole(lab, folder)

    monkeypatch.setattr(labs, "graded", faulty)
    rows = graded(answers, lab)
    assert rows["ada"].total == 6
    (check,) = rows["eve"].graded[0].checks
    assert ("ZeroDivisionError" if fault == "raises" else "code 3") in check["message"]
    assert rows["eve"].graded[0].of == 6
    monkeypatch.undo()
    said: list[str] = []
    graded(answers, lab, said)
    assert [line for line in said if line.startswith("eve")], "what failed is graded again"


def row(name: str, points: float | None, email: str = "", number: str = "") -> classes.Row:
    return classes.Row(classes.Student(Path(name), name, email, number), (classes.Graded("04", 10, points),))


def test_what_moodle_and_canvas_import(tmp_path: Path) -> None:
    """Moodle: a first line of names, one column that identifies a user. Canvas: its five columns, and the points possible in the second line."""
    rows = [row("Ada Lovelace", 9.5, "ada@x.org", "1"), row("Grace Hopper", None, "grace@x.org", "2")]
    tables.moodle(rows, tmp_path / "m.csv")
    assert (tmp_path / "m.csv").read_text().splitlines() == ["Full name,ID number,Lab 04", "Ada Lovelace,1,9.5", "Grace Hopper,2,"]
    tables.canvas(rows, tmp_path / "c.csv")
    assert (tmp_path / "c.csv").read_text().splitlines() == [
        "Student,ID,SIS User ID,SIS Login ID,Section,Lab 04",
        "    Points Possible,,,,,10",
        "Ada Lovelace,1,,ada@x.org,,9.5",
        "Grace Hopper,2,,grace@x.org,,",
    ]
    tables.moodle([row("Ada", 1, "ada@x.org")], tmp_path / "m.csv")
    assert (tmp_path / "m.csv").read_text().startswith("Full name,Email address,Lab 04\n")
    for write in (tables.moodle, tables.canvas):
        with pytest.raises(Refusal, match="needs a list of names"):
            write([row("Ada", 1)], tmp_path / "x.csv")


def test_names_come_from_a_list(answers: Path, tmp_path: Path) -> None:
    names = tmp_path / "names.csv"
    names.write_text("folder,name,email,id\nada,Ada Lovelace,ada@x.org,7\n")
    found = {student.folder.name: student for student in classes.students(answers, names)}
    assert (found["ada"].name, found["ada"].email, found["ada"].id) == ("Ada Lovelace", "ada@x.org", "7")
    assert found["eve"].name == "eve"
    for text, message in (("a,b\n", ":1: columns folder and name are needed"), ("folder,name\nx,X\n", "there is no folder x")):
        names.write_text(text)
        with pytest.raises(Refusal, match=message):
            classes.students(answers, names)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["no-such"], "no such folder"), (["."], "has no folders"), (["answers", "--labs", "99"], "there is no lab 99")],
)
def test_bad_input_is_refused(arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if "answers" in arguments:
        (tmp_path / "answers" / "ada").mkdir(parents=True)
    found = CliRunner().invoke(app, ["labs", "grade", *arguments])
    assert isinstance(found.exception, Refusal) and message in str(found.exception)


def test_the_ranking_is_by_score() -> None:
    good = {"utilisation": 0.95, "jain": 1.0, "loss": 0.0, "queue_packets": 0.0, "variation": 0.0, "beside_tcp": 1.0}
    rows = [
        classes.Row(classes.Student(Path(name), name), (classes.Graded("10", 10, 5.0, facts={"measures": {**good, "loss": loss}}),))
        for name, loss in (("a", 0.05), ("b", 0.0))
    ]
    assert [(one.rank, one.student.name) for one in classes.ranking(rows)] == [(1, "b"), (2, "a")]
    assert classes.ranking(rows)[0].score == 100

"""A class's grades as tables for other programs: a plain one, and those that Moodle and Canvas import."""

from __future__ import annotations

import base64
import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairlane.errors import Refusal
from fairlane.labs.classes.answers import Row
from fairlane.labs.grading.runner import Grade


def plain(rows: Sequence[Row], file: Path) -> None:
    """student, folder, lab_NN, total, of, seconds, tried. An empty field: no answer to that lab."""
    numbers = [one.lab for one in rows[0].graded]
    head = ["student", "folder", *(f"lab_{number}" for number in numbers), "total", "of", "seconds", "tried"]
    _write(
        file,
        [
            head,
            *(
                [
                    row.student.name,
                    row.student.folder.name,
                    *(_points(one.points) for one in row.graded),
                    _points(row.total),
                    sum(one.of for one in row.graded),
                    f"{row.seconds:.1f}",
                    "; ".join(row.tried),
                ]
                for row in rows
            ),
        ],
    )


def moodle(rows: Sequence[Row], file: Path) -> None:
    """For Grades, Import, CSV file: map ID number (or Email address) to the user, and each lab to a grade item. Refusal: nobody's is known."""
    by_id = all(row.student.id for row in rows)
    if not by_id and not all(row.student.email for row in rows):
        without = next(row.student.name for row in rows if not row.student.email)
        raise Refusal(f"--moodle needs a list of names (--names) with the id or the email of everybody; {without} has none")
    head = ["Full name", "ID number" if by_id else "Email address", *(f"Lab {one.lab}" for one in rows[0].graded)]
    _write(
        file,
        [
            head,
            *(
                [row.student.name, row.student.id if by_id else row.student.email, *(_points(one.points) for one in row.graded)]
                for row in rows
            ),
        ],
    )


def canvas(rows: Sequence[Row], file: Path) -> None:
    """For Grades, Import: a column for each lab, with its points possible in the second line. Refusal: an id of Canvas is not known."""
    if without := [row.student.name for row in rows if not row.student.id]:
        raise Refusal(f"--canvas needs a list of names (--names) with Canvas's own id of everybody; {without[0]} has none")
    head = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *(f"Lab {one.lab}" for one in rows[0].graded)]
    possible = ["    Points Possible", "", "", "", "", *(one.of for one in rows[0].graded)]
    lines = [[row.student.name, row.student.id, "", row.student.email, "", *(_points(one.points) for one in row.graded)] for row in rows]
    _write(file, [head, possible, *lines])


def classroom(grade: Grade) -> str:
    """The output of a step of GitHub Actions that classroom-resources/autograding-grading-reporter reads: each check is a test with its points."""
    tests = [
        {
            "name": f"lab {grade.lab}: {score.title}",
            "status": "pass" if score.points >= score.of else "fail",
            "score": score.points,
            "message": f"{score.message}\nhint: {score.hint}" if score.hint else score.message,
            "test_code": "",
            "filename": "",
            "line_no": 0,
            "duration": 0,
        }
        for score in grade.scores
    ]
    told = {"version": 1, "status": "pass" if grade.points >= grade.of else "fail", "max_score": grade.of, "tests": tests}
    return f"result={base64.b64encode(json.dumps(told).encode()).decode()}"


def _points(points: float | None) -> str:
    return "" if points is None else f"{points:g}"


def _write(file: Path, lines: Sequence[Sequence[Any]]) -> None:
    """Texts that a spreadsheet would take for a formula get an apostrophe before them: they may be an answer's."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8", newline="") as target:
        out = csv.writer(target, lineterminator="\n")
        for line in lines:
            out.writerow([f"'{one}" if isinstance(one, str) and one[:1] in ("=", "+", "-", "@", "\t", "\r") else one for one in line])

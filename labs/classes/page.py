"""A class's grades as one page that stands alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import jinja2

from fairlane.labs.classes.answers import Row, ranking
from fairlane.labs.grading import apart, labs
from fairlane.labs.ranking.measures import MARKS, stored


def write(rows: Sequence[Row], of_labs: Sequence[labs.Lab], seconds: float, file: Path) -> None:
    """seconds: how long the grading took, by the clock."""
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))
    file.parent.mkdir(parents=True, exist_ok=True)
    of = [sum(check.points for check in lab.checks) for lab in of_labs]
    means = [_mean([row.graded[n].points for row in rows]) for n in range(len(of_labs))]
    file.write_text(
        template.render(
            rows=rows,
            labs=list(zip(of_labs, of, means)),
            of=sum(of),
            ranking=ranking(rows),
            marks=MARKS,
            rivals=len(stored()),
            protection=apart.protection(),
            minutes=seconds / 60,
            tried=[row for row in rows if row.tried],
        ),
        encoding="utf-8",
        newline="\n",
    )


def _mean(points: Sequence[float | None]) -> float | None:
    """Of those who have answered."""
    given = [one for one in points if one is not None]
    return sum(given) / len(given) if given else None

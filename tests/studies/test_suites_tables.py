"""The tool that writes the tables of docs/suites.md: cells, rows and places, by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tools.suites import __main__ as tables
from tools.suites.__main__ import Outcome, Run

FIGURES = {"least_total_use": 0.976, "most_queueing_s": 0.0461, "longest_completion_s": math.nan}


def outcome(case: str, *failed: tuple[str, float], **figures: float) -> Outcome:
    return Outcome(case, not failed, failed, {**FIGURES, **figures})


def test_rows_of_senders() -> None:
    runs = [Run(Path("x"), kind) for kind in ("gcc", "nada") for _ in range(2)]
    found = [
        outcome("5.1", ("least_use", 0.65612), ("most_queueing_s", 0.266)),
        outcome("5.6", ("lowest_media_bps", 18_400.0)),
        outcome("5.1"),
        outcome("5.6", ("lowest_ratio_20s", math.nan)),
    ]
    assert tables.by_sender(runs, found) == [
        "| sender | passes, of 2 | 5.1 | 5.6 |",
        "|---|---|---|---|",
        "| [nada](algorithms/nada.md) | 1 | passes | ratio not measured |",
        "| [gcc](algorithms/gcc.md) | 0 | use 0.656, queue 0.266 | rate 18 |",
    ]


def test_rows_of_queues() -> None:
    runs = [Run(Path("x"), "tcp-sack", queue) for queue in ("red", "pie") for _ in range(2)]
    found = [
        outcome("4.4", ("most_queueing_s", 0.4731), ("lowest_share", 0.27), most_queueing_s=0.4731),
        outcome("9.1", longest_completion_s=3.72),
        outcome("4.4"),
        outcome("9.1"),
    ]
    assert tables.by_case(runs, found) == [
        "| case | red | pie |",
        "|---|---|---|",
        "| passes, of 2 | 1 | 2 |",
        "| 4.4 | 0.98, 473 ms (fails: wait, share 0.27) | 0.98, 46 ms |",
        "| 9.1 | 0.98, 46 ms, 3.7 s | 0.98, 46 ms |",
    ]


def test_rows_of_cases_with_senders() -> None:
    runs = [Run(Path("x"), kind) for kind in ("nada", "scream")]
    found = [outcome("2.1"), outcome("2.1", ("least_use", 0.2747))]
    assert tables.by_case(runs, found)[2:] == ["| passes, of 1 | 1 | 0 |", "| 2.1 | passes | use 0.275 |"]


def test_a_table_replaces_the_one_of_its_name() -> None:
    page = "a\n<!-- table: x -->\nold\n<!-- end of table -->\n<!-- table: y -->\n<!-- end of table -->\n"
    assert tables.replaced(page, "x", ["new"]) == page.replace("old", "new")
    assert tables.replaced(page, "y", ["one", "two"]).endswith("<!-- table: y -->\none\ntwo\n<!-- end of table -->\n")
    with pytest.raises(ValueError, match="0 tables are called z"):
        tables.replaced(page, "z", [])


def test_the_page_has_each_table_and_each_figure_a_name() -> None:
    page = tables.PAGE.read_text(encoding="utf-8")
    for name, (plan, _) in tables.TABLES.items():
        tables.replaced(page, name, [])
        figures = {
            expect.figure
            for run in plan()
            for expect in tables.cases.load(run.path, run.kind, tables.cases.Options(run.queue)).suite.expect
        }
        assert figures <= tables.NAMES.keys()

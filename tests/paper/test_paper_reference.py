"""Rows beside another program's results: the quotients, their verdicts, and that the committed data fit their rows."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from fairlane.experiments import loader, sweep
from fairlane.inputs.located_toml import ConfigError, Document
from fairlane.paper import make, page, read_row, reference, words
from fairlane.paper.judge import Expectation, judge
from fairlane.paper.row_outcome import Outcome

CELLS = {
    "program": "ns-2",
    "cells": [{"axes": {"n": 1}, "runs": [{"ratio": 2.0}, {"ratio": 4.0}, {"ratio": 3.0}]}, {"axes": {"n": 2}, "runs": [{"ratio": 1.0}]}],
}


@pytest.fixture
def known(tmp_path: Path) -> reference.Reference:
    (tmp_path / "data.json").write_text(json.dumps(CELLS))
    found = reference.load(Document("row.toml", {}, {}), tmp_path, "data.json")
    assert found is not None
    return found


def expectation(**changes) -> Expectation:
    return Expectation("as in ns-2", "ratio", of_reference=True, low=0.75, high=1.25, **changes)


def test_each_point_is_held_against_the_median_there(known: reference.Reference) -> None:
    verdict = judge(expectation(), {(("n", 1),): [2.4, 9.0, 2.7], (("n", 2),): [1.3]}, known)
    assert [(f.where, round(f.value, 3), f.holds) for f in verdict.findings] == [("n = 1", 0.9, True), ("n = 2", 1.3, False)]
    assert not verdict.holds


def test_a_point_that_the_other_program_has_not_does_not_hold(known: reference.Reference) -> None:
    verdict = judge(expectation(), {(("n", 3),): [1.0]}, known)
    assert math.isnan(verdict.findings[0].value) and not verdict.holds
    assert not judge(expectation(), {(("n", 1),): [3.0]}, None).holds


def test_trends_and_ratios_have_none() -> None:
    with pytest.raises(ValueError, match="of_reference"):
        Expectation("x", "ratio", of_reference=True, over="n", trend="falling")


def test_axes_may_stand_in_any_order(tmp_path: Path) -> None:
    (tmp_path / "d.json").write_text('{"program": "p", "cells": [{"axes": {"n": 1, "delay_s": 0.02}, "runs": [{"ratio": 5}]}]}')
    found = reference.load(Document("row.toml", {}, {}), tmp_path, "d.json")
    assert found is not None and found.median((("delay_s", 0.02), ("n", 1)), "ratio") == 5


@pytest.mark.parametrize("text", ["", "[]", '{"program": "p"}', '{"program": "p", "cells": [{"axes": 1}]}'])
def test_a_file_that_is_none_is_refused_with_the_row_s_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "d.json").write_text(text)
    with pytest.raises(ConfigError, match="d.json"):
        reference.load(Document("row.toml", {}, {}), tmp_path, "d.json")


def with_reference() -> list[str]:
    return [name for name in make.ids() if read_row.reference_file(loader.find(name)) is not None]


@pytest.mark.parametrize("name", with_reference())
def test_the_committed_data_have_every_point_of_their_row(name: str) -> None:
    loaded = read_row.load(loader.find(name))
    assert loaded.reference is not None
    points = {p.axes for p in sweep.expand(sweep.without(loaded.document, sweep.REPORT_KEYS)).points}
    judged = [e for e in loaded.expectations if e.of_reference]
    for expected in judged:
        for axes in sweep.matching(dict.fromkeys(points), expected.where):
            assert loaded.reference.values(axes, expected.measure), axes


def test_the_page_shows_both_and_whether_each_point_holds(known: reference.Reference, tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    (tmp_path / "data.json").write_text(json.dumps(CELLS))
    file.write_text(ROW)
    loaded = read_row.load(file)
    results = {(("n", n),): [{"values": {"ratio": value}} for value in values] for n, values in ((1, [3.0, 3.3, 2.7]), (2, [1.5]))}
    verdicts = tuple(
        judge(e, {axes: [r["values"]["ratio"] for r in runs] for axes, runs in results.items()}, loaded.reference)
        for e in loaded.expectations
    )
    shown = page.against(Outcome(loaded, results, verdicts, 0.0))
    assert shown is not None
    assert shown["heads"] == ["n", "ratio, ns-2", "ratio, here", "here / ns-2", "95% interval"]
    assert shown["lines"] == [(["1", "3 (2 to 4)", "3 (2.7 to 3.3)", "1", "0.4213 to 2.55"], True), (["2", "1", "1.5", "1.5", "–"], False)]
    assert words.expected(loaded.expectations[0], "ns-2") == "0.75 to 1.25 times ns-2's"


def test_an_expectation_without_a_reference_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(ROW.replace('reference = "data.json"', ""))
    with pytest.raises(ConfigError, match="of_reference.*no \\[ledger\\] reference|no \\[ledger\\] reference"):
        read_row.load(file)


ROW = """
title = "A small row"
bottleneck = "s1->s2"
duration_s = 8.0

[paper]
reference = "-"
section = "-"
figure = "-"

[ledger]
row = "X"
reference = "data.json"

[sweep]
n = [1, 2]

[topology]
kind = "dumbbell"
pairs = "= n"
bottleneck = { rate_bps = 1_000_000, delay_s = 0.01, queue_packets = 40 }
access = { rate_bps = 100_000_000 }

[[flows]]
name = "tcp"
kind = "tcp-sack"
count = "= n"

[measure]
ratio = "= tcp.mean_bps / bottleneck.rate_bps"

[[expect]]
name = "as in ns-2"
measure = "ratio"
of_reference = true
low = 0.75
high = 1.25
"""

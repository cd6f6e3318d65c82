"""The ranking of lab 10: its marks, what is stored of the rivals, and the report."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane import probes
from fairlane.labs.ranking import page
from fairlane.labs.ranking.__main__ import main
from fairlane.labs.ranking.measures import EVEN, MARKS, Measures, measure, rivals, score, situations, stored

SCHEME = probes.ROOT / "teaching" / "10" / "solution" / "my_scheme.py"
GOOD = Measures(utilisation=0.95, jain=1.0, loss=0.0, queue_packets=0.0, variation=0.0, beside_tcp=1.0)
rates = st.floats(0, 1)


def test_every_scheme_is_a_rival() -> None:
    assert set(stored()) == set(rivals())
    assert {"als", "daa", "rap", "rap-fine", "trabol", "ssvp", "ssvp-adp", "tfrc", "gaimd", "aimd-rtcp", "tcp-reno", "cbr"} <= set(rivals())


@pytest.mark.parametrize("kind", ["als"])
def test_stored_figures_are_what_runs_give(kind: str) -> None:
    """When this fails because schemes or networks have changed: python -m fairlane.labs.ranking --store"""
    found = measure(kind, *situations(kind)).as_json()
    assert found == pytest.approx(stored()[kind].as_json(), rel=1e-9)


def test_marks_worked_by_hand() -> None:
    assert score(GOOD) == 100
    some = replace(GOOD, utilisation=0.475, loss=0.05, queue_packets=10, variation=0.25, beside_tcp=4.0)
    assert some.marks() == pytest.approx({"use": 0.5, "fairness": 1, "loss": 0.5, "delay": 0.8, "smoothness": 0.75, "friendliness": 0.25})
    assert score(some, {**dict.fromkeys(MARKS, 0.0), "delay": 3, "friendliness": 1}) == pytest.approx(100 * (3 * 0.8 + 0.25) / 4)
    assert replace(GOOD, beside_tcp=0.5).marks()["friendliness"] == replace(GOOD, beside_tcp=2.0).marks()["friendliness"] == 0.5
    assert replace(GOOD, beside_tcp=math.inf).marks()["friendliness"] == replace(GOOD, beside_tcp=0.0).marks()["friendliness"] == 0


@given(st.builds(Measures, rates, rates, rates, st.floats(0, 60), st.floats(0, 5), st.floats(0) | st.just(math.inf)))
def test_marks_lie_between_0_and_1(measures: Measures) -> None:
    assert set(measures.marks()) == set(MARKS)
    assert all(0 <= mark <= 1 for mark in measures.marks().values())


def test_the_best_comes_first_and_weights_matter() -> None:
    measured = {"a": replace(GOOD, beside_tcp=0.1), "b": replace(GOOD, loss=0.1), "c": replace(GOOD, loss=0.1)}
    assert [(x.rank, x.kind, x.own) for x in page.ranked(measured, "b", {**EVEN, "friendliness": 3})] == [
        (1, "b", True),
        (2, "c", False),
        (3, "a", False),
    ]
    assert [x.kind for x in page.ranked(measured, "b", {**EVEN, "loss": 3})] == ["a", "b", "c"]


def test_one_command_makes_the_report(tmp_path: Path) -> None:
    said: list[str] = []
    assert main([str(SCHEME), "--out", str(tmp_path / "report")], said.append) == 0
    with (tmp_path / "report" / "ranking.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(r["rank"]) for r in rows] == list(range(1, len(rivals()) + 2))
    scores = [float(r["score"]) for r in rows]
    assert scores == sorted(scores, reverse=True)
    own = next(int(r["rank"]) for r in rows if r["scheme"] == "my-scheme")
    assert own <= len(rows) / 2
    html = (tmp_path / "report" / "ranking.html").read_text()
    assert f"<h1>my-scheme is {own} of {len(rows)}" in html
    assert html.count("<svg") == 4 and html.count('<tr class="own">') == 2
    assert "http://" not in html.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons.org", ""
    ), "stands alone"
    assert any(line.startswith("->") and "my-scheme" in line for line in said)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (
            "self.reported_s = now_s\n        return (SetRate(self.rate_bps),)",
            "self.reported_s = now_s / 0\n        return ()",
            "in on_feedback: self.reported_s = now_s / 0",
        ),
        ("return (SendFeedback(), SetTimer", "return (SendFeedback, SetTimer", "on_timer returns <class"),
        ("def limited", "def limited(", "SyntaxError"),
    ],
)
def test_a_broken_scheme_is_told_with_its_line(tmp_path: Path, before: str, after: str, told: str) -> None:
    text = SCHEME.read_text()
    assert before in text
    broken = tmp_path / "my_scheme.py"
    broken.write_text(text.replace(before, after))
    said: list[str] = []
    assert main([str(broken), "--out", str(tmp_path / "report")], said.append) == 1
    assert said[0].startswith("my_scheme.py:") and (told in said[0] or told == "SyntaxError")
    assert not (tmp_path / "report").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["missing.py"],
        [],
        [str(SCHEME), "--weights", "speed=1"],
        [str(SCHEME), "--weights", "loss=x"],
        [str(SCHEME), "--kind", "rap"],
        [str(SCHEME), "--weights", ",".join(f"{m}=0" for m in MARKS)],
    ],
)
def test_wrong_arguments_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        main(arguments)
    assert refused.value.code == 2

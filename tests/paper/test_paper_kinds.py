"""The five kinds of a row, from files of its own to the page, the index and the console; and keys of [ledger] and [[expect]] that are refused."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from fairlane.inputs.located_toml import ConfigError
from fairlane.paper import index, kinds, make, page, read_row, words
from fairlane.paper.judge import Expectation, Finding, Verdict, judge
from fairlane.paper.row import Ledger, Row
from fairlane.paper.row_outcome import Outcome

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
{ledger}

[sweep]
n = [1, 2, 3, 4]

[quick]
n = [1, 2]

[topology]
kind = "dumbbell"
pairs = "= n"
bottleneck = {{ rate_bps = 1_000_000, delay_s = 0.01, queue_packets = 40 }}
access = {{ rate_bps = 100_000_000 }}

[[flows]]
name = "tcp"
kind = "tcp-sack"
count = "= n"

[measure]
utilisation = "= bottleneck.utilisation"

[[expect]]
name = "full link"
measure = "utilisation"
low = 0.9
{expect}

{more}
"""
IMPOSSIBLE = (
    '[[expect]]\nname = "twice the link"\nmeasure = "utilisation"\nlow = 2.0\ncontradicts = "a link carries at most 1 times its rate"'
)


def load(folder: Path, ledger: str = "", expect: str = "", more: str = "", quick: bool = False) -> Row:
    path = folder / "small.toml"
    path.write_text(ROW.format(ledger=ledger, expect=expect, more=more))
    return read_row.load(path, quick)


def outcome(loaded: Row, utilisation: list[float]) -> Outcome:
    """As if the runs, one a point, had given these values."""
    results = {
        p.axes: [{"row": loaded.id, "axes": dict(p.axes), "seed": 1, "inputs": "-", "values": {"utilisation": value}, "curves": {}}]
        for p, value in zip(loaded.sweep.points, utilisation, strict=True)
    }
    verdicts = tuple(
        judge(e, {axes: [r["values"]["utilisation"] for r in runs] for axes, runs in results.items()}) for e in loaded.expectations
    )
    return Outcome(loaded, results, verdicts, 1.5)


FULL, SHORT, DOUBLE = [0.95] * 4, [0.95, 0.95, 0.95, 0.5], [2.5] * 4
READING = 'reading = "the link of section 2"'
CONTRADICTION = 'contradiction = "2 x 1 Mb/s on a link of 1 Mb/s"'


@pytest.mark.parametrize(
    ("ledger", "more", "values", "kind", "held", "reason"),
    [
        ("", "", FULL, "holds", 1, ""),
        ('differs = "a little"', "", FULL, "holds", 1, "a little"),
        ("", "", SHORT, "unexplained", 0, "No cause is known. These expectations do not hold: full link"),
        ('differs = "slow start"', "", SHORT, "unexplained", 0, "slow start"),
        (READING, "", FULL, "reading", 1, "the link of section 2"),
        (READING, "", SHORT, "unexplained", 0, "No cause is known. These expectations do not hold: full link"),
        (CONTRADICTION, "", FULL, "contradiction", 1, "2 x 1 Mb/s on a link of 1 Mb/s"),
        (CONTRADICTION, "", SHORT, "unexplained", 0, "No cause is known. These expectations do not hold: full link"),
        (CONTRADICTION, IMPOSSIBLE, FULL, "contradiction", 1, "2 x 1 Mb/s on a link of 1 Mb/s"),
        ("", IMPOSSIBLE, FULL, "contradiction", 1, "a link carries at most 1 times its rate"),
        (CONTRADICTION, IMPOSSIBLE, DOUBLE, "contradiction", 1, "2 x 1 Mb/s on a link of 1 Mb/s"),
        (READING, IMPOSSIBLE, FULL, "reading", 1, "the link of section 2"),
        (f"{READING}\n{CONTRADICTION}", "", FULL, "reading", 1, "the link of section 2"),
        (f"{READING}\n{CONTRADICTION}", IMPOSSIBLE, FULL, "contradiction", 1, "2 x 1 Mb/s on a link of 1 Mb/s"),
        (f"{READING}\n{CONTRADICTION}", IMPOSSIBLE, DOUBLE, "reading", 1, "the link of section 2"),
    ],
)
def test_the_kind_of_a_row_stands_on_the_page_in_the_index_and_in_the_console(
    tmp_path: Path, ledger: str, more: str, values: list[float], kind: str, held: int, reason: str
) -> None:
    found = outcome(load(tmp_path, ledger, more=more), values)
    page.write([found], tmp_path / "report", quick=False)
    written = json.loads((tmp_path / "report" / "index.json").read_text())
    (entry,) = written["rows"]
    assert (entry["row"], entry["ledger"], entry["kind"], entry["expectations"], entry["held"], entry["reason"]) == (
        "small",
        "X",
        kind,
        1,
        held,
        reason,
    )
    assert found.holds == (kind != "unexplained")
    assert written["kinds"][kind] == 1 and sum(written["kinds"].values()) == 1
    assert json.loads((tmp_path / "report" / "rows" / "small.json").read_text())["kind"] == kind
    text = (tmp_path / "report" / "index.html").read_text()
    assert (
        f'<p class="why {kind}"><strong>{kind}</strong> <span>{held} of 1 expectations hold.{" " + reason if reason else ""}</span>' in text
    )
    assert kinds.count([found.kind]) in text and all(meaning in text for meaning in kinds.legend([found.kind]).values())
    console = Console(width=200, record=True)
    make.show([found], console)
    assert f"small          {kind}" in (shown := console.export_text()) and kinds.count([found.kind]) in shown


def test_an_impossible_figure_is_listed_apart_and_said_when_it_comes_out(tmp_path: Path) -> None:
    loaded = load(tmp_path, more=IMPOSSIBLE)
    for values, holds in ((FULL, False), (DOUBLE, True)):
        entry = index.entry(outcome(loaded, values))
        assert [v["name"] for v in entry["verdicts"]] == ["full link"]
        assert [(v["name"], v["holds"], v["why"]) for v in entry["contradicted"]] == [
            ("twice the link", holds, "a link carries at most 1 times its rate")
        ]
        page.write([outcome(loaded, values)], tmp_path / "report", quick=False)
        assert ("It comes out here all the same" in (tmp_path / "report" / "index.html").read_text()) == holds


def test_an_unexplained_row_says_what_is_ruled_out_or_that_nothing_is(tmp_path: Path) -> None:
    none, some = load(tmp_path), load(tmp_path, 'ruled_out = ["not the <queue>: 0.5 with 400 packets, too"]')
    for loaded, text in ((none, "Nothing is ruled out yet"), (some, "<li>not the &lt;queue&gt;: 0.5 with 400 packets, too</li>")):
        page.write([outcome(loaded, SHORT)], tmp_path / "report", quick=False)
        assert text in (tmp_path / "report" / "index.html").read_text()
    assert index.entry(outcome(some, SHORT))["ruled_out"] == ["not the <queue>: 0.5 with 400 packets, too"]


@pytest.mark.parametrize(
    ("given", "key", "message"),
    [
        ({"ledger": 'contradiction = "it cannot be"'}, "contradiction", r"ledger.contradiction: give the arithmetic"),
        ({"ledger": 'ruled_out = ["a queue", " "]'}, "ruled_out", r"ledger.ruled_out: say in each entry"),
        ({"ledger": "reading = 1"}, "reading", r"ledger.reading: expected a string"),
        ({"expect": 'contradicts = "it cannot be"'}, "contradicts", r"expect\[0\].contradicts: give the arithmetic"),
        ({"expect": 'contradicts = "2 > 1"'}, "[[expect]]", r"expect: every expectation has 'contradicts', which never counts"),
        ({"expect": "at_least = 5"}, "at_least", r"expect\[0\].at_least: can never hold: 5 of 4 points"),
        ({"expect": "at_least = -1"}, "at_least", r"expect\[0\].at_least: a number of points, got -1"),
        ({"expect": "at_least = 1.5"}, "at_least", r"expect\[0\].at_least: expected an integer"),
        ({"expect": 'at_least = 1\nany = "n"'}, "at_least", r"expect\[0\].at_least: not together with 'any'"),
        ({"expect": 'at_least = 1\nseeds = "each"'}, "at_least", r"expect\[0\].at_least: not together with 'any' or with seeds = 'each'"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_line(tmp_path: Path, given: dict[str, str], key: str, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"small.toml:\d+: {message}") as error:
        load(tmp_path, **given)
    line = int(str(error.value).split(":")[1])
    assert (tmp_path / "small.toml").read_text().splitlines()[line - 1].startswith(key)


def test_so_many_points_must_hold_and_a_quick_pass_wants_the_same_share(tmp_path: Path) -> None:
    loaded = load(tmp_path, expect="at_least = 3")
    assert outcome(loaded, SHORT).holds
    assert not outcome(loaded, [0.95, 0.95, 0.5, 0.5]).holds
    assert not outcome(loaded, [0.95, 0.95, math.nan, 0.5]).holds
    verdict = outcome(loaded, SHORT).verdicts[0]
    assert words.expected(verdict.expectation) == "at least 0.9, for at least 3 points"
    assert words.found(verdict) == "0.5 to 0.95; 3 of 4 points"
    assert index.entry(outcome(loaded, SHORT))["verdicts"][0]["not_at"] == [{"where": "n = 4", "value": 0.5}]
    # 3 of 4 are 1.5 of 2
    assert load(tmp_path, expect="at_least = 3", quick=True).expectations[0].at_least == 2
    assert load(tmp_path, expect="at_least = 2", quick=True).expectations[0].at_least == 1


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=5), st.sampled_from(["", "r"]), st.sampled_from(["", "1 > 0"]))
def test_a_row_is_unexplained_exactly_when_an_ordinary_expectation_fails(
    given: list[tuple[bool, bool]], reading: str, contradiction: str
) -> None:
    verdicts = [
        Verdict(Expectation(str(i), "m", low=0.0, contradicts="2 > 1" if impossible else ""), (Finding("all", 0.0, holds),), holds)
        for i, (impossible, holds) in enumerate(given)
    ]
    ledger = Ledger("X", reading=reading, contradiction=contradiction)
    counted = [holds for impossible, holds in given if not impossible]
    kind = kinds.kind(ledger, verdicts)
    assert (kind == "unexplained") == (not counted or not all(counted))
    assert kind == "holds" or kinds.reason(ledger, verdicts)
    assert kind != "holds" or not (reading or contradiction or len(counted) < len(given))


@pytest.mark.parametrize(
    ("where", "values", "kind", "found", "ran"),
    [
        ("", [0.95, 0.95], "holds", "0.95", "2 of 4 points"),
        ("", [0.95, 0.5], "not run in full", "0.5 to 0.95", "2 of 4 points"),
        ("where = { n = 4 }", [0.95, 0.95], "not run in full", "not measured", "2 of 4 points"),
        ("where = { n = [2, 4] }", [0.5, 0.95], "holds", "0.95", "2 of 4 points"),
    ],
)
def test_what_a_quick_pass_did_not_run_is_never_unexplained(
    tmp_path: Path, where: str, values: list[float], kind: str, found: str, ran: str
) -> None:
    one = outcome(load(tmp_path, expect=where, quick=True), values)
    assert (one.kind, one.row.ran) == (kind, ran)
    entry = index.entry(one)
    assert entry["verdicts"][0]["found"] == found and entry["verdicts"][0]["measured"] == (found != "not measured")
    assert entry["reason"] == ("" if kind == "holds" else f"This pass ran {ran}.")
    page.write([one], tmp_path / "report", quick=True)
    text = (tmp_path / "report" / "index.html").read_text()
    assert (">not measured</td>" in text) == (found == "not measured") and "Nothing is ruled out yet" not in text
    assert kinds.count([one.kind]).endswith("not run in full 1" if kind == "not run in full" else "unexplained 0")
    # The exit code tells of what was measured and does not hold alone.
    assert one.holds == (kind == "holds")


def test_fewer_seeds_and_less_time_are_not_a_row_in_full(tmp_path: Path) -> None:
    more = "{more}"
    text = (
        ROW.format(ledger="", expect="", more=more).replace("n = [1, 2]\n", "n = [1, 2]\nseeds = [1]\nduration_s = 4.0\n").replace(more, "")
    )
    path = tmp_path / "small.toml"
    path.write_text("seeds = [1, 2, 3]\n" + text)
    assert read_row.load(path, quick=True).ran == "2 of 4 points, 1 of 3 seeds, 4 s of time"
    assert read_row.load(path, seed=3).ran == "1 of 3 seeds"
    assert read_row.load(path, at=["n=3"]).ran == "1 of 4 points"
    assert read_row.load(path).ran == ""


def test_the_index_names_the_commit_and_adds_up(tmp_path: Path) -> None:
    page.write([outcome(load(tmp_path), FULL), outcome(load(tmp_path), SHORT)], tmp_path / "report", quick=True)
    written = json.loads((tmp_path / "report" / "index.json").read_text())
    assert written["quick"] is True and written["processor_s"] == 3.0 and len(written["commit"]) == 40
    assert written["kinds"] == {"holds": 1, "reading": 0, "contradiction": 0, "unexplained": 1, "not run in full": 0}
    assert kinds.count([r["kind"] for r in written["rows"]]) == "1 of 2 rows explained: holds 1, reading 0, contradiction 0, unexplained 1"

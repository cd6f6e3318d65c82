"""Sweeps of experiment files: expressions, points, and what is expected of them."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.experiments import expressions, sweep
from fairlane.inputs import located_toml
from fairlane.inputs.located_toml import ConfigError
from fairlane.paper import judge, words
from fairlane.studies import intervals

FILE = """
seeds = [1, 2, 3]

[sweep]
n = [1, 4]
kind = ["rap", "tcp-sack"]

[let]
rate_bps = "= 2 * n * 40_000"
queue = "= max(4, round(0.1 * rate_bps / 800))"

[quick]
seeds = [1]
n = [4]

[topology.bottleneck]
rate_bps = "= rate_bps"
queue_packets = "= queue"

[[flows]]
kind = "= kind"
count = "= n"
"""


def document(text: str = FILE) -> located_toml.Document:
    return located_toml.parse(text, "row.toml")


def test_points_are_all_combinations_with_all_seeds():
    points = sweep.expand(document()).points
    assert [(dict(p.axes), p.seed) for p in points[:4]] == [
        ({"n": 1, "kind": "rap"}, 1),
        ({"n": 1, "kind": "rap"}, 2),
        ({"n": 1, "kind": "rap"}, 3),
        ({"n": 1, "kind": "tcp-sack"}, 1),
    ]
    assert len(points) == 12
    assert len({sweep.point_key(p.axes, p.seed) for p in points}) == 12


def test_values_are_worked_out_at_each_point():
    last = sweep.expand(document()).points[-1].document.values
    assert last == {
        "topology": {"bottleneck": {"rate_bps": 320_000, "queue_packets": 40}},
        "seed": 3,
        "flows": [{"kind": "tcp-sack", "count": 4}],
    }


def test_points_share_what_has_no_expression():
    """A file of 100,000 points with long lists took minutes, because each point read all of them again."""
    first, *others = (point.document.values for point in sweep.expand(document(FILE + "\n[extra]\nlong = [[1, 2], [3]]\n")).points)
    assert all(values["extra"] is first["extra"] for values in others)
    assert any(values["topology"] != first["topology"] for values in others)


def test_a_quick_pass_takes_its_own_values():
    assert [(dict(p.axes)["n"], p.seed) for p in sweep.expand(document(), quick=True).points] == [(4, 1), (4, 1)]


@pytest.mark.parametrize(
    "change, message",
    [
        (("n = [1, 4]", "n = []"), r"row.toml:5: sweep.n: expected an array of values"),
        (("n = [1, 4]", "n = [1, 1]"), r"row.toml:5: sweep.n\[1\]: 1 is here twice"),
        (("seeds = [1, 2, 3]", "seeds = [-1]"), r"row.toml:2: seeds\[0\]: a seed must be a whole number"),
        (("n = [4]", "m = [4]"), r"row.toml:14: quick.m: unknown key; known: n, kind"),
        (('"= queue"', '"= quue"'), r"row.toml:18: topology.bottleneck.queue_packets: no value 'quue' here; there is .*queue"),
        (('"= 2 * n * 40_000"', '"= 2 * / n"'), r"row.toml:9: let.rate_bps: '2 \* / n' is not an expression"),
        (('"= 2 * n * 40_000"', '"= open(1)"'), r"row.toml:9: let.rate_bps: 'open\(1\)' is not supported here"),
        (('"= 2 * n * 40_000"', '"= 1 / (n - n)"'), r"row.toml:9: let.rate_bps: .*division by zero"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_file_line_and_key(change, message):
    with pytest.raises(ConfigError, match=message):
        sweep.expand(document(FILE.replace(*change)))
        sweep.expand(document(FILE.replace(*change)), quick=True)


@given(st.text(max_size=40))
def test_no_text_makes_an_expression_do_anything_but_give_a_value_or_say_why_not(text):
    try:
        value = expressions.evaluate(text, {"a": 1, "b": 2.5})
    except ValueError:
        return
    assert isinstance(value, (int, float, str, bool))


@given(st.integers(-1000, 1000), st.integers(-1000, 1000), st.integers(1, 50))
def test_expressions_reckon_as_python_does(a, b, c):
    assert expressions.evaluate("= (a + b) * a - b // c if a > b else a % c", {"a": a, "b": b, "c": c}) == (
        (a + b) * a - b // c if a > b else a % c
    )


def test_names_may_be_owned():
    assert expressions.evaluate("= rap.mean_bps / tcp.mean_bps", {"rap.mean_bps": 3.0, "tcp.mean_bps": 2.0}) == 1.5
    assert expressions.names_in("= max(rap.mean_bps, n)") == {"rap.mean_bps", "n"}


def samples(values: dict) -> dict:
    return {(("n", n), ("k", k)): list(v) for (n, k), v in values.items()}


def test_a_bound_holds_for_the_median_of_each_point_that_is_meant():
    data = samples({(1, "a"): [9, 9, 9], (2, "a"): [1.0, 1.1, 50], (4, "a"): [0.9, 1.0, 1.2]})
    verdict = judge.judge(judge.Expectation("x", "m", where={"n": [2, 4]}, low=0.8, high=1.2), data)
    assert verdict.holds and [f.value for f in verdict.findings] == [1.1, 1.0]
    assert not judge.judge(judge.Expectation("x", "m", low=0.8, high=1.2), data).holds


def test_what_holds_within_the_noise_of_its_seeds_is_told():
    """By hand: 1.5 and 3.1 have the mean 2.3, and the half of their interval is 12.706 x 1.1314 / sqrt(2) = 10.16."""
    noisy = judge.judge(judge.Expectation("x", "m", low=1.0), samples({(1, "a"): [1.5, 3.1], (2, "a"): [3.0, 3.001]}))
    assert noisy.holds and [f.where for f in noisy.within_noise] == ["n = 1, k = a"]
    assert noisy.within_noise[0].ends == pytest.approx((2.3 - 10.165, 2.3 + 10.165), abs=0.001)
    assert words.noise(noisy) == "n = 1, k = a: 2.3, 95% interval -7.865 to 12.46"
    for settled in ([3.0, 3.001], [3.0], [0.5, 0.9]):  # beyond doubt, a single seed, a bound that is missed
        assert words.noise(judge.judge(judge.Expectation("x", "m", low=1.0), samples({(1, "a"): settled}))) == ""


def test_a_ratio_within_noise_has_the_interval_of_the_quotient():
    data = samples({(1, "a"): [2.0, 2.2, 1.8], (1, "b"): [1.0, 3.0, 2.0]})
    (finding,) = judge.judge(judge.Expectation("x", "m", ratio_of={"k": "a"}, ratio_to={"k": "b"}, high=1.5), data).within_noise
    assert finding.ends == pytest.approx(intervals.quotient([2.0, 2.2, 1.8], [1.0, 3.0, 2.0])) and finding.ends[1] > 1.5


def test_a_bound_for_each_seed_is_missed_by_one_that_the_median_hides():
    data = samples({(1, "a"): [1.0, 1.0, 1.3], (2, "a"): [0.9, 1.0, 1.1]})
    assert judge.judge(judge.Expectation("x", "m", high=1.2), data).holds
    each = judge.Expectation("x", "m", high=1.2, seeds="each")
    verdict = judge.judge(each, data)
    assert not verdict.holds and verdict.extremes == (0.9, 1.3)
    assert [f.where for f in verdict.findings if not f.holds] == ["n = 1, k = a"]
    assert judge.judge(dataclasses.replace(each, where={"n": 2}), data).holds
    assert not judge.judge(each, samples({(1, "a"): [1.0, math.nan]})).holds
    with pytest.raises(ValueError, match="seeds: 'each' is of single points"):
        judge.Expectation("x", "m", over="n", trend="falling", seeds="each")


def test_a_point_that_could_not_be_measured_does_not_hold():
    assert not judge.judge(judge.Expectation("x", "m", low=0.0), samples({(1, "a"): [math.nan, 1.0]})).holds
    assert not judge.judge(judge.Expectation("x", "m", low=0.0), {}).holds


def test_a_trend_is_judged_along_each_curve():
    falling = samples({(n, k): [10 / n] for n in (1, 2, 4) for k in "ab"})
    assert judge.judge(judge.Expectation("x", "m", over="n", trend="falling"), falling).holds
    assert not judge.judge(judge.Expectation("x", "m", over="n", trend="rising"), falling).holds
    flat = samples({(n, "a"): [1.0] for n in (1, 2, 4)})
    assert not judge.judge(judge.Expectation("x", "m", over="n", trend="falling"), flat).holds


def test_a_ratio_is_of_points_that_agree_in_the_other_axes():
    data = samples({(1, "a"): [2.0], (1, "b"): [4.0], (2, "a"): [3.0], (2, "b"): [4.0]})
    verdict = judge.judge(judge.Expectation("x", "m", ratio_of={"k": "a"}, ratio_to={"k": "b"}, high=0.8), data)
    assert verdict.holds and [(f.where, f.value) for f in verdict.findings] == [("n = 1", 0.5), ("n = 2", 0.75)]


def test_any_wants_one_value_of_an_axis_for_which_all_points_hold():
    data = samples({(1, "a"): [1.0], (2, "a"): [5.0], (1, "b"): [1.1], (2, "b"): [0.9]})
    assert judge.judge(judge.Expectation("x", "m", low=0.8, high=1.2, any="k"), data).holds
    assert not judge.judge(judge.Expectation("x", "m", low=0.95, high=1.2, any="k"), data).holds


@pytest.mark.parametrize(
    "wrong",
    [
        {"low": 2.0, "high": 1.0},
        {},
        {"over": "n"},
        {"trend": "rising"},
        {"ratio_of": {"k": "a"}, "high": 1.0},
        {"over": "n", "trend": "rising", "high": 3.0},
    ],
)
def test_an_expectation_that_can_never_hold_or_never_fail_is_refused(wrong):
    with pytest.raises(ValueError):
        judge.Expectation("x", "m", **wrong)


def test_one_value_of_an_axis_may_be_asked_for():
    kept = sweep.expand(sweep.narrowed(document(), ["n=4", "kind=tcp-sack"])).points
    assert {p.axes for p in kept} == {(("n", 4), ("kind", "tcp-sack"))}


@pytest.mark.parametrize(
    "at, message",
    [
        ("n", "write AXIS=VALUE"),
        ("m=1", "no axis 'm'"),
        ("n=3", "n has the values 1, 4"),
        ("n=x", "n has the values 1, 4"),
    ],
)
def test_a_value_that_an_axis_does_not_have_is_refused(at, message):
    with pytest.raises(ConfigError, match=message):
        sweep.narrowed(document(), [at])

"""Measures of the rate that an algorithm allows, worked by hand."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace

import pytest

from fairlane.inputs import located_toml
from fairlane.inputs.located_toml import ConfigError
from fairlane.results.series import FlowRecord, Steps
from fairlane.studies import measures, read, units
from fairlane.studies.study import Curve

EMPTY = Steps.of([], [])


def flow(*rates: tuple[float, float]) -> FlowRecord:
    return FlowRecord(SimpleNamespace(name="f"), EMPTY, EMPTY, EMPTY, list(rates), [], None)


def test_rates_count_by_how_long_they_held() -> None:
    """From 10 to 20 s: 100 for 2 s, 400 for 5 s, 300 for 3 s. Mean (200 + 2000 + 900) / 10; half of the time at 300 or less."""
    record = flow((0.0, 100.0), (12.0, 400.0), (17.0, 300.0), (20.0, 900.0))
    assert measures.allowed_rates(record, (10.0, 20.0)) == (pytest.approx(310.0), 300.0, 400.0)


def test_a_window_before_the_first_rate_and_a_flow_without() -> None:
    assert measures.allowed_rates(flow((5.0, 80.0)), (0.0, 10.0)) == (80.0, 80.0, 80.0)
    assert all(math.isnan(v) for v in measures.allowed_rates(flow(), (0.0, 10.0)))
    assert all(math.isnan(v) for v in measures.allowed_rates(flow((11.0, 80.0)), (0.0, 10.0)))


def test_variation_of_a_sum_is_less_than_that_of_flows_that_take_turns() -> None:
    """Two flows at 1 and 3, changing places each 0.15 s: each varies by 1 about 2, the sum is 4."""
    here = [(0.15 * i, 1.0 + 2.0 * (i % 2)) for i in range(40)]
    there = [(t, 4.0 - rate) for t, rate in here]
    flows = [dataclasses.replace(flow(*rates), active=(0.0, 6.0)) for rates in (here, there)]
    assert measures.OF_FLOWS["cov_sending"](flows, (0.0, 6.0)) == pytest.approx(0.5)
    assert measures.OF_FLOWS["cov_sending_of_sum"](flows, (0.0, 6.0)) == pytest.approx(0.0, abs=1e-9)
    assert math.isnan(measures.OF_FLOWS["cov_sending_of_sum"]([*flows, dataclasses.replace(flows[0], sending_rate=[])], (0.0, 6.0)))


def test_a_curve_of_mean_rates_has_a_point_for_each_flow_of_its_group() -> None:
    """1000 and 3000 bytes in the window of 4 s: 2 and 6 kbit/s, in the flows' order."""
    records = [
        dataclasses.replace(flow(), flow=SimpleNamespace(name=f"g-{i}"), received=Steps.of([5.0], [size]), active=(0.0, 10.0))
        for i, size in enumerate((1000.0, 3000.0))
    ]
    experiment = SimpleNamespace(settings=SimpleNamespace(groups={"g": "rap"}), window_s=(4.0, 8.0), duration_s=10.0)
    series = SimpleNamespace(experiment=experiment, flows=records)
    assert measures.curve(series, Curve("rates", "mean_rates", "g")) == {"t": [1.0, 2.0], "v": [2000.0, 6000.0]}
    with pytest.raises(ValueError, match="flows: mean_rates is of flows"):
        Curve("rates", "mean_rates")


HYPHENS = """
title = "Groups of flows by any name"
bottleneck = "s1->s2"
duration_s = 2.0
[sweep]
tcp = [1, 2]
[topology]
kind = "dumbbell"
pairs = 8
bottleneck = { rate_bps = 2e6, delay_s = 0.01, queue_packets = 40 }
access = { rate_bps = 100e6 }
"""
NAMES = ("tcp-sack", "sack", "my-tcp-sack", "tcp_sack", "v1.2", "2nd", "in", "tcp_x2d_sack")
GROUPS = "".join(f'[[flows]]\nname = "{name}"\nkind = "tcp-sack"\n' for name in NAMES)


def study(measure: str, groups: str = GROUPS) -> read.Study:
    return read.from_document(located_toml.parse(f"{HYPHENS}{groups}[measure]\n{measure}\n", "s.toml"), "s", (), None, read.NO_FILES)


def values(measures_: dict[str, str], **known: float) -> dict[str, float]:
    """Of groups in the order of `NAMES`, with 1000, 2000, 3000, ... bytes in the window of 4 s: 2, 4, 6, ... kbit/s."""
    records = [
        dataclasses.replace(
            flow(), flow=SimpleNamespace(name=name, kind="x"), received=Steps.of([5.0], [1000.0 * (i + 1)]), active=(0.0, 10.0)
        )
        for i, name in enumerate(NAMES)
    ]
    found = {group: [record] for group, record in zip(NAMES, records)}
    names = {f"{measures.name_of(g)}.{f}": measures.OF_FLOWS[f](r, (4.0, 8.0)) for g, r in found.items() for f in ("mean_bps", "count")}
    return {name: float(measures.expressions.evaluate(text, {**names, **known})) for name, text in measures_.items()}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("= tcp-sack.mean_bps", 2000),
        ("= sack.mean_bps", 4000),
        ("= my-tcp-sack.mean_bps", 6000),
        ("= tcp_sack.mean_bps", 8000),
        ("= v1.2.mean_bps", 10000),
        ("= 2nd.mean_bps", 12000),
        ("= in.mean_bps", 14000),
        ("= tcp-sack.mean_bps/my-tcp-sack.mean_bps", 1 / 3),
        ("= -tcp-sack.mean_bps", -2000),
        ("= tcp - sack.mean_bps", 1 - 4000),
        ("= tcp -sack.mean_bps", 1 - 4000),
        ("= tcp-tcp-sack.mean_bps", 1 - 2000),
        ("= 3*tcp-sack.mean_bps - in.count", 5999),
        ("= max(v1.2.mean_bps, tcp-sack.mean_bps) if tcp > 0 else 2nd.mean_bps", 10000),
    ],
)
def test_a_measure_names_a_group_as_the_file_does(text: str, value: float) -> None:
    found = study(f'm = "{text}"').measures
    assert values(dict(found), tcp=1.0)["m"] == pytest.approx(value)
    assert len({measures.name_of(name) for name in NAMES}) == len(NAMES)


def test_without_measures_each_group_has_its_goodput() -> None:
    found = study("", '[[flows]]\nname = "tcp-sack"\nkind = "tcp-sack"\n[[flows]]\nname = "rap"\nkind = "rap"\n').measures
    assert list(found)[:2] == ["tcp_sack_goodput_bps", "rap_goodput_bps"]
    assert units.column("x", study('x = "= tcp-sack.mean_bps"').measures["x"]) == "x_bps"


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ('m = "= tcp-sack.mean_pbs"', "measure.m: no figure 'mean_pbs'; did you mean 'mean_bps'"),
        ('m = "= udp.mean_bps"', "measure.m: no group of flows 'udp'; known: "),
        ('m = "= tcp-sack.mean_bps +"', "measure.m: 'tcp-sack.mean_bps +' is not an expression"),
    ],
)
def test_a_fault_of_a_measure_is_said_in_the_words_of_the_file(measure: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        study(measure)
    assert message in str(refused.value) and "_x2d_" not in str(refused.value).replace("'tcp_x2d_sack'", "").replace("tcp_x2d_sack", "")

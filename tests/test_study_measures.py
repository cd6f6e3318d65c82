"""Measures of the rate that an algorithm allows, worked by hand."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace

import pytest

from fairlane.results.series import FlowRecord, Steps
from fairlane.studies import measures
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
    experiment = SimpleNamespace(settings=SimpleNamespace(flows=[SimpleNamespace(name="g")]), window_s=(4.0, 8.0), duration_s=10.0)
    series = SimpleNamespace(experiment=experiment, flows=records)
    assert measures.curve(series, Curve("rates", "mean_rates", "g")) == {"t": [1.0, 2.0], "v": [2000.0, 6000.0]}
    with pytest.raises(ValueError, match="flows: mean_rates is of flows"):
        Curve("rates", "mean_rates")

"""Delays of single packets: percentiles of a histogram beside those of the values, and the measures of runs beside the records, beside sums by hand, and beside
queueing theory."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairlane
from fairlane import api
from fairlane.experiments import loader
from fairlane.fabrics import virtual_fabric
from fairlane.fabrics.flows import Timing
from fairlane.results.delays import Delays
from fairlane.results.series import Series, load
from fairlane.studies import measures

needs_network = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")
EXAMPLE = Path(__file__).parents[2] / "docs/examples/waiting-study.toml"
RUN = """
title = "Flows of each family over one link"
bottleneck = "s1->s2"
duration_s = 10.0
window_from = 0.3
[topology]
kind = "dumbbell"
pairs = 4
bottleneck = { rate_bps = 4_000_000, delay_s = 0.01, queue_packets = 30 }
access = { rate_bps = 100_000_000, delay_s = 0.001 }
"""


def delays_of(values: list[int]) -> Delays:
    """As the network counts them: bins of 1/128 of their power of two."""
    bins: dict[int, int] = {}
    for value in values:
        shift = max(0, value.bit_length() - 8)
        begin = value >> shift << shift
        bins[begin] = bins.get(begin, 0) + 1
    return Delays(len(values), sum(values), min(values), max(values), bins)


VALUES = st.lists(st.integers(0, 10**12), min_size=1, max_size=300)


@given(VALUES, st.sampled_from([1, 50, 95, 99, 100]))
def test_a_percentile_is_that_of_the_values_within_its_stated_error(values: list[int], part: int) -> None:
    exact = sorted(values)[max(0, math.ceil(part * len(values) / 100) - 1)]
    assert delays_of(values).percentile_s(part) * 1e9 == pytest.approx(exact, rel=0.004, abs=1e-6)


@given(VALUES, VALUES)
def test_delays_of_two_are_those_of_all_their_packets(one: list[int], other: list[int]) -> None:
    assert Delays.together([delays_of(one), Delays(), delays_of(other)]) == delays_of(one + other)


def test_without_packets_there_is_no_figure() -> None:
    assert Delays().figures() == {} and math.isnan(Delays().mean_s) and math.isnan(Delays.together([]).percentile_s(50))


def recorded(tmp_path: Path, flows: dict[str, str]) -> tuple[Series, dict[str, Any]]:
    text = RUN + "".join(f'[[flows]]\nname = "{name}"\n{keys}\n' for name, keys in flows.items())
    (tmp_path / "run.toml").write_text(text)
    experiment = loader.load(tmp_path / "run.toml")
    api.run_experiment(experiment, out=tmp_path / "out")
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    timing = Timing(summary["begin_unix_s"], summary["begin_unix_s"] + 10.0)
    return load(tmp_path / "out/raw", experiment, timing), summary


@needs_network
def test_means_agree_with_the_records_of_ends_and_ports(tmp_path: Path) -> None:
    """The receivers' records have the sum of all delays; and the packets that wait, summed up over time, are all packets' waiting times."""
    kinds = {"rap": "rap", "als": "als", "cbr": "cbr", "cubic": "tcp-cubic"}
    series, summary = recorded(tmp_path, {name: f'kind = "{kind}"' for name, kind in kinds.items()})
    window = series.experiment.window_s
    for record, found in zip(series.flows, summary["flows"]):
        if record.flow.name != "cubic":
            assert record.one_way.mean_s == pytest.approx(record.delay.over(*window) / record.packets.over(*window), rel=0.01)
            assert record.one_way.packets == pytest.approx(record.packets.over(*window), abs=2)
        assert found["delay_s"] == record.one_way.figures()
        assert found["delay_s"]["p50"] <= found["delay_s"]["p95"] <= found["delay_s"]["p99"] <= found["delay_s"]["max"]
    (link,) = (link for link in summary["links"] if link["name"] == "s1->s2")
    queue = series.bottleneck.queue
    assert queue is not None
    waits = series.bottleneck.waits[0]
    # Those that wait at an end of the window count in one of the two.
    assert waits.sum_ns / 1e9 == pytest.approx(queue.over(*window), rel=0.01) and link["wait_s"] == waits.figures()
    # A full queue of 30 packets of 1000 bytes is 60 ms. The path is 12 ms, and 2 ms to send a packet.
    assert 0.03 < waits.max_ns / 1e9 < 0.065
    rap, cubic = series.flows[0], series.flows[3]
    assert 0.014 < cubic.one_way.min_ns / 1e9 < cubic.one_way.max_ns / 1e9 < 0.014 + 0.065 + 0.002
    for flow in (rap, cubic):
        assert flow.rtt.packets > 100 and flow.one_way.mean_s + 0.012 < flow.rtt.mean_s < flow.one_way.mean_s + 0.012 + 0.045
    assert measures.OF_FLOWS["delay_p95_s"]([rap, cubic], window) == Delays.together([rap.one_way, cubic.one_way]).percentile_s(95)


@needs_network
def test_delays_by_hand(tmp_path: Path) -> None:
    """A packet each 10 ms alone on the path: 1014 bytes on two links of 100 Mb/s and one of 4 Mb/s, 12 ms of propagation."""
    by_hand_ns = 2 * 81_120 + 2_028_000 + 12_000_000
    lone = 'kind = "renewal"\nparameters = { gaps = "constant", rate_bps = 800_000 }'
    series, _ = recorded(tmp_path, {"lone": lone})
    (flow,) = series.flows
    assert (flow.one_way.min_ns, flow.one_way.max_ns, flow.one_way.packets) == (by_hand_ns, by_hand_ns, 700)
    assert series.bottleneck.waits[0].figures() == {"mean": 0.0, "p50": 0.0, "p95": 0.0, "p99": 0.0, "max": 0.0}
    assert flow.rtt.figures() == {}


@needs_network
def test_tcp_alone_has_the_delays_of_its_path(tmp_path: Path) -> None:
    """With a window of one segment each of 1000 bytes has the links to itself; its acknowledgement, of 66 bytes on the links, comes back at once."""
    keys = 'kind = "tcp-reno"\nparameters = { max_window_packets = 1, delayed_ack = false, timestamps = false }'
    series, _ = recorded(tmp_path, {"lone": keys})
    (flow,) = series.flows
    there_ns = 2 * 81_120 + 2_028_000 + 12_000_000
    back_ns = 2 * 54 * 80 + 54 * 2000 + 12_000_000
    assert {flow.one_way.min_ns, flow.one_way.max_ns} == {there_ns}
    assert {flow.rtt.min_ns, flow.rtt.max_ns} == {there_ns + back_ns}
    assert flow.rtt.packets == pytest.approx(7e9 / (there_ns + back_ns), abs=2)


@needs_network
@pytest.mark.parametrize("sizes", ["constant", "exponential"])
def test_poisson_arrivals_wait_as_long_as_theory_says(tmp_path: Path, sizes: str) -> None:
    """docs/measures.md has all loads and ten seeds, within 2 %. Of three short runs the standard error is 1.3 %."""
    frame = fairlane.sweep(EXAMPLE, axes={"sizes": [sizes], "load": [0.5, 0.8]}, seeds=[1, 2, 3], out=tmp_path / "out")
    means = frame.groupby("load")[["ratio", "queue_ratio", "wait_p99_s", "utilisation"]].mean()
    assert means["ratio"].tolist() == pytest.approx([1, 1], rel=0.03)
    assert means["queue_ratio"].tolist() == pytest.approx([1, 1], rel=0.03)
    assert means["utilisation"].tolist() == pytest.approx([0.5, 0.8], rel=0.02)
    if sizes == "exponential":
        # M/M/1: P(W > t) = load * exp(-(1 - load) t / S).
        theory = [8e-6 / (1 - load) * math.log(100 * load) for load in (0.5, 0.8)]
        assert means["wait_p99_s"].tolist() == pytest.approx(theory, rel=0.05)

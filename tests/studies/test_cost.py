"""The guess of a run's processor time: files cost by their number and size, not by the length of the run."""

from __future__ import annotations

import pytest

from fairlane import ad_hoc
from fairlane.experiments import loader
from fairlane.experiments.model import Experiment
from fairlane.inputs import located_toml
from fairlane.studies import points

TEXT = """
title = "Files"
bottleneck = "s1->s2"
duration_s = {duration_s}
[topology]
kind = "dumbbell"
pairs = 4
bottleneck = {{ rate_bps = 100_000_000 }}
access = {{ rate_bps = 1_000_000_000 }}
[[workloads]]
name = "web"
kind = "tcp-cubic"
arrivals = {{ kind = "deterministic", per_s = 20 }}
sizes = {{ kind = "constant", mean_bytes = {bytes} }}
pattern = "all-to-all"
stop_s = 10
"""


def files(duration_s: float, size: int = 200_000) -> Experiment:
    return loader.from_document(located_toml.parse(TEXT.format(duration_s=duration_s, bytes=size), "f.toml"), "f")


def test_files_cost_by_their_number_and_size() -> None:
    short, long, large = (points.cost(e) for e in (files(10), files(100), files(10, 20_000_000)))
    # 200 files. As flows that are there all the time they would be worth 7 s in the longer run.
    assert short < 0.6 and short < long < 1.2
    payload = files(10).flows[0].tcp_settings.payload_bytes(4)
    assert large == pytest.approx(short + 200 * 19_800_000 / payload * 3e-6, rel=0.01)


def test_flows_without_an_end_cost_by_their_time() -> None:
    def of(*flows: str, duration_s: float = 60.0) -> float:
        return points.cost(ad_hoc.experiment("dumbbell", ad_hoc.Options(flows), duration_s, 1))

    assert of("rap:20") - of("rap:10") == pytest.approx(10 * 60 * 0.35e-3)
    assert of("rap:10@30s") < of("rap:10")
    short_s, long_s, longer_s = (of("rap:1", duration_s=duration_s) for duration_s in (60, 600, 1200))
    assert longer_s - long_s == pytest.approx((long_s - short_s) * 600 / 540)

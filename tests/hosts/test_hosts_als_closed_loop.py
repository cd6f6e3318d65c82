"""ALS in a closed loop: the fluid routers of `hosts.fluid`, a golden trace, and the max-min shares of the paper's table 1."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from statistics import fmean

import pytest

from hosts import fluid
from hosts.algorithms.als import AlsParameters
from hosts.fluid import FluidFlow, FluidLink, Sample

GOLDEN = Path(__file__).parent / "golden" / "als_fluid_join.csv"
CHAIN_PATHS = ((0, 1, 2, 3), (0, 1), (0,), (1,), (1, 2), (2,), (3,))
"""Links of C0..C6 [ALS fig 5]."""
TABLE_1_KBPS = (248, 249, 497, 245, 246, 499, 742)
"""Achieved shares [ALS table 1]."""


def chain(duration_s: float, seed: int) -> dict[str, list[Sample]]:
    links = [FluidLink(capacity_bps=1e6, buffer_bits=100e3) for _ in range(4)]
    parameters = AlsParameters(max_rate_bps=1e6)
    flows = [FluidFlow(f"C{i}", path, parameters=parameters) for i, path in enumerate(CHAIN_PATHS)]
    return fluid.run(links, flows, duration_s, seed)


def joining() -> dict[str, list[Sample]]:
    """Three flows on a 3 Mb/s link; the second joins at 30 s, the third at 60 s."""
    link = FluidLink(capacity_bps=3e6, buffer_bits=150e3)
    parameters = AlsParameters(max_rate_bps=3e6)
    flows = [FluidFlow(f"S{i}", (0,), start_s=30.0 * i, parameters=parameters) for i in range(3)]
    return fluid.run([link], flows, 120.0, seed=1)


def as_csv(samples: dict[str, list[Sample]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("flow", "t_s", "rate_bps", "goodput_bps", "desired_rate_bps", "air_bps"))
    for name, series in samples.items():
        for s in series:
            values = (s.rate_bps, s.goodput_bps, s.desired_rate_bps, s.air_bps)
            writer.writerow((name, f"{s.t_s:g}", *("" if v is None else f"{v:.3f}" for v in values)))
    return out.getvalue()


def test_trace_equals_the_golden() -> None:
    """`UPDATE_GOLDEN=1` writes the file anew; look at the difference before keeping it."""
    text = as_csv(joining())
    if os.environ.get("UPDATE_GOLDEN") == "1":
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


def test_a_run_repeats_and_another_seed_differs() -> None:
    assert chain(40.0, 3) == chain(40.0, 3)
    assert chain(40.0, 3) != chain(40.0, 4)


def test_rates_follow_the_number_of_connections() -> None:
    """"the transmission rate of a sender starting at time 0 changes in accordance with the new network conditions"
    [ALS sec 4.1.1]: within two RTCP intervals of each join it is at b U_l / n or a little above."""
    first = joining()["S0"]
    for n, (begin, end) in enumerate(((15, 30), (50, 60), (80, 90)), start=1):
        fair_bps = 3e6 * 0.9 / n
        mean_bps = fmean(s.rate_bps for s in first if begin <= s.t_s < end)
        assert 0.97 * fair_bps < mean_bps < 1.15 * fair_bps, (n, mean_bps)


@pytest.mark.parametrize("seed", range(4))
def test_chain_reaches_the_max_min_shares_of_table_1(seed: int) -> None:
    """Within 8% of what the paper achieved, in the second hundred seconds [ALS sec 4.2]."""
    samples = chain(200.0, seed)
    for name, paper_kbps in zip(samples, TABLE_1_KBPS, strict=True):
        mean_kbps = fmean(s.goodput_bps for s in samples[name] if s.t_s >= 100) / 1e3
        assert mean_kbps == pytest.approx(paper_kbps, rel=0.08), name

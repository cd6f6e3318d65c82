"""The verdict on a run in real time, from records made for each fault alone; tests/fabrics/test_mininet_run.py stops real switches."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairlane import probes
from fairlane.experiments import loader
from fairlane.fabrics.flows import Timing
from fairlane.fabrics.outcome import Event, Outcome
from fairlane.results import fidelity

ROOT = probes.ROOT
BEGIN = 1_000_000.25
DURATION = 20.0


def _records(folder: Path, change: str = "", amount: float = 0.0) -> fidelity.Fidelity:
    experiment = loader.load(loader.find("als-3"), DURATION)
    for switch in experiment.topology.switches:
        time_s = np.arange(100.0, 100.0 + DURATION + 4.0, 0.1)
        ports = sorted(p.number for p in experiment.topology.ports()[switch])
        rows = pd.DataFrame([(t, port) for t in time_s for port in ports], columns=["time_s", "port"])
        rows["unix_s"] = rows["time_s"] - 102.0 + BEGIN
        since = rows["time_s"] - 100.0
        rows["rx_packets"] = rows["tx_packets"] = (100 * since).round()
        for column in ("rx_missed", "tx_failed", *fidelity.LATE_BOUNDS_S):
            rows[column] = 0
        if switch == "s1":
            after = rows["time_s"] > 110.0
            if change == "gap":
                rows = rows[(rows["time_s"] < 110.0) | (rows["time_s"] > 110.0 + amount)]
            elif change == "clock":
                rows.loc[after, "unix_s"] += amount
            elif change == "odd row":
                rows.loc[np.isclose(rows["time_s"], 110.0), "unix_s"] += amount
            elif change == "late":
                for column, bound in fidelity.LATE_BOUNDS_S.items():
                    rows[column] = rows["tx_packets"] * (0.02 if amount > bound else 0.0)
            elif change:
                rows.loc[after, change] = amount
        rows.to_csv(folder / f"{switch}.csv", index=False)
    return fidelity.judge(folder, experiment, Outcome(Timing(BEGIN, BEGIN + DURATION)))


def test_a_run_that_kept_up_is_true(tmp_path: Path) -> None:
    judged = _records(tmp_path)
    assert (judged.verdict, judged.reasons) == ("true", ())
    assert judged.measured["gap_s"] == pytest.approx(0.1, abs=0.01) and judged.measured["late_part"] == 0.0


@pytest.mark.parametrize(
    ("change", "amount", "verdict", "measure", "said"),
    [
        ("gap", 0.4, "true", None, ""),
        ("gap", 0.7, "doubtful", "gap_s", "s1 wrote no counters for 0."),
        ("gap", 5.0, "invalid", "gap_s", "s1 wrote no counters for 5."),
        ("clock", 0.1, "doubtful", "clock_step_s", "stepped by 0.100 s"),
        ("clock", -2.0, "invalid", "clock_step_s", "stepped by 2.000 s"),
        ("odd row", 0.09, "true", None, ""),
        ("rx_missed", 1, "doubtful", "missed_fraction", "the kernel threw away"),
        ("rx_missed", 100, "invalid", "missed_fraction", "the kernel threw away"),
        ("tx_failed", 1, "doubtful", "unsent_fraction", "the kernel did not send"),
        ("late", 0.0009, "true", None, ""),
        ("late", 0.0045, "doubtful", "late_part", "more than 3.2 ms after"),
        ("late", 0.045, "invalid", "late_part", "more than 32 ms after"),
        ("late", 0.2, "invalid", "late_part", "more than 2e+02 ms after"),
    ],
)
def test_each_fault_gets_its_verdict(tmp_path: Path, change: str, amount: float, verdict: str, measure: str | None, said: str) -> None:
    judged = _records(tmp_path, change, amount)
    assert judged.verdict == verdict, judged
    if measure is not None:
        first = next(r for r in judged.reasons if r.measure == measure)
        assert said in first.what and first.verdict == verdict


def test_missing_counters_flows_waiting_and_events_are_told(tmp_path: Path) -> None:
    experiment = loader.load(loader.find("als-3"), DURATION)
    (tmp_path / "als-0.sender.jsonl").write_text('{"kind": "end", "sent_packets": 90, "forgiven_packets": 10}\n{"kind": "en')
    trip = {"sender": "h1", "receiver": "h11", "declared_s": 0.01, "measured_s": 0.015, "holds": False}
    outcome = Outcome(
        Timing(BEGIN, BEGIN + DURATION),
        events=[Event(BEGIN + 3.0, "switch s2 is started again")],
        waiting={"the controller": 0.2, "switch s1": 0.01},
        round_trips_after=[trip],
    )
    judged = fidelity.judge(tmp_path, experiment, outcome)
    told = {(r.measure, r.verdict) for r in judged.reasons}
    assert judged.verdict == "invalid" and told == {
        ("sampled_part", "invalid"),
        ("forgiven_fraction", "invalid"),
        ("waiting_fraction", "doubtful"),
        ("round_trip_part", "doubtful"),
        ("event", "doubtful"),
    }
    assert judged.reasons[0].verdict == "invalid" and judged.reasons[-1].verdict == "doubtful"
    assert any("at 3.0 s switch s2 is started again" in r.what for r in judged.reasons)
    assert not any("its host gave" in said for said in judged.sentences())
    outcome.stolen = 0.06
    assert (
        fidelity.judge(tmp_path, experiment, outcome)
        .sentences()[-1]
        .endswith("its host gave 6 % of its processors' time to others meanwhile")
    )


def test_the_limits_are_those_of_the_page() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| ([\d.]+)(?: (s|ms|%))? \| ([\d.]+)(?: (s|ms|%))? \|", (ROOT / "docs" / "fidelity.md").read_text(), re.MULTILINE
    )
    scale = {"": 1.0, "s": 1.0, "ms": 1e-3, "%": 1e-2}
    stated = {name: (float(a) * scale[unit_a], float(b) * scale[unit_b]) for name, a, unit_a, b, unit_b in rows}
    assert stated == {name: (pytest.approx(limit.doubtful), pytest.approx(limit.invalid)) for name, limit in fidelity.LIMITS.items()}


def test_gaps_are_quantiles_of_each_link_and_size(tmp_path: Path) -> None:
    for name, frames in (("s1.gaps.csv", 900), ("s1.2.gaps.csv", 90)):
        rows = f"1,128,1.0,{frames}\n1,inf,0.5,{frames}\n1,inf,4.0,{frames // 9}\n1,inf,inf,{frames // 90}\n99,inf,1.0,5000\n"
        (tmp_path / name).write_text("port,bytes_up_to,ratio_up_to,frames\n" + rows)
    judged = _records(tmp_path)
    (large,) = judged.gaps  # 990 small frames are too few, and there is no port 99
    assert large == fidelity.Gaps(large.link, math.inf, 1111, 0.5, 4.0, pytest.approx(math.inf)) and large.link.startswith("s1->")
    assert judged.to_json()["gaps"][0]["frames"] == 1111

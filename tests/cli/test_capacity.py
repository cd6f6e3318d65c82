"""`fairlane doctor --measure`: what a run asks, what was measured here, and the sentence before a run that is beyond it."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairlane import ad_hoc, capacity, measure
from fairlane.capacity import Bound, Capacity
from fairlane.experiments.model import Experiment
from fairlane.fabrics.flows import Timing
from fairlane.fabrics.outcome import Outcome


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "fairlane" / "capacity.json"


def _experiment(*flows: str, **options: str) -> Experiment:
    return ad_hoc.experiment("dumbbell", ad_hoc.Options(flows, **options), 10.0, 1)


MEASURED = Capacity("2026-11-01T10:00:00+00:00", 0.1, Bound(10_000.0, 40_000.0, 100_000.0), Bound(8, None, 32))


def test_packets_a_second_are_counted_at_every_switch() -> None:
    # 8 Mb/s of 1000 bytes are 1000 packets a second, at two switches; 10 flows share them.
    assert capacity.load_of(_experiment("rap:10", bottleneck="8mbit")) == capacity.Load(pytest.approx(2000.0), 10)
    # A constant source of 1 Mb/s does not take more than that, whatever the link is; a TCP's acknowledgements come back.
    assert capacity.load_of(_experiment("cbr", bottleneck="1gbit")).hops_per_s == pytest.approx(2 * 125.0)
    assert capacity.load_of(_experiment("tcp-sack", bottleneck="8mbit")).hops_per_s == pytest.approx(2 * 1500.0)


def test_a_run_beyond_what_was_measured_is_warned() -> None:
    many = _experiment("rap:10", bottleneck="200mbit")
    assert capacity.warnings(many, "embedded") == []
    capacity.write("embedded", MEASURED)
    assert capacity.warnings(_experiment("rap:2"), "embedded") == [] and capacity.warnings(many, "bmv2") == []
    packets, flows = capacity.warnings(many, "embedded")
    assert "50,000 packets a second" in packets and "true up to 10,000" in packets and "from 40,000 on it was not valid" in packets
    assert "10 flows" in flows and "true up to 8" in flows and "2026-11-01" in flows


def test_another_machines_measurement_and_a_broken_file_say_nothing(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    capacity.write("embedded", MEASURED)
    capacity.write("bmv2", MEASURED)
    assert capacity.read("embedded") == capacity.read("bmv2") == MEASURED
    monkeypatch.setattr(capacity, "mark", lambda: "another")
    assert capacity.read("embedded") is None
    capacity.write("embedded", MEASURED)
    assert len(json.loads(state.read_text())) == 2
    for text in ("", "[]", '{"another": {"embedded": {"measured": 1}}}', '{"another": 3}'):
        state.write_text(text)
        assert capacity.read("embedded") is None


def test_steps_grow_and_are_those_of_the_experiment() -> None:
    experiment, steps = measure.rates()
    assert sum(f.settings.parameters.rate_bps for f in experiment.flows) == pytest.approx(steps[-1].offered_bps)
    assert [b.offered_bps / a.offered_bps for a, b in itertools.pairwise(steps)] == pytest.approx([2**0.5] * (len(steps) - 1))
    experiment, steps = measure.flows()
    assert len(experiment.flows) == steps[-1].load.flows and steps[-1].end_s == experiment.duration_s


def _record(folder: Path, experiment: Experiment, steps: list[measure.Step], lost_in: int, late_in: int) -> Outcome:
    """Counters of switches that lose packets in one step, and are late in another."""
    time_s = np.arange(0.0, experiment.duration_s + 2, 0.1)
    offered = np.zeros_like(time_s)
    late = np.zeros_like(time_s)
    for number, step in enumerate(steps):
        within = (time_s > step.begin_s - 0.15) & (time_s < step.end_s + 0.05)
        offered[within] = step.offered_bps / 8000 * 0.1 * (0.9 if number == lost_in else 1.0)
        late[within] = offered[within] if number == late_in else 0.0
    for switch in experiment.topology.switches:
        ports = experiment.topology.ports()[switch]
        rows = [pd.DataFrame({"time_s": time_s, "port": p.number}) for p in ports]
        for frame, port in zip(rows, ports):
            sends = port.number == next(q.number for q in ports if (q.peer in experiment.topology.hosts) == (switch == "s2"))
            frame["unix_s"] = frame["time_s"] + 1000.0
            frame["tx_packets"] = frame["rx_packets"] = np.cumsum(offered) * sends
            for column in ("rx_missed", "tx_failed"):
                frame[column] = 0
            for column in measure.fidelity.LATE_BOUNDS_S:
                frame[column] = np.cumsum(late) * sends
        pd.concat(rows).sort_values(["time_s", "port"]).to_csv(folder / f"{switch}.csv", index=False)
    return Outcome(Timing(1000.0, 1000.0 + experiment.duration_s))


def test_each_step_is_judged_by_its_own_window(tmp_path: Path) -> None:
    experiment, steps = measure.rates()
    outcome = _record(tmp_path, experiment, steps, lost_in=9, late_in=6)
    judged = [measure.judge(tmp_path, experiment, outcome, step) for step in steps]
    assert [j.verdict for j in judged[:6]] == ["true"] * 6
    assert judged[6].verdict == "invalid" and "left more than" in judged[6].why
    assert judged[9].verdict == "invalid" and "90 % of the packets arrive" in judged[9].why
    bound = measure.bound([(j.step.load.hops_per_s, j.verdict) for j in judged])
    assert bound == Bound(steps[5].load.hops_per_s, steps[6].load.hops_per_s, steps[-1].load.hops_per_s)


def test_a_bound_ends_before_the_first_step_that_is_not_true() -> None:
    assert measure.bound([(4, "true"), (8, "doubtful"), (16, "doubtful"), (32, "true"), (64, "invalid")]) == Bound(4, 64, 64)
    assert measure.bound([(4, "true"), (8, "invalid"), (16, "true")]) == Bound(4, 8, 16)
    assert measure.bound([(4, "true"), (8, "true"), (16, "doubtful")]) == Bound(8, None, 16)
    assert measure.bound([(4, "doubtful"), (8, "true")]) == Bound(0.0, None, 8)


def test_one_doubtful_step_between_true_ones_is_passed_over() -> None:
    assert measure.bound([(4, "true"), (8, "doubtful"), (16, "true"), (32, "invalid")]) == Bound(16, 32, 32)

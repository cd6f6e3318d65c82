"""How true a run in real time was to its model, by its own records: a verdict, and the reasons for it.

A run in real time shares its machine with others. Where a switch was not given the processor in time, frames left late, clocks stood still, or
the kernel threw frames away, and the figures speak of the machine instead of the algorithms. Each measure here has two thresholds: from the
first on figures are doubtful, from the second on the run is invalid. docs/fidelity.md says why they stand where they do.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from fairlane.experiments.model import Experiment
from fairlane.fabrics import raw
from fairlane.fabrics.flows import record_roles
from fairlane.fabrics.outcome import Outcome
from fairlane.topologies import addressing

Verdict = Literal["true", "doubtful", "invalid"]
_ORDER: tuple[Verdict, ...] = ("true", "doubtful", "invalid")

LATE_BOUNDS_S = {"late_100us": 1e-4, "late_300us": 3e-4, "late_1ms": 1e-3, "late_3ms": 3e-3, "late_10ms": 1e-2, "late_100ms": 1e-1}
"""The embedded switch's counters of frames that left later than their link's model says, by more than this (seconds)."""


@dataclass(frozen=True)
class Limit:
    """A figure above `doubtful` is doubtful, above `invalid` invalid. why: one sentence for docs and tests."""

    doubtful: float
    invalid: float
    why: str

    def verdict(self, value: float) -> Verdict:
        return "invalid" if value > self.invalid else "doubtful" if value > self.doubtful else "true"


LIMITS = {
    "gap_s": Limit(
        0.5, 1.0, "the control loop's interval is 1 s: a switch that stood still for half of it spoils one count, for all of it the loop"
    ),
    "late_part": Limit(0.1, 0.5, "p99 of frames' lateness as a part of the shortest round trip: algorithms answer to round trips"),
    "missed_fraction": Limit(
        0.0, 0.001, "a frame that the kernel threw away is a loss that no queue decided; ALS's papers speak of losses of 0.5 %"
    ),
    "unsent_fraction": Limit(0.0, 0.001, "the same at the way out"),
    "forgiven_fraction": Limit(
        0.001, 0.01, "packets that an algorithm had decided to send and its host did not send in time: its rate is too low by so much"
    ),
    "waiting_fraction": Limit(0.10, 0.50, "the part of the run that a process was ready and had no processor; beyond it timers come late"),
    "clock_step_s": Limit(
        0.01, 1.0, "hosts and controller meet by the wall's clock: a step moves starts, ends and intervals against each other"
    ),
    "round_trip_part": Limit(0.2, 1.0, "a path's round trip without load, away from the declared one by this part and more than 1 ms"),
    "sampled_part": Limit(0.05, 0.20, "the part of the run without counters: means over it leave that part out"),
}


@dataclass(frozen=True)
class Reason:
    """One finding. measure: of `LIMITS`, or "event". figures: which figures it puts in doubt."""

    verdict: Verdict
    measure: str
    what: str
    figures: str


@dataclass(frozen=True)
class Fidelity:
    """measured: each measure's worst value; None where a run has no record of it."""

    verdict: Verdict
    reasons: tuple[Reason, ...] = ()
    measured: dict[str, float | None] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """`fidelity` of summary.json."""
        return {"verdict": self.verdict, "reasons": [dataclasses.asdict(r) for r in self.reasons], "measured": self.measured}

    def sentences(self) -> list[str]:
        """For the console: nothing of a true run."""
        return [f"{r.verdict}: {r.what}; in doubt: {r.figures}" for r in self.reasons]


IN_VIRTUAL_TIME = Fidelity("true")
"""Virtual time waits for whoever computes: nothing comes late."""


def judge(folder: Path, experiment: Experiment, outcome: Outcome) -> Fidelity:
    """Judge a run in real time by its raw records in `folder`."""
    reasons: list[Reason] = []
    measured: dict[str, float | None] = dict.fromkeys(LIMITS)
    for measure, value, what, figures in _findings(folder, experiment, outcome):
        if math.isnan(value):
            continue
        measured[measure] = max(value, measured[measure] or 0.0)
        verdict = LIMITS[measure].verdict(value)
        if verdict != "true":
            reasons.append(Reason(verdict, measure, what, figures))
    for event in outcome.events:
        at = event.time_s - outcome.timing.begin_s
        reasons.append(Reason("doubtful", "event", f"at {at:.1f} s {event.what}", "all from then on"))
    verdict = max((r.verdict for r in reasons), key=_ORDER.index, default="true")
    return Fidelity(verdict, tuple(sorted(reasons, key=lambda r: -_ORDER.index(r.verdict))), measured)


_Finding = tuple[str, float, str, str]


def _findings(folder: Path, experiment: Experiment, outcome: Outcome) -> Iterator[_Finding]:
    for switch in experiment.topology.switches:
        rows = raw.switch_counters(folder, switch)
        if rows.empty:
            yield "sampled_part", 1.0, f"{switch} wrote no counters", f"all of {switch}'s links"
            continue
        rows["unix_s"] -= outcome.timing.begin_s
        yield from _of_switch(switch, rows, experiment)
    yield from _of_flows(folder, experiment)
    for name, waiting in outcome.waiting.items():
        yield (
            "waiting_fraction",
            waiting,
            f"{name} was ready and had no processor for {100 * waiting:.0f} % of the run",
            _whose(name, experiment),
        )
    for trip in (*outcome.round_trips, *outcome.round_trips_after):
        off = abs(trip["measured_s"] - trip["declared_s"])
        part = off / trip["declared_s"] if off > 1e-3 and trip["declared_s"] > 0 else 0.0
        path = f"{trip['sender']} -> {trip['receiver']}"
        what = f"the round trip {path} without load is {trip['measured_s'] * 1e3:.2f} ms, declared {trip['declared_s'] * 1e3:.2f} ms"
        yield "round_trip_part", part, what, f"flows over {path}"


def _of_switch(switch: str, rows: pd.DataFrame, experiment: Experiment) -> Iterator[_Finding]:
    links = f"all flows through {switch}"
    duration = experiment.duration_s
    # The row before the run's begin and the one after its end close the first and last gap.
    times = np.unique(rows["unix_s"].to_numpy())
    inside = times[(times > -1.0) & (times < duration + 1.0)]
    steady = np.unique(rows["time_s"].to_numpy())
    gaps = np.diff(np.clip(inside, 0.0, duration)) if len(inside) > 1 else np.array([duration])
    # A gap on a clock that does not step.
    gap, at = float(gaps.max()), float(inside[int(gaps.argmax())]) if len(inside) else 0.0
    yield "gap_s", gap, f"{switch} wrote no counters for {gap:.2f} s, at {at:.1f} s of the run: it did not run", links
    missing = float(gaps[gaps > 0.3].sum()) / duration
    yield "sampled_part", missing, f"{switch} has no counters for {100 * missing:.1f} % of the run", f"means of {switch}'s links"
    if len(steady) > 1:
        step = _step(rows.drop_duplicates("time_s").eval("unix_s - time_s").to_numpy())
        yield "clock_step_s", step, f"the machine's clock stepped by {step:.3f} s", "starts, intervals and everything by second"
    run = rows[(rows["unix_s"] >= 0) & (rows["unix_s"] <= duration)]
    growth = _growth(run)
    if "rx_missed" in growth:
        yield from _frames(switch, growth, "rx_missed", "rx_packets", "missed_fraction", "the kernel threw away", links)
        yield from _frames(switch, growth, "tx_failed", "tx_packets", "unsent_fraction", "the kernel did not send", links)
    if "late_1ms" in growth:
        shortest = _shortest_round_trip(experiment)
        late = _quantile(growth, 0.99)
        what = f"1 % of {switch}'s frames left more than {late * 1e3:g} ms after their link's model; the shortest round trip is {shortest * 1e3:g} ms"
        yield "late_part", late / shortest, what, f"round trips, and rates that follow from them, {links}"


def _step(offsets: np.ndarray) -> float:
    """The largest lasting change of the wall's clock against one that does not step, between medians of five rows on either side: a switch
    that loses the processor between its readings of the two clocks writes one odd row."""
    if len(offsets) < 10:
        return 0.0
    medians = np.median(np.lib.stride_tricks.sliding_window_view(offsets, 5), axis=1)
    return float(np.abs(medians[5:] - medians[:-5]).max())


def _growth(rows: pd.DataFrame) -> dict[str, float]:
    """Of each column over the rows, summed over ports."""
    if rows.empty:
        return {}
    groups = rows.groupby("port")
    change = groups.last() - groups.first()
    return {str(c): float(change[c].sum()) for c in change.columns}


def _frames(switch: str, growth: dict[str, float], column: str, of: str, measure: str, did: str, links: str) -> Iterator[_Finding]:
    count, total = growth[column], growth[of]
    fraction = count / (count + total) if count + total > 0 else 0.0
    yield measure, fraction, f"{did} {count:.0f} frames at {switch}, {100 * fraction:.3f} % of all", f"losses and rates of {links}"


def _quantile(growth: dict[str, float], part: float) -> float:
    """The smallest bound (seconds) that at most 1 - part of the frames exceed; twice the largest when all bounds are exceeded more often."""
    frames = growth["tx_packets"]
    for column, bound in LATE_BOUNDS_S.items():
        if growth[column] <= (1 - part) * frames:
            return 0.0 if column == "late_100us" else bound
    return 2 * max(LATE_BOUNDS_S.values())


def _shortest_round_trip(experiment: Experiment) -> float:
    trips = [
        2 * sum(p.link.delay_s for p in addressing.path(experiment.topology, f.sender, receiver))
        for f in experiment.flows
        for receiver in f.all_receivers
    ]
    # Below 1 ms no user-space switch keeps a tenth of it.
    return max(1e-3, min(trips, default=1e-3))


def _of_flows(folder: Path, experiment: Experiment) -> Iterator[_Finding]:
    for flow in experiment.flows:
        if flow.start_s >= experiment.duration_s:
            continue
        for role in record_roles(flow):
            for record in raw.json_lines(folder / f"{flow.name}.{role}.jsonl"):
                if record.get("kind") == "end" and "sent_packets" in record:
                    forgiven, packets = record.get("forgiven_packets", 0), record["sent_packets"]
                    fraction = forgiven / (forgiven + packets) if forgiven + packets else 0.0
                    what = f"{flow.name}'s host did not come to send {forgiven} packets in time, {100 * fraction:.2f} % of its own"
                    yield "forgiven_fraction", fraction, what, f"the rate of {flow.name}, and of those it competes with"


def _whose(process: str, experiment: Experiment) -> str:
    name = process.rpartition(" ")[2]
    if name in experiment.topology.switches:
        return f"all flows through {name}"
    if any(process.startswith(f.name) for f in experiment.flows):
        return f"the rate of {process.partition('.')[0].partition(' ')[0]}"
    return "R_f and its times" if "controller" in process else "all"

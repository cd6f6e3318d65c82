"""The accuracy of a run in real time, measured from its own records: a verdict, and the reasons for it.

A run in real time shares its machine with other programs. If a switch did not get the processor in time, frames left late, clocks stopped, or
the kernel dropped frames. The figures then describe the machine instead of the algorithms. Each measure here has two thresholds: from the
first on, figures are doubtful; from the second on, the run is invalid. docs/fidelity.md explains the thresholds.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fairlane.arithmetic import power, total
from fairlane.arrays import np
from fairlane.experiments import paths
from fairlane.experiments.model import Experiment, Flow
from fairlane.fabrics import raw
from fairlane.fabrics.flows import record_roles
from fairlane.fabrics.outcome import Outcome

if TYPE_CHECKING:
    import pandas as pd

Verdict = Literal["true", "doubtful", "invalid"]
_ORDER: tuple[Verdict, ...] = ("true", "doubtful", "invalid")

LATE_BOUNDS_S = {
    "late_100us": 1e-4,
    "late_200us": 2e-4,
    "late_500us": 5e-4,
    "late_1ms": 1e-3,
    "late_2ms": 2e-3,
    "late_5ms": 5e-3,
    "late_10ms": 1e-2,
    "late_20ms": 2e-2,
    "late_50ms": 5e-2,
    "late_100ms": 1e-1,
}
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
    "late_part": Limit(
        0.2,
        1.0,
        "p99 of frames' lateness as a part of the shortest round trip: algorithms answer to round trips, and a path's may be off by so much",
    ),
    "missed_fraction": Limit(
        0.0, 0.001, "a frame that the kernel threw away is a loss that no queue decided; ALS's papers speak of losses of 0.5 %"
    ),
    "unsent_fraction": Limit(0.0, 0.001, "the same at the way out"),
    "forgiven_fraction": Limit(
        0.005, 0.05, "packets that an algorithm had decided to send and its host did not send in time: its rate is too low by so much"
    ),
    "waiting_fraction": Limit(0.10, 0.50, "the part of the run that a process was ready and had no processor; beyond it timers come late"),
    "clock_step_s": Limit(
        0.01, 1.0, "hosts and controller meet by the wall's clock: a step moves starts, ends and intervals against each other"
    ),
    "round_trip_part": Limit(0.2, 1.0, "a path's round trip without load, away from the declared one by this part and more than 1 ms"),
    "sampled_part": Limit(0.05, 0.20, "the part of the run without counters: means over it leave that part out"),
}


_MUCH_STOLEN = 0.01
"""From here on the console names it beside a verdict: it comes in bursts, and one part in a hundred on average is many milliseconds at a time."""


@dataclass(frozen=True)
class Reason:
    """One finding. measure: of `LIMITS`, or "event". figures: which figures it puts in doubt."""

    verdict: Verdict
    measure: str
    what: str
    figures: str


@dataclass(frozen=True)
class Gaps:
    """Of frames that a port sent back to back: the gap before each, as a part of its length over the link's rate. bytes_up_to: the size class;
    infinite for the largest. frames: how many. p50, p99, p999: quantiles, 1 for a perfect link."""

    link: str
    bytes_up_to: float
    frames: int
    p50: float
    p99: float
    p999: float


@dataclass(frozen=True)
class Fidelity:
    """measured: each measure's worst value; None where a run has no record of it. gaps: of the ports of the embedded switch. stolen: the part
    of the processors' time that the host of a virtual machine gave to others: it judges nothing, and explains much."""

    verdict: Verdict
    reasons: tuple[Reason, ...] = ()
    measured: dict[str, float | None] = field(default_factory=dict)
    gaps: tuple[Gaps, ...] = ()
    stolen: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """`fidelity` of summary.json."""
        reasons, gaps = ([dataclasses.asdict(one) for one in several] for several in (self.reasons, self.gaps))
        return {"verdict": self.verdict, "reasons": reasons, "measured": self.measured, "gaps": gaps, "stolen": self.stolen}

    def sentences(self) -> list[str]:
        """For the console: nothing of a true run."""
        said = [f"{r.verdict}: {r.what}; in doubt: {r.figures}" for r in self.reasons]
        if said and self.stolen > _MUCH_STOLEN:
            said.append(
                f"this is a virtual machine, and its host gave {100 * self.stolen:.0f} % of its processors' time to others meanwhile"
            )
        return said


def doubt(verdict: str, whats: Sequence[str]) -> str:
    """A sentence that marks figures on a page; "" for those of a true run. whats: of the reasons."""
    return "" if verdict == "true" else f"Figures {verdict}: {'; '.join(whats[:3])}{'; ...' if len(whats) > 3 else ''}."


IN_VIRTUAL_TIME = Fidelity("true")
"""Virtual time waits for whoever computes: nothing comes late."""


def judge(folder: Path, experiment: Experiment, outcome: Outcome) -> Fidelity:
    """Judge a run in real time by its raw records in `folder`."""
    events = [
        Reason("doubtful", "event", f"at {e.time_s - outcome.timing.begin_s:.1f} s {e.what}", "all from then on") for e in outcome.events
    ]
    judged = _judged(_findings(folder, experiment, outcome), events)
    return dataclasses.replace(judged, gaps=tuple(_gaps(folder, experiment)), stolen=outcome.stolen)


def _gaps(folder: Path, experiment: Experiment) -> Iterator[Gaps]:
    """Of each port and class of sizes that has a thousand frames: p99.9 of fewer says nothing."""
    for switch in experiment.topology.switches:
        ports = experiment.topology.ports()[switch]
        counts = raw.gap_counts(folder, switch)
        for (number, size), rows in counts.groupby(["port", "bytes_up_to"]):
            frames = rows["frames"].sum()
            port = next((p for p in ports if p.number == number), None)
            if port is None or frames < 1000:
                continue
            below = rows["frames"].cumsum()
            p50, p99, p999 = (
                float(rows["ratio_up_to"].iloc[int((below >= part * frames).to_numpy().argmax())]) for part in (0.5, 0.99, 0.999)
            )
            yield Gaps(f"{switch}->{port.peer}", float(size), int(frames), p50, p99, p999)


def of_window(folder: Path, experiment: Experiment, outcome: Outcome, begin_s: float, end_s: float) -> Fidelity:
    """Judge a part of a run, from begin_s to end_s of its time, by its switches' counters: hosts tell theirs for the whole run alone."""
    return _judged(_of_switches(folder, experiment, outcome.timing.begin_s + begin_s, end_s - begin_s), [])


def _judged(findings: Iterator[_Finding], reasons: list[Reason]) -> Fidelity:
    measured: dict[str, float | None] = dict.fromkeys(LIMITS)
    for measure, value, what, figures in findings:
        if math.isnan(value):
            continue
        measured[measure] = max(value, measured[measure] or 0.0)
        verdict = LIMITS[measure].verdict(value)
        if verdict != "true":
            reasons.append(Reason(verdict, measure, what, figures))
    reasons.sort(key=lambda r: -_ORDER.index(r.verdict))
    return Fidelity(reasons[0].verdict if reasons else "true", tuple(reasons), measured)


_Finding = tuple[str, float, str, str]


def _findings(folder: Path, experiment: Experiment, outcome: Outcome) -> Iterator[_Finding]:
    yield from _of_switches(folder, experiment, outcome.timing.begin_s, experiment.duration_s)
    yield from _of_flows(folder, [f for f in experiment.flows if f.start_s < experiment.duration_s])
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


def _of_switches(folder: Path, experiment: Experiment, begin_unix_s: float, duration: float) -> Iterator[_Finding]:
    for switch in experiment.topology.switches:
        seen = _seen(raw.counter_pieces(folder, switch), begin_unix_s, duration)
        if seen is None:
            yield "sampled_part", 1.0, f"{switch} wrote no counters", f"all of {switch}'s links"
            continue
        yield from _of_switch(switch, *seen, duration, _shortest_round_trip(experiment))


def _seen(pieces: Iterator[pd.DataFrame], begin_unix_s: float, duration: float) -> tuple[pd.DataFrame, dict[str, float]] | None:
    """Of a switch's rows from shortly before what is judged to shortly after it: one each instant with its two clocks, unix_s from the begin of what is judged.
    And the growth of each column during it. None: there are no rows."""
    import pandas as pd

    clocks: list[pd.DataFrame] = []
    first = last = pd.DataFrame()
    for piece in pieces:
        piece["unix_s"] -= begin_unix_s
        # The row before the begin and the one after the end close the first and last gap.
        around = piece[(piece["unix_s"] > -1.0) & (piece["unix_s"] < duration + 1.0)]
        clocks.append(around.drop_duplicates("time_s")[["unix_s", "time_s"]])
        ports = piece[(piece["unix_s"] >= 0) & (piece["unix_s"] <= duration)].groupby("port")
        first, last = pd.concat([first, ports.first()]), pd.concat([last, ports.last()])
        first, last = first[~first.index.duplicated()], last[~last.index.duplicated(keep="last")]
    if not clocks:
        return None
    change = last - first
    return pd.concat(clocks).drop_duplicates("time_s"), {str(column): float(change[column].sum()) for column in change.columns}


def _of_switch(switch: str, around: pd.DataFrame, growth: dict[str, float], duration: float, shortest: float) -> Iterator[_Finding]:
    """around, growth: as of `_seen`; duration: of what is judged; shortest: round trip."""
    links = f"all flows through {switch}"
    inside = np.unique(around["unix_s"].to_numpy())
    gaps = np.diff(np.clip(inside, 0.0, duration)) if len(inside) > 1 else np.array([duration])
    # A gap on a clock that does not step.
    gap, at = float(gaps.max()), float(inside[int(gaps.argmax())]) if len(inside) else 0.0
    yield "gap_s", gap, f"{switch} wrote no counters for {gap:.2f} s, at {at:.1f} s of the run: it did not run", links
    missing = float(gaps[gaps > 0.3].sum()) / duration
    yield "sampled_part", missing, f"{switch} has no counters for {100 * missing:.1f} % of the run", f"means of {switch}'s links"
    if len(inside) > 1:
        step = _step(around.eval("unix_s - time_s").to_numpy())
        yield "clock_step_s", step, f"the machine's clock stepped by {step:.3f} s", "starts, intervals and everything by second"
    if "rx_missed" in growth:
        yield from _frames(switch, growth, "rx_missed", "rx_packets", "missed_fraction", "the kernel threw away", links)
        yield from _frames(switch, growth, "tx_failed", "tx_packets", "unsent_fraction", "the kernel did not send", links)
    if "late_1ms" in growth:
        late = _quantile(growth, 0.99)
        what = f"1 % of {switch}'s frames left more than {late * 1e3:.2g} ms after their link's model; the shortest round trip is {shortest * 1e3:g} ms"
        yield "late_part", late / shortest, what, f"round trips, and rates that follow from them, {links}"


def _step(offsets: np.ndarray) -> float:
    """The largest lasting change of the wall's clock against one that does not step, between medians of five rows on either side: a switch
    that loses the processor between its readings of the two clocks writes one odd row."""
    if len(offsets) < 10:
        return 0.0
    medians = np.median(np.lib.stride_tricks.sliding_window_view(offsets, 5), axis=1)
    return float(np.abs(medians[5:] - medians[:-5]).max())


def _frames(switch: str, growth: dict[str, float], column: str, of: str, measure: str, did: str, links: str) -> Iterator[_Finding]:
    count, others = growth[column], growth[of]
    fraction = count / (count + others) if count + others > 0 else 0.0
    yield measure, fraction, f"{did} {count:.0f} frames at {switch}, {100 * fraction:.3f} % of all", f"losses and rates of {links}"


def _quantile(growth: dict[str, float], part: float) -> float:
    """The lateness that at most 1 - part of the frames exceed: between two bounds by the frames beyond each, on the bounds' logarithms. 0 below the
    smallest; twice the largest when all are exceeded more often."""
    allowed = (1 - part) * growth["tx_packets"]
    lower: tuple[float, float] | None = None
    for column, bound in LATE_BOUNDS_S.items():
        beyond = growth[column]
        if beyond <= allowed:
            if lower is None:
                return 0.0
            before, more = lower
            return before * power(bound / before, (more - allowed) / (more - beyond))
        lower = bound, beyond
    return 2 * max(LATE_BOUNDS_S.values())


def _shortest_round_trip(experiment: Experiment) -> float:
    trips = [
        total(p.link.delay_s for way in (paths.there, paths.back) for p in way(experiment, f, receiver))
        for f in experiment.flows
        for receiver in f.all_receivers
    ]
    # Below 1 ms no user-space switch keeps a tenth of it.
    return max(1e-3, min(trips, default=1e-3))


def _of_flows(folder: Path, flows: Sequence[Flow]) -> Iterator[_Finding]:
    for flow in flows:
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

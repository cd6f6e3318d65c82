"""What each scheme is measured by.

Two runs in virtual time over one link of 2 Mb/s with RED, 64 ms and a buffer of 50 packets, measured from 30 to 60 s:

    own       three flows of the scheme, and a fourth that joins after 20 s
    beside    two flows of the scheme, and two of TCP SACK

Each measure becomes a mark from 0 to 1; a score is their weighted mean, times 100. Which weights are right is a matter of what a flow carries.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fairlane import api
from fairlane.api import Result
from fairlane.experiments import kinds
from fairlane.hosts import algorithms
from fairlane.results import series, shares

TCP = "tcp-sack"
BUFFER_PACKETS = 50
DURATION_S = 60.0
NETWORK: dict[str, Any] = {"bottleneck": "2mbit", "rtt": "64ms", "queue": "red", "buffer": str(BUFFER_PACKETS), "start_jitter": "1s"}
_LEFT_OUT = {
    "command": "real programs, on Mininet only",
    "als-layered": "its receivers lie behind different links",
    "on-off": "a source, no scheme",
    "renewal": "a source, no scheme",
    "mpeg4": "a source, no scheme",
}
_FULL_UTILISATION = 0.95
_LOSS_OF_NO_MARK = 0.1


@dataclass(frozen=True)
class Measures:
    """Of one scheme. utilisation: of the link, 0 to 1. jain: over its flows, the late one too. loss: mean over its flows, 0 to 1. queue_packets: mean.
    variation: standard deviation over mean of the rates of its flows by the second, mean over them. beside_tcp: its mean goodput over that of
    the TCP flows beside it."""

    utilisation: float
    jain: float
    loss: float
    queue_packets: float
    variation: float
    beside_tcp: float

    def marks(self) -> dict[str, float]:
        """From 0 to 1, the more the better."""
        x = self.beside_tcp
        return {
            "use": min(1.0, self.utilisation / _FULL_UTILISATION),
            "fairness": self.jain,
            "loss": max(0.0, 1 - self.loss / _LOSS_OF_NO_MARK),
            "delay": max(0.0, 1 - self.queue_packets / BUFFER_PACKETS),
            "smoothness": max(0.0, 1 - self.variation),
            "friendliness": min(x, 1 / x) if x > 0 else 0.0,
        }

    def as_json(self) -> dict[str, float]:
        return asdict(self)


STORE = Path(__file__).with_name("others.json")
MARKS = ("use", "fairness", "loss", "delay", "smoothness", "friendliness")
EVEN = dict.fromkeys(MARKS, 1.0)


def rivals() -> list[str]:
    """Every flow kind of Fairlane's own that adapts or that papers compare with, by name."""
    return [k for k in kinds.names() if k not in _LEFT_OUT and (k not in algorithms.ALGORITHMS or _is_ours(k))]


def _is_ours(algorithm: str) -> bool:
    try:
        return algorithms.file_of(algorithm).startswith("hosts/algorithms/")
    except KeyError:  # a student's, which the grader watches
        return False


def situations(kind: str, seed: int = 1) -> tuple[Result, Result]:
    """The two runs of a scheme: own, beside. Exceptions of its handlers pass through."""
    return (
        api.run("dumbbell", [f"{kind}:3", f"{kind}:1@20s"], duration_s=DURATION_S, seed=seed, **NETWORK),
        api.run("dumbbell", [f"{kind}:2", f"{TCP}:2"], duration_s=DURATION_S, seed=seed, **NETWORK),
    )


def measure(kind: str, own: Result, beside: Result) -> Measures:
    """Of a scheme's two runs."""
    found = own.of_kind(kind)
    rates = list(beside.goodputs_bps.values())
    tcp_bps = sum(rates[2:])
    return Measures(
        utilisation=float(own.bottleneck["utilisation"]),
        jain=float(found["jain_index"]),
        loss=float(found["mean_loss_fraction"]),
        queue_packets=float(own.bottleneck["mean_queue_packets"]),
        variation=_variation(own),
        beside_tcp=float(sum(rates[:2]) / tcp_bps) if tcp_bps > 0 else math.inf,
    )


def _variation(result: Result) -> float:
    start, end = result.summary["window_s"]
    found = []
    for flow in series.flow_columns(result.recorded, shares.ShareTable(result.recorded)):
        rates = flow["goodput_bps"][(flow["time_s"] > start) & (flow["time_s"] <= end)].tolist()
        if len(rates) > 1 and (mean := statistics.fmean(rates)) > 0:
            found.append(statistics.stdev(rates, mean) / mean)
    return statistics.fmean(found) if found else 1.0


def stored() -> dict[str, Measures]:
    """Of all rivals, as `others.json` has them: `python -m fairlane.labs.ranking --store` makes it. Runs are the same on every machine."""
    return {kind: Measures(**values) for kind, values in json.loads(STORE.read_text(encoding="utf-8")).items()}


def score(measures: Measures, weights: Mapping[str, float] = EVEN) -> float:
    """From 0 to 100."""
    marks = measures.marks()
    return 100 * sum(weights[m] * marks[m] for m in MARKS) / sum(weights[m] for m in MARKS)

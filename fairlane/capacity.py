"""The load of real-time runs that this machine can process, as measured by `fairlane doctor --measure`. A larger run prints a warning before it starts.

The measurements are in a file in the user's state folder. Their key identifies the machine: processor, number of processors and kernel.
"""

from __future__ import annotations

import dataclasses
import json
import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlane.experiments import paths
from fairlane.experiments.kinds import AlgorithmSettings, Mpeg4Settings, OnOffSettings, RenewalSettings, is_tcp
from fairlane.experiments.model import Experiment, Flow
from fairlane.fabrics.flows import processes

_ACKS_PER_SEGMENT = 0.5


@dataclass(frozen=True)
class Load:
    """The load of a run on a machine. hops_per_s: packets a second, each counted at every switch that it crosses. flows: pairs of a sender and a receiver."""

    hops_per_s: float
    flows: int


@dataclass(frozen=True)
class Bound:
    """true: the largest value with a true run; invalid: the smallest value with an invalid run, None if there was none. tried: the largest
    value of the measurement."""

    true: float
    invalid: float | None
    tried: float


@dataclass(frozen=True)
class Capacity:
    """measured: the date, ISO 8601. load: the machine's load average when it began."""

    measured: str
    load: float
    hops_per_s: Bound
    flows: Bound


def load_of(experiment: Experiment) -> Load:
    """An estimate: every flow always sends, at its equal share of the slowest link on its path or the rate of its own source."""
    pairs = [(f, paths.there(experiment, f, r)) for f in experiment.flows for r in f.all_receivers]
    crossing: dict[tuple[str, int], int] = {}
    for _, path in pairs:
        for port in path:
            crossing[port.node, port.number] = crossing.get((port.node, port.number), 0) + 1
    hops = 0.0
    for flow, path in pairs:
        share = min(p.link.rate_bps / crossing[p.node, p.number] for p in path)
        packets = min(share, _own_rate_bps(flow)) / (8 * flow.settings.packet_bytes)
        hops += packets * (len(path) - 1) * (1 + (_ACKS_PER_SEGMENT if is_tcp(flow.kind) else 0.0))
    return Load(hops, (processes(experiment) + 1) // 2)


def _own_rate_bps(flow: Flow) -> float:
    settings = flow.settings
    if isinstance(settings, OnOffSettings | RenewalSettings):
        return settings.rate_bps
    if isinstance(settings, AlgorithmSettings):
        return min(settings.maximum_rate_bps, getattr(settings.parameters, "rate_bps", float("inf")))
    # The video of experiments/sources has some hundred kb/s at its own scale.
    return 1e6 * settings.rate_scale if isinstance(settings, Mpeg4Settings) else float("inf")


def mark() -> str:
    """Identifies this machine: measurements of another machine are not valid here."""
    model = platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    return f"{model}, {os.cpu_count()} processors, Linux {platform.release()}"


def file() -> Path:
    """The file of measurements: in XDG_STATE_HOME, or its default."""
    state = os.environ.get("XDG_STATE_HOME", "")
    return (Path(state) if Path(state).is_absolute() else Path.home() / ".local" / "state") / "fairlane" / "capacity.json"


def _all() -> dict[str, dict[str, dict[str, Any]]]:
    try:
        found = json.loads(file().read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def read(target: str) -> Capacity | None:
    """This machine's capacity for a target; None without a measurement."""
    try:
        values = _all()[mark()][target]
        bounds = {name: Bound(**values[name]) for name in ("hops_per_s", "flows")}
        return Capacity(str(values["measured"]), float(values["load"]), **bounds)
    except (KeyError, TypeError, ValueError):
        return None


def write(target: str, capacity: Capacity) -> None:
    """Stores a measurement. OSError if the folder cannot be written."""
    values = _all()
    values.setdefault(mark(), {})[target] = dataclasses.asdict(capacity)
    file().parent.mkdir(parents=True, exist_ok=True)
    new = file().with_suffix(".new")
    new.write_text(json.dumps(values, indent=2) + "\n")
    new.replace(file())


def warnings(experiment: Experiment, target: str) -> list[str]:
    """Warnings about load beyond the measured capacity. Empty without a measurement."""
    capacity = read(target)
    if capacity is None:
        return []
    load = load_of(experiment)
    said = []
    for asked, bound, what in (
        (load.hops_per_s, capacity.hops_per_s, "packets a second through its switches"),
        (load.flows, capacity.flows, "flows"),
    ):
        if asked <= bound.true:
            continue
        up_to = f"this machine kept a run true up to {bound.true:,.0f}" if bound.true else "on this machine no run stayed true"
        beyond = "" if bound.invalid is None or asked < bound.invalid else f", and from {bound.invalid:,.0f} on it was not valid"
        untried = f" (no more than {bound.tried:,.0f} were tried)" if bound.true >= bound.tried else ""
        said.append(
            f"the run has up to {asked:,.0f} {what}; {up_to}{untried}{beyond} (fairlane doctor --measure, {capacity.measured[:10]})."
            " The results will report their accuracy; virtual time has no such limit."
        )
    return said

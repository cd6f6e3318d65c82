"""Facts about a run besides its records, on both fabrics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fairlane.experiments.model import Experiment
from fairlane.fabrics.delay_lines import Precision
from fairlane.fabrics.flows import Timing


@dataclass(frozen=True)
class Event:
    """Something that happened to a run, in a sentence. time_s: Unix time."""

    time_s: float
    what: str


@dataclass
class Outcome:
    """timing: when the flows lived. events: other incidents. round_trips: per pair of hosts, declared and measured. round_trips_after: the
    same once the flows had ended. waiting: of each process the part of the run that it was ready and had no processor, 0 to 1. stolen: the
    part of the processors' time that the host of a virtual machine gave to others. shaping: the choice for the network. delay_lines: their
    precision, where there were any. live_changes: changes made while it ran; changed: the experiment with them, None without changes."""

    timing: Timing
    events: list[Event] = field(default_factory=list)
    round_trips: list[dict[str, Any]] = field(default_factory=list)
    round_trips_after: list[dict[str, Any]] = field(default_factory=list)
    waiting: dict[str, float] = field(default_factory=dict)
    stolen: float = 0.0
    shaping: str = ""
    delay_lines: Precision | None = None
    live_changes: list[dict[str, Any]] = field(default_factory=list)
    changed: Experiment | None = None

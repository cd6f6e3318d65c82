"""What an experiment file says, as plain data. Units are in the names; ranges are checked when the data is made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from topologies.model import Topology

FLOW_KINDS = ("als", "tcp-tahoe", "tcp-reno", "tcp-newreno", "tcp-sack", "tcp-cubic")
FlowKind = Literal["als", "tcp-tahoe", "tcp-reno", "tcp-newreno", "tcp-sack", "tcp-cubic"]


@dataclass(frozen=True)
class Paper:
    """Where the figure stands, and what the paper reports there (shown beside the result)."""

    reference: str
    section: str
    figure: str
    reports: tuple[str, ...] = ()


@dataclass(frozen=True)
class Open:
    """A parameter that the paper leaves open: which value was taken, and why. `effect`: how the result moves with it."""

    parameter: str
    reason: str
    effect: str = ""


@dataclass(frozen=True)
class Control:
    """Of the switches' control plane. utilisation_target: U_l in (0, 1]. interval_s: observation interval, > 0."""

    program: str = "p4src/als.p4"
    utilisation_target: float = 0.9
    interval_s: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.utilisation_target <= 1:
            raise ValueError(f"utilisation_target: must be in (0, 1], got {self.utilisation_target:g}")
        if not self.interval_s > 0:
            raise ValueError(f"interval_s: must be positive, got {self.interval_s:g} s")


@dataclass(frozen=True)
class Als:
    """Of all ALS hosts. packet_bytes: a data packet with its IP header. pacing_jitter: part of the gap between packets by which
    each is moved at random. loss_resolution: what a report's loss is taken from. initial_air_bps: additive increase at the
    start and after a loss. initial_rate_bps: until the first feedback. maximum_rate_bps: R_d that a sender asks for."""

    packet_bytes: int = 1000
    pacing_jitter: float = 0.0
    loss_resolution: Literal["rfc3550", "exact"] = "rfc3550"
    initial_rate_bps: float = 100_000.0
    maximum_rate_bps: float = 10_000_000.0
    initial_air_bps: float = 5_000.0
    adaptation_interval_s: float = 5.0

    def __post_init__(self) -> None:
        if not 56 <= self.packet_bytes <= 1500:
            raise ValueError(f"packet_bytes: 56 to 1500, IP header included, got {self.packet_bytes}")
        if not 0 <= self.pacing_jitter <= 1:
            raise ValueError(f"pacing_jitter: must be in [0, 1], got {self.pacing_jitter:g}")
        for name in ("initial_rate_bps", "maximum_rate_bps", "initial_air_bps", "adaptation_interval_s"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}: must be positive, got {getattr(self, name):g}")


@dataclass(frozen=True)
class Tcp:
    """Of all TCP hosts. packet_bytes: a full segment with its IP header. paper_reno: without SACK, RACK and tail loss probes,
    which the kernel's "reno" has and the papers' has not."""

    packet_bytes: int = 1000
    paper_reno: bool = True

    def __post_init__(self) -> None:
        if not 100 <= self.packet_bytes <= 1500:
            raise ValueError(f"packet_bytes: 100 to 1500, IP header included, got {self.packet_bytes}")


@dataclass(frozen=True)
class FlowGroup:
    """`count` flows of one kind. The first starts at start_s, each later one join_interval_s after the one before.

    hosts: [sender, receiver] of each flow; when left out, the next free pairs of a dumbbell or chain in order.
    """

    name: str
    kind: FlowKind
    count: int = 1
    start_s: float = 0.0
    join_interval_s: float = 0.0
    hosts: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"count: at least 1, got {self.count}")
        for name in ("start_s", "join_interval_s"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name}: must not be negative, got {getattr(self, name):g} s")
        if self.hosts and len(self.hosts) != self.count:
            raise ValueError(f"hosts: {len(self.hosts)} pairs for {self.count} flows")


@dataclass(frozen=True)
class Flow:
    """One flow: from `sender` to `receiver` from start_s to the end of the run."""

    name: str
    kind: FlowKind
    sender: str
    receiver: str
    start_s: float


@dataclass(frozen=True)
class Check:
    """An expected outcome: low <= metric <= high. `paper`: what the paper says of it."""

    name: str
    metric: str
    low: float = float("-inf")
    high: float = float("inf")
    paper: str = ""

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError(f"low: {self.low:g} is above high, {self.high:g}")
        if self.low == float("-inf") and self.high == float("inf"):
            raise ValueError("low: a check without low and high cannot fail")


@dataclass(frozen=True)
class Settings:
    """The keys of an experiment file, before topology and flows are worked out. bottleneck: the output port that the
    report follows, as "s1->s2". window_from: start of the window of all figures, as a fraction of the duration."""

    title: str
    paper: Paper
    bottleneck: str
    topology: dict[str, Any]
    flows: tuple[FlowGroup, ...]
    checks: tuple[Check, ...] = ()
    open: tuple[Open, ...] = ()
    inherits: str = ""
    duration_s: float = 60.0
    seed: int = 1
    window_from: float = 0.5
    control: Control = field(default_factory=Control)
    als: Als = field(default_factory=Als)
    tcp: Tcp = field(default_factory=Tcp)

    def __post_init__(self) -> None:
        if not self.duration_s > 0:
            raise ValueError(f"duration_s: must be positive, got {self.duration_s:g} s")
        if not 0 <= self.window_from < 1:
            raise ValueError(f"window_from: must be in [0, 1), got {self.window_from:g}")
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed: must be in 0 to 2^32 - 1, got {self.seed}")


@dataclass(frozen=True)
class Experiment:
    """Everything a run needs to know. id: the file's name. bottleneck: switch and its output port number."""

    id: str
    settings: Settings
    topology: Topology
    flows: tuple[Flow, ...]
    bottleneck: tuple[str, int]
    duration_s: float
    seed: int

    @property
    def window_s(self) -> tuple[float, float]:
        return self.settings.window_from * self.duration_s, self.duration_s

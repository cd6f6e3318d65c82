"""What sender and receiver sessions share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from hosts.algorithms.base import CancelTimer, Note, SetTimer
from hosts.session.stream import DataStream

Recorder = Callable[..., None]
"""Writes a record: kind, time, fields by name."""


class Rng(Protocol):
    """A seeded generator; `random.Random` fits."""

    def random(self) -> float: ...

    def getrandbits(self, bits: int, /) -> int: ...


@dataclass(frozen=True, slots=True)
class Options:
    """What a flow end is told by its command line (`hosts.agent`)."""

    algorithm: str
    local: str
    peer: str
    """Of a layered sender: unused."""
    port: int
    """Even; RTCP uses the next."""
    packet_bytes: int
    """IPv4 datagram, headers included."""
    max_rate_bps: float
    """Also the session bandwidth of RFC 3550 section 6.2."""
    ssrc: int
    seed: int
    start_unix_s: float | None
    stop_unix_s: float | None
    pacing_jitter: float
    exact_loss: bool
    """Losses from cumulative counts, instead of the 8-bit fraction of the report."""
    log: str


@dataclass(slots=True)
class Outbox:
    """What is to be sent as soon as a session has returned, besides data."""

    direct: list[bytes] = field(default_factory=list)
    """To the peer's data port: acknowledgements, reports."""
    control: list[bytes] = field(default_factory=list)
    """To the peer's RTCP port, or to that of `control_group`."""
    control_group: int = 0
    """IPv4 group address; 0 = the peer."""
    reflected: list[bytes] = field(default_factory=list)
    """To the RTCP port of `control_group`, as plain datagrams: receivers' reports, for the other receivers."""
    membership: tuple[int, ...] | None = None
    """Be a member of exactly these groups. `None`: no change."""


class Session(Protocol):
    """One end of a flow."""

    outbox: Outbox

    def start(self, now: float) -> None:
        """Once, before all else."""

    def wake(self, now: float) -> None:
        """Do what is due."""

    def next_s(self) -> float:
        """When `wake` or `next_packet` has something to do."""

    def next_packet(self, now: float) -> DataStream | None:
        """The stream whose `packet` is to be sent now; it holds until `departed` or `refused` is called."""

    def departed(self, now: float, stream: DataStream) -> None:
        """That packet was sent."""

    def refused(self, now: float, stream: DataStream) -> None:
        """That packet could not be sent; its number is used by the next."""

    def on_direct(self, now: float, buffer: bytearray, size: int, group: int) -> None:
        """`size` bytes came to the data port, for a group's address or 0."""

    def on_control(self, now: float, payload: bytes) -> None:
        """A datagram came to the RTCP port."""

    def finish(self, now: float) -> None:
        """The flow end stops, and says BYE. In an RTP session of more than 50 members BYE may have to wait (RFC 3550 section 6.3.7):
        `wake` sends it, and `next_s` is infinite when there is nothing left to do."""

    def totals(self) -> dict[str, Any]:
        """For the `end` record."""


class Timers:
    """An algorithm's timers, by name: a handful at most."""

    def __init__(self) -> None:
        self._pending: dict[str, float] = {}

    def next_s(self) -> float:
        return min(self._pending.values(), default=float("inf"))

    def due(self, now: float) -> list[str]:
        """Names of timers that have come due, earliest first; they are no longer pending. A timer that a handler sets to a time
        which has passed is due at the next call: other work comes in between."""
        if now < self.next_s():
            return []
        names = [name for _, name in sorted((at, name) for name, at in self._pending.items() if at <= now)]
        for name in names:
            del self._pending[name]
        return names

    def take(self, action: object) -> bool:
        """Carries out `SetTimer` and `CancelTimer`; whether it was one."""
        match action:
            case SetTimer(name, at_s):
                self._pending[name] = at_s
            case CancelTimer(name):
                self._pending.pop(name, None)
            case _:
                return False
        return True


def carry_out(now: float, actions: Iterable[object], timers: Timers, record: Recorder, own: Callable[[float, object], bool], who: str) -> None:
    """What an algorithm asks for. `own`: does what is particular to one half, whether it could. Raises `TypeError` for an action
    that belongs to the other half."""
    for action in actions:
        if isinstance(action, Note):
            record(action.kind, now, **dict(action.values))
        elif not timers.take(action) and not own(now, action):
            raise TypeError(f"{who} asks for {type(action).__name__}, which is not for its half of a flow of this kind")


def dotted(address: int) -> str:
    """An IPv4 address as people write it."""
    return ".".join(map(str, address.to_bytes(4)))

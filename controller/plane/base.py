"""The class of a control plane of one's own: events in, calls out. docs/own-program.md is the path to one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from fairlane.controller.plane.calls import Switch
from fairlane.controller.plane.names import Entry
from fairlane.controller.plane.network import Host, Port


@dataclass(frozen=True)
class Digest:
    """A message of a P4 program's `digest`. name: of the digest. values: the struct's members by name; a single value is called "value"."""

    name: str
    values: Mapping[str, int]


@dataclass(frozen=True)
class PacketIn:
    """A frame that a P4 program sent to the CPU port. payload: without the header "packet_in", whose fields are `fields`."""

    payload: bytes
    fields: Mapping[str, int] = field(default_factory=dict)


class ControlPlane:
    """All switches of a run have one control plane. A file has one class that is based on this; it is made without arguments.

    Events may be plain methods, or `async` where they await answers of switches; other events may come in the meantime. There is one thread, one
    clock and no waiting but for switches: no sleep, no sockets. So a run in virtual time repeats to the byte. An exception ends the run with file and line.
    """

    interval_s: ClassVar[float | None] = None
    """Between two calls of `on_interval`, above 0. None: the experiment's `[control] interval_s`, 1 s by default."""

    # The run sets these before the first event.
    switches: Mapping[str, Switch]
    """By name, in the topology's order."""
    hosts: Mapping[str, Host]
    """By name."""
    _clock: Callable[[], float]
    _keep: Callable[[Mapping[str, object]], None]

    @property
    def now_s(self) -> float:
        """Seconds: of virtual time since its zero, or Unix time."""
        return self._clock()

    def record(self, **fields: object) -> None:
        """A line of raw/control.jsonl: the fields, which JSON can have, after the time as `t`."""
        self._keep(fields)

    def on_start(self, switch: Switch) -> Awaitable[None] | None:
        """A switch has the P4 program, and no entries: at the beginning, and after a restart."""

    def on_interval(self) -> Awaitable[None] | None:
        """An interval has ended: at whole multiples of its length of the clock, once all switches have started."""

    def on_digest(self, switch: Switch, digest: Digest) -> Awaitable[None] | None:
        """A class that has this method gets all digests of the program, at most 10 ms late."""

    def on_packet_in(self, switch: Switch, packet: PacketIn) -> Awaitable[None] | None:
        """The program sent a frame to the CPU port, 510."""

    def on_port_change(self, switch: Switch, port: Port) -> Awaitable[None] | None:
        """A port's link has another rate from now on; `switch.ports` has it, too. The rate of a link that follows a trace is each interval's mean, at its end."""

    def on_idle_timeout(self, switch: Switch, entry: Entry) -> Awaitable[None] | None:
        """No packet has matched an entry for its `idle_timeout_s`. The entry is still there; `entry` has its action and values, too."""


EVENTS = tuple(name for name in vars(ControlPlane) if name.startswith("on_"))

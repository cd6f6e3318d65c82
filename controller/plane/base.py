"""The class of a control plane of one's own: events in, calls out. docs/own-program.md is the path to one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from fairlane.controller.plane.calls import Switch
from fairlane.controller.plane.names import Entry, Names
from fairlane.controller.plane.network import Host, Port


@dataclass(frozen=True)
class Digest:
    """A message of a P4 program's `digest`. name: of the digest. values: the struct's members by name; a single value is called "value"."""

    name: str
    values: Mapping[str, int]


@dataclass(frozen=True)
class DigestList:
    """Messages of a P4 program's `digest` that came together. name: of the digest. members: of its struct. rows: of each message, the members' values."""

    name: str
    members: tuple[str, ...]
    rows: Sequence[Sequence[int]]


@dataclass(frozen=True)
class PacketIn:
    """A frame that a P4 program sent to the CPU port. payload: without the header "packet_in", whose fields are `fields`."""

    payload: bytes
    fields: Mapping[str, int] = field(default_factory=dict)


class ControlPlane:
    """All switches of a run have one control plane. A file has one class that is based on this; it is made without arguments.

    Events may be plain methods, or `async` where they await answers of switches; other events may come in the meantime. There is one thread, one
    clock and no waiting but for switches and `until`: no sleep, no sockets. So a run in virtual time repeats to the byte. An exception ends the run with file and line.
    """

    interval_s: ClassVar[float | None] = None
    """Between two calls of `on_interval`, above 0. None: the experiment's `[control] interval_s`, 1 s by default."""

    takes_over: ClassVar[bool] = False
    """Whether it serves switches one by one, for good: a switch that runs this program already keeps it and gets `on_resume`; an entry that is there is changed
    where it is to be inserted, and inserted where it is to be changed; a switch that refuses a call is connected anew; `on_interval` comes
    although some switches have not started (`Switch.started`)."""

    # The run sets these before the first event.
    switches: Mapping[str, Switch]
    """By name, in the topology's order."""
    hosts: Mapping[str, Host]
    """By name."""
    _interval: tuple[int, float]
    """Number and length of the interval that began last: it began at that multiple of this, in seconds."""
    _clock: Callable[[], float]
    _keep: Callable[[Mapping[str, object]], None]
    _keep_rows: Callable[[Sequence[Any]], None]
    _report: Callable[[str, Mapping[str, object]], None]
    _timer: Callable[[float], Awaitable[None]]
    _start: Callable[[Coroutine[Any, Any, None]], None]

    @property
    def now_s(self) -> float:
        """Seconds: of virtual time since its zero, or Unix time."""
        return self._clock()

    def record(self, **fields: object) -> None:
        """A line of raw/control.jsonl: the fields, which JSON can have, after the time as `t`."""
        self._keep(fields)

    def until(self, time_s: float) -> Awaitable[None]:
        """To await a time, on the clock of `now_s`."""
        return self._timer(time_s)

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Begins it at once; it goes on beside other events. It ends where a switch is lost that it awaits."""
        self._start(coroutine)

    def _begin(self, names: Names) -> Mapping[type, str]:
        """Comes before all events, once the run has set its attributes. Kinds of records beside `record`, dataclasses, and the CSV file in raw/ of each."""
        return {}

    def _check_rate(self, switch: str, port: int, rate_bps: int) -> None:
        """ValueError: a port cannot have this rate. It is asked before somebody changes a link by hand."""

    def on_start(self, switch: Switch) -> Awaitable[None] | None:
        """A switch has the P4 program, and no entries: at the beginning, and after a restart."""

    def on_resume(self, switch: Switch) -> Awaitable[None] | None:
        """In place of `on_start` where the class `takes_over`: a switch has the P4 program, and what it had when it was last connected."""

    def on_lost(self, switch: Switch) -> Awaitable[None] | None:
        """A switch no longer answers. `on_start` or `on_resume` follows when it does."""

    def on_interval(self) -> Awaitable[None] | None:
        """An interval has ended: at whole multiples of its length of the clock, once all switches have started."""

    def on_digest(self, switch: Switch, digest: Digest) -> Awaitable[None] | None:
        """A class that has this method gets all digests of the program, at most 10 ms late."""

    def on_digest_list(self, switch: Switch, digests: DigestList) -> Awaitable[None] | None:
        """As `on_digest`, for all that came together, where many come."""

    def on_packet_in(self, switch: Switch, packet: PacketIn) -> Awaitable[None] | None:
        """The program sent a frame to the CPU port, 510."""

    def on_port_change(self, switch: Switch, port: Port) -> Awaitable[None] | None:
        """A port's link has another rate from now on, or has failed or works again, which is known `[control] reroute_s` later; `switch.ports` has it, too. The rate of a link that follows a trace is each interval's mean, at its end."""

    def on_idle_timeout(self, switch: Switch, entry: Entry) -> Awaitable[None] | None:
        """No packet has matched an entry for its `idle_timeout_s`. The entry is still there; `entry` has its action and values, too."""


def events(kind: type[ControlPlane]) -> tuple[str, ...]:
    """Of a class: those that the controller's own classes have which it is based on."""
    own = (one for one in kind.__mro__ if one.__module__.startswith("fairlane.controller."))
    return tuple(dict.fromkeys(name for one in own for name in vars(one) if name.startswith("on_")))

"""What the `scheme.py` of a scheme's folder is written with: parameters, table entries, counters, and their description.

All of it is plain data. The control plane reads `Parameters.entries`, records and results read `Scheme.counters`, the P4 program is put
together from `Scheme.controls`.
"""

from __future__ import annotations

import dataclasses
import keyword
import math
import re
import sys
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

MAX_DELAY_S = 1000.0
"""The longest time that switches and links count with, in seconds."""

PLACES = ("entry", "offered", "arrival", "copy", "departure", "after", "sent")
"""Where `als.p4` applies schemes' controls (p4src/schemes/README.md), in the order in which a packet meets them."""
INGRESS_PLACES = ("entry", "offered", "arrival")
INGRESS, EGRESS = "AlsIngress", "AlsEgress"
"""The controls of als.p4 that tables and counters are named after."""


def parameter(default: Any, low: float, high: float, unit: str = "") -> Any:
    """A field of `Parameters` with its range, both ends included. unit: "s", "packets", "per second"; "" for a number without one."""
    return dataclasses.field(default=default, metadata={"low": low, "high": high, "unit": unit})


@dataclass(frozen=True)
class Entry:
    """An entry of a table: of a port, whose key is the port's number, or with `keys` of its own. table: its full name, "AlsIngress.NAME.TABLE". action: its name in the same control.
    values: the action's parameters. key_name: of the field that has the port's number; "": egress_spec in ingress, egress_port in egress."""

    table: str
    action: str
    values: Mapping[str, int] = dataclasses.field(default_factory=dict)
    key_name: str = ""
    keys: Mapping[str, int] | None = None

    @cached_property
    def key(self) -> str:
        """The field that has the port's number there."""
        return self.key_name or f"standard_metadata.{'egress_spec' if self.table.startswith(f'{INGRESS}.') else 'egress_port'}"

    @cached_property
    def action_name(self) -> str:
        """The action's full name."""
        return f"{self.table.rpartition('.')[0]}.{self.action}"


@dataclass(frozen=True)
class Counter:
    """Counters of the P4 program whose sum is one column of raw/controller.csv.

    column: "aqm_drops", "marks", or one of the scheme's own. names: the counters' full names; each counts packets and bytes by port. cause: of
    drops, their name in results ("drop_CAUSE" of links.csv); "" where the column counts no drops. load: whether the bytes count as load of the port
    in U, though they are not sent. queue: where the column is a part of "marks", the priority of the queue that it belongs to. reports:
    "overload" where growth means that the port is in overload [RFC 9332 sec 2.5.2.3]. macro: where it is not "", only a program that is compiled
    with this macro has the counters. label: of the cause on the live page; "": the cause.
    """

    column: str
    names: tuple[str, ...]
    cause: str = ""
    load: bool = False
    queue: int | None = None
    reports: str = ""
    macro: str = ""
    label: str = ""


@dataclass(frozen=True)
class DataHeader:
    """The header that a scheme reads and writes in flows' data packets, an RTP header extension (docs/own-header.md).

    member: its P4 type, of the file NAME_header.p4, and its name in `headers_t`: "rate_t rate". profile: the number that the extension begins with.
    words: of 32 bits, that follow its first word, with all hops. hops: the same of a header stack behind it, whose elements switches push to the front;
    most_hops: its size.
    """

    member: str
    profile: int
    words: int
    hops: str = ""
    most_hops: int = 0

    def __post_init__(self) -> None:
        for name, text in (("member", self.member), ("hops", self.hops)):
            if not re.fullmatch(r"[A-Za-z_]\w* [A-Za-z_]\w*", text) and (text or name == "member"):
                raise ValueError(f"header: {name}: write a P4 type and a name, as in 'rate_t rate', got {text!r}")
        for name, value, low, high in (
            ("profile", self.profile, 0, 0xFFFF),
            ("words", self.words, 0, 127),
            ("most_hops", self.most_hops, 0, 64),
        ):
            if not low <= value <= high:
                raise ValueError(f"header: {name}: from {low} to {high}, got {value}")
        if bool(self.hops) != bool(self.most_hops):
            raise ValueError("header: hops and most_hops: give both or none")

    @property
    def type(self) -> str:
        """Of P4."""
        return self.member.split()[0]

    @property
    def name(self) -> str:
        """In `headers_t`."""
        return self.member.split()[1]


@dataclass(frozen=True)
class Scheduler:
    """Which of a port's two queues sends next: by weights (`weight`:1 for the more urgent), or the more urgent unless the other has waited `shift_s`
    longer. One of both is given."""

    weight: int | None = None
    shift_s: float | None = None


@dataclass(frozen=True)
class Average:
    """A moving average of the queue by which a scheme decides, for pictures: title, of what. register: of the P4 program, by port, in packets x scale.
    weight: of an arrival, in (0, 1); mean_packet_bytes: of arrivals. The probability of a drop is 0 below minimum (packets), `most` just below
    maximum, and 1 from there on."""

    title: str
    register: str
    scale: int
    weight: float
    mean_packet_bytes: float
    minimum: float
    maximum: float
    most: float

    def probability(self, packets: float) -> float:
        """At an average of so many packets."""
        if packets >= self.maximum:
            return 1.0
        return max(0.0, self.most * (packets - self.minimum) / (self.maximum - self.minimum))


class Parameters:
    """Base of a scheme's parameters: a frozen dataclass whose fields are the keys of an experiment's file.

    Ranges that `parameter` gives are checked here; a scheme's own `__post_init__` calls this one. A field or class variable `ecn` says whether
    packets of an ECN-capable transport are marked instead of dropped; a scheme without it marks nothing.
    """

    scheme: ClassVar[Scheme]
    """The description, set when the scheme is loaded."""
    priorities: ClassVar[int] = 1
    """Queues of each port, the highest the most urgent."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(typing.cast(Any, self)):
            value, limits = getattr(self, field.name), field.metadata
            if "low" in limits and value is not None and not limits["low"] <= value <= limits["high"]:
                unit = f" {limits['unit']}" if limits["unit"] else ""
                given = unit if limits["unit"] in ("s", "packets", "bytes") else ""
                raise ValueError(f"{field.name}: {range_text(limits)}, got {value:g}{given}")

    @property
    def marks(self) -> bool:
        """Whether it marks packets by ECN."""
        return bool(getattr(self, "ecn", False))

    @property
    def macros(self) -> tuple[str, ...]:
        """Macros that the P4 program is compiled with."""
        return ()

    @property
    def scheduling(self) -> Scheduler | None:
        """Of a port with several queues; None: strict priority."""
        return None

    def average(self, queue_packets: int) -> Average | None:
        """The average by which it decides, with a buffer of so many packets; None: there is none."""
        return None

    def of_port(self, queue_packets: int) -> Any:
        """The same for a port whose queue holds so many packets, as the controller's configuration has it: an object of `Scheme.settings`. ValueError
        when the P4 program's numbers cannot hold it."""
        return self

    def entries(self, rate_bps: float) -> Iterable[Entry]:
        """The table entries of a port that sends at this rate (bit/s)."""
        return ()


@dataclass(frozen=True)
class Column:
    """A column of raw/controller.csv that a control loop writes. total: it grows with the switch's counters, and begins at 0 again where the switch is restarted.
    cause: where it counts drops, their name in results ("drop_CAUSE" of links.csv)."""

    name: str
    total: bool = False
    cause: str = ""


@dataclass(frozen=True)
class PortInterval:
    """What the controller has seen of a port in an observation interval. rate_bps: of its link, in bit/s. utilisation_target: U_l, in (0, 1]. connections:
    n_conn. utilisation_ppm: U in parts per million; above 1,000,000 in overload. elapsed_s: between the two readings of the counters, 0 before there are two.
    grown_bytes: by which each of `PortLoop.counters` has grown."""

    rate_bps: float
    utilisation_target: float
    connections: int
    utilisation_ppm: int
    elapsed_s: float
    grown_bytes: Mapping[str, int]


class PortLoop:
    """Base of a scheme's control loop at one port: what table entries say follows from what the port carried, interval by interval.

    The controller makes one for each port that has the scheme, calls `close` as an observation interval ends, and then writes `values` into the `tables`.
    """

    tables: ClassVar[tuple[Entry, ...]] = ()
    """The entries that it keeps, whose values are those of `values`."""
    counters: ClassVar[tuple[str, ...]] = ()
    """Counters of the P4 program, by port, that it follows: full names."""
    columns: ClassVar[tuple[Column, ...]] = ()
    """Its columns of raw/controller.csv, in programs with its tables."""

    def __init__(self, settings: Any, rate_bps: float, utilisation_target: float) -> None:
        """settings: the scheme's parameters at the port (`Scheme.settings`); None where every port has the scheme. rate_bps: of the port's link, in
        bit/s. utilisation_target: U_l, in (0, 1]."""

    def close(self, seen: PortInterval) -> None:
        """An interval has ended."""

    def values(self) -> Mapping[str, int]:
        """The parameters of the tables' actions from now on."""
        return {}

    def recorded(self, totals: Mapping[str, tuple[int, int]]) -> Mapping[str, int]:
        """Of the interval, the values of its `columns`. totals: packets and bytes of each of `counters` since the switch started."""
        return {}


def range_text(limits: Mapping[str, Any]) -> str:
    """Of a field's metadata: "from 0.001 to 1 s"; "" where it has no range."""
    if "low" not in limits:
        return ""
    end = "" if limits["high"] == math.inf else f" to {number(limits['high'])}"
    return f"from {number(limits['low'])}{end}" + (f" {limits['unit']}" if limits["unit"] else "")


def number(value: float) -> str:
    """As people write it: 1e-5, 0.001, 1000."""
    if isinstance(value, int):
        return str(value)
    return re.sub(r"e([+-])0*", lambda found: f"e{found[1].replace('+', '')}", f"{value:g}")


def check_choice(name: str, given: str, known: tuple[str, ...]) -> None:
    """ValueError for a word that is none of those known."""
    if given not in known:
        raise ValueError(f"{name}: give {' or '.join(map(repr, known))}, got {given!r}")


def microseconds(seconds: float) -> int:
    """To the nearest."""
    return round(seconds * 1e6)


@dataclass(frozen=True)
class Scheme:
    """The description of a scheme.

    name: of its folder, of its P4 file, of its table in experiments' files, and of --queue. title: as messages call it. parameters: its class.
    controls: by place (`PLACES`), a control of its P4 file and the name of its instance, as in "MyArrival mine"; the instance's name is part of
    the full names of its tables and counters. settings: the class of `Parameters.of_port`. needs: schemes that a program of a user's own, which
    chooses by macros, must choose as well. order: its place in lists, before names. standing: whether every program has it, and every record its
    columns; of_every_port: of a standing scheme, entries of each port at a rate (bit/s), whether its link has the scheme or not.
    everywhere: it is no queue management of a link, but at every port, where a flow's algorithm asks for it (`Interests.scheme`), or the key `asked_by` of
    the table [control] is true; its parameters are under its name in that table. macro_name: the macro by which programs of before choose it; "": as `macro` says. header: what it reads and writes in data packets.
    of_source: the entry that each switch has for a host: its IP address as a number, and the port where its packets come in. loop: its control loop,
    at each port that has the scheme.
    queue_register: of a standing scheme, the register with each port's waiting packets, which is read of switches that do not report them.
    """

    name: str
    title: str
    parameters: type[Parameters]
    controls: Mapping[str, str]
    counters: tuple[Counter, ...] = ()
    settings: Any = None
    needs: tuple[str, ...] = ()
    order: int = 100
    standing: bool = False
    everywhere: bool = False
    asked_by: str = ""
    macro_name: str = ""
    header: DataHeader | None = None
    queue_register: str = ""
    of_every_port: Callable[[float], Iterable[Entry]] = lambda rate_bps: ()
    of_source: Callable[[int, int], Entry] | None = None
    loop: type[PortLoop] | None = None

    def __post_init__(self) -> None:
        if self.settings is None:
            object.__setattr__(self, "settings", self.parameters)
        for kind in {self.parameters, self.settings}:
            other = vars(kind).get("scheme")
            if other is not None and other.name != self.name:
                raise ValueError(
                    f"parameters: {kind.__name__} is the class of the scheme {other.name!r}: write a class of your own, based on it"
                )
            kind.scheme = self
        if not re.fullmatch(r"[a-z][a-z0-9_-]*", self.name):
            raise ValueError(f"name: use lower-case letters, digits, '_' and '-', got {self.name!r}")
        for place, control in self.controls.items():
            if place not in PLACES:
                raise ValueError(f"controls: no place {place!r}; there are {', '.join(PLACES)}")
            if not re.fullmatch(r"[A-Za-z_]\w* [A-Za-z_]\w*", control):
                raise ValueError(f"controls: {place}: write a control and its instance, as in 'MyArrival mine', got {control!r}")
        for counter in self.counters:
            if not re.fullmatch(r"[a-z][a-z0-9_]*", counter.column) or keyword.iskeyword(counter.column):
                raise ValueError(f"counters: column {counter.column!r}: use lower-case letters, digits and '_', and no word of Python")

    @cached_property
    def folder(self) -> Path:
        """Where it is."""
        return Path(str(sys.modules[self.parameters.__module__].__file__)).parent

    @property
    def file(self) -> Path:
        """Its P4 file, which may include others."""
        return self.folder / f"{self.name}.p4"

    @property
    def header_file(self) -> Path:
        """The P4 file with the types of its `header`."""
        return self.folder / f"{self.name}_header.p4"

    @property
    def algorithm_file(self) -> Path:
        """The Python file with flow kinds for it, where it has any: sender and receiver."""
        return self.folder / f"{self.name}.py"

    @property
    def macro(self) -> str:
        """The macro by which a program of a user's own may choose it."""
        return self.macro_name or self.name.upper().replace("-", "_")

    @property
    def keys(self) -> list[str]:
        """The names of its parameters."""
        return [field.name for field in dataclasses.fields(typing.cast(Any, self.parameters))]

    @property
    def can_mark(self) -> bool:
        """Whether its packets may be marked, with the right parameters."""
        return hasattr(self.parameters, "ecn")

    @property
    def always_marks(self) -> bool:
        return self.can_mark and "ecn" not in self.keys

    @property
    def counter_names(self) -> tuple[str, ...]:
        return tuple(name for counter in self.counters for name in counter.names)

    def of_options(self, packet_bytes: int, ecn: bool) -> Parameters:
        """The defaults, for packets of this size, which mark if `ecn` and they can."""
        given = {"mean_packet_bytes": packet_bytes, "ecn": ecn}
        return self.parameters(**{key: value for key, value in given.items() if key in self.keys})

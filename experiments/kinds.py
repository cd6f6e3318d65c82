"""Flow kinds and the settings of each: rate-adaptation algorithms, versions of TCP, plain sources.

An experiment sets a kind's values in a table with its name, and a group's values in `parameters` of that group:

    [rap]                                   [[flows]]
    packet_bytes = 100                      name = "slow"
    initial_rate_bps = 40_000.0             kind = "rap"
                                            parameters = { srtt_gain = 0.5 }

`[tcp]` applies to every kind of TCP; tables of one kind, such as `[tcp-sack]`, override it. An algorithm's keys are the fields of its parameters
dataclass and of `HostOptions`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from fairlane.experiments import commands
from fairlane.experiments.commands import CommandSettings
from fairlane.hosts import algorithms, own_algorithms
from fairlane.hosts.algorithms.base import Kind
from fairlane.hosts.arguments import MAX_PACKET_BYTES, MIN_PACKET_BYTES
from fairlane.hosts.circuit_breaker import CircuitBreaker
from fairlane.hosts.records import headers_bytes
from fairlane.hosts.sources import Source, check_gaps, check_positive, check_shape
from fairlane.inputs import schema
from fairlane.inputs.located_toml import ConfigError, Document, KeyPath

own_algorithms.load_listed()


def _check_packet_bytes(packet_bytes: int, least: int = MIN_PACKET_BYTES) -> None:
    if not least <= packet_bytes <= MAX_PACKET_BYTES:
        raise ValueError(f"packet_bytes: must be {least} to {MAX_PACKET_BYTES} bytes, IP header included, got {packet_bytes} bytes")


FEEDBACK_INTERVALS_S = (0.01, 2.0)
"""Shortest and longest time between reports. A report's offsets end at 8 s, and each packet stands in two [RFC 8888 sec 3.1]."""


@dataclass(frozen=True)
class HostOptions:
    """Options of every algorithm's host process. packet_bytes: a data packet with its IP header. maximum_rate_bps: no rate goes
    above it, ALS asks for it; None: the rate of the sender's link. pacing_jitter: part of the gap between packets by which each is
    moved at random. loss_resolution: the source of a report's loss. feedback: of an algorithm that uses each packet's arrival, whether
    each packet has an acknowledgement of its own, or many are reported together in RTCP (RFC 8888), each feedback_interval_s. source: the
    application that produces the data; the default always has more to send. circuit_breaker: when the flow must cease."""

    packet_bytes: int = 1000
    maximum_rate_bps: float | None = None
    pacing_jitter: float = 0.0
    loss_resolution: Literal["rfc3550", "exact"] = "rfc3550"
    feedback: Literal["per-packet", "rfc8888"] = "per-packet"
    feedback_interval_s: float = 0.1
    source: Source = field(default_factory=Source)
    circuit_breaker: CircuitBreaker = field(default_factory=CircuitBreaker)

    def __post_init__(self) -> None:
        _check_packet_bytes(self.packet_bytes)
        check_positive(self, "maximum_rate_bps")
        if not 0 <= self.pacing_jitter <= 1:
            raise ValueError(f"pacing_jitter: must be in [0, 1], got {self.pacing_jitter:g}")
        low_s, high_s = FEEDBACK_INTERVALS_S
        if not low_s <= self.feedback_interval_s <= high_s:
            raise ValueError(f"feedback_interval_s: must be {low_s:g} to {high_s:g} s, got {self.feedback_interval_s:g} s")


@dataclass(frozen=True)
class AlgorithmSettings:
    """Settings of one flow. maximum_rate_bps: as in `HostOptions`, computed. report_interval_s: feedback_interval_s, where packets are reported
    together. parameters: the algorithm's dataclass. given: those fields of it that differ from the dataclass' own defaults because the
    experiment or the fabric set them."""

    packet_bytes: int
    maximum_rate_bps: float
    pacing_jitter: float
    loss_resolution: str
    source: Source
    circuit_breaker: CircuitBreaker
    parameters: Any
    given: dict[str, Any]
    report_interval_s: float | None = None


ON_KERNEL = frozenset({"packet_bytes", "paper_reno", "timestamps", "delayed_ack", "min_rto_s", "ecn", "file_bytes"})


TCP_PROFILES: dict[str, dict[str, Any]] = {
    "rfc": {},
    # 4.4BSD's TCP in W. R. Stevens, "TCP/IP Illustrated, Volume 1", 1994, chapters 20 and 21.
    "stevens-1994": {
        "initial_window_packets": 1,
        "delayed_ack": False,
        "limited_transmit": False,
        "timestamps": False,
        "byte_counting": False,
        "reduction_base": "window",
        "avoid_multiple_fast_retransmits": False,
        "hold_ssthresh": False,
        "rtt_estimator": "ticks",
        "timer_granularity_s": 0.5,
        "initial_rto_s": 6.0,
        "min_rto_s": 1.0,
        "max_rto_s": 64.0,
    },
    # The simulator of K. Fall and S. Floyd, "Simulation-based Comparisons of Tahoe, Reno, and SACK TCP", 1996, which became ns-2.
    "fall-floyd-1996": {
        "sack_recovery": "sack1",
        "initial_window_packets": 1,
        "delayed_ack": False,
        "limited_transmit": False,
        "timestamps": False,
        "byte_counting": False,
        "reduction_base": "window",
        "hold_ssthresh": False,
        "handshake": False,
        "rtt_estimator": "ticks",
        "timer_granularity_s": 0.1,
        "initial_rto_s": 6.0,
        "min_rto_s": 0.2,
        "max_rto_s": 64.0,
    },
}
"""TCP of a paper's year: what holds for a key that no table sets. docs/tcp-profiles.md has the source of each value."""


MAX_TIME_S = 1e6
"""The longest of TCP's times, seconds: the network counts nanoseconds in 64 bits."""
MAX_WINDOW_PACKETS = 1e9
"""The largest of TCP's windows, in full segments."""
_TIMES = ("delayed_ack_timeout_s", "timer_granularity_s", "initial_rto_s", "min_rto_s", "max_rto_s")
_WINDOWS = ("max_window_packets", "initial_window_packets", "initial_ssthresh_packets")


@dataclass(frozen=True)
class TcpSettings:
    """profile: of `TCP_PROFILES`. packet_bytes: a full segment with its IP header. paper_reno: without RACK and tail loss probes, and as
    tcp-reno without SACK, which the kernel's "reno" has and the papers' has not. max_window_packets: bound of congestion and advertised
    window, in full segments. None: what the flavour's standard says. sending_jitter_s: segments leave their host later than TCP sends them,
    by a time drawn from 0 to this. loss_detection: `dupack` or, of kinds with selective acknowledgements, `rack` (RFC 8985). ecn: marks count
    as congestion (RFC 3168); tcp-dctcp and tcp-prague need no such key, tcp-bbr knows no marks. abe: with ecn, a mark reduces the window by
    less than a loss (RFC 8511).
    file_bytes: the flow ends when so many bytes are delivered; None: it always has more to send. `ON_KERNEL` names what a kernel's TCP can be given, too; all else is in virtual time only."""

    profile: Literal["rfc", "stevens-1994", "fall-floyd-1996"] = "rfc"
    packet_bytes: int = 1000
    paper_reno: bool = True
    max_window_packets: float | None = None
    initial_window_packets: int | None = None
    initial_ssthresh_packets: float | None = None
    delayed_ack: bool | None = None
    delayed_ack_timeout_s: float | None = None
    timer_granularity_s: float | None = None
    initial_rto_s: float | None = None
    min_rto_s: float | None = None
    max_rto_s: float | None = None
    limited_transmit: bool | None = None
    timestamps: bool = True
    handshake: bool | None = None
    reduction_base: Literal["flight-size", "window", "window-segments"] | None = None
    byte_counting: bool | None = None
    reno_friendliness: Literal["rfc9438", "linux26"] | None = None
    sack_recovery: Literal["rfc6675", "sack1"] | None = None
    loss_detection: Literal["dupack", "rack"] | None = None
    rtt_estimator: Literal["linux", "rfc6298", "ticks"] = "linux"
    avoid_multiple_fast_retransmits: bool | None = None
    hold_ssthresh: bool | None = None
    sending_jitter_s: float = 0.0
    ecn: bool = False
    abe: bool = False
    file_bytes: int | None = None

    @classmethod
    def of(cls, values: dict[str, Any]) -> TcpSettings:
        """The keys that are set, over those of their profile."""
        return cls(**{**TCP_PROFILES[values.get("profile", "rfc")], **values})

    def __post_init__(self) -> None:
        _check_packet_bytes(self.packet_bytes, 100)
        check_positive(
            self,
            *_WINDOWS,
            *_TIMES,
            "file_bytes",
        )
        if not 0 <= self.sending_jitter_s < float("inf"):
            raise ValueError(f"sending_jitter_s: must not be negative, got {self.sending_jitter_s:g} s")
        for most, unit, names in ((MAX_TIME_S, " s", ("sending_jitter_s", *_TIMES)), (MAX_WINDOW_PACKETS, " packets", _WINDOWS)):
            for name in names:
                if (getattr(self, name) or 0) > most:
                    raise ValueError(f"{name}: at most {most:g}{unit}, got {getattr(self, name):g}{unit}")

    def payload_bytes(self, ip: int) -> int:
        """Of a full segment. ip: the version of IP."""
        return self.packet_bytes - headers_bytes(ip) - (12 if self.timestamps else 0)

    def network_options(self, ip: int) -> dict[str, Any]:
        """The options of `fairlane.specs.Tcp`. ip: the version of IP."""
        payload = self.payload_bytes(ip)
        options: dict[str, Any] = {"timestamps": self.timestamps, "initial_window_segments": self.initial_window_packets}
        options |= {name: True for name in ("ecn", "abe") if getattr(self, name)}
        for name in (
            "delayed_ack",
            "limited_transmit",
            "handshake",
            "byte_counting",
            "reduction_base",
            "reno_friendliness",
            "sack_recovery",
            "loss_detection",
            "rtt_estimator",
            "avoid_multiple_fast_retransmits",
            "hold_ssthresh",
        ):
            options[name] = getattr(self, name)
        for name, key in (("max_window_packets", "max_window"), ("initial_ssthresh_packets", "initial_ssthresh")):
            value = getattr(self, name)
            options[key] = None if value is None else max(payload, round(value * payload))
        for name in _TIMES:
            value = getattr(self, name)
            options[f"{name.removesuffix('_s')}_ns"] = None if value is None else round(value * 1e9)
        return {key: value for key, value in options.items() if value is not None}

    def only_virtual(self) -> list[str]:
        """Keys that are set and that a kernel's TCP cannot be given. A profile is one of them, and stands for its own values."""
        profile = TCP_PROFILES[self.profile]
        return [
            f.name for f in dataclasses.fields(self) if f.name not in ON_KERNEL and getattr(self, f.name) != profile.get(f.name, f.default)
        ]


@dataclass(frozen=True)
class OnOffSettings:
    """A constant rate while on. on_s, off_s: mean lengths of the periods. shape: of Pareto's distribution, > 1; None: exponential."""

    packet_bytes: int = 1000
    rate_bps: float = 1_000_000.0
    on_s: float = 0.5
    off_s: float = 0.5
    shape: float | None = None

    def __post_init__(self) -> None:
        _check_packet_bytes(self.packet_bytes)
        check_positive(self, "rate_bps", "on_s", "off_s")
        check_shape(self.shape)


@dataclass(frozen=True)
class RenewalSettings:
    """Single datagrams after independent random gaps, at rate_bps on average, IP headers counted. gaps: exponential (Poisson arrivals), constant, or pareto with
    a shape > 1. sizes: constant, packet_bytes; or exponential with a mean of mean_bytes, and what is drawn below 44 bytes or above packet_bytes becomes that."""

    packet_bytes: int = 1000
    rate_bps: float = 1_000_000.0
    gaps: Literal["exponential", "constant", "pareto"] = "exponential"
    shape: float | None = None
    sizes: Literal["constant", "exponential"] = "constant"
    mean_bytes: float = 500.0

    def __post_init__(self) -> None:
        _check_packet_bytes(self.packet_bytes)
        check_positive(self, "rate_bps", "mean_bytes")
        check_shape(self.shape)
        check_gaps(self.gaps, self.shape)


@dataclass(frozen=True)
class Mpeg4Settings:
    """Frames of an MPEG-4 video in packets of at most packet_bytes. rate_scale: of every frame's size."""

    packet_bytes: int = 1000
    rate_scale: float = 1.0

    def __post_init__(self) -> None:
        _check_packet_bytes(self.packet_bytes)
        check_positive(self, "rate_scale")


FlowSettings = AlgorithmSettings | TcpSettings | OnOffSettings | RenewalSettings | Mpeg4Settings | CommandSettings

TCP_KINDS = {
    "tcp-tahoe": "TCP with slow start, congestion avoidance, fast retransmit (Jacobson 1988)",
    "tcp-reno": "TCP with fast recovery (RFC 5681)",
    "tcp-newreno": "TCP with partial acknowledgements (RFC 6582)",
    "tcp-sack": "TCP with selective acknowledgements (RFC 2018, RFC 6675)",
    "tcp-cubic": "TCP CUBIC with selective acknowledgements (RFC 9438)",
    "tcp-dctcp": "Data Center TCP: reduces by the part of packets that were marked (RFC 8257); for queues that mark, as step",
    "tcp-prague": "TCP Prague: DCTCP for the Internet, paced, its rate hardly depends on the round trip (draft-briscoe-iccrg-prague-congestion-control-04); for queues that mark, as dualpi2",
    "tcp-bbr": "BBR version 1: a rate from the greatest delivery rate and the least round trip measured (draft-cardwell-iccrg-bbr-congestion-control-00)",
}
SACK_KINDS = ("tcp-sack", "tcp-cubic", "tcp-dctcp", "tcp-prague", "tcp-bbr")
"""TCP kinds with selective acknowledgements."""
ALWAYS_ECN = ("tcp-dctcp", "tcp-prague")
"""TCP kinds that have ECN without the key `ecn`: marks are what they go by."""
SOURCE_KINDS: dict[str, tuple[type, str]] = {
    "on-off": (OnOffSettings, "datagrams at a constant rate in on periods, nothing in off periods; no feedback"),
    "renewal": (
        RenewalSettings,
        "single datagrams after random gaps (Poisson arrivals by default), of one size or of exponential sizes; no feedback",
    ),
    "mpeg4": (Mpeg4Settings, "datagrams of MPEG-4 video frames, sent as produced; no feedback"),
    commands.KIND: (CommandSettings, "real programs of any kind at both ends, on Mininet only"),
}
_FAMILY_TABLES = ("tcp",)


def names() -> list[str]:
    """Every flow kind that an experiment may name."""
    return [*sorted(algorithms.ALGORITHMS), *TCP_KINDS, *SOURCE_KINDS]


def tables() -> list[str]:
    """Keys of an experiment file that hold a kind's settings."""
    return [*names(), *_FAMILY_TABLES]


def unknown(kind: str, known: Iterable[str] | None = None) -> str:
    """The message for a kind that does not exist. known: the possible names; all kinds if left out."""
    return f"unknown flow kind {kind!r}{schema.nearest(kind, known or names())} (a kind of your own: --algorithm FILE.py, docs/own-algorithm.md)"


def is_tcp(kind: str) -> bool:
    return kind in TCP_KINDS


def algorithm(kind: str) -> Kind | None:
    """None for TCP and plain sources."""
    return algorithms.ALGORITHMS.get(kind)


def keys(kind: str) -> frozenset[str]:
    """What a kind's settings can name."""
    return frozenset(_fields(kind))


def media_with_ecn(kind: str) -> bool:
    """Whether a rate-adaptation algorithm can be told that marks count, by its parameter `ecn`."""
    found = algorithm(kind)
    return found is not None and any(f.name == "ecn" for f in dataclasses.fields(found.parameters))


def summary(kind: str) -> str:
    """One line that describes the kind."""
    found = algorithm(kind)
    return found.summary if found else TCP_KINDS[kind] if kind in TCP_KINDS else SOURCE_KINDS[kind][1]


def _fields(kind: str) -> dict[str, Any]:
    """What can be set: the type of each key."""
    found = algorithm(kind)
    if found is None:
        return schema.hints_of(TcpSettings if kind in (*TCP_KINDS, "tcp") else SOURCE_KINDS[kind][0])
    own = {f.name for f in dataclasses.fields(found.parameters) if f.init}
    hints = {name: hint for name, hint in schema.hints_of(found.parameters).items() if name in own}
    return {**hints, **schema.hints_of(HostOptions)}


class _Values:
    """Settings of a kind as a document gives them, each with its place."""

    def __init__(self, kind: str, document: Document) -> None:
        self.kind = kind
        self.document = document
        self.places: dict[str, KeyPath] = {}
        self.values: dict[str, Any] = {}
        self._hints = _fields(kind)

    def take(self, path: KeyPath) -> None:
        """Merge the table at `path` into the current values."""
        table = self.document.at(path)
        if not isinstance(table, dict):
            raise self.document.error(path, f"expected a table of settings of {self.kind}")
        for key in table:
            if key not in self._hints:
                raise self.document.error((*path, key), f"unknown key of {self.kind}{schema.nearest(key, self._hints)}")
            self.values[key] = schema.convert(self._hints[key], self.document, (*path, key))
            self.places[key] = (*path, key)

    def take_key(self, key: str, path: KeyPath) -> None:
        self.values[key] = schema.convert(self._hints[key], self.document, path)
        self.places[key] = path

    def error(self, error: ValueError, otherwise: KeyPath) -> ConfigError:
        """A refusal of the values, at the key that it names."""
        text = str(error)
        found = re.match(r"(?:\w+\.)?(\w+)(?: = |: )", text)
        named = [found[1]] if found else []
        # A message may speak of two: the first that the file sets is where to look.
        named += [word for word in re.findall(r"\w+", text) if word in self.places]
        key = next((name for name in named if name in self.places), None)
        text = re.sub(r"^\w+\.(?=\w+ = )", "", text)
        if key is None:
            return self.document.error(otherwise, f"{self.kind}: {text}")
        return self.document.error(self.places[key], text.removeprefix(f"{key}: "))


def check_tables(document: Document) -> None:
    """Every table of a kind, used or not: its keys exist and have the right types."""
    for kind in tables():
        if kind in document.values:
            _Values(kind, document).take((kind,))


@dataclass(frozen=True)
class Way:
    """Of a flow's path, what defaults depend on. own_bps: rate of the sender's link. slowest_bps: of the slowest. flows: that cross the slowest."""

    own_bps: float
    slowest_bps: float
    flows: int


def settings(document: Document, kind: str, group: KeyPath, way: Way) -> FlowSettings:
    """What holds for the flows of the group at `group` that take such a way. ConfigError names file, line, key."""
    values = _Values(kind, document)
    for table in (*(_FAMILY_TABLES if is_tcp(kind) else ()), kind):
        if table in document.values:
            values.take((table,))
    own = document.at(group)
    if "parameters" in own:
        values.take((*group, "parameters"))
    if "packet_bytes" in own:
        values.take_key("packet_bytes", (*group, "packet_bytes"))
    found = algorithm(kind)
    try:
        if found is None:
            return _tcp_settings(kind, values.values) if is_tcp(kind) else SOURCE_KINDS[kind][0](**values.values)
        return _algorithm_settings(found, values.values, way)
    except ValueError as error:
        raise values.error(error, group) from error


def _tcp_settings(kind: str, values: dict[str, Any]) -> TcpSettings:
    found = TcpSettings.of(values)
    acknowledges_selectively = kind in SACK_KINDS or (kind == "tcp-reno" and not found.paper_reno)
    if found.loss_detection == "rack" and not acknowledges_selectively:
        raise ValueError(f'loss_detection: RACK needs selective acknowledgements, as {", ".join(SACK_KINDS)} have; give {kind} "dupack"')
    if found.loss_detection == "rack" and found.sack_recovery == "sack1":
        raise ValueError('loss_detection: RACK has its own loss recovery: set sack_recovery = "rfc6675", or give "dupack"')
    return found


def _algorithm_settings(kind: Kind, values: dict[str, Any], way: Way) -> AlgorithmSettings:
    host = HostOptions(**{f.name: values[f.name] for f in dataclasses.fields(HostOptions) if f.name in values})
    if kind.layered and host.circuit_breaker.native():
        raise ValueError('circuit_breaker: RFC 8083 is for one receiver, and this kind has several: leave it "off"')
    maximum = way.own_bps if host.maximum_rate_bps is None else host.maximum_rate_bps
    own = {f.name for f in dataclasses.fields(kind.parameters) if f.init}
    given = {key: value for key, value in values.items() if key in own}
    if kind.of_path is not None:
        if host.maximum_rate_bps is not None:
            given.setdefault("max_rate_bps", float(maximum))
        given = {**kind.of_path(given, way.slowest_bps, way.flows), **given}
    for name, value in (("max_rate_bps", float(maximum)), ("packet_bytes", host.packet_bytes)):
        if name in own:
            given.setdefault(name, value)
    parameters = kind.parameters(**given)
    reports = host.feedback == "rfc8888"
    if reports and not _takes_reports(kind):
        known = ", ".join(name for name, other in sorted(algorithms.ALGORITHMS.items()) if _takes_reports(other))
        raise ValueError(f'feedback: {kind.name} does not use the arrival of each packet, which "rfc8888" reports; {known} do')
    if reports and algorithms.header_of(kind.name) is not None:
        raise ValueError(
            f'feedback: what switches write into packets of {kind.name} comes back in acknowledgements of single packets, not in "rfc8888"'
        )
    report_interval_s = host.feedback_interval_s if reports else None
    return AlgorithmSettings(
        host.packet_bytes,
        float(maximum),
        host.pacing_jitter,
        host.loss_resolution,
        host.source,
        host.circuit_breaker,
        parameters,
        given,
        report_interval_s,
    )


def _takes_reports(kind: Kind) -> bool:
    return bool(kind.receiver(kind.parameters()).interests.timed_acks)

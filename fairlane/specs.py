"""Links, flows and ends of flows, as `fairlane.native` takes them.

`switch/bin/python/src/classes.rs` reads these classes by the names of their fields. Instants and durations are integer
nanoseconds: in a `Network` from the beginning of the run, in a `HostEnd` of CLOCK_MONOTONIC.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

if TYPE_CHECKING:
    from fairlane.native import Application

_Algorithm = TypeVar("_Algorithm")

Loss: TypeAlias = float | tuple[float, float, float, float]
"""A probability, or (good_to_bad, bad_to_good, loss_good, loss_bad)."""


@dataclass(frozen=True, kw_only=True)
class Link:
    """One direction of a link. rate_bps: None transmits in no time. jitter_ns: uniform up to this value; jitter_std_ns: Gaussian
    instead. reorder, duplicate, corrupt: probabilities that a frame arrives reorder_delay_ns later, that a copy follows it, that one of its
    bits is flipped. time_shift_ns, weight: the scheduler of a switch's port with several queues, at most one of them; None for both is
    strict priority."""

    rate_bps: int | None = None
    delay_ns: int = 0
    queue_packets: int = 1000
    loss: Loss | None = None
    jitter_ns: int = 0
    jitter_std_ns: int = 0
    reorder: float = 0.0
    reorder_delay_ns: int = 0
    duplicate: float = 0.0
    corrupt: float = 0.0
    overhead_bytes: int = 0
    time_shift_ns: int | None = None
    weight: int | None = None


@dataclass(frozen=True, kw_only=True)
class Impairments:
    """What of a link's impairments changes, as of `Link`; None stays."""

    reorder: float | None = None
    reorder_delay_ns: int | None = None
    duplicate: float | None = None
    corrupt: float | None = None


@dataclass(frozen=True)
class FlowPath:
    """A flow from one host to another. port: UDP or TCP; RTCP takes the next one."""

    name: str
    sender_host: str
    receiver_host: str
    port: int
    start_ns: int
    stop_ns: int


@dataclass(frozen=True)
class GroupPath:
    """A layered flow from one host to groups. base_group: an address such as 239.1.0.1, to which control packets go."""

    name: str
    sender_host: str
    base_group: str
    port: int
    start_ns: int
    stop_ns: int


@dataclass(frozen=True)
class Half(Generic[_Algorithm]):
    """One half of an algorithm (`fairlane.hosts.algorithms.base`). rng: its handlers draw from it."""

    algorithm: _Algorithm
    rng: random.Random
    _: KW_ONLY
    ssrc: int
    cname: str


@dataclass(frozen=True)
class LayeredReceiver(Generic[_Algorithm]):
    """One receiver of a layered flow, on a host. It takes part from start_ns to stop_ns; None: from a little before the sender
    starts to a little after the sender stops."""

    host: str
    half: Half[_Algorithm]
    _: KW_ONLY
    start_ns: int | None = None
    stop_ns: int | None = None


@dataclass(frozen=True, kw_only=True)
class Session:
    """An RTP session. packet_bytes: IP header included. pacing_jitter: moves each packet by up to half this part of a gap.
    phase: part of the first gap that passes before the first packet; None: drawn. exact_loss: the loss fraction is the
    difference of cumulative counts. delay_threshold_ns: the receiver counts a packet that arrives so long after the
    previous packet, or after its own production."""

    packet_bytes: int
    session_bandwidth_bps: float
    pacing_jitter: float = 0.0
    phase: float | None = None
    exact_loss: bool = False
    delay_threshold_ns: int = 75_000_000


@dataclass(frozen=True)
class Breaker:
    """Circuit breakers [RFC 8083]: `fairlane.hosts.circuit_breaker` has the meaning of each field. reduces: when congestion trips a
    breaker, the flow first sends a tenth."""

    reduces: bool
    usable_loss: float | None
    usable_rtt_s: float | None
    unusable_s: float


@dataclass(frozen=True, kw_only=True)
class RtpOptions:
    """A flow over RTP with one receiver. report_interval_ns: packets are acknowledged in reports, so often [RFC 8888]; None: each on its
    own. application: it limits the flow, and at most buffer_packets of its packets wait; None: always more to send.
    circuit_breaker: None is off."""

    report_interval_ns: int | None = None
    application: Application | None = None
    buffer_packets: int = 100
    circuit_breaker: Breaker | None = None


@dataclass(frozen=True, kw_only=True)
class Tcp:
    """A bulk TCP flow. packet_bytes: IP header included. bytes: None sends for ever. options: fields of `fairlane_tcp::Config` that
    differ from the flavour's defaults; an unknown name is an error. sending_jitter_ns: packets leave their host up to so
    much later."""

    flavour: str
    packet_bytes: int
    bytes: int | None = None
    options: Mapping[str, bool | int | float | str] | None = None
    sending_jitter_ns: int = 0


@dataclass(frozen=True)
class Place:
    """Where an end on a host runs, and when. epoch_ns: Unix time of CLOCK_MONOTONIC's instant 0. name, seed: of its streams of
    randomness. base_group: the base group of a layered flow. wake_fd: a file that interrupts `run_until` when it can be read.
    film_fd: a SOCK_SEQPACKET socket to the program that encodes or shows the flow's film. arrivals: (time_ns, rtcp, group, payload)
    of a recorded trace, which replaces sockets and clock. marks_ns: instants at which the sums are recorded exactly."""

    local: str
    peer: str
    port: int
    _: KW_ONLY
    start_ns: int
    stop_ns: int
    epoch_ns: int
    name: str
    seed: int
    base_group: str | None = None
    wake_fd: int | None = None
    film_fd: int | None = None
    arrivals: Sequence[tuple[int, bool, int | None, bytes]] | None = None
    marks_ns: Sequence[int] = ()


@dataclass(frozen=True, kw_only=True)
class Reception:
    """What a receiving end must know of its sender. acks: the sender wants an acknowledgement for each packet. report_interval_ns:
    as in `RtpOptions`. media: the sender has an application; film: this application is a film. delay_threshold_ns: as in
    `Session`. rtcp: RTCP runs for the sender's circuit breakers. stream: the name of its stream of randomness; None: the
    flow's receiver."""

    session_bandwidth_bps: float
    acks: bool = False
    report_interval_ns: int | None = None
    media: bool = False
    film: bool = False
    delay_threshold_ns: int = 75_000_000
    rtcp: bool = False
    stream: str | None = None


@dataclass(frozen=True, kw_only=True)
class Report:
    """A receiver's report of `hosts/wire/formats.toml`. loss_event_rate: in parts per 10^9. header: what the header of packets brings
    back."""

    highest_sequence: int
    echo_ns: int
    delay_us: int
    receive_rate_bps: int
    loss_event_rate: int | None
    expected_packets: int
    lost_packets: int
    reporter: int
    header: bytes = b""


SenderInfo: TypeAlias = tuple[int, int, int, int]
"""(ntp, rtp_timestamp, packet_count, octet_count)"""
Block: TypeAlias = tuple[int, int, int, int, int, int, int]
"""(ssrc, fraction_lost, cumulative_lost, extended_highest_sequence, jitter, lsr, dlsr)"""
Alsf: TypeAlias = tuple[int, int, int, Sequence[tuple[int, int]]]
"""(ssrc, desired_rate_bps, utilisation_ppm, [(address, rate_bps)])"""


@dataclass(frozen=True)
class Compound:
    """An RTCP compound. sender: of a sender report. from_sender, from_receiver: ALSF. bye: SSRCs."""

    ssrc: int
    _: KW_ONLY
    sender: SenderInfo | None = None
    blocks: Sequence[Block] = ()
    cname: bytes = b""
    from_sender: Alsf | None = None
    from_receiver: Alsf | None = None
    bye: Sequence[int] = ()

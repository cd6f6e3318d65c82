"""The interface between a rate-adaptation algorithm and the code that runs it.

An algorithm is a pair of state machines, a `Sender` and a `Receiver`. A runner (real sockets, or the virtual-time network)
delivers events and carries out the actions that come back. An algorithm never reads a clock, draws a random number, opens a
socket or sleeps: `now_s` and `rng` are arguments of every handler.

The division of work:

* The runner paces packets, numbers them, samples round-trip times, finds losses, follows the RTCP timetable
  [RFC 3550 sec 6.3] and computes reception statistics. In virtual time all of this runs outside Python.
* The algorithm decides: the rate or window, the content of control packets, the content of receivers' reports.

So a handler runs only for feedback, for acknowledgements that change state, and for timers. `Interests` selects these
acknowledgements:

========================================  =========================  =============================================
family                                    feedback                   used by the algorithm
========================================  =========================  =============================================
RTCP-driven (ALS, DAA, AIMD over RTCP)    RTCP timetable             `on_feedback`, one adaptation timer
periodic reports (TRABOL, SSVP)           `SendFeedback`, own timer  `on_feedback`
inter-packet gap (RAP)                    an ack for each packet     `on_loss` (gap or timeout), a timer each SRTT
window (GAIMD)                            an ack for each packet     `on_ack`, `on_loss`, `SetWindow`
delay (NADA, SCReAM, GCC)                 a timed ack for each one,  `on_ack` with `one_way_delay_s`, `on_loss`
                                          or reports (RFC 8888)
switches' own feedback (RCP, XCP)         an ack for each packet     `on_ack` with `header`, `SetRate` or `SetWindow`
marks (ABC)                               an ack for each packet     `on_ack` with `ecn`, `SetWindow`
equation (TFRC, RFC 5348)                 `SendFeedback`, each RTT   receiver `on_gap`; sender `on_feedback`, no-feedback timer
none (constant bit rate)                  none                       `on_start`
========================================  =========================  =============================================

Units and conventions: seconds (`_s`) on the runner's clock, which never goes backwards and has an arbitrary zero; rates in
bit/s (`_rate_bps`) counting whole IPv4 datagrams, header included; fractions from 0 to 1; sequence numbers extended (they
never wrap). Values in events come from the network and may be forged: a handler must accept any of them without raising.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any, Protocol


class Rng(Protocol):
    """The seeded source of randomness that a runner passes in (`random.Random` fits)."""

    def random(self) -> float:
        """A uniform draw from [0, 1)."""


class AckDetail(Enum):
    """Which acknowledgements reach the sender's handlers."""

    NONE = "none"
    """The receiver sends no per-packet acks."""
    LOSSES = "losses"
    """Every packet is acked; `on_loss` runs when a loss is found; acks without news only update `PathState`."""
    EVERY = "every"
    """Every packet is acked, and `on_ack` runs for each ack with new information."""


def __getattr__(name: str) -> Any:
    if name == "Explicit":
        raise ImportError(
            'Explicit is gone: write Interests(scheme="rcp", header=...) in place of explicit = Explicit.RATE, scheme="xcp" in place of FEEDBACK, '
            'scheme="abc" in place of MARK (docs/own-header.md)'
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class Fill(Enum):
    """What the runner writes into a field of a flow's own header; the greatest number that the field holds where it is more."""

    RTT_US = "rtt_us"
    """The smoothed round trip in microseconds, as of the last acknowledgement; 0: not known."""
    INTERVAL_US = "interval_us"
    """Microseconds between the flow's packets, at its rate or its window as they were when the last acknowledgement came; 0: none came yet."""
    RATE_BPS = "rate_bps"
    """What the flow may send, in bit/s: the rate that the algorithm set last, or its window over the smoothed round trip."""
    WINDOW_PACKETS = "window_packets"
    """The window that the algorithm set last, rounded down; 0: none."""
    SEQUENCE = "sequence"
    """Of the packet, from 0: `Ack.sequence`."""
    SENT_NS = "sent_ns"
    """When the packet leaves, on the runner's clock in nanoseconds."""


@dataclass(frozen=True, slots=True)
class Header:
    """A header of the flow's own: each data packet carries it, switches read and write it by P4, and acks bring it back, `Ack.header`.

    It is an RTP header extension [RFC 3550 sec 5.3.1]. Its layout is a header type of the switches' P4 program, which begins with
    `bit<16> profile; bit<16> length;`: which extension it is, and its words of 32 bits after these."""

    type: str
    """Name of the P4 header type."""
    profile: int
    """What the P4 parser knows the header by, 16 bits."""
    values: Mapping[str, int | Fill] = field(default_factory=dict)
    """What the sender writes, by field; other fields leave as 0. `SetHeader` changes values later."""
    returned: tuple[str, ...] = ()
    """The fields that acks bring back: neighbours in the layout, whole words of 32 bits together. Empty: all but profile and length."""
    hops: str | None = None
    """Type of the elements of a P4 header stack behind the header: each switch pushes its own."""
    hop_count: str | None = None
    """The field of the header to which each switch adds 1. None: all elements are shown, those that no switch wrote as well."""


class Ecn(IntEnum):
    """The ECN field of an IP header [RFC 3168 sec 5]."""

    NOT_ECT = 0
    ECT_1 = 1
    """Low latency (RFC 9331)."""
    ECT_0 = 2
    CE = 3
    """Congestion experienced: a router's mark."""


@dataclass(frozen=True, slots=True)
class Interests:
    """The events that an algorithm wants; a constant of the class."""

    acks: AckDetail = AckDetail.NONE
    """For a sender."""
    gaps: bool = False
    """For a receiver: `on_gap` runs when packets are lost."""
    rtcp: bool = False
    """For either half: the runner sends control packets on the RTCP timetable."""
    loss_distance_packets: int = 3
    """A packet is lost when this many later ones were acked [RAP sec III], [RFC 5681 sec 3.2]; to a receiver, when this many later ones
    have arrived [RFC 5348 sec 5.1]. Packets count, not the distance between numbers: those that are lost, too, make none later."""
    timed_acks: bool = False
    """For a receiver: each ack says when its packet arrived, 8 bytes more, so that the sender's `Ack.one_way_delay_s` is known. RFC 8888
    reports the same of many packets at once: a flow of such a receiver may have `feedback = "rfc8888"`, and the sender's handlers are the same."""
    scheme: str = ""
    """For a sender: the scheme that every port shall have (p4src/schemes/README.md), such as "rcp", of a folder of `p4src/schemes` or of one given by
    --scheme. Switches run it as soon as a flow of the experiment asks."""
    header: Header | None = None
    """For a sender: what its data packets carry. It comes back in acks of single packets, or in the reports that a receiver sends with
    `SendFeedback`, one header for all packets since the report before; reports of RTCP, and those of RFC 8888, have no room for it."""
    least: str | None = None
    """For a receiver that reports: the header that goes back is the one in which this field, not a hop's, is least, as an unsigned number. None: that
    of the last packet, or what `Receiver.fold` says."""
    ecn: Ecn = Ecn.NOT_ECT
    """For a sender: codepoint of its data packets. Acks say with which one each packet arrived."""


# --------------------------------------------------------------------------------------------------------------- events


@dataclass(frozen=True, slots=True)
class PathState:
    """What the runner of an acked flow knows at an event."""

    latest_rtt_s: float
    srtt_s: float
    """Smoothed round-trip time ([RFC 6298 sec 2], gain 1/8)."""
    rttvar_s: float
    """Smoothed mean deviation ([RFC 6298 sec 2], gain 1/4)."""
    in_flight_packets: int
    last_sent_sequence: int
    highest_acked_sequence: int
    waiting_bytes: int | None = None
    """Of an application's data that wait in the sender, as IPv4 datagrams. `None`: there is always more to send."""


@dataclass(frozen=True, slots=True)
class Feedback:
    """One report of one receiver, as it reached the sender. `None` means: not in this report."""

    reporter: int
    """SSRC of the receiver that reports."""
    loss_fraction: float
    """Lost / expected packets since that receiver's previous report."""
    rtt_s: float | None = None
    jitter_s: float | None = None
    desired_rate_bps: float | None = None
    """R_d: the smallest fair rate on the path, echoed by the receiver [ALS sec 3.2]."""
    utilisation: float | None = None
    """U of the router that set R_d, fraction of its link [ALS sec 3.2]."""
    receive_rate_bps: float | None = None
    """Rate at which data arrived since the previous report [RFC 5348 sec 3.2.2]."""
    loss_event_rate: float | None = None
    """p [RFC 5348 sec 3.2.2]."""
    header: Any = None
    """As `Ack.header`: of the packets since the receiver's report before, the one that the receiver chose."""


@dataclass(frozen=True, slots=True)
class Ack:
    """An acknowledgement of one data packet."""

    sequence: int
    rtt_s: float
    newly_acked_packets: int
    """Packets first known delivered by this ack: more than 1 when earlier acks were lost; 0 when all of them had been counted lost or
    acked, and the ack tells but a round trip."""
    path: PathState
    one_way_delay_s: float | None = None
    """From sending to arrival, plus what the receiver's clock is ahead of the sender's: only differences mean something. `None`: the
    receiver does not ask for `Interests.timed_acks`, or the ack is not this packet's first."""
    header: Any = None
    """What came back of the packet's own header, as switches left it: an object with the names of `Header.returned`, all of them numbers of the P4
    header's bits, and `hops`, a tuple of such objects, in the packet's order. `None`: the ack brought none, or the flow has none."""
    ecn: int = 0
    """One of `Ecn`: the packet's codepoint as it arrived. A packet whose own ack was lost is not known to be marked."""
    held_s: float = 0.0
    """From the packet's arrival to the report that acknowledges it with others; 0 where each has an ack of its own. The packet left `rtt_s` +
    `held_s` ago."""
    ends_report: bool = True
    """Whether nothing follows of the same feedback: False of all but the last acknowledgement that a report brings."""

    def sent_s(self, now_s: float) -> float:
        """When the packet left, of an ack that came at `now_s`."""
        return now_s - self.rtt_s - self.held_s


class LossCause(Enum):
    """How the runner found a loss."""

    GAP = "gap"
    """`Interests.loss_distance_packets` later packets were acked."""
    TIMEOUT = "timeout"
    """Older than the `SetLossTimeout` in force."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Packets found lost at one instant."""

    first_sequence: int
    last_sequence: int
    lost_packets: int
    cause: LossCause
    path: PathState


@dataclass(frozen=True, slots=True)
class Timer:
    """A timer set with `SetTimer` has come due."""

    name: str
    path: PathState | None = None
    """For acked flows."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of a layered transmission [ALS sec 3.4]."""

    address: int
    """IPv4 group address as a 32-bit number."""
    rate_bps: float


@dataclass(frozen=True, slots=True)
class Control:
    """A sender's control packet, as routers left it, at a receiver."""

    sender: int
    """SSRC of the sender."""
    desired_rate_bps: float
    utilisation: float
    layers: tuple[Layer, ...] = ()


@dataclass(frozen=True, slots=True)
class ReceptionState:
    """What the runner of a receiver has counted since the flow began."""

    received_packets: int
    received_bytes: int
    """Bytes of IPv4 datagrams."""
    lost_packets: int
    highest_sequence: int
    last_arrival_s: float
    sender_rtt_s: float | None = None
    """The newest `StampData` value seen."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Packets `first_lost_sequence` ... `last_lost_sequence` did not come before `Interests.loss_distance_packets` later ones. Late arrivals
    change nothing any more, a choice that [RFC 5348 sec 5.1] leaves to the receiver."""

    first_lost_sequence: int
    last_lost_sequence: int
    before_s: float
    """Arrival of the last packet before the gap. A late packet in the middle of a gap makes two of it and counts at the instant that its
    number has between the arrivals around the whole [RFC 5348 sec 5.2]."""
    after_s: float
    """Arrival of the first packet after it; in two gaps that were one, the same."""
    reception: ReceptionState


# -------------------------------------------------------------------------------------------------------------- actions


@dataclass(frozen=True, slots=True)
class SetRate:
    """Send data at this rate from now on."""

    rate_bps: float
    """> 0 and finite."""
    burst_packets: int = 1
    """Packets sent back to back, then one gap for all [TRABOL inter-group gap]."""


@dataclass(frozen=True, slots=True)
class SetWindow:
    """Send only while fewer than this many packets are unacknowledged."""

    window_packets: float
    """>= 1."""


@dataclass(frozen=True, slots=True)
class SetEncoderRate:
    """The new rate of an encoder above the flow, in packets with their headers. If an algorithm never sets it, the runner
    does: the rate of `SetRate`, less while data wait in the sender [RFC 8698 eq 11, 13]."""

    rate_bps: float
    """> 0 and finite."""


@dataclass(frozen=True, slots=True)
class SetLossTimeout:
    """Packets outstanding longer than this are lost, "using the updated value of the SRTT estimate" [RAP sec III]: with
    `srtt_factor` > 0, and once a round trip is known, at each moment

        srtt_factor SRTT + max(granularity_s, rttvar_factor RTTVAR)        [RFC 6298 sec 2 step 2.3]

    and else `timeout_s`. A timer runs for the oldest of them; with `before_sending` the runner looks only when the pacing
    lets a packet go, before it leaves [RAP sec III]. That is for senders with a rate: a window alone would never look."""

    timeout_s: float
    srtt_factor: float = 0.0
    rttvar_factor: float = 0.0
    granularity_s: float = 0.0
    before_sending: bool = False

    def in_force_s(self, srtt_s: float, rttvar_s: float) -> float:
        """With the round-trip times of a moment."""
        if self.srtt_factor > 0.0 and srtt_s > 0.0:
            return self.srtt_factor * srtt_s + max(self.granularity_s, self.rttvar_factor * rttvar_s)
        return self.timeout_s


@dataclass(frozen=True, slots=True)
class SetControl:
    """What the sender's control packets say from now on."""

    desired_rate_bps: float
    utilisation: float
    layers: tuple[Layer, ...] = ()


@dataclass(frozen=True, slots=True)
class StampData:
    """Write the sender's round-trip time into every data packet [RFC 5348 sec 3.2.1]."""

    rtt_s: float


@dataclass(frozen=True, slots=True)
class SetHeader:
    """Write these numbers into the flow's own header from now on, by field. A field that the runner fills (`Fill`) is overwritten soon."""

    values: Mapping[str, int]
    """Each fits its field, of 64 bits at most; ValueError otherwise."""


@dataclass(frozen=True, slots=True)
class SetReport:
    """What the receiver's RTCP reports add to the usual statistics from now on [ALS sec 3.2]."""

    desired_rate_bps: float
    utilisation: float


@dataclass(frozen=True, slots=True)
class SendFeedback:
    """Send a report at once; the runner adds loss fraction, receive rate and time stamps."""

    loss_event_rate: float | None = None


@dataclass(frozen=True, slots=True)
class SetLayers:
    """Layered sender: the rate of each layer, base first [ALS sec 3.4]."""

    layers: tuple[Layer, ...]


@dataclass(frozen=True, slots=True)
class JoinLayers:
    """Layered receiver: be a member of exactly these groups."""

    addresses: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Call `on_timer` at `at_s`; replaces a pending timer of the same name. A time that has passed means: at once."""

    name: str
    at_s: float


@dataclass(frozen=True, slots=True)
class CancelTimer:
    """Cancel a pending timer; no effect without one."""

    name: str


@dataclass(frozen=True, slots=True)
class Note:
    """A record for the run's log; changes nothing."""

    kind: str
    values: tuple[tuple[str, float | int | str | None], ...]


SenderAction = (
    SetRate | SetWindow | SetEncoderRate | SetLossTimeout | SetControl | StampData | SetHeader | SetLayers | SetTimer | CancelTimer | Note
)
ReceiverAction = SetReport | SendFeedback | JoinLayers | SetTimer | CancelTimer | Note


# ------------------------------------------------------------------------------------------------------- state machines


class Sender(ABC):
    """The sending half. Handlers but `on_start` default to: nothing happens."""

    interests = Interests()
    carried: Any = None
    """Set by the runner before `on_start`, where `interests.header` is: `fairlane.hosts.algorithms.own_header.Carried`."""

    @abstractmethod
    def on_start(self, now_s: float, rng: Rng) -> tuple[SenderAction, ...]:
        """The flow starts. Must yield `SetRate` or `SetWindow`. Called once, before any other handler."""

    def on_feedback(self, now_s: float, feedback: Feedback, rng: Rng) -> tuple[SenderAction, ...]:
        """A receiver's report arrived."""
        return ()

    def on_leave(self, now_s: float, reporter: int, rng: Rng) -> tuple[SenderAction, ...]:
        """A receiver said goodbye (RTCP BYE), or has been silent for five report intervals [RFC 3550 sec 6.3.5]."""
        return ()

    def on_ack(self, now_s: float, ack: Ack, rng: Rng) -> tuple[SenderAction, ...]:
        """Only with `AckDetail.EVERY`. A loss found by the same ack is delivered first."""
        return ()

    def on_loss(self, now_s: float, loss: Loss, rng: Rng) -> tuple[SenderAction, ...]:
        """Only with `AckDetail.LOSSES` or `AckDetail.EVERY`."""
        return ()

    def on_timer(self, now_s: float, timer: Timer, rng: Rng) -> tuple[SenderAction, ...]:
        """`now_s` may be later than the time asked for, never earlier."""
        return ()


class Receiver:
    """The receiving half. Handlers default to: nothing happens."""

    interests = Interests()
    carried: Any = None
    """As of `Sender`."""

    def fold(self, kept: Any, header: Any) -> Any:
        """Where the flow's packets have a header of their own and are not acknowledged one by one: what the next report brings back, of what it would
        have brought so far and of the packet that came. Both are as `Ack.header`, and so is the answer: `kept._replace(...)` changes fields. Runs
        for each packet, unless it is this one: the last packet's header goes back."""
        return header

    def on_start(self, now_s: float, rng: Rng) -> tuple[ReceiverAction, ...]:
        """The receiver is ready. Called once, before any other handler."""
        return ()

    def on_control(self, now_s: float, control: Control, rng: Rng) -> tuple[ReceiverAction, ...]:
        """A sender's control packet arrived."""
        return ()

    def on_gap(self, now_s: float, gap: Gap, rng: Rng) -> tuple[ReceiverAction, ...]:
        """Only with `Interests.gaps`."""
        return ()

    def on_timer(self, now_s: float, timer: Timer, reception: ReceptionState, rng: Rng) -> tuple[ReceiverAction, ...]:
        """`now_s` may be later than the time asked for, never earlier."""
        return ()


@dataclass(frozen=True, slots=True)
class Kind:
    """A flow kind: how users name an algorithm, and how its two halves are made. Each algorithm file lists its own in `KINDS`."""

    name: str
    """What experiment files and commands say: lower case, words joined by hyphens."""
    summary: str
    """One line for `fairlane list`: what it does, and paper and section."""
    parameters: type
    """A frozen dataclass; every field has a default. The fabric fills in the fields `max_rate_bps` (the sender's link) and
    `packet_bytes` (an IPv4 datagram of data) where they exist and the experiment sets no other."""
    sender: Callable[[Any], Sender]
    """Called with the parameters."""
    receiver: Callable[[Any], Receiver]
    """Called with the parameters."""
    layered: bool = False
    """Sends to several groups and takes several receivers [ALS sec 3.4]."""
    of_path: Callable[[Mapping[str, Any], float, int], dict[str, Any]] | None = None
    """Defaults that depend on the flow's path, as whoever sets up the flow would choose them: of the parameters that the experiment sets, the rate
    of the path's slowest link (bit/s), and the number of flows that cross it. `max_rate_bps` of these goes before the sender's link."""


def clamp(value: float, low: float, high: float) -> float:
    """`value` limited to [low, high]; NaN becomes `low`, the cautious end of a rate's range."""
    return low if not value >= low else min(value, high)


def require_positive(owner: str, **values: float) -> None:
    """Raise `ValueError` naming the first value that is not positive and finite."""
    for name, value in values.items():
        if not 0 < value < float("inf"):
            raise ValueError(f"{owner}.{name} = {value!r}: must be positive and finite")

"""XCP, the eXplicit Control Protocol: Katabi, Handley and Rohrs, "Congestion Control for High Bandwidth-Delay Product Networks" (SIGCOMM 2002).

Every packet contains its sender's round trip and the time between its packets, and routers write the allowed change of the flow's rate (p4src/schemes/xcp).
The receiver sends it back:

    cwnd <- max(cwnd + H_feedback, s)                                                    [XCP sec 3.3]

with H_feedback the change of the rate times the round trip, and s a packet. On a loss the window is halved, as TCP's [XCP sec 3.3 "responds to
losses in a similar manner to TCP"], once a round trip.

The paper's header has the window and a feedback in bytes; here it has the time between packets and a change in bit/s
(draft-falk-xcp-spec-03), the same up to the factor of a round trip. Packets are RTP, without retransmissions.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlane.hosts.algorithms.base import (
    Ack,
    AckDetail,
    Fill,
    Header,
    Interests,
    Kind,
    Loss,
    LossCause,
    Note,
    Receiver,
    Rng,
    Sender,
    SenderAction,
    SetLossTimeout,
    SetWindow,
    require_positive,
)

MAX_WINDOW_PACKETS = 1e6
"""What a runner accepts."""
UNLIMITED = (1 << 64) - 1
"""No switch has set a change."""
UNCHANGED = 1 << 63
"""The header's number for a rate that stays: it has the change plus this."""
HEADER = Header(
    "congestion_t",
    0x5843,
    {"change_bps": UNLIMITED, "rtt_us": Fill.RTT_US, "interval_us": Fill.INTERVAL_US},
    returned=("change_bps",),
)
"""p4src/schemes/xcp/xcp_header.p4: "XC" is the profile."""


@dataclass(frozen=True, slots=True)
class XcpParameters:
    """What the paper leaves open."""

    packet_bytes: int = 1000
    """An IPv4 datagram of data, with headers."""

    initial_window_packets: float = 2.0
    """Until the first feedback: the first packets know no round trip, and get none."""

    first_timeout_s: float = 1.0
    """A packet is lost after it while no round trip is known [RFC 6298 sec 2], and after SRTT + max(0.2 s, 4 RTTVAR) later."""

    def __post_init__(self) -> None:
        require_positive("XcpParameters", **{name: getattr(self, name) for name in self.__slots__})


def next_window(p: XcpParameters, window: float, change_bps: float, rtt_s: float) -> float:
    """cwnd in packets after a packet's feedback [XCP sec 3.3]."""
    return min(max(window + change_bps * rtt_s / (8 * p.packet_bytes), 1.0), MAX_WINDOW_PACKETS)


class XcpSender(Sender):
    """Adds what comes back to its window. Where no router writes, the window stays."""

    interests = Interests(acks=AckDetail.EVERY, scheme="xcp", header=HEADER)

    def __init__(self, parameters: XcpParameters = XcpParameters()) -> None:
        self.parameters = parameters
        self.window = min(max(parameters.initial_window_packets, 1.0), MAX_WINDOW_PACKETS)
        """cwnd in packets."""
        self._recover = -1
        """The last packet sent before the last reduction."""

    def on_start(self, now_s: float, rng: Rng) -> tuple[SenderAction, ...]:
        return SetLossTimeout(self.parameters.first_timeout_s, 1.0, 4.0, 0.2), SetWindow(self.window)

    def on_ack(self, now_s: float, ack: Ack, rng: Rng) -> tuple[SenderAction, ...]:
        if ack.header is None or ack.header.change_bps == UNLIMITED:
            return ()
        change_bps = float(ack.header.change_bps - UNCHANGED)
        self.window = next_window(self.parameters, self.window, change_bps, ack.path.srtt_s)
        return (SetWindow(self.window),)

    def on_loss(self, now_s: float, loss: Loss, rng: Rng) -> tuple[SenderAction, ...]:
        if loss.last_sequence <= self._recover:
            return ()
        self._recover = loss.path.last_sent_sequence
        self.window = 1.0 if loss.cause is LossCause.TIMEOUT else max(self.window / 2, 1.0)
        return SetWindow(self.window), Note("xcp.loss", (("window_packets", self.window),))


class XcpReceiver(Receiver):
    """Every acknowledgement sends the packet's congestion header back, without a decision here."""

    def __init__(self, parameters: XcpParameters = XcpParameters()) -> None:
        self.parameters = parameters


KINDS = (
    Kind(
        "xcp",
        "routers write into each packet by how much its flow may change (Katabi et al. 2002)",
        XcpParameters,
        XcpSender,
        XcpReceiver,
    ),
)

"""RCP, the Rate Control Protocol: Dukkipati, Kobayashi, Zhang-Shen and McKeown, "Processor Sharing Flows in the Internet" (IWQoS 2005).

Every router holds one rate R for all flows of a link, and writes it into each data packet where it is smaller than what stands there
(p4src/schemes/rcp):

    R <- R [1 + (T/d) (alpha (C - y) - beta q/d) / C]        (2)

The receiver sends it back, and the sender sends at that rate from the next acknowledgement on [RCP sec II]. A flow begins at the rate that
its first packet brings back, so it needs one round trip and no slow start. R converges to C / N.

In the paper a connection's SYN asks for the rate, and the sender keeps a window of rate times round trip. Here the first data packet asks,
before it the sender has `initial_rate_bps`, and packets are paced.
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
    Note,
    Receiver,
    Rng,
    Sender,
    SenderAction,
    SetRate,
    SetTimer,
    Timer,
    clamp,
    require_positive,
)

SILENCE_TIMER = "rcp.silence"
UNLIMITED = (1 << 64) - 1
"""No switch has set a rate."""
HEADER = Header("rate_t", 0x5243, {"rate_bps": UNLIMITED, "rtt_us": Fill.RTT_US}, returned=("rate_bps",))
"""p4src/schemes/rcp/rcp_header.p4: "RC" is the profile."""


@dataclass(frozen=True, slots=True)
class RcpParameters:
    """The sender has no constants in the paper but R; these name what it leaves open."""

    max_rate_bps: float = 1e9
    """The rate of the sender's own link: it cannot send more, whatever the routers allow."""

    packet_bytes: int = 1000
    """An IPv4 datagram of data, with headers."""

    initial_rate_bps: float = 100_000.0
    """Until the first acknowledgement. The paper sends one SYN. 100 kb/s is one packet of 1000 bytes in 80 ms."""

    min_rate_bps: float = 8_000.0
    """No rate goes below it: one packet of 1000 bytes a second keeps asking."""

    silence_s: float = 2.0
    """After so long without an acknowledgement, and so often again, the rate is halved. The paper does not say."""

    def __post_init__(self) -> None:
        require_positive("RcpParameters", **{name: getattr(self, name) for name in self.__slots__})
        if self.min_rate_bps > self.max_rate_bps:
            raise ValueError(f"RcpParameters.min_rate_bps = {self.min_rate_bps!r} is above max_rate_bps = {self.max_rate_bps!r}")


class RcpSender(Sender):
    """Sends at the rate that came back last [RCP sec II]. Where no router writes one, it stays at the initial rate."""

    interests = Interests(acks=AckDetail.EVERY, scheme="rcp", header=HEADER)

    def __init__(self, parameters: RcpParameters = RcpParameters()) -> None:
        self.parameters = parameters
        self.rate_bps = clamp(parameters.initial_rate_bps, parameters.min_rate_bps, parameters.max_rate_bps)
        self._heard_s = 0.0

    def on_start(self, now_s: float, rng: Rng) -> tuple[SenderAction, ...]:
        self._heard_s = now_s
        return SetRate(self.rate_bps), SetTimer(SILENCE_TIMER, now_s + self.parameters.silence_s)

    def on_ack(self, now_s: float, ack: Ack, rng: Rng) -> tuple[SenderAction, ...]:
        p = self.parameters
        self._heard_s = now_s
        unknown = ack.header is None or ack.header.rate_bps == UNLIMITED
        wanted_bps = p.initial_rate_bps if unknown else float(ack.header.rate_bps)
        rate_bps = clamp(wanted_bps, p.min_rate_bps, p.max_rate_bps)
        if rate_bps == self.rate_bps:
            return ()
        self.rate_bps = rate_bps
        return (SetRate(rate_bps),)

    def on_timer(self, now_s: float, timer: Timer, rng: Rng) -> tuple[SenderAction, ...]:
        p = self.parameters
        if timer.name != SILENCE_TIMER:
            return ()
        actions: tuple[SenderAction, ...] = ()
        if now_s >= self._heard_s + p.silence_s:  # as the timer was set: a difference may be rounded below silence_s
            self._heard_s = now_s
            self.rate_bps = max(self.rate_bps / 2, p.min_rate_bps)
            actions = (SetRate(self.rate_bps), Note("rcp.silence", (("rate_bps", self.rate_bps),)))
        return (*actions, SetTimer(SILENCE_TIMER, self._heard_s + p.silence_s))


class RcpReceiver(Receiver):
    """Every acknowledgement sends the packet's rate header back, without a decision here."""

    def __init__(self, parameters: RcpParameters = RcpParameters()) -> None:
        self.parameters = parameters


KINDS = (
    Kind(
        "rcp",
        "routers write one rate for all flows into each packet, senders follow it (Dukkipati et al. 2005)",
        RcpParameters,
        RcpSender,
        RcpReceiver,
    ),
)

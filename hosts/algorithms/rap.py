"""RAP, the Rate Adaptation Protocol: Rejaie, Handley and Estrin, section III, without fine grain (that is `rap_fine.py`).

The receiver acknowledges each packet; the sender paces packets by an inter-packet gap, IPG. Once every SRTT without loss

    IPG_i+1 = IPG_i C / (IPG_i + C),  C = SRTT            (1), (5)
    alpha = S_i+1 - S_i = PacketSize / C                  (2)     one packet more in each step of length SRTT

and on a loss, found by a gap of three packets or by a timeout, at once

    IPG_i+1 = IPG_i / beta,  beta = 0.5                   (3)

after which losses of packets sent before the back-off, the cluster Seq_LastSent >= Seq > Seq_FirstLoss (6), are ignored.

Steps follow each other: a back-off starts a new one, as it is an adjustment point ("Decision Frequency" [RAP sec III]).
The sequence numbers identify the losses of a cluster. The paper ends its cluster-loss-mode at an ACK >= Seq_LastSent: from then on no
packet of the cluster is outstanding, but that losses right below Seq_LastSent are known only three packets later. They
belong to the cluster and are ignored, too.

Choices that the paper leaves open, each a parameter of `RapParameters`: how a flow starts, the timeout's constants, the longest gap, steps
without any acknowledgement.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlane.hosts.algorithms.base import (
    AckDetail,
    Interests,
    Kind,
    Loss,
    LossCause,
    Note,
    PathState,
    Receiver,
    Rng,
    Sender,
    SenderAction,
    SetLossTimeout,
    SetRate,
    SetTimer,
    Timer,
    clamp,
    require_positive,
)

STEP_TIMER = "rap.step"
TIMER, BEFORE_SENDING = "timer", "before-sending"


@dataclass(frozen=True, slots=True)
class RapParameters:
    """The paper's values, and names for the choices that it leaves open."""

    max_rate_bps: float = 10e6
    """The rate of the sender's own link. No rate goes above it; a shorter IPG would only fill the sender's queue."""

    packet_bytes: int = 1000
    """PacketSize: an IPv4 datagram of data, header included. RAP's table 1 has 100."""

    beta: float = 0.5
    """Multiplicative decrease [RAP eq 3]."""

    step_packets: float = 1.0
    """Packets that a step adds to those sent in SRTT, at C = SRTT / step_packets. The paper's C = SRTT adds 1 [RAP eq 5]."""

    initial_ipg_s: float = 1.0
    """Gap before the first acknowledgement. The paper does not discuss the start-up. One packet a second is TFRC's
    [RFC 5348 sec 4.2]; the first acknowledgement makes it one packet per SRTT, TCP's smallest window."""

    first_rtt_poll_s: float = 0.05
    """How often a starting sender looks whether a round trip is known. Short beside `initial_ipg_s`."""

    timeout_check: str = TIMER
    """"timer": a timer runs for the oldest outstanding packet, with G and doubling as TCP's (RFC 6298). "before-sending": the source
    looks "before sending a new packet" [RAP sec III], and the timeout has neither G nor doubling: the paper names neither, and its
    authors' simulation has neither (ns-2, rap.cc)."""

    timeout_srtt_factor: float = 1.0
    """Timeout = this x SRTT + max(`timeout_granularity_s`, `timeout_deviation_factor` x deviation). "Jacobson/Karel's algorithm"
    [RAP sec III]: [RFC 6298 sec 2]."""

    timeout_deviation_factor: float = 4.0
    """K of [RFC 6298 sec 2]."""

    timeout_granularity_s: float = 0.1
    """G of [RFC 6298 sec 2]. Without it a path of constant delay has a timeout of just its round trip, and the first packet
    that waits in a queue counts as lost. The paper gives 100 ms for TCP [RAP table 1]."""

    initial_timeout_s: float = 3.0
    """Timeout while no round trip is known: [RFC 2988 sec 2 step 2.1], of the paper's time."""

    max_timeout_s: float = 60.0
    """Each timeout doubles the next until the first step or back-off after a new round-trip sample [RFC 6298 sec 5 step 5.5, sec 2 step 2.5]: else
    a path that lost everything would have a back-off for each packet. Samples come from late acknowledgements, too."""

    max_ipg_s: float = 64.0
    """Longest gap. The paper has none; a gap that doubled without end would stall the flow. TFRC's t_mbi [RFC 5348 sec 4.3]."""

    min_rtt_s: float = 0.001
    """Shortest step. A round trip of 0, which only a coarse clock or a forged packet can show, would make steps without end."""

    steps_need_acks: bool = True
    """A step in which nothing was acknowledged adds nothing. Steps are to "observe the reaction of the network to the previous
    adjustment before making a new adjustment" [RAP sec III], and there was none: else the rate grows while the path is dead."""

    def __post_init__(self) -> None:
        require_positive(
            "RapParameters",
            max_rate_bps=self.max_rate_bps,
            packet_bytes=self.packet_bytes,
            beta=self.beta,
            step_packets=self.step_packets,
            initial_ipg_s=self.initial_ipg_s,
            first_rtt_poll_s=self.first_rtt_poll_s,
            timeout_srtt_factor=self.timeout_srtt_factor,
            timeout_deviation_factor=self.timeout_deviation_factor,
            timeout_granularity_s=self.timeout_granularity_s,
            initial_timeout_s=self.initial_timeout_s,
            max_timeout_s=self.max_timeout_s,
            max_ipg_s=self.max_ipg_s,
            min_rtt_s=self.min_rtt_s,
        )
        if self.timeout_check not in (TIMER, BEFORE_SENDING):
            raise ValueError(f'RapParameters.timeout_check = {self.timeout_check!r}: "{TIMER}" or "{BEFORE_SENDING}"')
        if self.beta >= 1:
            raise ValueError(f"RapParameters.beta = {self.beta!r}: a decrease is below 1")
        if self.max_ipg_s < self.min_ipg_s:
            raise ValueError(
                f"RapParameters.max_ipg_s = {self.max_ipg_s!r}: max_rate_bps and packet_bytes allow no gap below {self.min_ipg_s!r} s"
            )

    @property
    def min_ipg_s(self) -> float:
        """The gap at `max_rate_bps`."""
        return 8 * self.packet_bytes / self.max_rate_bps


def increased_ipg_s(ipg_s: float, c_s: float) -> float:
    """IPG_i+1 = IPG_i C / (IPG_i + C) [RAP eq 1]; both positive."""
    return ipg_s * c_s / (ipg_s + c_s)


class RapSender(Sender):
    """The sending half of RAP [RAP sec III]."""

    interests = Interests(acks=AckDetail.LOSSES, loss_distance_packets=3)

    def __init__(self, parameters: RapParameters = RapParameters()) -> None:
        self.parameters = parameters
        self.ipg_s = clamp(parameters.initial_ipg_s, parameters.min_ipg_s, parameters.max_ipg_s)
        self.cluster_end = -1
        """Seq_LastSent at the last back-off [RAP eq 6]; -1 before the first."""
        self.backoffs = 0
        self._started = False
        """The first round trip is known."""
        self._next_step_s = 0.0
        self._acked_before = -1
        """Highest number acknowledged when the present step began."""
        before_sending = parameters.timeout_check == BEFORE_SENDING
        self._timeout_undoubled = SetLossTimeout(
            parameters.initial_timeout_s,
            parameters.timeout_srtt_factor,
            parameters.timeout_deviation_factor,
            0.0 if before_sending else parameters.timeout_granularity_s,
            before_sending,
        )
        self._timeout = self._timeout_undoubled
        """In force."""
        self._timeout_doublings = 0
        self._sample_before: tuple[float, float] = (0.0, 0.0)
        """SRTT and deviation at the last timeout: others mean a new sample."""

    def on_start(self, now_s: float, rng: Rng) -> tuple[SenderAction, ...]:
        p = self.parameters
        self._next_step_s = now_s + p.first_rtt_poll_s
        return (SetRate(self._rate_bps()), self._timeout, SetTimer(STEP_TIMER, self._next_step_s))

    def on_timer(self, now_s: float, timer: Timer, rng: Rng) -> tuple[SenderAction, ...]:
        if timer.name != STEP_TIMER:
            return ()
        if now_s < self._next_step_s:
            return (SetTimer(STEP_TIMER, self._next_step_s),)
        p, path = self.parameters, timer.path
        if path is None or not path.srtt_s > 0.0:
            self._next_step_s = now_s + p.first_rtt_poll_s
            return (SetTimer(STEP_TIMER, self._next_step_s),)
        if not self._started:
            self._started = True
            self._set_ipg(min(self.ipg_s, self._srtt_s(path)))
        elif path.highest_acked_sequence > self._acked_before or not p.steps_need_acks:
            c_s = self._srtt_s(path) / p.step_packets  # C = SRTT [RAP eq 5]
            self._set_ipg(increased_ipg_s(self.ipg_s, c_s))  # [RAP eq 1]
        return (SetRate(self._rate_bps()), *self._begin_step(now_s, path))

    def on_loss(self, now_s: float, loss: Loss, rng: Rng) -> tuple[SenderAction, ...]:
        path = loss.path
        if loss.last_sequence <= self.cluster_end:  # Seq_LastSent >= Seq: of the cluster [RAP eq 6]
            return ()
        if loss.cause is LossCause.TIMEOUT:
            sample = (path.srtt_s, path.rttvar_s)
            self._timeout_doublings = self._timeout_doublings + 1 if sample == self._sample_before else 1
            self._sample_before = sample
        self.cluster_end = max(path.last_sent_sequence, loss.last_sequence)  # Seq_LastSent [RAP eq 6]
        self.backoffs += 1
        self._set_ipg(self.ipg_s / self.parameters.beta)  # IPG_i+1 = IPG_i / beta [RAP eq 3]
        return (
            SetRate(self._rate_bps()),
            *self._begin_step(now_s, path),
            Note("rap.backoff", (("cause", loss.cause.value), ("lost", loss.lost_packets), ("ipg_s", self.ipg_s), ("srtt_s", path.srtt_s))),
        )

    def _begin_step(self, now_s: float, path: PathState) -> tuple[SenderAction, ...]:
        self._acked_before = path.highest_acked_sequence
        known = path.srtt_s > 0.0
        self._next_step_s = now_s + (self._srtt_s(path) if known else self.parameters.first_rtt_poll_s)  # one step is SRTT [RAP sec III]
        before, self._timeout = self._timeout, self._loss_timeout(path)
        timer = SetTimer(STEP_TIMER, self._next_step_s)
        return (timer,) if self._timeout == before else (self._timeout, timer)

    def _loss_timeout(self, path: PathState) -> SetLossTimeout:
        """The runner follows the round trip with it "using the updated value of the SRTT estimate" [RAP sec III]; times a power of two
        after timeouts."""
        p, basic = self.parameters, self._timeout_undoubled
        if basic.before_sending:
            return basic
        if self._timeout_doublings and (path.srtt_s, path.rttvar_s) != self._sample_before:
            self._timeout_doublings = 0
        # 64 doublings of any timeout are more than the maximum
        # a forged round trip may be infinite, and a timeout of no time at all would lose all packets
        in_force_s = min(basic.in_force_s(path.srtt_s, path.rttvar_s), 2.0**64)
        scale = min(2.0 ** min(self._timeout_doublings, 64), p.max_timeout_s / in_force_s)
        return (
            basic
            if scale == 1.0
            else SetLossTimeout(
                basic.timeout_s * scale, basic.srtt_factor * scale, basic.rttvar_factor * scale, basic.granularity_s * scale
            )
        )

    def _srtt_s(self, path: PathState) -> float:
        return clamp(path.srtt_s, self.parameters.min_rtt_s, self.parameters.max_timeout_s)

    def _set_ipg(self, ipg_s: float) -> None:
        self.ipg_s = clamp(ipg_s, self.parameters.min_ipg_s, self.parameters.max_ipg_s)

    def _rate_bps(self) -> float:
        p = self.parameters
        return min(8 * p.packet_bytes / self.ipg_s, p.max_rate_bps)  # S_i = PacketSize / IPG_i [RAP eq 1]


class RapReceiver(Receiver):
    """The sink: acknowledges each packet, which is the runner's work [RAP sec III]."""

    def __init__(self, parameters: RapParameters = RapParameters()) -> None:
        self.parameters = parameters


KINDS = (
    Kind(
        "rap",
        "additive increase each SRTT, halving on loss, by the gap between packets [RAP sec III]",
        RapParameters,
        RapSender,
        RapReceiver,
    ),
)

"""GAIMD, general AIMD congestion control: Yang and Lam (ICNP 2000), as [SSVP sec II] describes it and [SSVP sec VI] compares with it.

TCP's window rules with two parameters. Without loss the window W grows by alpha each round trip, on a loss it falls to beta W:

    W = W + alpha / W      each acknowledged packet
    W = beta W             a loss, once for the packets of one window
    alpha = 4 (1 - beta^2) / 3                                                        [SSVP eq 2]

so that the mean rate is TCP's (alpha = 1, beta = 1/2): beta = 0.875 gives 0.3125, and the authors take 0.31 [SSVP sec II].

All other rules are TCP's, as in the authors' experiments, which changed the two numbers of a TCP: slow start, a window of one packet after
a timeout ([RFC 5681 sec 3.1], RFC 6298). There are no retransmissions: video data would arrive too late.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlane.hosts.algorithms.base import (
    Ack,
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
    SetWindow,
    clamp,
    require_positive,
)


@dataclass(frozen=True, slots=True)
class GaimdParameters:
    """The authors' values, and TCP's."""

    alpha: float = 0.31
    """Packets that a round trip without loss adds [SSVP sec II]."""

    beta: float = 0.875
    """What a loss leaves of the window [SSVP sec II]."""

    max_rate_bps: float = 10e6
    """The rate of the sender's own link: the window grows no further than it carries in a smoothed round trip."""

    packet_bytes: int = 1000
    """An IPv4 datagram of data, header included."""

    initial_window_packets: float = 2.0
    """[RFC 5681 sec 3.1] allows 2 to 4."""

    initial_threshold_packets: float = 1e6
    """Slow start ends here or at the first loss: arbitrarily high [RFC 5681 sec 3.1]."""

    max_window_packets: float = 1000.0
    """TCP's largest window in the papers' simulations [RAP table 1]."""

    min_timeout_s: float = 0.2
    """Smallest retransmission timeout. [RFC 6298 sec 2 step 2.4] asks for 1 s; 0.2 s is what ns-2, where the papers' figures come from, and
    Linux have."""

    initial_timeout_s: float = 1.0
    """Before the first round trip [RFC 6298 sec 2 step 2.1]."""

    max_timeout_s: float = 60.0
    """Each timeout doubles the next until a packet is acknowledged [RFC 6298 sec 5 step 5.5, sec 2 step 2.5]."""

    def __post_init__(self) -> None:
        require_positive(
            "GaimdParameters",
            alpha=self.alpha,
            beta=self.beta,
            max_rate_bps=self.max_rate_bps,
            packet_bytes=self.packet_bytes,
            initial_window_packets=self.initial_window_packets,
            initial_threshold_packets=self.initial_threshold_packets,
            max_window_packets=self.max_window_packets,
            min_timeout_s=self.min_timeout_s,
            initial_timeout_s=self.initial_timeout_s,
            max_timeout_s=self.max_timeout_s,
        )
        if self.beta >= 1:
            raise ValueError(f"GaimdParameters.beta = {self.beta!r}: a decrease is below 1")
        if not 1 <= self.initial_window_packets <= self.max_window_packets <= 1e6:
            raise ValueError(
                f"GaimdParameters.initial_window_packets = {self.initial_window_packets!r}: must be in"
                f" [1, max_window_packets = {self.max_window_packets!r}], and that at most 1e6"
            )


class GaimdSender(Sender):
    """The sending half."""

    interests = Interests(acks=AckDetail.EVERY, loss_distance_packets=3)

    def __init__(self, parameters: GaimdParameters = GaimdParameters()) -> None:
        self.parameters = parameters
        self.window = parameters.initial_window_packets
        """W, packets."""
        self.threshold = parameters.initial_threshold_packets
        """Below it W grows by a packet for each one acknowledged: slow start."""
        self.recovery_end = -1
        """Last packet sent when W fell: losses up to it are of the same window."""
        self._timeout_s = parameters.initial_timeout_s
        self._doublings = 0

    def on_start(self, now_s: float, rng: Rng) -> tuple[SenderAction, ...]:
        return (SetWindow(self.window), SetLossTimeout(self._timeout_s))

    def on_ack(self, now_s: float, ack: Ack, rng: Rng) -> tuple[SenderAction, ...]:
        p = self.parameters
        packets = max(0, ack.newly_acked_packets)
        before = self.window
        if ack.sequence > self.recovery_end or self.recovery_end < 0:  # no growth by packets sent before the decrease
            for _ in range(min(packets, 64)):  # of an acknowledgement's history
                self.window += 1.0 if self.window < self.threshold else p.alpha / self.window  # W = W + alpha / W
        self.window = self._limited(self.window, ack.path)
        self._doublings = 0
        timeout = self._timeout(ack.path)
        return ((SetWindow(self.window),) if self.window != before else ()) + timeout

    def on_loss(self, now_s: float, loss: Loss, rng: Rng) -> tuple[SenderAction, ...]:
        if loss.last_sequence <= self.recovery_end and (loss.cause is not LossCause.TIMEOUT or loss.path.in_flight_packets):
            return ()  # of the window that was answered already
        p = self.parameters
        reduced = self._limited(self.window * p.beta, loss.path)  # W = beta W
        self.threshold = max(reduced, 2.0)  # [RFC 5681 sec 3.1]: at least two packets
        self.recovery_end = max(loss.path.last_sent_sequence, loss.last_sequence)
        if loss.cause is LossCause.TIMEOUT:
            self.window = 1.0  # [RFC 5681 sec 3.1]: the loss window
            self._doublings += 1
        else:
            self.window = reduced
        values = (("cause", loss.cause.value), ("lost", loss.lost_packets), ("window", self.window), ("threshold", self.threshold))
        return (SetWindow(self.window), *self._timeout(loss.path), Note("gaimd.decrease", values))

    def _limited(self, window: float, path: PathState) -> float:
        p = self.parameters
        most = p.max_window_packets
        if path.srtt_s > 0.0:
            most = min(most, p.max_rate_bps * path.srtt_s / (8 * p.packet_bytes))
        return clamp(window, 1.0, max(most, 1.0))

    def _timeout(self, path: PathState) -> tuple[SenderAction, ...]:
        """The age at which a packet counts as lost, reported when it changes by a hundredth: most acknowledgements change it less.

        TCP's timer restarts with each acknowledgement of new data [RFC 6298 sec 5 step 5.3], the last of which comes about a round
        trip after a packet was sent: so a packet has a round trip and the timeout. The timeout alone, counted from its sending, would
        expire before three later packets can tell of a loss, when the queue is full and the deviation small."""
        p = self.parameters
        rto_s = path.srtt_s + 4 * path.rttvar_s if path.srtt_s > 0.0 else p.initial_timeout_s  # [RFC 6298 sec 2 step 2.3]
        rto_s = clamp(rto_s, p.min_timeout_s, p.max_timeout_s) * 2.0 ** min(self._doublings, 16)
        seconds = clamp(rto_s, p.min_timeout_s, p.max_timeout_s) + clamp(path.srtt_s, 0.0, p.max_timeout_s)
        if abs(seconds - self._timeout_s) <= 0.01 * self._timeout_s:
            return ()
        self._timeout_s = seconds
        return (SetLossTimeout(seconds),)


class GaimdReceiver(Receiver):
    """Acknowledges each packet, which is the runner's work."""

    def __init__(self, parameters: GaimdParameters = GaimdParameters()) -> None:
        self.parameters = parameters


KINDS = (
    Kind(
        "gaimd",
        "TCP's window with increase 0.31 and decrease 0.875: as friendly, but smoother [SSVP sec II]",
        GaimdParameters,
        GaimdSender,
        GaimdReceiver,
    ),
)

"""ABC, Accel-Brake Control: Goyal, Agarwal, Netravali, Alizadeh and Balakrishnan, "ABC: A Simple Explicit Congestion Controller for Wireless
Networks" (NSDI 2020).

Routers turn packets of "accelerate" into "brake" (p4src/schemes/abc), and the receiver sends the mark back [ABC sec 3.1.2]:

    accelerate   w <- w + 1 + 1/w                                  (3)
    brake        w <- w - 1 + 1/w                                  (3)

So the window may double or vanish within a round trip, and 1/w makes flows equal [ABC sec 3.1.3]. A second window reacts to losses, and to CE
of routers without ABC. The smaller window applies, and both are at most twice the data in flight [ABC sec 4.1]. As in the authors' code, the second window is
CUBIC's ([RFC 9438 sec 4], without its Reno-friendly region):

    W(t) = C (t - K)^3 + W_max,  K = cbrt((W_max - cwnd_epoch) / C)               [RFC 9438 eq 1, 2]

The paper's code uses TCP. Here packets are RTP, without retransmissions, and without the authors' pacing at twice the window for a round
trip: an acknowledgement releases two packets at most.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlane.arithmetic import cube, power
from fairlane.hosts.algorithms.base import (
    Ack,
    AckDetail,
    Ecn,
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
CUBIC_C, CUBIC_BETA = 0.4, 0.7
"""C and beta_cubic [RFC 9438 sec 4.6, 5]."""


@dataclass(frozen=True, slots=True)
class AbcParameters:
    """What the paper leaves open."""

    initial_window_packets: float = 10.0
    """Linux, below the authors' module."""

    min_window_packets: float = 2.0
    """Of either window. The authors' module stops at 5."""

    first_timeout_s: float = 1.0
    """A packet is lost after it while no round trip is known [RFC 6298 sec 2], and after SRTT + max(0.2 s, 4 RTTVAR) later."""

    def __post_init__(self) -> None:
        require_positive("AbcParameters", **{name: getattr(self, name) for name in self.__slots__})
        if self.min_window_packets < 1:
            raise ValueError(f"AbcParameters.min_window_packets = {self.min_window_packets!r}: must be at least 1")


def next_window(window: float, packets: int, ecn: int) -> float:
    """w after an acknowledgement of so many packets [ABC eq 3]. CE hides the mark: only 1/w is left. Not-ECT: nobody on the way knows ECN, so
    nobody brakes."""
    step = {Ecn.CE: 0, Ecn.ECT_0: -1}.get(Ecn(ecn & 3), 1)
    return window + packets * (step + 1 / window)


def cubic_window(largest: float, epoch_window: float, elapsed_s: float) -> float:
    """W(t) in packets, so long after a window of epoch_window packets [RFC 9438 eq 1, 2]."""
    k_s = power(max(largest - epoch_window, 0.0) / CUBIC_C, 1 / 3)
    # A forged round trip of 1e103 s must not raise OverflowError; after a million seconds the window is long at its bound.
    return CUBIC_C * cube(min(elapsed_s - k_s, 1e6)) + largest


class AbcSender(Sender):
    """Two windows; the smaller one holds."""

    interests = Interests(acks=AckDetail.EVERY, scheme="abc", ecn=Ecn.ECT_1)

    def __init__(self, parameters: AbcParameters = AbcParameters()) -> None:
        self.parameters = parameters
        self.window = max(parameters.initial_window_packets, parameters.min_window_packets)
        """w of equation 3."""
        self.loss_window = self.window
        self.threshold = MAX_WINDOW_PACKETS
        """ssthresh of the second window."""
        self._largest = self._epoch_window = self.window
        """W_max and cwnd_epoch of the second window."""
        self._epoch_s: float | None = None
        """When congestion avoidance began; None: it did not, since the last reduction."""
        self._recover = -1
        """The last packet sent before the last reduction."""

    def on_start(self, now_s: float, rng: Rng) -> tuple[SenderAction, ...]:
        return SetLossTimeout(self.parameters.first_timeout_s, 1.0, 4.0, 0.2), self._set()

    def on_ack(self, now_s: float, ack: Ack, rng: Rng) -> tuple[SenderAction, ...]:
        packets = ack.newly_acked_packets
        if packets == 0:
            return ()
        notes: tuple[SenderAction, ...] = ()
        if ack.ecn == Ecn.CE and ack.sequence > self._recover:
            notes = (self._reduce(ack.path.last_sent_sequence),)
        elif self.loss_window < self.threshold:
            self.loss_window += packets
        else:
            if self._epoch_s is None:
                self._epoch_s, self._epoch_window = now_s, self.loss_window
            target = cubic_window(self._largest, self._epoch_window, now_s - self._epoch_s + ack.path.srtt_s)
            target = min(max(self.loss_window, target), 1.5 * self.loss_window)  # in this order no window becomes NaN
            self.loss_window += packets * (target - self.loss_window) / self.loss_window  # [RFC 9438 sec 4.4]
        self.window = next_window(self.window, packets, ack.ecn)
        most = 2.0 * (ack.path.in_flight_packets + packets)
        self.window, self.loss_window = (self._limited(min(window, most)) for window in (self.window, self.loss_window))
        return (*notes, self._set())

    def on_loss(self, now_s: float, loss: Loss, rng: Rng) -> tuple[SenderAction, ...]:
        if loss.last_sequence <= self._recover:
            return ()
        note = self._reduce(loss.path.last_sent_sequence)
        if loss.cause is LossCause.TIMEOUT:
            self.loss_window = self.parameters.min_window_packets
        return note, self._set()

    def _reduce(self, last_sent: int) -> Note:
        self._recover = last_sent
        self._largest, self._epoch_s = min(self.window, self.loss_window), None
        self.loss_window = self.threshold = self._limited(CUBIC_BETA * self._largest)
        return Note("abc.reduction", (("loss_window_packets", self.loss_window),))

    def _limited(self, window: float) -> float:
        return min(max(window, self.parameters.min_window_packets), MAX_WINDOW_PACKETS)

    def _set(self) -> SetWindow:
        return SetWindow(min(self.window, self.loss_window))


class AbcReceiver(Receiver):
    """Every acknowledgement says how its packet was marked, without a decision here."""

    def __init__(self, parameters: AbcParameters = AbcParameters()) -> None:
        self.parameters = parameters


KINDS = (
    Kind(
        "abc",
        "routers mark each packet accelerate or brake, senders change their windows by a packet (Goyal et al. 2020)",
        AbcParameters,
        AbcSender,
        AbcReceiver,
    ),
)

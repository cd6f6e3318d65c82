"""A window that follows what switches write of themselves, as HPCC does (Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019).

Of each link of the path, telemetry says the queue q, the bytes that left, the time, and so the load

    U_j = q_j / (B_j T) + tx_j / B_j        B_j the link's rate, T the path's round trip without queues
    W   = W_c eta / U + w_ai                U of the most loaded link, smoothed over T; W_c the window of a round trip ago

where U is below eta the window grows by w_ai for at most `max_stage` round trips before it follows U again.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlane.hosts.algorithms.base import (
    Ack,
    AckDetail,
    Header,
    Interests,
    Kind,
    Loss,
    LossCause,
    Receiver,
    Rng,
    Sender,
    SenderAction,
    SetLossTimeout,
    SetWindow,
    clamp,
    require_positive,
)

WRAP = 1 << 32
"""Of the hops' bytes and times."""


@dataclass(frozen=True, slots=True)
class TelemetryWindowParameters:
    packet_bytes: int = 1000
    """An IPv4 datagram of data, with headers."""
    target: float = 0.95
    """eta: the load that the most loaded link shall have."""
    increase_packets: float = 0.5
    """w_ai."""
    max_stage: int = 5
    initial_window_packets: float = 4.0
    max_window_packets: float = 10_000.0

    def __post_init__(self) -> None:
        require_positive("TelemetryWindowParameters", **{name: getattr(self, name) for name in self.__slots__})


class TelemetryWindowSender(Sender):
    interests = Interests(
        acks=AckDetail.EVERY,
        scheme="telemetry",
        header=Header("telemetry_t", profile=0x5445, hops="hop_t", hop_count="count"),
    )

    def __init__(self, parameters: TelemetryWindowParameters = TelemetryWindowParameters()) -> None:
        self.parameters = parameters
        self.window = self._reference = parameters.initial_window_packets
        self._load = 0.0
        self._stage = 0
        self._until = -1
        """The last packet of the round trip that has `_reference`."""
        self._base_rtt_s = float("inf")
        self._before: tuple = ()
        """Hops of the acknowledgement before, the first switch first."""

    def on_start(self, now_s: float, rng: Rng) -> tuple[SenderAction, ...]:
        return SetLossTimeout(1.0, 1.0, 4.0, 0.2), SetWindow(self.window)

    def on_ack(self, now_s: float, ack: Ack, rng: Rng) -> tuple[SenderAction, ...]:
        if ack.header is None or not ack.header.hops:
            return ()
        self._base_rtt_s = min(self._base_rtt_s, max(ack.rtt_s, 1e-6))
        hops, before = ack.header.hops[::-1], self._before
        self._before = hops
        if len(before) != len(hops):
            return ()  # the first acknowledgement, or another path
        self._measure(before, hops)
        p = self.parameters
        if self._load >= p.target or self._stage >= p.max_stage:
            window, stage = self._reference * p.target / max(self._load, 1e-3) + p.increase_packets, 0
        else:
            window, stage = self._reference + p.increase_packets, self._stage + 1
        self.window = clamp(window, 1.0, p.max_window_packets)
        if ack.sequence > self._until:
            self._reference, self._stage, self._until = self.window, stage, ack.path.last_sent_sequence
        return (SetWindow(self.window),)

    def _measure(self, before: tuple, hops: tuple) -> None:
        """U, smoothed."""
        base_us = self._base_rtt_s * 1e6
        loads = []
        for old, new in zip(before, hops):
            elapsed_us = (new.time_us - old.time_us) % WRAP
            us_of_a_byte = new.byte_time / (1 << 20)
            if 0 < elapsed_us < WRAP // 2:
                waits = min(old.queue_packets, new.queue_packets) * self.parameters.packet_bytes * us_of_a_byte / base_us
                loads.append((waits + (new.bytes - old.bytes) % WRAP * us_of_a_byte / elapsed_us, elapsed_us))
        if loads:
            load, elapsed_us = max(loads)
            part = min(elapsed_us / base_us, 1.0)
            self._load += part * (load - self._load)

    def on_loss(self, now_s: float, loss: Loss, rng: Rng) -> tuple[SenderAction, ...]:
        self._before = ()
        if loss.cause is LossCause.TIMEOUT:
            self.window = self._reference = 1.0
        return (SetWindow(self.window),)


class TelemetryWindowReceiver(Receiver):
    """Every acknowledgement sends the packet's header back, without a decision here."""

    def __init__(self, parameters: TelemetryWindowParameters = TelemetryWindowParameters()) -> None:
        self.parameters = parameters


KINDS = (
    Kind(
        "telemetry-window",
        "a window by what each switch of the path writes of its queue and its link",
        TelemetryWindowParameters,
        TelemetryWindowSender,
        TelemetryWindowReceiver,
    ),
)

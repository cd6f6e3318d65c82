"""RTCP reception statistics: sequence numbers, losses, jitter (RFC 3550 section 6.4.1, appendices A.1, A.3, A.8)."""

from __future__ import annotations

from dataclasses import dataclass

from hosts.wire.rtcp import ReportBlock

MAX_DROPOUT = 3000
"""A jump ahead by more is a restart of the source, if the next packet follows on (RFC 3550 appendix A.1)."""
MAX_MISORDER = 100
"""A packet at most this far behind the highest is late, not a restart (RFC 3550 appendix A.1)."""


class SourceStatistics:
    """What a receiver knows of one source.

    Differs from appendix A.1 in one point: the first packet counts (MIN_SEQUENTIAL = 1). The runner's sockets are connected to
    the peer, so that a stray packet of another source cannot pose as a new one, and every packet sent must be accounted for.
    """

    __slots__ = (
        "ssrc", "clock_rate", "max_dropout", "base_sequence", "highest_sequence", "cycles", "received_packets", "restarts",
        "out_of_order_packets", "jitter_units", "_bad_sequence", "_transit", "_expected_prior", "_received_prior",
    )  # fmt: skip

    def __init__(self, ssrc: int, clock_rate: int, max_dropout: int = MAX_DROPOUT) -> None:
        """`clock_rate`: RTP timestamp units per second. `max_dropout`: less than 2^16 - MAX_MISORDER."""
        self.ssrc = ssrc
        self.clock_rate = clock_rate
        self.max_dropout = max_dropout
        self.base_sequence = -1
        self.highest_sequence = 0
        self.cycles = 0
        self.received_packets = 0
        """Since the last restart; duplicates count."""
        self.restarts = 0
        self.out_of_order_packets = 0
        self.jitter_units = 0.0
        self._bad_sequence = -1
        self._transit: float | None = None
        self._expected_prior = 0
        self._received_prior = 0

    def _restart(self, sequence: int) -> None:
        self.base_sequence = self.highest_sequence = sequence
        self.cycles = 0
        self.received_packets = 0
        self._bad_sequence = -1
        self._transit = None
        self._expected_prior = self._received_prior = 0

    def update(self, sequence: int, timestamp: int, arrival_s: float) -> bool:
        """Count a data packet. False when it was set aside as a possible restart of the source (appendix A.1)."""
        if self.base_sequence < 0:
            self._restart(sequence)
        else:
            ahead = (sequence - self.highest_sequence) & 0xFFFF
            if ahead < self.max_dropout:
                if sequence < self.highest_sequence:
                    self.cycles += 65536
                self.highest_sequence = sequence
            elif ahead <= 65536 - MAX_MISORDER:
                if sequence != self._bad_sequence:
                    self._bad_sequence = (sequence + 1) & 0xFFFF
                    return False
                self._restart(sequence)
                self.restarts += 1
            else:
                self.out_of_order_packets += 1
        self.received_packets += 1
        # Appendix A.8: J += (|D| - J) / 16, D the change of (arrival - timestamp), modulo 2^32 as timestamps wrap.
        transit = (arrival_s * self.clock_rate - timestamp) % 4294967296.0
        if self._transit is not None:
            change = abs(transit - self._transit)
            self.jitter_units += (min(change, 4294967296.0 - change) - self.jitter_units) / 16
        self._transit = transit
        return True

    @property
    def extended_highest_sequence(self) -> int:
        """Grows without wrapping; 32 bits of it go on the wire."""
        return self.cycles + self.highest_sequence

    @property
    def expected_packets(self) -> int:
        """Since the last restart (appendix A.3)."""
        return self.extended_highest_sequence - self.base_sequence + 1 if self.base_sequence >= 0 else 0

    @property
    def lost_packets(self) -> int:
        """Since the last restart; negative when there were more duplicates than losses (appendix A.3)."""
        return self.expected_packets - self.received_packets

    def report_block(self, lsr: int, dlsr: int) -> ReportBlock:
        """A block for a report sent now; starts the next loss interval (appendix A.3)."""
        expected_interval = self.expected_packets - self._expected_prior
        received_interval = self.received_packets - self._received_prior
        self._expected_prior = self.expected_packets
        self._received_prior = self.received_packets
        lost_interval = expected_interval - received_interval
        fraction = min((lost_interval << 8) // expected_interval, 255) if expected_interval > 0 < lost_interval else 0
        return ReportBlock(
            ssrc=self.ssrc,
            fraction_lost=fraction,
            cumulative_lost=max(-0x800000, min(self.lost_packets, 0x7FFFFF)),
            extended_highest_sequence=self.extended_highest_sequence & 0xFFFFFFFF,
            jitter=min(int(self.jitter_units), 0xFFFFFFFF),
            lsr=lsr,
            dlsr=dlsr,
        )


@dataclass(frozen=True, slots=True)
class LossBetweenReports:
    """Losses between two reports of one receiver, exact: the wire's fraction has 8 bits and rounds down."""

    expected_packets: int
    lost_packets: int

    @property
    def fraction(self) -> float:
        return self.lost_packets / self.expected_packets if self.expected_packets else 0.0


def loss_between(previous: ReportBlock | None, block: ReportBlock) -> LossBetweenReports | None:
    """From cumulative losses and highest sequence numbers (RFC 3550 section 6.4.4).

    `None` for a first report, and when the difference is none that a receiver could have counted (restart, reordering of
    reports, forgery): less than 0 or more than all lost, or a saturated counter.
    """
    if previous is None or previous.ssrc != block.ssrc or block.cumulative_lost == 0x7FFFFF:
        return None
    expected = (block.extended_highest_sequence - previous.extended_highest_sequence) & 0xFFFFFFFF
    lost = block.cumulative_lost - previous.cumulative_lost
    if expected >= 0x80000000 or lost > expected:
        return None
    return LossBetweenReports(expected, max(lost, 0))

"""What a receiver knows of one data stream: its source, counts over restarts and successors of that source. Pure."""

from __future__ import annotations

from hosts.session.gaps import Gaps, Missing
from hosts.session.stream import RTP_CLOCK_HZ
from hosts.wire.rtcp import ReportBlock
from hosts.wire.statistics import SourceStatistics

MAX_DROPOUT_PACKETS = 32_000
"""A blackout of so many packets does not restart a receiver's counting: 27 s at 1200 packets/s. RFC 3550's 3000 would lose a
ten-second outage from the books."""
SILENT_SOURCE_S = 10.0
"""After so long without data a receiver accepts another SSRC from the same peer: a sender that was started again."""


class Reception:
    """Of a flow's data, or of one of its layers."""

    __slots__ = ("source", "source_gone", "last_arrival_s", "received_packets", "received_bytes", "_expected_before", "_gaps")

    def __init__(self, loss_distance_packets: int | None = None) -> None:
        """`loss_distance_packets`: where losses are asked for, packets after which one is lost."""
        self.source: SourceStatistics | None = None
        self.source_gone = False
        """It said BYE."""
        self.last_arrival_s = 0.0
        self.received_packets = 0
        self.received_bytes = 0
        self._expected_before = 0  # of sources and restarts that are over
        self._gaps = None if loss_distance_packets is None else Gaps(loss_distance_packets)

    def accepts(self, now: float, ssrc: int) -> bool:
        """Whether data of this SSRC belongs here: the source's own, or of a first or next one that takes its place."""
        source = self.source
        return (
            source is None or ssrc == source.ssrc or self.source_gone or now - self.last_arrival_s >= SILENT_SOURCE_S
        )

    def adopt(self, ssrc: int) -> None:
        """Count another source from now on."""
        self.drop()
        self.source = SourceStatistics(ssrc, RTP_CLOCK_HZ, MAX_DROPOUT_PACKETS)

    def drop(self) -> None:
        """The source is over, or no longer listened to: what it sends meanwhile is not lost."""
        if self.source is not None:
            self._expected_before += self.source.expected_packets
        self.source, self.source_gone = None, False

    def update(self, now: float, sequence: int, timestamp: int, size: int) -> list[Missing]:
        """A packet of the source came, `size` bytes as IPv4 datagram. Those that are lost now, where that is asked for."""
        source = self.source
        before, restarts, expected = source.extended_highest_sequence, source.restarts, source.expected_packets
        counted = source.update(sequence, timestamp, now)
        before_s, self.last_arrival_s = self.last_arrival_s, now
        self.received_packets += 1
        self.received_bytes += size
        if source.restarts != restarts:
            self._expected_before += expected
        if self._gaps is None:
            return []
        if source.restarts != restarts or not expected:
            self._gaps.clear()
            return []
        if not counted:
            return []
        after = source.extended_highest_sequence
        number = after - (after - sequence & 0xFFFF)  # a packet that is late is so by less than numbers take to wrap
        return self._gaps.arrived(number, before + 1, before_s, now)

    @property
    def highest_sequence(self) -> int:
        """Extended; 0 before the first packet."""
        return 0 if self.source is None else self.source.extended_highest_sequence

    @property
    def expected_packets(self) -> int:
        """Over all sources."""
        return self._expected_before + (0 if self.source is None else self.source.expected_packets)

    @property
    def lost_packets(self) -> int:
        """Expected minus received, over all sources; a network that duplicates packets makes it smaller."""
        return self.expected_packets - self.received_packets

    def block(self, lsr: int, dlsr: int, measured: bool = False) -> ReportBlock | None:
        """For a report sent now; begins the next loss interval, unless it is only measured."""
        if self.source is None or self.source_gone:
            return None
        return ReportBlock(self.source.ssrc, 0, 0, 0, 0, lsr, dlsr) if measured else self.source.report_block(lsr, dlsr)

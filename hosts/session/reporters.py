"""At the sender: what receivers' RTCP reports mean to the algorithm. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hosts.algorithms.base import Feedback
from hosts.session.stream import RTP_CLOCK_HZ
from hosts.wire import alsf, ntp, rtcp
from hosts.wire.statistics import loss_between

MAX_REPORTERS = 4096
"""Remembered at once: forged reporters must not use up memory."""


class Reporters:
    """The newest report block of each receiver on each stream, so that losses can be counted between two."""

    def __init__(self, exact_loss: bool) -> None:
        """`exact_loss`: from cumulative counts, where two blocks allow it, instead of the block's 8-bit fraction."""
        self._exact_loss = exact_loss
        self._blocks: dict[tuple[int, int], rtcp.ReportBlock] = {}

    def forget(self, reporter: int) -> None:
        """It said goodbye."""
        for key in [key for key in self._blocks if key[0] == reporter]:
            del self._blocks[key]

    def read(self, packets: tuple[rtcp.RtcpPacket, ...], own: set[int], ntp_now: int) -> Iterator[tuple[Feedback, dict[str, Any]]]:
        """What a compound says of the streams `own` (SSRCs), and the fields of the `feedback` record: one for each receiver that
        reports. Losses of several streams (layers) are one: lost of all by expected of all."""
        echoed = alsf.find_alsf(packets, from_sender=False)
        for packet in packets:
            if isinstance(packet, (rtcp.SenderReport, rtcp.ReceiverReport)):
                blocks = [block for block in packet.blocks if block.ssrc in own]
                if blocks:
                    yield self._feedback(packet.ssrc, blocks, echoed if echoed is not None and echoed.ssrc == packet.ssrc else None, ntp_now)

    def _feedback(self, reporter: int, blocks: list[rtcp.ReportBlock], echoed: alsf.Alsf | None, ntp_now: int) -> tuple[Feedback, dict[str, Any]]:
        counts = [self._count(reporter, block) for block in blocks]
        first = blocks[0]
        weights = [max(1, expected) for expected, _, _ in counts]
        loss_8bit = sum(weight * block.fraction_lost for weight, block in zip(weights, blocks)) / (256 * sum(weights))
        known = [(expected, lost) for expected, lost, exact in counts if exact]
        expected = sum(e for e, _ in known)
        loss_exact = (sum(lost for _, lost in known) / expected if expected else 0.0) if known else None
        feedback = Feedback(
            reporter=reporter,
            loss_fraction=loss_exact if self._exact_loss and loss_exact is not None else loss_8bit,
            rtt_s=ntp.round_trip_s(ntp_now, first.lsr, first.dlsr),
            jitter_s=first.jitter / RTP_CLOCK_HZ,
            desired_rate_bps=None if echoed is None else float(echoed.desired_rate_bps),
            utilisation=None if echoed is None else echoed.utilisation_ppm * alsf.UTILISATION_UNIT,
        )
        return feedback, {
            "ssrc": reporter,
            "rd_bps": None if echoed is None else echoed.desired_rate_bps,
            "u": feedback.utilisation,
            "loss": feedback.loss_fraction,
            "loss_8bit": loss_8bit,
            "loss_exact": loss_exact,
            "cumulative_lost": sum(block.cumulative_lost for block in blocks),
            "rtt_s": feedback.rtt_s,
            "jitter_s": feedback.jitter_s,
        }

    def _count(self, reporter: int, block: rtcp.ReportBlock) -> tuple[int, int, bool]:
        """(expected packets, lost packets, whether these are counted) since the previous report on the same stream. Without one
        nothing can be counted."""
        key = reporter, block.ssrc
        between = loss_between(self._blocks.get(key), block)
        if key in self._blocks or len(self._blocks) < MAX_REPORTERS:
            self._blocks[key] = block
        return (0, 0, False) if between is None else (between.expected_packets, between.lost_packets, True)

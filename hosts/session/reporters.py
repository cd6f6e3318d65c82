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
    """The newest report blocks of each receiver, by stream, so that losses can be counted between two."""

    def __init__(self, exact_loss: bool) -> None:
        """`exact_loss`: from cumulative counts, where two blocks allow it, instead of the block's 8-bit fraction."""
        self._exact_loss = exact_loss
        self._blocks: dict[int, dict[int, rtcp.ReportBlock]] = {}

    def forget(self, reporter: int) -> None:
        """It said goodbye."""
        self._blocks.pop(reporter, None)

    def read(self, packets: tuple[rtcp.RtcpPacket, ...], own: list[int], ntp_now: int) -> Iterator[tuple[Feedback, dict[str, Any]]]:
        """What a compound says of the streams `own` (SSRCs, that of the base layer first), and the fields of the `feedback` record: one for each receiver that
        reports. Losses of several streams (layers) are one: lost of all by expected of all."""
        echoed = alsf.find_alsf(packets, from_sender=False)
        for packet in packets:
            if isinstance(packet, (rtcp.SenderReport, rtcp.ReceiverReport)):
                blocks = sorted((block for block in packet.blocks if block.ssrc in own), key=lambda block: own.index(block.ssrc))
                if blocks:
                    yield self._feedback(packet.ssrc, blocks, echoed if echoed is not None and echoed.ssrc == packet.ssrc else None, ntp_now)

    def _feedback(self, reporter: int, blocks: list[rtcp.ReportBlock], echoed: alsf.Alsf | None, ntp_now: int) -> tuple[Feedback, dict[str, Any]]:
        loss_exact, loss_8bit = self._losses(reporter, blocks)
        if reporter in self._blocks or len(self._blocks) < MAX_REPORTERS:
            self._blocks[reporter] = {block.ssrc: block for block in blocks}
        first = blocks[0]
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
            "cumulative_lost": first.cumulative_lost,
            "rtt_s": feedback.rtt_s,
            "jitter_s": feedback.jitter_s,
        }

    def _losses(self, reporter: int, blocks: list[rtcp.ReportBlock]) -> tuple[float | None, float]:
        """Since the previous report, over all streams: as counted, `None` when nothing can be; and by the blocks' 8-bit fractions,
        each with the weight of its packets. Streams that are reported for the first time count when there are no others."""
        before = self._blocks.get(reporter, {})
        counted = [(loss_between(before.get(block.ssrc), block), block.fraction_lost / 256) for block in blocks]
        known = [(between, fraction) for between, fraction in counted if between is not None]
        expected = sum(between.expected_packets for between, _ in known)
        if len(blocks) == 1:
            return (known[0][0].fraction if known else None), counted[0][1]
        if not expected:
            fractions = [fraction for between, fraction in counted if between is None]
            return None, sum(fractions) / len(fractions) if fractions else 0.0
        lost = sum(between.lost_packets for between, _ in known)
        return lost / expected, sum(fraction * between.expected_packets for between, fraction in known) / expected

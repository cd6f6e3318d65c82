"""What timed acknowledgements say, worked by hand: delay above the smallest, receive rate, losses of a window."""

from __future__ import annotations

from math import inf, nan

import pytest

from fairlane.hosts.algorithms.base import Ack, Loss, LossCause, PathState
from fairlane.hosts.algorithms.packet_feedback import BaseDelay, FeedbackWindow, measured_delay_s

PATH = PathState(0.1, 0.1, 0.0, 5, 100, 95)


def ack(sequence: int, delay_s: float | None, rtt_s: float = 0.1, newly: int = 1) -> Ack:
    return Ack(sequence, rtt_s, newly, PATH, delay_s)


@pytest.mark.parametrize("forged", [None, nan, inf, -inf, 1e7])
def test_what_is_no_delay_counts_for_nothing(forged: float | None) -> None:
    assert measured_delay_s(ack(0, forged)) is None
    assert measured_delay_s(ack(0, 0.05, rtt_s=nan)) is None and measured_delay_s(ack(0, 0.05, rtt_s=-1.0)) is None
    window = FeedbackWindow(0.5)
    assert window.acked(1.0, ack(0, forged)) is None and window.look(1.0) == (0, 0)


def test_the_offset_of_clocks_falls_out() -> None:
    base = BaseDelay()
    assert [base.queueing_s(t, d - 1000.0) for t, d in ((0, 0.05), (1, 0.08), (2, 0.04), (3, 0.05))] == pytest.approx([0, 0.03, 0, 0.01])


def test_a_longer_path_is_believed_after_as_many_minutes() -> None:
    """Minima of 3 minutes: 50 ms in the first, 90 ms from then on; in the fourth minute 90 ms are no queue."""
    base = BaseDelay(minutes=3)
    assert base.queueing_s(0.0, 0.05) == 0.0
    assert [base.queueing_s(60.0 * n, 0.09) for n in (1, 2, 3)] == pytest.approx([0.04, 0.04, 0.0])


def test_an_idle_time_of_the_history_begins_anew() -> None:
    """Idle for BASE_HISTORY minutes, "measurement begins anew" [RFC 6817 sec 2.4.2]: 50 ms, and 90 ms after 9 and after 11 minutes."""
    for minutes, queueing_s in ((9, 0.04), (11, 0.0)):
        base = BaseDelay()
        base.queueing_s(0.0, 0.05)
        assert base.queueing_s(60.0 * minutes, 0.09) == pytest.approx(queueing_s)


def test_the_rate_is_what_arrived_over_the_whole_window() -> None:
    """[RFC 8698 sec 5.1.3]: 3 packets of 1000 bytes, 8 ms apart, in 500 ms are 48 kb/s, and not the 1 Mb/s of their distance."""
    window = FeedbackWindow(0.5)
    for n in range(3):
        window.acked(1.0 + 0.008 * n, ack(n, 0.05))
    assert window.receive_rate_bps(1.1, 1000) == pytest.approx(48e3)
    assert window.receive_rate_bps(1.6, 1000) == 0.0


def test_rates_are_measured_at_the_receiver() -> None:
    """100 packets arrive 10 ms apart; their acks come all at once, of a feedback path that was blocked for a second: 50 of them in 500 ms."""
    window = FeedbackWindow(0.5)
    for n in range(100):
        window.acked(2.0, ack(n, 0.05, rtt_s=1.15 - 0.01 * n))
    assert window.receive_rate_bps(2.0, 1000) == pytest.approx(50 * 8000 / 0.5)
    assert window.receive_rate_bps(2.6, 1000) == 0.0


def test_a_report_held_its_packets_back() -> None:
    """Packets that left at 1.00, 1.01 and 1.02 and took 50 ms, in a report [RFC 8888] that left at 1.10 and came at 1.15: held for 50, 40 and 30 ms. The round trip is 100 ms,
    and each left when it left."""
    acks = [Ack(n, 0.1, 1, PATH, 0.05, held_s=0.05 - 0.01 * n) for n in range(3)]
    assert [a.sent_s(1.15) for a in acks] == pytest.approx([1.00, 1.01, 1.02])
    assert ack(0, 0.05).sent_s(1.1) == 1.1 - 0.1
    held, at_once = FeedbackWindow(0.5), FeedbackWindow(0.5)
    for n, a in enumerate(acks):
        held.acked(1.15, a)
        at_once.acked(1.10 + 0.01 * n, ack(n, 0.05))
    assert held.receive_rate_bps(1.2, 1000) == at_once.receive_rate_bps(1.2, 1000) == pytest.approx(48e3)


def test_a_lost_ack_leaves_its_packet_in_the_rate() -> None:
    window = FeedbackWindow(0.5)
    window.acked(1.00, ack(0, 0.05))
    window.acked(1.02, ack(2, 0.05, newly=2))
    assert window.receive_rate_bps(1.02, 1000) == pytest.approx(3 * 8000 / 0.5)


def test_losses_of_the_window() -> None:
    window = FeedbackWindow(0.5)
    for n in range(3):
        window.acked(1.0 + 0.1 * n, ack(n, 0.05))
    window.lost(1.25, Loss(3, 3, 1, LossCause.GAP, PATH))
    assert window.look(1.3) == (3, 1) and window.loss_ratio(1.3) == 0.25
    assert window.look(1.65) == (1, 1)  # heard at 1.2 and 1.25 s
    assert window.loss_ratio(2.0) == 0.0


def test_queueing_is_the_least_of_the_taps_and_the_longest_is_of_the_window() -> None:
    window = FeedbackWindow(0.5, taps=3)
    assert window.queueing_s() is None and window.longest_queueing_s(0.0) == -inf
    for n, delay_s in enumerate((0.05, 0.09, 0.07, 0.08)):
        window.acked(0.1 * n, ack(n, delay_s))
    assert window.queueing_s() == pytest.approx(0.02)
    assert window.longest_queueing_s(0.3) == pytest.approx(0.04)

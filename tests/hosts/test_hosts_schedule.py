"""The RTCP timetable (RFC 3550 section 6.3, appendix A.7)."""

from __future__ import annotations

import random
from statistics import fmean

import pytest

from hosts.wire.schedule import COMPENSATION, RtcpParameters, RtcpSchedule

WIDE = RtcpParameters(session_bandwidth_bps=10e6)


def middle() -> float:
    """A draw that makes (draw + 0.5) equal 1."""
    return 0.5


def reports(schedule: RtcpSchedule, until_s: float, each: float | None = None) -> list[float]:
    """Times at which reports go out, the other member (SSRC 2, a sender) being heard all the time."""
    times, now = [], 0.0
    while now < until_s:
        now = schedule.next_s
        schedule.received_data(now, 2)
        if schedule.expire(now):
            times.append(now)
            schedule.sent_rtcp(now, 100)
    return times


def test_first_interval_is_half_the_minimum() -> None:
    """Section 6.2: 2.5 s before the first packet; section 6.3.1: divided by e - 3/2."""
    schedule = RtcpSchedule(100.0, WIDE, 1, 100, middle)
    assert schedule.next_s == pytest.approx(100 + 2.5 / COMPENSATION)
    assert schedule.expire(schedule.next_s)
    schedule.sent_rtcp(schedule.next_s, 100)
    assert schedule.deterministic_interval_s() == 5.0


def test_intervals_average_five_seconds() -> None:
    """"the average value between generating two RTCP packets at the same source" [ALS sec 3.3]: 5 s, reconsidered."""
    times = reports(RtcpSchedule(0.0, WIDE, 1, 100, random.Random(11).random), 50_000)
    gaps = [b - a for a, b in zip(times, times[1:])]
    assert fmean(gaps) == pytest.approx(5.0, rel=0.02)
    assert min(gaps) >= 0.5 * 5 / COMPENSATION and max(gaps) <= 1.5 * 5 / COMPENSATION


def test_a_large_group_scales_by_bandwidth() -> None:
    """Section 6.3.1: 1000 receivers, one sender, 64 kb/s: 75% of 5% for the receivers: 1000 x 100 B / 300 B/s."""
    schedule = RtcpSchedule(0.0, RtcpParameters(64_000), 1, 100, middle)
    schedule.received_data(0.0, 2)
    for ssrc in range(3, 1002):
        schedule.received_rtcp(0.0, ssrc, 100)
    assert schedule.deterministic_interval_s() == pytest.approx(1000 * 100 / 300)
    sender = RtcpSchedule(0.0, RtcpParameters(64_000), 1, 100, middle)
    sender.sent_data(0.0)
    for ssrc in range(2, 1002):
        sender.received_rtcp(0.0, ssrc, 100)
    assert sender.deterministic_interval_s() == pytest.approx(max(2.5, 1 * 100 / 100))


def test_few_members_share_all_of_the_bandwidth() -> None:
    """Section 6.3.1: senders above a quarter of the members: 2 x 100 B / (5% of 8 kb/s = 50 B/s) = 4 s."""
    schedule = RtcpSchedule(0.0, RtcpParameters(8_000), 1, 100, middle)
    schedule.received_data(0.0, 2)
    assert schedule.deterministic_interval_s() == pytest.approx(4.0)


def test_timer_reconsideration_waits_when_the_group_has_grown() -> None:
    """Section 6.3.6."""
    schedule = RtcpSchedule(0.0, RtcpParameters(64_000), 1, 100, middle)
    due = schedule.next_s
    for ssrc in range(2, 1002):
        schedule.received_rtcp(0.0, ssrc, 100)
    assert not schedule.expire(due)
    assert schedule.next_s == pytest.approx(1001 * 100 / 300 / COMPENSATION, rel=0.01)


def test_reverse_reconsideration_on_bye() -> None:
    """Section 6.3.4: from 4 to 2 members, half of the wait is left."""
    schedule = RtcpSchedule(0.0, WIDE, 1, 100, middle)
    for ssrc in (2, 3, 4):
        schedule.received_rtcp(0.0, ssrc, 100)
    schedule.expire(schedule.next_s)
    schedule.sent_rtcp(10.0, 100)
    wait = schedule.next_s - 10.0
    schedule.received_bye(10.0, 4)
    schedule.received_bye(10.0, 3)
    assert schedule.next_s == pytest.approx(10.0 + wait * (3 / 4) * (2 / 3))
    before = schedule.next_s
    schedule.received_bye(10.0, 99)
    schedule.received_bye(10.0, 1)
    assert (schedule.next_s, schedule.members) == (before, 2)


def test_silent_members_time_out() -> None:
    """Section 6.3.5: five intervals."""
    schedule = RtcpSchedule(0.0, WIDE, 1, 100, middle)
    schedule.received_data(0.0, 2)
    schedule.expire(2.5)
    schedule.sent_rtcp(2.5, 100)
    schedule.expire(24.9)
    assert schedule.members == 2
    schedule.expire(25.1)
    assert schedule.members == 1


def test_average_size_moves_by_a_sixteenth() -> None:
    """Section 6.3.3: 100 -> 100 + 160/16 = 110: 2 x 110 / 50 B/s."""
    schedule = RtcpSchedule(0.0, RtcpParameters(8_000), 1, 100, middle)
    schedule.received_data(0.0, 2)
    schedule.received_rtcp(0.0, 2, 260)
    assert schedule.deterministic_interval_s() == pytest.approx(2 * 110 / 50)

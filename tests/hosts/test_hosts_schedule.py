"""The RTCP timetable (RFC 3550 section 6.3, appendix A.7)."""

from __future__ import annotations

import heapq
import itertools
import random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    gaps = [b - a for a, b in itertools.pairwise(times)]
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
    schedule.received_bye(10.0, 4, 100)
    schedule.received_bye(10.0, 3, 100)
    assert schedule.next_s == pytest.approx(10.0 + wait * (3 / 4) * (2 / 3))
    before = schedule.next_s
    schedule.received_bye(10.0, 99, 100)
    schedule.received_bye(10.0, 1, 100)
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


def rtcp_interval(members: int, senders: int, rtcp_bw: float, we_sent: bool, avg_rtcp_size: float, initial: bool) -> float:
    """RFC 3550 appendix A.7's function of this name, before its random factor; rtcp_bw in bytes a second."""
    minimum = 2.5 if initial else 5.0
    n = members
    if senders <= members * 0.25:
        if we_sent:
            rtcp_bw, n = rtcp_bw * 0.25, senders
        else:
            rtcp_bw, n = rtcp_bw * 0.75, n - senders
    return max(avg_rtcp_size * n / rtcp_bw, minimum)


@given(st.integers(0, 300), st.integers(0, 300), st.booleans(), st.floats(1e3, 1e8), st.integers(60, 1500), st.booleans())
def test_the_interval_is_that_of_appendix_a_7(others: int, sending: int, we_sent: bool, bandwidth_bps: float, size: int, first: bool) -> None:
    sending = min(sending, others)
    schedule = RtcpSchedule(0.0, RtcpParameters(bandwidth_bps), 1, size, middle)
    for ssrc in range(2, 2 + others):
        schedule.received_rtcp(0.0, ssrc, size)
    for ssrc in range(2, 2 + sending):
        schedule.received_data(0.0, ssrc)
    if we_sent:
        schedule.sent_data(0.0)
    if not first:
        schedule.sent_rtcp(0.0, size)
    wanted = rtcp_interval(1 + others, sending + we_sent, bandwidth_bps * 0.05 / 8, we_sent, size, first)
    assert schedule.deterministic_interval_s() == pytest.approx(wanted)


RECEIVER_BYTES, SENDER_BYTES = 136, 152


def group(receivers: int, bandwidth_bps: float, until_s: float, seed: int) -> list[tuple[float, int]]:
    """(time, SSRC) of each report in a group of which all members hear each other at once; the sender is 0. All join at 0."""
    draw = random.Random(seed).random
    parameters = RtcpParameters(bandwidth_bps)
    members = [RtcpSchedule(0.0, parameters, n, SENDER_BYTES if n == 0 else RECEIVER_BYTES, draw) for n in range(receivers + 1)]
    due = [(member.next_s, n) for n, member in enumerate(members)]
    heapq.heapify(due)
    reports = []
    while due[0][0] < until_s:
        now, n = heapq.heappop(due)
        member = members[n]
        if n == 0:
            member.sent_data(now)
        else:
            member.received_data(now, 0)
        if member.expire(now):
            size = SENDER_BYTES if n == 0 else RECEIVER_BYTES
            member.sent_rtcp(now, size)
            reports.append((now, n))
            for other in members:
                if other is not member:
                    other.received_rtcp(now, n, size)
        heapq.heappush(due, (member.next_s, n))
    assert not any(member.take_silent() for member in members)
    return reports


@pytest.mark.parametrize("receivers", [2, 5, 10, 20, 40, 100, 200])
def test_a_group_keeps_to_rfc_3550s_interval_and_bandwidth(receivers: int) -> None:
    """Within 10% of section 6.3.1's interval; RTCP at most 5% of the session bandwidth (section 6.2)."""
    bandwidth_bps, start_s, until_s = 100_000.0, 200.0, 1000.0
    reports = [x for x in group(receivers, bandwidth_bps, until_s, receivers) if x[0] >= start_s]
    of_receivers = sum(n > 0 for _, n in reports)
    size = (of_receivers * RECEIVER_BYTES + (len(reports) - of_receivers) * SENDER_BYTES) / len(reports)
    rule_s = rtcp_interval(receivers + 1, 1, bandwidth_bps * 0.05 / 8, False, size, False)
    assert receivers * (until_s - start_s) / of_receivers == pytest.approx(rule_s, rel=0.1)
    bandwidth = 8 * size * len(reports) / (until_s - start_s) / bandwidth_bps
    assert bandwidth < 0.05 * 1.1
    if rule_s > 5.0:  # the receivers' three quarters are used
        assert 8 * of_receivers * RECEIVER_BYTES / (until_s - start_s) / bandwidth_bps == pytest.approx(0.0375, rel=0.1)


def test_a_sender_waits_for_its_receivers_own_interval_before_it_forgets_them() -> None:
    """Section 6.3.5: five Td "for a receiver, that is, with we_sent false": 5 x 200 x 100 B / 468.75 B/s = 213 s; the sender's
    own Td is 5 s."""
    sender = RtcpSchedule(0.0, RtcpParameters(100_000), 1, 100, middle)
    for ssrc in range(2, 202):
        sender.received_rtcp(0.0, ssrc, 100)
    for now, left in ((100.0, []), (213.0, []), (213.5, list(range(2, 202)))):
        sender.sent_data(now)
        sender.expire(now)
        assert sender.take_silent() == left
        sender.sent_rtcp(now, 100)
        assert sender.deterministic_interval_s() == 5.0
    assert sender.members == 1


@given(
    st.integers(0, 300),
    st.integers(0, 2**32),
    st.lists(st.tuples(st.floats(0, 0.2), st.booleans(), st.integers(60, 200)), max_size=300),
)
def test_a_bye_waits_as_in_appendix_a_7(others: int, seed: int, heard: list[tuple[float, bool, int]]) -> None:
    """Section 6.3.7, and `OnExpire` and `OnReceive` of appendix A.7 for EVENT_BYE, with the same draws. The average size follows section
    6.3.7, where only BYE packets count; appendix A.7 counts reports too."""
    bandwidth_bps, size, tp = 100_000.0, 120, 2.0
    schedule = RtcpSchedule(0.0, RtcpParameters(bandwidth_bps), 1, size, random.Random(seed).random)
    schedule.sent_rtcp(1.0, size)
    for ssrc in range(2, 2 + others):
        schedule.received_rtcp(1.0, ssrc, 100)
    assert schedule.leave(tp, size) == (others + 1 <= 50)
    if others + 1 <= 50:
        return
    draws = random.Random(seed)
    draws.random(), draws.random()  # the schedule's own two so far
    members, avg_rtcp_size, sent = 1, float(size), False

    def interval() -> float:
        draw = (draws.random() + 0.5) / COMPENSATION
        return rtcp_interval(members, 0, bandwidth_bps * 0.05 / 8, False, avg_rtcp_size, True) * draw

    tc, tn = tp, tp + interval()
    for gap, bye, packet_bytes in [*heard, (1e9, False, 100)]:
        while not sent and tn <= tc + gap:
            assert schedule.next_s == pytest.approx(tn)
            now = schedule.next_s
            tn = tp + interval()
            sent = tn <= now
            assert schedule.expire(now) == sent
        tc += gap
        schedule.received_data(tc, 7)
        schedule.received_rtcp(tc, 1000, packet_bytes)
        if bye:
            schedule.received_bye(tc, 1000, packet_bytes)
            members += 1
            avg_rtcp_size = packet_bytes / 16 + avg_rtcp_size * 15 / 16
    assert sent


@pytest.mark.parametrize("others", [0, 49, 200])
def test_who_has_sent_nothing_says_no_bye(others: int) -> None:
    """"a participant which never sent an RTP or RTCP packet MUST NOT send a BYE packet" (section 6.3.7)."""
    schedule = RtcpSchedule(0.0, WIDE, 1, 100, middle)
    for ssrc in range(2, 2 + others):
        schedule.received_data(0.0, ssrc)
    assert not schedule.leave(1.0, 100) and schedule.next_s == float("inf")
    sender = RtcpSchedule(0.0, WIDE, 1, 100, middle)
    sender.sent_data(0.5)
    assert sender.leave(1.0, 100)

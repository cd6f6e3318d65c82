"""Outstanding packets, losses by gap and by time, round-trip times: by hand, and whatever the network does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts.ackbook import KEPT_PACKETS, AckBook
from hosts.algorithms.base import LossCause, SetLossTimeout
from hosts.wire.acks import AckPacket, Arrivals


def book(packets: int, spacing_s: float = 0.01, **options: int) -> AckBook:
    made = AckBook(**options)
    for number in range(packets):
        made.sent(number * spacing_s)
    return made


def test_three_later_acknowledgements_reveal_a_loss() -> None:
    """Packet 1 is lost; the acknowledgement of 4 is the third that comes after it [RAP sec III]."""
    made, arrivals = book(6), Arrivals()
    found = []
    for number in (0, 2, 3, 4, 5):
        loss, ack = made.acknowledge(1.0, arrivals.arrived(number))
        assert ack.newly_acked_packets == 1
        found.append(loss and (loss.first_sequence, loss.last_sequence, loss.lost_packets, loss.cause))
    assert found == [None, None, None, (1, 1, 1, LossCause.GAP), None]
    assert made.in_flight_packets == 0


def test_packets_that_arrived_count_and_not_numbers() -> None:
    """1 to 3 and 5 are lost: 4 and 6 are two packets, though 6 is 3 after 3. Then 7 is the third after 1 to 3, 8 after 5."""
    made, arrivals = book(12), Arrivals()
    losses = [made.acknowledge(1.0, arrivals.arrived(n))[0] for n in (0, 4, 6, 7, 8)]
    assert [x and (x.first_sequence, x.last_sequence, x.lost_packets) for x in losses] == [None, None, None, (1, 3, 3), (5, 5, 1)]
    assert losses[3].path.highest_acked_sequence == 7
    # What an acknowledgement implies counts as well.
    assert made.acknowledge(1.0, AckPacket(11, 0b11))[0] is None and made.in_flight_packets == 0
    made = book(5)
    loss, _ = made.acknowledge(1.0, AckPacket(4, 0b110))
    assert (loss.first_sequence, loss.last_sequence, loss.lost_packets, made.in_flight_packets) == (0, 0, 1, 1)


def test_a_lost_acknowledgement_is_made_good_by_the_next() -> None:
    made, arrivals = book(3), Arrivals()
    arrivals.arrived(0)
    arrivals.arrived(1)
    loss, ack = made.acknowledge(0.5, arrivals.arrived(2))
    assert loss is None and ack.newly_acked_packets == 3 and ack.rtt_s == pytest.approx(0.48)
    assert made.acknowledge(0.5, AckPacket(3, 0)) is None


def test_what_is_too_old_is_lost() -> None:
    made = book(4)
    made.set_timeout(SetLossTimeout(0.1))
    assert made.next_expiry_s() == pytest.approx(0.1)
    assert made.expire(0.0999) is None
    loss = made.expire(0.115)
    assert (loss.first_sequence, loss.last_sequence, loss.cause) == (0, 1, LossCause.TIMEOUT)
    assert made.next_expiry_s() == pytest.approx(0.12)
    assert made.path().in_flight_packets == 2


def test_a_late_acknowledgement_tells_the_round_trip() -> None:
    made = book(400)
    made.set_timeout(SetLossTimeout(0.1))
    assert made.expire(10.0).lost_packets == 400
    loss, ack = made.acknowledge(20.0, AckPacket(399, 0))
    assert loss is None and ack.newly_acked_packets == 0
    assert ack.path.srtt_s == ack.rtt_s == pytest.approx(16.01)
    # Once: what comes twice is no sample; nor is what was given up long ago.
    assert made.acknowledge(30.0, AckPacket(399, 0)) == (None, None)
    assert made.acknowledge(30.0, AckPacket(400 - KEPT_PACKETS - 1, 0)) == (None, None)
    assert made.acknowledge(30.0, AckPacket(400 - KEPT_PACKETS, 0))[1] is not None
    assert made.in_flight_packets == 0


def test_a_round_trip_beyond_the_timeout_is_noticed() -> None:
    """100 packets/s whose acknowledgements take 0.1 s, then 0.5 s: each packet times out until SRTT has followed."""
    made = AckBook()
    made.set_timeout(SetLossTimeout(3.0, 1.0, 4.0, 0.1))
    due, lost = [], []
    for n in range(1500):
        now = n * 0.01
        made.sent(now)
        due.append((now + (0.1 if n < 500 else 0.5), n))
        while due[0][0] <= now:
            at, sequence = due.pop(0)
            made.acknowledge(at, AckPacket(sequence, 0))
        if (loss := made.expire(now)) is not None:
            lost.append((n, loss.lost_packets))
    assert 0 < sum(packets for _, packets in lost) < 100 and lost[-1][0] < 600
    assert made.srtt_s == pytest.approx(0.5, abs=0.01)


def test_the_timeout_follows_the_round_trip() -> None:
    """A first round trip of 0.2 s: 0.2 + 4 x 0.1; a second: RTTVAR = 0.075 (RFC 6298 section 2)."""
    made = book(3, spacing_s=1.0)
    made.set_timeout(SetLossTimeout(3.0, 1.0, 4.0, 0.1))
    assert made.next_expiry_s() == 3.0
    made.acknowledge(0.2, AckPacket(0, 0))
    assert made.next_expiry_s() == pytest.approx(1.6)
    made.acknowledge(1.2, AckPacket(1, 0))
    assert made.next_expiry_s() == pytest.approx(2.5)
    assert SetLossTimeout(3.0, 2.0, 4.0, 0.5).in_force_s(0.25, 0.01) == 1.0


def test_a_timeout_before_sending_has_no_timer() -> None:
    """Packets at 0, 10, 20, 30 ms, 0.1 s old at 0.1, 0.11, 0.12, 0.13 s: found when a packet is to leave, whenever that is."""
    made = book(4)
    made.set_timeout(SetLossTimeout(0.1, before_sending=True))
    assert made.next_expiry_s() == float("inf") and made.expire(0.115) is None
    loss = made.expire(0.115, sending=True)
    assert (loss.first_sequence, loss.last_sequence, loss.cause) == (0, 1, LossCause.TIMEOUT)
    assert made.expire(0.119, sending=True) is None
    assert made.expire(0.1201, sending=True).first_sequence == 2


def test_round_trip_times_by_hand() -> None:
    """RFC 6298 section 2: first 0.1 s, then 0.18 s: SRTT = 0.1 + 0.08 / 8, RTTVAR = 0.05 + (0.08 - 0.05) / 4."""
    made = book(2, spacing_s=1.0)
    made.acknowledge(0.1, AckPacket(0, 0))
    assert (made.srtt_s, made.rttvar_s) == (0.1, 0.05)
    made.acknowledge(1.18, AckPacket(1, 1))
    path = made.path()
    assert (path.latest_rtt_s, path.srtt_s, path.rttvar_s) == pytest.approx((0.18, 0.11, 0.0575))
    assert (path.last_sent_sequence, path.highest_acked_sequence, path.in_flight_packets) == (1, 1, 0)


def test_history_by_hand() -> None:
    """After 0, 1, 3: bit 0 says that 2 is missing, bits 1 and 2 that 1 and 0 came; then 2 comes late."""
    arrivals = Arrivals()
    assert [arrivals.arrived(n).history for n in (0, 1, 3, 2, 100)] == [0, 0b1, 0b110, 0b11, 0]
    assert arrivals.arrived(100) == AckPacket(100, 0) and arrivals.arrived(3).history == 0
    assert arrivals.arrived(101).history == 1


@given(st.lists(st.integers(0, 80), max_size=300))
def test_history_is_what_came(numbers: list[int]) -> None:
    arrivals = Arrivals()
    came: set[int] = set()
    for number in numbers:
        ack = arrivals.arrived(number)
        came.add(number)
        highest = max(came)
        for k in range(32):
            earlier = number - 1 - k
            if highest - earlier < 64:  # remembered
                assert bool(ack.history >> k & 1) == (earlier in came)


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(1, 20)),
        st.tuples(st.just("ack"), st.integers(0, 120), st.integers(0, 2**32 - 1)),
        st.tuples(st.just("wait"), st.floats(0, 0.3)),
        st.tuples(st.just("timeout"), st.floats(1e-6, 1.0), st.sampled_from([0.0, 1.0])),
    ),
    max_size=120,
)


@given(EVENTS, st.integers(1, 5))
def test_the_books_balance(events: list, distance: int) -> None:
    """Lost, reordered, forged: every packet is acknowledged or lost at most once, and the sum is what was sent."""
    made, now = AckBook(distance), 0.0
    sent = acked = lost = 0
    for event in events:
        match event:
            case "send", count:
                for _ in range(count):
                    made.sent(now)
                sent += count
            case "ack", sequence, history:
                heard = made.acknowledge(now, AckPacket(sequence, history))
                assert (heard is None) == (sequence >= sent)
                if heard is not None:
                    loss, ack = heard
                    lost += loss.lost_packets if loss else 0
                    acked += ack.newly_acked_packets if ack else 0
                    assert loss is None or loss.last_sequence <= made.highest_acked_sequence - distance
                    assert ack is None or ack.rtt_s >= 0
            case "wait", seconds:
                now += seconds
                loss = made.expire(now)
                lost += loss.lost_packets if loss else 0
                assert made.next_expiry_s() > now
            case "timeout", seconds, factor:
                made.set_timeout(SetLossTimeout(seconds, factor, 4 * factor, 0.01))
        assert acked + lost + made.in_flight_packets == sent
        assert made.path().last_sent_sequence == sent - 1
        assert made.srtt_s >= 0 and made.rttvar_s >= 0

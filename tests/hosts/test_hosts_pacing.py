"""Pacing: the mean rate is exact, bursts are bounded."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts.pacing import Pacer


@given(st.floats(8_000, 10e6), st.integers(60, 1500), st.integers(0, 2**32), st.floats(0, 1))
def test_lateness_does_not_lower_the_rate(rate_bps: float, packet_bytes: int, seed: int, jitter: float) -> None:
    """Wake-ups up to 5 ms late, over 20 s: the count is that of the rate, to a packet or two."""
    rng = random.Random(seed)
    pacer = Pacer(0.0, rate_bps, packet_bytes, jitter=jitter, random=rng.random)
    now = sent = 0
    while now < 20.0:
        sent += pacer.take(now)
        now = max(now, pacer.next_s) + rng.random() * 0.005
    assert pacer.forgiven_packets == 0
    assert sent == pytest.approx(20.0 * rate_bps / (packet_bytes * 8), abs=2 + 0.005 * rate_bps / packet_bytes / 8)


def test_a_long_stall_is_not_made_up_in_a_burst() -> None:
    pacer = Pacer(0.0, 8_000_000, 1000, catch_up_s=0.020)  # 1 ms a packet
    assert pacer.take(0.0) == 1
    assert pacer.take(0.5) == 21  # the one due, and 20 ms of what was missed
    assert pacer.forgiven_packets == 500 - 21
    assert pacer.take(0.5004) == 0
    assert pacer.next_s == pytest.approx(0.501)


def test_slow_flow_sends_one_after_a_stall() -> None:
    pacer = Pacer(0.0, 8_000, 1000)  # a packet a second
    assert [pacer.take(t) for t in (0.0, 0.5, 1.0, 9.5, 9.9, 10.0)] == [1, 0, 1, 1, 0, 1]


def test_a_new_rate_keeps_the_credit_of_the_present_interval() -> None:
    pacer = Pacer(0.0, 8_000, 1000)
    pacer.take(0.0)
    pacer.set_rate(0.25, 80_000)  # a quarter of 1 s has passed: three quarters of 0.1 s are left
    assert pacer.next_s == pytest.approx(0.325)
    pacer.set_rate(0.325, 8_000)  # due now: stays due
    assert pacer.take(0.325) == 1
    assert pacer.next_s == pytest.approx(1.325)


@given(st.lists(st.tuples(st.floats(0.001, 0.3), st.floats(8_000, 4e6)), min_size=1, max_size=40))
def test_changing_rates_send_their_integral(steps: list[tuple[float, float]]) -> None:
    pacer = Pacer(0.0, 100_000, 1000, catch_up_s=10.0)
    now, sent, bits, rate = 0.0, 0, 0.0, 100_000.0
    for length, new_rate in steps:
        end = now + length
        while pacer.next_s < end:
            sent += pacer.take(pacer.next_s)
        bits += rate * length
        now, rate = end, new_rate
        pacer.set_rate(now, rate)
    assert sent == pytest.approx(bits / 8000, abs=1.01)


def test_bursts() -> None:
    pacer = Pacer(0.0, 8_000_000, 1000)
    pacer.set_rate(0.0, 8_000_000, burst_packets=4)
    assert pacer.take(0.0) == 4
    assert pacer.next_s == pytest.approx(0.004)


def test_jitter_moves_packets_by_at_most_half_of_it() -> None:
    rng = random.Random(5)
    pacer = Pacer(0.0, 8_000_000, 1000, jitter=0.5, random=rng.random)
    offsets = []
    for number in range(1, 500):
        pacer.take(pacer.next_s)
        offsets.append(pacer.next_s - number * 0.001)
    assert max(offsets) <= 0.00025 + 1e-9 and min(offsets) >= -0.00025 - 1e-9
    assert max(offsets) - min(offsets) > 0.0004

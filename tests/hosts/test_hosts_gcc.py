"""GCC: the rules of draft-ietf-rmcat-gcc-02 worked by hand, and flows on the path model."""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from math import sqrt
from pathlib import Path as File

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(File(__file__).parent))

from fairlane.hosts.algorithms import ALGORITHMS
from fairlane.hosts.algorithms.base import Ack, Loss, LossCause, PathState, SetRate, Timer
from fairlane.hosts.algorithms.gcc import (
    NEXT_STATE,
    UPDATE_TIMER,
    DelayGrowth,
    Detector,
    GccParameters,
    GccReceiver,
    GccSender,
    State,
    Use,
    additive_step_bps,
    loss_based_bps,
)
from path_model import ClosedLoop, Path

RNG = random.Random(0)
P = GccParameters()
PATH = PathState(0.1, 0.1, 0.0, 5, 100, 95)


def fed(sender: GccSender, start_s: float, delays_s: list[float], gap_s: float = 0.01) -> None:
    for n, delay_s in enumerate(delays_s):
        sender.on_ack(start_s + gap_s * n, Ack(n, 0.1, 1, PATH, delay_s), RNG)


def updated(sender: GccSender, now_s: float) -> tuple:
    return sender.on_timer(now_s, Timer(UPDATE_TIMER, PATH), RNG)


def test_reports_change_no_group() -> None:
    """The same packets, each with an ack of its own, and ten at a time in reports that held them back [RFC 8888]: the filter sees the same groups."""
    delays_s = [0.05 + 0.001 * n for n in range(50)]
    one, other = GccSender(), GccSender()
    fed(one, 1.1, delays_s)
    for n, delay_s in enumerate(delays_s):
        heard_s = 1.1 + 0.01 * (9 + n - n % 10)
        other.on_ack(heard_s, Ack(n, 0.1, 1, PATH, delay_s, held_s=heard_s - 1.1 - 0.01 * n), RNG)
    assert one.growth.m == pytest.approx(other.growth.m) and one.growth.m > 0.1


# ---------------------------------------------------------------------------------------------------------- filter and detector


def test_kalman_filter() -> None:
    """Groups 10 ms apart: f_max = 0.1 per ms, alpha = 0.99^0.3 = 0.99699. d = 2 ms: z = 2, var = 0.99699 + 0.00301 x 4 = 1.00903;
    k = 0.101 / 1.11003 = 0.09099, m = 0.18198, e = 0.90901 x 0.101 = 0.09181."""
    growth = DelayGrowth(P)
    alpha = 0.99**0.3
    variance = alpha + (1 - alpha) * 4
    k = 0.101 / (variance + 0.101)
    assert growth.take(2.0, 10.0) == pytest.approx(2 * k) == pytest.approx(0.18198, abs=1e-5)
    assert (growth.variance, growth.e) == (pytest.approx(variance), pytest.approx((1 - k) * 0.101))


def test_an_outlier_is_three_deviations_to_the_variance_and_itself_to_m() -> None:
    """[GCC sec 5.3]: var = 0.99699 + 0.00301 x 3^2 = 1.02408, whether z is 3 or 500; k = 0.101 / 1.12508 = 0.08977, and m = 500 k = 44.886."""
    growth, same = DelayGrowth(P), DelayGrowth(P)
    growth.take(500.0, 10.0), same.take(3.0, 10.0)
    assert growth.variance == same.variance == pytest.approx(1.02408, abs=1e-5)
    assert (growth.m, same.m) == (pytest.approx(44.886, abs=1e-2), pytest.approx(0.26932, abs=1e-5))


def test_growth_of_a_steady_slope_is_the_slope() -> None:
    growth = DelayGrowth(P)
    for _ in range(2000):
        growth.take(0.5, 10.0)
    assert growth.m == pytest.approx(0.5, rel=0.01)


def test_threshold_follows_slowly_down_and_fast_up() -> None:
    """m = 2.5, 10 ms after: 12.5 - 10 x 0.00018 x 10; m = 22.5: 12.5 + 10 x 0.01 x 10; 30 is more than 15 above and moves nothing."""
    for m_ms, expected in ((2.5, 12.482), (-2.5, 12.482), (22.5, 13.5), (30.0, 12.5)):
        detector = Detector(P)
        detector.take(m_ms, 10.0, 100.0)
        assert detector.threshold_ms == pytest.approx(expected)


def test_overuse_lasts_ten_ms_and_does_not_fall() -> None:
    detector = Detector(replace(P, gain_up=1e-9))
    assert detector.take(20.0, 8.0, 100.0) is Use.NORMAL  # detected
    assert detector.take(20.0, 8.0, 108.0) is Use.NORMAL  # for 8 ms
    assert detector.take(20.0, 8.0, 110.0) is Use.OVER  # for 10 ms [GCC sec 5.4]
    assert detector.take(19.0, 8.0, 116.0) is Use.NORMAL  # m falls
    assert detector.take(-20.0, 8.0, 124.0) is Use.UNDER
    assert detector.take(0.0, 8.0, 132.0) is Use.NORMAL


def test_packets_within_five_ms_are_a_group() -> None:
    """Pairs 2 ms apart each 20 ms, d between groups is 0: without grouping it would be 0 as well, but counted twice as often."""
    sender = GccSender()
    sender.on_start(0.0, RNG)
    for n in range(10):
        for part in (0.0, 0.002):
            sender.on_ack(1.0 + 0.02 * n + part, Ack(2 * n, 0.1, 1, PATH, 0.05), RNG)
    assert sender._groups == 8  # of ten groups the first has none before it, the last is open
    assert sender.growth.m == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(("arrives_ms", "groups"), [((50.0, 70.0, 74.0), 1), ((50.0, 70.0, 76.0), 2), ((50.0, 60.0, 62.0), 1)])
def test_packets_that_arrive_in_a_burst_are_a_group(arrives_ms: tuple[float, ...], groups: int) -> None:
    """[GCC sec 5.2]: packets leave 10 ms apart. One that arrives 4 ms after the group, sooner than it left (d = -6), joins it; 6 ms after, it does
    not. `groups`: closed ones behind the first, once a fourth packet came."""
    sender = GccSender()
    sender.on_start(0.0, RNG)
    for n, arrived_ms in enumerate((*arrives_ms, 1000.0)):
        left_s = 1.0 + 0.01 * n
        sender.on_ack(left_s + 0.1, Ack(n, 0.1, 1, PATH, arrived_ms / 1000 - 0.01 * n), RNG)
    assert sender._groups == groups


# -------------------------------------------------------------------------------------------------------------- rate controllers


def test_states() -> None:
    """The table of [GCC sec 5.5]."""
    assert [NEXT_STATE[s, Use.OVER] for s in State] == [State.DECREASE] * 3
    assert [NEXT_STATE[s, Use.UNDER] for s in State] == [State.HOLD] * 3
    assert [NEXT_STATE[s, Use.NORMAL] for s in (State.HOLD, State.INCREASE, State.DECREASE)] == [State.INCREASE, State.INCREASE, State.HOLD]


def test_increase_is_8_percent_a_second_and_at_most_one_and_a_half_of_what_arrives() -> None:
    """50 packets in 500 ms are 800 kb/s. 300 kb/s x 1.08^0.5; 1.199 Mb/s x 1.08^0.5 is more than 1.2 Mb/s, and becomes 1.2; so does 1.4 Mb/s, of
    a sender whose application makes less [GCC sec 5.5]."""
    for rate, expected in ((300e3, 300e3 * 1.08**0.5), (1.199e6, 1.2e6), (1.4e6, 1.2e6)):
        sender = GccSender()
        sender.on_start(0.0, RNG)
        sender.delay_based_bps = rate
        sender.loss_based_bps = 1.5e6
        fed(sender, 0.0, [0.05] * 51)
        assert updated(sender, 0.5)[0] == SetRate(pytest.approx(expected))


def test_additive_step() -> None:
    """1 Mb/s: frames of 33,333 bits are 4 packets of 8333; 100 ms of 100 + 100 ms: 0.5 x 0.5 x 8333 = 2083 bits. 30 kb/s: 1000."""
    assert additive_step_bps(1e6, 0.1, 0.1) == pytest.approx(0.25 * 1e6 / 30 / 4)
    assert additive_step_bps(30e3, 0.1, 0.1) == 1000.0


def test_overuse_sets_085_of_what_arrives() -> None:
    sender = GccSender()
    sender.on_start(0.0, RNG)
    sender.delay_based_bps = 1.2e6
    fed(sender, 0.0, [0.05] * 51)
    sender.use = Use.OVER
    updated(sender, 0.5)
    assert (sender.state, sender.delay_based_bps) == (State.DECREASE, pytest.approx(0.85 * 800e3))
    # Near 800 kb/s the next increase is additive.
    assert sender._near(800e3) and not sender._near(400e3)
    assert sqrt(0.4 * 800e3 * 1000) * 3 < 60e3  # three deviations
    assert not sender._near(900e3)  # above them: forgotten
    assert not sender._near(800e3)


@pytest.mark.parametrize(("loss", "expected"), [(0.0, 1.05e6), (0.019, 1.05e6), (0.02, 1e6), (0.1, 1e6), (0.2, 0.9e6)])
def test_loss_based_rate(loss: float, expected: float) -> None:
    """[GCC sec 6]: 1.05 below 2 %, kept to 10 %, times 1 - 0.5 x 0.2 at 20 %."""
    assert loss_based_bps(P, 1e6, loss) == pytest.approx(expected)


def test_the_smaller_rate_is_sent() -> None:
    sender = GccSender()
    sender.on_start(0.0, RNG)
    sender.delay_based_bps, sender.loss_based_bps = 900e3, 700e3
    assert sender.rate_bps == 700e3
    sender.delay_based_bps = 500e3
    assert sender.rate_bps == 500e3


def test_silence_falls_to_the_lowest_rate() -> None:
    sender = GccSender()
    sender.on_start(0.0, RNG)
    sender.delay_based_bps = sender.loss_based_bps = 1e6
    assert updated(sender, 2.5)[0] == SetRate(150e3)


@given(st.lists(st.tuples(st.floats(-1, 2), st.floats(0, 5), st.booleans()), max_size=60), st.floats(1e4, 1e8))
def test_the_rate_stays_within_its_limits(events: list[tuple[float, float, bool]], max_rate_bps: float) -> None:
    sender = GccSender(replace(P, max_rate_bps=max_rate_bps))
    sender.on_start(0.0, RNG)
    now_s = 0.0
    for n, (delay_s, rtt_s, lost) in enumerate(events):
        now_s += 0.1
        if lost:
            sender.on_loss(now_s, Loss(n, n, 1, LossCause.GAP, PATH), RNG)
        else:
            sender.on_ack(now_s, Ack(n, rtt_s, 1, PATH, delay_s), RNG)
        updated(sender, now_s)
        assert min(150e3, max_rate_bps) <= sender.rate_bps <= max_rate_bps
        assert 6.0 <= sender.detector.threshold_ms <= 600.0


def test_the_receiver_stamps_what_it_acknowledges() -> None:
    assert GccReceiver().interests.timed_acks


# ---------------------------------------------------------------------------------------------------------------- closed loop


def test_a_flow_uses_a_path_without_filling_its_buffer() -> None:
    kind = ALGORITHMS["gcc"]
    loop = ClosedLoop(kind, P, Path(capacity_bps=1e6, rtt_s=0.1, queue_packets=37))
    loop.run(40.0)
    before = loop.delivered
    loop.run(40.0)
    assert loop.lost == 0
    assert 8000 * (loop.delivered - before) / 40.0 > 0.8e6


def test_random_loss_below_two_percent_does_not_matter() -> None:
    kind = ALGORITHMS["gcc"]
    loop = ClosedLoop(kind, P, Path(capacity_bps=2.5e6, rtt_s=0.1, queue_packets=90, random_loss=0.01))
    loop.run(60.0)
    before = loop.delivered
    loop.run(20.0)
    assert 8000 * (loop.delivered - before) / 20.0 > 1.3e6

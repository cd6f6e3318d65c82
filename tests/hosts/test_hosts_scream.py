"""SCReAM: the rules of RFC 8298 worked by hand, and flows on the path model."""

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
from fairlane.hosts.algorithms.base import Ack, Ecn, Loss, LossCause, PathState, SetEncoderRate, SetRate, SetWindow, Timer
from fairlane.hosts.algorithms.scream import (
    SAMPLE_TIMER,
    ScreamParameters,
    ScreamReceiver,
    ScreamSender,
    autocorrelation,
    next_media_rate_bps,
    next_target_s,
    pace_bps,
    window_change_bytes,
)
from path_model import ClosedLoop, Path

RNG = random.Random(0)
P = ScreamParameters()


def path(sent: int, acked: int, srtt_s: float = 0.1) -> PathState:
    return PathState(srtt_s, srtt_s, 0.0, sent - acked, sent, acked)


def started(**state: float) -> ScreamSender:
    sender = ScreamSender()
    sender.on_start(0.0, RNG)
    for name, value in state.items():
        setattr(sender, name, value)
    return sender


def acked(sender: ScreamSender, now_s: float, sequence: int, flight: int, delay_s: float = 0.05) -> tuple:
    return sender.on_ack(now_s, Ack(sequence, 0.1, 1, path(sequence + flight, sequence), delay_s), RNG)


def lost(sender: ScreamSender, now_s: float, sequence: int) -> tuple:
    return sender.on_loss(now_s, Loss(sequence, sequence, 1, LossCause.GAP, path(sequence + 9, sequence + 3)), RNG)


# --------------------------------------------------------------------------------------------------------------------- window


def test_window_change() -> None:
    """[RFC 8298 sec 4.1.2.2] at half the target of 100 ms, window 10,000 bytes, 2000 acknowledged: 0.5 x 2000 x 1000 / 10,000; at 150 ms
    as much less."""
    assert window_change_bytes(P, 10_000, 0.1, 0.05, 2000) == pytest.approx(100.0)
    assert window_change_bytes(P, 10_000, 0.1, 0.15, 2000) == pytest.approx(-100.0)


def test_fast_increase_adds_what_was_acknowledged_while_the_window_is_used() -> None:
    """As far as 1.1 times the bytes that were in flight [RFC 8298 sec 4.1.2.2]."""
    sender = started(window_bytes=10_000.0)
    acked(sender, 0.1, 0, flight=10)  # 1.5 x 10,000 + 1000 > 10,000
    assert sender.window_bytes == 11_000
    acked(sender, 0.2, 1, flight=6)  # 1.5 x 6000 + 1000 <= 11,000
    assert sender.window_bytes == 11_000
    acked(sender, 0.3, 2, flight=9)
    assert sender.window_bytes == pytest.approx(11_000)  # 12,000, but for the 10,000 bytes in flight


def test_a_trend_of_a_fifth_ends_fast_increase() -> None:
    """a = 1, and qdelay_fraction_avg becomes 0.9 x 0.25 = 0.225."""
    sender = started(window_bytes=10_000.0, _prediction=1.0, _fraction_average=0.25)
    acked(sender, 0.1, 0, flight=20)
    assert not sender.fast_increase
    assert sender.window_bytes == pytest.approx(10_100)  # no queue: off_target = 1, 1000 x 1000 / 10,000


def test_outside_fast_increase_an_unused_window_does_not_grow_and_flight_limits_it() -> None:
    sender = started(window_bytes=10_000.0, fast_increase=False)
    acked(sender, 0.1, 0, flight=20)
    before = sender.window_bytes
    acked(sender, 0.2, 1, flight=7)  # 1.25 x 7000 + 1000 <= 10,100
    assert sender.window_bytes == before
    sender.window_bytes = 50_000.0
    acked(sender, 0.3, 2, flight=20)
    assert sender.window_bytes == 22_000  # 1.1 x the 20,000 bytes of the last 5 s


def test_a_loss_scales_window_and_rate_once_a_round_trip() -> None:
    """BETA_LOSS = 0.8, BETA_R = 0.9 [RFC 8298 sec 4.1.2.2], [RFC 8298 sec 4.1.3], once a round trip [RFC 8298 sec 4.1.2.1]."""
    sender = started(window_bytes=10_000.0, target_bps=1e6)
    lost(sender, 1.0, 5)
    assert (sender.window_bytes, sender.target_bps, sender.fast_increase) == (8000, pytest.approx(0.9e6), False)
    lost(sender, 1.05, 7)  # SRTT is 100 ms
    assert sender.window_bytes == 8000
    lost(sender, 1.15, 9)
    assert (sender.window_bytes, sender.target_bps) == (6400, pytest.approx(0.81e6))
    for n in range(10):
        lost(sender, 2.0 + n, 20 + n)
    assert (sender.window_bytes, sender.target_bps) == (3000, pytest.approx(max(150e3, 0.9**12 * 1e6)))


def test_the_acknowledgement_that_tells_a_loss_does_not_grow_the_window() -> None:
    """Growth is for "when no congestion event" [RFC 8298 sec 4.1.2.2]; the next acknowledgement adds its packet in fast increase."""
    sender = started(window_bytes=20_000.0)
    acked(sender, 0.9, 0, flight=19)
    sender.window_bytes = 20_000.0
    lost(sender, 1.0, 5)
    acked(sender, 1.0, 9, flight=19)
    assert sender.window_bytes == 16_000
    acked(sender, 1.01, 10, flight=19)
    assert sender.window_bytes == pytest.approx(16_000 + 1000 * 1000 / 16_000)


def marked(sender: ScreamSender, now_s: float, sequence: int, ecn: Ecn = Ecn.CE) -> tuple:
    return sender.on_ack(now_s, Ack(sequence, 0.1, 1, path(sequence + 15, sequence), 0.05, ecn=ecn), RNG)


def test_a_mark_scales_window_and_rate_once_a_round_trip() -> None:
    """BETA_ECN [RFC 8298 sec 4.1.2.2], of window and rate alike [RFC 8298 sec 4.1.3], here 0.8. Without `ecn` a mark is nothing."""
    for ecn, sent_as, window_bytes in ((True, Ecn.ECT_0, 12_000), (False, Ecn.NOT_ECT, 15_000)):
        sender = ScreamSender(replace(P, ecn=ecn, beta_ecn=0.8))
        sender.on_start(0.0, RNG)
        sender.window_bytes, sender.target_bps, sender.fast_increase = 15_000.0, 1e6, False
        assert sender.interests.ecn == sent_as
        sender.queueing_s = P.target_low_s  # at its target the window neither grows nor shrinks
        sender.base.queueing_s(0.0, -0.05)
        for now_s in (1.0, 1.05):
            marked(sender, now_s, 5)
        assert (sender.window_bytes, sender.target_bps) == (window_bytes, pytest.approx(0.8e6 if ecn else 1e6))


def test_in_low_latency_the_marked_part_scales_the_window() -> None:
    """[RFC 8257 sec 3.3] alpha is 1 and counts a round trip with 2 of 8 marked by an eighth: 7/8 + 1/32 = 0.90625. Then a mark takes half of
    alpha from the window, a quarter from the rate."""
    sender = ScreamSender(replace(P, l4s=True))
    sender.on_start(0.0, RNG)
    assert sender.interests.ecn == Ecn.ECT_1
    sender._lost_s = 0.95  # a reduction 50 ms ago: none in this round trip
    sender._marks_counted_s = 0.95
    for n in range(8):
        marked(sender, 1.0 + 0.007 * n, n, Ecn.CE if n < 2 else Ecn.ECT_1)
    sender.window_bytes, sender.target_bps = 15_000.0, 1e6
    sender._marks_counted_s = 0.0
    sender._arrivals, sender._marks = 7, 1  # this mark is the eighth
    marked(sender, 1.06, 8)
    assert sender.marked_part == pytest.approx(0.90625)
    assert (sender.window_bytes, sender.target_bps) == (pytest.approx(15_000 * (1 - 0.453125)), pytest.approx(1e6 * (1 - 0.2265625)))


def test_the_send_window_has_a_packet_more_below_the_target() -> None:
    """[RFC 8298 sec 4.1.2.5]: cwnd + MSS, and cwnd above the target."""
    sender = started(window_bytes=10_500.0, fast_increase=False)
    said = acked(sender, 0.1, 0, flight=20)
    assert SetWindow(11.0) in said  # 10,595 + 1000
    said = acked(sender, 0.2, 1, flight=20, delay_s=0.2)  # 150 ms above the smallest
    assert SetWindow(10.0) in said


# ---------------------------------------------------------------------------------------------------------- trend and target


def test_autocorrelation() -> None:
    """1, 2, 3, 4 are -1.5, -0.5, 0.5, 1.5 off their mean: (0.75 - 0.25 + 0.75) / 5 = 0.25; a constant has none."""
    assert autocorrelation([1.0, 2.0, 3.0, 4.0]) == pytest.approx(0.25)
    assert autocorrelation([1.0, -1.0, 1.0, -1.0]) == pytest.approx(-0.75)
    assert autocorrelation([3.0] * 5) == 0.0


def test_trend() -> None:
    """A first sample of 100 ms: the mean becomes 0.1; one of 20 differs: R(1) / R(0) = -1/20 (lag 1 of one spike at the end is
    (0.95)(-0.05) + 18 (0.05)^2 = -0.0025 over 0.95), so that the trend is 0; a rising queue has one. The mean takes in feedback each 10 ms at most."""
    sender = started()
    sender.base.queueing_s(0.0, 0.05)
    for now_s in (0.05, 0.059):
        acked(sender, now_s, 0, flight=1, delay_s=0.15)
    sender._sample(0.05)
    assert sender._fraction_average == pytest.approx(0.1) and sender.trend == 0.0
    for n in range(2, 30):
        acked(sender, 0.05 * n, n, flight=1, delay_s=0.05 + 0.01 * n)
        sender._sample(0.05 * n)
    assert sender.trend > 0.2 and sender.trend_memory >= sender.trend


def test_target() -> None:
    """[RFC 8298 sec 4.1.2.3]: steady 200 ms are 2.0 of QDELAY_TARGET_LO, variance 0: target 200 ms. With losses 1.5 times that. Half 0
    and half 2.0, variance 1: 0.9 of the target; a short queue that varies: half, and not below 100 ms."""
    assert next_target_s(P, 0.1, [2.0] * 200, 0.0) == pytest.approx(0.2)
    assert next_target_s(P, 0.1, [2.0] * 200, 0.01) == pytest.approx(0.3)
    assert next_target_s(P, 0.1, [9.0] * 200, 0.01) == 0.4
    assert next_target_s(P, 0.3, [0.0, 2.0] * 100, 0.0) == pytest.approx(0.27)
    spike = [5.0] * 3 + [0.0] * 197  # mean of the last 50 is 0, sqrt(variance) = sqrt(0.375 - 0.005625)
    assert sqrt(0.375 - 0.075**2) < 1 and next_target_s(P, 0.3, spike, 0.0) == pytest.approx(0.15)


def test_the_target_is_adjusted_with_each_acknowledgement() -> None:
    """[RFC 8298 sec 4.1.2.2] over a history that begins with zeros [RFC 8298 sec 4.1.1.2]: after 50 acknowledgements of 200 ms the mean of
    50 is 2.0, the variance of 200, a quarter of them 2.0, is 0.75: too much to set the target, and nothing was lost: 0.9 of 0.1, at least 0.1.
    After 200 all are 2.0: 200 ms."""
    sender = started()
    sender.base.queueing_s(0.0, 0.05)
    for n in range(50):
        acked(sender, 0.001 * n, n, flight=1, delay_s=0.25)
    assert sender.target_s == 0.1
    for n in range(50, 200):
        acked(sender, 0.001 * n, n, flight=1, delay_s=0.25)
    assert sender.target_s == pytest.approx(0.2)


def test_the_memory_of_the_trend_fades_with_each_acknowledgement() -> None:
    """qdelay_trend_mem = max(0.99 qdelay_trend_mem, qdelay_trend) when feedback comes [RFC 8298 sec 4.1.2]."""
    sender = started(trend_memory=0.5)
    for n in range(3):
        acked(sender, 0.001 * n, n, flight=1)
    assert sender.trend_memory == pytest.approx(0.5 * 0.99**3)


def test_a_report_is_one_feedback() -> None:
    """Ten acknowledgements of one report [RFC 8888] fade the memory once, and are one sample of the target's history [RFC 8298 sec 4.1.2]."""
    sender = started(trend_memory=0.5)
    sender.base.queueing_s(0.0, 0.05)
    for n in range(10):
        sender.on_ack(0.1, Ack(n, 0.1, 1, PathState(0.1, 0.1, 0.0, 1, n + 1, n), 0.25, held_s=0.01 * (9 - n), ends_report=n == 9), RNG)
    assert sender.trend_memory == pytest.approx(0.5 * 0.99)
    assert list(sender._norms)[-2:] == pytest.approx([0.0, 2.0])


def test_calm_for_five_seconds_resumes_fast_increase() -> None:
    sender = started(fast_increase=False)
    for n in range(1, 100):
        acked(sender, 0.05 * n, n, flight=1)
    assert not sender.fast_increase
    acked(sender, 5.0, 100, flight=1)
    assert sender.fast_increase


def test_a_loss_begins_the_five_seconds_again() -> None:
    """T_RESUME_FAST_INCREASE is the "time span until fast increase mode can be resumed" [RFC 8298 sec 4.1.1.1]: a loss at 4 s, and it
    resumes at 9 s, although the trend was small all the time."""
    sender = started(fast_increase=False)
    for n in range(1, 180):
        acked(sender, 0.05 * n, n, flight=1)
        if n == 80:
            assert lost(sender, 4.0, n)
    assert sender.trend == 0.0 and not sender.fast_increase
    acked(sender, 9.0, 180, flight=1)
    assert sender.fast_increase


# ----------------------------------------------------------------------------------------------------------------- media rate


def test_media_rate_in_fast_increase() -> None:
    """200 kb/s each second, 40 kb/s in 0.2 s; at 200 kb/s half of the rate, 20 kb/s; 5 % above the last congestion (4 x 0.05)^2 = 0.04,
    but a fifth at least: 8 kb/s."""
    assert next_media_rate_bps(P, 1e6, 1.0, 1e6, 0.0, 0.0, True) == pytest.approx(1.04e6)
    assert next_media_rate_bps(P, 200e3, 1.0, 200e3, 0.0, 0.0, True) == pytest.approx(220e3)
    assert next_media_rate_bps(P, 1.05e6, 1e6, 1e6, 0.0, 0.0, True) == pytest.approx(1.058e6)


def test_media_rate_outside_fast_increase() -> None:
    """From 1 Mb/s: 900 kb/s x (1 - 0.1 x 0.5) less 10 kbit that wait = 845 kb/s; they wait 11 ms. From 600 kb/s it is 245 more, of which
    the ramp allows 40. With 100 kbit, 755 kb/s, and 0.95 of it, as they wait more than 20 ms."""
    assert next_media_rate_bps(P, 1e6, 1.0, 900e3, 0.5, 10e3, False) == pytest.approx(845e3)
    assert next_media_rate_bps(P, 600e3, 1.0, 900e3, 0.5, 10e3, False) == pytest.approx(640e3)
    assert next_media_rate_bps(P, 1e6, 1.0, 900e3, 0.5, 100e3, False) == pytest.approx(0.95 * 755e3)


def test_pace() -> None:
    """[RFC 8298 sec 4.1.2.6]: 10,000 bytes each 100 ms; RATE_PACE_MIN."""
    assert pace_bps(P, 10_000, 0.1) == pytest.approx(800e3)
    assert pace_bps(P, 3000, 10.0) == 50e3


def test_what_the_window_holds_back_waits_and_leaves_at_the_pace() -> None:
    """1 Mb/s made for 0.1 s is 100 kbit; 5 packets left: 60 kbit wait. The pace of 15,000 bytes each 100 ms is 1.2 Mb/s."""
    sender = started(target_bps=1e6, window_bytes=15_000.0)
    sender._flights.append((0.0, 15_000.0))
    said = acked(sender, 0.1, 0, flight=4)
    assert sender.queue_bits == pytest.approx(60e3)
    assert [a.rate_bps for a in said if isinstance(a, SetRate)] == [pytest.approx(1.2e6)]


def test_the_pace_is_the_windows_alone() -> None:
    """pace_bitrate = max(RATE_PACE_MIN, cwnd * 8 / s_rtt) [RFC 8298 sec 4.1.2.6]: a window of 3000 bytes each 100 ms is 240 kb/s, less than
    the target_bitrate of 1 Mb/s, whose data then wait."""
    sender = started(target_bps=1e6, window_bytes=3000.0, fast_increase=False)
    actions = sender.on_ack(1.0, Ack(0, 0.1, 1, replace(path(0, 0), waiting_bytes=5000), 0.05), RNG)
    assert SetRate(pytest.approx(240e3)) in actions
    imagined = started(target_bps=1e6, window_bytes=3000.0, fast_increase=False)
    assert SetRate(pytest.approx(240e3)) in acked(imagined, 0.001, 0, flight=0)


def test_the_media_rate_is_measured() -> None:
    """rate_media is "measured ... from the media encoder" [RFC 8298 sec 4.1.1.2]: a source of 200 kb/s, 25 packets each second, keeps
    target_bitrate at (2 - qdelay_trend_mem) 200 = 400 kb/s [RFC 8298 sec 4.1.3]."""
    sender = started()
    for n in range(25 * 20):
        now_s = 0.04 * n + 0.02
        state = replace(path(n, n - 1), waiting_bytes=0)
        sender.on_ack(now_s, Ack(n, 0.1, 1, state, 0.05), RNG)
        sender.on_timer(now_s, Timer(SAMPLE_TIMER, state), RNG)
    assert sender.target_bps == pytest.approx(400e3)


@given(st.lists(st.tuples(st.floats(-1, 2), st.integers(0, 30), st.booleans()), max_size=60), st.floats(1e4, 1e8))
def test_rate_and_window_stay_within_their_limits(events: list[tuple[float, int, bool]], max_rate_bps: float) -> None:
    sender = ScreamSender(replace(P, max_rate_bps=max_rate_bps))
    sender.on_start(0.0, RNG)
    now_s = 0.0
    for n, (delay_s, flight, gone) in enumerate(events):
        now_s += 0.05
        lost(sender, now_s, 3 * n) if gone else acked(sender, now_s, 3 * n, flight, delay_s)
        sender.on_timer(now_s, Timer(SAMPLE_TIMER, path(3 * n + flight, 3 * n)), RNG)
        assert min(150e3, max_rate_bps) <= sender.target_bps <= max_rate_bps
        assert sender.window_bytes >= 3000 and 0.1 <= sender.target_s <= 0.4 and sender.queue_bits >= 0


def test_the_queue_of_an_application_is_seen_and_its_encoder_told() -> None:
    """5000 bytes wait: 40,000 bits, whatever the imagined encoder would have made; the pace is the window's, 8 x 30,000 / 0.1 s, above
    TARGET_BITRATE_MAX, too [RFC 8298 sec 4.1.2.6]."""
    sender = started(target_bps=1e6, window_bytes=30_000.0, fast_increase=False)
    actions = sender.on_ack(1.0, Ack(10, 0.1, 1, replace(path(50, 10), waiting_bytes=5000), 0.05), RNG)
    assert sender.queue_bits == 40_000
    assert SetEncoderRate(1e6) in actions and SetRate(pytest.approx(80 * sender.window_bytes)) in actions
    assert sender.window_bytes == pytest.approx(30_000 + 11_000 * 1000 / 30_000)
    assert not any(
        isinstance(a, SetEncoderRate) for a in sender.on_ack(1.001, Ack(11, 0.1, 1, replace(path(50, 11), waiting_bytes=0), 0.05), RNG)
    )
    assert sender.queue_bits == 0


def test_the_receiver_stamps_what_it_acknowledges() -> None:
    assert ScreamReceiver().interests.timed_acks


# ---------------------------------------------------------------------------------------------------------------- closed loop


def test_a_flow_fills_a_path_below_its_largest_target() -> None:
    """1 Mb/s and a buffer of 600 ms: the queue stays below twice QDELAY_TARGET_LO, and nothing is lost."""
    kind = ALGORITHMS["scream"]
    loop = ClosedLoop(kind, P, Path(capacity_bps=1e6, rtt_s=0.1, queue_packets=75))
    loop.run(30.0)
    before = loop.delivered
    late = loop.run(30.0)
    assert loop.lost == 0
    assert 8000 * (loop.delivered - before) / 30.0 > 0.85e6
    delays = [dict(values)["qdelay_s"] for t, name, values in late.notes if name == "scream.adjust"]
    assert max(delays) < 0.2

"""NADA: the equations of RFC 8698 worked by hand, its modes by the events that decide them, and a flow on the path model."""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from math import exp
from pathlib import Path as File

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(File(__file__).parent))

from fairlane.hosts.algorithms import ALGORITHMS
from fairlane.hosts.algorithms.base import Ack, Ecn, Loss, LossCause, Note, PathState, SetEncoderRate, SetRate, Timer
from fairlane.hosts.algorithms.nada import (
    UPDATE_TIMER,
    NadaParameters,
    NadaReceiver,
    NadaSender,
    aggregate_signal_s,
    gradual_rate_bps,
    ramp_up_rate_bps,
    shaped_rates_bps,
    warped_delay_s,
)
from path_model import ClosedLoop, Path

RNG = random.Random(0)
P = NadaParameters()


def path(srtt_s: float = 0.1) -> PathState:
    return PathState(srtt_s, srtt_s, 0.0, 5, 100, 95)


def ack(sequence: int, delay_s: float | None, rtt_s: float = 0.1) -> Ack:
    return Ack(sequence, rtt_s, 1, path(), delay_s)


def loss(first: int, last: int) -> Loss:
    return Loss(first, last, last - first + 1, LossCause.GAP, path())


def fed(sender: NadaSender, start_s: float, delays_s: list[float], first: int = 0) -> None:
    """An acknowledgement every 10 ms."""
    for n, delay_s in enumerate(delays_s):
        sender.on_ack(start_s + 0.01 * n, ack(first + n, delay_s), RNG)


def noted(actions: tuple) -> dict:
    return dict(next(a for a in actions if isinstance(a, Note)).values)


def updated(sender: NadaSender, now_s: float) -> tuple:
    return sender.on_timer(now_s, Timer(UPDATE_TIMER, path()), RNG)


# ------------------------------------------------------------------------------------------------------------------ equations


def test_warped_delay() -> None:
    """[RFC 8698 eq 1]: 40 ms stay; 150 ms are two QTH above QTH: 50 ms exp(-0.5 x 2); at QTH both lines agree."""
    assert warped_delay_s(P, 0.040) == 0.040
    assert warped_delay_s(P, 0.150) == pytest.approx(0.050 * exp(-1.0))
    assert warped_delay_s(P, 0.050) == pytest.approx(0.050)


def test_aggregate_signal() -> None:
    """[RFC 8698 eq 2]: 20 ms + 2 ms (0.02 / 0.01)^2 + 10 ms (0.03 / 0.01)^2 = 20 + 8 + 90 ms."""
    assert aggregate_signal_s(P, 0.020, 0.02, 0.03) == pytest.approx(0.118)
    assert aggregate_signal_s(P, 0.020, 0.0, 1.0) == 0.5  # the authors' limit


def test_ramp_up() -> None:
    """[RFC 8698 eq 3, 4]: gamma = 50 / (100 + 100 + 120) = 0.15625 of 800 kb/s received; GAMMA_MAX = 0.5 where QBOUND is long."""
    assert ramp_up_rate_bps(P, 150e3, 800e3, 0.1) == pytest.approx(925e3)
    assert ramp_up_rate_bps(P, 950e3, 800e3, 0.1) == 950e3
    assert ramp_up_rate_bps(replace(P, ramp_up_queue_s=1.0), 150e3, 800e3, 0.1) == pytest.approx(1.2e6)


def test_a_long_round_trip_slows_the_ramp() -> None:
    """TAU bounds the round trip of gradual updates alone [RFC 8698 sec 4.1]: gamma = 50 / (1780 + 100 + 120) = 0.025 of 400 kb/s received."""
    sender = NadaSender()
    sender.on_start(0.0, RNG)
    fed(sender, 0.0, [0.05] * 26)
    sender.on_timer(0.5, Timer(UPDATE_TIMER, path(1.78)), RNG)
    assert sender.rate_bps == pytest.approx(1.025 * 400e3)


def test_a_packet_out_of_order_is_a_loss_at_once() -> None:
    """ "Treating out-of-order packets as losses" [RFC 8698 sec 5.1.2]: the first later arrival decides."""
    assert NadaSender().interests.loss_distance_packets == 1
    assert NadaSender(replace(P, ecn=True)).interests.loss_distance_packets == 1


def test_gradual_update() -> None:
    """[RFC 8698 eq 5, 6, 7] at 1 Mb/s with RMAX = 1.5 Mb/s: x_offset = 40 - 10 x 1.5 = 25 ms, x_diff = 10 ms;
    change = 0.5 (0.1 / 0.5) (0.025 / 0.5) + 0.5 x 2 (0.01 / 0.5) = 0.005 + 0.02."""
    assert gradual_rate_bps(P, 1e6, 0.040, 0.030, 0.1) == pytest.approx(975e3)


@given(st.floats(150e3, 1.5e6), st.floats(0.01, 1.0))
def test_the_rate_stays_where_the_signal_is_its_share(rate_bps: float, delta_s: float) -> None:
    """x_curr = PRIO XREF RMAX / r_ref is the fixed point [RFC 8698 eq 5]: with equal signals all flows have one rate."""
    signal_s = P.reference_signal_s * P.max_rate_bps / rate_bps
    assert gradual_rate_bps(P, rate_bps, signal_s, signal_s, delta_s) == pytest.approx(rate_bps)


# ---------------------------------------------------------------------------------------------------------------------- modes


def test_without_delay_or_loss_the_rate_follows_what_is_received() -> None:
    """50 packets of 8000 bits in LOGWIN = 500 ms, 800 kb/s [RFC 8698 sec 5.1.3]; SRTT 100 ms: 925 kb/s."""
    sender = NadaSender()
    assert sender.on_start(0.0, RNG)[0] == SetRate(150e3)
    fed(sender, 0.0, [0.05] * 51)
    actions = updated(sender, 0.5)
    assert noted(actions)["accelerated"] == 1 and noted(actions)["r_recv_bps"] == pytest.approx(800e3)
    assert actions[0] == SetRate(pytest.approx(925e3))


def test_an_application_that_sends_little_is_not_taken_for_its_pace() -> None:
    """A burst of 3 packets, 8 ms apart, has 48 kb/s in 500 ms, and no 1 Mb/s: the rate stays at RMIN, 150 kb/s [RFC 8698 sec 5.1.3]."""
    sender = NadaSender()
    sender.on_start(0.0, RNG)
    for n in range(3):
        sender.on_ack(0.4 + 0.008 * n, ack(n, 0.05), RNG)
    assert updated(sender, 0.5)[0] == SetRate(150e3)


def test_a_packet_that_waited_makes_the_update_gradual() -> None:
    """One packet of the window waited 10 ms, QEPS; d_queue is the smallest of 15, 0: x_offset = -100 ms at RMIN,
    change = 0.5 x 0.2 x (-0.1 / 0.5) = -0.02."""
    sender = NadaSender()
    sender.on_start(0.0, RNG)
    fed(sender, 0.0, [0.05] * 5 + [0.0601] + [0.05] * 5)
    actions = updated(sender, 0.1)
    assert noted(actions)["accelerated"] == 0
    assert actions[0] == SetRate(pytest.approx(153e3))
    # Half a second later that packet is out of the window.
    fed(sender, 0.6, [0.05] * 11, first=11)
    assert noted(updated(sender, 0.7))["accelerated"] == 1


def test_loss_counts_by_a_tenth_and_ends_the_ramp() -> None:
    """1 of 10 lost: p_loss = 0.1 x 0.1 = 0.01, so that x_curr = 10 ms."""
    sender = NadaSender()
    sender.on_start(0.0, RNG)
    fed(sender, 0.0, [0.05] * 5)
    sender.on_loss(0.05, loss(5, 5), RNG)
    fed(sender, 0.06, [0.05] * 4, first=6)
    said = noted(updated(sender, 0.1))
    assert (said["accelerated"], said["p_loss"], said["x_s"]) == (0, pytest.approx(0.01), pytest.approx(0.010))


def test_marks_count_by_a_tenth_and_end_the_ramp() -> None:
    """1 of 10 marked: p_mark = 0.1 x 0.1 = 0.01, PMRREF, so that x_curr = DMARK = 2 ms [RFC 8698 eq 2]."""
    sender = NadaSender(replace(P, ecn=True))
    assert sender.interests.ecn == Ecn.ECT_0 and NadaSender().interests.ecn == Ecn.NOT_ECT
    sender.on_start(0.0, RNG)
    fed(sender, 0.0, [0.05] * 9)
    sender.on_ack(0.09, replace(ack(9, 0.05), ecn=Ecn.CE), RNG)
    said = noted(updated(sender, 0.1))
    assert (said["accelerated"], said["p_mark"], said["x_s"]) == (0, pytest.approx(0.01), pytest.approx(0.002))


def test_the_delay_is_warped_while_losses_are_recent() -> None:
    """The first packet lost is 100, after 100: loss_int is 100 packets. 150 ms are 50 exp(-1) = 18.4 ms up to 700 packets after the loss,
    half way between both at 750, 150 ms from 800 on."""
    sender = NadaSender()
    sender.on_start(0.0, RNG)
    sender.on_loss(0.0, loss(100, 100), RNG)
    warped_s = 0.050 * exp(-1.0)
    for highest, expected_s in ((150, warped_s), (800, warped_s), (850, (0.150 + warped_s) / 2), (900, 0.150), (5000, 0.150)):
        sender.on_ack(1.0, ack(highest, None), RNG)
        assert sender._delay_s(0.150) == pytest.approx(expected_s)


def test_silence_falls_to_the_lowest_rate() -> None:
    sender = NadaSender()
    sender.on_start(0.0, RNG)
    fed(sender, 0.0, [0.05] * 11)
    updated(sender, 0.1)
    assert not any(isinstance(a, SetRate) for a in updated(sender, 1.0))
    assert updated(sender, 2.2)[0] == SetRate(150e3)


@given(st.lists(st.tuples(st.floats(-1, 2), st.floats(0, 5), st.booleans()), max_size=60), st.floats(1e4, 1e8))
def test_the_rate_stays_within_its_limits(events: list[tuple[float, float, bool]], max_rate_bps: float) -> None:
    sender = NadaSender(replace(P, max_rate_bps=max_rate_bps))
    sender.on_start(0.0, RNG)
    now_s = 0.0
    for n, (delay_s, rtt_s, lost) in enumerate(events):
        now_s += 0.1
        sender.on_loss(now_s, loss(3 * n, 3 * n), RNG) if lost else sender.on_ack(now_s, ack(3 * n, delay_s, rtt_s), RNG)
        updated(sender, now_s)
        assert min(150e3, max_rate_bps) <= sender.rate_bps <= max_rate_bps


def test_the_receiver_stamps_what_it_acknowledges() -> None:
    assert NadaReceiver().interests.timed_acks


def test_what_waits_slows_the_encoder_and_speeds_the_sending() -> None:
    """[RFC 8698 eq 11, 12, 13, 14]: 1500 bytes, 30 a second: 0.1 x 8 x 1500 x 30 = 36 kb/s less and more, but never more than 5 % of r_ref,
    within RMIN and RMAX. The RFC's own example: 2000 bytes are 48 kb/s."""
    assert shaped_rates_bps(P, 1e6, 1500) == (pytest.approx(964e3), pytest.approx(1.036e6))
    assert shaped_rates_bps(P, 1e6, 2000) == (pytest.approx(952e3), pytest.approx(1.048e6))
    assert shaped_rates_bps(P, 1e6, 10_000) == (pytest.approx(950e3), pytest.approx(1.05e6))
    assert shaped_rates_bps(P, 1e6, 20_000) == (pytest.approx(950e3), pytest.approx(1.05e6))
    assert shaped_rates_bps(P, 152e3, 1_000_000) == (150e3, pytest.approx(1.05 * 152e3))
    assert shaped_rates_bps(P, 1.48e6, 1_000_000) == (pytest.approx(0.95 * 1.48e6), 1.5e6)
    sender = NadaSender()
    sender.on_start(0.0, RNG)
    fed(sender, 0.0, [0.05] * 10)
    actions = sender.on_timer(0.1, Timer(UPDATE_TIMER, replace(path(), waiting_bytes=1000)), RNG)
    assert [type(a) for a in actions[:2]] == [SetRate, SetEncoderRate]
    change_bps = min(0.05 * sender.rate_bps, 24e3)
    assert actions[0].rate_bps - sender.rate_bps == pytest.approx(change_bps)
    assert actions[1].rate_bps == max(150e3, sender.rate_bps - change_bps)


# ---------------------------------------------------------------------------------------------------------------- closed loop


def test_a_flow_fills_a_path_and_keeps_its_queue_short() -> None:
    """1 Mb/s, RMAX 1.5 Mb/s: at the fixed point the queue holds XREF RMAX / C = 15 ms, two packets; nothing is lost."""
    kind = ALGORITHMS["nada"]
    loop = ClosedLoop(kind, P, Path(capacity_bps=1e6, rtt_s=0.1, queue_packets=37))
    loop.run(30.0)
    before = loop.delivered
    late = loop.run(30.0)
    assert loop.lost == 0
    assert 8000 * (loop.delivered - before) / 30.0 > 0.93e6
    signals = [dict(values)["queueing_s"] for _, kind_, values in late.notes if kind_ == "nada.update"]
    assert sum(signals[len(signals) // 2 :]) / (len(signals) - len(signals) // 2) == pytest.approx(0.015, abs=0.008)

"""SSVP and SSVP-ADP: each equation of the paper worked by hand."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.hosts.algorithms import ssvp_model as model
from fairlane.hosts.algorithms.base import Feedback, ReceptionState, SendFeedback, SetRate, SetTimer, StampData, Timer
from fairlane.hosts.algorithms.daa import tcp_rate_bps
from fairlane.hosts.algorithms.ssvp import REPORT_TIMER, ROUND_TIMER, SILENCE_TIMER, SsvpParameters, SsvpReceiver, SsvpSender
from fairlane.hosts.algorithms.ssvp_adp import SsvpAdpParameters, SsvpAdpSender

RNG = random.Random(0)
B, S, RTT_0 = 1e6, 1000, 0.064
"""1 Mb/s, 1000 bytes, 64 ms [SSVP sec V.A, VI]: 8 packets."""


def started(kind: type = SsvpSender, rate_bps: float = 800e3, **changes: object) -> SsvpSender:
    parameters = {SsvpSender: SsvpParameters, SsvpAdpSender: SsvpAdpParameters}[kind]()
    sender = kind(replace(parameters, initial_rate_bps=rate_bps, **changes))
    actions = sender.on_start(0.0, RNG)
    assert actions[0] == SetRate(rate_bps) and SetTimer(ROUND_TIMER, 0.1) in actions
    return sender


def heard(loss: float = 0.0, rtt_s: float | None = 0.1, receive_rate_bps: float | None = 5e5) -> Feedback:
    return Feedback(reporter=7, loss_fraction=loss, rtt_s=rtt_s, receive_rate_bps=receive_rate_bps)


def round_of(sender: SsvpSender, reports: list[Feedback]) -> float:
    """IPG after a round with these reports."""
    due_s = sender._round_due_s
    for report in reports:
        sender.on_feedback(due_s, report, RNG)
    actions = sender.on_timer(due_s, Timer(ROUND_TIMER), RNG)
    if reports:
        assert SetRate(sender.rate_bps) in actions
    return sender.ipg_s


# ------------------------------------------------------------------------------------------------------------ equations


@given(st.floats(1e-4, 8 / 27), st.floats(0.001, 2), st.floats(0.001, 5))
def test_tfrc_response_function(p: float, rtt_s: float, rto_s: float) -> None:
    """[SSVP eq 1] is [DAA eq 1] in packets a second, D = 1, where 3 sqrt(3 p / 8) <= 1, so up to p = 8/27: it prints no min."""
    packets_per_s = 1 / (rtt_s * (2 * p / 3) ** 0.5 + rto_s * (3 * (3 * p / 8) ** 0.5) * p * (1 + 32 * p * p))
    assert tcp_rate_bps(1 / 8, rtt_s, rto_s, p) == pytest.approx(packets_per_s)


@pytest.mark.parametrize(("beta", "alpha"), [(0.5, 1.0), (0.75, 7 / 12), (0.875, 5 / 16), (1.0, 0.0)])
def test_friendly_alpha(beta: float, alpha: float) -> None:
    """[SSVP eq 2]: TCP's own pair (1, 0.5); 0.58 for 0.75 and 0.31 for 0.875, as the paper rounds them."""
    assert model.friendly_alpha(beta) == pytest.approx(alpha)


def test_rate_of_a_gap() -> None:
    """[SSVP eq 3, 9] R = S / IPG: 8000 bit / 10 ms = 800 kb/s."""
    assert model.instantaneous_rate_bps(1000, 0.010) == pytest.approx(800e3)
    assert started(rate_bps=800e3).ipg_s == pytest.approx(0.010)


def test_multiplicative_decrease() -> None:
    """[SSVP eq 4]: 10 ms / 0.875 = 11.43 ms."""
    assert round_of(started(), [heard(loss=0.02)]) == pytest.approx(0.010 / 0.875)


def test_additive_increase() -> None:
    """alpha packets more each round trip [SSVP eq 2, 5, 7]: 0.31 x 8000 bit / 0.1 s = 24.8 kb/s on 800 kb/s."""
    sender = started()
    assert round_of(sender, [heard()]) == pytest.approx(0.010 / (1 + 0.31 / 10))  # k = 100 ms / 10 ms
    assert sender.rate_bps == pytest.approx(824.8e3)
    round_of(sender, [heard()])
    assert sender.rate_bps == pytest.approx(849.6e3)


@given(st.floats(1e-4, 2), st.floats(20e3, 5e6), st.floats(0.001, 1))
def test_additive_increase_adds_alpha_packets_a_round_trip(rtt_s: float, rate_bps: float, alpha: float) -> None:
    """k + alpha, whatever k was [SSVP eq 7]; for alpha = 1 that is RAP's step IPG C / (IPG + C) with C = SRTT [RAP eq 1, 2]."""
    sender = SsvpSender(SsvpParameters(initial_rate_bps=rate_bps, alpha=alpha, min_rtt_s=1e-4, max_rate_bps=1e12))
    before_s = sender.ipg_s
    after_s = round_of(sender, [heard(rtt_s=rtt_s)])
    assert model.packets_per_rtt(rtt_s, after_s) == pytest.approx(model.packets_per_rtt(rtt_s, before_s) + alpha)
    assert after_s == pytest.approx(before_s * (rtt_s / alpha) / (before_s + rtt_s / alpha))


def test_increase_as_printed() -> None:
    """[SSVP eq 5] without "/ k": 10 ms / 1.31 = 7.634 ms."""
    assert round_of(started(increase="as-printed"), [heard()]) == pytest.approx(0.010 / 1.31)


def test_only_the_additive_increase_converges_to_fairness() -> None:
    """Two flows of 100 and 25 packets a round trip meet 40 losses together, each followed by a held round and an increase. The additive
    increase adds the same to both and a decrease keeps 0.875 of their difference [Chiu and Jain]: 75 x 0.875^40 = 0.36 packets. As
    printed both steps are factors, and four to one stays four to one."""
    ends = {}
    for increase in ("additive", "as-printed"):
        flows = [started(rate_bps=rate, increase=increase, max_rate_bps=1e12) for rate in (8e6, 2e6)]
        for loss in [0.1, 0.1, 0.0] * 40:
            for flow in flows:
                round_of(flow, [heard(loss=loss)])
        ends[increase] = [model.packets_per_rtt(0.1, flow.ipg_s) for flow in flows]
    first, second = ends["additive"]
    assert first - second == pytest.approx(75 * 0.875**40)
    first, second = ends["as-printed"]
    assert first / second == pytest.approx(4)


@pytest.mark.parametrize(("rounds", "ipgs_s"), [(0, (11.43, 13.06, 14.93)), (1, (11.43, 11.43, 13.06)), (2, (11.43, 11.43, 11.43))])
def test_one_decrease_for_one_overflow(rounds: int, ipgs_s: tuple[float, ...]) -> None:
    """Three rounds with losses, beta = 0.875 in ms from 10: the reports of the round after a decrease speak of what was sent before."""
    sender = started(hold_rounds=rounds)
    for ipg_s in ipgs_s:
        assert 1e3 * round_of(sender, [heard(loss=0.1)]) == pytest.approx(ipg_s, abs=0.01)


def test_no_increase_in_a_held_round() -> None:
    sender = started()
    round_of(sender, [heard(loss=0.1)])
    assert round_of(sender, [heard()]) == pytest.approx(0.010 / 0.875)
    k = 0.1 / (0.010 / 0.875)  # 8.75 packets
    assert round_of(sender, [heard()]) == pytest.approx(0.1 / (k + 0.31))


def test_decrease_at_once() -> None:
    """With the report itself at 0.05 s, and a round of 64 ms begins; in the held round no report changes anything."""
    sender = started(react="at-once")
    actions = sender.on_feedback(0.05, heard(loss=0.1, rtt_s=0.064), RNG)
    assert SetRate(pytest.approx(700e3)) in actions and SetTimer(ROUND_TIMER, pytest.approx(0.114)) in actions
    assert sender.on_feedback(0.06, heard(loss=0.1, rtt_s=0.064), RNG) == (StampData(0.064),)
    assert sender.on_timer(0.1, Timer(ROUND_TIMER), RNG) == ()
    sender.on_timer(0.114, Timer(ROUND_TIMER), RNG)
    assert sender.rate_bps == pytest.approx(700e3)


def test_packets_in_a_round_trip_kept() -> None:
    """`adjusts` = "packets", k = RTT / IPG [SSVP eq 7]: 100 ms / 10 ms = 10; at 80 ms k = 0.875 x 10, IPG = 80 / 8.75 = 9.143 ms;
    in the held round, at 64 ms, k stays, IPG = 64 / 8.75 = 7.314 ms; then 0.31 packets more, 64 / 9.06 = 7.064 ms."""
    sender = started(adjusts="packets")
    assert round_of(sender, [heard(loss=0.1, rtt_s=0.080)]) == pytest.approx(0.080 / 8.75)
    assert round_of(sender, [heard(rtt_s=0.064)]) == pytest.approx(0.064 / 8.75)
    assert round_of(sender, [heard(rtt_s=0.064)]) == pytest.approx(0.064 / 9.06)


def test_congestion_level() -> None:
    """More than 0.005 of the control packets [SSVP sec III]: 1 of 199 decreases, 1 of 200 is a transient loss, 0 increases."""
    assert round_of(started(), [heard(loss=0.5)] + [heard()] * 198) > 0.010
    assert round_of(started(), [heard(loss=0.5)] + [heard()] * 199) == pytest.approx(0.010)
    assert round_of(started(), [heard()] * 200) < 0.010


def test_mean_throughput() -> None:
    """[SSVP eq 6]: 1000 + 500 + 1500 bytes in 0.1 s = 240 kb/s."""
    assert model.mean_throughput_bps([1000, 500, 1500], 0.1) == pytest.approx(240e3)


def test_packets_and_throughput_of_a_flow() -> None:
    """[SSVP eq 7] 64 ms / 16 ms = 4 packets; [SSVP eq 8] 4 x 8000 bit / 64 ms = 500 kb/s = [SSVP eq 9] 8000 bit / 16 ms."""
    assert model.packets_per_rtt(0.064, 0.016) == pytest.approx(4)
    assert model.flow_throughput_bps(4, S, 0.064) == pytest.approx(500e3)
    assert model.instantaneous_rate_bps(S, 0.016) == pytest.approx(500e3)


def test_system_throughput() -> None:
    """[SSVP eq 10]: (2 x 1000 + 4 x 500 bytes) a 64 ms round trip = 500 kb/s."""
    assert model.system_throughput_bps([2, 4], [1000, 500], 0.064) == pytest.approx(500e3)


def test_knee_and_cliff() -> None:
    """[SSVP eq 12] 64 ms x 1 Mb/s / 8000 bit = 8; a buffer of 4 packets delays 32 ms [SSVP eq 14]; [SSVP eq 16] 96 ms: 12."""
    assert model.knee_packets(RTT_0, B, S) == pytest.approx(8)
    assert model.queueing_delay_s(4, B, S) == pytest.approx(0.032)
    assert model.cliff_packets(RTT_0, 4, B, S) == pytest.approx(12)


def test_throughput_below_and_above_the_knee() -> None:
    """[SSVP eq 11] 6 packets, no queue: 48 kbit / 64 ms = 750 kb/s; [SSVP eq 13, 15] 10 = 8 + 2 packets: 80 kbit / 80 ms = B."""
    assert model.bottleneck_throughput_bps(6, RTT_0, B, S) == pytest.approx(750e3)
    assert model.bottleneck_throughput_bps(10, RTT_0, B, S) == pytest.approx(B)


@pytest.mark.parametrize(("buffer_packets", "beta"), [(8, 0.5), (4, 2 / 3), (24, 0.25)])
def test_beta_to_the_knee(buffer_packets: float, beta: float) -> None:
    """[SSVP eq 17]: "0.5 when the buffer size is equal to the bandwidth-delay product"; 1 / (1 + 4/8); 1 / (1 + 24/8)."""
    assert model.beta_to_knee(RTT_0, buffer_packets, B, S) == pytest.approx(beta)
    knee, cliff = model.knee_packets(RTT_0, B, S), model.cliff_packets(RTT_0, buffer_packets, B, S)
    assert knee / cliff == pytest.approx(beta)


def test_a_decrease_to_the_knee_leaves_each_flow_its_throughput() -> None:
    """[SSVP eq 18]: 3 packets of 12 at the cliff, 96 ms: 250 kb/s; times beta = 2/3, 2 packets at 64 ms: 250 kb/s again."""
    assert model.flow_throughput_bps(3, S, 0.096) == pytest.approx(250e3)
    assert model.flow_throughput_bps(3 * model.beta_to_knee(RTT_0, 4, B, S), S, 0.064) == pytest.approx(250e3)


def test_packets_from_the_round_trip() -> None:
    """[SSVP eq 19]: 80 ms x 1 Mb/s / 8000 bit = 10."""
    assert model.packets_at_rtt(0.080, B, S) == pytest.approx(10)


def test_adaptive_decrease_and_increase() -> None:
    """[SSVP eq 20] 64 / 80 = 0.8; [SSVP eq 21] 10 ms x 80 / 64 = 12.5 ms; [SSVP eq 2] alpha = 4 x 0.36 / 3 = 0.48;
    the next increase, after the round that is held, is [SSVP eq 5] with it: k = 64 / 12.5 = 5.12 packets become 5.6."""
    sender = started(SsvpAdpSender)
    round_of(sender, [heard(rtt_s=0.064)])
    sender.ipg_s = 0.010
    assert round_of(sender, [heard(rtt_s=0.080, loss=0.1)]) == pytest.approx(0.0125)
    assert (sender.beta, sender.alpha) == (pytest.approx(0.8), pytest.approx(0.48))
    assert round_of(sender, [heard(rtt_s=0.080)]) == pytest.approx(0.0125)
    assert round_of(sender, [heard(rtt_s=0.064)]) == pytest.approx(0.064 / 5.6)


@pytest.mark.parametrize(("which", "ipg_s"), [("newest", 0.0125), ("before-loss", 0.015), ("smoothed", 0.010859375)])
def test_round_trip_of_the_decrease(which: str, ipg_s: float) -> None:
    """Samples 64, 96 and, with the loss, 80 ms, RTT_min = 64: 10 ms x 80 / 64; x 96 / 64; the average is 64 + 32/8 = 68, then
    68 + 12/8 = 69.5: 10 ms x 69.5 / 64 = 10.859375 ms."""
    sender = started(SsvpAdpSender, rtt_at_decrease=which)
    round_of(sender, [heard(rtt_s=0.064)])
    sender.ipg_s = 0.010
    assert round_of(sender, [heard(rtt_s=0.096), heard(rtt_s=0.080, loss=0.1)]) == pytest.approx(ipg_s)


@pytest.mark.parametrize(("window_s", "beta"), [(0.0, 64 / 96), (1.0, 64 / 96), (0.25, 80 / 96), (0.05, 0.99)])
def test_window_of_the_least_round_trip(window_s: float, beta: float) -> None:
    """Samples of 64 ms at 0 s, 80 at 0.2, 96 with the loss at 0.3: the least of all, of [0.05, 0.3], of [0.25, 0.3] where it is the
    newest itself, so that beta is `max_beta`."""
    sender = started(SsvpAdpSender, rtt_min_window_s=window_s)
    for at_s, rtt_s in ((0.0, 0.064), (0.2, 0.080)):
        sender.on_feedback(at_s, heard(rtt_s=rtt_s), RNG)
    sender.on_feedback(0.3, heard(rtt_s=0.096, loss=0.1), RNG)
    sender.on_timer(0.3, Timer(ROUND_TIMER), RNG)
    assert sender.beta == pytest.approx(beta)


@given(st.lists(st.tuples(st.floats(0, 0.2), st.floats(0.01, 0.2)), min_size=1, max_size=60), st.floats(0.01, 1))
def test_window_is_the_least_of_its_samples(steps: list[tuple[float, float]], window_s: float) -> None:
    """Against the samples themselves, all kept."""
    sender = started(SsvpAdpSender, rtt_min_window_s=window_s)
    now_s, taken = 0.0, []
    for gap_s, rtt_s in steps:
        now_s += gap_s
        taken.append((now_s, rtt_s))
        sender.on_feedback(now_s, heard(rtt_s=rtt_s), RNG)
        assert sender.rtt_min_s == min(r for t, r in taken if t >= now_s - window_s)


@given(st.floats(0.01, 1), st.integers(1, 8))
def test_adaptive_decrease_at_the_cliff_is_that_to_the_knee(rtt_s: float, buffers: int) -> None:
    """[SSVP eq 20] with RTT(t) of a full buffer is [SSVP eq 17]."""
    buffer_packets = buffers * rtt_s * B / (8 * S) / 2
    full_s = rtt_s + model.queueing_delay_s(buffer_packets, B, S)
    sender = started(SsvpAdpSender)
    round_of(sender, [heard(rtt_s=rtt_s)])
    round_of(sender, [heard(rtt_s=full_s, loss=0.1)])
    assert sender.beta == pytest.approx(model.beta_to_knee(rtt_s, buffer_packets, B, S))


# ------------------------------------------------------------------------------------------------------------ behaviour


def test_adaptive_starts_as_the_fixed_one() -> None:
    """ "in the absence of packet loss" as with alpha = 0.31 [SSVP sec VI]; without any RTT as with beta = 0.875."""
    assert round_of(started(SsvpAdpSender), [heard()]) == pytest.approx(0.100 / 10.31)
    assert round_of(started(SsvpAdpSender), [heard(loss=0.1, rtt_s=None)]) == pytest.approx(0.010 / 0.875)


def test_adaptive_factors_stay_where_the_sender_moves() -> None:
    """RTT(t) = RTT_min would be beta = 1 and alpha = 0 for ever; a false RTT would be any beta."""
    sender = started(SsvpAdpSender, hold_rounds=0)
    round_of(sender, [heard(loss=0.1, rtt_s=0.064)])
    assert sender.beta == 0.99 and sender.alpha == pytest.approx(0.026533, abs=1e-6)
    round_of(sender, [heard(loss=0.1, rtt_s=50.0)])
    assert sender.beta == 0.1


def test_once_each_round_trip() -> None:
    """ "The sender adjusts the transmission rate once per RTT" [SSVP sec III]."""
    sender = started()
    assert sender.on_feedback(0.02, heard(rtt_s=0.064), RNG) == (StampData(0.064),)
    assert sender.on_timer(0.05, Timer(ROUND_TIMER), RNG) == ()
    assert SetTimer(ROUND_TIMER, pytest.approx(0.164)) in sender.on_timer(0.1, Timer(ROUND_TIMER), RNG)
    assert sender.on_timer(0.164, Timer(ROUND_TIMER), RNG) == (SetTimer(ROUND_TIMER, pytest.approx(0.228)),)  # no report, no change


def test_limits_of_the_rate() -> None:
    sender = started(rate_bps=9e6)
    for _ in range(50):
        round_of(sender, [heard()])
    assert sender.rate_bps == 10e6
    for _ in range(200):
        round_of(sender, [heard(loss=1.0)])
    assert sender.rate_bps == 8e3


def test_silence_and_reports_of_nothing() -> None:
    """2 s without a report that says something: half the rate, again after 2 s."""
    sender = started(rate_bps=800e3)
    assert sender.on_feedback(1.9, heard(receive_rate_bps=0.0), RNG) == ()
    assert SetRate(400e3) in sender.on_timer(2.0, Timer(SILENCE_TIMER), RNG)
    sender.on_feedback(3.0, heard(), RNG)
    assert sender.on_timer(4.0, Timer(SILENCE_TIMER), RNG) == (SetTimer(SILENCE_TIMER, 5.0),)


def reception(packets: int, rtt_s: float | None = None) -> ReceptionState:
    return ReceptionState(packets, packets * 1000, 0, packets - 1, 0.0, rtt_s)


def test_receiver_reports_four_times_a_round_trip_while_packets_come() -> None:
    receiver = SsvpReceiver()
    assert receiver.on_start(0.0, RNG) == (SetTimer(REPORT_TIMER, 0.025),)  # 0.1 s stands in for the RTT
    assert receiver.on_timer(0.025, Timer(REPORT_TIMER), reception(0), RNG) == (SetTimer(REPORT_TIMER, 0.05),)
    assert receiver.on_timer(0.05, Timer(REPORT_TIMER), reception(3, 0.064), RNG) == (
        SendFeedback(),
        SetTimer(REPORT_TIMER, pytest.approx(0.066)),
    )
    assert receiver.on_timer(0.06, Timer(REPORT_TIMER), reception(4, 0.064), RNG) == ()
    assert receiver.on_timer(0.07, Timer(REPORT_TIMER), reception(4, 1e9), RNG) == (SendFeedback(), SetTimer(REPORT_TIMER, 1.07))


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        (SsvpParameters, {"beta": 1.2}, "SsvpParameters.beta = 1.2: a decrease must not raise the rate, at most 1"),
        (SsvpParameters, {"alpha": 0.0}, "SsvpParameters.alpha = 0.0: must be positive and finite"),
        (SsvpParameters, {"increase": "both"}, "SsvpParameters.increase = 'both': say 'additive' or 'as-printed'"),
        (SsvpParameters, {"react": "soon"}, "SsvpParameters.react = 'soon': say 'round-end' or 'at-once'"),
        (SsvpParameters, {"adjusts": "rate"}, "SsvpParameters.adjusts = 'rate': say 'gap' or 'packets'"),
        (SsvpParameters, {"hold_rounds": -1}, "SsvpParameters.hold_rounds = -1: must be in 0 to 1000"),
        (
            SsvpAdpParameters,
            {"rtt_at_decrease": "last"},
            "SsvpAdpParameters.rtt_at_decrease = 'last': say 'newest', 'before-loss' or 'smoothed'",
        ),
        (
            SsvpAdpParameters,
            {"rtt_min_window_s": -1.0},
            "SsvpAdpParameters.rtt_min_window_s = -1.0: seconds, finite; 0 keeps the least sample for ever",
        ),
        (SsvpParameters, {"congestion_level": 2.0}, "SsvpParameters.congestion_level = 2.0: a fraction from 0 to 1"),
        (
            SsvpAdpParameters,
            {"max_beta": 1.0},
            "SsvpAdpParameters.min_beta = 0.1, max_beta = 1.0: must be in this order and below 1",
        ),
    ],
)
def test_bad_parameters_are_named(kind: type, changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        replace(kind(), **changes)
    assert str(caught.value) == message

"""TFRC: the equations and rules of RFC 5348 worked by hand, the throughput equation against the SSVP paper's in 60 digits."""

from __future__ import annotations

import random
from dataclasses import replace
from decimal import Decimal, localcontext
from math import inf, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.hosts.algorithms.base import Feedback, Gap, Note, ReceptionState, SendFeedback, SetRate, SetTimer, StampData, Timer
from fairlane.hosts.algorithms.tfrc import FEEDBACK_TIMER, NO_FEEDBACK_TIMER, TfrcParameters, TfrcReceiver, TfrcSender
from fairlane.hosts.algorithms.tfrc_equation import loss_event_rate_for, throughput_bps
from fairlane.hosts.algorithms.tfrc_history import LossHistory, weights

RNG = random.Random(0)
WIDE = TfrcParameters(max_rate_bps=1e9, oscillation_reduction=False)


def report(p: float = 0.0, rtt_s: float | None = 0.1, x_recv_bps: float = 1e6) -> Feedback:
    return Feedback(reporter=1, loss_fraction=0.0, rtt_s=rtt_s, receive_rate_bps=x_recv_bps, loss_event_rate=p)


def started(parameters: TfrcParameters = WIDE) -> TfrcSender:
    sender = TfrcSender(parameters)
    sender.on_start(0.0, RNG)
    return sender


def reported(p: float, x_recv_bps: float) -> TfrcSender:
    """Reports at 0.7 s, which begins, 0.8 and 1.0 s: by then those rates alone limit."""
    sender = started()
    for now_s in (0.7, 0.8, 1.0):
        sender.on_feedback(now_s, report(p, x_recv_bps=x_recv_bps), RNG)
    return sender


def rate(actions: tuple) -> float:
    return next(a.rate_bps for a in actions if isinstance(a, SetRate))


def timer(actions: tuple) -> float:
    return next(a.at_s for a in actions if isinstance(a, SetTimer))


# ---------------------------------------------------------------------------------------------------- sec 3.1: equation


def test_throughput_equation() -> None:
    """[RFC 5348 sec 3.1] at p = 0.06, where the roots are 0.2 and 0.15: s = 1000 B, R = 0.1 s, t_RTO = 0.4 s:
    8000 / (0.1 x 0.2 + 0.4 x (3 x 0.15 x 0.06 x (1 + 32 x 0.0036))) = 8000 / 0.03204416."""
    assert throughput_bps(1000, 0.1, 0.06, 0.4) == pytest.approx(8000 / 0.03204416)
    assert TfrcParameters().rto_s(0.1) == pytest.approx(0.4)  # t_RTO = 4 R
    assert replace(TfrcParameters(), min_rto_s=1.0).rto_s(0.1) == 1.0  # max(4 R, one second)


def ssvp_equation_1(p: float, rtt_s: float, rto_s: float) -> Decimal:
    """T(p, RTT, RTO) in packets a second [SSVP eq 1], in 60 digits."""
    with localcontext() as context:
        context.prec = 60
        p, rtt, rto = Decimal(p), Decimal(rtt_s), Decimal(rto_s)
        return 1 / (rtt * (2 * p / 3).sqrt() + rto * (3 * (3 * p / 8).sqrt()) * p * (1 + 32 * p**2))


@pytest.mark.parametrize("p", [1e-8, 1e-6, 1e-4, 0.001, 0.01, 0.05, 0.1, 0.3, 1.0])
@pytest.mark.parametrize("rtt_s", [1e-4, 0.001, 0.01, 0.064, 0.2, 1.0, 10.0])
def test_equation_is_the_ssvp_papers_on_a_grid(p: float, rtt_s: float) -> None:
    for packet_bytes in (100, 1000, 1500):
        exact = float(ssvp_equation_1(p, rtt_s, 4 * rtt_s) * 8 * packet_bytes)
        assert throughput_bps(packet_bytes, rtt_s, p, 4 * rtt_s) == pytest.approx(exact, rel=1e-13)


@given(p=st.floats(1e-9, 1), rtt_s=st.floats(1e-5, 60), rto_s=st.floats(1e-5, 240))
def test_equation_is_the_ssvp_papers(p: float, rtt_s: float, rto_s: float) -> None:
    assert throughput_bps(1000, rtt_s, p, rto_s) == pytest.approx(float(8000 * ssvp_equation_1(p, rtt_s, rto_s)), rel=1e-12)


@given(p=st.floats(1e-8, 0.9), rtt_s=st.floats(1e-4, 10), more=st.floats(1.001, 2))
def test_throughput_falls_with_loss_and_delay(p: float, rtt_s: float, more: float) -> None:
    here = throughput_bps(1000, rtt_s, p, 4 * rtt_s)
    assert throughput_bps(1000, rtt_s, min(1.0, p * more), 4 * rtt_s) < here
    assert throughput_bps(1000, rtt_s * more, p, 4 * rtt_s * more) == pytest.approx(here / more)


def test_no_loss_or_no_delay_is_no_limit() -> None:
    assert throughput_bps(1000, 0.1, 0.0, 0.4) == inf
    assert throughput_bps(1000, 0.0, 0.1, 0.0) == inf


@given(p=st.floats(1e-8, 1), rtt_s=st.floats(1e-3, 5))
def test_the_inverse_is_within_the_five_percent(p: float, rtt_s: float) -> None:
    """[RFC 5348 sec 6.3.1]: "gives a sending rate within 5% of X_target"."""
    target = throughput_bps(1000, rtt_s, p, 4 * rtt_s)
    found = loss_event_rate_for(target, 1000, rtt_s, 4 * rtt_s)
    assert found == pytest.approx(p, rel=1e-6)
    assert throughput_bps(1000, rtt_s, found, 4 * rtt_s) == pytest.approx(target, rel=0.05)


def test_the_inverse_has_ends() -> None:
    assert loss_event_rate_for(1e-3, 1000, 0.1, 0.4) == 1.0
    assert loss_event_rate_for(1e15, 1000, 0.1, 0.4) == 1e-9


# ------------------------------------------------------------------------------------------------------ sec 4: sender


def test_start() -> None:
    """X = one packet a second, the nofeedback timer at two seconds [RFC 5348 sec 4.2]."""
    actions = TfrcSender(WIDE).on_start(10.0, RNG)
    assert set(actions) == {SetRate(8000.0), SetTimer(NO_FEEDBACK_TIMER, 12.0)}


@pytest.mark.parametrize(("packet_bytes", "window_bytes"), [(100, 400), (1000, 4000), (1460, 4380), (2190, 4380), (4000, 8000)])
def test_initial_window(packet_bytes: int, window_bytes: int) -> None:
    """W_init = min(4 MSS, max(2 MSS, 4380)); X = W_init / R at the first report [RFC 5348 sec 4.2]."""
    sender = started(replace(WIDE, packet_bytes=packet_bytes))
    actions = sender.on_feedback(1.0, report(rtt_s=0.1, x_recv_bps=0.0), RNG)
    assert rate(actions) == pytest.approx(8 * window_bytes / 0.1)
    assert StampData(0.1) in actions


def test_round_trip_is_smoothed() -> None:
    """R = q R + (1-q) R_sample, q = 0.9 [RFC 5348 sec 4.3 step 2]: 0.9 x 0.1 + 0.1 x 0.2 = 0.11."""
    sender = started()
    sender.on_feedback(1.0, report(rtt_s=0.1), RNG)
    sender.on_feedback(1.1, report(rtt_s=0.2), RNG)
    assert sender.rtt_s == pytest.approx(0.11)


def test_slow_start_doubles_once_each_round_trip_up_to_twice_the_receive_rate() -> None:
    """X = max(min(2 X, recv_limit), initial_rate), once tld is R ago [RFC 5348 sec 4.3 step 4]."""
    sender = started()
    sender.on_feedback(1.0, report(x_recv_bps=0.0), RNG)  # X = 320 kb/s
    assert rate(sender.on_feedback(1.05, report(x_recv_bps=320e3), RNG)) == pytest.approx(320e3)  # too early
    assert rate(sender.on_feedback(1.1, report(x_recv_bps=200e3), RNG)) == pytest.approx(640e3)  # 2 X; X_recv_set has Infinity
    assert rate(sender.on_feedback(1.21, report(x_recv_bps=500e3), RNG)) == pytest.approx(1000e3)  # recv_limit = 2 x 500
    assert rate(sender.on_feedback(1.6, report(x_recv_bps=1e3), RNG)) == pytest.approx(320e3)  # no less than initial_rate


def test_the_first_report_starts_and_limits_nothing() -> None:
    """Step 4 is replaced [RFC 5348 sec 4.2]; recv_limit is infinite "for the first two round-trip times" [RFC 5348 sec 4.3]."""
    sender = started()
    assert rate(sender.on_feedback(1.0, report(0.5, x_recv_bps=0.0), RNG)) == pytest.approx(320e3)
    assert rate(sender.on_feedback(1.1, report(0.001, x_recv_bps=1e3), RNG)) > 2e6  # X_Bps
    assert rate(sender.on_feedback(1.21, report(0.001, x_recv_bps=1e3), RNG)) == pytest.approx(2e3)


def test_receive_rates_are_those_of_two_round_trips() -> None:
    """Update X_recv_set; recv_limit = 2 max(X_recv_set) [RFC 5348 sec 4.3]."""
    p = 1e-6
    sender = reported(p, x_recv_bps=300e3)
    assert rate(sender.on_feedback(1.1, report(p, x_recv_bps=100e3), RNG)) == pytest.approx(600e3)
    assert rate(sender.on_feedback(1.15, report(p, x_recv_bps=100e3), RNG)) == pytest.approx(600e3)  # 0.15 s ago: counts
    assert rate(sender.on_feedback(1.25, report(p, x_recv_bps=100e3), RNG)) == pytest.approx(200e3)  # 0.25 s ago: not


def test_congestion_avoidance_follows_the_equation() -> None:
    """X = max(min(X_Bps, recv_limit), s/t_mbi) [RFC 5348 sec 4.3 step 4]."""
    sender = reported(0.06, x_recv_bps=1e6)
    actions = sender.on_feedback(1.1, report(0.06, x_recv_bps=1e6), RNG)
    assert rate(actions) == pytest.approx(8000 / 0.03204416)
    assert rate(sender.on_feedback(62.0, report(1.0, rtt_s=60.0, x_recv_bps=0.0), RNG)) == 8000 / 64  # s / t_mbi
    assert any(isinstance(a, Note) and dict(a.values)["p"] == 0.06 for a in actions)


def test_nofeedback_timer_is_four_round_trips_or_two_packets() -> None:
    """RTO = max(4 R, 2 s / X), with the X before this report [RFC 5348 sec 4.3 step 3, 6]."""
    sender = started()
    # X is a packet a second before the first report, which sets X = W_init / R = 320 kb/s: then 2 s / X = 0.05 s, 4 R = 0.4 s.
    assert timer(sender.on_feedback(1.0, report(), RNG)) == pytest.approx(3.0)
    assert timer(sender.on_feedback(1.1, report(), RNG)) == pytest.approx(1.5)
    slow = reported(0.5, x_recv_bps=1e3)
    x_bps = slow.allowed_bps
    assert timer(slow.on_feedback(2.0, report(0.5, x_recv_bps=1e3), RNG)) == pytest.approx(2.0 + max(0.4, 16000 / x_bps))


def test_nofeedback_before_any_report_halves_x() -> None:
    """X = max(X/2, s/t_mbi) [RFC 5348 sec 4.4]; the timer then waits 2 s / X."""
    sender = started()
    actions = sender.on_timer(2.0, Timer(NO_FEEDBACK_TIMER), RNG)
    assert rate(actions) == 4000.0 and timer(actions) == pytest.approx(6.0)
    now_s = 6.0
    for _ in range(10):
        actions = sender.on_timer(now_s, Timer(NO_FEEDBACK_TIMER), RNG)
        now_s = timer(actions)
    assert rate(actions) == 125.0


def test_nofeedback_in_slow_start_halves_x() -> None:
    """p = 0: X = max(X/2, s/t_mbi) [RFC 5348 sec 4.4]."""
    sender = started()
    sender.on_feedback(1.0, report(x_recv_bps=0.0), RNG)
    assert rate(sender.on_timer(3.0, Timer(NO_FEEDBACK_TIMER), RNG)) == pytest.approx(160e3)
    assert sender.on_timer(1.5, Timer("other"), RNG) == ()


def test_nofeedback_when_the_receive_rate_limits() -> None:
    """X_Bps > 2 X_recv: Update_Limits(X_recv): X_recv_set = {X_recv / 2}, so X = X_recv [RFC 5348 sec 4.4]."""
    sender = reported(0.001, x_recv_bps=200e3)
    assert sender.allowed_bps == pytest.approx(400e3)
    assert rate(sender.on_timer(1.4, Timer(NO_FEEDBACK_TIMER), RNG)) == pytest.approx(200e3)
    assert rate(sender.on_timer(1.8, Timer(NO_FEEDBACK_TIMER), RNG)) == pytest.approx(100e3)


def test_nofeedback_when_the_equation_limits() -> None:
    """Else Update_Limits(X_Bps / 2), so X = X_Bps / 2 [RFC 5348 sec 4.4]."""
    sender = reported(0.06, x_recv_bps=1e6)
    x_bps = sender.allowed_bps
    assert rate(sender.on_timer(1.4, Timer(NO_FEEDBACK_TIMER), RNG)) == pytest.approx(x_bps / 2)


def test_oscillation_reduction() -> None:
    """R_sqmean = q2 R_sqmean + (1-q2) sqrt(R_sample); X_inst = X R_sqmean / sqrt(R_sample) [RFC 5348 sec 4.5]:
    (0.9 sqrt(0.09) + 0.1 sqrt(0.16)) / sqrt(0.16) = 0.31 / 0.4."""
    sender = started(replace(WIDE, oscillation_reduction=True))
    sender.on_feedback(1.0, report(0.06, rtt_s=0.09), RNG)
    actions = sender.on_feedback(1.1, report(0.06, rtt_s=0.16), RNG)
    assert rate(actions) == pytest.approx(sender.allowed_bps * 0.31 / 0.4)
    plain = started()
    plain.on_feedback(1.0, report(0.06, rtt_s=0.09), RNG)
    assert rate(plain.on_feedback(1.1, report(0.06, rtt_s=0.16), RNG)) == sender.allowed_bps


@pytest.mark.parametrize("bad", [report(rtt_s=None), report(rtt_s=float("nan")), report(p=float("nan")), report(rtt_s=inf)])
def test_reports_of_no_tfrc_receiver_change_nothing(bad: Feedback) -> None:
    assert started().on_feedback(1.0, bad, RNG) == ()


# ---------------------------------------------------------------------------------------------- sec 5: loss event rate


def test_weights() -> None:
    """[RFC 5348 sec 5.4]: 1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2."""
    assert weights(8) == pytest.approx((1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2))


def history(*intervals: float, start: int = 1000, **options) -> LossHistory:
    made = LossHistory(**options)
    made.intervals, made.discounts = [float(i) for i in intervals], [1.0] * len(intervals)
    made.start_sequence = start
    return made


def test_times_of_lost_packets_are_interpolated() -> None:
    """T_loss = T_before + (T_after - T_before) (S_loss - S_before) / (S_after - S_before) [RFC 5348 sec 5.2]: 6, 7, 8 between 10.0 s
    and 10.4 s would have come at 10.1, 10.2, 10.3: with R = 0.15 s the third begins an event of its own."""
    one = LossHistory()
    assert one.lost(6, 8, 10.0, 10.4, 0.25, 50.0)
    assert (one.start_sequence, one.start_s) == (6, pytest.approx(10.1))
    two = LossHistory()
    assert two.lost(6, 8, 10.0, 10.4, 0.15, 50.0)
    assert (two.start_sequence, two.start_s) == (8, pytest.approx(10.3))
    assert two.intervals == [2.0, 50.0]


def test_losses_within_a_round_trip_are_one_event() -> None:
    """[RFC 5348 sec 5.2]: of the same event when T_old + R >= T_new."""
    made = LossHistory()
    made.lost(100, 100, 1.0, 1.02, 0.1, 40.0)  # at 1.01
    assert not made.lost(105, 105, 1.09, 1.11, 0.1, 40.0)  # at 1.10
    assert made.lost(110, 110, 1.11, 1.13, 0.1, 40.0)  # at 1.12 > 1.11
    assert made.intervals == [10.0, 40.0]  # S_B - S_A [RFC 5348 sec 5.3]
    assert not made.lost(110, 110, 1.11, 1.13, 0.1, 40.0)  # reported twice


def test_average_loss_interval() -> None:
    """I_tot = max(I_tot0, I_tot1), p = W_tot / I_tot [RFC 5348 sec 5.4], W_tot = 6: intervals 80, 60, 40, 20, 10, 10, 10, 10, open 10.
    I_tot1 = 80 + 60 + 40 + 20 + 8 + 6 + 4 + 2 = 220; I_tot0 = 10 + 80 + 60 + 40 + 16 + 6 + 4 + 2 = 218: p = 6/220.
    With an open interval of 50, I_tot0 = 258: p = 6/258."""
    made = history(80, 60, 40, 20, 10, 10, 10, 10)
    assert made.loss_event_rate(1009) == pytest.approx(6 / 220)
    assert made.loss_event_rate(1049) == pytest.approx(6 / 258)


def test_short_history() -> None:
    """k < n intervals: the sums have k terms, I_0 ... I_(k-1) or I_1 ... I_k [RFC 5348 sec 5.4]; no loss, p = 0."""
    assert LossHistory().loss_event_rate(500) == 0.0
    assert history(30, 60).loss_event_rate(1000) == pytest.approx(2 / 90)
    assert history(30).loss_event_rate(1029) == pytest.approx(1 / 30)  # I_0 = 30 and I_1 = 30
    assert history(30).loss_event_rate(1059) == pytest.approx(1 / 60)  # I_0 = 60
    assert history(30, 60).loss_event_rate(1069) == pytest.approx(2 / 100)  # I_0 = 70 and I_1 = 30


def test_history_discounting() -> None:
    """[RFC 5348 sec 5.5]: I_0 = 400 > 2 x 100: DF = 2 I_mean / I_0 = 0.5; I_tot0 = 400 + 0.5 x 500, W_tot0 = 1 + 0.5 x 5."""
    made = history(*[100] * 8)
    assert made.loss_event_rate(1199) == pytest.approx(6 / 700)  # I_0 = 200: not yet
    assert made.loss_event_rate(1399) == pytest.approx(3.5 / 650)
    # I_0 = 10000: THRESHOLD 0.25
    assert made.loss_event_rate(10_999) == pytest.approx(2.25 / 10_125)
    assert history(*[100] * 8, discounting=False).loss_event_rate(1399) == pytest.approx(6 / 900)


def test_discounts_stay_when_the_interval_closes() -> None:
    """DF_i = DF DF_i for i = 1 to n, then DF_(i+1) = DF_i for i = n-1 to 0 with DF_0 = 1 [RFC 5348 sec 5.5]: the long interval is not
    discounted itself. I_tot1 = 400 + 0.5 x (300 + 200), W_tot1 = 1 + 0.5 x (3 + 2); then 500 more, DF = 2 x 185.7 / 500."""
    made = history(*[100] * 8)
    made.lost(1400, 1400, 5.0, 5.0, 0.1, 0.0)
    assert made.intervals[0] == 400 and made.discounts == pytest.approx([1.0] + [0.5] * 7)
    assert made.loss_event_rate(1400) == pytest.approx(3.5 / 650)
    made.lost(1900, 1900, 9.0, 9.0, 0.1, 0.0)
    df = 2 * 650 / 3.5 / 500
    assert made.discounts == pytest.approx([1.0, df] + [0.5 * df] * 6)


@given(
    gaps=st.lists(st.tuples(st.integers(1, 200), st.integers(0, 2000), st.floats(0, 5)), min_size=1, max_size=40),
    rtt_s=st.floats(1e-4, 2),
)
def test_p_is_a_fraction_and_time_without_loss_never_raises_it(gaps: list, rtt_s: float) -> None:
    made, sequence, now_s = LossHistory(), 0, 0.0
    for lost, received, took_s in gaps:
        before_s, now_s = now_s, now_s + took_s
        made.lost(sequence, sequence + lost - 1, before_s, now_s, rtt_s, 10.0)
        sequence += lost + received + 1
        assert len(made.intervals) == len(made.discounts) <= 8
        assert all(i >= 1 for i in made.intervals) and all(0 < d <= 1 for d in made.discounts)
    rates = [made.loss_event_rate(sequence + more) for more in range(0, 3000, 300)]
    assert all(0 < p <= 1 for p in rates)
    assert rates == sorted(rates, reverse=True)


@given(lost=st.integers(1, 10**9), took_s=st.floats(0, 1e6), rtt_s=st.floats(1e-4, 64))
def test_a_hole_of_any_length_is_counted_at_once(lost: int, took_s: float, rtt_s: float) -> None:
    made = LossHistory()
    made.lost(0, 0, 0.0, 0.01, rtt_s, 10.0)
    made.lost(5, 4 + lost, 0.02, 0.02 + took_s, rtt_s, 10.0)
    assert 0 < made.loss_event_rate(5 + lost) <= 1
    assert made.start_sequence <= 4 + lost and made.start_s <= 0.02 + took_s


# --------------------------------------------------------------------------------------------------- sec 6: receiver


def reception(packets: int = 1, highest: int | None = None, rtt_s: float | None = 0.1, size: int = 1000) -> ReceptionState:
    return ReceptionState(packets, packets * size, 0, packets - 1 if highest is None else highest, 0.0, rtt_s)


def poll(receiver: TfrcReceiver, now_s: float, **state) -> tuple:
    return receiver.on_timer(now_s, Timer(FEEDBACK_TIMER), reception(**state), RNG)


def test_first_packet_is_reported_at_once_and_each_until_one_carries_a_round_trip() -> None:
    """[RFC 5348 sec 6.3]."""
    receiver = TfrcReceiver()
    assert receiver.on_start(0.0, RNG) == (SetTimer(FEEDBACK_TIMER, 0.01),)
    assert poll(receiver, 0.01, packets=0, rtt_s=None) == (SetTimer(FEEDBACK_TIMER, 0.02),)
    assert poll(receiver, 0.02, rtt_s=None) == (SendFeedback(0.0), SetTimer(FEEDBACK_TIMER, pytest.approx(0.03)))
    assert poll(receiver, 0.03, rtt_s=None) == (SetTimer(FEEDBACK_TIMER, pytest.approx(0.04)),)
    assert poll(receiver, 0.04, packets=2, rtt_s=0.1) == (SendFeedback(0.0), SetTimer(FEEDBACK_TIMER, pytest.approx(0.14)))


def test_reports_come_once_each_round_trip_and_only_of_data() -> None:
    """[RFC 5348 sec 6.2]."""
    receiver = TfrcReceiver()
    poll(receiver, 1.0)
    assert poll(receiver, 1.1, packets=5) == (SendFeedback(0.0), SetTimer(FEEDBACK_TIMER, pytest.approx(1.2)))
    # Without data it waits for the next packet [RFC 5348 sec 6.1 step 2], at which it looks each 10 ms.
    assert poll(receiver, 1.2, packets=5) == (SetTimer(FEEDBACK_TIMER, pytest.approx(1.21)),)
    assert poll(receiver, 1.21, packets=6) == (SendFeedback(0.0), SetTimer(FEEDBACK_TIMER, pytest.approx(1.31)))


def gap(first: int, last: int, before_s: float, after_s: float, **state) -> Gap:
    return Gap(first, last, before_s, after_s, reception(highest=last + 3, **state))


def test_a_loss_event_is_reported_at_once() -> None:
    """[RFC 5348 sec 6]; a further loss of the same event waits."""
    receiver = TfrcReceiver()
    poll(receiver, 1.0)
    poll(receiver, 1.1, packets=11)  # 10 packets in 0.1 s: X_recv = 800 kb/s
    said = receiver.on_gap(1.15, gap(12, 12, 1.12, 1.14, packets=15), RNG)
    assert isinstance(said[0], SendFeedback) and said[0].loss_event_rate > 0
    assert said[1] == SetTimer(FEEDBACK_TIMER, pytest.approx(1.25))
    assert receiver.on_gap(1.18, gap(14, 14, 1.15, 1.17, packets=17), RNG) == ()


def test_first_interval_gives_the_rate_of_the_receiver() -> None:
    """[RFC 5348 sec 6.3.1]: 1/p such that the equation gives X_target, the largest X_recv so far: 800 kb/s, R = 0.1 s."""
    receiver = TfrcReceiver()
    poll(receiver, 1.0)
    poll(receiver, 1.1, packets=11)
    poll(receiver, 1.2, packets=14)
    receiver.on_gap(1.25, gap(16, 16, 1.22, 1.24, packets=18), RNG)
    p = 1 / receiver.history.intervals[0]
    assert throughput_bps(1000, 0.1, p, 0.4) == pytest.approx(800e3, rel=0.05)
    # Without any X_recv: half a packet each round trip.
    early = TfrcReceiver()
    early.on_gap(1.0, gap(1, 1, 0.5, 0.9, packets=2), RNG)
    assert throughput_bps(1000, 0.1, 1 / early.history.intervals[0], 0.4) == pytest.approx(40e3, rel=0.05)


def test_a_sender_that_starts_again_begins_a_new_history() -> None:
    receiver = TfrcReceiver()
    poll(receiver, 1.0)
    receiver.on_gap(1.5, gap(50, 50, 1.4, 1.5, packets=50), RNG)
    assert receiver.history.start_sequence == 50
    assert poll(receiver, 2.0, packets=60, highest=10)[0] == SendFeedback(0.0)


@pytest.mark.parametrize(
    "bad",
    [
        {"max_rate_bps": 0},
        {"rtt_memory": 1.0},
        {"sqrt_rtt_memory": -0.1},
        {"min_rto_s": float("nan")},
        {"max_rate_bps": 10.0},
        {"loss_intervals": 0},
    ],
)
def test_impossible_parameters_are_refused(bad: dict) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        TfrcParameters(**bad)


def test_square_roots_of_the_hand_worked_case() -> None:
    assert (sqrt(2 * 0.06 / 3), sqrt(3 * 0.06 / 8)) == (pytest.approx(0.2), pytest.approx(0.15))

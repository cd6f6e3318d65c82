"""RAP and its fine grain: each equation worked by hand, then what the paper leaves open."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.hosts.algorithms.base import Ack, AckDetail, Loss, LossCause, PathState, SetLossTimeout, SetRate, SetTimer, Timer
from fairlane.hosts.algorithms.rap import BEFORE_SENDING, STEP_TIMER, RapParameters, RapSender, increased_ipg_s
from fairlane.hosts.algorithms.rap_fine import TUNING_TIMER, RapFineParameters, RapFineSender

RNG = random.Random(0)
SIZE_100 = RapParameters(packet_bytes=100)


def path(srtt_s: float = 0.1, sent: int = 20, acked: int = 10, rttvar_s: float = 0.0) -> PathState:
    return PathState(srtt_s, srtt_s, rttvar_s, sent - acked, sent, acked)


def lost(first: int, last: int | None = None, cause: LossCause = LossCause.GAP, **state) -> Loss:
    return Loss(first, last if last is not None else first, 1, cause, path(**state))


def started(parameters: RapParameters = SIZE_100, srtt_s: float = 0.1, sender_class=RapSender) -> RapSender:
    """A sender at its first step, 1 s: one packet per SRTT."""
    sender = sender_class(parameters)
    sender.on_start(0.0, RNG)
    sender.on_timer(1.0, Timer(STEP_TIMER, path(srtt_s, 1, 0)), RNG)
    return sender


def rate(actions: tuple) -> float:
    return next(a.rate_bps for a in actions if isinstance(a, SetRate))


def test_increase_of_the_rate_by_the_gap() -> None:
    """IPG_i+1 = IPG_i C / (IPG_i + C) [RAP eq 1]: 0.1 x 0.1 / 0.2 = 0.05; S = PacketSize / IPG: 800 bit / 0.05 s."""
    assert increased_ipg_s(0.1, 0.1) == pytest.approx(0.05)
    assert increased_ipg_s(0.05, 0.1) == pytest.approx(0.1 / 3)
    sender = started()
    assert sender.ipg_s == pytest.approx(0.1)
    actions = sender.on_timer(1.1, Timer(STEP_TIMER, path(acked=11)), RNG)
    assert sender.ipg_s == pytest.approx(0.05)
    assert rate(actions) == pytest.approx(16_000)


@given(ipg_s=st.floats(1e-5, 100), c_s=st.floats(1e-5, 100))
def test_step_height(ipg_s: float, c_s: float) -> None:
    """alpha = S_i+1 - S_i = PacketSize / C [RAP eq 2], whatever the rate."""
    size = 800.0
    assert size / increased_ipg_s(ipg_s, c_s) - size / ipg_s == pytest.approx(size / c_s, rel=1e-6)


def test_decrease_doubles_the_gap() -> None:
    """S_i+1 = beta S_i, IPG_i+1 = IPG_i / beta, beta = 0.5 [RAP eq 3]."""
    sender = started()
    sender.on_timer(1.1, Timer(STEP_TIMER, path(acked=11)), RNG)
    actions = sender.on_loss(1.15, lost(15), RNG)
    assert sender.ipg_s == pytest.approx(0.1)
    assert rate(actions) == pytest.approx(8_000)


def test_slope_is_a_packet_per_square_of_srtt() -> None:
    """Slope = PacketSize / (C SRTT) [RAP eq 4], C = SRTT: PacketSize / SRTT^2 [RAP eq 5]: 800 / 0.2^2 = 20 kb/s each second."""
    sender = started(srtt_s=0.2)
    before, now_s = sender._rate_bps(), 1.0
    for step in range(1, 11):
        now_s = sender._next_step_s
        sender.on_timer(now_s, Timer(STEP_TIMER, path(0.2, acked=10 + step)), RNG)
    assert now_s == pytest.approx(3.0)
    assert sender._rate_bps() - before == pytest.approx(2.0 * 800 / 0.2**2)


def test_losses_of_the_cluster_are_ignored() -> None:
    """Seq_LastSent >= Seq > Seq_FirstLoss [RAP eq 6]: a back-off at the loss of 15 when 20 was the last sent; then 16 ... 20 count not."""
    sender = started()
    sender.on_loss(1.2, lost(15, sent=20), RNG)
    ipg_s = sender.ipg_s
    for sequence in (16, 19, 20):
        assert sender.on_loss(1.25, lost(sequence, sent=24, acked=21), RNG) == ()
    assert sender.ipg_s == ipg_s
    sender.on_loss(1.3, lost(21, sent=25), RNG)
    assert sender.ipg_s == 2 * ipg_s
    sender.on_loss(1.35, lost(24, last=27, sent=30), RNG)  # 26 and 27 are of no cluster
    assert sender.ipg_s == 4 * ipg_s
    assert sender.backoffs == 3


def acked(sender: RapFineSender, *rtts_s: float) -> None:
    for sequence, rtt_s in enumerate(rtts_s):
        assert sender.on_ack(1.0, Ack(sequence, rtt_s, 1, path()), RNG) == ()


def test_gap_is_modulated_by_the_ratio_of_round_trips() -> None:
    """FRTT = 0.1 + 0.9 x 0.05 = 0.145, XRTT = 0.1 + 0.01 x 0.05 = 0.1005; IPG' = IPG FRTT / XRTT [RAP eq 7]: 0.1 x 1.4428, without
    cumulative effect: IPG stays 0.1, and a step halves it to 0.05."""
    sender = started(RapFineParameters(packet_bytes=100), sender_class=RapFineSender)
    acked(sender, 0.1, 0.15)
    assert (sender.frtt_s, sender.xrtt_s) == (pytest.approx(0.145), pytest.approx(0.1005))
    for now_s in (1.03, 1.06):
        actions = sender.on_timer(now_s, Timer(TUNING_TIMER, path()), RNG)
        assert rate(actions) == pytest.approx(8000 / (0.145 / 0.1005))
        assert sender.ipg_s == pytest.approx(0.1)
    actions = sender.on_timer(1.1, Timer(STEP_TIMER, path(acked=11)), RNG)
    assert sender.ipg_s == pytest.approx(0.05) and rate(actions) == pytest.approx(16000 / (0.145 / 0.1005))


def test_the_ratio_of_round_trips_has_limits() -> None:
    sender = started(RapFineParameters(packet_bytes=100), sender_class=RapFineSender)
    assert sender.interests.acks is AckDetail.EVERY
    assert sender.feedback == 1.0 and rate(sender.on_timer(1.1, Timer(STEP_TIMER, path(acked=11)), RNG)) == pytest.approx(16_000)
    for rtt_s, feedback in ((0.1, 1.0), (10.0, 2.0), (1e-4, 0.5), (float("nan"), 0.5), (0.0, 0.5)):
        acked(sender, rtt_s, rtt_s, rtt_s)
        assert sender.feedback == feedback


def test_tuning_points_are_quarters_of_srtt() -> None:
    sender = started(RapFineParameters(packet_bytes=100), sender_class=RapFineSender)
    assert sender._next_tuning_s == pytest.approx(1.025)
    assert SetTimer(TUNING_TIMER, pytest.approx(1.05)) in sender.on_timer(1.025, Timer(TUNING_TIMER, path()), RNG)


def test_a_step_lasts_srtt_and_begins_anew_at_a_backoff() -> None:
    """ "RAP adjusts the IPG once every SRTT"; "the time between two subsequent adjustment points is called a step" [RAP sec III]."""
    sender = started()
    assert SetTimer(STEP_TIMER, 1.35) in sender.on_timer(1.1, Timer(STEP_TIMER, path(0.25, acked=11)), RNG)
    assert sender.on_timer(1.3, Timer(STEP_TIMER, path(acked=12)), RNG) == (SetTimer(STEP_TIMER, 1.35),)  # too early: nothing but patience
    assert SetTimer(STEP_TIMER, pytest.approx(1.4)) in sender.on_loss(1.3, lost(15), RNG)
    assert sender.on_timer(1.35, Timer(STEP_TIMER, path(acked=12)), RNG) == (SetTimer(STEP_TIMER, pytest.approx(1.4)),)
    assert sender.on_timer(1.4, Timer("other", path(acked=12)), RNG) == ()


def test_start() -> None:
    """One packet a second, then one per SRTT from the first round trip on."""
    sender = RapSender(SIZE_100)
    actions = sender.on_start(5.0, RNG)
    assert SetRate(800.0) in actions and SetLossTimeout(3.0, 1.0, 4.0, 0.1) in actions
    assert SetTimer(STEP_TIMER, 5.05) in actions
    assert sender.on_timer(5.05, Timer(STEP_TIMER, path(0.0, 0, -1)), RNG) == (SetTimer(STEP_TIMER, pytest.approx(5.1)),)
    actions = sender.on_timer(5.1, Timer(STEP_TIMER, path(0.08, 1, 0)), RNG)
    assert rate(actions) == pytest.approx(10_000) and SetTimer(STEP_TIMER, pytest.approx(5.18)) in actions


def timeouts(actions) -> list[SetLossTimeout]:
    return [action for action in actions if isinstance(action, SetLossTimeout)]


def test_timeout_is_jacobsons_with_karns_doubling() -> None:
    """SRTT + max(G, 4 deviations) [RFC 6298 sec 2 step 2.3]: 0.1 + 4 x 0.05; each timeout doubles it until there is a new sample."""
    sender = started()
    [first] = timeouts(RapSender(SIZE_100).on_start(0.0, RNG))
    assert [first.in_force_s(*x) for x in ((0.0, 0.0), (0.1, 0.0), (0.1, 0.05))] == pytest.approx([3.0, 0.2, 0.3])
    # The runner has the round trip: steps say nothing.
    assert not timeouts(sender.on_timer(1.3, Timer(STEP_TIMER, path(acked=12, rttvar_s=0.05)), RNG))
    state = dict(rttvar_s=0.05, acked=12)
    for doubled, sequence in ((0.6, 30), (1.2, 40), (2.4, 50)):
        [timeout] = timeouts(sender.on_loss(2.0, lost(sequence, cause=LossCause.TIMEOUT, sent=sequence, **state), RNG))
        assert timeout.in_force_s(0.1, 0.05) == pytest.approx(doubled)
    [fresh] = timeouts(sender.on_loss(3.0, lost(60, sent=70, acked=66, rttvar_s=0.04), RNG))
    assert fresh == first
    for sequence in range(100, 200, 10):
        actions = sender.on_loss(4.0, lost(sequence, cause=LossCause.TIMEOUT, sent=sequence, **state), RNG)
    assert sender._timeout.in_force_s(0.1, 0.05) == pytest.approx(60.0) and not timeouts(actions)


def test_the_papers_timeout_is_looked_for_before_sending() -> None:
    """ "Before sending a new packet, the source checks for a potential timeout [...] using the updated value of the SRTT" [RAP sec III]:
    SRTT + 4 deviations, 0.1 + 4 x 0.005 = 0.12 where RFC 6298's G makes it 0.2; no timeout changes it."""
    sender = started(replace(SIZE_100, timeout_check=BEFORE_SENDING))
    [timeout] = timeouts(RapSender(sender.parameters).on_start(0.0, RNG))
    assert timeout.before_sending and not sender._loss_timeout(path()).granularity_s
    assert [timeout.in_force_s(*x) for x in ((0.0, 0.0), (0.1, 0.0), (0.1, 0.005))] == pytest.approx([3.0, 0.1, 0.12])
    for sequence in (30, 40, 50):
        assert not timeouts(sender.on_loss(2.0, lost(sequence, cause=LossCause.TIMEOUT, sent=sequence, rttvar_s=0.005), RNG))
    assert sender.backoffs == 3 and sender.ipg_s == pytest.approx(0.8)
    with pytest.raises(ValueError, match='timeout_check = \'never\': "timer" or "before-sending"'):
        RapParameters(timeout_check="never")


def test_a_step_without_acknowledgement_adds_nothing() -> None:
    sender = started()
    sender.on_timer(1.1, Timer(STEP_TIMER, path(acked=11)), RNG)
    ipg_s = sender.ipg_s
    sender.on_timer(1.2, Timer(STEP_TIMER, path(acked=11)), RNG)
    assert sender.ipg_s == ipg_s
    hasty = started(replace(SIZE_100, steps_need_acks=False))
    hasty.on_timer(1.1, Timer(STEP_TIMER, path(acked=0)), RNG)
    assert hasty.ipg_s == pytest.approx(0.05)


def test_limits() -> None:
    sender = started(replace(SIZE_100, max_rate_bps=12_000))
    for step in range(1, 5):
        sender.on_timer(sender._next_step_s, Timer(STEP_TIMER, path(acked=20 + step)), RNG)
    assert sender._rate_bps() == 12_000
    for sequence in range(30, 300, 10):
        sender.on_loss(9.0, lost(sequence, sent=sequence + 5), RNG)
    assert sender.ipg_s == 64.0


@pytest.mark.parametrize(
    "bad", [{"beta": 1.0}, {"max_rate_bps": 0}, {"min_rtt_s": float("nan")}, {"max_ipg_s": 1e-5}, {"packet_bytes": -1}]
)
def test_impossible_parameters_are_refused(bad: dict) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        RapParameters(**bad)


@pytest.mark.parametrize("bad", [{"frtt_gain": 1.5}, {"xrtt_gain": 0}, {"tunings_per_step": 0}, {"feedback_limit": 0.5}, {"beta": 2.0}])
def test_impossible_parameters_of_the_fine_grain_are_refused(bad: dict) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        RapFineParameters(**bad)

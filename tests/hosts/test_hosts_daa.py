"""DAA and the scheme it compares with: each equation worked by hand."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.hosts.algorithms.aimd_rtcp import SILENCE_TIMER as AIMD_SILENCE
from fairlane.hosts.algorithms.aimd_rtcp import AimdRtcpParameters, AimdRtcpSender
from fairlane.hosts.algorithms.base import Feedback, SetRate, SetTimer, Timer
from fairlane.hosts.algorithms.cbr import CbrParameters, CbrSender
from fairlane.hosts.algorithms.daa import SILENCE_TIMER, DaaParameters, DaaSender, tcp_rate_bps

RNG = random.Random(0)


def heard(loss: float, rtt_s: float | None = 0.1) -> Feedback:
    return Feedback(reporter=7, loss_fraction=loss, rtt_s=rtt_s)


def daa(rate_bps: float = 1e6, **changes: float) -> DaaSender:
    sender = DaaSender(replace(DaaParameters(), initial_rate_bps=rate_bps, **changes))
    assert sender.on_start(0.0, RNG)[0] == SetRate(rate_bps)
    return sender


def rate_set(actions: tuple) -> float:
    return next(a.rate_bps for a in actions if isinstance(a, SetRate))


def test_tcp_model() -> None:
    """[DAA eq 1], l = 0.06, D = 1, tau = 0.1 s, t_out = 0.4 s, M = 1000 bytes.

    2 D l / 3 = 0.04, its root 0.2, times tau 0.02 s. 3 D l / 8 = 0.0225, root 0.15, three times 0.45 < 1.
    1 + 32 l^2 = 1.1152; t_out 0.45 x 0.06 x 1.1152 = 0.01204416 s. 8000 bit / 0.03204416 s = 249,655 bit/s.
    """
    assert tcp_rate_bps(1000, 0.1, 0.4, 0.06) == pytest.approx(8000 / 0.03204416)


def test_tcp_model_gives_the_papers_example_with_one_packet_for_an_ack() -> None:
    """ "loss values as low as 0.1% result in a TCP throughput of only 1.5 Mb/s" at a round trip of 200 ms [DAA sec 5]."""
    one, two = (tcp_rate_bps(1000, 0.2, 4 * 0.2, 0.001, packets_per_ack) for packets_per_ack in (1, 2))
    assert round(one / 1e6, 1) == 1.5 and one == pytest.approx(1.535e6, rel=1e-3)
    assert two == pytest.approx(1.086e6, rel=1e-3)


def test_tcp_model_where_every_loss_is_a_timeout() -> None:
    """[DAA eq 1], l = 1/3, D = 2: 3 sqrt(3 x 2 / 24) = 1.5, so min(1, 1.5) = 1.

    2 D l / 3 = 4/9, root 2/3, times tau 0.3 s = 0.2 s. 1 + 32/9 = 41/9; t_out 1.2 x 41/27 = 1.8222 s. 8000 / 2.0222 = 3956 bit/s.
    """
    assert tcp_rate_bps(1000, 0.3, 1.2, 1 / 3, packets_per_ack=2) == pytest.approx(8000 / (0.2 + 1.2 * 41 / 27))


def test_tcp_model_has_no_bound_without_loss() -> None:
    assert tcp_rate_bps(1000, 0.1, 0.4, 0.0) == math.inf
    assert tcp_rate_bps(1000, 0.0, 0.0, 0.5) == math.inf


@given(st.floats(1e-6, 1), st.floats(1e-4, 10), st.floats(1.0001, 3))
def test_tcp_model_falls_with_loss_and_with_round_trip(loss: float, rtt_s: float, more: float) -> None:
    """[DAA eq 1] is monotone in both, and proportional to 1/tau when t_out is a multiple of tau."""
    base = tcp_rate_bps(1000, rtt_s, 4 * rtt_s, loss)
    assert tcp_rate_bps(1000, rtt_s, 4 * rtt_s, min(1.0, loss * more)) <= base
    assert tcp_rate_bps(1000, rtt_s * more, 4 * rtt_s * more, loss) == pytest.approx(base / more)


def test_round_trip_time() -> None:
    """[DAA eq 2] tau = T - T_DLSR - T_LSR, the numbers of [RFC 3550 fig 2]: 46864.500 - 5.250 - 46853.125 = 6.125 s."""
    round_trip_s = pytest.importorskip("fairlane.native").round_trip_s
    assert round_trip_s(arrival_ntp=(0xB710 << 32) | 0x80000000, lsr=0xB7052000, dlsr=0x00054000) == 6.125


def test_smoothed_loss() -> None:
    """[DAA eq 3], sigma 0.3: 0 -> 0.7 x 0 + 0.3 x 0.10 = 0.03 -> 0.7 x 0.03 + 0.3 x 0.20 = 0.081."""
    sender = daa()
    sender.on_feedback(5.0, heard(0.10), RNG)
    assert sender.path.smoothed_loss == pytest.approx(0.03)
    sender.on_feedback(10.0, heard(0.20), RNG)
    assert sender.path.smoothed_loss == pytest.approx(0.081)


def test_additive_increase() -> None:
    """[DAA eq 4] r_add = r + A: 1,000,000 + 50,000 while nothing is lost."""
    sender = daa()
    assert rate_set(sender.on_feedback(5.0, heard(0.0), RNG)) == 1_050_000
    assert rate_set(sender.on_feedback(10.0, heard(0.0), RNG)) == 1_100_000


def test_smaller_of_model_and_increase() -> None:
    """[DAA sec 4] r = min[r_TCP, r_add]. l = 0.2: l_s = 0.06 [DAA eq 3], tau = 0.1 s, t_out = 4 tau: r_TCP = 249,655 bit/s
    [DAA eq 1] (the case above), below r_add from 1 Mb/s; from 100 kb/s r_add = 150 kb/s is the smaller."""
    assert rate_set(daa(1e6).on_feedback(5.0, heard(0.2), RNG)) == pytest.approx(8000 / 0.03204416)
    assert rate_set(daa(1e5).on_feedback(5.0, heard(0.2), RNG)) == 150_000


def test_timeout_of_the_model_has_a_floor_when_asked() -> None:
    """t_out = max(4 tau, floor): with tau = 0.1 s and 1 s, 0.02 + 1 x 0.45 x 0.06 x 1.1152 = 0.0501104 s."""
    assert rate_set(daa(min_timeout_s=1.0).on_feedback(5.0, heard(0.2), RNG)) == pytest.approx(8000 / 0.0501104)


def test_report_without_round_trip_uses_the_last_and_holds_before_the_first() -> None:
    sender = daa()
    assert rate_set(sender.on_feedback(5.0, heard(0.2, rtt_s=None), RNG)) == 1_000_000
    assert rate_set(sender.on_feedback(6.0, heard(0.06, rtt_s=0.1), RNG)) < 300_000
    assert sender.on_feedback(7.0, heard(0.06, rtt_s=None), RNG) and sender.path.rtt_s == 0.1
    assert rate_set(daa().on_feedback(5.0, heard(0.0, rtt_s=None), RNG)) == 1_050_000


def test_silence_halves_the_rate_each_timeout() -> None:
    """25 s, and again each 25 s; a report puts it off."""
    sender = daa()
    sender.on_feedback(10.0, heard(0.0), RNG)
    assert sender.on_timer(25.0, Timer(SILENCE_TIMER), RNG) == (SetTimer(SILENCE_TIMER, 35.0),)
    assert rate_set(sender.on_timer(35.0, Timer(SILENCE_TIMER), RNG)) == 525_000
    assert sender.on_timer(59.0, Timer(SILENCE_TIMER), RNG) == ()
    assert rate_set(sender.on_timer(60.0, Timer(SILENCE_TIMER), RNG)) == 262_500
    assert sender.on_timer(60.0, Timer("other"), RNG) == ()


def aimd(**changes: float) -> AimdRtcpSender:
    sender = AimdRtcpSender(replace(AimdRtcpParameters(), initial_rate_bps=1e6, **changes))
    sender.on_start(0.0, RNG)
    return sender


@pytest.mark.parametrize(
    ("loss", "rate_bps"),
    [(0.0, 1_050_000), (0.049, 1_050_000), (0.05, 1_000_000), (0.10, 1_000_000), (0.101, 875_000), (1.0, 875_000)],
)
def test_thresholds(loss: float, rate_bps: float) -> None:
    """[DAA sec 3, fig 1]: + 50 kb/s below 5%, x 0.875 above 10%, as it is between."""
    assert rate_set(aimd(smoothing=1.0).on_feedback(5.0, heard(loss), RNG)) == rate_bps


def test_thresholds_see_the_smoothed_loss() -> None:
    """As [DAA eq 3]: 0.3 x 0.2 = 0.06 holds; 0.7 x 0.06 + 0.3 x 0.2 = 0.102 decreases; 0.0714 holds; 0.04998 increases."""
    sender = aimd()
    rates = [rate_set(sender.on_feedback(5.0, heard(loss), RNG)) for loss in (0.2, 0.2, 0.0, 0.0)]
    assert rates == [1_000_000, 875_000, 875_000, 925_000]


def test_aimd_silence() -> None:
    sender = aimd()
    assert rate_set(sender.on_timer(25.0, Timer(AIMD_SILENCE), RNG)) == 500_000


def test_constant_bit_rate_is_that_and_not_above_its_link() -> None:
    assert CbrSender(CbrParameters(rate_bps=3e6)).on_start(0.0, RNG) == (SetRate(3e6),)
    assert CbrSender(CbrParameters(rate_bps=2e8, max_rate_bps=1e8)).on_start(0.0, RNG) == (SetRate(1e8),)
    assert CbrSender().on_feedback(1.0, heard(1.0), RNG) == ()


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        (DaaParameters, {"smoothing": 1.5}, "DaaParameters.smoothing = 1.5: the weight of a report is at most 1"),
        (DaaParameters, {"min_timeout_s": -1.0}, "DaaParameters.min_timeout_s = -1.0: must be 0 or more, and finite"),
        (DaaParameters, {"min_rate_bps": 2e7}, "DaaParameters.min_rate_bps = 20000000.0 is above max_rate_bps = 10000000.0"),
        (DaaParameters, {"silence_factor": 2.0}, "DaaParameters.silence_factor = 2.0: silence must not raise the rate"),
        (DaaParameters, {"packet_bytes": 0}, "DaaParameters.packet_bytes = 0: must be positive and finite"),
        (
            AimdRtcpParameters,
            {"lower_loss_threshold": 0.2},
            "AimdRtcpParameters.lower_loss_threshold = 0.2 is above upper_loss_threshold = 0.1",
        ),
        (AimdRtcpParameters, {"decrease_factor": 1.1}, "AimdRtcpParameters.decrease_factor = 1.1: at most 1"),
        (CbrParameters, {"rate_bps": math.nan}, "CbrParameters.rate_bps = nan: must be positive and finite"),
    ],
)
def test_bad_parameters_are_named(kind: type, changes: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        replace(kind(), **changes)
    assert str(caught.value) == message

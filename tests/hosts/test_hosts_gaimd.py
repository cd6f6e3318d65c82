"""GAIMD: its rules worked by hand."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.hosts.algorithms.base import Ack, Loss, LossCause, PathState, SetLossTimeout, SetWindow
from fairlane.hosts.algorithms.gaimd import GaimdParameters, GaimdSender
from fairlane.hosts.algorithms.ssvp_model import friendly_alpha

RNG = random.Random(0)


def path(srtt_s: float = 0.1, sent: int = 20, acked: int = 10, rttvar_s: float = 0.01, flying: int | None = None) -> PathState:
    return PathState(srtt_s, srtt_s, rttvar_s, sent - acked if flying is None else flying, sent, acked)


def ack(sequence: int, packets: int = 1, **state) -> Ack:
    return Ack(sequence, 0.1, packets, path(**state))


def lost(first: int, last: int | None = None, cause: LossCause = LossCause.GAP, **state) -> Loss:
    return Loss(first, last if last is not None else first, 1, cause, path(**state))


def avoiding(window: float, **changes) -> GaimdSender:
    """In congestion avoidance."""
    sender = GaimdSender(replace(GaimdParameters(), initial_threshold_packets=1.0, initial_window_packets=window, **changes))
    sender.on_start(0.0, RNG)
    return sender


def test_friendly_increase() -> None:
    """alpha = 4 (1 - beta^2) / 3 [SSVP eq 2]: 4 (1 - 0.765625) / 3 = 0.3125, and TCP's 1 for beta = 1/2."""
    assert friendly_alpha(0.875) == pytest.approx(0.3125)
    assert friendly_alpha(0.5) == 1.0
    assert GaimdParameters().alpha == pytest.approx(friendly_alpha(GaimdParameters().beta), rel=0.01)


def test_window_grows_by_alpha_each_round_trip() -> None:
    """W = W + alpha / W for each acknowledged packet [SSVP sec II]: 10 + 0.031 = 10.031; ten of them make 10.3."""
    sender = avoiding(10.0)
    assert SetWindow(pytest.approx(10.031)) in sender.on_ack(1.0, ack(0), RNG)
    for n in range(1, 10):
        sender.on_ack(1.0, ack(n), RNG)
    assert sender.window == pytest.approx(10.31, abs=0.01)


def test_window_falls_to_beta() -> None:
    """W = beta W [SSVP sec II]: 0.875 x 16 = 14, once for a window of losses."""
    sender = avoiding(16.0)
    assert SetWindow(14.0) in sender.on_loss(1.0, lost(15, sent=20), RNG)
    assert sender.on_loss(1.1, lost(20, sent=22), RNG) == ()
    assert sender.window == 14.0
    assert SetWindow(12.25) in sender.on_loss(1.2, lost(21, sent=30), RNG)


@given(beta=st.floats(0.1, 0.95), window=st.floats(20, 500))
def test_pairs_of_equation_2_have_the_rate_of_tcp(beta: float, window: float) -> None:
    """A cycle from beta W to W takes (1 - beta) W / alpha round trips and sends (1 - beta^2) W^2 / (2 alpha) packets: by [SSVP eq 2] 3 W^2 / 8,
    what TCP sends from W/2 to W, so that the same W^2 goes with the same loss rate and the mean rate is TCP's for small loss."""
    alpha = friendly_alpha(beta)
    assert (1 - beta**2) * window**2 / (2 * alpha) == pytest.approx(3 * window**2 / 8)


def test_slow_start_and_loss_window() -> None:
    """[RFC 5681 sec 3.1]: a packet more for each one acknowledged; after a timeout one packet, and slow start up to beta W."""
    sender = GaimdSender()
    assert SetWindow(2.0) in sender.on_start(0.0, RNG)
    assert SetWindow(3.0) in sender.on_ack(0.1, ack(0), RNG)
    assert SetWindow(6.0) in sender.on_ack(0.1, ack(3, packets=3), RNG)
    sender.window = 16.0
    assert SetWindow(1.0) in sender.on_loss(1.0, lost(15, cause=LossCause.TIMEOUT, sent=20, flying=0), RNG)
    assert sender.threshold == 14.0
    assert sender.on_ack(1.2, ack(20), RNG) == () or sender.window == 1.0  # sent before the decrease
    assert SetWindow(2.0) in sender.on_ack(1.3, ack(21, sent=25), RNG)


def test_timeouts_leave_room_for_three_acknowledgements_and_double() -> None:
    """A round trip and the timeout max(0.2, SRTT + 4 deviations), doubled by each timeout [RFC 6298 sec 2, 5]."""
    sender = avoiding(16.0)
    assert SetLossTimeout(pytest.approx(0.1 + 0.22)) in sender.on_ack(1.0, ack(10, rttvar_s=0.03), RNG)
    for n, rto_s in enumerate((0.44, 0.88, 1.76)):
        actions = sender.on_loss(2.0, lost(30 + n, cause=LossCause.TIMEOUT, sent=30 + n, rttvar_s=0.03), RNG)
        assert SetLossTimeout(pytest.approx(0.1 + rto_s)) in actions
    assert SetLossTimeout(pytest.approx(0.1 + 0.22)) in sender.on_ack(3.0, ack(40, sent=40, rttvar_s=0.03), RNG)


def test_window_is_no_more_than_the_link_carries() -> None:
    sender = avoiding(16.0, max_rate_bps=1e6)
    sender.on_ack(1.0, ack(11), RNG)
    assert sender.window == pytest.approx(12.5)  # 1 Mb/s x 0.1 s / 8000 bit


@pytest.mark.parametrize(
    "bad", [{"beta": 1.0}, {"alpha": 0}, {"initial_window_packets": 0.5}, {"max_window_packets": 1.0}, {"min_timeout_s": -1.0}]
)
def test_impossible_parameters_are_refused(bad: dict) -> None:
    with pytest.raises(ValueError):
        GaimdParameters(**bad)

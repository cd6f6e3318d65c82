"""ABC's sender, by hand: Goyal et al. 2020, equation 3, and the second window of section 4.1."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from fairlane.hosts.algorithms.abc import AbcParameters, AbcSender, cubic_window, next_window
from fairlane.hosts.algorithms.base import Ack, Ecn, Loss, LossCause, PathState, SetWindow

RNG = random.Random(1)


def path(in_flight: int, last_sent: int = 1000) -> PathState:
    return PathState(0.1, 0.1, 0.01, in_flight, last_sent, last_sent - in_flight)


def ack(sequence: int, ecn: Ecn, in_flight: int = 100, packets: int = 1) -> Ack:
    return Ack(sequence, 0.1, packets, path(in_flight), ecn=ecn)


def window(actions) -> float:
    [said] = [action for action in actions if isinstance(action, SetWindow)]
    return said.window_packets


def test_a_mark_moves_the_window_by_a_packet_and_one_over_it() -> None:
    """[ABC eq 3]"""
    assert next_window(20.0, 1, Ecn.ECT_1) == 20 + 1 + 0.05
    assert next_window(20.0, 1, Ecn.ECT_0) == 20 - 1 + 0.05
    assert next_window(20.0, 3, Ecn.ECT_0) == pytest.approx(20 - 3 + 0.15)
    assert next_window(20.0, 1, Ecn.CE) == 20.05


def test_a_window_of_accelerates_doubles() -> None:
    """[ABC sec 3.1.1] All accelerate: 2 w a round trip later; as many of each: w + 1."""
    for marks, expected in (((Ecn.ECT_1, Ecn.ECT_1), 80.0), ((Ecn.ECT_1, Ecn.ECT_0), 40.0)):
        w = 40.0
        for n in range(40):
            w = next_window(w, 1, marks[n % 2])
        assert w == pytest.approx(expected + 1, abs=0.35)


def test_the_smaller_window_holds() -> None:
    """[ABC sec 4.1] A loss reduces the second window to 0.7 of the smaller one, marks move the first."""
    sender = AbcSender(AbcParameters(initial_window_packets=40.0))
    assert window(sender.on_start(0.0, RNG)) == 40
    loss = Loss(5, 5, 1, LossCause.GAP, path(40))
    assert window(sender.on_loss(0.1, loss, RNG)) == 28
    assert sender.on_loss(0.11, loss, RNG) == ()
    assert sender.window == 40
    # A round trip of 0.1 s ahead: K = cbrt(12 / 0.4) = 3.107 s, and W(0.1 s) = 40 - 0.4 x 3.007^3 = 29.12 of 28.
    assert window(sender.on_ack(0.2, ack(10, Ecn.ECT_1), RNG)) == pytest.approx(28 + (29.12 - 28) / 28, abs=1e-3)
    for n in range(30):
        actions = sender.on_ack(0.3, ack(11 + n, Ecn.ECT_0), RNG)
    assert window(actions) == sender.window < 20 < sender.loss_window


def test_the_second_window_is_a_cubic() -> None:
    """[RFC 9438 eq 1, 2] Back at W_max after K."""
    assert cubic_window(100.0, 70.0, 75.0 ** (1 / 3)) == pytest.approx(100)
    assert cubic_window(100.0, 70.0, 0.0) == pytest.approx(70)
    assert cubic_window(100.0, 100.0, 2.0) == pytest.approx(103.2)
    assert 1e17 < cubic_window(100.0, 70.0, 1e300) < math.inf


def test_ce_of_another_router_is_a_loss() -> None:
    sender = AbcSender(AbcParameters(initial_window_packets=40.0))
    sender.on_start(0.0, RNG)
    assert window(sender.on_ack(0.1, ack(10, Ecn.CE), RNG)) == 28
    assert 28 < window(sender.on_ack(0.1, ack(11, Ecn.CE), RNG)) < 28.1


def test_no_window_is_more_than_twice_what_is_in_flight() -> None:
    """[ABC sec 4.1]"""
    sender = AbcSender()
    sender.on_start(0.0, RNG)
    for n in range(100):
        actions = sender.on_ack(0.1, ack(n, Ecn.ECT_1, in_flight=9), RNG)
    assert window(actions) == 20


def test_a_timeout_sends_little_until_the_next_acknowledgement() -> None:
    sender = AbcSender(AbcParameters(initial_window_packets=40.0))
    sender.on_start(0.0, RNG)
    assert window(sender.on_loss(1.0, Loss(0, 39, 40, LossCause.TIMEOUT, path(0)), RNG)) == 2
    assert window(sender.on_ack(1.1, ack(1001, Ecn.ECT_1, in_flight=1), RNG)) == 3


def test_marks_that_are_forged_do_no_harm() -> None:
    sender = AbcSender()
    sender.on_start(0.0, RNG)
    for n in range(1000):
        sender.on_ack(0.1, Ack(n, 0.1, RNG.randrange(3), path(RNG.randrange(5)), ecn=RNG.randrange(256)), RNG)
        assert 2 <= sender.window <= 1e6 and 2 <= sender.loss_window <= 1e6


def test_a_window_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="min_window_packets"):
        AbcParameters(min_window_packets=0.5)


@pytest.mark.parametrize("srtt_s", [1e103, math.inf, math.nan])
def test_a_forged_round_trip_leaves_windows_that_can_be_set(srtt_s: float) -> None:
    sender = AbcSender()
    sender.on_start(0.0, RNG)
    sender.on_loss(0.1, Loss(5, 5, 1, LossCause.GAP, path(10)), RNG)
    for n in range(3):
        said = ack(10 + n, Ecn.ECT_1)
        actions = sender.on_ack(0.2, replace(said, path=replace(said.path, srtt_s=srtt_s)), RNG)
        assert 1 <= window(actions) <= 20 and 1 <= sender.loss_window <= 20

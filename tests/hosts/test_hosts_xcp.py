"""XCP's sender, by hand: Katabi, Handley and Rohrs 2002, section 3.3."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from fairlane.hosts.algorithms.base import Ack, Loss, LossCause, PathState, SetWindow
from fairlane.hosts.algorithms.xcp import UNLIMITED, XcpParameters, XcpSender, next_window

RNG = random.Random(1)
PATH = PathState(0.1, 0.08, 0.01, 10, 50, 40)


def window(actions) -> float:
    [said] = [action for action in actions if isinstance(action, SetWindow)]
    return said.window_packets


def test_the_change_times_the_round_trip_is_added() -> None:
    """[XCP sec 3.3] 100 kb/s more over 80 ms are 8000 bits: a packet of 1000 bytes."""
    p = XcpParameters()
    assert next_window(p, 7.0, 100_000.0, 0.08) == 8.0
    assert next_window(p, 7.0, -50_000.0, 0.08) == 6.5
    assert next_window(p, 7.0, -5_000_000.0, 0.08) == 1.0


def test_feedback_moves_the_window_and_its_absence_does_not() -> None:
    sender = XcpSender()
    assert window(sender.on_start(0.0, RNG)) == 2
    assert sender.on_ack(0.1, Ack(1, 0.1, 1, PATH), RNG) == ()
    assert sender.on_ack(0.1, Ack(1, 0.1, 1, PATH, header=SimpleNamespace(change_bps=UNLIMITED)), RNG) == ()
    assert window(sender.on_ack(0.1, Ack(2, 0.1, 1, PATH, header=SimpleNamespace(change_bps=2**63 + 200_000)), RNG)) == 4
    assert window(sender.on_ack(0.1, Ack(3, 0.1, 1, PATH, header=SimpleNamespace(change_bps=2**63 - 100_000)), RNG)) == 3


def test_a_loss_halves_the_window_once_a_round_trip() -> None:
    sender = XcpSender(XcpParameters(initial_window_packets=20.0))
    sender.on_start(0.0, RNG)
    assert window(sender.on_loss(0.1, Loss(7, 7, 1, LossCause.GAP, PATH), RNG)) == 10
    assert sender.on_loss(0.1, Loss(9, 9, 1, LossCause.GAP, PATH), RNG) == ()
    later = PathState(0.1, 0.08, 0.01, 0, 60, 40)
    assert window(sender.on_loss(1.0, Loss(51, 60, 10, LossCause.TIMEOUT, later), RNG)) == 1


def test_a_window_is_positive() -> None:
    with pytest.raises(ValueError, match="initial_window_packets"):
        XcpParameters(initial_window_packets=0.0)

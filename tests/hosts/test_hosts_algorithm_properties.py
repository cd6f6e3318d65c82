"""Every algorithm against hostile feedback and a path in good order; a new kind is taken in by itself."""

from __future__ import annotations

import functools
import math
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

import algorithm_properties as properties
import path_model
from fairlane.hosts.algorithms import ALGORITHMS, base

KINDS = sorted(ALGORITHMS)
_fresh = functools.cache(lambda name: properties.healthy_rate_bps(ALGORITHMS[name]))
few = functools.partial(settings, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@pytest.mark.parametrize("name", KINDS)
@few(max_examples=60)
@given(events=properties.EVENTS)
def test_hostile_events_never_raise_nor_make_an_impossible_action(name: str, events: list[tuple]) -> None:
    properties.check_hostile_events(ALGORITHMS[name], events)


@pytest.mark.parametrize("name", KINDS)
@few(max_examples=20)
@given(heard_ns=st.integers(1, 100_000_000_000))
@example(2_148_970_527)  # (t + 2) - t is below 2
def test_silence_after_any_instant_passes(name: str, heard_ns: int) -> None:
    """However instants are rounded, no timer is set again and again to where the clock stands."""
    properties.check_hostile_events(ALGORITHMS[name], [("wait", heard_ns / 1e9), ("send", 1), ("ack", 0, 0, 0.1), ("wait", 40.0)])


@pytest.mark.parametrize("name", KINDS)
@few(max_examples=3)
@given(events=properties.EVENTS)
def test_a_flow_comes_back_when_the_path_is_in_order_again(name: str, events: list[tuple]) -> None:
    kind = ALGORITHMS[name]
    properties.check_recovery(kind, properties.check_hostile_events(kind, events), _fresh(name))


@pytest.mark.parametrize("name", KINDS)
def test_a_fresh_flow_uses_the_path(name: str) -> None:
    assert _fresh(name) > 5e4


@pytest.mark.parametrize("name", KINDS)
def test_silence_leaves_a_flow_alive(name: str) -> None:
    """No feedback for an hour: a rate or a window stays, and timers go on or none is needed."""
    attack = properties.check_hostile_events(ALGORITHMS[name], [("wait", 60.0)] * 60)
    properties.check_recovery(ALGORITHMS[name], attack, _fresh(name))


@pytest.mark.parametrize("name", KINDS)
def test_losing_everything_leaves_a_flow_alive(name: str) -> None:
    history = [("plausible", 1.0, 0.1, 0.0, 1.0), ("send", 10), ("data", 50, 0, 0.1), ("wait", 2.0)] * 100
    attack = properties.check_hostile_events(ALGORITHMS[name], history)
    properties.check_recovery(ALGORITHMS[name], attack, _fresh(name))


@pytest.mark.parametrize("name", KINDS)
def test_a_run_repeats(name: str) -> None:
    def rows(seed: int) -> list:
        kind = ALGORITHMS[name]
        loop = path_model.ClosedLoop(kind, properties.parameters_of(kind), path_model.Path(random_loss=0.01), seed=seed, jitter=0.5)
        return loop.run(30.0).rows

    assert rows(1) == rows(1) != rows(2)


def test_the_harness_finds_what_it_looks_for() -> None:
    class Reckless(base.Sender):
        def __init__(self, parameters) -> None: ...

        def on_start(self, now_s, rng):
            return (base.SetRate(1e5),)

        def on_feedback(self, now_s, feedback, rng):
            return (base.SetRate(1e5 / feedback.loss_fraction),)

    class Spinning(Reckless):
        def on_start(self, now_s, rng):
            return (base.SetRate(1e5), base.SetTimer("spin", now_s))

        def on_timer(self, now_s, timer, rng):
            return (base.SetTimer("spin", now_s),)

    class Fading(Reckless):
        def on_feedback(self, now_s, feedback, rng):
            return (base.SetRate(1e-3),)

    def kind(sender: type) -> base.Kind:
        from fairlane.hosts.algorithms.cbr import KINDS as CBR

        return base.Kind("bad", "", CBR[0].parameters, sender, lambda parameters: base.Receiver())

    with pytest.raises(ZeroDivisionError):
        properties.check_hostile_events(kind(Reckless), [("plausible", 0.0, 0.1, 1.0, None)])
    with pytest.raises(AssertionError, match="SetRate"):
        properties.check_hostile_events(kind(Reckless), [("plausible", 1e-300, 0.1, 1.0, None)])
    with pytest.raises(AssertionError, match="without end"):
        properties.check_hostile_events(kind(Spinning), [])
    faded = properties.check_hostile_events(kind(Fading), [("plausible", 0.5, 0.1, 1.0, None)])
    with pytest.raises(AssertionError, match="after the attack"):
        properties.check_recovery(kind(Fading), faded, 1e5)


def test_rap_outlives_a_forged_round_trip_without_end() -> None:
    """Its timeout was of no time at all after an infinite sample."""
    reports = [("feedback", base.Feedback(77, 0.0, *[None] * 6))] * 3
    properties.check_hostile_events(ALGORITHMS["rap"], [("send", 1), *reports, ("ack", 0, 0, math.inf)])

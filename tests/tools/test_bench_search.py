"""The search for the highest rate without loss, against switches whose behaviour is a formula."""

import sys

from hypothesis import given
from hypothesis import strategies as st

from fairlane import probes

sys.path.insert(0, str(probes.ROOT / "bench"))

from search import RESOLUTION, Trial, highest_rate

FRAMES = 1_000_000


def switch(capacity: float, generator: float = float("inf")):
    """A switch that drops what is beyond its capacity, behind a generator that does no more than it can."""

    def trial(rate: float) -> Trial:
        offered = min(rate, generator)
        return Trial(offered, FRAMES, round(FRAMES * min(1.0, capacity / offered)))

    return trial


@given(capacity=st.floats(1e3, 1e6), guess=st.floats(0.3, 3.0))
def test_finds_the_capacity_from_any_guess(capacity, guess):
    found = highest_rate(capacity * guess, switch(capacity), most_trials=20)
    assert capacity * (1 - RESOLUTION) <= found.rate_per_s <= capacity * 1.0011
    assert not found.limited


@given(guess=st.floats(6e4, 1e6))
def test_says_when_the_generator_is_the_limit(guess):
    found = highest_rate(guess, switch(float("inf"), generator=2e5))
    assert found.limited and found.rate_per_s == 2e5


def test_a_switch_that_always_loses_has_no_rate():
    found = highest_rate(1e5, lambda rate: Trial(rate, FRAMES, FRAMES // 2))
    assert (found.rate_per_s, found.trials) == (0.0, 9)


def test_a_generator_that_sends_nothing_proves_nothing():
    assert not Trial(0.0, 0, 0).passed

"""95% intervals: hand-worked, held against the scale of the values, and against how often they hold the true value."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.studies import intervals

SIDES = st.lists(st.floats(0.1, 10.0), min_size=2, max_size=8)


def test_students_interval_of_three_values() -> None:
    # 1, 2, 3: deviation 1, so 4.303 / sqrt(3)
    assert intervals.student([1.0, 2.0, 3.0]) == pytest.approx(4.303 / math.sqrt(3))
    assert intervals.student([5.0]) == 0.0


def test_a_slope_by_least_squares() -> None:
    # Sxy 8, Sxx 10; residuals -.4, .8, -1, 1.2, -.6: variance 3.6 / 3; Student's t for 3 degrees of freedom.
    assert intervals.slope([0, 1, 2, 3, 4], [1, 3, 2, 5, 4]) == (pytest.approx(0.8), pytest.approx(3.182 * math.sqrt(1.2 / 10)))
    assert intervals.slope([1, 2, 3], [5, 5, 5]) == (0.0, 0.0)
    assert intervals.slope([1, 2], [1, 2]) == (0.0, math.inf)


def test_the_mean_of_few_values() -> None:
    # Student's t for 1 degree of freedom is so wide that every resample of two values lies in it.
    assert intervals.of_mean([1.0, 3.0]) == (1.0, 3.0)
    assert intervals.of_mean([5.0]) is None
    # 0, 0, 0, 0, 1: a mean of k/5 has the probability of k heads in 5 throws of a coin that falls so once in 5 times. The tails of the expanded
    # percentiles for n = 5 are the normal distribution's beyond sqrt(5/4) * 2.776 = 3.104, 0.00096; P(all five) = 0.00032, P(4 or 5) = 0.0067.
    assert intervals.of_mean([0.0, 0.0, 0.0, 0.0, 1.0]) == (0.0, pytest.approx(0.8))


@given(st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=12), st.floats(-1e3, 1e3), st.floats(1e-3, 1e3))
def test_the_interval_of_a_mean_holds_the_mean_and_follows_scale_and_order(values: list[float], shift: float, scale: float) -> None:
    low, high = intervals.of_mean(values)
    error = 1e-9 * max(map(abs, values)) + 1e-12
    assert min(values) <= low <= sum(values) / len(values) + error and sum(values) / len(values) - error <= high <= max(values)
    assert intervals.of_mean(values[::-1]) == (low, high)
    moved = intervals.of_mean([scale * v + shift for v in values])
    close = 1e-6 * (scale * max(map(abs, values)) + abs(shift)) + 1e-9
    assert moved == (pytest.approx(scale * low + shift, abs=close), pytest.approx(scale * high + shift, abs=close))


@pytest.mark.parametrize(("seeds", "least"), [(5, 0.89), (8, 0.91), (20, 0.92)])
def test_about_nineteen_of_twenty_intervals_hold_the_true_mean(seeds: int, least: float) -> None:
    rng = random.Random(seeds)
    held = sum(low <= 0 <= high for low, high in (intervals.of_mean([rng.gauss(0, 1) for _ in range(seeds)]) for _ in range(400)))
    assert least <= held / 400 <= 0.985


def test_the_quotient_of_two_pairs() -> None:
    # Logarithms 0, 2 and -1, 1: means 1 and 0, variances 2 and 2, standard error sqrt(2/2 + 2/2), 2 degrees of freedom.
    low, high = intervals.quotient([1.0, math.exp(2)], [math.exp(-1), math.exp(1)])
    half = 4.303 * math.sqrt(2)
    assert (low, high) == (pytest.approx(math.exp(1 - half)), pytest.approx(math.exp(1 + half)))


def test_one_seed_or_a_zero_has_no_interval() -> None:
    assert intervals.quotient([1.0], [1.0, 2.0]) is None
    assert intervals.quotient([0.0, 1.0], [1.0, 2.0]) is None
    assert intervals.quotient([math.nan, 1.0], [1.0, 2.0]) is None


@given(SIDES, SIDES, st.floats(0.01, 100.0))
def test_the_interval_follows_the_scale_and_turns_with_the_sides(above: list[float], below: list[float], scale: float) -> None:
    low, high = intervals.quotient(above, below)
    middle = math.exp(sum(map(math.log, above)) / len(above) - sum(map(math.log, below)) / len(below))
    assert low <= middle * (1 + 1e-9) and middle <= high * (1 + 1e-9)
    assert intervals.quotient([scale * v for v in above], below) == (
        pytest.approx(scale * low, rel=1e-3),
        pytest.approx(scale * high, rel=1e-3),
    )
    assert intervals.quotient(below, above) == (pytest.approx(1 / high), pytest.approx(1 / low))


def test_nineteen_of_twenty_intervals_hold_the_true_quotient() -> None:
    rng = random.Random(1)
    held = 0
    for _ in range(2000):
        above, below = ([rng.lognormvariate(mean, width) for _ in range(5)] for mean, width in ((math.log(2), 0.3), (0.0, 0.1)))
        low, high = intervals.quotient(above, below)
        held += low <= 2 <= high
    assert 0.94 <= held / 2000 <= 0.975

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.controller.sketch import SketchCounter, bias, estimate, slots_of_each, standard_error, worst_error


def test_worked_by_hand():
    # Half of 8 slots hit: n = 8 ln 2 = 5.545.
    assert estimate(4, 8) == pytest.approx(5.545, abs=0.001)
    assert estimate(0, 8) == 0
    # n = m = 1000: sqrt(1000 (e - 2)) / 1000 = 0.0268, and (e - 2) / 2000 = 0.00036.
    assert standard_error(1000, 1000) == pytest.approx(0.0268, abs=0.0001)
    assert bias(1000, 1000) == pytest.approx(0.00036, abs=0.00001)


def test_the_papers_table_of_map_sizes():
    # Whang et al., table II: bits that keep the standard error below 1 %.
    for connections, slots in ((10_000, 7_960), (100_000, 26_729), (1_000_000, 154_171)):
        assert standard_error(connections, slots) == pytest.approx(0.01, rel=0.02)


def test_a_full_map_says_as_much_as_it_can():
    assert estimate(1024, 1024) == pytest.approx(1024 * math.log(2048))
    assert estimate(1024, 1024) > estimate(1023, 1024)


@pytest.mark.parametrize("connections", [1, 2, 10])
def test_of_few_the_estimate_is_their_number(connections):
    assert round(estimate(connections, 1 << 14)) == connections


@pytest.mark.parametrize("connections", [1_000, 4_000, 20_000])
def test_the_stated_error_is_the_error(connections):
    slots = 4096
    rng = random.Random(connections)
    errors = [estimate(len({rng.randrange(slots) for _ in range(connections)}), slots) / connections - 1 for _ in range(200)]
    spread = math.sqrt(sum(e * e for e in errors) / len(errors))
    # The root mean square of 200 samples lies within 15 % of its mean with a probability of 0.997.
    assert spread == pytest.approx(math.hypot(standard_error(connections, slots), bias(connections, slots)), rel=0.2)


@pytest.mark.parametrize(("connections", "slots"), [(20, 1 << 14), (100, 1 << 17), (100, 1 << 14), (300, 1 << 14), (1_500, 1 << 14)])
def test_few_intervals_are_off_by_more_than_the_worst_error(connections, slots):
    rng = random.Random(slots + connections)
    intervals = 400_000 // connections
    off = [abs(round(estimate(len({rng.randrange(slots) for _ in range(connections)}), slots)) - connections) for _ in range(intervals)]
    most = worst_error(connections, slots)
    # 0.003 of them, and three standard deviations of that many.
    assert sum(error > most for error in off) <= 0.003 * intervals + 3 * math.sqrt(0.003 * intervals)
    # And not because it is wide.
    assert max(off) >= 0.8 * most - 1


@given(st.integers(1, 512), st.integers(1 << 10, 1 << 22))
def test_regions_do_not_overlap_and_fit(ports, total):
    counter = SketchCounter(range(ports), total)
    slots = set()
    for first, mask in counter.regions().values():
        assert mask & (mask + 1) == 0
        slots |= {first, first + mask}
    assert len(slots) == 2 * ports
    assert max(slots) < total
    assert slots_of_each(total, ports) * ports * 2 > total // 2


def test_too_few_slots_are_refused():
    with pytest.raises(ValueError, match="3 slots for 2 ports"):
        slots_of_each(3, 2)


def reading(port, even, odd):
    return {2 * port: even, 2 * port + 1: odd}


def test_an_interval_is_what_its_cell_grew_by():
    counter = SketchCounter([1], 1024)
    counter.begin(10)
    # Some packets of epoch 10 come between the write of the epoch and the reading.
    counter.on_reading(reading(1, 3, 500))
    assert counter.close(9) == {}
    counter.begin(11)
    counter.on_reading(reading(1, 103, 502))
    # 100 slots of 1024 since the first reading.
    assert counter.close(10) == {1: round(estimate(100, 1024))}
    counter.begin(12)
    counter.on_reading(reading(1, 104, 600))
    # Epoch 11 began before the reading that ended epoch 10: all 100 slots are its own.
    assert counter.close(11) == {1: round(estimate(100, 1024))}
    assert counter.close(10) == {}


def test_a_restarted_switch_begins_again():
    counter = SketchCounter([1], 1024)
    counter.begin(10)
    counter.on_reading(reading(1, 300, 300))
    counter.begin(11)
    counter.on_reading(reading(1, 20, 0))
    assert counter.close(10) == {1: round(estimate(20, 1024))}
    counter.forget()
    counter.begin(12)
    assert counter.close(11) == {}
    counter.on_reading(reading(1, 5, 0))
    assert counter.close(11) == {}
    counter.begin(13)
    counter.on_reading(reading(1, 65, 0))
    assert counter.close(12) == {1: round(estimate(60, 1024))}


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 900)), max_size=40))
def test_skipped_intervals_leave_nothing_behind(steps):
    """Whatever epochs are skipped, and whatever they counted, an interval from beginning to end is its own connections."""
    counter = SketchCounter([2], 1024)
    cells = [0, 0]
    epoch = 1
    counter.begin(epoch)
    counter.on_reading(reading(2, *cells))
    for step, used in steps:
        cells[epoch % 2] += used
        ended, epoch = epoch, epoch + step
        counter.begin(epoch)
        counter.on_reading(reading(2, *cells))
        assert counter.close(ended) == {2: round(estimate(used, 1024))}

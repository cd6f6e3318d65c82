"""Which skipped numbers are lost packets to a receiver (RFC 5348 section 5.1): by hand, and by counting."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts.session.gaps import Gaps, Missing
from hosts.session.reception import Reception


def lost(distance: int, numbers: list[int]) -> list[tuple[int, int, int]]:
    """Packets arrive at 1, 2, ... s: what is lost at each."""
    gaps, expected, found = Gaps(distance), numbers[0], []
    for now, number in enumerate(numbers, start=1):
        found += [(now, missing.first, missing.last) for missing in gaps.arrived(number, expected, now - 1.0, now)]
        expected = max(expected, number + 1)
    return found


def test_three_later_packets_make_a_loss() -> None:
    assert lost(3, [0, 2, 3, 4, 5]) == [(4, 1, 1)]
    assert lost(1, [0, 2, 3, 4, 5]) == [(2, 1, 1)]
    # 5 is as well above 1 and 2 as above 4, but only the second above 4.
    assert lost(3, [0, 3, 5, 6, 7]) == [(4, 1, 2), (5, 4, 4)]
    assert lost(3, [0, 2, 3]) == []


def test_what_comes_before_the_third_is_not_lost() -> None:
    assert lost(3, [0, 2, 1, 3, 4, 5]) == lost(3, [0, 2, 3, 1, 4, 5]) == []
    # Afterwards it is too late.
    assert lost(3, [0, 2, 3, 4, 1, 5]) == [(4, 1, 1)]
    # A packet that comes twice is one.
    assert lost(3, [0, 2, 2, 2, 3, 4]) == [(6, 1, 1)]


def test_a_late_packet_splits_a_hole() -> None:
    """3 of 1 to 5 comes late: for 1 and 2 it is one more later packet, for 4 and 5 it is not."""
    assert lost(3, [0, 6, 3, 7, 8]) == [(4, 1, 2), (5, 4, 5)]
    gaps = Gaps(2)
    assert gaps.arrived(5, 2, 1.0, 2.0) == []
    assert gaps.arrived(3, 6, 2.0, 2.1) == [Missing(2, 2, 1.0, 1.5)]
    assert gaps.arrived(6, 6, 2.1, 2.2) == [Missing(4, 4, 1.5, 2.0)]


def test_losses_are_told_over_a_wrap_and_not_over_a_restart() -> None:
    """65534 when 65535, 2 and 1 have come; 65536 when 2, 1 and 3 have. Then the source restarts, and 40002 is missing."""
    reception, found = Reception(3), []
    reception.adopt(1)
    for now, sequence in enumerate([65_533, 65_535, 2, 1, 3, 40_000, 40_001, 40_003, 40_004, 40_005]):
        found += [(now, x.first, x.last, x.after_s) for x in reception.update(float(now), sequence, 0, 1000)]
    assert found == [(3, 65_534, 65_534, 1.0), (4, 65_536, 65_536, pytest.approx(1 + 2 / 3)), (9, 40_002, 40_002, 7.0)]


@given(st.integers(1, 5), st.lists(st.integers(0, 40), min_size=1, max_size=120))
def test_losses_are_those_that_counting_finds(distance: int, numbers: list[int]) -> None:
    """A number is lost once, when `distance` different ones above it have come before itself; in any order."""
    gaps, expected, told = Gaps(distance), numbers[0], []
    came: set[int] = set()
    for number in numbers:
        found = gaps.arrived(number, expected, 5.0, 5.0)
        expected = max(expected, number + 1)
        came.add(number)
        told += [n for missing in found for n in range(missing.first, missing.last + 1)]
        for n in range(numbers[0], expected):
            above = sum(other > n for other in came)
            assert above >= distance if n in told else n in came or above < distance
    assert len(told) == len(set(told))


@given(st.integers(2, 30), st.data())
def test_times_between_are_those_of_the_whole_hole(size: int, data: st.DataObject) -> None:
    """However late packets split a hole, the lost ones have the nominal arrivals that RFC 5348 section 5.2 gives."""
    gaps = Gaps(100)
    gaps.arrived(size + 1, 1, 10.0, 20.0)
    whole = Missing(1, size, 10.0, 20.0)
    for number in data.draw(st.lists(st.integers(1, size), max_size=5)):
        gaps.arrived(number, size + 2, 20.0, 20.0)
    for missing, _ in gaps._holes:
        for n in range(missing.first, missing.last + 1):
            assert missing.nominal_s(n) == pytest.approx(whole.nominal_s(n))

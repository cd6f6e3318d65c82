"""The timetable of the control plane: steps, epochs, and intervals that a late clock leaves out."""

from __future__ import annotations

from fairlane.controller.timetable import NS, Begin, Finish, Timetable


def test_an_interval_ends_with_its_next_and_its_fair_rates() -> None:
    timetable = Timetable(2.0, 0.05)
    now, steps = 5 * NS, []
    for _ in range(4):
        steps.append(timetable.next(now))
        now = steps[-1].at_ns
    # Unix seconds 4 to 6 are the third interval, counted from 1.
    assert steps == [Begin(6 * NS, 4), Finish(6_050_000_000, 3), Begin(8 * NS, 5), Finish(8_050_000_000, 4)]


def test_an_end_at_this_moment_is_the_one_before() -> None:
    assert Timetable(1.0, 0.05).next(7 * NS) == Begin(8 * NS, 9)


def test_a_late_clock_leaves_intervals_out() -> None:
    timetable = Timetable(1.0, 0.05)
    assert timetable.next(0) == Begin(NS, 2)
    # 3 s late: the begun interval is still finished, then the next end to come is waited for.
    assert timetable.next(4 * NS) == Finish(1_050_000_000, 1)
    assert timetable.next(4_100_000_000) == Begin(5 * NS, 6)


def test_epochs_have_32_bits_and_are_never_0() -> None:
    """A switch takes epoch 0 for nobody counting (p4src/connections.p4)."""
    largest = 0xFFFFFFFE
    assert [Timetable(1.0, 0.05).next(n * NS).epoch for n in range(largest - 3, largest)] == [largest - 1, largest, 1]

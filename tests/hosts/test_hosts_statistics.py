"""RTCP reception statistics (RFC 3550 appendices A.1, A.3, A.8)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts.wire.rtcp import ReportBlock
from hosts.wire.statistics import LossBetweenReports, SourceStatistics, loss_between


def fed(sequences: list[int], **options: int) -> SourceStatistics:
    statistics = SourceStatistics(1, 8000, **options)
    for sequence in sequences:
        statistics.update(sequence & 0xFFFF, 0, 0.0)
    return statistics


def block(lost: int, highest: int, ssrc: int = 1) -> ReportBlock:
    return ReportBlock(ssrc, 0, lost, highest, 0, 0, 0)


def test_fraction_and_cumulative_loss() -> None:
    """A.3: of 10 expected, 3 lost: fraction 3 x 256 // 10 = 76; the next interval starts afresh."""
    statistics = fed([0, 1, 2, 4, 6, 7, 9])
    first = statistics.report_block(0, 0)
    assert (first.fraction_lost, first.cumulative_lost, first.extended_highest_sequence) == (76, 3, 9)
    for sequence in (10, 11, 12, 13):
        statistics.update(sequence, 0, 0.0)
    second = statistics.report_block(5, 6)
    assert (second.fraction_lost, second.cumulative_lost, second.lsr, second.dlsr) == (0, 3, 5, 6)


def test_small_losses_read_zero_in_eight_bits_and_not_between_reports() -> None:
    """One of 600 is below 1/256: the wire's fraction rounds it away, cumulative counts keep it."""
    statistics = fed(list(range(600)))
    first = statistics.report_block(0, 0)
    for sequence in [*range(600, 700), *range(701, 1200)]:
        statistics.update(sequence, 0, 0.0)
    second = statistics.report_block(0, 0)
    assert second.fraction_lost == 0
    assert loss_between(first, second) == LossBetweenReports(expected_packets=600, lost_packets=1)
    assert loss_between(first, second).fraction == pytest.approx(1 / 600)


@given(st.integers(0, 65535), st.lists(st.booleans(), min_size=1, max_size=400))
def test_counts_are_exact_across_the_wrap(first: int, arrives: list[bool]) -> None:
    arrives[0] = arrives[-1] = True
    statistics = fed([first + i for i, here in enumerate(arrives) if here])
    assert statistics.expected_packets == len(arrives)
    assert statistics.lost_packets == arrives.count(False)
    assert statistics.extended_highest_sequence == first + len(arrives) - 1


@given(st.integers(0, 65535), st.randoms(use_true_random=False))
def test_reordering_is_no_loss(first: int, rng) -> None:
    order = list(range(200))
    order[1:] = sorted(order[1:], key=lambda i: i + rng.random() * 20)
    statistics = fed([first + i for i in order])
    assert (statistics.lost_packets, statistics.restarts) == (0, 0)


def test_duplicates_make_the_loss_negative_and_the_fraction_zero() -> None:
    statistics = fed([1, 2, 2, 3])
    assert statistics.lost_packets == -1
    assert statistics.report_block(0, 0).cumulative_lost == -1


def test_one_stray_sequence_number_is_set_aside_and_two_are_a_restart() -> None:
    """A.1: MAX_DROPOUT, bad_seq."""
    statistics = fed([10, 11, 12])
    assert not statistics.update(40_000, 0, 0.0)
    assert statistics.update(13, 0, 0.0)
    assert (statistics.lost_packets, statistics.restarts) == (0, 0)
    assert not statistics.update(50_000, 0, 0.0)
    assert statistics.update(50_001, 0, 0.0)
    assert (statistics.restarts, statistics.base_sequence, statistics.received_packets) == (1, 50_001, 1)


def test_a_long_outage_is_loss_when_the_limit_allows_it() -> None:
    assert fed([0, 1, 12_000, 12_001], max_dropout=32_000).lost_packets == 11_998
    assert fed([0, 1, 12_000, 12_001]).restarts == 1


def test_jitter_by_hand() -> None:
    """A.8 at 8000 Hz: arrivals 0, 30, 40 ms of packets stamped 0, 20, 40 ms: |D| = 80, 80 units: J = 5, 5 + 75/16."""
    statistics = SourceStatistics(1, 8000)
    for sequence, (timestamp, arrival_s) in enumerate(((0, 0.0), (160, 0.030), (320, 0.040))):
        statistics.update(sequence, timestamp, arrival_s)
        if sequence == 1:
            assert statistics.jitter_units == pytest.approx(5.0)
    assert statistics.jitter_units == pytest.approx(5 + 75 / 16)


def test_jitter_survives_the_wrap_of_timestamps() -> None:
    statistics = SourceStatistics(1, 8000)
    for sequence in range(10):
        statistics.update(sequence, (0xFFFFFF00 + 160 * sequence) & 0xFFFFFFFF, 1e6 + 0.020 * sequence)
    assert statistics.jitter_units < 0.01


@pytest.mark.parametrize(
    ("previous", "present"),
    [
        (None, block(0, 10)),
        (block(0, 10, ssrc=2), block(0, 20)),
        (block(0, 20), block(0, 10)),  # reports overtook each other
        (block(0, 10), block(11, 20)),  # more lost than sent
        (block(0, 10), block(0x7FFFFF, 20)),  # saturated
    ],
)
def test_impossible_differences_are_none(previous: ReportBlock | None, present: ReportBlock) -> None:
    assert loss_between(previous, present) is None


@given(st.integers(-0x800000, 0x7FFFFF), st.integers(0, 2**32 - 1), st.integers(-0x800000, 0x7FFFFF), st.integers(0, 2**32 - 1))
def test_no_pair_of_reports_yields_an_impossible_fraction(lost_1: int, high_1: int, lost_2: int, high_2: int) -> None:
    found = loss_between(block(lost_1, high_1), block(lost_2, high_2))
    assert found is None or 0 <= found.fraction <= 1


def test_report_before_any_packet() -> None:
    empty = SourceStatistics(1, 8000).report_block(0, 0)
    assert (empty.fraction_lost, empty.cumulative_lost, empty.extended_highest_sequence) == (0, 0, 0)

"""ALS where no router answers, or where another link than that of R_d is the bottleneck [ALS sec 3.5]: DAA's rate, worked by hand,
closed loops over paths of many kinds, and what no sequence of reports can do."""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from pathlib import Path as File

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane.hosts.algorithms import als, als_layered
from fairlane.hosts.algorithms.als import ADAPTATION_TIMER, AlsParameters, AlsSender
from fairlane.hosts.algorithms.base import Feedback, Note, SetRate, Timer
from fairlane.hosts.algorithms.daa import DaaParameters, tcp_rate_bps

sys.path.insert(0, str(File(__file__).parent))
import itertools

from path_model import ClosedLoop, Path

RNG = random.Random(0)
DEFAULTS = AlsParameters()
ANNOUNCED_BPS = DEFAULTS.max_rate_bps


def started(**changes: float) -> AlsSender:
    sender = AlsSender(replace(DEFAULTS, **changes))
    sender.on_start(0.0, RNG)
    return sender


def plain(loss: float = 0.0, rd: float | None = ANNOUNCED_BPS, rtt_s: float | None = 0.1) -> Feedback:
    """A report over a path without ALS routers."""
    return Feedback(reporter=7, loss_fraction=loss, rtt_s=rtt_s, desired_rate_bps=rd, utilisation=None if rd is None else 0.0)


def answered(rd: float, u: float, loss: float = 0.0) -> Feedback:
    return Feedback(reporter=7, loss_fraction=loss, rtt_s=0.1, desired_rate_bps=rd, utilisation=u)


def after(sender: AlsSender, *reports: Feedback) -> list[float]:
    """The rates, each set at an adaptation point that follows a report."""
    rates = []
    for report in reports:
        sender.on_feedback(sender._next_adaptation_s - 1.0, report, RNG)
        actions = sender.on_timer(sender._next_adaptation_s, Timer(ADAPTATION_TIMER), RNG)
        rates += [a.rate_bps for a in actions if isinstance(a, SetRate)]
    return rates


def sender_based(sender: AlsSender, report: Feedback) -> bool:
    """Whether the report is answered with DAA's rate, as the log says."""
    return any(isinstance(a, Note) and a.kind == "als.sender_based" for a in sender.on_feedback(4.0, report, RNG))


# ------------------------------------------------------------------------------------------------- no router answers


@pytest.mark.parametrize("rd", [ANNOUNCED_BPS, 2 * ANNOUNCED_BPS, None])
def test_without_loss_the_rate_rises_by_a(rd: float | None) -> None:
    """r = r + A [DAA eq 4], from 100 kb/s with A = 50 kb/s: not the 10 Mb/s of R_d as announced."""
    assert after(started(), *[plain(rd=rd)] * 3) == [150e3, 200e3, 250e3]


def test_two_reports_between_adaptation_points_raise_it_once() -> None:
    sender = started()
    sender.on_feedback(1.0, plain(), RNG)
    assert after(sender, plain()) == [150e3]


def test_with_loss_the_rate_is_that_of_tcp() -> None:
    """l_s = 0.3 x 0.1 = 0.03 [DAA eq 3]; at 0.1 s, t_out 0.4 s: 0.1 sqrt(0.02) + 0.4 x 3 sqrt(0.01125) x 0.03 x 1.0288 = 14.14 + 3.93 ms a
    packet of 8000 bits: 442.7 kb/s [DAA eq 1], below 1 Mb/s + A."""
    [rate] = after(started(initial_rate_bps=1e6), plain(loss=0.1))
    assert rate == pytest.approx(442.7e3, rel=1e-3)
    assert rate == tcp_rate_bps(1000, 0.1, DaaParameters().timeout_rtts * 0.1, 0.03)


def test_a_desired_rate_is_not_exceeded() -> None:
    """A router with R_f above what is wished leaves R_d and U alone: as without routers, up to that wish."""
    assert after(started(desired_rate_bps=180e3), *[plain(rd=180e3)] * 4) == [150e3, 180e3, 180e3, 180e3]


def test_before_the_round_trip_is_known_the_rate_in_use_stands_in_for_rd() -> None:
    assert after(started(), plain(rd=None, rtt_s=None), plain(rd=None, rtt_s=None, loss=0.5)) == [105e3, 52.5e3]


def test_a_router_that_answers_is_followed_at_once() -> None:
    """r = R_d + AIR, AIR = 5 kb/s (2 - U) [ALS sec 3.3] = 7.5 kb/s: of the time without routers nothing is left."""
    assert after(started(), *[plain()] * 20, answered(1e6, 0.5))[-1] == 1_007_500


@pytest.mark.parametrize("report", [answered(9e6, 0.5), answered(9e6, 0.0), answered(10e6, 0.3)])
def test_what_an_answer_is(report: Feedback) -> None:
    """R_d below what was announced, or U above 0 [ALS sec 3.1]."""
    assert not sender_based(started(), report)
    assert sender_based(started(), plain())


# ----------------------------------------------------------------------- a router answers, and another link is the bottleneck


def test_one_report_with_losses_may_mean_that_rd_is_outdated() -> None:
    """r = R_d (1 - l) [ALS sec 3.3], however high the loss."""
    assert after(started(), answered(1e6, 0.3, loss=0.25)) == [750e3]


@pytest.mark.parametrize(("u", "loss"), [(0.89, 0.01), (1.0, 0.4), (1.25, 0.4)])
def test_the_fourth_in_a_row_contradicts_it(u: float, loss: float) -> None:
    """With 1% the router is not full; with 40% it dropped nothing, or 1 - 1/1.25 = 20%, and 5% above that is less than 40%. The rate is
    that of DAA at most."""
    sender = started()
    *before, last = after(sender, *[answered(4e6, u, loss)] * 4)
    assert before == [4e6 * (1 - loss)] * 3
    smoothed = (1 - 0.7**4) * loss
    assert last == pytest.approx(min(4e6 * (1 - loss), tcp_rate_bps(1000, 0.1, 0.4, smoothed))) and last < 2e6
    # r + A from there: the sender does not jump to R_d at the first report without loss.
    assert after(sender, answered(4e6, u))[0] <= last + 50e3


@pytest.mark.parametrize(
    "reports",
    [
        [answered(1e6, 0.9, loss=0.02)] * 20,  # the losses of a full link
        [*[answered(1e6, 0.5, loss=0.02)] * 3, answered(1e6, 0.9, loss=0.02)] * 5,  # a link with little buffer, idle at times
        [*[answered(1e6, 1.0, loss=0.4)] * 3, answered(1e6, 1.0, loss=0.01)] * 5,  # high losses that end
        [answered(1e6, 1.6, loss=0.4)] * 20,  # a greedy source on R_d's link, which drops 1 - 1/1.6 = 37.5%
    ],
)
def test_losses_that_do_not_contradict_rd_change_nothing(reports: list[Feedback]) -> None:
    """r = R_d (1 - l), or R_d + AIR [ALS sec 3.3]."""
    rates = after(started(), *reports)
    for report, rate in zip(reports, rates, strict=True):
        assert rate == 1e6 * (1 - report.loss_fraction) if report.loss_fraction else rate > 1e6


def test_a_report_without_an_answer_between_changes_nothing_of_that() -> None:
    """One control packet that no router wrote to says nothing of the path's bottleneck."""
    sender = started()
    low = after(sender, *[answered(4e6, 1.0, loss=0.4)] * 4)[-1]
    assert max(after(sender, plain(loss=0.3), answered(4e6, 1.0), answered(4e6, 1.0))) <= low + 100e3


def test_rd_counts_again_when_the_sender_has_come_up_to_it() -> None:
    sender = started()
    low = after(sender, *[answered(1e6, 0.5, loss=0.3)] * 4)[-1]
    climb = after(sender, *[answered(1e6, 0.5)] * 60)
    reached = next(i for i, rate in enumerate(climb) if rate >= 1e6)
    steps = [b - a for a, b in zip([low, *climb], climb[:reached])]
    assert low < 100e3 and max(steps) <= 50e3 + 1e-6
    assert climb[reached] == 1_007_500  # R_d + AIR, which begins anew


@pytest.mark.parametrize("changes", [{"full_utilisation": 1.5}, {"loss_limit": 1.1}])
def test_fractions_above_one_are_refused(changes: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"AlsParameters.{next(iter(changes))} = .*: a fraction is at most 1"):
        replace(DEFAULTS, **changes)


# ------------------------------------------------------------------------------------------------------- what always holds

REPORTS = st.lists(
    st.builds(
        Feedback,
        st.just(7),
        st.floats(0, 1),
        st.none() | st.floats(1e-4, 2),
        st.none(),
        st.none() | st.sampled_from([0.0, ANNOUNCED_BPS]) | st.floats(0, 2 * ANNOUNCED_BPS),
        st.none() | st.just(0.0) | st.floats(0, 4295),
    ),
    max_size=40,
)


@given(REPORTS)
def test_after_any_reports_a_path_in_good_order_brings_the_rate_back(reports: list[Feedback]) -> None:
    """With routers or without. l_s falls by 0.7 a report, so that r_TCP leaves the way for steps of A; nothing is for ever."""
    for honest, target_bps in ((plain(), 2e6), (answered(2e6, 0.9), 2e6)):
        sender = started()
        for rate in after(sender, *reports):
            assert DEFAULTS.min_rate_bps <= rate <= DEFAULTS.max_rate_bps
        low = sender.rate_bps
        rates = after(sender, *[honest] * 80)
        assert rates[-1] >= target_bps
        if honest.utilisation == 0.0:
            assert all(b <= a + DEFAULTS.additive_increase_bps + 1e-6 for a, b in zip([low, *rates], rates))


@given(REPORTS)
def test_where_no_router_answers_the_rate_never_leaps(reports: list[Feedback]) -> None:
    """It rises by A at most, whatever is reported, and never above what is announced."""
    sender = started(desired_rate_bps=300e3)
    rates = [100e3, *after(sender, *[replace(r, desired_rate_bps=300e3, utilisation=0.0, rtt_s=r.rtt_s or 0.1) for r in reports])]
    assert all(b <= min(300e3, a + 50e3) + 1e-6 for a, b in itertools.pairwise(rates))


@settings(max_examples=12)
@given(
    kind=st.sampled_from([als.KINDS[0], als_layered.KINDS[0]]),
    capacity_bps=st.floats(100e3, 300e3),
    rtt_s=st.floats(0.1, 0.4),
    queue_packets=st.integers(10, 60),
    fair=st.sampled_from([float("inf"), 1.5, 3.0, 10.0]),
    utilisation=st.sampled_from([0.1, 0.9, 1.0]),
    seed=st.integers(0, 1000),
)
def test_no_path_collapses(kind, capacity_bps: float, rtt_s: float, queue_packets: int, fair: float, utilisation: float, seed: int) -> None:
    """A bottleneck that no router tells of, alone or beside a router whose R_f is 1.5 to 10 times as much: over the second half of 400 s
    fewer than 10% of the packets are lost (a model TCP of two packets a round trip loses 5%), and more than a quarter of the bottleneck is
    used. [ALS sec 3.3] alone would lose 1 - sqrt(c / R_d): 18% to 68%. A is a twentieth of the bottleneck: DAA loses much where A is not small against it."""
    path = Path(capacity_bps, rtt_s, queue_packets, fair_rate_bps=fair * capacity_bps, utilisation=utilisation)
    loop = ClosedLoop(kind, replace(kind.parameters(), max_rate_bps=1e7, additive_increase_bps=capacity_bps / 20), path, seed, jitter=0.5)
    (_, _, sent, delivered, lost), (_, _, all_sent, all_delivered, all_lost) = (loop.run(200.0).rows[-1], loop.run(200.0).rows[-1])
    assert (all_lost - lost) / (all_sent - sent) < 0.10
    assert (all_delivered - delivered) * 8000 / 200.0 > 0.25 * capacity_bps

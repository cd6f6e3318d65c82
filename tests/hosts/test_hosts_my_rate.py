"""My rate: fails until the equation is in hosts/algorithms/my_rate.py. Add a test for each equation, worked by hand:

    def test_increase() -> None:
        # r = r + 50 kb/s without loss [PAPER eq 1]: 100 -> 150 kb/s
        assert rate_after(report(loss=0.0)) == 150_000
"""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from fairlane.hosts.algorithms.base import Feedback, SetRate
from fairlane.hosts.algorithms.my_rate import KINDS, MyRateParameters, MyRateSender

RNG = random.Random(0)
DEFAULTS = MyRateParameters()


def report(loss: float = 0.0, rtt_s: float | None = 0.05) -> Feedback:
    return Feedback(reporter=7, loss_fraction=loss, rtt_s=rtt_s)


def rate_after(*reports: Feedback, **changes: float) -> float:
    """The rate in bit/s after these reports, 5 s apart. changes: parameters other than the defaults."""
    sender = MyRateSender(replace(DEFAULTS, **changes))
    rates = [a.rate_bps for a in sender.on_start(0.0, RNG) if isinstance(a, SetRate)]
    for number, feedback in enumerate(reports):
        rates += [a.rate_bps for a in sender.on_feedback(5.0 * (number + 1), feedback, RNG) if isinstance(a, SetRate)]
    return rates[-1]


def test_users_find_it_by_name() -> None:
    assert [(kind.name, kind.sender) for kind in KINDS] == [("my-rate", MyRateSender)]


def test_starts_at_the_initial_rate() -> None:
    assert rate_after() == DEFAULTS.initial_rate_bps


def test_reports_without_loss_raise_the_rate() -> None:
    assert rate_after(report(), report(), report()) > DEFAULTS.initial_rate_bps


def test_loss_lowers_the_rate() -> None:
    before = (report(), report())
    assert rate_after(*before, report(loss=0.25)) < rate_after(*before)


@given(st.lists(st.builds(report, st.floats(0, 1), st.none() | st.floats(0, 1e3)), max_size=30))
def test_no_report_takes_the_rate_out_of_its_bounds(reports: list[Feedback]) -> None:
    assert DEFAULTS.min_rate_bps <= rate_after(*reports) <= DEFAULTS.max_rate_bps

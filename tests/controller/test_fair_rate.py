import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.controller.utilisation import PPM, utilisation_ppm
from fairlane.p4src.schemes.fair_rate.scheme import fair_rate_bps


def test_worked_example():
    # [ALS sec 3.1] R_f = b U_l / n: 10 Mb/s, 0.9, 10 connections.
    assert fair_rate_bps(10_000_000, 0.9, 10) == 900_000


def test_a_port_nobody_uses_offers_a_single_senders_share():
    assert fair_rate_bps(10_000_000, 0.9, 0) == fair_rate_bps(10_000_000, 0.9, 1) == 9_000_000


@pytest.mark.parametrize("bad", [(0, 0.9, 1), (-1, 0.9, 1), (1e6, 0, 1), (1e6, 1.1, 1), (1e6, 0.9, -1), (float("nan"), 0.9, 1)])
def test_refuses_what_makes_no_sense(bad):
    with pytest.raises(ValueError):
        fair_rate_bps(*bad)


@given(st.floats(1e3, 1e12), st.floats(0.01, 1), st.integers(0, 10**6))
def test_shares_never_exceed_the_target(bandwidth, target, n):
    assert 0 <= fair_rate_bps(bandwidth, target, n) * max(n, 1) <= bandwidth * target * (1 + 1e-9)


def test_utilisation():
    assert utilisation_ppm(625_000, 0, 1.0, 10_000_000) == 500_000
    assert utilisation_ppm(10**9, 0, 1.0, 10_000_000) == PPM
    assert utilisation_ppm(1000, 1000, 0.0, 10_000_000) == 0


def test_drops_of_an_overloaded_port_make_u_exceed_one():
    # 15 Mb/s come for 10 Mb/s: a third is dropped, 1 - 1 / 1.5.
    assert utilisation_ppm(1_250_000, 625_000, 1.0, 10_000_000) == 1_500_000
    assert utilisation_ppm(0, 10**15, 1.0, 1.0) == (1 << 32) - 1  # the size of the field

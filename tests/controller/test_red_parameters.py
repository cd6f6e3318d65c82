import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.p4src.schemes.red.scheme import DECAY_SCALE, PACKET_SCALE, UNIT_SCALE, RedOfPort, _decay, link_parameters


@given(
    minimum=st.floats(1, 500),
    spread=st.floats(1.01, 500),
    max_p=st.floats(0.001, 1),
    weight=st.floats(0.0005, 0.02),
    rate=st.floats(1e5, 1e9),
)
def test_fixed_point_is_the_real_value_within_half_a_unit(minimum, spread, max_p, weight, rate):
    red = RedOfPort(minimum, minimum + spread, max_p, weight, 1000)
    got = red.action_parameters(rate)
    half = 0.5001
    assert abs(got["minimum"] - red.minimum_packets * PACKET_SCALE) <= half
    assert abs(got["slope"] - max_p / (red.maximum_packets - red.minimum_packets) * UNIT_SCALE) <= half
    assert abs(got["weight"] - weight * UNIT_SCALE) <= half
    assert abs(got["idle_decay"] - -math.log1p(-weight) / (8e9 / rate) * DECAY_SCALE) <= half


@given(weight=st.floats(1e-6, 0.5))
def test_the_decay_is_the_nearest_float_and_not_the_platforms_logarithm(weight):
    # -ln(1 - w) = 2 artanh(w / (2 - w)), by its series in integers of 2^-300.
    scale = 1 << 300
    ratio = int(Fraction(weight) / (2 - Fraction(weight)) * scale)
    term, total = ratio, 0
    for k in range(200):
        total += term // (2 * k + 1)
        term = term * ratio // scale * ratio // scale
    assert _decay(weight) == float(Fraction(2 * total, scale))


def test_the_decay_of_the_usual_weight():
    assert _decay(0.002) == 0.0020020026706730775
    assert RedOfPort(5, 15, weight=0.002).action_parameters(10e6)["idle_decay"] == round(0.0020020026706730775 / 800 * 2**40)


@pytest.mark.parametrize(
    "bad",
    [
        dict(minimum_packets=5, maximum_packets=5),
        dict(minimum_packets=-1, maximum_packets=5),
        dict(minimum_packets=1, maximum_packets=4096),
        dict(minimum_packets=1, maximum_packets=2, max_p=0),
        dict(minimum_packets=1, maximum_packets=2, weight=1),
        dict(minimum_packets=1, maximum_packets=2, mean_packet_bytes=0),
    ],
)
def test_refuses_impossible_parameters(bad):
    with pytest.raises(ValueError, match="RED thresholds|max_p: |weight: |mean_packet_bytes: "):
        RedOfPort(**bad)


def test_a_slope_too_small_for_32_bits_is_refused_and_named():
    with pytest.raises(ValueError, match="slope"):
        RedOfPort(1, 4000, max_p=1e-7).action_parameters(1e7)


def test_a_decay_too_fast_for_32_bits_is_refused_and_named():
    with pytest.raises(ValueError, match="idle_decay"):
        RedOfPort(1, 2, weight=0.5).action_parameters(1e9)


def test_link_speed():
    assert link_parameters(10e6) == {"microseconds_per_byte": round(0.8 * 2**20)}

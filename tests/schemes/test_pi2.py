"""PI2 of users' links (p4src/schemes/pi2/pi2.p4) in virtual time; switch/node/stf/tests/queues holds its arithmetic against the formula."""

from __future__ import annotations

import pytest

import fairlane
from fairlane.fabrics import virtual_fabric
from fairlane.p4src.schemes.pi2.scheme import Pi2
from fairlane.topologies.model import Link

pytestmark = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")

HOW = {"bottleneck": "10mbit", "rtt": "40ms", "buffer": "200packets", "duration_s": 20.0}


def test_pi2_keeps_the_queue_at_its_target() -> None:
    pi2 = fairlane.run("dumbbell", "tcp-sack:10", queue="pi2", **HOW).bottleneck
    # 15 ms at 10 Mb/s are 18.5 packets of 1014 bytes.
    assert 14 < pi2["mean_queue_packets"] < 23
    assert pi2["utilisation"] > 0.95
    assert pi2["drops"].keys() == {"pi2"}


def test_pi2_marks() -> None:
    marks = fairlane.run("dumbbell", "tcp-sack:4", queue="pi2", ecn=True, **HOW).bottleneck
    assert marks["marks"] > 20 and not marks["drops"]
    assert marks["mean_queue_packets"] < 23


def test_a_probability_of_one_falls_again() -> None:
    """Slow start fills 200 packets, 1.1 s at 1 Mb/s, so that p' becomes 1. Only departures lower it, so some packets must pass."""
    how = {"bottleneck": "1mbit", "rtt": "100ms", "buffer": "200packets", "packet_bytes": 684, "duration_s": 60.0}
    for ecn in (None, True):
        assert fairlane.run("dumbbell", "tcp-sack:2", queue="pi2", ecn=ecn, **how).bottleneck["utilisation"] > 0.7


def test_parameters_outside_their_range() -> None:
    assert Link(("a", "b"), 1e6, queue="pi2").aqm == Pi2()
    assert Link(("a", "b"), 1e6, schemes=(Pi2(ecn=True),)).marks
    for key, bad in (("target_s", 2.0), ("update_s", 0.0), ("alpha", 16.0), ("beta", 0.0)):
        with pytest.raises(ValueError, match=f"^{key}: from "):
            Pi2(**{key: bad})

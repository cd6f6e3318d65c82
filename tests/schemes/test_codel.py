"""CoDel of users' links (p4src/schemes/codel/codel.p4, RFC 8289) in virtual time; switch/node/stf/tests/queues holds its arithmetic against the RFC's pseudocode."""

from __future__ import annotations

import pytest

import fairlane
from fairlane.errors import Refusal
from fairlane.fabrics import virtual_fabric
from fairlane.p4src.schemes.codel.scheme import Codel
from fairlane.topologies.model import Link

pytestmark = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")

HOW = {"bottleneck": "10mbit", "rtt": "40ms", "buffer": "200packets", "duration_s": 20.0}


def test_codel_keeps_the_queue_short_where_a_full_queue_does_not() -> None:
    codel, plain = (fairlane.run("dumbbell", "tcp-sack:4", queue=queue, **HOW) for queue in ("codel", "droptail"))
    # 5 ms at 10 Mb/s are 6 packets of 1014 bytes; flows in congestion avoidance overshoot the target.
    assert plain.bottleneck["mean_queue_packets"] > 100
    assert codel.bottleneck["mean_queue_packets"] < 20
    assert codel.bottleneck["utilisation"] > 0.93
    assert codel.bottleneck["drops"].keys() == {"codel"}


def test_codel_marks() -> None:
    marks = fairlane.run("dumbbell", "tcp-sack:4", queue="codel", ecn=True, **HOW).bottleneck
    assert marks["marks"] > 20 and not marks["drops"]
    assert marks["mean_queue_packets"] < 20


def test_a_link_has_one_scheme() -> None:
    assert Link(("a", "b"), 1e6, schemes=(Codel(),)).queue == "codel"
    assert Link(("a", "b"), 1e6, queue="codel").aqm == Codel()
    assert Link(("a", "b"), 1e6, queue="droptail", schemes=(Codel(),)).aqm is None
    with pytest.raises(ValueError, match="target_s: CoDel needs 1e-6 <= target_s < interval_s"):
        Codel(target_s=0.2)
    with pytest.raises(Refusal, match="--queue ared: must be red, codel, pie, pi2, dualpi2, step or droptail"):
        fairlane.run("dumbbell", "tcp-sack:1", queue="ared")

"""PIE of users' links (p4src/schemes/pie/pie.p4, RFC 8033) in virtual time; switch/node/stf/tests/queues holds its arithmetic against the RFC's."""

from __future__ import annotations

import pytest

import fairlane
from fairlane.fabrics import virtual_fabric
from fairlane.p4src.schemes.codel.scheme import Codel
from fairlane.p4src.schemes.pie.scheme import Pie
from fairlane.topologies.model import Link

pytestmark = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")

HOW = {"bottleneck": "10mbit", "rtt": "40ms", "buffer": "200packets", "duration_s": 20.0}


def test_pie_keeps_the_queue_at_its_target() -> None:
    pie = fairlane.run("dumbbell", "tcp-sack:10", queue="pie", **HOW).bottleneck
    # 15 ms at 10 Mb/s are 18.5 packets of 1014 bytes.
    assert 10 < pie["mean_queue_packets"] < 25
    assert pie["utilisation"] > 0.95
    assert pie["drops"].keys() == {"pie"}


def test_pie_marks() -> None:
    marks = fairlane.run("dumbbell", "tcp-sack:4", queue="pie", ecn=True, **HOW).bottleneck
    assert marks["marks"] > 20 and not marks["drops"]
    assert marks["mean_queue_packets"] < 25


def test_parameters_outside_their_range() -> None:
    assert Link(("a", "b"), 1e6, schemes=(Pie(),)).queue == "pie"
    assert Link(("a", "b"), 1e6, queue="pie").aqm == Pie()
    assert Link(("a", "b"), 1e6, queue="codel", schemes=(Pie(), Codel())).schemes == (Codel(),)
    assert Link(("a", "b"), 1e6, schemes=(Pie(ecn=True),)).marks
    for key, bad in (("target_s", 0.0), ("update_s", 2.0), ("alpha", 0.0), ("beta", 16.0), ("burst_s", -1.0)):
        with pytest.raises(ValueError, match=f"^{key}: "):
            Pie(**{key: bad})

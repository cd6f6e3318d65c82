"""DualPI2 of users' links (p4src/dualpi2.p4) in virtual time; switch/stf/tests/queues holds its arithmetic against RFC 9332."""

from __future__ import annotations

import pytest

import fairlane
from fairlane.fabrics import bmv2_ports, virtual_fabric
from fairlane.topologies.builders import LinkSpec, dumbbell
from fairlane.topologies.model import Dualpi2, Link

pytestmark = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")

HOW = {"bottleneck": "10mbit", "rtt": "40ms", "buffer": "200packets", "duration_s": 20.0}


def test_the_classic_queue_is_kept_at_its_target() -> None:
    """Without low-latency packets, DualPI2 is PI2."""
    dual = fairlane.run("dumbbell", "tcp-sack:10", queue="dualpi2", **HOW).bottleneck
    # 15 ms at 10 Mb/s are 18.5 packets of 1014 bytes.
    assert 14 < dual["mean_queue_packets"] < 23
    assert dual["utilisation"] > 0.95
    assert dual["drops"].keys() == {"dualpi2"}


def test_parameters_outside_their_range() -> None:
    assert Link(("a", "b"), 1e6, queue="dualpi2").dualpi2 == Dualpi2()
    assert Link(("a", "b"), 1e6, dualpi2=Dualpi2()).marks
    for key, bad in (("target_s", 2.0), ("update_s", 0.0), ("alpha", 16.0), ("step_s", -1.0), ("shift_s", 1e4)):
        with pytest.raises(ValueError, match=f"^{key}: "):
            Dualpi2(**{key: bad})


def test_bmv2_has_no_two_queues_for_one_link() -> None:
    network = dumbbell(1, LinkSpec(1e6, queue="dualpi2"), LinkSpec(1e7))
    assert "two queues (dualpi2)" in str(bmv2_ports.obstacle(network, has_netem=True, has_delay_line=True))

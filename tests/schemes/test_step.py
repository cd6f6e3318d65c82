"""Step marking of users' links (p4src/schemes/step/step.p4) with DCTCP (RFC 8257) in virtual time; switch/node/stf/tests/queues holds the marks against their definition."""

from __future__ import annotations

import pytest

import fairlane
from fairlane import ad_hoc, floors
from fairlane.fabrics import virtual_fabric
from fairlane.p4src.schemes.step.scheme import Step
from fairlane.topologies.model import Link

pytestmark = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")

HOW = {"bottleneck": "20mbit", "rtt": "20ms", "buffer": "200packets", "duration_s": 20.0}


def test_dctcp_keeps_a_full_link_at_a_short_queue() -> None:
    dctcp, sack = (fairlane.run("dumbbell", flows, queue="step", ecn=True, **HOW) for flows in ("tcp-dctcp:4", "tcp-sack:4"))
    # 1 ms at 20 Mb/s are 2.5 packets, less than the C x RTT / 7 of [RFC 8257 sec 4.1] that DCTCP needs for a full link.
    for run in (dctcp, sack):
        assert not run.bottleneck["drops"] and run.bottleneck["marks"] > 100
        assert run.bottleneck["mean_queue_packets"] < 12
    # A mark costs DCTCP a part of the window, other TCP half of it.
    assert dctcp.bottleneck["marks"] > 2 * sack.bottleneck["marks"]
    assert dctcp.bottleneck["utilisation"] > max(0.95, sack.bottleneck["utilisation"])
    rates = dctcp.per_flow["goodput_bps"]
    assert rates.min() > 0.7 * rates.max()


def test_a_threshold_in_packets() -> None:
    settings = Link(("a", "b"), 1e6, schemes=(Step(threshold_packets=20),))
    assert settings.queue == "step" and settings.marks
    assert isinstance(settings.aqm, Step) and settings.aqm.threshold_s is None
    assert Link(("a", "b"), 1e6, queue="step").aqm == Step(threshold_s=0.001)
    for bad, key in (({"threshold_s": -1.0}, "threshold_s"), ({"threshold_packets": 0}, "threshold_packets")):
        with pytest.raises(ValueError, match=f"^{key}: from"):
            Step(**bad)


def test_dctcp_without_marks_is_told() -> None:
    options = ad_hoc.Options(flows=("tcp-dctcp:2",))
    assert "marks no packet" in floors.warnings(ad_hoc.experiment("dumbbell", options, 10.0, 1))[0]
    options = ad_hoc.Options(flows=("tcp-dctcp:2",), queue="step")
    assert floors.warnings(ad_hoc.experiment("dumbbell", options, 10.0, 1)) == []

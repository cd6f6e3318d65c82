"""DualPI2 of users' links (p4src/dualpi2.p4) in virtual time; switch/stf/tests/queues compares its arithmetic with [RFC 9332 sec A]."""

from __future__ import annotations

from pathlib import Path

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


UNRESPONSIVE = """
from fairlane.hosts.algorithms.base import Ecn, Interests, Kind
from fairlane.hosts.algorithms.cbr import CbrParameters, CbrReceiver, CbrSender


class Unresponsive(CbrSender):
    interests = Interests(ecn=Ecn.ECT_1)


KINDS = (Kind("unresponsive", "constant bit rate in packets of ECT(1)", CbrParameters, Unresponsive, CbrReceiver),)
"""


@pytest.fixture(scope="module")
def unresponsive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kinds") / "unresponsive.py"
    path.write_text(UNRESPONSIVE)
    return path


def test_an_overloaded_low_latency_queue_is_kept_at_the_classic_target(unresponsive: Path) -> None:
    """12 Mb/s that say ECT(1) and answer to no mark [RFC 9332 sec A.2]: "the Base AQM will keep the L queue to the Classic target"."""
    how = {**HOW, "buffer": "500packets", "settings": ["unresponsive.rate_bps=12e6"], "algorithms": [unresponsive]}
    link = fairlane.run("dumbbell", "unresponsive:1", queue="dualpi2", **how).bottleneck
    # Drops are at the head: all 1479 packets of 1014 bytes a second wait.
    assert 0.014 < link["mean_queue_packets"] / 1479 < 0.017
    # It marks all that it sends, and tail drop has no part [RFC 9332 sec 2.5.1.1].
    assert link["drops"].keys() == {"dualpi2"} and link["utilisation"] > 0.99
    assert 0.15 < link["drops"]["dualpi2"] / (link["drops"]["dualpi2"] + link["marks"]) < 0.20


def test_unresponsive_low_latency_packets_do_not_starve_the_classic_queue(unresponsive: Path) -> None:
    """Overload drops both kinds alike [RFC 9332 sec 4.2.3.1]."""
    how = {**HOW, "buffer": "500packets", "settings": ["unresponsive.rate_bps=8e6", "cbr.rate_bps=8e6"], "algorithms": [unresponsive]}
    rates = fairlane.run("dumbbell", ["unresponsive:1", "cbr:1"], queue="dualpi2", **how).per_flow["goodput_bps"] / 1e6
    assert rates["unresponsive"] == pytest.approx(rates["cbr"], rel=0.05)


def test_parameters_outside_their_range() -> None:
    assert Link(("a", "b"), 1e6, queue="dualpi2").dualpi2 == Dualpi2()
    assert Link(("a", "b"), 1e6, dualpi2=Dualpi2()).marks
    for key, bad in (("target_s", 2.0), ("update_s", 0.0), ("alpha", 16.0), ("min_threshold_s", -1.0), ("range_s", -1.0), ("shift_s", 1e4)):
        with pytest.raises(ValueError, match=f"^{key}: "):
            Dualpi2(**{key: bad})


def test_bmv2_has_no_two_queues_for_one_link() -> None:
    network = dumbbell(1, LinkSpec(1e6, queue="dualpi2"), LinkSpec(1e7))
    assert "two queues (dualpi2)" in str(bmv2_ports.obstacle(network, has_netem=True, has_delay_line=True))

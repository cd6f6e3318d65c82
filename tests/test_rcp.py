"""RCP (p4src/rcp.p4, hosts/algorithms/rcp.py) in virtual time: it converges to C / N. switch/stf/tests/queues holds the switch's arithmetic."""

from __future__ import annotations

import pytest

import fairlane
from fairlane.controller.rcp import Rcp
from fairlane.fabrics import virtual_fabric

pytestmark = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")

# Of a frame of 1014 bytes, those that goodput counts: 1000 less the headers of IPv4, UDP and RTP, and the rate header.
PAYLOAD = (1000 - 28 - 12 - 16) / 1014


@pytest.mark.parametrize("flows", [1, 4, 16])
def test_each_flow_gets_an_equal_share(flows: int) -> None:
    run = fairlane.run("dumbbell", f"rcp:{flows}", bottleneck="10mbit", rtt="60ms", duration_s=20.0)
    share_bps = 10e6 / flows * PAYLOAD
    assert len(run.summary["flows"]) == flows
    for flow in run.summary["flows"]:
        assert flow["goodput_bps"] == pytest.approx(share_bps, rel=0.05)
        assert flow["lost_packets"] == 0
    assert run.bottleneck["utilisation"] > 0.98


def test_a_flow_that_joins_takes_its_share_without_loss() -> None:
    """It begins at the rate of the flow that is there, which learns of it a round trip later: a queue of one bandwidth-delay product or more."""
    run = fairlane.run("dumbbell", ["rcp", "rcp:1@10s"], bottleneck="10mbit", rtt="60ms", buffer="4bdp", duration_s=20.0)
    assert not run.bottleneck["drops"]
    for _, flow in run.flows[run.flows.time_s > 11].groupby("flow"):
        assert flow["sending_rate_bps"].to_numpy() == pytest.approx(10e6 / 2 * 1000 / 1014, rel=0.05)


def test_parameters_outside_their_range() -> None:
    for key, bad in (("interval_s", 0.0), ("alpha", 5.0), ("beta", 0.0)):
        with pytest.raises(ValueError, match=f"^{key}: RCP needs"):
            Rcp(**{key: bad})
    parameters = Rcp().action_parameters(10_000_000)
    assert parameters["us_of_a_byte"] == round(0.8 * 2**40)

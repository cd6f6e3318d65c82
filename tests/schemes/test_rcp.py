"""RCP (p4src/schemes/rcp, hosts/algorithms/rcp.py) in virtual time: it converges to C / N. switch/node/stf/tests/queues holds the switch's arithmetic."""

from __future__ import annotations

import pytest

import fairlane
from fairlane.fabrics import virtual_fabric
from fairlane.p4src.schemes.rcp.scheme import Rcp

pytestmark = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")

# Of a frame of 1014 bytes, those that goodput counts: 1000 less the headers of IPv4, UDP and RTP, and the rate header.
PAYLOAD = (1000 - 28 - 12 - 16) / 1014


# Time of a frame on the link.
FRAME_S = 8 * 1014 / 10e6


@pytest.mark.parametrize(("flows", "rtt_ms"), [(1, 60), (4, 60), (16, 60), (16, 20)])
def test_each_flow_gets_an_equal_share(flows: int, rtt_ms: int) -> None:
    """R stays where alpha (C - y) = beta q/d. Flows of one rate keep the distances between their packets: at worst all come at once, N of them, and q is N/2
    packets on average. Then y = C / (1 + N s / 2 d), s the time of a packet; with few packets of a flow in a round trip that is far below C
    (docs/explicit-rates.md)."""
    run = fairlane.run("dumbbell", f"rcp:{flows}", bottleneck="10mbit", rtt=f"{rtt_ms}ms", buffer="4bdp", duration_s=20.0)
    share_bps = 10e6 / flows * PAYLOAD
    worst = 1 / (1 + flows * FRAME_S / (2 * rtt_ms / 1e3))
    assert len(run.summary["flows"]) == flows
    goodputs = [flow["goodput_bps"] for flow in run.summary["flows"]]
    assert max(goodputs) == pytest.approx(min(goodputs), rel=0.01)
    assert 0.97 * worst * share_bps < min(goodputs) < 1.02 * share_bps
    assert all(flow["lost_packets"] == 0 for flow in run.summary["flows"])
    assert run.bottleneck["utilisation"] > 0.97 * worst


def test_a_flow_that_joins_takes_its_share_without_loss() -> None:
    """It begins at the rate of the flow that is there, which learns of it a round trip later: a queue of one bandwidth-delay product or more."""
    run = fairlane.run("dumbbell", ["rcp", "rcp:1@10s"], bottleneck="10mbit", rtt="60ms", buffer="4bdp", duration_s=20.0)
    assert not run.bottleneck["drops"]
    for _, flow in run.flows[run.flows.time_s > 11].groupby("flow"):
        assert flow["sending_rate_bps"].to_numpy() == pytest.approx(10e6 / 2 * 1000 / 1014, rel=0.05)


def test_parameters_outside_their_range() -> None:
    for key, bad in (("interval_s", 0.0), ("alpha", 5.0), ("beta", 0.0)):
        with pytest.raises(ValueError, match=f"^{key}: from 0"):
            Rcp(**{key: bad})
    (entry,) = Rcp().entries(10_000_000)
    assert entry.values["us_of_a_byte"] == round(0.8 * 2**40)

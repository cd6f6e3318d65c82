"""XCP and ABC (p4src/schemes/xcp, p4src/schemes/abc and their senders) in virtual time. switch/node/stf/tests/queues holds the switch's arithmetic."""

from __future__ import annotations

import pytest

import fairlane
from fairlane import probes
from fairlane.fabrics import virtual_fabric
from fairlane.p4src.schemes.abc.scheme import Abc
from fairlane.p4src.schemes.xcp.scheme import Xcp
from fairlane.schemes.base import Parameters

pytestmark = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")

WALK = probes.ROOT / "docs/examples/abc-walk.toml"


def shares(run: fairlane.Result, from_s: float) -> list[float]:
    """Of the bottleneck, by flow, from a time on."""
    late = run.flows[run.flows.time_s > from_s]
    means = [flow["goodput_bps"].mean() for _, flow in late.groupby("flow")]
    return [mean / sum(means) for mean in means]


def test_xcp_flows_share_a_link_equally_without_a_queue() -> None:
    run = fairlane.run("dumbbell", ["xcp:2", "xcp:2@5s"], bottleneck="10mbit", rtt="60ms", duration_s=20.0)
    assert shares(run, 10.0) == pytest.approx([0.25] * 4, rel=0.05)
    assert not run.bottleneck["drops"]
    late = run.links[(run.links.link == "s1->s2") & (run.links.time_s > 5)]
    assert late.utilisation.mean() > 0.97 and late.queue_packets.max() < 20


def test_xcp_is_limited_by_the_slowest_switch() -> None:
    """A switch before and one behind the bottleneck have more to give: the least change holds."""
    run = fairlane.run("chain", "xcp:2", switches=3, bottleneck="5mbit", rtt="60ms", duration_s=10.0)
    assert sum(flow["goodput_bps"] for flow in run.summary["flows"]) > 0.8 * 5e6
    assert not run.bottleneck["drops"]


def test_abc_fills_a_link_with_a_short_queue() -> None:
    run = fairlane.run("dumbbell", "abc", bottleneck="10mbit", rtt="60ms", buffer="4bdp", duration_s=10.0)
    assert run.bottleneck["utilisation"] > 0.95 and not run.bottleneck["drops"]
    assert run.links[run.links.link == "s1->s2"].queue_packets.max() < 40


def test_abc_keeps_the_threshold_of_the_delay() -> None:
    """Several flows' 1/w push the queue up to d_t, and no further: 50 ms are 62 packets."""
    run = fairlane.run("dumbbell", "abc:4", bottleneck="10mbit", rtt="60ms", buffer="4bdp", duration_s=20.0)
    late = run.links[(run.links.link == "s1->s2") & (run.links.time_s > 10)]
    assert late.queue_packets.mean() == pytest.approx(62, abs=8)
    assert late.utilisation.mean() > 0.99


def test_abc_follows_a_link_that_varies() -> None:
    run = fairlane.run(WALK, duration_s=30.0)
    assert run.bottleneck["utilisation"] > 0.6
    assert run.summary["flows"][0]["lost_packets"] == 0


def test_a_switch_that_brakes_stays_out_of_other_flows() -> None:
    """ABC is compiled in where a flow is of its kind, and TCP's packets are not ECT(1)."""
    run = fairlane.run("dumbbell", ["abc", "tcp-sack"], bottleneck="10mbit", rtt="60ms", duration_s=10.0)
    assert {flow["name"] for flow in run.summary["flows"]} == {"abc", "tcp-sack"}
    assert run.bottleneck["utilisation"] > 0.9


@pytest.mark.parametrize(
    ("parameters", "key", "bad"),
    [
        (Abc, "eta", 1.1),
        (Abc, "delta_s", 0.0),
        (Abc, "threshold_s", -1.0),
        (Abc, "window_s", 2.0),
        (Xcp, "alpha", 0.0),
        (Xcp, "interval_s", 2.0),
    ],
)
def test_parameters_outside_their_range(parameters: type, key: str, bad: float) -> None:
    with pytest.raises(ValueError, match=f"^{key}: "):
        parameters(**{key: bad})


def values(parameters: Parameters, rate_bps: float) -> dict[str, int]:
    (entry,) = parameters.entries(rate_bps)
    return dict(entry.values)


def test_parameters_as_integers() -> None:
    assert values(Abc(), 10_000_000) == {
        "eta_fraction": 64225, "per_delta_us": 32293, "threshold_us": 50_000, "period_us": 5_000, "us_of_a_byte": 0
    }  # fmt: skip
    assert values(Abc(told=True), 8_000_000)["us_of_a_byte"] == 2**24
    assert values(Xcp(), 10_000_000)["beta_fraction"] == round(0.226 * 2**20)

"""DualPI2 of users' links (p4src/schemes/dualpi2/dualpi2.p4) in virtual time; switch/node/stf/tests/queues compares its arithmetic with [RFC 9332 sec A]."""

from __future__ import annotations

from pathlib import Path

import pytest

import fairlane
from fairlane import ad_hoc, user_files
from fairlane.fabrics import bmv2_ports, switch_process, virtual_fabric
from fairlane.inputs.located_toml import tomllib
from fairlane.p4src.schemes.dualpi2.scheme import Dualpi2
from fairlane.results.figures import Overload
from fairlane.results.queues import overloads
from fairlane.results.series import Steps
from fairlane.topologies.builders import LinkSpec, dumbbell
from fairlane.topologies.model import Link

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


@pytest.mark.parametrize("parameters", [{"scheduler": "wrr"}, {"scheduler": "ts-fifo"}, {"decisions": "random"}])
def test_unresponsive_low_latency_packets_do_not_starve_the_classic_queue(parameters: dict[str, str], unresponsive: Path) -> None:
    """Overload drops both kinds alike [RFC 9332 sec 4.2.3.1], whatever the scheduler, by recur() or at random."""
    user_files.use_algorithm(unresponsive)
    settings = ("unresponsive.rate_bps=8e6", "cbr.rate_bps=8e6")
    flows = ("unresponsive:1", "cbr:1")
    options = ad_hoc.Options(flows, bottleneck="10mbit", rtt="40ms", queue="dualpi2", buffer="500packets", settings=settings)
    document = tomllib.loads(ad_hoc.text("dumbbell", options, 20.0, 1))
    document["topology"]["bottleneck"]["dualpi2"] |= parameters
    result = fairlane.run(document)
    rates = result.per_flow["goodput_bps"] / 1e6
    assert rates["unresponsive"] == pytest.approx(rates["cbr"], rel=0.05)
    # From the flows' start to the run's end, less the time until p' is 1/2 [RFC 9332 sec 2.5.2.3].
    (overload,) = result.bottleneck["overloads"]
    assert overload["start_s"] < 1.5 and overload["start_s"] + overload["duration_s"] == pytest.approx(20, abs=0.6)


def test_each_queue_is_monitored_by_itself() -> None:
    """[RFC 9332 sec 2.5.2.2]: bits, packets of three categories, marks, drops, mean and 99th percentile of the delay, per queue and interval."""
    result = fairlane.run("dumbbell", ["tcp-prague:1", "tcp-sack:4"], queue="dualpi2", **HOW)
    queues, link = result.queues.query("link == 's1->s2' and time_s > 10"), result.bottleneck
    classic, low_latency = (queues[queues["queue"] == queue] for queue in (0, 1))
    both = classic["forwarded_bps"].mean() + low_latency["forwarded_bps"].mean()
    assert both == pytest.approx(link["utilisation"] * 10e6, rel=0.01)
    assert queues["egress_drops"].sum() == pytest.approx(sum(link["drops"].values()), abs=3)
    assert low_latency["egress_drops"].sum() == 0 and queues["tail_drops"].sum() == 0
    assert low_latency["marks"].sum() == pytest.approx(link["marks"], rel=0.05) and classic["marks"].sum() == 0
    # The Classic queue is kept at 15 ms, the other below the ramp's end.
    waits = [(rows["wait_mean_s"] * rows["forwarded_packets"]).sum() / rows["forwarded_packets"].sum() for rows in (classic, low_latency)]
    assert waits[0] == pytest.approx(0.015, abs=0.003) and waits[1] < 0.0012
    assert (queues["wait_p99_s"] <= queues["wait_max_s"]).all() and (queues["wait_mean_s"] <= queues["wait_p99_s"]).all()
    assert link["overloads"] == []


def test_ports_with_one_queue_have_no_table_of_queues() -> None:
    assert fairlane.run("dumbbell", "tcp-sack:1", queue="pi2", **{**HOW, "duration_s": 2.0}).queues.empty


def test_an_overload_that_flaps_is_reported_once() -> None:
    """[RFC 9332 sec 2.5.2.3]: the latch of 1 s begins with a report; what comes in it is accumulated until the first time out of overload after it."""
    # In overload from 0.5 to 1 s, 1.2 to 1.4 s, 1.6 to 1.8 s, 4 to 4.5 s.
    times = [0.0, 0.5, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 4.0, 4.5, 5.0]
    packets = [0, 0, 9, 9, 12, 12, 15, 15, 15, 15, 20, 20]
    found = [(report.start_s, pytest.approx(report.duration_s)) for report in overloads(Steps.of(times, packets))]
    assert found == [(0.5, 0.5), (1.2, 0.4), (4.0, 0.5)]
    # One that lasts to the end is reported, too.
    assert overloads(Steps.of([0.0, 1.0, 2.0], [0, 5, 9])) == [Overload(0.0, 2.0)]
    assert overloads(Steps.of([], [])) == []


def test_parameters_outside_their_range() -> None:
    assert Link(("a", "b"), 1e6, queue="dualpi2").aqm == Dualpi2()
    assert Link(("a", "b"), 1e6, schemes=(Dualpi2(),)).marks
    for key, bad in (
        ("target_s", 2.0),
        ("update_s", 0.0),
        ("alpha", 16.0),
        ("min_threshold_s", -1.0),
        ("range_s", -1.0),
        ("shift_s", 1e4),
        ("decisions", "dice"),
        ("scheduler", "fifo"),
        ("weight", 0),
    ):
        with pytest.raises(ValueError, match=f"^{key}: "):
            Dualpi2(**{key: bad})


def test_the_real_time_switch_is_given_the_scheduler() -> None:
    for parameters, option in (
        (Dualpi2(), ["--port-weight", "2=15"]),
        (Dualpi2(weight=9), ["--port-weight", "2=9"]),
        (Dualpi2(scheduler="ts-fifo", shift_s=0.03), ["--port-time-shift", "2=30000000ns"]),
    ):
        port = switch_process.PortSetting(2, "eth2", 1e7, 100, 0.0, priorities=2, scheduler=parameters.scheduling)
        settings = switch_process.SwitchSettings("s1", 1, 9559, (port,), Path("s1.log"), Path("s1.csv"))
        command = switch_process.embedded_command(Path("fairlane-switch"), settings)
        at = command.index(option[0])
        assert command[at : at + 2] == option and command[-2:] == ["--priority-queues", "2"]


def test_bmv2_has_no_two_queues_for_one_link() -> None:
    network = dumbbell(1, LinkSpec(1e6, queue="dualpi2"), LinkSpec(1e7))
    assert "two queues (dualpi2)" in str(bmv2_ports.obstacle(network, has_netem=True, has_delay_line=True))

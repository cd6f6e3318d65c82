"""Experiments without a file: what the options mean, what is refused, and that --save writes the same experiment."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairlane import ad_hoc, probes
from fairlane.ad_hoc import Options
from fairlane.cli import app
from fairlane.errors import Refusal
from fairlane.experiments import loader
from fairlane.experiments.model import Experiment, Flow
from fairlane.fabrics import virtual_fabric
from fairlane.inputs.located_toml import ConfigError
from fairlane.topologies import addressing

needs_network = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")


def propagation_s(experiment: Experiment, flow: Flow) -> float:
    """Of a round trip, without queues and transmissions."""
    return 2 * sum(port.link.delay_s for port in addressing.path(experiment.topology, flow.sender, flow.receiver))


def test_the_options_are_the_network() -> None:
    options = Options(
        ("cbr:2", "tcp-sack:2@5", "cbr@250ms"),
        "5mbit",
        "64ms",
        "red",
        "1.5bdp",
        "2ms",
        packet_bytes=500,
        start_jitter="100ms",
        settings=("cbr.rate_bps=2e5", "tcp.max_window_packets=30"),
    )
    experiment = ad_hoc.experiment("dumbbell", options, 20.0, 7)
    assert (experiment.id, experiment.duration_s, experiment.seed) == ("dumbbell", 20.0, 7)
    bottleneck, access = experiment.topology.links[0], experiment.topology.links[1]
    # 5 Mb/s x 64 ms = 40000 bytes = 80 packets of 500 bytes.
    assert (bottleneck.rate_bps, bottleneck.queue_packets, bottleneck.queue) == (5e6, 120, "red")
    assert bottleneck.aqm.mean_packet_bytes == 500
    assert (access.rate_bps, access.delay_s, access.queue) == (50e6, 0.002, "droptail")
    assert propagation_s(experiment, experiment.flows[0]) == pytest.approx(0.064)
    flows = {f.name: f for f in experiment.flows}
    assert list(flows) == ["cbr-0", "cbr-1", "tcp-sack-0", "tcp-sack-1", "cbr-b"]
    assert flows["cbr-0"].settings.parameters.rate_bps == 2e5 and flows["cbr-0"].settings.packet_bytes == 500
    assert flows["tcp-sack-0"].settings.max_window_packets == 30
    assert 5.0 <= flows["tcp-sack-0"].start_s <= 5.1 and 0.25 <= flows["cbr-b"].start_s <= 0.35


@pytest.mark.parametrize(
    ("topology", "switches", "pair"), [("chain", 4, ("h1", "h4")), ("tree", 3, ("h1", "h2")), ("dumbbell", None, ("h1", "h4"))]
)
def test_every_topology_has_the_round_trip(topology: str, switches: int | None, pair: tuple[str, str]) -> None:
    experiment = ad_hoc.experiment(topology, Options(("als:3",), rtt="30ms", side_delay="1ms", switches=switches), None, None)
    for flow in experiment.flows:
        assert propagation_s(experiment, flow) == pytest.approx(0.03)
    assert (experiment.flows[0].sender, experiment.flows[0].receiver) == pair
    assert len({(f.sender, f.receiver) for f in experiment.flows}) == 3
    # Without a word, one bandwidth-delay product, drop-tail, a minute, seed 1.
    assert (experiment.topology.links[0].queue_packets, experiment.topology.links[0].queue) == (38, "droptail")
    assert (experiment.duration_s, experiment.seed) == (60.0, 1)


@pytest.mark.parametrize(
    ("topology", "switches", "settings", "round_trips_s"),
    [
        ("parking-lot", None, (), [0.03, 0.016, 0.016, 0.03]),  # over two links, one, one; then again
        ("ring", 5, (), [0.03] * 4),
        ("leaf-spine", None, ("topology.spines=3",), [0.03] * 4),
        ("leaf-spine", 3, ("topology.trunk.loss=0.01",), [0.03] * 4),
        ("fat-tree", None, (), [0.03] * 4),
    ],
)
def test_networks_of_many_switches_have_the_round_trip(
    topology: str, switches: int | None, settings: tuple[str, ...], round_trips_s: list[float]
) -> None:
    options = Options(("als:3", "tcp-sack"), rtt="30ms", side_delay="0.5ms", switches=switches, settings=settings)
    experiment = ad_hoc.experiment(topology, options, None, None)
    assert [propagation_s(experiment, flow) for flow in experiment.flows] == pytest.approx(round_trips_s)
    switch, port = experiment.bottleneck
    assert next(p for p in experiment.topology.ports()[switch] if p.number == port).link.queue_packets == 38
    assert {link.loss for link in experiment.topology.links} == ({0.0, 0.01} if "loss" in str(settings) else {0.0})
    assert sum(name.startswith("spine") for name in experiment.topology.switches) == {"leaf-spine": 3 if switches is None else 2}.get(
        topology, 0
    )


def test_a_graph_is_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own delays; the file is found from wherever the experiment is saved."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "abilene.graphml").write_bytes((probes.ROOT / "docs/examples/abilene.graphml").read_bytes())
    options = Options(("als:20",), settings=("topology.speed_scale=0.001",))
    experiment = ad_hoc.experiment("in/abilene.graphml", options, 5.0, 1)
    assert (experiment.id, len(experiment.topology.switches), experiment.topology.links[0].rate_bps) == ("abilene", 11, 10e6)
    # Five pairs, around and around.
    assert [(f.sender, f.receiver) for f in experiment.flows[4:6]] == [("h5", "h10"), ("h1", "h6")]
    text = ad_hoc.text("in/abilene.graphml", options, 5.0, 1, tmp_path)
    (tmp_path / "saved.toml").write_text(text)
    assert loader.load(tmp_path / "saved.toml").topology == experiment.topology


@pytest.mark.parametrize(
    ("topology", "options", "message"),
    [
        ("fat-tree", Options(("als",), switches=3), "--switches: a fat tree has those of k ports: --set topology.k=8; only chain, tree"),
        ("fat-tree", Options(("als",), settings=("topology.k=5",)), "topology.k: an even number of ports, 2 to 48, got 5"),
        ("leaf-spine", Options(("als",), settings=("topology.spine=4",)), "topology.spine: unknown key; did you mean 'spines'?"),
        ("leaf-spine", Options(("als",), settings=("topology.trunk.los=1",)), "topology.trunk.los: unknown key; did you mean 'loss'?"),
        ("tree", Options(("als",), settings=("topology.branches.loss=1",)), "--set topology.branches.loss: tree has the links access"),
        ("ring", Options(("als",), settings=("als.a.b=1",)), "--set als.a.b=1: write KIND.KEY=VALUE"),
        ("leaf-spine", Options(("als",), settings=("topology.leaves=1",)), "leaf-spine: no link between switches is on the way"),
        ("no.graphml", Options(("als",)), "topology.graphml: no file no.graphml"),
    ],
)
def test_networks_that_cannot_be_are_refused(topology: str, options: Options, message: str) -> None:
    with pytest.raises((Refusal, ConfigError)) as refused:
        ad_hoc.experiment(topology, options, None, None)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Options(), "fairlane run dumbbell needs flows: --flow rap:2"),
        (Options(("alss",)), "--flow alss: unknown flow kind 'alss'; did you mean 'als'?"),
        (Options(("als:",)), "--flow als:: '' is not a number of flows: write als:2"),
        (Options(("als:0",)), "--flow als:0: '0' is not a number of flows"),
        (Options(("als:2@-1",)), "--flow als:2@-1: -1s: write a number and a unit"),
        (Options(("als:2@5min",)), "--flow als:2@5min: 5min: no unit 'min'"),
        (Options(("als",), bottleneck="10mbits"), "--bottleneck 10mbits: no unit 'mbits'; did you mean 'mbit'?"),
        (Options(("als",), bottleneck="fast"), "--bottleneck fast: write a number and a unit, as in 10mbit"),
        (Options(("als",), bottleneck="10"), "--bottleneck 10: no unit; write 10mbit or 10kbit"),
        (Options(("als",), side_rate="1e8"), "--side-rate 1e8: no unit; write 1e8mbit or 1e8kbit"),
        (
            Options(("tcp:2",)),
            "unknown flow kind 'tcp'; did you mean 'tcp-tahoe', 'tcp-reno', 'tcp-newreno', 'tcp-sack', 'tcp-cubic', 'tcp-dctcp', 'tcp-prague' or 'tcp-bbr'?",
        ),
        (Options(("my-rate",)), "(a kind of your own: --algorithm FILE.py, docs/own-algorithm.md)"),
        (
            Options(("als",), queue="ared"),
            "--queue ared: must be red, codel, pie, pi2, dualpi2, step or droptail; for a queue management of your own, give its folder with --scheme FOLDER",
        ),
        (Options(("als",), bottleneck="0mbit"), "--bottleneck 0mbit: must be positive, as in 10mbit"),
        (Options(("als",), rtt="64"), "--rtt 64: no unit; write 64ms or 64s"),
        (Options(("als",), rtt="-1ms"), "--rtt -1ms: write a number and a unit"),
        (Options(("als",), buffer="1bpd"), "--buffer 1bpd: no unit 'bpd'; did you mean 'bdp'?"),
        (Options(("als",), buffer="0"), "--buffer 0: holds none: give at least 1 packet"),
        (Options(("als",), buffer="2.5"), "--buffer 2.5: a whole number of packets"),
        (Options(("als",), rtt="10ms", side_delay="3ms"), "--side-delay 3ms: four times that is more than the round trip, --rtt 10ms"),
        (Options(("als",), packet_bytes=9001), "--packet-bytes 9001: 56 to 9000"),
        (Options(("als",), switches=3), "--switches: a dumbbell always has two"),
        (Options(("als",), settings=("als",)), "--set als: write KIND.KEY=VALUE"),
        (Options(("als",), settings=("asl.x=1",)), "--set asl.x=1: unknown flow kind 'asl'; did you mean 'als'?"),
        (Options(("als",), settings=("als.x=1",)), "als.x: unknown key of als"),
        (Options(("als:2@90",)), "start_s: the last of 2 flows starts at 90 s, after the run's end at 60 s"),
        (Options(("als:509",)), "topology.pairs: a dumbbell has 1 to 508 pairs of hosts, got 509"),
    ],
)
def test_options_that_cannot_be_are_refused(options: Options, message: str) -> None:
    with pytest.raises((Refusal, ConfigError)) as refused:
        ad_hoc.experiment("dumbbell", options, None, None)
    assert message in str(refused.value)


def test_an_experiment_keeps_its_own_network() -> None:
    for arguments, message in (
        (["als-3", "--flow", "als"], "--flow: als-3 is an experiment with its own network and flows."),
        (["dumbel", "--flow", "als"], "unknown topology 'dumbel'; did you mean 'dumbbell'?"),
        (["rap-3", "--flow", "als"], "--flow: rap-3 is an experiment with its own network and flows."),
        (["als-3", "--rtt", "1ms", "--save", "x.toml"], "--rtt, --save: als-3 is an experiment"),
    ):
        result = CliRunner().invoke(app, ["run", *arguments])
        assert isinstance(result.exception, Refusal) and message in str(result.exception)


def _digests(folder: Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted((folder / "raw").iterdir())}


@needs_network
def test_a_saved_experiment_gives_the_same_bytes(tmp_path: Path) -> None:
    saved = tmp_path / "dumbbell.toml"
    words = [
        "run",
        "dumbbell",
        "--flow",
        "als:2",
        "--flow",
        "tcp-sack:2@1",
        "--flow",
        "cbr",
        "--queue",
        "red",
        "--rtt",
        "30ms",
        "--duration",
        "12",
        "--seed",
        "5",
        "--start-jitter",
        "0.5s",
        "--set",
        "cbr.rate_bps=300000",
    ]
    first = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "one"), "--save", str(saved)])
    assert first.exit_code == 0, first.output
    assert saved.is_file() and loader.load(saved).topology.links[0].queue == "red"
    second = CliRunner().invoke(app, ["run", str(saved), "--out", str(tmp_path / "two")])
    assert second.exit_code == 0, second.output
    assert _digests(tmp_path / "one") == _digests(tmp_path / "two")
    for name in ("flows.csv", "links.csv", "fair_rates.csv", "summary.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    again = CliRunner().invoke(app, [*words, "--save", str(saved)])
    assert isinstance(again.exception, Refusal) and "exists already" in str(again.exception)


@needs_network
def test_pictures_of_the_fair_rate_only_where_someone_follows_it(tmp_path: Path) -> None:
    for kind, drawn in (("als", True), ("cbr", False)):
        done = CliRunner().invoke(app, ["run", "dumbbell", "--flow", f"{kind}:2", "--duration", "4", "--out", str(tmp_path / kind)])
        assert done.exit_code == 0, done.output
        assert (tmp_path / kind / "rates.png").is_file() and (tmp_path / kind / "queue.png").is_file()
        assert (tmp_path / kind / "fair_rate.png").is_file() == drawn

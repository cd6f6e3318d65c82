"""Flow kinds in experiments: settings by kind and by group, schedules of flows and links, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlane.experiments import kinds, loader
from fairlane.experiments.kinds import AlgorithmSettings, Mpeg4Settings, OnOffSettings, RenewalSettings, TcpSettings
from fairlane.experiments.model import Experiment, Flow
from fairlane.fabrics import flows
from fairlane.fabrics.flows import Timing
from fairlane.inputs.located_toml import ConfigError
from fairlane.results import palette
from fairlane.topologies import addressing
from tests.experiments.lines import numbered

GOOD = """\
title = "t"
bottleneck = "s1->s2"
duration_s = 30.0
[topology]
kind = "dumbbell"
pairs = 8
bottleneck = { rate_bps = 1000000 }
access = { rate_bps = 2000000 }
[als]
packet_bytes = 500
initial_rate_bps = 50_000
[tcp]
packet_bytes = 600
[tcp-sack]
max_window_packets = 20
[[flows]]
name = "a"
kind = "als"
[[flows]]
name = "b"
kind = "als"
packet_bytes = 800
parameters = { initial_rate_bps = 70_000.0, maximum_rate_bps = 900_000, pacing_jitter = 0.5 }
[[flows]]
name = "s"
kind = "tcp-sack"
parameters = { delayed_ack = false }
[[flows]]
name = "r"
kind = "tcp-reno"
start_s = 2.0
stop_s = 20.0
start_jitter_s = 3.0
[[flows]]
name = "o"
kind = "on-off"
parameters = { on_s = 0.1, shape = 1.5 }
[[flows]]
name = "m"
kind = "mpeg4"
[[changes]]
at_s = 20.0
link = "s1->s2"
rate_bps = 500_000
[[changes]]
at_s = 10.0
link = "h1->s1"
delay_s = 0.1
"""

HEAD = GOOD[: GOOD.index("[[flows]]")]


def load(tmp_path: Path, text: str = GOOD, **arguments: object) -> Experiment:
    (tmp_path / "e.toml").write_text(text)
    return loader.load(tmp_path / "e.toml", **arguments)


def test_a_group_lies_over_its_kind_and_a_kind_over_its_family(tmp_path: Path) -> None:
    experiment = load(tmp_path)
    a, b, sack, reno, on_off, video = (experiment.flow(n).settings for n in ("a", "b", "s", "r", "o", "m"))
    assert isinstance(a, AlgorithmSettings) and isinstance(b, AlgorithmSettings)
    assert (a.packet_bytes, a.parameters.initial_rate_bps, a.pacing_jitter) == (500, 50_000.0, 0.0)
    assert (b.packet_bytes, b.parameters.initial_rate_bps, b.pacing_jitter) == (800, 70_000.0, 0.5)
    # What nobody sets is the rate of the sender's link.
    assert (a.maximum_rate_bps, a.parameters.max_rate_bps) == (2e6, 2e6)
    assert (b.maximum_rate_bps, b.parameters.max_rate_bps) == (900e3, 900e3)
    assert sack == TcpSettings(packet_bytes=600, max_window_packets=20, delayed_ack=False)
    assert reno == TcpSettings(packet_bytes=600)
    assert on_off == OnOffSettings(on_s=0.1, shape=1.5) and video == Mpeg4Settings()


@pytest.mark.parametrize(
    ("setting", "rmax_bps"),
    [("", 3e6), ("[nada]\nmax_rate_bps = 1.5e6\n", 1.5e6), ("[nada]\nmaximum_rate_bps = 5e6\n", 5e6)],
)
def test_nada_takes_the_rfcs_greatest_rate_where_no_codec_names_one(tmp_path: Path, setting: str, rmax_bps: float) -> None:
    """[RFC 8698 sec 4.3] has 3 Mb/s then. The sender's link, of 2 Mb/s here, is no range of a codec."""
    settings = load(tmp_path, f'{HEAD}[[flows]]\nname = "n"\nkind = "nada"\n{setting}').flow("n").settings
    assert isinstance(settings, AlgorithmSettings)
    assert settings.parameters.max_rate_bps == rmax_bps and settings.parameters.min_rate_bps == 150e3


def test_a_tcp_window_counts_full_segments() -> None:
    # 1000 bytes, 40 of them headers and 12 the time stamp option.
    options = TcpSettings(max_window_packets=20, timer_granularity_s=0.1).network_options(4)
    assert options == {"timestamps": True, "max_window": 20 * 948, "timer_granularity_ns": 100_000_000, "rtt_estimator": "linux"}
    assert TcpSettings(max_window_packets=20, timestamps=False).network_options(4)["max_window"] == 20 * 960


def test_single_datagrams_have_gaps_and_sizes(tmp_path: Path) -> None:
    group = '[[flows]]\nname = "p"\nkind = "renewal"\nparameters = { rate_bps = 2e6, sizes = "exponential", mean_bytes = 300 }\n'
    assert load(tmp_path, HEAD + group).flow("p").settings == RenewalSettings(1000, 2e6, sizes="exponential", mean_bytes=300.0)
    for keys, message in (
        ('gaps = "pareto"', "shape: pareto gaps need one, above 1"),
        ("shape = 1.5", "of pareto gaps, above 1, and of no others"),
        ('gaps = "pareto", shape = 1.0', "above 1"),
        ('gaps = "normal"', "gaps"),
        ("mean_bytes = 0", "mean_bytes"),
        ("rate_bps = -1", "rate_bps"),
    ):
        with pytest.raises(ConfigError, match=message):
            load(tmp_path, f'{HEAD}[[flows]]\nname = "p"\nkind = "renewal"\nparameters = {{ {keys} }}\n')


@pytest.mark.parametrize("name", kinds.TCP_PROFILES)
def test_a_profile_is_of_keys_that_tcp_has(name: str) -> None:
    settings = TcpSettings.of({"profile": name})
    assert all(getattr(settings, key) == value for key, value in kinds.TCP_PROFILES[name].items())
    assert settings.only_virtual() == ([] if name == "rfc" else ["profile"])


def test_a_key_that_is_set_lies_over_its_profile(tmp_path: Path) -> None:
    text = GOOD.replace("[tcp]", '[tcp]\nprofile = "fall-floyd-1996"\nmin_rto_s = 0.3\n').replace(
        "{ delayed_ack = false }", '{ profile = "stevens-1994" }'
    )
    sack, reno = (load(tmp_path, text).flow(n).settings for n in ("s", "r"))
    assert (reno.sack_recovery, reno.timer_granularity_s, reno.timestamps, reno.min_rto_s) == ("sack1", 0.1, False, 0.3)
    # The group has another profile; the family's own key lies over that one, too.
    assert (sack.sack_recovery, sack.timer_granularity_s, sack.avoid_multiple_fast_retransmits, sack.min_rto_s) == (None, 0.5, False, 0.3)
    options = reno.network_options(4)
    assert (options["min_rto_ns"], options["rtt_estimator"], options["hold_ssthresh"]) == (300_000_000, "ticks", False)
    assert reno.only_virtual() == ["profile"] and sack.only_virtual() == ["profile", "max_window_packets"]


def test_start_jitter_is_drawn_from_the_seed(tmp_path: Path) -> None:
    starts = [load(tmp_path, seed=seed).flow("r").start_s for seed in (1, 1, 2)]
    assert starts[0] == starts[1] != starts[2]
    assert all(2.0 <= s <= 5.0 for s in starts)


def test_changes_are_by_time_with_the_port_that_sends(tmp_path: Path) -> None:
    experiment = load(tmp_path)
    assert [(c.at_s, node, port) for c, node, port in experiment.changes] == [(10.0, "h1", 0), (20.0, "s1", 1)]
    bottleneck = experiment.topology.ports()["s1"][0]
    assert experiment.link_rates_bps(bottleneck) == [(0.0, 1e6), (20.0, 5e5)]
    # A shorter run leaves out what comes later.
    assert [c.at_s for c, _, _ in load(tmp_path, duration_s=15.0).changes] == [10.0]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "initial_rate_bps = 50_000",
            "inital_rate_bps = 50_000",
            "e.toml:<inital_rate_bps>: als.inital_rate_bps: unknown key of als; did you mean 'initial_rate_bps'?",
        ),
        (
            "initial_rate_bps = 50_000",
            "initial_rate_bps = -1",
            "e.toml:<initial_rate_bps = -1>: als.initial_rate_bps: initial_rate_bps = -1.0: must be positive and finite",
        ),
        ("initial_rate_bps = 50_000", 'initial_rate_bps = "fast"', "e.toml:<fast>: als.initial_rate_bps: expected a number, got 'fast'"),
        (
            "{ initial_rate_bps = 70_000.0,",
            "{ min_rate_bps = 2e9,",
            "e.toml:<min_rate_bps>: flows[1].parameters.min_rate_bps: min_rate_bps = 2000000000.0 is above",
        ),
        ("{ initial_rate_bps = 70_000.0,", "{ air = 1,", "e.toml:<parameters = { air = 1>: flows[1].parameters.air: unknown key of als; "),
        (
            "packet_bytes = 800",
            "packet_bytes = 8",
            "e.toml:<packet_bytes = 8>: flows[1].packet_bytes: must be 56 to 9000 bytes, IP header included, got 8",
        ),
        (
            "packet_bytes = 600",
            'profile = "stevens"',
            "e.toml:<profile>: tcp.profile: expected one of 'rfc', 'stevens-1994', 'fall-floyd-1996', got 'stevens'",
        ),
        (
            "packet_bytes = 600",
            'sack_recovery = "rfc3517"',
            "e.toml:<sack_recovery>: tcp.sack_recovery: expected one of 'rfc6675', 'sack1', got 'rfc3517'",
        ),
        (
            "packet_bytes = 600",
            'loss_detection = "fack"',
            "e.toml:<loss_detection>: tcp.loss_detection: expected one of 'dupack', 'rack', got 'fack'",
        ),
        (
            "packet_bytes = 600",
            'loss_detection = "rack"',
            "e.toml:<loss_detection>: tcp.loss_detection: RACK needs selective acknowledgements, as tcp-sack, tcp-cubic, tcp-dctcp, tcp-prague, tcp-bbr have; give tcp-reno",
        ),
        (
            "max_window_packets = 20",
            'loss_detection = "rack"\nsack_recovery = "sack1"',
            "e.toml:<loss_detection>: tcp-sack.loss_detection: RACK has its own loss recovery: set sack_recovery",
        ),
        (
            "packet_bytes = 600",
            "packet_bytes = 60",
            "e.toml:<packet_bytes = 60>: tcp.packet_bytes: must be 100 to 9000 bytes, IP header included, got 60",
        ),
        (
            "max_window_packets = 20",
            "max_window = 20",
            "e.toml:<max_window>: tcp-sack.max_window: unknown key of tcp-sack; did you mean 'max_window_packets'?",
        ),
        (
            "delayed_ack = false",
            "sending_jitter_s = -0.001",
            "e.toml:<sending_jitter_s>: flows[2].parameters.sending_jitter_s: must not be negative, got -0.001 s",
        ),
        (
            "delayed_ack = false",
            "sending_jitter_s = 1e12",
            "e.toml:<sending_jitter_s>: flows[2].parameters.sending_jitter_s: at most 1e+06 s, got 1e+12 s",
        ),
        ("delayed_ack = false", "delayed_ack = 1", "e.toml:<delayed_ack>: flows[2].parameters.delayed_ack: expected true or false, got 1"),
        (
            "shape = 1.5",
            "shape = 0.5",
            "e.toml:<shape>: flows[4].parameters.shape: Pareto periods with a finite mean need a shape above 1, got 0.5",
        ),
        (
            'kind = "mpeg4"',
            'kind = "mpeg"',
            "e.toml:<mpeg>: flows[5].kind: unknown flow kind 'mpeg'; did you mean 'mpeg4'? (a kind of your own: --algorithm FILE.py",
        ),
        ("[als]", "[alss]", "e.toml:<alss>: alss: unknown key; did you mean 'als'?"),
        (
            "stop_s = 20.0",
            "stop_s = 4.0",
            "e.toml:<stop_s>: flows[3].stop_s: the last of 1 flows may start as late as 5 s, but flows stop at 4 s",
        ),
        (
            "start_jitter_s = 3.0",
            "start_jitter_s = 30.0",
            "e.toml:<stop_s>: flows[3].stop_s: the last of 1 flows may start as late as 32 s",
        ),
        (
            "stop_s = 20.0\nstart_jitter_s = 3.0",
            "start_jitter_s = 30.0",
            "e.toml:<start_jitter_s>: flows[3].start_jitter_s: the last of 1 flows starts at 32 s, after",
        ),
        ("at_s = 20.0", "at_s = 30.0", "e.toml:<at_s = 30.0>: changes[0].at_s: 30 s is after the run's end at 30 s"),
        ("at_s = 20.0", "at_s = -1.0", "e.toml:<at_s = -1.0>: changes[0].at_s: must not be negative, got -1 s"),
        (
            'link = "s1->s2"',
            'link = "s1->s3"',
            "e.toml:<s1->s3>: changes[0].link: no link 's1->s3', from one node to its neighbour; did you mean ",
        ),
        (
            "rate_bps = 500_000",
            "rate_bps = 0",
            "e.toml:<rate_bps = 0>: changes[0].rate_bps: a link of 0 bit/s never sends: give a positive rate",
        ),
        ("delay_s = 0.1", "delay_s = -0.1", "e.toml:<delay_s>: changes[1].delay_s: must not be negative, got -0.1 s"),
        ("delay_s = 0.1", "loss = 1", "e.toml:<loss>: changes[1].loss: must be a probability in [0, 1), got 1"),
        (
            "delay_s = 0.1",
            "",
            "e.toml:<[[changes]]\nat_s = 10.0>: changes[1]: nothing changes: give rate_bps, delay_s, loss, gemodel, jitter_s, jitter_std_s, reorder,",
        ),
        ("delay_s = 0.1", 'switch = "s1"', "e.toml:<[[changes]]\nat_s = 10.0>: changes[1]: give either link or switch"),
        ("delay_s = 0.1", "als = true", "e.toml:<als =>: changes[1].als: belongs to a switch: give switch instead of link"),
        ('link = "s1->s2"\n', "", "e.toml:<[[changes]]\nat_s = 20.0>: changes[0]: give either link or switch"),
        (
            'link = "s1->s2"',
            'switch = "s1"',
            "e.toml:<switch>: changes[0].switch: only als of a switch can change: give als = true or als = false, and no key",
        ),
        (
            'link = "s1->s2"\nrate_bps = 500_000',
            'switch = "s1"',
            "e.toml:<switch>: changes[0].switch: only als of a switch can change: give als = true",
        ),
        (
            'link = "s1->s2"\nrate_bps = 500_000',
            'switch = "h1"\nals = true',
            "e.toml:<switch>: changes[0].switch: no switch 'h1'; known: s1, s2",
        ),
        (
            "[als]\n",
            '[control]\nplain_switches = ["s1", "s3"]\n[als]\n',
            "e.toml:<plain_switches>: control.plain_switches[1]: no switch 's3'; known: s1, s2",
        ),
    ],
)
def test_bad_settings_are_refused_with_file_line_and_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, text)
    assert numbered(message, text) in str(refused.value)


@pytest.mark.parametrize(
    ("link", "discipline", "red"),
    [
        ("{ rate_bps = 1000000 }", "droptail", False),
        ('{ rate_bps = 1000000, queue = "red" }', "red", True),
        ("{ rate_bps = 1000000, red = { minimum = 0.5 } }", "red", True),
        ('{ rate_bps = 1000000, queue = "droptail", red = { minimum = 0.5 } }', "droptail", False),
    ],
)
def test_the_queue_of_a_link(tmp_path: Path, link: str, discipline: str, red: bool) -> None:
    found = load(tmp_path, GOOD.replace("{ rate_bps = 1000000 }", link)).topology.links[0]
    assert (found.queue, found.aqm is not None and found.aqm.scheme.name == "red") == (discipline, red)


@pytest.mark.parametrize(
    ("link", "message"),
    [
        (
            'queue = "ared"',
            "queue: expected one of 'red', 'codel', 'pie', 'pi2', 'dualpi2', 'step', 'droptail', got 'ared'; for a queue management of your own, give its folder with --scheme FOLDER",
        ),
        ('framing = "ppp"', "topology.bottleneck.framing: expected one of 'ethernet', 'ip', got 'ppp'"),
        ("loss = 1.0", "topology.bottleneck.loss: must be a probability in [0, 1), got 1"),
        ("jitter_s = -0.1", "topology.bottleneck.jitter_s: must not be negative, got -0.1 s"),
        ("jitter_std_s = -0.1", "topology.bottleneck.jitter_std_s: must not be negative, got -0.1 s"),
        (
            "jitter_s = 0.1, jitter_std_s = 0.1",
            "topology.bottleneck.jitter_std_s: jitter is uniform up to jitter_s, or Gaussian of jitter_std_s",
        ),
        (
            'jitter_std_s = 0.1, trace = "cellular-walk.mahi"',
            "topology.bottleneck.jitter_std_s: keeps frames apart at the link's rate, which a trace",
        ),
        (
            "loss = 0.1, gemodel = { p = 0.1, r = 0.2 }",
            "topology.bottleneck.gemodel: frames are lost in bursts, or each frame alike by 'loss'",
        ),
        ("gemodel = { p = 0.1, r = 0.0 }", "topology.bottleneck.gemodel.r: must be a probability in (0, 1], got 0"),
        ("gemodel = { p = 0.1 }", "topology.bottleneck.gemodel: missing key 'r'"),
        ("gemodel = { p = 0.1, r = 0.2, loss_good = 1.0 }", "topology.bottleneck.gemodel.loss_good: every frame is lost"),
        ("gemodel = { p = 0.1, r = 0.2, h = 1.0 }", "topology.bottleneck.gemodel.h: unknown key"),
        ("reorder = 0.1", "topology.bottleneck.reorder: frames that are held back need a time: give 'reorder_delay_s' as well"),
        ("reorder = 0.1, reorder_delay_s = -1.0", "topology.bottleneck.reorder_delay_s: must be in [0, "),
        ("duplicate = 1.1", "topology.bottleneck.duplicate: must be a probability in [0, 1], got 1.1"),
        ("corrupt = -0.1", "topology.bottleneck.corrupt: must be a probability in [0, 1], got -0.1"),
        ("back = { delay = 0.1 }", "topology.bottleneck.back.delay: unknown key; did you mean 'delay_s'?"),
        ("back = { delay_s = -1.0 }", "topology.bottleneck.back: delay_s: must not be negative, got -1 s"),
        ("back = { reorder = 0.1 }", "topology.bottleneck.back: reorder: frames that are held back need a time"),
        (
            'trace = "cellular-walk.mahi", trace_back = "cellular-drive.mahi", back = { rate_bps = 1e6 }',
            "topology.bottleneck.trace_back: 'back' says what the way back has",
        ),
    ],
)
def test_links_that_cannot_be(tmp_path: Path, link: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, GOOD.replace("{ rate_bps = 1000000 }", f"{{ rate_bps = 1000000, {link} }}"))
    assert message in str(refused.value)


LAYERED = (
    GOOD[: GOOD.index("[als]")]
    + """\
[[flows]]
name = "l"
kind = "als-layered"
hosts = [["h1", "h9", "h10", "h11"]]
receiver_start_s = [20.0, 0.0, 0.0]
"""
)


def test_a_layered_flow_has_several_receivers_that_join_in_their_own_time(tmp_path: Path) -> None:
    (flow,) = load(tmp_path, LAYERED).flows
    assert (flow.sender, flow.all_receivers, flow.receiver_start_s) == ("h1", ("h9", "h10", "h11"), (20.0, 0.0, 0.0))
    (together,) = load(tmp_path, LAYERED.replace("receiver_start_s = [20.0, 0.0, 0.0]", "start_s = 1.0")).flows
    assert together.receiver_start_s == (1.0, 1.0, 1.0)


def test_receivers_can_be_given_by_number(tmp_path: Path) -> None:
    (flow,) = load(tmp_path, LAYERED.replace('hosts = [["h1", "h9", "h10", "h11"]]', "receivers = 3")).flows
    assert (flow.sender, flow.all_receivers, flow.receiver_start_s) == ("h1", ("h2", "h3", "h4"), (20.0, 0.0, 0.0))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("als-layered", "als", "flows[0].hosts[0]: als has one receiver, got 3"),
        ('"h10", ', '"h9", ', "flows[0].hosts[0]: a receiver is named twice"),
        ('"h10", ', '"h1", ', "flows[0].hosts[0]: h1 cannot send to itself"),
        ('"h10", ', "", "flows[0].receiver_start_s: 3 times, but another number of receivers in hosts"),
        ('["h1", "h9", "h10", "h11"]', '["h1"]', "flows[0].receiver_start_s: 3 times"),
        ('hosts = [["h1", "h9", "h10", "h11"]]', "receivers = 2", "flows[0].receiver_start_s: 3 times for 2 receivers"),
        (
            'hosts = [["h1", "h9", "h10", "h11"]]\nreceiver_start_s = [20.0, 0.0, 0.0]',
            "receivers = 99",
            "flows[0].receivers: 99 receivers and a sender on",
        ),
        (
            "receiver_start_s =",
            "receivers = 3\nreceiver_start_s =",
            "flows[0].receivers: give at least 1, for one flow and without hosts; got 3",
        ),
        ("20.0", "31.0", "flows[0].receiver_start_s: a receiver joins at 31 s, after the run's end at 30 s"),
    ],
)
def test_receivers_that_cannot_be(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, LAYERED.replace(old, new, 1))
    assert message in str(refused.value)


def _arguments(experiment: Experiment, flow: Flow) -> dict[str, tuple[str, ...]]:
    """Of each end, what its program is told."""
    hosts = addressing.assign(experiment.topology).hosts
    made = flows.programs(flow, hosts, Timing(1000.0, 1030.0), 1, {"sender": "s.jsonl", "receiver": "r.jsonl"})
    return {program.name: program.argv for program in made}


def test_processes_are_told_what_the_experiment_sets(tmp_path: Path) -> None:
    from fairlane.hosts import agent

    experiment = load(tmp_path)
    for name in ("a", "b"):
        flow = experiment.flow(name)
        argv = _arguments(experiment, flow)[f"{name}.sender"]
        given = agent.build_parser().parse_args(argv[argv.index("--role") :])
        assert (given.algorithm, given.packet_bytes, given.max_rate) == ("als", flow.settings.packet_bytes, flow.settings.maximum_rate_bps)
        assert agent.algorithm_parameters(given.algorithm, given.max_rate, given.packet_bytes, given.param) == flow.settings.parameters
    for name in ("o", "m"):
        flow = experiment.flow(name)
        for argv in _arguments(experiment, flow).values():
            given = agent.build_parser().parse_args(argv[argv.index("--role") :])
            assert (given.algorithm, given.packet_bytes, given.source) == ("none", flow.settings.packet_bytes, flows.source(flow.settings))
    argv = _arguments(experiment, experiment.flow("r"))["r.sender"]
    assert argv[argv.index("--stop-at") + 1] == "1020.000000"


def test_what_processes_cannot_be_is_said(tmp_path: Path) -> None:
    experiment = load(tmp_path)
    reasons = {f.name: flows.obstacle(f) for f in experiment.flows}
    assert reasons == {"a": None, "b": None, "r": None, "s": "the kernel's TCP cannot be given max_window_packets", "o": None, "m": None}


def test_each_host_has_the_kernel_of_its_flows(tmp_path: Path) -> None:
    base = [
        ("net.ipv4.tcp_dsack", "0"),
        ("net.ipv4.tcp_recovery", "0"),
        ("net.ipv4.tcp_early_retrans", "0"),
        ("net.ipv4.tcp_no_metrics_save", "1"),
    ]

    def of(kind: str, **values: object) -> flows.HostTcp:
        text = (
            HEAD
            + f"""
[[flows]]
name = "one"
kind = "{kind}"
parameters = {{ {", ".join(f"{k} = {str(v).lower()}" for k, v in values.items())} }}

[[flows]]
name = "other"
kind = "als"
"""
        )
        experiment = load(tmp_path, text)
        found = flows.host_tcp(experiment)
        assert set(found) == {"h1", "h9"} and found["h1"] == found["h9"]
        return found["h1"]

    assert dict(s.split("=") for s in of("tcp-reno").sysctls) == {"net.ipv4.tcp_sack": "0", **dict(base)}
    small = of("tcp-sack", packet_bytes=100, timestamps=False, delayed_ack=False, min_rto_s=0.2)
    assert dict(s.split("=") for s in small.sysctls) == {"net.ipv4.tcp_sack": "1", **dict(base), "net.ipv4.tcp_timestamps": "0"}
    assert small.route == ("advmss", "60", "quickack", "1", "rto_min", "200ms")
    assert "net.ipv4.tcp_ecn=1" in of("tcp-reno", ecn=True).sysctls
    assert "net.ipv4.tcp_ecn=1" in of("tcp-dctcp").sysctls
    assert "net.ipv4.tcp_ecn=3" in of("tcp-prague").sysctls
    assert of("tcp-reno", paper_reno=False) == flows.HostTcp((), ())
    with pytest.raises(ValueError, match="reno and sack set TCP differently, and both are at h1"):
        text = (
            HEAD
            + """
[[flows]]
name = "reno"
kind = "tcp-reno"
hosts = [["h1", "h9"]]

[[flows]]
name = "sack"
kind = "tcp-sack"
hosts = [["h1", "h10"]]
"""
        )
        flows.host_tcp(load(tmp_path, text))


def test_a_source_may_stand_above_an_algorithm(tmp_path: Path) -> None:
    text = GOOD.replace("{ initial_rate_bps = 70_000.0,", '{ source = { kind = "mpeg4", rate_scale = 0.5 },')
    flow = load(tmp_path, text).flow("b")
    assert (flow.settings.source.kind, flow.settings.source.rate_scale, flow.settings.source.buffer_packets) == ("mpeg4", 0.5, 100)
    assert flows.obstacle(flow) is None
    for old, new, message in (
        ('"mpeg4", rate', '"mpeg2", rate', "flows[1].parameters.source.kind: expected one of"),
        ("rate_scale = 0.5", "rate_scale = 0", "flows[1].parameters.source.rate_scale: must be positive"),
        ("rate_scale = 0.5", "scale = 0.5", "flows[1].parameters.source.scale: unknown key; did you mean 'rate_scale'?"),
    ):
        with pytest.raises(ConfigError) as refused:
            load(tmp_path, text.replace(old, new, 1))
        assert message in str(refused.value)


def test_every_kind_has_a_summary_and_two_kinds_that_look_alike_differ_in_line() -> None:
    for kind in kinds.names():
        assert kinds.summary(kind)
    looks = [(palette.of_kind(kind), palette.line(kind)) for kind in palette.OF_KIND]
    assert len(set(looks)) == len(looks)
    assert palette.of_kind("a-students-own") == palette.of_kind("a-students-own")

"""The fabric in virtual time: the same experiment, program, controller and algorithms, the same result in every run."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairlane import specs
from fairlane.cli import app
from fairlane.errors import Refusal
from fairlane.experiments import loader
from fairlane.fabrics import targets, virtual_fabric
from fairlane.fabrics.progress import Silent
from fairlane.inputs.located_toml import ConfigError
from fairlane.results import metrics, series, shares
from tests.fabrics import two_hosts

pytestmark = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")


def run(folder: Path, name: str = "als-3", duration_s: float = 20.0, seed: int = 1, **options):
    """Run an experiment; (experiment, outcome), its raw records in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    experiment = loader.load(loader.find(name), duration_s, seed)
    return experiment, virtual_fabric.run(experiment, virtual_fabric.Options(targets.compiler(), **options), folder, Silent())


def digests(folder: Path) -> dict[str, str]:
    """Of every raw record; the controller's configuration names files by their place."""
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.iterdir())}


def digests_of_run(folder: str, seed: int) -> dict[str, str]:
    run(Path(folder), duration_s=10.0, seed=seed)
    return digests(Path(folder))


def test_als_shares_the_dumbbell(tmp_path: Path) -> None:
    experiment, outcome = run(tmp_path, duration_s=60.0)
    recorded = series.load(tmp_path, experiment, outcome.timing)
    figures = metrics.compute(recorded)
    broken = [c for c in figures.checks if not c.holds]
    assert not broken
    assert all(f.sent_packets > 0 and f.goodput_bps > 0.5e6 for f in figures.flows)


def test_the_records_are_the_same_in_every_run_and_with_any_number_of_workers(tmp_path: Path) -> None:
    jobs = [(str(tmp_path / f"{workers}-{seed}-{n}"), seed) for workers in (1, 2) for seed in (1, 2) for n in (0, 1)]
    found: dict[str, dict[str, str]] = {}
    for workers in (1, 2):
        mine = [job for job in jobs if Path(job[0]).name.startswith(f"{workers}-")]
        with ProcessPoolExecutor(workers) as pool:
            for (folder, _), result in zip(mine, pool.map(digests_of_run, *zip(*mine))):
                found[Path(folder).name] = result
    for seed in (1, 2):
        first = found[f"1-{seed}-0"]
        assert len(first) > 15
        assert all(found[f"{workers}-{seed}-{n}"] == first for workers in (1, 2) for n in (0, 1))
    assert found["1-1-0"]["s1.csv"] != found["1-2-0"]["s1.csv"], "another seed must be another run"


def test_captures_are_read_by_scapy_with_virtual_timestamps(tmp_path: Path) -> None:
    scapy = pytest.importorskip("scapy.all")
    _, outcome = run(tmp_path / "raw", duration_s=6.0, pcap=tmp_path / "pcap")
    names = {p.name for p in (tmp_path / "pcap").iterdir()}
    assert {"s1-s2.pcap", "s2-s1.pcap", "h1-s1.pcap", "s1-h1.pcap"} <= names
    frames = scapy.rdpcap(str(tmp_path / "pcap" / "s1-s2.pcap"))
    assert len(frames) > 1000
    times = [float(f.time) for f in frames]
    assert times == sorted(times) and times[0] >= outcome.timing.begin_s
    # Checksums as a receiver would check them.
    for frame in frames[:300]:
        rebuilt = frame.copy()
        del rebuilt[scapy.IP].chksum
        layer = next((x for x in (scapy.TCP, scapy.UDP) if frame.haslayer(x)), None)
        if layer is not None and frame[layer].chksum:
            del rebuilt[layer].chksum
        rebuilt = scapy.Ether(bytes(rebuilt))
        assert rebuilt[scapy.IP].chksum == frame[scapy.IP].chksum
        if layer is not None:
            assert rebuilt[layer].chksum == frame[layer].chksum


def test_rtcp_of_the_network_reads_back(tmp_path: Path) -> None:
    from fairlane.native import emit_rtcp, parse_rtcp

    scapy = pytest.importorskip("scapy.all")
    run(tmp_path / "raw", duration_s=16.0, pcap=tmp_path / "pcap")
    compounds = {"there": [], "back": []}
    for name, frames in compounds.items():
        link = "s1-s2" if name == "there" else "s2-s1"
        for frame in scapy.rdpcap(str(tmp_path / "pcap" / f"{link}.pcap")):
            if frame.haslayer(scapy.UDP) and frame[scapy.UDP].dport % 2:
                frames.append(frame)
    assert len(compounds["there"]) > 5 and len(compounds["back"]) > 3
    for frame in compounds["there"]:
        assert bytes(frame[scapy.IP])[20:24] == bytes.fromhex("94040000") and frame[scapy.UDP].chksum == 0
    for name, frames in compounds.items():
        for frame in frames:
            payload = bytes(frame[scapy.UDP].payload)
            compound = parse_rtcp(payload)
            assert emit_rtcp(specs.Compound(**compound)) == payload
            if name == "there":
                assert compound["from_sender"] is not None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("delay_s = 0.005", "delay_s = -0.005", "delay_s"),
        ("rate_bps = 10_000_000", "rate_bps = 0", "rate_bps"),
        ('kind = "tcp-reno"', 'kind = "tcp-renno"', "tcp-reno"),
        ('bottleneck = "s1->s2"', 'bottleneck = "s1->s7"', "s1->s7"),
        ("start_s = 0.0", "start_s = -1.0", "start_s"),
        ("start_s = 0.0", "start_s = 100.0", "after the run's end"),
        ("join_interval_s = 3.0", "join_interval_s = 30.0", "after the run's end"),
    ],
)
def test_what_cannot_be_is_refused_by_file_and_key(tmp_path: Path, old: str, new: str, said: str) -> None:
    base = (loader.FOLDER / "_rate_feedback.toml").read_text()
    text = (loader.FOLDER / "als-3.toml").read_text()
    assert old in base + text
    (tmp_path / "_rate_feedback.toml").write_text(base.replace(old, new))
    path = tmp_path / "bad.toml"
    path.write_text(text.replace(old, new))
    with pytest.raises(ConfigError) as refusal:
        loader.load(path)
    assert ".toml" in str(refusal.value) and said in str(refusal.value)
    assert not list(tmp_path.glob("raw*"))


def test_the_command_line_refuses_what_virtual_time_has_not(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["run", "als-3", "--target", "bmv2", "--out", str(tmp_path / "r")])
    assert isinstance(result.exception, Refusal) and "--fabric mininet" in str(result.exception)
    assert not (tmp_path / "r").exists()


def test_an_algorithm_that_fails_ends_the_run_with_its_own_exception(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fairlane.hosts.algorithms.als import AlsSender

    def fail(self, now_s, feedback, rng):
        raise ZeroDivisionError("a student's mistake")

    monkeypatch.setattr(AlsSender, "on_feedback", fail)
    with pytest.raises(ZeroDivisionError, match="a student's mistake"):
        run(tmp_path)


def wire(tmp_path: Path, seed: int = 1, **link):
    return two_hosts.wire(two_hosts.program(tmp_path), seed, **link)


def test_a_window_algorithm_in_python_is_told_of_acks_and_losses(tmp_path: Path) -> None:

    from fairlane.hosts.algorithms import base

    class Window(base.Sender):
        interests = base.Interests(acks=base.AckDetail.EVERY)

        def __init__(self):
            self.window, self.acked, self.lost = 2.0, 0, 0

        def on_start(self, now_s, rng):
            return (base.SetWindow(self.window), base.SetLossTimeout(1.0), base.SetTimer("look", now_s + 1.0))

        def on_ack(self, now_s, ack, rng):
            assert ack.path.srtt_s > 0 and ack.path.highest_acked_sequence >= 0
            self.acked += ack.newly_acked_packets
            self.window += ack.newly_acked_packets / self.window
            return (base.SetWindow(self.window),)

        def on_loss(self, now_s, loss, rng):
            assert loss.cause in (base.LossCause.GAP, base.LossCause.TIMEOUT)
            self.lost += loss.lost_packets
            self.window = max(1.0, self.window / 2)
            return (base.SetWindow(self.window), base.Note("halved", (("window", self.window),)))

        def on_timer(self, now_s, timer, rng):
            assert timer.path.in_flight_packets >= 0
            return (base.SetTimer("look", now_s + 1.0),)

    network = wire(tmp_path, rate_bps=2_000_000, delay_ns=5_000_000, queue_packets=20)
    sender = Window()
    two_hosts.add(network, "w", sender, base.Receiver(), stop_ns=20 * 10**9)
    network.run_until(21 * 10**9)
    sent, received = network.take_flow_logs("w")
    last = [fields for _, kind, fields in received if kind == "data"][-1]
    assert sender.lost > 0 and any(kind == "halved" for _, kind, _ in sent)
    assert abs(last["received_packets"] - sender.acked) < 60
    assert 0.7 < last["received_bytes"] * 8 / 20 / 2e6 <= 1.0


def test_an_action_that_the_network_does_not_carry_out_is_named(tmp_path: Path) -> None:

    from fairlane.hosts.algorithms import base

    class Layered(base.Sender):
        def on_start(self, now_s, rng):
            return (base.SetRate(1e5), base.SetLayers(()))

    network = wire(tmp_path)
    two_hosts.add(network, "l", Layered(), base.Receiver(), stop_ns=10**9)
    with pytest.raises(RuntimeError, match="flow l: SetLayers"):
        network.run_until(10**9)


def test_sources_and_changes_of_a_link(tmp_path: Path) -> None:
    network = wire(tmp_path, rate_bps=10_000_000, loss=0.01, jitter_ns=100_000)
    second, made = 10**9, virtual_fabric.native.Application
    path = lambda name, port: specs.FlowPath(name, "h1", "h2", port, 0, 20 * second)
    network.add_source_flow(path("cbr", 6000), made.cbr(1_000_000), packet_bytes=500)
    network.add_source_flow(path("talk", 6002), made.on_off(500_000, 0.3, (0.6, 1.5)), packet_bytes=200)
    network.add_source_flow(path("video", 6004), made.mpeg4(), packet_bytes=1000)
    network.add_tcp_flow(specs.FlowPath("tcp", "h2", "h1", 6006, 0, 20 * second), specs.Tcp(flavour="cubic", packet_bytes=1000))
    network.schedule_rate(10 * second, "h2", 0, 1_000_000)
    network.run_until(21 * second)
    totals = {name: [f for _, kind, f in network.take_flow_logs(name)[1] if kind == "data"][-1] for name in ("cbr", "talk", "video")}
    # One link of the two on the way has the loss of each direction: 1% twice.
    assert 0.005 < totals["cbr"]["lost_packets"] / 5000 < 0.04
    assert all(total["received_packets"] > 100 for total in totals.values())
    delivered = {t: f["delivered_bytes"] for t, kind, f in network.take_flow_logs("tcp")[1] if kind == "tcp_data"}
    assert delivered[20 * second] - delivered[10 * second] < 0.15e6 * 10
    for bad in (
        lambda: network.schedule_rate(0, "h2", 0, 1),
        lambda: network.schedule_rate(30 * second, "h2", 0, 0),
        lambda: network.add_tcp_flow(path("x", 7000), specs.Tcp(flavour="vegas", packet_bytes=1000)),
        lambda: network.add_tcp_flow(path("x", 7000), specs.Tcp(flavour="sack", packet_bytes=1000, options={"windw": 1})),
        lambda: network.add_source_flow(specs.FlowPath("x", "h1", "h9", 7000, 0, 1), made.mpeg4(), packet_bytes=1000),
    ):
        with pytest.raises(ValueError):
            bad()


CHANGING = """\
title = "a link that changes"
bottleneck = "s1->s2"
duration_s = 16.0
[topology]
kind = "dumbbell"
pairs = 2
bottleneck = { rate_bps = 4_000_000, delay_s = 0.005, queue_packets = 50, queue = "%s"%s }
access = { rate_bps = 100_000_000 }
[[flows]]
name = "f"
kind = "cbr"
count = 2
parameters = { rate_bps = 1_500_000 }
[[changes]]
at_s = 6.0
link = "s1->s2"
rate_bps = 2_000_000
[[changes]]
at_s = 11.0
link = "s1->s2"
rate_bps = 6_000_000
delay_s = 0.105
"""


def measured(folder: Path, queue: str = "droptail", more: str = ""):
    """(series, figures, folder) of the experiment above."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "changing.toml"
    path.write_text(CHANGING % (queue, more))
    raw_folder = folder / "raw"
    raw_folder.mkdir()
    experiment = loader.load(path)
    outcome = virtual_fabric.run(experiment, virtual_fabric.Options(targets.compiler()), raw_folder, Silent())
    recorded = series.load(raw_folder, experiment, outcome.timing)
    return recorded, metrics.compute(recorded), raw_folder


def test_a_link_changes_for_packets_controller_and_shares_alike(tmp_path: Path) -> None:
    recorded, figures, folder = measured(tmp_path)
    sent = recorded.bottleneck.transmitted_bytes
    # 3 Mb/s offered: all of it, then what 2 Mb/s take, then all and the queue. Ethernet's 14 bytes count on the link.
    assert 8 * sent.over(2, 5) / 3 == pytest.approx(3e6 * 1014 / 1000, rel=0.01)
    assert 8 * sent.over(7, 10) / 3 == pytest.approx(2e6, rel=0.01)
    assert 8 * sent.over(12, 15) / 3 == pytest.approx(3e6 * 1014 / 1000, rel=0.01)
    # R_f = b U_l / n with b of its time, from the end of the interval that the change is in.
    fair = recorded.fair_rates[recorded.experiment.bottleneck]
    for time_s, rate_bps in ((5.5, 0.9 * 4e6 / 2), (9.5, 0.9 * 2e6 / 2), (14.5, 0.9 * 6e6 / 2)):
        assert next(r.rate_bps for r in reversed(fair) if r.time_s <= time_s) == pytest.approx(rate_bps)
    first = next(r for r in fair if r.time_s > 6.0)
    assert first.rate_bps == pytest.approx(0.9e6) and first.time_s < 7.1
    assert [shares.max_min_shares(recorded, t)["f-0"] for t in (5.0, 8.0, 13.0)] == [2e6, 1e6, 3e6]
    link = next(x for x in figures.links if x.name == "s1->s2")
    # Over 8 to 16 s: 3 s of 2 Mb/s and 5 s of 6 Mb/s.
    assert link.rate_bps == pytest.approx((3 * 2e6 + 5 * 6e6) / 8)
    # One way: 5 ms, then 105 ms.
    delays = [
        (r["t"] - recorded_begin(folder), r["delay_mean_s"])
        for r in map(json.loads, (folder / "f-0.receiver.jsonl").read_text().splitlines())
        if r["kind"] == "data" and r["delay_mean_s"]
    ]
    assert all(0.105 < d < 0.115 for t, d in delays if t > 13)
    assert all(0.005 < d < 0.015 for t, d in delays if 1 < t < 5)


PLAIN = """\
title = "routers that learn ALS and forget it"
bottleneck = "s1->s2"
duration_s = 60.0
[control]
plain_switches = ["s1", "s2"]
[topology]
kind = "dumbbell"
pairs = 1
bottleneck = { rate_bps = 4_000_000, delay_s = 0.005, queue_packets = 50 }
access = { rate_bps = 100_000_000 }
[als]
initial_rate_bps = 200_000.0
maximum_rate_bps = 50_000_000.0
[[flows]]
name = "f"
kind = "als"
[[changes]]
at_s = 20.0
switch = "s1"
als = true
[[changes]]
at_s = 40.0
switch = "s1"
als = false
"""


def test_a_plain_switch_leaves_control_packets_as_they_are_until_it_learns_als(tmp_path: Path) -> None:
    path = tmp_path / "plain.toml"
    path.write_text(PLAIN)
    raw_folder = tmp_path / "raw"
    raw_folder.mkdir()
    experiment = loader.load(path)
    outcome = virtual_fabric.run(experiment, virtual_fabric.Options(targets.compiler()), raw_folder, Silent())
    recorded = series.load(raw_folder, experiment, outcome.timing)
    told = {
        when: {r for t, r in recorded.flows[0].controls if start < t < end}
        for when, start, end in (("before", 0, 20), ("while", 20.1, 40), ("after", 40.1, 60))
    }
    # R_f = 0.9 x 4 Mb/s for one connection: the count of the interval before is there at once.
    assert told == {"before": {50e6}, "while": {3.6e6}, "after": {50e6}}
    # DAA's steps of 50 kb/s; R_d and more while a router answers; then steps again, from the rate in use.
    rates = [(t, r) for t, r in recorded.flows[0].sending_rate]
    assert max(r for t, r in rates if t < 20) <= 200e3 + 4 * 50e3
    assert 3.6e6 < max(r for t, r in rates if 30 < t < 40) < 3.8e6
    assert all(r < 4.2e6 for t, r in rates)
    # Connections are counted all the time, and nothing is said of a limit that nobody told.
    assert metrics.desired_rate_within_fair_rate_fraction(recorded, metrics.compute(recorded)) == 1.0


def recorded_begin(folder: Path) -> float:
    """When the first sender began, in the records' time."""
    return next(r["t"] for r in map(json.loads, (folder / "f-0.sender.jsonl").read_text().splitlines()) if r["kind"] == "start")


def test_red_drops_before_the_queue_is_full_and_droptail_does_not(tmp_path: Path) -> None:
    drops = {}
    for queue in ("droptail", "red"):
        recorded, _, _ = measured(tmp_path / queue, queue)
        drops[queue] = {cause: round(steps.over(0, 11)) for cause, steps in recorded.bottleneck.drops.items()}
    assert drops["droptail"]["tail"] > 100 and "red_early" not in drops["droptail"]
    assert drops["red"]["red_early"] > 100


def test_a_rate_may_count_datagrams_alone(tmp_path: Path) -> None:
    # 3 Mb/s of datagrams on 2 Mb/s: 2 Mb/s of them arrive, and the link is full, not 1.4% more than that.
    recorded, _, _ = measured(tmp_path, more=', framing = "ip"')
    assert 8 * sum(f.received.over(7, 10) for f in recorded.flows) / 3 == pytest.approx(2e6, rel=0.01)
    assert 8 * recorded.bottleneck.transmitted_bytes.over(7, 10) / 3 == pytest.approx(2e6, rel=0.01)


def test_links_lose_and_jitter_as_they_are_told(tmp_path: Path) -> None:
    recorded, _, folder = measured(tmp_path, more=", loss = 0.02, jitter_s = 0.001")
    lost, sent = (sum(getattr(f, name).over(0.5, 5.5) for f in recorded.flows) for name in ("lost", "sent"))
    assert 0.01 < lost / sent < 0.03
    spread = [r["delay_max_s"] for r in map(json.loads, (folder / "f-0.receiver.jsonl").read_text().splitlines()) if r["kind"] == "data"][
        10:40
    ]
    assert max(spread) - min(spread) > 0.0001


JITTER = """\
title = "a packet each 50 ms"
bottleneck = "s1->s2"
duration_s = 200.0
[topology]
kind = "dumbbell"
pairs = 1
bottleneck = { rate_bps = 10_000_000, jitter_std_s = %s }
access = { rate_bps = 100_000_000 }
[[flows]]
name = "f"
kind = "cbr"
packet_bytes = 500
parameters = { rate_bps = 80_000.0 }
"""


def test_gaussian_jitter_in_a_run(tmp_path: Path) -> None:
    """No packet holds the next back: beside the run without jitter they are later by |N(0, 5 ms^2)|, at most 15 ms, 0.797 x 5 ms on average
    [RFC 8868 sec 4.5.3]; the same seed gives the same run, another one another."""

    def delays_s(std_s: str, seed: int = 1) -> tuple[float, float]:
        folder = tmp_path / f"{std_s}-{seed}"
        folder.mkdir(exist_ok=True)
        (folder / "e.toml").write_text(JITTER % std_s)
        virtual_fabric.run(loader.load(folder / "e.toml", seed=seed), virtual_fabric.Options(targets.compiler()), folder, Silent())
        data = [r for r in map(json.loads, (folder / "f.receiver.jsonl").read_text().splitlines()) if r["kind"] == "data"]
        some = [r for r in data if r["packets"]]
        return sum(r["delay_mean_s"] * r["packets"] for r in some) / data[-1]["received_packets"], max(r["delay_max_s"] for r in some)

    plain, jittered, again, other = delays_s("0.0"), delays_s("0.005"), delays_s("0.005"), delays_s("0.005", seed=2)
    assert jittered[0] - plain[0] == pytest.approx(0.797 * 0.005, rel=0.04)
    assert 0.012 < jittered[1] - plain[1] <= 0.015 + 1e-6
    assert jittered == again != other


def test_a_link_begins_to_lose(tmp_path: Path) -> None:
    path = tmp_path / "e.toml"
    path.write_text(CHANGING.replace("rate_bps = 2_000_000", "loss = 0.1", 1) % ("droptail", ""))
    experiment = loader.load(path)
    outcome = virtual_fabric.run(experiment, virtual_fabric.Options(targets.compiler()), tmp_path, Silent())
    recorded = series.load(tmp_path, experiment, outcome.timing)
    assert sum(f.lost.over(0, 5.9) for f in recorded.flows) == 0
    lost, sent = (sum(getattr(f, name).over(6.1, 10.9) for f in recorded.flows) for name in ("lost", "sent"))
    assert 0.07 < lost / sent < 0.13


def test_a_layered_flow_has_records_for_each_receiver(tmp_path: Path) -> None:
    text = CHANGING[: CHANGING.index("[[flows]]")] % ("red", "")
    text += '[[flows]]\nname = "l"\nkind = "als-layered"\nhosts = [["h1", "h3", "h4"]]\nreceiver_start_s = [0.0, 8.0]\n'
    (tmp_path / "e.toml").write_text(text)
    experiment = loader.load(tmp_path / "e.toml")
    outcome = virtual_fabric.run(experiment, virtual_fabric.Options(targets.compiler()), tmp_path, Silent())
    first, second = series.load(tmp_path, experiment, outcome.timing).flows
    assert [f.flow.name for f in (first, second)] == ["l@h3", "l@h4"]
    assert first.goodput.over(1, 7.5) > 0 and first.goodput.over(9, 15) > 0
    assert second.goodput.over(0, 7.9) == 0 < second.goodput.over(9, 15)
    assert second.active is not None and second.active[0] == pytest.approx(8.0)
    assert {p.name for p in tmp_path.glob("l.*")} >= {"l.sender.jsonl", "l.receiver-h3.jsonl", "l.receiver-h4.jsonl"}
    # A shortened run ends before the second would join.
    short = loader.load(tmp_path / "e.toml", duration_s=5.0)
    outcome = virtual_fabric.run(short, virtual_fabric.Options(targets.compiler()), tmp_path, Silent())
    first, second = series.load(tmp_path, short, outcome.timing).flows
    assert first.goodput.over(1, 4.5) > 0 and second.active is None


def test_flows_come_and_go_by_their_own_schedule(tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text(
        CHANGING % ("droptail", "") + '[[flows]]\nname = "x"\nkind = "on-off"\nstart_s = 2.0\nstop_s = 5.0\nhosts = [["h1", "h4"]]\n'
    )
    experiment = loader.load(tmp_path / "e.toml")
    outcome = virtual_fabric.run(experiment, virtual_fabric.Options(targets.compiler()), tmp_path, Silent())
    record = series.load(tmp_path, experiment, outcome.timing).flows[-1]
    assert record.active is not None and 2.0 <= record.active[0] < 4.0 and record.active[1] <= 5.1
    assert record.goodput.over(5.2, 16) == 0 < record.goodput.over(2, 5.2)


@pytest.mark.skipif(not hasattr(virtual_fabric.native, "Application"), reason="the module fairlane.native is an old one: make build")
def test_a_source_limits_a_sender_and_another_stands_alone(tmp_path: Path) -> None:
    """Video above TFRC, constant bit rate above ALS, and on-off datagrams, over a link with room for all."""
    text = CHANGING[: CHANGING.index("[[flows]]")] % ("droptail", "")
    groups = (
        ("v", "tfrc", '{ source = { kind = "mpeg4", rate_scale = 0.2 } }'),
        ("c", "als", '{ initial_rate_bps = 1e6, source = { kind = "cbr", rate_bps = 200_000 } }'),
    )
    text += "".join(f'[[flows]]\nname = "{name}"\nkind = "{kind}"\nparameters = {values}\n' for name, kind, values in groups)
    (tmp_path / "e.toml").write_text(text)
    experiment = loader.load(tmp_path / "e.toml")
    outcome = virtual_fabric.run(experiment, virtual_fabric.Options(targets.compiler()), tmp_path, Silent())
    recorded = series.load(tmp_path, experiment, outcome.timing)
    video, constant = recorded.flows
    # Of 1000 bytes 960 are payload; ALS allows 1 Mb/s and more, and sends no more than there is.
    assert 8 * constant.goodput.over(6, 15) / 9 == pytest.approx(200e3 * 0.96, rel=0.03)
    assert 20e3 < 8 * video.goodput.over(6, 15) / 9 < 1e6
    kinds = {json.loads(line)["kind"] for line in (tmp_path / "v.sender.jsonl").read_text().splitlines()}
    assert "application" in kinds
    # The last packet of a frame is smaller than the others.
    last = [r for r in map(json.loads, (tmp_path / "v.sender.jsonl").read_text().splitlines()) if r["kind"] == "sent"][-1]
    assert 68 * last["sent_packets"] < last["sent_bytes"] < 1000 * last["sent_packets"]


def test_records_that_are_not_needed_are_left_out_and_the_others_are_the_same(tmp_path: Path) -> None:
    needed = virtual_fabric.Needed(frozenset([("s1", 1)]), frozenset(("start", "data", "sent", "end")))
    experiment, _ = run(tmp_path / "all", duration_s=5.0)
    run(tmp_path / "some", duration_s=5.0, needed=needed)
    assert experiment.bottleneck == ("s1", 1)
    every, some = ({p.name: p.read_text().splitlines() for p in (tmp_path / name).glob("*.*")} for name in ("all", "some"))
    assert some["controller.csv"] == every["controller.csv"]
    assert some["s1.csv"] == [line for line in every["s1.csv"] if line.split(",")[2] in ("port", "1")] and len(some["s1.csv"]) > 10
    assert some["s2.csv"] == every["s2.csv"][:1]
    for name in ("als-0.sender.jsonl", "als-0.receiver.jsonl", "tcp-0.sender.jsonl", "tcp-0.receiver.jsonl"):
        kept = [line for line in every[name] if json.loads(line)["kind"] in needed.kinds]
        assert some[name] == kept and kept, name
    assert len(some["als-0.sender.jsonl"]) < len(every["als-0.sender.jsonl"])

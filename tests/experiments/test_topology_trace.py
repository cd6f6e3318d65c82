"""Traces: both formats, what is refused, means by hand, and where an experiment finds them."""

from __future__ import annotations

import bisect
import dataclasses
import json
import random
from itertools import pairwise
from pathlib import Path

import pytest

from fairlane import specs
from fairlane.experiments import loader
from fairlane.fabrics import control_plane, link_plans, raw, targets, virtual_fabric
from fairlane.fabrics.progress import Silent
from fairlane.inputs.located_toml import ConfigError
from fairlane.live import restore
from fairlane.topologies import trace
from fairlane.topologies.trace import FOLDER, TraceError, parse

needs_network = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")

EXPERIMENT = """title = "t"
bottleneck = "s1->s2"
duration_s = 10.0

[topology]
kind = "dumbbell"
pairs = 1

[topology.bottleneck]
trace = "TRACE"
delay_s = 0.01
queue_packets = 50
framing = "ip"

[topology.access]
rate_bps = 100_000_000

[[flows]]
name = "f"
kind = "cbr"
packet_bytes = 1500

[cbr]
rate_bps = 8_000_000
"""


def load(folder: Path, file: str, text: str | None = None, more: str = ""):
    if text is not None:
        (folder / file).write_text(text)
    path = folder / "e.toml"
    path.write_text(EXPERIMENT.replace("TRACE", file) + more)
    return loader.load(path)


def test_means_by_hand() -> None:
    # Opportunities at 0, 100, 100, 400 | 400, 500, 500, 800 | ... ms: ten a second or less, 12,000 bits each.
    opportunities = parse("0\n100\n100\n400\n", "t")
    assert opportunities.mean_bps() == 4 * 12_000 / 0.4
    # Up to and at 0.4 s: all four, and the first of the next round.
    assert opportunities.mean_bps(0.0, 0.4) == pytest.approx(4 * 12_000 / 0.4)
    assert opportunities.mean_bps(0.4, 0.6) == pytest.approx(2 * 12_000 / 0.2)
    rates = parse("# a comment\ntime_s,rate_bps\n0,1e6\n\n2,0\n3,4000000\n", "t")
    assert rates.rates == ((0.0, 1e6), (2.0, 0.0), (3.0, 4e6))
    assert rates.mean_bps() == pytest.approx(2e6 / 3) and rates.mean_bps(1, 4) == pytest.approx(5e6 / 3)
    assert rates.means_bps(1.0, 4.0) == [(0.0, 1e6), (1.0, 1e6), (2.0, 12_000.0), (3.0, 4e6)], "never nothing in an interval"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "c: no entries: give one time in milliseconds a line"),
        ("5\n4\n", "c:2: 4 ms is before the line above, 5 ms"),
        ("5\n1.5\n", "c:2: '1.5' is not a time in whole milliseconds"),
        ("0\n0\n", "c: all times are 0 ms"),
        ("time_s,rate_bps\n", "c: no rates under the header"),
        ("1,5\n", "c:1: the first rate must hold from 0 s on, got 1 s"),
        ("0,5\n1,2\n1,3\n", "c:3: 1 s is not after the line above, 1 s"),
        ("0,5\nx,3\n", "c:2: 'x,3' is not of the form time_s,rate_bps"),
        ("0,5\n1,-3\n", "c:2: '1,-3': give seconds, and bit/s of 0 or more"),
        ("0,5\n1,nan\n", "c:2: '1,nan': give seconds, and bit/s of 0 or more"),
        ("root:secret:0:0\n5\n", "c:1: the first entry is not a time in whole milliseconds"),
        ("# a secret\nroot,secret\n", "c:2: the first entry is not of the form time_s,rate_bps"),
        ("time_s,rate_bps\nroot,secret\n", "c:2: the first entry is not of the form time_s,rate_bps"),
        ("1.5\n", "c:1: '1.5' is not a time in whole milliseconds"),
        ("0,5\n1,0\n", "c: the last rate is 0 bit/s"),
    ],
)
def test_a_bad_line_is_named(text: str, said: str) -> None:
    with pytest.raises(TraceError) as raised:
        parse(text, "c")
    assert str(raised.value).startswith(said)


def test_a_trace_is_beside_its_experiment_or_of_fairlane(tmp_path: Path) -> None:
    own = load(tmp_path, "cell.mahi", "10\n20\n").topology.links[0]
    assert (own.rate_bps, own.trace.opportunities_ms) == (1_200_000, (10, 20))
    ours = load(tmp_path, "indoor-steps.csv").topology.links[0]
    assert ours.trace == trace.read(FOLDER / "indoor-steps.csv")
    stated = load(tmp_path, 'cell.mahi"\nrate_bps = 3_000_000 #').topology.links[0]
    assert stated.rate_bps == 3e6 and stated.trace is not None
    with pytest.raises(ConfigError, match=r"e.toml:10: topology.bottleneck.trace: no file .*none.mahi; Fairlane has cellular-drive.mahi, "):
        load(tmp_path, "none.mahi")
    with pytest.raises(ConfigError, match=r"e.toml:10: topology.bottleneck.trace: .*bad.mahi:2: 'x' is not a time"):
        load(tmp_path, "bad.mahi", "1\nx\n")
    with pytest.raises(ConfigError, match=r"e.toml:\d+: changes\[0\].rate_bps: s1->s2 follows a trace: leave out one of the two"):
        load(tmp_path, "cell.mahi", more='[[changes]]\nat_s = 1.0\nlink = "s1->s2"\nrate_bps = 1e6\n')
    no_rate = EXPERIMENT.replace('trace = "TRACE"\n', "")
    (tmp_path / "e.toml").write_text(no_rate)
    with pytest.raises(ConfigError, match="e.toml:9: topology.bottleneck: missing key 'rate_bps'"):
        loader.load(tmp_path / "e.toml")


def test_the_way_back_may_have_a_trace_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "there.csv").write_text("0,1e6\n4,2e6\n")
    (tmp_path / "back.csv").write_text("0,3e6\n")
    experiment = load(tmp_path, 'there.csv"\ntrace_back = "back.csv')
    there, back = (next(p for p in experiment.topology.ports()[s] if p.number == 1) for s in ("s1", "s2"))
    assert there.trace is not None and there.trace.rates == ((0.0, 1e6), (4.0, 2e6))
    assert back.trace is not None and back.trace.rates == ((0.0, 3e6),)
    assert experiment.link_rates_bps(back)[0] == (0.0, 3e6) and experiment.link_rates_bps(there)[0] == (0.0, 1e6)
    told = {(c.switch, c.rate_bps) for c in control_plane.changes(experiment, 0)}
    assert told == {("s1", 1_000_000), ("s1", 2_000_000), ("s2", 3_000_000)}
    plans = link_plans.LinkPlans.of(experiment)
    assert [[e["trace"]["rates_ns_bps"] for e in plans._links(s, True)] for s in ("s1", "s2")] == [
        [[(0, 10**6), (4 * 10**9, 2 * 10**6)]],
        [[(0, 3 * 10**6)]],
    ]
    assert restore.experiment_of(json.loads(json.dumps(dataclasses.asdict(experiment)))).topology == experiment.topology
    (tmp_path / "e.toml").write_text(EXPERIMENT.replace('trace = "TRACE"', 'rate_bps = 1e6\ntrace_back = "back.csv"'))
    with pytest.raises(ConfigError, match=r"e.toml:11: topology.bottleneck.trace_back: .* the way there has none: give 'trace' as well"):
        loader.load(tmp_path / "e.toml")


def test_the_controller_learns_each_intervals_mean_at_its_end(tmp_path: Path) -> None:
    changes = control_plane.changes(load(tmp_path, "steps.csv", "0,1e6\n4,2e6\n"), 7)
    told = [((c.at_ns - 7) / 1e9, c.rate_bps) for c in changes if c.switch == "s1"]
    assert told == [(n, 1_000_000 if n <= 4 else 2_000_000) for n in range(1, 11)]
    assert {c.switch for c in changes} == {"s1", "s2"}, "both directions follow the trace"


def test_a_run_written_down_comes_back(tmp_path: Path) -> None:
    for file in ("cellular-walk.mahi", "indoor-steps.csv"):
        experiment = load(tmp_path, file)
        restored = restore.experiment_of(json.loads(json.dumps(dataclasses.asdict(experiment))))
        assert restored.topology == experiment.topology


@needs_network
def test_what_a_host_sends_leaves_at_the_opportunities() -> None:
    """More full packets than fit: after each 100 ms as many have arrived as there were opportunities."""
    opportunities_ms = sorted(random.Random(5).sample(range(1, 400, 2), 60) + [101, 101, 251]) + [406]
    network = virtual_fabric.native.Network(1)
    network.add_host("a", "10.0.0.1", "02:00:00:00:00:01", "02:00:00:00:00:02")
    network.add_host("b", "10.0.0.2", "02:00:00:00:00:02", "02:00:00:00:00:01")
    network.connect("a", 0, "b", 0, specs.Link(rate_bps=10**9, queue_packets=1000, overhead_bytes=-14))
    source = virtual_fabric.native.Application.cbr(6_000_000)
    network.add_source_flow(specs.FlowPath("f", "a", "b", 5000, 100_000_000, 1_400_000_000), source, packet_bytes=1500)
    network.schedule_opportunities(100_000_000, "a", 0, [ms * 1_000_000 for ms in opportunities_ms], 1500)
    network.run_until(1_400_000_000)
    at_ns = {instant: fields["received_packets"] for instant, _, fields in network.take_flow_logs("f")[1]}
    received = [at_ns[100_000_000 * n] for n in range(1, 15)]
    every_ms = [round_ * 406 + ms for round_ in range(4) for ms in opportunities_ms]
    assert received == [bisect.bisect_right(every_ms, 100 * n) for n in range(14)]


@needs_network
@pytest.mark.parametrize("file", ["cellular-walk.mahi", "indoor-steps.csv"])
def test_a_full_link_of_a_switch_carries_what_its_trace_offers(tmp_path: Path, file: str) -> None:
    """Datagrams of 20 Mb/s over a link of about 8: what arrives in 10 s is what the trace offers, but for the first packets and the last."""
    experiment = load(tmp_path, file)
    path = tmp_path / "e.toml"
    path.write_text(path.read_text().replace("rate_bps = 8_000_000", "rate_bps = 20_000_000"))
    experiment = loader.load(path)
    virtual_fabric.run(experiment, virtual_fabric.Options(targets.compiler()), tmp_path, Silent())
    last = [r for r in raw.json_lines(tmp_path / "f.receiver.jsonl") if r["kind"] == "data"][-1]
    offered_bits = 10 * experiment.topology.links[0].trace.mean_bps(0, 10)
    assert 8 * last["received_bytes"] == pytest.approx(offered_bits, rel=0.01)


def test_our_traces_are_what_their_model_makes(tmp_path: Path) -> None:
    from tools.traces.__main__ import TRACES

    for made in TRACES:
        assert (FOLDER / made.name).read_text() == made.text(), f"{made.name}: python -m tools.traces writes it anew"
    walk = trace.read(FOLDER / "cellular-walk.mahi")
    assert walk.mean_bps() == pytest.approx(8e6, rel=0.1) and walk.length_s == 60.0
    # Without its outages the drive would have no gap of 200 ms.
    drive = trace.read(FOLDER / "cellular-drive.mahi")
    assert max(b - a for a, b in pairwise(drive.opportunities_ms)) > 200

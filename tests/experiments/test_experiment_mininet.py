"""[mininet] of an experiment file: what it lays over the file on that fabric, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairlane.controller.changes import AlsChange
from fairlane.errors import Refusal
from fairlane.experiments import fabrics, loader, sweep
from fairlane.fabrics import control_plane, link_plans, preflight, targets
from fairlane.fabrics.switch_process import EMBEDDED
from fairlane.inputs.located_toml import ConfigError, parse
from fairlane.paper import read_row
from tests.experiments.lines import numbered

FILE = """\
title = "t"
bottleneck = "s1->s2"
duration_s = 30.0
seeds = [3, 4]
[sweep]
n = [1, 2, 4]
delay_s = [0.01, 0.02]
[topology]
kind = "dumbbell"
pairs = "= n"
bottleneck = { rate_bps = 1000000, delay_s = "= delay_s" }
access = { rate_bps = 2000000 }
[tcp]
packet_bytes = 600
delayed_ack = false
timer_granularity_s = 0.1
[mininet]
at = { n = [2, 4], delay_s = 0.02 }
without = ["tcp.timer_granularity_s"]
duration_s = 12.0
tcp = { packet_bytes = 700 }
[[flows]]
name = "a"
kind = "tcp-reno"
count = "= n"
"""


def document(text: str = FILE):
    return parse(text, "e.toml")


def test_it_lies_over_the_file_on_mininet_alone(tmp_path: Path) -> None:
    laid = sweep.expand(fabrics.laid_over(document()))
    assert [(dict(p.axes), p.seed) for p in laid.points] == [({"n": 2, "delay_s": 0.02}, 3), ({"n": 4, "delay_s": 0.02}, 3)]
    assert [p.document.values["tcp"] for p in laid.points] == [{"packet_bytes": 700, "delayed_ack": False}] * 2
    complete = sweep.expand(fabrics.laid_over(document(), complete=True))
    assert len(complete.points) == 4 and complete.seeds == (3, 4)
    assert complete.points[0].document.values["tcp"] == {"packet_bytes": 700, "delayed_ack": False, "timer_granularity_s": 0.1}
    assert fabrics.laid(document()) == "duration_s = 12.0; tcp = { packet_bytes = 700 }"
    assert fabrics.left_out(document()) == "without tcp.timer_granularity_s"
    assert document().values["tcp"]["timer_granularity_s"] == 0.1
    path = tmp_path / "e.toml"
    path.write_text(FILE)
    (tmp_path / "row.toml").write_text(FILE + '[paper]\nreference = "-"\nsection = "-"\nfigure = "-"\n')
    assert (loader.load(path).duration_s, loader.load(path, laid_over=fabrics.laid_over).duration_s) == (30.0, 12.0)
    # What the command line says of an axis comes first.
    one = loader.load(path, at=["n=1"], laid_over=fabrics.laid_over)
    assert (len(one.flows), max(link.delay_s for link in one.topology.links)) == (1, 0.02)
    whole = loader.read(path)
    assert sweep.is_several(fabrics.laid_over(whole)) and not sweep.is_several(fabrics.laid_over(whole, ["n=4"]))
    assert sweep.is_several(sweep.narrowed(whole, ["n=4"]))
    # A part of the sweep without the table's points is a sweep all the same.
    assert (
        sweep.is_several(sweep.narrowed(whole, ["delay_s=0.01"]))
        and len(read_row.load(tmp_path / "row.toml", at=["n=1", "delay_s=0.01"]).sweep.points) == 2
    )


@pytest.mark.parametrize(
    "more",
    [
        ', framing = "ip"',
        ", jitter_s = 0.001",
        ", jitter_std_s = 0.001",
        ", loss = 0.01",
        ", gemodel = { p = 0.01, r = 0.2 }",
        ", reorder = 0.01, reorder_delay_s = 0.01",
        ", duplicate = 0.01",
        ", corrupt = 0.01",
        ', trace = "cellular-walk.mahi"',
    ],
)
def test_mininet_takes_every_key_of_a_link_and_bmv2_refuses_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str) -> None:
    path = tmp_path / "e.toml"
    path.write_text(FILE.replace('delay_s = "= delay_s"', f'delay_s = "= delay_s"{more}'))
    experiment = loader.load(path, laid_over=fabrics.laid_over)
    # Whatever this machine lacks is found only after the experiment was accepted.
    monkeypatch.setattr(preflight.probes, "is_root", lambda: False)
    with pytest.raises(Refusal, match="Mininet needs root"):
        preflight.check_machine(experiment)
    key = more.split()[1]
    assert link_plans.bmv2_obstacle(experiment.topology) == f"link s1 - s2 has {key}, which BMv2's ports do not have"
    monkeypatch.setattr(targets.probes, "program", lambda name: Path("/bin") / name)
    with pytest.raises(Refusal, match=f"--target bmv2: link s1 - s2 has {key}, .* Use --target embedded."):
        targets.resolve("bmv2", experiment.topology)
    assert targets.resolve("auto", experiment.topology).target is EMBEDDED


def test_gaussian_jitter_is_in_the_switchs_port_of_either_end(tmp_path: Path) -> None:
    """5 ms of a link, then 2 ms of one direction: the file of `fairlane-switch --links` has both."""
    path = tmp_path / "e.toml"
    change = '[[changes]]\nat_s = 2.0\nlink = "s1->s2"\njitter_std_s = 0.002\n'
    path.write_text(FILE.replace('delay_s = "= delay_s"', 'delay_s = "= delay_s", jitter_std_s = 0.005') + change)
    plans = link_plans.LinkPlans.of(loader.load(path, laid_over=fabrics.laid_over))
    assert plans.switches == ("s1", "s2") and not plans.keeps_round_trips
    plans.write("s1", tmp_path / "s1.json", 5)
    (entry,) = json.loads((tmp_path / "s1.json").read_text())["links"]
    assert (entry["direction"], entry["jitter_std_ns"], "jitter_ns" in entry) == ("out", 5_000_000, False)
    assert entry["changes"] == [{"at_ns": 2_000_000_000, "jitter_std_ns": 2_000_000}]


def test_changes_run_on_mininet_and_bmv2_refuses_those_of_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "e.toml"
    change = '[[changes]]\nat_s = 2.0\nlink = "h1->s1"\njitter_s = 0.01\n[[changes]]\nat_s = 1.0\nswitch = "s1"\nals = false\n'
    path.write_text(FILE + change)
    experiment = loader.load(path, laid_over=fabrics.laid_over)
    monkeypatch.setattr(preflight.probes, "is_root", lambda: False)
    with pytest.raises(Refusal, match="Mininet needs root"):
        preflight.check_machine(experiment)
    monkeypatch.setattr(targets.probes, "program", lambda name: Path("/bin") / name)
    with pytest.raises(Refusal, match="--target bmv2: h1->s1 changes at 2 s, and BMv2's ports do not change while it runs"):
        targets.resolve("bmv2", experiment.topology, changes=experiment.changes)
    plans = link_plans.LinkPlans.of(experiment)
    assert plans.switches == ("s1",) and len(plans.uplinks) == 1
    plans.write("s1", tmp_path / "s1.json", 5)
    (entry,) = json.loads((tmp_path / "s1.json").read_text())["links"]
    assert (entry["direction"], entry["from"], entry["to"]) == ("in", "h1", "s1")
    assert entry["changes"] == [{"at_ns": 2_000_000_000, "jitter_ns": 10_000_000}]
    assert control_plane.changes(experiment, 5) == [AlsChange(1_000_000_005, "s1", False)]


def test_seeds_of_its_own() -> None:
    assert sweep.expand(fabrics.laid_over(document(FILE.replace("[mininet]\n", "[mininet]\nseeds = [7, 8]\n")))).seeds == (7, 8)
    assert sweep.expand(fabrics.laid_over(document(FILE.replace("[mininet]\n", "[mininet]\nseeds = [7, 8]\n")), complete=True)).seeds == (
        3,
        4,
    )


def test_a_file_that_inherits_the_table_is_not_chosen(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(FILE)
    (tmp_path / "heir.toml").write_text('inherits = "base"\ntitle = "heir"\n')
    base, heir = (loader.read(tmp_path / f"{name}.toml") for name in ("base", "heir"))
    assert fabrics.is_chosen(base) and not fabrics.is_chosen(heir) and not fabrics.is_chosen(document(FILE.replace("[mininet]", "[let]")))
    assert fabrics.laid(heir) == fabrics.laid(base)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("duration_s = 12.0", "durations = 12.0", "e.toml:<durations>: durations: unknown key; did you mean 'duration_s'?"),
        ("duration_s = 12.0", "duration_s = -1.0", "e.toml:<duration_s = -1.0>: duration_s: must be positive"),
        (
            "packet_bytes = 700",
            "paket_bytes = 700",
            "e.toml:<paket_bytes>: tcp.paket_bytes: unknown key of tcp; did you mean 'packet_bytes'?",
        ),
        ("n = [2, 4], delay", "m = 2, delay", "e.toml:<at =>: mininet.at.m: no axis 'm'"),
        ("n = [2, 4], delay", "n = 3, delay", "e.toml:<at =>: mininet.at.n: 3 is not a value of that axis, which has 1, 2, 4"),
        ("n = [2, 4], delay", "n = [], delay", "e.toml:<at =>: mininet.at.n: expected at least one value"),
        ('"tcp.timer_granularity_s"]', '"tcp.timers"]', "e.toml:<without>: mininet.without[0]: the file has no key 'tcp.timers'"),
        ('["tcp.timer_granularity_s"]', '"tcp"', "e.toml:<without>: mininet.without: expected an array of keys"),
        ("duration_s = 12.0", 'title = "other"', "e.toml:<other>: mininet.title: is the same on every fabric"),
    ],
)
def test_what_is_refused_wherever_the_file_is_to_run(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert FILE.count(old) == 1
    path = tmp_path / "e.toml"
    text = FILE.replace(old, new)
    path.write_text(text)
    for load in (loader.load, read_row.load):
        with pytest.raises(ConfigError) as refused:
            load(path)
        assert numbered(message, text) in str(refused.value)

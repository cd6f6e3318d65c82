"""Experiment files: all of them load and state their outcome; bad ones are refused with file, line and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlane import probes
from fairlane.experiments import loader
from fairlane.inputs.located_toml import ConfigError
from fairlane.paper import read_row
from fairlane.results import metrics
from tests.experiments.lines import numbered

ROOT = probes.ROOT
GOOD = """\
title = "t"
bottleneck = "s1->s2"
paper = { reference = "ALS", section = "4", figure = "3" }
[topology]
kind = "dumbbell"
pairs = 2
bottleneck = { rate_bps = 1000000 }
access = { rate_bps = 2000000 }
[[flows]]
name = "als"
kind = "als"
count = 2
join_interval_s = 4.0
[[checks]]
name = "loss"
metric = "als_mean_loss_fraction"
high = 0.02
"""


def load(tmp_path: Path, text: str, **arguments: object) -> object:
    (tmp_path / "e.toml").write_text(text)
    return loader.load(tmp_path / "e.toml", **arguments)


@pytest.mark.parametrize("name", loader.names())
def test_every_experiment_states_paper_and_outcome(name: str) -> None:
    experiment = loader.load(loader.find(name))
    assert experiment.settings.paper is not None and experiment.settings.paper.reports
    assert experiment.settings.checks or read_row.load(loader.find(name)).expectations
    assert (ROOT / experiment.settings.control.program).is_file()
    # All flows are up before the window of the figures begins.
    assert max(f.start_s for f in experiment.flows) < experiment.window_s[0]


def test_als_3_is_the_papers_set_up() -> None:
    experiment = loader.load(loader.find("als-3"))
    link = experiment.topology.links[0]
    assert (link.ends, link.rate_bps, link.delay_s) == (("s1", "s2"), 10e6, 0.005)
    assert (link.aqm.minimum, link.aqm.maximum) == (0.5, 0.95)
    assert [f.start_s for f in experiment.flows if f.kind == "als"] == [0, 3, 6, 9, 12, 15, 18]
    assert sum(f.kind == "tcp-reno" for f in experiment.flows) == 3
    slow = loader.load(loader.find("als-3b"))
    assert [f.start_s for f in slow.flows if f.kind == "als"] == [0, 6, 12, 18, 24, 30, 36]
    assert slow.settings.checks == experiment.settings.checks


def test_loader_and_metrics_know_the_same_metrics() -> None:
    assert sorted(loader.METRICS) == sorted(metrics.CHECK_METRICS)


def test_flows_take_the_pairs_in_order(tmp_path: Path) -> None:
    flows = load(tmp_path, GOOD).flows
    assert [(f.name, f.sender, f.receiver, f.start_s) for f in flows] == [("als-0", "h1", "h3", 0.0), ("als-1", "h2", "h4", 4.0)]


def test_arguments_replace_the_files_values(tmp_path: Path) -> None:
    experiment = load(tmp_path, GOOD, duration_s=10.0, seed=7)
    assert (experiment.duration_s, experiment.seed, experiment.window_s) == (10.0, 7, (5.0, 10.0))


@pytest.mark.parametrize("duration", [-1.0, 0.0, float("nan"), float("inf")])
def test_durations_that_are_none(tmp_path: Path, duration: float) -> None:
    with pytest.raises(ConfigError, match=f"^--duration {duration:g}: give a positive number of seconds, at most 1e\\+07$"):
        load(tmp_path, GOOD, duration_s=duration)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("count = 2", "count = 3"), "e.toml:<count>: flows[0].count: more flows than the 2 pairs of hosts"),
        (("count = 2", "cuont = 2"), "e.toml:<cuont>: flows[0].cuont: unknown key; did you mean 'count'?"),
        (('kind = "als"', 'kind = "tcp-vegas"'), "e.toml:<tcp-vegas>: flows[0].kind: unknown flow kind 'tcp-vegas'; "),
        (
            ("join_interval_s = 4.0", "join_interval_s = -4.0"),
            "e.toml:<join_interval_s>: flows[0].join_interval_s: must not be negative, got -4 s",
        ),
        (("s1->s2", "s1->s3"), "e.toml:<s1->s3>: bottleneck: no link 's1->s3'; write it as 's1->s2', from a switch to its neighbour"),
        (
            ("als_mean_loss_fraction", "als_mean_loss"),
            "e.toml:<metric>: checks[0].metric: unknown metric 'als_mean_loss'; did you mean 'als_mean_loss_fraction'?",
        ),
        (("high = 0.02", ""), "e.toml:<[[checks]]>: checks[0].low: a check without low and high cannot fail"),
        (("access =", "acces ="), "e.toml:<acces>: topology.acces: unknown key; did you mean 'access'?"),
        (('title = "t"', 'title = "t"\ninherits = "nobody"'), "e.toml:<inherits>: inherits: no file "),
        (('title = "t"', 'title = "t"\ninherits = "e"'), "e.toml:<inherits>: inherits: 'e' inherits from this file in turn"),
        (
            ('title = "t"', 'title = "t"\nduration_s = -5'),
            "e.toml:<duration_s>: duration_s: must be positive and at most 1e+07 s, got -5 s",
        ),
        (("count = 2", 'count = 1\nhosts = [["h1", "h9"]]'), "e.toml:<hosts>: flows[0].hosts[0]: no host 'h9'"),
        (("count = 2", f"count = {'[' * 100_000}"), "e.toml: not TOML that can be read: brackets within brackets, too deep"),
        (("count = 2", 'hosts = [["h1", "h1"]]'), "e.toml:<hosts>: flows[0].hosts[0]: h1 cannot send to itself"),
        (("count = 2", 'count = 3\nhosts = [["h1", "h3"], ["h1", "h3"]]'), "2 pairs for 3 flows: give one for each, or one for all"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    assert change[0] in GOOD
    text = GOOD.replace(*change, 1)
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, text)
    assert numbered(message, text) in str(refused.value)


def test_errors_in_an_inherited_file_name_that_file(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text("[control]\nutilisation_target = 1.5\n")
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, 'inherits = "base"\n' + GOOD)
    assert str(refused.value) == f"{tmp_path}/base.toml:2: control.utilisation_target: must be in (0, 1], got 1.5"


def test_unknown_experiments_name_the_nearest() -> None:
    with pytest.raises(ConfigError, match="^unknown experiment 'asl-3'; did you mean 'als-3'\\?$"):
        loader.find("asl-3")

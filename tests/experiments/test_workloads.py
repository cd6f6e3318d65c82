"""Workloads: what is drawn, against the distributions' own formulas."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.experiments import loader, workloads
from fairlane.experiments.model import Experiment, Flow
from fairlane.experiments.workloads import Arrivals, Sizes
from fairlane.inputs.located_toml import ConfigError

DUMBBELL = """
title = "t"
bottleneck = "s1->s2"
duration_s = 100.0
[topology]
kind = "dumbbell"
pairs = 4
bottleneck = { rate_bps = 10_000_000, delay_s = 0.01, queue_packets = 100 }
access = { rate_bps = 100_000_000 }
"""
WEB = """
[[workloads]]
name = "web"
kind = "tcp-cubic"
arrivals = { per_s = 20 }
sizes = { kind = "exponential", mean_bytes = 20_000 }
"""


def load(tmp_path: Path, text: str, seed: int | None = None) -> Experiment:
    file = tmp_path / "w.toml"
    file.write_text(DUMBBELL + text)
    return loader.load(file, seed=seed)


def drawn(flows: tuple[Flow, ...], name: str = "web") -> list[tuple[str, float, str, str, int | None]]:
    return [(f.name, f.start_s, f.sender, f.receiver, f.tcp_settings.file_bytes) for f in flows if f.name.startswith(name)]


SIZES = {
    "constant": Sizes("constant", 20_000),
    "exponential": Sizes("exponential", 20_000),
    "lognormal": Sizes("lognormal", 20_000, sigma=0.8),
    "pareto": Sizes("pareto", 20_000, shape=3.0),
    "web-search": Sizes(mean_bytes=1_711_250, empirical=workloads.Empirical.read(workloads.FOLDER / "web-search.csv")),
    "data-mining": Sizes(mean_bytes=12_658_198.6, empirical=workloads.Empirical.read(workloads.FOLDER / "data-mining.csv")),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_have_their_mean(name: str) -> None:
    sizes = SIZES[name]
    many = list(itertools.islice(sizes.draws(random.Random(7)), 100_000))
    error = statistics.stdev(many) / math.sqrt(len(many)) if name != "constant" else 0.0
    assert abs(statistics.fmean(many) - sizes.mean_bytes) <= 4 * error + 0.5


@pytest.mark.parametrize("name", [name for name in SIZES if name != "constant"])
def test_sizes_have_their_distribution(name: str) -> None:
    """The largest distance of the drawn distribution from the formula's, against Kolmogorov's bound of one in a thousand."""
    sizes = SIZES[name]
    known = {
        "exponential": lambda x: 1 - math.exp(-x / 20_000),
        "lognormal": lambda x: statistics.NormalDist(math.log(20_000) - 0.32, 0.8).cdf(math.log(x)),
        "pareto": lambda x: 1 - (20_000 * 2 / 3 / x) ** 3 if x > 20_000 * 2 / 3 else 0.0,
    }
    many = sorted(itertools.islice(sizes.draws(random.Random(3)), 20_000))
    if name in known:
        expected = [float(known[name](x)) for x in many]
    else:
        assert sizes.empirical is not None
        xs, ps = zip(*sizes.empirical.points)
        np = pytest.importorskip("numpy")
        expected = list(np.interp(many, xs, ps))
    distance = max(abs((n + 0.5) / len(many) - p) for n, p in enumerate(expected))
    # Sizes are whole bytes: the least ones of data mining are 0 to 180 with probability 0.1.
    assert distance < 1.95 / math.sqrt(len(many)) + 0.001


@pytest.mark.parametrize("kind", ["poisson", "deterministic", "on-off"])
def test_arrivals_have_their_rate(kind: str) -> None:
    bursts = {"on_s": 0.5, "off_s": 1.5} if kind == "on-off" else {}
    times = itertools.takewhile(lambda t: t < 5000, Arrivals(kind, per_s=20, **bursts).times_s(20.0, random.Random(1)))  # type: ignore[arg-type]
    times = list(times)
    assert times == sorted(times) and len(times) / 5000 == pytest.approx(20, rel=0.05)
    gaps = [b - a for a, b in itertools.pairwise(times)]
    spread = statistics.pstdev(gaps) / statistics.fmean(gaps)
    assert {"poisson": 0.95 < spread < 1.05, "deterministic": spread < 1e-6, "on-off": spread > 1.5}[kind]


def test_poisson_arrivals_forget() -> None:
    """Counts of whole seconds: mean and variance are the same, and those of one second say nothing of the next."""
    times = itertools.takewhile(lambda t: t < 10_000, Arrivals(per_s=5.0).times_s(5.0, random.Random(2)))
    counts = Counter(map(int, times))
    many = [counts[n] for n in range(10_000)]
    mean, variance = statistics.fmean(many), statistics.pvariance(many)
    assert mean == pytest.approx(5, rel=0.02) and variance == pytest.approx(5, rel=0.05)
    assert abs(statistics.correlation(many[:-1], many[1:])) < 0.04


def test_a_workload_becomes_flows(tmp_path: Path) -> None:
    experiment = load(tmp_path, WEB)
    flows = experiment.flows
    assert len(flows) == pytest.approx(2000, rel=0.1) and [f.name for f in flows[:2]] == ["web-0", "web-1"]
    assert {(f.sender, f.receiver) for f in flows} == {(f"h{n}", f"h{n + 4}") for n in range(1, 5)}
    assert all(a.start_s <= b.start_s < 100 for a, b in itertools.pairwise(flows))
    assert len({(f.sender, f.receiver, f.port_offset) for f in flows}) == len(flows)
    assert experiment.settings.groups == {"web": "tcp-cubic"}


def test_nothing_else_changes_its_draws(tmp_path: Path) -> None:
    alone = drawn(load(tmp_path, WEB).flows)
    flow = '[[flows]]\nname = "bg"\nkind = "tcp-cubic"\n'
    other = WEB.replace('"web"', '"other"')
    assert drawn(load(tmp_path, flow + WEB).flows) == alone
    assert drawn(load(tmp_path, other + WEB).flows) == alone
    # Other sizes: the same times and hosts. A shorter run: the same flows as far as it goes.
    sized = drawn(load(tmp_path, WEB.replace("exponential", "constant")).flows)
    assert [row[:4] for row in sized] == [row[:4] for row in alone] and sized != alone
    file = tmp_path / "w.toml"
    file.write_text(DUMBBELL + WEB)
    shorter = drawn(loader.load(file, duration_s=50.0).flows)
    assert shorter == alone[: len(shorter)] and 0 < len(shorter) < len(alone)
    assert drawn(load(tmp_path, WEB, seed=2).flows) != alone


@pytest.mark.parametrize("of", ["", ', of = "s1->s2"', ', of = "hosts"', ', of = "h1->s1"'])
def test_a_load_is_a_part_of_the_capacity(tmp_path: Path, of: str) -> None:
    text = WEB.replace("per_s = 20", f"load = 0.4{of}")
    flows = load(tmp_path, text).flows
    capacity = {"": 10e6, ', of = "s1->s2"': 10e6, ', of = "hosts"': 400e6, ', of = "h1->s1"': 100e6}[of]
    crossing = [f for f in flows if "h1" not in of or f.sender == "h1"]
    wire = sum(8 * (f.tcp_settings.file_bytes or 0) * 1014 / 948 for f in crossing)
    assert wire / 100 / capacity == pytest.approx(0.4, rel=0.1)


@pytest.mark.parametrize("pattern", ["all-to-all", "permutation", 'incast"\nfan_in = 3\nreceivers = ["h1", "h8"]\n#'])
def test_patterns(tmp_path: Path, pattern: str) -> None:
    flows = load(tmp_path, WEB + f'pattern = "{pattern}"\n').flows
    pairs = Counter((f.sender, f.receiver) for f in flows)
    assert all(a != b for a, b in pairs)
    if pattern == "all-to-all":
        assert len(pairs) == 56 and max(pairs.values()) < 2.2 * len(flows) / 56
    elif pattern == "permutation":
        assert len(pairs) == 8 and len({b for _, b in pairs}) == 8
    else:
        events = [list(event) for _, event in itertools.groupby(flows, key=lambda f: f.start_s)]
        assert all(len(event) == 3 == len({f.sender for f in event}) and len({f.receiver for f in event}) == 1 for event in events)
        assert {f.receiver for f in flows} == {"h1", "h8"}


def test_a_distribution_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("bytes,probability\n1000,0\n# a step\n2000,0.5\n10000,1\n")
    flows = load(tmp_path, WEB.replace('{ kind = "exponential", mean_bytes = 20_000 }', '"own.csv"')).flows
    sizes = [f.tcp_settings.file_bytes or 0 for f in flows]
    assert min(sizes) >= 1000 and max(sizes) <= 10_000 and statistics.fmean(sizes) == pytest.approx(3750, rel=0.1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('"tcp-cubic"', '"rap"'), "workloads[0].kind: rap does not end with a file: a workload is of a TCP kind"),
        (('"tcp-cubic"', '"tpc"'), "workloads[0].kind: unknown flow kind 'tpc'"),
        (("per_s = 20", "per_s = 0"), "workloads[0].arrivals.per_s: must be positive, got 0"),
        (("per_s = 20", "per_s = 20, load = 0.5"), "workloads[0].arrivals.per_s: give either per_s or load"),
        (("per_s = 20", 'load = 0.5, of = "s1->s3"'), "of: no link 's1->s3'"),
        (("per_s = 20", 'load = 0.5, of = "s2->s1"'), "of: no flow of web crosses s2->s1"),
        (("per_s = 20", "per_s = 1e7"), "workloads[0].arrivals: more than 100000 flows"),
        (("per_s = 20", 'per_s = 20, kind = "on-off"'), "on-off has on_s and off_s"),
        (('kind = "exponential"', 'kind = "pareto", shape = 1.0'), "workloads[0].sizes.shape: above 1"),
        (('kind = "exponential"', 'kind = "lognormal"'), "workloads[0].sizes.sigma: of lognormal, and of no other kind"),
        (('{ kind = "exponential", mean_bytes = 20_000 }', '"web"'), "workloads[0].sizes: no file"),
        (('{ kind = "exponential", mean_bytes = 20_000 }', '"bad.csv"'), "bad.csv:2: bytes and probabilities must grow"),
        (('name = "web"', 'name = "web"\nfan_in = 2'), "workloads[0].fan_in: of incast, and of no other pattern"),
        (('name = "web"', 'name = "web"\npattern = "incast"\nfan_in = 9'), "workloads[0].fan_in: 9 senders beside the receiver"),
        (('name = "web"', 'name = "web"\nsenders = ["h9"]'), "workloads[0].senders: no host 'h9'"),
        (('name = "web"', 'name = "web"\nsenders = ["h1"]'), "4 for 1 senders: pairs have one for each"),
        (('name = "web"', 'name = "web"\nparameters = { file_bytes = 1 }'), "workloads[0].parameters: file_bytes is drawn from `sizes`"),
        (('name = "web"', 'name = "web"\nstart_s = 200.0'), "an experiment needs at least one flow"),
    ],
)
def test_bad_workloads_are_refused(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    assert change[0] in WEB
    (tmp_path / "bad.csv").write_text("5,0\n4,1\n")
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, WEB.replace(*change, 1))
    assert message in str(refused.value) and "w.toml:" in str(refused.value)


@given(st.integers(2, 8), st.integers(0, 2**32 - 1))
def test_permutations_have_no_fixed_point(hosts: int, seed: int) -> None:
    names = [f"h{n}" for n in range(hosts)]
    chosen = workloads._permuted(names, names, random.Random(seed))
    assert sorted(chosen) == names and all(a != b for a, b in zip(names, chosen))

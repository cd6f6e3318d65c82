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
    many = list(itertools.islice(sizes.draws(random.Random(7)), 30_000))
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


@pytest.mark.parametrize(
    "of",
    [
        "",
        ', of = "s1->s2"',
        pytest.param(', of = "hosts"', marks=pytest.mark.long),
        pytest.param(', of = "h1->s1"', marks=pytest.mark.long),
    ],
)
def test_a_load_is_a_part_of_the_capacity(tmp_path: Path, of: str) -> None:
    capacity, offered = {
        "": (10e6, 0.4),
        ', of = "s1->s2"': (10e6, 0.4),
        ', of = "hosts"': (400e6, 0.02),
        ', of = "h1->s1"': (100e6, 0.02),
    }[of]
    flows = load(tmp_path, WEB.replace("per_s = 20", f"load = {offered}{of}")).flows
    crossing = [f for f in flows if "h1" not in of or f.sender == "h1"]
    wire = sum(8 * (f.tcp_settings.file_bytes or 0) * 1014 / 948 for f in crossing)
    assert wire / 100 / capacity == pytest.approx(offered, rel=0.1)


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
        (("per_s = 20", 'per_s = 1500, kind = "deterministic"'), "workloads[0].arrivals: more than 100000 flows"),
        (("per_s = 20", 'per_s = 20, kind = "on-off"'), "on-off has on_s and off_s"),
        (('kind = "exponential"', 'kind = "pareto", shape = 1.0'), "workloads[0].sizes.shape: above 1"),
        (('kind = "exponential"', 'kind = "lognormal"'), "workloads[0].sizes.sigma: of lognormal, and of no other kind"),
        (('{ kind = "exponential", mean_bytes = 20_000 }', '"web"'), "workloads[0].sizes: no file"),
        (('{ kind = "exponential", mean_bytes = 20_000 }', '"bad.csv"'), "bad.csv:2: bytes and probabilities must grow"),
        (('name = "web"', 'name = "web"\nfan_in = 2'), "workloads[0].fan_in: of incast and partition-aggregate, and of no other pattern"),
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


def asking(pattern: str, more: str = "") -> str:
    return WEB.replace('name = "web"', f'name = "web"\npattern = "{pattern}"\n{more}')


def test_a_request_goes_one_way_and_its_answer_the_other(tmp_path: Path) -> None:
    flows = load(tmp_path, asking("request-response", "request_bytes = 300\nrequests = 3\nthink_s = 0.5")).flows
    for ask, answer in itertools.batched(flows, 2) if hasattr(itertools, "batched") else zip(flows[::2], flows[1::2]):
        assert (ask.sender, ask.receiver) == (answer.receiver, answer.sender) and ask.tcp_settings.file_bytes == 300
        assert answer.after == (ask.name,) and answer.answers and not ask.answers and answer.after_s == 0
        assert ask.query == answer.query == ask.name.removesuffix(".ask")
    turns = [f for f in flows if not f.answers and f.after]
    assert len(turns) * 3 == len(flows) and all(
        f.after == (f"web-{f.query[4:].split('.')[0]}.{int(f.query[-1]) - 1}.answer",) for f in turns
    )
    think = [f.after_s for f in turns]
    assert statistics.fmean(think) == pytest.approx(0.5, rel=4 / math.sqrt(len(think)))


def test_a_query_asks_different_hosts(tmp_path: Path) -> None:
    flows = load(tmp_path, asking("partition-aggregate", 'fan_in = 3\nsenders = ["h1"]\nrequests = 2')).flows
    by_query: dict[str, list[Flow]] = {}
    for flow in flows:
        by_query.setdefault(flow.query, []).append(flow)
    for name, parts in by_query.items():
        asks = [f for f in parts if not f.answers]
        assert len(parts) == 6 and len({f.receiver for f in asks}) == 3 and {f.sender for f in asks} == {"h1"}
        if name.endswith(".1"):
            before = f"{name[:-1]}0"
            assert all(f.after == tuple(f"{before}.answer-{n}" for n in range(3)) for f in asks)


def test_answers_have_the_sizes_that_other_patterns_have(tmp_path: Path) -> None:
    """Times, sizes and hosts are those of the same arrivals without requests; to think draws from a stream of its own."""
    plain = load(tmp_path, WEB).flows
    asked = load(tmp_path, asking("request-response", 'senders = ["h1", "h2", "h3", "h4"]\nreceivers = ["h5", "h6", "h7", "h8"]')).flows
    answers = [f for f in asked if f.answers]
    assert [(f.start_s, f.tcp_settings.file_bytes) for f in answers] == [(f.start_s, f.tcp_settings.file_bytes) for f in plain]


def test_the_load_of_a_workload_that_asks_is_that_of_its_answers(tmp_path: Path) -> None:
    more = 'senders = ["h1", "h2"]\nreceivers = ["h5", "h6"]\nrequests = 2'
    text = asking("request-response", more).replace("per_s = 20", 'load = 0.5, of = "s2->s1"').replace("exponential", "constant")
    flows = load(tmp_path, text).flows
    bits = sum(f.tcp_settings.file_bytes * 8 * 1014 / 948 for f in flows if f.answers)
    assert bits / 100 / 10e6 == pytest.approx(0.5, rel=0.15)
    with pytest.raises(ConfigError, match="no flow of web crosses s1->s2"):
        load(tmp_path, text.replace("s2->s1", "s1->s2"))


def traced(tmp_path: Path, lines: str, more: str = "", sizes: str = "") -> Experiment:
    (tmp_path / "own.csv").write_text(lines)
    text = f'[[workloads]]\nname = "web"\nkind = "tcp-cubic"\narrivals = {{ kind = "trace", file = "own.csv" }}\n{sizes}\n{more}\n'
    return load(tmp_path, text)


def test_a_trace_says_when_how_much_and_between_whom(tmp_path: Path) -> None:
    lines = "# recorded\ntime_s,sender,receiver,bytes\n0,h1,h5,100\n0.5,h2,h3,2000\n\n99.5,h1,h5,300\n150,h1,h5,1\n"
    assert drawn(traced(tmp_path, lines, "start_s = 0.25").flows) == [
        ("web-0", 0.25, "h1", "h5", 100),
        ("web-1", 0.75, "h2", "h3", 2000),
        ("web-2", 99.75, "h1", "h5", 300),
    ]
    assert len(traced(tmp_path, lines, "stop_s = 50.0").flows) == 2


def test_what_a_trace_does_not_say_is_drawn_as_always(tmp_path: Path) -> None:
    plain = drawn(load(tmp_path, WEB).flows)
    lines = "time_s\n" + "".join(f"{at!r}\n" for _, at, *_ in plain)
    assert drawn(traced(tmp_path, lines, sizes=WEB.splitlines()[-1]).flows) == plain


@pytest.mark.parametrize(
    ("lines", "more", "sizes", "message"),
    [
        ("time_s,bytes\n1,5\n0.5,5\n", "", "", "own.csv:3: times are seconds from the workload's beginning on, and must not fall; got 0.5"),
        ("time_s,bytes\n1,0\n", "", "", "own.csv:2: bytes must be a whole number, 1 to 1e+12, got 0"),
        ("time_s,bytes\n1,2.5\n", "", "", "own.csv:2: bytes must be a whole number"),
        ("time_s,bytes\n1\n", "", "", "own.csv:2: 2 values, for time_s, bytes, got 1"),
        ("time_s,byte\n1,5\n", "", "", "own.csv:1: no column 'byte'; did you mean 'bytes'?"),
        ("bytes\n5\n", "", "", "own.csv:1: a column time_s is needed"),
        ("time_s,sender\n1,h1\n", "", "", "own.csv:1: sender and receiver belong together"),
        ("time_s,bytes\nnan,5\n", "", "", "own.csv:2: 'nan' is not finite"),
        ("time_s,bytes\n", "", "", "no arrivals"),
        ("time_s\n1\n", "", "", "missing key 'sizes', and own.csv has no column bytes"),
        ("time_s,bytes\n1,5\n", "", "sizes = { mean_bytes = 5 }", "sizes: own.csv has the bytes of each arrival: leave out one of the two"),
        ("time_s,bytes,sender,receiver\n1,5,h1,h9\n", "", "", "arrivals: the file names a host 'h9', at 1 s"),
        ("time_s,bytes,sender,receiver\n1,5,h1,h1\n", "", "", "arrivals: in the file h1 sends to itself, at 1 s"),
        (
            "time_s,bytes,sender,receiver\n1,5,h1,h5\n",
            'pattern = "incast"\nfan_in = 2',
            "",
            "fan_in: own.csv has one size for each arrival",
        ),
        ("time_s,bytes,sender,receiver\n1,5,h1,h5\n", 'senders = ["h1"]', "", "senders: own.csv has the hosts of each arrival"),
    ],
)
def test_a_bad_trace_is_refused(tmp_path: Path, lines: str, more: str, sizes: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        traced(tmp_path, lines, more, sizes)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'pattern = "request-response"',
            'pattern = "pairs"\nthink_s = 1.0',
            "think_s: of request-response and partition-aggregate, and of no other pattern",
        ),
        (
            'pattern = "request-response"',
            'pattern = "partition-aggregate"',
            "fan_in: of incast and partition-aggregate, and of no other pattern",
        ),
        ('pattern = "request-response"', 'pattern = "request-response"\nthink_s = 0.0', "think_s: must be positive, got 0"),
        ("per_s = 20", 'kind = "trace"', "file: trace has a file, and no other kind has one"),
        ("per_s = 20", 'kind = "trace", file = "own.csv", load = 0.5', "load: the times of a trace are in its file"),
        ("per_s = 20", 'kind = "trace", file = "nowhere.csv"', "arrivals.file: no file"),
    ],
)
def test_a_bad_pattern_that_asks_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    (tmp_path / "own.csv").write_text("time_s\n1\n")
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, asking("request-response").replace(old, new))
    assert message in str(refused.value)


def test_a_study_carries_the_traces_of_its_workloads(tmp_path: Path) -> None:
    from fairlane.inputs import located_toml
    from fairlane.studies import traces

    traced(tmp_path, "time_s,bytes\n1,5\n")
    document = located_toml.read(tmp_path / "w.toml")
    assert traces.own(document) == {"own.csv": tmp_path / "own.csv"}
    assert traces.renamed(document, {"own.csv": "other.csv"}).values["workloads"][0]["arrivals"] == {"kind": "trace", "file": "other.csv"}

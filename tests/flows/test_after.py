"""Flows that wait for others, requests and their answers, in virtual time."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from fairlane import api
from fairlane.experiments import loader
from fairlane.fabrics import virtual_fabric
from fairlane.inputs.located_toml import ConfigError
from fairlane.results import queries

built = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")
NETWORK = """
title = "One after the other"
bottleneck = "s1->s2"
duration_s = 10.0
window_from = 0.0
[topology]
kind = "dumbbell"
pairs = 4
bottleneck = { rate_bps = 10_000_000, delay_s = 0.01, queue_packets = 100 }
access = { rate_bps = 100_000_000, delay_s = 0.001 }
"""
PROPAGATION_S = 0.012
FILE = "parameters = { file_bytes = 50_000 }\n"


def flow(name: str, *pair: str, kind: str = "tcp-cubic", more: str = FILE) -> str:
    return f'[[flows]]\nname = "{name}"\nkind = "{kind}"\nhosts = [["{pair[0]}", "{pair[1]}"]]\n{more}'


def load(tmp_path: Path, *flows: str, network: str = NETWORK) -> api.Experiment:
    file = tmp_path / "run.toml"
    file.write_text(network + "".join(flows))
    return loader.load(file)


def starts(result: api.Result) -> dict[str, tuple[float, float]]:
    """When each flow sent its first packet, and how long it took."""
    return {r.flow.name: (r.active[0], r.completion_s) for r in result.recorded.flows if r.active is not None}


@built
def test_a_flow_starts_when_another_is_complete(tmp_path: Path) -> None:
    experiment = load(
        tmp_path,
        flow("first", "h1", "h5", more=FILE + "start_s = 1.0\n"),
        flow("same-sender", "h1", "h5", more=FILE + 'after = "first"\nafter_s = 0.25\n'),
        flow("back", "h5", "h1", more=FILE + 'after = "first"\nafter_s = 0.25\n'),
        flow("late", "h5", "h1", more=FILE + 'after = "first"\nstart_s = 8.0\n'),
    )
    found = starts(api.run_experiment(experiment, out=tmp_path / "out"))
    begun, took = found["first"]
    assert begun == pytest.approx(1.0, abs=1e-6) and 0.09 < took < 0.3
    assert found["same-sender"][0] == pytest.approx(begun + took + 0.25, abs=1e-6)
    # The receiver has the last byte before the sender learns of it; nothing else is on the way back.
    assert found["back"][0] == pytest.approx(begun + took - PROPAGATION_S + 0.25, abs=5e-4)
    assert found["late"][0] == pytest.approx(8.0, abs=1e-6)


@built
def test_groups_follow_each_other_in_order(tmp_path: Path) -> None:
    pairs = 'hosts = [["h1", "h5"], ["h2", "h6"]]\ncount = 2\n'
    text = f'[[flows]]\nname = "a"\nkind = "tcp-sack"\n{pairs}join_interval_s = 2.0\n{FILE}'
    text += f'[[flows]]\nname = "b"\nkind = "tcp-sack"\n{pairs}after = "a"\n{FILE}'
    found = starts(api.run_experiment(load(tmp_path, text), out=tmp_path / "out"))
    for n in range(2):
        assert found[f"b-{n}"][0] == pytest.approx(sum(found[f"a-{n}"]), abs=1e-6)


@pytest.mark.parametrize(
    ("flows", "message"),
    [
        (
            (flow("a", "h1", "h5"), flow("b", "h1", "h5", more=FILE + 'after = "c"\n')),
            "run.toml:21: flows[1].after: no flow 'c' before this one",
        ),
        ((flow("b", "h1", "h5", more=FILE + 'after = "b"\n'),), "flows[0].after: no flow 'b' before this one"),
        (
            (flow("a", "h1", "h5", more=""), flow("b", "h1", "h5", more='after = "a"\n')),
            "a has no end to wait for: give it a kind of TCP and file_bytes",
        ),
        ((flow("a", "h1", "h5"), flow("b", "h2", "h5", more='after = "a"\n')), "h2 learns nothing of the end of a, from h1 to h5"),
        (
            (flow("a", "h1", "h5"), flow("b", "h1", "h5", kind="rap", more='after = "a"\n')),
            "rap cannot wait for another flow: only kinds of TCP can",
        ),
        ((flow("a", "h1", "h5", more=FILE + "after_s = 1.0\n"),), "flows[0].after_s: belongs to after, the flow to wait for"),
        (
            (flow("a", "h1", "h5", more=FILE + "count = 2\n"), flow("b", "h1", "h5", more=FILE + 'count = 3\nafter = "a"\n')),
            "a has 2 flows, and b 3: give one of them, or as many",
        ),
    ],
)
def test_what_cannot_follow_is_refused(tmp_path: Path, flows: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, *flows)
    assert message in str(refused.value)


def workload(pattern: str, more: str, sizes: str = "{ mean_bytes = 30_000 }") -> str:
    return f'[[workloads]]\nname = "web"\nkind = "tcp-cubic"\npattern = "{pattern}"\nsizes = {sizes}\n{more}\n'


@built
def test_a_request_has_its_answer(tmp_path: Path) -> None:
    """One at a time over an empty network: the time is a sum of parts that are known."""
    text = workload(
        "request-response",
        'senders = ["h1"]\nreceivers = ["h5"]\narrivals = { kind = "deterministic", per_s = 0.5 }\nrequests = 2\nthink_s = 0.2',
    )
    result = api.run_experiment(load(tmp_path, text), out=tmp_path / "out")
    found = queries.of_flows(result.recorded.flows)
    assert [q.name for q in found] == [f"web-{n}.{turn}" for n in range(5) for turn in range(2)]
    by_name = {r.flow.name: r for r in result.recorded.flows}
    for query in found:
        ask, answer = by_name[f"{query.name}.ask"], by_name[f"{query.name}.answer"]
        assert ask.active is not None and answer.active is not None
        # The request is there after the handshake and one way more; the answer has no handshake.
        assert answer.startup_s == pytest.approx(0.0, abs=1e-9) and ask.delivered_s == pytest.approx(answer.active[0], abs=1e-9)
        assert ask.delivered_s - ask.active[0] == pytest.approx(3 * PROPAGATION_S, rel=0.03)
        assert query.completion_s == pytest.approx(answer.delivered_s - ask.active[0]) and query.answer_bytes == 30_000 and query.flows == 2
        assert 3 * PROPAGATION_S + 30_000 * 8 / 10e6 < query.completion_s < 0.2
        assert ask.slowdown == pytest.approx(1.0, abs=0.1) and answer.slowdown >= 1.0
    # The second of an arrival waits for the answer, and for the time to think.
    gaps = [by_name[f"web-{n}.1.ask"].active[0] - by_name[f"web-{n}.0.answer"].delivered_s for n in range(5)]  # type: ignore[index]
    flows = {f.name: f for f in result.recorded.experiment.flows}
    assert gaps == pytest.approx([flows[f"web-{n}.1.ask"].after_s for n in range(5)], abs=1e-6) and min(gaps) > 0
    figures = result.summary["queries"]
    assert figures == [
        {"workload": "web", "pattern": "request-response", "queries": 10, "complete": 10, "completion_s": figures[0]["completion_s"]}
    ]
    assert list((tmp_path / "out" / "queries.csv").read_text().splitlines()[0].split(",")) == [
        "query",
        "workload",
        "start_s",
        "flows",
        "answer_bytes",
        "completion_s",
    ]


@built
def test_a_query_ends_with_its_last_answer(tmp_path: Path) -> None:
    """The answers share the way to the one who asked: all of them together take at least the link's time for them."""
    receivers = 'senders = ["h1"]\nreceivers = ["h5", "h6", "h7", "h8"]\nfan_in = 4\narrivals = { kind = "deterministic", per_s = 0.5 }'
    result = api.run_experiment(load(tmp_path, workload("partition-aggregate", receivers)), out=tmp_path / "out")
    found = queries.of_flows(result.recorded.flows)
    assert len(found) == 5 and all(q.flows == 8 and q.answer_bytes == 120_000 for q in found)
    for query in found:
        answers = [r for r in result.recorded.flows if r.flow.query == query.name and r.flow.answers]
        assert len({r.flow.sender for r in answers}) == 4 and {r.flow.receiver for r in answers} == {"h1"}
        assert query.completion_s == pytest.approx(max(r.delivered_s for r in answers) - query.start_s)
        assert query.completion_s > 3 * PROPAGATION_S + 120_000 * 8 / 10e6
    assert result.summary["queries"][0]["completion_s"]["p50"] == pytest.approx(sorted(q.completion_s for q in found)[2])


@built
def test_what_is_not_answered_in_time_is_not_complete(tmp_path: Path) -> None:
    text = workload(
        "request-response",
        'senders = ["h1"]\nreceivers = ["h5"]\narrivals = { kind = "deterministic", per_s = 0.2 }',
        "{ mean_bytes = 8_000_000 }",
    )
    result = api.run_experiment(load(tmp_path, text), out=tmp_path / "out")
    _, second = queries.of_flows(result.recorded.flows)
    assert math.isnan(second.completion_s) and second.start_s == pytest.approx(5.0, abs=1e-6)
    assert result.summary["queries"][0]["queries"] == 2


@built
def test_a_workload_that_asks_changes_no_other_flow(tmp_path: Path) -> None:
    """Its own hosts and links alone: the records of others are the same bytes."""
    network = NETWORK.replace("10_000_000", "1_000_000_000")
    plain = flow("plain", "h2", "h6", more=FILE)
    ask = workload("request-response", 'senders = ["h1"]\nreceivers = ["h5"]\narrivals = { per_s = 3 }\nstart_s = 5.0')
    records = []
    for n, texts in enumerate(((plain,), (plain, ask))):
        api.run_experiment(load(tmp_path, *texts, network=network), out=tmp_path / f"out{n}")
        records.append([(tmp_path / f"out{n}" / "raw" / f"plain.{role}.jsonl").read_bytes() for role in ("sender", "receiver")])
    assert records[0] == records[1]

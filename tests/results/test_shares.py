"""Max-min fair shares over random networks and schedules, against their definition; and what many flows cost."""

from __future__ import annotations

import itertools
import math
import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane.experiments import paths
from fairlane.experiments.kinds import TcpSettings
from fairlane.experiments.model import Flow
from fairlane.results.series import FlowRecord, LinkRecord, Series, Steps
from fairlane.results.shares import ShareTable
from fairlane.topologies.model import Link, Node, Topology

NOTHING = Steps.of([], [])
RATES_BPS = (1e6, 2e6, 3e6, 10e6)


def record(name: str, sender: str, receiver: str, active: tuple[float, float] | None) -> FlowRecord:
    return FlowRecord(Flow(name, "tcp-reno", sender, receiver, 0.0, TcpSettings()), NOTHING, NOTHING, NOTHING, [], [], active)


def network(draw: random.Random) -> Topology:
    """A tree of up to five switches with up to eight hosts."""
    switches, hosts = draw.randint(1, 5), draw.randint(2, 8)
    nodes = [Node(f"s{i}", "switch") for i in range(switches)] + [Node(f"h{i}", "host") for i in range(hosts)]
    links = [Link((f"s{i}", f"s{draw.randrange(i)}"), rate_bps=draw.choice(RATES_BPS)) for i in range(1, switches)]
    links += [Link((f"h{i}", f"s{draw.randrange(switches)}"), rate_bps=draw.choice(RATES_BPS)) for i in range(hosts)]
    return Topology(tuple(nodes), tuple(links))


def run(draw: random.Random) -> Series:
    """Flows that come and go, links that change, a flow to several receivers."""
    topology = network(draw)
    records = []
    for i in range(draw.randint(1, 10)):
        sender, *receivers = draw.sample(topology.hosts, min(len(topology.hosts), draw.choice((2, 2, 2, 3))))
        start = draw.choice((0.0, draw.uniform(0, 9)))
        active = draw.choice((None, (start, draw.uniform(start, 10)), (start, 10.0), (start, 10.0)))
        records += [record(f"f{i}@{r}" if len(receivers) > 1 else f"f{i}", sender, r, active) for r in receivers]
    links = {}
    for switch in topology.switches:
        for port in topology.ports()[switch]:
            changes = [(draw.uniform(0, 10), draw.choice(RATES_BPS))] if draw.random() < 0.3 else []
            links[switch, port.number] = LinkRecord("", port, NOTHING, None, {}, [(0.0, port.link.rate_bps), *changes])
    experiment = type("Experiment", (), {"topology": topology, "seed": 1, "changes": ()})()
    return Series(experiment, records, links, {})


def taken(series: Series, shares: dict[str, float], time_s: float) -> dict[tuple[str, int], tuple[float, dict[str, float]]]:
    """Of each link that is used: its rate, and what each flow takes of it: as much as its fastest receiver behind it."""
    found: dict[tuple[str, int], tuple[float, dict[str, float]]] = {}
    for one in series.flows:
        if one.flow.name in shares:
            for port in paths.there(series.experiment, one.flow):
                key = (port.node, port.number)
                rate = series.links[key].rate_at(time_s) if key in series.links else port.link.rate_bps
                flows = found.setdefault(key, (rate, {}))[1]
                group = one.flow.name.partition("@")[0]
                flows[group] = max(flows.get(group, 0.0), shares[one.flow.name])
    return found


@settings(max_examples=150)
@given(st.integers(0, 2**32), st.floats(0.0, 10.0))
def test_shares_are_max_min_at_any_instant(seed: int, time_s: float) -> None:
    """No link has more than its rate, and each flow has a full link on which no flow has more: nothing can be given to it but from one that has less."""
    series = run(random.Random(seed))
    shares = dict(ShareTable(series).at(time_s))
    assert set(shares) == {r.flow.name for r in series.flows if r.active is not None and r.active[0] <= time_s <= r.active[1]}
    links = taken(series, shares, time_s)
    assert all(sum(flows.values()) <= rate * (1 + 1e-9) for rate, flows in links.values())
    for one in series.flows:
        if one.flow.name in shares:
            path = paths.there(series.experiment, one.flow)
            bounds = [links[p.node, p.number] for p in path]
            share = shares[one.flow.name] * (1 + 1e-9)
            assert any(sum(flows.values()) >= rate * (1 - 1e-9) and share >= max(flows.values()) for rate, flows in bounds)


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.floats(0.0, 8.0), st.floats(0.1, 2.0))
def test_a_mean_is_the_integral_over_the_time_that_a_flow_was_active(seed: int, start_s: float, seconds: float) -> None:
    series = run(random.Random(seed))
    end_s = start_s + seconds
    table = ShareTable(series)
    for one in series.flows:
        span = one.active_in(start_s, end_s)
        mean = table.mean(one.flow.name, start_s, end_s)
        if span is None:
            assert math.isnan(mean) or (one.active is not None and abs(one.active[1] - start_s) < 2e-6)
            continue
        # Between two changes a share is constant: its value in the middle counts.
        changes = {t for r in series.flows if r.active for t in r.active} | {t for link in series.links.values() for t, _ in link.rates_bps}
        edges = sorted({*span, *(t for t in changes if span[0] < t < span[1])})
        area = sum((b - a) * table.at((a + b) / 2)[one.flow.name] for a, b in itertools.pairwise(edges) if b - a > 1e-9)
        assert mean == pytest.approx(area / (span[1] - span[0]), rel=1e-3)


@settings(max_examples=100)
@given(st.integers(0, 2**32), st.lists(st.floats(0.0, 10.0), min_size=1, max_size=12))
def test_shares_along_a_run_are_those_of_each_instant_alone(seed: int, times: list[float]) -> None:
    """Forwards and backwards: what a change does not touch is kept, and is what a fresh table finds."""
    series = run(random.Random(seed))
    table = ShareTable(series)
    for time_s in times:
        assert dict(table.at(time_s)) == pytest.approx(dict(ShareTable(series).at(time_s)), rel=1e-12)


def dumbbell(flows: int) -> Series:
    """As many flows as pairs of hosts at both sides, each of which begins at another time and ends at another time."""
    side = math.isqrt(flows - 1) + 1
    nodes = [Node("s1", "switch"), Node("s2", "switch"), *(Node(f"{end}{i}", "host") for end in "ab" for i in range(side))]
    links = [Link(("s1", "s2"), rate_bps=1e9)]
    links += [Link((f"{end}{i}", switch), rate_bps=1e9) for end, switch in (("a", "s1"), ("b", "s2")) for i in range(side)]
    experiment = type("Experiment", (), {"topology": Topology(tuple(nodes), tuple(links)), "seed": 1, "changes": ()})()
    records = [record(f"f{i}", f"a{i // side}", f"b{i % side}", (0.2 * i / flows, 0.3 + 0.1 * i / flows)) for i in range(flows)]
    return Series(experiment, records, {}, {})


def test_four_thousand_flows_take_less_than_two_seconds() -> None:
    """As shares were computed before, for each change from all flows, they took minutes."""
    series = dumbbell(4000)
    began = time.process_time()
    table = ShareTable(series)
    found = [table.mean(f"f{i}", 0.0, 0.4) for i in range(4000)]
    assert time.process_time() - began < 2.0
    # The first is alone at first, then with more and more; the last has come when all are there, and stays alone.
    assert table.at(0.25)["f0"] == pytest.approx(1e9 / 4000)
    assert found[0] > found[2000] and table.at(0.3999)["f3999"] > 1e8
    assert "f0" not in table.at(0.35)

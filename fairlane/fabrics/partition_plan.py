"""How a network is divided over processes: which switches, with their hosts, each of them simulates. The records do not depend on it (docs/partitions.md, docs/machines.md); the
time that a run takes does.

A cut goes through links between switches only, and costs what crosses it. Each process may run ahead of the others by the least delay of a cut link: so
links of short delay stay whole, as far as the parts can still be of like weight.
"""

from __future__ import annotations

import itertools
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fairlane.arithmetic import total
from fairlane.experiments import paths
from fairlane.experiments.kinds import AlgorithmSettings
from fairlane.experiments.model import Experiment, Flow

LIKE = 1.25
"""The heaviest part, over the mean: where it is no heavier, longer delays are better than parts that are more alike."""
# Of one packet, in units of what a switch does for it: at each end of a flow, with an algorithm in Python, and over a cut.
_END, _PYTHON_END, _CROSSING = 1.0, 3.0, 0.3
_ROUNDS = 20
"""Of bettering a division."""
# What a process needs, by measurement (docs/measurements.md): for a packet at a switch, for a window, and to begin and end.
_PACKET_S, _WINDOW_S, _START_S = 1.2e-6, 40e-6, 0.3
_GAIN = 1.3
"""Division by itself only if it is expected to make a run so much faster."""


@dataclass(frozen=True)
class Plan:
    """homes: of each switch by its number, the part that has it; the one of the report's link and the control plane is 0. lookahead_s: how far parts may run ahead of
    each other. loads: of each part, expected packets at switches a second, ends of flows counted with their work. crossing: packets a second over cuts. links: that are cut."""

    homes: tuple[int, ...]
    lookahead_s: float
    loads: tuple[float, ...]
    crossing: float
    links: int

    @property
    def parts(self) -> int:
        return len(self.loads)

    def expected_s(self, experiment: Experiment) -> float:
        """Processor time of the busiest process."""
        windows = experiment.duration_s / self.lookahead_s
        return _START_S + windows * _WINDOW_S + experiment.duration_s * _PACKET_S * (max(self.loads) + _CROSSING * self.crossing)


@dataclass(frozen=True)
class _Network:
    """loads: of each switch. weights: of each two switches with links, packets a second between them. delays: their least delay, 0 where they must stay together. joined: so
    many links."""

    loads: list[float]
    weights: dict[tuple[int, int], float]
    delays: dict[tuple[int, int], float]
    joined: dict[tuple[int, int], int]


def cores() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def plan(experiment: Experiment, asked: int | None, control_delay_s: float) -> Plan | str:
    """A division into so many parts, or why there is none. asked: None for as many as are worth it, "" says that it is not."""
    if asked == 1 or (asked is None and cores() == 1):
        return ""
    switches = experiment.topology.switches
    if len(switches) < 2:
        return "" if asked is None else "one switch is simulated by one process"
    if control_delay_s <= 0:
        return "" if asked is None else "switches and controller without delay between them (--control-delay) are simulated by one process"
    network = _network(experiment)
    if asked is not None:
        divided = _divided(network, experiment, asked, control_delay_s)
        return divided or "all links between switches are without delay, or fail at some time, so one process simulates them all"
    alone_s = experiment.duration_s * _PACKET_S * total(network.loads)
    if alone_s < 5 * _START_S:
        return ""
    plans = (_divided(network, experiment, count, control_delay_s) for count in range(2, min(cores(), len(switches)) + 1))
    best = min((one for one in plans if one is not None), key=lambda one: one.expected_s(experiment), default=None)
    return "" if best is None or best.expected_s(experiment) * _GAIN > alone_s else best


def _network(experiment: Experiment) -> _Network:
    topology = experiment.topology
    number = {name: n for n, name in enumerate(topology.switches)}
    loads = [0.0] * len(number)
    weights: dict[tuple[int, int], float] = defaultdict(float)
    delays: dict[tuple[int, int], float] = {}
    joined: dict[tuple[int, int], int] = defaultdict(int)
    together = _together(experiment)
    for link, direction in enumerate(topology.links):
        there, back = topology.ends(link)
        if there.node not in number or back.node not in number:
            continue
        pair = _pair(number[there.node], number[back.node])
        delay_s = min(direction.delay_s, direction.backward.delay_s)
        delays[pair] = min(delays.get(pair, delay_s), 0.0 if link in together else delay_s)
        joined[pair] += 1
    for change, node, port in experiment.changes:
        if change.delay_s is not None and node in number:
            other = topology.port(node, port).peer
            if other in number:
                pair = _pair(number[node], number[other])
                delays[pair] = min(delays[pair], change.delay_s)
    flows = [flow for flow in experiment.flows if flow.start_s < experiment.duration_s]
    ways = [(flow, [paths.there(experiment, flow, receiver) for receiver in flow.all_receivers]) for flow in flows]
    users: dict[tuple[str, int], int] = defaultdict(int)
    for _, found in ways:
        for taken in {(p.node, p.number) for way in found for p in way}:
            users[taken] += 1
    for flow, found in ways:
        rate = _packets(flow, min((p.link.rate_bps / users[p.node, p.number] for way in found for p in way), default=0.0))
        for way in found:
            passed = [number[p.node] for p in way if p.node in number]
            for n in passed:
                loads[n] += rate
            for a, b in itertools.pairwise(passed):
                weights[_pair(a, b)] += rate
            ends = rate * (_PYTHON_END if isinstance(flow.settings, AlgorithmSettings) else _END)
            for n in (passed[0], passed[-1]) if passed else ():
                loads[n] += ends
    # A switch without traffic still has work: its ports are recorded.
    return _Network([load + 100.0 for load in loads], weights, delays, joined)


def _pair(a: int, b: int) -> tuple[int, int]:
    return (a, b) if a < b else (b, a)


def _together(experiment: Experiment) -> set[int]:
    """Links whose ends one process must simulate: those that fail at some time, since both ends must know what that loses."""
    topology = experiment.topology
    return {topology.port(node, port).link_index for change, node, port in experiment.changes if change.up is not None}


def _packets(flow: Flow, rate_bps: float) -> float:
    """A second, those that answer counted; at most what the flow's own limit allows."""
    limits = [rate_bps]
    for key in ("rate_bps", "maximum_rate_bps"):
        limit = getattr(flow.settings, key, None)
        if limit:
            limits.append(float(limit))
    return 2 * min(limits) / (8 * getattr(flow.settings, "packet_bytes", 1000))


def _divided(network: _Network, experiment: Experiment, count: int, control_delay_s: float) -> Plan | None:
    """Into so many parts, or as many as there can be; None: only one."""
    best: tuple[float, list[int]] | None = None
    for least in sorted({delay for delay in network.delays.values() if delay > 0}, reverse=True):
        clusters = _clusters(network, least)
        parts = min(count, max(clusters) + 1)
        if parts < 2:
            continue
        homes = _parts(network, clusters, parts)
        heaviest = max(_sums(network.loads, homes, parts)) * count / total(network.loads)
        if best is None or heaviest < best[0] * 0.95:
            best = heaviest, homes
        if best[0] <= LIKE:
            break
    if best is None:
        return None
    topology = experiment.topology
    reported = experiment.bottleneck[0]
    first = best[1][topology.switches.index(reported)] if reported in topology.switches else 0
    homes = [0 if home == first else first if home == 0 else home for home in best[1]]
    cut = [pair for pair in network.delays if homes[pair[0]] != homes[pair[1]]]
    return Plan(
        tuple(homes),
        min([control_delay_s, *(network.delays[pair] for pair in cut)]),
        tuple(_sums(network.loads, homes, max(homes) + 1)),
        total(network.weights.get(pair, 0.0) for pair in cut),
        sum(network.joined[pair] for pair in cut),
    )


def _sums(loads: Iterable[float], homes: Sequence[int], parts: int) -> list[float]:
    found: list[list[float]] = [[] for _ in range(parts)]
    for load, home in zip(loads, homes):
        found[home].append(load)
    return [total(part) for part in found]


def _clusters(network: _Network, least: float) -> list[int]:
    """Of each switch its cluster: links of a shorter delay are not cut. Numbered from 0 by their first switch."""
    root = list(range(len(network.loads)))

    def top(node: int) -> int:
        while root[node] != node:
            node = root[node]
        return node

    for (a, b), delay in network.delays.items():
        if delay < least:
            low, high = sorted((top(a), top(b)))
            root[high] = low
    numbers: dict[int, int] = {}
    return [numbers.setdefault(top(node), len(numbers)) for node in range(len(root))]


def _parts(network: _Network, clusters: Sequence[int], parts: int) -> list[int]:
    """Of each switch its part: parts grow from a seed by what is joined to them most, and then clusters move as long as that betters the division."""
    count = max(clusters) + 1
    loads = _sums(network.loads, clusters, count)
    near: list[dict[int, float]] = [defaultdict(float) for _ in range(count)]
    for a, b in network.delays:
        one, other = clusters[a], clusters[b]
        if one != other:
            weight = network.weights.get((a, b), 0.0) + 1e-3
            near[one][other] += weight
            near[other][one] += weight
    home = _grown(loads, near, parts)
    sums = _sums(loads, home, parts)
    sizes = [home.count(part) for part in range(parts)]
    for _ in range(_ROUNDS):
        moved = False
        for cluster in range(count):
            here = home[cluster]
            if sizes[here] == 1:
                continue
            to_parts: dict[int, float] = defaultdict(float)
            for other, weight in near[cluster].items():
                to_parts[home[other]] += weight
            for there in sorted(to_parts):
                if there == here:
                    continue
                before = max(sums[here], sums[there])
                after = max(sums[here] - loads[cluster], sums[there] + loads[cluster])
                if after - before + _CROSSING * (to_parts[here] - to_parts[there]) < -1e-9 * (before + 1):
                    sums[here] -= loads[cluster]
                    sums[there] += loads[cluster]
                    sizes[here] -= 1
                    sizes[there] += 1
                    home[cluster], moved = there, True
                    break
        if not moved:
            break
    return [home[cluster] for cluster in clusters]


def _grown(loads: Sequence[float], near: Sequence[dict[int, float]], parts: int) -> list[int]:
    """Of each cluster its part."""
    home = [-1] * len(loads)
    left = total(loads)
    for part in range(parts - 1):
        free = [n for n, at in enumerate(home) if at < 0]
        # As few neighbours as can be: at the edge of what is left.
        seed = min(free, key=lambda n: (total(w for other, w in near[n].items() if home[other] < 0), n))
        goal, has, pull = left / (parts - part), 0.0, {seed: 0.0}
        while pull and len(free) > parts - part - 1:
            node = max(pull, key=lambda n: (pull[n], -n))
            if has and has + loads[node] / 2 > goal:
                break
            del pull[node]
            home[node] = part
            free.remove(node)
            has += loads[node]
            for other, weight in near[node].items():
                if home[other] < 0:
                    pull[other] = pull.get(other, 0.0) + weight
        left -= has
    return [parts - 1 if at < 0 else at for at in home]

"""Lab 7: shares held against the definition of max-min fairness, the sender's rules one by one, and both in a network of two links."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Any

from fairlane import api
from fairlane.hosts.algorithms.base import Feedback, Sender, SetTimer, Timer
from fairlane.labs.grading import NETWORK_S, Answer, Missed, algorithms, check
from fairlane.labs.grading.answer import number

FILE, KIND, SHARES = "my_als.py", "my-als", "max_min.py"
FIRST = "first make the check before this one hold"
RNG = random.Random(7)
TIMER = "adaptation"
FIGURE_1 = ({"router 1": 2e6, "router 2": 1e6}, {"sender 1": ["router 1", "router 2"], "sender 2": ["router 1"], "sender 3": ["router 2"]})
CHAIN = (
    {f"L{n}": 1e6 for n in range(1, 5)},
    {"C0": ["L1", "L2", "L3", "L4"], "C1": ["L1", "L2"], "C2": ["L1"], "C3": ["L2"], "C4": ["L2", "L3"], "C5": ["L3"], "C6": ["L4"]},
)
Network = tuple[dict[str, float], dict[str, list[str]]]

# ------------------------------------------------------------------------------------------------------------- shares


def shares(answer: Answer, network: Network) -> dict[str, float]:
    links, paths = network
    given = answer.function(SHARES, "shares")(dict(links), {name: list(path) for name, path in paths.items()})
    if not isinstance(given, Mapping):
        raise Missed(f"{SHARES}: shares(...) gives {given!r}, which is no dict", "connection -> bit/s, for each connection of paths")
    lacking = [name for name in paths if name not in given]
    if lacking:
        raise Missed(
            f"{SHARES}: shares(...) has nothing for {', '.join(lacking)}", "does the loop end before each connection has its share?"
        )
    return {name: number(given[name], f"{SHARES}: the share of {name}") for name in paths}


def fault(answer: Answer, network: Network) -> Missed | None:
    """What keeps shares from being max-min fair: a link that carries too much, or a connection without a bottleneck link, one that is
    full and where nobody has more (Bertsekas and Gallager, Data Networks, section 6.5.2)."""
    links, paths = network
    given = shares(answer, network)
    told = ", ".join(f"{name} {share / 1e3:.4g}" for name, share in given.items()) + " kb/s"
    crossing = {link: [name for name in paths if link in paths[name]] for link in links}
    load = {link: sum(given[name] for name in crossing[link]) for link in links}
    over = next((link for link in links if load[link] > links[link] * (1 + 1e-6)), None)
    if over is not None:
        return Missed(
            f"{_described(network)}\n{told}: {over} would carry {load[over] / 1e3:.4g} of {links[over] / 1e3:.4g} kb/s",
            "when a connection has its share, what is left for the others, and on which links?",
        )
    for name, path in paths.items():
        full = [link for link in path if load[link] >= links[link] * (1 - 1e-6)]
        if not full:
            return Missed(
                f"{_described(network)}\n{told}: no link of {name} is full",
                "who may have what a connection that is limited elsewhere leaves?",
            )
        if not any(given[name] >= max(given[other] for other in crossing[link]) * (1 - 1e-6) for link in full):
            return Missed(
                f"{_described(network)}\n{told}: on each full link of {name} somebody has more than {name}",
                "which link must be dealt out first, so that nobody gets more at the cost of one who has less?",
            )
    return None


def _described(network: Network) -> str:
    links, paths = network
    return (
        ", ".join(f"{link} {rate / 1e3:.4g} kb/s" for link, rate in links.items())
        + "; "
        + ", ".join(f"{name} over {' and '.join(path)}" for name, path in paths.items())
    )


@check(1, "one link is shared equally")
def one_link(answer: Answer) -> None:
    missed = fault(answer, ({"L1": 2e6}, {name: ["L1"] for name in ("C0", "C1", "C2", "C3")}))
    if missed:
        raise missed


@check(2, "figure 1 of the paper: what one connection cannot use, another gets")
def figure_1(answer: Answer) -> None:
    one_link_first(answer)
    missed = fault(answer, FIGURE_1)
    if missed:
        raise missed


@check(2, "the paper's chain, and forty networks drawn at random")
def networks(answer: Answer) -> None:
    one_link_first(answer)
    draw = random.Random(42)
    for network in (CHAIN, *(_drawn(draw) for _ in range(40))):
        missed = fault(answer, network)
        if missed:
            raise missed


def one_link_first(answer: Answer) -> None:
    if fault(answer, ({"L1": 2e6}, {"C0": ["L1"], "C1": ["L1"]})):
        raise Missed("one link is not shared equally", FIRST)


def _drawn(draw: random.Random) -> Network:
    links = {f"L{n}": draw.choice((5e5, 1e6, 2e6, 3e6)) for n in range(1, draw.randint(2, 4) + 1)}
    paths = {f"C{n}": sorted(draw.sample(sorted(links), draw.randint(1, len(links)))) for n in range(draw.randint(2, 5))}
    return links, paths


# ------------------------------------------------------------------------------------------------------------- the sender


def air_bps(answer: Answer) -> float:
    """With which AIR this student's senders begin."""
    return 1e3 * answer.number("air", 5)


class Flow:
    """A started sender, and the events for it."""

    def __init__(self, answer: Answer) -> None:
        kind = algorithms.use(answer, FILE, KIND)
        self.sender: Sender = kind.sender(kind.parameters())
        self.sender.on_start(0.0, RNG)
        self.now_s = 0.0

    def report(self, desired_bps: float | None, utilisation: float | None, loss: float = 0.0) -> tuple[Any, ...]:
        self.now_s += 1.0
        return self.sender.on_feedback(self.now_s, Feedback(1, loss, desired_rate_bps=desired_bps, utilisation=utilisation), RNG)

    def adapt(self) -> tuple[Any, ...]:
        self.now_s = 5.0 * math.floor(self.now_s / 5.0 + 1)
        return self.sender.on_timer(self.now_s, Timer(TIMER), RNG)

    def adapted(self) -> float:
        """The rate that the next adaptation point sets, bit/s; 0 when it sets none."""
        return algorithms.rate_of(self.adapt()) or 0.0


def said(rate: float) -> str:
    return f"the rate is {rate / 1e3:.6g} kb/s" if rate else "no rate is set"


def adapts_at_all(answer: Answer) -> None:
    flow = Flow(answer)
    flow.report(225e3, 0.5)
    if not 225e3 <= flow.adapted() <= 225e3 + 3 * air_bps(answer):
        raise Missed("a report of R_d = 225 kb/s and an adaptation point do not lead to a rate a little above R_d", FIRST)


@check(2, "without loss, AIR grows as the router's load allows, and goes on top of R_d")
def increase(answer: Answer) -> None:
    flow, air = Flow(answer), air_bps(answer)
    flow.report(225e3, 0.5)
    first = flow.adapted()
    if not first:
        raise Missed("after a report and an adaptation point no rate is set", "what does on_timer return at an adaptation point?")
    if not math.isclose(first, 225e3 + 1.5 * air, rel_tol=1e-6):
        raise Missed(
            f"AIR {air / 1e3:g} kb/s; a report without loss: R_d = 225 kb/s, U = 0.5: {said(first)}",
            "the equations at the head of the file: what does AIR become, and what is it added to? The flow has sent at 200 kb/s before",
        )
    flow.report(100e3, 0.5)
    second = flow.adapted()
    if not math.isclose(second, 100e3 + 2.25 * air, rel_tol=1e-6):
        raise Missed(
            f"then another: R_d = 100 kb/s, U = 0.5: {said(second)}",
            "AIR* is the AIR of the report before; and when R_d falls, does the rate fall with it?",
            1,
        )


@check(1, "a full router stops AIR's growth, an idle one doubles it")
def growth(answer: Answer) -> None:
    adapts_at_all(answer)
    air = air_bps(answer)
    for utilisation, wanted in ((1.0, air), (0.0, 2 * air)):
        flow = Flow(answer)
        flow.report(225e3, utilisation)
        rate = flow.adapted()
        if not math.isclose(rate, 225e3 + wanted, rel_tol=1e-6):
            raise Missed(
                f"AIR {air / 1e3:g} kb/s; R_d = 225 kb/s, U = {utilisation:g}: {said(rate)}",
                "put U = 0 and U = 1 into the equation: is AIR ever to become smaller without loss?",
            )


@check(2, "a loss takes the rate below R_d, and AIR to its beginning")
def loss(answer: Answer) -> None:
    adapts_at_all(answer)
    flow = Flow(answer)
    flow.report(225e3, 0.0)
    flow.report(225e3, 0.0)
    flow.report(200e3, 1.0, loss=0.1)
    rate = flow.adapted()
    if not math.isclose(rate, 180e3, rel_tol=1e-6):
        raise Missed(f"R_d = 200 kb/s, 10% loss: {said(rate)}", "with losses, R_d is out of date; by how much does the paper go below it?")
    answer.needs(increase)
    flow.report(200e3, 0.0)
    rate = flow.adapted()
    if not math.isclose(rate, 200e3 + 2 * air_bps(answer), rel_tol=1e-6):
        raise Missed(
            f"AIR had grown to {4 * air_bps(answer) / 1e3:g} kb/s; a report with loss, then one without: R_d = 200 kb/s, U = 0: {said(rate)}",
            "what does a loss do to AIR, which had grown before?",
            1,
        )


@check(1, "the rate changes at adaptation points alone, every 5 s")
def points(answer: Answer) -> None:
    adapts_at_all(answer)
    flow = Flow(answer)
    now = algorithms.rate_of(flow.report(400e3, 0.5))
    if now is not None:
        raise Missed(
            f"a report arrives at {flow.now_s:g} s, and the rate changes at once",
            "what is an adaptation point for, when many receivers report?",
        )
    actions = flow.adapt()
    at = next((a.at_s for a in actions if isinstance(a, SetTimer) and a.name == TIMER), None)
    if at is None:
        raise Missed(
            "the adaptation point sets no timer: there is no other after it", "a timer comes once; who sets it for the next point?"
        )
    if not math.isclose(at, flow.now_s + 5.0):
        raise Missed(
            f"the adaptation point at {flow.now_s:g} s sets the timer to {at:g} s", "how long is it between two adaptation points?"
        )


@check(1, "a report without R_d leaves the rate as it is")
def without(answer: Answer) -> None:
    adapts_at_all(answer)
    flow = Flow(answer)
    flow.report(225e3, 0.5)
    before = flow.adapted()
    flow.report(None, None)
    after = flow.adapted()
    if not math.isclose(before, after):
        raise Missed(
            f"a receiver has heard of no router: from {before / 1e3:.6g} kb/s, {said(after)}",
            "the skeleton returns early in that case: keep that",
        )


# ------------------------------------------------------------------------------------------------------------- a network

_CHAIN = """
title = "two links, four connections"
duration_s = 120.0
bottleneck = "s2->s3"
[topology]
kind = "chain"
switches = 3
paths = [[1, 3], [1, 2], [2, 3], [2, 3]]
[topology.trunk]
rate_bps = 500_000
delay_s = 0.005
queue_packets = 120
red = { minimum = 0.5, maximum = 0.95 }
[topology.access]
rate_bps = 500_000
queue_packets = 1000
[my-als]
initial_rate_bps = 100_000.0
[[flows]]
name = "c"
kind = "my-als"
count = 4
"""


@check(3, "two links of 500 kb/s, four connections, in virtual time: everybody has a max-min share", NETWORK_S)
def network(answer: Answer) -> None:
    adapts_at_all(answer)
    algorithms.use(answer, FILE, KIND)
    path = answer.scratch / "chain.toml"
    path.write_text(_CHAIN, encoding="utf-8", newline="\n")
    flows = api.run(path).summary["flows"]
    parts = {flow["name"]: flow["goodput_bps"] / flow["fair_share_bps"] for flow in flows}
    told = ", ".join(f"C{n} {flow['goodput_bps'] / 1e3:.0f} of {flow['fair_share_bps'] / 1e3:.0f} kb/s" for n, flow in enumerate(flows))
    most_lost = max(flow["loss_fraction"] for flow in flows)
    described = "L1: C0 and C1. L2: C0, C2 and C3. The last minute, with packets' headers left out of the rates:"
    if parts["c-1"] < 0.8:
        raise Missed(
            f"{described}\n{told}", "C1 can have what C0 leaves on L1; what lets a sender go beyond R_f, which is half of L1 to each?"
        )
    if most_lost > 0.02 or min(parts.values()) < 0.8 or max(parts.values()) > 1.2:
        lost = f"; up to {100 * most_lost:.1f}% of the packets are lost"
        raise Missed(f"{described}\n{told}{lost}", "who takes too much, and does his rate follow R_d and losses?")


CHECKS = [one_link, figure_1, networks, increase, growth, loss, points, without, network]

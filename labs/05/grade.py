"""Lab 5: the exact counter and the formulas by themselves, the sketch packet by packet, then both as the control plane of a network."""

from __future__ import annotations

import importlib
import math
import random
from collections.abc import Iterable, Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any

from fairlane.controller.connections import Connection
from fairlane.labs.grading import NETWORK_S, Answer, Missed, check
from fairlane.labs.grading.answer import close, number
from fairlane.labs.grading.missed import Raised
from fairlane.labs.grading.packets import ipv4, played

COUNTING, SKETCH = "counting.py", "connection_sketch.p4"
FIRST = "first make the check before this one hold"
control = importlib.import_module("fairlane.labs.05.control")

# --------------------------------------------------------------------------------------------------------- the controller


class Counter:
    """The answer's ConnectionCounter, with checks of its results."""

    def __init__(self, answer: Answer) -> None:
        self._counter = answer.made(COUNTING, "ConnectionCounter")

    def add(self, epoch: int, port: int, source: int, destination: int = 99, group: int = 0) -> None:
        self._counter.add(Connection(epoch, 0 if group else port, group, source, destination))

    def close(self, epoch: int, groups: Mapping[int, tuple[int, ...]] | None = None) -> dict[int, int]:
        """n of each port that has any."""
        given = self._counter.close(epoch, groups or {})
        if not isinstance(given, Mapping):
            raise Missed(f"{COUNTING}: close gives {given!r}, which is no dict", "port -> n, for each port that has connections")
        return {port: int(number(n, f"{COUNTING}: close's n of port {port}")) for port, n in given.items() if n != 0}

    def fill(self, epochs: Iterable[int]) -> None:
        """Twenty connections of each interval, its end, and twenty more of it that come too late."""
        for epoch in epochs:
            sources = [20 * epoch + source for source in range(20)]
            self._counter.many("add", [(Connection(epoch, 2, 0, source, 99),) for source in sources])
            self._counter.close(epoch, {})
            self._counter.many("add", [(Connection(epoch, 2, 0, source + (1 << 30), 99),) for source in sources])

    def bytes(self) -> int:
        """What it and its process keep."""
        return int(self._counter.bytes())


def counts_at_all(answer: Answer) -> None:
    counter = Counter(answer)
    counter.add(1, 2, 10)
    if counter.close(1) != {2: 1}:
        raise Missed("one connection of port 2 is reported once; close does not give {2: 1}", FIRST)


@check(2, "exact: each pair of addresses counts once an interval and port")
def exact(answer: Answer) -> None:
    counter = Counter(answer)
    for source in (10, 11, 12):
        counter.add(5, 2, source)
    counter.add(5, 3, 10)
    counter.add(5, 3, 10, destination=98)
    seen = counter.close(5)
    if seen != {2: 3, 3: 2}:
        raise Missed(
            f"port 2: three sources to one destination. port 3: one source to two destinations. close gives {seen}",
            "what is a connection (section 3.1)? And n is of one port",
        )
    for source in (10, 11, 10, 10):
        counter.add(6, 2, source)
    seen = counter.close(6)
    if seen != {2: 2}:
        raise Missed(
            f"two connections of port 2, one of them reported three times; close gives {seen}",
            "two connections that share a slot of the switch make it report both again and again; which Python type keeps each thing once?",
            1,
        )


@check(1, "exact: intervals are apart, whichever order the reports come in")
def intervals(answer: Answer) -> None:
    counts_at_all(answer)
    counter = Counter(answer)
    counter.add(1, 2, 10)
    counter.add(2, 2, 10)
    counter.add(2, 2, 11)
    counter.add(1, 2, 12)
    first, second = counter.close(1), counter.close(2)
    if (first, second) != ({2: 2}, {2: 2}):
        raise Missed(
            f"two connections in interval 1, two in interval 2, reports mixed: close gives {first} and {second}",
            "reports of the next interval come before this one is closed; where does each belong?",
        )


@check(1, "exact: a packet to a group counts at each of its ports")
def groups(answer: Answer) -> None:
    counts_at_all(answer)
    counter = Counter(answer)
    counter.add(1, 0, 10, group=7)
    counter.add(1, 3, 11)
    counter.add(1, 0, 12, group=8)
    seen = counter.close(1, {7: (2, 3)})
    if seen != {2: 1, 3: 2}:
        raise Missed(
            f"source 10 sends to group 7, which has ports 2 and 3; source 11 to port 3; source 12 to group 8, which has none: close gives {seen}",
            "which ports does a report with a multicast_group other than 0 speak of?",
        )


@check(1, "exact: what is over is forgotten", NETWORK_S)
def forgets(answer: Answer) -> None:
    counts_at_all(answer)
    counter = Counter(answer)
    counter.fill(range(1, 101))
    before = counter.bytes()
    counter.fill(range(101, 1001))
    more = counter.bytes() - before
    if more > 2_000_000:
        raise Missed(
            f"from the 100th to the 1000th interval, of 40 connections each, the counter takes {more / 1e6:.1f} MB more",
            "half of these reports came when their interval was closed; who ever looks at them again?",
        )


@check(1, "R_f = b U_l / n")
def rate(answer: Answer) -> None:
    f = answer.function(COUNTING, "fair_rate_bps")
    for bandwidth, target, n in ((2e6, 0.9, 5), (10e6, 0.5, 8), (1e6, 0.9, 1)):
        close(
            f(bandwidth, target, n),
            bandwidth * target / n,
            f"fair_rate_bps({bandwidth:g}, {target}, {n})",
            "the equation of section 3.1: what is shared among whom?",
        )
    if not isinstance(f(1e6, 0.9, 7), int):
        raise Missed(f"fair_rate_bps(1e6, 0.9, 7) gives {f(1e6, 0.9, 7)!r}", "the number goes into a P4 table, which has no fractions")
    try:
        alone = f(2e6, 0.9, 0)
    except Raised as error:
        if error.kind != "ZeroDivisionError":
            raise
        raise Missed(
            "fair_rate_bps(2e6, 0.9, 0) divides by zero", "what may the next sender have, who will be alone on the link?"
        ) from None
    close(alone, 1.8e6, "fair_rate_bps(2e6, 0.9, 0)", "what may the next sender have, who will be alone on the link?")


@check(1, "sketch: the estimate from the slots that were hit")
def estimates(answer: Answer) -> None:
    f = answer.function(COUNTING, "estimate")
    for used, slots in ((900, 1024), (512, 1024), (1, 1024), (0, 64)):
        try:
            given = f(used, slots)
        except Raised as error:
            if error.kind != "ValueError":
                raise
            raise Missed(f"estimate({used}, {slots}): {error.text}", "of which number is the logarithm?") from None
        if used >= 512 and number(given, f"estimate({used}, {slots})") <= used:
            raise Missed(
                f"estimate({used}, {slots}) gives {given:g}",
                "several connections may have hit the same slot: are there more of them than slots that were hit, or fewer?",
            )
        close(
            given,
            -slots * math.log1p(-used / slots),
            f"estimate({used}, {slots})",
            "equation 1; which logarithm, and of what part of the slots?",
        )
    try:
        full = f(64, 64)
    except Raised as error:
        if error.kind not in ("ValueError", "ZeroDivisionError"):
            raise
        raise Missed(
            "estimate(64, 64) has no value", "when every slot was hit, none is left: the docstring says what to take then"
        ) from None
    close(full, 64 * math.log(128), "estimate(64, 64)", "when every slot was hit, none is left: the docstring says what to take then")


@check(1, "sketch: how far off the estimate is")
def standard_errors(answer: Answer) -> None:
    f = answer.function(COUNTING, "standard_error")
    for n, slots in ((100, 1024), (1000, 1024), (5000, 1024)):
        load = n / slots
        wanted = math.sqrt(slots * (math.exp(load) - load - 1)) / n
        given = number(f(n, slots), f"standard_error({n}, {slots})")
        if math.isclose(given, wanted * n, rel_tol=1e-6):
            raise Missed(f"standard_error({n}, {slots}) gives {given:g}", "is that a number of connections, or a part of n?")
        close(given, wanted, f"standard_error({n}, {slots})", "equation 5, with t = n/m")
    close(f(0, 64), 0.0, "standard_error(0, 64)", "of no connections, the estimate is never off")


# --------------------------------------------------------------------------------------------------------- the switch

REGION_SLOTS = 64
SETUP = (
    "add ipv4_lpm hdr.ipv4.dst_address:0x0a000200/24 send(port:2, src_address:0x21, dst_address:0x22)",
    f"add AlsIngress.connections.sketch.region port:2 AlsIngress.connections.sketch.set_region(first_slot:{REGION_SLOTS}, slots:{REGION_SLOTS - 1})",
)
EVEN, ODD = "check_counter filled(4)", "check_counter filled(5)"


def epoch(n: int) -> str:
    return f"setdefault AlsIngress.connections.sketch.observation AlsIngress.connections.sketch.set_epoch(number:{n})"


@cache
def packet(source: int) -> str:
    return f"packet 1 {ipv4(f'10.1.{source >> 8}.{source & 255}', '10.0.2.2').hex()}"


def hits(answer: Answer, *script: str) -> dict[str, int]:
    """The counter `filled` afterwards, in its cells of port 2."""
    program = answer.als_compiled("CONNECTION_SKETCH")
    try:
        seen = played(program, [*SETUP, *script, EVEN, ODD], [2])
    except RuntimeError as error:
        raise Missed(str(error), "nothing counts in `filled`, or uses the region: so the compiler leaves it out") from None
    return {"even": seen.counters["filled", 4], "odd": seen.counters["filled", 5]}


def sketches_at_all(answer: Answer) -> None:
    try:
        seen = hits(answer, epoch(7), packet(1))
    except Missed as missed:
        raise Missed(missed.message, missed.hint if missed.message.startswith("does not compile") else FIRST) from None
    if sum(seen.values()) != 1:
        raise Missed(f"one packet in epoch 7: `filled` counts {seen}", FIRST)


@check(2, "the switch counts a slot once an epoch, in that epoch's cell")
def slots(answer: Answer) -> None:
    seen = hits(answer, epoch(7), packet(1))
    if seen != {"even": 0, "odd": 1}:
        raise Missed(
            f"one packet in epoch 7: `filled` of port 2 is {seen['even']} in the even cell, {seen['odd']} in the odd one",
            "which cell is that (the head of the file)? `++` puts bits side by side, `x[0:0]` is the last bit of x",
        )
    seen = hits(answer, epoch(7), packet(1), packet(1), packet(1))
    if seen["odd"] != 1:
        raise Missed(
            f"three packets of one connection in epoch 7: `filled` counts {seen['odd']}",
            "how does the second packet see that its slot was hit already?",
            1,
        )
    seen = hits(answer, epoch(7), packet(1), epoch(8), packet(1), packet(1), epoch(9), packet(1))
    if seen != {"even": 1, "odd": 2}:
        raise Missed(
            f"one connection in epochs 7, 8 and 9: `filled` is {seen['even']} in the even cell, {seen['odd']} in the odd one",
            "what was hit in the epoch before does not count as hit in this one; what does the slot hold?",
            1,
        )


@check(2, "each port keeps to its slots, and uses all of them")
def regions(answer: Answer) -> None:
    sketches_at_all(answer)
    read = [f"register_read sketch_epoch {n}" for n in range(3 * REGION_SLOTS)]
    seen = played(answer.als_compiled("CONNECTION_SKETCH"), [*SETUP, epoch(7), *map(packet, range(600)), *read], [2])
    written = [index for _, index, value in seen.registers if value]
    outside = [n for n in written if not REGION_SLOTS <= n < 2 * REGION_SLOTS]
    if not written:
        raise Missed(
            f"port 2 has slots {REGION_SLOTS} to {2 * REGION_SLOTS - 1}; 600 connections write none of them",
            "who writes the number of the interval into a connection's slot?",
        )
    if outside:
        raise Missed(
            f"port 2 has slots {REGION_SLOTS} to {2 * REGION_SLOTS - 1}; 600 connections write slot {outside[0]}",
            "the mask keeps a number below the region's size; where does the region begin?",
        )
    if len(written) < 60:
        raise Missed(
            f"600 connections hit only {len(written)} of {REGION_SLOTS} slots",
            "which bits of x does the slot come from, and is the mask what it should be?",
        )


@check(1, "what the switch counts and your estimate agree")
def together(answer: Answer) -> None:
    sketches_at_all(answer)
    f = answer.function(COUNTING, "estimate")
    sources = random.Random(1).sample(range(2000), 60)
    used = hits(answer, epoch(7), *(packet(s) for s in sources for _ in range(2)))["odd"]
    n = number(f(used, REGION_SLOTS), f"estimate({used}, {REGION_SLOTS})")
    if not 40 <= n <= 85:
        raise Missed(f"60 connections, two packets each: {used} slots of {REGION_SLOTS} are hit, and the estimate is {n:.1f}", FIRST)


# --------------------------------------------------------------------------------------------------------- a network


class NetworkCounter(Counter):
    """The same in a network's control plane, which gives connections as they are."""

    late = 0

    def add(self, connection: Connection) -> None:  # type: ignore[override]
        self._counter.add(connection)


def _watched(answer: Answer) -> Any:
    """The answer's counter and functions, whose numbers are looked at before a switch has them."""
    rate_of, estimate_of = answer.function(COUNTING, "fair_rate_bps"), answer.function(COUNTING, "estimate")

    def fair_rate_bps(*arguments: float) -> int:
        value = number(rate_of(*arguments), f"{COUNTING}: fair_rate_bps{arguments}", 0)
        return int(value)

    def estimate(used: int, slots: int) -> float:
        return number(estimate_of(used, slots), f"{COUNTING}: estimate({used}, {slots})", 0)

    return SimpleNamespace(ConnectionCounter=lambda: NetworkCounter(answer), fair_rate_bps=fair_rate_bps, estimate=estimate)


def right(answer: Answer, counter: str) -> None:
    """Run joins.toml with the answer's control plane. Missed when n is wrong in more than a twentieth of the seconds."""
    result = control.run(_watched(answer), counter, answer.program(SKETCH), answer.scratch)
    part = result.check_values["seconds with n exact"]
    if not part >= 0.95:
        seen = [fair.connections for fair in result.recorded.fair_rates[result.experiment.bottleneck]][-12:]
        raise Missed(
            f"joins.toml: n is right in {100 * part:.0f}% of the seconds; in the last twelve it was {seen}",
            "which of the checks above does not hold?",
        )


@check(1, "joins.toml in virtual time, counted exactly", NETWORK_S)
def run_exact(answer: Answer) -> None:
    counts_at_all(answer)
    if not answer.function(COUNTING, "fair_rate_bps")(2e6, 0.9, 1):
        raise Missed("R_f is 0", FIRST)
    right(answer, "exact")


@check(1, "joins.toml in virtual time, counted by the sketch", NETWORK_S)
def run_sketch(answer: Answer) -> None:
    sketches_at_all(answer)
    if not answer.function(COUNTING, "fair_rate_bps")(2e6, 0.9, 1):
        raise Missed("R_f is 0", FIRST)
    right(answer, "sketch")


CHECKS = [exact, intervals, groups, forgets, rate, estimates, standard_errors, slots, regions, together, run_exact, run_sketch]

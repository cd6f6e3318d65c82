"""Lab 2: the measures by numbers and on a run that starves TCP, the TCP model and the polite sender by hand, then the polite sender beside TCP."""

from __future__ import annotations

import math
import random

from fairlane import api
from fairlane.hosts.algorithms.base import Feedback, Sender
from fairlane.labs.grading import NETWORK_S, Answer, Missed, algorithms, check
from fairlane.labs.grading.answer import close, number
from fairlane.labs.grading.missed import Raised

MEASURE, POLITE, KIND = "measure.py", "polite.py", "polite"
FIRST = "first make the checks before this one hold"
RNG = random.Random(2)


@check(1, "Jain's index")
def jain(answer: Answer) -> None:
    f = answer.function(MEASURE, "jain_index")
    for rates, wanted, hint in (
        ([5e5] * 4, 1.0, "what must the index of equal rates be, however many there are?"),
        ([2e6, 0.0, 0.0, 0.0], 0.25, "the sum is squared, or the squares are summed; where is which?"),
        ([1e6, 3e6], 0.8, "the sum is squared, or the squares are summed; where is which?"),
        ([0.0, 0.0], 1.0, "nobody has anything: is something divided by zero?"),
    ):
        close(_tried(f, f"jain_index({rates})", rates), wanted, f"jain_index({rates})", hint)


@check(1, "the share of a kind of flow")
def shares(answer: Answer) -> None:
    f = answer.function(MEASURE, "share")
    flows = [("tcp-reno", 2e5), ("cbr", 1.2e6), ("tcp-reno", 4e5), ("rap", 2e5)]
    for kind, wanted in (("cbr", 0.6), ("tcp-reno", 0.3), ("daa", 0.0)):
        close(
            _tried(f, f"share(flows, {kind!r})", list(flows), kind),
            wanted,
            f"share({flows}, {kind!r})",
            "all flows of the kind together, over what?",
        )
    close(_tried(f, "share([], 'cbr')", [], "cbr"), 0.0, "share([], 'cbr')", "without flows, nobody has a share")


@check(1, "how long a packet waits in the queue")
def waiting(answer: Answer) -> None:
    f = answer.function(MEASURE, "queue_delay_s")
    for packets, size, rate, wanted in ((25, 1000, 2e6, 0.1), (0, 1000, 2e6, 0.0), (60, 500, 1e7, 0.024)):
        given = number(f(packets, size, rate), f"queue_delay_s({packets}, {size}, {rate:g})")
        if wanted and math.isclose(given, wanted / 8):
            raise Missed(f"queue_delay_s({packets}, {size}, {rate:g}) gives {given:g}", "packets are in bytes, and rates?")
        close(
            given,
            wanted,
            f"queue_delay_s({packets}, {size}, {rate:g})",
            "all the packets that wait must be sent first; how long does one take?",
        )


@check(1, "what a greedy sender loses at the least")
def least(answer: Answer) -> None:
    f = answer.function(MEASURE, "least_loss")
    for sent, wanted in ((4e6, 0.5), (2.5e6, 0.2)):
        close(f(sent, 2e6), wanted, f"least_loss({sent:g}, 2e6)", "2 Mb/s get through; what part of what was sent is that?")
    for sent in (2e6, 1e6):
        close(f(sent, 2e6), 0.0, f"least_loss({sent:g}, 2e6)", "what is lost when less is sent than the link carries?")


@check(2, "a run that starves TCP, as your measures see it", NETWORK_S)
def starved(answer: Answer) -> None:
    for one in (jain, shares):
        try:
            one.function(answer)
        except Missed:
            raise Missed(f"not measured yet: '{one.title}' does not hold", FIRST) from None
    result = api.run("dumbbell", ["tcp-reno:2", "cbr:1"], bottleneck="2mbit", rtt="60ms", duration_s=20, settings=["cbr.rate_bps=1.8e6"])
    flows = [(flow["kind"], flow["goodput_bps"]) for flow in result.summary["flows"]]
    share = number(answer.function(MEASURE, "share")(flows, "tcp-reno"), "share(flows, 'tcp-reno')")
    index = number(answer.function(MEASURE, "jain_index")([goodput for _, goodput in flows]), "jain_index(...)")
    told = ", ".join(f"{kind} {goodput / 1e3:.0f}" for kind, goodput in flows)
    if abs(share - result.of_kind("tcp-reno")["share"]) > 0.01 or not share < 0.3 or not index < 0.6:
        raise Missed(
            f"{told} kb/s: share of TCP {100 * share:.0f}%, Jain's index {index:.2f}",
            "two flows of TCP have a small part of the link: do your measures say so?",
        )


def _tried(f, what: str, *arguments: object) -> float:
    try:
        return f(*arguments)
    except Raised as error:
        if error.kind != "ZeroDivisionError":
            raise
        raise Missed(f"{what} divides by zero", "nobody has anything: is something divided by zero?") from None


# ------------------------------------------------------------------------------------------------------------- the sender


@check(2, "equation 1: what TCP would have")
def model(answer: Answer) -> None:
    f = algorithms.function(answer, POLITE, "tcp_rate_bps")
    if answer.function(POLITE, "tcp_rate_bps")(1000, 0.1, 0.01) == math.inf:
        raise Missed("tcp_rate_bps(1000, 0.1, 0.01) gives inf", "with losses, TCP's rate has a bound; only without them is there none")
    for size, rtt, loss, wanted in (
        (1000, 0.1, 0.01, 898657.9),
        (500, 0.1, 0.01, 449328.9),
        (1000, 0.2, 0.01, 449328.9),
        (1000, 0.1, 0.1, 141608.2),
        (1000, 0.1, 0.5, 4306.3),
    ):
        what = f"tcp_rate_bps({size}, {rtt}, {loss})"
        given = f(size, rtt, loss)
        if math.isclose(given, wanted / 8, rel_tol=1e-4):
            raise Missed(f"{what} gives {given:g}", "M is in bytes in a packet, and in what unit is a rate?")
        close(
            given,
            wanted,
            what,
            "equation 1, term by term: which are under the root, what stands before l_s (1 + 32 l_s^2), and what is the smaller with 1?",
            1e-3,
        )


def started(answer: Answer, **parameters: float) -> Sender:
    kind = algorithms.use(answer, POLITE, KIND)
    sender = kind.sender(kind.parameters(**parameters))
    sender.on_start(0.0, RNG)
    return sender


def after(sender: Sender, *losses: float, rtt_s: float | None = 0.1) -> float:
    """The rate that the last of some reports leads to, in bit/s; 0 when it sets none."""
    rate = None
    for n, loss in enumerate(losses):
        rate = algorithms.rate_of(sender.on_feedback(5.0 * (n + 1), Feedback(1, loss, rtt_s=rtt_s), RNG))
    return rate or 0.0


def said(rate_bps: float) -> str:
    return f"{rate_bps / 1e3:.5g} kb/s" if rate_bps else "no rate is set"


def reacts_at_all(answer: Answer) -> None:
    rate = after(started(answer), 0.1)
    if not 8_000 <= rate < 1_000_000:
        raise Missed(f"a sender of 1.8 Mb/s hears of 10% loss: {said(rate)}", FIRST)


@check(2, "reports move the rate: the smoothed loss, and the smaller of two rates")
def reacts(answer: Answer) -> None:
    rate = after(started(answer), 0.1)
    if not rate:
        raise Missed("a sender of 1.8 Mb/s hears of 10% loss, and sets no rate", "what does on_feedback return when the rate is to change?")
    if rate >= 1_800_000:
        raise Missed(f"a sender of 1.8 Mb/s hears of 10% loss: {said(rate)}", "the smaller of r_tcp and r + A, or the larger?")
    f = answer.function(POLITE, "tcp_rate_bps")
    if math.isclose(rate, f(1000, 0.1, 0.1), rel_tol=1e-6):
        raise Missed(
            f"one report of 10% loss after none: {said(rate)}, which is r_tcp of 10%", "equation 3: how much does one report move l_s?"
        )
    if not math.isclose(rate, f(1000, 0.1, 0.03), rel_tol=1e-6):
        raise Missed(f"one report of 10% loss after none, round trip 0.1 s: {said(rate)}", "equation 3 gives l_s; what has TCP with that?")
    rate = after(started(answer), 0.1, 0.1)
    if not math.isclose(rate, f(1000, 0.1, 0.051), rel_tol=1e-6):
        raise Missed(f"two reports of 10% loss: {said(rate)}", "l_s is remembered from report to report", 1)
    sender = started(answer)
    low = after(sender, 0.5)
    up = after(sender, *[0.0] * 12)
    before = after(sender, 0.0)
    if not math.isclose(before - up, 50_000, rel_tol=1e-6) and before < 1_800_000:
        raise Missed(
            f"50% loss, {said(low)}; then reports without loss: from {said(up)} to {said(before)}",
            "by how much may the rate grow with one report (equation 4)?",
            1,
        )


@check(1, "never more than it would like, nor less than 8 kb/s")
def limits(answer: Answer) -> None:
    reacts_at_all(answer)
    rate = after(started(answer, wanted_bps=300_000.0), *[0.0] * 5)
    if not math.isclose(rate, 300_000):
        raise Missed(
            f"wanted_bps = 300 kb/s, five reports without loss: {said(rate)}",
            "a video of 300 kb/s has no more to send, however good the network is",
        )
    rate = after(started(answer), *[1.0] * 20)
    if not math.isclose(rate, 8_000):
        raise Missed(f"twenty reports of 100% loss: {said(rate)}", "what keeps the rate within its limits? (clamp)")


@check(3, "beside two TCP flows on 2 Mb/s with drop-tail, in virtual time", NETWORK_S)
def beside(answer: Answer) -> None:
    answer.needs(model, reacts, limits)
    algorithms.use(answer, POLITE, KIND)
    result = api.run("dumbbell", ["tcp-reno:2", f"{KIND}:1"], bottleneck="2mbit", rtt="60ms", duration_s=60)
    tcp, own = (result.of_kind(kind)["mean_goodput_bps"] for kind in ("tcp-reno", KIND))
    told = f"each TCP flow has {tcp / 1e3:.0f} kb/s, yours {own / 1e3:.0f} kb/s, of a fair share of {2e3 / 3:.0f} kb/s"
    if tcp < 0.6 * 2e6 / 3:
        raise Missed(told, "who has too much? Look at how fast your flow comes down and how fast it climbs")
    if own < 0.5 * 2e6 / 3:
        raise Missed(told, "politeness is no starvation: how does your flow climb again after losses?")


CHECKS = [jain, shares, waiting, least, starved, model, reacts, limits, beside]

"""Lab 6: each equation by numbers, then the sender's steps and back-offs, then two of its flows against two of Fairlane's own."""

from __future__ import annotations

import math
import random
from dataclasses import replace

from fairlane import api
from fairlane.hosts.algorithms.base import Loss, LossCause, PathState, Sender, SenderAction, SetTimer, Timer
from fairlane.labs.grading import NETWORK_S, Answer, Missed, algorithms, check
from fairlane.labs.grading.answer import close

FILE, KIND = "my_rap.py", "my-rap"
RNG = random.Random(6)
SRTT_S = 0.1
FIRST = "first make the checks before this one hold"


@check(1, "equation 1: the rate of a gap")
def rate(answer: Answer) -> None:
    f = algorithms.function(answer, FILE, "rate_bps")
    if f(1000, 0.02) * 8 == 400_000:
        raise Missed("rate_bps(1000, 0.02) gives 50000", "PacketSize is in bytes, and in what unit is a rate?")
    for size, gap in ((1000, 0.02), (100, 0.5), (1500, 0.004)):
        close(
            f(size, gap), 8 * size / gap, f"rate_bps({size}, {gap})", "how many packets does a gap of so many seconds make in one second?"
        )


@check(2, "equations 1 and 5: the gap of the next step")
def increase(answer: Answer) -> None:
    f = algorithms.function(answer, FILE, "increased_ipg_s")
    for gap, srtt in ((0.1, 0.1), (0.02, 0.1), (0.3, 0.05)):
        before, after = srtt / gap, srtt / f(gap, srtt) if f(gap, srtt) > 0 else math.inf
        if after <= before:
            raise Missed(
                f"increased_ipg_s({gap}, {srtt}) gives {f(gap, srtt):g}: {after:.3g} packets in a round trip, where there were {before:.3g}",
                "a step without loss makes the rate higher: what becomes of the gap?",
            )
        if not math.isclose(after, before + 1, rel_tol=1e-6):
            raise Missed(
                f"increased_ipg_s({gap}, {srtt}) gives {f(gap, srtt):g}: {after:.3g} packets in a round trip, where there were {before:.3g}",
                "alpha (equation 2) with C = SRTT: how many packets more does each step send?",
            )


@check(1, "equation 3: the gap after a loss")
def decrease(answer: Answer) -> None:
    f = algorithms.function(answer, FILE, "decreased_ipg_s")
    for gap in (0.01, 0.5):
        if f(gap) < gap:
            raise Missed(f"decreased_ipg_s({gap}) gives {f(gap):g}", "does a shorter gap between packets make the rate higher or lower?")
        close(f(gap), 2 * gap, f"decreased_ipg_s({gap})", "what does equation 3 do to the gap, with beta = 0.5?")


def path(srtt_s: float = SRTT_S, last_sent: int = 100, acked: int = 90) -> PathState:
    """The newest sample is far from the mean: who takes the one for the other is found out."""
    return replace(algorithms.path_state(srtt_s, last_sent, acked), latest_rtt_s=1.7 * srtt_s)


def started(answer: Answer) -> tuple[Sender, float, float]:
    """(sender, now, rate) of a flow that knows its round trip; it sends a packet in each."""
    parameters = algorithms.use(answer, FILE, KIND)
    sender = parameters.sender(parameters.parameters())
    sender.on_start(0.0, RNG)
    sender.on_timer(0.05, Timer("step", None), RNG)
    rate_now = algorithms.rate_of(sender.on_timer(1.0, Timer("step", path()), RNG))
    if rate_now is None or not math.isclose(rate_now, 8 * 1000 / SRTT_S):
        raise Missed(
            f"with the first round trip of 0.1 s known the rate is {told(rate_now)}",
            "the skeleton starts with one packet in a round trip; " + FIRST,
        )
    return sender, 1.0, rate_now


def told(rate_bps: float | None) -> str:
    return "not set" if rate_bps is None else f"{rate_bps / 1e3:.4g} kb/s"


def packets(rate_bps: float | None, srtt_s: float = SRTT_S) -> float:
    """In a round trip; 0 for none set."""
    return (rate_bps or 0) * srtt_s / 8000


def step_of(actions: tuple[SenderAction, ...]) -> float | None:
    """When the next step is to begin; None without such a timer."""
    return next((a.at_s for a in actions if isinstance(a, SetTimer) and a.name == "step"), None)


@check(2, "a step lasts a round trip, and adds a packet to it")
def steps(answer: Answer) -> None:
    sender, now, _ = started(answer)
    wanted = 1
    for srtt in (SRTT_S, SRTT_S, SRTT_S):
        actions = sender.on_timer(now + srtt, Timer("step", path(srtt, 100 + wanted, 90 + wanted)), RNG)
        now, wanted = now + srtt, wanted + 1
        at = step_of(actions)
        seen = packets(algorithms.rate_of(actions))
        if not math.isclose(seen, wanted, rel_tol=1e-6):
            raise Missed(
                f"round trip 0.1 s: the step after {wanted - 1} packets in a round trip sends {seen:.3g}",
                "on_timer is where a step begins: what does it do to the gap?",
            )
        if at is None:
            raise Missed("on_timer sets no timer: there is no step after this one", "a timer comes once; who sets it for the next step?")
        if at <= now:
            raise Missed(
                f"at {now:g} s on_timer sets the timer to {at:.3g} s",
                "to what time does SetTimer set the timer? One that has passed means: at once",
            )
        if not math.isclose(at - now, srtt, rel_tol=1e-6):
            raise Missed(f"round trip 0.1 s: the next step is to begin after {at - now:.3g} s", "how long is a step (Decision Frequency)?")


def loss(first: int, last: int, last_sent: int) -> Loss:
    return Loss(first, last, last - first + 1, LossCause.GAP, path(last_sent=last_sent, acked=last + 3))


@check(2, "a cluster of losses makes one back-off")
def clusters(answer: Answer) -> None:
    sender, now, _ = started(answer)
    before = 1.0
    for n in range(3):
        now += SRTT_S
        before = packets(algorithms.rate_of(sender.on_timer(now, Timer("step", path(SRTT_S, 101 + n, 91 + n)), RNG)))
    if not math.isclose(before, 4, rel_tol=1e-6):
        raise Missed("the steps before the loss come out wrong", FIRST)
    # 120 to 129 were on the way when the loss of 120 was found.
    actions = sender.on_loss(now, loss(120, 120, 129), RNG)
    if algorithms.rate_of(actions) is None:
        raise Missed(
            f"packet 120 is lost: on_loss sets no rate, which stays at {before:.3g} packets in a round trip",
            "what happens on a loss, and when (decision function)?",
        )
    after = packets(algorithms.rate_of(actions))
    if not math.isclose(after, 2, rel_tol=1e-6):
        raise Missed(
            f"packet 120 is lost: {before:.3g} packets in a round trip become {after:.3g}",
            "what happens on a loss, and when (decision function)?",
        )
    at = step_of(actions)
    if at is None or not math.isclose(at - now, SRTT_S, rel_tol=1e-6):
        seen_at = "stays where the last step had set it" if at is None else f"is set to {at - now:.3g} s later"
        raise Missed(
            f"packet 120 is lost, with a round trip of 0.1 s: the rate is halved, and the timer of the next step {seen_at}",
            "a step is a round trip without loss: when does the one after a back-off begin, and which timer says so (TODO 5)?",
        )
    for first, last in ((122, 123), (129, 129)):
        seen = algorithms.rate_of(sender.on_loss(now + 0.02, loss(first, last, 131), RNG))
        if seen is not None and not math.isclose(packets(seen), 2, rel_tol=1e-6):
            raise Missed(
                f"packets 120 to 129 were on the way when the loss of 120 was found; for {first} to {last} there is another back-off",
                "equation 6: which packets had been sent before the sender could react? That is Seq_LastSent of what moment?",
            )
    again = packets(algorithms.rate_of(sender.on_loss(now + 2 * SRTT_S, loss(135, 135, 140), RNG)))
    if not math.isclose(again, 1, rel_tol=1e-6):
        raise Missed(
            f"packet 135 was sent after the back-off and is lost: 2 packets in a round trip become {again:.3g}",
            "when does the cluster end, so that new losses count again?",
        )
    across = packets(algorithms.rate_of(sender.on_loss(now + 4 * SRTT_S, loss(139, 142, 145), RNG)))
    if not math.isclose(across, 0.5, rel_tol=1e-6):
        raise Missed(
            f"140 was the last packet before that back-off; 139 to 142 are lost: 1 packet in a round trip becomes {across:.3g}",
            "of some packets that are lost at once, one was sent after the back-off: is that the first of them, or the last?",
        )


@check(2, "two flows beside two of Fairlane's RAP, in virtual time", NETWORK_S)
def beside(answer: Answer) -> None:
    answer.needs(rate, increase, decrease, steps, clusters)
    algorithms.use(answer, FILE, KIND)
    result = api.run(
        "dumbbell", [f"{KIND}:2", "rap:2"], bottleneck="2mbit", rtt="64ms", queue="red", buffer="60", start_jitter="1s", duration_s=60
    )
    own, reference = (result.of_kind(kind) for kind in (KIND, "rap"))
    ratio = own["mean_goodput_bps"] / reference["mean_goodput_bps"]
    if not 0.7 <= ratio <= 1.4:
        raise Missed(
            f"your flows have {own['mean_goodput_bps'] / 1e3:.0f} kb/s each, Fairlane's {reference['mean_goodput_bps'] / 1e3:.0f} kb/s",
            "plot both, and look at how steep they climb and how far they fall; which equation is that?",
        )


CHECKS = [rate, increase, decrease, steps, clusters, beside]

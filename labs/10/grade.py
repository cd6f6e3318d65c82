"""Lab 10: what any scheme must do, by reports made up, then the two situations of the ranking, and the rank."""

from __future__ import annotations

import itertools
import json
import math
import random

from fairlane.hosts.algorithms.base import AckDetail, Feedback, Kind, Sender, SetTimer, Timer
from fairlane.labs.grading import NETWORK_S, Answer, Missed, algorithms, check
from fairlane.labs.ranking.measures import Measures, measure, score, situations, stored

FILE, KIND = "my_scheme.py", "my-scheme"
RNG = random.Random(10)
MOST_BPS, PACKET_BYTES, RTT_S, REPORT_S = 10e6, 1000, 0.1, 0.05


class Flow:
    """A sender of the answer, fed with reports by hand; timers run as they would."""

    def __init__(self, answer: Answer) -> None:
        kind: Kind = algorithms.use(answer, FILE, KIND)
        self.parameters = kind.parameters(max_rate_bps=MOST_BPS, packet_bytes=PACKET_BYTES)
        self.sender: Sender = kind.sender(self.parameters)
        self.now_s = 0.0
        self.rate_bps = 0.0
        self._timers: dict[str, float] = {}
        self._take(self.sender.on_start(0.0, RNG))

    def _take(self, actions: tuple) -> None:
        self._timers.update({a.name: a.at_s for a in actions if isinstance(a, SetTimer)})
        rate = algorithms.rate_of(actions)
        self.rate_bps = self.rate_bps if rate is None else rate

    def wait(self, seconds: float) -> None:
        """Time goes on; timers come due."""
        end = self.now_s + seconds
        while self._timers and min(self._timers.values()) <= end:
            name = min(self._timers, key=self._timers.__getitem__)
            self.now_s = max(self.now_s, self._timers.pop(name))
            self._take(self.sender.on_timer(self.now_s, Timer(name), RNG))
        self.now_s = end

    def report(self, loss: float, rtt_s: float | None = RTT_S, received_bps: float | None = None, arrived: bool = True) -> None:
        """A report after REPORT_S. received_bps: what it says; what the rate and loss leave when not given, nothing without `arrived`."""
        self.wait(REPORT_S)
        received = self.rate_bps * (1 - loss) if arrived and received_bps is None else received_bps
        self._take(self.sender.on_feedback(self.now_s, Feedback(7, loss, rtt_s, receive_rate_bps=received), RNG))

    def reports(self, count: int, loss: float) -> float:
        """The rate after so many of them."""
        for _ in range(count):
            self.report(loss)
        return self.rate_bps


def climbed(answer: Answer) -> Flow:
    """A flow after 5 s without loss, whose rate is higher than at the start."""
    flow = Flow(answer)
    before = flow.rate_bps
    if flow.reports(100, 0.0) <= before:
        raise Missed(
            f"after 5 s of reports without loss the rate is {flow.rate_bps / 1e3:.4g} kb/s, and was {before / 1e3:.4g} kb/s at the start",
            "nothing was lost: may a flow have more? Otherwise the link stays empty",
        )
    return flow


def by_runs(answer: Answer) -> Measures | None:
    """What the two runs say of a sender that lives on acknowledgements or on routers' feedback, to which no reports can be made up. None of others."""
    interests = getattr(algorithms.use(answer, FILE, KIND).sender, "interests")  # noqa: B009 - of what stands for the answer's sender
    return None if interests.acks is AckDetail.NONE and not interests.rtcp else _run(answer)


@check(1, "without loss the rate climbs, after a loss too", NETWORK_S)
def climbs(answer: Answer) -> None:
    if (found := by_runs(answer)) is not None:
        if found.utilisation < 0.5:
            raise Missed(
                f"alone, four flows use {100 * found.utilisation:.0f}% of the link", "may a flow have more? Otherwise the link stays empty"
            )
        return
    flow = climbed(answer)
    low = flow.reports(20, 0.1)
    if flow.reports(200, 0.0) <= low:
        raise Missed(
            f"after losses, 10 s without any: the rate stays at {flow.rate_bps / 1e3:.4g} kb/s",
            "how does a flow come back when the others have left?",
        )


@check(1, "losses lower the rate", NETWORK_S)
def falls(answer: Answer) -> None:
    if (found := by_runs(answer)) is not None:
        if found.loss > 0.15:
            raise Missed(
                f"alone, four flows lose {100 * found.loss:.0f}% of their packets", "which way must a rate or a window go at a loss?"
            )
        return
    flow = climbed(answer)
    before = flow.rate_bps
    after = flow.reports(60, 0.2)
    if after > 0.6 * before:
        raise Missed(
            f"3 s of reports of 20% loss: from {before / 1e3:.4g} to {after / 1e3:.4g} kb/s",
            "a fifth of all packets is lost, report after report: which way must the rate go?",
        )


@check(1, "no report takes the rate out of its limits", NETWORK_S)
def limits(answer: Answer) -> None:
    if by_runs(answer) is not None:
        answer.needs(climbs, falls)
        return
    climbed(answer)
    flow = Flow(answer)
    low, high = flow.parameters.min_rate_bps, flow.parameters.max_rate_bps
    forged = list(itertools.product((0.0, 1.0, 0.3), (RTT_S, None, 0.0, 1e-9, 1e6), (None, 0.0, 1e12)))
    for loss, rtt, received in [*forged * 4, *[(0.0, 1e-9, 1e12)] * 100, *[(1.0, 1e6, 0.0)] * 100]:
        flow.report(loss, rtt, received, arrived=False)
        if not low <= flow.rate_bps <= high:
            raise Missed(
                f"a report of loss {loss:g}, rtt_s {rtt}, receive_rate_bps {received}: the rate is {flow.rate_bps:.4g} bit/s, and min_rate_bps is {low:g}, "
                f"max_rate_bps {high:g}",
                "what becomes of the rate between the report and SetRate? (limited)",
            )


@check(1, "without reports the rate falls", NETWORK_S)
def silence(answer: Answer) -> None:
    if by_runs(answer) is not None:
        raise Missed(
            "this check leaves out reports, and the sender asks for acknowledgements or routers' feedback",
            "explain by hand what it does in silence",
        )
    flow = climbed(answer)
    before = flow.rate_bps
    flow.wait(20.0)
    if flow.rate_bps > 0.5 * before:
        raise Missed(
            f"20 s without a report: from {before / 1e3:.4g} to {flow.rate_bps / 1e3:.4g} kb/s",
            "when a path loses everything, reports are lost, too: what does the sender hear then?",
        )


def measured(answer: Answer) -> Measures:
    """Of both situations; run once for all checks of a grading."""
    answer.needs(climbs, falls, limits)
    if by_runs(answer) is None:
        answer.needs(silence)
    return _run(answer)


def _run(answer: Answer) -> Measures:
    kept = answer.scratch / "measures.json"
    if not kept.is_file():
        algorithms.use(answer, FILE, KIND)
        kept.write_text(json.dumps(measure(KIND, *situations(KIND)).as_json()), encoding="utf-8", newline="\n")
        answer.note("measures", json.loads(kept.read_text(encoding="utf-8")))
    return Measures(**json.loads(kept.read_text(encoding="utf-8")))


@check(2, "four flows use a link of 2 Mb/s, and share it", NETWORK_S)
def alone(answer: Answer) -> None:
    found = measured(answer)
    seen = f"{100 * found.utilisation:.0f}% of the link is used, {100 * found.loss:.1f}% of the packets are lost, Jain's index is {found.jain:.2f}"
    if found.utilisation < 0.75:
        raise Missed(seen, "after a loss, how far does the rate fall, and how many round trips does it take to come back?")
    if found.loss > 0.08:
        raise Missed(seen, "how much do four flows add in a round trip, beside what a link of 2 Mb/s carries in it?")
    if found.jain < 0.85:
        raise Missed(seen, "does a flow that has more also gain more? One of the four came 20 s late: how does it catch up?")


@check(2, "TCP beside it has its part, and it has its own", NETWORK_S)
def beside(answer: Answer) -> None:
    x = measured(answer).beside_tcp
    seen = "TCP SACK has nothing" if math.isinf(x) else f"a flow has {x:.2f} times what a TCP SACK flow has"
    if x > 2.5:
        raise Missed(seen, "TCP halves for each round trip with a loss; what do your flows do at the same losses?")
    if x < 0.4:
        raise Missed(seen, "a few losses belong to one congestion; how often does your sender answer it, and how strongly?")


@check(2, "among the better half of all schemes, all marks counting alike", NETWORK_S)
def rank(answer: Answer) -> None:
    own = score(measured(answer))
    others = [score(m) for m in stored().values()]
    behind = sum(own >= other for other in others)
    if behind < len(others) / 2:
        raise Missed(
            f"{own:.1f} of 100: ahead of {behind} of {len(others)} schemes",
            "the ranking (Plot) makes a report: which of your marks are lowest, and who has better ones?",
            points=1 if behind >= len(others) / 3 else 0,
        )


CHECKS = [climbs, falls, limits, silence, alone, beside, rank]

"""Lab 3: RED's average, its decision and its view of the queue, packet by packet, and then in a network."""

from __future__ import annotations

import itertools
import re
from functools import cache

from fairlane import api
from fairlane.labs.grading import NETWORK_S, Answer, Missed, check
from fairlane.labs.grading.packets import Seen, ipv4, played

FIRST = "first make the check before this one hold"
OUT = 2
PACKET = 1 << 20  # of averages and thresholds
MINIMUM, MAXIMUM, PROBABILITY = 5, 15, 0.1  # packets; p_b in the middle
SLOPE = round(PROBABILITY / ((MAXIMUM - MINIMUM) / 2) * 2**32)
ROUTE = f"add ipv4_lpm hdr.ipv4.dst_address:0x0a000202/32 send(port:{OUT}, src_address:0x21, dst_address:0x22)"
EARLY, FORCED = "AlsIngress.red.decision.early_drops", "AlsIngress.red.decision.forced_drops"
LINK = f"add link standard_metadata.egress_port:{OUT} set_link(microseconds_per_byte:838861)"


def red(weight: float, minimum: float = MINIMUM, maximum: float = MAXIMUM, decay: int = 1) -> str:
    values = {"minimum": minimum * PACKET, "maximum": maximum * PACKET, "slope": SLOPE, "weight": weight * 2**32, "idle_decay": decay}
    arguments = ", ".join(f"{name}:{round(value)}" for name, value in values.items())
    return f"add AlsIngress.red.red_parameters standard_metadata.egress_spec:{OUT} set_red({arguments})"


def state(average: float, queue: int) -> list[str]:
    return [f"register_write red_average {OUT} {round(average * PACKET)}", f"register_write red_queue {OUT} {queue}"]


@cache
def packets(count: int) -> tuple[str, ...]:
    return tuple(f"packet 1 {ipv4('10.0.1.1', '10.0.2.2', identification=n).hex()}" for n in range(count))


def play(answer: Answer, *script: str) -> Seen:
    return played(answer.als_compiled(), [ROUTE, *script], [OUT])


def admitted(seen: Seen) -> list[int]:
    """The numbers of the packets that came out."""
    return [int.from_bytes(frame[18:20], "big") for frame in seen.out.get(OUT, [])]


def average_after(answer: Answer, average: float, queue: int, weight: float) -> tuple[float, bool]:
    """The average that is kept, and whether the packet went on: all averages here are far below the thresholds."""
    seen = play(answer, red(weight, 4000, 4095), *state(average, queue), *packets(1), f"register_read red_average {OUT}")
    return seen.register("red_average") / PACKET, bool(admitted(seen))


def drops_at_all(answer: Answer) -> None:
    if admitted(play(answer, red(0), *state(20, 20), *packets(5))):
        raise Missed("packets pass although the average is above the maximum", FIRST)


@check(2, "the average moves towards the queue by the weight")
def average(answer: Answer) -> None:
    (up, _), (down, passed) = average_after(answer, 10, 30, 0.25), average_after(answer, 20, 8, 0.25)
    if abs(up - 15) > 0.001:
        raise Missed(
            f"average 10 packets, queue 30, weight 0.25: the average after it is {up:.6g}",
            "the product of two numbers in fixed point has the units of both: by how many bits must it be shifted to be packets x 2^20 again?",
        )
    if abs(down - 17) > 0.001 or not passed:
        after = f"{down:.6g}" if passed else "so large that RED drops the packet, though the minimum is 4000 packets"
        raise Missed(
            f"average 20 packets, queue 8, weight 0.25: the average after it is {after}",
            "what is 8 - 20 in a bit<64>, which has no numbers below 0?",
            1,
        )


@check(1, "from the maximum on, every packet is dropped")
def above(answer: Answer) -> None:
    for average_packets in (MAXIMUM, 20):
        passed = len(admitted(play(answer, red(0), *state(average_packets, 20), *packets(50))))
        if passed:
            raise Missed(
                f"maximum {MAXIMUM} packets, average {average_packets}: {passed} of 50 packets pass",
                "what does the algorithm do with an average at the maximum, and does TODO 3 carry it out?",
            )


@check(1, "below the minimum, every packet passes")
def below(answer: Answer) -> None:
    drops_at_all(answer)
    lost = 200 - len(admitted(play(answer, red(0), *state(2, 4), *packets(200))))
    if lost:
        raise Missed(
            f"minimum {MINIMUM} packets, average 2: {lost} of 200 packets are dropped", "which averages is the drop probability for?"
        )


@check(1, "a burst is no congestion: the average decides, not the queue of the moment")
def burst(answer: Answer) -> None:
    drops_at_all(answer)
    lost = 50 - len(admitted(play(answer, red(0), *state(2, 40), *packets(50))))
    if lost:
        raise Missed(
            f"minimum {MINIMUM}, maximum {MAXIMUM} packets, average 2, but 40 in the queue: {lost} of 50 packets are dropped",
            "RED lets bursts through; which of the two, the queue or its average, is compared with the thresholds?",
        )
    if len(admitted(play(answer, red(0), *state(20, 1), *packets(50)))):
        raise Missed(
            f"maximum {MAXIMUM} packets, average 20, 1 in the queue: packets pass",
            "which of the two, the queue or its average, is compared?",
        )


@check(3, "between the thresholds, drops are as many as p_b says, and spread evenly")
def between(answer: Answer) -> None:
    answer.needs(average)
    drops_at_all(answer)
    count = 3000
    passed = set(admitted(play(answer, red(0), *state((MINIMUM + MAXIMUM) / 2, 10), *packets(count))))
    dropped = [n for n in range(count) if n not in passed]
    told = f"average {(MINIMUM + MAXIMUM) // 2} packets, where p_b is {PROBABILITY}: {len(dropped)} of {count} packets are dropped"
    if not dropped:
        raise Missed(told, "which random number leads to a drop, and how many of them are there?")
    gaps = [later - earlier for earlier, later in itertools.pairwise(dropped)]
    if len(dropped) > 0.9 * count:
        raise Missed(told, "when count p_b has reached 1, the next packet is dropped; where does `count` begin anew?")
    if max(gaps) > 1 / PROBABILITY + 1:
        raise Missed(
            f"{told}, once only after {max(gaps)} packets",
            "a drop is certain when count p_b reaches 1; does `count` grow with each packet that passes?",
            1,
        )
    if not 0.17 < len(dropped) / count < 0.23:
        raise Missed(
            told, "the gaps between drops should be even between 1 and 1/p_b packets; look at R (1 - count p_b) < p_b and the units in it"
        )


@check(1, "drops are counted by their cause")
def counters(answer: Answer) -> None:
    drops_at_all(answer)
    try:
        early = play(answer, red(0), *state(10, 10), *packets(300), f"check_counter {EARLY}({OUT})", f"check_counter {FORCED}({OUT})")
        forced = play(answer, red(0), *state(20, 10), *packets(300), f"check_counter {EARLY}({OUT})", f"check_counter {FORCED}({OUT})")
    except RuntimeError as error:
        raise Missed(str(error), "the compiler leaves out a counter that nothing counts in") from None
    for seen, where, right, other in ((early, "between the thresholds", EARLY, FORCED), (forced, "above the maximum", FORCED, EARLY)):
        dropped = 300 - len(admitted(seen))
        if seen.counters[right, OUT] != dropped or seen.counters[other, OUT]:
            told = ", ".join(f"{name.rpartition('.')[2]} {seen.counters[name, OUT]}" for name in (EARLY, FORCED))
            raise Missed(
                f"{where}, {dropped} of 300 packets are dropped; the counters say: {told}", "which counter belongs to which branch?"
            )


@check(2, "arrivals know how many packets wait before them")
def queue(answer: Answer) -> None:
    drops_at_all(answer)
    seen = play(answer, red(0), *state(2, 10), *packets(3), f"register_read red_queue {OUT}")
    if seen.register("red_queue") != 13:
        raise Missed(
            f"10 packets wait and 3 more are admitted: red_queue says {seen.register('red_queue')}",
            "ingress cannot see the queue; who tells the next arrival of a packet that was admitted?",
        )
    seen = play(answer, red(0), *state(20, 10), *packets(3), f"register_read red_queue {OUT}")
    if seen.register("red_queue") != 10:
        raise Missed(
            f"10 packets wait and 3 more are dropped: red_queue says {seen.register('red_queue')}",
            "does a dropped packet take a place in the queue?",
        )


@check(1, "departures put the number right")
def departure(answer: Answer) -> None:
    drops_at_all(answer)
    seen = play(answer, red(0), LINK, *state(2, 7), *packets(1), f"register_read red_queue {OUT}")
    if seen.register("red_queue"):
        raise Missed(
            f"a packet leaves and none waits behind it: red_queue says {seen.register('red_queue')}",
            "egress knows how many packets wait, and ingress does not; who writes it down?",
        )
    # Single packets meet no queue, so a packet test sees no difference between the two.
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", answer.text("red.p4"), flags=re.DOTALL)
    if re.search(r"\bred_queue\s*\.\s*write\s*\([^;]*\benq_qdepth", text):
        raise Missed(
            "red_queue gets enq_qdepth: how many packets waited when this one came, not how many wait now",
            "of which moment do arrivals want to know the queue: when the packet that leaves came, or when it leaves?",
        )


@check(3, "four TCP flows share a link of 4 Mb/s, in virtual time", NETWORK_S)
def network(answer: Answer) -> None:
    drops_at_all(answer)
    result = api.run(
        "dumbbell",
        ["tcp-reno:4"],
        bottleneck="4mbit",
        rtt="60ms",
        queue="red",
        buffer="60",
        duration_s=20,
        programs=[answer.program("red.p4")],
    )
    link = result.bottleneck
    drops, mean = link["drops"], link["mean_queue_packets"]
    told = f"mean queue {mean:.1f} packets of 60 (RED from 15 to 45), utilisation {100 * link['utilisation']:.0f}%, drops {drops}"
    if drops.get("tail", 0) > 0 or mean > 45:
        raise Missed(told, "the queue fills up: does the average follow it, and do arrivals learn of it?")
    if link["utilisation"] < 0.8 or mean < 5 or not drops.get("red_early", 0):
        raise Missed(told, "the link is not used well: are packets dropped that should pass?")


CHECKS = [average, above, below, burst, between, counters, queue, departure, network]

"""Lab 8: the three functions by numbers, then the sender and its receivers in a tree."""

from __future__ import annotations

import json
import math
from pathlib import Path

from fairlane import api
from fairlane.labs.grading import NETWORK_S, Answer, Missed, algorithms, check

FILE, KIND = "my_layers.py", "my-layers"
TREE = Path(__file__).with_name("tree.toml")


def kbps(values: list[float]) -> str:
    return ", ".join(f"{v / 1e3:g}" for v in values) + " kb/s"


@check(2, "the rate of each layer")
def rates(answer: Answer) -> None:
    f = algorithms.numbers(answer, FILE, "layer_rates_bps", 3)
    for given in ([90e3, 230e3, 160e3], [500e3, 100e3], [120e3]):
        seen = f(list(given))
        told = f"receivers of {kbps(given)}: layers of {kbps(seen)}"
        if not math.isclose(seen[0], min(given)):
            raise Missed(told, "every receiver has the basic layer; whose rate may it have at most, and must it have?")
        if not math.isclose(sum(seen), max(given), rel_tol=1e-9):
            raise Missed(told, "a receiver with all three layers gets their sum; what should the best receiver get?")
        if not math.isclose(seen[1], seen[2], abs_tol=1e-6):
            raise Missed(told, "section 3.4: how does the paper divide the upper layers?")


@check(2, "the sizes that are announced")
def sizes(answer: Answer) -> None:
    f = algorithms.numbers(answer, FILE, "announced_sizes_bps", 3)
    for given in ([90e3, 225e3, 180e3], [100_000.9, 333_333.4], [120_000.5]):
        seen = f(list(given))
        told = f"fair rates of {', '.join(f'{v:g}' for v in given)} bit/s: sizes {', '.join(f'{v:g}' for v in seen)}"
        if any(v != int(v) for v in seen):
            raise Missed(told, "a control packet has whole bit/s")
        if seen[0] != math.floor(min(given)):
            raise Missed(told, "which receiver must be able to have the basic layer, by its R_d?")
        if sum(seen) > max(given):
            raise Missed(told, "can the best receiver, the one with the largest R_d, join all layers of these sizes?")
        if sum(seen) < max(given) - 3 or seen[1] != seen[2]:
            raise Missed(told, "section 3.4: sizes of the upper layers; of what difference are they a half?")


@check(2, "the layers that a receiver joins")
def joins(answer: Answer) -> None:
    f = algorithms.function(answer, FILE, "layers_to_join")
    paper = [90e3, 70e3, 70e3]
    cases = [
        (100e3, paper, 1, "R_d has room for how many of them together?"),
        (500e3, paper, 3, "R_d has room for how many of them together?"),
        (230e3, paper, 3, "R_d is exactly the sum: the paper has a sign between the two. Which?"),
        (160e3, paper, 2, "R_d is exactly the sum: the paper has a sign between the two. Which?"),
        (159e3, paper, 1, "who has the second layer has the first one, too: what must R_d have room for?"),
        (50e3, paper, 1, "section 3.4: what do receivers start with, and never leave?"),
        (125e3, [90e3, 50e3, 20e3], 1, "a layer is of use only with all layers below it: what if one in the middle does not fit?"),
        (120e3, [120e3, 0.0, 0.0], 1, "all receivers are alike, and the upper layers have size 0; what is sent there?"),
    ]
    for desired, given, expected, hint in cases:
        seen = f(desired, list(given))
        if seen != expected:
            raise Missed(f"R_d of {desired / 1e3:g} kb/s, sizes {kbps(given)}: joins {seen:g}", hint)


def ran(answer: Answer) -> dict[str, float]:
    """What the tree gave: goodput of each receiver in bit/s, and the experiment's checks by name. Run once for a grading."""
    answer.needs(rates, sizes, joins)
    kept = answer.scratch / "tree.json"
    if not kept.is_file():
        algorithms.use(answer, FILE, KIND)
        result = api.run(TREE)
        receivers = {name: goodput for name, goodput in result.goodputs_bps.items() if name.startswith("video@")}
        kept.write_text(json.dumps({**receivers, **result.check_values}), encoding="utf-8", newline="\n")
    return json.loads(kept.read_text(encoding="utf-8"))


@check(2, "in the tree each receiver has the layers that its path has room for", NETWORK_S)
def tree(answer: Answer) -> None:
    found = ran(answer)
    layers = [found[f"layers of receiver {n} after"] for n in range(3)]
    goodputs = [found[f"video@rcv{n}"] for n in range(3)]
    seen = f"receivers 0, 1, 2 have {', '.join(f'{v:.3g}' for v in layers)} layers and {kbps([round(g, -3) for g in goodputs])}"
    if layers != [1, 3, 2] or not goodputs[0] < 0.8 * goodputs[2] < 0.8 * 0.9 * goodputs[1]:
        raise Missed(seen, "narrow, wide, middle: compare R_d, sizes and joins in layers.png of a run")


@check(2, "no receiver probes, and the best one does not suffer from the worst", NETWORK_S)
def probing(answer: Answer) -> None:
    found = ran(answer)
    if found["joins that R_d did not allow"]:
        raise Missed(
            f"{found['joins that R_d did not allow']:g} joins that R_d did not allow", "what does a receiver know before it joins?"
        )
    if found["video@rcv1"] < 150e3:
        raise Missed(
            f"receiver 1 has {found['video@rcv1'] / 1e3:.0f} kb/s on a path of 1.5 Mb/s",
            "when receiver 0 comes, who has to change what it receives?",
        )


CHECKS = [rates, sizes, joins, tree, probing]

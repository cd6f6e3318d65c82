"""Lab 9: the measures of the figure, the paper's values, the values here, and whether the explanation predicts another run."""

from __future__ import annotations

import importlib
import math
import statistics
from dataclasses import dataclass
from typing import Literal, TypeVar

from fairlane.inputs import located_toml, schema
from fairlane.inputs.located_toml import ConfigError
from fairlane.labs.grading import NETWORK_S, Answer, Missed, algorithms, check
from fairlane.labs.grading.answer import close

runs = importlib.import_module("fairlane.labs.09.runs")

FILE, FINDINGS = "figure.py", "findings.toml"
PAPER = {"ssvp": 0.0868, "ssvp-adp": 0.0581}
BETA_SSVP = 0.875
_SAME = 0.01
T = TypeVar("T")


@dataclass(frozen=True)
class Pair:
    """Coefficients of variation."""

    cov_ssvp: float
    cov_ssvp_adp: float

    @property
    def ratio(self) -> float:
        return self.cov_ssvp_adp / self.cov_ssvp if self.cov_ssvp else math.nan


@dataclass(frozen=True)
class Deviation:
    kind: Literal["none", "size", "sign", ""]


@dataclass(frozen=True)
class Cause:
    beta_ssvp_adp: float
    ratio_of_sawtooths: float
    same_beta_packets: float


@dataclass(frozen=True)
class Test(Pair):
    buffer_packets: int


def found(answer: Answer, table: str, kind: type[T]) -> T:
    """A table of the findings. Missed names file and line."""
    path = answer.path(FINDINGS)
    try:
        document = located_toml.read(path)
        if table not in document.values:
            raise Missed(f"{FINDINGS}: the table [{table}] is missing", "the skeleton has it")
        return schema.build(kind, document, (table,))
    except ConfigError as error:
        raise Missed(str(error).replace(f"{path.parent}/", ""), "TOML: key = value, numbers without quotes, words with them") from None


def line(answer: Answer, table: str) -> str:
    """Where a table of the findings begins."""
    text = answer.text(FINDINGS).splitlines()
    return f"{FINDINGS}:{next((n for n, one in enumerate(text, 1) if one.startswith(f'[{table}]')), 1)}: [{table}]"


def same(a: float, b: float, tolerance: float = _SAME) -> bool:
    return math.isclose(a, b, rel_tol=tolerance)


@check(1, "the coefficient of variation of one flow")
def variation(answer: Answer) -> None:
    f = algorithms.function(answer, FILE, "cov")
    for rates in ([100.0, 500.0], [200.0, 400.0, 300.0, 300.0]):
        mean = sum(rates) / len(rates)
        squares = sum((r - mean) ** 2 for r in rates) / len(rates)
        seen = f(rates)
        if math.isclose(seen, squares / mean) or math.isclose(seen, squares / mean**2):
            raise Missed(f"cov({rates}) gives {seen:g}", "twice the rates, the same picture: CoV must not change. Is there a root missing?")
        if math.isclose(seen, math.sqrt(squares)):
            raise Missed(f"cov({rates}) gives {seen:g}", "a deviation in bit/s says nothing without what it deviates from")
        close(
            seen,
            math.sqrt(squares) / mean,
            f"cov({rates})",
            "section V.B: the root of the mean of the squares less the square of the mean; over what?",
        )


@check(1, "the smoothness of a figure: over its flows")
def of_all(answer: Answer) -> None:
    answer.needs(variation)
    f = algorithms.function(answer, FILE, "smoothness")
    # The second flow is the first upside down: their sum does not vary at all.
    mirrored = [[100.0, 300.0, 200.0], [300.0, 100.0, 200.0]]
    each = math.sqrt(20_000 / 3) / 200
    seen = f(mirrored)
    if math.isclose(seen, 0.0, abs_tol=1e-9):
        raise Missed(
            f"two flows, the second always as far below the mean as the first above: smoothness gives {seen:g}",
            "is it the sum of the flows that a viewer of one video sees?",
        )
    close(seen, each, "smoothness of two flows that mirror each other", "section V.B: average of what, over what?")
    close(
        f([[100.0, 300.0], [1000.0, 1000.0]]),
        0.25,
        "smoothness of a slow flow that varies and a fast one that does not",
        "does a flow of a higher rate count more?",
    )


@check(1, "equation 17: the decrease that follows the buffer")
def decrease(answer: Answer) -> None:
    f = algorithms.function(answer, FILE, "beta")
    for buffer_packets, product in ((8, 8), (2, 10), (30, 10)):
        close(
            f(buffer_packets, product),
            product / (product + buffer_packets),
            f"beta({buffer_packets}, {product})",
            "below the equation the paper says what beta is for a buffer of one product; what must it be for hardly any buffer?",
        )


@check(1, "the coefficient of variation of a sawtooth")
def sawtooth(answer: Answer) -> None:
    f = algorithms.function(answer, FILE, "sawtooth_cov")
    for beta in (0.5, 0.875, 0.2):
        level = [beta + (1 - beta) * step / 20_000 for step in range(20_001)]
        close(
            f(beta),
            statistics.pstdev(level) / statistics.fmean(level),
            f"sawtooth_cov({beta})",
            "draw one tooth: its mean lies half way; what part of a width is the standard deviation of an even spread?",
            tolerance=1e-4,
        )


@check(1, "what the paper reports")
def paper(answer: Answer) -> None:
    told = found(answer, "paper", Pair)
    if not (same(told.cov_ssvp, PAPER["ssvp"], 1e-3) and same(told.cov_ssvp_adp, PAPER["ssvp-adp"], 1e-3)):
        raise Missed(
            f"{line(answer, 'paper')} has {told.cov_ssvp:g} and {told.cov_ssvp_adp:g}",
            "the paper's last sentences on figure 3, which the lab's page quotes under Theory",
        )


def seed(answer: Answer) -> int:
    """Of this student's runs."""
    return int(answer.number("seed", 1))


def recomputed(answer: Answer, buffer_packets: int) -> Pair:
    """By the answer's own measure, which must hold, from runs of the grader."""
    answer.needs(variation, of_all)
    f = algorithms.function(answer, FILE, "smoothness")
    return Pair(*(f(runs.rates(kind, buffer_packets, seed(answer))) for kind in runs.KINDS))


@check(1, "what comes out here", NETWORK_S)
def here(answer: Answer) -> None:
    told, ours = found(answer, "here", Pair), recomputed(answer, 4)
    if not (same(told.cov_ssvp, ours.cov_ssvp) and same(told.cov_ssvp_adp, ours.cov_ssvp_adp)):
        raise Missed(
            f"{line(answer, 'here')} has {told.cov_ssvp:g} and {told.cov_ssvp_adp:g}: "
            f"not what runs with seed {seed(answer)} and 4 packets give by your figure.py",
            "'python -m fairlane.labs.09.runs' prints a line for each buffer; which one is the paper's?",
        )


@check(1, "how figure and run deviate")
def deviation(answer: Answer) -> None:
    told, kind = found(answer, "here", Pair), found(answer, "deviation", Deviation).kind
    if not told.cov_ssvp > 0 or not told.cov_ssvp_adp > 0:
        raise Missed(f"{line(answer, 'here')} has no numbers yet", "first what comes out, then how it deviates")
    theirs = PAPER["ssvp-adp"] / PAPER["ssvp"]
    is_so = (
        "sign"
        if (told.ratio > 1) != (theirs > 1)
        else "none"
        if same(told.ratio, theirs, 0.1) and same(told.cov_ssvp, PAPER["ssvp"], 0.1)
        else "size"
    )
    if kind != is_so:
        raise Missed(
            f"{line(answer, 'deviation')} says {kind!r}; [here] has a ratio of {told.ratio:.3g}, and the paper {theirs:.3g}",
            "which of the two schemes is the smoother in the paper, and which here?",
        )
    answer.needs(here)


@check(1, "a cause, in the paper's own equations")
def cause(answer: Answer) -> None:
    told = found(answer, "cause", Cause)
    beta = 1 / (1 + 4 / runs.PRODUCT_PACKETS)
    if not same(told.beta_ssvp_adp, beta):
        raise Missed(
            f"{line(answer, 'cause')} beta_ssvp_adp is {told.beta_ssvp_adp:g}",
            "1 Mb/s, 64 ms, packets of 1000 bytes: what part of the bandwidth-delay product are 4 packets?",
        )
    if not same(told.ratio_of_sawtooths, (1 - beta) / (1 + beta) / ((1 - BETA_SSVP) / (1 + BETA_SSVP))):
        raise Missed(
            f"{line(answer, 'cause')} ratio_of_sawtooths is {told.ratio_of_sawtooths:g}",
            "your sawtooth_cov, once with each beta; which of the two is on top in all ratios here?",
        )
    if not same(told.same_beta_packets, runs.PRODUCT_PACKETS * (1 / BETA_SSVP - 1)):
        raise Missed(f"{line(answer, 'cause')} same_beta_packets is {told.same_beta_packets:g}", "solve equation 17 for the buffer")


@check(2, "another run, which the cause predicts", NETWORK_S)
def test(answer: Answer) -> None:
    told = found(answer, "test", Test)
    if told.buffer_packets == 4 or told.buffer_packets not in runs.BUFFERS:
        raise Missed(
            f"{line(answer, 'test')} buffer_packets is {told.buffer_packets}",
            "1, 2, 3 or 8: which of them changes the order of the two betas?",
        )
    if told.ratio > 1:
        raise Missed(
            f"{line(answer, 'test')} at a buffer of {told.buffer_packets} SSVP-ADP is the less smooth, too, with a ratio of {told.ratio:.3g}",
            "an explanation is worth something when it says where the opposite happens; on which side of same_beta_packets would that be?",
        )
    ours = recomputed(answer, told.buffer_packets)
    if not (same(told.cov_ssvp, ours.cov_ssvp) and same(told.cov_ssvp_adp, ours.cov_ssvp_adp)):
        raise Missed(
            f"{line(answer, 'test')} has {told.cov_ssvp:g} and {told.cov_ssvp_adp:g}: "
            f"not what runs with seed {seed(answer)} and {told.buffer_packets} packets give by your figure.py",
            "take the numbers from the line of that buffer, with the seed of your page",
        )


CHECKS = [variation, of_all, decrease, sawtooth, paper, here, deviation, cause, test]

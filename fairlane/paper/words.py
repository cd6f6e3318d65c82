"""Expectations, findings and numbers, in words for the page, the console and `index.json`."""

from __future__ import annotations

import math

from fairlane.paper.judge import Expectation, Verdict
from fairlane.studies.units import number


def expected(expectation: Expectation, program: str = "the reference") -> str:
    """What an expectation asks for, in words. program: whose results `of_reference` means."""
    if expectation.trend:
        text = f"{expectation.trend} with {expectation.over}"
    elif math.isinf(expectation.low):
        text = f"at most {expectation.high:g}"
    elif math.isinf(expectation.high):
        text = f"at least {expectation.low:g}"
    else:
        text = f"{expectation.low:g} to {expectation.high:g}"
    if expectation.of_reference:
        text = f"{text} times {program}'s"
    if expectation.seeds == "each":
        text = f"{text}, with each seed"
    if expectation.at_least:
        text = f"{text}, for at least {expectation.at_least} {_unit(expectation)}"
    return f"{text}, for some {expectation.any}" if expectation.any else text


def _unit(expectation: Expectation) -> str:
    return "curves" if expectation.trend else "points"


def found(verdict: Verdict) -> str:
    """The range of values found, and with `at_least` how many points hold."""
    low, high = verdict.extremes
    if math.isnan(low):
        return "not measured"
    text = number(low) if number(low) == number(high) else f"{number(low)} to {number(high)}"
    if verdict.expectation.trend:
        text = f"tau {text}"
    if verdict.expectation.at_least:
        text += f"; {sum(f.holds for f in verdict.findings)} of {len(verdict.findings)} {_unit(verdict.expectation)}"
    return text


def noise(verdict: Verdict) -> str:
    """Where an expectation holds by chance, perhaps: "" where it holds beyond the noise of the seeds, or does not hold."""
    found_ = verdict.within_noise if verdict.holds else ()
    places = [f"{f.where}: {number(f.value)}, 95% interval {number(f.ends[0])} to {number(f.ends[1])}" for f in found_ if f.ends]
    return "; ".join(places[:3]) + (f"; and {len(places) - 3} more" if len(places) > 3 else "")

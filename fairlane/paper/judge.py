"""Evaluates a sweep: compares each expectation with the medians over seeds, or with each seed.

[[expect]]
name = "RAP/SACK at 160 ms"
measure = "ratio"                       # of [measure]
where = { delay_s = 0.16, n = [8, 16] } # the points; left out: all
low = 0.8
high = 1.25

[[expect]]
name = "falls towards 1 with n"
measure = "ratio"
over = "n"                              # an axis; the other axes each make a curve
trend = "falling"                       # or "rising": Kendall's tau of the medians at most -0.5, or at least 0.5

[[expect]]
name = "adaptive over static"
measure = "cov"
ratio_of = { scheme = "adp" }           # median there over the median at ratio_to; the other axes must agree
ratio_to = { scheme = "static" }
high = 0.8

[[expect]]
name = "as in ns-2"
measure = "ratio"
of_reference = true                     # the median over that of [ledger] reference at the same point
low = 0.75
high = 1.25

seeds = "each"                          # for a plain expectation: compares it with the value of each seed, not with their median

any = "max_p"                           # for a plain or ratio expectation: one value of that axis for which all the others hold
at_least = 22                           # this many of the points (for a trend: curves) must hold; left out: all
contradicts = "why, with arithmetic"    # a figure of the paper that cannot come out: shown, never counted (`fairlane.paper.kinds`)
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from fairlane.experiments.expressions import Value
from fairlane.experiments.sweep import matching
from fairlane.paper.reference import Reference
from fairlane.studies import intervals

Axes = tuple[tuple[str, Value], ...]
LEAST_TAU = 0.5
"""Kendall's tau of a trend: three of four pairs of points in order."""


@dataclass(frozen=True)
class Expectation:
    """One [[expect]] table; see the module. paper: what the paper says of it. at_least: 0 stands for every point."""

    name: str
    measure: str
    where: dict[str, Any] = field(default_factory=dict)
    low: float = -math.inf
    high: float = math.inf
    over: str = ""
    trend: Literal["", "falling", "rising"] = ""
    ratio_of: dict[str, Any] = field(default_factory=dict)
    ratio_to: dict[str, Any] = field(default_factory=dict)
    any: str = ""
    of_reference: bool = False
    seeds: Literal["median", "each"] = "median"
    at_least: int = 0
    contradicts: str = ""
    paper: str = ""

    def __post_init__(self) -> None:
        check_arithmetic("contradicts", self.contradicts)
        if self.at_least < 0:
            raise ValueError(f"at_least: a number of points, got {self.at_least}")
        if self.at_least and (self.any or self.seeds == "each"):
            raise ValueError("at_least: not together with 'any' or with seeds = 'each'")
        if bool(self.over) != bool(self.trend):
            raise ValueError("trend: 'over' and 'trend' go together")
        if bool(self.ratio_of) != bool(self.ratio_to):
            raise ValueError("ratio_of: 'ratio_of' and 'ratio_to' go together")
        if self.of_reference and (self.trend or self.ratio_of):
            raise ValueError("of_reference: is of single points, without 'trend' and 'ratio_of'")
        if self.seeds == "each" and (self.trend or self.ratio_of or self.of_reference or self.any or self.at_least):
            raise ValueError("seeds: 'each' is of single points, without 'trend', 'ratio_of', 'of_reference', 'any' and 'at_least'")
        if self.trend:
            if self.any or self.ratio_of or math.isfinite(self.low) or math.isfinite(self.high):
                raise ValueError("trend: takes no 'low', 'high', 'any' or 'ratio_of'")
        elif self.low > self.high:
            raise ValueError(f"low: {self.low:g} is above high, {self.high:g}")
        elif not math.isfinite(self.low) and not math.isfinite(self.high):
            raise ValueError("low: an expectation without low and high cannot fail")


def check_arithmetic(key: str, text: str) -> None:
    """ValueError for a claim that something is impossible if the text has no number: it cannot be arithmetic."""
    if text and not any(c.isdigit() for c in text):
        raise ValueError(f"{key}: give the arithmetic, with its numbers, that shows the contradiction; {text!r} has no number")


@dataclass(frozen=True)
class Finding:
    """The finding at one point or curve. where: its axes as text. holds: whether it is as expected. ends: of the value's 95% interval over
    seeds; None where there is none."""

    where: str
    value: float
    holds: bool
    ends: tuple[float, float] | None = None


@dataclass(frozen=True)
class Verdict:
    """holds: every finding does (with `any`: those of one value do; with `at_least`: so many do)."""

    expectation: Expectation
    findings: tuple[Finding, ...]
    holds: bool

    @property
    def measured(self) -> bool:
        """Whether there is a value at all: a pass of fewer points may have run none of those that an expectation looks at."""
        return any(not math.isnan(f.value) for f in self.findings)

    @property
    def extremes(self) -> tuple[float, float]:
        """The least and the largest value found; NaN without values."""
        values = [f.value for f in self.findings if not math.isnan(f.value)]
        return (min(values), max(values)) if values else (math.nan, math.nan)

    @property
    def within_noise(self) -> tuple[Finding, ...]:
        """Findings that hold although their interval reaches beyond the expectation's bounds: other seeds may miss them."""
        low, high = self.expectation.low, self.expectation.high
        return tuple(f for f in self.findings if f.holds and f.ends is not None and not low <= f.ends[0] <= f.ends[1] <= high)


def medians(samples: Mapping[Axes, Iterable[float]]) -> dict[Axes, float]:
    """The median over seeds at each point; a point with a value that could not be measured has none."""
    result = {}
    for axes, values in samples.items():
        values = list(values)
        result[axes] = statistics.median(values) if values and not any(math.isnan(v) for v in values) else math.nan
    return result


def judge(expectation: Expectation, samples: Mapping[Axes, Iterable[float]], reference: Reference | None = None) -> Verdict:
    """samples: for each point, the measure at every seed. reference: the values for `of_reference`; a missing point is
    not a number."""
    at = medians(samples)
    if expectation.of_reference:
        at = {
            axes: value / (reference.median(axes, expectation.measure) or math.nan) if reference else math.nan for axes, value in at.items()
        }
    picked = {axes: at[axes] for axes in matching(at, expectation.where)}
    if expectation.trend:
        findings = _trends(expectation, picked)
    elif expectation.seeds == "each":
        findings = [_bounded(expectation, axes, v) for axes in picked for v in _extremes(samples[axes])]
    elif expectation.ratio_of:
        findings = [_bounded(expectation, axes, value, ends) for axes, value, ends in _ratios(expectation, picked, samples)]
    else:
        theirs = {axes: reference.values(axes, expectation.measure) for axes in picked} if expectation.of_reference and reference else None
        ends = {
            axes: _ends(list(samples[axes])) if theirs is None else intervals.quotient(list(samples[axes]), theirs[axes]) for axes in picked
        }
        findings = [_bounded(expectation, axes, value, ends[axes]) for axes, value in picked.items()]
    if expectation.any:
        holds = _any(expectation, picked, findings)
    else:
        holds = bool(findings) and sum(f.holds for f in findings) >= (expectation.at_least or len(findings))
    return Verdict(expectation, tuple(findings), holds)


def points_of(expectation: Expectation, points: Iterable[Axes]) -> int:
    """How many points (of a trend: curves) of a sweep an expectation looks at."""
    return len(judge(expectation, dict.fromkeys(points, (1.0,))).findings)


def _bounded(expectation: Expectation, axes: Axes, value: float, ends: tuple[float, float] | None = None) -> Finding:
    return Finding(describe(axes), value, expectation.low <= value <= expectation.high, ends)


def _ends(values: Sequence[float]) -> tuple[float, float] | None:
    """Of the mean's interval; None for a single value, or with a value that is not a number."""
    if len(values) < 2 or any(math.isnan(v) for v in values):
        return None
    middle, half = statistics.fmean(values), intervals.student(values)
    return middle - half, middle + half


def _extremes(values: Iterable[float]) -> tuple[float, ...]:
    """The least and the largest of the seeds' values; a single value that is not a number where one could not be measured."""
    values = list(values)
    return (min(values), max(values)) if values and not any(math.isnan(v) for v in values) else (math.nan,)


def _ratios(
    expectation: Expectation, at: Mapping[Axes, float], samples: Mapping[Axes, Iterable[float]]
) -> list[tuple[Axes, float, tuple[float, float] | None]]:
    below = {_without(axes, expectation.ratio_to): axes for axes in matching(at, expectation.ratio_to)}
    result = []
    for axes in matching(at, expectation.ratio_of):
        rest = _without(axes, expectation.ratio_of)
        if rest in below:
            other = below[rest]
            ends = intervals.quotient(list(samples[axes]), list(samples[other]))
            result.append((rest, at[axes] / at[other] if at[other] else math.nan, ends))
    return result


def _trends(expectation: Expectation, at: Mapping[Axes, float]) -> list[Finding]:
    curves: dict[Axes, list[tuple[Value, float]]] = {}
    for axes, value in at.items():
        given = dict(axes)
        if expectation.over in given:
            curves.setdefault(_without(axes, {expectation.over: None}), []).append((given[expectation.over], value))
    sign = 1 if expectation.trend == "rising" else -1
    findings = []
    for axes, curve in curves.items():
        if len(curve) >= 2:
            tau = kendall_tau(sorted(curve))
            findings.append(Finding(describe(axes), tau, sign * tau >= LEAST_TAU))
    return findings


def kendall_tau(curve: list[tuple[Any, float]]) -> float:
    """Pairs in order minus pairs out of order, over all pairs; ties count for neither."""
    order = pairs = 0
    for i, (_, a) in enumerate(curve):
        for _, b in curve[i + 1 :]:
            pairs += 1
            order += (b > a) - (b < a)
    return order / pairs if pairs and not any(math.isnan(v) for _, v in curve) else math.nan


def _any(expectation: Expectation, picked: Mapping[Axes, float], findings: list[Finding]) -> bool:
    groups: dict[Any, list[bool]] = {}
    for axes, finding in zip(picked, findings):
        groups.setdefault(dict(axes).get(expectation.any), []).append(finding.holds)
    return any(all(group) for group in groups.values())


def _without(axes: Axes, keys: Mapping[str, Any]) -> Axes:
    return tuple((k, v) for k, v in axes if k not in keys)


def describe(axes: Axes) -> str:
    """ "n = 4, delay_s = 0.02"; "all" for a row without axes."""
    return ", ".join(f"{k} = {v}" for k, v in axes) or "all"

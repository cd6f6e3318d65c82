"""Paired comparisons: a measure at two values of an axis on the same seeds, so that the seed's common effect cancels out.

    [[compare]]
    measure = "goodput_bps"
    of = { kind = "rap" }
    to = { kind = "tcp-cubic" }

The difference is the mean over seeds of the difference of a pair; the ratio is the geometric mean of the quotients, where all values are
positive. Both with 95% intervals (`fairlane.studies.intervals`).
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairlane.arithmetic import exp, log
from fairlane.experiments.sweep import matching
from fairlane.studies import intervals
from fairlane.studies.study import Comparison

Axes = tuple[tuple[str, Any], ...]
Ends = tuple[float, float]


@dataclass(frozen=True)
class Effect:
    """At one point of the other axes. pairs: number of seeds that both sides have. mean_of, mean_to: of these pairs. An interval is None below two
    pairs, the ratio where a value is not positive."""

    comparison: Comparison
    at: Axes
    pairs: int
    mean_of: float
    mean_to: float
    difference: float
    difference_interval: Ends | None
    ratio: float | None
    ratio_interval: Ends | None

    @property
    def differs(self) -> bool | None:
        """Whether the interval of the difference leaves out 0; None without one."""
        return None if self.difference_interval is None else not self.difference_interval[0] <= 0 <= self.difference_interval[1]


def effects(comparison: Comparison, results: Mapping[Axes, list[dict[str, Any]]]) -> list[Effect]:
    """One for each point of the axes that the comparison leaves free, in their order."""
    others = {_rest(at, comparison): at for at in matching(results, {**comparison.where, **comparison.to})}
    found = []
    for at in matching(results, {**comparison.where, **comparison.of}):
        if (rest := _rest(at, comparison)) in others:
            a, b = (_by_seed(results[side], comparison.measure) for side in (at, others[rest]))
            pairs = [(a[seed], b[seed]) for seed in a if seed in b]
            if pairs:
                found.append(_effect(comparison, rest, pairs))
    return found


def _rest(at: Axes, comparison: Comparison) -> Axes:
    return tuple((name, value) for name, value in at if name not in comparison.of)


def _by_seed(runs: list[dict[str, Any]], measure: str) -> dict[int, float]:
    return {run["seed"]: value for run in runs if (value := run["values"].get(measure)) is not None}


def _effect(comparison: Comparison, at: Axes, pairs: list[tuple[float, float]]) -> Effect:
    differences = [a - b for a, b in pairs]
    logs = [log(a / b) for a, b in pairs] if all(v > 0 for pair in pairs for v in pair) else []
    of_logs = intervals.of_mean(logs)
    return Effect(
        comparison,
        at,
        len(pairs),
        statistics.fmean(a for a, _ in pairs),
        statistics.fmean(b for _, b in pairs),
        statistics.fmean(differences),
        intervals.of_mean(differences),
        exp(statistics.fmean(logs)) if logs else None,
        (exp(of_logs[0]), exp(of_logs[1])) if of_logs else None,
    )


def sides(comparison: Comparison) -> tuple[str, str]:
    """What the two sides are called: the values that make them."""
    return tuple(", ".join(map(str, side.values())) for side in (comparison.of, comparison.to))  # type: ignore[return-value]

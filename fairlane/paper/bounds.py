"""The range of a measure's possible values, to refuse an expectation that always passes or always fails, before anything runs.

An expression is evaluated over intervals: every value that it can take, when each name lies within its own interval, lies within the
result. The result may be wider than necessary (x - x gives more than 0), never narrower.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Callable, Mapping, Sequence

from fairlane.experiments import expressions, loader, sweep
from fairlane.experiments.expressions import Value
from fairlane.inputs.located_toml import Document, KeyPath
from fairlane.paper.judge import Expectation
from fairlane.studies import measures, settling

Interval = tuple[float, float]
ANY: Interval = (-math.inf, math.inf)
COUNT: Interval = (0.0, math.inf)
FRACTION: Interval = (0.0, 1.0)

_FRACTIONS = ("loss", "jain", "worst_case_fairness", "delayed", "delivery_index")
OF_FLOWS: dict[str, Interval] = {name: FRACTION if name in _FRACTIONS else COUNT for name in measures.OF_FLOWS}
"""Every figure of a group of flows is a count, a rate, a time, a deviation, or a fraction."""
OF_BOTTLENECK: dict[str, Interval] = dict.fromkeys(measures.OF_BOTTLENECK, COUNT)
"""Utilisation too: in a short window a link may send what it began before."""
OF_RUN: dict[str, Interval] = {name: FRACTION if name.endswith("_fraction") else COUNT for name in (*loader.METRICS, *settling.OF_RUN)}
"""What checks may name."""


def of_name(whole: str) -> Interval:
    """Of "GROUP.figure", "bottleneck.figure" or "run.metric"."""
    owner, _, figure = whole.partition(".")
    return {"bottleneck": OF_BOTTLENECK, "run": OF_RUN}.get(owner, OF_FLOWS).get(figure, ANY)


def of_measure(text: str, values: Mapping[str, Value]) -> Interval:
    """The interval of a measure's expression. values: of the axes and of [let] at one point of the sweep."""
    names: dict[str, Interval | Value] = {name: of_name(name) for name in expressions.names_in(text) if "." in name}
    return evaluate(text, {**values, **names})


def evaluate(text: str, names: Mapping[str, Value | Interval]) -> Interval:
    """All values of an expression of `fairlane.experiments.expressions`, where a name means a value or an interval."""
    tree = ast.parse(text.removeprefix("=").strip(), mode="eval")
    return _interval(tree.body, names)


def _interval(node: ast.expr, names: Mapping[str, Value | Interval]) -> Interval:
    fixed = {name: value for name, value in names.items() if not isinstance(value, tuple)}
    try:  # an expression of known values only is that value
        value = expressions.evaluate(ast.unparse(node), fixed)
        return (float(value), float(value)) if isinstance(value, bool | int | float) else ANY
    except ValueError:
        pass
    match node:
        case ast.Name(id=name) if isinstance(names.get(name), tuple):
            return names[name]  # type: ignore[return-value]
        case ast.Attribute() if isinstance(names.get(ast.unparse(node)), tuple):
            return names[ast.unparse(node)]  # type: ignore[return-value]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            low, high = _interval(operand, names)
            return -high, -low
        case ast.BinOp(left=left, op=op, right=right):
            return _binary(op, _interval(left, names), _interval(right, names))
        case ast.IfExp(body=body, orelse=orelse):
            return _hull([_interval(body, names), _interval(orelse, names)])
        case ast.Compare():
            return FRACTION
        case ast.Call(func=ast.Name(id=name), args=arguments) if arguments:
            return _call(name, [_interval(a, names) for a in arguments])
    return ANY


def _binary(op: ast.operator, a: Interval, b: Interval) -> Interval:
    match op:
        case ast.Add():
            return a[0] + b[0], a[1] + b[1]
        case ast.Sub():
            return a[0] - b[1], a[1] - b[0]
        case ast.Mult():
            return _hull_of([_product(x, y) for x, y in itertools.product(a, b)])
        case ast.Div():
            return _quotient(a, b)
    return ANY


def _product(x: float, y: float) -> float:
    """0 times an unbounded name is 0: an infinite end of an interval is not itself a value."""
    return 0.0 if x == 0 or y == 0 else x * y


def _quotient(a: Interval, b: Interval) -> Interval:
    """A division by zero gives no value, so that an end of b that is 0 is only come near to."""
    if b[0] < 0 < b[1] or b == (0.0, 0.0):
        return ANY
    sign = -1.0 if b[1] <= 0 else 1.0
    low, high = (b[0], b[1]) if sign > 0 else (-b[1], -b[0])
    inverse = (0.0 if math.isinf(high) else 1.0 / high, math.inf if low == 0 else 1.0 / low)
    ends = [_product(x, sign * y) for x, y in itertools.product(a, inverse)]
    return _hull_of(ends)


def _call(name: str, arguments: list[Interval]) -> Interval:
    lows, highs = [a[0] for a in arguments], [a[1] for a in arguments]
    match name:
        case "min":
            return min(lows), min(highs)
        case "max":
            return max(lows), max(highs)
        case "sqrt":
            return math.sqrt(max(0.0, lows[0])), math.sqrt(max(0.0, highs[0]))
        case "round" | "floor" | "ceil" if len(arguments) == 1:
            return _whole(lows[0], math.floor), _whole(highs[0], math.ceil)
    return ANY


def _whole(value: float, rounded: Callable[[float], int]) -> float:
    return value if math.isinf(value) else float(rounded(value))


def _hull(intervals: list[Interval]) -> Interval:
    return min(low for low, _ in intervals), max(high for _, high in intervals)


def _hull_of(values: list[float]) -> Interval:
    return min(values), max(values)


def check(document: Document, table: str, expectations: Sequence[Expectation], of_measures: Mapping[str, str]) -> None:
    """ConfigError, with file, line and key, for an expectation of the file's whole sweep that no result can meet, or that every result meets.
    table: "expect" or "checks", whose i-th table is the i-th expectation."""
    axes = sweep.axes_of(document)
    points = {point.axes: dict(point.names) for point in sweep.expand(sweep.without(document, (*sweep.REPORT_KEYS, "seeds"))).points}
    for i, expectation in enumerate(expectations):
        for key in ("where", "ratio_of", "ratio_to"):
            _check_values(document, (table, i, key), getattr(expectation, key), axes)
        picked = list(sweep.matching(points, expectation.where))
        if not picked:
            raise document.error(
                (table, i, "where"),
                "can never hold: it picks no point of the full sweep, only values of [quick]; "
                "add the value to [sweep], or leave the expectation out",
            )
        if expectation.trend:
            if len({dict(axes)[expectation.over] for axes in picked}) < 2:
                raise document.error(
                    (table, i, "over"), f"can never hold: a trend needs two values of {expectation.over!r}, and 'where' leaves fewer"
                )
            continue
        lows, highs = zip(*(of_measure(of_measures[expectation.measure], points[axes]) for axes in picked))
        low, high, what = min(lows), max(highs), expectation.measure
        if expectation.ratio_of:
            (low, high), what = _quotient((low, high), (low, high)), f"a ratio of {expectation.measure}"
        if expectation.low > high or expectation.high < low:
            key, given = ("low", expectation.low) if expectation.low > high else ("high", expectation.high)
            raise document.error(
                (table, i, key), f"can never hold: {what} lies {_between(low, high)}, so that {key} = {given:g} is out of reach"
            )
        if expectation.low <= low and expectation.high >= high:
            key = "high" if math.isfinite(expectation.high) else "low"
            raise document.error((table, i, key), f"can never fail: {what} lies {_between(low, high)} in every run")


def _check_values(document: Document, path: KeyPath, where: Mapping[str, object], axes: Mapping[str, Sequence[Value]]) -> None:
    """Some value that picks points is one of its axis, or one that a quick pass takes instead; a file that inherits may have fewer."""
    for axis, wanted in where.items():
        known = [
            *axes.get(axis, ()),
            *(value for value in document.values.get("quick", {}).get(axis, ()) if value not in axes.get(axis, ())),
        ]
        values = wanted if isinstance(wanted, list | tuple) else (wanted,)
        if not any(value in known for value in values):
            raise document.error(
                (*path, axis), f"can never hold: {axis!r} is never {' or '.join(map(str, values))}; it has {', '.join(map(str, known))}"
            )


def _between(low: float, high: float) -> str:
    if math.isinf(high):
        return f"at {low:g} or above"
    return f"at {high:g} or below" if math.isinf(low) else f"between {low:g} and {high:g}"

"""Units: the suffix of a name is the unit of its values, and tables and figures print values with units (10 Mb/s, 20 ms).

rate_bps = 10_000_000       10 Mb/s
delay_s = 0.02              20 ms
queue_packets = 12.5        12.5 packets
"""

from __future__ import annotations

import ast
import math
from typing import Any

_UNITS = {
    "bps": "b/s",
    "s": "s",
    "packets": "packets",
    "bytes": "bytes",
    "kbps": "kb/s",
    "mbps": "Mb/s",
    "ms": "ms",
    "percent": "%",
}
"""Suffix of a name -> its unit as people write it."""
_PREFIXES = {
    "b/s": ((1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s"), (1.0, "b/s")),
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")),
}
"""The units that take prefixes: scale and name, the largest first."""
RATIO = ""
"""The unit of a plain number."""


def of_name(name: str) -> str | None:
    """The unit that a name's suffix states; None without one."""
    return _UNITS.get(name.rpartition(".")[2].rpartition("_")[2]) if "_" in name else None


def column(name: str, expression: str) -> str:
    """The column of a measure in tables: its name, with the suffix of the unit that its expression gives if the name states none."""
    if of_name(name) is not None:
        return name
    suffix = _suffix(ast.parse(expression.removeprefix("=").strip(), mode="eval").body)
    return f"{name}_{suffix}" if suffix else name


def of_measure(name: str, expression: str) -> str | None:
    """The unit of a measure."""
    return of_name(column(name, expression))


def _suffix(node: ast.expr) -> str | None:
    """The suffix of an expression's unit: "" of a plain number, None where it is not known (a conversion such as x / 1e6)."""
    match node:
        case ast.Name() | ast.Attribute():
            name = ast.unparse(node)
            return name.rpartition("_")[2] if of_name(name) is not None else RATIO
        case ast.UnaryOp(operand=operand):
            return _suffix(operand)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            return _same([left, right])
        case ast.BinOp(left=left, op=op, right=right):
            a, b = _suffix(left), _suffix(right)
            if isinstance(op, ast.Div) and a == b:
                return a and RATIO
            if isinstance(op, ast.Mult | ast.Div) and b == RATIO and not isinstance(right, ast.Constant):
                return a
            return b if isinstance(op, ast.Mult) and a == RATIO and not isinstance(left, ast.Constant) else None
        case ast.IfExp(body=body, orelse=orelse):
            return _same([body, orelse])
        case ast.Call(func=ast.Name(id="min" | "max" | "round" | "floor" | "ceil"), args=arguments):
            return _same(arguments)
    return None


def _same(nodes: list[ast.expr]) -> str | None:
    found = {_suffix(node) for node in nodes if not isinstance(node, ast.Constant)}
    return found.pop() if len(found) == 1 else None


def titled(name: str) -> str:
    """A name for a label: without its unit, words apart ("mean_queue_packets": "mean queue")."""
    owner, dot, rest = name.rpartition(".")
    stem = rest.rpartition("_")[0] if of_name(name) is not None else rest
    return f"{owner}{dot}{stem}".replace("_", " ").replace(".", " ")


def scale(values: list[float], unit: str | None) -> tuple[float, str]:
    """What an axis of these values is divided by, and the unit that its label then states."""
    largest = max((abs(v) for v in values if math.isfinite(v)), default=0.0)
    steps = _PREFIXES.get(unit or "", ())
    return next(((size, name) for size, name in steps if largest >= size), steps[-1] if steps and largest else (1.0, unit or ""))


def written(value: Any, unit: str | None = None, digits: int = 4) -> str:
    """A value as people write it, with its unit; a dash for no value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "–" if value is None else str(value)
    if not unit:
        return number(value, digits)
    if math.isnan(value):
        return "–"
    size, name = scale([float(value)], unit)
    return f"{value / size:.{digits}g}%" if name == "%" else f"{value / size:.{digits}g} {name}"


def number(value: float | None, digits: int = 4) -> str:
    """A few digits; large values with a unit's prefix."""
    if value is None or math.isnan(value):
        return "–"
    for limit, size, prefix in ((1e9, 1e9, " G"), (1e6, 1e6, " M"), (1e4, 1e3, " k")):
        if abs(value) >= limit:
            return f"{value / size:.{digits}g}{prefix}"
    return f"{value:.{digits}g}"


def between(low: float, high: float, unit: str | None = None, digits: int = 4) -> str:
    """Two ends of an interval, the unit once where both have the same: "1.2 to 1.4 Mb/s"."""
    a, b = written(low, unit, digits), written(high, unit, digits)
    if a == b:
        return a
    head, _, tail = a.rpartition(" ")
    return f"{head} to {b}" if head and b.endswith(f" {tail}") else f"{a} to {b}"

"""Arithmetic in experiment files: a string that begins with "=" is computed from the values of a sweep.

    rate_bps = "= 2 * n * 40_000"
    queue_packets = "= max(4, round(4 * rtt_s * rate_bps / 800))"

Numbers, names (also two joined by a dot), + - * / // % **, comparisons, `a if c else b`, min, max, round, floor, ceil, sqrt, exp, log. Nothing else is supported,
so a file can only compute numbers and select names.

An expression always ends after a short time: the length of its text is limited, and no number in it may exceed the range of a `float`, so each
step needs a bounded time.
"""

from __future__ import annotations

import ast
import functools
import math
import operator
import sys
from collections.abc import Callable, Mapping
from typing import Any

from fairlane.arithmetic import exp, log

Value = float | int | str | bool

_BINARY: dict[type, Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARE: dict[type, Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "min": min,
    "max": max,
    "round": round,
    "floor": math.floor,
    "ceil": math.ceil,
    "sqrt": math.sqrt,
    "exp": exp,
    "log": log,
}
_LARGEST_POWER = 64
MOST_CHARACTERS = 4000
_DEEPEST = 64
_MOST_BITS = sys.float_info.max_exp
"""Of a whole number: as many as the largest float has."""
_MOST_DIGITS = 308
"""That `round` may be asked for."""
_FEWEST_ARGUMENTS = {"min": 2, "max": 2}


def is_expression(value: object) -> bool:
    """Whether a value of a file is to be worked out."""
    return isinstance(value, str) and value.startswith("=")


def evaluate(text: str, names: Mapping[str, Value]) -> Value:
    """The value of an expression, with or without its "=". ValueError names the fault."""
    source = text.removeprefix("=").strip()
    tree = _parsed(source)
    try:
        value = _value(tree.body, names)
    except (ArithmeticError, TypeError, RecursionError) as error:
        raise ValueError(f"{_shown(source)}: {error}") from error
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{_shown(source)} gives {value}")
    return value


def names_in(text: str) -> set[str]:
    """The names that an expression uses, functions left out. ValueError when it is not an expression."""
    nodes = list(ast.walk(_parsed(text.removeprefix("=").strip())))
    owners = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    whole = {ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)}
    return whole | {node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in owners} - set(_FUNCTIONS)


def with_texts(text: str, names: Mapping[str, str]) -> str:
    """An expression with other texts in place of some of its own; as it is where it has none of them."""
    try:
        tree = _tree(text.removeprefix("=").strip())
    except ValueError:
        return text
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in names]
    for node in found:
        node.value = names[str(node.value)]
    return f"= {ast.unparse(tree)}" if found else text


@functools.lru_cache(maxsize=256)
def _parsed(source: str) -> ast.Expression:
    """As `_tree`, which nobody changes: a sweep computes each expression at each of its points."""
    return _tree(source)


def _tree(source: str) -> ast.Expression:
    if len(source) > MOST_CHARACTERS:
        raise ValueError(f"an expression of {len(source)} characters: at most {MOST_CHARACTERS}; name parts of it in [let]")
    try:
        tree = ast.parse(source, mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise ValueError(f"{_shown(source)} is not an expression") from error
    level: list[ast.AST] = [tree]
    for _ in range(_DEEPEST):
        if not level:
            break
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    if level:
        raise ValueError(f"{_shown(source)}: more than {_DEEPEST} operations within each other; name parts of it in [let]")
    return tree


def _shown(source: str) -> str:
    return repr(source if len(source) <= 200 else f"{source[:200]}...")


def _value(node: ast.expr, names: Mapping[str, Value]) -> Value:
    value = _computed(node, names)
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise ValueError(f"a whole number of {value.bit_length()} bits: at most {_MOST_BITS}")
    if not isinstance(value, bool | int | float | str):
        raise ValueError(f"{_shown(ast.unparse(node))} gives {value}, which is not a real number")
    return value


def _computed(node: ast.expr, names: Mapping[str, Value]) -> Value:
    match node:
        case ast.Constant(value=bool() | int() | float() | str() as value):
            return value
        case ast.Name(id=name):
            if name not in names:
                raise ValueError(f"no value {name!r} here; there is {', '.join(sorted(names)) or 'none'}")
            return names[name]
        case ast.Attribute(value=ast.Name(id=owner), attr=attribute):
            return _value(ast.Name(id=f"{owner}.{attribute}"), names)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = _value(operand, names)
            if isinstance(value, str):
                raise ValueError("text cannot be used in arithmetic")
            return -value
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            a, b = _value(left, names), _value(right, names)
            if isinstance(a, str) or isinstance(b, str):
                raise ValueError("text cannot be used in arithmetic")
            if isinstance(op, ast.Pow) and abs(b) > _LARGEST_POWER:
                raise ValueError(f"a power of {b} is too large")
            return _BINARY[type(op)](a, b)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
            return _COMPARE[type(op)](_value(left, names), _value(right, names))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _value(body if _value(test, names) else orelse, names)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            return _call(name, [_value(a, names) for a in arguments])
    raise ValueError(f"{_shown(ast.unparse(node))} is not supported here")


def _call(name: str, arguments: list[Value]) -> Value:
    if len(arguments) < _FEWEST_ARGUMENTS.get(name, 1):
        raise ValueError(f"{name} needs at least {_FEWEST_ARGUMENTS.get(name, 1)} values, got {len(arguments)}")
    if name == "round" and len(arguments) == 2 and (not isinstance(arguments[1], int) or abs(arguments[1]) > _MOST_DIGITS):
        raise ValueError(f"round to {arguments[1]} digits: give a whole number of at most {_MOST_DIGITS}")
    try:
        return _FUNCTIONS[name](*arguments)
    except ValueError as error:  # the root of a negative number; floor of none
        raise ValueError(f"{name}: {error}") from error

"""Floating-point functions with the same results on every machine, with every C library and every Python.

`+ - * /`, `sqrt`, `floor` and `%` are rounded correctly everywhere (IEEE 754). Python's `math.exp`, `math.log` and `**` call the C library. About one
call in a thousand returns the other neighbouring number, depending on the library, its version, and whether the processor multiplies and adds in
one step. `sum` rounds less since Python 3.12. Code that affects results uses this module instead; docs/decisions/floating-point.md.
"""

from __future__ import annotations

import decimal
import functools
import math
import operator
from collections.abc import Iterable

# libmpdec computes with integers. Its results, of 30 digits, are rounded once more to the 17 of a float: to the nearest one, except where the digits
# from the 18th to the 30th are those of a tie.
_DIGITS = decimal.Context(prec=30, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[decimal.InvalidOperation])


def exp(x: float) -> float:
    """e^x; infinite above 709.78, where `math.exp` raises OverflowError."""
    return float(_DIGITS.exp(decimal.Decimal(x)))


def log(x: float) -> float:
    """The natural logarithm of a number of at least 0."""
    return float(_DIGITS.ln(decimal.Decimal(x)))


@functools.lru_cache(maxsize=4096)  # 60 us; algorithms ask for the same again
def power(base: float, exponent: float) -> float:
    """base^exponent, of a positive base."""
    return float(_DIGITS.exp(_DIGITS.multiply(decimal.Decimal(exponent), _DIGITS.ln(decimal.Decimal(base)))))


def square(x: float) -> float:
    return x * x


def cube(x: float) -> float:
    if not math.isfinite(x):
        return x
    above, below = x.as_integer_ratio()
    return above**3 / below**3


def total(values: Iterable[float]) -> float:
    """Their sum, from the first to the last, rounded after each."""
    return functools.reduce(operator.add, values, 0)

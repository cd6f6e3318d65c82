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

try:
    from fairlane import native as _native
except ImportError:  # not built
    _native = None  # type: ignore[assignment]

# libmpdec computes with integers. Its results, of 30 digits, are rounded once more to the 17 of a float: to the nearest one, except where the digits
# from the 18th to the 30th are those of a tie.
_DIGITS = decimal.Context(prec=30, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[decimal.InvalidOperation])
_LEAST, _SMALL = decimal.Decimal("1e-32"), decimal.Decimal("0.1")


def exp(x: float) -> float:
    """e^x; infinite above 709.78, where `math.exp` raises OverflowError."""
    found = _native.exp(x) if _native else None
    return float(_DIGITS.exp(decimal.Decimal(x))) if found is None else found


def log(x: float) -> float:
    """The natural logarithm of a number of at least 0."""
    found = _native.ln(x) if _native else None
    return float(_DIGITS.ln(decimal.Decimal(x))) if found is None else found


def power(base: float, exponent: float) -> float:
    """base^exponent, of a positive base."""
    found = _native.power(base, exponent) if _native else None
    return _power(base, exponent) if found is None else found


@functools.lru_cache(maxsize=4096)  # 60 us; algorithms ask for the same again
def _power(base: float, exponent: float) -> float:
    return float(_DIGITS.exp(_DIGITS.multiply(decimal.Decimal(exponent), _DIGITS.ln(decimal.Decimal(base)))))


def sin(x: float) -> float:
    """Of an angle from -2 pi to 2 pi, in radians."""
    return float(_series(decimal.Decimal(x), decimal.Decimal(x)))


def cos(x: float) -> float:
    """Of an angle from -2 pi to 2 pi, in radians."""
    return float(_series(decimal.Decimal(1), decimal.Decimal(x)))


def _series(first: decimal.Decimal, x: decimal.Decimal) -> decimal.Decimal:
    """Taylor's, from its first term on, which is x or 1."""
    squared, term, n = _DIGITS.multiply(x, x), first, 1 if first == 1 else 2
    found = first
    while term and abs(term) > _LEAST:
        term = _DIGITS.divide(_DIGITS.multiply(term, -squared), decimal.Decimal(n * (n + 1)))
        found = _DIGITS.add(found, term)
        n += 2
    return found


def asin(y: float) -> float:
    """The angle from 0 to pi / 2 whose sine is a number from 0 to 1."""
    at, times, one = decimal.Decimal(y), 1, decimal.Decimal(1)
    while at > _SMALL:  # the sine of half of the angle
        cosine = _DIGITS.sqrt(_DIGITS.multiply(_DIGITS.subtract(one, at), _DIGITS.add(one, at)))
        at = _DIGITS.divide(at, _DIGITS.sqrt(_DIGITS.multiply(decimal.Decimal(2), _DIGITS.add(one, cosine))))
        times *= 2
    squared, term, n, found = _DIGITS.multiply(at, at), at, 1, at
    while term > _LEAST:
        term = _DIGITS.divide(_DIGITS.multiply(_DIGITS.multiply(term, squared), decimal.Decimal(n)), decimal.Decimal(n + 1))
        found = _DIGITS.add(found, _DIGITS.divide(term, decimal.Decimal(n + 2)))
        n += 2
    return float(_DIGITS.multiply(found, decimal.Decimal(times)))


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

"""The subset of numpy that the evaluation of a run needs, in pure Python: numpy is not available in a browser.

Names and meaning are numpy's, for arrays of one dimension. tests/results/test_plain_arrays.py compares each function with numpy's, bit by bit.
`fairlane.arrays` selects one of the two.
"""

from __future__ import annotations

import bisect
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

nan = math.nan


def _divided(a: float, b: float) -> float:
    try:
        return a / b
    except ZeroDivisionError:
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)


class ndarray:
    """Numbers, truths or texts in a row. Each is Python's own; `item` of numpy's has no counterpart."""

    __slots__ = ("_values",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, values: Iterable[Any]) -> None:
        self._values = list(values)

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __repr__(self) -> str:
        return f"ndarray({self._values})"

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return ndarray(self._values[index])
        if not isinstance(index, ndarray):
            return self._values[index]
        if index._values and isinstance(index._values[0], bool):
            if len(index) != len(self):
                raise IndexError(f"{len(index)} truths for {len(self)} values")
            return ndarray(itertools.compress(self._values, index._values))
        return ndarray(self._values[i] for i in index._values)

    def _with(self, other: Any, do: Callable[[Any, Any], Any]) -> ndarray:
        if not isinstance(other, ndarray):
            return ndarray(do(a, other) for a in self._values)
        if len(self) != len(other):
            raise ValueError(f"arrays of {len(self)} and {len(other)} values")
        return ndarray(map(do, self._values, other._values))

    def __add__(self, other: Any) -> ndarray:
        return self._with(other, operator.add)

    def __radd__(self, other: Any) -> ndarray:
        return self._with(other, lambda a, b: b + a)

    def __sub__(self, other: Any) -> ndarray:
        return self._with(other, operator.sub)

    def __rsub__(self, other: Any) -> ndarray:
        return self._with(other, lambda a, b: b - a)

    def __mul__(self, other: Any) -> ndarray:
        return self._with(other, operator.mul)

    def __rmul__(self, other: Any) -> ndarray:
        return self._with(other, lambda a, b: b * a)

    def __truediv__(self, other: Any) -> ndarray:
        return self._with(other, _divided)

    def __floordiv__(self, other: Any) -> ndarray:
        return self._with(other, operator.floordiv)

    def __lt__(self, other: Any) -> ndarray:
        return self._with(other, operator.lt)

    def __le__(self, other: Any) -> ndarray:
        return self._with(other, operator.le)

    def __gt__(self, other: Any) -> ndarray:
        return self._with(other, operator.gt)

    def __ge__(self, other: Any) -> ndarray:
        return self._with(other, operator.ge)

    def __eq__(self, other: object) -> ndarray:  # type: ignore[override]
        return self._with(other, operator.eq)

    def __ne__(self, other: object) -> ndarray:  # type: ignore[override]
        return self._with(other, operator.ne)

    def __and__(self, other: Any) -> ndarray:
        return self._with(other, operator.and_)

    def __invert__(self) -> ndarray:
        return ndarray(not value for value in self._values)

    def tolist(self) -> list[Any]:
        return list(self._values)

    def astype(self, kind: type) -> ndarray:
        return ndarray(map(kind, self._values))

    def any(self) -> bool:
        return any(self._values)

    def max(self) -> Any:
        return next((v for v in self._values if v != v), None) or max(self._values)


def asarray(values: Any, dtype: type | None = None) -> ndarray:
    return ndarray(values if dtype is None else map(dtype, values))


def fromiter(values: Iterable[Any], dtype: type, count: int = -1) -> ndarray:
    return ndarray(map(dtype, values))


def full(count: int, value: Any) -> ndarray:
    return ndarray([value] * count)


def zeros(count: int) -> ndarray:
    return full(count, 0.0)


def isnan(values: ndarray) -> ndarray:
    return values != values


def where(condition: ndarray, chosen: Any, otherwise: Any) -> ndarray:
    def each(given: Any) -> Iterable[Any]:
        return given if isinstance(given, ndarray) else itertools.repeat(given)

    return ndarray(a if c else b for c, a, b in zip(condition, each(chosen), each(otherwise)))


def concatenate(parts: Iterable[Iterable[Any]]) -> ndarray:
    return ndarray(itertools.chain.from_iterable(parts))


def cumsum(values: Iterable[float]) -> ndarray:
    return ndarray(itertools.accumulate(values))


def diff(values: Iterable[float]) -> ndarray:
    return ndarray(b - a for a, b in itertools.pairwise(values))


def arange(start: float, stop: float, step: float) -> ndarray:
    # As numpy: from the first two values, multiples of their distance.
    first, distance = float(start), (start + step) - start
    return ndarray(first + i * distance for i in range(max(0, math.ceil((stop - start) / step))))


def searchsorted(values: Sequence[float] | ndarray, wanted: Any, side: str = "left") -> Any:
    find, among = (bisect.bisect_right if side == "right" else bisect.bisect_left), list(values)
    return ndarray(find(among, x) for x in wanted) if isinstance(wanted, ndarray | tuple | list) else find(among, wanted)


def interp(at: Any, xs: ndarray, ys: ndarray, left: float | None = None) -> Any:
    """Straight lines between points; `left` before the first, the last value after the last."""
    known: Sequence[float] = xs._values
    values: Sequence[float] = ys._values
    before = values[0] if left is None else left

    def one(x: float) -> float:
        i = bisect.bisect_right(known, x) - 1
        if i < 0:
            return before
        if i >= len(known) - 1 or x == known[i]:
            return values[min(i, len(known) - 1)]
        slope = (values[i + 1] - values[i]) / (known[i + 1] - known[i])
        return slope * (x - known[i]) + values[i]

    return ndarray(map(one, at)) if isinstance(at, ndarray) else one(at)

"""Records of a flow's end as columns of numbers: a list of objects needs about ten times the memory, too much for runs of hours."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

from fairlane.arrays import np

_AT_ONCE = 1000
T = TypeVar("T")


class Rows(Sequence[T], Generic[T]):
    """A sequence whose items are made when they are read, each of one value of every column."""

    def __init__(self, make: Callable[..., T], *columns: np.ndarray) -> None:
        self._make = make
        self.columns = columns

    def __len__(self) -> int:
        return len(self.columns[0])

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> Rows[T]: ...

    def __getitem__(self, index: int | slice) -> T | Rows[T]:
        chosen = [column[index] for column in self.columns]
        return Rows(self._make, *chosen) if isinstance(index, slice) else self._make(*map(_own, chosen))

    def __iter__(self) -> Iterator[T]:
        for at in range(0, len(self), _AT_ONCE):
            yield from map(self._make, *(column[at : at + _AT_ONCE].tolist() for column in self.columns))


def _own(value: Any) -> Any:
    """Python's number of numpy's."""
    return value.item() if hasattr(value, "item") else value


def tuples(*columns: np.ndarray) -> Rows[Any]:
    """The columns side by side."""
    return Rows(lambda *values: values, *columns)


class Columns:
    """Records of one kind. A key that a record lacks, or has as null, is not a number there."""

    def __init__(self) -> None:
        self._count = 0
        # Records have more keys than anybody reads. The latest records wait: of few records no other column is made.
        self._latest: list[dict[str, Any]] = []
        self._values: dict[str, array[float]] = {}

    def __len__(self) -> int:
        return self._count

    def add(self, record: dict[str, Any]) -> None:
        """Keep what is a number of it."""
        self._latest.append(record)
        self._count += 1
        if len(self._latest) == _AT_ONCE:
            for key in {key for each in self._latest for key, value in each.items() if isinstance(value, (int, float))}:
                self._column(key)
            self._latest.clear()

    def _column(self, key: str) -> array[float]:
        column = self._values.get(key)
        if column is None:
            if len(self._latest) == self._count:  # of most flows all records are the latest
                column = self._values[key] = _numbers(self._latest, key)
                return column
            column = self._values[key] = array("d")
        if len(column) < self._count:
            first = self._count - len(self._latest)
            column.extend([math.nan] * (first - len(column)))
            column.extend(_numbers(self._latest[len(column) - first :], key))
        return column

    def __getitem__(self, key: str) -> np.ndarray:
        return self.get(key, math.nan)

    def get(self, key: str, default: float) -> np.ndarray:
        """The values of a key in the records' order, the default where one has none."""
        values = np.asarray(self._column(key), dtype=float)
        return values if math.isnan(default) else np.where(np.isnan(values), default, values)

    def pairs(self, first: str, second: str) -> Rows[tuple[float, float]]:
        """(first, second) of the records that have the second."""
        values, others = self[second], self[first]
        lacking = np.isnan(values)
        return tuples(others[~lacking], values[~lacking]) if lacking.any() else tuples(others, values)


def _numbers(records: list[dict[str, Any]], key: str) -> array[float]:
    """The values of a key; not a number where a record has none, or another value."""
    values: list[Any] = [record.get(key) for record in records]
    try:
        return array("d", values)
    except TypeError:
        return array("d", [value if isinstance(value, (int, float)) else math.nan for value in values])


class ByKind(dict[str, Columns]):
    """Columns of records by their kind; empty ones where there are none."""

    def __missing__(self, kind: str) -> Columns:
        found = self[kind] = Columns()
        return found


def by_kind(records: Iterable[dict[str, Any]], kinds: Collection[str], shift_s: float) -> ByKind:
    """Those of the kinds named, their times `t` moved by -shift_s."""
    found = ByKind()
    for record in records:
        kind = record.get("kind", "")
        if kind in kinds:
            if "t" in record:
                record["t"] -= shift_s
            found[kind].add(record)
    return found


def with_sums(records: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """With what records tell of their own intervals alone summed up: `retransmitted` from `retransmits`, `delay_sum_s` from the mean of `packets`."""
    retransmitted, delay_s = 0, 0.0
    for record in records:
        if "retransmits" in record:
            retransmitted += record["retransmits"] or 0
            record["retransmitted"] = retransmitted
        elif "delay_mean_s" in record:
            delay_s += (record["delay_mean_s"] or 0.0) * (record.get("packets") or 0.0)
            record["delay_sum_s"] = delay_s
        yield record


def sparse(records: Iterable[dict[str, Any]], kinds: Collection[str], every_s: float, whole: Collection[float]) -> Iterator[dict[str, Any]]:
    """Of the kinds named, whose numbers are sums, one record in so long a time, and the last; all of them within a second of an instant of `whole`."""
    kept: dict[str, float] = {}
    left: dict[str, dict[str, Any]] = {}
    for record in records:
        kind, time_s = record.get("kind", ""), record.get("t", math.nan)
        if kind not in kinds or not time_s < kept.get(kind, -math.inf) + every_s or any(abs(time_s - at) <= 1.0 for at in whole):
            kept[kind] = time_s
            left.pop(kind, None)
            yield record
        else:
            left[kind] = record
    yield from left.values()

"""Records of a flow's end as columns of numbers: a list of objects takes about ten times the memory, which runs of hours do not have."""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import numpy as np


class Columns:
    """Records of one kind. A key that a record lacks, or has as null, is not a number there."""

    def __init__(self) -> None:
        self._count = 0
        self._values: dict[str, array] = {}

    def __len__(self) -> int:
        return self._count

    def add(self, record: dict[str, Any]) -> None:
        """Keep what is a number of it."""
        for key, value in record.items():
            if isinstance(value, (int, float)):
                column = self._values.get(key)
                if column is None:
                    column = self._values[key] = array("d")
                if len(column) < self._count:
                    column.extend([math.nan] * (self._count - len(column)))
                column.append(value)
        self._count += 1

    def __getitem__(self, key: str) -> np.ndarray:
        return self.get(key, math.nan)

    def get(self, key: str, default: float) -> np.ndarray:
        """The values of a key in the records' order, the default where one has none."""
        column = self._values.get(key, array("d"))
        values = np.full(self._count, math.nan)
        values[: len(column)] = column
        return values if math.isnan(default) else np.where(np.isnan(values), default, values)

    def pairs(self, first: str, second: str) -> Iterator[tuple[float, float]]:
        """(first, second) of the records that have the second."""
        there = ~np.isnan(self[second])
        return zip(self[first][there].tolist(), self[second][there].tolist())


def by_kind(records: Iterable[dict[str, Any]], kinds: Collection[str], shift_s: float) -> dict[str, Columns]:
    """Those of the kinds named, their times `t` moved by -shift_s."""
    found = {kind: Columns() for kind in kinds}
    for record in records:
        columns = found.get(record.get("kind", ""))
        if columns is not None:
            if "t" in record:
                record["t"] -= shift_s
            columns.add(record)
    return found

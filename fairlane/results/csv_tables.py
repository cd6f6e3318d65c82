"""Tables as CSV: floats with six digits, nothing where a number is not known."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

from fairlane.arrays import np

Columns = Mapping[str, Any]
"""Of a part of a table: arrays or lists of one length by name, or one text for all rows. `time_s` is the array that tells how many rows there are."""


def joined(parts: Iterable[Columns]) -> dict[str, Any]:
    """One table of all parts: arrays of numbers, lists of texts. Empty without parts; all have the same columns."""
    parts = list(parts)
    counts = [len(part["time_s"]) for part in parts]
    return {name: _column([part[name] for part in parts], counts) for name in (parts[0] if parts else ())}


def _column(values: list[Any], counts: list[int]) -> Any:
    if isinstance(values[0], str):
        return list(itertools.chain.from_iterable(itertools.repeat(text, count) for text, count in zip(values, counts)))
    return np.concatenate(values)


def write(file: TextIO, table: Mapping[str, Any], header: bool = True) -> None:
    """The rows of a table, under the names of its columns: the same bytes as pandas' `to_csv` writes with "%.6g"."""
    columns = [_texts(values.tolist() if hasattr(values, "tolist") else values) for values in table.values()]
    if header:
        file.write(",".join(map(_quoted, table)) + "\n")
    file.writelines(f"{line}\n" for line in map(",".join, zip(*columns)))


def _texts(values: Sequence[Any]) -> list[str]:
    """Of one column, all of a kind."""
    first = values[0] if values else ""
    if isinstance(first, float):
        return ["" if value != value else f"{value:.6g}" for value in values]
    return list(map(str, values)) if isinstance(first, int) else [_quoted(value) for value in values]


def _quoted(text: str) -> str:
    """As RFC 4180 has it, where that is needed."""
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\r\n') else text

"""What the pages of several references share: a table's cells, and its place in the page."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import groupby
from pathlib import Path
from typing import Any

Case = dict[str, Any]
Figures = dict[str, float]


def cells(
    wanted: Iterable[tuple[Case, Figures]],
    run: Callable[[Case], Figures],
    cell: Callable[[Case], tuple[str, ...]],
    figures: Sequence[str],
) -> Iterator[tuple[tuple[str, ...], Figures, Figures]]:
    """(cell, medians of the reference's figures, of ours). wanted: cases with the reference's figures, those of a cell one after another. run:
    gives ours."""
    wanted = list(wanted)
    with ProcessPoolExecutor(2) as pool:
        found = list(pool.map(run, [case for case, _ in wanted]))
    for name, group in groupby(zip(wanted, found), key=lambda pair: cell(pair[0][0])):
        runs = list(group)
        yield (
            name,
            {figure: statistics.median(known[figure] for (_, known), _ in runs) for figure in figures},
            {figure: statistics.median(ours[figure] for _, ours in runs) for figure in figures},
        )


def put(page: Path, lines: Sequence[str], name: str = "table") -> None:
    """Print a table, and have it in place of the page's of that name."""
    print("\n".join(lines))
    before, begin, rest = page.read_text(encoding="utf-8").partition(f"<!-- {name}: begin -->\n")
    _, end, after = rest.partition(f"<!-- {name}: end -->")
    if not end:
        raise ValueError(f"{page}: has no place <!-- {name}: begin --> to <!-- {name}: end -->")
    page.write_text(before + begin + "\n".join(lines) + "\n" + end + after, encoding="utf-8")

"""Reads the records of a run's parts, during the run and afterwards: computes nothing.

s1.csv, s1.2.csv   counters of a switch's ports, each 0.1 s; a restarted switch continues in the next file, from zero
s1.gaps.csv        how often the gaps between a port's frames were how long; see docs/results.md
controller.csv     one line per switch port and observation interval
FLOW.ROLE.jsonl    the record of a host agent; see hosts/README.md
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

# Columns of a switch's CSV that do not grow with time.
_GAUGES = {"time_s", "unix_s", "port", "queue_packets", "queue_bytes", "queue_packets_max", "queue_packets_mean"}
SAMPLED_S = 0.1
"""Between two rows of a port."""
_PIECE_ROWS = 50_000
_DECODE = json.JSONDecoder().raw_decode
"""`json.loads` takes half as long again: it looks at its arguments first."""
_CONTROLLER_SUMS = (
    "transmitted_packets",
    "transmitted_bytes",
    "red_early_drops",
    "red_forced_drops",
    "red_marks",
    "within_share_bytes",
    "held_packets",
    "held_bytes",
)


def switch_counters(
    folder: Path, switch: str, wanted: Callable[[str], bool] = lambda column: True, every_s: float = SAMPLED_S
) -> pd.DataFrame:
    """The rows of a switch; sums go on over its restarts. Empty when it wrote none. wanted: of the columns, those to read. every_s: of each port
    about one row in so long a time is kept; all of them unless that is more than they are apart."""
    thin = every_s > SAMPLED_S
    parts = [_small(_thinned(piece, every_s) if thin else piece) for piece in counter_pieces(folder, switch, wanted)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def counter_pieces(folder: Path, switch: str, wanted: Callable[[str], bool] = lambda column: True) -> Iterator[pd.DataFrame]:
    """The same rows in their order, piece by piece: all rows of hours do not fit into memory at once."""
    paths = sorted(
        (p for p in folder.glob(f"{switch}*.csv") if re.fullmatch(re.escape(switch) + r"(\.\d+)?\.csv", p.name)),
        key=lambda p: int(p.suffixes[0][1:]) if len(p.suffixes) > 1 else 1,
    )
    before = last = pd.DataFrame()
    for path in paths:
        for piece in _csv_pieces(path, wanted):
            if not before.empty:
                for column in piece.columns.difference(list(_GAUGES)):
                    piece[column] = piece[column] + piece["port"].map(before[column]).fillna(0)
            if len(paths) > 1:
                # One row per port: its last before the restart.
                ends = piece.groupby("port").last()
                last = ends if last.empty else pd.concat([last, ends]).groupby(level=0).last()
            yield piece
        before = last


def gap_counts(folder: Path, switch: str) -> pd.DataFrame:
    """port, bytes_up_to, ratio_up_to, frames: sums over a switch's restarts, by rising ratio. Empty where there are none."""
    paths = [p for p in folder.glob(f"{switch}*.gaps.csv") if re.fullmatch(re.escape(switch) + r"(\.\d+)?\.gaps\.csv", p.name)]
    parts = [frame for frame in map(_csv, sorted(paths)) if not frame.empty]
    keys = ["port", "bytes_up_to", "ratio_up_to"]
    if not parts:
        return pd.DataFrame(columns=[*keys, "frames"])
    return pd.concat(parts).groupby(keys, as_index=False)["frames"].sum()


def controller_records(folder: Path, wanted: Collection[str] | None = None) -> pd.DataFrame:
    """All lines of the controller; sums go on where a switch was restarted. wanted: of the columns, those to read; None for all."""
    frame = _csv(folder / "controller.csv", lambda column: wanted is None or column in wanted)
    if frame.empty:
        return frame
    frame = frame.sort_values(["switch", "port", "time_s"], kind="stable").reset_index(drop=True)
    switches, ports = frame["switch"].cat.codes.to_numpy(), frame["port"].to_numpy()
    goes_on = np.concatenate([[False], (switches[1:] == switches[:-1]) & (ports[1:] == ports[:-1])])
    for column in frame.columns.intersection(list(_CONTROLLER_SUMS), sort=False):
        # A sum that falls has restarted: its earlier value is added from there on.
        values = frame[column].to_numpy(dtype=float)
        previous = np.where(goes_on, np.roll(values, 1), 0.0)
        lost = pd.Series(np.where(values < previous, previous, 0.0))
        frame[column] = values + (lost.groupby([switches, ports]).cumsum() if lost.any() else 0.0)
    return frame


def flow_records(folder: Path, flow: str, role: str) -> Iterator[dict[str, Any]]:
    """Records of one end of a flow, in order; a last line that was cut off is left out."""
    return json_lines(folder / f"{flow}.{role}.jsonl")


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Line by line: the records of hours do not fit into memory at once."""
    try:
        with path.open(errors="replace") as file:
            yield from json_objects(file)
    except OSError:
        return


def json_objects(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Those lines that are JSON objects: a process that was killed may have left half a line."""
    for line in lines:
        line = line.strip()
        try:
            record, end = _DECODE(line)
        except ValueError:
            continue
        if isinstance(record, dict) and end == len(line):
            yield record


def _thinned(piece: pd.DataFrame, every_s: float) -> pd.DataFrame:
    """Each piece keeps its ports' last rows, too."""
    again = piece.assign(part=(piece["unix_s"] / every_s).round()).duplicated(["port", "part"])
    return piece[~again | ~piece["port"].duplicated(keep="last")]


def _small(piece: pd.DataFrame) -> pd.DataFrame:
    """Counters of drops take most of a table's columns, and stay at zero: one byte each."""
    return piece.assign(**{c: pd.to_numeric(piece[c], downcast="unsigned") for c in piece.columns if c.startswith("drop_")})


_NAMES: Any = {"switch": "category"}
"""A name for each row takes more than all its numbers."""


def _csv_pieces(path: Path, wanted: Callable[[str], bool]) -> Iterator[pd.DataFrame]:
    try:
        with pd.read_csv(path, on_bad_lines="skip", usecols=wanted, chunksize=_PIECE_ROWS) as pieces:
            for piece in pieces:
                # A process that was killed leaves half a line.
                whole = piece.dropna()
                if not whole.empty:
                    yield whole
    except (OSError, pd.errors.EmptyDataError):
        return


def _csv(path: Path, wanted: Callable[[str], bool] = lambda column: True) -> pd.DataFrame:
    try:
        return pd.read_csv(path, on_bad_lines="skip", usecols=wanted, dtype=_NAMES).dropna()
    except (OSError, pd.errors.EmptyDataError):
        return pd.DataFrame()


class Tail:
    """Follows a text file that others append to: each call gives the complete lines that came since."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0

    def lines(self) -> list[str]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._at)
                data = file.read()
        except OSError:
            return []
        complete = data.rfind(b"\n") + 1
        self._at += complete
        return data[:complete].decode(errors="replace").splitlines()


class JsonTail(Tail):
    """Of JSON lines; skips values that are not objects."""

    def records(self) -> list[dict[str, Any]]:
        return list(json_objects(self.lines()))


class CsvTail(Tail):
    """Of a table whose first line names its columns."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._header: list[str] | None = None

    def rows(self) -> list[dict[str, str]]:
        lines = list(csv.reader(self.lines()))
        if self._header is None and lines:
            self._header = lines.pop(0)
        return [dict(zip(self._header or (), line)) for line in lines if len(line) == len(self._header or ())]

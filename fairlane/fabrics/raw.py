"""Reads the records of a run's parts, during the run and afterwards, without any computation.

s1.csv, s1.2.csv   counters of a switch's ports, each 0.1 s; a restarted switch continues in the next file, from zero
s1.queues.csv      the same for each queue, if ports have several
links.csv          what links do to frames on the way, each 0.1 s; on Mininet s1.links.csv of each switch
hosts.csv          datagrams that hosts dropped for a wrong checksum, where a link corrupts frames
s1.flows.csv       packets and bytes of each conversation, if the run has flows of real programs
s1.gaps.csv        histogram of the gaps between a port's frames; see docs/results.md
controller.csv     one line per switch port and observation interval
delays.jsonl       histograms of the delays of single packets
FLOW.ROLE.jsonl    the record of a host agent; see hosts/README.md
"""

from __future__ import annotations

import contextlib
import csv
import heapq
import itertools
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fairlane.arrays import np
from fairlane.controller import records
from fairlane.experiments.model import SAMPLED_S

if TYPE_CHECKING:
    import pandas as pd

# Columns of a switch's CSV that do not grow with time.
_GAUGES = {"time_s", "unix_s", "port", "queue_packets", "queue_bytes", "queue_packets_max", "queue_packets_mean"}
DELAYS = "delays.jsonl"
_PIECE_ROWS = 50_000
_SMALL_BYTES = 1_000_000
_LINES = 1000
"""Of JSON that are read at once."""
_BETWEEN, _COMMA = "}\n{", "},{"
_DECODE = json.JSONDecoder().raw_decode
"""`json.loads` takes half as long again: it looks at its arguments first."""


_Key = TypeVar("_Key", tuple[str, int], tuple[int, int], str)
Columns = dict[str, "np.ndarray"]
"""A table: its columns by name, of one length."""


class Files:
    """The tables in a folder of records, by their names at this moment: each flow has files of its own, and to look through all of them for each switch takes long."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._by_node: dict[str, list[str]] = {}
        for name in os.listdir(folder) if folder.is_dir() else ():
            if name.endswith(".csv"):
                self._by_node.setdefault(name.partition(".")[0], []).append(name)

    @staticmethod
    def of(folder: Path | Files) -> Files:
        return folder if isinstance(folder, Files) else Files(folder)

    def tables(self, node: str, kind: str = "") -> list[Path]:
        """A node's tables of a kind, such as "queues" (s1.queues.csv, s1.2.queues.csv), or its counters (s1.csv, s1.2.csv); in the order of its starts."""
        pattern = re.compile(rf"{re.escape(node)}(?:\.(\d+))?{re.escape(f'.{kind}' if kind else '')}\.csv")
        found = [(int(match[1] or 1), name) for name in self._by_node.get(node, ()) if (match := pattern.fullmatch(name))]
        return [self.folder / name for _, name in sorted(found)]

    def all_of(self, name: str) -> list[Path]:
        """The tables of a name, such as "links.csv", of all nodes."""
        return [self.folder / one for names in self._by_node.values() for one in names if one.endswith(f".{name}")]


def switch_counters(
    folder: Path | Files,
    switch: str,
    wanted: Callable[[str], bool] = lambda column: True,
    every_s: float = SAMPLED_S,
    whole: Collection[float] = (),
) -> pd.DataFrame:
    """As `switch_columns`, as a frame."""
    return _frame(switch_columns(folder, switch, wanted, every_s, whole))


def switch_columns(
    folder: Path | Files,
    switch: str,
    wanted: Callable[[str], bool] = lambda column: True,
    every_s: float = SAMPLED_S,
    whole: Collection[float] = (),
) -> Columns:
    """The rows of a switch; sums go on over its restarts. Empty when it wrote none. wanted: of the columns, those to read. every_s: of each port
    about one row in so long a time is kept; all of them unless that is more than they are apart. whole: instants (`unix_s`) around which all are."""
    thin = every_s > SAMPLED_S
    return _joined([_small(_thinned(piece, every_s, whole) if thin else piece) for piece in _pieces(folder, switch, wanted)])


def counter_pieces(folder: Path | Files, switch: str) -> Iterator[pd.DataFrame]:
    """The same rows in their order, as frames, piece by piece: all rows of hours do not fit into memory at once."""
    return map(_frame, _pieces(folder, switch, lambda column: True))


def _pieces(folder: Path | Files, switch: str, wanted: Callable[[str], bool]) -> Iterator[Columns]:
    paths = Files.of(folder).tables(switch)
    # Each port's row at the end of the file before.
    before: dict[int, dict[str, float]] = {}
    for path in paths:
        last = dict(before)
        for piece in _csv_pieces(path, wanted):
            if before:
                ports = piece["port"].tolist()
                for column in piece.keys() - _GAUGES:
                    piece[column] = piece[column] + np.asarray([before.get(port, {}).get(column, 0) for port in ports])
            if len(paths) > 1:
                for port, row in {port: row for row, port in enumerate(piece["port"].tolist())}.items():
                    last[port] = {column: values[row] for column, values in piece.items()}
            yield piece
        before = last


def gap_counts(folder: Path | Files, switch: str) -> pd.DataFrame:
    """port, bytes_up_to, ratio_up_to, frames: sums over a switch's restarts, by rising ratio. Empty where there are none."""
    import pandas as pd

    parts = [frame for frame in map(_csv, Files.of(folder).tables(switch, "gaps")) if not frame.empty]
    keys = ["port", "bytes_up_to", "ratio_up_to"]
    if not parts:
        return pd.DataFrame(columns=[*keys, "frames"])
    return pd.concat(parts).groupby(keys, as_index=False)["frames"].sum()


def controller_records(folder: Path, wanted: Collection[str] | None = None) -> pd.DataFrame:
    """As `controller_columns`, as one frame."""
    import pandas as pd

    ports = controller_columns(folder, wanted)
    if not ports:
        return pd.DataFrame()
    frame = _frame(
        {"switch": np.concatenate([[switch] * len(rows["port"]) for (switch, _), rows in ports.items()]), **_joined(ports.values())}
    )
    return frame.astype({"switch": "category"})


def controller_columns(folder: Path, wanted: Collection[str] | None = None) -> dict[tuple[str, int], Columns]:
    """All lines of the controller by switch and port, in time; sums go on where a switch was restarted. wanted: of the columns, those to read; None
    for all. `switch` is left out."""
    whole = _joined(list(_csv_pieces(folder / "controller.csv", lambda column: wanted is None or column in wanted)))
    if not whole:
        return {}
    return _by_key(whole, list(zip(whole.pop("switch").tolist(), whole["port"].tolist())), "time_s", records.totals())


@dataclass(frozen=True, slots=True)
class Conversation:
    """How much one has grown at a port of a switch in an interval that ends at unix_s. direction: "in" or "out" of the switch."""

    unix_s: float
    port: int
    direction: str
    source: str
    destination: str
    protocol: int
    source_port: int
    destination_port: int
    packets: int
    bytes: int
    payload_bytes: int


def conversations(folder: Path | Files, switch: str) -> Iterator[Conversation]:
    """All rows of a switch; none where it counted none. Its sums begin again with each restart."""
    for path in Files.of(folder).tables(switch, "flows"):
        before: dict[tuple[str, ...], tuple[int, int, int]] = {}
        with path.open(newline="", errors="replace", encoding="utf-8") as file:
            rows = csv.reader(file)
            header = next(rows, [])
            for row in rows:
                if len(row) != len(header) or not row[-1]:
                    continue  # a switch that was killed leaves half a line
                key = tuple(row[1:8])
                sums = (int(row[8]), int(row[9]), int(row[10]))
                last = before.get(key, (0, 0, 0))
                before[key] = sums
                grown = [now - then for now, then in zip(sums, last)]
                yield Conversation(float(row[0]), int(row[1]), row[2], row[3], row[4], int(row[5]), int(row[6]), int(row[7]), *grown)


_QUEUE_TOTALS = frozenset(("arrived_packets", "tail_drops", "dequeued_packets", "tx_packets", "tx_bytes"))


def queue_columns(folder: Path | Files, switch: str) -> dict[tuple[int, int], Columns]:
    """Of a switch's ports with several queues, the rows by port and queue, in time; sums go on where the switch was restarted."""
    paths = Files.of(folder).tables(switch, "queues")
    whole = _joined([piece for path in paths for piece in _csv_pieces(path, lambda column: True)])
    if not whole:
        return {}
    return _by_key(whole, list(zip(whole["port"].tolist(), whole["queue"].tolist())), "unix_s", _QUEUE_TOTALS)


LINKS, HOSTS = "links.csv", "hosts.csv"
_LINK_COLUMN = 2
_LINK_TOTALS = frozenset(("offered_packets", "lost_packets", "reordered_packets", "duplicated_packets", "corrupted_packets"))


def link_columns(folder: Path | Files) -> dict[str, Columns]:
    """The rows of each direction of a link that loses or impairs frames, "s1->s2", in time; sums go on where a switch was restarted."""
    files = Files.of(folder)
    paths = [files.folder / LINKS, *sorted(files.all_of(LINKS))]
    whole = _joined([piece for path in paths for piece in _csv_pieces(path, lambda column: True)])
    return _by_key(whole, whole["link"].tolist(), "unix_s", _LINK_TOTALS) if whole else {}


def merge_links(folder: Path, parts: Iterable[Path], order: Mapping[str, int]) -> None:
    """The rows of several files in one, and those are gone: by time, of each instant first the first rows of all directions, and these in an order. order: by "s1->s2"."""
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(path.open(encoding="utf-8", newline="\n")) for path in parts if path.exists()]
        header = [file.readline() for file in files]
        if not files:
            return
        with (folder / LINKS).open("w", encoding="utf-8", newline="\n") as whole:
            whole.write(header[0])
            whole.writelines(row for _, row in heapq.merge(*(_placed_links(file, order) for file in files)))
    for file in files:
        Path(file.name).unlink()


def _placed_links(rows: Iterable[str], order: Mapping[str, int]) -> Iterator[tuple[tuple[float, int, int], str]]:
    """Each with its place: by its time, how many of its direction have that time before it, and its direction."""
    now, seen = "", dict[str, int]()
    for row in rows:
        time, link = itemgetter(0, _LINK_COLUMN)(row.split(",", _LINK_COLUMN + 1))
        if time != now:
            now, seen = time, {}
        before = seen[link] = seen.get(link, -1) + 1
        yield (float(time), before, order[link]), row


def wrong_checksums(folder: Path | Files, switches: Iterable[str]) -> dict[str, int]:
    """By node, the packets that it dropped for a wrong checksum, in all. Empty where nobody counted them."""
    found: dict[str, int] = {}
    files = Files.of(folder)
    for switch in switches:
        counts = switch_columns(files, switch, lambda column: column in ("unix_s", "port", "wrong_checksums"))
        if "wrong_checksums" in counts:
            found[switch] = sum(dict(zip(counts["port"].tolist(), counts["wrong_checksums"].tolist())).values())
    for piece in _csv_pieces(files.folder / HOSTS, lambda column: True):
        found |= dict(zip(piece["host"].tolist(), piece["wrong_checksums"].tolist()))
    return found


def write_wrong_checksums(folder: Path, counts: Mapping[str, int]) -> None:
    """counts: by host."""
    lines = ["host,wrong_checksums", *(f"{host},{count}" for host, count in counts.items())]
    (folder / HOSTS).write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


def _by_key(whole: Columns, keys: Sequence[_Key], time: str, totals: Collection[str]) -> dict[_Key, Columns]:
    """A table's rows by their keys, each in time, with totals that go on. time: the column."""
    rows: dict[_Key, list[int]] = {}
    times = whole[time].tolist()
    for row in sorted(range(len(keys)), key=lambda row: (keys[row], times[row])):
        rows.setdefault(keys[row], []).append(row)
    found: dict[_Key, Columns] = {}
    for key, chosen in rows.items():
        found[key] = {column: values[np.asarray(chosen)] for column, values in whole.items()}
        for column in found[key].keys() & set(totals):
            found[key][column] = _going_on(found[key][column])
    return found


def _going_on(sums: np.ndarray) -> np.ndarray:
    """A sum that falls has restarted: its earlier value is added from there on."""
    added = previous = 0.0
    found = []
    for value in sums.tolist():
        added += previous if value < previous else 0.0
        found.append(value + added)
        previous = value
    return np.asarray(found, dtype=float)


def flow_records(folder: Path, flow: str, role: str) -> Iterator[dict[str, Any]]:
    """Records of one end of a flow, in order; a last line that was cut off is left out."""
    return json_lines(folder / f"{flow}.{role}.jsonl")


def delays(folder: Path) -> Iterator[dict[str, Any]]:
    """Of each queue, and of each flow's ends. Empty where nobody measured single packets, as on Mininet."""
    return json_lines(folder / DELAYS)


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Line by line: the records of hours do not fit into memory at once."""
    try:
        with path.open(errors="replace", encoding="utf-8") as file:
            yield from json_objects(file)
    except OSError:
        return


def json_objects(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Those lines that are JSON objects: a process that was killed may have left half a line."""
    lines = iter(lines)
    while some := list(itertools.islice(lines, _LINES)):
        # Many lines at once take half the time.
        text, inner = "".join(some), len(some) - 1
        if text[:1] == "{" and text[-2:] == "}\n" and text.count("}\n{") == text.count("\n") - 1 == inner:
            try:
                found = json.loads(f"[{text.replace(_BETWEEN, _COMMA)}]")
                if len(found) == len(some):
                    yield from found
                    continue
            except ValueError:
                pass
        yield from _each_object(some)


def _each_object(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        line = line.strip()
        try:
            record, end = _DECODE(line)
        except ValueError:
            continue
        if isinstance(record, dict) and end == len(line):
            yield record


WHOLE_S = 2.5 * SAMPLED_S
"""On either side of an instant that figures need, no record is left out."""


def _thinned(piece: Columns, every_s: float, whole: Collection[float]) -> Columns:
    """Each piece keeps its ports' last rows, too."""
    ports = piece["port"].tolist()
    parts = [round(time_s / every_s) for time_s in piece["unix_s"].tolist()]
    first: dict[tuple[int, int], int] = {}
    for row, key in enumerate(zip(ports, parts)):
        first.setdefault(key, row)
    kept = {*first.values(), *{port: row for row, port in enumerate(ports)}.values()}
    for at in whole:
        kept.update(row for row, time_s in enumerate(piece["unix_s"].tolist()) if abs(time_s - at) <= WHOLE_S)
    return {column: values[np.asarray(sorted(kept))] for column, values in piece.items()}


def _small(piece: Columns) -> Columns:
    """Counters of drops take most of a table's columns, and stay at zero: one byte each, where arrays have such numbers."""
    least = getattr(np, "min_scalar_type", None)
    if least is None:
        return piece
    return {c: v.astype(least(int(v.max()))) if c.startswith("drop_") and (v >= 0).all() else v for c, v in piece.items()}


def _joined(parts: Collection[Columns]) -> Columns:
    """One below the other."""
    return {column: np.concatenate([part[column] for part in parts]) for column in next(iter(parts), {})}


def _frame(columns: Columns) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(columns)


def _csv_pieces(path: Path, wanted: Callable[[str], bool]) -> Iterator[Columns]:
    """The whole rows of a table, so many at a time: a process that was killed leaves half a line. Of a large one by pandas, where it is: it is faster, but its import takes
    longer than to read a small one without it."""
    try:
        if path.stat().st_size <= _SMALL_BYTES or find_spec("pandas") is None:
            yield from _plain_csv_pieces(path, wanted)
            return
        import pandas as pd
    except OSError:
        return
    try:
        with pd.read_csv(path, on_bad_lines="skip", usecols=wanted, chunksize=_PIECE_ROWS) as pieces:
            for piece in pieces:
                whole = piece.dropna()
                if not whole.empty:
                    yield {str(column): whole[column].to_numpy() for column in whole}
    except (OSError, pd.errors.EmptyDataError):
        return


def _plain_csv_pieces(path: Path, wanted: Callable[[str], bool]) -> Iterator[Columns]:
    with path.open(newline="", errors="replace", encoding="utf-8") as file:
        rows = csv.reader(file)
        header = next(rows, [])
        chosen = [(at, column) for at, column in enumerate(header) if wanted(column)]
        whole = (row for row in rows if len(row) == len(header) and ("" not in row or all(row[at] for at, _ in chosen)))
        while piece := list(itertools.islice(whole, _PIECE_ROWS)):
            columns = list(zip(*piece))
            yield {column: _values(columns[at]) for at, column in chosen}


def _values(texts: Sequence[str]) -> np.ndarray:
    for kind in (int, float):
        try:
            return np.asarray(list(map(kind, texts)))
        except ValueError:
            pass
    return np.asarray(list(texts))


def _csv(path: Path) -> pd.DataFrame:
    return _frame(_joined(list(_csv_pieces(path, lambda column: True))))


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

"""A link's capacity over time, from a file: Mahimahi's format, or CSV.

Mahimahi (Netravali et al., USENIX ATC 2015): each line is a time in whole milliseconds at which 1500 bytes may leave; times do not go back,
and several may be equal. After the last time the trace repeats. An opportunity without a waiting packet is lost.

CSV: lines `time_s,rate_bps`, with or without this header; each rate applies from its time on, the last one to the end. A rate may be 0.

Empty lines and lines that begin with # are ignored.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairlane.arithmetic import total
from fairlane.inputs.located_toml import Document, KeyPath

OPPORTUNITY_BYTES = 1500
FOLDER = Path(__file__).with_name("traces")
KEYS = ("trace", "trace_back")
"""Of a link."""
_HEADER = ["time_s", "rate_bps"]


class TraceError(ValueError):
    """A file that is no trace; the message names file and line."""


@dataclass(frozen=True)
class Trace:
    """name: as the experiment names the file. Either opportunities_ms, or rates: (time_s, rate_bps) from each time on."""

    name: str
    opportunities_ms: tuple[int, ...] = ()
    rates: tuple[tuple[float, float], ...] = ()

    @staticmethod
    def from_document(document: Document, path: KeyPath) -> Trace:
        """The trace that the value at `path` names: a file beside the document, or one of `topologies/traces/`."""
        try:
            return read(file_of(document, path), document.at(path))
        except TraceError as error:
            raise document.error(path, str(error)) from error

    @property
    def opportunities_ns(self) -> list[int]:
        return [time * 1_000_000 for time in self.opportunities_ms]

    @property
    def rates_ns_bps(self) -> list[tuple[int, int]]:
        return [(round(time * 1e9), round(rate)) for time, rate in self.rates]

    @property
    def length_s(self) -> float:
        """Until an opportunity trace begins anew; of rates, the time of the last."""
        return self.opportunities_ms[-1] / 1000 if self.opportunities_ms else self.rates[-1][0]

    def mean_bps(self, start_s: float = 0.0, end_s: float = 0.0) -> float:
        """Over a part of the trace from its beginning on, or over all of it."""
        if end_s <= start_s:
            start_s, end_s = 0.0, self.length_s
        if end_s == 0:
            return self.rates[0][1]
        return (self._bits(end_s) - self._bits(start_s)) / (end_s - start_s)

    def means_bps(self, interval_s: float, duration_s: float) -> list[tuple[float, float]]:
        """The mean of each interval, with its beginning; at least one opportunity an interval, because rates are divided by."""
        starts = [n * interval_s for n in range(math.ceil(duration_s / interval_s))]
        least_bps = 8 * OPPORTUNITY_BYTES / interval_s
        return [(start, max(least_bps, self.mean_bps(start, start + interval_s))) for start in starts]

    def _bits(self, until_s: float) -> float:
        """What may leave up to and at a time."""
        if self.opportunities_ms:
            rounds, within_ms = divmod(round(until_s * 1e6), self.opportunities_ms[-1] * 1000)
            count = rounds * len(self.opportunities_ms) + bisect.bisect_right(self.opportunities_ms, within_ms / 1000)
            return 8.0 * OPPORTUNITY_BYTES * count
        ends = [time for time, _ in self.rates[1:]] + [math.inf]
        return total(rate * (min(end, until_s) - start) for (start, rate), end in zip(self.rates, ends) if start < until_s)


def file_of(document: Document, path: KeyPath) -> Path:
    """The file that the value at `path` names. ConfigError: there is none."""
    value = document.at(path)
    if not isinstance(value, str) or not value:
        raise document.error(path, f"expected a file's name, got {value!r}")
    beside = Path(document.place(path)[0]).parent / value
    file = beside if beside.is_file() else FOLDER / value
    if not file.is_file():
        known = ", ".join(sorted(p.name for p in FOLDER.iterdir() if p.suffix in (".mahi", ".csv")))
        raise document.error(path, f"no file {beside}; Fairlane has {known}")
    return file


def read(path: Path, name: str = "") -> Trace:
    """A trace file; TraceError when it is none."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise TraceError(f"{path}: not UTF-8 text: {error}") from error
    return parse(text, str(path), name or path.name)


def parse(text: str, file: str, name: str = "") -> Trace:
    """The text of a trace; `file` is for messages."""
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    lines = [(number, line) for number, line in lines if line and not line.startswith("#")]
    if not lines:
        raise TraceError(f"{file}: no entries: give one time in milliseconds a line, or lines of time_s,rate_bps")
    if "," in lines[0][1]:
        return Trace(name or file, rates=tuple(_rates(lines, file)))
    return Trace(name or file, opportunities_ms=tuple(_opportunities(lines, file)))


def _shown(line: str, first: bool) -> str:
    """A line for a message. Any file can be named as a trace; one that does not begin as a trace is not printed."""
    return "the first entry" if first and not set(line) <= set("0123456789+-., eE\t") else repr(line)


def _opportunities(lines: Sequence[tuple[int, str]], file: str) -> Iterator[int]:
    before = 0
    for number, line in lines:
        if not (line.isascii() and line.isdigit()):
            raise TraceError(f"{file}:{number}: {_shown(line, number == lines[0][0])} is not a time in whole milliseconds")
        now = int(line)
        if now < before:
            raise TraceError(f"{file}:{number}: {now} ms is before the line above, {before} ms: sort the times")
        before = now
        yield now
    if before == 0:
        raise TraceError(f"{file}: all times are 0 ms: a trace repeats after its last time, which must be later")


def _rates(lines: Sequence[tuple[int, str]], file: str) -> Iterator[tuple[float, float]]:
    if [cell.strip() for cell in lines[0][1].split(",")] == _HEADER:
        lines = lines[1:]
    before, rate_bps = -1.0, 0.0
    for number, line in lines:
        cells = line.split(",")
        try:
            time_s, rate_bps = map(float, cells)
        except ValueError:
            raise TraceError(f"{file}:{number}: {_shown(line, before < 0)} is not of the form time_s,rate_bps") from None
        if not (math.isfinite(time_s) and 0 <= rate_bps < math.inf):
            raise TraceError(f"{file}:{number}: {_shown(line, before < 0)}: give seconds, and bit/s of 0 or more")
        if before < 0 and time_s != 0:
            raise TraceError(f"{file}:{number}: the first rate must hold from 0 s on, got {time_s:g} s")
        if time_s <= before:
            raise TraceError(f"{file}:{number}: {time_s:g} s is not after the line above, {before:g} s")
        before = time_s
        yield time_s, rate_bps
    if before < 0:
        raise TraceError(f"{file}: no rates under the header")
    if rate_bps == 0:
        raise TraceError(f"{file}: the last rate is 0 bit/s, and holds to the end: nothing would ever be sent after it")

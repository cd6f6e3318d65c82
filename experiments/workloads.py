"""Workloads: flows that come at random or at the times of a trace, each with a file, between hosts by a pattern.

A workload is drawn before the run and becomes flows of the experiment. Its draws follow from the experiment's seed and its own name: arrivals, sizes,
pairs of hosts and times to think each have a stream of their own, so that another workload, another flow or another distribution of sizes changes nothing else.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import math
import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from fairlane.arithmetic import exp, log, power, square, total
from fairlane.inputs import schema
from fairlane.inputs.located_toml import Document, KeyPath

FOLDER = Path(__file__).with_name("sizes")
MAX_FLOWS = 100_000
"""Of one workload: each flow is an object, and has records of its own."""
_TOO_MANY = f"arrivals: more than {MAX_FLOWS} flows, the most of one workload: give a lower rate, larger files or a shorter time"
_MAX_BYTES = 1e12
DEFAULT_REQUEST_BYTES = 100


ASKING = ("request-response", "partition-aggregate")
"""Patterns whose flows are requests, and answers to them."""


class Refused(ValueError):
    """A file that is no distribution or no trace of arrivals; the message names file and line."""


def _positive(table: Any, *names: str) -> None:
    for name in names:
        value = getattr(table, name)
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f"{name}: must be positive, got {value:g}")


def _rows(path: Path, columns: int) -> Iterator[tuple[int, list[str]]]:
    """Lines with so many values, with their numbers; empty lines, lines that begin with # and a header are left out. Refused: another number of values."""
    for number, values in _lines(path):
        if values[0].isalpha() or "_" in values[0]:
            continue
        if len(values) != columns:
            raise Refused(f"{path}:{number}: {columns} values separated by commas, got {len(values)}")
        yield number, values


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Values of lines, with the lines' numbers, without empty lines and those that begin with #. Refused: the file cannot be read."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{path}: {error}") from error
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.startswith("#"):
            yield number, [value.strip() for value in line.split(",")]


def _number(text: str, place: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise Refused(f"{place}: {text!r} is no number") from None
    if not math.isfinite(value):
        raise Refused(f"{place}: {text!r} is not finite")
    return value


def _exponential(rng: random.Random, mean: float) -> float:
    return -mean * log(1.0 - rng.random())


def _normal(rng: random.Random) -> float:
    """Standard normal, by Marsaglia's polar method."""
    while True:
        x, y = 2.0 * rng.random() - 1.0, 2.0 * rng.random() - 1.0
        distance = square(x) + square(y)
        if 0.0 < distance < 1.0:
            return x * math.sqrt(-2.0 * log(distance) / distance)


@dataclass(frozen=True)
class Empirical:
    """A distribution of sizes from a file: lines `bytes,probability`, both growing, from probability 0 to 1; linear between the points."""

    name: str
    points: tuple[tuple[float, float], ...]

    @staticmethod
    def read(path: Path) -> Empirical:
        points: list[tuple[float, float]] = []
        for number, (size, probability) in _rows(path, 2):
            place = f"{path}:{number}"
            point = _number(size, place), _number(probability, place)
            if not 0 <= point[0] <= _MAX_BYTES or (points and (point[0] < points[-1][0] or point[1] <= points[-1][1])):
                raise Refused(f"{place}: bytes and probabilities must grow, and bytes be 0 to {_MAX_BYTES:g}")
            points.append(point)
        if len(points) < 2 or points[0][1] != 0 or points[-1][1] != 1:
            raise Refused(f"{path}: at least two lines `bytes,probability`, the first with probability 0, the last with 1")
        return Empirical(path.name, tuple(points))

    @property
    def mean_bytes(self) -> float:
        return total((b[1] - a[1]) * (a[0] + b[0]) / 2 for a, b in itertools.pairwise(self.points))

    def quantile(self, probability: float) -> float:
        at = max(1, bisect.bisect_left([p for _, p in self.points], probability))
        (low, before), (high, after) = self.points[at - 1 : at + 1]
        return low + (high - low) * (probability - before) / (after - before)


@dataclass(frozen=True)
class Sizes:
    """Bytes of a flow's file. mean_bytes: of all kinds. shape: of `pareto`, above 1; sigma: of `lognormal`, of the size's natural logarithm. A text names a
    file of `experiments/sizes/` without its suffix, or a CSV file of one's own."""

    kind: Literal["constant", "exponential", "lognormal", "pareto"] = "constant"
    mean_bytes: float = 100_000.0
    sigma: float | None = None
    shape: float | None = None
    empirical: Empirical | None = field(default=None, repr=False)

    @classmethod
    def from_document(cls, document: Document, path: KeyPath) -> Sizes:
        value = document.at(path)
        if not isinstance(value, str):
            table = document.at(path)
            if isinstance(table, dict) and "empirical" in table:
                raise document.error((*path, "empirical"), "unknown key; write the file's name in place of the table")
            return schema.build(cls, document, path)
        try:
            read = Empirical.read(file_of(document, path))
        except Refused as error:
            raise document.error(path, str(error)) from error
        return cls(mean_bytes=read.mean_bytes, empirical=read)

    def __post_init__(self) -> None:
        _positive(self, "mean_bytes", "sigma", "shape")
        if self.mean_bytes > _MAX_BYTES:
            raise ValueError(f"mean_bytes: at most {_MAX_BYTES:g}, got {self.mean_bytes:g}")
        if (self.sigma is not None) != (self.kind == "lognormal"):
            raise ValueError("sigma: of lognormal, and of no other kind")
        if (self.shape is not None) != (self.kind == "pareto"):
            raise ValueError("shape: of pareto, and of no other kind")
        if self.shape is not None and self.shape <= 1:
            raise ValueError(f"shape: above 1, because there is no mean otherwise; got {self.shape:g}")

    def draws(self, rng: random.Random) -> Iterator[int]:
        """Whole bytes, at least 1."""
        while True:
            yield min(int(_MAX_BYTES), max(1, round(self._drawn(rng))))

    def _drawn(self, rng: random.Random) -> float:
        if self.empirical is not None:
            return self.empirical.quantile(rng.random())
        if self.kind == "exponential":
            return _exponential(rng, self.mean_bytes)
        if self.kind == "lognormal":
            assert self.sigma is not None
            return self.mean_bytes * exp(self.sigma * _normal(rng) - square(self.sigma) / 2)
        if self.kind == "pareto":
            assert self.shape is not None
            left = 1.0 - rng.random()
            return self.mean_bytes * (self.shape - 1) / self.shape * power(left, -1 / self.shape)
        return self.mean_bytes


@dataclass(frozen=True)
class TraceRow:
    """at_s: seconds from the workload's beginning. None, "": the file has no such column."""

    at_s: float
    file_bytes: int | None = None
    sender: str = ""
    receiver: str = ""


@dataclass(frozen=True)
class Trace:
    """Arrivals from a file. CSV: a line with the names of the columns, then a line for each arrival, by time. `time_s` is needed; `bytes`, and
    `sender` with `receiver`, may be there."""

    name: str
    rows: tuple[TraceRow, ...]
    columns: tuple[str, ...]

    @staticmethod
    def read(path: Path) -> Trace:
        columns: list[str] = []
        rows: list[TraceRow] = []
        for number, values in _lines(path):
            place = f"{path}:{number}"
            if not columns:
                columns = values
                _check_columns(columns, place)
                continue
            if len(values) != len(columns):
                raise Refused(f"{place}: {len(columns)} values, for {', '.join(columns)}, got {len(values)}")
            by_name = dict(zip(columns, values))
            at_s = _number(by_name["time_s"], place)
            if at_s < (rows[-1].at_s if rows else 0.0):
                raise Refused(f"{place}: times are seconds from the workload's beginning on, and must not fall; got {at_s:g}")
            size = _number(by_name["bytes"], place) if "bytes" in by_name else None
            if size is not None and not (1 <= size <= _MAX_BYTES and size == int(size)):
                raise Refused(f"{place}: bytes must be a whole number, 1 to {_MAX_BYTES:g}, got {by_name['bytes']}")
            rows.append(TraceRow(at_s, None if size is None else int(size), by_name.get("sender", ""), by_name.get("receiver", "")))
            if len(rows) > MAX_FLOWS:
                raise Refused(f"{place}: more than {MAX_FLOWS} arrivals, the most of one workload")
        if not rows:
            raise Refused(f"{path}: no arrivals: a line with time_s, bytes, sender, receiver, or some of them, and a line for each arrival")
        return Trace(path.name, tuple(rows), tuple(columns))

    def has(self, column: str) -> bool:
        return column in self.columns


_COLUMNS = ("time_s", "bytes", "sender", "receiver")


def _check_columns(columns: list[str], place: str) -> None:
    for name in columns:
        if name not in _COLUMNS:
            raise Refused(f"{place}: no column {name!r}{schema.nearest(name, _COLUMNS)}; the first line names the columns")
    if len(set(columns)) < len(columns):
        raise Refused(f"{place}: a column is named twice")
    if "time_s" not in columns:
        raise Refused(f"{place}: a column time_s is needed")
    if ("sender" in columns) != ("receiver" in columns):
        raise Refused(f"{place}: sender and receiver belong together")


@dataclass(frozen=True)
class Arrivals:
    """When flows come. per_s: so many each second, on average; or load: so that the files take this part of a link's capacity, headers included (`of`: "s1->s2",
    the bottleneck by default; or "hosts": of the senders' links together). `on-off`: Poisson arrivals at the rate that gives this average, in periods that last
    on_s on average with pauses of off_s, both exponential. `trace`: as `file`, a CSV file, says (`Trace`)."""

    kind: Literal["poisson", "deterministic", "on-off", "trace"] = "poisson"
    per_s: float | None = None
    load: float | None = None
    of: str | None = None
    on_s: float | None = None
    off_s: float | None = None
    file: str | None = None
    trace: Trace | None = field(default=None, repr=False)

    @classmethod
    def from_document(cls, document: Document, path: KeyPath) -> Arrivals:
        table = document.at(path)
        if isinstance(table, dict) and "trace" in table:
            raise document.error((*path, "trace"), 'unknown key; write kind = "trace" and file')
        made: Arrivals = schema.build(cls, document, path)
        if made.file is None:
            return made
        try:
            return dataclasses.replace(made, trace=Trace.read(file_of(document, (*path, "file"))))
        except Refused as error:
            raise document.error((*path, "file"), str(error)) from error

    def __post_init__(self) -> None:
        _positive(self, "per_s", "load", "on_s", "off_s")
        if (self.file is not None) != (self.kind == "trace"):
            raise ValueError("file: trace has a file, and no other kind has one")
        if self.kind == "trace":
            if self.per_s is not None or self.load is not None:
                raise ValueError(f"{'load' if self.per_s is None else 'per_s'}: the times of a trace are in its file")
        elif (self.per_s is None) == (self.load is None):
            raise ValueError("per_s: give either per_s or load")
        if self.of is not None and self.load is None:
            raise ValueError("of: belongs to load")
        if any((value is not None) != (self.kind == "on-off") for value in (self.on_s, self.off_s)):
            raise ValueError("on_s: on-off has on_s and off_s, and no other kind has them")

    def times_s(self, per_s: float, rng: random.Random) -> Iterator[float]:
        """Seconds from the workload's beginning, without end; of a trace those of its rows."""
        if self.trace is not None:
            yield from (row.at_s for row in self.trace.rows)
            return
        if self.kind == "deterministic":
            yield from (n / per_s for n in itertools.count())
        if self.kind == "poisson":
            yield from itertools.accumulate(_exponential(rng, 1 / per_s) for _ in itertools.repeat(None))
        assert self.on_s is not None and self.off_s is not None
        burst_per_s = per_s * (self.on_s + self.off_s) / self.on_s
        begin_s = 0.0
        while True:
            end_s = begin_s + _exponential(rng, self.on_s)
            at_s = begin_s + _exponential(rng, 1 / burst_per_s)
            while at_s < end_s:
                yield at_s
                at_s += _exponential(rng, 1 / burst_per_s)
            begin_s = end_s + _exponential(rng, self.off_s)


@dataclass(frozen=True)
class Workload:
    """Flows of a TCP kind, one for each arrival; of `incast`, fan_in for each; of patterns that ask, one for each request and one for each answer.

    pattern: `pairs`: from the n-th of senders to the n-th of receivers, n at random; `all-to-all`: from a sender to another host of receivers, both at random;
    `permutation`: each sender has one receiver for the whole run, drawn at its beginning, and no two have the same; `incast`: from fan_in senders at once to
    one receiver; `request-response`: a sender asks another host of receivers, which answers when it has the request; `partition-aggregate`: a sender asks
    fan_in of receivers at once, and has its answer when all have answered. sizes: of answers, where hosts ask; requests have request_bytes. requests: of one
    arrival, one after the other: the next follows the answer after think_s on average, exponential. senders, receivers: hosts; by default of `pairs` the first and second half of all hosts, of other patterns all of them.
    parameters, packet_bytes: as of a group of flows."""

    name: str
    kind: str
    arrivals: Arrivals
    sizes: Sizes | None = None
    pattern: Literal["pairs", "all-to-all", "permutation", "incast", "request-response", "partition-aggregate"] = "pairs"
    senders: tuple[str, ...] = ()
    receivers: tuple[str, ...] = ()
    fan_in: int | None = None
    request_bytes: int | None = None
    requests: int | None = None
    think_s: float | None = None
    start_s: float = 0.0
    stop_s: float | None = None
    packet_bytes: int | None = None
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def asks(self) -> bool:
        return self.pattern in ASKING

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", self.name):
            raise ValueError(f"name: use letters, digits, '_', '.' and '-', because records are files of that name; got {self.name!r}")
        if (self.fan_in is not None) != (self.pattern in ("incast", "partition-aggregate")):
            raise ValueError("fan_in: of incast and partition-aggregate, and of no other pattern")
        for key in ("request_bytes", "requests", "think_s"):
            if getattr(self, key) is not None and not self.asks:
                raise ValueError(f"{key}: of {' and '.join(ASKING)}, and of no other pattern")
        _positive(self, "request_bytes", "requests", "think_s")
        if self.requests is not None and self.requests > MAX_FLOWS:
            raise ValueError(f"requests: at most {MAX_FLOWS}, got {self.requests}")
        self._check_trace()
        if self.fan_in is not None and self.fan_in < 1:
            raise ValueError(f"fan_in: at least 1, got {self.fan_in}")
        if not 0 <= self.start_s < math.inf:
            raise ValueError(f"start_s: must not be negative, got {self.start_s:g} s")
        if self.stop_s is not None and not self.start_s < self.stop_s < math.inf:
            raise ValueError(f"stop_s: must be after start_s, {self.start_s:g} s, got {self.stop_s:g} s")
        if "file_bytes" in self.parameters:
            raise ValueError("parameters: file_bytes is drawn from `sizes`")

    def _check_trace(self) -> None:
        """What a trace says of each arrival is not said twice, and all else is said."""
        trace = self.arrivals.trace
        if trace is not None and trace.has("bytes"):
            if self.sizes is not None:
                raise ValueError(f"sizes: {trace.name} has the bytes of each arrival: leave out one of the two")
            if self.fan_in is not None or self.requests is not None:
                raise ValueError(
                    f"{'fan_in' if self.fan_in else 'requests'}: {trace.name} has one size for each arrival, and this makes several flows of it"
                )
        elif self.sizes is None and self.arrivals.file is None:
            raise ValueError("missing key 'sizes'")
        elif self.sizes is None and trace is not None:
            raise ValueError(f"missing key 'sizes', and {trace.name} has no column bytes")
        if trace is not None and trace.has("sender"):
            if self.senders or self.receivers:
                raise ValueError(
                    f"{'senders' if self.senders else 'receivers'}: {trace.name} has the hosts of each arrival: leave out one of the two"
                )
            if self.pattern not in ("pairs", "request-response"):
                raise ValueError(f"pattern: {trace.name} has the hosts of each arrival, which {self.pattern} would draw")


@dataclass(frozen=True)
class Arrival:
    """One flow. query: the name of the query that it is a part of, beside the workload's. part: its name in the query. after: parts of the same workload that it
    waits for, as (query, part), and after_s more; answers: over the connection of that one."""

    at_s: float
    sender: str
    receiver: str
    file_bytes: int
    query: str = ""
    part: str = ""
    after: tuple[tuple[str, str], ...] = ()
    after_s: float = 0.0
    answers: bool = False


Pairs = Callable[[], list[tuple[str, str]]]
"""The pairs of hosts of one arrival."""


def ends(workload: Workload, hosts: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Senders and receivers. ValueError, beginning with the key at fault: the pattern has no pair of them."""
    half = len(hosts) // 2
    pairs = workload.pattern == "pairs"
    senders = workload.senders or (hosts[:half] if pairs else hosts)
    receivers = workload.receivers or (hosts[half : 2 * half] if pairs else hosts)
    for key, named in (("senders", senders), ("receivers", receivers)):
        for name in named:
            if name not in hosts:
                raise ValueError(f"{key}: no host {name!r}{schema.nearest(name, hosts)}")
        if len(set(named)) < len(named):
            raise ValueError(f"{key}: a host is named twice")
    if pairs and len(senders) != len(receivers):
        raise ValueError(f"receivers: {len(receivers)} for {len(senders)} senders: pairs have one for each")
    if pairs and any(a == b for a, b in zip(senders, receivers)):
        raise ValueError("receivers: a host cannot send to itself")
    if any(not set(receivers) - {sender} for sender in senders):
        raise ValueError("receivers: every sender needs another host to send to")
    if workload.pattern == "permutation" and len(receivers) < len(senders):
        raise ValueError(f"receivers: {len(receivers)} for {len(senders)} senders: a permutation needs one for each")
    if workload.pattern == "partition-aggregate":
        assert workload.fan_in is not None
        if any(len(set(receivers) - {sender}) < workload.fan_in for sender in senders):
            raise ValueError(f"fan_in: {workload.fan_in} receivers beside the sender are asked at once, got {len(receivers)}")
    elif workload.fan_in is not None and any(len(set(senders) - {receiver}) < workload.fan_in for receiver in receivers):
        raise ValueError(f"fan_in: {workload.fan_in} senders beside the receiver are needed at once, got {len(senders)}")
    return senders, receivers


def _pairs(workload: Workload, senders: Sequence[str], receivers: Sequence[str], rng: random.Random) -> Pairs:
    if workload.pattern == "pairs":
        fixed = list(zip(senders, receivers))
        return lambda: [rng.choice(fixed)]
    if workload.pattern == "permutation":
        fixed = list(zip(senders, _permuted(senders, receivers, rng)))
        return lambda: [rng.choice(fixed)]
    if workload.pattern == "partition-aggregate":

        def partition() -> list[tuple[str, str]]:
            sender = rng.choice(senders)
            others = [receiver for receiver in receivers if receiver != sender]
            assert workload.fan_in is not None
            return [(sender, receiver) for receiver in rng.sample(others, workload.fan_in)]

        return partition
    if workload.pattern == "incast":

        def incast() -> list[tuple[str, str]]:
            receiver = rng.choice(receivers)
            others = [sender for sender in senders if sender != receiver]
            assert workload.fan_in is not None
            return [(sender, receiver) for sender in rng.sample(others, workload.fan_in)]

        return incast

    def all_to_all() -> list[tuple[str, str]]:
        sender = rng.choice(senders)
        while (receiver := rng.choice(receivers)) == sender:
            pass
        return [(sender, receiver)]

    return all_to_all


def _permuted(senders: Sequence[str], receivers: Sequence[str], rng: random.Random) -> list[str]:
    """A receiver for each sender, each another and none itself: uniform among all such choices."""
    while True:
        chosen = rng.sample(list(receivers), len(senders))
        if all(a != b for a, b in zip(senders, chosen)):
            return chosen


def _answered(workload: Workload, senders: Sequence[str], receivers: Sequence[str]) -> Iterator[tuple[str, list[str], float]]:
    """As `chances`, of answers: each host that is asked sends to each that asks."""
    for sender in receivers:
        others = [host for host in senders if host != sender]
        if others:
            yield sender, others, (workload.fan_in or 1) / len(receivers)


def chances(workload: Workload, senders: Sequence[str], receivers: Sequence[str]) -> Iterator[tuple[str, list[str], float]]:
    """Of each sender: the receivers that its flows may have, each as likely, and how many of its flows an arrival makes, on average."""
    if workload.asks:
        yield from _answered(workload, senders, receivers)
        return
    for n, sender in enumerate(senders):
        others = [receivers[n]] if workload.pattern == "pairs" else [receiver for receiver in receivers if receiver != sender]
        yield sender, others, (workload.fan_in or 1) / len(senders)


def drawn(workload: Workload, hosts: Sequence[str], per_s: float, seed: int, duration_s: float) -> list[Arrival]:
    """All flows of a workload, in the order of their arrival. per_s: arrivals a second. ValueError: more than `MAX_FLOWS`."""
    trace = workload.arrivals.trace
    traced = trace.rows if trace is not None and trace.has("sender") else ()
    if traced:
        _check_traced(traced, hosts)
        senders, receivers = hosts, hosts
    else:
        senders, receivers = ends(workload, hosts)
    streams = {name: random.Random(f"{seed}/workload {workload.name}/{name}") for name in ("arrivals", "sizes", "hosts", "think")}
    pairs = _pairs(workload, senders, receivers, streams["hosts"])
    if trace is not None and trace.has("bytes"):
        sizes: Iterator[int] = (row.file_bytes for row in trace.rows if row.file_bytes is not None)
    else:
        assert workload.sizes is not None
        sizes = workload.sizes.draws(streams["sizes"])
    end_s = duration_s if workload.stop_s is None else min(duration_s, workload.stop_s)
    if workload.arrivals.kind in ("poisson", "deterministic") and per_s * (end_s - workload.start_s) > 2 * MAX_FLOWS:
        raise ValueError(_TOO_MANY)  # half of the mean is as good as impossible, and drawing as many takes seconds
    found: list[Arrival] = []
    for n, at_s in enumerate(workload.arrivals.times_s(per_s, streams["arrivals"])):
        start_s = workload.start_s + at_s
        if start_s >= end_s:
            return found
        chosen = [(traced[n].sender, traced[n].receiver)] if traced else pairs()
        if workload.asks:
            found += _queries(workload, n, start_s, chosen, sizes, streams["think"])
        else:
            found += [Arrival(start_s, sender, receiver, next(sizes)) for sender, receiver in chosen]
        if len(found) > MAX_FLOWS:
            raise ValueError(_TOO_MANY)
    return found


def _check_traced(rows: Iterable[TraceRow], hosts: Sequence[str]) -> None:
    """ValueError, beginning with the key at fault."""
    for row in rows:
        for name in (row.sender, row.receiver):
            if name not in hosts:
                raise ValueError(f"arrivals: the file names a host {name!r}, at {row.at_s:g} s{schema.nearest(name, hosts)}")
        if row.sender == row.receiver:
            raise ValueError(f"arrivals: in the file {row.sender} sends to itself, at {row.at_s:g} s")


def _queries(
    workload: Workload, number: int, at_s: float, chosen: Sequence[tuple[str, str]], sizes: Iterator[int], thinking: random.Random
) -> Iterator[Arrival]:
    """The requests and answers of one arrival. All flows of a query have its name; those of the next query wait for its answers."""
    request_bytes, rounds = workload.request_bytes or DEFAULT_REQUEST_BYTES, workload.requests or 1
    before: tuple[tuple[str, str], ...] = ()
    for turn in range(rounds):
        query = f"{number}.{turn}" if workload.requests else f"{number}"
        think_s = _exponential(thinking, workload.think_s) if workload.think_s and before else 0.0
        parts = [f"-{n}" for n in range(len(chosen))] if workload.fan_in else [""]
        for (sender, receiver), part in zip(chosen, parts):
            yield Arrival(at_s, sender, receiver, request_bytes, query, f"ask{part}", before, think_s)
        for (sender, receiver), part in zip(chosen, parts):
            yield Arrival(at_s, receiver, sender, next(sizes), query, f"answer{part}", ((query, f"ask{part}"),), answers=True)
        before = tuple((query, f"answer{part}") for part in parts)


def file_of(document: Document, path: KeyPath) -> Path:
    """The file that the text at `path` names: one of `experiments/sizes/`, or a file beside the document. ConfigError: there is none."""
    name = document.at(path)
    own = FOLDER / f"{name}.csv"
    if re.fullmatch(r"[a-z0-9-]+", name) and own.is_file():
        return own
    beside = Path(document.place(path)[0]).parent / name
    known = sorted(file.stem for file in FOLDER.glob("*.csv"))
    for file in (beside, Path(name)):
        try:
            if file.is_file():
                return file
        except (OSError, ValueError):  # a name that no file can have
            break
    raise document.error(path, f"no file {beside}{schema.nearest(name, known)}")

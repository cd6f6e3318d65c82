"""Max-min fair shares over a run [ALS sec 3]: the rate of each active flow if links are shared fairly among the active flows.

Shares change when a flow starts or stops, or a link's rate changes: at the epochs of a run. They are computed for the requested epochs, by
progressive filling: the link with the smallest share per flow is full first, and its flows keep that share. Three facts make the cost about linear in flows:

* A flow that comes or goes, and a link whose rate changes, move the shares of flows that share links with it, directly or by others. All others keep theirs.
* Flows that cross the same links have the same share, so only their number counts.
* If all flows of a link also cross another link that is not faster, the link never decides, and is omitted: in a dumbbell one link remains for any number of hosts.
"""

from __future__ import annotations

import bisect
import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from fairlane.experiments import paths

if TYPE_CHECKING:
    from fairlane.results.series import FlowRecord, LinkRecord, Series

_AFTER_S = 1e-6
"""A flow is active up to its last packet, and has its share until just after it."""
_Link = tuple[str, int]


def group_of(record: FlowRecord) -> str:
    """The flow of the experiment that a record is of: those of its other receivers have the same."""
    return record.flow.name.partition("@")[0]


def max_min_shares(series: Series, time_s: float) -> dict[str, float]:
    """The share of each flow that is active at an instant, in bit/s on the links."""
    return dict(ShareTable(series).at(time_s))


class ShareTable:
    """The shares over a run, in bit/s on the links."""

    def __init__(self, series: Series) -> None:
        records = [r for r in series.flows if r.active is not None and r.active[1] >= 0]
        pieces = [(r, *piece) for r in records for piece in _pieces(series, r)]
        links = {key: _Rates.of(series.links.get(key), rate) for *_, path in pieces for key, rate in path.items()}
        deciding = _deciding([tuple(path) for *_, path in pieces], links)
        self._names = [r.flow.name for r, *_ in pieces]
        self._numbers: dict[str, list[int]] = defaultdict(list)
        for i, name in enumerate(self._names):
            self._numbers[name].append(i)
        self._rates = {key: links[key] for key in deciding}
        alone = Counter(map(group_of, records))
        self._filling = Filling()
        # Of each piece of a record: its class, which has one share.
        self._class = [
            self._filling.add(tuple(key for key in path if key in deciding), group_of(r) if alone[group_of(r)] > 1 else None)
            for r, *_, path in pieces
        ]
        spans = [(start_s, end_s) for _, start_s, end_s, _ in pieces]
        changes = {t for rates in self._rates.values() for t in rates.times_s} | {t for span in spans for t in span}
        self._times = sorted({0.0, *changes})
        """When each epoch begins."""
        at = {t: epoch for epoch, t in enumerate(self._times)}
        self._spans = [(at[a], at[b]) for a, b in spans]
        """Of each piece: its first epoch, and the first after it."""
        self._starting: dict[int, list[int]] = defaultdict(list)
        self._ending: dict[int, list[int]] = defaultdict(list)
        self._changing: dict[int, list[_Link]] = defaultdict(list)
        for key, rates in self._rates.items():
            for t in rates.times_s:
                self._changing[at[t]].append(key)
        for record, (first, end) in enumerate(self._spans):
            self._starting[first].append(record)
            self._ending[end].append(record)
        self._epoch = -1
        self._levels: dict[int, dict[int, float]] = {}
        self._means: dict[tuple[float, float], dict[str, float]] = {}

    def at(self, time_s: float) -> Mapping[str, float]:
        """Of the flows that are active at an instant."""
        epoch = self._epoch_at(time_s)
        if epoch not in self._levels:
            self._levels[epoch] = dict(self._filled(epoch))
        return _Shares(self, epoch, self._levels[epoch])

    def mean(self, flow: str, start_s: float, end_s: float) -> float:
        """Over the part of a window in which the flow is active, weighted by time; not a number when it is not active in it."""
        window = (start_s, end_s)
        if window not in self._means:
            areas: dict[str, tuple[float, float]] = {}
            for name, area, seconds in self._all_means(*window):
                before = areas.get(name, (0.0, 0.0))
                areas[name] = before[0] + area, before[1] + seconds
            self._means[window] = {name: area / seconds for name, (area, seconds) in areas.items()}
        return self._means[window].get(flow, math.nan)

    def _all_means(self, start_s: float, end_s: float) -> Iterator[tuple[str, float, float]]:
        """Of each piece of a flow: share times seconds, and seconds. One pass over the window's epochs for all flows: sums by class, read where a flow comes and where it goes."""
        first, last = self._epoch_at(start_s), self._epoch_at(end_s)
        sums: dict[int, float] = defaultdict(float)
        # Of each flow that is there: the sum of its class, and the time, from which on it counts.
        since = {r: (0.0, start_s) for r, (begin, end) in enumerate(self._spans) if begin <= first < end}
        for epoch in range(first, last + 1):
            begin_s = max(start_s, self._times[epoch])
            until_s = end_s if epoch == last else self._times[epoch + 1]
            if epoch > first:
                for r in self._ending.get(epoch, ()):
                    yield from self._mean(r, *since.pop(r), sums, begin_s)
                since |= {r: (sums[self._class[r]], begin_s) for r in self._starting.get(epoch, ())}
            for number, level in self._filled(epoch).items():
                sums[number] += level * (until_s - begin_s)
        for r, (before, at_s) in since.items():
            yield from self._mean(r, before, at_s, sums, end_s)

    def _mean(
        self, record: int, before: float, since_s: float, sums: Mapping[int, float], until_s: float
    ) -> Iterator[tuple[str, float, float]]:
        if until_s > since_s:
            yield self._names[record], sums[self._class[record]] - before, until_s - since_s

    def _epoch_at(self, time_s: float) -> int:
        return max(0, bisect.bisect_right(self._times, time_s) - 1)

    def _filled(self, epoch: int) -> Mapping[int, float]:
        """The share of each class that has active flows in an epoch; until the next call."""
        if epoch < self._epoch:
            self._filling.clear()
            self._epoch = -1
        while self._epoch < epoch:
            self._epoch += 1
            for r in self._ending.get(self._epoch, ()):
                self._filling.change(self._class[r], -1)
            for r in self._starting.get(self._epoch, ()):
                self._filling.change(self._class[r], 1)
            self._filling.touch(self._changing.get(self._epoch, ()))
        time_s = self._times[epoch]
        return self._filling.shares(lambda link: self._rates[link].at(time_s))


class _Shares(Mapping[str, float]):
    """Of an epoch, by flow."""

    def __init__(self, table: ShareTable, epoch: int, levels: Mapping[int, float]) -> None:
        self._table = table
        self._at = epoch
        self._by_class = levels

    def __getitem__(self, flow: str) -> float:
        for piece in self._table._numbers.get(flow, ()):
            first, end = self._table._spans[piece]
            if first <= self._at < end:
                return self._by_class[self._table._class[piece]]
        raise KeyError(flow)

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._table._numbers if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Rates:
    """A link's rate over time. times_s: when it changes."""

    def __init__(self, link: LinkRecord | None, rates_bps: list[tuple[float, float]]) -> None:
        self._link = link
        self.times_s = [t for t, _ in rates_bps] if len(rates_bps) > 1 else []
        self.lowest = min(rate for _, rate in rates_bps)
        self.highest = max(rate for _, rate in rates_bps)

    @staticmethod
    def of(link: LinkRecord | None, rate_bps: float) -> _Rates:
        """rate_bps: where there is no record."""
        return _Rates(link, [(0.0, rate_bps)] if link is None else link.rates_bps)

    def at(self, time_s: float) -> float:
        return self.highest if self._link is None or not self.times_s else self._link.rate_at(time_s)


def _pieces(series: Series, record: FlowRecord) -> Iterator[tuple[float, float, dict[_Link, float]]]:
    """The parts of the time in which a flow is active with one way each, and that way: the output ports that its packets take, and the rate of each at the beginning."""
    assert record.active is not None
    start_s, end_s = max(0.0, record.active[0]), record.active[1] + _AFTER_S
    times = [since_s for since_s, _ in paths.history(series.experiment)]
    for since_s, until_s in zip(times, (*times[1:], math.inf)):
        if since_s < end_s and until_s > start_s:
            way = {(p.node, p.number): p.link.rate_bps for p in paths.there(series.experiment, record.flow, at_s=since_s)}
            yield max(since_s, start_s), min(until_s, end_s), way


def _deciding(paths: list[tuple[_Link, ...]], rates: Mapping[_Link, _Rates]) -> set[_Link]:
    """The links without those whose flows all cross another link that is never faster. The other one's bound holds for their flows as well, so that the
    shares stay the same."""
    crossing: Counter[_Link] = Counter()
    # Of each link: the links that all of its flows cross.
    common: dict[_Link, set[_Link]] = {}
    for path, count in Counter(paths).items():
        for key in path:
            crossing[key] += count
            if key in common:
                common[key] &= set(path)
            else:
                common[key] = set(path)

    def decided_by(key: _Link, other: _Link) -> bool:
        slowest, others = rates[key].lowest, rates[other].highest
        # Two links with the same flows and rate: one of them decides.
        return others < slowest or (others == slowest and (-crossing[other], other) < (-crossing[key], key))

    return {key for key, others in common.items() if not any(decided_by(key, other) for other in others - {key})}


class Filling:
    """Progressive filling of links. A class: flows that cross the same links. Flows to several receivers are one connection on each link, so that each
    receiver has a class of its own, and those of one flow a group."""

    def __init__(self) -> None:
        self._known: dict[tuple[_Link, ...], int] = {}
        self._paths: list[tuple[_Link, ...]] = []
        self._groups: list[str | None] = []
        self.clear()

    def clear(self) -> None:
        """No flow is active."""
        self._found: dict[int, float] = {}
        self._touched: set[_Link] = set()
        self._active: Counter[int] = Counter()
        self._users: dict[_Link, set[int]] = defaultdict(set)
        self._connections: Counter[_Link] = Counter()
        self._receivers: Counter[tuple[str, _Link]] = Counter()

    def add(self, path: tuple[_Link, ...], group: str | None) -> int:
        """The class of a flow."""
        if group is None and path in self._known:
            return self._known[path]
        self._paths.append(path)
        self._groups.append(group)
        if group is None:
            self._known[path] = len(self._paths) - 1
        return len(self._paths) - 1

    def change(self, number: int, by: int) -> None:
        """More or fewer active flows of a class."""
        self._active[number] += by
        group = self._groups[number]
        self.touch(self._paths[number])
        if not self._active[number]:
            self._found.pop(number, None)
        for key in self._paths[number]:
            if self._active[number]:
                self._users[key].add(number)
            else:
                self._users[key].discard(number)
            if group is None:
                self._connections[key] += by
            else:
                before = self._receivers[group, key]
                self._receivers[group, key] += by
                self._connections[key] += (before + by > 0) - (before > 0)
            if not self._connections[key]:
                del self._connections[key]  # of many links, few have flows at one time

    def touch(self, links: Iterable[_Link]) -> None:
        """Something of these links is another now."""
        self._touched.update(links)

    def shares(self, rate_bps: Callable[[_Link], float]) -> Mapping[int, float]:
        """Of each class that has active flows; until the next call. rate_bps: of a link that they cross, the same as before unless the link is touched."""
        while self._touched:
            part = self._part(self._touched.pop())
            self._touched -= part
            self._found.update(self._fill(part, rate_bps))
        return self._found

    def _part(self, link: _Link) -> set[_Link]:
        """The links that active flows connect with one, directly or by others, and itself."""
        part, todo, seen = {link}, [link], set[int]()
        while todo:
            for number in self._users.get(todo.pop(), set()) - seen:
                seen.add(number)
                fresh = [key for key in self._paths[number] if key not in part]
                part.update(fresh)
                todo += fresh
        return part

    def _fill(self, part: set[_Link], rate_bps: Callable[[_Link], float]) -> dict[int, float]:
        """Of the classes that cross links of a part."""
        open_ = {key: self._connections[key] for key in part if key in self._connections}
        left = {key: rate_bps(key) for key in open_}
        receivers = dict(self._receivers) if self._receivers else {}
        found: dict[int, float] = {}
        # The share that a link can give grows while others are filled: an entry that is out of date goes back.
        waiting = [(left[key] / count, key) for key, count in open_.items()]
        heapq.heapify(waiting)
        while waiting:
            _, tightest = heapq.heappop(waiting)
            if tightest not in open_:
                continue
            share = left[tightest] / open_[tightest]
            if waiting and share > waiting[0][0]:
                heapq.heappush(waiting, (share, tightest))
                continue
            for number in self._users[tightest] - found.keys():
                found[number] = share
                group = self._groups[number]
                for key in self._paths[number]:
                    done = self._active[number]
                    if group is not None:
                        receivers[group, key] -= 1
                        done = 0 if receivers[group, key] else 1
                    left[key] -= done * share
                    open_[key] -= done
                    if not open_[key]:
                        del open_[key]
        return found

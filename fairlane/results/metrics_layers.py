"""Figures of layered flows, for an experiment's checks. They describe the run's first layered flow.

"Before" is the last half of the time before its last receiver joins, "after" the last half of the time since: by then rates and
layers are those of the receivers present.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial

from fairlane.arithmetic import total
from fairlane.experiments import paths
from fairlane.experiments.kinds import TcpSettings
from fairlane.results.figures import Figures
from fairlane.results.layers import Heard, LayeredRecord
from fairlane.results.series import FlowRecord, Series

# A control packet may be so long under way after its sender has announced other sizes.
_UNDER_WAY_S = 3.0
_MOST_RECEIVERS = 3

Window = tuple[float, float]


def windows(series: Series, record: LayeredRecord) -> tuple[Window, Window]:
    """Before and after, in seconds since the run began."""
    last = max(record.flow.receiver_start_s, default=0.0)
    first = record.flow.start_s
    end = series.experiment.duration_s
    return ((first + last) / 2, last), ((last + end) / 2, end)


def _first(series: Series) -> LayeredRecord | None:
    return series.layered[0] if series.layered else None


def layer_kbps(record: LayeredRecord, layer: int, window: Window) -> float:
    """Time-weighted mean of a layer's rate; not a number over no time."""
    start, end = window
    edges = [start, *(t for t, _ in record.rates if start < t < end), end]
    bits = total(record.rates_at(a)[layer] * (b - a) for a, b in itertools.pairwise(edges))
    return bits / (end - start) / 1e3 if end > start else math.nan


def mean_layers(record: LayeredRecord, receiver: str, window: Window) -> float:
    """Layers that a receiver is a member of, averaged over time: whole when it never changed."""
    start, end = window
    edges = [start, *(t for t in record.changes_s(receiver) if start < t < end), end]
    held = total(len(record.members_at(receiver, a)) * (b - a) for a, b in itertools.pairwise(edges))
    return held / (end - start) if end > start else math.nan


def unallowed_joins(record: LayeredRecord) -> list[tuple[float, str, int]]:
    """(time, receiver, layer) of joins of upper layers that no control packet heard by then allowed: R_d below the sum of the sizes
    up to that layer [ALS sec 3.4]."""
    found = []
    for receiver, changes in record.joined.items():
        heard = record.heard.get(receiver, [])
        for time_s, layer, member in changes:
            if not member or layer == 0:
                continue
            newest = next((h for h in reversed(heard) if h.time_s <= time_s), None)
            if newest is None or not _allows(record, newest, layer):
                found.append((time_s, receiver, layer))
    return found


def _allows(record: LayeredRecord, heard: Heard, layer: int) -> bool:
    if heard.sizes_bps is not None:
        said = [heard.sizes_bps]
    else:
        said = [
            record.sizes_at(heard.time_s),
            *(s for t, s in record.sizes if heard.time_s - _UNDER_WAY_S <= t <= heard.time_s),
            record.sizes_at(heard.time_s - _UNDER_WAY_S),
        ]
    # Sizes are announced in whole bit/s, rounded down.
    return any(len(sizes) > layer and heard.desired_rate_bps >= sum(map(math.floor, sizes[: layer + 1])) for sizes in said)


def als_tcp_ratios(series: Series, record: LayeredRecord, window: Window) -> dict[str, float]:
    """For each link that both cross: the layered flow's share of it (by its fastest receiver behind) over the mean of the TCP flows
    there, in bytes of IPv4 datagrams that arrived."""
    start, end = window
    topology = series.experiment.topology
    crossing: dict[tuple[str, int], list[FlowRecord]] = {}
    for one in series.flows:
        for port in paths.there(series.experiment, one.flow):
            if port.peer in topology.switches and port.node in topology.switches:
                crossing.setdefault((port.node, port.number), []).append(one)
    ratios = {}
    for key, records in crossing.items():
        tcp = [r.received.over(start, end) for r in records if isinstance(r.flow.settings, TcpSettings)]
        layered = [r.received.over(start, end) for r in records if r.flow.name.partition("@")[0] == record.flow.name]
        if tcp and layered and total(tcp) > 0:
            ratios[series.links[key].name] = max(layered) / (total(tcp) / len(tcp))
    return ratios


def _layer(layer: int, after: bool, series: Series, figures: Figures) -> float:
    record = _first(series)
    return math.nan if record is None or layer >= record.layers else layer_kbps(record, layer, windows(series, record)[after])


def _layers_of(receiver: int, after: bool, series: Series, figures: Figures) -> float:
    record = _first(series)
    if record is None or receiver >= len(record.flow.all_receivers):
        return math.nan
    return mean_layers(record, record.flow.all_receivers[receiver], windows(series, record)[after])


def probing_joins(series: Series, figures: Figures) -> float:
    """Joins of upper layers that R_d did not allow; NaN without joins."""
    record = _first(series)
    return math.nan if record is None or not any(record.joined.values()) else float(len(unallowed_joins(record)))


def _ratio(choose: Callable[..., float], after: bool, series: Series, figures: Figures) -> float:
    record = _first(series)
    return math.nan if record is None else choose(als_tcp_ratios(series, record, windows(series, record)[after]).values(), default=math.nan)


CHECK_METRICS: dict[str, Callable[[Series, Figures], float]] = {
    "probing_joins": probing_joins,
    **{
        f"{name}_layer_{when}_kbps": partial(_layer, layer, bool(after))
        for name, layer in (("base", 0), ("upper", 1))
        for after, when in enumerate(("before", "after"))
    },
    **{
        f"layers_of_receiver_{n}_{when}": partial(_layers_of, n, bool(after))
        for n in range(_MOST_RECEIVERS)
        for after, when in enumerate(("before", "after"))
    },
    **{
        f"{name}_als_tcp_ratio_{when}": partial(_ratio, choose, bool(after))
        for name, choose in (("lowest", min), ("highest", max))
        for after, when in enumerate(("before", "after"))
    },
}

"""Figures of groups of flows and of the bottleneck, the inputs of a study's measures.

All are over the experiment's window. `GROUP.figure` is of the flows of one group of the file, `all.figure` of all flows,
`bottleneck.figure` of the port that the experiment names, `run.metric` any metric of an experiment's checks.
"""

from __future__ import annotations

import hashlib
import keyword
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fairlane.arithmetic import total
from fairlane.experiments import expressions
from fairlane.experiments.expressions import Value
from fairlane.results import completions, delays, impairments, metrics, queries
from fairlane.results.delays import Delays
from fairlane.results.figures import jain_index, mean
from fairlane.results.series import FlowRecord, Series, Steps
from fairlane.results.shares import ShareTable, group_of
from fairlane.studies import settling
from fairlane.studies.study import Curve

COV_PERIOD_S = 0.15
"""[SSVP sec V.B]: throughput is sampled each 150 ms."""


def _active(flows: list[FlowRecord], window: tuple[float, float]) -> list[tuple[FlowRecord, tuple[float, float]]]:
    """The flows that were active in the window, each with the part of it in which it was: means and indices are over that part, and of these flows alone."""
    spans = ((record, record.active_in(*window)) for record in flows)
    return [(record, span) for record, span in spans if span is not None]


def _rates(flows: list[FlowRecord], window: tuple[float, float]) -> list[float]:
    """Mean throughput of each active flow in bit/s, IPv4 datagrams with their headers."""
    return [8 * record.received.over(start, end) / (end - start) for record, (start, end) in _active(flows, window)]


def worst_case_fairness(rates: list[float]) -> float:
    """min / max [SSVP sec V.B]."""
    return min(rates) / max(rates) if rates and max(rates) > 0 else math.nan


def coefficient_of_variation(record: FlowRecord, window: tuple[float, float], period_s: float = COV_PERIOD_S) -> float:
    """Of throughput sampled each `period_s`: standard deviation over mean [SSVP sec V.B]."""
    edges = np.arange(window[0], window[1] + 1e-9, period_s)
    rates = np.diff(record.received.at(edges))
    return float(rates.std() / rates.mean()) if len(rates) and rates.mean() > 0 else math.nan


def sending_coefficient_of_variation(record: FlowRecord, window: tuple[float, float], period_s: float = COV_PERIOD_S) -> float:
    """Of the rate that the algorithm allows, averaged over each `period_s`: without the noise of counting whole packets."""
    if not record.sending_rate:
        return math.nan
    means = np.diff(_sent_if_allowed(record, np.arange(max(window[0], record.sending_rate[0][0]), window[1] + 1e-9, period_s)))
    return float(means.std() / means.mean()) if len(means) and means.mean() > 0 else math.nan


def _sent_if_allowed(record: FlowRecord, at: np.ndarray) -> np.ndarray:
    """Integral of the allowed rate up to each time, bits."""
    times = np.array([t for t, _ in record.sending_rate])
    rates = np.array([r for _, r in record.sending_rate], dtype=float)
    sums = np.concatenate([[0.0], np.cumsum(rates[:-1] * np.diff(times))])
    index = np.clip(np.searchsorted(times, at, side="right") - 1, 0, len(times) - 1)
    allowed: np.ndarray = sums[index] + rates[index] * np.maximum(at - times[index], 0.0)
    return allowed


def _sending_coefficient_of_variation_of_sum(flows: list[FlowRecord], window: tuple[float, float]) -> float:
    if not flows or not all(f.sending_rate for f in flows):
        return math.nan
    edges = np.arange(max(window[0], *(f.sending_rate[0][0] for f in flows)), window[1] + 1e-9, COV_PERIOD_S)
    means = sum((np.diff(_sent_if_allowed(f, edges)) for f in flows), np.zeros(max(0, len(edges) - 1)))
    return float(means.std() / means.mean()) if len(means) and means.mean() > 0 else math.nan


def allowed_rates(record: FlowRecord, window: tuple[float, float]) -> tuple[float, float, float]:
    """Mean, median and largest of the rate that the algorithm allows in the window, bit/s, each rate by how long it held."""
    known = [(t, r) for t, r in record.sending_rate if t < window[1]]
    if not known:
        return math.nan, math.nan, math.nan
    times = [max(t, window[0]) for t, _ in known] + [window[1]]
    held = sorted((known[i][1], times[i + 1] - times[i]) for i in range(len(known)) if times[i + 1] > times[i])
    all_s = total(s for _, s in held)
    passed, median = 0.0, math.nan
    for rate, seconds in held:
        passed += seconds
        if passed >= all_s / 2:
            median = float(rate)
            break
    return total(r * s for r, s in held) / all_s, median, float(held[-1][0])


def _sum_coefficient_of_variation(flows: list[FlowRecord], window: tuple[float, float]) -> float:
    edges = np.arange(window[0], window[1] + 1e-9, COV_PERIOD_S)
    rates = sum((np.diff(f.received.at(edges)) for f in flows), np.zeros(max(0, len(edges) - 1)))
    return float(rates.std() / rates.mean()) if len(rates) and rates.mean() > 0 else math.nan


def counting_floor(flows: list[FlowRecord], window: tuple[float, float]) -> float:
    """The coefficient of variation that a perfectly even flow would show, because a period holds a whole number of packets: of the
    mean number m of packets, the fraction f = m - floor(m) of periods hold one more, so sqrt(f (1 - f)) / m."""
    floors = []
    for f, (start, end) in _active(flows, window):
        packets = f.packets.over(start, end) / (end - start) * COV_PERIOD_S
        if packets > 0:
            part = packets - math.floor(packets)
            floors.append(math.sqrt(part * (1 - part)) / packets)
    return mean(floors)


def _total(flows: list[FlowRecord], what: str, window: tuple[float, float]) -> float:
    return total(getattr(f, what).over(*window) for f in flows if f.active is not None)


def _loss(flows: list[FlowRecord], window: tuple[float, float]) -> float:
    sent = _total(flows, "sent", window)
    return _total(flows, "lost", window) / sent if sent else math.nan


def _late(flows: list[FlowRecord], window: tuple[float, float]) -> list[float]:
    """Of each flow, the part of its packets that came more than 75 ms after the one before [SSVP sec V.B]."""
    parts = []
    for f, span in _active(flows, window):
        got = f.packets.over(*span)
        parts.append(f.late.over(*span) / got if got else math.nan)
    return parts


def _delivery(flows: list[FlowRecord], window: tuple[float, float]) -> list[float]:
    """Video Delivery Index of each flow: packets that came in time over packets sent [SSVP sec V.B]."""
    parts = []
    for f, span in _active(flows, window):
        sent = f.sent.over(*span)
        parts.append((f.packets.over(*span) - f.late.over(*span)) / sent if sent else math.nan)
    return parts


def _delays_s(flows: list[FlowRecord], window: tuple[float, float]) -> list[float]:
    """Mean one-way delay of each flow's packets. Nobody measures it of TCP: not a number."""
    return [f.delay.over(*span) / got for f, span in _active(flows, window) if (got := f.packets.over(*span))]


Window = tuple[float, float]


def _known(flows: list[FlowRecord], figure: str) -> list[float]:
    """Of the flows that have ended by themselves, whenever: `completion_s` or `slowdown`."""
    return [value for f in flows if not math.isnan(value := getattr(f, figure))]


def _percentile_of(figure: str, part: int) -> Callable[[list[FlowRecord], Window], float]:
    return lambda flows, window: completions.percentile(_known(flows, figure), part)


def _delay_of(what: str, figure: str) -> Callable[[list[FlowRecord], Window], float]:
    """Of the packets of all flows together."""
    return lambda flows, window: Delays.together(getattr(f, what) for f in flows).figure(figure)


def _percentile_of_queries(part: int) -> Callable[[list[FlowRecord], Window], float]:
    return lambda flows, window: completions.percentile(queries.completions_s(flows), part)


OF_FLOWS: dict[str, Callable[[list[FlowRecord], Window], float]] = {
    "count": lambda flows, window: float(len(flows)),
    "mean_bps": lambda flows, window: mean(_rates(flows, window)),
    "total_bps": lambda flows, window: 8 * _total(flows, "received", window) / (window[1] - window[0]),
    "min_bps": lambda flows, window: min(_rates(flows, window), default=math.nan),
    "max_bps": lambda flows, window: max(_rates(flows, window), default=math.nan),
    "goodput_bps": lambda flows, window: 8 * _total(flows, "goodput", window) / (window[1] - window[0]),
    "sent_packets": lambda flows, window: _total(flows, "sent", window),
    "loss": _loss,
    "jain": lambda flows, window: jain_index(_rates(flows, window)),
    "worst_case_fairness": lambda flows, window: worst_case_fairness(_rates(flows, window)),
    "cov": lambda flows, window: mean([coefficient_of_variation(f, span) for f, span in _active(flows, window)]),
    "cov_sending": lambda flows, window: mean([sending_coefficient_of_variation(f, span) for f, span in _active(flows, window)]),
    "cov_of_sum": _sum_coefficient_of_variation,
    "cov_sending_of_sum": _sending_coefficient_of_variation_of_sum,
    "allowed_mean_bps": lambda flows, window: mean([allowed_rates(f, span)[0] for f, span in _active(flows, window)]),
    "allowed_median_bps": lambda flows, window: mean([allowed_rates(f, span)[1] for f, span in _active(flows, window)]),
    "allowed_max_bps": lambda flows, window: mean([allowed_rates(f, span)[2] for f, span in _active(flows, window)]),
    "cov_floor": counting_floor,
    "outstanding_packets": lambda flows, window: mean([v for f in flows for t, v in f.outstanding if window[0] <= t <= window[1]]),
    "delayed": lambda flows, window: mean(_late(flows, window)),
    "delivery_index": lambda flows, window: mean(_delivery(flows, window)),
    "complete": lambda flows, window: float(len(_known(flows, "completion_s"))),
    "completion_mean_s": lambda flows, window: mean(_known(flows, "completion_s")),
    "slowdown_mean": lambda flows, window: mean(_known(flows, "slowdown")),
    **{f"completion_p{part}_s": _percentile_of("completion_s", part) for part in completions.PERCENTILES},
    **{f"slowdown_p{part}": _percentile_of("slowdown", part) for part in completions.PERCENTILES},
    **{f"delay_{figure}_s": _delay_of("one_way", figure) for figure in delays.FIGURES},
    **{f"rtt_{figure}_s": _delay_of("rtt", figure) for figure in delays.FIGURES},
    "queries": lambda flows, window: float(len(queries.of_flows(flows))),
    "queries_complete": lambda flows, window: float(len(queries.completions_s(flows))),
    "query_mean_s": lambda flows, window: mean(queries.completions_s(flows)),
    **{f"query_p{part}_s": _percentile_of_queries(part) for part in completions.PERCENTILES},
    "mean_delay_s": lambda flows, window: mean(_delays_s(flows, window)),
}
"""Figures of a group of flows. Rates count whole IPv4 datagrams, except goodput_bps (payload, the group's sum). Sums (total_bps, goodput_bps, sent_packets)
and loss are over the whole window; figures of complete flows are over the whole run; delay_* and rtt_* are of all packets in the window; all else is over the part of it in which each flow was active, without the flows that were not."""


def _link(series: Series) -> dict[str, float]:
    start, end = series.experiment.window_s
    link = series.bottleneck
    sent, capacity_bits = link.transmitted_bytes.over(start, end), link.capacity_bits().over(start, end)
    # Without the switch's own rows, drops by a full queue are not known.
    drops = total(steps.over(start, end) for steps in link.drops.values()) if "tail" in link.drops else math.nan
    held = link.drops.get("held", Steps.of([], []) if series.experiment.settings.control.protection else Steps.of([0.0], [0.0]))
    queue = link.queue.over(start, end) / (end - start) if link.queue is not None else math.nan
    edges = np.arange(start, end + 1e-9, _QUEUE_BIN_S)
    waits = Delays.together(link.waits.values())
    lengths = np.diff(link.queue.at(edges)) / _QUEUE_BIN_S if link.queue is not None else np.array([math.nan])
    return {
        "utilisation": round(8 * sent / capacity_bits, 12),
        "mean_queue_packets": queue,
        "queue_deviation": float(lengths.std()) if len(lengths) else math.nan,
        "drops": drops,
        "held_packets": held.over(start, end),
        "rate_bps": capacity_bits / (end - start),
        **{f"wait_{figure}_s": waits.figure(figure) for figure in delays.FIGURES},
        **impairments.of_link(series, link.name),
    }


OF_BOTTLENECK = (
    "utilisation",
    "mean_queue_packets",
    "queue_deviation",
    "drops",
    "held_packets",
    "rate_bps",
    *(f"wait_{figure}_s" for figure in delays.FIGURES),
    *impairments.COUNTS,
)
"""Figures of the bottleneck. queue_deviation: standard deviation of the queue's length, packets, over bins of 0.2 s. held_packets: drops of
flow protection, which `drops` counts, too. wait_*: how long single packets waited. The last are those of `fairlane.results.impairments`."""
_QUEUE_BIN_S = 0.2


def name_of(group: str) -> str:
    """What a group of flows is called in expressions once they are read: names of groups may have hyphens and dots, begin with a digit or be words of
    Python."""
    first = "" if group[0].isalpha() and not keyword.iskeyword(group) else f"_x{ord(group[0]):x}_"
    # An underscore that could begin such a code is one, too: two groups never have the same name.
    return first + re.sub(r"\W|_(?=x[0-9a-f]+_)", lambda found: f"_x{ord(found[0]):x}_", group[1:] if first else group)


OF_PACKETS = frozenset(f"{what}_{figure}_s" for what in ("wait", "delay", "rtt") for figure in delays.FIGURES)
"""Figures for which a run has to measure each packet."""


def with_names(measures: Mapping[str, Any], groups: Collection[str]) -> dict[str, Any]:
    """Measures as a file writes them ("= tcp-sack.mean_bps"), with each group called by `name_of`. Between a group's name and a dot nothing else can be meant."""
    unusual = sorted((group for group in groups if name_of(group) != group), key=len, reverse=True)
    if not unusual:
        return dict(measures)
    pattern = re.compile(rf"(?<![\w.])({'|'.join(map(re.escape, unusual))})(?=\.[A-Za-z_])")
    return {name: pattern.sub(lambda found: name_of(found[1]), text) if isinstance(text, str) else text for name, text in measures.items()}


def groups(series: Series) -> dict[str, list[FlowRecord]]:
    """Flows by group of the experiment's file, and "all"."""
    found: dict[str, list[FlowRecord]] = {name: [] for name in series.experiment.settings.groups}
    for record in series.flows:
        flow = group_of(record)
        owner = next(name for name in sorted(found, key=len, reverse=True) if flow == name or flow.startswith(f"{name}-"))
        found[owner].append(record)
    return {**found, "all": list(series.flows)}


def measure(series: Series, measures: Mapping[str, str], known: Mapping[str, Value]) -> dict[str, float]:
    """The value of each measure of a study. known: axes of the sweep and the values of [let]. NaN if it could not be
    measured (no flow, a division by zero)."""
    by_group = groups(series)
    figures = metrics.compute(series)
    wanted = {name for text in measures.values() for name in expressions.names_in(text)}
    names: dict[str, Value] = dict(known)
    names |= {f"bottleneck.{k}": v for k, v in _link(series).items()}
    for name in sorted(n for n in wanted if n.startswith("run.")):
        own = settling.OF_RUN.get(name.removeprefix("run."))
        names[name] = own(series) if own else metrics.CHECK_METRICS[name.removeprefix("run.")](series, figures)
    for group, flows in by_group.items():
        for figure, compute in OF_FLOWS.items():
            if f"{name_of(group)}.{figure}" in wanted:
                names[f"{name_of(group)}.{figure}"] = compute(flows, series.experiment.window_s)
    values = {}
    for name, text in measures.items():
        try:
            values[name] = float(expressions.evaluate(text, names))
        except ValueError:
            values[name] = math.nan
    return values


def curve(series: Series, wanted: Curve) -> dict[str, list[float]]:
    """A curve over the whole run: {"t": ends of bins in seconds, "v": values}. Rates are bit/s, queues packets, delays seconds. Of
    mean_rates, "t" numbers the flows from 1 on."""
    if wanted.of == "mean_rates":
        rates = _rates(groups(series).get(wanted.flows, []), series.experiment.window_s)
        return {"t": [float(i) for i in range(1, len(rates) + 1)], "v": [float(f"{rate:.6g}") for rate in rates]}
    edges = np.arange(0.0, series.experiment.duration_s + 1e-9, wanted.bin_s)
    times = edges[1:]
    if wanted.of == "queue":
        steps = series.bottleneck.queue
        values = np.diff(steps.at(edges)) / wanted.bin_s if steps is not None else np.full(len(times), math.nan)
    elif wanted.of == "utilisation":
        values = np.diff(series.bottleneck.transmitted_bytes.at(edges)) * 8 / np.diff(series.bottleneck.capacity_bits().at(edges))
    elif wanted.of == "fair_rate":
        values = _held([(r.time_s, r.rate_bps) for r in series.fair_rates[series.experiment.bottleneck]], times)
    else:
        values = _of_flows(series, wanted, edges)
    return {"t": [round(float(t), 9) for t in times], "v": [float(f"{v:.6g}") if math.isfinite(v) else math.nan for v in values]}


def _of_flows(series: Series, wanted: Curve, edges: np.ndarray) -> np.ndarray:
    flows = groups(series).get(wanted.flows) or [r for r in series.flows if r.flow.name == wanted.flows]
    times = edges[1:]
    if not flows:
        return np.full(len(times), math.nan)
    if wanted.of == "rate":
        rates: np.ndarray = sum(np.diff(f.received.at(edges)) for f in flows) * 8 / wanted.bin_s
        return rates
    if wanted.of == "loss":
        sent = sum(np.diff(f.sent.at(edges)) for f in flows)
        lost = sum(np.diff(f.lost.at(edges)) for f in flows)
        fractions: np.ndarray = np.where(sent > 0, lost / np.maximum(sent, 1e-9), math.nan)
        return fractions
    if wanted.of == "sending_rate":
        allowed: np.ndarray = np.sum([_held(f.sending_rate, times) for f in flows], axis=0)
        return allowed
    if wanted.of == "rtt":
        return _held(flows[0].round_trips, times)
    shares = ShareTable(series)
    return np.array([total(shares.at(t).get(f.flow.name, math.nan) for f in flows) for t in times - wanted.bin_s / 2])


def _held(known: Sequence[tuple[float, float]], times: np.ndarray) -> np.ndarray:
    """The value in force at each time; not a number before the first."""
    at = np.searchsorted([t for t, _ in known], times, side="right")
    values = np.array([math.nan, *(v for _, v in known)])
    return values[at]


def raw_digest(folder: Path) -> str:
    """SHA-256 over all raw records of a run, names and bytes."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            digest.update(f"{path.relative_to(folder)}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()


def result(series: Series, measures: Mapping[str, str], known: Mapping[str, Value], curves: tuple[Curve, ...]) -> dict[str, Any]:
    """What is kept of a run."""
    return {"values": measure(series, measures, known), "curves": {c.name: curve(series, c) for c in curves}}

"""`rates.csv` and `links.csv` of a suite: each measured flow's rates and delay, and each bottleneck's use and queue, in intervals of 200 ms [RFC 8868 sec 3]; and
`distributions.csv`: each measured flow's goodput and queueing delay in periods of ten least round trips [RFC 7928 sec 2.7]."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fairlane.suites import distributions, media
from fairlane.suites.cases import Judged

RATES, LINKS, DISTRIBUTIONS = "rates.csv", "links.csv", "distributions.csv"
RATE_COLUMNS = ("case", "flow", "time_s", "sending_bps", "receiving_bps", "goodput_bps", "delay_s")
LINK_COLUMNS = ("case", "link", "time_s", "capacity_bps", "utilisation", "queue_packets", "queue_s")
DISTRIBUTION_COLUMNS = ("case", "flow", "period_s", "percent", "goodput_bps", "queueing_s")


def write(judged: Sequence[Judged], folder: Path) -> None:
    """The files into `folder`. time_s is an interval's end; a value that could not be measured is empty."""
    files = ((RATES, RATE_COLUMNS, _rates), (LINKS, LINK_COLUMNS, _links), (DISTRIBUTIONS, DISTRIBUTION_COLUMNS, _distributions))
    for name, columns, rows in files:
        with open(folder / name, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            for one in judged:
                writer.writerows([one.case.suite.case, *_text(row)] for row in rows(one))


def _text(row: Iterable[Any]) -> list[Any]:
    return ["" if isinstance(v, float) and math.isnan(v) else f"{v:.6g}" if isinstance(v, float) else v for v in row]


def _edges(judged: Judged) -> np.ndarray:
    return np.asarray(judged.records.experiment.bin_edges_s(media.BIN_S))


def _rates(judged: Judged) -> Iterator[tuple[Any, ...]]:
    """Of all flows but short TCP flows, whose own figures are in suite.json."""
    edges = _edges(judged)
    for flow in judged.records.flows:
        if media.is_short(flow) or flow.active is None:
            continue
        sums = [np.diff(counter.at(edges)) for counter in (flow.sent_bytes, flow.received, flow.goodput, flow.packets, flow.delay)]
        for time_s, bin_s, sent, received, good, packets, delay_s in zip(
            edges[1:].tolist(), np.diff(edges).tolist(), *(s.tolist() for s in sums)
        ):
            if flow.active[0] <= time_s <= flow.active[1] + media.BIN_S:
                rates = (8 * count / bin_s for count in (sent, received, good))
                yield flow.flow.name, time_s, *rates, delay_s / packets if packets > 0 else math.nan


def _distributions(judged: Judged) -> Iterator[tuple[Any, ...]]:
    for periods in distributions.of(judged.records):
        for row in periods.distribution():
            yield periods.flow, periods.period_s, *row


def _links(judged: Judged) -> Iterator[tuple[Any, ...]]:
    """queue_s: the mean wait by Little's law, as a phase's; empty where no packet left."""
    edges = _edges(judged)
    bins_s = np.diff(edges)
    for name in dict.fromkeys(phase.link for phase in judged.phases):
        link = next(link for link in judged.records.links.values() if link.name == name)
        capacity = np.diff(link.capacity_bits().at(edges)) / bins_s
        used = 8 * np.diff(link.transmitted_bytes.at(edges)) / bins_s / capacity
        queue = np.full(len(used), math.nan) if link.queue is None else np.diff(link.queue.at(edges)) / bins_s
        left = np.diff(link.packets.at(edges))
        waits = np.divide(queue * bins_s, left, out=np.full(len(left), math.nan), where=left > 0)
        for row in zip(edges[1:].tolist(), *(values.tolist() for values in (capacity, used, queue, waits))):
            yield name, *row

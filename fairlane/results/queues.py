"""Ports with several queues: each queue over time [RFC 9332 sec 2.5.2.2], and when the port was in overload [RFC 9332 sec 2.5.2.3]."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairlane.arrays import np
from fairlane.results import series
from fairlane.results.figures import Overload
from fairlane.results.series import LinkRecord, Series, Steps

if TYPE_CHECKING:
    import pandas as pd

LATCH_S = 1.0
"""After the report of an overload, until the next one may be made."""


def table(recorded: Series) -> pd.DataFrame:
    """A row for each interval of the switch's records, link and queue, as docs/results.md says; empty where no port has several queues."""
    return series.frame(columns(recorded))


def columns(recorded: Series) -> Iterator[dict[str, Any]]:
    """The same, queue by queue as columns."""
    for link in recorded.links.values():
        for queue, rows in link.queues.items():
            times, before = rows["unix_s"], {}
            for name in ("arrived_packets", "tail_drops", "dequeued_packets", "tx_packets", "tx_bytes"):
                before[name] = np.diff(rows[name].astype(float), prepend=0.0)
            parts = {
                "time_s": times,
                "link": link.name,
                "queue": np.full(len(times), queue),
                "forwarded_bps": 8 * before["tx_bytes"] / np.diff(times, prepend=math.nan),
                "arrived_packets": before["arrived_packets"],
                "tail_drops": before["tail_drops"],
                "egress_drops": before["dequeued_packets"] - before["tx_packets"],
                "forwarded_packets": before["tx_packets"],
                "marks": np.diff(_marks(link, queue).at(times), prepend=math.nan),
                "queue_packets": rows["queue_packets"],
                **{name: rows[name] for name in ("wait_mean_s", "wait_p99_s", "wait_max_s")},
            }
            # Intervals that begin and end within the run.
            within = (np.concatenate([[math.nan], times[:-1]]) >= 0) & (times <= recorded.experiment.duration_s)
            yield {name: values if name == "link" else values[within] for name, values in parts.items()}


def _marks(link: LinkRecord, queue: int) -> Steps:
    """Known at the controller's intervals."""
    if link.marks is None or not link.marks_of:
        return Steps.of([], [])
    if queue in link.marks_of:
        return link.marks_of[queue]
    return Steps(link.marks.times_s, link.marks.values - sum(steps.values for steps in link.marks_of.values()))


def overloads(packets: Steps) -> list[Overload]:
    """Reports of overload with hysteresis. packets: those decided on in overload. A report is made when overload ends. For LATCH_S from then on there is no
    other: what is in overload in that time is summed up, and reported when the latch is over and the queue is out of overload [RFC 9332 sec 2.5.2.3]."""
    reports: list[Overload] = []
    start_s, total_s, latched_until_s, end_s = math.nan, 0.0, -math.inf, math.nan
    for begin_s, end_s, grown in zip(packets.times_s[:-1].tolist(), packets.times_s[1:].tolist(), np.diff(packets.values).tolist()):
        if grown > 0:
            start_s = begin_s if total_s == 0 else start_s
            total_s += end_s - begin_s
        elif total_s > 0 and begin_s >= latched_until_s:
            reports.append(Overload(start_s, total_s))
            total_s, latched_until_s = 0.0, begin_s + LATCH_S
    # The run ended in overload, or while the latch held.
    return [*reports, Overload(start_s, total_s)] if total_s > 0 else reports

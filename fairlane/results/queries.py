"""Queries: requests and their answers, which end when the one who asked has all of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fairlane.results import completions
from fairlane.results.series import FlowRecord, Series


@dataclass(frozen=True)
class Query:
    """One that began in the run. start_s: when its first request did, in seconds since the run began. flows: requests and answers. answer_bytes: of all files
    that come back. completion_s: from start_s until the last byte of the last answer arrived; not a number if one did not."""

    name: str
    start_s: float
    flows: int
    answer_bytes: int
    completion_s: float


@dataclass(frozen=True)
class QueryFigures:
    """Of a workload that asks. queries: those that began. completion_s: by percentile ("p50"), of those that are complete."""

    workload: str
    pattern: str
    queries: int
    complete: int
    completion_s: dict[str, float]


def of_flows(flows: Iterable[FlowRecord]) -> list[Query]:
    """By the order of their first flows."""
    parts: dict[str, list[FlowRecord]] = {}
    for record in flows:
        if record.flow.query:
            parts.setdefault(record.flow.query, []).append(record)
    return [query for name, records in parts.items() if (query := _query(name, records)) is not None]


def _query(name: str, records: Sequence[FlowRecord]) -> Query | None:
    begun = [record.active[0] for record in records if record.active is not None]
    if not begun:
        return None
    answers = [record for record in records if record.flow.answers]
    # A maximum of what is not known is not known.
    last_s = math.nan if any(math.isnan(record.delivered_s) for record in answers) else max(record.delivered_s for record in answers)
    size = sum(record.flow.tcp_settings.file_bytes or 0 for record in answers)
    return Query(name, min(begun), len(records), size, last_s - min(begun))


def completions_s(flows: Iterable[FlowRecord]) -> list[float]:
    """Of the queries that are complete."""
    return [query.completion_s for query in of_flows(flows) if not math.isnan(query.completion_s)]


def figures(series: Series) -> list[QueryFigures]:
    """Of each workload that asks, in the file's order."""
    found = []
    for workload in series.experiment.settings.workloads:
        if workload.asks:
            own = [record for record in series.flows if record.flow.query.startswith(f"{workload.name}-")]
            known = completions_s(own)
            found.append(QueryFigures(workload.name, workload.pattern, len(of_flows(own)), len(known), completions.percentiles(known)))
    return found


_COLUMNS = ("query", "workload", "start_s", "flows", "answer_bytes", "completion_s")


def columns(series: Series) -> dict[str, list[Any]]:
    """Of each query these columns, by the order of queries in the experiment."""
    names = sorted((w.name for w in series.experiment.settings.workloads if w.asks), key=len, reverse=True)
    rows = [
        (q.name, next(name for name in names if q.name.startswith(f"{name}-")), q.start_s, q.flows, q.answer_bytes, q.completion_s)
        for q in of_flows(series.flows)
    ]
    return {name: [row[at] for row in rows] for at, name in enumerate(_COLUMNS)}

"""Reads a row of the ledger from its experiment's file, and refuses what could never be measured, drawn or expected."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlane.experiments import expressions, loader, sweep
from fairlane.experiments.model import Paper
from fairlane.experiments.sweep import Sweep
from fairlane.inputs import schema
from fairlane.inputs.located_toml import Document
from fairlane.paper import bounds, measures, reference, settling
from fairlane.paper.judge import Expectation, points_of
from fairlane.paper.row import Curve, Figure, Ledger, Row


@dataclass(frozen=True)
class _Tables:
    """The keys of `KEYS`, for their types."""

    curves: tuple[Curve, ...] = ()
    figures: tuple[Figure, ...] = ()
    expect: tuple[Expectation, ...] = ()
    ledger: Ledger | None = None
    measure: dict[str, Any] = field(default_factory=dict)


def is_row(document: Document) -> bool:
    """Whether a file has anything for the report."""
    return "expect" in document.values or "ledger" in document.values


def reference_file(path: Path) -> Path | None:
    """Where a row says that the results of another program are."""
    name = loader.read(path).values.get("ledger", {}).get("reference", "")
    return path.parent / name if name else None


def load(path: Path, quick: bool = False, at: Sequence[str] = (), seed: int | None = None) -> Row:
    """Read a row, and load the experiment of each of its points, so that no error comes half way. at: "AXIS=VALUE", the kept value of an
    axis. seed: instead of the file's. ConfigError names file, line and key."""
    document = loader.read(path)
    loader.check_mininet(document, path.stem)
    document = sweep.narrowed(document, at)
    if seed is not None:
        document = Document(document.name, {**document.values, "seeds": [seed]}, document.places)
    tables = schema.build(
        _Tables, Document(document.name, {k: v for k, v in document.values.items() if k in sweep.REPORT_KEYS}, document.places)
    )
    expanded = sweep.expand(sweep.without(document, sweep.REPORT_KEYS), quick)
    names = set()
    settings = None
    for point in expanded.points:
        if point.seed != expanded.seeds[0]:
            continue  # a seed decides nothing that could be refused
        experiment = loader.from_document(point.document, path.stem)
        settings = settings or experiment.settings
        names |= {group.name for group in experiment.settings.flows}
    measured = dict(tables.measure)
    expectations = list(tables.expect)
    if not expectations:
        # The checks of a single run are expectations of the median over seeds.
        for check in settings.checks:
            measured[check.metric] = f"= run.{check.metric}"
            expectations.append(Expectation(check.name, check.metric, low=check.low, high=check.high, paper=check.paper))
    for name, text in tables.measure.items():
        _check_measure(document, name, text, names | {"bottleneck", "all", "run"}, set(dict(expanded.points[0].names)))
    known = set(measured)
    for i, expectation in enumerate(tables.expect):
        _one_of(document, ("expect", i, "measure"), expectation.measure, known, "measure")
        for key in ("over", "any"):
            if getattr(expectation, key):
                _one_of(document, ("expect", i, key), getattr(expectation, key), set(expanded.axes), "axis")
        for key in ("where", "ratio_of", "ratio_to"):
            for axis in getattr(expectation, key):
                _one_of(document, ("expect", i, key), axis, set(expanded.axes), "axis")
    for i, figure in enumerate(tables.figures):
        for name in figure.curves:
            _one_of(document, ("figures", i, "curves"), name, {c.name for c in tables.curves}, "curve")
        if figure.y:
            _one_of(document, ("figures", i, "y"), figure.y, known, "measure")
            _one_of(document, ("figures", i, "x"), figure.x, set(expanded.axes) | known, "axis or measure")
        if figure.series:
            _one_of(document, ("figures", i, "series"), figure.series, set(expanded.axes), "axis")
    whole = loader.read(path)
    if tables.expect:
        bounds.check(whole, "expect", tables.expect, measured)
        expectations = _scaled(whole, tables.expect, expanded)
        if all(e.contradicts for e in expectations):
            raise document.error(
                ("expect",),
                "every expectation has 'contradicts', which never counts: add one for the figure that the arithmetic gives instead",
            )
    of_run = {check.metric: f"= run.{check.metric}" for check in settings.checks}
    bounds.check(whole, "checks", [Expectation(c.name, c.metric, low=c.low, high=c.high) for c in settings.checks], of_run)
    ledger = tables.ledger or Ledger(path.stem)
    beside = reference.load(document, path.parent, ledger.reference)
    for i, expectation in enumerate(tables.expect):
        if expectation.of_reference and (beside is None or not beside.has(expectation.measure)):
            raise document.error(("expect", i, "of_reference"), f"no [ledger] reference covers {expectation.measure!r}")
    opens = tuple({"parameter": o.parameter, "reason": o.reason, "effect": o.effect} for o in settings.open)
    return Row(
        path.stem,
        settings.title,
        settings.paper or Paper("-", "-", "-"),
        ledger,
        expanded,
        measured,
        tables.curves,
        tables.figures,
        tuple(expectations),
        opens,
        document,
        beside,
    )


def _scaled(whole: Document, expectations: Sequence[Expectation], chosen: Sweep) -> list[Expectation]:
    """Where fewer points than the file's are chosen, `at_least` is the same share of them, rounded up. ConfigError if it is more than there are."""
    points = [p.axes for p in sweep.expand(sweep.without(whole, (*sweep.REPORT_KEYS, "seeds"))).points]
    scaled = []
    for i, expectation in enumerate(expectations):
        total, there = points_of(expectation, points), points_of(expectation, [p.axes for p in chosen.points])
        if expectation.at_least > total:
            raise whole.error(("expect", i, "at_least"), f"can never hold: {expectation.at_least} of {total} points")
        scaled.append(
            dataclasses.replace(expectation, at_least=math.ceil(expectation.at_least * there / total) if expectation.at_least else 0)
        )
    return scaled


def _check_measure(document: Document, name: str, text: Any, owners: set[str], values: set[str]) -> None:
    path = ("measure", name)
    if not expressions.is_expression(text):
        raise document.error(path, 'expected an expression such as "= rap.mean_bps / tcp.mean_bps"')
    try:
        used = expressions.names_in(text)
    except SyntaxError as error:
        raise document.error(path, f"{text!r} is not an expression") from error
    for whole in sorted(used):
        owner, dot, attribute = whole.partition(".")
        if not dot:
            _one_of(document, path, owner, values, "axis or value of [let]")
            continue
        _one_of(document, path, owner, owners, "group of flows")
        known = {"bottleneck": measures.OF_BOTTLENECK, "run": (*loader.METRICS, *settling.OF_RUN)}.get(owner, measures.OF_FLOWS)
        _one_of(document, path, attribute, set(known), "figure")


def _one_of(document: Document, path: tuple, given: str, known: set[str], what: str) -> None:
    if given not in known:
        raise document.error(path, f"no {what} {given!r}{schema.nearest(given, sorted(known))}")

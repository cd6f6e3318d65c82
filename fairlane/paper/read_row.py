"""Reads a row of the ledger from its experiment's file, and refuses impossible measures, figures and expectations."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairlane.experiments import loader, sweep
from fairlane.experiments.model import Paper
from fairlane.experiments.sweep import Sweep
from fairlane.inputs import schema
from fairlane.inputs.located_toml import Document
from fairlane.paper import bounds, reference
from fairlane.paper.judge import Expectation, points_of
from fairlane.paper.row import Ledger, Row
from fairlane.studies import measures, read


@dataclass(frozen=True)
class _Tables(read.Tables):
    """The keys of `KEYS`, for their types."""

    expect: tuple[Expectation, ...] = ()
    ledger: Ledger | None = None


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
    expanded, settings, groups = read.runs(document, path.stem, quick)
    measured = measures.with_names(tables.measure, groups)
    expectations = list(tables.expect)
    if not expectations:
        # The checks of a single run are expectations of the median over seeds.
        for check in settings.checks:
            measured[check.metric] = f"= run.{check.metric}"
            expectations.append(Expectation(check.name, check.metric, low=check.low, high=check.high, paper=check.paper))
    read.check(document, measured, tables.curves, tables.figures, tables.compare, expanded, groups)
    compared, left_out = read.comparisons(document, tables.compare, expanded, sweep.axes_of(loader.read(path)))
    known = set(measured)
    for i, expectation in enumerate(tables.expect):
        read.one_of(document, ("expect", i, "measure"), expectation.measure, known, "measure")
        for key in ("over", "any"):
            if getattr(expectation, key):
                read.one_of(document, ("expect", i, key), getattr(expectation, key), expanded.axes, "axis")
        for key in ("where", "ratio_of", "ratio_to"):
            for axis in getattr(expectation, key):
                read.one_of(document, ("expect", i, key), axis, expanded.axes, "axis")
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
    shorter_s = document.values.get("quick", {}).get("duration_s") if quick else None
    opens = tuple({"parameter": o.parameter, "reason": o.reason, "effect": o.effect} for o in settings.open)
    return Row(
        id=path.stem,
        title=settings.title,
        sweep=expanded,
        measures=measured,
        curves=tables.curves,
        figures=tables.figures,
        comparisons=compared,
        left_out=left_out,
        document=document,
        duration_s=shorter_s,
        paper=settings.paper or Paper("-", "-", "-"),
        ledger=ledger,
        expectations=tuple(expectations),
        open=opens,
        reference=beside,
        ran=_ran(whole, expanded, shorter_s) if quick or at or seed is not None else "",
    )


def _ran(whole: Document, chosen: Sweep, duration_s: float | None) -> str:
    """`Row.ran`: what is chosen of a file's sweep."""
    full = sweep.expand(sweep.without(whole, sweep.REPORT_KEYS))
    parts = []
    points, of = (len({p.axes for p in one.points}) for one in (chosen, full))
    if points < of:
        parts.append(f"{points} of {of} points")
    if not set(full.seeds) <= set(chosen.seeds):
        parts.append(f"{len(chosen.seeds)} of {len(full.seeds)} seeds")
    if duration_s is not None:
        parts.append(f"{duration_s:g} s of time")
    return ", ".join(parts)


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

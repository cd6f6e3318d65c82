"""`index.html` of a study: figures, comparisons and tables in one self-contained file."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jinja2

from fairlane.results import result_folder
from fairlane.studies import compare, drawing, intervals, tables, units
from fairlane.studies.collect import Axes, Collected
from fairlane.studies.study import FEW_SEEDS, Study

FILE = "index.html"
_DIGITS = 3
"""Of a mean beside its interval."""


def environment(folder: Path) -> jinja2.Environment:
    """For the templates of a folder, and those of studies that they include."""
    loader = jinja2.FileSystemLoader([folder, Path(__file__).parent])
    found = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    found.filters["number"] = units.number
    return found


def table(study: Study, results: Mapping[Axes, list[dict[str, Any]]]) -> tuple[list[str], list[list[str]]]:
    """Heads and lines: each point with the mean of each measure over seeds and its 95% interval, as people write numbers."""
    lines = []
    for axes, runs in results.items():
        cells = [units.written(v, units.of_name(k)) for k, v in axes]
        for name, text in study.measures.items():
            unit = units.of_measure(name, text)
            values = [v for run in runs if (v := run["values"][name]) is not None]
            mean = units.written(statistics.fmean(values), unit, _DIGITS) if values else "–"
            ends = intervals.of_mean(values)
            between = units.between(*ends, unit, _DIGITS) if ends else mean
            cells.append(mean if between == mean else f"{mean} ({between})")
        lines.append(cells)
    return [*study.sweep.axes, *study.measures], lines


def warnings(collected: Collected) -> list[str]:
    """What a reader must know before the figures."""
    study, found = collected.study, []
    if len(study.sweep.seeds) < FEW_SEEDS:
        seeds = len(study.sweep.seeds)
        found.append(
            f"{seeds} {'seeds' if seeds > 1 else 'seed'}: intervals over fewer than {FEW_SEEDS} seeds are too narrow, or missing. Give 'seeds' more values."
        )
    found += study.left_out
    found += [f"{name} failed and is left out: {reason}." for name, reason in collected.failed.items()]
    unmeasured = {
        m: n for m in study.measures if (n := sum(run["values"].get(m) is None for at in collected.results.values() for run in at))
    }
    found += [f"{name} could not be measured in {count} {'runs' if count > 1 else 'run'}." for name, count in unmeasured.items()]
    return found


def comparisons(study: Study, effects: Sequence[compare.Effect]) -> list[dict[str, Any]]:
    """For the page: of each comparison its title, heads and lines of (cells, whether the interval leaves out no difference)."""
    shown = []
    for comparison in study.comparisons:
        own = [e for e in effects if e.comparison is comparison]
        of, to = compare.sides(comparison)
        unit = units.of_measure(comparison.measure, study.measures[comparison.measure])
        heads = [
            *(k for k, _ in (own[0].at if own else ())),
            "pairs",
            of,
            to,
            f"{of} − {to}",
            "95% interval",
            f"{of} / {to}",
            "95% interval",
        ]
        lines = []
        for e in own:
            cells = [units.written(v, units.of_name(k)) for k, v in e.at]
            cells += [str(e.pairs), *(units.written(v, unit, _DIGITS) for v in (e.mean_of, e.mean_to, e.difference))]
            cells += ["–" if e.difference_interval is None else units.between(*e.difference_interval, unit, _DIGITS)]
            cells += [units.number(e.ratio, _DIGITS), "–" if e.ratio_interval is None else units.between(*e.ratio_interval, digits=_DIGITS)]
            lines.append((cells, e.differs))
        shown.append(
            {"title": comparison.title or f"{units.titled(comparison.measure)}: {of} against {to}", "heads": heads, "lines": lines}
        )
    return shown


def write(
    collected: Collected,
    effects: Sequence[compare.Effect],
    folder: Path,
    files: Sequence[Path],
    expectations: Sequence[Mapping[str, Any]] = (),
) -> Path:
    """The page in `folder`; it appears whole. files: what lies beside it. expectations: `name`, `expected`, `found` and `holds` of each, where the file
    states some."""
    study = collected.study
    heads, lines = table(study, collected.results)
    names = drawing.names(study)
    text = (
        environment(Path(__file__).parent)
        .get_template("page.html")
        .render(
            study=study,
            version=version("fairlane"),
            runs=sum(map(len, collected.results.values())),
            axes=[(name, ", ".join(units.written(v, units.of_name(name)) for v in values)) for name, values in study.sweep.axes.items()],
            measures=[(name, units.of_measure(name, text), text.removeprefix("=").strip()) for name, text in study.measures.items()],
            warnings=warnings(collected),
            figures=[(f.title, name, drawing.draw(study, f, collected.results)) for f, name in zip(study.figures, names)],
            comparisons=comparisons(study, effects),
            expectations=expectations,
            heads=heads,
            lines=lines,
            files=sorted(str(path.relative_to(folder)) for path in files if path.parent == folder),
            again=tables.command(study.files),
        )
    )
    return result_folder.write_whole(folder / FILE, text)

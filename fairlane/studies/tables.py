"""A study's tables, units in their columns' names.

    runs.csv, runs.parquet      one row per run: axes, seed, measures, and the data to repeat the run
    points.csv                  one row per point: for each measure the mean over seeds and the ends of its 95% interval
    comparisons.csv             one row per pair of points
    study.toml, files/          the study with all inherited parts, and the user's own algorithms, P4 files and traces
    made.json                   the origin of the results (`fairlane.results.made`)

The same results give the same bytes. pandas is imported at its first use, so the command line does not wait for it.
"""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlane import user_files
from fairlane.inputs import toml_text
from fairlane.results import made, result_folder
from fairlane.studies import compare, intervals, programs, traces, units
from fairlane.studies.collect import Collected
from fairlane.studies.study import OwnFiles, Study

if TYPE_CHECKING:
    import pandas as pd

REDO = ("fairlane_version", "inputs_sha256", "records_sha256")
"""Columns after the measures: Fairlane's version; digests of all that decides the run (file, algorithms, sources), and of its raw records."""


def columns(study: Study) -> dict[str, str]:
    """The column of each measure."""
    return {name: units.column(name, text) for name, text in study.measures.items()}


def rows(collected: Collected) -> tuple[list[str], list[list[Any]]]:
    """Heads and rows of `runs.csv`."""
    study = collected.study
    release = version("fairlane")
    lines = [
        [
            *(v for _, v in at),
            run["seed"],
            *(run["values"].get(name) for name in study.measures),
            release,
            run["inputs"],
            run["records_sha256"],
        ]
        for at, runs in collected.results.items()
        for run in runs
    ]
    return [*study.sweep.axes, "seed", *columns(study).values(), *REDO], lines


def frame(collected: Collected) -> pd.DataFrame:
    """The same as a pandas frame."""
    import pandas as pd

    heads, lines = rows(collected)
    measured = set(columns(collected.study).values())
    return pd.DataFrame(lines, columns=heads).astype({name: "float64" for name in heads if name in measured})


def points(collected: Collected) -> tuple[list[str], list[list[Any]]]:
    """Heads and rows of `points.csv`. The mean is over the seeds that could be measured; `NAME_seeds` is their number."""
    named = columns(collected.study)
    heads = [*collected.study.sweep.axes]
    for name in named.values():
        heads += [name, f"{name}_low", f"{name}_high", f"{name}_seeds"]
    lines = []
    for at, runs in collected.results.items():
        line: list[Any] = [v for _, v in at]
        for name in named:
            values = [v for run in runs if (v := run["values"].get(name)) is not None]
            low, high = intervals.of_mean(values) or (None, None)
            line += [_short(statistics.fmean(values)) if values else None, _short(low), _short(high), len(values)]
        lines.append(line)
    return heads, lines


def comparisons(study: Study, effects: Sequence[compare.Effect]) -> tuple[list[str], list[list[Any]]]:
    """Heads and rows of `comparisons.csv`."""
    heads = ["measure", "of", "to", *study.sweep.axes, "pairs", "mean_of", "mean_to"]
    heads += ["difference", "difference_low", "difference_high", "ratio", "ratio_low", "ratio_high"]
    named = columns(study)
    lines = []
    for e in effects:
        at = dict(e.at)
        numbers = (
            e.mean_of,
            e.mean_to,
            e.difference,
            *(e.difference_interval or (None, None)),
            e.ratio,
            *(e.ratio_interval or (None, None)),
        )
        lines.append(
            [
                named[e.comparison.measure],
                *compare.sides(e.comparison),
                *(at.get(a) for a in study.sweep.axes),
                e.pairs,
                *map(_short, numbers),
            ]
        )
    return heads, lines


def _short(value: float | None) -> float | None:
    """Ten digits: more are the error of sums, which differs between processors."""
    return None if value is None else float(f"{value:.10g}")


def write(collected: Collected, effects: Sequence[compare.Effect], folder: Path) -> list[Path]:
    """Every table, each whole; the Parquet file where pyarrow is installed."""
    study = collected.study
    tables = {"runs.csv": rows(collected), "points.csv": points(collected)}
    if study.comparisons:
        tables["comparisons.csv"] = comparisons(study, effects)
    written = [result_folder.write_whole(folder / name, _csv(*table)) for name, table in tables.items()]
    if has_parquet():
        data = io.BytesIO()
        frame(collected).to_parquet(data, index=False)
        written.append(result_folder.write_whole(folder / "runs.parquet", data.getvalue()))
    kept_traces = traces.of_study(study)
    names, texts = programs.of_study(study)
    names |= {name: kept for name, (kept, _) in kept_traces.items()}
    texts |= {f"{user_files.KEPT}/{name}": text for name, text in (*study.files.algorithms, *study.files.programs)}
    texts |= {f"{user_files.KEPT}/schemes/{name}": text for name, text in study.files.schemes}
    texts |= dict(kept_traces.values())
    written.append(result_folder.write_whole(folder / "study.toml", _again(study, names)))
    return [*written, *made.write(folder, texts)]


def has_parquet() -> bool:
    """Whether the extra that writes Parquet is installed."""
    return find_spec("pyarrow") is not None


def _csv(heads: Sequence[str], lines: Sequence[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows(lines)
    return text.getvalue()


def command(files: OwnFiles, name: str = "study.toml") -> str:
    """What does the study again, in its folder."""
    options = [f" --algorithm files/{name}" for name, _ in files.algorithms] + [f" --program files/{name}" for name, _ in files.programs]
    options += [f" --scheme files/schemes/{name}" for name in files.scheme_folders]
    return f"fairlane sweep {name}{''.join(options)}"


def _again(study: Study, names: Mapping[str, str]) -> str:
    """The study as one file: what it inherits is in it. names: of its traces, programs and control planes, in the folder."""
    values = {key: value for key, value in study.document.values.items() if key != "inherits"}
    values = traces.everywhere({**values, "sweep": study.sweep.axes, "measure": study.measures}, names)
    values["seeds"] = list(study.sweep.seeds)
    values = {key: value for key, value in values.items() if key not in ("seed", "quick", "mininet", "ledger", "expect")}
    head = (
        f"# {study.id} by Fairlane {version('fairlane')}, with all that it inherits. In this folder: {command(study.files)} --out AGAIN\n\n"
    )
    return head + toml_text.table(values)

"""`fairlane report DIR...`: compares finished runs of any experiments and fabrics, using only their results."""

from __future__ import annotations

import io
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jinja2
import matplotlib
import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

from fairlane.errors import Refusal
from fairlane.fabrics import places
from fairlane.inputs import located_json, schema
from fairlane.inputs.located_toml import Document, KeyPath
from fairlane.results import palette, result_folder

matplotlib.use("Agg")
import matplotlib.pyplot as plt

_KEYS: dict[str, Any] = {
    "experiment": str,
    "fabric": str,
    "target": str,
    "seed": int,
    "version": str,
    "duration_s": float,
    "window_s": tuple[float, float],
    "flows": list,
    "kinds": list,
    "links": list,
    "checks": list,
}
_PARTS: dict[str, dict[str, Any]] = {
    "kinds": {
        "kind": str,
        "flows": int,
        "mean_goodput_bps": float | None,
        "mean_loss_fraction": float | None,
        "share": float | None,
        "jain_index": float | None,
    },
    "links": {"name": str, "rate_bps": float, "utilisation": float | None, "mean_queue_packets": float | None},
    "checks": {"name": str, "value": float | None, "low": float | None, "high": float | None, "holds": bool},
}
"""Keys of each table of a list."""
_REASON = {"verdict": str, "what": str}
_FLOW_COLUMNS, _LINK_COLUMNS = ("time_s", "flow", "kind", "goodput_bps"), ("time_s", "link", "queue_packets")
_WORDS = {"flow", "kind", "link"}
_MOST = 1e18
"""Beyond any rate or queue."""
_STYLE: dict[Any, Any] = {
    "figure.figsize": (6.4, 3.4),
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "svg.fonttype": "none",
    "svg.hashsalt": "fairlane",
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}


@dataclass(frozen=True)
class Finished:
    """A run's results. name: how tables call it. summary: as in docs/results.md. flows, links: its tables over time."""

    name: str
    folder: Path
    summary: dict[str, Any]
    flows: pd.DataFrame
    links: pd.DataFrame

    @property
    def clock(self) -> str:
        return places.clock_of(self.summary["fabric"])

    @property
    def switch(self) -> str:
        """What ran the P4 program."""
        return places.switch_of(self.summary["target"])

    @property
    def link(self) -> dict[str, Any]:
        """The one that the experiment follows; of results that do not name it, the busiest."""
        links = self.summary["links"]
        named = [link for link in links if link["name"] == self.summary.get("bottleneck")]
        return named[0] if named else max(links, key=lambda link: link["utilisation"] or 0.0)

    @property
    def checks(self) -> str:
        checks = self.summary["checks"]
        by_hand = ", changed by hand" if self.summary.get("live_changes") else ""
        doubt = "" if self.fidelity["verdict"] == "true" else f", figures {self.fidelity['verdict']}"
        return (f"{sum(c['holds'] for c in checks)} of {len(checks)}" if checks else "none") + by_hand + doubt

    @property
    def fidelity(self) -> dict[str, Any]:
        """How true the run was; of results that do not say, "true" and no reasons."""
        return self.summary.get("fidelity") or {"verdict": "true", "reasons": []}


def load(folders: Sequence[Path]) -> list[Finished]:
    """The results in each folder. Refusal names the folder that holds none, and why."""
    runs: list[Finished] = []
    for folder, name in zip(folders, _names(folders)):
        if any(run.folder.resolve() == folder.resolve() for run in runs):
            raise Refusal(f"{folder} is given twice.")
        runs.append(_load(folder, name))
    return runs


def _names(folders: Sequence[Path]) -> list[str]:
    """As many of the last parts of a path as tell the folders apart, two at least."""
    parts = [folder.absolute().parts for folder in folders]
    for count in range(2, max(map(len, parts), default=2) + 1):
        names = ["/".join(p[-count:]) for p in parts]
        if len(set(names)) == len(names):
            return names
    return [str(folder) for folder in folders]


def _load(folder: Path, name: str) -> Finished:
    if not folder.is_dir():
        raise Refusal(f"{folder}: no such folder. Give folders that 'fairlane run' wrote, such as results/als-3/TIME-seed1.")
    path = folder / "summary.json"
    if not path.is_file():
        inside = sorted(p.parent for p in folder.glob("*/summary.json"))
        hint = "is a report of many runs and keeps only their measures" if (folder / "points").is_dir() else "has no summary.json"
        hint += f"; it contains results, such as {inside[0]}" if inside else ""
        raise Refusal(f"{folder}: not the results of a run: it {hint}. Give folders that 'fairlane run' wrote.")
    document = located_json.read(path)
    summary = document.values
    _check(document, (), _KEYS)
    for part, keys in _PARTS.items():
        for i in range(len(summary[part])):
            _check(document, (part, i), keys)
    if summary["duration_s"] <= 0:
        raise document.error(("duration_s",), f"must be positive, got {summary['duration_s']:g} s")
    if summary.get("fidelity") is not None:
        _check(document, ("fidelity",), {"verdict": str, "reasons": list})
        for i in range(len(summary["fidelity"]["reasons"])):
            _check(document, ("fidelity", "reasons", i), _REASON)
    if not summary["flows"] or not summary["links"]:
        raise Refusal(f"{path}: a run without {'links' if summary['flows'] else 'flows'} has nothing to compare.")
    return Finished(name, folder, summary, _table(folder / "flows.csv", _FLOW_COLUMNS), _table(folder / "links.csv", _LINK_COLUMNS))


def _check(document: Document, path: KeyPath, keys: Mapping[str, Any]) -> None:
    """ConfigError for a table that lacks one of the keys, or has it with another type."""
    table = document.at(path)
    if not isinstance(table, dict):
        raise document.error(path, "expected a table. Give a folder as this version of 'fairlane run' wrote it.")
    for key, kind in keys.items():
        if key not in table:
            raise document.error((*path, key), "is missing. Give a folder as this version of 'fairlane run' wrote it.")
        schema.convert(kind, document, (*path, key))


def _table(path: Path, columns: tuple[str, ...]) -> pd.DataFrame:
    try:
        table = pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise Refusal(
            f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}. Give a folder as 'fairlane run' wrote it."
        ) from error
    missing = [c for c in columns if c not in table.columns]
    if missing:
        raise Refusal(f"{path}: no column {missing[0]}. Give a folder as 'fairlane run' wrote it.")
    for column in columns:
        if column in _WORDS:
            table[column] = table[column].astype(str)
            continue
        numbers = pd.to_numeric(table[column], errors="coerce").astype(float)
        # A cell may be empty, but a time; nothing else than a number may be in it.
        wrong = (numbers.isna() & (table[column].notna() | (column == "time_s"))) | (numbers.abs() > _MOST)
        if wrong.any():
            row = int(wrong.to_numpy().argmax())
            raise Refusal(f"{path}:{row + 2}: {column}: {str(table[column].iloc[row])[:100]!r} is not a number that can be drawn.")
        table[column] = numbers
    return table


HEADS = (
    "run",
    "experiment",
    "clock",
    "switch",
    "seed",
    "kind",
    "flows",
    "goodput of a flow, Mb/s",
    "loss %",
    "share %",
    "Jain",
    "link",
    "utilisation",
    "queue, packets",
    "checks that hold",
)
TEXTS = {"run", "experiment", "clock", "switch", "kind", "link"}
"""Heads of columns that are words."""


def rows(runs: Sequence[Finished]) -> list[list[str]]:
    """For each run a line for each kind of flow; the run's own values are in the first."""
    lines = []
    for run in runs:
        link = run.link
        for number, kind in enumerate(run.summary["kinds"]):
            own = [run.name, run.summary["experiment"], run.clock, run.switch, str(run.summary["seed"])]
            link_own = [link["name"], _number(link["utilisation"], 3), _number(link["mean_queue_packets"], 1), run.checks]
            lines.append(
                [
                    *(own if number == 0 else [""] * len(own)),
                    palette.label(kind["kind"]),
                    str(kind["flows"]),
                    _number(kind["mean_goodput_bps"], 3, 1e-6),
                    _number(kind["mean_loss_fraction"], 2, 100),
                    _number(kind["share"], 1, 100),
                    _number(kind["jain_index"], 3),
                    *(link_own if number == 0 else [""] * len(link_own)),
                ]
            )
    return lines


def _number(value: float | None, digits: int, times: float = 1.0) -> str:
    return "–" if value is None or math.isnan(value) else f"{value * times:.{digits}f}"


_ON_TERMINAL = {
    "kind": "kind",
    "flows": "flows",
    "goodput of a flow, Mb/s": "Mb/s of\na flow",
    "loss %": "loss\n%",
    "share %": "share\n%",
    "Jain": "Jain",
    "utilisation": "utili-\nsation",
    "queue, packets": "queue,\npackets",
    "checks that hold": "checks\nhold",
}
"""Columns of the table on a terminal of 80 characters, by their heads on the page. Each run's line above the table has the rest."""


def show(runs: Sequence[Finished], console: Console) -> None:
    """Each run by a number, one table on the terminal, and what does not hold."""
    for number, run in enumerate(runs, 1):
        own = f"{run.summary['experiment']}, seed {run.summary['seed']}, {run.clock}, switches {run.switch}, link {run.link['name']}"
        console.print(f"run {number}: {run.name} ({own})", highlight=False, markup=False, soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD, padding=0)
    table.add_column("run", justify="right")
    for head, shown in _ON_TERMINAL.items():
        table.add_column(shown, justify="left" if head in TEXTS else "right", overflow="fold")
    number = 0
    for line in rows(runs):
        if line[0]:
            number += 1
            table.add_section()
        table.add_row(str(number) if line[0] else "", *(line[HEADS.index(head)] for head in _ON_TERMINAL))
    console.print(table)
    for number, run in enumerate(runs, 1):
        for reason in run.fidelity["reasons"]:
            console.print(f"run {number}: {reason['verdict']}: {reason['what']}", highlight=False, markup=False, soft_wrap=True)
        for check in run.summary["checks"]:
            if not check["holds"]:
                console.print(
                    f"run {number}: {check['name']}: {_number(check['value'], 4)}, expected {_range(check)}",
                    highlight=False,
                    markup=False,
                    soft_wrap=True,
                )


def _range(check: dict[str, Any]) -> str:
    low, high = check["low"], check["high"]
    if low is None and high is None:
        return "anything"
    return f"at most {high:g}" if low is None else f"at least {low:g}" if high is None else f"{low:g} to {high:g}"


def check_out(path: Path) -> None:
    """Refusal unless a page can be written there."""
    if path.suffix != ".html":
        raise Refusal(f"--out {path}: the name of a page must end with .html")
    if os.path.lexists(path):
        raise _exists(path)
    if not path.absolute().parent.is_dir():
        raise Refusal(f"--out {path}: no folder {path.absolute().parent}")


def _exists(path: Path) -> Refusal:
    return Refusal(f"--out {path}: exists already, and is not overwritten. Give another name, or remove it.")


def write(runs: Sequence[Finished], path: Path) -> None:
    """A page that fetches nothing: the table, each run's rates and queue, its checks."""
    pictures = []
    for number, run in enumerate(runs):
        # Runs over a link of the same rate are read against each other: on the same scales.
        alike = [other for other in runs if other.link["rate_bps"] == run.link["rate_bps"]]
        longest, rate, queue = (max(of(other) for other in alike) for of in (lambda r: r.summary["duration_s"], _top, _longest_queue))
        pictures.append(
            (
                run,
                svg(partial(_draw_rates, run=run, longest=longest, top=rate), f"r{number}"),
                svg(partial(_draw_queue, run=run, longest=longest, top=queue), f"q{number}"),
            )
        )
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    text = environment.get_template("compare.html").render(
        heads=HEADS,
        texts=[head in TEXTS for head in HEADS],
        lines=rows(runs),
        pictures=pictures,
        expected=_range,
        number=_number,
        version=version("fairlane"),
        clocks=len({run.clock for run in runs}),
        windows=len({tuple(run.summary["window_s"]) for run in runs}),
    )
    try:
        result_folder.write_new(path, text)
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        raise Refusal(f"--out {path}: cannot be written: {error.strerror}") from error


def _top(run: Finished) -> float:
    """A bound for rates that does not give a slow start's burst the whole picture."""
    settled = run.flows[run.flows["time_s"] > run.summary["window_s"][0]]["goodput_bps"]
    top = settled.max() if settled.notna().any() else run.flows["goodput_bps"].max()
    return 0.0 if math.isnan(top) else 1.15 * float(top)


def _queue(run: Finished) -> pd.DataFrame:
    return run.links[run.links["link"] == run.link["name"]]


def _longest_queue(run: Finished) -> float:
    """0 where no queue was known."""
    longest = _queue(run)["queue_packets"].max()
    return 0.0 if math.isnan(longest) else float(longest)


def svg(draw: Callable[[Any], None], prefix: str) -> str:
    """A drawing, over time where it says nothing else, as an SVG element of a page. prefix: of its ids, one for each drawing of the page."""
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots()
        axes.set_xlabel("time, s")
        draw(axes)
        handles, labels = axes.get_legend_handles_labels()
        if labels:
            axes.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=8)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
        plt.close(figure)
    drawn = text.getvalue()
    drawn = drawn[drawn.index("<svg") :]
    # Several drawings in one page: ids must differ.
    drawn = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', drawn)
    return re.sub(r'(url\(#|href="#)', rf"\1{prefix}-", drawn)


def _draw_rates(axes: Any, run: Finished, longest: float, top: float) -> None:
    window = run.summary["window_s"]
    axes.axvspan(window[0], window[1], color="0.94", zorder=0)
    for kind in dict.fromkeys(run.flows["kind"]):
        for number, (_, flow) in enumerate(run.flows[run.flows["kind"] == kind].groupby("flow", sort=False)):
            axes.plot(
                flow["time_s"],
                flow["goodput_bps"] / 1e6,
                color=palette.of_kind(kind),
                linestyle=palette.line(kind),
                linewidth=1.6 if number == 0 else 0.8,
                alpha=1.0 if number == 0 else 0.5,
                label=palette.label(kind) if number == 0 else None,
            )
    axes.set_xlim(0, longest)
    axes.set_ylim(0, top / 1e6 if top > 0 else 1.0)
    axes.set_ylabel("goodput, Mb/s")


def _draw_queue(axes: Any, run: Finished, longest: float, top: float) -> None:
    link = _queue(run)
    axes.plot(link["time_s"], link["queue_packets"], color=palette.QUEUE, linewidth=0.9)
    axes.set_xlim(0, longest)
    axes.set_ylim(0, 1.1 * top if top > 0 else 1.0)
    axes.set_ylabel("queue, packets")

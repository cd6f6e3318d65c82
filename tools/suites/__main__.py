"""Measures the tables of `docs/suites.md` anew and writes them there: `python -m tools.suites [TABLE ...]`; all three by default.

A table stands between the lines `<!-- table: NAME -->` and `<!-- end of table -->`. Cases run in as many processes as `--workers`; seed 1.
"""

from __future__ import annotations

import argparse
import datetime
import math
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlane.hosts.algorithms import ALGORITHMS
from fairlane.schemes import registry
from fairlane.suites import cases

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/suites.md"
WIRELESS = ("nada", "scream", "gcc", "rcp", "tfrc", "cbr")
"""Senders of the table of rfc8869, whose cases take minutes."""
QUEUES = (registry.DROPTAIL, *(scheme.name for scheme in registry.SCHEMES.values() if any(counter.cause for counter in scheme.counters)))
"""Those that drop packets."""
NAMES = {
    "least_use": "use",
    "least_total_use": "use",
    "most_queueing_s": "queue",
    "most_loss": "loss",
    "lowest_ratio_20s": "ratio",
    "least_of_reference": "reference",
    "least_of_reference_beside_tcp": "reference",
    "queueing_over_reference_s": "queue above",
    "loss_over_reference": "loss above",
    "lowest_media_bps": "rate",
    "use_after_cross": "after",
    "priority_ratio": "priority",
    "lowest_share": "share",
    "lowest_tcp_share": "TCP's share",
    "lowest_cross_ratio": "beside TCP",
    "most_swings": "swings",
    "longest_completion_s": "file",
}
"""What a cell calls a figure that did not pass."""


@dataclass(frozen=True)
class Run:
    """One case: sender, or queue, of a table's row or column."""

    path: Path
    kind: str
    queue: str | None = None


@dataclass(frozen=True)
class Outcome:
    case: str
    passes: bool
    failed: tuple[tuple[str, float], ...]
    figures: Mapping[str, float]


def measure(run: Run) -> Outcome:
    judged = cases.run(cases.load(run.path, run.kind, cases.Options(run.queue)))
    failed = tuple((check["figure"], check["value"]) for check in judged.checks if not check["holds"])
    return Outcome(judged.case.suite.case, judged.passes, failed, judged.figures)


def senders() -> list[str]:
    """All that a media suite takes, but those whose routers TCP cannot share."""
    return [name for name, kind in sorted(ALGORITHMS.items()) if not kind.layered and name not in ("abc", "xcp")]


def value(figure: str, found: float) -> str:
    """Of a cell: a rate in kb/s, all else as it is."""
    return "not measured" if math.isnan(found) else f"{found / 1000:.0f}" if figure.endswith("_bps") else f"{found:.3g}"


def failures(outcome: Outcome) -> str:
    return ", ".join(f"{NAMES.get(figure, figure)} {value(figure, found)}" for figure, found in outcome.failed)


def of_queues(outcome: Outcome) -> str:
    """Used part of the link, mean wait, and the longest completion."""
    figures = outcome.figures
    done = figures["longest_completion_s"]
    text = f"{figures['least_total_use']:.2f}, {1000 * figures['most_queueing_s']:.0f} ms" + ("" if math.isnan(done) else f", {done:.1f} s")
    kept = {"least_total_use", "most_queueing_s", "longest_completion_s"}
    names = [
        {"queue": "wait"}.get(NAMES[figure], NAMES[figure]) if figure in kept else f"{NAMES[figure]} {value(figure, found)}"
        for figure, found in outcome.failed
    ]
    return text + (f" (fails: {', '.join(names)})" if names else "")


def by_sender(runs: Sequence[Run], found: Sequence[Outcome]) -> list[str]:
    """A row for each sender, those that pass most first."""
    names = list(dict.fromkeys(outcome.case for outcome in found))
    kinds = {kind: [outcome for run, outcome in zip(runs, found) if run.kind == kind] for kind in dict.fromkeys(run.kind for run in runs)}
    rows = [f"| sender | passes, of {len(names)} | {' | '.join(names)} |", "|---" * (len(names) + 2) + "|"]
    for kind, outcomes in sorted(kinds.items(), key=lambda item: -sum(outcome.passes for outcome in item[1])):
        cells = ["passes" if outcome.passes else failures(outcome) for outcome in outcomes]
        rows.append(f"| [{kind}](algorithms/{kind}.md) | {sum(o.passes for o in outcomes)} | {' | '.join(cells)} |")
    return rows


def by_case(runs: Sequence[Run], found: Sequence[Outcome]) -> list[str]:
    """A row for each case and a column for each sender, or queue."""
    columns = list(dict.fromkeys(run.queue or run.kind for run in runs))
    cells = {(outcome.case, run.queue or run.kind): outcome for run, outcome in zip(runs, found)}
    names = list(dict.fromkeys(outcome.case for outcome in found))
    passes = [sum(cells[name, column].passes for name in names) for column in columns]
    rows = [f"| case | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    rows.append(f"| passes, of {len(names)} | {' | '.join(map(str, passes))} |")
    for name in names:
        shown = [cells[name, column] for column in columns]
        texts = [of_queues(o) if runs[0].queue else "passes" if o.passes else failures(o) for o in shown]
        rows.append(f"| {name} | {' | '.join(texts)} |")
    return rows


def _runs(suite: str, kinds: Iterable[str], queues: Sequence[str | None] = (None,)) -> list[Run]:
    return [Run(path, kind, queue) for kind in kinds for queue in queues for path in cases.files(suite)]


TABLES: dict[str, tuple[Callable[[], list[Run]], Callable[[Sequence[Run], Sequence[Outcome]], list[str]]]] = {
    "rfc8867": (lambda: _runs("rfc8867", senders()), by_sender),
    "rfc8869": (lambda: _runs("rfc8869", WIRELESS), by_case),
    "rfc7928": (lambda: _runs("rfc7928", ("tcp-sack",), QUEUES), by_case),
}


def replaced(page: str, name: str, rows: Sequence[str]) -> str:
    """The page with a table in place of the one of that name. ValueError: it has none."""
    place = re.compile(rf"(<!-- table: {re.escape(name)} -->\n).*?(<!-- end of table -->)", re.DOTALL)
    text = "".join(f"{row}\n" for row in rows)
    found, count = place.subn(lambda match: match[1] + text + match[2], page)
    if count != 1:
        raise ValueError(f"docs/suites.md: {count} tables are called {name}")
    return found


def made(seconds: float) -> str:
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    return f"Measured at {commit}, {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}, seed 1; {seconds / 60:.0f} min."


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.suites", description=__doc__)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"of {', '.join(TABLES)} (default: all)")
    parser.add_argument("--workers", type=int, default=1, help="processes (default: %(default)s)")
    given: Any = parser.parse_args()
    unknown = [name for name in given.tables if name not in TABLES]
    if unknown:
        parser.error(f"no table {unknown[0]}: there are {', '.join(TABLES)}")
    for name in given.tables or TABLES:
        plan, draw = TABLES[name]
        runs = plan()
        begun = datetime.datetime.now(datetime.timezone.utc)
        found = []
        with ProcessPoolExecutor(given.workers) as pool:
            for run, outcome in zip(runs, pool.map(measure, runs)):
                found.append(outcome)
                print(
                    f"{name} {run.kind} {run.queue or ''} {outcome.case}: {'passes' if outcome.passes else failures(outcome)}",
                    file=sys.stderr,
                )
        seconds = (datetime.datetime.now(datetime.timezone.utc) - begun).total_seconds()
        rows = [made(seconds), "", *draw(runs, found)]
        PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), name, rows), encoding="utf-8")


if __name__ == "__main__":
    main()

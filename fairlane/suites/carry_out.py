"""`fairlane suite`: all cases of a suite with one sender, and their page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from fairlane import user_files
from fairlane.errors import Refusal
from fairlane.fabrics.interrupts import interruptible
from fairlane.results import made, result_folder
from fairlane.suites import cases, page
from fairlane.suites.cases import Judged, Options

RTP = "rtp"
"""The folder of the logs of RTP packets."""


def kind_of(algorithm: str) -> str:
    """The flow kind that `--algorithm` means: itself, or the only one of a Python file. Refusal for a file with several."""
    if not algorithm.endswith(".py"):
        return algorithm
    kinds = user_files.use_algorithm(algorithm)
    if len(kinds) != 1:
        raise Refusal(f"--algorithm {algorithm}: lists {', '.join(kinds)}: a suite takes a file with one kind")
    return kinds[0]


def carry_out(
    suite: str, algorithm: str, out: Path | None, console: Console, options: Options, rtp_log: bool = False, only: Sequence[str] = ()
) -> bool:
    """Runs all cases, or only those named, and writes suite.json and the page to `out`; whether all cases pass. rtp_log: also the packets of each case, to rtp/CASE/. Refusal, before anything runs, for an unknown suite or
    sender, or a folder that exists. RunFailed: a run ended early."""
    files = cases.files(suite, only)
    kind = kind_of(algorithm)
    chosen = [cases.load(path, kind, options) for path in files]
    folder = result_folder.ResultFolder.reserve(out, f"{suite}-{kind}", chosen[0].experiment.seed)
    try:
        with interruptible():
            made.write(folder.work, user_files.of_experiments(case.experiment for case in chosen))
            judged = []
            for case in chosen:
                judged.append(cases.run(case, folder.work / RTP / case.suite.case if rtp_log else None))
                _say(judged[-1], console)
            page.write(suite, kind, options, judged, folder.work)
            final = folder.publish()
    except BaseException:
        folder.discard()
        raise
    console.print(_table(judged))
    console.print(f"results: {final}/{page.PAGE}", highlight=False, soft_wrap=True)
    return all(j.passes for j in judged)


def _say(judged: Judged, console: Console) -> None:
    failed = [check["name"] for check in judged.checks if not check["holds"]]
    text = f"fails: {'; '.join(failed)}" if failed else "passes"
    console.print(f"{judged.case.experiment.settings.title}: {text}", highlight=False, markup=False, soft_wrap=True)


def _table(judged: list[Judged]) -> Table:
    table = Table("case", "passes", "least use", "most queueing, ms", "most loss, %", "shares", "ratio in 20 s", title_justify="left")
    for j in judged:
        f = j.figures
        cells = (
            f"{f['least_use']:.2f}",
            f"{1000 * f['most_queueing_s']:.0f}",
            f"{100 * f['most_loss']:.2f}",
            f"{f['lowest_share']:.2f} to {f['highest_share']:.2f}",
            "–" if math.isnan(f["lowest_ratio_20s"]) else f"{f['lowest_ratio_20s']:.2f}",
        )
        table.add_row(j.case.suite.case, "yes" if j.passes else "NO", *cells)
    return table

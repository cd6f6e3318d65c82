"""NADA and SCReAM beside their authors' code on the link of [RFC 8867 sec 5.1]: rate and delay over time, phase by phase.

python -m tests.oracle.media           writes the table of docs/media-against-authors.md, and draws its picture

The authors' numbers are in data/media.json; nothing here runs their code."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fairlane.experiments.model import Experiment
from fairlane.hosts.sources import Source
from fairlane.results.series import FlowRecord
from fairlane.suites import cases
from tests.oracle import tables

LENGTHS_S = (40.0, 20.0, 20.0, 20.0)
"""Of the phases between changes of capacity."""
AFTER_CHANGE_S = 10.0
"""Each phase is split into what follows a change and the rest."""
RUNS = 10
"""Run n has phases that are n seconds longer. SCReAM's rate goes up and down over some seconds, and a single run meets each change of capacity
at one point of that cycle: its figures say as much about the point as about the code."""
DATA = Path(__file__).with_name("data") / "media.json"
PICTURE = Path(__file__).parents[2] / "docs" / "media-against-authors.png"
DOCUMENT = PICTURE.with_suffix(".md")


def reference() -> dict[str, Any]:
    """Of each sender `program`; `phases`, mean, least and largest over the runs; `lost_packets` of each run; `series`, the first run by the
    second."""
    return json.loads(DATA.read_text(encoding="utf-8"))


def windows(longer_s: float) -> list[tuple[float, float]]:
    """Begin and end of what the figures are over, two windows for each phase."""
    ends = np.cumsum([length_s + longer_s for length_s in LENGTHS_S])
    begins = [0.0, *ends[:-1]]
    return [w for a, b in zip(begins, ends) for w in ((a, a + AFTER_CHANGE_S), (a + AFTER_CHANGE_S, float(b)))]


def run(kind: str, longer_s: float, report_interval_s: float | None = None) -> FlowRecord:
    """Ours over the link of the case's own file, with phases longer by so much. As in the authors' runs one flow always has data to send, in place of the case's
    video and audio. report_interval_s: with reports of RFC 8888 so often."""
    case = cases.load(next(path for path in cases.files("rfc8867") if path.stem == "5.1"), kind)
    changes = tuple((replace(c, at_s=c.at_s + n * longer_s), *where) for n, (c, *where) in enumerate(case.experiment.changes, 1))
    (media,) = (f for f in case.experiment.flows if f.kind == kind)
    flows = (replace(media, stop_s=None, settings=replace(media.settings, source=Source(), report_interval_s=report_interval_s)),)
    longer = replace(case.experiment, flows=flows, changes=changes, duration_s=case.experiment.duration_s + len(LENGTHS_S) * longer_s)
    (flow,) = cases.run(replace(case, experiment=longer)).records.flows
    return flow


def means(flow: FlowRecord, window: tuple[float, float]) -> tuple[float, float]:
    """Rate in bit/s and delay in ms, the mean of all packets, of one window."""
    packets, delay_s, received = (np.diff(counter.at(np.array(window)))[0] for counter in (flow.packets, flow.delay, flow.received))
    return 8 * received / (window[1] - window[0]), 1000 * delay_s / packets


def ours(kind: str, runs: Sequence[int], report_interval_s: float | None = None) -> tuple[list[FlowRecord], np.ndarray]:
    """The runs' flows; and by window the mean over the runs of (rate in bit/s, delay in ms)."""
    flows = {n: run(kind, float(n), report_interval_s) for n in runs}
    return list(flows.values()), np.mean([[means(flow, window) for window in windows(n)] for n, flow in flows.items()], axis=0)


def table(kind: str, known: dict[str, Any], mine: np.ndarray) -> list[str]:
    lines = []
    for (begin, end), phase, (rate, delay) in zip(windows(0.0), known["phases"], mine):
        (their_rate, *rates), (their_delay, *delays) = phase["rate_bps"], phase["delay_ms"]
        spread = [f"{low / 1e6:.2f} to {high / 1e6:.2f}" for low, high in [rates]] + [f"{low:.0f} to {high:.0f}" for low, high in [delays]]
        lines.append(
            f"| {kind} | {begin:.0f} to {end:.0f} | {rate / 1e6:.2f} | {their_rate / 1e6:.2f} | {spread[0]} | {rate / their_rate:.2f} "
            f"| {delay:.0f} | {their_delay:.0f} | {spread[1]} | {delay / their_delay:.2f} |"
        )
    return lines


def by_second(flow: FlowRecord) -> dict[str, np.ndarray]:
    edges = np.arange(0.0, sum(LENGTHS_S) + 1.0)
    packets = np.maximum(np.diff(flow.packets.at(edges)), 1e-9)
    return {"rate_bps": 8 * np.diff(flow.received.at(edges)), "delay_ms": 1000 * np.diff(flow.delay.at(edges)) / packets}


REPORTS_S = {"nada": 0.1, "scream": 0.02}
"""Time between reports of RFC 8888 in the second table: DELTA [RFC 8698 sec 4.1], and SCReAM's from 500 kb/s on [RFC 8298 sec 4.2.2]."""
INTERVALS_S = (None, 0.05, 0.1, 0.2)
"""Of the table of cases: an acknowledgement of each packet, and reports so often."""
OTHER_FEEDBACK = {"nada": ("nada-100ms", "reports each 100 ms"), "scream": ("scream-own-interval", "reports at its own interval")}


def reporting(experiment: Experiment, kind: str, report_interval_s: float | None) -> Experiment:
    """The same with reports of RFC 8888 for the flows of a kind."""
    made = (
        replace(f, settings=replace(f.settings, report_interval_s=report_interval_s)) if f.kind == kind else f for f in experiment.flows
    )
    return replace(experiment, flows=tuple(made))


def table_of_cases(kind: str, stem: str) -> list[str]:
    """A case of RFC 8867 with each kind of feedback: the worst of its phases."""
    case = cases.load(next(path for path in cases.files("rfc8867") if path.stem == stem), kind)
    lines = []
    for report_interval_s in INTERVALS_S:
        reference = case.reference and reporting(case.reference, kind, report_interval_s)
        judged = cases.run(replace(case, experiment=reporting(case.experiment, kind, report_interval_s), reference=reference))
        figures, feedback = judged.figures, "each packet" if report_interval_s is None else f"{1000 * report_interval_s:.0f} ms"
        lines.append(
            f"| {stem} | {kind} | {feedback} | {figures['least_use']:.2f} | {1000 * figures['most_queueing_s']:.0f} | {100 * figures['most_loss']:.1f} "
            f"| {100 * figures['most_feedback']:.1f} | {'passes' if judged.passes else 'fails'} |"
        )
    return lines


def over_time(values: Any, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Seconds and values; the authors' runs may end a second earlier."""
    return np.arange(1, len(values) + 1), scale * np.asarray(values)


def draw(known: dict[str, Any], mine: dict[str, dict[str, np.ndarray]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(4, 1, figsize=(9, 10), layout="constrained", sharex=True)
    for row, kind in enumerate(("nada", "scream")):
        for column, (name, scale, label) in enumerate((("rate_bps", 1e-6, "received, Mb/s"), ("delay_ms", 1.0, "one-way delay, ms"))):
            place = axes[2 * row + column]
            place.plot(*over_time(known[kind]["series"][name], scale), color="#D55E00", linewidth=1.6, label="its authors' code")
            other, label_of_other = OTHER_FEEDBACK[kind]
            slow = over_time(known[other]["series"][name], scale)
            place.plot(*slow, color="#E69F00", linewidth=0.8, linestyle=":", label=f"the same, {label_of_other}")
            place.plot(*over_time(mine[kind][name], scale), color="#0072B2", linewidth=1.0, linestyle="--", label="here")
            place.set(ylabel=label, ylim=(0, None), xlim=(0, 100), title=kind.upper() if kind == "nada" else "SCReAM")
            place.grid(alpha=0.3)
            place.legend(fontsize=7, loc="upper right")
    axes[-1].set_xlabel("time, s")
    figure.savefig(PICTURE, dpi=100, metadata={"Software": None})
    plt.close(figure)


def main() -> None:
    known = reference()
    head = [
        "| sender | s, of the first run | Mb/s here | authors | least to most of their runs | ratio | delay here, ms | authors | least to most | ratio |",
        "|" + "---|" * 10,
    ]
    lines, reported, first = list(head), list(head), {}
    for kind in ("nada", "scream"):
        flows, mine = ours(kind, range(RUNS))
        first[kind] = by_second(flows[0])
        lines += table(kind, known[kind], mine)
        reported += table(kind, known[OTHER_FEEDBACK[kind][0]], ours(kind, range(RUNS), REPORTS_S[kind])[1])
    tables.put(DOCUMENT, lines)
    tables.put(DOCUMENT, reported, "reports")
    compared = ["| case | sender | feedback | least use | longest wait, ms | most loss, % | feedback, % | verdict |", "|" + "---|" * 8]
    tables.put(
        DOCUMENT,
        [*compared, *(line for stem in ("5.1", "5.3") for kind in ("nada", "scream", "gcc") for line in table_of_cases(kind, stem))],
        "cases",
    )
    draw(known, first)


if __name__ == "__main__":
    main()

"""A run's final report: `summary.json`, and the same data as tables next to the paper's values."""

from __future__ import annotations

import dataclasses
import math
from importlib.metadata import version
from typing import Any

from rich.console import Console
from rich.table import Table

from fairlane.arithmetic import total
from fairlane.experiments.model import Experiment
from fairlane.fabrics.outcome import Outcome
from fairlane.results import completions, impairments
from fairlane.results.delays import Delays
from fairlane.results.fidelity import Fidelity
from fairlane.results.figures import CheckResult, Figures

_MOST_ROWS = 200
"""Flows in a printed table: more take seconds to lay out, and nobody reads them."""


def summary(experiment: Experiment, figures: Figures, outcome: Outcome, fidelity: Fidelity, fabric: str, target: str) -> dict[str, Any]:
    """The content of summary.json; docs/results.md describes each key."""
    paper = experiment.settings.paper
    return {
        "experiment": experiment.id,
        "fabric": fabric,
        "target": target,
        "seed": experiment.seed,
        "version": version("fairlane"),
        "duration_s": experiment.duration_s,
        "window_s": list(figures.window_s),
        "begin_unix_s": outcome.timing.begin_s,
        "bottleneck": _bottleneck(experiment),
        "flows": [
            {
                "name": f.name,
                "kind": f.kind,
                "goodput_bps": f.goodput_bps,
                "fair_share_bps": f.fair_share_bps,
                "sent_packets": f.sent_packets,
                "lost_packets": f.lost_packets,
                "loss_fraction": f.loss_fraction,
                "completion_s": f.completion_s,
                "slowdown": f.slowdown,
                **_delays(delay_s=f.delay, rtt_s=f.rtt),
            }
            for f in figures.flows
        ],
        "kinds": [
            {
                "kind": k.kind,
                "flows": k.flows,
                "mean_goodput_bps": k.mean_goodput_bps,
                "share": k.share,
                "mean_loss_fraction": k.mean_loss_fraction,
                "jain_index": k.jain_index,
                **({"complete": k.complete, "completion_s": k.completion_s, "slowdown": k.slowdown} if k.complete else {}),
                **_delays(delay_s=k.delay, rtt_s=k.rtt),
            }
            for k in figures.kinds
        ],
        **({"queries": [dataclasses.asdict(q) for q in figures.queries]} if figures.queries else {}),
        "links": [
            {
                "name": x.name,
                "rate_bps": x.rate_bps,
                "utilisation": x.utilisation,
                "mean_queue_packets": x.mean_queue_packets,
                "drops": x.drops,
                **({} if x.marks is None else {"marks": x.marks}),
                **({} if x.overloads is None else {"overloads": [dataclasses.asdict(overload) for overload in x.overloads]}),
                **_delays(wait_s=Delays.together(x.waits.values())),
                **({"queue_wait_s": {str(queue): waits.figures() for queue, waits in x.waits.items()}} if len(x.waits) > 1 else {}),
            }
            for x in figures.links
        ],
        **({"impairments": figures.impairments} if figures.impairments else {}),
        **({"wrong_checksums": dict(figures.wrong_checksums)} if figures.wrong_checksums else {}),
        "checks": [
            {"name": c.check.name, "value": c.value, "low": c.check.low, "high": c.check.high, "holds": c.holds} for c in figures.checks
        ],
        "paper": None
        if paper is None
        else {"reference": paper.reference, "section": paper.section, "figure": paper.figure, "reports": list(paper.reports)},
        "open_parameters": [{"parameter": o.parameter, "reason": o.reason, "effect": o.effect} for o in experiment.settings.open],
        "fidelity": fidelity.to_json(),
        "round_trips": outcome.round_trips,
        "round_trips_after": outcome.round_trips_after,
        "shaping": outcome.shaping,
        "delay_lines": None if outcome.delay_lines is None else dataclasses.asdict(outcome.delay_lines),
        "live_changes": outcome.live_changes,
        "events": [{"time_s": e.time_s - outcome.timing.begin_s, "what": e.what} for e in outcome.events],
    }


def _delays(**measured: Delays) -> dict[str, Any]:
    """Those that were measured: mean, percentiles and largest, in seconds."""
    return {name: found.figures() for name, found in measured.items() if found.packets}


def steered(experiment: Experiment, outcome: Outcome) -> str:
    """The note in the results of a run that was changed in the live view."""
    times = len(outcome.live_changes)
    return (
        f"changed by hand {'once' if times == 1 else f'{times} times'} while it ran (live_changes in summary.json): checks and seed are"
        f" those of {experiment.id}, the run is another"
    )


def show(console: Console, experiment: Experiment, figures: Figures) -> None:
    start, end = figures.window_s
    console.print(f"\n{experiment.id}: {experiment.settings.title}. All figures over {start:g} to {end:g} s.", highlight=False)
    console.print(_flows(figures))
    if len(figures.flows) > _MOST_ROWS:
        console.print(f"{len(figures.flows) - _MOST_ROWS} more flows are in summary.json.", highlight=False)
    if len(figures.flows) > len(figures.kinds) > 0:
        console.print(_kinds(figures))
    if figures.queries:
        console.print(_queries(figures))
    trunks = set(_trunks(experiment))
    console.print(_links(figures, trunks))
    if any(x.waits for x in figures.links) or any(k.delay.packets for k in figures.kinds):
        console.print(_delay_table(figures, {*trunks, _bottleneck(experiment)}))
    if figures.impairments:
        console.print(_impairments(figures))
    if figures.checks:
        console.print(_checks(figures.checks))
    paper = experiment.settings.paper
    if paper is not None:
        console.print(f"The paper ({paper.reference}, section {paper.section}, {paper.figure}) reports:", highlight=False)
        for line in paper.reports:
            console.print(f"  - {line}", highlight=False)


def show_fidelity(console: Console, fidelity: Fidelity) -> None:
    """What puts figures in doubt. Nothing for a true run."""
    if fidelity.verdict == "true":
        return
    console.print(
        {
            "doubtful": "[bold yellow]DOUBTFUL[/]: this machine did not keep up with the run's clock; some figures may be wrong:",
            "invalid": "[bold red]INVALID[/]: this machine did not keep up with the run's clock; do not use these figures:",
        }[fidelity.verdict],
        highlight=False,
        soft_wrap=True,
    )
    for sentence in fidelity.sentences():
        console.print(f"  - {sentence}", highlight=False, markup=False, soft_wrap=True)


def _bottleneck(experiment: Experiment) -> str:
    port = experiment.topology.port(*experiment.bottleneck)
    return f"{port.node}->{port.peer}"


def _trunks(experiment: Experiment) -> list[str]:
    """Links between switches: those towards hosts have room to spare, and fill the summary only."""
    ports = experiment.topology.ports()
    switches = set(experiment.topology.switches)
    return [f"{p.node}->{p.peer}" for s in experiment.topology.switches for p in ports[s] if p.peer in switches]


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    for i, column in enumerate(columns):
        # On a narrow terminal heads and numbers are broken, names are not; nothing is cut.
        named = column in ("flow", "kind", "link")
        table.add_column(column, justify="left" if i == 0 else "right", no_wrap=named, overflow="fold")
    return table


def _flows(figures: Figures) -> Table:
    ends = any(not math.isnan(f.completion_s) for f in figures.flows)
    heads = ["flow", "kind", "goodput Mb/s", "fair share Mb/s", "share %", "sent packets", "lost", "loss %"]
    table = _table("Flows", *heads, *(["complete after s", "slowdown"] if ends else []))
    all_bps = total(f.goodput_bps for f in figures.flows if f.was_active)
    for f in figures.flows[:_MOST_ROWS]:
        table.add_row(
            f.name,
            f.kind,
            _known(f.goodput_bps / 1e6, 3),
            _known(f.fair_share_bps / 1e6, 3),
            _known(100 * f.goodput_bps / all_bps if all_bps else math.nan, 1),
            str(f.sent_packets),
            str(f.lost_packets),
            _known(100 * f.loss_fraction, 2),
            *([_known(f.completion_s, 3), _known(f.slowdown, 2)] if ends else []),
        )
    return table


def _kinds(figures: Figures) -> Table:
    ends = any(k.complete for k in figures.kinds)
    parts = [f"p{part}" for part in completions.PERCENTILES]
    heads = ["kind", "flows", "mean goodput Mb/s", "share %", "mean loss %", "Jain's index"]
    table = _table(
        "Kinds of flow", *heads, *(["complete", f"after s, {', '.join(parts)}", f"slowdown, {', '.join(parts)}"] if ends else [])
    )
    for k in figures.kinds:
        times, slowdowns = (
            ", ".join(_known(found.get(part, math.nan), digits) for part in parts)
            for found, digits in ((k.completion_s, 3), (k.slowdown, 2))
        )
        table.add_row(
            k.kind,
            str(k.flows),
            _known(k.mean_goodput_bps / 1e6, 3),
            _known(100 * k.share, 1),
            _known(100 * k.mean_loss_fraction, 2),
            _known(k.jain_index, 3),
            *([str(k.complete), times, slowdowns] if ends else []),
        )
    return table


def _queries(figures: Figures) -> Table:
    parts = [f"p{part}" for part in completions.PERCENTILES]
    table = _table("Queries", "workload", "pattern", "queries", "complete", f"after s, {', '.join(parts)}")
    for q in figures.queries:
        times = ", ".join(_known(q.completion_s.get(part, math.nan), 3) for part in parts)
        table.add_row(q.workload, q.pattern, str(q.queries), str(q.complete), times)
    return table


def _known(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def _links(figures: Figures, names: set[str]) -> Table:
    table = _table("Links between switches", "link", "Mb/s", "utilisation", "mean queue, packets", "drops")
    for x in figures.links:
        if x.name in names:
            drops = ", ".join(f"{cause} {'unknown' if n is None else n}" for cause, n in x.drops.items()) or "none"
            if x.marks is not None:
                drops += f"; {x.marks} marked"
            table.add_row(
                x.name,
                f"{x.rate_bps / 1e6:g}",
                "unknown" if math.isnan(x.utilisation) else f"{x.utilisation:.3f}",
                "unknown" if math.isnan(x.mean_queue_packets) else f"{x.mean_queue_packets:.1f}",
                drops,
            )
    return table


def _delay_table(figures: Figures, names: set[str]) -> Table:
    heads = ["packets", "mean", *(f"p{part}" for part in completions.PERCENTILES), "largest"]
    table = _table("Delays of packets, ms", "of", *heads)
    rows = [(f"{x.name}, waiting", Delays.together(x.waits.values())) for x in figures.links if x.name in names]
    rows += [row for k in figures.kinds for row in ((f"{k.kind}, one way", k.delay), (f"{k.kind}, round trip", k.rtt))]
    for what, found in rows:
        if found.packets:
            table.add_row(what, str(found.packets), *(f"{value * 1e3:.4g}" for value in found.figures().values()))
    return table


def _impairments(figures: Figures) -> Table:
    """Of all flows and reports; links without frames are left out."""
    table = _table("Frames on the way", "link", *(name.removesuffix("_packets") for name in impairments.COUNTS))
    for x in figures.impairments:
        if x["offered_packets"]:
            table.add_row(x["link"], *(str(x[name]) for name in impairments.COUNTS))
    if figures.wrong_checksums:
        caught = ", ".join(f"{node} {count}" for node, count in figures.wrong_checksums.items() if count)
        table.caption = f"dropped for a wrong checksum, in the whole run: {caught or 'none'}"
    return table


def _checks(checks: list[CheckResult]) -> Table:
    table = _table("Checks", "what", "here", "expected", "the paper", "holds")
    for c in checks:
        table.add_row(
            c.check.name,
            _number(c.value),
            _range(c.check.low, c.check.high),
            c.check.paper or "-",
            "[green]yes[/]" if c.holds else "[red]NO[/]",
        )
    return table


def _number(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "not measured" if math.isnan(value) else "never"


def _range(low: float, high: float) -> str:
    if math.isinf(low):
        return f"<= {high:g}"
    if math.isinf(high):
        return f">= {low:g}"
    return f"{low:g} to {high:g}" if low != high else f"{low:g}"

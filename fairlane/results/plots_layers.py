"""Plots of layered flows: rates of the layers, receivers' rates and numbers of layers, and each link's sharing."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fairlane.experiments import paths
from fairlane.experiments.kinds import TcpSettings
from fairlane.results import canvas
from fairlane.results.canvas import Axes, Figure
from fairlane.results.layers import LayeredRecord
from fairlane.results.series import FlowRecord, Series

_BIN_S = 5.0
# Okabe and Ito's, which the colour-blind can distinguish too.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_TCP = "0.6"


def draw(series: Series, folder: Path, note: str) -> list[Path]:
    """layers.png, when there is a layered flow."""
    if not series.layered:
        return []
    record = series.layered[0]
    experiment = series.experiment
    links = dict(sorted(_links(series, record).items()))
    figure = Figure(figsize=(9, 2.6 * (3 + len(links))), dpi=100, layout="constrained")
    all_axes = figure.subplots(3 + len(links), 1, sharex=True)
    _rates(all_axes[0], record, experiment.duration_s)
    _received(all_axes[1], series, record)
    _members(all_axes[2], record, experiment.duration_s)
    for axes, (name, flows) in zip(all_axes[3:], links.items()):
        _sharing(axes, series, name, flows)
    for axes in all_axes:
        axes.grid(alpha=0.3)
        axes.set_xlim(0, experiment.duration_s)
        for start_s in record.flow.receiver_start_s:
            axes.axvline(start_s, color="0.8", lw=0.8, zorder=0)
    all_axes[-1].set_xlabel("time (s)")
    all_axes[0].set_title(f"{experiment.id}: {experiment.settings.title}\n{note}", fontsize=10, loc="left")
    return [canvas.save(figure, folder / "layers.png")]


def _links(series: Series, record: LayeredRecord) -> dict[str, list[FlowRecord]]:
    """Links between switches that the layered flow and TCP cross."""
    topology = series.experiment.topology
    crossing: dict[str, list[FlowRecord]] = {}
    for one in series.flows:
        for port in paths.there(series.experiment, one.flow):
            if port.node in topology.switches and port.peer in topology.switches:
                crossing.setdefault(f"{port.node}->{port.peer}", []).append(one)
    return {
        name: flows
        for name, flows in crossing.items()
        if any(isinstance(f.flow.settings, TcpSettings) for f in flows) and any(_is_of(f, record) for f in flows)
    }


def _is_of(one: FlowRecord, record: LayeredRecord) -> bool:
    return one.flow.name.partition("@")[0] == record.flow.name


def _kbps(one: FlowRecord, duration_s: float) -> tuple[np.ndarray, np.ndarray]:
    """Middle of each bin, and what arrived in it."""
    edges = np.arange(0.0, duration_s + 1e-9, _BIN_S)
    return (edges[:-1] + edges[1:]) / 2, np.diff(one.received.at(edges)) * 8 / _BIN_S / 1e3


def _rates(axes: Axes, record: LayeredRecord, end_s: float) -> None:
    times = [t for t, _ in record.rates] + [end_s]
    for layer in range(record.layers):
        values = [rates[layer] / 1e3 for _, rates in record.rates]
        axes.step(
            times,
            values + values[-1:],
            where="post",
            color=_COLOURS[layer % len(_COLOURS)],
            lw=1.5,
            ls="-" if layer < 2 else "--",
            label="basic layer" if layer == 0 else f"layer {layer + 1}",
        )
    axes.set_ylabel("sent (kb/s)")
    axes.set_ylim(0, None)
    axes.legend(fontsize=8, ncols=3, loc="upper right")


def _received(axes: Axes, series: Series, record: LayeredRecord) -> None:
    for colour, one in zip(_COLOURS, (f for f in series.flows if _is_of(f, record))):
        axes.plot(*_kbps(one, series.experiment.duration_s), color=colour, lw=1.5, label=one.flow.receiver)
    axes.set_ylabel(f"received (kb/s,\nmean of {_BIN_S:g} s)")
    axes.set_ylim(0, None)
    axes.legend(fontsize=8, ncols=3, loc="upper right")


def _members(axes: Axes, record: LayeredRecord, end_s: float) -> None:
    for colour, receiver in zip(_COLOURS, record.flow.all_receivers):
        times = [0.0, *(t for t in record.changes_s(receiver) if 0 < t < end_s), end_s]
        counts = [len(record.members_at(receiver, t)) for t in times]
        axes.step(times, counts, where="post", color=colour, lw=1.5, label=receiver)
    axes.set_ylabel("layers joined")
    axes.set_ylim(0, record.layers + 0.5)
    axes.set_yticks(range(record.layers + 1))
    axes.legend(fontsize=8, ncols=3, loc="lower right")


def _sharing(axes: Axes, series: Series, name: str, flows: list[FlowRecord]) -> None:
    duration_s = series.experiment.duration_s
    tcp = [_kbps(f, duration_s) for f in flows if isinstance(f.flow.settings, TcpSettings)]
    layered = [_kbps(f, duration_s) for f in flows if not isinstance(f.flow.settings, TcpSettings)]
    for times, values in tcp:
        axes.plot(times, values, color=_TCP, lw=0.5, alpha=0.6)
    axes.plot(tcp[0][0], np.mean([v for _, v in tcp], axis=0), color="black", lw=1.5, label="TCP, mean")
    axes.plot(layered[0][0], np.max([v for _, v in layered], axis=0), color=_COLOURS[1], lw=1.5, label="ALS, all layers")
    axes.set_ylabel(f"{name} (kb/s)")
    axes.set_ylim(0, None)
    axes.legend(fontsize=8, ncols=2, loc="upper right")

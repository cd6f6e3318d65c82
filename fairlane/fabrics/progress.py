"""The progress display of a run: a live table on a terminal, otherwise a line every 5 s."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from fairlane.experiments.model import Flow

_LINE_EVERY_S = 5.0
_MOST_FLOWS = 40
"""Whose rates are shown: a line or table of thousands takes longer than the run."""


@dataclass(frozen=True)
class Snapshot:
    """A moment of a run. elapsed_s: negative before the first flow starts. rates_bps: what reaches each receiver, headers included, by the names of `receivers`."""

    elapsed_s: float
    duration_s: float
    rates_bps: Mapping[str, float]
    connections: int | None
    fair_rate_bps: float | None
    queue_packets: float | None
    utilisation: float | None


def receivers(flows: Iterable[Flow]) -> dict[str, str]:
    """By name, the hosts whose links are shown: the name of the flow that ends there, or of the host with the number of its flows."""
    found: dict[str, list[str]] = {}
    for flow in flows:
        found.setdefault(flow.receiver, []).append(flow.name)
    return {names[0] if len(names) == 1 else f"to {host} ({len(names)} flows)": host for host, names in found.items()}


class Progress(Protocol):
    def say(self, text: str) -> None:
        """A sentence that stays."""

    def show(self, snapshot: Snapshot) -> None:
        """The state of things; called several times a second."""

    def close(self) -> None: ...


class Silent:
    """Shows nothing: for runs from Python, and for many at once. Sentences go to the log, at its level for debugging."""

    def say(self, text: str) -> None:
        logging.getLogger(__name__).debug(text)

    def show(self, snapshot: Snapshot) -> None:
        pass

    def close(self) -> None:
        pass


def for_console(console: Console) -> Progress:
    return _LiveProgress(console) if console.is_terminal else _PlainProgress(console)


class _PlainProgress:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._next_s = 0.0

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def show(self, snapshot: Snapshot) -> None:
        if snapshot.elapsed_s < 0 or time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + _LINE_EVERY_S
        rates = " ".join(f"{name}={rate / 1e6:.2f}" for name, rate in itertools.islice(snapshot.rates_bps.items(), _MOST_FLOWS))
        rates += _more(snapshot)
        self.say(f"{snapshot.elapsed_s:5.0f}/{snapshot.duration_s:.0f} s  {_state(snapshot)}  Mb/s: {rates}")

    def close(self) -> None:
        pass


class _LiveProgress:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False)

    def show(self, snapshot: Snapshot) -> None:
        if self._live is None:
            self._live = Live(console=self._console, refresh_per_second=4, transient=True)
            self._live.start()
        self._live.update(_render(snapshot))

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


def _state(snapshot: Snapshot) -> str:
    parts = []
    if snapshot.connections is not None:
        parts.append(f"n={snapshot.connections}")
    if snapshot.fair_rate_bps is not None:
        parts.append(f"R_f={snapshot.fair_rate_bps / 1e6:.3f} Mb/s")
    if snapshot.utilisation is not None:
        parts.append(f"U={snapshot.utilisation:.2f}")
    if snapshot.queue_packets is not None:
        parts.append(f"queue={snapshot.queue_packets:.0f}")
    return " ".join(parts)


def _more(snapshot: Snapshot) -> str:
    further = len(snapshot.rates_bps) - _MOST_FLOWS
    return f" and {further} more" if further > 0 else ""


def _render(snapshot: Snapshot) -> Group:
    table = Table(box=None, padding=(0, 1))
    table.add_column("flow")
    table.add_column("Mb/s", justify="right")
    table.add_column("")
    scale = max([*snapshot.rates_bps.values(), snapshot.fair_rate_bps or 0.0, 1.0])
    for name, rate in itertools.islice(snapshot.rates_bps.items(), _MOST_FLOWS):
        table.add_row(name, f"{rate / 1e6:.3f}", ProgressBar(total=scale, completed=rate, width=40, finished_style="bar.complete"))
    if snapshot.elapsed_s < 0:
        return Group(f"flows start in {-snapshot.elapsed_s:.0f} s")
    bar = ProgressBar(total=snapshot.duration_s, completed=min(snapshot.elapsed_s, snapshot.duration_s), width=60)
    return Group(f"{snapshot.elapsed_s:.0f} of {snapshot.duration_s:.0f} s   {_state(snapshot)}", bar, table, _more(snapshot))

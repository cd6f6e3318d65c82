"""Reads a run's records while they are written, for the live display."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from fairlane.experiments.model import Experiment
from fairlane.fabrics.progress import Snapshot, receivers
from fairlane.fabrics.raw import CsvTail

_AVERAGE_S = 1.0


class Monitor:
    """Rates are what switches send to receivers: the same measure for every kind of flow, available while it runs."""

    def __init__(self, experiment: Experiment, folder: Path) -> None:
        self._experiment = experiment
        self._folder = folder
        self._controller = CsvTail(folder / "controller.csv")
        self._switches: dict[Path, tuple[str, CsvTail]] = {}
        # (switch, port) -> (time, transmitted bytes) of about the last second.
        self._sent: dict[tuple[str, int], list[tuple[float, int]]] = {}
        self._queue: dict[tuple[str, int], float] = {}
        self._told: tuple[int | None, float | None, float | None] = (None, None, None)
        ports = experiment.topology.ports()
        self._last_hop = {}
        for name, receiver in receivers(experiment.flows).items():
            edge = ports[receiver][0]
            self._last_hop[name] = (edge.peer, edge.peer_port)

    def snapshot(self, elapsed_s: float) -> Snapshot:
        for switch in self._experiment.topology.switches:
            for path in self._folder.glob(f"{switch}*.csv"):
                if path.stem.partition(".")[0] == switch:
                    self._switches.setdefault(path, (switch, CsvTail(path)))
        key = self._experiment.bottleneck
        # A row that cannot be read costs a moment of the display, never the run.
        for switch, tail in self._switches.values():
            for row in tail.rows():
                with contextlib.suppress(ValueError, KeyError):
                    self._take(switch, row)
        for row in self._controller.rows():
            with contextlib.suppress(ValueError, KeyError):
                if (row["switch"], int(row["port"])) == key:
                    self._told = (int(row["connections"]), float(row["fair_rate_bps"]), int(row["utilisation_ppm"]) / 1e6)
        connections, fair_rate_bps, utilisation = self._told
        return Snapshot(
            elapsed_s,
            self._experiment.duration_s,
            {name: self._rate(hop) for name, hop in self._last_hop.items()},
            connections,
            fair_rate_bps,
            self._queue.get(key),
            utilisation,
        )

    def _take(self, switch: str, row: Mapping[str, str]) -> None:
        key, now = (switch, int(row["port"])), float(row["unix_s"])
        history = self._sent.setdefault(key, [])
        sent = int(row["tx_bytes"])
        if history and sent < history[-1][1]:
            history.clear()  # the switch was restarted
        history.append((now, sent))
        while len(history) > 2 and history[1][0] < now - _AVERAGE_S:
            history.pop(0)
        self._queue[key] = float(row["queue_packets_mean"])

    def _rate(self, key: tuple[str, int]) -> float:
        history = self._sent.get(key, [])
        if len(history) < 2 or history[-1][0] <= history[0][0]:
            return 0.0
        return 8 * (history[-1][1] - history[0][1]) / (history[-1][0] - history[0][0])

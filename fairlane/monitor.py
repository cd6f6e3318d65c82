"""Follows a run's records as they are written, for the live display."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from experiments.model import Experiment
from fairlane.progress import Snapshot
from fairlane.raw import Tail

_AVERAGE_S = 1.0


class Monitor:
    """A flow's rate is what the switch sends to its receiver: it shows every kind of flow alike, while it runs."""

    def __init__(self, experiment: Experiment, folder: Path) -> None:
        self._experiment = experiment
        self._folder = folder
        self._controller = Tail(folder / "controller.csv")
        self._switches: dict[Path, tuple[str, Tail]] = {}
        # (switch, port) -> (time, transmitted bytes) of about the last second.
        self._sent: dict[tuple[str, int], list[tuple[float, int]]] = {}
        self._queue: dict[tuple[str, int], float] = {}
        self._told: Mapping[str, str] = {}
        ports = experiment.topology.ports()
        self._last_hop = {}
        for flow in experiment.flows:
            edge = ports[flow.receiver][0]
            self._last_hop[flow.name] = (edge.peer, edge.peer_port)

    def snapshot(self, elapsed_s: float) -> Snapshot:
        for switch in self._experiment.topology.switches:
            for path in self._folder.glob(f"{switch}*.csv"):
                if path.stem.partition(".")[0] == switch:
                    self._switches.setdefault(path, (switch, Tail(path)))
        for switch, tail in self._switches.values():
            for row in tail.rows():
                self._take(switch, row)
        key = self._experiment.bottleneck
        for row in self._controller.rows():
            if (row["switch"], int(row["port"])) == key:
                self._told = row
        told = self._told
        return Snapshot(
            max(0.0, elapsed_s), self._experiment.duration_s,
            {name: self._rate(hop) for name, hop in self._last_hop.items()},
            int(told["connections"]) if told else None, float(told["fair_rate_bps"]) if told else None,
            self._queue.get(key), int(told["utilisation_ppm"]) / 1e6 if told else None)

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

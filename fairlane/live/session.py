"""One run as the page sees it: the fixed part, the growing part, and the viewers' requests.

One thread writes it; the server's thread reads it. The writer only appends to growing lists, and a reader reads the length first,
so neither waits for the other.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

from fairlane.experiments import commands, kinds
from fairlane.experiments.model import Experiment
from fairlane.live import columns
from fairlane.live.layout import layout
from fairlane.live.sampler import PortTrack, Sampler
from fairlane.live.shares import Shares
from fairlane.results import palette
from fairlane.schemes import registry

FINISHED = "finished"
"""The mode of a run that is over; of one under way it is its fabric's name."""
# How often a page gets changes, and how often its tables. It draws more often, because it interpolates between them.
UPDATE_S = 0.1
TABLE_S = 0.5


Steer = Callable[[dict[str, Any], Callable[[str | None], object]], None]
"""Takes what a reader of the page wants, and who is to be told: None, or why it cannot be."""


@dataclasses.dataclass
class Pace:
    """speed: virtual seconds per real second, None: as fast as the machine can. reached: the speed achieved. doubt: of the figures, "" for none."""

    paused: bool = False
    speed: float | None = 1.0
    reached: float | None = None
    finished: bool = False
    note: str = ""
    doubt: str = ""


class Session:
    """The state behind a page. steer: None where nothing can be steered."""

    def __init__(self, experiment: Experiment, sampler: Sampler, mode: str, pace: Pace, note: str = "", steer: Steer | None = None) -> None:
        self.sampler = sampler
        self.mode = mode
        self.pace = pace
        self.note = note
        self.steer = steer
        self.shares = Shares(experiment)
        self.changes: list[dict[str, Any]] = []
        """What a reader changed: `live_changes` of summary.json."""
        self._listeners: list[Callable[[], None]] = []
        self._switches = set(experiment.topology.switches)

    def listen(self, call: Callable[[], None]) -> None:
        """`call` after each publication, in the thread that published."""
        self._listeners.append(call)

    def publish(self) -> None:
        """Tell the readers at once. What merely goes on they see when they look next."""
        for call in self._listeners:
            call()

    def hello(self) -> dict[str, Any]:
        """What a page needs to know before anything else."""
        experiment = self.sampler.experiment
        addable = [k for k in kinds.names() if k != commands.KIND and not ((found := kinds.algorithm(k)) and found.layered)]
        known = dict.fromkeys([*(f.kind for f in experiment.flows), *addable])
        return {
            "is": "hello",
            "id": experiment.id,
            "title": experiment.settings.title,
            "mode": self.mode,
            "note": self.note,
            "seed": experiment.seed,
            "duration": experiment.duration_s,
            "step": self.sampler.step_s,
            "span": self.sampler.span * self.sampler.step_s,
            "estimated": self.sampler.estimated,
            "window": experiment.window_s,
            "bottleneck": "{}:{}".format(*experiment.bottleneck),
            "kinds": {k: {"label": palette.label(k), "colour": palette.of_kind(k), "line": palette.line(k)} for k in known},
            "addable": [] if self.steer is None else addable,
            "hosts": experiment.topology.hosts,
            "network": layout(experiment),
            "ports": self._ports(),
            "causes": {c.cause: c.label for scheme in registry.SCHEMES.values() for c in scheme.counters if c.label},
        }

    def _ports(self) -> list[dict[str, Any]]:
        found = []
        for (node, number), port in self.sampler.ports.items():
            link, average = port.port.link, port.average
            found.append(
                {
                    "id": f"{node}:{number}",
                    "name": port.name,
                    "trunk": port.port.peer in self._switches,
                    "buffer": link.queue_packets,
                    "delay": link.delay_s,
                    "average": None
                    if average is None
                    else {"title": average.title, "minimum": average.minimum, "maximum": average.maximum, "most": average.most},
                }
            )
        return found

    def flows(self) -> list[dict[str, Any]]:
        """One for each line of the charts."""
        return [
            {
                "name": x.name,
                "flow": x.flow.name,
                "kind": x.flow.kind,
                "from": x.flow.sender,
                "to": x.receiver,
                "start": x.flow.start_s,
                "stop": x.flow.stop_s,
            }
            for x in self.sampler.lines
        ]

    def state(self) -> dict[str, Any]:
        return dataclasses.asdict(self.pace)

    def moment(self, time_s: float, hosts_too: bool = True, chosen: str = "") -> dict[str, Any]:
        """Tables at a time; the last sample's if the time is later. hosts_too: also all values of ports to hosts; otherwise
        only their loads, except for the chosen port."""
        sampler = self.sampler
        count = len(sampler.times)
        time_s = min(time_s, sampler.times[count - 1]) if count else 0.0
        switches = self._switches

        def whole(port: PortTrack) -> bool:
            return hosts_too or port.port.peer in switches or f"{port.port.node}:{port.port.number}" == chosen

        return columns.moment(sampler, time_s, self.shares.at(time_s), count, whole)


class Reader:
    """What one page has received already, and what it still lacks."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._samples = self._events = self._changes = 0
        self._version = -1
        self._port = "{}:{}".format(*session.sampler.experiment.bottleneck)
        self._port_samples = 0
        self._causes: list[str] = []
        self._hosts_too = len(session.sampler.experiment.topology.switches) < 2
        self._tabled = 0.0
        self._table_at = -1
        self._state: dict[str, Any] = {}

    def choose(self, port: str) -> None:
        """Choose the port of the charts. KeyError: unknown port."""
        node, _, number = port.rpartition(":")
        if not number.isdigit() or (node, int(number)) not in self._session.sampler.ports:
            raise KeyError(port)
        self._port, self._port_samples = port, 0

    def show_hosts(self, show: bool) -> None:
        """Whether the page's table has the links to hosts."""
        self._hosts_too, self._table_at = show, -1

    def moment(self, time_s: float) -> dict[str, Any]:
        """What the page shows of a time."""
        return self._session.moment(time_s, self._hosts_too, self._port)

    def update(self) -> dict[str, Any] | None:
        """Everything since last time; None when there is nothing."""
        session, sampler = self._session, self._session.sampler
        found: dict[str, Any] = {}
        count, version = len(sampler.times), sampler.version
        lines = list(sampler.lines)
        if version != self._version:
            self._version = version
            found["flows"] = session.flows()
        if count > self._samples:
            found["from"] = self._samples
            found["times"] = sampler.times[self._samples : count]
            found["rates"] = [columns.rates(sampler, line, self._samples, count) for line in lines]
            self._samples = count
        node, _, number = self._port.rpartition(":")
        port = sampler.ports[node, int(number)]
        causes = columns.drop_causes(sampler, port) if count else []
        if causes != self._causes:
            self._causes, self._port_samples = causes, 0
        if count > self._port_samples:
            found["port"] = {"id": self._port, "from": self._port_samples, **columns.port_columns(sampler, port, self._port_samples, count)}
            self._port_samples = count
        events = len(session.shares.events)
        if events > self._events:
            found["shares"] = [
                [at, {k: round(v) for k, v in shares.items()}] for at, shares in session.shares.events[self._events : events]
            ]
            self._events = events
        changes = len(session.changes)
        if changes > self._changes:
            found["changes"] = session.changes[self._changes : changes]
            self._changes = changes
        state = session.state()
        if state != self._state:
            found["state"] = self._state = state
        now = time.monotonic()
        if count and count != self._table_at and (now - self._tabled >= TABLE_S or state["paused"] or state["finished"]):
            self._tabled, self._table_at = now, count
            found["now"] = self.moment(sampler.times[count - 1])
        return {"is": "update", **found} if found else None

"""An explanation: where a packet came from, where it was, and how it ended. `Explanation.data` is what `--json` writes, by `schema.json`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlane.why import verdicts
from fairlane.why.sources import Sources

FORMAT = 1
"""A larger number is of data that older readers would misunderstand."""
SCHEMA = Path(__file__).with_name("schema.json")
Station = dict[str, Any]


@dataclass
class Explanation:
    """head: which packet it is, in words. source: the same as data. stations: of `native`, with their ends. begin_ns: when the run's first flow begins, from which its
    users count; 0 elsewhere. more: sentences that follow the end. sources: the program's."""

    head: str
    source: dict[str, Any]
    stations: list[Station]
    begin_ns: int = 0
    more: list[str] = field(default_factory=list)
    sources: Sources = field(default_factory=Sources)

    def __post_init__(self) -> None:
        for station in self.stations:
            if station["kind"] == "switch":
                station["ends"] = [verdict.data() for verdict in verdicts.verdicts(station["steps"])]

    @property
    def is_run(self) -> bool:
        return "results" in self.source

    @property
    def end(self) -> list[str]:
        """How it ended, in sentences."""
        if not self.is_run:
            return [*(end["text"] for station in self.stations for end in station.get("ends", ())), *self.more]
        return [*_ends_of_run(self.stations, self.begin_ns), *self.more]

    def data(self) -> dict[str, Any]:
        return {"format": FORMAT, "source": self.source, "begin_ns": self.begin_ns, "stations": self.stations, "end": self.end}


def seconds(time_ns: int, begin_ns: int) -> str:
    return f"{(time_ns - begin_ns) / 1e9:.6f} s"


def station_head(station: Station, begin_ns: int) -> str:
    at = f"{seconds(station['time_ns'], begin_ns)}: "
    if station["kind"] == "sent":
        return f"{at}sent by {station['node']}"
    if station["kind"] == "received":
        return f"{at}received by {station['node']}"
    if station["kind"] == "lost":
        return f"{at}lost at {station['node']}: {cause(station['cause'])}"
    return f"{at}at switch {station['node']}, port {station['port']}, {len(station['frame']) // 2} bytes"


def cause(name: str) -> str:
    return {"link": "on the link behind it", "tail": "its queue is full"}.get(name, name)


def _ends_of_run(stations: list[Station], begin_ns: int) -> list[str]:
    """The last switches' ends that the packet did not outlive, what was lost, and who received it."""
    said = []
    for station in stations:
        at = seconds(station["time_ns"], begin_ns)
        if station["kind"] == "received":
            said.append(f"Received by {station['node']} at {at}.")
        elif station["kind"] == "lost":
            said.append(f"Lost at {station['node']} at {at}: {cause(station['cause'])}.")
        elif station["kind"] == "switch":
            said += [f"At {station['node']}: {end['text']}" for end in station["ends"] if end["what"] == "dropped"]
    return said or ["It was not seen to end: it may still be on its way."]

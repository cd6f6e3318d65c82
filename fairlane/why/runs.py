"""Packets of finished runs in virtual time. A run again gives the same bytes, so it is run again, up to the packet, and the packet's steps alone are kept."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlane import probes, user_files
from fairlane.errors import Refusal
from fairlane.experiments import loader
from fairlane.experiments.kinds import AlgorithmSettings
from fairlane.experiments.model import Experiment
from fairlane.fabrics import places, targets
from fairlane.fabrics.progress import Progress, Silent
from fairlane.fabrics.virtual_fabric import ActiveRun, Options, run
from fairlane.hosts.algorithms import ALGORITHMS
from fairlane.inputs import schema
from fairlane.results import made, unfinished
from fairlane.why.explanation import Explanation, cause
from fairlane.why.sources import Sources

try:
    from fairlane import native
except ImportError:
    native = None  # type: ignore[assignment]

_STEP_NS = 100_000_000
_QUIET_NS = 2_000_000_000
"""Without a new station for so long, the packet is over."""
_CONTROL_DELAY = "--control-delay"
PARTS = ("data", "ack", "rtcp", "empty")


@dataclass(frozen=True)
class Packet:
    """As the log of packets has it. part: of `PARTS`; back: from the receiver to the sender. number: None of packets that have none. before: the
    sendings of such a packet before it."""

    flow: str
    part: str
    number: int | None
    back: bool = False
    before: int = 0

    def __str__(self) -> str:
        what = self.part or "packet"
        number = f" {self.number}" if self.number is not None else f" packet {self.before + 1}" if self.before else ""
        way = " back to its sender" if self.back else ""
        return f"{what}{number}{way} of {self.flow}" if self.flow else f"a {what} of no flow"


@dataclass(frozen=True)
class Dropped:
    """The packet dropped as the `number`th, from 1, of a flow and for a cause where they are given."""

    number: int
    flow: str | None = None
    cause: str | None = None


def packet_of(flow: str, part: str, number: int, back: bool) -> Packet:
    """Control packets have no numbers: they are counted from 1. Refusal: there is no such part."""
    if part not in PARTS:
        raise Refusal(f"--part {part}: use {schema.either(PARTS)}")
    if part != "rtcp":
        return Packet(flow, part, number, back=back or part == "ack")
    if number < 1:
        raise Refusal(f"--packet {number}: control packets are counted from 1")
    return Packet(flow, part, None, back, before=number - 1)


def check_cause(name: str | None) -> None:
    """Refusal: nothing is dropped for such a cause."""
    known = [*native.DROP_CAUSES, "link"]
    if name is not None and name not in known:
        raise Refusal(f"--cause {name}: use one of {', '.join(known)}")


def of_packet(folder: Path, packet: Packet) -> Explanation:
    """Refusal: these are no results of a run in virtual time, or there is no such packet."""
    again = _Again(folder)
    again.check_flow(packet.flow)
    follow = _Follow(packet, None)
    again.play(follow, explains=True)
    if not follow.stations:
        raise Refusal(f"{folder}: {packet} was never sent; 'fairlane run ... --packets FILE' writes the numbers of packets")
    # Sent again (TCP): the first time alone.
    ways = _ways(follow.stations)
    repeated = len(ways) > 1 and packet.number is not None
    more = ["It was sent again later; this is the first time."] if repeated else []
    head = f"{_capital(str(packet))} in {folder}"
    return Explanation(head, again.source(packet), ways[0], follow.begin_ns, more, again.sources())


def of_drop(folder: Path, dropped: Dropped) -> Explanation:
    again = _Again(folder)
    if dropped.flow is not None:
        again.check_flow(dropped.flow)
    search = _Search(dropped)
    again.play(search, explains=False)
    if search.found is None:
        of = f" of {dropped.flow}" if dropped.flow else ""
        why = f" for the cause {dropped.cause}" if dropped.cause else ""
        raise Refusal(f"{folder}: fewer than {dropped.number} packets{of} were dropped{why}")
    time_ns, node, why, flow, part, back, number = search.found
    packet = Packet(flow, part, number, back)
    follow = _Follow(packet, time_ns)
    again.play(follow, explains=True)
    ways = [way for way in _ways(follow.stations) if _ends_at(way, time_ns)] or _ways(follow.stations)[-1:]
    at_s = (time_ns - follow.begin_ns) / 1e9
    head = f"{_capital(str(packet))} in {folder}, dropped at {node} at {at_s:.6f} s: {cause(why)}"
    source = {**again.source(packet), "dropped": {"number": dropped.number, "node": node, "cause": why, "time_ns": time_ns}}
    return Explanation(head, source, ways[0] if ways else [], follow.begin_ns, sources=again.sources())


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _ways(stations: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """One for each time that the packet was sent. A station belongs to the last sending before it."""
    ways: list[list[dict[str, Any]]] = []
    for station in stations:
        if station["kind"] == "sent" or not ways:
            ways.append([])
        # A switch receives what a visit says in full.
        if station["kind"] != "received" or not station["of_switch"]:
            ways[-1].append({key: value for key, value in station.items() if key != "of_switch"})
    return ways


def _ends_at(way: list[dict[str, Any]], time_ns: int) -> bool:
    """Whether a packet was lost then."""
    return any(
        (station["kind"] == "lost" and station["time_ns"] == time_ns) or any(step["kind"] == "drop" for step in station.get("steps", ()))
        for station in way
    )


class _Again:
    """A run that can be run again."""

    def __init__(self, folder: Path) -> None:
        if not unfinished.has_records(folder):
            raise Refusal(f"{folder}: has no raw records (raw/run.json) of a run; give a folder of results of 'fairlane run'")
        finished = unfinished.read(folder / "raw")
        fabric = places.named(finished.fabric)
        if fabric.real_time:
            raise Refusal(f"{folder}: on {fabric.name} no run is like another; 'fairlane why' needs one in virtual time")
        if finished.outcome.live_changes:
            raise Refusal(f"{folder}: this run was changed by hand while it ran, and cannot be run again")
        self.folder = folder
        self.command = _command(folder)
        self.experiment = _with_own_files(_with_parameters(finished.experiment), folder)

    def check_flow(self, name: str) -> None:
        names = [flow.name for flow in self.experiment.flows]
        if name not in names:
            raise Refusal(f"{self.folder}: there is no flow {name!r}{schema.nearest(name, names)}")

    def source(self, packet: Packet) -> dict[str, Any]:
        program = self.experiment.settings.control.program
        return {"results": str(self.folder), "program": program, **dataclasses.asdict(packet)}

    def sources(self) -> Sources:
        """A compiled program names its files from its own folder on."""
        return Sources(probes.source(self.experiment.settings.control.program).parent)

    def play(self, driver: _Driver, explains: bool) -> None:
        """Until the driver has what it wants. Refusal: this version of Fairlane makes another run of it."""
        options = Options(targets.compiler("auto"), _control_delay_s(self.command), live=driver, explains=explains, delays=False)
        with tempfile.TemporaryDirectory(prefix="fairlane-why-") as name:
            run(self.experiment, options, Path(name), Silent())
            self._check_same(Path(name))

    def _check_same(self, folder: Path) -> None:
        """What was recorded now is how the records of the run begin."""
        for path in sorted((self.folder / "raw").glob("*.csv")):
            now = folder / path.name
            if not now.is_file():
                continue
            with path.open("rb") as before, now.open("rb") as after:
                for number, (one, other) in enumerate(zip(before, after), 1):
                    if one != other:
                        raise Refusal(
                            f"{self.folder}: run again, line {number} of raw/{path.name} differs: {made.FILE} has the version of Fairlane that made it;"
                            " use that one, or run the experiment again"
                        )


def _command(folder: Path) -> list[str]:
    try:
        return json.loads((folder / made.FILE).read_text(encoding="utf-8")).get("command") or []
    except (OSError, ValueError):
        return []


def _control_delay_s(command: list[str]) -> float:
    """What no record but the command has."""
    for at, word in enumerate(command):
        key, equals, value = word.partition("=")
        if key == _CONTROL_DELAY:
            return float(value if equals else command[at + 1])
    return Options.control_delay_s


def _with_parameters(experiment: Experiment) -> Experiment:
    """With parameters of the algorithms' own classes, which records do not have."""
    import pydantic  # takes longer than the rest of the command's start

    flows = []
    for flow in experiment.flows:
        settings = flow.settings
        if isinstance(settings, AlgorithmSettings):
            if flow.kind not in ALGORITHMS:
                raise Refusal(f"{flow.name}: its kind {flow.kind} is an algorithm of your own: give its file by --algorithm")
            own = ALGORITHMS[flow.kind].parameters
            values = dataclasses.asdict(settings.parameters)
            known = {member.name for member in dataclasses.fields(own) if member.init}
            parameters: Any = pydantic.TypeAdapter(own).validate_python({key: value for key, value in values.items() if key in known})
            flow = dataclasses.replace(flow, settings=dataclasses.replace(settings, parameters=parameters))
        flows.append(flow)
    return dataclasses.replace(experiment, flows=tuple(flows))


def _with_own_files(experiment: Experiment, folder: Path) -> Experiment:
    """With the user's own program and control plane from the folder, which keeps them."""
    given = {key: str(getattr(experiment.settings.control, key)) for key in loader.OWN_FILES}
    kept = {key: str(folder / name) for key, name in given.items() if name.startswith(f"{user_files.KEPT}/")}
    return user_files.with_files(experiment, kept) if kept else experiment


class _Driver:
    """Takes the run to the packet, instead of to its end."""

    begin_ns = 0

    def drive(self, active: ActiveRun, progress: Progress) -> list[dict[str, Any]]:
        self.begin_ns = active.begin_ns
        self.start(active)
        while active.network.now_ns < active.end_ns and not self.is_over(active):
            active.network.run_until(min(active.network.now_ns + _STEP_NS, active.end_ns))
            active.records.drain()
        self.end(active)
        return []

    def start(self, active: ActiveRun) -> None: ...

    def is_over(self, active: ActiveRun) -> bool:
        return False

    def end(self, active: ActiveRun) -> None: ...


class _Search(_Driver):
    def __init__(self, dropped: Dropped) -> None:
        self._dropped = dropped
        self.found: tuple[int, str, str, str, str, bool, int | None] | None = None

    def start(self, active: ActiveRun) -> None:
        active.network.search_drop(self._dropped.flow, self._dropped.cause, self._dropped.number - 1)

    def is_over(self, active: ActiveRun) -> bool:
        return active.network.found_drop() is not None

    def end(self, active: ActiveRun) -> None:
        self.found = active.network.found_drop()


class _Follow(_Driver):
    """until_ns: no further; None: until nothing happens to the packet any more."""

    def __init__(self, packet: Packet, until_ns: int | None) -> None:
        self._packet, self._until_ns = packet, until_ns
        self._seen, self._last_ns = 0, 0
        self.stations: list[dict[str, Any]] = []

    def start(self, active: ActiveRun) -> None:
        packet = self._packet
        active.network.watch(packet.flow, packet.part, packet.number, back=packet.back, before=packet.before)

    def is_over(self, active: ActiveRun) -> bool:
        now = active.network.now_ns
        if self._until_ns is not None:
            return now > self._until_ns
        seen = active.network.stations()
        if seen != self._seen:
            self._seen, self._last_ns = seen, now
        return seen > 0 and now - self._last_ns >= _QUIET_NS

    def end(self, active: ActiveRun) -> None:
        switches = set(active.experiment.topology.switches)
        self.stations = [
            station | {"of_switch": station["node"] in switches}
            for station in json.loads(active.network.way(probes.source(active.experiment.settings.control.program).parent))
        ]

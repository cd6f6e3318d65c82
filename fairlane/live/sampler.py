"""A run's records on one time grid: the source of every chart and table of the live view.

Records come in as they are written, from any source: the network in virtual time, host processes, or the files of a finished run.
It keeps sums; rates are differences, computed where they are shown.
"""

from __future__ import annotations

import bisect
import math
import operator
import struct
from array import array
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fairlane.controller.records import counted_columns
from fairlane.controller.timetable import NS
from fairlane.experiments.kinds import TcpSettings
from fairlane.experiments.model import Experiment, Flow
from fairlane.fabrics.flows import Timing, record_roles
from fairlane.schemes.base import Average
from fairlane.topologies.model import Port

RECORD_S = 0.1
"""Between the periodic records of switches and hosts."""
# A run has at most about this many samples, which a page can hold and draw.
_MOST_SAMPLES = 6000
_AVERAGE_S = 1.0
_NEAR_S = 1e-6


class Track:
    """Sums that grow over time, straight lines in between; asked at instants that only grow. 0 before the first."""

    __slots__ = ("_at_s", "_pending", "_values", "_zero")

    def __init__(self, size: int) -> None:
        self._zero = (0.0,) * size
        self._at_s = -math.inf
        self._values: Sequence[float] = self._zero
        self._pending: deque[tuple[float, Sequence[float]]] = deque()

    def add(self, time_s: float, values: Sequence[float]) -> None:
        self._pending.append((time_s, values))

    def at(self, time_s: float) -> Sequence[float]:
        pending = self._pending
        while pending and pending[0][0] <= time_s + _NEAR_S:
            self._at_s, self._values = pending.popleft()
        if not pending or self._at_s >= time_s - _NEAR_S:
            return self._values
        if self._at_s == -math.inf:
            return self._zero
        after_s, after = pending[0]
        part = (time_s - self._at_s) / (after_s - self._at_s)
        return tuple(a + part * (b - a) for a, b in zip(self._values, after))


# Packets sent and lost so far, and the rate of sending in bit/s: None where the kind has none.
Counts = tuple[float, float, float | None]


def _numbers() -> array[float]:
    """Samples grow to hundreds of thousands: eight bytes for each, where a list of objects takes tens and the run its time to make them."""
    return array("d")


@dataclass
class Line:
    """One receiver's data of a flow. track: payload bytes received, packets lost. again: segments retransmitted, in all. sending: records of the
    sender that no sample has. bytes, packets, losses, rates: at each sample, payload received and `Counts` so far; not a number
    where there is none."""

    name: str
    flow: Flow
    receiver: str
    role: str
    first: int
    track: Track = field(default_factory=lambda: Track(2))
    headers: int = 0
    again: float = 0.0
    sending: deque[tuple[float, Counts]] = field(default_factory=deque)
    sent: Counts = (0.0, 0.0, None)
    bytes: array[float] = field(default_factory=_numbers)
    packets: array[float] = field(default_factory=_numbers)
    losses: array[float] = field(default_factory=_numbers)
    rates: array[float] = field(default_factory=_numbers)

    def counts(self, index: int) -> Counts:
        """At a sample, counted from the line's first."""
        rate = self.rates[index]
        return self.packets[index], self.losses[index], None if math.isnan(rate) else rate


class ControlValues(NamedTuple):
    """dropped: packets so far, by the columns of the port's scheme."""

    connections: int
    fair_rate_bps: float
    dropped: Mapping[str, int]


RECEIVED, SENT, WAITED, DROPPED = range(4)
"""Places in the sums of a port."""


@dataclass
class PortTrack:
    """An output port of a switch. sums: what it had counted at each sample, packed, for there are hundreds of thousands of them. controls: (time,
    what the controller put in force), by time. averages: the average queue in packets by which its scheme decides, at each sample, None where it is not known;
    empty without one."""

    port: Port
    track: Track
    average: Average | None
    form: struct.Struct
    sums: bytearray = field(default_factory=bytearray)
    controls: list[tuple[float, ControlValues]] = field(default_factory=list)
    averages: list[float | None] = field(default_factory=list)
    averaging: deque[tuple[float, float]] = field(default_factory=deque)
    last_average: float | None = None

    def at(self, index: int) -> Sequence[float]:
        """So far at a sample: bytes `RECEIVED` and `SENT`, packet nanoseconds of waiting (`WAITED`), from `DROPPED` on packets by each of
        `Sampler.causes`."""
        return self.form.unpack_from(self.sums, index * self.form.size)

    @property
    def name(self) -> str:
        return f"{self.port.node}->{self.port.peer}"

    def control_at(self, time_s: float) -> ControlValues | None:
        """What was in force at a time of the run."""
        index = bisect.bisect_right(self.controls, time_s + _NEAR_S, key=operator.itemgetter(0))
        return self.controls[index - 1][1] if index else None

    def average_at(self, index: int) -> float | None:
        return self.averages[index] if self.average is not None else None


def records_to_a_sample(experiment: Experiment) -> int:
    return max(1, math.ceil(experiment.duration_s / RECORD_S / _MOST_SAMPLES))


def instants_ns(experiment: Experiment, timing: Timing) -> tuple[int, int]:
    """Of samples, on the records' clock: the first, and from each to the next."""
    every_s = RECORD_S * records_to_a_sample(experiment)
    every_ns = round(every_s * NS)
    return math.ceil((timing.begin_s - _NEAR_S) / every_s) * every_ns, every_ns


class Sampler:
    """Times fed are on the clock of the records; samples count from the run's beginning."""

    def __init__(self, experiment: Experiment, timing: Timing, causes: Sequence[str], estimate_averages: bool) -> None:
        """causes: of drops, in the order in which `port` gets them. estimate_averages: what comes is the records that a run writes, by
        `port`; schemes' averages are not among them, and are computed from the queues. Else both are given as they are: `sums`, `add_average`."""
        self.experiment = experiment
        self.timing = timing
        self.causes = tuple(causes)
        self._form = struct.Struct(f"={DROPPED + len(self.causes)}d")
        self.estimated = estimate_averages
        self.every = records_to_a_sample(experiment)
        self.step_s = RECORD_S * self.every
        self.span = max(1, round(_AVERAGE_S / self.step_s))
        """Samples that a rate is an average over."""
        self.times: list[float] = []
        self.lines: list[Line] = []
        self.complete: dict[str, float] = {}
        """When each file that is complete was so."""
        self.version = 0
        """Grows with each change of the flows or of a link's rate."""
        self._ends: dict[tuple[str, str], list[Line]] = {}
        self._next = math.ceil((timing.begin_s - _NEAR_S) / self.step_s)
        for flow in experiment.flows:
            if flow.start_s < experiment.duration_s:
                self.add_flow(flow)
        ports = experiment.topology.ports()
        self.ports = {
            (s, p.number): PortTrack(p, Track(DROPPED + len(self.causes)), p.link.average, self._form)
            for s in experiment.topology.switches
            for p in ports[s]
        }
        self._by_number = [
            {number: track for (s, number), track in self.ports.items() if s == name} for name in experiment.topology.switches
        ]
        self._exact = not estimate_averages
        self._averaging = [port for port in self.ports.values() if port.average is not None]

    def add_flow(self, flow: Flow) -> None:
        """One that the run did not have, from now on."""
        for role, host in zip(record_roles(flow)[1:], flow.all_receivers):
            line = Line(f"{flow.name}@{host}" if flow.receivers else flow.name, flow, host, role, len(self.times))
            self.lines.append(line)
            self._ends.setdefault((flow.name, role), []).append(line)
            self._ends.setdefault((flow.name, "sender"), []).append(line)
        self.version += 1

    def changed(self, experiment: Experiment) -> None:
        """Another schedule of flows and links, the same network."""
        self.experiment = experiment
        by_name = {flow.name: flow for flow in experiment.flows}
        for line in self.lines:
            line.flow = by_name[line.flow.name]
        self.version += 1

    def flow(self, name: str, role: str, records: Iterable[Mapping[str, Any]]) -> None:
        """Records of one end of a flow (hosts/README.md), in their order."""
        lines, receives = self._ends.get((name, role), ()), role != "sender"
        for record in records:
            kind = record["kind"]
            if kind == "data" and receives:
                for line in lines:
                    if "received_payload_bytes" in record:
                        values = record["received_payload_bytes"], 0.0
                    else:
                        values = record["received_bytes"] - line.headers * record["received_packets"], record["lost_packets"]
                    line.track.add(record["t"], values)
            elif kind == "sent":
                for line in lines:
                    self._sent(line, record)
            elif kind == "complete":
                self.complete[name] = record["t"] - self.timing.begin_s
            elif kind == "start" and receives:
                for line in lines:
                    line.headers = record.get("headers_bytes", 0)

    def _sent(self, line: Line, record: Mapping[str, Any]) -> None:
        if isinstance(line.flow.settings, TcpSettings):
            # Retransmitted data counts as lost: the receiver cannot tell.
            line.again += record.get("retransmits") or 0
            line.sending.append((record["t"], (record["sent_bytes"] / line.flow.settings.packet_bytes + line.again, line.again, None)))
        else:
            line.sending.append((record["t"], (record["sent_packets"], 0.0, record["rate_bps"])))

    def sums(self, found: Iterable[tuple[int, int, bytes]]) -> None:
        """What the network in virtual time has counted at the very instants of samples, as its `port_sums` gives it for `instants_ns`."""
        for switch, number, sums in found:
            self._by_number[switch][number].sums.extend(sums)

    def port(self, switch: str, number: int, time_s: float, values: Sequence[float]) -> None:
        """values: bytes received and sent, packet seconds of waiting, packets dropped by cause; at any time."""
        track = self.ports.get((switch, number))
        if track is not None:
            track.track.add(time_s, values)

    def control(self, switch: str, number: int, time_s: float, connections: int, fair_rate_bps: float, dropped: Mapping[str, int]) -> None:
        """What the controller put in force at a port."""
        track = self.ports.get((switch, number))
        if track is not None:
            track.controls.append((time_s - self.timing.begin_s, ControlValues(connections, fair_rate_bps, dropped)))

    def add_average(self, switch: str, number: int, time_s: float, packets: float) -> None:
        self.ports[switch, number].averaging.append((time_s, packets))

    @property
    def next_s(self) -> float:
        """The instant of the next sample, on the records' clock."""
        return self._next * self.step_s

    def advance(self, until_s: float) -> int:
        """Take the samples up to an instant whose records are all there; how many there are now."""
        instants = []
        while self._next * self.step_s <= until_s + _NEAR_S:
            instants.append(self._next * self.step_s)
            self._next += 1
        for line in self.lines:
            self._sample(line, instants)
        for at_s in instants:
            if not self._exact:
                for port in self.ports.values():
                    received, sent, waited, *drops = port.track.at(at_s)
                    port.sums.extend(self._form.pack(received, sent, waited * NS, *drops))
            for port in self._averaging:
                self._average(port, at_s)
                port.averages.append(port.last_average)
        # Last: readers in other threads take this count as valid for all lists.
        self.times.extend(round(at_s - self.timing.begin_s, 6) for at_s in instants)
        return len(self.times)

    def _sample(self, line: Line, instants: list[float]) -> None:
        at, sending, sent = line.track.at, line.sending, line.sent
        packets, losses, rate = sent
        rate = math.nan if rate is None else rate
        for at_s in instants:
            received, lost = at(at_s)
            line.bytes.append(received)
            if sending and sending[0][0] <= at_s + _NEAR_S:
                while sending and sending[0][0] <= at_s + _NEAR_S:
                    sent = sending.popleft()[1]
                packets, losses, rate = sent
                rate = math.nan if rate is None else rate
            line.packets.append(packets)
            line.losses.append(losses or lost)
            line.rates.append(rate)
        line.sent = sent

    def _average(self, port: PortTrack, at_s: float) -> None:
        while port.averaging and port.averaging[0][0] <= at_s + _NEAR_S:
            port.last_average = port.averaging.popleft()[1]
        if not self.estimated or port.average is None:
            return
        index = len(port.sums) // port.form.size - 1
        if index < 1:
            port.last_average = 0.0
            return
        before, row = port.at(index - 1), port.at(index)
        sent, queue = row[SENT] - before[SENT], (row[WAITED] - before[WAITED]) / NS / self.step_s
        if not math.isfinite(queue):
            return
        # avg <- avg + w (q - avg) with each packet, q the mean of the sample; idle time counts as the packets it had room for.
        packets = self.rate_bps(port, at_s - self.timing.begin_s) * self.step_s / 8 / port.average.mean_packet_bytes
        if queue > 0:
            packets = min(packets, sent / port.average.mean_packet_bytes)
        average = port.last_average or 0.0
        port.last_average = average + (1 - (1 - port.average.weight) ** packets) * (queue - average)

    def rate_bps(self, port: PortTrack, time_s: float) -> float:
        """Of the port's link at a time of the run."""
        rates = self.experiment.link_rates_bps(port.port)
        return rates[max(0, bisect.bisect_right(rates, (time_s, math.inf)) - 1)][1]


def counted(record: Mapping[str, Any]) -> dict[str, int]:
    """The columns of schemes in one of the controller's records."""
    return {column: int(record[column]) for column in counted_columns() if column in record}

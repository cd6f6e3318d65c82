"""A run's records on one grid of time: what every chart and table of the live view is computed from.

Records come in as they are written, whatever wrote them: the network in virtual time, host processes, or the files of a finished run.
Sums are kept as sums; rates are differences, taken where they are shown.
"""

from __future__ import annotations

import bisect
import math
import operator
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from experiments.kinds import TcpSettings
from experiments.model import Experiment, Flow
from fairlane.flows import Timing, record_roles
from topologies.model import Port, Red

NS = 1_000_000_000
RECORD_S = 0.1
"""Between the periodic records of switches and hosts."""
# A run has about so many samples at most: what a page can hold and draw.
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


@dataclass
class Line:
    """What one receiver of a flow gets. track: payload bytes received, packets lost. again: segments sent again, in all. sending: what the
    sender recorded and no sample has. bytes: payload received up to each sample. counts: at each sample."""

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
    bytes: list[float] = field(default_factory=list)
    counts: list[Counts] = field(default_factory=list)


class Told(NamedTuple):
    """early, forced: packets that RED has dropped so far."""

    connections: int
    fair_rate_bps: float
    early: int
    forced: int


# Bytes received and sent, packet nanoseconds of waiting, packets dropped by cause: sums.
RECEIVED, SENT, WAITED, DROPPED = 4, 6, 10, 12


@dataclass
class PortTrack:
    """An output port of a switch. rows: what it had counted at each sample, as the network in virtual time tells it (`RECEIVED` and so
    on are places in a row). told: (time, what the controller put in force), by time. averages: RED's average queue in packets at each
    sample, None where it is not known; empty without RED."""

    port: Port
    track: Track
    red: Red | None
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    told: list[tuple[float, Told]] = field(default_factory=list)
    averages: list[float | None] = field(default_factory=list)
    averaging: deque[tuple[float, float]] = field(default_factory=deque)
    last_average: float | None = None

    @property
    def name(self) -> str:
        return f"{self.port.node}->{self.port.peer}"

    def told_at(self, time_s: float) -> Told | None:
        """What was in force at a time of the run."""
        index = bisect.bisect_right(self.told, time_s + _NEAR_S, key=operator.itemgetter(0))
        return self.told[index - 1][1] if index else None

    def average_at(self, index: int) -> float | None:
        return self.averages[index] if self.red is not None else None


class Sampler:
    """Times fed are on the clock of the records; samples count from the run's beginning."""

    def __init__(self, experiment: Experiment, timing: Timing, causes: Sequence[str], estimate_red: bool) -> None:
        """causes: of drops, in the order in which `port` gets them. estimate_red: nobody feeds RED's averages; they are worked out from
        the recorded queues."""
        self.experiment = experiment
        self.timing = timing
        self.causes = tuple(causes)
        self.estimated = estimate_red
        self.every = max(1, math.ceil(experiment.duration_s / RECORD_S / _MOST_SAMPLES))
        """Records for each sample."""
        self.step_s = RECORD_S * self.every
        self.span = max(1, round(_AVERAGE_S / self.step_s))
        """Samples that a rate is an average over."""
        self.times: list[float] = []
        self.lines: list[Line] = []
        self.version = 0
        """Grows with each change of the flows or of a link's rate."""
        self._ends: dict[tuple[str, str], list[Line]] = {}
        self._next = math.ceil((timing.begin_s - _NEAR_S) / self.step_s)
        self._step_ns = round(self.step_s * NS)
        self._first_ns = self._next * self._step_ns
        for flow in experiment.flows:
            if flow.start_s < experiment.duration_s:
                self.add_flow(flow)
        ports = experiment.topology.ports()
        self.ports = {(s, p.number): PortTrack(p, Track(3 + len(self.causes)), p.link.red)
                      for s in experiment.topology.switches for p in ports[s]}
        self._by_number = [{number: track for (s, number), track in self.ports.items() if s == name} for name in experiment.topology.switches]
        self._exact = False
        self._red_ports = [port for port in self.ports.values() if port.red is not None]

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

    def flow(self, name: str, role: str, record: Mapping[str, Any]) -> None:
        """A record of one end of a flow (hosts/README.md)."""
        kind = record["kind"]
        if kind == "sent":
            for line in self._ends.get((name, role), ()):
                self._sent(line, record)
            return
        if role == "sender" or kind not in ("data", "start"):
            return
        for line in self._ends.get((name, role), ()):
            if kind == "start":
                line.headers = record.get("headers_bytes", 0)
            elif "received_payload_bytes" in record:
                line.track.add(record["t"], (record["received_payload_bytes"], 0.0))
            else:
                line.track.add(record["t"], (record["received_bytes"] - line.headers * record["received_packets"], record["lost_packets"]))

    def _sent(self, line: Line, record: Mapping[str, Any]) -> None:
        if isinstance(line.flow.settings, TcpSettings):
            # What was sent again counts as lost: the receiver does not know.
            line.again += record.get("retransmits") or 0
            line.sending.append((record["t"], (record["sent_bytes"] / line.flow.settings.packet_bytes + line.again, line.again, None)))
        else:
            line.sending.append((record["t"], (record["sent_packets"], 0.0, record["rate_bps"])))

    def port_rows(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """What the network in virtual time tells of its ports, at the very instants of samples."""
        self._exact = True
        for row in rows:
            if row[0] >= self._first_ns and not row[0] % self._step_ns:
                self._by_number[row[1]][row[2]].rows.append(row)

    def port(self, switch: str, number: int, time_s: float, values: Sequence[float]) -> None:
        """values: bytes received and sent, packet seconds of waiting, packets dropped by cause; at any time."""
        track = self.ports.get((switch, number))
        if track is not None:
            track.track.add(time_s, values)

    def told(self, switch: str, number: int, time_s: float, connections: int, fair_rate_bps: float, early: int, forced: int) -> None:
        """What the controller put in force at a port."""
        track = self.ports.get((switch, number))
        if track is not None:
            track.told.append((time_s - self.timing.begin_s, Told(connections, fair_rate_bps, early, forced)))

    def red_average(self, switch: str, number: int, time_s: float, packets: float) -> None:
        self.ports[switch, number].averaging.append((time_s, packets))

    @property
    def next_s(self) -> float:
        """The instant of the next sample, on the records' clock."""
        return self._next * self.step_s

    def advance(self, until_s: float) -> int:
        """Take the samples up to an instant whose records are all there; how many there are now."""
        while self._next * self.step_s <= until_s + _NEAR_S:
            self._sample(self._next * self.step_s)
            self._next += 1
        return len(self.times)

    def _sample(self, at_s: float) -> None:
        for line in self.lines:
            received, lost = line.track.at(at_s)
            line.bytes.append(received)
            sending = line.sending
            while sending and sending[0][0] <= at_s + _NEAR_S:
                line.sent = sending.popleft()[1]
            line.counts.append((line.sent[0], line.sent[1] or lost, line.sent[2]) if lost else line.sent)
        if not self._exact:
            for port in self.ports.values():
                received, sent, waited, *drops = port.track.at(at_s)
                port.rows.append((0, 0, 0, 0, received, 0, sent, 0, 0, 0, waited * NS, 0, drops))
        for port in self._red_ports:
            self._average(port, at_s)
            port.averages.append(port.last_average)
        # Last: who reads in another thread takes what is there for all of them.
        self.times.append(round(at_s - self.timing.begin_s, 6))

    def _average(self, port: PortTrack, at_s: float) -> None:
        while port.averaging and port.averaging[0][0] <= at_s + _NEAR_S:
            port.last_average = port.averaging.popleft()[1]
        if not self.estimated:
            return
        if len(port.rows) < 2:
            port.last_average = 0.0
            return
        before, row = port.rows[-2:]
        sent, queue = row[SENT] - before[SENT], (row[WAITED] - before[WAITED]) / NS / self.step_s
        if not math.isfinite(queue):
            return
        # avg <- avg + w (q - avg) with each packet, q the mean of the sample; idle time counts as the packets it had room for.
        packets = self.rate_bps(port, at_s - self.timing.begin_s) * self.step_s / 8 / port.red.mean_packet_bytes
        if queue > 0:
            packets = min(packets, sent / port.red.mean_packet_bytes)
        average = port.last_average or 0.0
        port.last_average = average + (1 - (1 - port.red.weight) ** packets) * (queue - average)

    def rate_bps(self, port: PortTrack, time_s: float) -> float:
        """Of the port's link at a time of the run."""
        rates = self.experiment.link_rates_bps(port.port)
        return rates[max(0, bisect.bisect_right(rates, (time_s, math.inf)) - 1)][1]


def drop_probability(average: float | None, red: Red | None, buffer: int) -> float | None:
    """RED's p_b for an average queue in packets (Floyd and Jacobson 1993, equation 2); 1 from the maximum on."""
    if average is None or red is None:
        return None
    low, high = red.minimum * buffer, red.maximum * buffer
    return 0.0 if average < low else 1.0 if average >= high else red.max_p * (average - low) / (high - low)

"""A run's records as time series: one table each for flows, links and fair rates, in seconds since the run began."""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from fairlane.arrays import np
from fairlane.controller.records import counted_columns, loop_drops
from fairlane.experiments import model
from fairlane.experiments.commands import CommandSettings
from fairlane.experiments.kinds import AlgorithmSettings, TcpSettings
from fairlane.experiments.model import Experiment, Flow
from fairlane.fabrics import raw
from fairlane.fabrics.flows import Timing, record_roles
from fairlane.hosts.records import plain_headers_bytes
from fairlane.results import columns, completions, conversations, csv_tables, delays, layers
from fairlane.results.delays import NO_DELAYS, Delays
from fairlane.topologies.model import Port

if TYPE_CHECKING:
    import pandas as pd

_INSTANT_S = 1e-6
_SILENCE_S = 2.0
"""Longer than packets are under way, and than the records of senders are apart."""
_NO_TIME_S = 1e-9
"""Differences of two times of the same instant are below."""
FLOW_RECORDS = frozenset(
    ("start", "data", "sent", "control", "end", "first_data", "complete", "delivered", "feedback", *layers.FLOW_RECORDS)
)
"""The kinds of an algorithm's records that are read here."""
FEEDBACK_RECORDS = frozenset(("feedback",))
"""Of these, those that only `round_trips` and `reports` need; an algorithm writes one for each acknowledgement."""


@dataclass(frozen=True)
class Steps:
    """A sum that grows over time, known at some instants (seconds), straight lines in between."""

    times_s: np.ndarray
    values: np.ndarray

    @staticmethod
    def of(times_s: Sequence[float], values: Sequence[float] | np.ndarray) -> Steps:
        return Steps(np.asarray(times_s, dtype=float), np.asarray(values, dtype=float))

    def at(self, time_s: float | np.ndarray) -> Any:
        """0 before the first instant, the last value after the last. Not a number where nothing is known of the sum."""
        if len(self.times_s) == 0:
            return np.full(len(time_s), math.nan) if isinstance(time_s, np.ndarray) else math.nan
        return np.interp(time_s, self.times_s, self.values, left=0.0)

    def over(self, start_s: float, end_s: float) -> float:
        """Growth from one instant to another."""
        start, end = self.at(np.asarray([start_s, end_s]))
        return float(end - start)


class LaterSteps(Steps):
    """A sum that is worked out when it is first read: of thousands of flows few are."""

    def __init__(self, make: Callable[[], Steps]) -> None:
        object.__setattr__(self, "_make", make)

    def __getattr__(self, name: str) -> Any:
        if name not in ("times_s", "values"):
            raise AttributeError(name)
        made: Steps = self.__dict__.pop("_make")()
        object.__setattr__(self, "times_s", made.times_s)
        object.__setattr__(self, "values", made.values)
        return self.__dict__[name]


@dataclass(frozen=True)
class FlowRecord:
    """One flow's sums. goodput: payload bytes at the receiver. sent, lost: packets. controls: (time, R_d) of each sender
    control packet that reached the receiver. active: from its first packet to its last, or until its file was complete; None when it never sent.

    sent_bytes: of IPv4 datagrams. received: bytes of IPv4 datagrams at the receiver; TCP's without duplicates. packets: of them. late: packets that came more
    than 75 ms after the one before. delay: sum over packets of the time under way, seconds; both empty where nobody records them, as of TCP. outstanding, round_trips: (time, packets
    in flight or the window), (time, seconds) as the sender recorded them. reports, control_bytes: (time, SSRC, bytes) of each RTCP
    compound that reached the sender, and (time, bytes) of each that reached the receiver from it, as IPv4 datagrams. completion_s: from its
    start until the last byte of a flow that ends by itself was acknowledged; startup_s: of a TCP flow, from its start until it sent data; both not a number for
    others, and for kernels' TCP of iperf3. delivered_s: when the receiver had the last byte, in seconds since the run began, where that is recorded. slowdown: completion_s over the time that the same file needs in an empty network.
    one_way, rtt: delays of single packets in the run's window, from sender to receiver, and round trips as the sender measured them; empty where nobody did."""

    flow: Flow
    goodput: Steps
    sent: Steps
    lost: Steps
    sending_rate: Sequence[tuple[float, float]]
    controls: Sequence[tuple[float, float]]
    active: tuple[float, float] | None
    sent_bytes: Steps = Steps.of([], [])
    received: Steps = Steps.of([], [])
    packets: Steps = Steps.of([], [])
    late: Steps = Steps.of([], [])
    delay: Steps = Steps.of([], [])
    outstanding: Sequence[tuple[float, float]] = ()
    round_trips: Sequence[tuple[float, float]] = ()
    reports: Sequence[tuple[float, int, int]] = ()
    control_bytes: Sequence[tuple[float, int]] = ()
    completion_s: float = math.nan
    startup_s: float = math.nan
    delivered_s: float = math.nan
    slowdown: float = math.nan
    one_way: Delays = NO_DELAYS
    rtt: Delays = NO_DELAYS

    def active_in(self, start_s: float, end_s: float) -> tuple[float, float] | None:
        """The part of a window in which the flow was active; None when it was not. A microsecond more or less is the window's own begin or end."""
        if self.active is None:
            return None
        start = start_s if self.active[0] <= start_s + _INSTANT_S else self.active[0]
        end = end_s if self.active[1] >= end_s - _INSTANT_S else self.active[1]
        return (start, end) if start < end else None


@dataclass(frozen=True)
class LinkRecord:
    """One output port's sums, by the name of its link ("s1->s2"). transmitted_bytes: as the link's rate counts them, of a frame that is
    being sent the part that has left; empty where nobody recorded them. packets: of them, empty likewise. queue: packets
    waiting, packet seconds; None when unknown. rates_bps: the link's rate from each time on. marks: packets that the scheme marked; None
    where it does not mark. queues: of a port with several, what `raw.queue_columns` has of each, by priority. marks_of: of the marks, those in
    single queues, by priority. overload: packets that the scheme decided on in overload; None where it reports none. waits: how long packets waited
    that left in the run's window, by queue; empty where nobody measured it."""

    name: str
    port: Port
    transmitted_bytes: Steps
    queue: Steps | None
    drops: dict[str, Steps]
    rates_bps: list[tuple[float, float]]
    marks: Steps | None = None
    packets: Steps = Steps.of([], [])
    queues: Mapping[int, raw.Columns] = field(default_factory=dict)
    marks_of: Mapping[int, Steps] = field(default_factory=dict)
    overload: Steps | None = None
    waits: Mapping[int, Delays] = field(default_factory=dict)

    def rate_at(self, time_s: float) -> float:
        """Of the link at an instant, in bit/s."""
        return self.rates_bps[max(0, bisect.bisect_right(self.rates_bps, (time_s, float("inf"))) - 1)][1]

    def capacity_bits(self) -> Steps:
        """What the link could have sent since the run began."""
        times = [t for t, _ in self.rates_bps] + [1e9]
        bits = np.cumsum([0.0, *(rate * (b - a) for (a, rate), b in zip(self.rates_bps, times[1:]))])
        return Steps.of(times, bits)


@dataclass(frozen=True, slots=True)
class FairRate:
    """What the controller put in force at a port. time_s: when. interval_end_s: of the observation interval counted."""

    time_s: float
    interval_end_s: float
    connections: int
    rate_bps: float
    utilisation: float


@dataclass(frozen=True)
class Series:
    """flows that should start, in the experiment's order; links and fair_rates by switch and port number. layered: the history of
    layered flows' layers. impaired: of each direction of a link that loses or impairs frames what `raw.link_columns` has. wrong_checksums: packets that
    each node dropped for one, in all; empty where no link corrupts frames."""

    experiment: Experiment
    flows: list[FlowRecord]
    links: dict[tuple[str, int], LinkRecord]
    fair_rates: dict[tuple[str, int], columns.Rows[FairRate]]
    layered: Sequence[layers.LayeredRecord] = ()
    impaired: Mapping[str, raw.Columns] = field(default_factory=dict)
    wrong_checksums: Mapping[str, int] = field(default_factory=dict)

    @property
    def bottleneck(self) -> LinkRecord:
        return self.links[self.experiment.bottleneck]


def load(folder: Path, experiment: Experiment, timing: Timing, ports: Collection[tuple[str, int]] | None = None) -> Series:
    """Read a run's raw records from `folder`. ports: of links and fair rates those of these ports alone, by switch and number; None for all."""
    files = raw.Files(folder)
    control = raw.controller_columns(folder, _control())
    for rows in control.values():
        rows["time_s"] = rows["time_s"] - timing.begin_s
    every_s, whole = _read_s(experiment.duration_s), [timing.begin_s + at for at in (0.0, *experiment.window_s)]
    measured = delays.read(folder)
    links = {}
    for switch in experiment.topology.switches:
        wanted = [port for port in experiment.topology.ports()[switch] if ports is None or (switch, port.number) in ports]
        if not wanted:
            continue
        counters = raw.switch_columns(files, switch, _is_read, every_s, whole)
        if counters:
            counters["unix_s"] = counters["unix_s"] - timing.begin_s
        queues = raw.queue_columns(files, switch) if any(port.link.priorities > 1 for port in wanted) else {}
        for of_queue in queues.values():
            of_queue["unix_s"] = of_queue["unix_s"] - timing.begin_s
        for port in wanted:
            there = counters["port"] == port.number if counters else None
            rows = {column: values[there] for column, values in counters.items()}
            link = _link(port, rows, control.get((switch, port.number), {}), experiment.link_rates_bps(port))
            if port.link.priorities > 1:
                found = {queue: of_queue for (number, queue), of_queue in queues.items() if number == port.number}
                link = dataclasses.replace(link, queues=found)
            links[switch, port.number] = dataclasses.replace(link, waits=measured.waits.get((switch, port.number), {}))
    interval = experiment.settings.control.interval_s
    fair_rates = {key: _fair_rates(control.get(key, {}), timing, interval) for key in links}
    # A flow that was to start after the end of a shortened run is no flow of it.
    counted = conversations.of_run(folder, experiment, timing.begin_s)
    flows = [
        _with_others(record, experiment, f, measured)
        for f in experiment.flows
        if f.start_s < experiment.duration_s
        for record in (
            [_command(folder, f, timing, counted[f.name])]
            if f.name in counted
            else _flow(folder, f, experiment.topology.ip, timing, every_s, whole)
        )
    ]
    impaired = raw.link_columns(files)
    for rows in impaired.values():
        rows["unix_s"] = rows["unix_s"] - timing.begin_s
    wrong = raw.wrong_checksums(files, experiment.topology.switches) if experiment.corrupts else {}
    return Series(experiment, flows, links, fair_rates, layers.load(folder, experiment, timing), impaired, wrong)


def _control() -> frozenset[str]:
    """The columns of the controller's records that are read here."""
    plain = ("time_s", "switch", "port", "connections", "fair_rate_bps", "utilisation_ppm", "transmitted_bytes")
    return frozenset((*plain, *counted_columns(), *loop_drops()))


def _is_read(column: str) -> bool:
    """Of a switch's counters."""
    return column in ("unix_s", "port", "tx_bytes", "tx_packets", "busy_s", "queue_integral_packet_s") or column.startswith("drop_")


def _read_s(duration_s: float) -> float:
    """Between two records that are kept."""
    return model.SAMPLED_S * math.ceil(duration_s / model.LONG_S)


def _link(port: Port, rows: raw.Columns, control: raw.Columns, rates: list[tuple[float, float]]) -> LinkRecord:
    name = f"{port.node}->{port.peer}"
    told = {c: Steps(control["time_s"], control[c].astype(float)) for c in ("transmitted_bytes", *counted_columns()) if c in control}
    marks = told.get("marks") if port.link.marks else None
    aqm = port.link.aqm
    counters = () if aqm is None else aqm.scheme.counters
    of_queues = {c.queue: told[c.column] for c in counters if c.queue is not None and c.column in told}
    overload = next((told[c.column] for c in counters if c.reports == "overload" and c.column in told), None)
    # The device counts drops in ingress at the input port; drops in egress are of these queues.
    drops = {cause: told[column] for cause, column in port.link.causes.items() if column in told}
    held = {cause: Steps(control["time_s"], control[c].astype(float)) for c, cause in loop_drops().items() if c in control}
    if not rows or not len(rows["unix_s"]):
        # The switch wrote no rows: the program's own counters are known for each interval, the queue is not.
        return LinkRecord(
            name,
            port,
            told.get("transmitted_bytes", Steps.of([], [])),
            None,
            {**drops, **held},
            rates,
            marks,
            Steps.of([], []),
            {},
            of_queues,
            overload,
        )
    times = rows["unix_s"]
    others = {
        name.removeprefix("drop_"): Steps(times, rows[name].astype(float)) if rows[name].any() else Steps(times[:1], np.zeros(1))
        for name in rows
        if name.startswith("drop_")
        and name != "drop_ingress"
        and not (name == "drop_egress" and drops and aqm is not None and not aqm.scheme.standing)
    }
    begun = (rows["tx_bytes"] - port.link.uncounted_bytes * rows["tx_packets"]).astype(float)
    return LinkRecord(
        name,
        port,
        Steps(times, begun if port.trace is not None or "busy_s" not in rows else _left(times, begun, rows["busy_s"], rates)),
        # BMv2 reports no queues of a program without the register.
        Steps(times, rows["queue_integral_packet_s"].astype(float)) if "queue_integral_packet_s" in rows else None,
        {**others, **drops, **held},
        rates,
        marks,
        Steps(times, rows["tx_packets"].astype(float)),
        {},
        of_queues,
        overload,
    )


def _left(times_s: np.ndarray, begun: np.ndarray, busy_s: np.ndarray, rates: list[tuple[float, float]]) -> np.ndarray:
    """Bytes that have left by each time. begun: of all frames whose sending has begun, up to a frame more than a link can send. So of an interval with one
    rate this takes the time that the link was busy; a switch in virtual time writes a row when a rate changes."""
    since = np.asarray([-math.inf, *(t for t, _ in rates[1:])])
    first = np.searchsorted(since, times_s[:-1] + _INSTANT_S, side="right") - 1
    last = np.searchsorted(since, times_s[1:] - _INSTANT_S, side="right") - 1
    rate = np.asarray([bps for _, bps in rates])[first]
    grown = np.where(first >= last, np.diff(busy_s) * rate / 8, np.diff(begun))
    left: np.ndarray = begun[0] + np.concatenate([np.zeros(1), np.cumsum(grown)])
    return left


def _fair_rates(rows: raw.Columns, timing: Timing, interval_s: float) -> columns.Rows[FairRate]:
    if not rows:
        return columns.Rows(FairRate, *[np.zeros(0)] * 5)
    times = rows["time_s"]
    # Intervals end at whole multiples of their length in Unix time; the values come into force a little later.
    ends = (times + timing.begin_s) // interval_s * interval_s - timing.begin_s
    rates, utilisation = rows["fair_rate_bps"].astype(float), rows["utilisation_ppm"] / 1e6
    return columns.Rows(FairRate, times, ends, rows["connections"].astype(int), rates, utilisation)


def _flow(folder: Path, flow: Flow, ip: int, timing: Timing, every_s: float, whole: Collection[float]) -> list[FlowRecord]:
    """One record; of a flow with several receivers one for each, called FLOW@RECEIVER. every_s, whole: as of `columns.sparse`, where that is longer than
    records are apart."""
    is_tcp = isinstance(flow.settings, TcpSettings)
    make, sums = (_tcp, ("data", "sent")) if is_tcp else (_datagrams, ("data",))
    files = (folder / f"{flow.name}.{role}.jsonl" for role in record_roles(flow))

    def read(file: Path) -> _Records:
        records = columns.with_sums(raw.json_lines(file))
        if every_s > model.SAMPLED_S:
            # Less than that, since records come a little early or late.
            records = columns.sparse(records, sums, every_s - model.SAMPLED_S / 2, whole)
        return columns.by_kind(records, FLOW_RECORDS, timing.begin_s)

    sender, *receivers = map(read, files)
    if not flow.receivers:
        record = make(flow, ip, receivers[0], sender)
        # TCP's sender counts its losses; a receiver of a group may leave it.
        return [record if is_tcp else dataclasses.replace(record, lost=_with_unanswered(record))]
    made = []
    for host, joins_s, records in zip(flow.receivers, flow.receiver_start_s, receivers):
        one = dataclasses.replace(flow, name=f"{flow.name}@{host}", receiver=host, receivers=(), receiver_start_s=())
        member = make(one, ip, records, sender)
        active = member.active and (max(joins_s, member.active[0]), member.active[1])
        made.append(dataclasses.replace(member, active=active if active and active[0] < active[1] else None))
    return made


_Records = columns.ByKind


def _some(samples: columns.Rows[tuple[float, float]], times_s: np.ndarray) -> columns.Rows[tuple[float, float]]:
    """Every one of a flow's samples; of a long one's, as many as one of `model.LONG_S` has."""
    long_s = float(times_s[-1] - times_s[0]) if len(times_s) else 0.0
    return samples[:: max(1, math.ceil(long_s / model.LONG_S))]


def _steady(data: columns.Columns, counted: np.ndarray) -> Callable[[np.ndarray], Steps]:
    """Makes steps of sums that grow by packets. counted: one of them. Around each marked instant (a record with `since_s`) they grow in a straight line from the
    packet before to the packet after: whole packets are up to one too few at each end of a window."""
    times, since, gaps = data["t"], data["since_s"], {}
    for at, before_s in enumerate(since.tolist()):
        if not math.isnan(before_s):
            begin = times[at] - before_s
            # Periodic records may lie in the same gap.
            first = max(int(np.searchsorted(counted, counted[at])), int(np.searchsorted(times, begin)))
            after = int(np.searchsorted(counted, counted[at], side="right"))
            if first <= at and after < len(times) and times[after] > begin:
                gaps[after] = first, (times[first:after] - begin) / (times[after] - begin)

    def steps(sums: np.ndarray) -> Steps:
        for after, (first, parts) in gaps.items():
            sums = np.concatenate([sums[:first], sums[first:after] + parts * (sums[after] - sums[first]), sums[after:]])
        return Steps(times, sums)

    return steps


def _datagrams(flow: Flow, ip: int, received: _Records, sent: _Records) -> FlowRecord:
    data, sendings, feedback, control = received["data"], sent["sent"], sent["feedback"], received["control"]
    times, packets = data["t"], data["received_packets"]
    # Plain sources have no record of their start.
    without = 0.0 if isinstance(flow.settings, AlgorithmSettings) else plain_headers_bytes(ip)
    headers = next(iter(received["start"].get("headers_bytes", without)), without)
    steady, late = _steady(data, packets), data["delayed_packets"]
    sent_times = np.concatenate([sendings["t"], sent["end"]["t"]])
    moving = sendings["t"]
    sized = ~np.isnan(feedback["bytes"])
    return FlowRecord(
        flow,
        goodput=steady(data["received_bytes"] - headers * packets),
        sent=Steps(sent_times, np.concatenate([sendings["sent_packets"], sent["end"]["sent_packets"]])),
        lost=Steps(times, data["lost_packets"]),
        sending_rate=columns.tuples(moving, sendings["rate_bps"]),
        controls=control.pairs("t", "rd_bps"),
        active=(float(moving[0]), float(sent_times.max())) if len(moving) else None,
        sent_bytes=Steps(moving, sendings["sent_bytes"]),
        received=steady(data["received_bytes"]),
        packets=steady(packets),
        late=Steps.of([], []) if np.isnan(late).any() else steady(late),
        delay=steady(data.get("delay_sum_s", 0.0)),
        outstanding=_some(sendings.pairs("t", "in_flight_packets"), moving),
        round_trips=columns.tuples(
            *map(np.concatenate, zip(*(_some(records.pairs("t", "rtt_s"), moving).columns for records in (sendings, feedback))))
        ),
        reports=columns.tuples(feedback["t"][sized], *(feedback[key][sized].astype(int) for key in ("ssrc", "bytes"))),
        control_bytes=columns.tuples(*(column.astype(kind) for kind, column in zip((float, int), control.pairs("t", "bytes").columns))),
    )


def _tcp(flow: Flow, ip: int, received: _Records, sent: _Records) -> FlowRecord:
    data, sendings = received["data"], sent["sent"]
    times, retransmits = sendings["t"], sendings["retransmitted"]
    packets = sendings["sent_bytes"] / flow.settings.packet_bytes
    payload = flow.tcp_settings.payload_bytes(ip)
    sent_s, arrived_s = _from_start(sendings), _from_start(data)
    active = (float(sent_s[0]), float(times[-1])) if len(sendings) else None
    complete, sizes = sent["complete"].pairs("t", "bytes").columns
    if active is not None and len(complete):
        active = active[0], float(complete[0])
    payload_bytes = data["received_payload_bytes"]
    steady = _steady(data, payload_bytes)
    # All of a file is there when it is complete. The receiver's own records are of whole tenths of a second.
    known = arrived_s < complete[0] if len(complete) else None
    if known is not None:
        arrived_s = np.concatenate([arrived_s[known], complete])

    def arrived(part: Callable[[np.ndarray], np.ndarray]) -> Steps:
        values = _from_zero(steady(part(payload_bytes)).values)
        return Steps(arrived_s, values if known is None else np.concatenate([values[known], part(sizes)]))

    windows = sendings.pairs("t", "cwnd_bytes").columns
    sent_bytes, packet_bytes = sendings["sent_bytes"], flow.settings.packet_bytes
    return FlowRecord(
        flow,
        goodput=arrived(lambda payload_bytes: payload_bytes),
        # iperf3 counts the application's data; the kernel's retransmissions come on top.
        sent=Steps(sent_s, _from_zero(packets + retransmits)),
        lost=Steps(sent_s, _from_zero(retransmits)),
        sending_rate=[],
        controls=[],
        active=active,
        sent_bytes=LaterSteps(lambda: Steps(sent_s, _from_zero(sent_bytes + packet_bytes * retransmits))),
        received=LaterSteps(lambda: arrived(lambda payload_bytes: payload_bytes * packet_bytes / payload)),
        packets=LaterSteps(lambda: arrived(lambda payload_bytes: payload_bytes / payload)),
        outstanding=columns.tuples(windows[0], windows[1] / payload),
        round_trips=sendings.pairs("t", "rtt_s"),
        completion_s=float(complete[0] - active[0]) if active is not None and len(complete) else math.nan,
        startup_s=float(sent["first_data"]["t"][0] - active[0]) if active is not None and len(sent["first_data"]) else math.nan,
        delivered_s=float(received["delivered"]["t"][0]) if len(received["delivered"]) else math.nan,
    )


def _command(folder: Path, flow: Flow, timing: Timing, counted: conversations.Counted) -> FlowRecord:
    """Of real programs: bytes as the switches counted them, the rest as the kernel says it of the sender's sockets. Complete when the program that does
    not wait for the other one has ended by itself, and successfully."""
    settings = flow.settings
    assert isinstance(settings, CommandSettings)
    kinds = ("start", "sockets", "end")
    ends = {role: columns.by_kind(raw.flow_records(folder, flow.name, role), kinds, timing.begin_s) for role in ("sender", "receiver")}
    first = "sender" if settings.sender and not settings.waits("sender") else "receiver"
    sent, received, sockets = counted.sent, counted.received, ends["sender"]["sockets"]
    active = None
    if len(sent.times_s) > 1:
        begun = ends[first]["start"]["t"]
        # Packets are known by intervals; a program sends none before it starts.
        start_s = max(float(sent.times_s[0]), float(begun[0]) if len(begun) else -math.inf)
        end_s = max(float(sent.times_s[-1]), float(received.times_s[-1]))
        active = (min(start_s, float(sent.times_s[1])), end_s)
    both = np.unique(np.concatenate([sent.times_s, received.times_s]))
    of_sent, of_received = (Steps(sums.times_s, sums.packets) for sums in (sent, received))
    return FlowRecord(
        flow,
        goodput=Steps(received.times_s, received.payload_bytes),
        sent=of_sent,
        lost=Steps(both, _lost_by(of_sent.at(both) - of_received.at(both))),
        sending_rate=[],
        controls=[],
        active=active,
        sent_bytes=Steps(sent.times_s, sent.bytes),
        received=Steps(received.times_s, received.bytes),
        packets=of_received,
        outstanding=sockets.pairs("t", "cwnd_bytes"),
        round_trips=sockets.pairs("t", "rtt_s"),
        completion_s=_ended_after(ends[first], settings),
    )


def _with_unanswered(record: FlowRecord) -> Steps:
    """The packets that a receiver found missing, and those after the last one that reached it. A receiver finds a loss by a later packet: where none of a flow
    comes any more while its sender goes on for `_SILENCE_S`, it finds none, although all are lost."""
    lost, received, sent = record.lost, record.packets.values, record.sent
    if not len(received) or not len(sent.values) or sent.values[-1] <= received[-1] + lost.values[-1]:
        return lost
    last, all_sent = int(np.argmax(received >= received[-1])), int(np.argmax(sent.values >= sent.values[-1]))
    if sent.times_s[all_sent] < lost.times_s[last] + _SILENCE_S:
        return lost
    missing = sent.at(lost.times_s[last + 1 :]) - received[-1]
    return Steps(lost.times_s, np.concatenate([lost.values[: last + 1], np.maximum(lost.values[last], missing)]))


def _lost_by(missing: np.ndarray) -> np.ndarray:
    """Packets that were lost by each instant, from those that had been sent and not received then: lost, or under way. The lost ones are missing at all later
    instants, too, so that there are no more of them than are missing at any."""
    found = missing.tolist()
    for at in range(len(found) - 2, -1, -1):
        found[at] = min(found[at], found[at + 1])
    return np.asarray(found, dtype=float)


def _ended_after(records: _Records, settings: CommandSettings) -> float:
    """Seconds from the start of a program to its end, if it has ended by itself with a code of success; otherwise not a number."""
    start, end = records["start"]["t"], records["end"]
    codes = end["exit_code"]
    if not len(start) or not len(codes) or end["stopped"][0] != 0 or codes[0] not in settings.exit_codes:
        return math.nan
    return float(end["t"][0] - start[0])


def _with_others(record: FlowRecord, experiment: Experiment, flow: Flow, measured: delays.Measured) -> FlowRecord:
    """With its slowdown and its packets' delays, where they are known. flow: as the experiment has it, with all its receivers."""
    others: dict[str, Any] = {}
    if not math.isnan(record.completion_s) and isinstance(record.flow.settings, TcpSettings):
        alone_s = completions.empty_network_s(experiment, record.flow, handshake=record.startup_s > _NO_TIME_S)
        others["slowdown"] = record.completion_s / alone_s
    one_way, rtt = measured.one_way.get((flow.name, record.flow.receiver)), measured.round_trips.get(flow.name)
    if one_way is not None or rtt is not None:
        others |= {"one_way": one_way or NO_DELAYS, "rtt": rtt or NO_DELAYS}
    return dataclasses.replace(record, **others) if others else record


def _from_start(records: columns.Columns) -> np.ndarray:
    """Their times. Records have the time of the end of their intervals: here the first interval's begin comes first."""
    times = records["t"]
    return np.concatenate([times[:1] - records["seconds"][:1], times])


def _from_zero(sums: np.ndarray) -> np.ndarray:
    """At these times: the first interval begins at zero."""
    return np.concatenate([np.zeros(min(1, len(sums))), sums])


class FairShares(Protocol):
    """As `fairlane.results.shares.ShareTable` has them."""

    def at(self, time_s: float) -> Mapping[str, float]:
        """The max-min share of each flow that is active at an instant, bit/s."""


def active_flows(series: Series, start_s: float, end_s: float) -> list[FlowRecord]:
    """Flows that sent at some time in an interval."""
    return [f for f in series.flows if f.active is not None and f.active[0] <= end_s and f.active[1] >= start_s]


def tables(series: Series, shares: FairShares) -> dict[str, dict[str, Any]]:
    """The tables of a run's results (docs/results.md) as columns, by name."""
    parts = {"flows": flow_columns(series, shares), "links": _parts(link_columns(series)), "fair_rates": _parts(fair_rate_columns(series))}
    return {name: csv_tables.joined(found) for name, found in parts.items()}


def _parts(found: Iterable[tuple[tuple[str, int], dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    return (part for _, part in found)


def frame(parts: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """One table of all parts, as `csv_tables.joined` makes it."""
    import pandas as pd

    return pd.DataFrame(csv_tables.joined(parts))


def flow_table(series: Series, shares: FairShares) -> pd.DataFrame:
    """time_s (end of a bin of `Experiment.flow_bin_s`), flow, kind, goodput_bps, fair_share_bps, sending_rate_bps (ALS), sent_packets, lost_packets."""
    return frame(flow_columns(series, shares))


def flow_columns(series: Series, shares: FairShares) -> Iterator[dict[str, Any]]:
    """The same, flow by flow as columns, where a flow ever sent."""
    edges = np.asarray(series.experiment.bin_edges_s(series.experiment.flow_bin_s))
    begins, ends = edges[:-1], edges[1:]
    fair = [shares.at(t) for t in ((begins + ends) / 2).tolist()]
    for record in series.flows:
        if record.active is None:
            continue
        there = (ends >= record.active[0]) & (begins <= record.active[1])
        until = ends[there]
        at = np.concatenate([begins[there][:1], until])
        rated = record.sending_rate
        known = np.searchsorted(np.fromiter((t for t, _ in rated), float, len(rated)), until, side="right")
        rates = np.concatenate([[math.nan], np.fromiter((rate for _, rate in rated), float, len(rated))])
        yield {
            "time_s": until,
            "flow": record.flow.name,
            "kind": record.flow.shown_kind,
            "goodput_bps": 8 * np.diff(record.goodput.at(at)) / np.diff(at),
            "fair_share_bps": [given.get(record.flow.name, math.nan) for given in itertools.compress(fair, there.tolist())],
            "sending_rate_bps": rates[known],
            "sent_packets": np.diff(record.sent.at(at)),
            "lost_packets": np.diff(record.lost.at(at)),
        }


def link_table(series: Series) -> pd.DataFrame:
    """time_s (end of a bin of `Experiment.link_bin_s`), link, utilisation, queue_packets (mean), and drops by cause in the bin."""
    return frame(_parts(link_columns(series)))


def link_columns(series: Series) -> Iterator[tuple[tuple[str, int], dict[str, Any]]]:
    """The same, link by link as columns: together they are the largest table of a run. All have the same columns."""
    edges = np.asarray(series.experiment.bin_edges_s(series.experiment.link_bin_s))
    causes = dict.fromkeys(cause for link in series.links.values() for cause in link.drops)
    unknown = np.full(len(edges), math.nan)
    for key, link in series.links.items():
        yield (
            key,
            {
                "time_s": edges[1:],
                "link": link.name,
                "utilisation": np.diff(link.transmitted_bytes.at(edges)) * 8 / np.diff(link.capacity_bits().at(edges)),
                "queue_packets": np.diff(link.queue.at(edges) if link.queue is not None else unknown) / np.diff(edges),
                **{f"drop_{cause}": np.diff(link.drops[cause].at(edges) if cause in link.drops else unknown) for cause in causes},
            },
        )


def fair_rate_table(series: Series) -> pd.DataFrame:
    """time_s (when in force), link, connections, fair_rate_bps, utilisation (of the interval before)."""
    return frame(_parts(fair_rate_columns(series)))


def fair_rate_columns(series: Series) -> Iterator[tuple[tuple[str, int], dict[str, Any]]]:
    """The same, link by link as columns, where there are any."""
    for key, records in series.fair_rates.items():
        if records:
            time_s, _, connections, rates, utilisation = records.columns
            link = series.links[key].name
            yield key, {"time_s": time_s, "link": link, "connections": connections, "fair_rate_bps": rates, "utilisation": utilisation}

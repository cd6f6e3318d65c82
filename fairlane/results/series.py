"""A run's records as time series: one table each for flows, links and fair rates, in seconds since the run began."""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairlane.experiments.kinds import TcpSettings
from fairlane.experiments.model import Experiment, Flow
from fairlane.fabrics import raw
from fairlane.fabrics.flows import Timing, record_roles
from fairlane.results import layers
from fairlane.topologies import addressing
from fairlane.topologies.model import Port

_BIN_S = 1.0
FLOW_RECORDS = frozenset(("start", "data", "sent", "control", "end", "feedback", *layers.FLOW_RECORDS))
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
        """0 before the first instant, the last value after the last."""
        if len(self.times_s) == 0:
            return np.zeros_like(np.asarray(time_s, dtype=float))[()]
        return np.interp(time_s, self.times_s, self.values, left=0.0)

    def over(self, start_s: float, end_s: float) -> float:
        """Growth from one instant to another."""
        return float(self.at(end_s) - self.at(start_s))


@dataclass(frozen=True)
class FlowRecord:
    """One flow's sums. goodput: payload bytes at the receiver. sent, lost: packets. controls: (time, R_d) of each sender
    control packet that reached the receiver. active: from its first packet to its last, None when it never sent.

    received: bytes of IPv4 datagrams at the receiver; TCP's without duplicates. packets: of them. late: packets that came more
    than 75 ms after the one before. delay: sum over packets of the time under way, seconds. outstanding, round_trips: (time, packets
    in flight or the window), (time, seconds) as the sender recorded them. reports, control_bytes: (time, SSRC, bytes) of each RTCP
    compound that reached the sender, and (time, bytes) of each that reached the receiver from it, as IPv4 datagrams."""

    flow: Flow
    goodput: Steps
    sent: Steps
    lost: Steps
    sending_rate: list[tuple[float, float]]
    controls: list[tuple[float, float]]
    active: tuple[float, float] | None
    received: Steps = Steps.of([], [])
    packets: Steps = Steps.of([], [])
    late: Steps = Steps.of([], [])
    delay: Steps = Steps.of([], [])
    outstanding: tuple[tuple[float, float], ...] = ()
    round_trips: tuple[tuple[float, float], ...] = ()
    reports: tuple[tuple[float, int, int], ...] = ()
    control_bytes: tuple[tuple[float, int], ...] = ()


@dataclass(frozen=True)
class LinkRecord:
    """One output port's sums, by the name of its link ("s1->s2"). transmitted_bytes: as the link's rate counts them. queue: packets
    waiting, packet seconds; None when unknown. rates_bps: the link's rate from each time on."""

    name: str
    port: Port
    transmitted_bytes: Steps
    queue: Steps | None
    drops: dict[str, Steps]
    rates_bps: list[tuple[float, float]]

    def rate_at(self, time_s: float) -> float:
        """Of the link at an instant, in bit/s."""
        return self.rates_bps[max(0, bisect.bisect_right(self.rates_bps, (time_s, float("inf"))) - 1)][1]

    def capacity_bits(self) -> Steps:
        """What the link could have sent since the run began."""
        times = [t for t, _ in self.rates_bps] + [1e9]
        bits = np.cumsum([0.0, *(rate * (b - a) for (a, rate), b in zip(self.rates_bps, times[1:]))])
        return Steps.of(times, bits)


@dataclass(frozen=True)
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
    layered flows' layers."""

    experiment: Experiment
    flows: list[FlowRecord]
    links: dict[tuple[str, int], LinkRecord]
    fair_rates: dict[tuple[str, int], list[FairRate]]
    layered: Sequence[layers.LayeredRecord] = ()

    @property
    def bottleneck(self) -> LinkRecord:
        return self.links[self.experiment.bottleneck]


def load(folder: Path, experiment: Experiment, timing: Timing) -> Series:
    """Read a run's raw records from `folder`."""
    control = raw.controller_records(folder)
    if not control.empty:
        control["time_s"] -= timing.begin_s
    links = {}
    for switch in experiment.topology.switches:
        counters = raw.switch_counters(folder, switch)
        if not counters.empty:
            counters["unix_s"] -= timing.begin_s
        for port in experiment.topology.ports()[switch]:
            rows = counters[counters["port"] == port.number] if not counters.empty else counters
            records = control[(control["switch"] == switch) & (control["port"] == port.number)] if not control.empty else control
            links[switch, port.number] = _link(port, rows, records, experiment.link_rates_bps(port))
    interval = experiment.settings.control.interval_s
    fair_rates = {key: _fair_rates(control, key, timing, interval) for key in links}
    # A flow that was to start after the end of a shortened run is no flow of it.
    flows = [record for f in experiment.flows if f.start_s < experiment.duration_s for record in _flow(folder, f, timing)]
    return Series(experiment, flows, links, fair_rates, layers.load(folder, experiment, timing))


def _link(port: Port, rows: pd.DataFrame, control: pd.DataFrame, rates: list[tuple[float, float]]) -> LinkRecord:
    name = f"{port.node}->{port.peer}"
    if rows.empty:
        # BMv2 keeps no such records: the program's own counters are known for each interval, the queue is not.
        sums = (
            {}
            if control.empty
            else {
                c: Steps(control["time_s"].to_numpy(), control[c].to_numpy(dtype=float))
                for c in ("transmitted_bytes", "red_early_drops", "red_forced_drops")
            }
        )
        drops = {c.removesuffix("_drops"): s for c, s in sums.items() if c.endswith("_drops")} if port.link.red is not None else {}
        return LinkRecord(name, port, sums.get("transmitted_bytes", Steps.of([], [])), None, drops, rates)
    times = rows["unix_s"].to_numpy()
    drops = {
        name.removeprefix("drop_"): Steps(times, rows[name].to_numpy(dtype=float))
        # Drops in ingress count at the input port; RED's share of them is known by output port below.
        for name in rows.columns
        if name.startswith("drop_") and name != "drop_ingress"
    }
    if not control.empty and port.link.red is not None:
        for cause in ("red_early", "red_forced"):
            drops[cause] = Steps(control["time_s"].to_numpy(), control[f"{cause}_drops"].to_numpy(dtype=float))
    if "held_packets" in control:
        drops["held"] = Steps(control["time_s"].to_numpy(), control["held_packets"].to_numpy(dtype=float))
    counted = rows["tx_bytes"] - port.link.uncounted_bytes * rows["tx_packets"]
    return LinkRecord(
        name,
        port,
        Steps(times, counted.to_numpy(dtype=float)),
        Steps(times, rows["queue_integral_packet_s"].to_numpy(dtype=float)),
        drops,
        rates,
    )


def _fair_rates(control: pd.DataFrame, key: tuple[str, int], timing: Timing, interval_s: float) -> list[FairRate]:
    if control.empty:
        return []
    rows = control[(control["switch"] == key[0]) & (control["port"] == key[1])]
    return [
        # Intervals end at whole multiples of their length in Unix time; the values come into force a little later.
        FairRate(
            r.time_s,
            (r.time_s + timing.begin_s) // interval_s * interval_s - timing.begin_s,
            int(r.connections),
            float(r.fair_rate_bps),
            r.utilisation_ppm / 1e6,
        )
        for r in rows.itertuples()
    ]


def _flow(folder: Path, flow: Flow, timing: Timing) -> list[FlowRecord]:
    """One record; of a flow with several receivers one for each, called FLOW@RECEIVER."""
    make = _tcp if isinstance(flow.settings, TcpSettings) else _datagrams
    sender, *receivers = (raw.flow_records(folder, flow.name, role) for role in record_roles(flow))
    for record in (*sender, *(r for records in receivers for r in records)):
        record["t"] = record["t"] - timing.begin_s
    if not flow.receivers:
        return [make(flow, receivers[0], sender)]
    made = []
    for host, joins_s, records in zip(flow.receivers, flow.receiver_start_s, receivers):
        one = dataclasses.replace(flow, name=f"{flow.name}@{host}", receiver=host, receivers=(), receiver_start_s=())
        member = make(one, records, sender)
        active = member.active and (max(joins_s, member.active[0]), member.active[1])
        made.append(dataclasses.replace(member, active=active if active and active[0] < active[1] else None))
    return made


def _of(records: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [r for r in records if r.get("kind") == kind]


def _datagrams(flow: Flow, received: list[dict[str, Any]], sent: list[dict[str, Any]]) -> FlowRecord:
    data = _of(received, "data")
    times = [r["t"] for r in data]
    headers = next((r.get("headers_bytes", 0) for r in _of(received, "start")), 0)
    sendings = _of(sent, "sent") + _of(sent, "end")
    moving = [r["t"] for r in _of(sent, "sent")]
    return FlowRecord(
        flow,
        goodput=Steps.of(times, [r["received_bytes"] - headers * r["received_packets"] for r in data]),
        sent=Steps.of([r["t"] for r in sendings], [r["sent_packets"] for r in sendings]),
        lost=Steps.of(times, [r["lost_packets"] for r in data]),
        sending_rate=[(r["t"], r["rate_bps"]) for r in _of(sent, "sent")],
        controls=[(r["t"], r["rd_bps"]) for r in _of(received, "control")],
        active=(moving[0], max(r["t"] for r in sendings)) if moving else None,
        received=Steps.of(times, [r["received_bytes"] for r in data]),
        packets=Steps.of(times, [r["received_packets"] for r in data]),
        late=Steps.of(times, [r.get("delayed_packets", math.nan) for r in data]),
        delay=Steps.of(times, np.cumsum([(r.get("delay_mean_s") or 0.0) * r.get("packets", 0) for r in data])),
        outstanding=tuple((r["t"], r["in_flight_packets"]) for r in _of(sent, "sent") if r.get("in_flight_packets") is not None),
        round_trips=tuple((r["t"], r["rtt_s"]) for r in (*_of(sent, "sent"), *_of(sent, "feedback")) if r.get("rtt_s") is not None),
        reports=tuple((r["t"], r["ssrc"], r["bytes"]) for r in _of(sent, "feedback") if "bytes" in r),
        control_bytes=tuple((r["t"], r["bytes"]) for r in _of(received, "control") if "bytes" in r),
    )


def _tcp(flow: Flow, received: list[dict[str, Any]], sent: list[dict[str, Any]]) -> FlowRecord:
    data, sendings = _of(received, "data"), _of(sent, "sent")
    retransmits = np.cumsum([r["retransmits"] for r in sendings])
    packets = [r["sent_bytes"] / flow.settings.packet_bytes for r in sendings]
    payload = flow.settings.packet_bytes - (52 if flow.settings.timestamps else 40)
    times = [r["t"] for r in sendings]

    def sums(records: list[dict[str, Any]], values: Sequence[float]) -> Steps:
        # Records have the time of the end of their intervals: the first interval begins at zero.
        start = [records[0]["t"] - records[0]["seconds"]] if records else []
        return Steps.of(start + [r["t"] for r in records], [0.0] * len(start) + list(values))

    return FlowRecord(
        flow,
        goodput=sums(data, [r["received_payload_bytes"] for r in data]),
        # iperf3 counts the application's data; the kernel's retransmissions come on top.
        sent=sums(sendings, [p + r for p, r in zip(packets, retransmits)]),
        lost=sums(sendings, list(retransmits)),
        sending_rate=[],
        controls=[],
        active=(times[0] - sendings[0]["seconds"], times[-1]) if sendings else None,
        received=sums(data, [r["received_payload_bytes"] * flow.settings.packet_bytes / payload for r in data]),
        packets=sums(data, [r["received_payload_bytes"] / payload for r in data]),
        outstanding=tuple((r["t"], r["cwnd_bytes"] / payload) for r in sendings if r.get("cwnd_bytes") is not None),
        round_trips=tuple((r["t"], r["rtt_s"]) for r in sendings if r.get("rtt_s") is not None),
    )


def active_flows(series: Series, start_s: float, end_s: float) -> list[FlowRecord]:
    """Flows that sent at some time in an interval."""
    return [f for f in series.flows if f.active is not None and f.active[0] <= end_s and f.active[1] >= start_s]


def max_min_shares(series: Series, time_s: float) -> dict[str, float]:
    """The max-min fair share of each flow that is active at an instant, in bit/s on the links [ALS sec 3]."""
    topology = series.experiment.topology
    crossing: dict[tuple[str, int], list[FlowRecord]] = {}
    rates: dict[tuple[str, int], float] = {}
    for record in active_flows(series, time_s, time_s):
        for port in addressing.path(topology, record.flow.sender, record.flow.receiver):
            key = (port.node, port.number)
            rates[key] = series.links[key].rate_at(time_s) if key in series.links else port.link.rate_bps
            crossing.setdefault(key, []).append(record)
    shares: dict[str, float] = {}

    def open_flows(key: tuple[str, int]) -> set[str]:
        """Flows of a link whose share is not known for every receiver behind it: one connection each."""
        return {group_of(r) for r in crossing[key] if r.flow.name not in shares}

    while True:
        loaded = {key: flows for key in crossing if (flows := open_flows(key))}
        if not loaded:
            return shares
        left = {key: rates[key] - _taken(crossing[key], flows, shares) for key, flows in loaded.items()}
        tightest = min(loaded, key=lambda k: left[k] / len(loaded[k]))
        share = left[tightest] / len(loaded[tightest])
        for record in crossing[tightest]:
            shares.setdefault(record.flow.name, share)


def group_of(record: FlowRecord) -> str:
    """The flow of the experiment that a record is of: those of its other receivers have the same."""
    return record.flow.name.partition("@")[0]


def _taken(records: list[FlowRecord], still_open: set[str], shares: dict[str, float]) -> float:
    """What the other flows of a link take of it: each as much as its fastest receiver behind it."""
    taken: dict[str, float] = {}
    for record in records:
        if group_of(record) not in still_open:
            taken[group_of(record)] = max(taken.get(group_of(record), 0.0), shares[record.flow.name])
    return sum(taken.values())


class ShareTable:
    """The max-min shares over a run: they change only when a flow comes or goes, or a link's rate changes."""

    def __init__(self, series: Series) -> None:
        changes = {0.0, *(t for link in series.links.values() for t, _ in link.rates_bps)}
        for record in series.flows:
            if record.active is not None:
                changes.update((max(0.0, record.active[0]), record.active[1] + 1e-6))
        self._times = sorted(changes)
        self._shares = [max_min_shares(series, t) for t in self._times]

    def at(self, time_s: float) -> dict[str, float]:
        return self._shares[max(0, bisect.bisect_right(self._times, time_s) - 1)]

    def mean(self, flow: str, start_s: float, end_s: float) -> float:
        """Time-weighted, over the part of the window in which the flow is active; 0 when it never is."""
        edges = [start_s, *(t for t in self._times if start_s < t < end_s), end_s]
        total = weight = 0.0
        for a, b in itertools.pairwise(edges):
            share = self.at(a).get(flow)
            if share is not None:
                total += share * (b - a)
                weight += b - a
        return total / weight if weight else 0.0


def tables(series: Series) -> dict[str, pd.DataFrame]:
    """The tables of a run's results (docs/results.md), by name."""
    return {"flows": flow_table(series, ShareTable(series)), "links": link_table(series), "fair_rates": fair_rate_table(series)}


def flow_table(series: Series, shares: ShareTable) -> pd.DataFrame:
    """time_s (end of a bin of 1 s), flow, kind, goodput_bps, fair_share_bps, sending_rate_bps (ALS), sent_packets, lost_packets."""
    rows = []
    edges = np.arange(0.0, series.experiment.duration_s + 1e-9, _BIN_S)
    for record in series.flows:
        rate_times = [t for t, _ in record.sending_rate]
        for a, b in itertools.pairwise(edges):
            if record.active is None or b < record.active[0] or a > record.active[1]:
                continue
            known = bisect.bisect_right(rate_times, b)
            rows.append(
                {
                    "time_s": b,
                    "flow": record.flow.name,
                    "kind": record.flow.kind,
                    "goodput_bps": 8 * record.goodput.over(a, b) / (b - a),
                    "fair_share_bps": shares.at((a + b) / 2).get(record.flow.name, float("nan")),
                    "sending_rate_bps": record.sending_rate[known - 1][1] if known else float("nan"),
                    "sent_packets": record.sent.over(a, b),
                    "lost_packets": record.lost.over(a, b),
                }
            )
    return pd.DataFrame(rows)


def link_table(series: Series) -> pd.DataFrame:
    """time_s (end of a bin of 0.1 s), link, utilisation, queue_packets (mean), and drops by cause in the bin."""
    rows = []
    edges = np.arange(0.0, series.experiment.duration_s + 1e-9, 0.1)
    for link in series.links.values():
        sent = link.transmitted_bytes.at(edges)
        queue = link.queue.at(edges) if link.queue is not None else np.full(len(edges), np.nan)
        drops = {f"drop_{cause}": np.diff(steps.at(edges)) for cause, steps in link.drops.items()}
        frame = pd.DataFrame(
            {
                "time_s": edges[1:],
                "link": link.name,
                "utilisation": np.diff(sent) * 8 / np.diff(link.capacity_bits().at(edges)),
                "queue_packets": np.diff(queue) / np.diff(edges),
                **drops,
            }
        )
        rows.append(frame)
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame()


def fair_rate_table(series: Series) -> pd.DataFrame:
    """time_s (when in force), link, connections, fair_rate_bps, utilisation (of the interval before)."""
    return pd.DataFrame(
        [
            {
                "time_s": r.time_s,
                "link": series.links[key].name,
                "connections": r.connections,
                "fair_rate_bps": r.rate_bps,
                "utilisation": r.utilisation,
            }
            for key, records in series.fair_rates.items()
            for r in records
        ]
    )

"""Flow completion times: how long a flow that ends by itself takes, beside the time that it would take alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from fairlane.arithmetic import total
from fairlane.experiments import paths
from fairlane.experiments.model import Experiment, Flow
from fairlane.hosts.records import headers_bytes
from fairlane.topologies.model import ETHERNET_BYTES, Port

PERCENTILES = (50, 95, 99)


def empty_network_s(experiment: Experiment, flow: Flow, handshake: bool) -> float:
    """Seconds that a TCP flow's file needs at least in a network without other traffic: its segments follow each other at the rate of the slowest link, the
    last one is acknowledged, and a handshake comes before. Not a number for a flow without end."""
    settings = flow.tcp_settings
    if settings.file_bytes is None:
        return math.nan
    plain, payload = headers_bytes(experiment.topology.ip), settings.payload_bytes(experiment.topology.ip)
    headers = settings.packet_bytes - payload
    segments, rest = divmod(settings.file_bytes, payload)
    there = paths.there(experiment, flow)
    back = paths.back(experiment, flow)
    opening_s = _crossing_s(there, plain) + _crossing_s(back, plain) if handshake else 0.0
    last_bytes = rest + headers if rest else settings.packet_bytes
    before = segments if rest else segments - 1
    # When the last full segment but one, and the last segment, have left each link. The last one may be shorter, and wait for the one before.
    begin_s = slowest_s = last_s = 0.0
    for port in there:
        each_s = _sending_s(port, settings.packet_bytes)
        slowest_s = max(slowest_s, each_s)
        full_s = begin_s + each_s + (before - 1) * slowest_s if before else 0.0
        last_s = max(last_s, full_s) + _sending_s(port, last_bytes) + port.link.delay_s
        begin_s += each_s + port.link.delay_s
    return opening_s + last_s + _crossing_s(back, headers)


def _crossing_s(path: Iterable[Port], packet_bytes: int) -> float:
    return total(port.link.delay_s + _sending_s(port, packet_bytes) for port in path)


def _sending_s(port: Port, packet_bytes: int) -> float:
    return (packet_bytes + ETHERNET_BYTES - port.link.uncounted_bytes) * 8 / port.link.rate_bps


def percentile(values: Iterable[float], part: float) -> float:
    """Of the numbers among the values, linear between two of them, as numpy's; not a number where there are none. part: 0 to 100."""
    known = sorted(value for value in values if not math.isnan(value))
    if not known:
        return math.nan
    low, between = divmod((len(known) - 1) * part / 100, 1)
    first = known[int(low)]
    return first + between * (known[min(int(low) + 1, len(known) - 1)] - first)


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Those of `PERCENTILES`, by name ("p50"); empty without any value."""
    return {f"p{part}": percentile(values, part) for part in PERCENTILES} if values else {}

"""Experiments without a file: `fairlane run dumbbell --flow rap:2 --flow tcp-sack:2 --bottleneck 10mbit --rtt 64ms --queue red`.

The options become the text of an experiment file, which is loaded like any other; `--save` writes that text. So a saved file
gives the same run as the options.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlane import ad_hoc_networks
from fairlane.errors import Refusal
from fairlane.experiments import kinds, loader
from fairlane.experiments.model import Experiment
from fairlane.hosts.arguments import MAX_PACKET_BYTES, MIN_PACKET_BYTES
from fairlane.inputs import located_toml, schema, toml_text
from fairlane.inputs.located_toml import tomllib
from fairlane.inputs.schema import either
from fairlane.schemes import registry
from fairlane.topologies.model import WAY_TO_AN_OWN_AQM, queues

_RATES = {"bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
_TIMES = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_BUFFERS = {"packets": None, "packet": None, "p": None, "bdp": None}
# The default buffer holds at least this many packets, however short the round trip.
_LEAST_DEFAULT_BUFFER = 10
_ACCESS_SPEED_UP = 10
_TOO_MANY = 2**63 - 1
"""Packets: more than any queue may hold, so that the network refuses it, and still a whole number of TOML."""
_MOST_FLOWS = 32_000
_TOPOLOGY = "topology"
"""Of `--set topology.KEY=VALUE`."""


@dataclass(frozen=True)
class Options:
    """As on the command line; None: not given. flows: "rap", "rap:2", "rap:2@5". settings: "rap.initial_rate_bps=40000"."""

    flows: tuple[str, ...] = ()
    bottleneck: str | None = None
    rtt: str | None = None
    queue: str | None = None
    buffer: str | None = None
    side_delay: str | None = None
    side_rate: str | None = None
    packet_bytes: int | None = None
    start_jitter: str | None = None
    switches: int | None = None
    settings: tuple[str, ...] = ()
    ecn: bool | None = None
    ip: int | None = None

    def given(self) -> list[str]:
        """The options that were given, as the command line calls them."""
        names = {"flows": "--flow", "settings": "--set"}
        return [names.get(key, f"--{key.replace('_', '-')}") for key, value in vars(self).items() if value not in (None, ())]


@dataclass(frozen=True)
class _Group:
    kind: str
    count: int
    start_s: float


def text(topology: str, options: Options, duration_s: float | None, seed: int | None, beside: Path | None = None) -> str:
    """The experiment file that corresponds to the options. beside: the folder of the file; None: that of a GraphML file. Refusal names the option at fault."""
    if not options.flows:
        raise Refusal(f"fairlane run {topology} needs flows: --flow rap:2 --flow tcp-sack:2. 'fairlane list' shows the kinds.")
    switches = ad_hoc_networks.switches_of(topology, options.switches)
    if seed is not None and seed.bit_length() > 64:
        raise Refusal(f"--seed: a number of {seed.bit_length()} bits; seed: must be in 0 to 2^32 - 1")
    groups = [_group(given) for given in options.flows]
    rate_bps = _quantity("--bottleneck", options.bottleneck or "10mbit", _RATES)
    rtt_s = _quantity("--rtt", options.rtt or "64ms", _TIMES, zero=True)
    side_s = _quantity("--side-delay", options.side_delay or "0ms", _TIMES, zero=True)
    jitter_s = _quantity("--start-jitter", options.start_jitter or "0s", _TIMES, zero=True)
    side_rate_bps = _quantity("--side-rate", options.side_rate, _RATES) if options.side_rate else _ACCESS_SPEED_UP * rate_bps
    packet_bytes = options.packet_bytes or 1000
    if not MIN_PACKET_BYTES <= packet_bytes <= MAX_PACKET_BYTES:
        raise Refusal(f"--packet-bytes {packet_bytes}: {MIN_PACKET_BYTES} to {MAX_PACKET_BYTES}, IP header included")
    buffer = _buffer(options.buffer, rate_bps * rtt_s / 8 / packet_bytes)
    between_s = rtt_s / 2 - 2 * side_s
    if between_s < 0:
        raise Refusal(f"--side-delay {options.side_delay}: four times that is more than the round trip, --rtt {options.rtt or '64ms'}")
    queue = options.queue or "droptail"
    if queue not in queues():
        raise Refusal(f"--queue {queue}: must be {either(queues())}{WAY_TO_AN_OWN_AQM}")
    scheme = registry.SCHEMES.get(queue)
    if options.ecn and not (scheme is not None and scheme.can_mark):
        raise Refusal(f"--ecn: a queue that marks is --queue {either(registry.names(marking=True))}, not {queue}")
    trunk: dict[str, Any] = {"rate_bps": rate_bps, "delay_s": 0.0, "queue_packets": buffer, "queue": queue}
    if scheme is not None:
        given = scheme.of_options(packet_bytes, bool(options.ecn))
        trunk[queue] = {key: value for key, value in vars(given).items() if value is not None and (key != "ecn" or value)}
    access = {"rate_bps": side_rate_bps, "delay_s": side_s, "queue_packets": 1000}
    settings, of_topology = _settings(options.settings)
    count, folder = sum(g.count for g in groups), Path(topology).parent if beside is None else beside

    def network() -> dict[str, Any]:
        made = ad_hoc_networks.table(topology, count, switches, trunk, access, folder)
        return ad_hoc_networks.with_settings(made, of_topology)

    place = ad_hoc_networks.place(topology, network(), count, switches, folder)
    trunk["delay_s"] = between_s / place.links
    flows = ", ".join(f"{g.count} {g.kind}" for g in groups)
    lines = [
        f"title = {_toml(f'{flows}: {rate_bps / 1e6:g} Mb/s, {rtt_s * 1e3:g} ms, {queue}, {buffer} packets')}",
        f"bottleneck = {_toml(place.bottleneck)}",
        f"duration_s = {_number(60.0 if duration_s is None else loader.check_duration(duration_s))}",
        f"seed = {1 if seed is None else seed}",
        "",
        "[topology]",
        *([] if options.ip is None else [f"ip = {options.ip}"]),
        *(f"{key} = {_toml(value)}" for key, value in network().items()),
    ]
    if options.ecn:
        for kind in ["tcp", *sorted({g.kind for g in groups if kinds.media_with_ecn(g.kind)})]:
            settings[kind] = {"ecn": "true", **settings.get(kind, {})}
    for kind, values in settings.items():
        lines += ["", f"[{kind}]", *(f"{key} = {value}" for key, value in values.items())]
    lines += _flows(groups, place.hosts, jitter_s, options.packet_bytes)
    return "\n".join(lines) + "\n"


def experiment(topology: str, options: Options, duration_s: float | None, seed: int | None, name: str | None = None) -> Experiment:
    """The same, loaded. name: the experiment's id; the topology's name when left out."""
    document = located_toml.parse(text(topology, options, duration_s, seed), f"{topology} as --save writes it")
    return loader.from_document(document, name or Path(topology).stem)


def _group(given: str) -> _Group:
    found = re.fullmatch(r"([^:@]+)(?::([^@]*))?(?:@(.*))?", given.strip())
    if found is None:
        raise Refusal(f"--flow {given}: write KIND, KIND:COUNT or KIND:COUNT@START, as in rap:2@5s")
    kind, count, start = found.groups()
    if kind not in kinds.names():
        raise Refusal(f"--flow {given}: {kinds.unknown(kind)}")
    if count is not None and not (count.isascii() and count.isdigit() and len(count) <= 6 and int(count) > 0):
        raise Refusal(f"--flow {given}: {count!r} is not a number of flows: write {kind}:2")
    start_s = (
        0.0 if start is None else _quantity(f"--flow {given}:", start if re.search("[a-z]", start) else f"{start}s", _TIMES, zero=True)
    )
    if int(count or 1) > _MOST_FLOWS:
        raise Refusal(f"--flow {given}: at most {_MOST_FLOWS} flows of a kind")
    return _Group(kind, int(count or 1), start_s)


def _split(option: str, given: str, units: Mapping[str, Any], example: str) -> tuple[float, str]:
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?(?:[eE][0-9]+)?)\s*([A-Za-z/]*)", given.strip())
    if found is None:
        raise Refusal(f"{option} {given}: write a number and a unit, as in {example}")
    number, unit = float(found[1]), found[2].lower()
    if unit not in units and unit:
        raise Refusal(f"{option} {given}: no unit {found[2]!r}{schema.nearest(unit, units)}")
    return number, unit


def _quantity(option: str, given: str, units: Mapping[str, float], zero: bool = False) -> float:
    example = "10mbit" if units is _RATES else "64ms"
    number, unit = _split(option, given, units, example)
    if not unit and number:
        usual = ("ms", "s") if units is _TIMES else ("mbit", "kbit")
        raise Refusal(f"{option} {given}: no unit; write {' or '.join(given + unit for unit in usual)}")
    value = number * units.get(unit, 1.0)
    # 64 times 0.001 is not 0.064: keep numbers that were written in decimal.
    value = float(f"{value:.12g}")
    if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise Refusal(f"{option} {given}: must be positive, as in {example}")
    return value


def _buffer(given: str | None, bdp_packets: float) -> int:
    if given is None:
        return min(max(_LEAST_DEFAULT_BUFFER, round(bdp_packets)), _TOO_MANY)
    number, unit = _split("--buffer", given, _BUFFERS, "80, 80packets or 1.5bdp")
    packets = round(number * bdp_packets) if unit == "bdp" else number
    if packets != int(packets):
        raise Refusal(f"--buffer {given}: a whole number of packets, or bandwidth-delay products as in 1.5bdp")
    if packets < 1:
        what = f"is {number * bdp_packets:.2g} packets" if unit == "bdp" else "holds none"
        raise Refusal(f"--buffer {given}: {what}: give at least 1 packet")
    return min(int(packets), _TOO_MANY)


def _flows(groups: list[_Group], hosts: list[list[str]] | None, jitter_s: float, packet_bytes: int | None) -> list[str]:
    """hosts: of each flow in turn; None: the topology's pairs."""
    left = iter(hosts or ())
    lines: list[str] = []
    used: dict[str, int] = {}
    for group in groups:
        used[group.kind] = used.get(group.kind, 0) + 1
        name = group.kind if used[group.kind] == 1 else f"{group.kind}-{chr(ord('a') + used[group.kind] - 1)}"
        values: dict[str, Any] = {"name": name, "kind": group.kind, "count": group.count, "start_s": group.start_s}
        if jitter_s:
            values["start_jitter_s"] = jitter_s
        if packet_bytes is not None:
            values["packet_bytes"] = packet_bytes
        if hosts is not None:
            values["hosts"] = [next(left) for _ in range(group.count)]
        lines += ["", "[[flows]]", *(f"{key} = {_toml(value)}" for key, value in values.items())]
    return lines


def _settings(given: tuple[str, ...]) -> tuple[dict[str, dict[str, str]], dict[tuple[str, ...], Any]]:
    """Of each kind: key -> value as TOML writes it. And of the topology: its keys -> value."""
    tables: dict[str, dict[str, str]] = {}
    of_topology: dict[tuple[str, ...], Any] = {}
    for one in given:
        found = re.fullmatch(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)?)=(.+)", one)
        kind, key, value = found.groups() if found is not None else ("", ".", "")
        if found is None or ("." in key and kind != _TOPOLOGY):
            raise Refusal(f"--set {one}: write KIND.KEY=VALUE, as in rap.pacing_jitter=0.1, or topology.KEY=VALUE")
        if kind != _TOPOLOGY and kind not in kinds.tables():
            raise Refusal(f"--set {one}: {kinds.unknown(kind, [*kinds.tables(), _TOPOLOGY])}")
        try:
            meant = tomllib.loads(f"x = {value}")["x"]
        except tomllib.TOMLDecodeError:
            meant, value = value, _toml(value)
        if kind == _TOPOLOGY:
            of_topology[tuple(key.split("."))] = meant
        else:
            tables.setdefault(kind, {})[key] = value
    return tables, of_topology


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def _toml(value: Any) -> str:
    return toml_text.value(value, _number)

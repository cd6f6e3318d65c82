"""als.p4 as a program that needs no control plane: its compiled JSON with the controller's entries put in as constants, and packets for it.

The embedded switch and BMv2 load the same file. The entries are what `controller/core.py` writes for a switch with four ports of which the
second has RED, a link rate and a fair rate; the interval between observations is one that never ends.
"""

from __future__ import annotations

import json
import socket
import struct
from ipaddress import ip_address
from pathlib import Path

from fairlane import specs
from fairlane.controller.config import Port
from fairlane.controller.core import port_entries
from fairlane.native import emit_rtcp
from fairlane.p4src.schemes.protection.limits import limits
from fairlane.schemes import registry
from fairlane.topologies.addressing import IPV6_PREFIX, Plan

IN_PORT, OUT_PORT = 1, 2
RATE_BPS = 100_000_000
ROUTES = 16
SNAP_LENGTH = 65535
_QUEUE_PACKETS = 2000
"""So many that the benchmark's queues stay below RED's thresholds: what is measured is the work, and a drop is none."""
PORT = Port(
    OUT_PORT,
    RATE_BPS,
    tuple(scheme.parameters().of_port(_QUEUE_PACKETS) for scheme in registry.SCHEMES.values()),
)
"""With all that the program may be compiled with."""
RATE_EXTENSIONS = {"rate": bytes.fromhex("52430003") + b"\xff" * 8, "congestion": bytes.fromhex("58430004") + b"\xff" * 8}
"""RTP header extensions up to their round trips (docs/wire-formats.md)."""


def with_entries(compiled: Path, target: Path) -> Path:
    """Writes the program's entries, including those of flow protection and of sources if they were compiled in."""
    program = json.loads(compiled.read_text())
    tables = {table["name"].split(".", 1)[-1]: table for table in program_tables(program)}
    actions = {action["id"]: action for action in program["actions"]}
    macs = {"src_address": 0x020000000002, "dst_address": 0x020000000202}
    plan = Plan(8, 6 if "forward.ipv6_lpm" in tables else 4)
    for route in range(ROUTES):
        key = _hex(int(ip_address(plan.address(2 + route, 0))), plan.bits)
        prefix = {"match_type": "lpm", "key": key, "prefix_length": plan.prefix_length}
        _add(tables[f"forward.ipv{plan.ip}_lpm"], actions, "send", prefix, {"port": OUT_PORT if route == 0 else route + 2, **macs})
    port = {"match_type": "exact", "key": _hex(OUT_PORT, 9)}
    for entry in port_entries(PORT):
        # Ingress and egress may have tables of one name.
        whole = next((t for t in program_tables(program) if t["name"] == entry.table), None)
        if whole is not None:
            _add(whole, actions, str(entry.action).rsplit(".", 1)[-1], port, entry.values)
    _add(tables["fair_rate.fair_rate"], actions, "set_fair_rate", port, {"rate_bps": 1_000_000, "utilisation_ppm": 500_000})
    if "protection.hold.limits_of_port" in tables:
        # As for the thresholds of RED: no connection is limited.
        for hold in (t for t in program_tables(program) if t["name"].endswith("protection.hold.limits_of_port")):
            _add(hold, actions, "set_limits", port, limits(RATE_BPS, 2 * RATE_BPS))
    if "sources.source_at" in tables:
        for sender in range(250):
            keys = [
                {"match_type": "exact", "key": _hex(int(ip_address(plan.address(1, 1 + sender))), plan.bits)},
                {"match_type": "exact", "key": _hex(IN_PORT, 9)},
            ]
            _add(tables["sources.source_at"], actions, "believe", keys, {})
    tables["connections.observation"]["default_entry"]["action_data"] = ["0x1"]
    target.write_text(json.dumps(program))
    return target


def program_tables(program: dict) -> list[dict]:
    return [table for pipeline in program["pipelines"] for table in pipeline["tables"]]


def _hex(value: int, width: int) -> str:
    return f"0x{value:0{(width + 7) // 8 * 2}x}"


def _add(table: dict, actions: dict, name: str, match: dict | list[dict], arguments: dict[str, int]) -> None:
    chosen = next(i for i in table["action_ids"] if actions[i]["name"].split(".")[-1] == name)
    data = [_hex(arguments[p["name"]], p["bitwidth"]) for p in actions[chosen]["runtime_data"]]
    entry = {"match_key": match if isinstance(match, list) else [match], "action_entry": {"action_id": chosen, "action_data": data}}
    table.setdefault("entries", []).append(entry | {"priority": len(table.get("entries", [])) + 1})


def ipv4(source: str, destination: str, protocol: int, payload: bytes, options: bytes = b"", ttl: int = 64, tos: int = 0) -> bytes:
    words = 5 + len(options) // 4
    header = (
        struct.pack(
            "!BBHHHBBH4s4s",
            0x40 | words,
            tos,
            4 * words + len(payload),
            0,
            0x4000,
            ttl,
            protocol,
            0,
            socket.inet_aton(source),
            socket.inet_aton(destination),
        )
        + options
    )
    total = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    ethernet = bytes.fromhex("020000000001 020000000101 0800")
    return ethernet + header[:10] + struct.pack("!H", 0xFFFF & ~total) + header[12:] + payload


def over_ipv6(frame: bytes) -> bytes:
    """A frame of `ipv4` with UDP over IPv6, between the hosts of a network of IPv6 (docs/ipv6.md)."""
    header = 4 * (frame[14] & 15)
    source, destination = ((IPV6_PREFIX + int.from_bytes(frame[at : at + 4], "big")).to_bytes(16, "big") for at in (26, 30))
    udp = frame[14 + header :]
    summed = source + destination + struct.pack("!II", len(udp), 17) + udp[:6] + b"\0\0" + udp[8:] + b"\0" * (len(udp) % 2)
    total = sum(struct.unpack(f"!{len(summed) // 2}H", summed))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    alert = bytes((17, 0, 5, 2, 0xFF, 0xDF, 1, 0)) if header > 20 else b""
    first = struct.pack("!IHBB", 6 << 28 | frame[15] << 20, len(alert) + len(udp), 0 if alert else 17, frame[22])
    checksum = struct.pack("!H", ~total & 0xFFFF or 0xFFFF)
    return frame[:12] + b"\x86\xdd" + first + source + destination + alert + udp[:6] + checksum + udp[8:]


def data_frame(size: int, sender: int, ecn: int = 0, extension: str = "") -> bytes:
    """UDP data of one of many senders, so that the connection table is used as it would be. ecn: codepoint. extension: of the RTP header, one of
    `RATE_EXTENSIONS`, with a round trip of 60 ms and packets 10 ms apart."""
    udp = struct.pack("!HHHH", 5000 + sender, 5004, size - 34, 0)
    if extension:
        udp += bytes((0x90, 96)) + bytes(10) + RATE_EXTENSIONS[extension] + struct.pack("!II", 60_000, 10_000)
    return ipv4(f"10.0.1.{sender % 250 + 1}", "10.0.2.2", 17, (udp + bytes(size))[: size - 34], tos=ecn)


def control_frame(sender: int) -> bytes:
    """A sender's RTCP compound with an ALSF packet of three layers, behind the router alert option."""
    layers = [(0xE0010100 + i, 250_000 << i) for i in range(3)]
    compound = emit_rtcp(specs.Compound(sender, sender=(0, 0, 0, 0), cname=b"bench@fairlane", from_sender=(sender, 8_000_000, 0, layers)))
    udp = struct.pack("!HHHH", 5001, 5005, 8 + len(compound), 0)
    return ipv4(f"10.0.1.{sender % 250 + 1}", "10.0.2.2", 17, udp + compound, bytes((0x94, 4, 0, 0)))


def write_pcap(path: Path, frames: list[bytes], interval_us: int = 10) -> None:
    """A capture of Ethernet frames, evenly spaced."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, SNAP_LENGTH, 1))
        for number, frame in enumerate(frames):
            second, microsecond = divmod(number * interval_us, 1_000_000)
            file.write(struct.pack("<IIII", second, microsecond, len(frame), len(frame)) + frame)


def count_pcap(path: Path) -> int:
    """How many whole packets a capture holds; it may be growing."""
    data, at, count = path.read_bytes(), 24, 0
    while at + 16 <= len(data):
        at += 16 + struct.unpack_from("<I", data, at + 8)[0]
        count += at <= len(data)
    return count

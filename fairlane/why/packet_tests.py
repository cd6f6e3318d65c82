"""Packets of packet tests and of captures."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlane import probes
from fairlane.errors import CANNOT_RUN_HERE, Refusal
from fairlane.why import entries
from fairlane.why.explanation import Explanation

try:
    from fairlane import native
except ImportError:
    native = None  # type: ignore[assignment]

MOST_PACKETS = 1_000_000
"""Of a capture: all before the one that is explained are played, since they may change registers and counters."""
_MAGIC = {0xA1B2C3D4: "<", 0xD4C3B2A1: ">", 0xA1B23C4D: "<", 0x4D3CB2A1: ">"}
_ETHERNET = 1


@dataclass(frozen=True)
class Program:
    """P4, or BMv2 JSON; include and define as for the compiler."""

    path: Path
    include: Sequence[Path] = ()
    define: Sequence[str] = ()

    def why(self, script: str, packet: int, name: str) -> dict[str, Any]:
        """Refusal with the compiler's messages, or with file and line of the script."""
        if native is None:
            raise Refusal("the module fairlane.native is not built: run 'make build'.", CANNOT_RUN_HERE)
        try:
            text = native.why_packet(self.path, script, packet, name=name, include=list(self.include), define=list(self.define))
        except ValueError as error:
            raise Refusal(str(error)) from error
        found: dict[str, Any] = json.loads(text)
        return found


def of_test(program: Program, test: Path, packet: int) -> Explanation:
    """packet: from 1, in the order of the test's lines."""
    found = program.why(_text(test), packet, str(test))
    head = f"Packet {packet} of {test}:{found['line']}, {_size(found)}, into port {found['port']} of {program.path}"
    source = {"program": str(program.path), "test": str(test), "line": found["line"], "packet": packet}
    return Explanation(head, source, [_station(found)])


def of_capture(program: Program, entries_file: Path | None, capture: Path, packet: int, port: int) -> Explanation:
    """packet: from 1. port: at which all packets of the capture come in."""
    frames = []
    for frame in _frames(capture):
        frames.append(frame)
        if len(frames) == packet:
            break
    else:
        raise Refusal(f"{capture}: there is no packet {packet}, it has {len(frames)}, counted from 1")
    script = entries.script(entries_file, program.path, program.include, program.define) if entries_file is not None else ""
    name = str(entries_file) if entries_file is not None else str(capture)
    # The capture's packets follow the lines of the file, so that errors name its lines.
    packets = "".join(f"packet {port} {frame.hex()}\n" for frame in frames)
    found = program.why(f"{script}\n{packets}", packet, name)
    head = f"Packet {packet} of {capture}, {_size(found)}, into port {port} of {program.path}"
    source = {
        "program": str(program.path),
        "capture": str(capture),
        "entries": name if entries_file else None,
        "packet": packet,
        "port": port,
    }
    return Explanation(head, source, [_station(found)])


def _size(found: dict[str, Any]) -> str:
    return f"{len(found['frame']) // 2} bytes"


def _station(found: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": "switch",
        "node": None,
        "time_ns": found["steps"][0]["time_ns"] if found["steps"] else 0,
        "port": found["port"],
        "frame": found["frame"],
        "steps": found["steps"],
        "out": found["out"],
        "cut": False,
    }


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refusal(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _frames(capture: Path) -> Iterator[bytes]:
    """Of a pcap file of Ethernet frames."""
    try:
        data = capture.read_bytes()
    except OSError as error:
        raise Refusal(f"{capture}: cannot be read: {error.strerror or error}") from error
    order = _MAGIC.get(struct.unpack_from("<I", data)[0]) if len(data) >= 24 else None
    if order is None or struct.unpack_from(f"{order}I", data, 20)[0] & 0xFFFF != _ETHERNET:
        raise Refusal(f"{capture}: no capture of Ethernet frames in pcap format; tcpdump -w, or tshark -F pcap -w, write it")
    at = 24
    for _ in range(MOST_PACKETS):
        if at + 16 > len(data):
            return
        kept, whole = struct.unpack_from(f"{order}II", data, at + 8)
        frame = data[at + 16 : at + 16 + kept]
        if len(frame) < kept or kept < whole:
            raise Refusal(f"{capture}: the packet at byte {at} was cut when it was captured; capture whole packets (tcpdump -s 0)")
        yield frame
        at += 16 + kept
    raise Refusal(f"{capture}: more than {MOST_PACKETS} packets; cut the capture (editcap -r)")


def is_program(path: Path) -> bool:
    return path.suffix in (".p4", ".json") and path.is_file()


def source(path: str) -> Path:
    """A program by its path, or of Fairlane's own, such as p4src/als.p4."""
    return Path(path) if Path(path).exists() else probes.source(path)

"""Single packets through a compiled program: what comes out, and what registers and counters hold afterwards."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from fairlane import native


@dataclass(frozen=True)
class Seen:
    """out: the packets of each port, in order. registers: values read, by (name, index) in the order of reading. counters: packets counted."""

    out: dict[int, list[bytes]]
    registers: list[tuple[str, int, int]]
    counters: dict[tuple[str, int], int]

    def register(self, name: str) -> int:
        """The last value read of a register."""
        return next(value for known, _, value in reversed(self.registers) if known.endswith(name))


def ipv4(
    source: str,
    destination: str,
    ttl: int = 64,
    identification: int = 0,
    payload: bytes = b"",
    checksum_off_by: int = 0,
    protocol: int = 17,
    ethernet: str = "00000000000b00000000000a",
) -> bytes:
    """An Ethernet frame with an IPv4 packet. ethernet: destination and source address. payload: after the IP header; a UDP header to
    port 4096 when empty. checksum_off_by: added to the header checksum, to make it wrong."""
    payload = payload or struct.pack("!HHHH", 4096, 4096, 8 + 20, 0) + bytes(20)
    fields = [
        0x45,
        0,
        20 + len(payload),
        identification & 0xFFFF,
        0,
        ttl,
        protocol,
        0,
        IPv4Address(source).packed,
        IPv4Address(destination).packed,
    ]
    fields[7] = (checksum(struct.pack("!BBHHHBBH4s4s", *fields)) + checksum_off_by) & 0xFFFF
    return bytes.fromhex(ethernet) + b"\x08\x00" + struct.pack("!BBHHHBBH4s4s", *fields) + payload


def checksum(header: bytes) -> int:
    """Of RFC 1071, over an even number of bytes."""
    total: int = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def played(program: Path, script: Iterable[str], ports: Iterable[int]) -> Seen:
    """Play the lines of a packet test, without `expect`, against a compiled program. ports: those whose packets are wanted. RuntimeError
    for a script that does not fit the program; its message names what is missing."""
    # A runt, which no program forwards, makes the runner name the port's packets.
    lines = [*(f"packet {port} 00" for port in ports), *script]
    path = program.with_suffix(".played.stf")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    try:
        _, said = native.packet_test(program, path, verbose=True)
    except ValueError as error:
        told = re.sub(r"; there (?:is|are) [^;]*\btbl_\w+.*", "", str(error))  # the compiler's own tables
        raise RuntimeError(re.sub(r"^\S*?:(\d+): ", lambda line: f"'{lines[int(line[1]) - 1][:80]}': ", told)) from None
    out: dict[int, list[bytes]] = {}
    registers, counters, port = [], {}, 0
    for line in said.splitlines():
        if found := re.fullmatch(r"([\w.]+)\[(\d+)\]= 0x([0-9a-f]+)", line):
            registers.append((found[1], int(found[2]), int(found[3], 16)))
        elif found := re.fullmatch(r"([\w.]+)\((\d+)\): (\d+) packets, \d+ bytes", line):
            counters[found[1], int(found[2])] = int(found[3])
        elif found := re.search(r"port (\d+): expected 0 packets, received \d+$", line):
            port = int(found[1])
        elif found := re.fullmatch(r"  received ([0-9a-f]*)", line):
            out.setdefault(port, []).append(bytes.fromhex(found[1]))
    return Seen(out, registers, counters)

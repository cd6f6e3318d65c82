"""Packet tests of als.p4 and of its schemes over IPv6: those of IPv4, each packet with another header, give the same rates, marks, drops and counters."""

from __future__ import annotations

import re
import subprocess
from ipaddress import IPv6Address
from pathlib import Path

import pytest

from fairlane import probes

ROOT = probes.ROOT
SCHEMES = sorted(path.stem for path in (ROOT / "p4src/schemes").glob("*/*.stf"))
PREFIX = IPv6Address("fd00::").packed[:12]
IPV4, IPV6 = b"\x08\x00", b"\x86\xdd"
TCP, UDP = 6, 17
LONGER = {
    # Frames have 20 bytes more: depths of so many frames, rates of as many frames in a second, and what counts their bytes.
    "protection": {
        "share:45, allowance:90, share_depth:88080384, allowance_depth:132120576": "share:66, allowance:132, share_depth:130023424, allowance_depth:195035136",
        "bytes == 84": "bytes == 124",
    },
    "sources": {"bytes == 42": "bytes == 62"},
}


def _checksum(source: bytes, destination: bytes, protocol: int, segment: bytes) -> int:
    """Of UDP over IPv6 [RFC 8200 sec 8.1], as RFC 1071 has it: word by word."""
    pseudo = source + destination + len(segment).to_bytes(4, "big") + protocol.to_bytes(4, "big")
    data = pseudo + segment + b"\0" * (len(segment) % 2)
    total = sum(int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF or 0xFFFF


def over_ipv6(frame: bytes) -> bytes | None:
    """The same frame over IPv6; a router alert stands in a hop-by-hop header. None: no whole header of IPv4, a fragment, or the header's checksum is wrong."""
    if frame[12:14] != IPV4 or len(frame) < 34 or frame[14] >> 4 != 4:
        return None
    header = 4 * (frame[14] & 15)
    options = frame[34 : 14 + header]
    fields = frame[14 : 14 + header]
    if header < 20 or len(fields) < header or int.from_bytes(frame[20:22], "big") & 0x3FFF:
        return None
    total = sum(int.from_bytes(fields[at : at + 2], "big") for at in range(0, header, 2))
    if total % 0xFFFF:
        return None
    tos, ttl, protocol = frame[15], frame[22], frame[23]
    source, destination = PREFIX + frame[26:30], PREFIX + frame[30:34]
    segment = frame[14 + header :]
    if protocol == UDP and len(segment) >= 8:
        cleared = segment[:6] + b"\0\0" + segment[8:]
        segment = segment[:6] + _checksum(source, destination, protocol, cleared).to_bytes(2, "big") + segment[8:]
    extension = b""
    if options:
        alert = bytes((5, 2, 0xFF, 0xDF)) if options.startswith(bytes((0x94, 4, 0, 0))) else b""
        words = 1 + (len(options) > 4)
        padding = 8 * words - 2 - len(alert)
        extension = bytes((protocol, words - 1)) + alert + bytes((1, padding - 2)) + bytes(padding - 2)
    length = int.from_bytes(frame[16:18], "big") - header + len(extension)
    first = (6 << 28 | tos << 20).to_bytes(4, "big") + length.to_bytes(2, "big") + bytes((0 if extension else protocol, ttl))
    return frame[:12] + IPV6 + first + source + destination + extension + segment


def _entry(line: str) -> str:
    """Names and addresses of an entry."""
    line = line.replace("ipv4_lpm", "ipv6_lpm").replace("hdr.ipv4.", "hdr.ipv6.")
    return re.sub(
        r"(hdr\.ipv6\.\w+:0x)([0-9a-f]{8})(?:/(\d+))?",
        lambda found: f"{found[1]}{PREFIX.hex()}{found[2]}" + (f"/{96 + int(found[3])}" if found[3] else ""),
        line,
    )


def translated(script: str) -> str:
    """A packet without a counterpart is left out, with what is expected of it."""
    lines, leaves_out = [], False
    for line in script.splitlines():
        words = line.split()
        if line.startswith(("packet ", "expect ")):
            end = ["$"] if words[-1] == "$" else []
            frame = over_ipv6(bytes.fromhex("".join(words[2 : len(words) - len(end)])))
            leaves_out = frame is None if words[0] == "packet" else leaves_out
            if leaves_out or frame is None:
                continue
            line = " ".join((*words[:2], frame.hex(), *end))
        lines.append(_entry(line) if line.startswith("add ") else line)
    return "\n".join(lines) + "\n"


def play(script: str, folder: Path, *options: str) -> None:
    program = probes.program("fairlane-stf")
    if program is None:
        pytest.skip("fairlane-stf is not built: run `make build`")
    test = folder / "ipv6.stf"
    test.write_text(script, encoding="utf-8")
    done = subprocess.run(
        [program, "-DIPV6", *options, ROOT / "p4src/als.p4", test], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def of_scheme(name: str) -> str:
    """The packet test of a scheme over IPv6."""
    script = translated((ROOT / f"p4src/schemes/{name}/{name}.stf").read_text(encoding="utf-8"))
    for old, new in LONGER.get(name, {}).items():
        assert old in script
        script = script.replace(old, new)
    assert script.count("packet ") >= 2 and "86dd" in script
    return script


@pytest.mark.parametrize("name", SCHEMES)
def test_a_scheme_does_the_same_over_ipv6(name: str, tmp_path: Path) -> None:
    script = of_scheme(name)
    play(script, tmp_path, "-DCHOSEN", f"-I{ROOT}/p4src/schemes/{name}", f"-I{ROOT}/p4src")


def test_fair_rates_are_written_over_ipv6_as_over_ipv4(tmp_path: Path) -> None:
    script = translated((ROOT / "tests/p4src/rewriting.stf").read_text(encoding="utf-8"))
    assert script.count("packet ") >= 25
    play(script, tmp_path)


def test_a_wrong_rate_and_a_wrong_checksum_fail(tmp_path: Path) -> None:
    script = translated((ROOT / "p4src/schemes/rcp/rcp.stf").read_text(encoding="utf-8"))
    first = next(line for line in script.splitlines() if line.startswith("expect "))
    for at in (60, 61):  # the checksum is at 14 + 40 + 6
        frame = bytearray.fromhex(first.split()[2])
        frame[at] ^= 1
        wrong = script.replace(first, f"expect 2 {frame.hex()} $", 1)
        with pytest.raises(AssertionError):
            play(wrong, tmp_path, "-DCHOSEN", f"-I{ROOT}/p4src/schemes/rcp", f"-I{ROOT}/p4src")

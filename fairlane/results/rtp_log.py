"""The log of RTP packets in the common format of [RFC 8868 sec 3.1], of a capture: `python -m fairlane.results.rtp_log FILE.pcap` prints it.

A line has the time in Unix seconds and microseconds, the payload type, the SSRC in hexadecimal, sequence number, RTP timestamp, marker bit and the payload's size in bytes.
In virtual time, a capture is taken at the end of a link: on a link to a host it has the packets that the host received, at their arrival times.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from fairlane.errors import BAD_INPUT, Refusal
from fairlane.experiments.model import Flow
from fairlane.topologies import addressing
from fairlane.topologies.model import Link, Topology

_NANOSECONDS, _MICROSECONDS = 0xA1B23C4D, 0xA1B2C3D4
_ETHERNET, _IPV4, _IPV6, _UDP = 1, 0x0800, 0x86DD, 17
_HEADER_BYTES = 12


def lines(capture: Path, way: Link | None = None) -> Iterator[str]:
    """Of a pcap file of Ethernet frames, each packet of RTP over UDP, to an even port, as RTP's is [RFC 3550 sec 11]. way: the sender's own link, at whose end
    they were captured: the time is when its transmission began, but for the link's jitter. Refusal for another file."""
    data = capture.read_bytes()
    if (
        len(data) < 24
        or struct.unpack_from("<I", data)[0] not in (_NANOSECONDS, _MICROSECONDS)
        or struct.unpack_from("<I", data, 20)[0] != _ETHERNET
    ):
        raise Refusal(f"{capture}: no capture of Ethernet frames in pcap format with the least significant byte first")
    parts = 1000 if struct.unpack_from("<I", data)[0] == _NANOSECONDS else 1
    at = 24
    while at + 16 <= len(data):
        seconds, part, held, whole = struct.unpack_from("<IIII", data, at)
        line, before_s = _line(data[at + 16 : at + 16 + held]), 0.0
        if way is not None:
            before_s = way.delay_s + 8 * (whole - way.uncounted_bytes) / way.rate_bps
        at += 16 + held
        if line is not None:
            microseconds = 10**6 * seconds + part // parts - round(10**6 * before_s)
            yield f"{microseconds // 10**6}.{microseconds % 10**6:06} {line}"


def _line(frame: bytes) -> str | None:
    """None: no RTP packet, or one that the capture cut before its size is known."""
    if len(frame) < 34:
        return None
    carries = struct.unpack_from("!H", frame, 12)[0], frame[23]
    if carries == (_IPV4, _UDP):
        udp = 14 + 4 * (frame[14] & 0x0F)
    elif carries[0] == _IPV6 and frame[20] == _UDP:
        udp = 14 + 40
    else:
        return None
    if len(frame) < udp + 8 + _HEADER_BYTES:
        return None
    _, destination, length = struct.unpack_from("!HHH", frame, udp)
    if destination % 2 or length < 8 + _HEADER_BYTES:
        return None
    rtp = udp + 8
    first, second, sequence, timestamp, ssrc = struct.unpack_from("!BBHII", frame, rtp)
    if first >> 6 != 2:
        return None
    header = _HEADER_BYTES + 4 * (first & 0x0F)
    if (len(frame) < rtp + header + 4 and first & 0x10) or (len(frame) < udp + length and first & 0x20):
        return None
    if first & 0x10:
        header += 4 + 4 * struct.unpack_from("!H", frame, rtp + header + 2)[0]
    payload_bytes = length - 8 - header - (frame[udp + length - 1] if first & 0x20 else 0)
    return f"{second & 0x7F} {ssrc:x} {sequence} {timestamp} {second >> 7} {payload_bytes}" if payload_bytes >= 0 else None


def write(flow: Flow, topology: Topology, captures: Path, folder: Path) -> None:
    """FLOW.sent.log and FLOW.received.log into `folder`, of a folder of captures."""
    path = addressing.path(topology, flow.sender, flow.receiver)
    for port, name, way in ((path[0], "sent", path[0].link), (path[-1], "received", None)):
        with open(folder / f"{flow.name}.{name}.log", "w", encoding="ascii", newline="\n") as file:
            file.writelines(f"{line}\n" for line in lines(captures / f"{port.node}-{port.peer}.pcap", way))


def main(names: Sequence[str]) -> int:
    """Exit code 2: a file that is none, or no capture."""
    try:
        for name in names:
            for text in lines(Path(name)):
                print(text)
    except (Refusal, OSError) as error:
        print(f"rtp_log: {error}", file=sys.stderr)
        return BAD_INPUT
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

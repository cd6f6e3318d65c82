"""The codec against two that others wrote: scapy, and tshark."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

native = pytest.importorskip("fairlane.native", reason="the module fairlane.native is not built: make build")
from fairlane import specs
from fairlane.native import emit_rtcp, emit_rtp, parse_rtp

ROUTER_ALERT_OPTION = bytes.fromhex("94040000")
SENDER, RECEIVER = 0x0A0B0C0D, 0x01020304
BLOCK = (SENDER, 12, -3, 0x00017FFF, 77, 0x80000000, 0x00018000)


def sender_compound(rate_bps: int = 10_000_000, ppm: int = 0, layers: tuple = ()) -> bytes:
    sender = (0xE5A10000_80000000, 123_456, 1000, 960_000)
    return emit_rtcp(
        specs.Compound(SENDER, sender=sender, cname=b"als-0a0b0c0d@10.0.0.1", from_sender=(SENDER, rate_bps, ppm, list(layers)))
    )


def receiver_compound(bye: bool = False) -> bytes:
    echo = (RECEIVER, 900_000, 933_000, [])
    return emit_rtcp(
        specs.Compound(RECEIVER, blocks=[BLOCK], cname=b"als-01020304@10.0.0.2", from_receiver=echo, bye=[RECEIVER] if bye else [])
    )


def datagram(payload: bytes, source_port: int, port: int, options: bytes = b"") -> bytes:
    """An IPv4 datagram with UDP checksum 0."""
    udp = struct.pack("!HHHH", source_port, port, 8 + len(payload), 0) + payload
    size = 20 + len(options)
    header = struct.pack("!BBHHHBBH", 0x40 | size // 4, 0, size + len(udp), 1, 0, 64, 17, 0)
    header += bytes((10, 0, 0, 1, 10, 0, 0, 2)) + options
    total = sum(struct.unpack(f"!{size // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return header[:10] + struct.pack("!H", ~total & 0xFFFF) + header[12:] + udp


def tshark(tmp_path: Path, datagrams: list[bytes], *fields: str) -> list[list[str]]:
    """One row of field values for each datagram."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed (apt-get install tshark)")
    capture = tmp_path / "rtcp.pcap"
    records = [struct.pack("<IIII", 0, i, len(d), len(d)) + d for i, d in enumerate(datagrams)]
    capture.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101) + b"".join(records))  # 101: raw IP
    command = ["tshark", "-r", str(capture), "-d", "udp.port==5005,rtcp", "-d", "udp.port==5004,rtp", "-T", "fields"]
    command += ["-E", "occurrence=a", "-E", "aggregator=|"]
    for field in fields:
        command += ["-e", field]
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    return [line.split("\t") for line in out.splitlines()]


def test_tshark_reads_our_compounds(tmp_path: Path) -> None:
    layered = sender_compound(90_000, 870_000, ((0xE0000107, 90_000), (0xE0000108, 70_000)))
    rows = tshark(
        tmp_path,
        [
            datagram(sender_compound(), 5005, 5005, ROUTER_ALERT_OPTION),
            datagram(layered, 5005, 5005, ROUTER_ALERT_OPTION),
            datagram(receiver_compound(), 5005, 5005),
            datagram(receiver_compound(bye=True), 5005, 5005),
        ],
        "rtcp.pt", "rtcp.app.name", "rtcp.app.subtype", "rtcp.app.data", "rtcp.sdes.text", "ip.opt.ra", "_ws.malformed",
        "rtcp.length_check.bad", "ip.hdr_len",
    )  # fmt: skip
    alsf = "000000000098968000000000"
    assert rows[0] == ["200|202|204", "ALSF", "0", alsf, "als-0a0b0c0d@10.0.0.1", "0", "", "", "24"]
    layers = "e00001070000000000015f90" + "e00001080000000000011170"
    assert rows[1][:4] == ["200|202|204", "ALSF", "0", "0000000000015f90000d4670" + layers]
    assert rows[1][5:] == ["0", "", "", "24"]
    echo = "00000000000dbba0000e3c88"
    assert rows[2] == ["201|202|204", "ALSF", "1", echo, "als-01020304@10.0.0.2", "", "", "", "20"]
    assert rows[3][0] == "201|202|204|203"
    assert [row[6:8] for row in rows] == [["", ""]] * 4


def test_tshark_reads_the_same_numbers(tmp_path: Path) -> None:
    rows = tshark(
        tmp_path,
        [datagram(sender_compound(), 5005, 5005), datagram(receiver_compound(), 5005, 5005)],
        "rtcp.senderssrc", "rtcp.timestamp.ntp.msw", "rtcp.timestamp.ntp.lsw", "rtcp.timestamp.rtp", "rtcp.sender.packetcount",
        "rtcp.sender.octetcount", "rtcp.ssrc.identifier", "rtcp.ssrc.fraction", "rtcp.ssrc.cum_nr", "rtcp.ssrc.ext_high",
        "rtcp.ssrc.jitter", "rtcp.ssrc.lsr", "rtcp.ssrc.dlsr",
    )  # fmt: skip
    numbers = [[int(x.split("|")[0], 0) if x else None for x in row] for row in rows]
    assert numbers[0][:6] == [SENDER, 0xE5A10000, 0x80000000, 123_456, 1000, 960_000]
    assert numbers[1][0] == RECEIVER
    assert numbers[1][7] == 12 and numbers[1][8] in (-3, 0xFFFFFD)
    assert numbers[1][9:] == [0x00017FFF, 77, 0x80000000, 0x00018000]


def test_tshark_reads_our_rtp(tmp_path: Path) -> None:
    data = emit_rtp(65_535, 0xFFFFFFFF, SENDER, bytes(960))
    rows = tshark(
        tmp_path, [datagram(data, 5004, 5004)], "rtp.p_type", "rtp.seq", "rtp.timestamp", "rtp.ssrc", "ip.len",
        "_ws.malformed",
    )  # fmt: skip
    p_type, seq, timestamp, ssrc, length, malformed = rows[0]
    assert (p_type, seq, timestamp, int(ssrc, 0)) == ("96", "65535", "4294967295", SENDER)
    assert (length, malformed) == ("1000", "")


def test_tshark_does_find_malformed_packets(tmp_path: Path) -> None:
    """The check above can fail."""
    broken = bytearray(receiver_compound())
    broken[0] = 0x9F  # 31 report blocks where there is one
    assert tshark(tmp_path, [datagram(bytes(broken), 5005, 5005)], "_ws.malformed", "rtcp.length_check.bad") != [["", ""]]


def test_scapy_reads_our_rtp_and_we_read_scapys() -> None:
    RTP = pytest.importorskip("scapy.layers.rtp", reason="scapy is not installed").RTP
    rng = random.Random(4)
    for _ in range(50):
        ours = {
            "sequence": rng.getrandbits(16),
            "timestamp": rng.getrandbits(32),
            "ssrc": rng.getrandbits(32),
            "payload": rng.randbytes(20),
        }
        theirs = RTP(emit_rtp(**ours))
        assert (theirs.version, theirs.payload_type, theirs.sequence) == (2, 96, ours["sequence"])
        assert (theirs.timestamp, theirs.sourcesync, theirs.marker) == (ours["timestamp"], ours["ssrc"], 0)
        assert theirs.sync == [] and bytes(theirs.payload) == ours["payload"]
        assert parse_rtp(bytes(theirs)) == {**ours, "extension": b""}


def test_scapy_reads_our_rate_and_congestion_headers() -> None:
    RTP = pytest.importorskip("scapy.layers.rtp", reason="scapy is not installed").RTP
    rate = struct.pack("!HHQI", 0x5243, 3, 10**9, 60_000)
    theirs = RTP(emit_rtp(7, 8, 9, b"data", rate))
    extension = theirs.payload
    assert (theirs.extension, extension.header_id, extension.header_len, extension.header) == (1, 0x5243, 3, [0, 10**9, 60_000])
    assert bytes(extension.payload) == b"data"
    assert parse_rtp(bytes(theirs))["extension"] == rate
    congestion = struct.pack("!HHQII", 0x5843, 4, 2**63 - 1000, 60_000, 800)
    theirs = RTP(emit_rtp(7, 8, 9, b"data", congestion))
    extension = theirs.payload
    assert (extension.header_id, extension.header_len, extension.header) == (0x5843, 4, [2**31 - 1, 2**32 - 1000, 60_000, 800])
    assert parse_rtp(bytes(theirs))["extension"] == congestion


def test_scapy_reads_our_ipv4_header_and_option() -> None:
    inet = pytest.importorskip("scapy.layers.inet", reason="scapy is not installed")
    packet = inet.IP(datagram(sender_compound(), 5005, 5005, ROUTER_ALERT_OPTION))
    assert packet.ihl == 6 and packet[inet.UDP].chksum == 0
    assert bytes(packet.options[0]) == ROUTER_ALERT_OPTION
    assert type(packet.options[0]).__name__ == "IPOption_Router_Alert"

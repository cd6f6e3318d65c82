"""The log of RTP packets of a capture, from packets made by hand."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import pytest

from fairlane.errors import Refusal
from fairlane.results import rtp_log
from fairlane.topologies.model import Link

# Version 2, padding, an extension, one CSRC; marker and type 96; sequence 7, timestamp 90000, SSRC 0xabcd [RFC 3550 sec 5.1].
FIXED = bytes.fromhex("b1 e0 0007 00015f90 0000abcd 00000001")
EXTENSION = bytes.fromhex("5243 0001 00000000")  # of one word [RFC 3550 sec 5.3.1]
PAYLOAD, PADDING = bytes(100), bytes.fromhex("000000 04")  # the last octet counts itself, too


def frame(rtp: bytes, port: int = 5004) -> bytes:
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28 + len(rtp), 0, 0, 64, 17, 0, bytes(4), bytes(4))
    return bytes(12) + b"\x08\x00" + ip + struct.pack("!HHHH", 5004, port, 8 + len(rtp), 0) + rtp


def capture(folder: Path, *frames: bytes, held: int | None = None) -> Path:
    """At 1.5 s and each a second later; held: so much of each frame is kept."""
    file = folder / "x.pcap"
    records = (struct.pack("<IIII", 1 + n, 500_000_000, len(f[:held]), len(f)) + f[:held] for n, f in enumerate(frames))
    file.write_bytes(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1) + b"".join(records))
    return file


def test_a_line_has_the_fields_of_the_common_format(tmp_path: Path) -> None:
    """Time, payload type, SSRC, sequence number, timestamp, marker, size of the payload [RFC 8868 sec 3.1]; RTCP goes to an odd port."""
    file = capture(tmp_path, frame(FIXED + EXTENSION + PAYLOAD + PADDING), frame(FIXED + EXTENSION + PAYLOAD + PADDING, 5005))
    assert list(rtp_log.lines(file)) == ["1.500000 96 abcd 7 90000 1 100"]
    # 10 ms of the sender's link, and 14 + 20 + 8 + 128 bytes at 1 Mb/s, 1.36 ms
    assert list(rtp_log.lines(file, Link(ends=(("h1", 1), ("s1", 1)), rate_bps=1e6, delay_s=0.01, queue_packets=10))) == [
        "1.488640 96 abcd 7 90000 1 100"
    ]


@pytest.mark.parametrize(
    "rtp",
    [
        FIXED,  # the extension that it announces is not there
        FIXED + bytes.fromhex("5243 ffff"),  # an extension longer than the packet
        FIXED + EXTENSION + bytes.fromhex("05"),  # more padding than there is
        FIXED[:8],
    ],
)
def test_what_is_no_whole_packet_is_left_out(tmp_path: Path, rtp: bytes) -> None:
    assert list(rtp_log.lines(capture(tmp_path, frame(rtp)))) == []


@pytest.mark.parametrize("held", [10, 40, 54, 60, 100])
def test_frames_that_the_capture_cut_are_left_out(tmp_path: Path, held: int) -> None:
    assert list(rtp_log.lines(capture(tmp_path, frame(FIXED + EXTENSION + PAYLOAD + PADDING), held=held))) == []


def test_a_packet_without_padding_may_be_cut(tmp_path: Path) -> None:
    whole = frame(b"\x90" + FIXED[1:12] + EXTENSION + PAYLOAD)
    assert list(rtp_log.lines(capture(tmp_path, whole, held=62))) == ["1.500000 96 abcd 7 90000 1 100"]
    assert list(rtp_log.lines(capture(tmp_path, whole, held=57))) == []


def test_another_file_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "x.csv"
    other.write_text("time_s,rate_bps\n")
    with pytest.raises(Refusal, match=r"x\.csv: no capture of Ethernet frames in pcap format"):
        list(rtp_log.lines(other))
    for name in (str(other), str(tmp_path / "none.pcap")):
        done = subprocess.run(
            [sys.executable, "-m", "fairlane.results.rtp_log", name], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 2 and name in done.stderr and "Traceback" not in done.stderr

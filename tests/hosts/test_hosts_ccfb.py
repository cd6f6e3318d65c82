"""Congestion control feedback (RFC 8888) beside what others made of it: Pion in Go reads our bytes and writes them again, tshark their frame."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

native = pytest.importorskip("fairlane.native", reason="the module fairlane.native is not built: make build")
from fairlane.native import emit_ccfb, parse_ccfb
from test_hosts_oracles import datagram, receiver_compound, tshark

PION = "github.com/pion/rtcp v1.2.16"
SUMS = """\
github.com/pion/rtcp v1.2.16 h1:fk1B1dNW4hsI78XUCljZJlC4kZOPk67mNRuQ0fcEkSo=
github.com/pion/rtcp v1.2.16/go.mod h1:/as7VKfYbs5NIb4h6muQ35kQF/J0ZVNz2Z3xKoCBYOo=
"""
PROGRAM = r"""
package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"

	"github.com/pion/rtcp"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<20), 1<<20)
	for lines.Scan() {
		raw, _ := hex.DecodeString(lines.Text())
		var report rtcp.CCFeedbackReport
		if err := report.Unmarshal(raw); err != nil {
			fmt.Println("error", err)
			continue
		}
		again, _ := report.Marshal()
		fmt.Print(hex.EncodeToString(again), " ", report.SenderSSRC, " ", report.ReportTimestamp)
		for _, block := range report.ReportBlocks {
			fmt.Print(" ", block.MediaSSRC, ":", block.BeginSequence)
			for _, metric := range block.MetricBlocks {
				if metric.Received {
					fmt.Printf(":%d,%d", metric.ECN, metric.ArrivalTimeOffset)
				} else {
					fmt.Print(":-")
				}
			}
		}
		fmt.Println()
	}
}
"""


@pytest.fixture(scope="module")
def pion(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, built; skips without Go, or where its module is not to be had."""
    if shutil.which("go") is None:
        pytest.skip("Go is not installed (apt-get install golang-go)")
    folder = tmp_path_factory.mktemp("pion")
    (folder / "main.go").write_text(PROGRAM)
    (folder / "go.mod").write_text(f"module oracle\n\ngo 1.21\n\nrequire {PION}\n")
    (folder / "go.sum").write_text(SUMS)

    def go(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["go", *words], cwd=folder, capture_output=True, text=True, timeout=300, check=False)

    loaded = go("mod", "download")
    if loaded.returncode != 0:
        pytest.skip(f"Go cannot load {PION}; its module proxy (GOPROXY) must be within reach: {loaded.stderr.strip().splitlines()[-1]}")
    built = go("build", "-o", "oracle", ".")
    assert built.returncode == 0, built.stderr
    return folder / "oracle"


def reports(count: int) -> list[dict]:
    rng = random.Random(8888)

    def packet() -> tuple[int, int] | None:
        return None if rng.random() < 0.3 else (rng.randrange(4), rng.choice((0, 1, 512, 8189, 0x1FFE, 0x1FFF, rng.randrange(0x2000))))

    def stream() -> tuple[int, int, list]:
        return rng.getrandbits(32), rng.getrandbits(16), [packet() for _ in range(rng.randrange(40))]

    return [
        {"ssrc": rng.getrandbits(32), "streams": [stream() for _ in range(rng.randrange(4))], "timestamp": rng.getrandbits(32)}
        for _ in range(count)
    ]


def test_pion_reads_what_we_write_and_writes_the_same(pion: Path) -> None:
    given = reports(200)
    ours = [emit_ccfb(**report) for report in given]
    out = subprocess.run([str(pion)], input="\n".join(b.hex() for b in ours), capture_output=True, text=True, check=True, timeout=60).stdout
    lines = out.splitlines()
    assert len(lines) == len(given)
    for report, bytes_, line in zip(given, ours, lines):
        again, ssrc, timestamp, *streams = line.split(" ")
        assert bytes.fromhex(again) == bytes_
        assert (int(ssrc), int(timestamp)) == (report["ssrc"], report["timestamp"])
        read = [
            (int(source), int(begin), [None if p == "-" else tuple(map(int, p.split(","))) for p in packets])
            for source, begin, *packets in (stream.split(":") for stream in streams)
        ]
        assert read == report["streams"]
        assert parse_ccfb(bytes.fromhex(again)) == [report]


def test_pion_refuses_what_we_refuse(pion: Path) -> None:
    """A report block that says more metric blocks than follow. Pion has no upper limit when it reads."""
    whole = bytearray(emit_ccfb(1, [(2, 3, [(0, 5), (0, 6)])], 4))
    whole[14:16] = (6).to_bytes(2, "big")
    out = subprocess.run([str(pion)], input=whole.hex(), capture_output=True, text=True, check=True, timeout=60).stdout
    assert out.startswith("error") and parse_ccfb(bytes(whole)) is None


def test_tshark_reads_a_reduced_size_packet_and_a_compound(tmp_path: Path) -> None:
    """PT 205, FMT 11, our SSRC. (Wireshark 4.0 has no fields for what follows.)"""
    feedback = emit_ccfb(0x01020304, [(0x0A0B0C0D, 65_535, [(1, 512), None, (3, 0)])], 0x12345678)
    both = receiver_compound() + feedback
    rows = tshark(
        tmp_path,
        [datagram(feedback, 5005, 5005), datagram(both, 5005, 5005)],
        "rtcp.pt",
        "rtcp.rtpfb.fmt",
        "rtcp.senderssrc",
        "_ws.malformed",
    )
    assert rows[0] == ["205", "11", str(0x01020304), ""] or rows[0] == ["205", "11", "0x01020304", ""]
    assert rows[1][0] == "201|202|204|205" and rows[1][1] == "11" and rows[1][3] == ""

"""Wireshark with our dissector, and scapy with our layers, on captures: fields equal to what was written, nothing malformed."""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
import subprocess
import tempfile
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from fairlane import hosts, specs

native = pytest.importorskip("fairlane.native", reason="the module fairlane.native is not built: make build")
from fairlane.native import (
    emit_ack,
    emit_report,
    emit_rtcp,
    emit_rtp,
    emit_stamp,
    parse_ack,
    parse_report,
    parse_rtcp,
    parse_rtp,
    parse_stamp,
)

ROUTER_ALERT_OPTION = bytes.fromhex("94040000")
DISSECTOR = Path(hosts.__file__).resolve().parent.parent / "tools/wireshark/fairlane.lua"
pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed (apt-get install tshark)")


def datagram(payload: bytes, port: int, options: bytes = b"") -> bytes:
    """An IPv4 datagram between equal UDP ports, UDP checksum 0."""
    size = 20 + len(options)
    udp = struct.pack("!HHHH", port, port, 8 + len(payload), 0) + payload
    header = struct.pack("!BBHHHBBH4s4s", 0x40 | size // 4, 0, size + len(udp), 1, 0, 64, 17, 0, bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2)))
    total = sum(struct.unpack(f"!{size // 2}H", header + options))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return header[:10] + struct.pack("!H", ~total & 0xFFFF) + header[12:] + options + udp


def capture(path: Path, datagrams: list[bytes]) -> Path:
    records = [struct.pack("<IIII", 0, i, len(d), len(d)) + d for i, d in enumerate(datagrams)]
    path.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101) + b"".join(records))  # 101: raw IP
    return path


def tshark(path: Path, *more: str) -> list[dict[str, list[str]]]:
    """The layers of each packet by field name, as JSON of Wireshark says them. Wireshark 4.4 and later run no scripts as root: then by another
    user, for whom both files are copied."""
    with tempfile.TemporaryDirectory() as name:
        folder, other = Path(name), {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
        folder.chmod(0o755)
        for file in (DISSECTOR, path):
            shutil.copyfile(file, folder / file.name)
        command = ["tshark", "-X", f"lua_script:{folder / DISSECTOR.name}", "-r", str(folder / path.name), *more]
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=60, cwd="/", env={**os.environ, "HOME": name}, **other
        )
    assert "lua" not in done.stderr.lower(), done.stderr
    return [packet["_source"]["layers"] for packet in json.loads(done.stdout)] if more else []


def fields(path: Path, *names: str) -> list[dict[str, list[str]]]:
    wanted = [argument for name in names for argument in ("-e", name)]
    return tshark(path, "-T", "json", *wanted)


def number(text: str) -> int:
    if text in ("True", "False"):
        return int(text == "True")
    return int(IPv4Address(text)) if text.count(".") == 3 else int(text, 0)


def shown(layers: dict[str, list[str]], form: str) -> dict[str, list[int]]:
    prefix = f"fairlane.{form}."
    return {name.removeprefix(prefix): [number(v) for v in values] for name, values in layers.items() if name.startswith(prefix)}


REPORT_FIELDS = ("highest_sequence", "echo_ns", "delay_us", "receive_rate_bps", "loss_event_rate", "expected_packets", "lost_packets",
                 "reporter")  # fmt: skip


def test_wireshark_shows_the_fields_of_acks_and_reports(tmp_path: Path) -> None:
    rng = random.Random(5)
    acks = [(rng.getrandbits(48), rng.getrandbits(32)) for _ in range(20)] + [(0, 0), (2**48 - 1, 2**32 - 1)]
    acks += [(rng.getrandbits(48), rng.getrandbits(32), rng.getrandbits(64), b"", ecn) for ecn in range(4)]
    acks += [(rng.getrandbits(48), rng.getrandbits(32), rng.getrandbits(64), rng.randbytes(8), ecn) for ecn in range(4)]
    reports = [dict(zip(REPORT_FIELDS, (rng.getrandbits(n) for n in (48, 64, 32, 64, 32, 32, 32, 32)))) for _ in range(20)]
    reports += [dict(zip(REPORT_FIELDS, (1, 2, 3, 4, None, 5, 6, 7)))]
    path = capture(
        tmp_path / "direct.pcap",
        [datagram(p, 5004) for p in (*(emit_ack(*a) for a in acks), *(emit_report(specs.Report(**r)) for r in reports))],
    )
    names = [f"fairlane.ack.{n}" for n in ("version", "type", "flags", "ecn", "sequence", "history", "arrived_ns", "rate_bps")]
    names += [f"fairlane.report.{n}" for n in ("version", "type", "flags", "flags.has_loss_event_rate", *REPORT_FIELDS)]
    rows = fields(path, *names, "_ws.malformed", "_ws.expert")
    assert len(rows) == len(acks) + len(reports)
    for row, said in zip(rows, acks):
        told = {n: [v] for n, v in zip(("sequence", "history", "arrived_ns"), said)}
        if len(said) > 3 and said[3]:
            told["rate_bps"] = [int.from_bytes(said[3], "big")]
        assert shown(row, "ack") == {"version": [1], "type": [1], "flags": [0], "ecn": [said[4] if len(said) > 3 else 0], **told}
    for row, report in zip(rows[len(acks) :], reports):
        has = int(report["loss_event_rate"] is not None)
        fixed = {"version": [1], "type": [2], "flags": [has], "flags.has_loss_event_rate": [has]}
        assert shown(row, "report") == {**fixed, **{name: [value or 0] for name, value in report.items()}}
    assert not any(key.startswith("_ws") for row in rows for key in row)


def test_wireshark_shows_stamps_in_data_on_any_even_port(tmp_path: Path) -> None:
    stamps = [(2**63 + 5, 77, 123_456), (1, 0), (2**64 - 1, 2**64 - 1, 2**32 - 1, 2**64 - 2)]
    packets = [emit_rtp(65_535, 9, 0xABCD, emit_stamp(*s) + bytes(200 if len(s) == 4 else 0)) for s in stamps]
    path = capture(tmp_path / "data.pcap", [datagram(p, 31_000) for p in packets])
    names = ("sent_ns", "sequence", "rtt_us", "produced_ns")
    rows = fields(path, *(f"fairlane.stamp.{n}" for n in names), "rtp.seq", "rtp.ssrc", "_ws.malformed")
    for row, stamp in zip(rows, stamps, strict=True):
        assert shown(row, "stamp") == {name: [value] for name, value in zip(names, stamp)}
        assert (row["rtp.seq"], number(row["rtp.ssrc"][0]), "_ws.malformed" in row) == (["65535"], 0xABCD, False)


def test_wireshark_shows_rate_headers_before_stamps(tmp_path: Path) -> None:
    rates = [(2**64 - 1, 0, None), (10**9, 2**32 - 1, None), (8_000, 60_000, None)]
    changes = [(2**64 - 1, 0, 0), (2**63, 60_000, 2**32 - 1)]
    extensions = [struct.pack("!HHQI", 0x5243, 3, *rate[:2]) for rate in rates] + [struct.pack("!HHQII", 0x5843, 4, *c) for c in changes]
    packets = [emit_rtp(7, 9, 0xABCD, emit_stamp(1, 2, 3) + bytes(50), extension) for extension in extensions]
    path = capture(tmp_path / "rates.pcap", [datagram(p, 5004) for p in packets])
    names = ("rate.rate_bps", "rate.rtt_us", "congestion.change_bps", "congestion.rtt_us", "congestion.interval_us", "stamp.sequence")
    rows = fields(path, *(f"fairlane.{name}" for name in names), "_ws.malformed", "_ws.expert")
    for row, (number_, rtt_us, interval_us) in zip(rows, rates + changes, strict=True):
        if interval_us is None:
            assert shown(row, "rate") == {"rate_bps": [number_], "rtt_us": [rtt_us]}
        else:
            assert shown(row, "congestion") == {"change_bps": [number_], "rtt_us": [rtt_us], "interval_us": [interval_us]}
        assert shown(row, "stamp") == {"sequence": [2]} and not any(key.startswith("_ws") for key in row)


def test_wireshark_shows_alsf_and_its_layers(tmp_path: Path) -> None:
    said = (9, 2**63, 933_000, [(0xEF010001, 64_000), (0xEF010002, 2**40)])
    echo = (8, 900_000, 1_000_000, [])
    compounds = [
        emit_rtcp(specs.Compound(9, sender=(1 << 40, 2, 3, 4), cname=b"als@10.0.0.1", from_sender=said)),
        emit_rtcp(specs.Compound(8, blocks=[(9, 1, 2, 3, 4, 5, 6)], cname=b"als@10.0.0.1", from_receiver=echo, bye=[8])),
    ]
    path = capture(tmp_path / "rtcp.pcap", [datagram(compounds[0], 31_001, ROUTER_ALERT_OPTION), datagram(compounds[1], 31_001)])
    names = ("desired_rate_bps", "utilisation")
    rows = fields(path, *(f"fairlane.alsf.{n}" for n in names), "fairlane.alsf_layer.address", "fairlane.alsf_layer.rate_bps", "rtcp.pt",
                  "_ws.malformed", "_ws.expert", "rtcp.length_check.bad")  # fmt: skip
    assert [shown(row, "alsf") for row in rows] == [{n: [v] for n, v in zip(names, x)} for x in ((2**63, 933_000), (900_000, 1_000_000))]
    assert shown(rows[0], "alsf_layer") == {"address": [0xEF010001, 0xEF010002], "rate_bps": [64_000, 2**40]}
    assert [row["rtcp.pt"] for row in rows] == [["200", "202", "204"], ["201", "202", "204", "203"]]
    assert not any(key.startswith(("_ws", "rtcp.length")) for row in rows for key in row)


def test_wireshark_leaves_others_traffic_alone(tmp_path: Path) -> None:
    ack = emit_ack(5, 6)
    others = [datagram(ack + b"\0", 5004), datagram(ack, 5005), datagram(b"\x21" + ack[1:], 5004)]
    unequal = bytearray(datagram(ack, 5004))
    unequal[20:22] = (4000).to_bytes(2, "big")
    rows = fields(capture(tmp_path / "others.pcap", [*others, bytes(unequal)]), "fairlane.ack.sequence", "frame.number")
    assert [list(row) for row in rows] == [["frame.number"]] * 4


def test_wireshark_marks_a_layer_list_that_does_not_come_out(tmp_path: Path) -> None:
    """The check for malformed packets can fail."""
    compound = emit_rtcp(specs.Compound(8, from_sender=(8, 1, 2, [(3, 4)])))
    broken = bytearray(compound[:-4])
    broken[compound.index(b"ALSF") - 5] -= 1  # the APP packet is one word shorter
    rows = fields(capture(tmp_path / "broken.pcap", [datagram(bytes(broken), 5005)]), "fairlane.alsf.utilisation", "fairlane.bad_length")
    assert list(rows[0]) == ["fairlane.alsf.utilisation", "fairlane.bad_length"]


# ------------------------------------------------------------------------------------------------------ captures of virtual time


@pytest.fixture(scope="module")
def virtual_captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three flows, one acknowledged, one with reports of its own, one with RTCP, over the dumbbell in virtual time."""
    virtual_fabric = pytest.importorskip("fairlane.fabrics.virtual_fabric")
    if virtual_fabric.native is None:
        pytest.skip("the module fairlane.native is not built: make build")
    from typer.testing import CliRunner

    from fairlane.cli import app

    folder = tmp_path_factory.mktemp("virtual")
    flows = [argument for kind in ("rap:1", "tfrc:1", "als:1") for argument in ("--flow", kind)]
    command = [
        "run",
        "dumbbell",
        *flows,
        "--bottleneck",
        "2mbit",
        "--duration",
        "12",
        "--pcap",
        str(folder / "pcap"),
        "--out",
        str(folder / "out"),
    ]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    return folder / "pcap"


def datagrams(path: Path) -> list[tuple[int, int, bytes]]:
    """UDP source and destination port and payload of each frame of a capture that holds UDP."""
    raw = path.read_bytes()
    order = "<" if raw[:4] in (bytes.fromhex("4d3cb2a1"), bytes.fromhex("d4c3b2a1")) else ">"
    at, found = 24, []
    while at < len(raw):
        size = struct.unpack_from(f"{order}I", raw, at + 8)[0]
        frame = raw[at + 16 : at + 16 + size]
        at += 16 + size
        header = 4 * (frame[14] & 15)
        if frame[12:14] == b"\x08\x00" and frame[23] == 17:
            source, port, length = struct.unpack_from("!HHH", frame, 14 + header)
            found.append((source, port, frame[22 + header : 14 + header + length]))
    return found


def test_wireshark_reads_captures_of_virtual_time_as_the_codec_does(virtual_captures: Path) -> None:
    seen = {"ack": 0, "report": 0, "stamp": 0, "alsf": 0}
    names = [f"fairlane.ack.{n}" for n in ("ecn", "sequence", "history")] + [f"fairlane.report.{n}" for n in ("flags", *REPORT_FIELDS)]
    names += [f"fairlane.stamp.{n}" for n in ("sent_ns", "sequence", "rtt_us")] + [
        "fairlane.alsf.desired_rate_bps",
        "fairlane.alsf.utilisation",
    ]
    for path in (virtual_captures / "s1-s2.pcap", virtual_captures / "s2-s1.pcap"):
        expected = datagrams(path)
        rows = [r for r in fields(path, "udp.port", *names, "_ws.malformed", "rtcp.length_check.bad") if "udp.port" in r]
        assert len(rows) == len(expected) > 100
        for row, (source, port, payload) in zip(rows, expected):
            assert not any(key.startswith(("_ws", "rtcp.length")) for key in row) and source == port
            if port % 2:
                alsf = parse_rtcp(payload)["from_sender"] or parse_rtcp(payload)["from_receiver"]
                assert shown(row, "alsf") == ({} if alsf is None else {"desired_rate_bps": [alsf[1]], "utilisation": [alsf[2]]})
                seen["alsf"] += alsf is not None
            elif payload[0] == 0x11:
                ack = parse_ack(payload)
                assert shown(row, "ack") == {name: [ack[name]] for name in ("ecn", "sequence", "history")}
                seen["ack"] += 1
            elif payload[0] == 0x12:
                report = parse_report(payload)
                assert report.pop("header") == b""
                told = {name: [value or 0] for name, value in report.items()}
                assert shown(row, "report") == {**told, "flags": [int(report["loss_event_rate"] is not None)]}
                seen["report"] += 1
            else:
                stamp = parse_stamp(parse_rtp(payload)["payload"])
                assert shown(row, "stamp") == {name: [stamp[name] or 0] for name in ("sent_ns", "sequence", "rtt_us")}
                seen["stamp"] += 1
    assert all(seen.values()), seen


def test_scapy_reads_captures_of_virtual_time_as_the_codec_does(virtual_captures: Path) -> None:
    layers = pytest.importorskip("fairlane.scapy_layers", reason="scapy is not installed", exc_type=ImportError)
    from scapy.layers.inet import UDP
    from scapy.utils import rdpcap

    seen = dict.fromkeys(("Ack", "Report", "Stamp", "Alsf"), 0)
    for path in (virtual_captures / "s1-s2.pcap", virtual_captures / "s2-s1.pcap"):
        frames = [frame for frame in rdpcap(str(path), count=1500) if frame.haslayer(UDP)]
        for frame, (_, port, payload) in zip(frames, datagrams(path)):
            if frame.haslayer(layers.Ack):
                assert (frame[layers.Ack].sequence, frame[layers.Ack].history) == tuple(
                    parse_ack(payload)[name] for name in ("sequence", "history")
                )
            elif frame.haslayer(layers.Report):
                assert frame[layers.Report].echo_ns == parse_report(payload)["echo_ns"]
            elif frame.haslayer(layers.Stamp):
                assert frame[layers.Stamp].sequence == parse_stamp(parse_rtp(payload)["payload"])["sequence"]
            else:
                assert port % 2 and frame.haslayer(layers.Rtcp)
                said = frame[layers.Rtcp]
                while said and said.packet_type != 204:
                    said = said.payload
                if said:
                    alsf = parse_rtcp(payload)["from_sender"] or parse_rtcp(payload)["from_receiver"]
                    assert said.alsf[0].desired_rate_bps == alsf[1]
                    seen["Alsf"] += 1
            for name in ("Ack", "Report", "Stamp"):
                seen[name] += frame.haslayer(getattr(layers, name)) > 0
    assert all(seen.values()), seen

"""Sender and receiver as processes over real sockets on loopback; nothing between them rewrites R_d."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hosts.sockets import SocketError, mark_as_sender_control, open_udp, send_without_options
from hosts.wire.alsf import ROUTER_ALERT_OPTION, find_alsf
from hosts.wire.rtcp import Bye, ReceiverReport, ReportBlock, emit_compound, parse_compound

IP_RECVOPTS = 6
SENDER_ADDRESS, RECEIVER_ADDRESS = "127.0.0.1", "127.0.0.2"


def free_port() -> int:
    """An even port that is free with its successor, at both addresses, at this moment."""
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1] & ~1
        try:
            for address in (SENDER_ADDRESS, RECEIVER_ADDRESS):
                for number in (port, port + 1):
                    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                        probe.bind((address, number))
            return port
        except OSError:
            continue


def agent(role: str, log: Path, *more: str) -> subprocess.Popen:
    local, peer = (SENDER_ADDRESS, RECEIVER_ADDRESS) if role == "sender" else (RECEIVER_ADDRESS, SENDER_ADDRESS)
    command = [sys.executable, "-m", "hosts.agent", "--role", role, "--local", local, "--peer", peer, "--log", str(log), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def records(log: Path, kind: str) -> list[dict]:
    return [r for r in map(json.loads, log.read_text().splitlines()) if r["kind"] == kind]


def test_a_flow_end_to_end(tmp_path: Path) -> None:
    """R_d comes back as sent; every packet is accounted for; SIGTERM ends both with a BYE and a full log."""
    port = str(free_port())
    sent_log, received_log = tmp_path / "s.jsonl", tmp_path / "r.jsonl"
    common = ("--port", port, "--max-rate", "2mbit", "--seed", "3", "--param", "adaptation_interval_s=1.5")
    receiver = agent("receiver", received_log, *common)
    while receiver.poll() is None and not (received_log.exists() and received_log.stat().st_size):
        time.sleep(0.02)  # it must listen before anything is sent, however busy the machine is
    start_at = time.time() + 3.0
    sender = agent("sender", sent_log, *common, "--start-at", f"{start_at}", "--param", "initial_rate_bps=400000")
    try:
        time.sleep(10.5)
        sender.send_signal(signal.SIGTERM)
        assert sender.communicate(timeout=10)[1] == "" and sender.returncode == 0
        time.sleep(0.2)
        receiver.send_signal(signal.SIGTERM)
        assert receiver.communicate(timeout=10)[1] == "" and receiver.returncode == 0
    finally:
        sender.kill()
        receiver.kill()

    (sent,), (received,) = records(sent_log, "end"), records(received_log, "end")
    assert sent["sent_packets"] > 100
    assert sent["forgiven_packets"] < 0.2 * sent["sent_packets"]
    assert received["received_packets"] == sent["sent_packets"]
    assert (received["lost_packets"], received["malformed_packets"], sent["malformed_packets"]) == (0, 0, 0)
    assert received["received_bytes"] == 1000 * received["received_packets"]

    controls = records(received_log, "control")
    assert controls and {(c["rd_bps"], c["u"]) for c in controls} == {(2_000_000, 0.0)}
    feedback = records(sent_log, "feedback")
    assert {f["rd_bps"] for f in feedback} >= {2_000_000}
    assert all(f["loss"] == 0 for f in feedback)
    assert all(0 <= f["rtt_s"] < 1.0 for f in feedback if f["rtt_s"] is not None)
    rates = [r["rate_bps"] for r in records(sent_log, "sent")]
    # No router answers on the loopback: r + A at adaptation points after a report [ALS sec 3.5].
    assert rates[0] == 400_000 and 450_000 <= rates[-1] <= 700_000 and rates == sorted(rates)

    starts = records(sent_log, "start")
    assert 0 <= starts[0]["t"] - start_at < 1.0
    # The paced rate, over each second or so at an unchanged rate: exact but for packets on the borders, and for what a busy
    # machine made the pacer forgive.
    for a, b in zip(records(sent_log, "sent"), records(sent_log, "sent")[1:]):
        expected = a["rate_bps"] * (b["mono_s"] - a["mono_s"]) / 8000
        count = b["sent_packets"] - a["sent_packets"]
        assert 0.95 * expected - 2 - sent["forgiven_packets"] <= count <= 1.05 * expected + 2
    data = records(received_log, "data")
    assert sum(d["packets"] for d in data) == received["received_packets"]
    assert records(received_log, "bye") and records(sent_log, "als.adapt")


@pytest.mark.parametrize("signalled", [False, True])
def test_a_process_in_a_large_group_waits_to_say_bye(tmp_path: Path, signalled: bool) -> None:
    """RFC 3550 section 6.3.7: 2.5 s x 0.5 / 1.21828 = 1.03 s or more; after a signal it leaves without BYE."""
    port = free_port()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        control.bind((RECEIVER_ADDRESS, port + 1))
        control.settimeout(8)
        sender = agent("sender", tmp_path / "s.jsonl", "--port", str(port), "--ssrc", "1", "--max-rate", "1mbit", "--duration", "4")
        try:
            _, address = control.recvfrom(2048)
            for ssrc in range(2, 62):
                control.sendto(emit_compound([ReceiverReport(ssrc)]), address)
            if signalled:
                time.sleep(0.3)
                sender.send_signal(signal.SIGTERM)
            sender.communicate(timeout=12)
        finally:
            sender.kill()
        assert sender.returncode == 0
        control.setblocking(False)
        heard = []
        while True:
            try:
                heard += parse_compound(control.recv(2048))
            except BlockingIOError:
                break
    assert [type(packet) for packet in heard].count(Bye) == (not signalled)
    (end,), sent = records(tmp_path / "s.jsonl", "end"), records(tmp_path / "s.jsonl", "sent")
    waited_s = end["mono_s"] - sent[-1]["mono_s"]
    assert waited_s < 1.0 if signalled else waited_s > 1.02
    assert end["rtcp_sent_packets"] >= 1 + (not signalled)


def test_sender_control_packets_on_the_wire(tmp_path: Path) -> None:
    """Router alert first and alone in the options, SR, SDES and ALSF; garbage and lies in answer do not stop the sender."""
    port = free_port()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        control.setsockopt(socket.IPPROTO_IP, IP_RECVOPTS, 1)
        control.bind((RECEIVER_ADDRESS, port + 1))
        control.settimeout(8)
        sender = agent("sender", tmp_path / "s.jsonl", "--port", str(port), "--ssrc", "0xabcd", "--max-rate", "1mbit")
        try:
            payload, ancillary, _, address = control.recvmsg(2048, 256)
            packets = parse_compound(payload)
            assert [type(p).__name__ for p in packets] == ["SenderReport", "SourceDescription", "App"]
            said = find_alsf(packets, from_sender=True)
            assert (said.ssrc, said.desired_rate_bps, said.utilisation_ppm) == (0xABCD, 1_000_000, 0)
            options = [data for level, kind, data in ancillary if (level, kind) == (socket.IPPROTO_IP, IP_RECVOPTS)]
            assert options == [ROUTER_ALERT_OPTION]
            lie = ReportBlock(0xABCD, 255, 0x7FFFFF, 0, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF)
            for answer in (b"", b"\x80", b"\xff" * 40, emit_compound([ReceiverReport(9, (lie,))])):
                control.sendto(answer, address)
            time.sleep(0.5)
            assert sender.poll() is None
        finally:
            sender.send_signal(signal.SIGINT)
            sender.communicate(timeout=10)
    assert sender.returncode == 0
    (feedback,) = records(tmp_path / "s.jsonl", "feedback")
    assert (feedback["loss"], feedback["rd_bps"], feedback["ssrc"]) == (255 / 256, None, 9)
    malformed = records(tmp_path / "s.jsonl", "malformed")
    assert [(m["offset"], m["reason"]) for m in malformed] == [
        (0, "RTCP header truncated: 0 of 4 bytes"),
        (0, "RTCP header truncated: 1 of 4 bytes"),
        (0, "RTCP version 3, must be 2"),
    ]


def test_udp_checksum_of_control_packets_is_zero() -> None:
    port = free_port()
    try:
        raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
    except PermissionError:
        pytest.skip("reading UDP headers needs root")
    with raw, open_udp("127.0.0.1", port, "127.0.0.1", port) as marked, open_udp("127.0.0.2", port, "127.0.0.1", port) as plain:
        raw.settimeout(5)
        mark_as_sender_control(marked)
        seen = {}
        for sock, payload in ((marked, b"control"), (plain, b"plain--")):
            sock.send(payload)
        send_without_options(marked, b"reflect", ("127.0.0.1", port))
        while len(seen) < 3:
            packet = raw.recv(2048)
            header = 4 * (packet[0] & 15)
            if packet[header + 8 :] in (b"control", b"plain--", b"reflect"):
                seen[packet[header + 8 :]] = packet[20:header], packet[header + 6 : header + 8]
    assert seen[b"control"] == (ROUTER_ALERT_OPTION, b"\0\0")
    assert seen[b"reflect"] == (b"", b"\0\0")
    assert seen[b"plain--"][0] == b"" and seen[b"plain--"][1] != b"\0\0"


def test_a_taken_port_is_named_with_the_way_out() -> None:
    port = free_port()
    with open_udp("127.0.0.1", port, "127.0.0.2", port), pytest.raises(SocketError) as caught:
        open_udp("127.0.0.1", port, "127.0.0.2", port)
    assert str(caught.value) == (
        f"cannot bind UDP 127.0.0.1:{port}: Address already in use; another process has this port: end it, or choose another --port"
    )


def test_an_address_of_another_host_is_named() -> None:
    with pytest.raises(SocketError, match=r"cannot bind UDP 192\.0\.2\.1:5004: .*no interface of this host has this address"):
        open_udp("192.0.2.1", 5004, "127.0.0.1", 5004)

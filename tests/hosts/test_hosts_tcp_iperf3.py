"""iperf3 as the competing TCP: commands, results, and one real flow on loopback."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fairlane.hosts.tcp_iperf3 import Iperf3Error, TcpFlow, established_connections, parse_result
from tests.waiting import until

FLOW = TcpFlow("10.0.0.1", "10.0.0.2", 5201)
NO_IPERF3 = pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed (apt-get install iperf3)")


def result(sender: bool, *payloads: int, **more: str) -> str:
    """A result as iperf3 3.12 prints it, as far as it is read."""
    intervals = []
    for number, payload in enumerate(payloads):
        stream = {"socket": 5, "start": number / 2, "end": number / 2 + 0.5, "seconds": 0.5, "bytes": payload, "sender": sender}
        whole = {k: v for k, v in stream.items() if k != "socket"}
        if sender:
            stream |= {"retransmits": number, "snd_cwnd": 9480, "rtt": 12_500}
            whole |= {"retransmits": number}
        intervals.append({"streams": [stream], "sum": whole})
    return json.dumps({"start": {}, "intervals": intervals, "end": {}, **more})


def test_commands() -> None:
    assert " ".join(FLOW.receiver_command()) == "iperf3 -s -1 -J -i 0.5 -B 10.0.0.2 -p 5201"
    assert " ".join(FLOW.sender_command(29.3)) == (
        "iperf3 -c 10.0.0.2 -B 10.0.0.1 -p 5201 --cport 5201 -J -i 0.5 -t 30 -C reno -M 960 -l 948"
    )
    # Below the least that a socket takes, the receiver's route says it.
    small = TcpFlow("10.0.0.1", "10.0.0.2", 5201, packet_bytes=100, timestamps=False).sender_command(1.0)
    assert "-M" not in small and small[-2:] == ["-l", "60"]
    assert TcpFlow("a", "b", 1, packet_bytes=1500, timestamps=False).segment_payload_bytes == 1460


def test_receiver_records() -> None:
    """948 bytes of payload travel in a datagram of 1000."""
    records = parse_result(result(False, 948_00, 948_0), FLOW, begun_s=100.0)
    assert records[0] == {
        "kind": "data", "mono_s": 100.5, "seconds": 0.5, "bytes": 100_000, "payload_bytes": 94_800,
        "received_bytes": 100_000, "received_payload_bytes": 94_800,
    }  # fmt: skip
    assert (records[1]["mono_s"], records[1]["bytes"], records[1]["received_bytes"]) == (101.0, 10_000, 110_000)


def test_sender_records_and_an_interrupted_run() -> None:
    records = parse_result(result(True, 948, 948, error="interrupt - the client has terminated"), FLOW, 0.0)
    assert [r["kind"] for r in records] == ["sent", "sent"]
    assert (records[1]["retransmits"], records[1]["cwnd_bytes"], records[1]["rtt_s"]) == (1, 9480, 0.0125)
    assert records[1]["sent_bytes"] == 2000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "iperf3 printed no result that can be read"),
        ("{}", "iperf3 printed no result that can be read"),
        ("[1]", "iperf3 printed no result that can be read"),
        (result(True, 948)[:-40], "iperf3 printed no result that can be read"),
        (result(True, error="unable to connect to server: Connection refused"), "unable to connect to server: Connection refused"),
    ],
)
def test_no_result(text: str, message: str) -> None:
    with pytest.raises(Iperf3Error, match="^" + message):
        parse_result(text, FLOW, 0.0)


@NO_IPERF3
def test_a_reno_flow_cut_short(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ends = {}
    for role, local, peer in (("sender", "127.0.0.1", "127.0.0.2"), ("receiver", "127.0.0.2", "127.0.0.1")):  # sender knocks
        command = [sys.executable, "-m", "fairlane.hosts.tcp_iperf3", "--role", role, "--local", local, "--peer", peer]
        command += ["--port", str(port), "--duration", "30", "--log", str(tmp_path / role)]
        ends[role] = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        until((tmp_path / role).exists)
    try:
        until(lambda: established_connections(port) >= 4, what="a flow with iperf3's connection for control")  # each seen from both ends
        time.sleep(2.0)
        ends["sender"].send_signal(signal.SIGTERM)
        for end in ends.values():
            assert end.communicate(timeout=15)[1] == ""
            assert end.returncode == 0
    finally:
        for end in ends.values():
            end.kill()
    sent, received = ([json.loads(line) for line in (tmp_path / r).read_text().splitlines()] for r in ("sender", "receiver"))
    assert (sent[0]["kind"], sent[0]["algorithm"], sent[-1]["kind"]) == ("start", "tcp-reno", "end")
    data = [r for r in received if r["kind"] == "data"]
    assert len(data) >= 3 and all(r["bytes"] > r["payload_bytes"] > 0 for r in data)
    assert data[0]["t"] == pytest.approx(next(r for r in sent if r["kind"] == "sent")["t"], abs=0.3)

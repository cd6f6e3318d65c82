"""One flow of each family of algorithms as processes over real sockets: acknowledged, windowed, own reports, none, layered."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

SENDER, RECEIVERS = "127.0.0.1", ("127.0.0.2", "127.0.0.3")
ALL_FORGIVEN = 0.2
"""Part of the packets that a busy machine may make the pacer forgive before a test of rates says nothing."""

WINDOW = '''
import sys
from dataclasses import dataclass
from hosts import algorithms
from hosts.algorithms import base

@dataclass(frozen=True)
class Parameters:
    window_packets: float = 8.0

class Window(base.Sender):
    """A fixed window."""
    interests = base.Interests(acks=base.AckDetail.EVERY)
    def __init__(self, parameters):
        self.parameters, self.acked, self.rtt_s = parameters, 0, 1.0
    def on_start(self, now_s, rng):
        return (base.SetWindow(self.parameters.window_packets), base.SetLossTimeout(0.5), base.SetTimer("look", now_s + 1.0))
    def on_ack(self, now_s, ack, rng):
        self.acked += ack.newly_acked_packets
        self.rtt_s = min(self.rtt_s, ack.rtt_s)
        return ()
    def on_timer(self, now_s, timer, rng):
        note = base.Note("window", (("acked", self.acked), ("in_flight", timer.path.in_flight_packets), ("rtt_s", self.rtt_s)))
        return (base.SetTimer("look", now_s + 1.0), note)

algorithms.ALGORITHMS["test-window"] = base.Kind("test-window", "", Parameters, Window, lambda parameters: base.Receiver())
from hosts.agent import main
sys.exit(main())
'''


def free_port() -> int:
    """An even port that is free with its successor at this moment."""
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1] & ~1
        try:
            for number in (port, port + 1):
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                    probe.bind(("0.0.0.0", number))
            return port
        except OSError:
            continue


class Flow:
    """A sender and its receivers; leave the `with` to end them as a run does, the sender first."""

    def __init__(self, tmp_path: Path, algorithm: str, *more: str, receivers: int = 1, program: str | None = None) -> None:
        port = str(free_port())
        command = [sys.executable, "-m", "hosts.agent"] if program is None else [sys.executable, "-c", program]
        self.logs = [tmp_path / "s.jsonl", *(tmp_path / f"r{n}.jsonl" for n in range(receivers))]
        self.processes: list[subprocess.Popen] = []
        for number in (*range(1, receivers + 1), 0):
            role, peer = ("receiver", SENDER) if number else ("sender", RECEIVERS[0])
            argv = [*command, "--role", role, "--algorithm", algorithm, "--local", (SENDER, *RECEIVERS)[number], "--peer", peer,
                    "--port", port, "--seed", str(number + 1), "--log", str(self.logs[number]), *more]  # fmt: skip
            self.processes.insert(0 if number == 0 else number, subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
            if number:
                self._await_log(number)

    def _await_log(self, number: int) -> None:
        """A receiver listens before its sender sends."""
        end = time.monotonic() + 10
        while time.monotonic() < end and not (self.logs[number].exists() and self.logs[number].stat().st_size):
            assert self.processes[-1].poll() is None, self.processes[-1].communicate()[1]
            time.sleep(0.02)

    def __enter__(self) -> Flow:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            for process in self.processes:
                process.send_signal(signal.SIGTERM)
                assert process.communicate(timeout=10)[1] == "" and process.returncode == 0
                time.sleep(0.1)
        finally:
            for process in self.processes:
                process.kill()

    def records(self, number: int, kind: str) -> list[dict]:
        return [r for r in map(json.loads, self.logs[number].read_text().splitlines()) if r["kind"] == kind]

    def end(self, number: int) -> dict:
        (end,) = self.records(number, "end")
        assert end["malformed_packets"] == 0
        return end


def test_an_acknowledged_flow_keeps_ten_megabits(tmp_path: Path) -> None:
    """RAP over loopback: no loss, so it climbs to its link's rate; an acknowledgement for each packet of 1000 bytes."""
    with Flow(tmp_path, "rap", "--max-rate", "10mbit") as flow:
        time.sleep(4.0)
    sent, received = flow.end(0), flow.end(1)
    assert received["received_packets"] == sent["sent_packets"] == received["feedback_packets"] == sent["feedback_packets"]
    assert sent["rtcp_sent_packets"] == received["rtcp_sent_packets"] == 0
    assert sent["forgiven_packets"] < ALL_FORGIVEN * sent["sent_packets"]
    rows = [r for r in flow.records(0, "sent") if r["rate_bps"] == 10e6]
    assert rows, "it climbs to the link's rate"
    seconds, packets = rows[-1]["mono_s"] - rows[0]["mono_s"], rows[-1]["sent_packets"] - rows[0]["sent_packets"]
    assert seconds > 1
    assert 8000 * (packets + sent["forgiven_packets"] + 2) / seconds >= 10e6 and 8000 * (packets - 26) / seconds <= 10e6


def test_a_windowed_flow_keeps_its_window_under_way(tmp_path: Path) -> None:
    with Flow(tmp_path, "test-window", program=WINDOW) as flow:
        time.sleep(2.2)
    sent, received = flow.end(0), flow.end(1)
    assert sent["sent_packets"] - received["received_packets"] <= 8 and sent["sent_packets"] > 1000
    looks = flow.records(0, "window")
    assert looks and all(0 < look["in_flight"] <= 8 for look in looks) and 0 < looks[-1]["rtt_s"] < 0.1
    assert looks[-1]["acked"] + 8 <= sent["sent_packets"] + 8
    assert flow.records(0, "sent")[-1]["window_packets"] == 8.0


def test_own_reports_reach_the_sender(tmp_path: Path) -> None:
    """TRABOL: a report each RESPONSE_TIME; its rate and loss are what was sent."""
    with Flow(tmp_path, "trabol", "--max-rate", "2mbit") as flow:
        time.sleep(3.5)
    sent, received = flow.end(0), flow.end(1)
    assert received["received_packets"] == sent["sent_packets"]
    reports = flow.records(0, "feedback")
    assert len(reports) == sent["feedback_packets"] == received["feedback_packets"] and len(reports) > 3
    assert all(r["loss"] == 0 and 0 <= r["rtt_s"] < 0.5 and r["ssrc"] == reports[0]["ssrc"] for r in reports)
    assert sum(r["expected_packets"] for r in reports) <= sent["sent_packets"]
    full = [r for r in reports if r["receive_rate_bps"] > 1e6]
    assert full and sum(r["receive_rate_bps"] for r in full) / len(full) < 2.2e6
    assert sent["rtcp_sent_packets"] == received["rtcp_sent_packets"] == 0


def test_a_constant_rate_needs_no_feedback(tmp_path: Path) -> None:
    with Flow(tmp_path, "cbr", "--param", "rate_bps=800000") as flow:
        time.sleep(1.8)
    sent, received = flow.end(0), flow.end(1)
    assert received["received_packets"] == sent["sent_packets"] > 150
    assert received["feedback_packets"] == received["rtcp_sent_packets"] == sent["rtcp_sent_packets"] == 0


def test_a_layered_flow_reaches_several_receivers_by_groups(tmp_path: Path) -> None:
    """Nothing rewrites R_d here: all receivers are alike, so the basic layer carries all."""
    more = ("--max-rate", "1mbit", "--param", "initial_rate_bps=200000", "--param", "group_addresses=239.1.7.1,239.1.7.2")
    with Flow(tmp_path, "als-layered", *more, receivers=2) as flow:
        time.sleep(7.0)
    sent = flow.end(0)
    for number in (1, 2):
        received = flow.end(number)
        assert received["received_packets"] == sent["sent_packets"] > 100 and received["foreign_packets"] == 0
        assert flow.records(number, "membership")[0]["groups"] == ["239.1.7.1"]
        assert flow.records(number, "control")[0]["rd_bps"] == 1_000_000
    assert {f["ssrc"] for f in flow.records(0, "feedback")} == {r["options"]["ssrc"] for n in (1, 2) for r in flow.records(n, "start")}
    assert len(flow.records(0, "bye")) == 0  # the sender ended first
    assert flow.records(0, "sent")[-1]["layers_bps"][1] == 0.0


# ------------------------------------------------------------------------------------------------------- a kernel of one's own

LISTEN = """
import socket, sys
heard = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
heard.bind((sys.argv[1], 0))
print("ready", flush=True)
while True:
    frame = heard.recv(2048)
    if frame[23] == 2:
        print(frame.hex(), flush=True)
"""

JOIN_AND_LEAVE = """
import sys, time
from hosts.session.common import Options
from hosts.transport import LayeredReceiverTransport
transport = LayeredReceiverTransport(Options("als-layered", "10.77.0.2", "10.77.0.1", 5004, 1000, 1e6, 1, 1, None, None, 0.0, False, "-"))
assert transport.igmpv2
for groups in ((0xEF010001,), (0xEF010001, 0xEF010002), (0xEF010001,)):
    transport.set_membership(groups)
    time.sleep(0.4)
transport.close()
"""


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root and iproute2")
def test_the_kernel_says_joins_and_leaves_in_igmpv2() -> None:
    """RFC 2236: membership report (0x16) to the group, leave (0x17) to 224.0.0.2, TTL 1, router alert."""
    name = f"flw{os.getpid()}"
    far, near = f"{name}a", f"{name}b"
    ip = lambda *words: subprocess.run(["ip", *words], check=True, capture_output=True, timeout=20)  # noqa: E731
    for namespace in (far, near):
        ip("netns", "add", namespace)
    listener = None
    try:
        ip("link", "add", "v0", "netns", far, "type", "veth", "peer", "name", "v0", "netns", near)
        for namespace, address in ((far, "10.77.0.1/24"), (near, "10.77.0.2/24")):
            ip("-n", namespace, "address", "add", address, "dev", "v0")
            ip("-n", namespace, "link", "set", "v0", "up")
        listener = subprocess.Popen(["ip", "netns", "exec", far, sys.executable, "-c", LISTEN, "v0"], stdout=subprocess.PIPE, text=True)
        assert listener.stdout.readline() == "ready\n"
        subprocess.run(["ip", "netns", "exec", near, sys.executable, "-c", JOIN_AND_LEAVE], check=True, timeout=30)
        time.sleep(0.3)
        listener.terminate()
        frames = [bytes.fromhex(line) for line in listener.communicate(timeout=10)[0].splitlines()]
    finally:
        if listener is not None:
            listener.kill()
        for namespace in (far, near):
            subprocess.run(["ip", "netns", "delete", namespace], check=False, timeout=20)
    said = []
    for frame in frames:
        header = 14 + 4 * (frame[14] & 15)
        assert frame[22] == 1 and frame[34:38] == bytes.fromhex("94040000")  # TTL 1, router alert
        kind, group = frame[header], socket.inet_ntoa(frame[header + 4 : header + 8])
        to = socket.inet_ntoa(frame[30:34])
        assert to == ("224.0.0.2" if kind == 0x17 else group)
        if (kind, group) not in said:  # reports are repeated
            said.append((kind, group))
    assert said == [(0x16, "239.1.0.1"), (0x16, "239.1.0.2"), (0x17, "239.1.0.2"), (0x17, "239.1.0.1")]

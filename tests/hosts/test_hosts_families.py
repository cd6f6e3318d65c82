"""One flow of each family of algorithms as processes over real sockets: acknowledged, windowed, own reports, none, layered."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.waiting import until

SENDER, RECEIVERS = "127.0.0.1", ("127.0.0.2", "127.0.0.3")
WINDOW = '''
import sys
from dataclasses import dataclass
from fairlane.hosts import algorithms
from fairlane.hosts.algorithms import base

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
from fairlane.hosts.agent import main
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
        command = [sys.executable, "-m", "fairlane.hosts.agent"] if program is None else [sys.executable, "-c", program]
        self.logs = [tmp_path / "s.jsonl", *(tmp_path / f"r{n}.jsonl" for n in range(receivers))]
        self.processes: list[subprocess.Popen] = []
        for number in (*range(1, receivers + 1), 0):
            role, peer = ("receiver", SENDER) if number else ("sender", RECEIVERS[0])
            argv = [*command, "--role", role, "--algorithm", algorithm, "--local", (SENDER, *RECEIVERS)[number], "--peer", peer,
                    "--port", port, "--seed", str(number + 1), "--log", str(self.logs[number]), *more]  # fmt: skip
            self.processes.insert(
                0 if number == 0 else number, subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            )
            if number:
                self._await_log(number)

    def _await_log(self, number: int) -> None:
        """A receiver listens before its sender sends."""
        self.until(lambda: self.logs[number].exists() and self.logs[number].stat().st_size > 0)

    def until(self, holds: Callable[[], object], seconds: float = 60.0) -> None:
        """Wait, however busy the machine is. Logs are flushed each second."""
        end = time.monotonic() + seconds
        while not holds():
            for process in self.processes:
                if process.poll() is not None:
                    raise AssertionError(process.communicate()[1])
            assert time.monotonic() < end, f"not so after {seconds} s"
            time.sleep(0.05)

    def __enter__(self) -> Flow:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            for process in self.processes:
                process.send_signal(signal.SIGTERM)
                assert process.communicate(timeout=20)[1] == "" and process.returncode == 0
                time.sleep(0.2)
        finally:
            for process in self.processes:
                process.kill()

    def records(self, number: int, kind: str) -> list[dict]:
        lines = self.logs[number].read_text().split("\n")[:-1] if self.logs[number].exists() else []
        return [r for r in map(json.loads, lines) if r["kind"] == kind]

    def sent_packets(self) -> int:
        """As far as is known."""
        return max((r["sent_packets"] for r in self.records(0, "sent")), default=0)

    def end(self, number: int) -> dict:
        (end,) = self.records(number, "end")
        assert end["malformed_packets"] == 0
        return end

    def assert_nothing_is_missing(self, number: int = 1) -> None:
        """What was sent arrived, or was found lost: a receiver that a busy machine keeps waiting loses what its socket has no room
        for."""
        sent, received = self.end(0)["sent_packets"], self.end(number)
        lost = self.records(number, "data")[-1]["lost_packets"]
        assert 0.99 * sent - 10 <= received["received_packets"] + lost <= sent
        assert received["received_packets"] > 0.5 * sent


def test_an_acknowledged_flow(tmp_path: Path) -> None:
    """RAP over loopback: an acknowledgement for each packet, and so the rate goes up."""
    with Flow(tmp_path, "rap", "--max-rate", "10mbit") as flow:
        flow.until(lambda: flow.sent_packets() > 2000)
    flow.assert_nothing_is_missing()
    sent, received = flow.end(0), flow.end(1)
    assert received["feedback_packets"] == received["received_packets"]
    assert 0.9 * received["feedback_packets"] <= sent["feedback_packets"] <= received["feedback_packets"]
    assert sent["rtcp_sent_packets"] == received["rtcp_sent_packets"] == 0
    rates = [r["rate_bps"] for r in flow.records(0, "sent")]
    assert max(rates) > 4 * rates[0]


def test_ten_megabits_with_acknowledgements_take_little_of_a_processor(tmp_path: Path) -> None:
    """10 Mb/s are 1250 packets of 1000 bytes a second, 0.8 ms each. Processor time is what it is on a busy machine, too."""
    with Flow(tmp_path, "test-window", "--param", "window_packets=64", program=WINDOW) as flow:
        flow.until(lambda: flow.sent_packets() > 8000)
        ticks = [Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13] for process in flow.processes]
        packets = flow.sent_packets()
    for user, system in ticks:
        assert (int(user) + int(system)) / os.sysconf("SC_CLK_TCK") / packets < 0.0004


def test_a_windowed_flow_keeps_its_window_under_way(tmp_path: Path) -> None:
    with Flow(tmp_path, "test-window", program=WINDOW) as flow:
        flow.until(lambda: flow.sent_packets() > 1000 and flow.records(0, "window"))
    flow.assert_nothing_is_missing()
    looks = flow.records(0, "window")
    # None is under way when the timer comes between the last acknowledgement and the next packet.
    assert all(0 <= look["in_flight"] <= 8 for look in looks) and 0 < looks[-1]["rtt_s"] < 1.0
    assert looks[-1]["acked"] <= flow.end(1)["received_packets"]
    assert flow.records(0, "sent")[-1]["window_packets"] == 8.0


def test_own_reports_reach_the_sender(tmp_path: Path) -> None:
    """TRABOL: a report each RESPONSE_TIME; its rate and loss are what was sent."""
    with Flow(tmp_path, "trabol", "--max-rate", "2mbit") as flow:
        flow.until(lambda: len(flow.records(0, "feedback")) > 3)
    flow.assert_nothing_is_missing()
    sent, received = flow.end(0), flow.end(1)
    reports = flow.records(0, "feedback")
    assert received["feedback_packets"] - 1 <= len(reports) == sent["feedback_packets"] <= received["feedback_packets"]
    assert all(0 <= r["loss"] <= 1 and 0 <= r["rtt_s"] < 5 and r["ssrc"] == reports[0]["ssrc"] for r in reports)
    assert sum(r["expected_packets"] for r in reports) <= sent["sent_packets"]
    assert all(r["receive_rate_bps"] > 0 for r in reports[1:])
    assert sent["rtcp_sent_packets"] == received["rtcp_sent_packets"] == 0


def test_a_constant_rate_needs_no_feedback(tmp_path: Path) -> None:
    with Flow(tmp_path, "cbr", "--param", "rate_bps=800000") as flow:
        flow.until(lambda: flow.sent_packets() > 150)
    flow.assert_nothing_is_missing()
    sent, received = flow.end(0), flow.end(1)
    assert received["feedback_packets"] == received["rtcp_sent_packets"] == sent["rtcp_sent_packets"] == 0
    first, *_, last = flow.records(0, "sent")
    packets = last["sent_packets"] - first["sent_packets"]
    due = 100 * (last["mono_s"] - first["mono_s"])
    assert due - sent.get("forgiven_packets", 0) - 3 <= packets <= due + 3


def test_a_layered_flow_reaches_several_receivers_by_groups(tmp_path: Path) -> None:
    """Nothing rewrites R_d here: all receivers are alike, so the basic layer carries all."""
    more = ("--max-rate", "1mbit", "--param", "initial_rate_bps=200000", "--param", "group_addresses=239.1.7.1,239.1.7.2")
    with Flow(tmp_path, "als-layered", *more, receivers=2) as flow:
        flow.until(lambda: len({f["ssrc"] for f in flow.records(0, "feedback")}) == 2 and all(flow.records(n, "control") for n in (1, 2)))
    for number in (1, 2):
        flow.assert_nothing_is_missing(number)
        assert flow.end(number)["foreign_packets"] == 0
        assert [r["group"] for r in flow.records(number, "join")] == ["239.1.7.1"]
        assert flow.records(number, "control")[0]["rd_bps"] == 1_000_000
    assert {f["ssrc"] for f in flow.records(0, "feedback")} == {r["options"]["ssrc"] for n in (1, 2) for r in flow.records(n, "start")}
    assert [r["rate_bps"] for r in flow.records(0, "layer_sent") if r["layer"] == 1] in ([], [0.0] * len(flow.records(0, "sent")))


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
import random, time
from fairlane.native import HostEnd
from fairlane.specs import Half, Place, Reception
from fairlane.hosts.algorithms import base
class Joins(base.Receiver):
    def on_start(self, now_s, rng):
        self.start_s, self.steps = now_s, [(0xEF010001, 0xEF010002), (0xEF010001,)]
        return (base.SetTimer("step", now_s + 0.4),)
    def on_timer(self, now_s, timer, reception, rng):
        return (base.JoinLayers(self.steps.pop(0)), *([base.SetTimer("step", now_s + 0.4)] if self.steps else []))
now = time.monotonic_ns()
place = Place("10.77.0.2", "10.77.0.1", 5004, start_ns=now, stop_ns=now + 1_300_000_000, epoch_ns=0, name="f", seed=1, base_group="239.1.0.1")
end = HostEnd.receiver(place, Half(Joins(), random.Random(1), ssrc=1, cname="r"), Reception(session_bandwidth_bps=1e6))
assert not end.run_until(now + 2_000_000_000)
del end
"""


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root and iproute2")
def test_the_kernel_says_joins_and_leaves_in_igmpv2() -> None:
    """RFC 2236: membership report (0x16) to the group, leave (0x17) to 224.0.0.2, TTL 1, router alert."""
    name = f"flw{os.getpid()}"
    far, near = f"{name}a", f"{name}b"
    ip = lambda *words: subprocess.run(["ip", *words], check=True, capture_output=True, timeout=20)
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
        lines: list[str] = []
        reader = threading.Thread(target=lambda: lines.extend(iter(listener.stdout.readline, "")), daemon=True)
        reader.start()
        until(lambda: len(set(lines)) >= 4, what="four messages")  # reports are repeated
        listener.terminate()
        reader.join(10)
        frames = [bytes.fromhex(line) for line in lines]
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

"""Sender and receiver as processes over real sockets on loopback; nothing between them rewrites R_d."""

from __future__ import annotations

import json
import random
import signal
import socket
import subprocess
import sys
import time
from ipaddress import IPv4Address
from pathlib import Path

import pytest

native = pytest.importorskip("fairlane.native", reason="the module fairlane.native is not built: make build")
from fairlane import specs
from fairlane.hosts.algorithms import base
from fairlane.native import emit_rtcp, parse_rtcp
from tests.waiting import until

ROUTER_ALERT_OPTION = bytes.fromhex("94040000")
GROUP = "239.7.7.7"
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
    command = [sys.executable, "-m", "fairlane.hosts.agent", "--role", role, "--local", local, "--peer", peer, "--log", str(log), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def waiting_bytes(address: str, port: int) -> int:
    """Of datagrams in the sockets that are bound there, not read yet: 0 once whoever has them has come to the last one."""
    local = f"{int.from_bytes(socket.inet_aton(address), sys.byteorder):08X}:{port:04X}"
    rows = [line.split() for line in Path("/proc/net/udp").read_text().splitlines()[1:]]
    return sum(int(row[4].partition(":")[2], 16) for row in rows if row[1] == local)


def records(log: Path, kind: str) -> list[dict]:
    return [r for r in map(json.loads, log.read_text().splitlines()) if r["kind"] == kind]


def test_a_flow_end_to_end(tmp_path: Path) -> None:
    """R_d comes back as sent; every packet is accounted for; SIGTERM ends both with a BYE and a full log."""
    port = str(free_port())
    sent_log, received_log = tmp_path / "s.jsonl", tmp_path / "r.jsonl"
    common = ("--port", port, "--max-rate", "2mbit", "--seed", "3", "--param", "adaptation_interval_s=1.5")
    receiver = agent("receiver", received_log, *common)
    # It must listen before anything is sent, however busy the machine is.
    until(lambda: receiver.poll() is not None or (received_log.exists() and received_log.stat().st_size))
    start_at = time.time() + 3.0
    sender = agent("sender", sent_log, *common, "--start-at", f"{start_at}", "--param", "initial_rate_bps=400000")
    try:
        time.sleep(10.5)
        sender.send_signal(signal.SIGTERM)
        assert sender.communicate(timeout=10)[1] == "" and sender.returncode == 0
        until(lambda: '"kind":"bye"' in received_log.read_text(), what="the BYE")  # behind all else
        receiver.send_signal(signal.SIGTERM)
        assert receiver.communicate(timeout=10)[1] == "" and receiver.returncode == 0
    finally:
        sender.kill()
        receiver.kill()

    (sent,), (received,) = records(sent_log, "end"), records(received_log, "end")
    assert sent["sent_packets"] > 100
    forgiven = sent.get("forgiven_packets", 0)
    assert forgiven < 0.2 * sent["sent_packets"]
    assert received["received_packets"] == sent["sent_packets"]
    assert (received["malformed_packets"], sent["malformed_packets"], sent["send_errors"]) == (0, 0, 0)
    last = records(received_log, "data")[-1]
    assert (last["lost_packets"], last["received_bytes"]) == (0, 1000 * received["received_packets"])

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
        assert 0.95 * expected - 2 - forgiven <= count <= 1.05 * expected + 2
    data = records(received_log, "data")
    assert sum(d["packets"] for d in data) == received["received_packets"]
    assert records(received_log, "bye") and records(sent_log, "als.adapt")


@pytest.mark.parametrize("signalled", [False, True])
def test_a_process_in_a_large_group_waits_to_say_bye(tmp_path: Path, signalled: bool) -> None:
    """[RFC 3550 sec 6.3.7]: 2.5 s x 0.5 / 1.21828 = 1.03 s or more; after a signal it leaves without BYE."""
    port = free_port()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        control.bind((RECEIVER_ADDRESS, port + 1))
        control.settimeout(8)
        sender = agent("sender", tmp_path / "s.jsonl", "--port", str(port), "--ssrc", "1", "--max-rate", "1mbit", "--duration", "4")
        try:
            _, address = control.recvfrom(2048)
            for ssrc in range(2, 62):
                control.sendto(emit_rtcp(specs.Compound(ssrc)), address)
            if signalled:
                until(lambda: waiting_bytes(*address) == 0, what="that all are heard")
                sender.send_signal(signal.SIGTERM)
            sender.communicate(timeout=12)
        finally:
            sender.kill()
        assert sender.returncode == 0
        control.setblocking(False)
        heard = []
        while True:
            try:
                heard.append(parse_rtcp(control.recv(2048)))
            except BlockingIOError:
                break
    assert sum(compound["bye"] == [1] for compound in heard) == (not signalled)
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
            compound = parse_rtcp(payload)
            assert compound["sender"] is not None and compound["cname"] == b"als-0000abcd@127.0.0.1"
            assert compound["from_sender"] == (0xABCD, 1_000_000, 0, [])
            options = [data for level, kind, data in ancillary if (level, kind) == (socket.IPPROTO_IP, IP_RECVOPTS)]
            assert options == [ROUTER_ALERT_OPTION]
            lie = (0xABCD, 255, 0x7FFFFF, 0, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF)
            for answer in (b"", b"\x80", b"\xff" * 40, emit_rtcp(specs.Compound(9, blocks=[lie]))):
                control.sendto(answer, address)
            until(lambda: '"kind":"feedback"' in (tmp_path / "s.jsonl").read_text(), what="the feedback in the log")
            assert sender.poll() is None
        finally:
            sender.send_signal(signal.SIGINT)
            sender.communicate(timeout=10)
    assert sender.returncode == 0
    (feedback,) = records(tmp_path / "s.jsonl", "feedback")
    assert (feedback["loss"], feedback["rd_bps"], feedback["ssrc"]) == (255 / 256, None, 9)
    assert [m["where"] for m in records(tmp_path / "s.jsonl", "malformed")] == ["rtcp"] * 3


class Sends(base.Sender):
    """Of layers: one to a group, and RTCP."""

    interests = base.Interests(rtcp=True)

    def on_start(self, now_s, rng):
        return (base.SetLayers((base.Layer(int(IPv4Address(GROUP)), 80_000.0),)),)


def place(port: int, local: str = "127.0.0.1", peer: str = "127.0.0.2", seconds: float = 4.0, **more) -> specs.Place:
    now_ns = time.monotonic_ns()
    return specs.Place(
        local, peer, port, start_ns=now_ns, stop_ns=now_ns + round(seconds * 1e9), epoch_ns=time.time_ns() - now_ns, name="f", seed=1, **more)  # fmt: skip


def test_options_and_checksums_of_datagrams() -> None:
    """RTCP of a sender: router alert and UDP checksum 0. A report that it reflects: no option, UDP checksum 0. Data: no option, a checksum."""
    port = free_port()
    try:
        raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
    except PermissionError:
        pytest.skip("reading UDP headers needs root")
    with raw, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as member:
        member.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(GROUP) + socket.inet_aton("127.0.0.1"))
        raw.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(GROUP) + socket.inet_aton("127.0.0.1"))
        raw.settimeout(0.2)
        sends = specs.Half(Sends(), random.Random(1), ssrc=5, cname="s")
        end = native.HostEnd.sender(place(port, base_group=GROUP), sends, specs.Session(packet_bytes=1000, session_bandwidth_bps=1e6))
        report, seen = emit_rtcp(specs.Compound(9, blocks=[(5, 0, 0, 1, 0, 0, 0)])), {}
        deadline = time.monotonic() + 30
        while len(seen) < 3 and time.monotonic() < deadline:
            member.sendto(report, ("127.0.0.1", port + 1))
            assert end.run_until(time.monotonic_ns() + 50_000_000)
            while (packet := received(raw)) is not None:
                header = 4 * (packet[0] & 15)
                to, udp = socket.inet_ntoa(packet[16:20]), packet[header:]
                if to == GROUP:
                    kind = "data" if udp[2:4] == port.to_bytes(2, "big") else "reflected" if udp[8:] == report else "report"
                    seen[kind] = packet[20:header], udp[6:8] == b"\0\0"
        end.close()
    assert seen == {"report": (ROUTER_ALERT_OPTION, True), "reflected": (b"", True), "data": (b"", False)}


def received(raw: socket.socket) -> bytes | None:
    try:
        return raw.recv(2048)
    except TimeoutError:
        return None


def test_a_taken_port_is_named_with_the_way_out() -> None:
    port = free_port()
    sink = native.HostEnd.sink(place(port))
    with pytest.raises(OSError) as caught:
        native.HostEnd.sink(place(port))
    assert str(caught.value) == (
        f"cannot bind UDP 127.0.0.1:{port}: Address already in use; another process has this port: end it, or choose another --port"
    )
    del sink
    native.HostEnd.sink(place(port))


def test_several_senders_use_one_port_of_a_receiver(tmp_path: Path) -> None:
    """As flows between other hosts have it in virtual time. Each datagram comes to the end of its flow, however many packets the others send."""
    port, senders = free_port(), ("127.0.0.1", "127.0.0.3", "127.0.0.4")
    start_at = time.time() + 8.0  # of six processes, on a busy machine
    running: dict[Path, subprocess.Popen] = {}
    for n, host in enumerate(senders):
        for role, local, peer in (("receiver", RECEIVER_ADDRESS, host), ("sender", host, RECEIVER_ADDRESS)):
            log = tmp_path / f"{role}{n}.jsonl"
            more = ["--start-at", f"{start_at}", "--stop-at", f"{start_at + 2}"] if role == "sender" else ["--stop-at", f"{start_at + 3}"]
            more += ["--algorithm", "none", "--source", f"cbr:rate_bps={(n + 1) * 400_000}", "--packet-bytes", "500"]
            command = [sys.executable, "-m", "fairlane.hosts.agent", "--role", role, "--local", local, "--peer", peer]
            running[log] = subprocess.Popen([*command, "--port", str(port), "--log", str(log), *more], stderr=subprocess.PIPE, text=True)
    for process in running.values():
        assert (process.communicate(timeout=30)[1], process.returncode) == ("", 0)
    for n in range(len(senders)):
        sent, data = records(tmp_path / f"sender{n}.jsonl", "sent")[-1], records(tmp_path / f"receiver{n}.jsonl", "data")[-1]
        assert data["received_packets"] == sent["sent_packets"] == pytest.approx((n + 1) * 200, rel=0.05)


def test_an_address_of_another_host_is_named() -> None:
    with pytest.raises(OSError, match=r"cannot bind UDP 192\.0\.2\.1:5004: .*no interface of this host has this address"):
        native.HostEnd.sink(place(5004, "192.0.2.1", "127.0.0.1"))


def test_sources_run_between_processes(tmp_path: Path) -> None:
    """On-off without an algorithm, and video above RAP: all that left has arrived."""
    for n, more in enumerate((["--algorithm", "none", "--source", "on-off:rate_bps=800000.0,on_s=0.2,off_s=0.1"],
                              ["--algorithm", "rap", "--source", "mpeg4:rate_scale=0.5"])):  # fmt: skip
        port, logs = str(free_port()), [tmp_path / f"{role}{n}.jsonl" for role in ("sender", "receiver")]
        begin = time.time() + 1.5
        times = [["--start-at", str(begin), "--stop-at", str(begin + 3)], ["--stop-at", str(begin + 3.5)]]
        ends = [agent(role, log, "--port", port, *more, *when) for role, log, when in zip(("sender", "receiver"), logs, times)]
        try:
            assert [(end.communicate(timeout=30)[1], end.returncode) for end in ends] == [("", 0)] * 2
        finally:
            for end in ends:
                end.kill()
        sent, data = records(logs[0], "sent")[-1], records(logs[1], "data")[-1]
        assert data["received_packets"] == sent["sent_packets"] > 50 and data["received_bytes"] == sent["sent_bytes"]
        if n:
            produced = records(logs[0], "application")[-1]
            assert produced["produced_packets"] == sent["sent_packets"] + produced["waiting_packets"] + produced["discarded_packets"]
            assert data["overdue_packets"] <= data["received_packets"]


class Marks(base.Sender):
    """Sends as ECT(0), and keeps what comes back."""

    interests = base.Interests(acks=base.AckDetail.EVERY, ecn=base.Ecn.ECT_0)

    def __init__(self) -> None:
        self.heard: list[int] = []

    def on_start(self, now_s, rng):
        return (base.SetRate(800e3),)

    def on_ack(self, now_s, ack, rng):
        self.heard.append(ack.ecn)
        return ()


def test_the_ecn_field_of_data_comes_back() -> None:
    """No queue marks on the loopback: ECT(0) as sent. A CE that a packet carries is told as well."""
    port, sends = free_port(), Marks()
    receiver = native.HostEnd.receiver(
        place(port, RECEIVER_ADDRESS, SENDER_ADDRESS),
        specs.Half(base.Receiver(), random.Random(1), ssrc=5, cname="s"),
        specs.Reception(session_bandwidth_bps=1e6, acks=True),
    )
    sender = native.HostEnd.sender(
        place(port, SENDER_ADDRESS, RECEIVER_ADDRESS),
        specs.Half(sends, random.Random(1), ssrc=5, cname="s"),
        specs.Session(packet_bytes=1000, session_bandwidth_bps=1e6),
    )
    for _ in range(20):
        assert sender.run_until(time.monotonic_ns() + 10_000_000) and receiver.run_until(time.monotonic_ns() + 1_000_000)
    assert len(sends.heard) > 3 and set(sends.heard) == {base.Ecn.ECT_0}
    sender.close()
    del sender
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as marked:
        marked.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, base.Ecn.CE)
        marked.bind((SENDER_ADDRESS, port))
        marked.settimeout(5)
        marked.sendto(native.emit_rtp(1, 0, 5, native.emit_stamp(0, 10_000)), (RECEIVER_ADDRESS, port))
        receiver.run_until(time.monotonic_ns() + 50_000_000)
        acks = [native.parse_ack(marked.recv(2048))]
    assert acks[0]["ecn"] == base.Ecn.CE and acks[0]["sequence"] == 10_000


class Keeps(Marks):
    """Keeps whole acknowledgements."""

    def __init__(self) -> None:
        self.acks: list[tuple[float, base.Ack]] = []

    def on_ack(self, now_s, ack, rng):
        self.acks.append((now_s, ack))
        return ()


def test_reports_of_rfc_8888_come_back_over_sockets() -> None:
    """From RTCP's port to RTCP's port; each packet once, with its mark, its arrival to 1/1024 s and how long its report held it."""
    port, keeps = free_port(), Keeps()
    interval_ns = 50_000_000
    receiver = native.HostEnd.receiver(
        place(port, RECEIVER_ADDRESS, SENDER_ADDRESS),
        specs.Half(base.Receiver(), random.Random(1), ssrc=6, cname="s"),
        specs.Reception(session_bandwidth_bps=10e6, report_interval_ns=interval_ns, acks=True),
    )
    sender = native.HostEnd.sender(
        place(port, SENDER_ADDRESS, RECEIVER_ADDRESS),
        specs.Half(keeps, random.Random(1), ssrc=5, cname="s"),
        specs.Session(session_bandwidth_bps=10e6, packet_bytes=1000),
        specs.RtpOptions(report_interval_ns=interval_ns),
    )
    for _ in range(100):
        assert sender.run_until(time.monotonic_ns() + 5_000_000) and receiver.run_until(time.monotonic_ns() + 5_000_000)
    receiver.close()
    acks = [ack for _, ack in keeps.acks]
    assert len(acks) > 30 and [ack.sequence for ack in acks] == list(range(len(acks)))
    assert {ack.ecn for ack in acks} == {base.Ecn.ECT_0}
    assert max(ack.held_s for ack in acks) > 0.02
    for now_s, ack in keeps.acks:
        assert ack.one_way_delay_s is not None and -0.001 < ack.one_way_delay_s < 1.0 and 0.0 <= ack.rtt_s < 1.0
        assert ack.sent_s(now_s) + ack.one_way_delay_s <= now_s + 0.001
    ((_, _, end),) = [record for record in receiver.take_log() if record[1] == "end"]
    assert end["feedback_packets"] == 0 and end["rtcp_sent_packets"] > 10 and end["malformed_packets"] == 0

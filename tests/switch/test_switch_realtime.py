"""fairlane-switch on real interfaces: forwarding, the rate and the delay of a port, its records, and how it fails.

Needs root: two hosts and the switch are network namespaces joined by veth pairs, traffic goes over real sockets.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fairlane import probes

sys.path.insert(0, str(probes.ROOT / "bench"))

import veths
from tests.waiting import until

pytestmark = pytest.mark.root

HEADERS = 14 + 20 + 8
SO_TIMESTAMPNS = 35
SWITCH = veths.program("fairlane-switch")
INTERFACES = [word for number, name in veths.SWITCH_PORTS.items() for word in ("-i", f"{number}@{name}")]


@pytest.fixture(scope="module")
def net() -> Iterator[veths.Network]:
    reason = veths.missing() or (None if SWITCH else "fairlane-switch is not built (make build)")
    if reason:
        pytest.skip(reason)
    with veths.network() as made:
        yield made


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return veths.compile_p4(Path(__file__).with_name("cross.p4"), tmp_path_factory.mktemp("cross"))
    except veths.CannotRun as error:
        if "no P4 compiler" in str(error):
            pytest.skip(str(error))
        raise


@contextmanager
def switch(net: veths.Network, *arguments: str | Path) -> Iterator[subprocess.Popen]:
    """A running switch on both interfaces; it must end well on SIGTERM."""
    command = [SWITCH, *INTERFACES, *map(str, arguments)]
    process = subprocess.Popen(net.command("s1", command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert line.startswith("ready "), line + process.stderr.read()
        yield process
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 0, process.stderr.read()
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


class Flow:
    """UDP from h1 to h2, with the kernel's time of arrival of each datagram."""

    def __init__(self, net: veths.Network) -> None:
        self._sender, self._receiver = net.socket("h1"), net.socket("h2")
        self._receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self._receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self._receiver.bind(("10.0.2.2", 5000))
        self._receiver.settimeout(1.0)

    def __enter__(self) -> Flow:
        self.round_trip(b"resolve the address")
        return self

    def __exit__(self, *_: object) -> None:
        self._sender.close()
        self._receiver.close()

    def send(self, payload: bytes) -> None:
        self._sender.sendto(payload, ("10.0.2.2", 5000))

    def receive(self) -> tuple[bytes, int] | None:
        """Payload and Unix nanoseconds; None after a second without."""
        try:
            payload, control, _, _ = self._receiver.recvmsg(2048, 256)
        except TimeoutError:
            return None
        seconds, nanos = struct.unpack("qq", control[0][2])
        return payload, seconds * 1_000_000_000 + nanos

    def round_trip(self, payload: bytes, tries: int = 10) -> None:
        for _ in range(tries):
            self.send(payload)
            if self.receive() is not None:
                return
        pytest.fail("nothing came through the switch")

    def collect(self, into: list[tuple[bytes, int]]) -> threading.Thread:
        def work() -> None:
            while (arrival := self.receive()) is not None:
                into.append(arrival)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        return thread


def last_rows(stats: Path) -> dict[int, dict[str, str]]:
    with stats.open() as file:
        return {int(row["port"]): row for row in csv.DictReader(file)}


def test_the_packet_log_has_a_frames_whole_way(net: veths.Network, program: Path, tmp_path: Path) -> None:
    """From one interface to the other, in lines of BMv2's form; at `info` nothing of packets."""
    for level in ("debug", "info"):
        log = tmp_path / level
        with switch(net, "--log-file", log, "-L", level, program, "--", "--grpc-server-addr", "127.0.0.1:9604"), Flow(net) as flow:
            flow.round_trip(b"once")
        text = (tmp_path / f"{level}.txt").read_text()
        said = re.findall(r"^\[\d\d:\d\d:\d\d\.\d{3}\] \[bmv2\] \[D\] \[thread \d+\] \[0\.0\] \[cxt 0\] (.*)$", text, re.MULTILINE)
        if level == "info":
            assert "[cxt 0]" not in text
            continue
        assert re.fullmatch(r"Processing packet received on port [12]", said[0]), said
        way = ("Parser 'parser': start", "Pipeline 'ingress': start", "Pipeline 'egress': end", "Deparser 'deparser': end")
        places = [said.index(step) for step in way]
        assert places == sorted(places)
        assert re.fullmatch(r"Transmitting packet of size \d+ out of port [12]", said[-1]), said


def test_frames_pass_both_ways_and_are_recorded(net: veths.Network, program: Path, tmp_path: Path) -> None:
    stats = tmp_path / "stats.csv"
    with switch(net, program, "--pcap", tmp_path, "--stats", stats, "--", "--grpc-server-addr", "127.0.0.1:9601"):
        ping = net.command("h1", ["ping", "-c", "5", "-i", "0.05", "-W", "2", "10.0.2.2"])
        if shutil.which("ping"):
            assert " 0% packet loss" in subprocess.run(ping, capture_output=True, text=True, check=False).stdout
        with Flow(net) as flow:
            payloads = [bytes([number]) * (number * 7) for number in range(200)]
            arrived: list[tuple[bytes, int]] = []
            thread = flow.collect(arrived)
            for payload in payloads:
                flow.send(payload)
            thread.join()
            assert [payload for payload, _ in arrived] == payloads
    rows = last_rows(stats)
    assert int(rows[1]["rx_packets"]) == int(rows[2]["tx_packets"]) >= 201
    assert int(rows[2]["rx_bytes"]) == int(rows[1]["tx_bytes"]) > 0
    assert sum(int(count) for row in rows.values() for name, count in row.items() if name.startswith("drop_")) == 0
    frames = {name: count_frames(tmp_path / name) for name in ("s1-eth1_in.pcap", "s1-eth2_out.pcap", "s1-eth2_in.pcap")}
    assert frames["s1-eth1_in.pcap"] == frames["s1-eth2_out.pcap"] == int(rows[1]["rx_packets"])
    assert frames["s1-eth2_in.pcap"] == int(rows[2]["rx_packets"])


def count_frames(capture: Path) -> int:
    data = capture.read_bytes()
    at, frames = 24, 0
    while at < len(data):
        at += 16 + struct.unpack_from("<I", data, at + 8)[0]
        frames += 1
    assert at == len(data), f"{capture} ends within a frame"
    return frames


def test_a_port_keeps_its_rate(net: veths.Network, program: Path, tmp_path: Path) -> None:
    """20 Mb/s offered to a port of 10 Mb/s for two seconds: 10 Mb/s within 1% come out, the rest is dropped and counted."""
    size, rate, stats = 1000, 10e6, tmp_path / "stats.csv"
    sent = 1  # the address is resolved with one datagram
    with (
        switch(
            net, program, "--port-rate", "2=10mbit", "--port-queue", "2=50p", "--stats", stats, "--", "--grpc-server-addr", "127.0.0.1:9602"
        ),
        Flow(net) as flow,
    ):
        arrived: list[tuple[bytes, int]] = []
        thread = flow.collect(arrived)
        gap, start = size * 8 / 20e6, time.monotonic()
        while (elapsed := time.monotonic() - start) < 2.0:
            while sent * gap < elapsed:
                flow.send(bytes(size - HEADERS))
                sent += 1
            time.sleep(0.001)
        thread.join()
    times = [instant for _, instant in arrived]
    measured = (len(times) - 1) * size * 8 / ((times[-1] - times[0]) / 1e9)
    assert measured == pytest.approx(rate, rel=0.01)
    row = last_rows(stats)[2]
    assert int(row["drop_tail"]) == pytest.approx(sent - 1 - len(times), abs=1)
    assert float(row["busy_s"]) == pytest.approx(int(row["tx_bytes"]) * 8 / rate, rel=1e-6)
    assert int(row["queue_packets_max"]) == 50
    with stats.open() as file:
        means = [float(row["queue_packets_mean"]) for row in csv.DictReader(file) if row["port"] == "2"]
    assert 40 < statistics.median(means[5:18]) <= 50, "a queue that overflows is nearly full"


def test_a_port_delays_frames(net: veths.Network, program: Path) -> None:
    with switch(net, program, "--port-delay", "2=5ms", "--", "--grpc-server-addr", "127.0.0.1:9603"), Flow(net) as flow:
        delays_ms = []
        for number in range(100):
            sent = time.time_ns()
            flow.send(number.to_bytes(4, "big"))
            arrival = flow.receive()
            assert arrival is not None and arrival[0] == number.to_bytes(4, "big")
            delays_ms.append((arrival[1] - sent) / 1e6)
            time.sleep(0.002)
    assert min(delays_ms) >= 5.0
    assert statistics.median(delays_ms) == pytest.approx(5.0, abs=0.5)


def test_an_interface_may_go_down_and_come_back(net: veths.Network, program: Path) -> None:
    with switch(net, program, "--", "--grpc-server-addr", "127.0.0.1:9604") as process, Flow(net) as flow:
        net.ip("s1", "link", "set", "s1-eth2", "down")
        flow.send(b"lost")
        time.sleep(0.2)
        assert process.poll() is None
        net.ip("s1", "link", "set", "s1-eth2", "up")
        flow.round_trip(b"back again")


def test_an_interface_may_be_removed_and_made_anew(net: veths.Network, program: Path) -> None:
    with switch(net, program, "--", "--grpc-server-addr", "127.0.0.1:9607") as process, Flow(net) as flow:
        net.ip("s1", "link", "delete", "s1-eth2")
        flow.send(b"lost")
        time.sleep(0.2)
        assert process.poll() is None
        net.join("h2")
        net.ip("h1", "neighbour", "flush", "dev", "eth0")  # the new interface has a new MAC address
        flow.round_trip(b"through the new one")


def test_vlan_tags_pass(net: veths.Network, program: Path, tmp_path: Path) -> None:
    """The kernel takes the tag off a frame before a raw socket sees it: the switch puts it back."""
    tagged = bytes.fromhex("020000000202 020000000101 8100 a005 0800") + bytes(range(64))
    with switch(net, program, "--pcap", tmp_path, "--", "--grpc-server-addr", "127.0.0.1:9608"), Flow(net) as flow:
        with net.socket("h1", socket.SOCK_RAW, socket.AF_PACKET) as sender:
            sender.bind(("eth0", 0))
            sender.send(tagged)
        flow.round_trip(b"behind it")
    for capture in ("s1-eth1_in.pcap", "s1-eth2_out.pcap"):
        assert tagged in (tmp_path / capture).read_bytes(), capture


@pytest.mark.parametrize("option", [(), ("--hear-outgoing",)])
def test_frames_that_others_send_out_of_an_interface_are_heard_when_asked_for(
    net: veths.Network, program: Path, tmp_path: Path, option: tuple[str, ...]
) -> None:
    """As BMv2 hears them, so that scripts which send at the switch's side of a link work; its own frames never come back."""
    sent = bytes.fromhex("020000000202 020000000101 0800") + bytes(range(64))
    with switch(net, program, *option, "--pcap", tmp_path, "--", "--grpc-server-addr", "127.0.0.1:9618"), Flow(net) as flow:
        with net.socket("s1", socket.SOCK_RAW, socket.AF_PACKET) as sender:
            sender.bind(("s1-eth1", 0))
            sender.send(sent)
        flow.round_trip(b"behind it")
    for capture in ("s1-eth1_in.pcap", "s1-eth2_out.pcap"):
        assert (tmp_path / capture).read_bytes().count(sent) == len(option), capture
    assert sent not in (tmp_path / "s1-eth2_in.pcap").read_bytes()


def test_tcp_survives_checksums_left_to_offload(net: veths.Network, program: Path) -> None:
    """veth senders leave checksums undone by default; the switch completes them. Segmentation is the sender's to turn off."""
    if shutil.which("ethtool") is None:
        pytest.skip("needs ethtool, to turn segmentation offload off")
    for host in ("h1", "h2"):
        subprocess.run(
            net.command(host, ["ethtool", "-K", "eth0", "tx", "on", "tso", "off", "gso", "off", "gro", "off"]),
            capture_output=True,
            check=True,
        )
    payload = os.urandom(1 << 20)
    with switch(net, program, "--", "--grpc-server-addr", "127.0.0.1:9605"):
        listener = net.socket("h2", socket.SOCK_STREAM)
        client = net.socket("h1", socket.SOCK_STREAM)
        with listener, client:
            listener.settimeout(20)
            client.settimeout(20)
            listener.bind(("10.0.2.2", 6000))
            listener.listen()
            client.connect(("10.0.2.2", 6000))
            connection, _ = listener.accept()
            with connection:
                threading.Thread(target=lambda: (client.sendall(payload), client.shutdown(socket.SHUT_WR)), daemon=True).start()
                received = bytearray()
                while chunk := connection.recv(1 << 16):
                    received += chunk
    assert bytes(received) == payload


def test_the_switch_sleeps_when_idle(net: veths.Network, program: Path) -> None:
    with switch(
        net, program, "--port-rate", "all=10mbit", "--port-delay", "all=5ms", "--", "--grpc-server-addr", "127.0.0.1:9606"
    ) as process:

        def cpu_ticks() -> int:
            fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
            return int(fields[11]) + int(fields[12])

        before = cpu_ticks()
        time.sleep(1.0)
        assert cpu_ticks() - before <= 3, "more than 3% of a CPU without any traffic"


def refused(command: list[str], **options: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False, **options)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr.strip()


def test_bad_starts_end_with_one_sentence(net: veths.Network, program: Path, tmp_path: Path) -> None:
    run = net.command("s1", [SWITCH])
    assert refused([*run, "-i", "1@nowhere", str(program)]) == (
        "fairlane-switch: port 1: interface nowhere does not exist: see `ip link` for those there are (in this network namespace)"
    )
    half = tmp_path / "half.json"
    half.write_text(program.read_text()[: len(program.read_text()) // 2])
    message = refused([*run, str(half)])
    assert message.startswith(f"fairlane-switch: {half}: line ") and "the JSON ends too early" in message
    assert "No such file" in refused([*run, "/nonexistent.json"])
    assert refused([*run, *INTERFACES, "-i", "1@lo", str(program)]).startswith("fairlane-switch: -i 1@lo: port 1 is s1-eth1 already")
    assert "--port-rate 1=10mbps" in refused([*run, *INTERFACES, "--port-rate", "1=10mbps", str(program)])


def test_a_taken_port_is_named_and_the_first_switch_keeps_its_records(net: veths.Network, program: Path, tmp_path: Path) -> None:
    stats = tmp_path / "stats.csv"
    with switch(net, program, "--stats", stats, "--stats-interval", "0.05"):
        rows = lambda: stats.read_text().count("\n")
        before = until(lambda: rows() if rows() > 4 else 0)
        message = refused(net.command("s1", [SWITCH, *INTERFACES, str(program), "--stats", str(stats)]))
        until(lambda: rows() > before + 4, what="a row of the first switch")
    assert message == (
        "fairlane-switch: --grpc-server-addr 127.0.0.1:9559: TCP port 9559 is in use: find by whom with "
        "`ss -ltnp sport = :9559`, stop it, or choose another port"
    )


def test_without_root_the_way_out_is_named(net: veths.Network, program: Path, tmp_path: Path) -> None:
    # As another user: what it reads and runs must be where that user may go.
    folder = Path("/tmp") / f"fairlane-nobody-{os.getpid()}"
    folder.mkdir(mode=0o755)
    try:
        for source in (SWITCH, program):
            shutil.copy(source, folder)
        (folder / program.name).chmod(0o644)
        unprivileged = ["setpriv", "--reuid", "65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
        command = net.command("s1", [*unprivileged, str(folder / "fairlane-switch"), *INTERFACES, str(folder / program.name)])
        message = refused(command)
    finally:
        shutil.rmtree(folder)
    assert "CAP_NET_RAW" in message and "run as root" in message

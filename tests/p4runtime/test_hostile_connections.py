"""Clients that connect and say nothing, or that send a part of a message: the switch's memory has a bound, and a new controller is served."""

from __future__ import annotations

import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4r

from fairlane import probes
from tests.p4runtime import support
from tests.p4runtime.support import Client, Stream

sys.path.insert(0, str(probes.ROOT / "bench"))

import hostile_clients
from control import rss_bytes
from tests.waiting import until

pytestmark = pytest.mark.skipif(support.is_reference(), reason="BMv2 has no such limits")

SERVED_S = 2.0


@dataclass
class Switch:
    """As hostile_clients.Target: what its clients are set on."""

    process: subprocess.Popen[str]
    grpc: int
    thrift: int

    def connect(self, port: int | None = None) -> socket.socket:
        chosen = {None: self.grpc, hostile_clients.PORT: self.grpc, hostile_clients.THRIFT_PORT: self.thrift}[port]
        return socket.create_connection(("127.0.0.1", chosen), 5)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.grpc}"

    def rss_mb(self) -> float:
        return rss_bytes(self.process.pid) / 1e6


@contextmanager
def switch(*options: str, files: tuple[int, int] | None = None, megabytes: int | None = None) -> Iterator[Switch]:
    """files: the limit of open files, soft and hard; megabytes: of addresses beyond those of an idle switch."""
    first = support.free_port()
    command = [support.tool("fairlane-switch", "FAIRLANE_SWITCH"), "--no-p4", "--device-id", str(support.DEVICE_ID)]
    command += ["--thrift-port", str(first + 1), "--notifications-addr", f"tcp://127.0.0.1:{first + 2}"]
    command += ["--", "--grpc-server-addr", f"127.0.0.1:{first}", "--cpu-port", str(support.CPU_PORT), *options]
    limit = (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, files)) if files else None
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=limit)
    found = Switch(process, first, first + 1)
    try:
        for port in (found.grpc, found.thrift):
            support.wait_for(f"127.0.0.1:{port}", process)
        if megabytes is not None:
            pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[0])
            most = pages * os.sysconf("SC_PAGE_SIZE") + (megabytes << 20)
            resource.prlimit(process.pid, resource.RLIMIT_AS, (most, most))
        yield found
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=10)
    assert process.returncode == 0, errors


@pytest.fixture(autouse=True)
def enough_files() -> Iterator[None]:
    """For this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def clients(connect: Callable[[int | None], socket.socket], port: int | None, number: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [stack.enter_context(connect(port)) for _ in range(number)]


def served(found: Switch) -> None:
    """A new controller becomes primary in time, and so does a client of Thrift get an answer."""
    start = time.monotonic()
    with Client(found.address) as client:
        assert client.first and client.first.status.code == 0
        assert time.monotonic() - start < SERVED_S
    start = time.monotonic()
    with found.connect(hostile_clients.THRIFT_PORT) as thrift:
        thrift.settimeout(SERVED_S)
        name = b"standard:bm_mgmt_get_info"
        thrift.sendall(struct.pack("!II", 0x80010001, len(name)) + name + struct.pack("!IB", 7, 0))
        assert thrift.recv(100)[:4] == b"\x80\x01\x00\x02"
        assert time.monotonic() - start < SERVED_S


@pytest.mark.parametrize("files", [(1024, 4096), (1024, 1024)], ids=["usual", "hard"])
@pytest.mark.parametrize("port", [hostile_clients.PORT, hostile_clients.THRIFT_PORT], ids=["P4Runtime", "Thrift"])
def test_idle_connections_lock_nobody_out(port: int, files: tuple[int, int]) -> None:
    """More than the usual limit of open files: that is raised, or the idlest connections make way."""
    with switch(files=files) as found:
        before = found.rss_mb()
        with clients(found.connect, port, 2000):
            served(found)
            assert found.rss_mb() - before < 100
        served(found)


def test_connections_that_say_nothing_or_half_of_something_end() -> None:
    """A client that begins no HTTP/2 within 10 s; a message that does not grow for 10 s. Those that are idle between two requests stay."""
    with switch() as found, Client(found.address, open_stream=False) as idle:
        idle.stub.Capabilities(p4r.CapabilitiesRequest(), timeout=10)
        begun = time.monotonic()
        silent, half = found.connect(), hostile_clients.Uploader(found)
        idle_thrift = found.connect(hostile_clients.THRIFT_PORT)
        half_thrift = found.connect(hostile_clients.THRIFT_PORT)
        half_thrift.sendall(struct.pack("!II", 0x80010001, 25) + b"standard")
        assert half.upload(1000, 10)
        for ended in (silent, half_thrift):
            ended.settimeout(20)
            assert ended.recv(1) == b""
        half.wait_for_the_end(threading.Event())
        assert 8 < time.monotonic() - begun < 15
        idle_thrift.settimeout(0.5)
        with pytest.raises(TimeoutError):
            idle_thrift.recv(1)
        idle.stub.Capabilities(p4r.CapabilitiesRequest(), timeout=10)
        for connection in (silent, half, idle_thrift, half_thrift):
            connection.close()


def test_half_sent_messages_have_a_bound() -> None:
    """10 times 40 MB over each of both services; the switch keeps at most 80 MiB of them, and gives that back."""
    with switch() as found:
        before = found.rss_mb()
        stopped, most = threading.Event(), 0.0
        for work in (hostile_clients.upload_again, hostile_clients.thrift_again):
            for _ in range(10):
                threading.Thread(target=work, args=(found, hostile_clients.LESS_LONG, stopped), daemon=True).start()
        end = time.monotonic() + 8
        while time.monotonic() < end:
            time.sleep(0.05)
            most = max(most, found.rss_mb() - before)
        served(found)
        stopped.set()
        assert 30 < most < 200
        until(lambda: found.rss_mb() - before <= 60, what="memory given back")


def test_a_length_alone_takes_no_memory() -> None:
    """5 bytes reserved 250 MB each: under a limit of addresses, 40 of them ended the switch."""
    with switch(megabytes=1000) as found:
        half = [hostile_clients.Uploader(found) for _ in range(40)]
        for client in half:
            client.upload(hostile_clients.LESS_LONG, 16)
        served(found)
        for client in half:
            client.close()


def test_streams_without_arbitration_make_way() -> None:
    """As many streams as there may be, of a client that is no controller: the oldest ends for each controller that comes."""
    with switch("--grpc-server-max-streams", "4") as found, Client(found.address, election_id=5) as primary:
        with Client(found.address, open_stream=False) as stranger:
            streams = []
            for _ in range(3):  # the switch has heard of each before it hears of the next
                streams.append(Stream(stranger.stub))
                streams[-1].send(packet=p4r.PacketOut(payload=b"from no controller"))
                assert streams[-1].receive("error").canonical_code == grpc.StatusCode.PERMISSION_DENIED.value[0]
            with Client(found.address, election_id=4) as backup, Client(found.address, election_id=3) as another:
                assert backup.first and another.first
                for stream in streams[:2]:
                    error = stream.receive("end")
                    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED and "MasterArbitrationUpdate" in error.details()
                streams[2].nothing("end")
                with Client(found.address, election_id=2), Client(found.address, open_stream=False) as late:
                    # All four belong to controllers now.
                    refused = Stream(late.stub).receive("end")
                    assert refused.code() == grpc.StatusCode.RESOURCE_EXHAUSTED and "--grpc-server-max-streams" in refused.details()
        primary.stream.nothing("end")

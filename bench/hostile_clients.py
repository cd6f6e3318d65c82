"""A switch under clients that mean it no good: how late packets are, how much memory it takes, and whether a new controller is served.

    python bench/hostile_clients.py [--only unread-reads,large-writes] [--entries 300000] [--seconds 10] [--rounds 3] [--json FILE]

Needs root. 200 packets per second go through the switch, whose table has `--entries` entries, while the clients of one scenario do what they
do. The kernel stamps each packet where it enters the switch's interface and where it has left for the far host, so neither the sender's pauses nor
those of this process count. On a busy machine the switch's thread waits for a processor, and the kernel's own work for the clients goes first. So the
goal is for the column `busy`: how long, of the time that a packet was in the switch, the thread of the data plane ran, by the kernel's account. The
scenario `elsewhere` shows what the machine itself does to packets: `everything`, on a second switch that no packet goes through.

A scenario is a function with `@scenario(NAME)`: a context manager that opens its clients on a `Target` and closes them at the end.
"""

from __future__ import annotations

import argparse
import bisect
import contextlib
import json
import os
import resource
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from finsy.proto import p4r

sys.path.insert(0, str(Path(__file__).resolve().parent))

from control import Pipeline, Session, insert_requests, rss_bytes
from forward import machine, report, show, stop
from veths import SWITCH_PORTS, CannotRun, Network, missing, network, program

HERE = Path(__file__).resolve().parent
PORT, THRIFT_PORT = 9559, 9090
RATE_PER_S = 200
LATE_GOAL_MS, MEMORY_GOAL_MB, SERVED_GOAL_S = 5.0, 300.0, 2.0
AFTER_S = 12.0
"""After that long without load the memory is looked at again."""
CONTROL = HERE / "control.p4"


# The clients


@dataclass(frozen=True)
class Target:
    """The switch that the clients of a scenario are set on."""

    net: Network
    folder: Path
    entries: int
    node: str = "s1"
    """In whose namespace it is."""

    def connect(self, port: int = PORT) -> socket.socket:
        """A TCP connection from inside the switch's namespace."""
        made = self.net.socket(self.node, socket.SOCK_STREAM)
        made.connect(("127.0.0.1", port))
        return made

    def client(self, work: str, *arguments: str) -> subprocess.Popen:
        """A gRPC client of ours, inside the switch's namespace: see `CLIENTS`."""
        command = [sys.executable, __file__, "--client", work, "--folder", str(self.folder), "--entries", str(self.entries), *arguments]
        return subprocess.Popen(
            self.net.command(self.node, command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )


Scenario = Callable[[Target], AbstractContextManager[None]]
SCENARIOS: dict[str, Scenario] = {}
PRIMARY = {"large-writes"}
"""Scenarios whose client must stay primary: a new controller then only reads."""


def scenario(name: str) -> Callable[[Scenario], Scenario]:
    def add(function: Scenario) -> Scenario:
        SCENARIOS[name] = function
        return function

    return add


class RawHttp2:
    """One HTTP/2 connection by hand: as a client that obeys the protocol, and takes nothing. Answers SETTINGS and PING."""

    DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
    END_STREAM, END_HEADERS, ACK = 1, 4, 1

    def __init__(self, connection: socket.socket, window: int = 0) -> None:
        self._socket = connection
        self._next = 1
        self._sending = threading.Lock()
        self._socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        # SETTINGS_INITIAL_WINDOW_SIZE: how much the server may send on a stream.
        self.frame(self.SETTINGS, 0, 0, struct.pack("!HI", 4, window))
        threading.Thread(target=self._answer, daemon=True).start()

    def frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        with self._sending:
            self._socket.sendall(struct.pack("!I", len(payload))[1:] + struct.pack("!BBI", kind, flags, stream) + payload)

    def call(self, method: str, message: bytes, announced: int | None = None) -> int:
        """Calls a method of P4Runtime; the stream's number. announced: the length that the message claims, when it is not whole."""
        stream, self._next = self._next, self._next + 2
        headers = {
            ":method": "POST",
            ":scheme": "http",
            ":path": f"/p4.v1.P4Runtime/{method}",
            ":authority": "switch",
            "te": "trailers",
            "content-type": "application/grpc",
        }
        # [RFC 7541 sec 6.2.2]: literals without indexing, with new names.
        block = b"".join(
            b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode() for name, value in headers.items()
        )
        self.frame(self.HEADERS, self.END_HEADERS, stream, block)
        whole = announced is None or announced == len(message)
        body = struct.pack("!BI", 0, len(message) if announced is None else announced) + message
        self.frame(self.DATA, self.END_STREAM if whole else 0, stream, body)
        return stream

    def _answer(self) -> None:
        with contextlib.suppress(OSError), self._socket.makefile("rb") as stream:
            while len(head := stream.read(9)) == 9:
                length, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
                payload = stream.read(length)
                self.came(kind, int.from_bytes(head[5:9], "big"), payload, acknowledges=bool(flags & self.ACK))
                if kind in (self.SETTINGS, self.PING) and not flags & self.ACK:
                    self.frame(kind, self.ACK, 0, payload if kind == self.PING else b"")
        self.came(self.GOAWAY, 0, b"", acknowledges=False)

    def came(self, kind: int, stream: int, payload: bytes, *, acknowledges: bool) -> None:
        """A frame has come; GOAWAY when the connection has ended."""

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class Uploader(RawHttp2):
    """Sends as much of a message as the server has windows for, and then no more."""

    def __init__(self, target: Target) -> None:
        self._windows, self._initial, self._changed, self._over = {0: 65_535}, 65_535, threading.Condition(), False
        super().__init__(target.connect(), 65_535)

    def came(self, kind: int, stream: int, payload: bytes, *, acknowledges: bool) -> None:
        with self._changed:
            if kind == self.SETTINGS and not acknowledges:
                for setting, value in struct.iter_unpack("!HI", payload):
                    if setting == 4:
                        # [RFC 9113 sec 6.9.2]: it changes the windows of streams that are open, too.
                        for opened in self._windows.keys() - {0}:
                            self._windows[opened] += value - self._initial
                        self._initial = value
            elif kind == self.WINDOW_UPDATE:
                self._windows[stream] = self._windows.get(stream, self._initial) + int.from_bytes(payload, "big")
            elif kind in (self.RST_STREAM, self.GOAWAY):
                self._over = True
            self._changed.notify_all()

    def upload(self, announced: int, length: int) -> bool:
        """Whether the server took that much of the message."""
        stream = self.call("SetForwardingPipelineConfig", b"", announced)
        with self._changed:
            self._windows[0] -= 5
            self._windows[stream] = self._windows.get(stream, self._initial) - 5
        while length > 0:
            with self._changed:
                self._changed.wait_for(lambda: self._over or min(self._windows[0], self._windows.get(stream, self._initial)) > 0, 60)
                if self._over:
                    return False
                part = max(0, min(length, 16_384, self._windows[0], self._windows.get(stream, self._initial)))
                self._windows[0] -= part
                self._windows[stream] = self._windows.get(stream, self._initial) - part
            self.frame(self.DATA, 0, stream, b"\0" * part)
            length -= part
        return True

    def wait_for_the_end(self, stopped: threading.Event) -> None:
        with self._changed:
            while not self._over and not stopped.is_set():
                self._changed.wait(0.2)


def read_request(pipeline: Pipeline) -> p4r.ReadRequest:
    """A wildcard read of the large table."""
    return p4r.ReadRequest(device_id=0, entities=[p4r.Entity(table_entry=p4r.TableEntry(table_id=pipeline.id("tables", "hosts")))])


@scenario("nothing")
@contextmanager
def nothing(_target: Target) -> Iterator[None]:
    yield


@scenario("unread-reads")
@contextmanager
def unread_reads(target: Target) -> Iterator[None]:
    """40 reads of the whole table on 10 connections whose windows are 0. No client needs a role for that."""
    request = read_request(Pipeline.compiled(CONTROL, target.folder)).SerializeToString()
    connections = [RawHttp2(target.connect()) for _ in range(10)]
    try:
        for connection in connections:
            for _ in range(4):
                connection.call("Read", request)
        yield
    finally:
        for connection in connections:
            connection.close()


@contextmanager
def working(target: Target, work: str) -> Iterator[None]:
    """A client that does its work again and again."""
    process = target.client(work)
    try:
        if process.stdout is None or process.stdout.readline().strip() != "ready":
            raise CannotRun(f"the client does not reach the switch: {process.communicate()[1][-1000:]}")
        yield
    finally:
        done, errors = process.communicate()
        if process.returncode != 0:
            raise CannotRun(f"the client failed: {errors[-1000:]}")
        show(f"    {work}: {done.strip()} times")


@scenario("reads")
@contextmanager
def reads(target: Target) -> Iterator[None]:
    """An honest client reads the whole table in a loop."""
    with working(target, "read"):
        yield


@scenario("large-writes")
@contextmanager
def large_writes(target: Target) -> Iterator[None]:
    """The primary inserts, modifies and deletes 100,000 entries in one Write each, in a loop."""
    with working(target, "write"):
        yield


HALF_SENT = 40
LONG, LESS_LONG, SENT = 250_000_000, 60_000_000, 40_000_000
"""Bytes that a message announces: more than one may have by default, and less; and bytes of it that are sent."""


def upload_again(target: Target, announced: int, stopped: threading.Event) -> None:
    """Sends a part of a message, and waits; a client that loses its connection comes back after a second."""
    while not stopped.is_set():
        with contextlib.suppress(OSError):
            client = Uploader(target)
            try:
                client.upload(announced, SENT)
                client.wait_for_the_end(stopped)
            finally:
                client.close()
        stopped.wait(1.0)


def thrift_again(target: Target, announced: int, stopped: threading.Event) -> None:
    """The same over Thrift: the begin of bm_load_new_config(0, STRING)."""
    name = b"standard:bm_load_new_config"
    head = struct.pack("!II", 0x80010001, len(name)) + name + struct.pack("!IBHIBHI", 0, 8, 0, 0, 11, 1, announced)
    while not stopped.is_set():
        with contextlib.suppress(OSError), target.connect(THRIFT_PORT) as client:
            client.settimeout(60)
            client.sendall(head)
            for _ in range(SENT // 1_000_000):
                client.sendall(b" " * 1_000_000)
            client.settimeout(0.5)
            while not stopped.is_set():
                with contextlib.suppress(TimeoutError):
                    if client.recv(1) == b"":
                        break
        stopped.wait(1.0)


@contextmanager
def half_sent_by(work: Callable[[Target, int, threading.Event], None], target: Target, announced: int) -> Iterator[None]:
    stopped = threading.Event()
    threads = [threading.Thread(target=work, args=(target, announced, stopped), daemon=True) for _ in range(HALF_SENT)]
    try:
        for thread in threads:
            thread.start()
        yield
    finally:
        stopped.set()


@scenario("half-sent-long")
@contextmanager
def half_sent_long(target: Target) -> Iterator[None]:
    """40 messages that announce 250 MB, of which 40 MB are sent."""
    with half_sent_by(upload_again, target, LONG):
        yield


@scenario("half-sent")
@contextmanager
def half_sent(target: Target) -> Iterator[None]:
    """40 messages that announce 60 MB, of which 40 MB are sent."""
    with half_sent_by(upload_again, target, LESS_LONG):
        yield


@scenario("half-sent-thrift")
@contextmanager
def half_sent_thrift(target: Target) -> Iterator[None]:
    with half_sent_by(thrift_again, target, LESS_LONG):
        yield


IDLE = 2000


@contextmanager
def idle_on(target: Target, port: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 4 * IDLE:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard == resource.RLIM_INFINITY else min(hard, max(soft, 4 * IDLE)), hard))
    clients: list[socket.socket] = []
    try:
        for _ in range(IDLE):
            client = target.net.socket(target.node, socket.SOCK_STREAM)
            clients.append(client)
            client.settimeout(0.02)
            # A switch that accepts no more lets them wait.
            with contextlib.suppress(OSError):
                client.connect(("127.0.0.1", port))
        yield
    finally:
        for client in clients:
            client.close()


@scenario("idle")
@contextmanager
def idle(target: Target) -> Iterator[None]:
    """2,000 connections to P4Runtime that say nothing."""
    with idle_on(target, PORT):
        yield


@scenario("idle-thrift")
@contextmanager
def idle_thrift(target: Target) -> Iterator[None]:
    with idle_on(target, THRIFT_PORT):
        yield


@scenario("everything")
@contextmanager
def everything(target: Target) -> Iterator[None]:
    """40 unread reads, 40 half-sent messages over each of both services, and 2,000 idle connections to each."""
    with unread_reads(target), idle(target), idle_thrift(target), half_sent(target), half_sent_thrift(target):
        yield


ELSEWHERE = scenario("elsewhere")(everything)
"""The same load on another switch, beside the one that packets go through: what the machine itself makes of packets."""


# What our own clients do, each in a process inside the switch's namespace


def until_input_ends() -> threading.Event:
    stopped = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        stopped.set()

    threading.Thread(target=wait, daemon=True).start()
    return stopped


def fill(pipeline: Pipeline, entries: int) -> None:
    """Pushes the pipeline and fills its table."""
    session = Session(f"127.0.0.1:{PORT}")
    session.push(pipeline)
    write = session.channel.unary_unary("/p4.v1.P4Runtime/Write")
    for request in insert_requests(pipeline, session.election, 0, entries, 1000):
        write(request)
    session.close()


def visit(pipeline: Pipeline, _entries: int) -> None:
    """A new controller: connects, becomes primary, writes an entry, reads it and deletes it. Prints the seconds."""
    start = time.monotonic()
    session = Session(f"127.0.0.1:{PORT}", election=3)
    write = session.channel.unary_unary("/p4.v1.P4Runtime/Write")
    (insert,) = [p4r.WriteRequest.FromString(request) for request in insert_requests(pipeline, session.election, 1_900_000, 1, 1)]
    write(insert.SerializeToString())
    if session.read(insert.updates[0].entity) != 1:
        raise CannotRun("the new controller does not read what it wrote")
    insert.updates[0].type = p4r.Update.DELETE
    write(insert.SerializeToString())
    print(time.monotonic() - start)
    session.close()


def look(pipeline: Pipeline, _entries: int) -> None:
    """A controller that is not primary: connects and reads an entry. Prints the seconds."""
    start = time.monotonic()
    session = Session(f"127.0.0.1:{PORT}", election=4)
    (insert,) = [p4r.WriteRequest.FromString(request) for request in insert_requests(pipeline, session.election, 0, 1, 1)]
    if session.read(insert.updates[0].entity) != 1:
        raise CannotRun("the new controller does not read an entry that is there")
    print(time.monotonic() - start)
    session.close()


def read_loop(pipeline: Pipeline, entries: int) -> None:
    session = Session(f"127.0.0.1:{PORT}")
    request, done, stopped = read_request(pipeline), 0, until_input_ends()
    print("ready", flush=True)
    while not stopped.is_set():
        # Its messages are counted, not decoded: what is measured is the switch.
        raw = session.channel.unary_stream("/p4.v1.P4Runtime/Read")
        if sum(len(part) for part in raw(request.SerializeToString())) < 20 * entries:
            raise CannotRun("a read did not give the whole table")
        done += 1
    print(done)
    session.close()


def write_loop(pipeline: Pipeline, entries: int) -> None:
    session = Session(f"127.0.0.1:{PORT}", election=5)
    (insert,) = insert_requests(pipeline, session.election, entries, 100_000, 100_000)
    request = p4r.WriteRequest.FromString(insert)
    batches = []
    for kind in (p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE):
        for update in request.updates:
            update.type = kind
        batches.append(request.SerializeToString())
    write, done, stopped = session.channel.unary_unary("/p4.v1.P4Runtime/Write"), 0, until_input_ends()
    print("ready", flush=True)
    while not stopped.is_set():
        for batch in batches:
            write(batch)
        done += 1
    print(done)
    session.close()


CLIENTS: dict[str, Callable[[Pipeline, int], None]] = {"fill": fill, "visit": visit, "look": look, "read": read_loop, "write": write_loop}


# The measurement


def sample(pid: int) -> None:
    """How long the main thread of a process, which serves packets, has run so far: every half millisecond, until the input ends."""
    stopped, rows = until_input_ends(), []
    with open(f"/proc/{pid}/task/{pid}/schedstat") as account:
        while not stopped.wait(0.0005):
            account.seek(0)
            rows.append(f"{time.time_ns()} {account.read().split()[0]}")
    print("\n".join(rows))


@contextmanager
def running_time(pid: int) -> Iterator[list[tuple[int, int]]]:
    """The list holds instants, and how long the thread had run by then, both in nanoseconds, once the block has ended."""
    rows: list[tuple[int, int]] = []
    command = ["nice", "-n", "-20", sys.executable, __file__, "--sample", str(pid)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield rows
    finally:
        out, _ = process.communicate()
        rows += [(int(at), int(ran)) for at, ran in (line.split() for line in out.splitlines())]


SO_TIMESTAMPNS = 35
SO_RCVBUFFORCE = 33
PROBE = struct.Struct("!6s6sHBBHHHBBHII")
PROBE_BYTES = 100


def probe_frame(number: int) -> bytes:
    """An IPv4 frame for h2, with its number as the source address."""
    head = PROBE.pack(b"\2" * 6, b"\4" * 6, 0x0800, 0x45, 0, PROBE_BYTES - 14, 0, 0, 64, 17, 0, number, 0x0A000202)
    return head.ljust(PROBE_BYTES, b"\0")


class Probes:
    """200 packets per second from h1 to h2, and when each entered the switch and left it, by the kernel's clock."""

    def __init__(self, net: Network) -> None:
        self._entered = self._listen(net, "s1", SWITCH_PORTS[1])
        self._left = self._listen(net, "h2", "eth0")
        self._sender = net.socket("h1", socket.SOCK_RAW, socket.AF_PACKET)
        self._sender.bind(("eth0", 0))
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)
        self.sent = 0

    @staticmethod
    def _listen(net: Network, node: str, interface: str) -> socket.socket:
        made = net.socket(node, socket.SOCK_RAW, socket.AF_PACKET)
        made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        made.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        made.bind((interface, 0x0800))
        made.setblocking(False)
        return made

    def _send(self) -> None:
        start = time.monotonic()
        while not self._stopped.wait(max(0.0, start + self.sent / RATE_PER_S - time.monotonic())):
            self._sender.send(probe_frame(self.sent))
            self.sent += 1

    @staticmethod
    def _stamps(listener: socket.socket) -> dict[int, int]:
        found: dict[int, int] = {}
        while True:
            try:
                frame, extra, _, _ = listener.recvmsg(PROBE_BYTES, 64)
            except BlockingIOError:
                return found
            for _, kind, data in extra:
                if kind == SO_TIMESTAMPNS and len(frame) == PROBE_BYTES and frame[30:34] == b"\x0a\x00\x02\x02":
                    seconds, nanoseconds = struct.unpack("qq", data)
                    found.setdefault(int.from_bytes(frame[26:30], "big"), seconds * 10**9 + nanoseconds)

    def __enter__(self) -> Probes:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def stays(self) -> tuple[list[tuple[int, int]], int]:
        """When each packet entered and left, in nanoseconds; and how many never came out."""
        entered, left = self._stamps(self._entered), self._stamps(self._left)
        for used in (self._entered, self._left, self._sender):
            used.close()
        return [(at, left[number]) for number, at in entered.items() if number in left], len(entered.keys() - left.keys())


@contextmanager
def highest_rss(pid: int) -> Iterator[list[int]]:
    """The list holds the most that the process had, once the block has ended."""
    most, stopped = [0], threading.Event()

    def watch() -> None:
        while not stopped.is_set():
            most[0] = max(most[0], rss_bytes(pid))
            stopped.wait(0.05)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield most
    finally:
        stopped.set()
        thread.join()


def ask(target: Target, work: str, timeout_s: float) -> str:
    """Runs a client to its end; what it printed."""
    process = target.client(work)
    try:
        out, errors = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    if process.returncode != 0:
        raise CannotRun(f"the client '{work}' failed: {errors.strip()[-1000:]}")
    return out


@contextmanager
def running_switch(target: Target, name: str, ports: dict[int, str]) -> Iterator[subprocess.Popen]:
    """A switch with its pipeline and entries. ports: numbers and interfaces."""
    words = [word for number, interface in ports.items() for word in ("-i", f"{number}@{interface}")]
    command = [program("fairlane-switch") or "fairlane-switch", *words, "--no-p4", "--thrift-port", str(THRIFT_PORT)]
    command += ["--notifications-addr", f"ipc://{target.folder}/{target.node}.ipc", "--", "--grpc-server-addr", f"127.0.0.1:{PORT}"]
    path = target.folder / f"{name}-{target.node}.log"
    with path.open("wb") as log:
        # The usual limit of open files, whatever this machine's is. The shell and `ip netns exec` become the switch.
        limited = ["sh", "-c", 'ulimit -Sn 1024; exec "$@"', "sh", *command]
        process = subprocess.Popen(target.net.command(target.node, limited), stdout=log, stderr=log)
    try:
        wait_for(target, process, path)
        ask(target, "fill", 120)
        yield process
        if process.poll() is not None:
            raise CannotRun(f"the switch ended with {process.returncode}: {path.read_text(errors='replace')[-1000:]}")
    finally:
        stop(process)


def measure(net: Network, name: str, entries: int, seconds: float, folder: Path) -> dict:
    """One scenario on a switch of its own."""
    target = Target(net, folder, entries)
    with contextlib.ExitStack() as stack:
        process = stack.enter_context(running_switch(target, name, SWITCH_PORTS))
        if name == "elsewhere":
            target = Target(net, folder, entries, "h1")
            stack.enter_context(running_switch(target, name, {}))
        time.sleep(1.0)
        idle, served = rss_bytes(process.pid), None
        with highest_rss(process.pid) as most:
            probes = Probes(net)
            with running_time(process.pid) as ran, probes, SCENARIOS[name](target):
                time.sleep(seconds / 2)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    # Its own start is not the switch's: the seconds are those that it prints.
                    served = float(ask(target, "look" if name in PRIMARY else "visit", 30))
                time.sleep(seconds / 2)
            # Those that are still in the switch have some time to come out.
            time.sleep(2.0)
            stays, lost = probes.stays()
        time.sleep(AFTER_S)
        after = rss_bytes(process.pid)
    if not stays:
        raise CannotRun(f"{name}: no packet came through")
    delays = sorted((left - entered) / 1e6 for entered, left in stays)
    return {
        "sent": probes.sent,
        "lost": lost,
        "median_ms": statistics.median(delays),
        "p99_ms": delays[min(len(delays) - 1, len(delays) * 99 // 100)],
        "longest_ms": delays[-1],
        "busy_ms": max(min((left - entered) / 1e6, ran_ms(ran, entered, left)) for entered, left in stays),
        "late": sum(delay > LATE_GOAL_MS for delay in delays),
        "idle_mb": idle / 1e6,
        "more_mb": (most[0] - idle) / 1e6,
        "kept_mb": (after - idle) / 1e6,
        "served_s": served,
    }


def ran_ms(rows: list[tuple[int, int]], start: int, end: int) -> float:
    """How long the thread ran between two instants: evenly between two samples, for want of better."""

    def by(instant: int) -> float:
        after = min(max(1, bisect.bisect_left(rows, (instant, 0))), len(rows) - 1)
        (before_at, before), (after_at, then) = rows[after - 1], rows[after]
        return before + (then - before) * min(1.0, max(0.0, (instant - before_at) / (after_at - before_at)))

    return (by(end) - by(start)) / 1e6


def wait_for(target: Target, process: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and process.poll() is None:
        try:
            target.connect().close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise CannotRun(f"the switch serves no P4Runtime:\n{log.read_text(errors='replace')[-1000:]}")


def run(names: list[str], entries: int, seconds: float, rounds: int) -> dict:
    reason = missing()
    if reason:
        raise CannotRun(reason)
    result: dict = {"machine": machine(), "absent": {}, "entries": entries, "seconds": seconds, "rounds": rounds, "samples": {}}
    with tempfile.TemporaryDirectory(prefix="fairlane-bench-") as folder_name, network() as net:
        folder = Path(folder_name)
        Pipeline.compile(CONTROL, folder)
        for node in ("s1", "h1"):
            net.ip(node, "link", "set", "lo", "up")
        for turn in range(rounds):
            for name in names:
                sample = measure(net, name, entries, seconds, folder)
                result["samples"].setdefault(name, []).append(sample)
                show(f"round {turn + 1} of {rounds}, {name}: {json.dumps(sample)}")
    return result


def median(samples: list[dict], key: str) -> float:
    return statistics.median(sample[key] for sample in samples)


def table(result: dict) -> str:
    about = result["machine"]
    lines = [
        f"{result['entries']:,} entries, {RATE_PER_S} packets/s; {about['model']}, load {about['load']:.1f}; medians of {result['rounds']}",
        "",
        f"{'clients':16}{'median ms':>10}{'99 % ms':>9}{'longest ms':>11}{'busy ms':>9}{'late':>6}{'lost':>6}{'idle MB':>9}{'more MB':>9}{'kept MB':>9}{'served s':>10}",
    ]
    for name, samples in result["samples"].items():
        served = [sample["served_s"] for sample in samples if sample["served_s"] is not None]
        lines.append(
            f"{name:16}{median(samples, 'median_ms'):>10.2f}{median(samples, 'p99_ms'):>9.2f}{median(samples, 'longest_ms'):>11.2f}"
            f"{median(samples, 'busy_ms'):>9.2f}"
            f"{median(samples, 'late'):>6.0f}{sum(sample['lost'] for sample in samples):>6}{median(samples, 'idle_mb'):>9.0f}"
            f"{median(samples, 'more_mb'):>9.0f}{median(samples, 'kept_mb'):>9.0f}"
            + (f"{statistics.median(served):>10.2f}" if served else "")
        )
    return "\n".join(lines)


def verdicts(result: dict) -> list[tuple[bool, str]]:
    """The goals, and whether this run meets them."""
    judged = []
    for name, samples in result["samples"].items():
        if name in ("nothing", "elsewhere"):
            continue
        busy, more = median(samples, "busy_ms"), max(sample["more_mb"] for sample in samples)
        judged.append(
            (busy <= LATE_GOAL_MS, f"{name}: a packet waits for at most {busy:.2f} ms of the switch's work (goal {LATE_GOAL_MS:g})")
        )
        judged.append((more <= MEMORY_GOAL_MB, f"{name}: {more:.0f} MB more memory than idle (goal {MEMORY_GOAL_MB:g})"))
        times = [sample["served_s"] for sample in samples]
        longest = max((time_s for time_s in times if time_s is not None), default=None)
        fine = None not in times and longest is not None and longest <= SERVED_GOAL_S
        shown = "not at all" if None in times or longest is None else f"within {longest:.2f} s"
        judged.append((fine, f"{name}: a new controller is served {shown} (goal {SERVED_GOAL_S:g} s)"))
    return judged


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(SCENARIOS), help=f"scenarios, separated by commas (default: {','.join(SCENARIOS)})")
    parser.add_argument("--entries", type=int, default=300_000, help="entries of the table (default: 300000)")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each scenario lasts at least (default: 10)")
    parser.add_argument("--rounds", type=int, default=1, help="runs of each scenario; medians count (default: 1)")
    parser.add_argument("--client", choices=sorted(CLIENTS), help=argparse.SUPPRESS)
    parser.add_argument("--sample", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, help="also write every measurement to this file")
    arguments = parser.parse_args()
    if arguments.client:
        CLIENTS[arguments.client](Pipeline.compiled(CONTROL, arguments.folder), arguments.entries)
        return 0
    if arguments.sample:
        sample(arguments.sample)
        return 0
    names = arguments.only.split(",")
    unknown = [name for name in names if name not in SCENARIOS]
    if unknown or not 1 <= arguments.entries <= 1_800_000 or arguments.rounds < 1:
        parser.error(f"scenarios are {', '.join(SCENARIOS)}; --entries is between 1 and 1800000, and --rounds at least 1")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    return report(lambda: run(names, arguments.entries, arguments.seconds, arguments.rounds), table, verdicts, arguments.json)


if __name__ == "__main__":
    sys.exit(main())

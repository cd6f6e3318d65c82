"""Files over the kernel's TCP: all transfers that begin or end at one host, in one process, with the records of flows in virtual time.

`python -m fairlane.hosts.tcp_files PLAN.json` in the host's network namespace; `Plan` describes the file. A transfer has a TCP connection of its own. Its
sender closes its direction behind the last byte, and the receiver then closes the other one: a transfer is complete when the sender sees that. An answer goes
over the connection of its request, which stays open: a request is complete when the kernel has nothing of it left to send or to have acknowledged.
A process each for thousands of short transfers would take longer to start than they take.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import itertools
import json
import signal
import socket
import struct
import sys
import termios
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlane.hosts.records import Clock, RecordWriter, version_of
from fairlane.hosts.tcp_sockets import TcpInfo

SAMPLED_S = 0.1
"""Between two records of an end, on whole multiples of Unix time."""
LINGERS_S = 0.5
"""Receivers stay so long after the last sender has to stop."""
_RETRY_S, _RETRIES = 0.2, 50
_ACKNOWLEDGED_POLL_S = 0.002
_CHUNK = bytes(1 << 16)
_FLUSHED_EACH = 10


@dataclass(frozen=True)
class Transfer:
    """One file, as both of its ends have it. sends: whether this host is its sender. local, peer: IP addresses. port: that the receiver listens on. start_s, stop_s:
    Unix time. after: transfers of this host that it waits for, and after_s more. answers: over the connection of the one that it waits for. answered: its
    connection stays open for an answer. mss: None where the route says it. Records of an end are in NAME.sender.jsonl or NAME.receiver.jsonl, beside the plan."""

    name: str
    sends: bool
    local: str
    peer: str
    port: int
    bytes: int
    start_s: float
    stop_s: float
    congestion: str
    packet_bytes: int
    mss: int | None
    after: tuple[str, ...] = ()
    after_s: float = 0.0
    answers: bool = False
    answered: bool = False


@dataclass(frozen=True)
class Plan:
    """The file: {"end_s": Unix time, "transfers": [{"name": ..., ...}]}. folder: the one that it is in."""

    end_s: float
    transfers: tuple[Transfer, ...]
    folder: Path

    @staticmethod
    def read(path: Path) -> Plan:
        given = json.loads(path.read_text(encoding="utf-8"))
        transfers = (Transfer(**{**one, "after": tuple(one["after"])}) for one in given["transfers"])
        return Plan(given["end_s"], tuple(transfers), path.parent)


class _End:
    """The records of one end of a transfer."""

    def __init__(self, transfer: Transfer, role: str, folder: Path, clock: Clock, **start: float) -> None:
        self.transfer = transfer
        self._clock = clock
        self._log = RecordWriter(str(folder / f"{transfer.name}.{role}.jsonl"), clock)
        self._since_s = clock.now_s()
        self._log.write("start", self._since_s, role=role, **start)

    def sample(self) -> None:
        """Since the last one."""
        raise NotImplementedError

    def flush(self) -> None:
        """Whoever reads the file finds what was recorded."""
        self._log.flush()

    def close(self) -> None:
        self._log.write("end", self._clock.now_s())
        self._log.close()


class Sending(_End):
    """A sending end."""

    def __init__(self, transfer: Transfer, folder: Path, clock: Clock, late_s: float) -> None:
        super().__init__(transfer, "sender", folder, clock, late_s=round(late_s, 6))
        self.socket: socket.socket | None = None
        self._retransmits = 0

    def first_data(self) -> None:
        self._log.write("first_data", self._clock.now_s())

    def sample(self) -> None:
        now_s = self._clock.now_s()
        if self.socket is None or now_s <= self._since_s:
            return
        info = TcpInfo.of(self.socket)
        self._log.write(
            "sent",
            now_s,
            seconds=round(now_s - self._since_s, 6),
            sent_bytes=(info.data_segments - info.retransmits) * self.transfer.packet_bytes,
            retransmits=info.retransmits - self._retransmits,
            cwnd_bytes=info.cwnd_bytes,
            rtt_s=info.rtt_s or None,
        )
        self._since_s, self._retransmits = now_s, info.retransmits

    def complete(self) -> None:
        self.sample()
        self._log.write("complete", self._clock.now_s(), bytes=self.transfer.bytes)

        self.socket = None

    def stop(self) -> None:
        """The socket is about to be closed. Of a file that is not complete, what the kernel has left is not sent."""
        self.sample()
        if self.socket is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket = None


class Receiving(_End):
    """A receiving end."""

    def __init__(self, transfer: Transfer, folder: Path, clock: Clock) -> None:
        super().__init__(transfer, "receiver", folder, clock)
        self.received = 0
        self._before = 0

    def sample(self) -> None:
        now_s = self._clock.now_s()
        if now_s <= self._since_s:
            return
        new = self.received - self._before
        seconds = round(now_s - self._since_s, 6)
        self._log.write("data", now_s, seconds=seconds, payload_bytes=new, received_payload_bytes=self.received)
        self._since_s, self._before = now_s, self.received

    def delivered(self) -> None:
        self.sample()
        self._log.write("delivered", self._clock.now_s(), bytes=self.received)


@dataclass
class Host:
    """All transfers of a host."""

    plan: Plan
    clock: Clock
    open: set[Sending | Receiving] = field(default_factory=set)
    over: dict[str, asyncio.Event] = field(default_factory=dict)
    answers: dict[str, Transfer] = field(default_factory=dict)
    """By the name of the request."""
    connections: dict[str, socket.socket] = field(default_factory=dict)
    """Of requests that have arrived, by name."""
    faults: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    """Transfers whose other end went away: faults, unless this end is asked to end as well."""

    async def run(self, asked: asyncio.Event) -> None:
        """Until the plan's end, or until somebody asks for it."""
        self.over = {transfer.name: asyncio.Event() for transfer in self.plan.transfers}
        self.answers = {transfer.after[0]: transfer for transfer in self.plan.transfers if transfer.answers}
        tasks = []
        for transfer in self.plan.transfers:
            if not transfer.sends and not transfer.answers:
                tasks.append(asyncio.create_task(self._guarded(transfer, self._accept(transfer, _listening(transfer)))))
            elif transfer.sends:
                tasks.append(asyncio.create_task(self._guarded(transfer, self._send(transfer))))
        tasks.append(asyncio.create_task(self._sample()))
        with contextlib.suppress(asyncio.TimeoutError, TimeoutError):
            await asyncio.wait_for(asked.wait(), max(0.0, self._mono_s(self.plan.end_s) - self.clock.now_s()))
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        self.faults += [repr(fault) for fault in ended if isinstance(fault, Exception)]
        if not asked.is_set():  # ends that are asked one after the other see each other go
            self.faults += self.gone

    def _mono_s(self, unix_s: float) -> float:
        return self.clock.mono_ns(unix_s) / 1e9

    async def _sample(self) -> None:
        for count in itertools.count(1):
            await asyncio.sleep(SAMPLED_S - self.clock.unix_s(self.clock.now_s()) % SAMPLED_S)
            for end in list(self.open):
                end.sample()
                if count % _FLUSHED_EACH == 0:
                    end.flush()

    async def _guarded(self, transfer: Transfer, work: Any) -> None:
        """Until it has to stop. One that fails is no obstacle to others."""
        stop_s = self._mono_s(transfer.stop_s + (0.0 if transfer.sends else LINGERS_S))
        try:
            await asyncio.wait_for(work, max(0.0, stop_s - self.clock.now_s()))
        except (asyncio.TimeoutError, TimeoutError):
            pass
        except (ConnectionResetError, BrokenPipeError) as error:
            self.gone.append(f"{transfer.name}: {error.strerror or error}")
        except OSError as error:
            self.faults.append(f"{transfer.name}: {error.strerror or error}")

    @contextlib.contextmanager
    def _recorded(self, end: Sending | Receiving) -> Iterator[None]:
        self.open.add(end)
        try:
            yield
        finally:
            self.open.discard(end)
            end.sample()
            end.close()

    async def _send(self, transfer: Transfer) -> None:
        loop = asyncio.get_running_loop()
        for other in transfer.after:
            await self.over[other].wait()
        start_s = self._mono_s(transfer.start_s)
        start_s = max(start_s, self.clock.now_s() + transfer.after_s) if transfer.after else start_s
        await asyncio.sleep(max(0.0, start_s - self.clock.now_s()))
        end = Sending(transfer, self.plan.folder, self.clock, self.clock.now_s() - start_s)
        with self._recorded(end), contextlib.ExitStack() as stack:
            own = None if transfer.answers else stack.enter_context(await _connected(transfer))
            connection = own or self.connections[transfer.after[0]]
            end.socket = connection
            stack.callback(end.stop)
            end.first_data()
            reading = None
            if transfer.answered:
                reading = asyncio.create_task(self._receive(self.answers[transfer.name], connection))
                stack.callback(reading.cancel)
            left = transfer.bytes
            while left:
                part = _CHUNK[: min(left, len(_CHUNK))]
                await loop.sock_sendall(connection, part)
                left -= len(part)
                await asyncio.sleep(0)  # a socket that takes all at once does not let others go first: timers and other transfers
            if transfer.answered:
                while _unacknowledged(connection):
                    await asyncio.sleep(_ACKNOWLEDGED_POLL_S)
            else:
                connection.shutdown(socket.SHUT_WR)
                await loop.sock_recv(connection, 1)
            end.complete()
            self.over[transfer.name].set()
            if reading is not None:
                await reading  # over the same connection

    async def _accept(self, transfer: Transfer, listening: socket.socket) -> None:
        with listening:
            connection, _ = await asyncio.get_running_loop().sock_accept(listening)
        with connection:
            connection.setblocking(False)
            if transfer.answered:
                # The answer's sender has the same congestion control, and ends the connection.
                _settings(connection, transfer)
                self.connections[transfer.name] = connection
            await self._receive(transfer, connection)
            if transfer.answered:
                await self.over[self.answers[transfer.name].name].wait()  # its task uses the connection

    async def _receive(self, transfer: Transfer, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        buffer = bytearray(len(_CHUNK))
        end = Receiving(transfer, self.plan.folder, self.clock)
        with self._recorded(end):
            while end.received < transfer.bytes:
                most = min(len(buffer), transfer.bytes - end.received)
                try:
                    got = await loop.sock_recv_into(connection, memoryview(buffer)[:most])
                except ConnectionResetError:
                    got = 0
                if got == 0:
                    return  # the other end has stopped
                end.received += got
                await asyncio.sleep(0)  # as in _send
            end.delivered()
        self.over[transfer.name].set()
        if not transfer.answered:
            await loop.sock_recv(connection, 1)  # nothing, when the sender has closed its direction


def _listening(transfer: Transfer) -> socket.socket:
    made = socket.socket(_family(transfer))
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((transfer.local, transfer.port))
    made.listen(1)
    made.setblocking(False)
    return made


def _family(transfer: Transfer) -> socket.AddressFamily:
    return socket.AF_INET6 if version_of(transfer.local) == 6 else socket.AF_INET


def _settings(connection: socket.socket, transfer: Transfer) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, transfer.congestion.encode())
    if transfer.mss is not None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, transfer.mss)


async def _connected(transfer: Transfer) -> socket.socket:
    """OSError when nobody listens for long."""
    for attempt in range(_RETRIES + 1):
        connection = socket.socket(_family(transfer))
        connection.setblocking(False)
        try:
            _settings(connection, transfer)
            # Both ends have the same port, as in virtual time: switches choose among ways of equal cost by it.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            connection.bind((transfer.local, transfer.port))
            await asyncio.get_running_loop().sock_connect(connection, (transfer.peer, transfer.port))
            return connection
        except BaseException as error:
            connection.close()
            if not isinstance(error, ConnectionRefusedError) or attempt == _RETRIES:
                raise
            await asyncio.sleep(_RETRY_S)
    raise OSError(errno.ECONNREFUSED, "nobody listens")


def _unacknowledged(connection: socket.socket) -> int:
    """Bytes that the kernel has still to send, or to have acknowledged (SIOCOUTQ of tcp(7))."""
    return int(struct.unpack("i", fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, b"\0" * 4))[0])


def _more_files() -> None:
    """A transfer takes up to three: two sockets and its records."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _main(host: Host) -> None:
    asked = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, asked.set)
    await host.run(asked)


def main(argv: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if argv is None else argv
    if len(arguments) != 1:
        print("usage: python -m fairlane.hosts.tcp_files PLAN.json", file=sys.stderr)
        return 2
    _more_files()
    host = Host(Plan.read(Path(arguments[0])), Clock())
    asyncio.run(_main(host))
    for fault in host.faults[:20]:
        print(f"fairlane.hosts.tcp_files: {fault}", file=sys.stderr)
    if len(host.faults) > 20:
        print(f"fairlane.hosts.tcp_files: {len(host.faults) - 20} more", file=sys.stderr)
    return 1 if host.faults else 0


if __name__ == "__main__":
    sys.exit(main())

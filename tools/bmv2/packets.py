"""Packets in and out of BMv2 by its option `--packet-in`: nanomsg's PAIR protocol over a Unix socket, spoken without the library.

Each message is type, port, length (native 32-bit integers) and the packet. Input blocks when the switch is behind; nothing is lost.
"""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections.abc import Iterable
from pathlib import Path

_HELLO = b"\0SP\0" + struct.pack("!HH", 0x10, 0)
_HEAD = struct.Struct("!BQ")  # nanomsg over IPC: message type 1, length
_MESSAGE = struct.Struct("=iii")
_PACKET_IN, _PACKET_OUT = 3, 4

Packet = tuple[int, bytes]


def message(port: int, data: bytes) -> bytes:
    return _HEAD.pack(1, _MESSAGE.size + len(data)) + _MESSAGE.pack(_PACKET_IN, port, len(data)) + data


class PacketPort:
    """All ports of a switch. `received` holds the output, in order for each port, until `take`."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self._socket.settimeout(10)
        self._socket.sendall(_HELLO)
        hello = b""
        while len(hello) < len(_HELLO):
            piece = self._socket.recv(len(_HELLO) - len(hello))
            if not piece:
                raise ConnectionError("BMv2 refused the packet connection")
            hello += piece
        if hello != _HELLO:
            raise ConnectionError(f"{path} speaks no nanomsg PAIR: {hello!r}")
        self._socket.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._socket, selectors.EVENT_READ)
        self._pending = bytearray()
        self.received: list[Packet] = []

    def close(self) -> None:
        self._selector.close()
        self._socket.close()

    def send(self, packets: Iterable[Packet]) -> None:
        data = memoryview(b"".join(message(port, data) for port, data in packets))
        while data:
            # Read while writing: a switch that cannot get rid of its output takes no input.
            self._selector.modify(self._socket, selectors.EVENT_READ | selectors.EVENT_WRITE)
            ready = self._selector.select(10)
            if not ready:
                raise TimeoutError("BMv2 takes no packets for 10 s")
            if ready[0][1] & selectors.EVENT_READ:
                self._read()
            if ready[0][1] & selectors.EVENT_WRITE:
                data = data[self._socket.send(data) :]
        self._selector.modify(self._socket, selectors.EVENT_READ)

    def wait(self, count: int, timeout_s: float) -> bool:
        """Until `count` packets have been received. False when the time was over before."""
        deadline = time.monotonic() + timeout_s
        while len(self.received) < count:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            if self._selector.select(left):
                self._read()
        return True

    def settle(self, quiet_s: float) -> None:
        """Until nothing has come for that long."""
        while self._selector.select(quiet_s):
            self._read()

    def take(self, count: int | None = None) -> list[Packet]:
        taken = self.received[:count]
        self.received = self.received[len(taken) :]
        return taken

    def _read(self) -> None:
        data = self._socket.recv(1 << 18)
        if not data:
            raise ConnectionError("BMv2 closed the packet connection")
        self._pending += data
        at, end = 0, len(self._pending)
        while end - at >= _HEAD.size:
            length = _HEAD.unpack_from(self._pending, at)[1]
            if end - at - _HEAD.size < length:
                break
            at += _HEAD.size
            kind, port, size = _MESSAGE.unpack_from(self._pending, at)
            if kind == _PACKET_OUT:
                begin = at + _MESSAGE.size
                self.received.append((port, bytes(self._pending[begin : begin + size])))
            at += length
        del self._pending[:at]

"""TCP sockets of this network namespace, as the kernel describes them over netlink (sock_diag(7)); `ss -ti` prints the same.

Structures are those of <linux/inet_diag.h> and <linux/tcp.h>; of `tcp_info` newer kernels append fields, and older ones lack the last.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST, _NLM_F_DUMP = 0x1, 0x300
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_INET_DIAG_INFO = 2
_ESTABLISHED, _LISTEN = 1, 10
_NLMSGHDR = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBxI48x")
# family, state, timer, retransmits; ports and addresses of inet_diag_sockid; cookies, expires, queues, uid, inode.
_INET_DIAG_MSG = struct.Struct("=BBBB HH16s16sI8x I IIII".replace(" ", ""))
_NLATTR = struct.Struct("=HH")
# In tcp_info: (format, offset) of fields.
_SND_MSS, _RTT, _SND_CWND, _TOTAL_RETRANS, _DATA_SEGS_OUT = (("=I", at) for at in (16, 68, 80, 100, 156))
_BYTES_ACKED = ("=Q", 120)


_MOST_INFO = 512


@dataclass(frozen=True)
class TcpInfo:
    """rtt_s: smoothed; 0 before it is known. cwnd_bytes: congestion window. retransmits: segments so far. acked_bytes: of its data, by the peer; the
    handshake counts as one. data_segments: sent so far, with those that were sent again."""

    rtt_s: float
    cwnd_bytes: int
    retransmits: int
    acked_bytes: int
    data_segments: int

    @staticmethod
    def of(connection: socket.socket) -> TcpInfo:
        return TcpInfo.parse(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _MOST_INFO))

    @staticmethod
    def parse(info: bytes) -> TcpInfo:
        """A `tcp_info`. A field that it does not have is 0."""

        def field(form: str, offset: int) -> int:
            return int(struct.unpack_from(form, info, offset)[0]) if offset + struct.calcsize(form) <= len(info) else 0

        return TcpInfo(
            field(*_RTT) / 1e6,
            field(*_SND_CWND) * field(*_SND_MSS),
            field(*_TOTAL_RETRANS),
            field(*_BYTES_ACKED),
            field(*_DATA_SEGS_OUT),
        )


@dataclass(frozen=True)
class TcpSocket:
    """One socket that is not listening. inode: of the socket's file."""

    inode: int
    local_port: int
    peer_port: int
    state: int
    info: TcpInfo

    @property
    def established(self) -> bool:
        return self.state == _ESTABLISHED


class TcpSockets:
    """Reads them. OSError when the kernel has no sock_diag of TCP."""

    def __init__(self) -> None:
        self._netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG)
        self._netlink.settimeout(1.0)
        self._sequence = 0

    def close(self) -> None:
        self._netlink.close()

    def read(self) -> list[TcpSocket]:
        """All that are not listening."""
        return [*self._read(socket.AF_INET), *self._read(socket.AF_INET6)]

    def _read(self, family: socket.AddressFamily) -> list[TcpSocket]:
        self._sequence += 1
        request = _REQUEST.pack(family, socket.IPPROTO_TCP, 1 << (_INET_DIAG_INFO - 1), ~(1 << _LISTEN) & 0xFFF)
        header = _NLMSGHDR.pack(_NLMSGHDR.size + len(request), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST | _NLM_F_DUMP, self._sequence, 0)
        self._netlink.send(header + request)
        found: list[TcpSocket] = []
        while True:
            for kind, sequence, body in _messages(self._netlink.recv(1 << 16)):
                if sequence != self._sequence:
                    continue  # of a request whose answer was given up
                if kind == _NLMSG_DONE:
                    return found
                if kind == _NLMSG_ERROR:
                    number = -struct.unpack_from("=i", body)[0]
                    raise OSError(number, os.strerror(number))
                found.append(parse(body))


def _messages(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    at = 0
    while at + _NLMSGHDR.size <= len(data):
        length, kind, _, sequence, _ = _NLMSGHDR.unpack_from(data, at)
        if length < _NLMSGHDR.size:
            return
        yield kind, sequence, data[at + _NLMSGHDR.size : at + length]
        at += (length + 3) & ~3


def parse(body: bytes) -> TcpSocket:
    """An `inet_diag_msg` with its attributes. struct.error: it is too short to be one."""
    _, state, _, _, local, peer, _, _, _, _, _, _, _, inode = _INET_DIAG_MSG.unpack_from(body)
    info = b""
    at = _INET_DIAG_MSG.size
    while at + _NLATTR.size <= len(body):
        length, kind = _NLATTR.unpack_from(body, at)
        if length < _NLATTR.size:
            break
        if kind == _INET_DIAG_INFO:
            info = body[at + _NLATTR.size : at + length]
        at += (length + 3) & ~3
    return TcpSocket(inode, socket.ntohs(local), socket.ntohs(peer), state, TcpInfo.parse(info))


def inodes_of(pids: Collection[str]) -> set[int]:
    """Of the sockets that these processes have open; of a process that ends meanwhile, none. pids: as /proc names them."""
    found = set()
    for pid in pids:
        try:
            for entry in os.scandir(f"/proc/{pid}/fd"):
                target = os.readlink(entry.path)
                if target.startswith("socket:["):
                    found.add(int(target[8:-1]))
        except OSError:
            continue
    return found


def descendants(pid: str = "self") -> list[str]:
    """The processes that a process has started, of all generations, as /proc names them."""
    found: list[str] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            direct = path.read_text(encoding="utf-8").split()
        except OSError:
            continue
        for child in direct:
            found += [child, *descendants(child)]
    return found

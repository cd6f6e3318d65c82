"""UDP sockets of an RTP session: data on an even port, RTCP on the next (RFC 3550 section 11)."""

from __future__ import annotations

import socket
from errno import errorcode

from hosts.wire.alsf import ROUTER_ALERT_OPTION

SO_NO_CHECK = 11
"""Linux: send UDP checksum 0, "no checksum" (asm-generic/socket.h; RFC 768)."""
IPV4_UDP_HEADER_BYTES = 28
RECEIVE_BUFFER_BYTES = 1 << 20
"""Asked for; the kernel gives what net.core.rmem_max allows, by default about 180 packets of 1000 bytes."""


class SocketError(Exception):
    """A socket could not be opened; the message says which, why, and what to do."""


def open_udp(local: str, local_port: int, peer: str, peer_port: int) -> socket.socket:
    """A non-blocking UDP socket bound to `local` and connected to `peer`: it takes packets of that peer alone.

    Raises `SocketError`.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        sock.bind((local, local_port))
    except OSError as error:
        sock.close()
        hint = {
            "EADDRINUSE": "another process has this port: end it, or choose another --port",
            "EADDRNOTAVAIL": "no interface of this host has this address: check --local, and the namespace",
            "EACCES": "ports below 1024 need root: choose another --port",
        }.get(errorcode.get(error.errno or 0, ""), "check --local and --port")
        raise SocketError(f"cannot bind UDP {local}:{local_port}: {error.strerror or error}; {hint}") from error
    try:
        sock.connect((peer, peer_port))
    except OSError as error:
        sock.close()
        raise SocketError(
            f"cannot reach {peer}:{peer_port} from {local}: {error.strerror or error}; check --peer, and the routes (ip route)"
        ) from error
    return sock


def mark_as_sender_control(sock: socket.socket) -> None:
    """Packets of this socket get the router alert option and UDP checksum 0 (docs/architecture.md, "ALS on the wire").

    Raises `SocketError` when the kernel refuses.
    """
    try:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, ROUTER_ALERT_OPTION)
        sock.setsockopt(socket.SOL_SOCKET, SO_NO_CHECK, 1)
    except OSError as error:
        raise SocketError(
            f"cannot set the router alert option or UDP checksum 0: {error.strerror or error}; Linux is needed"
        ) from error


"""UDP sockets of an RTP session: data on an even port, RTCP on the next (RFC 3550 section 11); and of IPv4 groups."""

from __future__ import annotations

import socket
from errno import errorcode
from pathlib import Path

from hosts.wire.alsf import ROUTER_ALERT_OPTION

SO_NO_CHECK = 11
"""Linux: send UDP checksum 0, "no checksum" (asm-generic/socket.h; RFC 768)."""
IP_RETOPTS = 7
"""Linux: as a control message of sendmsg, the IPv4 options of that datagram alone (bits/in.h)."""
IP_MULTICAST_ALL = 49
"""Linux: 0 = take packets of the groups that this socket joined, not of those that others did (ip(7))."""
MULTICAST_TTL = 32
"""Hops that data to groups may go; the kernel's default is 1: no router forwards it (RFC 1112 section 6.1)."""
RECEIVE_BUFFER_BYTES = 1 << 20
"""Asked for; the kernel gives what net.core.rmem_max allows, by default about 180 packets of 1000 bytes."""
IGMP_VERSION = Path("/proc/sys/net/ipv4/conf")


class SocketError(Exception):
    """A socket could not be opened; the message says which, why, and what to do."""


def open_udp(local: str, local_port: int, peer: str | None, peer_port: int) -> socket.socket:
    """A non-blocking UDP socket bound to `local` and connected to `peer`: it takes packets of that peer alone. `None`: of anyone.

    Raises `SocketError`.
    """
    sock = _bound(local, local_port)
    if peer is not None:
        try:
            sock.connect((peer, peer_port))
        except OSError as error:
            sock.close()
            raise SocketError(
                f"cannot reach {peer}:{peer_port} from {local}: {error.strerror or error}; check --peer, and the routes (ip route)"
            ) from error
    return sock


def open_group(group: str, port: int, local: str) -> socket.socket:
    """A non-blocking UDP socket that takes what comes to `group`, as a member of it at the interface that has `local`. Closing it
    ends the membership. Several processes of a host can have one each. Raises `SocketError`."""
    sock = _bound(group, port, shared=True)
    try:
        sock.setsockopt(socket.IPPROTO_IP, IP_MULTICAST_ALL, 0)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + socket.inet_aton(local))
    except OSError as error:
        sock.close()
        raise SocketError(
            f"cannot join {group} at {local}: {error.strerror or error}; check --local, and net.ipv4.igmp_max_memberships"
        ) from error
    return sock


def send_to_groups_from(sock: socket.socket, local: str) -> None:
    """What this socket sends to groups leaves at the interface that has `local`. Raises `SocketError`."""
    try:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(local))
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, MULTICAST_TTL)
    except OSError as error:
        raise SocketError(f"cannot send to groups from {local}: {error.strerror or error}; check --local") from error


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


def send_without_options(sock: socket.socket, payload: bytes, address: tuple[str, int]) -> None:
    """One datagram without the IPv4 options that the socket's others carry. Raises `OSError`."""
    sock.sendmsg([payload], [(socket.IPPROTO_IP, IP_RETOPTS, b"")], 0, address)


def use_igmpv2() -> bool:
    """The kernel speaks IGMPv2 (RFC 2236) on all interfaces of this network namespace from now on. Whether it could be told: that
    needs root; without, the kernel begins with IGMPv3, which switches of Fairlane do not read."""
    try:
        for name in ("all", "default"):
            (IGMP_VERSION / name / "force_igmp_version").write_text("2\n")
    except OSError:
        return False
    return True


def _bound(address: str, port: int, shared: bool = False) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        if shared:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, port))
    except OSError as error:
        sock.close()
        hint = {
            "EADDRINUSE": "another process has this port: end it, or choose another --port",
            "EADDRNOTAVAIL": "no interface of this host has this address: check --local, and the namespace",
            "EACCES": "ports below 1024 need root: choose another --port",
        }.get(errorcode.get(error.errno or 0, ""), "check --local and --port")
        raise SocketError(f"cannot bind UDP {address}:{port}: {error.strerror or error}; {hint}") from error
    return sock

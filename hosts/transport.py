"""Where a session's datagrams go and come from: one peer, or IPv4 groups. Sockets alone; nothing is decided here."""

from __future__ import annotations

import socket
from typing import Protocol

from hosts.session.common import Options
from hosts.session.stream import DataStream
from hosts.sockets import mark_as_sender_control, open_group, open_udp, send_to_groups_from, send_without_options, use_igmpv2


class Transport(Protocol):
    """All but `__init__` raise `OSError` when the kernel refuses a datagram."""

    def send_data(self, stream: DataStream) -> None: ...

    def send_direct(self, payload: bytes) -> None:
        """To the peer's data port."""

    def send_control(self, payload: bytes, group: int) -> None:
        """To the peer's RTCP port, or to that of a group."""

    def reflect(self, payload: bytes, group: int) -> None:
        """To a group's RTCP port, as a plain datagram."""

    def set_membership(self, groups: tuple[int, ...]) -> None:
        """Be a member of exactly these."""

    def groups(self) -> dict[socket.socket, int]:
        """Data sockets, and the group each serves; 0 = its own address."""

    def controls(self) -> tuple[socket.socket, ...]: ...

    def accepts(self, address: tuple[str, int]) -> bool:
        """Whether a datagram of this source is the session's."""

    def close(self) -> None: ...


class PeerTransport:
    """One peer: both sockets are connected to it."""

    def __init__(self, options: Options, is_sender: bool) -> None:
        """Raises `SocketError`."""
        self._data = open_udp(options.local, options.port, options.peer, options.port)
        self._control = open_udp(options.local, options.port + 1, options.peer, options.port + 1)
        if is_sender:
            mark_as_sender_control(self._control)

    def send_data(self, stream: DataStream) -> None:
        self._data.send(stream.packet)

    def send_direct(self, payload: bytes) -> None:
        self._data.send(payload)

    def send_control(self, payload: bytes, group: int) -> None:
        self._control.send(payload)

    def reflect(self, payload: bytes, group: int) -> None:
        """A flow to one peer has no groups; its session asks for none."""

    def set_membership(self, groups: tuple[int, ...]) -> None:
        """As `reflect`."""

    def groups(self) -> dict[socket.socket, int]:
        return {self._data: 0}

    def controls(self) -> tuple[socket.socket, ...]:
        return (self._control,)

    def accepts(self, address: tuple[str, int]) -> bool:
        return True

    def close(self) -> None:
        self._data.close()
        self._control.close()


class LayeredSenderTransport:
    """Each layer's data to its group; control packets to the group of the base layer; reports from any receiver."""

    def __init__(self, options: Options) -> None:
        """Raises `SocketError`."""
        self._port = options.port
        self._data = open_udp(options.local, options.port, None, 0)
        self._control = open_udp(options.local, options.port + 1, None, 0)
        mark_as_sender_control(self._control)
        for sock in (self._data, self._control):
            send_to_groups_from(sock, options.local)

    def send_data(self, stream: DataStream) -> None:
        self._data.sendto(stream.packet, (_dotted(stream.group), self._port))

    def send_direct(self, payload: bytes) -> None:
        """A sender answers nobody; its session asks for nothing of the kind."""

    def send_control(self, payload: bytes, group: int) -> None:
        self._control.sendto(payload, (_dotted(group), self._port + 1))

    def reflect(self, payload: bytes, group: int) -> None:
        send_without_options(self._control, payload, (_dotted(group), self._port + 1))

    def set_membership(self, groups: tuple[int, ...]) -> None:
        """A sender to groups need not be a member (RFC 1112 section 3)."""

    def groups(self) -> dict[socket.socket, int]:
        return {self._data: 0}

    def controls(self) -> tuple[socket.socket, ...]:
        return (self._control,)

    def accepts(self, address: tuple[str, int]) -> bool:
        return True

    def close(self) -> None:
        self._data.close()
        self._control.close()


class LayeredReceiverTransport:
    """A data socket for each group joined, and one for control packets to the base layer's group; reports go to the sender."""

    def __init__(self, options: Options) -> None:
        """Raises `SocketError`."""
        self._options = options
        self._control = open_udp(options.local, options.port + 1, options.peer, options.port + 1)
        self._data: dict[int, socket.socket] = {}
        self._group_control: tuple[int, socket.socket] | None = None
        self.igmpv2 = use_igmpv2()

    def send_data(self, stream: DataStream) -> None:
        """A receiver sends no data; its session asks for none."""

    def send_direct(self, payload: bytes) -> None:
        self._control.sendto(payload, (self._options.peer, self._options.port))

    def send_control(self, payload: bytes, group: int) -> None:
        self._control.send(payload)

    def reflect(self, payload: bytes, group: int) -> None:
        """Senders reflect; a receiver's session asks for nothing of the kind."""

    def set_membership(self, groups: tuple[int, ...]) -> None:
        """Raises `SocketError`."""
        local, port = self._options.local, self._options.port
        for group in [g for g in self._data if g not in groups]:
            self._data.pop(group).close()
        for group in groups:
            if group not in self._data:
                self._data[group] = open_group(_dotted(group), port, local)
        if self._group_control is None or self._group_control[0] != groups[0]:
            if self._group_control is not None:
                self._group_control[1].close()
            self._group_control = groups[0], open_group(_dotted(groups[0]), port + 1, local)

    def groups(self) -> dict[socket.socket, int]:
        return {sock: group for group, sock in self._data.items()}

    def controls(self) -> tuple[socket.socket, ...]:
        return (self._control,) if self._group_control is None else (self._control, self._group_control[1])

    def accepts(self, address: tuple[str, int]) -> bool:
        """A group takes packets of anyone: those of other senders are not this flow's."""
        return address[0] == self._options.peer

    def close(self) -> None:
        for sock in (*self.groups(), *self.controls()):
            sock.close()


def open_transport(role: str, options: Options, layered: bool) -> Transport:
    """The sockets of a flow end. Raises `SocketError`."""
    if not layered:
        return PeerTransport(options, is_sender=role == "sender")
    return LayeredSenderTransport(options) if role == "sender" else LayeredReceiverTransport(options)


def _dotted(group: int) -> str:
    return socket.inet_ntoa(group.to_bytes(4))

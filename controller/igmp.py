"""IGMPv2 messages in Ethernet frames (RFC 2236): parses them with every check that a router may make, and builds queries.

Pure. For any bytes, `parse` returns a message or raises `IgmpError`, nothing else.
"""

from __future__ import annotations

import enum
import struct
from dataclasses import dataclass

ALL_SYSTEMS = 0xE0000001
ALL_ROUTERS = 0xE0000002
_ROUTER_ALERT = b"\x94\x04\x00\x00"
_ETHERTYPE_IPV4 = 0x0800
_PROTOCOL_IGMP = 2
_MESSAGE_BYTES = 8
_FRAME_MINIMUM_BYTES = 60
_RESPONSE_UNIT_S = 0.1


class Kind(enum.Enum):
    """[RFC 2236 sec 2.1]; the values of the type field."""

    QUERY = 0x11
    REPORT = 0x16
    LEAVE = 0x17


class Reason(enum.Enum):
    """Why a packet changes nothing."""

    TRUNCATED = "truncated"
    NOT_IGMP = "not IGMP over IPv4"
    FRAGMENT = "a fragment"
    CHECKSUM = "wrong checksum"
    OFF_LINK = "TTL is not 1"
    NO_ROUTER_ALERT = "no router alert option"
    OTHER_VERSION = "not IGMP version 2"
    NOT_A_GROUP = "not a group's address"
    WRONG_DESTINATION = "sent to the wrong address for its type"
    UNKNOWN_SOURCE = "its source is not on that port"
    QUERY = "a query, which only routers send"
    NOT_A_HOST_PORT = "no hosts on that port"
    UNKNOWN_PORT = "no such port"
    TOO_MANY_GROUPS = "too many groups on that port"
    NO_METADATA = "a packet-in without input port"


class IgmpError(ValueError):
    """A packet to ignore; `reason` names its counter."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(f"{reason.value}: {detail}" if detail else reason.value)
        self.reason = reason


@dataclass(frozen=True)
class Message:
    """group: 0 in a general query. source: of the IPv4 header. max_response_s: of queries, else 0."""

    kind: Kind
    group: int
    source: int
    max_response_s: float = 0.0


def is_group(address: int) -> bool:
    """Whether an IPv4 address is of class D [RFC 1112 sec 4]."""
    return address >> 28 == 0xE


def is_link_local(address: int) -> bool:
    """224.0.0.0/24, which no router forwards ([RFC 2236 sec 3] for 224.0.0.1; [RFC 5771 sec 4])."""
    return address >> 8 == 0xE00000


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071); 0 over data that contains its own correct checksum."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data[: len(data) & ~1]))
    if len(data) & 1:
        total += data[-1] << 8
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def parse(frame: bytes) -> Message:
    """The IGMPv2 message in an Ethernet frame. IgmpError: it is none, or one that RFC 2236 lets routers ignore: without router
    alert (section 10), from off the link (section 2: TTL 1), or sent to the wrong address for its type (section 9)."""
    if len(frame) < 14 + 20:
        raise IgmpError(Reason.TRUNCATED, f"a frame of {len(frame)} bytes")
    (ether_type,) = struct.unpack_from("!H", frame, 12)
    packet = frame[14:]
    header_bytes = (packet[0] & 15) * 4
    if ether_type != _ETHERTYPE_IPV4 or packet[0] >> 4 != 4 or packet[9] != _PROTOCOL_IGMP:
        raise IgmpError(Reason.NOT_IGMP)
    (total_bytes,) = struct.unpack_from("!H", packet, 2)
    if header_bytes < 20 or total_bytes > len(packet) or total_bytes < header_bytes + _MESSAGE_BYTES:
        raise IgmpError(Reason.TRUNCATED, f"a header of {header_bytes} bytes, a packet of {total_bytes}, {len(packet)} came")
    header, body = packet[:header_bytes], packet[header_bytes:total_bytes]
    (fragment,) = struct.unpack_from("!H", header, 6)
    if fragment & 0x3FFF:
        raise IgmpError(Reason.FRAGMENT)
    if checksum(header) or checksum(body):
        raise IgmpError(Reason.CHECKSUM)
    if header[8] != 1:
        raise IgmpError(Reason.OFF_LINK, f"TTL {header[8]}")
    if not _has_router_alert(header[20:]):
        raise IgmpError(Reason.NO_ROUTER_ALERT)
    source, destination = struct.unpack_from("!II", header, 12)
    number, response, _, group = struct.unpack_from("!BBHI", body)
    try:
        kind = Kind(number)
    except ValueError:
        raise IgmpError(Reason.OTHER_VERSION, f"type {number:#04x}; on Linux, net.ipv4.conf.IFACE.force_igmp_version=2") from None
    # A version 3 query is longer [RFC 3376 sec 7.1]; a version 1 query has response time 0.
    if kind is Kind.QUERY and (len(body) > _MESSAGE_BYTES or response == 0):
        raise IgmpError(Reason.OTHER_VERSION, f"a query of {len(body)} bytes, response time {response}")
    if not (is_group(group) or (kind is Kind.QUERY and group == 0)):
        raise IgmpError(Reason.NOT_A_GROUP, f"{group:#010x}")
    # Some hosts leave by a message to the group (section 3).
    right = {Kind.QUERY: (group or ALL_SYSTEMS,), Kind.REPORT: (group,), Kind.LEAVE: (ALL_ROUTERS, group)}[kind]
    if destination not in right:
        raise IgmpError(Reason.WRONG_DESTINATION, f"{destination:#010x}")
    return Message(kind, group, source, response * _RESPONSE_UNIT_S if kind is Kind.QUERY else 0.0)


def _has_router_alert(options: bytes) -> bool:
    at = 0
    while at < len(options) and options[at] != 0:  # 0 ends the list
        if options[at] == 1:  # no operation
            at += 1
            continue
        if options[at : at + 4] == _ROUTER_ALERT:
            return True
        length = options[at + 1] if at + 1 < len(options) else 0
        if length < 2:
            return False
        at += length
    return False


def build(kind: Kind, group: int, source: int, src_mac: int, max_response_s: float = 0.0) -> bytes:
    """The frame of a message: TTL 1, router alert, padded to Ethernet's minimum. source 0 is for queries of a switch that must
    never win a router's election [RFC 4541 sec 2.1.1]."""
    destination = {Kind.QUERY: group or ALL_SYSTEMS, Kind.REPORT: group, Kind.LEAVE: ALL_ROUTERS}[kind]
    response = min(255, max(1, round(max_response_s / _RESPONSE_UNIT_S))) if kind is Kind.QUERY else 0
    body = bytearray(struct.pack("!BBHI", kind.value, response, 0, group))
    body[2:4] = checksum(bytes(body)).to_bytes(2, "big")
    # Type of service 0xc0, internetwork control, as Linux has it.
    header = bytearray(struct.pack("!BBHHHBBHII", 0x46, 0xC0, 24 + len(body), 0, 0, 1, _PROTOCOL_IGMP, 0, source, destination))
    header += _ROUTER_ALERT
    header[10:12] = checksum(bytes(header)).to_bytes(2, "big")
    ethernet = group_mac(destination).to_bytes(6, "big") + src_mac.to_bytes(6, "big") + _ETHERTYPE_IPV4.to_bytes(2, "big")
    return (ethernet + bytes(header) + bytes(body)).ljust(_FRAME_MINIMUM_BYTES, b"\0")


def group_mac(address: int) -> int:
    """The Ethernet address of a group [RFC 1112 sec 6.4]."""
    return 0x01005E000000 | address & 0x7FFFFF

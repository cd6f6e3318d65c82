"""Which of several ports of equal cost a switch takes for a flow, as p4src/forward.p4 computes it, and the seed of each switch.

The flow's number is a hash of its addresses, protocol and ports, which the switch's seed changes as a whole: hashes of two switches are independent. The port
is that of the ports in ascending order whose place is the CRC-32 of the number modulo their count, as an action selector of v1model chooses.
"""

from __future__ import annotations

import functools
import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TypeVar

T = TypeVar("T")

ICMP, TCP, UDP, ICMPV6 = 1, 6, 17, 58
"""Protocols of IP."""
_WORD = (1 << 64) - 1


@dataclass(frozen=True)
class FiveTuple:
    """What packets of a flow have in common. source, destination: IP addresses, such as "10.0.1.1". protocol: of IP. Ports are 0 where the protocol has none."""

    source: str
    destination: str
    protocol: int = ICMP
    source_port: int = 0
    destination_port: int = 0

    @property
    def back(self) -> FiveTuple:
        """Of the packets that answer."""
        return FiveTuple(self.destination, self.source, self.protocol, self.destination_port, self.source_port)

    @property
    def words(self) -> tuple[int, ...]:
        """What p4src/forward.p4 hashes, 64 bits each: the addresses, and protocol and ports. Of UDP, without the last bit of each port: RTP and its RTCP take one way
        [RFC 3550 sec 11]."""
        mask = 0xFFFE if self.protocol == UDP else 0xFFFF
        return *_words(self.source, self.destination), self.protocol << 32 | (self.source_port & mask) << 16 | self.destination_port & mask


def seed_of(seed: int, switch: str) -> int:
    """Of a switch in a run of a seed: 64 bits."""
    return random.Random(f"{seed}/equal cost/{switch}").getrandbits(64)


def chosen(ports: Sequence[T], seed: int, flow: FiveTuple) -> T:
    """One of several ports, in ascending order, for a flow. seed: of the switch."""
    if len(ports) == 1:
        return ports[0]
    number = seed
    for word in flow.words:
        number = _mixed(number ^ word)
    return ports[zlib.crc32(number.to_bytes(8, "big")) % len(ports)]


@functools.cache
def _words(*addresses: str) -> tuple[int, ...]:
    data = b"".join(ip_address(address).packed for address in addresses)
    return tuple(int.from_bytes(data[at : at + 8], "big") for at in range(0, len(data), 8))


def _mixed(x: int) -> int:
    """Mix of p4src/mix.p4."""
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & _WORD
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & _WORD
    return x ^ x >> 31

"""The ALSF packet: ALS's addition to RTCP (docs/architecture.md, "ALS on the wire"; [ALS sec 3.5]).

An RTCP APP packet named `ALSF`: desired rate (64 bits, bit/s), utilisation (32 bits, parts per million), and from senders the
layer list, each entry an IPv4 group address (32 bits) and a rate (64 bits, bit/s).
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from hosts.wire.errors import MalformedPacket
from hosts.wire.rtcp import App, RtcpPacket

NAME = b"ALSF"
FROM_SENDER = 0
"""Subtype of senders' packets: switches rewrite them."""
FROM_RECEIVER = 1
"""Subtype of receivers' packets: switches leave them alone."""
UTILISATION_UNIT = 1e-6
"""One unit of the utilisation field, as a fraction."""
ROUTER_ALERT_OPTION = bytes((0x94, 0x04, 0x00, 0x00))
"""IPv4 router alert, value 0: routers shall examine the packet (RFC 2113 section 2.1)."""
MAX_LAYERS = (0xFFFF - 5) // 3
"""As many as the RTCP length field can count."""

_PAIR = Struct("!QI")
_LAYER = Struct("!IQ")


@dataclass(frozen=True, slots=True)
class Alsf:
    """What an ALSF packet says."""

    from_sender: bool
    ssrc: int
    """Of who sends this packet."""
    desired_rate_bps: int
    """R_d, 64 bits."""
    utilisation_ppm: int
    """U in parts per million, 32 bits; above 1,000,000 only when forged or measured over too short a time."""
    layers: tuple[tuple[int, int], ...] = ()
    """(IPv4 group address, rate in bit/s); empty from a receiver."""

    def to_app(self) -> App:
        """Raises `ValueError` when a field does not fit."""
        if not 0 <= self.desired_rate_bps < 1 << 64 or not 0 <= self.utilisation_ppm < 1 << 32:
            raise ValueError(
                f"desired_rate_bps = {self.desired_rate_bps}, utilisation_ppm = {self.utilisation_ppm}: must fit 64 and 32 bits"
            )
        if self.layers and not self.from_sender:
            raise ValueError("only a sender's packet carries layers")
        if len(self.layers) > MAX_LAYERS:
            raise ValueError(f"{len(self.layers)} layers, at most {MAX_LAYERS} fit a packet")
        data = _PAIR.pack(self.desired_rate_bps, self.utilisation_ppm) + b"".join(_LAYER.pack(*x) for x in self.layers)
        return App(FROM_SENDER if self.from_sender else FROM_RECEIVER, self.ssrc, NAME, data)


def parse_alsf(app: App) -> Alsf:
    """Raises `MalformedPacket`; its offset counts from the APP packet's first byte."""
    if app.name != NAME:
        raise MalformedPacket(8, f"APP packet named {app.name!r}, must be {NAME!r}")
    if app.subtype not in (FROM_SENDER, FROM_RECEIVER):
        raise MalformedPacket(0, f"ALSF subtype {app.subtype}, must be {FROM_SENDER} or {FROM_RECEIVER}")
    from_sender = app.subtype == FROM_SENDER
    rest = len(app.data) - _PAIR.size
    if rest < 0:
        raise MalformedPacket(12, f"ALSF data of {len(app.data)} bytes, needs {_PAIR.size}")
    if rest % _LAYER.size or (rest and not from_sender):
        raise MalformedPacket(12 + _PAIR.size, f"{rest} bytes follow the utilisation: not a layer list of this subtype")
    desired, utilisation = _PAIR.unpack_from(app.data)
    layers = tuple(_LAYER.unpack_from(app.data, at) for at in range(_PAIR.size, len(app.data), _LAYER.size))
    return Alsf(from_sender, app.ssrc, desired, utilisation, layers)


def find_alsf(packets: tuple[RtcpPacket, ...], from_sender: bool) -> Alsf | None:
    """The first ALSF of that direction in a compound; `None` when there is none, or it is not well formed: to be ignored."""
    subtype = FROM_SENDER if from_sender else FROM_RECEIVER
    for packet in packets:
        if isinstance(packet, App) and packet.name == NAME and packet.subtype == subtype:
            try:
                return parse_alsf(packet)
            except MalformedPacket:
                return None
    return None


def rate_field(rate_bps: float) -> int:
    """A rate as the 64-bit field holds it: rounded down, limited to the field."""
    return max(0, min(int(rate_bps), (1 << 64) - 1))


def utilisation_field(utilisation: float) -> int:
    """A fraction as parts per million: rounded, limited to the field. Error at most 0.5e-6."""
    return max(0, min(round(utilisation * 1_000_000), (1 << 32) - 1))

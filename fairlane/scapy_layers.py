"""scapy layers of Fairlane's own headers, built from hosts/wire/formats.toml when this module is imported.

    import fairlane.scapy_layers                   # binds them to UDP, RTP
    packets = scapy.utils.rdpcap("results/.../h1-s1.pcap")
    packets[0].show()

`Ack` and `Report` are found in UDP between equal even ports, `Stamp` behind RTP on such a port, and `Alsf` with its layers in the
APP packets of RTCP between equal odd ports (class `Rtcp`, one for each packet of a compound).
"""

from __future__ import annotations

from importlib import resources
from typing import Any

from scapy.fields import (
    BitField,
    ConditionalField,
    Field,
    IntField,
    IPField,
    LongField,
    PacketListField,
    ShortField,
    StrFixedLenField,
    StrLenField,
)
from scapy.layers.inet import UDP
from scapy.layers.rtp import RTP
from scapy.packet import Packet, Raw, bind_layers

from fairlane.hosts.wire.formats import Field as FormatField
from fairlane.hosts.wire.formats import Format, formats_of
from fairlane.inputs.located_toml import tomllib

FORMATS = formats_of(tomllib.loads(resources.files("fairlane.hosts.wire").joinpath("formats.toml").read_text(encoding="utf-8")))
PAYLOAD_TYPE = 96


class _Optional(Field[int | None, int | None]):
    """Of a field at the end of a header: there when the bytes are, `None` where they are not."""

    def getfield(self, packet: Packet, data: bytes) -> tuple[bytes, int | None]:
        return super().getfield(packet, data) if len(data) >= self.sz else (data, None)

    def addfield(self, packet: Packet, data: bytes, value: int | None) -> bytes:
        return data if value is None else super().addfield(packet, data, value)

    def i2m(self, packet: Packet | None, value: int | None) -> int | None:
        return value


class _OptionalIntField(_Optional, IntField):
    pass


class _OptionalLongField(_Optional, LongField):
    pass


def _field(field: FormatField) -> Field[Any, Any]:
    if field.name == "address":
        return IPField(field.name, "0.0.0.0")
    kinds: tuple[type[Field[Any, Any]], type[Field[Any, Any]]] | None = {
        32: (IntField, _OptionalIntField),
        64: (LongField, _OptionalLongField),
    }.get(field.bits)
    if field.optional:
        if kinds is None:
            raise ValueError(f"{field.name}: an optional field has 32 or 64 bits, this has {field.bits}")
        return kinds[1](field.name, None)
    default = field.value or 0
    return BitField(field.name, default, field.bits) if kinds is None or field.offset_bits % 8 else kinds[0](field.name, default)


def _class(name: str, **members: object) -> type[Packet]:
    form: Format = FORMATS[name]
    members = {"name": form.title, "fields_desc": [_field(f) for f in form.fields], "__doc__": f"{form.summary} {form.place}.", **members}
    return type("".join(part.capitalize() for part in name.split("_")), (Packet,), members)


Stamp, Ack, Report, Alsf = (_class(name) for name in ("stamp", "ack", "report", "alsf"))
AlsfLayer = _class("alsf_layer", extract_padding=lambda self, data: (b"", data))
Alsf.fields_desc = [*Alsf.fields_desc, PacketListField("layer_list", [], AlsfLayer)]


class Rtcp(Packet):
    """One packet of an RTCP compound [RFC 3550 sec 6]: its common header, and the data of ALSF; other bodies stay bytes."""

    name = "RTCP"
    fields_desc = [
        BitField("version", 2, 2),
        BitField("padding", 0, 1),
        BitField("count", 0, 5),
        BitField("packet_type", 201, 8),
        ShortField("length", 0),
        IntField("ssrc", 0),
        ConditionalField(StrFixedLenField("app_name", b"ALSF", 4), lambda packet: packet.packet_type == 204),
        ConditionalField(
            PacketListField("alsf", [], Alsf, length_from=lambda packet: 4 * packet.length - 8), lambda packet: packet.is_alsf()
        ),
        ConditionalField(StrLenField("body", b"", length_from=lambda packet: packet.body_bytes()), lambda packet: not packet.is_alsf()),
    ]

    def is_alsf(self) -> bool:
        return bool(self.packet_type == 204 and self.app_name == b"ALSF")

    def body_bytes(self) -> int:
        length: int = self.length
        return max(0, 4 * length - (8 if self.packet_type == 204 else 4))

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        return Rtcp if len(payload) >= 8 else Raw


def _of_udp(self: UDP, payload: bytes) -> type[Packet]:
    """What a datagram between equal ports holds; else what scapy itself says."""
    if self.sport == self.dport and payload:
        if self.sport % 2 == 0:
            for layer in (Ack, Report):
                form = FORMATS[layer.__name__.lower()]
                values = {field.name: field.value or 0 for field in form.fields}
                if len(payload) in (form.least_bytes, form.bytes) and payload[0] == values["version"] << 4 | values["type"]:
                    return layer
            if payload[0] == 0x80 and len(payload) >= 12 and payload[1] & 0x7F == PAYLOAD_TYPE:
                return RTP
        elif len(payload) >= 8 and payload[0] >> 6 == 2 and payload[1] in (200, 201):
            return Rtcp
    return _scapys_choice(self, payload)


_scapys_choice = UDP.guess_payload_class
UDP.guess_payload_class = _of_udp  # type: ignore[method-assign, assignment]
bind_layers(RTP, Stamp, payload_type=PAYLOAD_TYPE)

"""A header of a flow's own on the wire: the layout is a P4 program's header type, what the sender puts there is the algorithm's (`Header`).

Fields are bits, most significant first, without gaps, as P4 extracts them [P4_16 sec 7.2.2]. A stack of hops is a P4 header stack that
follows the header. Packets leave with all of its elements, zero, so that no switch changes a packet's length; a switch pushes its own element to
the front (`hdr.hops.push_front(1)`) and adds 1 to the field that counts them. Pure: bytes in, values out.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairlane.hosts.algorithms.base import Fill, Header

START = ("profile", "length")
"""Names that the layout's first two fields need: 16 bits each, as a header extension begins [RFC 3550 sec 5.3.1]."""
START_BYTES = 4
WORD_BITS = 32
MAX_BYTES = 512
"""Of a header with its hops: data packets have room for a stamp and some content besides."""
FIXED_BYTES = {4: 28 + 12 + 16, 6: 48 + 12 + 16}
"""IP, UDP, RTP, and the least stamp, by the version of IP."""


@dataclass(frozen=True, slots=True)
class Field:
    """Of a P4 header type: `bit<bits>`, or `int<bits>`."""

    name: str
    bits: int
    signed: bool = False


class Layout:
    """A P4 header type: values to bytes, and bytes to an object with the fields' names."""

    def __init__(self, type: str, fields: Sequence[Field]) -> None:
        """ValueError: a name that cannot be an attribute; no whole number of bytes."""
        self.type = type
        self.fields = tuple(fields)
        self.bits = sum(field.bits for field in fields)
        if self.bits == 0 or self.bits % 8:
            raise ValueError(f"the P4 header {type} has {self.bits} bits: must be whole bytes, and one or more")
        try:
            self._object: Any = namedtuple(type, [field.name for field in fields])  # type: ignore[misc]
        except ValueError as error:
            raise ValueError(f"the P4 header {type}: a field's name cannot be used in Python: {error}") from None
        self._cuts = []
        self.first_bit: dict[str, int] = {}
        at = 0
        for field in fields:
            self.first_bit[field.name] = at
            at += field.bits
            self._cuts.append((self.bits - at, (1 << field.bits) - 1, 1 << field.bits - 1 if field.signed else 0))

    @property
    def length_bytes(self) -> int:
        return self.bits // 8

    def field(self, name: str) -> Field:
        """ValueError: there is none of this name."""
        for field in self.fields:
            if field.name == name:
                return field
        raise ValueError(f"the P4 header {self.type} has no field {name!r}; it has {', '.join(self.first_bit)}")

    def number(self, name: str, value: int) -> int:
        """A field's bits, of its value. ValueError: an unknown field, a value that is no integer or that it cannot hold."""
        field = self.field(name)
        if not isinstance(value, int):
            raise ValueError(f"{self.type}.{name} = {value!r}: must be an integer")
        low, high = (-(1 << field.bits - 1), (1 << field.bits - 1) - 1) if field.signed else (0, (1 << field.bits) - 1)
        if not low <= value <= high:
            raise ValueError(f"{self.type}.{name} = {value}: {'int' if field.signed else 'bit'}<{field.bits}> holds {low} to {high}")
        return value & (1 << field.bits) - 1

    def pack(self, values: Mapping[str, int]) -> bytes:
        """What is not named is 0. ValueError as of `number`."""
        whole = 0
        for name, value in values.items():
            whole |= self.number(name, value) << self.bits - self.first_bit[name] - self.field(name).bits
        return whole.to_bytes(self.length_bytes, "big")

    def unpack(self, data: bytes) -> Any:
        """An object with the fields' names. `data` has `length_bytes` bytes."""
        whole = int.from_bytes(data, "big")
        # Of two's complement, x ^ s - s is the value whose sign bit is s; of an unsigned field s is 0.
        return self._object._make([((whole >> shift & mask) ^ sign) - sign for shift, mask, sign in self._cuts])


def layout_of(program: Mapping[str, Any], type: str) -> Layout:
    """A header type of a compiled P4 program (BMv2 JSON). ValueError: there is none, or it has a field of variable length."""
    types = {str(entry["name"]): entry["fields"] for entry in program["header_types"]}
    if type not in types:
        own = (name for name in types if name not in ("scalars", "standard_metadata"))
        raise ValueError(f"the P4 program has no header type {type!r}; it has {', '.join(own)}")
    fields = []
    for name, bits, *signed in types[type]:
        if not isinstance(bits, int):
            raise ValueError(f"the P4 header {type}: field {name} has no fixed length")
        fields.append(Field(name, bits, bool(signed and signed[0])))
    return Layout(type, fields)


def stack_size(program: Mapping[str, Any], type: str) -> int:
    """Elements of the one header stack of this type. ValueError: there is none, or several."""
    sizes = [int(stack["size"]) for stack in program["header_stacks"] if stack["header_type"] == type]
    if len(sizes) != 1:
        raise ValueError(f"the P4 program has {len(sizes)} header stacks of {type}: there must be one")
    return sizes[0]


class Carried:
    """The header that one flow's data packets carry: what the flow's ends are given."""

    def __init__(self, header: Header, program: Mapping[str, Any], packet_bytes: int, ip: int = 4) -> None:
        """program: BMv2 JSON. packet_bytes: an IP datagram of data. ip: the version. ValueError: what is wrong with the header or its layout."""
        self.header = header
        self.layout = layout = layout_of(program, header.type)
        start = tuple((field.name, field.bits) for field in layout.fields[:2])
        if start != tuple((name, 16) for name in START):
            raise ValueError(f"the P4 header {header.type} begins with {start}: it must begin with bit<16> profile; bit<16> length")
        self._hop = layout_of(program, header.hops) if header.hops else None
        room = stack_size(program, header.hops) * self._hop.length_bytes if header.hops and self._hop else 0
        length = layout.length_bytes + room
        if 8 * length % WORD_BITS or length > MAX_BYTES:
            raise ValueError(
                f"the header {header.type} has {length} bytes with its hops: must be whole words of 32 bits, {MAX_BYTES} bytes at most"
            )
        if packet_bytes < (least := FIXED_BYTES[ip] + length):
            raise ValueError(f"packets of {packet_bytes} bytes have no room for the header {header.type}: {least} bytes or more")
        taken = [name for name in header.values if name in START]
        if taken:
            raise ValueError(f"the header {header.type}: Header.values sets {taken[0]}, which follows from Header.profile and the layout")
        for name in filter(None, (header.hop_count, *header.values)):
            layout.field(name)
        constants = {name: value for name, value in header.values.items() if not isinstance(value, Fill)}
        words = (length - START_BYTES) * 8 // WORD_BITS
        self.initial = layout.pack({"profile": header.profile, "length": words, **constants}) + bytes(room)
        """All of it, as it leaves before the sender has filled in what it knows."""
        self.filled = [(value.value, *self._magnitude(name)) for name, value in header.values.items() if isinstance(value, Fill)]
        """What the sender writes: which quantity, the first bit and the bits that it has; the sign bit of `int<N>` stays 0."""
        self._read, first = self._returned()
        self.returned = (first, first + self._read.length_bytes + room)
        """The bytes that acknowledgements bring back: from the first to before the last."""
        self._object: Any = namedtuple(header.type, [*(field.name for field in self._read.fields), "hops"]) if self._hop else None

    def _place(self, name: str) -> tuple[int, int]:
        return self.layout.first_bit[name], self.layout.field(name).bits

    def _magnitude(self, name: str) -> tuple[int, int]:
        """Of a field, the bits of a number that is not negative."""
        first_bit, bits = self._place(name)
        sign = int(self.layout.field(name).signed)
        return first_bit + sign, bits - sign

    def _returned(self) -> tuple[Layout, int]:
        """The fields that come back, as a layout, and the header's byte with which they begin."""
        header, layout = self.header, self.layout
        names = header.returned or tuple(field.name for field in layout.fields[len(START) :])
        order = [field.name for field in layout.fields]
        for name in names:
            layout.field(name)
        at = order.index(names[0]) if names else 0
        if not names or tuple(order[at : at + len(names)]) != tuple(names):
            raise ValueError(
                f"the header {header.type}: Header.returned = {names}: one field, or several in the layout's order without a gap"
            )
        if header.hops and names[-1] != order[-1]:
            raise ValueError(f"the header {header.type}: Header.returned = {names}: hops come back behind the last field, {order[-1]}")
        if header.hop_count is not None and header.hop_count not in names:
            raise ValueError(
                f"the header {header.type}: Header.returned = {names}: hops come back with the field that counts them, {header.hop_count}"
            )
        fields = [layout.field(name) for name in names]
        first_bit = layout.first_bit[names[0]]
        if first_bit % 8 or sum(field.bits for field in fields) % WORD_BITS:
            raise ValueError(f"the header {header.type}: Header.returned = {names}: must begin at a byte and be whole words of 32 bits")
        return Layout(header.type, fields), first_bit // 8

    def places(self, values: Mapping[str, int]) -> list[tuple[int, int, int]]:
        """Of a `SetHeader`: of each field its first bit, its bits, and the number to write. ValueError as of `Layout.number`; also for fields of more
        than 64 bits, and for profile and length."""
        places = []
        for name, value in values.items():
            number = self.layout.number(name, value)
            if name in START or self.layout.field(name).bits > 64:
                raise ValueError(
                    f"SetHeader: {self.layout.type}.{name} cannot be set: a field of 64 bits at most, and not profile or length"
                )
            places.append((*self._place(name), number))
        return places

    def place_returned(self, name: str) -> tuple[int, int]:
        """Of a field that comes back: its first bit, from the begin of what comes back, and its bits. ValueError: none, or more than 64 bits."""
        bits = self._read.field(name).bits
        if bits > 64:
            raise ValueError(f"Interests.least: {self.layout.type}.{name} has {bits} bits, must have 64 at most")
        return self._read.first_bit[name], bits

    def write(self, said: Any) -> bytes:
        """The bytes of what `read` gives, with as many hops as there is room for. ValueError as of `Layout.number`."""
        data = self._read.pack({field.name: getattr(said, field.name) for field in self._read.fields})
        if self._hop is not None:
            data += b"".join(self._hop.pack(hop._asdict()) for hop in said.hops)
        first, end = self.returned
        return data[: end - first].ljust(end - first, b"\0")

    def read(self, data: bytes) -> Any:
        """What an acknowledgement brought back: an object with the fields' names, and `hops`, a tuple of such objects, in the order of the packet: of a
        stack that is pushed to, the last switch's first. None: the bytes have another length, so they are none of this header."""
        fixed = self._read.length_bytes
        if self._hop is None:
            return self._read.unpack(data) if len(data) == fixed else None
        size = self._hop.length_bytes
        if len(data) < fixed or (len(data) - fixed) % size:
            return None
        fields = self._read.unpack(data[:fixed])
        room = (len(data) - fixed) // size
        count = min(getattr(fields, self.header.hop_count), room) if self.header.hop_count else room
        return self._object(*fields, tuple(self._hop.unpack(data[fixed + n * size : fixed + (n + 1) * size]) for n in range(count)))

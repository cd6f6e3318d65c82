"""Headers of flows' own (hosts/algorithms/own_header.py): layouts of P4 header types, their bytes, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.hosts.algorithms import ALGORITHMS, carried_of, header_of
from fairlane.hosts.algorithms.base import Fill, Header
from fairlane.hosts.algorithms.own_header import Carried, Field, Layout, layout_of

START = [["profile", 16, False], ["length", 16, False]]
TELEMETRY = Header("telemetry_t", 0x5454, {"sequence": Fill.SEQUENCE, "kind": 3, "change": -2}, hops="hop_t", hop_count="count")
PROGRAM = {
    "header_types": [
        {"name": "telemetry_t", "fields": [*START, ["count", 4, False], ["kind", 4, False], ["sequence", 16, False], ["change", 8, True]]},
        {"name": "hop_t", "fields": [["queue", 24, False], ["port", 9, False], ["rest", 31, False]]},
        {"name": "short_t", "fields": [*START, ["half", 16, False]]},
        {"name": "options_t", "fields": [*START, ["options", "*"]]},
        {"name": "late_t", "fields": [["length", 16, False], ["profile", 16, False]]},
        {"name": "rate_t", "fields": [*START, ["rate_bps", 64, False], ["rtt_us", 32, False]]},
    ],
    "header_stacks": [{"name": "hops", "header_type": "hop_t", "size": 3}],
}


def layouts() -> st.SearchStrategy[Layout]:
    """Of whole bytes, signed fields among them, and some longer than 64 bits."""
    sizes = st.lists(st.tuples(st.integers(1, 100), st.booleans()), min_size=1, max_size=8)

    def layout(drawn: list[tuple[int, bool]]) -> Layout:
        fields = [Field(f"f{n}", bits, signed) for n, (bits, signed) in enumerate(drawn)]
        rest = -sum(field.bits for field in fields) % 8
        return Layout("drawn_t", [*fields, *([Field("rest", rest)] if rest else [])])

    return sizes.map(layout)


@given(st.data())
def test_what_is_packed_is_unpacked(data: st.DataObject) -> None:
    layout = data.draw(layouts())
    values = {
        f.name: data.draw(st.integers(-(1 << f.bits - 1), (1 << f.bits - 1) - 1) if f.signed else st.integers(0, (1 << f.bits) - 1))
        for f in layout.fields
    }
    packed = layout.pack(values)
    assert len(packed) == layout.length_bytes
    assert layout.unpack(packed)._asdict() == values
    assert layout.pack(layout.unpack(packed)._asdict()) == packed


@given(st.data())
def test_any_bytes_are_read(data: st.DataObject) -> None:
    layout = data.draw(layouts())
    some = data.draw(st.binary(min_size=layout.length_bytes, max_size=layout.length_bytes))
    assert layout.pack(layout.unpack(some)._asdict()) == some


def test_fields_are_bits_one_after_the_other() -> None:
    layout = layout_of(PROGRAM, "telemetry_t")
    assert layout.pack({"profile": 0x1234, "count": 5, "kind": 6, "sequence": 0x789A, "change": -1}).hex() == "12340000" + "56789aff"


def test_hops_come_back_as_objects_in_the_packets_order() -> None:
    carried = Carried(TELEMETRY, PROGRAM, 1000)
    hop = layout_of(PROGRAM, "hop_t")
    # 8 bytes and three hops of 8: seven words follow the first.
    assert carried.initial.hex() == "5454" + "0007" + "03" + "0000" + "fe" + "00" * 24
    assert carried.returned == (4, 32)
    assert carried.filled == [("sequence", 40, 16)]
    written = carried.initial[4:8] + hop.pack({"queue": 7, "port": 2}) + hop.pack({"queue": 9, "port": 1}) + bytes(8)
    said = carried.read(bytes([written[0] | 0x20]) + written[1:])
    assert (said.count, said.kind, said.change, len(said.hops)) == (2, 3, -2, 2)
    assert [(hop.queue, hop.port) for hop in said.hops] == [(7, 2), (9, 1)]
    # More switches than elements: the first ones have fallen out of the stack.
    assert len(carried.read(bytes([0xF3]) + written[1:]).hops) == 3


def test_what_fills_a_signed_field_is_not_negative() -> None:
    """The greatest number that `int<8>` holds is 127: the sender has the bits behind the sign."""
    assert Carried(Header("telemetry_t", 1, {"change": Fill.RTT_US}), PROGRAM, 1000).filled == [("rtt_us", 57, 7)]


def test_what_a_receiver_makes_of_headers_is_written() -> None:
    carried = Carried(TELEMETRY, PROGRAM, 1000)
    hop = layout_of(PROGRAM, "hop_t")
    data = bytes([0x23]) + carried.initial[5:8] + hop.pack({"queue": 7}) + hop.pack({"queue": 9}) + bytes(8)
    assert carried.write(carried.read(data)) == data
    said = carried.read(data)
    assert carried.read(carried.write(said._replace(sequence=9, hops=said.hops[:1], count=1))).hops == said.hops[:1]
    assert carried.place_returned("sequence") == (8, 16)
    with pytest.raises(ValueError, match="no field 'profile'"):
        carried.place_returned("profile")


@given(st.binary(max_size=80))
def test_forged_bytes_are_read_or_none(data: bytes) -> None:
    said = Carried(TELEMETRY, PROGRAM, 1000).read(data)
    assert (said is None) == (len(data) < 4 or len(data) % 8 != 4)
    rate = Carried(Header("rate_t", 1), PROGRAM, 1000).read(data)
    assert (rate is None) == (len(data) != 12)


def test_an_algorithm_sets_fields_by_name() -> None:
    carried = Carried(TELEMETRY, PROGRAM, 1000)
    assert carried.places({"kind": 5, "change": -1}) == [(36, 4, 5), (56, 8, 255)]
    for bad in ({"kind": 16}, {"kind": 1.0}, {"change": 128}, {"none": 0}, {"length": 3}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            carried.places(bad)


@pytest.mark.parametrize(
    ("header", "packet_bytes", "what"),
    [
        (Header("rate", 1), 1000, "has no header type 'rate'; it has telemetry_t, hop_t, "),
        (Header("late_t", 1), 1000, "must begin with bit<16> profile; bit<16> length"),
        (Header("options_t", 1), 1000, "field options has no fixed length"),
        (Header("short_t", 1), 1000, "6 bytes with its hops: must be whole words"),
        (Header("rate_t", 1 << 16), 1000, r"rate_t\.profile = 65536: bit<16> holds 0 to 65535"),
        (Header("rate_t", 1, {"rate": 1}), 1000, "no field 'rate'; it has profile, length, rate_bps, rtt_us"),
        (Header("rate_t", 1, {"length": 1}), 1000, r"Header\.values sets length"),
        (Header("rate_t", 1, hops="short_t"), 1000, "0 header stacks of short_t"),
        (Header("rate_t", 1, returned=("rtt_us", "rate_bps")), 1000, "in the layout's order without a gap"),
        (Header("telemetry_t", 1, returned=("sequence",), hops="hop_t"), 1000, "hops come back behind the last field, change"),
        (Header("telemetry_t", 1, returned=("kind", "sequence", "change"), hops="hop_t"), 1000, "must begin at a byte"),
        (Header("telemetry_t", 1, hops="hop_t", hop_count="hops"), 1000, "no field 'hops'"),
        (Header("telemetry_t", 1, returned=("change",), hops="hop_t", hop_count="count"), 1000, "with the field that counts them, count"),
        (Header("rate_t", 1, {"rate_bps": 1e6}), 1000, r"rate_t\.rate_bps = 1000000\.0: must be an integer"),
        (Header("rate_t", 1), 71, "no room for the header rate_t: 72 bytes or more"),
    ],
)
def test_what_cannot_be_carried_is_refused(header: Header, packet_bytes: int, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        Carried(header, PROGRAM, packet_bytes)


def test_names_that_python_cannot_have_are_refused() -> None:
    with pytest.raises(ValueError, match="a field's name cannot be used in Python"):
        Layout("x_t", [Field("class", 8)])


def test_files_of_before_are_refused_with_the_new_name() -> None:
    with pytest.raises(ImportError, match=r'Explicit is gone: write Interests\(scheme="rcp"'):
        exec("from fairlane.hosts.algorithms.base import Explicit")


def test_kinds_without_a_header_carry_none() -> None:
    nothing: dict[str, Any] = {}
    for kind in (*ALGORITHMS, "tcp-cubic", "none"):
        if header_of(kind) is None:
            assert carried_of(kind, nothing, 1000) is None
    assert {kind for kind in ALGORITHMS if header_of(kind)} >= {"rcp", "xcp"}

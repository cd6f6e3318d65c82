"""RTP, RTCP, ALSF: parse(emit(x)) == x, and no bytes raise anything but `MalformedPacket`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts.wire.alsf import Alsf, find_alsf, parse_alsf, rate_field, utilisation_field
from hosts.wire.errors import MalformedPacket
from hosts.wire.ntp import dlsr_units, middle_32, ntp_from_unix, round_trip_s
from hosts.wire.rtcp import (
    App,
    Bye,
    ReceiverReport,
    ReportBlock,
    SdesChunk,
    SenderReport,
    SourceDescription,
    UnknownPacket,
    emit_compound,
    parse_compound,
    split_compound,
)
from hosts.wire.rtp import RtpPacket, RtpView, parse_rtp


def bits(n: int) -> st.SearchStrategy[int]:
    return st.integers(0, (1 << n) - 1)


def words(most: int) -> st.SearchStrategy[bytes]:
    return st.integers(0, most).flatmap(lambda n: st.binary(min_size=4 * n, max_size=4 * n))


BLOCKS = st.lists(
    st.builds(ReportBlock, bits(32), bits(8), st.integers(-0x800000, 0x7FFFFF), bits(32), bits(32), bits(32), bits(32)),
    max_size=31,
).map(tuple)
SENDER_REPORTS = st.builds(SenderReport, bits(32), bits(64), bits(32), bits(32), bits(32), BLOCKS, words(4))
RECEIVER_REPORTS = st.builds(ReceiverReport, bits(32), BLOCKS, words(4))
CHUNKS = st.builds(
    SdesChunk, bits(32), st.lists(st.tuples(st.integers(1, 255), st.binary(max_size=255)), max_size=5).map(tuple)
)
DESCRIPTIONS = st.builds(SourceDescription, st.lists(CHUNKS, max_size=4).map(tuple))
BYES = st.builds(Bye, st.lists(bits(32), max_size=31).map(tuple), st.none() | st.binary(max_size=255))
APPS = st.builds(App, bits(5), bits(32), st.binary(min_size=4, max_size=4), words(20))
UNKNOWN = st.builds(UnknownPacket, st.integers(0, 255).filter(lambda t: not 200 <= t <= 204), bits(5), words(8))
COMPOUNDS = st.tuples(
    SENDER_REPORTS | RECEIVER_REPORTS,
    st.lists(SENDER_REPORTS | RECEIVER_REPORTS | DESCRIPTIONS | BYES | APPS | UNKNOWN, max_size=4),
).map(lambda x: (x[0], *x[1]))
ALSFS = st.one_of(
    st.builds(Alsf, st.just(True), bits(32), bits(64), bits(32), st.lists(st.tuples(bits(32), bits(64)), max_size=6).map(tuple)),
    st.builds(Alsf, st.just(False), bits(32), bits(64), bits(32)),
)
RTP = st.builds(
    RtpPacket,
    bits(7),
    bits(16),
    bits(32),
    bits(32),
    st.binary(max_size=64),
    st.booleans(),
    st.lists(bits(32), max_size=15).map(tuple),
    st.none() | st.tuples(bits(16), words(4)),
    bits(8),
)

EXAMPLE = emit_compound(
    [
        SenderReport(0x11223344, 0xE0000000_80000000, 90_000, 17, 16_320),
        SourceDescription((SdesChunk(0x11223344, ((1, b"als@10.0.0.1"), (6, b"fairlane"))),)),
        Alsf(True, 0x11223344, 10_000_000, 0, ((0xE0000001, 90_000),)).to_app(),
        Bye((0x11223344,), b"done"),
    ]
)


@given(COMPOUNDS, st.sampled_from([0, 4, 8, 252]))
def test_compound_round_trip(packets: tuple, padding: int) -> None:
    payload = emit_compound(packets, padding)
    assert parse_compound(payload) == packets
    assert split_compound(payload)[1] == padding


@given(RTP)
def test_rtp_round_trip(packet: RtpPacket) -> None:
    data = packet.emit()
    assert parse_rtp(data) == packet
    view = RtpView(data + b"beyond", len(data))
    assert (view.sequence, view.timestamp, view.ssrc) == (packet.sequence, packet.timestamp, packet.ssrc)
    assert (view.marker, view.payload_type) == (packet.marker, packet.payload_type)
    assert data[view.payload_start : view.payload_end] == packet.payload


@given(ALSFS)
def test_alsf_round_trip(said: Alsf) -> None:
    app = said.to_app()
    assert parse_alsf(app) == said
    assert app.emit()[2:4] == (5 + 3 * len(said.layers)).to_bytes(2)  # docs/architecture.md: words minus one
    assert find_alsf((ReceiverReport(1), app), said.from_sender) == said
    assert find_alsf((ReceiverReport(1), app), not said.from_sender) is None


def test_alsf_bytes_are_those_of_the_architecture() -> None:
    """Field by field as docs/architecture.md, "ALS on the wire", lays them out."""
    app = Alsf(True, 0x01020304, 0x1122334455667788, 930_000, ((0xE0000107, 90_000),)).to_app().emit()
    assert app == bytes.fromhex(
        "80 cc 0008 01020304 414c5346 1122334455667788 000e30d0 e0000107 0000000000015f90".replace(" ", "")
    )
    assert Alsf(False, 1, 2, 3).to_app().emit() == bytes.fromhex("81cc0005 00000001 414c5346 0000000000000002 00000003")


@given(st.binary(max_size=200))
def test_any_bytes_parse_or_are_malformed(data: bytes) -> None:
    for parser in (parse_compound, parse_rtp):
        try:
            parser(data)
        except MalformedPacket as error:
            assert 0 <= error.offset <= len(data)
            assert str(error) == f"byte {error.offset}: {error.reason}"


@given(COMPOUNDS, st.data())
def test_damaged_compounds_parse_or_are_malformed(packets: tuple, data: st.DataObject) -> None:
    payload = bytearray(emit_compound(packets))
    for _ in range(data.draw(st.integers(1, 4))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    try:
        find_alsf(parse_compound(payload), True)
    except MalformedPacket as error:
        assert 0 <= error.offset <= len(payload)


@pytest.mark.parametrize("size", range(len(EXAMPLE)))
def test_compound_truncated_at_every_byte(size: int) -> None:
    """An end between two packets of the compound leaves a shorter compound; any other is an error that says where."""
    boundaries = [view.offset for view in split_compound(EXAMPLE)[0]][1:]
    if size in boundaries:
        assert len(parse_compound(EXAMPLE[:size])) == boundaries.index(size) + 1
    else:
        with pytest.raises(MalformedPacket) as caught:
            parse_compound(EXAMPLE[:size])
        assert caught.value.offset <= size
        assert "truncated" in caught.value.reason or "ends at byte" in caught.value.reason


def test_rtp_truncated_at_every_byte() -> None:
    data = RtpPacket(96, 1, 2, 3, b"", False, (4, 5), (0xBEDE, b"12345678"), 4).emit()
    for size in range(len(data)):
        with pytest.raises(MalformedPacket):
            parse_rtp(data[:size])


@pytest.mark.parametrize(
    ("hexadecimal", "message"),
    [
        ("", "byte 0: RTCP header truncated: 0 of 4 bytes"),
        ("80c800", "byte 0: RTCP header truncated: 3 of 4 bytes"),
        ("40c90001 00000001", "byte 0: RTCP version 1, must be 2"),
        ("80ca0000", "byte 1: compound starts with packet type 202, must be 200 or 201"),
        ("80c90002 00000001", "byte 2: length of 3 words ends at byte 12 of 8"),
        ("81c90001 00000001", "byte 2: receiver report with 1 report blocks needs 28 bytes after its header, has 4"),
        ("a0c90001 00000001 80c90001 00000001", "byte 0: padding on a packet that is not the last of the compound"),
        ("a0c90001 00000003", "byte 7: padding count 3 in a packet of 8 bytes"),
        ("80c90001 00000001 81ca0001 00000002", "byte 16: SDES chunk without the null that ends its items"),
        ("80c90001 00000001 81ca0002 00000002 01ff4142", "byte 16: SDES item of type 1 runs past the packet's end"),
        ("80c90001 00000001 82ca0002 00000002 00000000", "byte 20: SDES chunk 2 of 2 is missing"),
        ("80c90001 00000001 80ca0001 00000000", "byte 12: 4 bytes after the last of 0 SDES chunks"),
        ("80c90001 00000001 82cb0001 00000002", "byte 10: BYE with 2 sources needs 8 bytes after its header, has 4"),
        ("80c90001 00000001 80cb0001 ff414243", "byte 12: BYE reason of 255 bytes runs past the packet's end"),
        ("80c90001 00000001 80cc0001 00000001", "byte 10: APP packet needs 8 bytes after its header, has 4"),
    ],
)
def test_malformed_compounds_say_where_and_why(hexadecimal: str, message: str) -> None:
    with pytest.raises(MalformedPacket) as caught:
        parse_compound(bytes.fromhex(hexadecimal))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("hexadecimal", "message"),
    [
        ("8060", "byte 2: RTP header truncated: 2 of 12 bytes"),
        ("40600001 00000000 00000000", "byte 0: RTP version 1, must be 2"),
        ("82600001 00000000 00000000 00000000", "byte 12: CSRC list of 2 ends at byte 20 of 16"),
        ("90600001 00000000 00000000 0000", "byte 12: extension header truncated: 2 of 4 bytes"),
        ("90600001 00000000 00000000 00000001", "byte 14: extension of 1 words ends beyond byte 16"),
        ("a0600001 00000000 00000000 00000005", "byte 15: padding count 5 where 4 bytes follow the header"),
    ],
)
def test_malformed_rtp_says_where_and_why(hexadecimal: str, message: str) -> None:
    with pytest.raises(MalformedPacket) as caught:
        parse_rtp(bytes.fromhex(hexadecimal))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "app",
    [
        App(0, 1, b"ALSF", b"\0" * 8),
        App(0, 1, b"ALSF", b"\0" * 16),
        App(1, 1, b"ALSF", b"\0" * 24),
        App(2, 1, b"ALSF", b"\0" * 12),
        App(0, 1, b"ALSX", b"\0" * 12),
    ],
)
def test_malformed_alsf_is_ignored(app: App) -> None:
    """"A receiver or switch that knows nothing of ALSF must be able to ignore it"; a broken one is ignored too."""
    with pytest.raises(MalformedPacket):
        parse_alsf(app)
    assert find_alsf((ReceiverReport(1), app), True) is None
    assert find_alsf((ReceiverReport(1), app), False) is None


@pytest.mark.parametrize(
    "packet",
    [
        ReportBlock(1, 256, 0, 0, 0, 0, 0),
        ReportBlock(1, 0, 0x800000, 0, 0, 0, 0),
        SenderReport(1 << 32, 0, 0, 0, 0),
        ReceiverReport(1, (ReportBlock(1, 0, 0, 0, 0, 0, 0),) * 32),
        SdesChunk(1, ((0, b""),)),
        SdesChunk(1, ((1, bytes(256)),)),
        Bye((1,), bytes(256)),
        App(32, 1, b"ALSF"),
        App(0, 1, b"ALS"),
        App(0, 1, b"ALSF", b"123"),
        RtpPacket(128, 0, 0, 0),
        RtpPacket(0, 65536, 0, 0),
        RtpPacket(0, 0, 0, 0, csrcs=(0,) * 16),
        RtpPacket(0, 0, 0, 0, extension=(0, b"123")),
        RtpPacket(0, 0, 0, 0, padding_bytes=256),
    ],
)
def test_values_that_do_not_fit_are_refused(packet: object) -> None:
    with pytest.raises(ValueError):
        packet.emit()


def test_alsf_values_that_do_not_fit_are_refused() -> None:
    for said in (Alsf(True, 1, 1 << 64, 0), Alsf(True, 1, 0, 1 << 32), Alsf(False, 1, 0, 0, ((1, 1),)), Alsf(True, 1, -1, 0)):
        with pytest.raises(ValueError):
            said.to_app()


@given(st.floats(0, 1e30), st.floats(0, 1e6))
def test_fields_hold_any_rate_and_utilisation(rate_bps: float, utilisation: float) -> None:
    assert 0 <= rate_field(rate_bps) < 1 << 64
    assert 0 <= utilisation_field(utilisation) < 1 << 32
    if utilisation < 4000:
        assert abs(utilisation_field(utilisation) * 1e-6 - utilisation) <= 0.5e-6 + 1e-12


def test_ntp_of_known_instants() -> None:
    """Unix 0 is 2208988800 s after the NTP epoch; half a second is 0x80000000 (RFC 3550 section 4)."""
    assert ntp_from_unix(0.5) == 2_208_988_800 << 32 | 0x80000000
    assert middle_32(0x1122334455667788) == 0x33445566


def test_round_trip_of_the_rfc_example() -> None:
    """RFC 3550 figure 2: A = 0xb710:8000, LSR = 0xb705:2000, DLSR = 0x0005.4000 -> 6.125 s."""
    assert round_trip_s(0xB7108000 << 16, 0xB7052000, 0x00054000) == 6.125


def test_round_trip_of_nonsense_is_none() -> None:
    assert round_trip_s(ntp_from_unix(1e9), 0, 0) is None
    now = ntp_from_unix(1e9)
    assert round_trip_s(now, middle_32(now), 1) is None


@given(st.floats(0, 2e9), st.floats(0, 30_000), st.floats(0, 2))
def test_round_trip_recovers_the_delay(sent_unix_s: float, held_s: float, rtt_s: float) -> None:
    arrival = ntp_from_unix(sent_unix_s + held_s + rtt_s)
    measured = round_trip_s(arrival, middle_32(ntp_from_unix(sent_unix_s)), dlsr_units(held_s))
    if measured is not None:  # LSR = 0 by chance, or 15 us of rounding below 0
        assert measured == pytest.approx(rtt_s, abs=5e-5)
    else:
        assert rtt_s < 5e-5 or middle_32(ntp_from_unix(sent_unix_s)) == 0

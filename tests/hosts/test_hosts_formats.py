"""Our headers: codecs, page, dissector and scapy layers against the one description; malformed bytes."""

from __future__ import annotations

import importlib.util
import random
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hosts
from hosts.wire.acks import AckPacket, parse_ack
from hosts.wire.alsf import Alsf, parse_alsf
from hosts.wire.errors import MalformedPacket
from hosts.wire.formats import Format, formats_of
from hosts.wire.reports import ReportBook, ReportPacket, loss_event_rate_field, parse_report
from hosts.wire.stamp import Stamp, parse_stamp, rtt_field

ROOT = Path(hosts.__file__).parent.parent
DESCRIPTION = tomllib.loads((ROOT / "hosts/wire/formats.toml").read_text())
FORMATS = formats_of(DESCRIPTION)


def described(form: Format, data: bytes) -> dict[str, int]:
    """The fields of `data` by the description alone: the bits of one long number."""
    number, bits = int.from_bytes(data), 8 * len(data)
    return {f.name: number >> bits - f.offset_bits - f.bits & (1 << f.bits) - 1 for f in form.fields if f.offset_bits + f.bits <= bits}


def bits(count: int) -> st.SearchStrategy[int]:
    return st.one_of(st.integers(0, (1 << count) - 1), st.sampled_from([0, 1, (1 << count) - 1]))


ACKS = st.builds(AckPacket, bits(48), bits(32))
REPORTS = st.builds(ReportPacket, bits(48), bits(64), bits(32), bits(64), st.none() | bits(32), bits(32), bits(32), bits(32))
STAMPS = st.builds(Stamp, bits(64), bits(64), st.none() | bits(32)) | st.builds(Stamp, bits(64), bits(64), bits(32), bits(64))
ALSFS = st.builds(Alsf, st.just(True), bits(32), bits(64), bits(32), st.lists(st.tuples(bits(32), bits(64)), max_size=4).map(tuple))


@given(ACKS)
def test_acks_are_as_described(ack: AckPacket) -> None:
    data = ack.emit()
    assert len(data) == FORMATS["ack"].bytes == 12
    assert described(FORMATS["ack"], data) == {"version": 1, "type": 1, "flags": 0, "sequence": ack.sequence, "history": ack.history}
    assert parse_ack(data) == ack


@given(REPORTS)
def test_reports_are_as_described(report: ReportPacket) -> None:
    data = report.emit()
    assert len(data) == FORMATS["report"].bytes == 44
    rate = report.loss_event_rate_ppb
    expected = {f.name: getattr(report, f.name, f.value) for f in FORMATS["report"].fields}
    assert described(FORMATS["report"], data) == {**expected, "flags": int(rate is not None), "loss_event_rate": rate or 0}
    assert parse_report(data) == report


@given(STAMPS)
def test_stamps_are_as_described(stamp: Stamp) -> None:
    data = stamp.emit()
    assert len(data) in (FORMATS["stamp"].least_bytes, 20, FORMATS["stamp"].bytes)
    fields = {f.name: getattr(stamp, f.name) for f in FORMATS["stamp"].fields}
    assert described(FORMATS["stamp"], data) == {name: value for name, value in fields.items() if value is not None}
    assert parse_stamp(data) == stamp
    assert parse_stamp(data + bytes(900)).sequence == stamp.sequence


@given(ALSFS)
def test_alsf_is_as_described(alsf: Alsf) -> None:
    app = alsf.to_app()
    pair, rest = app.data[: FORMATS["alsf"].bytes], app.data[FORMATS["alsf"].bytes :]
    assert described(FORMATS["alsf"], pair) == {"desired_rate_bps": alsf.desired_rate_bps, "utilisation": alsf.utilisation_ppm}
    size = FORMATS["alsf_layer"].bytes
    layers = [described(FORMATS["alsf_layer"], rest[at : at + size]) for at in range(0, len(rest), size)]
    assert [(x["address"], x["rate_bps"]) for x in layers] == list(alsf.layers)
    assert parse_alsf(app) == alsf


def test_the_bytes_by_hand() -> None:
    """The same bytes as the test of the virtual network's codec: `switch/virtual/src/flow/report.rs`."""
    assert AckPacket(0x0102_0304_0506, 0x1112_1314).emit().hex() == "1100010203040506" + "11121314"
    report = ReportPacket(
        highest_sequence=0x0102_0304_0506,
        echo_ns=0x1112_1314_1516_1718,
        delay_us=0x2122_2324,
        receive_rate_bps=0x3132_3334_3536_3738,
        loss_event_rate_ppb=0x4142_4344,
        expected_packets=0x5152_5354,
        lost_packets=0x6162_6364,
        reporter=0x7172_7374,
    )
    assert report.emit().hex() == "1201010203040506111213141516171821222324313233343536373841424344515253546162636471727374"


PARSERS = {"ack": (parse_ack, ACKS), "report": (parse_report, REPORTS), "stamp": (parse_stamp, STAMPS)}


@pytest.mark.parametrize("name", PARSERS)
@given(data=st.data())
def test_any_bytes_parse_or_are_malformed(name: str, data: st.DataObject) -> None:
    """Never another exception; what parses is emitted again as the same bytes, undefined flags apart."""
    parse, packets = PARSERS[name]
    flipped = bytearray(data.draw(packets).emit())
    for at in data.draw(st.lists(st.integers(0, 8 * len(flipped) - 1), max_size=3)):
        flipped[at // 8] ^= 1 << at % 8
    for raw in (data.draw(st.binary(max_size=64)), bytes(flipped)):
        try:
            packet = parse(raw)
        except MalformedPacket as error:
            assert 0 <= error.offset <= len(raw) and error.reason
        else:
            assert parse(packet.emit()) == packet


@pytest.mark.parametrize("name", ["ack", "report"])
@given(data=st.data())
def test_every_truncation_is_malformed(name: str, data: st.DataObject) -> None:
    parse, packets = PARSERS[name]
    whole = data.draw(packets).emit()
    for size in range(len(whole)):
        with pytest.raises(MalformedPacket) as caught:
            parse(whole[:size])
        assert caught.value.offset == size
    with pytest.raises(MalformedPacket, match="bytes, must be"):
        parse(whole + b"\0")


def test_every_truncation_of_a_stamp() -> None:
    whole = Stamp(7, 8, 9).emit()
    for size in range(len(whole)):
        if size < 16:
            with pytest.raises(MalformedPacket, match=f"byte {size}: stamp truncated: {size} of 16 bytes"):
                parse_stamp(whole[:size])
        else:
            assert parse_stamp(whole[:size]) == Stamp(7, 8)
    assert parse_stamp(Stamp(7, 8, 9, 10).emit()[:-1]) == Stamp(7, 8, 9)
    with pytest.raises(ValueError, match="produced_ns follows rtt_us, which is missing"):
        Stamp(7, 8, None, 9).emit()


def test_another_version_or_type_is_named() -> None:
    for raw, reason in ((b"\x21" + bytes(11), "acknowledgement version 2, must be 1"), (b"\x13" + bytes(11), "type 3, must be 1")):
        with pytest.raises(MalformedPacket) as caught:
            parse_ack(raw)
        assert (caught.value.offset, caught.value.reason) == (0, reason)
    with pytest.raises(MalformedPacket, match="type 1, must be 2"):
        parse_report(b"\x11" + bytes(43))


def test_flags_that_are_not_defined_are_not_looked_at() -> None:
    ack = bytearray(AckPacket(5, 6).emit())
    ack[1] = 0xFF
    assert parse_ack(bytes(ack)) == AckPacket(5, 6)
    report = bytearray(ReportPacket(1, 2, 3, 4, None, 5, 6, 7).emit())
    report[1] = 0xFE
    assert parse_report(bytes(report)).loss_event_rate is None


@pytest.mark.parametrize("field, value", [("sequence", 1 << 48), ("sequence", -1), ("history", 1 << 32)])
def test_what_does_not_fit_an_ack_is_refused(field: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"{field} = {value}"):
        AckPacket(**{"sequence": 1, "history": 1, field: value}).emit()


@pytest.mark.parametrize("field, width", [("highest_sequence", 48), ("echo_ns", 64), ("loss_event_rate_ppb", 32), ("reporter", 32)])
def test_what_does_not_fit_a_report_is_refused(field: str, width: int) -> None:
    values = dict(highest_sequence=0, echo_ns=0, delay_us=0, receive_rate_bps=0, loss_event_rate_ppb=0, expected_packets=0,
                  lost_packets=0, reporter=0)  # fmt: skip
    with pytest.raises(ValueError, match=f"{field} = {1 << width}: does not fit {width} bits"):
        ReportPacket(**{**values, field: 1 << width}).emit()


def test_values_of_fields() -> None:
    nan = float("nan")
    assert [loss_event_rate_field(p) for p in (None, 0.0, 0.25, 1.0, 7.0, -1.0, nan)] == [None, 0, 250_000_000, 10**9, 10**9, 0, 0]
    assert [rtt_field(s) for s in (0.0, 1e-9, 0.1, 1e9, -1.0, nan, float("inf"))] == [1, 1, 100_000, 4_294_000_000, 1, 1, 4_294_000_000]
    assert ReportPacket(0, 0, 0, 0, None, 0, 9, 0).loss_fraction == 0.0
    assert ReportPacket(0, 0, 0, 0, 5 * 10**8, 4, 9, 0).loss_fraction == 1.0
    assert ReportPacket(0, 0, 0, 0, 5 * 10**8, 4, 1, 0).loss_event_rate == 0.5


def test_intervals_of_reports_by_hand() -> None:
    """Nine packets of 1000 bytes in a second after the first, one of eleven lost; then nothing; then five in half a second."""
    book = ReportBook()
    book.begin(1.0, 1000)
    assert book.close(2.0, 10_000, 11, 10) == (72_000, 11, 1)
    assert book.close(2.0, 10_000, 11, 10) == (0, 0, 0)
    assert book.close(2.5, 15_000, 16, 15) == (80_000, 5, 0)
    assert book.close(3.5, 17_000, 16, 17) == (16_000, 0, 0)  # duplicates are no negative loss


# --------------------------------------------------------------------------------------------------- what is made of the description


def tool():
    spec = importlib.util.spec_from_file_location("wire_formats", ROOT / "tools/wire_formats.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_page_and_dissector_are_up_to_date(capsys: pytest.CaptureFixture) -> None:
    assert tool().main(["--check"]) == 0, capsys.readouterr().err


def test_the_page_draws_headers_to_the_bit() -> None:
    assert tool().picture(FORMATS["ack"]).splitlines() == [
        " 0                   1                   2                   3",
        " 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1",
        "+-------+-------+---------------+-------------------------------+",
        "|version|  type |     flags     |            sequence           |",
        "+-------+-------+---------------+-------------------------------+",
        "|                              ...                              |",
        "+---------------------------------------------------------------+",
        "|                            history                            |",
        "+---------------------------------------------------------------+",
    ]


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda f: f[0].update(bits=3), "x: 15 bits are not whole bytes"),
        (lambda f: f[0].update(value=16), "x.a: value = 16 does not fit 4 bits"),
        (lambda f: f[0].update(bits=0), "x.a: bits = 0, must be 1 to 64"),
        (lambda f: f[1].update(name="a"), "x.a: named twice"),
        (lambda f: f[0].update(colour="red"), r"x.a: missing \[\], unknown \['colour'\]"),
        (lambda f: f[0].update(flags=[{"bit": 4, "name": "n", "meaning": "m"}]), "x.a: a flag lies outside"),
        (lambda f: f[1].update(optional=True), "x.b: optional, but does not start at a byte"),
    ],
)
def test_a_description_with_a_mistake_is_refused(change, message: str) -> None:
    fields = [{"name": "a", "bits": 4, "meaning": "m"}, {"name": "b", "bits": 12, "meaning": "m"}]
    table = {"title": "t", "place": "p", "summary": "s", "fields": fields}
    assert formats_of({"x": table})["x"].bytes == 2
    change(fields)
    with pytest.raises(ValueError, match=message):
        formats_of({"x": table})


def test_scapy_reads_what_we_write_and_writes_what_we_read() -> None:
    layers = pytest.importorskip("fairlane.scapy_layers", reason="scapy is not installed", exc_type=ImportError)
    rng = random.Random(8)
    for _ in range(50):
        ack = AckPacket(rng.getrandbits(48), rng.getrandbits(32))
        report = ReportPacket(*(rng.getrandbits(n) for n in (48, 64, 32, 64, 32, 32, 32, 32)))
        stamp = Stamp(*(rng.getrandbits(n) for n in (64, 64, 32, 64)[: rng.randrange(2, 5)]))
        for ours, theirs, name in (
            (ack, layers.Ack, "ack"),
            (report, layers.Report, "report"),
            (stamp, layers.Stamp, "stamp"),
        ):
            data = ours.emit()
            read = theirs(data)
            fields = described(FORMATS[name], data)
            assert {f.name: getattr(read, f.name) for f in FORMATS[name].fields if f.name in fields} == fields
            assert bytes(read) == data and bytes(theirs(**fields)) == data
        alsf = Alsf(True, 1, rng.getrandbits(64), rng.getrandbits(32), ((0xEF010001, 5), (0xEF010002, rng.getrandbits(64))))
        read = layers.Alsf(alsf.to_app().data)
        assert (read.desired_rate_bps, read.utilisation) == (alsf.desired_rate_bps, alsf.utilisation_ppm)
        assert [(x.address, x.rate_bps) for x in read.layer_list] == [("239.1.0.1", 5), ("239.1.0.2", alsf.layers[1][1])]
        assert bytes(read) == alsf.to_app().data

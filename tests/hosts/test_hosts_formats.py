"""Our headers: codecs, page, dissector and scapy layers against the one description; malformed bytes."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane import hosts, specs
from fairlane.hosts.wire.formats import Format, formats_of
from fairlane.inputs.located_toml import tomllib

native = pytest.importorskip("fairlane.native", reason="the module fairlane.native is not built: make build")

ROOT = Path(hosts.__file__).resolve().parent.parent
DESCRIPTION = tomllib.loads((ROOT / "hosts/wire/formats.toml").read_text())
FORMATS = formats_of(DESCRIPTION)


def described(form: Format, data: bytes) -> dict[str, int]:
    """The fields of `data` by the description alone: the bits of one long number."""
    number, bits = int.from_bytes(data, "big"), 8 * len(data)
    return {f.name: number >> bits - f.offset_bits - f.bits & (1 << f.bits) - 1 for f in form.fields if f.offset_bits + f.bits <= bits}


def bits(count: int) -> st.SearchStrategy[int]:
    return st.one_of(st.integers(0, (1 << count) - 1), st.sampled_from([0, 1, (1 << count) - 1]))


# What a header of RCP's or XCP's brings back has 8 bytes; of other headers any number of words.
ACKS = st.tuples(
    bits(48), bits(32), bits(2), st.just((None, b"")) | st.tuples(bits(64), st.just(b"") | st.binary(min_size=8, max_size=8))
).map(lambda drawn: dict(zip(("sequence", "history", "ecn", "arrived_ns", "header"), (*drawn[:3], *drawn[3]))))
REPORTS = st.fixed_dictionaries({
    "highest_sequence": bits(48), "echo_ns": bits(64), "delay_us": bits(32), "receive_rate_bps": bits(64),
    "loss_event_rate": st.none() | bits(32), "expected_packets": bits(32), "lost_packets": bits(32), "reporter": bits(32),
})  # fmt: skip
RTTS = st.none() | st.integers(1, (1 << 32) - 1)
STAMPS = st.fixed_dictionaries({"sent_ns": bits(64), "sequence": bits(64), "rtt_us": RTTS, "produced_ns": st.none() | bits(64)})
ALSFS = st.tuples(bits(32), bits(64), bits(32), st.lists(st.tuples(bits(32), bits(64)), max_size=4))


@given(ACKS)
def test_acks_are_as_described(ack: dict[str, Any]) -> None:
    data = native.emit_ack(**ack)
    assert (FORMATS["ack"].least_bytes, FORMATS["ack"].bytes) == (12, 28)
    assert len(data) == 12 + 8 * (ack["arrived_ns"] is not None) + len(ack["header"])
    rate = {"rate_bps": int.from_bytes(ack["header"], "big")} if ack["header"] else {}
    there = {name: value for name, value in ack.items() if value is not None and name != "header"}
    assert described(FORMATS["ack"], data) == {"version": 1, "type": 1, "flags": 0, **there, **rate}
    assert native.parse_ack(data) == ack


@given(REPORTS)
def test_reports_are_as_described(report: dict[str, int | None]) -> None:
    data = native.emit_report(specs.Report(**report))
    assert len(data) == FORMATS["report"].bytes == 44
    rate = report["loss_event_rate"]
    fixed = {"version": 1, "type": 2, "flags": int(rate is not None)}
    assert described(FORMATS["report"], data) == {**fixed, **report, "loss_event_rate": rate or 0}
    assert native.parse_report(data) == {**report, "header": b""}
    # What packets' own headers bring back follows.
    longer = native.emit_report(specs.Report(**report, header=b"abcdefgh"))
    assert longer == data + b"abcdefgh" and native.parse_report(longer) == {**report, "header": b"abcdefgh"}


@given(STAMPS)
def test_stamps_are_as_described(stamp: dict[str, int | None]) -> None:
    data = native.emit_stamp(**stamp)
    assert len(data) in (FORMATS["stamp"].least_bytes, 20, FORMATS["stamp"].bytes)
    there = described(FORMATS["stamp"], data)
    assert there == {name: stamp[name] or 0 for name in there}
    media = stamp["produced_ns"] is not None
    assert native.parse_stamp(data, media) == stamp
    assert native.parse_stamp(data + bytes(900), media) == stamp


@given(ALSFS)
def test_alsf_is_as_described(alsf: tuple) -> None:
    compound = native.emit_rtcp(specs.Compound(1, from_sender=alsf))
    data = compound[compound.index(b"ALSF") + 4 :]
    pair, rest = data[: FORMATS["alsf"].bytes], data[FORMATS["alsf"].bytes :]
    assert described(FORMATS["alsf"], pair) == {"desired_rate_bps": alsf[1], "utilisation": alsf[2]}
    size = FORMATS["alsf_layer"].bytes
    layers = [described(FORMATS["alsf_layer"], rest[at : at + size]) for at in range(0, len(rest), size)]
    assert [(x["address"], x["rate_bps"]) for x in layers] == alsf[3]
    assert native.parse_rtcp(compound)["from_sender"] == alsf


def test_alsf_bytes_are_those_of_the_architecture() -> None:
    """docs/architecture.md, "ALS on the wire"; [RFC 3550 sec 6.7]: APP 204, subtype 0 of a sender, length in words minus one."""
    compound = native.emit_rtcp(
        specs.Compound(5, sender=(0, 0, 0, 0), cname=b"c", from_sender=(5, 10_000_000, 500_000, [(0xEF010001, 64_000)]))
    )
    alsf = "80cc0008" + "00000005" + b"ALSF".hex() + "0000000000989680" + "0007a120" + "ef010001" + "000000000000fa00"
    assert compound.endswith(bytes.fromhex(alsf))


def test_the_bytes_by_hand() -> None:
    assert native.emit_ack(0x0102_0304_0506, 0x1112_1314).hex() == "1100010203040506" + "11121314"
    assert native.emit_ack(0x0102_0304_0506, 0x1112_1314, ecn=2).hex() == "1102010203040506" + "11121314"
    assert native.emit_ack(0x0102_0304_0506, 0x1112_1314, 0x2122_2324_2526_2728).hex() == "110001020304050611121314" + "2122232425262728"
    report = native.emit_report(
        specs.Report(
            highest_sequence=0x0102_0304_0506,
            echo_ns=0x1112_1314_1516_1718,
            delay_us=0x2122_2324,
            receive_rate_bps=0x3132_3334_3536_3738,
            loss_event_rate=0x4142_4344,
            expected_packets=0x5152_5354,
            lost_packets=0x6162_6364,
            reporter=0x7172_7374,
        )
    )
    assert report.hex() == "1201010203040506111213141516171821222324313233343536373841424344515253546162636471727374"


@pytest.mark.parametrize(
    ("parse", "emit", "packets"),
    [
        (native.parse_ack, native.emit_ack, ACKS),
        (native.parse_report, lambda **report: native.emit_report(specs.Report(**report)), REPORTS),
    ],
)
@given(data=st.data())
def test_what_is_cut_short_or_too_long_is_no_packet(parse, emit, packets, data: st.DataObject) -> None:
    whole = emit(**data.draw(packets))
    # An ack without its last fields is one, or with fewer words of a header.
    shorter = {12, 20, 24} if parse is native.parse_ack else set()
    assert all(parse(whole[:size]) is None for size in range(len(whole)) if size not in shorter) and parse(whole + b"\0") is None
    assert parse(bytes([whole[0] ^ 0x30]) + whole[1:]) is None  # another version
    assert parse(bytes([whole[0] ^ 0x03]) + whole[1:]) is None  # another type
    assert parse(whole[:1] + bytes([whole[1] ^ 0xFC]) + whole[2:]) == parse(whole)  # flags that are not defined


def test_every_truncation_of_a_stamp() -> None:
    whole = native.emit_stamp(7, 8, 9, 10)
    read = [native.parse_stamp(whole[:size], media=True) for size in range(len(whole) + 1)]
    assert read[:16] == [None] * 16
    assert [(s["rtt_us"], s["produced_ns"]) for s in read[16:]] == [(None, None)] * 4 + [(9, None)] * 8 + [(9, 10)]


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
        "+-------+-------+-----------+---+-------------------------------+",
        "|version|  type |   flags   |ecn|            sequence           |",
        "+-------+-------+-----------+---+-------------------------------+",
        "|                              ...                              |",
        "+---------------------------------------------------------------+",
        "|                            history                            |",
        "+---------------------------------------------------------------+",
        "|                           arrived_ns                          |",
        "+---------------------------------------------------------------+",
        "|                              ...                              |",
        "+---------------------------------------------------------------+",
        "|                            rate_bps                           |",
        "+---------------------------------------------------------------+",
        "|                              ...                              |",
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
        ack = native.emit_ack(rng.getrandbits(48), rng.getrandbits(32))
        names = (
            "highest_sequence",
            "echo_ns",
            "delay_us",
            "receive_rate_bps",
            "loss_event_rate",
            "expected_packets",
            "lost_packets",
            "reporter",
        )
        report = native.emit_report(specs.Report(**dict(zip(names, (rng.getrandbits(n) for n in (48, 64, 32, 64, 32, 32, 32, 32))))))
        stamp = native.emit_stamp(*(rng.getrandbits(n) for n in (64, 64, 32, 64)[: rng.randrange(2, 5)]))
        for data, theirs, name in ((ack, layers.Ack, "ack"), (report, layers.Report, "report"), (stamp, layers.Stamp, "stamp")):
            read = theirs(data)
            fields = described(FORMATS[name], data)
            assert {f.name: getattr(read, f.name) for f in FORMATS[name].fields if f.name in fields} == fields
            assert bytes(read) == data and bytes(theirs(**fields)) == data
        pair = (1, rng.getrandbits(64), rng.getrandbits(32), [(0xEF010001, 5), (0xEF010002, rng.getrandbits(64))])
        compound = native.emit_rtcp(specs.Compound(1, from_sender=pair))
        said = compound[compound.index(b"ALSF") + 4 :]
        read = layers.Alsf(said)
        assert (read.desired_rate_bps, read.utilisation) == pair[1:3]
        assert [(x.address, x.rate_bps) for x in read.layer_list] == [("239.1.0.1", 5), ("239.1.0.2", pair[3][1][1])]
        assert bytes(read) == said

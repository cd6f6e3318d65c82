"""IGMPv2 on the wire: what is parsed is what was built, and nothing else gets through or gets out but `IgmpError`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.controller import igmp
from fairlane.controller.igmp import IgmpError, Kind, Reason, build, checksum, parse

GROUP = 0xEF010001
HOST = 0x0A000201
MAC = 0x020000000001
groups = st.integers(0xE0000000, 0xEFFFFFFF)
messages = st.one_of(
    st.tuples(st.just(Kind.REPORT), groups, st.just(0.0)),
    st.tuples(st.just(Kind.LEAVE), groups, st.just(0.0)),
    st.tuples(st.just(Kind.QUERY), groups | st.just(0), st.integers(1, 255).map(lambda tenths: tenths / 10)),
)

# What Linux 6.18 sends for joining and leaving 239.1.0.1 with force_igmp_version=2.
LINUX_REPORT = bytes.fromhex("01005e010001e601e3d2e90f080046c00020000040000102e9140a000201ef010001940400001600fafcef010001")
LINUX_LEAVE = bytes.fromhex("01005e000002e601e3d2e90f080046c00020000040000102f8140a000201e0000002940400001700f9fcef010001")


@given(messages, st.integers(0, 2**32 - 1), st.integers(0, 2**48 - 1))
def test_what_is_built_is_parsed(message, source, src_mac):
    kind, group, response_s = message
    frame = build(kind, group, source, src_mac, response_s)
    assert len(frame) == 60
    found = parse(frame)
    assert (found.kind, found.group, found.source) == (kind, group, source)
    assert found.max_response_s == pytest.approx(response_s)


@given(messages, st.integers(0, 45))
def test_a_frame_cut_short_is_refused(message, length):
    frame = build(message[0], message[1], HOST, MAC, message[2])
    with pytest.raises(IgmpError) as refused:
        parse(frame[:length])
    assert refused.value.reason is Reason.TRUNCATED


@given(messages, st.data())
def test_a_flipped_bit_is_refused_or_lies_outside_the_packet_and_its_meaning(message, data):
    frame = bytearray(build(message[0], message[1], HOST, MAC, message[2]))
    bit = data.draw(st.integers(14 * 8, 46 * 8 - 1))
    frame[bit // 8] ^= 1 << bit % 8
    with pytest.raises(IgmpError):
        parse(bytes(frame))


@given(st.binary(max_size=120))
def test_any_bytes_are_a_message_or_refused(frame):
    try:
        parse(frame)
    except IgmpError:
        pass


@given(st.data())
def test_forged_headers_with_right_checksums_are_a_message_or_refused(data):
    packet = bytearray(data.draw(st.binary(min_size=20, max_size=100)))
    packet[0], packet[9] = 0x40 | data.draw(st.integers(0, 15)), 2
    packet[2:4] = data.draw(st.integers(0, len(packet) + 4)).to_bytes(2, "big")
    header = min((packet[0] & 15) * 4, len(packet))
    total = int.from_bytes(packet[2:4], "big")
    for at, low, high in ((10, 0, header), (header + 2, header, total)):
        if at + 2 <= min(high, len(packet)):
            packet[at : at + 2] = b"\0\0"
            packet[at : at + 2] = checksum(bytes(packet[low:high])).to_bytes(2, "big")
    try:
        message = parse(bytes(12) + b"\x08\x00" + bytes(packet))
    except IgmpError:
        return
    assert packet[8] == 1
    assert igmp.is_group(message.group) or message.kind is Kind.QUERY


@given(st.binary(max_size=63))
def test_the_checksum_over_itself_is_zero(data):
    data += bytes(len(data) % 2)
    assert checksum(data + checksum(data).to_bytes(2, "big")) == 0


def mended(frame: bytes) -> bytes:
    """With right checksums, whatever else was changed."""
    frame = bytearray(frame)
    header = (frame[14] & 15) * 4
    total = int.from_bytes(frame[16:18], "big")
    frame[24:26] = b"\0\0"
    frame[24:26] = checksum(bytes(frame[14 : 14 + header])).to_bytes(2, "big")
    at = 14 + header
    frame[at + 2 : at + 4] = b"\0\0"
    frame[at + 2 : at + 4] = checksum(bytes(frame[at : 14 + total])).to_bytes(2, "big")
    return bytes(frame)


REPORT = build(Kind.REPORT, GROUP, HOST, MAC)


def changed(at: int, value: str, frame: bytes = REPORT) -> bytes:
    new = bytes.fromhex(value)
    return mended(frame[:at] + new + frame[at + len(new) :])


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (changed(12, "86dd"), Reason.NOT_IGMP),
        (changed(23, "11"), Reason.NOT_IGMP),
        (changed(20, "2000"), Reason.FRAGMENT),
        (changed(20, "0001"), Reason.FRAGMENT),
        (changed(22, "40"), Reason.OFF_LINK),
        (changed(34, "01010101"), Reason.NO_ROUTER_ALERT),
        (changed(34, "07ff0000"), Reason.NO_ROUTER_ALERT),
        (changed(38, "12"), Reason.OTHER_VERSION),
        (changed(38, "22"), Reason.OTHER_VERSION),
        (changed(42, "0a000001"), Reason.NOT_A_GROUP),
        (changed(42, "ef010002"), Reason.WRONG_DESTINATION),
        (changed(39, "00", build(Kind.QUERY, 0, 0, MAC, 10)), Reason.OTHER_VERSION),
        (REPORT[:40] + b"\0\0" + REPORT[42:], Reason.CHECKSUM),
        (REPORT[:24] + b"\0\0" + REPORT[26:], Reason.CHECKSUM),
    ],
    ids=lambda value: value.name if isinstance(value, Reason) else "",
)
def test_each_reason(frame, reason):
    with pytest.raises(IgmpError) as refused:
        parse(frame)
    assert refused.value.reason is reason


def test_messages_as_linux_sends_them():
    assert parse(LINUX_REPORT) == igmp.Message(Kind.REPORT, GROUP, HOST)
    assert parse(LINUX_LEAVE) == igmp.Message(Kind.LEAVE, GROUP, HOST)
    # Ours differ in padding and in the identification field and flags alone.
    for frame, kind in ((LINUX_REPORT, Kind.REPORT), (LINUX_LEAVE, Kind.LEAVE)):
        ours = build(kind, GROUP, HOST, int.from_bytes(frame[6:12], "big"))
        assert changed(18, "00004000", ours)[:46] == frame


def test_a_leave_may_go_to_the_group():
    leave = build(Kind.LEAVE, GROUP, HOST, MAC)
    assert parse(changed(30, "ef010001", leave)).kind is Kind.LEAVE

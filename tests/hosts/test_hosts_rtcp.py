"""RTCP compounds beside packets that are put together, and taken apart, from RFC 3550's text alone."""

from __future__ import annotations

import itertools
import struct
from typing import Any

import pytest

native = pytest.importorskip("fairlane.native", reason="the module fairlane.native is not built: make build")
from fairlane import specs
from fairlane.native import emit_rtcp, parse_rtcp

SR, RR, SDES, BYE, APP = 200, 201, 202, 203, 204
WE = 0x0A0B0C0D
SSRC = struct.pack("!I", WE)
RECEIVER_REPORT = struct.pack("!BBHI", 0x80, RR, 1, WE)


def packet(kind: int, count: int, body: bytes) -> bytes:
    return struct.pack("!BBH", 0x80 | count, kind, len(body) // 4) + body


def packets(compound: bytes) -> list[tuple[int, int, bytes]]:
    """Type, count and body of each packet; the lengths must add up [RFC 3550 sec A.2]."""
    found = []
    while compound:
        first, kind, words = struct.unpack("!BBH", compound[:4])
        assert first >> 5 == 0b100, "version 2, no padding"
        assert len(compound) >= 4 + 4 * words
        found.append((kind, first & 31, compound[4 : 4 + 4 * words]))
        compound = compound[4 + 4 * words :]
    return found


def items(chunk: bytes) -> dict[int, bytes]:
    """Of one chunk behind its SSRC; behind the null that ends them come as many as fill the word, and no more [RFC 3550 sec 6.5]."""
    found, at = {}, 0
    while chunk[at]:
        found[chunk[at]] = chunk[at + 2 : at + 2 + chunk[at + 1]]
        at += 2 + chunk[at + 1]
    assert len(chunk) == (at // 4 + 1) * 4 and not any(chunk[at:])
    return found


@pytest.mark.parametrize("length", range(1, 10))
def test_what_every_compound_has(length: int) -> None:
    """[RFC 3550 sec 6.1]: a report first, a CNAME, BYE last; [RFC 3550 sec 6.4.2]: an empty RR where there is nothing to report."""
    cname = b"x" * length
    block, layers = (5, 1, 2, 3, 4, 5, 6), [(0xEF010001, 9), (0xEF010002, 8)]
    choices: list[list[Any]] = [[None, (1, 2, 3, 4)], [[], [block] * 31], [None, (WE, 1, 2, layers)], [None, (WE, 1, 2, [])], [[], [WE]]]
    for sender, blocks, said, echoed, bye in itertools.product(*choices):
        compound = emit_rtcp(specs.Compound(WE, sender=sender, blocks=blocks, cname=cname, from_sender=said, from_receiver=echoed, bye=bye))
        (report, count, body), (description, chunks, chunk), *more = packets(compound)
        assert (report, count) == (RR if sender is None else SR, len(blocks))
        assert body[:4] == SSRC and len(body) == 4 + (20 if sender else 0) + 24 * len(blocks)
        assert (description, chunks, chunk[:4]) == (SDES, 1, SSRC) and items(chunk[4:]) == {1: cname}
        assert [kind for kind, _, _ in more] == [APP] * ((said is not None) + (echoed is not None)) + [BYE] * len(bye)
        assert all(body[:4] == SSRC for _, _, body in more)


def test_what_is_not_known_is_passed_over() -> None:
    """[RFC 3550 sec 6.1]: "packets with types unknown to it"; [RFC 3550 sec 6.7]: "APP packets with unrecognized names"; and items of SDES
    other than CNAME [RFC 3550 sec 6.5.2 to 6.5.8], and a reason in BYE [RFC 3550 sec 6.6]."""
    other_app = packet(APP, 0, SSRC + b"ELSE" + bytes(12))
    name, note, private = b"\2\3abc", b"\7\0", b"\10\4\2abc"
    description = packet(SDES, 1, SSRC + name + note + b"\1\3x@y" + private + bytes(2))
    goodbye = packet(BYE, 1, SSRC + b"\5fatal" + bytes(2))
    known = parse_rtcp(emit_rtcp(specs.Compound(WE, cname=b"x@y", bye=[WE])))
    assert known is not None and known["bye"] == [WE]
    unknown = [packet(kind, 1, bytes(12)) for kind in (192, 199, 205, 206, 207, 255)]
    assert parse_rtcp(b"".join([RECEIVER_REPORT, other_app, *unknown, description, other_app, goodbye])) == known
    assert parse_rtcp(unknown[2] + RECEIVER_REPORT) is None, "a report is the first"

"""Checks of command-line arguments: each parses the text or raises `argparse.ArgumentTypeError` with the correct form."""

from __future__ import annotations

import argparse
import re
import types
from ipaddress import IPv4Address, ip_address
from typing import Any, Literal, Union, get_args, get_origin

MIN_PACKET_BYTES, MAX_PACKET_BYTES = 56, 9000
"""IPv4, UDP and RTP headers (over IPv6 20 bytes more), and the time stamp that data packets carry, more than TCP's headers and one byte; Ethernet's payload."""

_UNITS = {"": 1.0, "bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}


def parse_rate(text: str) -> float:
    """Bit/s of `10mbit`, `500kbit`, `1gbit`, `250000`. Raises `ValueError`."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([a-z]*)", text.strip().lower())
    if match is None or match[2] not in _UNITS or float(match[1]) == 0:
        raise ValueError(f"{text!r} is no rate: write a positive number of bit/s, or one with bit, kbit, mbit or gbit (10mbit)")
    return float(match[1]) * _UNITS[match[2]]


def rate(text: str) -> float:
    """A rate in bit/s."""
    try:
        return parse_rate(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def address(text: str) -> str:
    """An IPv4 or IPv6 address."""
    try:
        return str(ip_address(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no IPv4 or IPv6 address") from None


def port(text: str) -> int:
    """The even port of RTP data [RFC 3550 sec 11]."""
    if not text.isdecimal() or not 2 <= int(text) <= 65534 or int(text) % 2:
        raise argparse.ArgumentTypeError(f"{text!r}: RTP data uses an even port from 2 to 65534, RTCP the next one")
    return int(text)


def ssrc(text: str) -> int:
    """32 bits."""
    try:
        value = int(text, 0)
    except ValueError:
        value = -1
    if not 0 <= value < 1 << 32:
        raise argparse.ArgumentTypeError(f"{text!r}: an SSRC is a number from 0 to 4294967295 (0x... is accepted)")
    return value


def packet_bytes(text: str) -> int:
    """Size of a data packet as an IP datagram."""
    if not text.isdecimal() or not MIN_PACKET_BYTES <= int(text) <= MAX_PACKET_BYTES:
        raise argparse.ArgumentTypeError(f"{text!r}: from {MIN_PACKET_BYTES} (headers and time stamp) to {MAX_PACKET_BYTES}")
    return int(text)


def fraction(text: str) -> float:
    """0 to 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r}: a fraction from 0 to 1")
    return value


def duration(text: str) -> float:
    """Seconds, positive."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r}: a positive number of seconds")
    return value


def typed(text: str, kind: Any) -> object:
    """A value of a field of type `kind` of an algorithm's parameters: number, truth, text, IPv4 address as a number, or several
    with commas between. Raises `ValueError`."""
    if get_origin(kind) in (Union, types.UnionType):
        choices = [choice for choice in get_args(kind) if choice is not type(None)]
        if text.lower() == "none" and len(choices) < len(get_args(kind)):
            return None
        return typed(text, choices[0])
    if get_origin(kind) is tuple:
        return tuple(typed(part, get_args(kind)[0]) for part in text.split(",") if part)
    if get_origin(kind) is Literal:
        if text not in get_args(kind):
            raise ValueError(f"{text!r} is none of {', '.join(get_args(kind))}")
        return text
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise ValueError(f"{text!r} is neither true nor false")
        return text.lower() == "true"
    if kind is str:
        return text
    try:
        if kind is int:
            return int(IPv4Address(text)) if text.count(".") == 3 else int(text, 0)
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no number") from None

"""Values of fields in the form that people write them: addresses as addresses, small numbers as numbers."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

_MAC_BITS, _IPV4_BITS, _IPV6_BITS = 48, 32, 128
_ADDRESSES = ("addr", "dst", "src", "destination", "source", "next_hop", "nexthop")
_MACS = ("addr", "dst", "src", "mac", "eth")
_IN_HEX = ("ether_type", "ethertype", "checksum", "csum", "flags")
_HEX_BITS = 8
_SMALL = 256


def number(text: str) -> int:
    """Of `explain.rs`: "0x1f", or decimal digits."""
    return int(text, 0)


def said(text: str, width: int, name: str = "") -> str:
    """`text`: a value as a step has it. width: its bits, 0 where that varies. name: of its field, which says whether it is an address."""
    value, last = number(text), name.rpartition(".")[2].lower()
    if last == "$valid$":
        return "valid" if value else "not valid"
    if width == _MAC_BITS and any(word in last for word in _MACS):
        return ":".join(f"{byte:02x}" for byte in value.to_bytes(6, "big"))
    if width in (_IPV4_BITS, _IPV6_BITS) and any(word in last for word in _ADDRESSES):
        return str(IPv4Address(value) if width == _IPV4_BITS else IPv6Address(value))
    if width == 0 or width > 64:
        return f"{value:#x}"
    if width >= _HEX_BITS and (last == "type" or any(word in last for word in _IN_HEX)):
        return f"{value:#x}"
    return str(value) if value < _SMALL else f"{value} ({value:#x})"


def field(name: str) -> str:
    """A place of a packet: local variables and metadata are fields of a header that the compiler made."""
    head, _, rest = name.partition(".")
    if rest and (head == "scalars" or head.startswith("scalars_")):
        return rest
    return name.removesuffix(".$valid$")


def matched(what: dict[str, object], width: int, name: str = "") -> str:
    """What a field of an entry asks for."""
    if what.get("any"):
        return "any"
    if "valid" in what:
        return "valid" if what["valid"] else "not valid"
    if "low" in what:
        return f"{said(str(what['low']), width, name)}..{said(str(what['high']), width, name)}"
    value = said(str(what["value"]), width, name)
    if "prefix" in what:
        return f"{value}/{what['prefix']}"
    return f"{value} &&& {said(str(what['mask']), width, name)}" if "mask" in what else value


def ordinal(number_: int) -> str:
    """1st, 2nd, 3rd, 4th."""
    ending = "th" if number_ % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number_ % 10, "th")
    return f"{number_}{ending}"

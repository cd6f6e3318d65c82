"""The hosts' commands in `topology.json`: only a few, about their own network.

They are split into words, never given to a shell, and run only in the host's network namespace. `route` and `arp` become `ip`, so
that net-tools need not be installed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv4Network, NetmaskValueError

KNOWN = "route add/del, arp -s/-d, ip route/neigh/addr/link, ethtool -K, and sysctl -w net.*"
_MAC = re.compile(r"(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}")
_BEYOND = re.compile(r"-.*|.*netns.*|vrf|xdp.*|encap|bpf|obj.*|pin.*")
"""Words of `ip` that leave the host's namespace (`ip -netns`, `ip netns exec`, `ip link set ... netns`, `link-netns`), or load a program from a file into
the kernel (`xdp object`, `encap bpf`)."""
_SETTING = re.compile(r"net(?:[./][\w-]+)+=.*")
"""Each step has a name: `net/../kernel/modprobe` would be a setting of the whole machine."""
_IP_OBJECTS = {
    "route": "route",
    "ro": "route",
    "r": "route",
    "neigh": "neigh",
    "neighbour": "neigh",
    "neighbor": "neigh",
    "addr": "addr",
    "address": "addr",
    "a": "addr",
    "link": "link",
    "l": "link",
}


@dataclass(frozen=True)
class HostCommand:
    """argv: the command to run. gateway: `(address, its Ethernet address)` from `arp -s` or `ip neigh`, else None.
    default_via: the gateway that a default route goes to, else None."""

    text: str
    argv: tuple[str, ...]
    neighbour: tuple[str, str] | None = None
    default_via: str | None = None


def parse(text: str) -> HostCommand:
    """ValueError for a command that is not supported."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from error
    if not words:
        raise ValueError("an empty command")
    if any(c in text for c in ";|&<>`$\n"):
        raise ValueError(f"{text!r}: commands do not go through a shell: no {' '.join(';|&<>$')} or backquotes")
    name = words[0].rpartition("/")[2]
    if name not in _COMMANDS:
        raise ValueError(f"{text!r}: not run: hosts only take {KNOWN}. Start programs at the prompt (--cli)")
    return _COMMANDS[name](text, words[1:])


def _route(text: str, words: list[str]) -> HostCommand:
    verb = words[0] if words else ""
    if verb not in ("add", "del"):
        raise ValueError(f"{text!r}: route add or route del")
    rest = words[1:]
    kind, target, mask = "", "", None
    given: dict[str, str] = {}
    while rest:
        word = rest.pop(0)
        if word in ("-net", "-host"):
            kind = word
        elif word == "default" and not target:
            target = "default"
        elif word in ("gw", "dev", "netmask", "metric"):
            if not rest:
                raise ValueError(f"{text!r}: nothing follows {word!r}")
            value = rest.pop(0)
            if word == "netmask":
                mask = value
            else:
                given[word] = value
        elif not target:
            target = word
        elif "dev" not in given:
            given["dev"] = word
        else:
            raise ValueError(f"{text!r}: {word!r} is one word too many")
    if not target:
        raise ValueError(f"{text!r}: no destination; write: route add default gw 10.0.1.10 dev eth0")
    if target != "default":
        target = _network(text, kind, target, mask)
    elif kind == "-net":
        raise ValueError(f"{text!r}: default has no -net")
    argv = ["ip", "route", verb, target]
    if "gw" in given:
        _address(text, given["gw"])
        argv += ["via", given["gw"]]
    if "dev" in given:
        argv += ["dev", given["dev"]]
    if "metric" in given:
        argv += ["metric", given["metric"]]
    via = given.get("gw") if target == "default" and verb == "add" else None
    return HostCommand(text, tuple(argv), default_via=via)


def _network(text: str, kind: str, target: str, mask: str | None) -> str:
    try:
        if kind == "-net":
            return str(IPv4Network(f"{target}/{mask}" if mask else target))
        return f"{IPv4Address(target)}/32"
    except (AddressValueError, NetmaskValueError, ValueError) as error:
        raise ValueError(f"{text!r}: {error}") from error


def _arp(text: str, words: list[str]) -> HostCommand:
    device = "eth0"
    rest = list(words)
    if rest[:1] == ["-i"] and len(rest) > 1:
        device, rest = rest[1], rest[2:]
    if len(rest) == 3 and rest[0] == "-s":
        _address(text, rest[1])
        _mac(text, rest[2])
        argv = ("ip", "neigh", "replace", rest[1], "lladdr", rest[2], "nud", "permanent", "dev", device)
        return HostCommand(text, argv, neighbour=(rest[1], rest[2]))
    if len(rest) == 2 and rest[0] == "-d":
        _address(text, rest[1])
        return HostCommand(text, ("ip", "neigh", "del", rest[1], "dev", device))
    raise ValueError(f"{text!r}: as in arp -i eth0 -s 10.0.1.10 08:00:00:00:01:00")


def _ip(text: str, words: list[str]) -> HostCommand:
    rest = words[1:] if words[:1] == ["-4"] else words
    noun = _IP_OBJECTS.get(rest[0]) if rest else None
    if noun is None or any(_BEYOND.fullmatch(word) for word in rest):
        raise ValueError(
            f"{text!r}: not run: of the ip commands, hosts only take route, neigh, addr and link, without options, other namespaces and BPF"
        )
    neighbour = default_via = None
    if noun == "neigh" and "lladdr" in rest[:-1] and len(rest) > 2:
        neighbour = rest[2], rest[rest.index("lladdr") + 1]
    if noun == "route" and rest[1:3] in (["add", "default"], ["replace", "default"]) and "via" in rest[:-1]:
        default_via = rest[rest.index("via") + 1]
    return HostCommand(text, ("ip", noun, *rest[1:]), neighbour, default_via)


def _ethtool(text: str, words: list[str]) -> HostCommand:
    if len(words) < 4 or words[0] not in ("-K", "--offload", "--features"):
        raise ValueError(f"{text!r}: not run: hosts only take ethtool -K, such as ethtool -K eth0 tx off")
    return HostCommand(text, ("ethtool", "-K", *words[1:]))


def _sysctl(text: str, words: list[str]) -> HostCommand:
    if len(words) != 2 or words[0] != "-w" or not _SETTING.fullmatch(words[1]):
        raise ValueError(f"{text!r}: not run: hosts only take sysctl -w net.*=VALUE, their own settings")
    return HostCommand(text, ("sysctl", "-q", "-w", words[1]))


_COMMANDS: dict[str, Callable[[str, list[str]], HostCommand]] = {
    "route": _route,
    "arp": _arp,
    "ip": _ip,
    "ethtool": _ethtool,
    "sysctl": _sysctl,
}


def _address(text: str, address: str) -> None:
    try:
        IPv4Address(address)
    except AddressValueError as error:
        raise ValueError(f"{text!r}: {error}") from error


def _mac(text: str, address: str) -> None:
    if not _MAC.fullmatch(address):
        raise ValueError(f"{text!r}: {address!r} is not an Ethernet address such as 08:00:00:00:01:00")

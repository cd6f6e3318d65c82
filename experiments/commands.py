"""Real programs as the ends of a flow (kind `command`): their command lines, and the places in them for addresses and ports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from fairlane.inputs import schema

KIND = "command"
PORTS = ("port", "port_2")
"""Places of a flow's ports: its own, and the next one."""
PLACES = {
    "sender": "the sending host's IP address",
    "receiver": "the receiving host's IP address",
    "port": "a TCP and UDP port that no other flow of the two hosts has",
    "port_2": "the next port, of this flow, too",
    "seconds": "whole seconds from the flow's start to its stop, rounded up",
    "output": "the path of the end's files in raw/, without a suffix: {output}.ts",
    "here": "the folder of the experiment's file",
    "python": "the Python that Fairlane runs under, with its packages",
}
"""Names in braces, which arguments may contain."""
_PLACE = re.compile(r"\{\{|\}\}|\{([a-z][a-z0-9_]*)\}")
_MOST_ARGUMENTS = 1000


def filled(argument: str, values: Mapping[str, str]) -> str:
    """An argument with values in its places; `{{` and `}}` are braces, and every other text in braces stays."""

    def value(found: re.Match[str]) -> str:
        return found[0][0] if found[1] is None else values.get(found[1], found[0])

    return _PLACE.sub(value, argument)


def at_home(argument: str, folder: str) -> str:
    """An argument with a folder in the place `{here}`; all others are left for later."""
    escaped = folder.replace("{", "{{").replace("}", "}}")
    return _PLACE.sub(lambda found: escaped if found[1] == "here" else found[0], argument)


def places(arguments: tuple[str, ...]) -> set[str]:
    """The names in braces."""
    return {found[1] for argument in arguments for found in _PLACE.finditer(argument) if found[1]}


@dataclass(frozen=True)
class CommandSettings:
    """A flow whose ends are programs of any kind, on Mininet only. sender, receiver: the program at each end and its arguments, without a shell; left out: no
    program there. server: the end that runs from before the run's begin to the flow's stop, where both ends have a program; the other one is
    started at start_s. stop_signal: of a program that still runs at stop_s, or at the run's end; it has grace_s seconds to end. exit_codes: those of success,
    of a program that ends by itself. packet_bytes: the largest packet, IP header included, for estimates alone. label: in tables and plots, which
    have programs of each label as a kind of their own; default: the name of the group."""

    sender: tuple[str, ...] = ()
    receiver: tuple[str, ...] = ()
    server: Literal["receiver", "sender"] = "receiver"
    stop_signal: Literal["TERM", "INT"] = "TERM"
    grace_s: float = 2.0
    exit_codes: tuple[int, ...] = (0,)
    packet_bytes: int = 1500
    label: str = ""

    def __post_init__(self) -> None:
        if not self.sender and not self.receiver:
            raise ValueError('sender: give the program of an end and its arguments, as sender = ["ping", "-n", "{receiver}"]')
        for key in ("sender", "receiver"):
            arguments = getattr(self, key)
            if len(arguments) > _MOST_ARGUMENTS:
                raise ValueError(f"{key}: at most {_MOST_ARGUMENTS} arguments, got {len(arguments)}")
            if arguments and not arguments[0]:
                raise ValueError(f"{key}: its first text is the program, got an empty one")
            if any("\0" in argument for argument in arguments):
                raise ValueError(f"{key}: an argument cannot have a NUL character")
            for name in sorted(places(arguments) - PLACES.keys()):
                raise ValueError(
                    f"{key}: no place {{{name}}}{schema.nearest(name, PLACES)}; there are {', '.join(f'{{{n}}}' for n in PLACES)}, and "
                    f"{{{{{name}}}}} is that text itself"
                )
        if not 0 < self.grace_s <= 60:
            raise ValueError(f"grace_s: above 0 and at most 60 s, got {self.grace_s:g} s")
        if not 56 <= self.packet_bytes <= 65535:
            raise ValueError(f"packet_bytes: 56 to 65535 bytes, IP header included, got {self.packet_bytes} bytes")
        if not self.exit_codes or any(not 0 <= code <= 255 for code in self.exit_codes):
            raise ValueError("exit_codes: give at least one, from 0 to 255")

    @property
    def has_ports(self) -> bool:
        """Whether its packets are those of its ports; otherwise they are all between its hosts that no other flow's ports claim."""
        return bool(places((*self.sender, *self.receiver)) & set(PORTS))

    def program(self, role: str) -> tuple[str, ...]:
        """Of "sender" or "receiver"."""
        return self.sender if role == "sender" else self.receiver

    def waits(self, role: str) -> bool:
        """Whether this end runs from before the run's begin on."""
        return role == self.server and bool(self.sender and self.receiver)

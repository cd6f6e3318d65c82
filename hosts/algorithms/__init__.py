"""Rate-adaptation algorithms by name: pure state machines, see `fairlane.hosts.algorithms.base`.

Fairlane finds each file of this folder that lists its flow kinds in `KINDS`: a new algorithm is one new file. `fairlane.hosts.own_algorithms`
adds files from other folders.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from fairlane.hosts.algorithms.base import Header, Interests, Kind
from fairlane.hosts.algorithms.own_header import Carried

_KIND_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

ALGORITHMS: dict[str, Kind] = {}
"""Every flow kind that an algorithm file lists, by name."""
_ORIGINS: dict[str, str] = {}


def take(kinds: Iterable[Kind], file: str) -> list[str]:
    """Add the flow kinds that a file lists to `ALGORITHMS`, all or none; their names. ValueError names the file and the kind at fault."""
    kinds = tuple(kinds)
    for kind in kinds:
        if not isinstance(kind, Kind):
            raise ValueError(f"{file}: KINDS holds {kind!r}, which is not a fairlane.hosts.algorithms.base.Kind")
        if not _KIND_NAME.fullmatch(kind.name):
            raise ValueError(f"{file}: the flow kind {kind.name!r}: use lower case, words joined by hyphens")
        if _ORIGINS.get(kind.name, file) != file:
            raise ValueError(f"{file}: the flow kind {kind.name!r} is also listed in {_ORIGINS[kind.name]}")
    for kind in kinds:
        ALGORITHMS[kind.name] = kind
        _ORIGINS[kind.name] = file
    return [kind.name for kind in kinds]


def file_of(kind: str) -> str:
    """The file that defines a flow kind."""
    return _ORIGINS[kind]


for _name in sorted(module.name for module in iter_modules(__path__)):
    take(getattr(import_module(f"{__name__}.{_name}"), "KINDS", ()), f"hosts/algorithms/{_name}.py")


def _sender_interests(kind: str) -> Interests:
    """Of TCP and others that have no algorithm here: none."""
    found = ALGORITHMS.get(kind)
    return getattr(found.sender, "interests", None) or Interests() if found else Interests()


def scheme_of(kind: str) -> str:
    """The scheme that a flow kind wants every port to have; "": none."""
    return _sender_interests(kind).scheme


def header_of(kind: str) -> Header | None:
    """The header of their own that a flow kind's data packets have."""
    return _sender_interests(kind).header


def carried_of(kind: str, program: Mapping[str, Any], packet_bytes: int, ip: int = 4) -> Carried | None:
    """The same with the layout that a compiled P4 program (BMv2 JSON) gives it. ValueError names what is wrong with it."""
    header = header_of(kind)
    return None if header is None else Carried(header, program, packet_bytes)

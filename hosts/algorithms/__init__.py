"""Rate-adaptation algorithms by name: pure state machines, see `fairlane.hosts.algorithms.base`.

A file of this folder that lists its flow kinds in `KINDS` is found by itself: a new algorithm is one new file. Files elsewhere join them
by `fairlane.hosts.own_algorithms`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules

from fairlane.hosts.algorithms.base import Explicit, Kind

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


def explicit_of(kind: str) -> Explicit:
    """What a flow kind wants routers to do for its data packets; of TCP and others that have no algorithm here: nothing."""
    found = ALGORITHMS.get(kind)
    interests = getattr(found.sender, "interests", None) if found else None
    return Explicit.NONE if interests is None else interests.explicit

"""Rate-adaptation algorithms by name: pure state machines, see `hosts.algorithms.base`.

A file of this folder that lists its flow kinds in `KINDS` is found by itself: a new algorithm is one new file.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from hosts.algorithms.base import Kind


def _found() -> dict[str, Kind]:
    kinds: dict[str, Kind] = {}
    for module in sorted(m.name for m in iter_modules(__path__)):
        for kind in getattr(import_module(f"{__name__}.{module}"), "KINDS", ()):
            if kind.name in kinds:
                raise ValueError(f"hosts/algorithms/{module}.py: the flow kind {kind.name!r} is listed in another file, too")
            kinds[kind.name] = kind
    return kinds


ALGORITHMS: dict[str, Kind] = _found()
"""Every flow kind that an algorithm file lists, by name."""

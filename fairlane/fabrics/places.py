"""The fabrics by name, and the places where experiments run: virtual time, and Mininet with either switch."""

from __future__ import annotations

from enum import Enum

from fairlane.errors import Refusal
from fairlane.fabrics.base import Fabric
from fairlane.fabrics.mininet import Mininet
from fairlane.fabrics.switch_process import TARGETS
from fairlane.fabrics.virtual import Virtual

VIRTUAL = Virtual()
MININET = Mininet()
_FABRICS: dict[str, Fabric] = {fabric.name: fabric for fabric in (VIRTUAL, MININET)}
NAMES = tuple(_FABRICS)


def named(name: str) -> Fabric:
    """Refusal: there is no such fabric."""
    if name not in _FABRICS:
        raise Refusal(f"{name!r} is not one of {', '.join(map(repr, NAMES))}.")
    return _FABRICS[name]


def clock_of(name: str) -> str:
    """A recorded fabric's clock in words. Another program's fabric: its name."""
    return _FABRICS[name].clock if name in _FABRICS else name


def switch_of(target: str) -> str:
    """In words, what ran the P4 program of a recorded target. Another program's: its name."""
    words: dict[str, str] = {VIRTUAL.target: "in the process", **{t.name: t.words for t in TARGETS}}
    return words.get(target, target)


class Place(str, Enum):
    """What `fairlane doctor --for` asks about."""

    VIRTUAL = "virtual"
    MININET = "mininet"
    BMV2 = "bmv2"

    @property
    def words(self) -> str:
        return {
            Place.VIRTUAL: "in virtual time",
            Place.MININET: "in Mininet, on the embedded switch",
            Place.BMV2: "in Mininet, on BMv2",
        }[self]

"""Types of the generated programs, and numbers of a type as bits."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Bit:
    width: int
    alias: str = field(default="", compare=False)
    """The typedef by which the program writes it."""

    def __str__(self) -> str:
        return self.alias or f"bit<{self.width}>"


@dataclass(frozen=True)
class Int:
    width: int
    alias: str = field(default="", compare=False)

    def __str__(self) -> str:
        return self.alias or f"int<{self.width}>"


@dataclass(frozen=True)
class Bool:
    def __str__(self) -> str:
        return "bool"


@dataclass(frozen=True)
class Void:
    """What a call without a result has."""


@dataclass(frozen=True)
class Number:
    """`int`: constants of any size."""

    def __str__(self) -> str:
        return "int"


@dataclass(frozen=True)
class Enum:
    """A serializable enum; a value may be without a name."""

    name: str
    base: Bit
    members: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class New:
    """`type`: as its base, but neither arithmetic nor implicit casts."""

    name: str
    base: Bit | Int

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Struct:
    name: str
    fields: tuple[tuple[str, Type], ...]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Header:
    name: str
    fields: tuple[tuple[str, Type], ...]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Union:
    name: str
    fields: tuple[tuple[str, Type], ...]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Stack:
    element: Header | Union
    size: int

    def __str__(self) -> str:
        return f"{self.element}[{self.size}]"


Scalar = Bit | Int | Bool | Enum | New
Type = Void | Bit | Int | Bool | Number | Enum | New | Struct | Header | Union | Stack
BOOL = Bool()
NUMBER = Number()
VOID = Void()


def width(kind: Type) -> int:
    """Bits on the wire."""
    match kind:
        case Bit(w) | Int(w):
            return w
        case Bool():
            return 1
        case Enum(base=base) | New(base=base):
            return base.width
        case Header(fields=fields) | Struct(fields=fields):
            return sum(width(f) for _, f in fields)
    raise TypeError(f"{kind} has no width")


def signed(kind: Type) -> bool:
    return isinstance(kind, Int) or (isinstance(kind, New) and isinstance(kind.base, Int))


def to_bits(value: int, kind: Type) -> int:
    """A value as the unsigned number of its bits (two's complement)."""
    return int(value) & ((1 << width(kind)) - 1)


def from_bits(bits: int, kind: Type) -> int:
    """The value of a type whose bits these are; higher bits are cut off."""
    if isinstance(kind, Bool):
        return bool(bits & 1)
    bits &= (1 << width(kind)) - 1
    if signed(kind) and bits >> (width(kind) - 1):
        return bits - (1 << width(kind))
    return bits

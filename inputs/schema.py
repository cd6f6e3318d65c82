"""Dataclasses from tables of a TOML document: unknown keys, missing keys and wrong types are refused with file, line, key."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import types
import typing
from collections.abc import Collection, Sequence
from typing import Any, TypeVar

from fairlane.inputs.located_toml import Document, KeyPath

T = TypeVar("T")

TABLES = "tables"
"""In the metadata of a dataclass's field, a function without arguments that gives dataclasses by key: the field is a tuple of such objects, and each
of them has its own key in the table, in place of the field's name."""

CHOICES, WAY_OUT = "choices", "way out"
"""In the metadata of a field, a function that gives the values that it may have; and how the message about another value ends."""


OPTIONAL = "optional"
"""In the metadata of a field: `plain` leaves it out where it has its default."""


def build(kind: type[T], document: Document, path: KeyPath = (), others: Collection[str] = ()) -> T:
    """The table at `path` as a `kind`. A ValueError that `kind` itself raises is located at the table, or at the key that
    the message begins with ("delay_s: must not be negative"). others: keys of the table that other code reads."""
    table = document.at(path)
    if not isinstance(table, dict):
        raise document.error(path, f"expected a table, got {_describe(table)}")
    fields = {f.name: f for f in dataclasses.fields(kind) if f.init}  # type: ignore[arg-type]
    hints = hints_of(kind)  # type: ignore[arg-type]
    tables = {name: field.metadata[TABLES]() for name, field in fields.items() if TABLES in field.metadata}
    keys = [key for name in fields for key in tables.get(name, (name,))]
    for key in table:
        if key not in keys and key not in others:
            raise document.error(path + (key,), f"unknown key{nearest(key, (*keys, *others))}")
    values = {}
    for name, field in fields.items():
        if name in tables:
            values[name] = tuple(build(one, document, path + (key,)) for key, one in tables[name].items() if key in table)
        elif name in table:
            values[name] = convert(hints[name], document, path + (name,))
            if CHOICES in field.metadata and values[name] not in (known := field.metadata[CHOICES]()):
                way_out = field.metadata.get(WAY_OUT, "")
                raise document.error(
                    path + (name,), f"expected one of {', '.join(map(repr, known))}, got {_describe(values[name])}{way_out}"
                )
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise document.error(path, f"missing key {name!r}")
    try:
        return kind(**values)
    except ValueError as error:
        key, _, rest = str(error).partition(": ")
        if rest and key in keys:
            raise document.error(path + (key,), rest) from error
        raise document.error(path, str(error)) from error


def members(value: Any) -> dict[str, Any]:
    """A dataclass's values by their keys, as `build` reads them; None under each key of `TABLES` that is not there, if its dataclass has fields.
    Without fields of `OPTIONAL` that have their default."""
    found: dict[str, Any] = {}
    for name, field in _fields_of(value.__class__):
        inner = getattr(value, name)
        if field is None:
            found[name] = inner
        elif TABLES in field.metadata:
            for key, kind in field.metadata[TABLES]().items():
                one = next((one for one in inner if type(one) is kind), None)
                if one is not None or dataclasses.fields(kind):
                    found[key] = one
        elif inner != field.default:
            found[name] = inner
    return found


@functools.cache
def _fields_of(kind: type[Any]) -> list[tuple[str, dataclasses.Field[Any] | None]]:
    """The names of a dataclass's fields, and those of `TABLES` and `OPTIONAL` themselves."""
    return [(one.name, one if one.metadata.keys() & {TABLES, OPTIONAL} else None) for one in dataclasses.fields(kind)]


def plain(value: Any) -> Any:
    """As `dataclasses.asdict`, with `members` of each."""
    if dataclasses.is_dataclass(value):
        return {key: plain(inner) for key, inner in members(value).items()}
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return type(value)(map(plain, value)) if type(value) in (list, tuple) else value


@functools.cache
def hints_of(kind: type) -> dict[str, Any]:
    """The type of each field of a dataclass, worked out once."""
    return typing.get_type_hints(kind, include_extras=True)


def nearest(name: str, known: typing.Iterable[str]) -> str:
    """`; did you mean 'x'?` or `; known: a, b`. x: the names that begin with this one, as tcp-sack does with tcp, or else the closest."""
    known = list(known)
    close = [word for word in known if name and word.startswith(f"{name}-")] or difflib.get_close_matches(name, known, n=1)
    return (
        f"; did you mean {', '.join(map(repr, close[:-1]))}{' or ' * (len(close) > 1)}{close[-1]!r}?"
        if close
        else f"; known: {', '.join(known)}"
    )


def either(words: Sequence[str]) -> str:
    """ "a, b or c"."""
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else "".join(words)


def convert(hint: Any, document: Document, path: KeyPath, way_out: str = "") -> Any:
    """The value at `path` as the type that `hint` names; ConfigError when it is another. way_out: ends the message about a value that is
    not one of several; a field gives it by Annotated[Literal[...], way_out]."""
    value = document.at(path)
    # A type that reads its value itself, such as one that names a file.
    own = getattr(hint, "from_document", None)
    if own is not None:
        return own(document, path)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return convert(arguments[0], document, path, arguments[1])
    if origin in (types.UnionType, typing.Union):
        inner = [a for a in arguments if a is not type(None)]
        if value is None and len(inner) < len(arguments):  # null, in JSON
            return None
        return convert(inner[0], document, path, way_out)
    if origin is typing.Literal:
        if value not in arguments:
            choices = ", ".join(map(repr, arguments))
            raise document.error(path, f"expected one of {choices}, got {_describe(value)}{way_out}")
        return value
    if origin is tuple:
        if not isinstance(value, list):
            raise document.error(path, f"expected an array, got {_describe(value)}")
        if arguments[-1] is not Ellipsis and len(value) != len(arguments):
            raise document.error(path, f"expected {len(arguments)} values, got {len(value)}")
        kinds = [arguments[0]] * len(value) if arguments[-1] is Ellipsis else arguments
        return tuple(convert(k, document, path + (i,)) for i, k in enumerate(kinds))
    if origin is dict:
        hint = dict
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return build(hint, document, path)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is not Any and (not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool)):
        names = {int: "an integer", float: "a number", str: "a string", bool: "true or false", dict: "a table", list: "an array"}
        raise document.error(path, f"expected {names.get(hint, hint.__name__)}, got {_describe(value)}")
    return value


def _describe(value: Any) -> str:
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "an array"
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."

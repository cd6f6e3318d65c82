"""What crosses the pipe between the grader and an answer: JSON with a few marks, each message with a bound.

Plain numbers, texts, lists and None go as they are. A mark is an object with one key:

    {"t": [...]}            a tuple
    {"d": [[k, v], ...]}    a mapping
    {"o": [name, [...]]}    an object of a class that both sides know, by its fields; an enumeration's member by its name
    {"x": [type, text]}     anything else: what it is, for a message; it arrives as `Foreign`
    {"r": 0}                the source of random numbers of a run

Only the standard library is used here: an answer's process has nothing else.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import struct
from collections.abc import Callable, Mapping
from typing import Any

MOST_BYTES = 4_000_000
"""Of one message."""
_MOST_TEXT = 100_000
_MOST_SHOWN = 300
_HEAD = struct.Struct("!I")
_FIELDS: dict[type, tuple[str, ...]] = {}


class WireError(ValueError):
    """A message that cannot be read."""


class Foreign:
    """Stands for an object of an answer that is no data. `kind`: the name of its type; its repr is the object's own, cut."""

    def __init__(self, kind: str, text: str) -> None:
        self.kind, self._text = kind, text

    def __repr__(self) -> str:
        return self._text


class Draws:
    """In place of a run's source of random numbers, in what goes to an answer."""


def framed(value: Any) -> bytes:
    """A message with its length before it."""
    body = json.dumps(value, separators=(",", ":")).encode("utf-8", "replace")
    if len(body) > MOST_BYTES:
        raise WireError(f"a message of {len(body)} bytes; at most {MOST_BYTES} are allowed")
    return _HEAD.pack(len(body)) + body


def unframed(read: Callable[[int], bytes]) -> Any:
    """The next message. EOFError: there is none. read: gives exactly so many bytes, or fewer at the end."""
    head = read(_HEAD.size)
    if len(head) < _HEAD.size:
        raise EOFError
    (length,) = _HEAD.unpack(head)
    if length > MOST_BYTES:
        raise WireError(f"a message of {length} bytes; at most {MOST_BYTES} are allowed")
    body = read(length)
    if len(body) < length:
        raise EOFError
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise WireError(f"a message that is no JSON: {type(error).__name__}") from None


def encoded(value: Any, depth: int = 0) -> Any:
    """As JSON, with marks."""
    kind = type(value)
    if value is None or kind in (bool, int, float):
        return value if kind is not int or abs(value) < 1 << 256 else {"x": ["int", "a whole number of more than 256 bits"]}
    if depth > 20:
        return {"x": [kind.__name__, "nested more than 20 deep"]}
    if isinstance(value, enum.Enum):
        return {"o": [kind.__name__, [value.name]]}
    if isinstance(value, str):
        return str(value)[:_MOST_TEXT]
    if dataclasses.is_dataclass(value) and kind is not type:
        names = _FIELDS.get(kind) or _FIELDS.setdefault(kind, tuple(f.name for f in dataclasses.fields(value)))
        return {"o": [kind.__name__, [encoded(getattr(value, name), depth + 1) for name in names]]}
    if kind is list:
        return [encoded(one, depth + 1) for one in value]
    if isinstance(value, tuple):
        whole = [encoded(one, depth + 1) for one in value]
        return {"t": whole} if kind is tuple else {"o": [kind.__name__, whole]}
    if isinstance(value, Mapping):
        return {"d": [[encoded(k, depth + 1), encoded(v, depth + 1)] for k, v in value.items()]}
    if isinstance(value, Draws):
        return {"r": 0}
    if isinstance(value, float):  # as numpy's
        return float(value)
    return {"x": [kind.__name__[:60], "a generator" if hasattr(value, "send") else _shown(value)]}


def decoded(value: Any, known: Mapping[str, Callable[..., Any]], depth: int = 0) -> Any:
    """The other way round. known: what makes an object of a name's fields. WireError for what `encoded` does not give."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if depth > 25:
        raise WireError("a message nested more than 25 deep")
    if isinstance(value, list):
        return [decoded(one, known, depth + 1) for one in value]
    if not isinstance(value, dict) or len(value) != 1:
        raise WireError("a message with an unknown mark")
    ((mark, content),) = value.items()
    try:
        if mark == "t":
            return tuple(decoded(one, known, depth + 1) for one in content)
        if mark == "d":
            return {decoded(k, known, depth + 1): decoded(v, known, depth + 1) for k, v in content}
        if mark == "x":
            return Foreign(str(content[0])[:60], str(content[1])[:_MOST_SHOWN])
        if mark == "r":
            return known["Draws"]()
        if mark == "o" and content[0] in known:
            return known[content[0]](*(decoded(one, known, depth + 1) for one in content[1]))
        if mark == "o":
            return Foreign(str(content[0])[:60], f"{str(content[0])[:60]}(...)")
    except (TypeError, ValueError, KeyError, IndexError) as error:
        raise WireError(f"a message that makes no object: {error}") from None
    raise WireError("a message with an unknown mark")


def _shown(value: Any) -> str:
    try:
        return repr(value)[:_MOST_SHOWN]
    except Exception:  # noqa: BLE001 - whatever an answer's __repr__ raises
        return f"<{type(value).__name__}>"

"""Plain values as the text of a TOML file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def table(values: Mapping[str, Any]) -> str:
    """A whole file: keys first, then tables and arrays of tables."""
    plain = {k: v for k, v in values.items() if not _is_table(v) and not _is_tables(v)}
    lines = [f"{key(k)} = {value(v)}" for k, v in plain.items()]
    for k, v in values.items():
        if _is_table(v):
            lines += ["", f"[{key(k)}]", *(f"{key(name)} = {value(inner)}" for name, inner in v.items())]
        elif _is_tables(v):
            for one in v:
                lines += ["", f"[[{key(k)}]]", *(f"{key(name)} = {value(inner)}" for name, inner in one.items())]
    return "\n".join(lines) + "\n"


def _is_table(given: Any) -> bool:
    return isinstance(given, Mapping)


def _is_tables(given: Any) -> bool:
    return isinstance(given, list | tuple) and bool(given) and all(isinstance(one, Mapping) for one in given)


def key(name: str) -> str:
    """A key, in quotes where it needs them."""
    return name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def value(given: Any, number: Callable[[float], str] = repr) -> str:
    """A value on one line. number: how numbers are written."""
    if isinstance(given, Mapping):
        return "{ " + ", ".join(f"{key(name)} = {value(inner, number)}" for name, inner in given.items()) + " }"
    if isinstance(given, list | tuple):
        return "[" + ", ".join(value(one, number) for one in given) + "]"
    if isinstance(given, str):
        return json.dumps(given, ensure_ascii=False)
    return str(given).lower() if isinstance(given, bool) else number(given)

"""[mininet]: the differences when an experiment runs with real processes in wall-clock time.

    [mininet]
    at = { n = 4, delay_s = [0.02, 0.08] }      # the points: a value, or several, of an axis; left out: all of it
    seeds = [1, 2]                              # left out: the first of the file's
    without = ["tcp.timer_granularity_s"]       # keys of the file that only virtual time has
    duration_s = 120.0                          # any other key of an experiment overrides the file's

`fairlane paper --mininet` runs a file with a table of its own, but not a file that inherits the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairlane.experiments import sweep
from fairlane.inputs import schema
from fairlane.inputs.located_toml import Document

_OWN = ("at", "without")
# Keys that are the same on every fabric: they say what to run and expect, not how.
_ELSEWHERE = ("inherits", "title", "sweep", "quick", "paper", "open", sweep.MININET, *sweep.REPORT_KEYS)


def is_chosen(document: Document) -> bool:
    """Whether a file itself has a [mininet] table."""
    return sweep.MININET in document.values and document.place((sweep.MININET,))[0] == document.name


def laid_over(document: Document, at: Sequence[str] = (), complete: bool = False) -> Document:
    """The experiment as Mininet runs it; unchanged without [mininet]. at: "AXIS=VALUE", before those of the table. complete:
    with the keys of `without` and all seeds, for the comparison run in virtual time. ConfigError names file, line and key."""
    if sweep.MININET not in document.values:
        return sweep.narrowed(document, at)
    table, points = _table(document), _points(document)
    document = sweep.narrowed(document, at)
    base = sweep.without(document, (sweep.MININET,))
    if not complete:
        base = _without(document, base)
    top = {key: value for key, value in table.items() if key not in _OWN and not (complete and key == "seeds")}
    places = {path[1:]: place for path, place in document.places.items() if path[:1] == (sweep.MININET,) and path[1:2] and path[1] in top}
    laid = Document(document.name, top, places).over(base)
    values = dict(laid.values)
    if not complete and "seeds" not in top and isinstance(values.get("seeds"), list):
        values["seeds"] = values["seeds"][:1]
    if points:
        named = {text.partition("=")[0] for text in at}
        values["sweep"] = {**values["sweep"], **{k: v for k, v in points.items() if k not in named}}
    return Document(document.name, values, laid.places)


def laid(document: Document) -> str:
    """What lies over the file there, in words; empty when nothing does."""
    table = _table(document) if sweep.MININET in document.values else {}
    return "; ".join(f"{key} = {_shown(value)}" for key, value in table.items() if key not in (*_OWN, "seeds"))


def left_out(document: Document) -> str:
    """The keys of the file that are not for Mininet, in words."""
    table = _table(document) if sweep.MININET in document.values else {}
    return f"without {', '.join(table['without'])}" if table.get("without") else ""


def _shown(value: Any) -> str:
    return f"{{ {', '.join(f'{k} = {_shown(v)}' for k, v in value.items())} }}" if isinstance(value, dict) else str(value)


def _table(document: Document) -> dict[str, Any]:
    table = document.values[sweep.MININET]
    if not isinstance(table, dict):
        raise document.error((sweep.MININET,), "expected a table")
    for key in table:
        if key in _ELSEWHERE:
            raise document.error((sweep.MININET, key), "is the same on every fabric: write it outside [mininet]")
    return table


def _points(document: Document) -> dict[str, list[Any]]:
    """The axes that `at` narrows, each with the values that are left, all of the file's sweep."""
    path = (sweep.MININET, "at")
    given, axes = document.values[sweep.MININET].get("at", {}), sweep.axes_of(document)
    if not isinstance(given, dict):
        raise document.error(path, "expected a table: an axis and its value, or an array of values")
    left = {}
    for name, value in given.items():
        if name not in axes:
            raise document.error((*path, name), f"no axis {name!r}{schema.nearest(name, axes)}")
        left[name] = value if isinstance(value, list) else [value]
        if not left[name]:
            raise document.error((*path, name), "expected at least one value")
        for choice in left[name]:
            if choice not in axes[name]:
                raise document.error((*path, name), f"{choice!r} is not a value of that axis, which has {', '.join(map(str, axes[name]))}")
    return left


def _without(document: Document, base: Document) -> Document:
    """`base` less the keys that the table's `without` names."""
    path = (sweep.MININET, "without")
    given = document.values[sweep.MININET].get("without", [])
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise document.error(path, 'expected an array of keys, such as "tcp.timer_granularity_s"')
    values = dict(base.values)
    for i, name in enumerate(given):
        keys = name.split(".")
        if not _drop(values, keys):
            raise document.error((*path, i), f"the file has no key {name!r}")
    return Document(base.name, values, base.places)


def _drop(values: dict[str, Any], keys: list[str]) -> bool:
    """Take a key out of tables in tables, each copied before; whether it was there."""
    for key in keys[:-1]:
        if not isinstance(values.get(key), dict):
            return False
        values[key] = dict(values[key])
        values = values[key]
    return values.pop(keys[-1], None) is not None

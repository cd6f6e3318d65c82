"""Values that no file should have, put anywhere into files that are right; and the command line in this process, with a bound on its time."""

from __future__ import annotations

import copy
import math
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import strategies as st

from fairlane import cli

DOCUMENTED = {0, 1, 2, 3, 4, 5, 6}
"""Exit codes of docs/commands.md, without 70, a bug in Fairlane."""
SECONDS = 10


def _deep(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def _deep_tables(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


VALUES = [
    *(
        math.nan,
        math.inf,
        -math.inf,
        0,
        0.0,
        -0.0,
        -1,
        -1.5,
        1,
        2,
        3,
        0.5,
        1e-300,
        5e-324,
        1e-9,
        1e-4,
        1e9,
        1e12,
        1e15,
        1e19,
        1e300,
        -1e300,
    ),
    *(2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**30, -(10**30), 10**400),
    *(
        "",
        " ",
        "x",
        "h1",
        "s1",
        "s1->s2",
        "s2->s1",
        "../x",
        "/dev/null",
        "\0",
        "a" * 3000,
        "é",
        "-1",
        "1e9",
        "nan",
        "rap",
        "tcp-sack",
        "red",
    ),
    *(
        "=",
        "= 1",
        "= n",
        "= (9**64)**64",
        "= 1/0",
        "= sqrt(-1)",
        "= (-8)**0.5",
        "= 'x'",
        "= " + "-" * 500 + "1",
        "= 10**64",
        "= x.y",
        "= 1e308*10",
    ),
    *(
        True,
        False,
        [],
        {},
        [[]],
        [{}],
        [1],
        ["a"],
        [["h1", "h1"]],
        [[1, 2]],
        {"a": 1},
        {"kind": "rap"},
        [math.nan],
        _deep(50),
        _deep_tables(50),
    ),
    *([1] * 300, list(range(300)), {"rate_bps": 1e-300}, {"rate_bps": math.nan}, [["h1", "h2"]] * 300),
]
JSON_VALUES = [*(value for value in VALUES if value != 10**400), None, {"name": None}, [None]]


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Of every key and element."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from paths(inner, (*path, key))


def changes(documents: list[Any], values: list[Any]) -> st.SearchStrategy[tuple[Any, list[tuple[Any, ...]]]]:
    """One of the documents with one to three of its values replaced, taken away, or joined by a new key; and the places that changed."""

    @st.composite
    def change(draw: st.DrawFn) -> tuple[Any, list[tuple[Any, ...]]]:
        document = copy.deepcopy(draw(st.sampled_from(documents)))
        changed = []
        for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
            where = list(paths(document))
            if not where:
                break
            path = draw(st.sampled_from(where))
            owner = document
            for key in path[:-1]:
                owner = owner[key]
            kind = draw(st.sampled_from(["replace"] * 6 + ["remove", "add", "multiply"]))
            old = owner[path[-1]]
            if kind == "remove":
                del owner[path[-1]]
            elif kind == "add" and isinstance(owner, dict):
                owner[draw(st.sampled_from(["", "x", "name", "kind", "rate_bps", "seed", "a b", "é"]))] = copy.deepcopy(
                    draw(st.sampled_from(values))
                )
            elif kind == "multiply" and isinstance(old, int | float) and not isinstance(old, bool) and abs(old) < 1e300:
                owner[path[-1]] = old * draw(st.sampled_from([-1, 0, 2, 1e-3, 1e3, 1e6, 1e-6]))
            elif kind == "multiply" and isinstance(old, list):
                owner[path[-1]] = old * 3
            else:
                owner[path[-1]] = copy.deepcopy(draw(st.sampled_from(values)))
            changed.append(path)
        return document, changed

    return change()


class TooLong(BaseException):
    """A command took more than `SECONDS` of processor time; not an Exception, so that nothing takes it for an error of the input."""


class Begun(BaseException):
    """The input was accepted, and the run has begun: there is no need to wait for its end."""


@contextmanager
def in_time(seconds: float = SECONDS) -> Iterator[None]:
    def over(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def fairlane(monkeypatch: pytest.MonkeyPatch, *argv: str, command: Callable[[], None] = cli.main) -> int:
    """The exit code of a command, in this process; 0 when it began to run."""
    monkeypatch.setattr("sys.argv", ["fairlane", *argv])
    try:
        with in_time():
            command()
    except Begun:
        return 0
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    return 0

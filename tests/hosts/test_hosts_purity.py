"""No file of `hosts/` both decides and does input or output.

A file is on the pure side when it imports only what can reach no clock, socket, file or randomness: a short list of the standard
library, and other files of the pure side. All others do input and output; of the pure side they may import what runs it (sessions,
the registry of algorithms) and constants, but nothing with which a flow's behaviour is decided: no events, actions, parsers, pacers.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from fairlane import hosts

ROOT = Path(hosts.__file__).resolve().parent
ALLOWED = {"__future__", "abc", "bisect", "collections", "dataclasses", "enum", "math", "typing"}
"""Of the standard library; an allow-list, so that a new way to reach the outside is refused until someone thinks about it."""
PURE_ALLOWED = ALLOWED | {"struct"}
REGISTRY_ALLOWED = ALLOWED | {"importlib", "pkgutil", "re"}
"""It finds the algorithm files beside it."""
ARITHMETIC = "fairlane.arithmetic"
PURE = ("fairlane.hosts", *(f"fairlane.hosts.{part}" for part in ("algorithms", "wire")))
"""Modules and packages of the pure side."""
RUNS_THE_PURE_SIDE = {"fairlane.hosts.algorithms"}
"""What the other side may import whole names of; elsewhere constants only."""

FILES = sorted(p for p in ROOT.rglob("*.py"))


def module(path: Path) -> str:
    """hosts/wire/formats.py is fairlane.hosts.wire.formats."""
    name = ".".join(("fairlane.hosts", *path.relative_to(ROOT).with_suffix("").parts))
    return name.removesuffix(".__init__")


def is_within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def is_pure(name: str) -> bool:
    return name == "fairlane.hosts" or any(is_within(name, package) for package in PURE[1:])


def imported(path: Path) -> dict[str, set[str]]:
    """Modules, and the names taken from each; builtins that reach outside count as modules."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found.setdefault(alias.name, set())
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            for alias in node.names:
                # `from fairlane.hosts.wire import formats` takes a module.
                inner = f"{node.module}.{alias.name}"
                is_module = (ROOT.parent / inner.removeprefix("fairlane.").replace(".", "/")).with_suffix(".py").exists()
                found.setdefault(inner if is_module else node.module or "", set()).update(set() if is_module else {alias.name})
        elif isinstance(node, ast.Name) and node.id in ("__import__", "eval", "exec", "open", "input", "print", "breakpoint"):
            found.setdefault(node.id, set())
    return found


def strangers(path: Path, allowed: set[str], own: tuple[str, ...]) -> list[str]:
    """Imports that a pure file may not have."""
    return sorted(n for n in imported(path) if n.split(".")[0] not in allowed and not any(is_within(n, package) for package in own))


def decisions(path: Path) -> list[str]:
    """What a file that does input and output imports to decide with."""
    taken = []
    for name, names in imported(path).items():
        if is_pure(name) and name not in RUNS_THE_PURE_SIDE and name != "fairlane.hosts":
            taken += [f"{name}.{x}" for x in names if not x.isupper() and not x.endswith("Error")] or ([] if names else [name])
    return sorted(taken)


@pytest.mark.parametrize("path", [p for p in FILES if is_within(module(p), "fairlane.hosts.algorithms")], ids=lambda p: p.name)
def test_algorithms_are_pure(path: Path) -> None:
    allowed = REGISTRY_ALLOWED if path.name == "__init__.py" else ALLOWED
    assert strangers(path, allowed, ("fairlane.hosts.algorithms", ARITHMETIC)) == []


@pytest.mark.parametrize("path", [p for p in FILES if is_within(module(p), "fairlane.hosts.wire")], ids=lambda p: p.name)
def test_the_description_of_headers_is_pure(path: Path) -> None:
    assert strangers(path, PURE_ALLOWED, ("fairlane.hosts.wire",)) == []


@pytest.mark.parametrize("path", [p for p in FILES if is_pure(module(p))], ids=module)
def test_the_deciding_side_does_no_input_or_output(path: Path) -> None:
    more = REGISTRY_ALLOWED if module(path) == "fairlane.hosts.algorithms" else set()
    assert strangers(path, PURE_ALLOWED | more, (*PURE[1:], ARITHMETIC)) == []


@pytest.mark.parametrize("path", [p for p in FILES if not is_pure(module(p))], ids=module)
def test_files_that_do_input_or_output_decide_nothing(path: Path) -> None:
    assert decisions(path) == []


def test_each_side_has_its_files() -> None:
    """The checks above see what they are about."""
    sides = {True: set(), False: set()}
    for path in FILES:
        sides[is_pure(module(path))].add(module(path))
    assert {"fairlane.hosts.algorithms.als", "fairlane.hosts.algorithms.base", "fairlane.hosts.wire.formats"} <= sides[True]
    assert {"fairlane.hosts.records", "fairlane.hosts.agent", "fairlane.hosts.sources", "fairlane.hosts.tcp_iperf3"} <= sides[False]


@pytest.mark.parametrize(
    "source",
    ["import time", "from random import random", "def f():\n    import socket", "import fairlane.hosts.agent", "__import__('time')",
     "from fairlane.hosts import agent", "print(1)", "from fairlane.hosts.records import Clock"],
)  # fmt: skip
def test_the_check_finds_input_and_output(tmp_path: Path, source: str) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text(source)
    assert strangers(bad, PURE_ALLOWED, PURE[1:]) != []


@pytest.mark.parametrize(
    "source",
    ["from fairlane.hosts.algorithms.base import SetRate", "import fairlane.hosts.algorithms.rap", "from fairlane.hosts.wire import formats", "from fairlane.hosts.wire.formats import Field"],
)  # fmt: skip
def test_the_check_finds_decisions(tmp_path: Path, source: str) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text(f"import socket\n{source}")
    assert decisions(bad) != []


def test_constants_and_the_registry_may_be_imported(tmp_path: Path) -> None:
    good = tmp_path / "good.py"
    good.write_text(
        "import socket\nfrom fairlane.hosts.algorithms.daa import SILENCE_TIMER\nfrom fairlane.hosts.algorithms import ALGORITHMS"
    )
    assert decisions(good) == []

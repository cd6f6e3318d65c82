"""Nothing under `hosts/algorithms` can reach a clock, a socket or randomness of its own."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import hosts

ROOT = Path(hosts.__file__).parent
ALLOWED = {"__future__", "abc", "bisect", "collections", "dataclasses", "enum", "math", "typing"}
"""Of the standard library; an allow-list, so that a new way to reach the outside is refused until someone thinks about it."""
PURE_WIRE_ALLOWED = ALLOWED | {"struct"}


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.add(node.module or "")
        elif isinstance(node, ast.Name) and node.id in ("__import__", "eval", "exec", "open", "input"):
            names.add(node.id)
    return names


def strangers(path: Path, allowed: set[str], own: str) -> list[str]:
    return sorted(n for n in imported(path) if n.split(".")[0] not in allowed and n != own and not n.startswith(own + "."))


@pytest.mark.parametrize("path", sorted((ROOT / "algorithms").rglob("*.py")), ids=lambda p: p.name)
def test_algorithms_are_pure(path: Path) -> None:
    # The registry finds the files beside it.
    allowed = ALLOWED | {"importlib", "pkgutil"} if path.name == "__init__.py" else ALLOWED
    assert strangers(path, allowed, "hosts.algorithms") == []


@pytest.mark.parametrize("path", sorted((ROOT / "wire").rglob("*.py")), ids=lambda p: p.name)
def test_the_codec_is_pure(path: Path) -> None:
    assert strangers(path, PURE_WIRE_ALLOWED, "hosts.wire") == []


@pytest.mark.parametrize(
    "source",
    ["import time", "from random import random", "def f():\n    import socket", "import hosts.sockets", "__import__('time')"],
)
def test_the_check_finds_what_it_looks_for(tmp_path: Path, source: str) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text(source)
    assert strangers(bad, ALLOWED, "hosts.algorithms")

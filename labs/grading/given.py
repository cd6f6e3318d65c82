"""What a lab gives to an answer: the modules of Fairlane that its skeletons import, and no others, in a folder of their own."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Sequence
from pathlib import Path

from fairlane import probes

DEFAULT = ("hosts/algorithms/base.py",)
_OWN = ("worker.py", "wire.py", "confine.py")


def place(folder: Path, modules: Sequence[str]) -> Path:
    """Write them, what they import of Fairlane, and the worker into a new folder. modules: paths within the package; "FILE:NAME" is only that class
    of a file, with its imports."""
    package = folder / "fairlane"
    package.mkdir(parents=True)
    for name in _OWN:
        shutil.copyfile(Path(__file__).with_name(name), folder / name)
    todo, done = list(modules), set()
    while todo:
        path, _, only = todo.pop().partition(":")
        if path in done:
            continue
        done.add(path)
        text = (probes.PACKAGE / path).read_text(encoding="utf-8")
        if only:
            text = _part(text, only)
        target = package / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="\n")
        todo += _imported(text)
    for inner in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        if not (inner / "__init__.py").exists():
            (inner / "__init__.py").write_text("", encoding="utf-8", newline="\n")
    return folder


def _imported(text: str) -> list[str]:
    """The package's own modules that a text imports."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "fairlane":
            name = (node.module or "").removeprefix("fairlane").replace(".", "/").strip("/")
            paths = [f"{name}.py", *(f"{name}/{alias.name}.py".lstrip("/") for alias in node.names)]
            found += [path for path in paths if (probes.PACKAGE / path).is_file()]
    return found


def _part(text: str, only: str) -> str:
    """A module's imports and constants, and one of its classes or functions."""
    lines = text.splitlines(keepends=True)
    kept = []
    for node in ast.parse(text).body:
        wanted = isinstance(node, ast.Import | ast.ImportFrom) or (isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == only)
        if isinstance(node, ast.Assign):
            wanted = not any(isinstance(one, ast.Call) for one in ast.walk(node))
        if wanted:
            first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
            kept += [*lines[first - 1 : node.end_lineno], "\n"]
    return "".join(kept)

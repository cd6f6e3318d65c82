"""Python files of a user's own, read without Python's cache of compiled files.

The cache knows a file by its time in whole seconds and its length, so that a file changed twice in a second may be taken for the old one; and it
leaves a folder `__pycache__` beside it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType


def module_of(path: Path, name: str) -> ModuleType:
    """The file as a module of this name, which joins `sys.modules`. OSError: it cannot be read; what the file raises passes through."""
    module = ModuleType(name)
    module.__file__ = source = str(path.resolve())
    text = path.read_bytes()
    sys.modules[name] = module  # dataclasses look their module up there
    exec(compile(text, source, "exec"), vars(module))
    return module


class OwnFault(Exception):
    """A user's own Python raised something while it was called: the message names file, line and what was called."""


def line_of(path: Path, error: Exception) -> str:
    """Where in the file an exception came from, as ":12"; "" if not there."""
    lines, trace = [], error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path.resolve()):
            lines.append(trace.tb_lineno)
        trace = trace.tb_next
    return f":{lines[-1]}" if lines else ""


def fault(path: Path, what: str, error: Exception) -> OwnFault:
    return OwnFault(f"{path}{line_of(path, error)}: {what}: {type(error).__name__}: {error}")

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

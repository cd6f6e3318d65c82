"""The control plane that a Python file of one's own has."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from fairlane.controller.plane.base import ControlPlane, events
from fairlane.controller.plane.engine import PlaneError
from fairlane.inputs import own_python
from fairlane.inputs.schema import nearest


def load(path: Path) -> type[ControlPlane]:
    """PlaneError names the file, and the line where it is known."""
    if not path.is_file():
        raise PlaneError(f"{path}: no such file")
    name = "controller_own_" + re.sub(r"[^a-zA-Z0-9_]", "_", path.stem)
    try:
        module = own_python.module_of(path, name)
    except SyntaxError as error:
        raise PlaneError(f"{path}:{error.lineno}: {error.msg}") from error
    except Exception as error:  # whatever the file raises while it is read
        raise PlaneError(f"{path}{own_python.line_of(path, error)}: cannot be read: {type(error).__name__}: {error}") from error
    found = [
        kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, ControlPlane) and kind.__module__ == name
    ]
    bases = {base for kind in found for base in kind.__mro__[1:]}
    found = [kind for kind in dict.fromkeys(found) if kind not in bases]
    if not found:
        raise PlaneError(
            f"{path}: has no class that is based on ControlPlane. Begin with: from fairlane.controller.plane import ControlPlane"
        )
    if len(found) > 1:
        places = " and ".join(f"{kind.__name__} (line {inspect.getsourcelines(kind)[1]})" for kind in found)
        raise PlaneError(f"{path}: has several control planes, {places}: leave one")
    _check(path, found[0])
    return found[0]


def made(path: str, kind: type[ControlPlane]) -> ControlPlane:
    """PlaneError: the class cannot be made."""
    try:
        return kind()
    except Exception as error:  # whatever the user's code raises
        raise PlaneError(f"{path}{own_python.line_of(Path(path), error)}: {kind.__name__}(): {type(error).__name__}: {error}") from error


def _check(path: Path, kind: type[ControlPlane]) -> None:
    known = events(kind)
    for name, method in inspect.getmembers(kind, callable):
        if name.startswith("on_") and name not in known:
            line = inspect.getsourcelines(method)[1]
            raise PlaneError(f"{path}:{line}: {kind.__name__} has no event {name!r}{nearest(name, known)}")
    interval_s = kind.interval_s
    if interval_s is not None and not (isinstance(interval_s, (int, float)) and 1e-6 <= interval_s < float("inf")):
        raise PlaneError(f"{path}: interval_s: must be at least 1e-6 s, got {interval_s!r}")

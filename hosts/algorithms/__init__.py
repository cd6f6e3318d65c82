"""Rate-adaptation algorithms by name: pure state machines, see `hosts.algorithms.base`.

A file of this folder that lists its flow kinds in `KINDS` is found by itself: a new algorithm is one new file. A file elsewhere joins
them by `load_file`, or by its path in the environment variable `FAIRLANE_ALGORITHMS` (several: joined as in PATH), which processes that
a run starts inherit.
"""

from __future__ import annotations

import os
import re
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

from hosts.algorithms.base import Kind

FILES_VARIABLE = "FAIRLANE_ALGORITHMS"
_KIND_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

ALGORITHMS: dict[str, Kind] = {}
"""Every flow kind that an algorithm file lists, by name."""
_ORIGINS: dict[str, str] = {}


def _take(module: ModuleType, file: str) -> list[str]:
    kinds = getattr(module, "KINDS", ())
    for kind in kinds:
        if not isinstance(kind, Kind):
            raise ValueError(f"{file}: KINDS holds {kind!r}, which is no hosts.algorithms.base.Kind")
        if not _KIND_NAME.fullmatch(kind.name):
            raise ValueError(f"{file}: the flow kind {kind.name!r}: lower case, words joined by hyphens")
        if _ORIGINS.get(kind.name, file) != file:
            raise ValueError(f"{file}: the flow kind {kind.name!r} is listed in {_ORIGINS[kind.name]}, too")
    for kind in kinds:
        ALGORITHMS[kind.name] = kind
        _ORIGINS[kind.name] = file
    return [kind.name for kind in kinds]


def load_file(path: Path | str) -> list[str]:
    """The flow kinds of a file that lies anywhere, added to `ALGORITHMS`; one that was loaded before is read again. ValueError names the
    file and what is wrong with it; what the file itself raises passes through."""
    path = Path(path).resolve()
    name = f"hosts_own_{re.sub(r'[^a-zA-Z0-9_]', '_', path.stem)}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ValueError(f"{path}: no such Python file")
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    found = _take(module, str(path))
    if not found:
        raise ValueError(f"{path}: lists no flow kind. Write KINDS = (Kind(\"my-rate\", ...),), as the files of hosts/algorithms do")
    return found


def file_of(kind: str) -> str:
    """The file that a flow kind stands in."""
    return _ORIGINS[kind]


def _find() -> None:
    for module in sorted(m.name for m in iter_modules(__path__)):
        _take(import_module(f"{__name__}.{module}"), f"hosts/algorithms/{module}.py")
    for path in filter(None, os.environ.get(FILES_VARIABLE, "").split(os.pathsep)):
        load_file(path)


_find()

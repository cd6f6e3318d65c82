"""All schemes: those of p4src/schemes, and folders of a user's own that lie anywhere. One loader reads both.

Folders of a user's own are listed in the environment variable `FAIRLANE_SCHEMES` (several: joined as in PATH), so that processes that a run starts
know them too.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fairlane.inputs import own_python
from fairlane.schemes import FOLDERS_VARIABLE as FOLDERS_VARIABLE
from fairlane.schemes.base import Parameters, Scheme

FOLDER = (Path(__file__).resolve().parents[1] / "p4src" / "schemes").resolve()
"""Of Fairlane's own."""
MODULES = "fairlane_scheme_"
"""How the modules of a user's own begin."""
DESCRIPTION = "scheme.py"
DROPTAIL = "droptail"
"""No scheme: only a full queue drops."""

SCHEMES: dict[str, Scheme] = {}
"""By name, in the order of lists."""
_read: dict[str, bytes] = {}
"""The descriptions that they were read from."""


def load(folder: Path | str) -> Scheme:
    """The scheme of a folder, added to `SCHEMES`; one of a user's own whose description has changed since is read again. ValueError names the folder and what is
    wrong with it, or the other folder with a scheme of this name; what its `scheme.py` itself raises passes through."""
    folder = Path(folder).resolve()
    description = folder / DESCRIPTION
    if not description.is_file():
        raise ValueError(f"{folder}: no scheme: a scheme's folder has a file {DESCRIPTION} (docs/own-scheme.md)")
    text = description.read_bytes()
    for before in SCHEMES.values():
        if before.folder.resolve() == folder and before.file.is_file() and _read.get(before.name) == text:
            return before
    if folder.parent == FOLDER:
        module = importlib.import_module(f"fairlane.p4src.schemes.{folder.name}.scheme")
    else:
        module = own_python.module_of(description, MODULES + folder.name.replace("-", "_"))
    scheme = getattr(module, "SCHEME", None)
    if not isinstance(scheme, Scheme):
        raise ValueError(f'{description}: describes no scheme. Write SCHEME = Scheme("my-scheme", ...), as the files of p4src/schemes do')
    known = SCHEMES.get(scheme.name)
    if scheme.name == DROPTAIL or (known is not None and known.folder.resolve() != folder and is_own(known)):
        raise ValueError(f"{description}: a scheme called {scheme.name!r} comes with Fairlane: give yours another name")
    for file in [scheme.file, *([scheme.header_file] if scheme.header else [])]:
        if not file.is_file():
            raise ValueError(f"{folder}: no P4 file {file.name}, which a scheme called {scheme.name!r} has")
    if known is not None and _is_another(known, scheme, text):
        raise ValueError(f"{folder}: a scheme called {scheme.name!r} comes from {known.folder} already: give one of the two another name")
    SCHEMES[scheme.name], _read[scheme.name] = scheme, text
    ordered = sorted(SCHEMES.values(), key=lambda one: (not is_own(one), one.order, one.name))
    SCHEMES.clear()
    SCHEMES.update((one.name, one) for one in ordered)
    return scheme


def _is_another(known: Scheme, scheme: Scheme, text: bytes) -> bool:
    """Whether one that is known is there still, in another folder, and differs from a scheme with this description: a copy, as results have it, does not."""
    if known.folder.resolve() == scheme.folder.resolve() or not known.file.is_file():
        return False
    return _read.get(known.name) != text or known.file.read_bytes() != scheme.file.read_bytes()


def is_own(scheme: Scheme) -> bool:
    """Whether it comes with Fairlane."""
    return scheme.folder.resolve().parent == FOLDER


def listed() -> list[str]:
    """The folders that the environment variable lists."""
    return list(filter(None, os.environ.get(FOLDERS_VARIABLE, "").split(os.pathsep)))


def queues(marking: bool = False) -> list[Scheme]:
    """The queue managements, of which each link has one; marking: those that can mark packets."""
    return [scheme for scheme in SCHEMES.values() if not scheme.everywhere and (scheme.can_mark or not marking)]


def names(marking: bool = False) -> list[str]:
    """Of queue managements."""
    return [scheme.name for scheme in queues(marking)]


def default_marking() -> str:
    """The one that marks where nobody chose: the first in the order of lists that can, and is not in every program anyway."""
    return next(name for name, scheme in SCHEMES.items() if scheme.can_mark and not scheme.standing)


def parameters() -> Mapping[str, type[Parameters]]:
    """The class of each queue management's parameters, by name."""
    return {scheme.name: scheme.parameters for scheme in queues()}


def parameters_everywhere() -> Mapping[str, type[Parameters]]:
    """The same of schemes that are at every port, where they have any."""
    return {name: scheme.parameters for name, scheme in SCHEMES.items() if scheme.everywhere and scheme.keys}


def settings() -> Mapping[str, type[Any]]:
    """The class of each scheme's parameters at a port, by name."""
    return {name: scheme.settings for name, scheme in SCHEMES.items()}


def standing() -> list[Scheme]:
    """Those of every program."""
    return [scheme for scheme in SCHEMES.values() if scheme.standing]


def in_order(schemes: Iterable[Scheme]) -> list[Scheme]:
    """Each once, in the order of lists."""
    wanted = {scheme.name for scheme in schemes}
    return [scheme for name, scheme in SCHEMES.items() if name in wanted]


FAULTS: list[str] = []
"""What is wrong with folders of the environment variable, which are then left out: commands refuse to begin."""

for _folder in sorted(path.parent for path in FOLDER.glob(f"*/{DESCRIPTION}")):
    load(_folder)
for _path in listed():
    try:
        load(_path)
    except Exception as _error:  # noqa: BLE001 # any exception that the file raises while it is read
        FAULTS.append(f"{FOLDERS_VARIABLE}: {_path}: {_error}")

"""`made.json`, next to results: everything needed to reproduce them, and the user's own files in `files/`.

    {"fairlane": {"version": "1.2", "commit": "7d3b830...", "changed": false, "sources_sha256": "...", "module_sha256": "..."},
     "python": "CPython 3.12.1", "system": "Linux x86_64", "packages": {"numpy": "2.1.0", ...},
     "command": ["fairlane", "run", "study.toml", "--algorithm", "my_rate.py"], "files": {"files/my_rate.py": "SHA-256", ...}}

changed: whether files that git tracks differ from the commit. Paths are relative to the command's current folder; any other path is shortened to
its last name, so that no file names a person. Only this file contains such data: the other files are the same on any machine.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from fairlane import probes
from fairlane.experiments.model import Experiment
from fairlane.results import result_folder
from fairlane.results.nameless import nameless, of_experiment

FILE = "made.json"
COMMIT = "commit.json"
"""In a wheel: the commit that it was built from."""
_SOURCES = (".py", ".p4", ".toml", ".mahi", ".csv")
_PACKAGES = ("finsy", "matplotlib", "numpy", "pandas", "protobuf", "pydantic")


def write(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """`FILE` and the user's own files, text by name, into a folder of results."""
    written = []
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        written.append(result_folder.write_whole(folder / name, text))
    digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in sorted(files.items())}
    return [
        *written,
        result_folder.write_whole(folder / FILE, result_folder.json_text({**_about(), "command": command(), "files": digests})),
    ]


@cache
def commit() -> tuple[str | None, bool]:
    """The commit of the checkout when this was first called, or that a wheel was built from, and whether files that git knows differed from it;
    (None, False): it is not known."""
    if not probes.in_checkout():
        try:
            built = json.loads((probes.PACKAGE / COMMIT).read_text(encoding="utf-8"))
            return str(built["commit"]), bool(built["changed"])
        except (OSError, ValueError, KeyError, TypeError):
            return None, False
    try:
        # A run may be killed here: git must not have a lock of the user's index then.
        name, changes = (
            subprocess.run(
                ["git", "--no-optional-locks", "-C", str(probes.ROOT), *what], encoding="utf-8", capture_output=True, check=True
            ).stdout.strip()
            for what in (("rev-parse", "HEAD"), ("status", "--porcelain", "--untracked-files=no"))
        )
    except (OSError, subprocess.CalledProcessError):
        return None, False
    return name, bool(changes)


@cache
def _about() -> dict[str, Any]:
    name, changed = commit()
    return {
        "fairlane": {
            "version": version("fairlane"),
            "commit": name,
            "changed": changed if name else None,
            "sources_sha256": _sources(),
            "module_sha256": _module(),
        },
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.machine()}",
        "packages": {package: found for package in _PACKAGES if (found := _version(package))},
    }


def identity() -> bytes:
    """The same where Fairlane is the same: of sources and module."""
    return hashlib.sha256(f"{_sources()} {_module()}".encode()).digest()


def identity_of(experiment: Experiment, files: Mapping[str, str]) -> bytes:
    """The same where an experiment and the user's own files, text by name, are the same."""
    return hashlib.sha256(result_folder.json_text({"experiment": of_experiment(experiment), "files": dict(files)}).encode()).digest()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _sources() -> str:
    """Of what is installed, the same for a checkout and its wheel: names and texts."""
    digest = hashlib.sha256()
    found = []
    for folder, inner, names in os.walk(probes.PACKAGE, followlinks=True):
        inner[:] = [name for name in inner if name != "__pycache__" and not name.startswith(".")]
        found += [Path(folder) / name for name in names if name.endswith(_SOURCES)]
    for path in sorted(found):
        digest.update(f"{path.relative_to(probes.PACKAGE).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _module() -> str | None:
    """Of the compiled module."""
    found = next((path for path in probes.PACKAGE.glob("native*") if path.suffix in (".so", ".pyd")), None)
    return hashlib.sha256(found.read_bytes()).hexdigest() if found else None


def command() -> list[str] | None:
    """The command line of this process; None where it is not Fairlane's own, as in a notebook."""
    program = Path(sys.argv[0])
    if program.name != "fairlane" and (program.name, program.parent.name) != ("__main__.py", "fairlane"):
        return None
    return ["fairlane", *map(nameless, sys.argv[1:])]

"""A user's own files in a run: algorithms of any Python file, and P4 files that replace those of the same name in `p4src`."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from fairlane import probes
from fairlane.errors import Refusal
from fairlane.experiments.model import Experiment
from fairlane.hosts import own_algorithms
from fairlane.inputs import schema


def use_algorithm(path: str | Path) -> list[str]:
    """The flow kinds of a Python file anywhere, which experiments may name from now on; processes that runs start know them too.
    Refusal names the fault of the file."""
    try:
        found = own_algorithms.load_file(path)
    except (ValueError, OSError) as error:
        raise Refusal(str(error)) from error
    except Exception as error:  # any exception that the file raises while it is read
        raise Refusal(f"{path}: cannot be read as Python: {type(error).__name__}: {error}") from error
    listed = own_algorithms.listed()
    if str(Path(path).resolve()) not in listed:
        os.environ[own_algorithms.FILES_VARIABLE] = os.pathsep.join([*listed, str(Path(path).resolve())])
    return found


def with_programs(experiment: Experiment, files: Sequence[Path]) -> Experiment:
    """The experiment with other files in its switches' program: each replaces the file of its name next to the program, or is
    itself the program when it has the program's name. Refusal for a file that does not exist or replaces none."""
    if not files:
        return experiment
    program = probes.source(experiment.settings.control.program)
    digest = hashlib.sha256()
    for path in sorted([*program.parent.glob("*.p4"), *files]):
        if not path.is_file():
            raise Refusal(f"--program {path}: no such file")
        digest.update(str(path).encode() + b"\0" + path.read_bytes() + b"\0")
    folder = Path("build").absolute() / "programs" / digest.hexdigest()[:16]
    control = replace(experiment.settings.control, program=str(assemble(program, files, folder)))
    return replace(experiment, settings=replace(experiment.settings, control=control))


def assemble(program: Path, files: Sequence[Path], folder: Path) -> Path:
    """Copy a program and the files next to it into `folder`, with some of them replaced; returns the program's copy. Refusal for a file that
    replaces none."""
    beside = {path.name: path for path in sorted(program.parent.glob("*.p4"))}
    for path in files:
        _check_replaces(path, program, beside)
    folder.mkdir(parents=True, exist_ok=True)
    for name, path in {**beside, **{path.name: path for path in files}}.items():
        shutil.copyfile(path, folder / name)
    return folder / program.name


def check_replaced(program: str, files: Sequence[str | Path]) -> None:
    """Refusal for a file that replaces none beside an experiment's program."""
    source = probes.source(program)
    for path in files:
        _check_replaces(Path(path), source, [beside.name for beside in sorted(source.parent.glob("*.p4"))])


def _check_replaces(path: Path, program: Path, beside: Collection[str]) -> None:
    if path.name not in beside:
        raise Refusal(
            f"{path}: replaces the file of the same name in {program.parent.name}/, but there is none"
            f"{schema.nearest(path.name, list(beside))}; it has {', '.join(beside)}"
        )

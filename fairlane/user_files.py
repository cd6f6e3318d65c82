"""A user's own files in a run: algorithms from Python files, schemes from folders, and P4 programs, complete or as files that replace those of the same name in `p4src`."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fairlane import probes
from fairlane.controller import records
from fairlane.errors import Refusal
from fairlane.experiments.model import Experiment
from fairlane.hosts import own_algorithms
from fairlane.hosts.algorithms import ALGORITHMS
from fairlane.inputs import schema
from fairlane.schemes import chosen, registry
from fairlane.schemes.base import Scheme

KEPT = "files"
"""Of a folder of results, the part that has the user's own files."""
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)


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


def check_environment() -> None:
    """Refusal: a folder that the environment variable lists is no scheme's."""
    if registry.FAULTS:
        raise Refusal("\n".join(registry.FAULTS))


def use_scheme(path: str | Path) -> str:
    """The name of the scheme of a folder anywhere, which links may have from now on; processes that runs start know it too. Refusal names the fault of
    the folder."""
    listed, folder = registry.listed(), str(Path(path).resolve())
    if os.pathsep in folder:
        raise Refusal(
            f"--scheme {path}: {folder}: {os.pathsep!r} is in the name, which separates folders in {registry.FOLDERS_VARIABLE}: rename it"
        )
    try:
        found = registry.load(path)
        taken = records.OWN_COLUMNS & {counter.column for counter in found.counters}
        if taken:
            del registry.SCHEMES[found.name]
            raise ValueError(f"counters: column {min(taken)!r} is one of the controller's own: give yours another name")
    except (ValueError, OSError) as error:
        raise Refusal(f"--scheme {path}: {error}") from error
    except Exception as error:  # any exception that the file raises while it is read
        raise Refusal(f"--scheme {path}: {registry.DESCRIPTION} cannot be read: {type(error).__name__}: {error}") from error
    if folder not in listed and not registry.is_own(found):
        os.environ[registry.FOLDERS_VARIABLE] = os.pathsep.join([*listed, folder])
    return found.name


def scheme_files(scheme: Scheme) -> dict[str, str]:
    """The files of a scheme's folder, by name."""
    found = sorted(path for path in scheme.folder.iterdir() if path.suffix in (".py", ".p4", ".stf", ".md") and path.is_file())
    try:
        return {path.name: path.read_text(encoding="utf-8") for path in found}
    except (OSError, UnicodeDecodeError) as error:
        raise Refusal(f"{scheme.folder}: cannot be read: {error}") from error


@dataclass(frozen=True)
class OwnProgram:
    """A P4 program of the user's own. files: name and text of it, of the files beside it, and of all that they include, from one folder on; main: the
    program's name there."""

    main: str
    files: tuple[tuple[str, str], ...]

    @property
    def digest(self) -> str:
        return hashlib.sha256(repr((self.main, self.files)).encode()).hexdigest()

    def place(self, folder: Path) -> Path:
        """Write the files into a folder, if it is not there yet; returns the program's path."""
        if not folder.is_dir():
            for name, text in self.files:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(text, encoding="utf-8", newline="\n")
        return folder / self.main


def own_program(program: str | Path) -> OwnProgram | None:
    """None for a program of Fairlane's. Refusal: a file cannot be read."""
    source = Path(os.path.normpath(probes.source(str(program)).absolute()))
    if source.is_relative_to(probes.PACKAGE):
        return None
    texts: dict[Path, str] = {}
    todo = [source, *sorted(source.parent.glob("*.p4")), *sorted(source.parent.glob("schemes/*/*.p4"))]
    while todo:
        path = Path(os.path.normpath(todo.pop()))
        if path in texts:
            continue
        try:
            texts[path] = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise Refusal(f"{path}: cannot be read: {error}") from error
        for name in _INCLUDE.findall(texts[path]):
            beside = (folder / name for folder in (path.parent, source.parent))
            todo += [found for found in beside if found.is_file() and not found.is_relative_to(probes.PACKAGE)][:1]
    root = Path(os.path.commonpath([path.parent for path in texts]))
    return OwnProgram(
        source.relative_to(root).as_posix(), tuple(sorted((path.relative_to(root).as_posix(), text) for path, text in texts.items()))
    )


def own_algorithm_files(kinds: Iterable[str]) -> list[Path]:
    """The Python files of the user's own in which flow kinds are written."""
    modules = {half.__module__ for kind in kinds if kind in ALGORITHMS for half in (ALGORITHMS[kind].sender, ALGORITHMS[kind].receiver)}
    own = (sys.modules[name].__file__ for name in sorted(modules) if name.startswith(own_algorithms.MODULES))
    return [Path(path) for path in own if path]


def of_experiments(experiments: Iterable[Experiment]) -> dict[str, str]:
    """All files of the user's own that decide these experiments' runs: text by the name in a folder of results."""
    found: dict[str, str] = {}
    programs: dict[str, str] = {}
    for experiment in experiments:
        for path in own_algorithm_files(flow.kind for flow in experiment.flows):
            found[f"{KEPT}/{path.name}"] = path.read_text(encoding="utf-8")
        for scheme in experiment.schemes:
            if not registry.is_own(scheme):
                found |= {f"{KEPT}/schemes/{scheme.name}/{name}": text for name, text in scheme_files(scheme).items()}
        program = own_program(experiment.settings.control.program)
        if program is not None and program.digest not in programs:
            programs[program.digest] = place = numbered_place(len(programs))
            found |= {f"{place}/{name}": text for name, text in program.files}
    return found


def kept(files: Iterable[Path]) -> dict[str, str]:
    """Control planes of the user's own: text by the name in a folder of results."""
    return {f"{KEPT}/control/{path.name}": path.read_text(encoding="utf-8") for path in files}


def numbered_place(number: int) -> str:
    """Where the P4 program of this number, from 0, is in a folder of results."""
    return f"{KEPT}/program" + (f"-{number + 1}" if number else "")


def kept_program(experiment: Experiment) -> str:
    """The experiment's P4 program as a folder of its results names it: one of the user's own where `of_experiments` puts it."""
    program = own_program(experiment.settings.control.program)
    return experiment.settings.control.program if program is None else f"{numbered_place(0)}/{program.main}"


def with_program(experiment: Experiment, program: str) -> Experiment:
    """The experiment with another P4 program."""
    return replace(experiment, settings=replace(experiment.settings, control=replace(experiment.settings.control, program=program)))


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Of programs that are put together, as long as this process lasts."""
    return tempfile.TemporaryDirectory(prefix="fairlane-programs-")


def with_programs(experiment: Experiment, files: Sequence[Path]) -> Experiment:
    """The experiment with other files in its switches' program: each replaces the file of its name next to the program, or is
    itself the program when it has the program's name, or is whole. Refusal for a file that does not exist or replaces none, and for two whole programs."""
    program = probes.source(experiment.settings.control.program)
    whole = [path for path in files if path.name != program.name and is_whole(path)]
    if len(whole) > 1:
        raise Refusal(f"--program {', --program '.join(map(str, whole))}: several whole programs: give one")
    if whole:
        experiment, program = with_program(experiment, str(whole[0])), whole[0]
        files = [path for path in files if path != program]
    if not files:
        return experiment
    digest = hashlib.sha256()
    for path in sorted([*_beside(program).values(), *files]):
        if not path.is_file():
            raise Refusal(f"--program {path}: no such file")
        digest.update(str(path).encode() + b"\0" + path.read_bytes() + b"\0")
    return with_program(experiment, str(assemble(program, files, Path(_folder().name) / digest.hexdigest()[:16])))


def is_whole(path: Path) -> bool:
    """Whether a P4 file is a program by itself: it has a package called main."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return re.search(r"\)\s*main\s*;", _COMMENT.sub(" ", text)) is not None


def _beside(program: Path) -> dict[Path, Path]:
    """The files that a program may include, by their places beside it; those of schemes are in schemes/NAME."""
    found = {path.relative_to(program.parent): path for path in [*program.parent.glob("*.p4"), *program.parent.glob("schemes/*/*.p4")]}
    for scheme in registry.SCHEMES.values() if chosen.has_choice(program) else ():
        for path in scheme.folder.glob("*.p4"):
            found.setdefault(Path("schemes") / scheme.name / path.name, path)
    return dict(sorted(found.items()))


def replaceable(program: Path) -> dict[str, Path]:
    """By name, the places of the files that a file of the user's own may replace."""
    return {place.name: place for place in _beside(program) if place.name != chosen.NAME}


def assemble(program: Path, files: Sequence[Path], folder: Path) -> Path:
    """Copy a program and the files next to it into `folder`, with some of them replaced; returns the program's copy. Refusal for a file that
    replaces none."""
    places = replaceable(program)
    for path in files:
        _check_replaces(path, program, places)
    for place, path in {**_beside(program), **{places[path.name]: path for path in files}}.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / place)
    return folder / program.name


def check_replaced(program: str, files: Sequence[str | Path]) -> None:
    """Refusal for a file that replaces none beside an experiment's program."""
    source = probes.source(program)
    for path in files:
        _check_replaces(Path(path), source, replaceable(source))


def _check_replaces(path: Path, program: Path, beside: Collection[str]) -> None:
    if path.name not in beside:
        raise Refusal(
            f"{path}: replaces the file of the same name in {program.parent.name}/, but there is none"
            f"{schema.nearest(path.name, list(beside))}; it has {', '.join(beside)}"
        )

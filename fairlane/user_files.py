"""A user's own files in a run: algorithms from Python files, schemes from folders, and P4 programs, complete or as files that replace those of the same name in `p4src`."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairlane import probes
from fairlane.controller import records
from fairlane.errors import Refusal
from fairlane.experiments import loader
from fairlane.experiments.model import Experiment
from fairlane.hosts import own_algorithms
from fairlane.hosts.algorithms import ALGORITHMS
from fairlane.inputs import schema
from fairlane.schemes import chosen, registry
from fairlane.schemes.base import Scheme

KEPT = "files"
"""Of a folder of results, the part that has the user's own files."""
_FOLDERS = {loader.PROGRAM: "program", loader.PLANE: "control"}
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


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
        of_loop = {column.name for column in found.loop.columns} if found.loop else set()
        taken = records.OWN_COLUMNS & {*of_loop, *(counter.column for counter in found.counters)}
        if taken:
            del registry.SCHEMES[found.name]
            raise ValueError(f"column {min(taken)!r} is one of the controller's own: give yours another name")
    except (ValueError, OSError) as error:
        raise Refusal(f"--scheme {path}: {error}") from error
    except Exception as error:  # any exception that the file raises while it is read
        raise Refusal(f"--scheme {path}: {registry.DESCRIPTION} cannot be read: {type(error).__name__}: {error}") from error
    if registry.is_own(found):
        return found.name
    try:
        scheme_files(found)
    except Refusal as refusal:
        del registry.SCHEMES[found.name]
        raise Refusal(f"--scheme {path}: {refusal}") from refusal
    if folder not in listed:
        os.environ[registry.FOLDERS_VARIABLE] = os.pathsep.join([*listed, folder])
    if found.algorithm_file.is_file() and not registry.is_own(found):
        use_algorithm(found.algorithm_file)
    return found.name


def scheme_files(scheme: Scheme) -> dict[str, str]:
    """The files of a scheme's folder, and all that its P4 files include, by name from there. Refusal: one of them is outside the folder, so that it would not
    go with the scheme."""
    folder = Path(os.path.normpath(scheme.folder.absolute()))
    found = sorted(path for path in folder.iterdir() if path.suffix in (".py", ".p4", ".stf", ".md") and path.is_file())
    texts = {path: _text(path) for path in found if path.suffix != ".p4"}
    for path, (text, source) in _with_included([path for path in found if path.suffix == ".p4"], folder).items():
        if not path.is_relative_to(folder):
            raise Refusal(
                f"{source}: includes {path}, which is outside the scheme's folder, and results would lack it: move it to {folder}."
            )
        texts[path] = text
    return {path.relative_to(folder).as_posix(): texts[path] for path in sorted(texts)}


def _with_included(files: Iterable[Path], folder: Path) -> dict[Path, tuple[str, Path]]:
    """P4 files with all of the user's own that they include, beside them or in a folder: text, and the file that includes it."""
    found: dict[Path, tuple[str, Path]] = {}
    todo = [(path, path) for path in files]
    while todo:
        path, source = todo.pop()
        path = Path(os.path.normpath(path))
        if path in found:
            continue
        text = _text(path)
        found[path] = text, source
        for name in chosen.INCLUDE.findall(_COMMENT.sub(" ", text)):
            beside = (place / name for place in (path.parent, folder))
            todo += [(one, path) for one in beside if one.is_file() and not one.is_relative_to(probes.PACKAGE)][:1]
    return found


@dataclass(frozen=True)
class OwnSource:
    """A P4 program or a control plane of the user's own. files: name and text of it, of P4 files beside it, and of all that they include, from one folder
    on; main: its name there."""

    main: str
    files: tuple[tuple[str, str], ...]

    @property
    def digest(self) -> str:
        return hashlib.sha256(repr((self.main, self.files)).encode()).hexdigest()

    def place(self, folder: Path) -> Path:
        """Write the files into a folder, if it is not there yet; returns the path of `main`."""
        if not folder.is_dir():
            for name, text in self.files:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(text, encoding="utf-8", newline="\n")
        return folder / self.main


def own_source(key: str, name: str) -> OwnSource | None:
    """What a key of `loader.OWN_FILES` names; None for a program of Fairlane's, and for no file. Refusal: a file cannot be read."""
    if key == loader.PROGRAM:
        return _own_program(name)
    return OwnSource(Path(name).name, ((Path(name).name, _text(Path(name))),)) if name else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refusal(f"{path}: cannot be read: {error}") from error


def _own_program(program: str) -> OwnSource | None:
    source = Path(os.path.normpath(probes.source(program).absolute()))
    if source.is_relative_to(probes.PACKAGE):
        return None
    beside = [source, *sorted(source.parent.glob("*.p4")), *sorted(source.parent.glob("schemes/*/*.p4"))]
    texts = {path: text for path, (text, _) in _with_included(beside, source.parent).items()}
    root = Path(os.path.commonpath([path.parent for path in texts]))
    return OwnSource(
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
    seen: dict[str, set[str]] = {key: set() for key in loader.OWN_FILES}
    for experiment in experiments:
        of_schemes = {scheme.algorithm_file.resolve() for scheme in experiment.schemes}
        for path in own_algorithm_files(flow.kind for flow in experiment.flows):
            if path not in of_schemes:
                found[f"{KEPT}/{path.name}"] = path.read_text(encoding="utf-8")
        for scheme in experiment.schemes:
            if not registry.is_own(scheme):
                found |= {f"{KEPT}/schemes/{scheme.name}/{name}": text for name, text in scheme_files(scheme).items()}
        for key, digests in seen.items():
            source = own_source(key, getattr(experiment.settings.control, key))
            if source is not None and source.digest not in digests:
                place = numbered_place(key, len(digests))
                digests.add(source.digest)
                found |= {f"{place}/{name}": text for name, text in source.files}
    return found


def numbered_place(key: str, number: int) -> str:
    """Where the file of this number, from 0, under a key of `loader.OWN_FILES` is in a folder of results."""
    return f"{KEPT}/{_FOLDERS[key]}" + (f"-{number + 1}" if number else "")


def kept_names(experiment: Experiment) -> dict[str, str]:
    """The user's own files of [control], by key, as a folder of the experiment's results names them: where `of_experiments` puts them."""
    sources = {key: own_source(key, getattr(experiment.settings.control, key)) for key in loader.OWN_FILES}
    return {key: f"{numbered_place(key, 0)}/{source.main}" for key, source in sources.items() if source is not None}


def with_files(experiment: Experiment, files: Mapping[str, str]) -> Experiment:
    """The experiment with other files of [control], by key."""
    values: dict[str, Any] = dict(files)
    settings = replace(experiment.settings, control=replace(experiment.settings.control, **values))
    return replace(experiment, settings=settings, topology=loader.routed(experiment.topology, settings))


def with_control(experiment: Experiment, file: Path | None) -> Experiment:
    """The experiment with the control plane of a file, if one is given. Refusal: there is no such file."""
    return experiment if file is None else with_files(experiment, {loader.PLANE: str(checked_control(file))})


def checked_control(file: Path) -> Path:
    """Refusal: there is no such file."""
    if not file.is_file():
        raise Refusal(f"--control {file}: no such file")
    return file


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Of programs that are put together, as long as this process lasts."""
    return tempfile.TemporaryDirectory(prefix="fairlane-programs-")


def with_programs(experiment: Experiment, files: Sequence[Path]) -> Experiment:
    """The experiment with other files in its switches' program: each replaces the file of its name next to the program, or is
    itself the program when it has the program's name, or is whole. Refusal for a file that does not exist or replaces none, and for two whole programs."""
    program = probes.source(experiment.settings.control.program)
    whole = whole_of(files, program.name)
    if whole is not None:
        experiment, program = with_files(experiment, {loader.PROGRAM: str(whole)}), whole
        files = [path for path in files if path != program]
    if not files:
        return experiment
    digest = hashlib.sha256()
    for path in sorted([*_beside(program).values(), *files]):
        if not path.is_file():
            raise Refusal(f"--program {path}: no such file")
        digest.update(str(path).encode() + b"\0" + path.read_bytes() + b"\0")
    assembled = assemble(program, files, Path(_folder().name) / digest.hexdigest()[:16])
    return with_files(experiment, {loader.PROGRAM: str(assembled)})


def whole_of(files: Sequence[Path], program: str) -> Path | None:
    """Of P4 files that options give, the one that takes the place of an experiment's program, whose name is `program`. Refusal for several."""
    whole = [path for path in files if path.name != program and _is_whole(path)]
    if len(whole) > 1:
        raise Refusal(f"--program {', --program '.join(map(str, whole))}: several whole programs: give one")
    return whole[0] if whole else None


def _is_whole(path: Path) -> bool:
    """Whether a P4 file is a program by itself: it has a package called main."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return re.search(r"\)\s*main\s*;", _COMMENT.sub(" ", text)) is not None


def _beside(program: Path) -> dict[Path, Path]:
    """The files that a program may include, by their places beside it; those of schemes are in schemes/NAME."""
    found = {path.relative_to(program.parent): path for path in [*program.parent.glob("*.p4"), *program.parent.glob("schemes/*/*.p4")]}
    if chosen.has_choice(program):
        there = chosen.in_itself(program)
        for scheme in registry.SCHEMES.values():
            for path in () if scheme in there else scheme.folder.glob("*.p4"):
                found.setdefault(Path("schemes") / scheme.name / path.name, path)
    return dict(sorted(found.items()))


def replaceable(program: Path) -> dict[str, Path]:
    """By name, the places of the files that a file of the user's own may replace."""
    return {place.name: place for place in _beside(program) if place.name not in (chosen.NAME, chosen.HEADERS_NAME)}


def assemble(program: Path, files: Sequence[Path], folder: Path) -> Path:
    """Copy a program and the files next to it into `folder`, with some of them replaced; returns the program's copy. Refusal for a file that
    replaces none."""
    places = replaceable(program)
    for path in files:
        _check_replaces(path, program, places)
    for place, path in {**_beside(program), **{places[path.name]: path for path in files}}.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / place)
    for scheme in chosen.in_itself(folder / program.name):
        place, beside = folder / "schemes" / scheme.name / scheme.file.name, folder / scheme.file.name
        if place.is_file() and not beside.is_file():
            shutil.copyfile(place, beside)
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

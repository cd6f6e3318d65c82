"""The P4 program of each switch, found from the names in the files, and compiled if necessary.

The tutorials run in an exercise's folder, whose `x.p4` make compiles to `build/x.json`. Here the folder is found from the names, and
nothing is written into it: compiled programs go to the run's own folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairlane.controller.p4info import P4Info
from fairlane.errors import Refusal
from fairlane.fabrics.targets import Compiles
from fairlane.inputs.located_toml import Document, KeyPath
from fairlane.tutorials import runtime
from fairlane.tutorials.runtime import LocatedUpdate, RuntimeFile
from fairlane.tutorials.topology import Switch, TutorialTopology

QUEUE_PACKETS = 64
"""Frames that wait in a switch's port; BMv2's own queues hold as many."""
ELECTION_ID = 1


@dataclass(frozen=True)
class SwitchProgram:
    """What a switch is given. runtime: None where the file names none; nothing then writes its entries."""

    switch: Switch
    json: Path
    p4info: Path
    runtime: RuntimeFile | None
    updates: tuple[LocatedUpdate, ...]
    origin: str


def exercise_folder(topology: TutorialTopology) -> Path:
    """The folder that the files' names start from: the topology's own, or the one above, whichever has the runtime files."""
    own = topology.path.resolve().parent
    names = [s.runtime_json for s in topology.switches if s.runtime_json is not None]
    candidates = [own, own.parent, Path.cwd()]
    for folder in candidates:
        if names and all((folder / name).is_file() for name in names):
            return folder
    if names:
        switch = next(s for s in topology.switches if s.runtime_json is not None)
        raise topology.document.error(
            ("switches", switch.name, "runtime_json"), f"no file {switch.runtime_json} in {own}, {own.parent}, or where you are"
        )
    return next((folder for folder in candidates[:2] if any(folder.glob("*.p4"))), own)


def find(topology: TutorialTopology, given: Sequence[Path], toolchain: Compiles, folder: Path) -> list[SwitchProgram]:
    """Each switch's program, compiled into `folder` if necessary. given: sources to compile instead of those next to the files; each
    replaces the program of the same name. ConfigError or Refusal says what is missing."""
    return _Finder(topology, given, toolchain, folder).all()


class _Finder:
    def __init__(self, topology: TutorialTopology, given: Sequence[Path], toolchain: Compiles, folder: Path) -> None:
        self._topology = topology
        self._exercise = exercise_folder(topology)
        self._given = {path.stem: path for path in given}
        for path in given:
            if not path.is_file():
                raise Refusal(f"--program {path}: no such file")
        self._toolchain = toolchain
        self._folder = folder
        self._compiled: dict[Path, tuple[Path, Path]] = {}
        self._used: set[str] = set()

    def all(self) -> list[SwitchProgram]:
        found = [self._switch(switch) for switch in self._topology.switches]
        unused = set(self._given) - self._used
        if unused:
            raise Refusal(
                f"--program {self._given[unused.pop()]}: no switch of {self._topology.path} runs a program of that name;"
                f" they run {', '.join(sorted({p.json.stem for p in found}))}"
            )
        return found

    def _switch(self, switch: Switch) -> SwitchProgram:
        head = ("switches", switch.name)
        if switch.runtime_json is None:
            document, path = self._topology.document, (*head, "program") if switch.program else head
            json, p4info, origin = self._program(document, path, switch.program, None)
            return SwitchProgram(switch, json, p4info, None, (), origin)
        given = runtime.read(Path(_shown(self._exercise / switch.runtime_json)))
        json, p4info, origin = self._program(given.document, ("bmv2_json",), given.bmv2_json, given.p4info)
        try:
            info = P4Info.read(p4info)
        except ValueError as error:
            raise given.document.error(("p4info",), str(error)) from error
        return SwitchProgram(switch, json, p4info, given, tuple(runtime.updates(given, info)), origin)

    def _program(self, document: Document, path: KeyPath, json: str | None, p4info: str | None) -> tuple[Path, Path, str]:
        """JSON and P4Info, and where they are from."""
        source = self._source(document, path, json)
        built = self._exercise / json if json is not None else None
        info = self._info_beside(built, p4info)
        if source is not None and source.stem in self._given:
            self._used.add(source.stem)
        elif (
            built is not None
            and built.is_file()
            and info is not None
            and (source is None or source.stat().st_mtime <= built.stat().st_mtime)
        ):
            return built, info, f"{_shown(built)} as built"
        if source is None:
            assert json is not None
            stem = Path(json).stem
            raise document.error(path, f"neither {json} nor {stem}.p4 is in {self._exercise}: --program FILE/{stem}.p4 names the source")
        if source not in self._compiled:
            into = self._folder / f"program{len(self._compiled) + 1}"
            into.mkdir()
            self._compiled[source] = self._toolchain.compile(source, into)
        return *self._compiled[source], f"{_shown(source)} compiled"

    def _source(self, document: Document, path: KeyPath, json: str | None) -> Path | None:
        if json is not None:
            stem = Path(json).stem
            beside = self._exercise / f"{stem}.p4"
            return self._given.get(stem) or (beside if beside.is_file() else None)
        sources = list(self._given.values()) or sorted(self._exercise.glob("*.p4"))
        if len(sources) != 1:
            what = f"there are {', '.join(p.name for p in sources)}" if sources else "there is none"
            raise document.error(path, f"names no program, and of P4 files in {self._exercise} {what}: --program FILE.p4 picks one")
        return sources[0]

    def _info_beside(self, built: Path | None, p4info: str | None) -> Path | None:
        if p4info is not None:
            info = self._exercise / p4info
            return info if info.is_file() else None
        if built is None:
            return None
        return next(
            (p for p in (built.with_name(f"{built.stem}.p4.p4info.txtpb"), built.with_name(f"{built.stem}.p4.p4info.txt")) if p.is_file()),
            None,
        )


def _shown(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)

"""The P4 file `chosen.p4`: which schemes a program has, and where als.p4 applies their controls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fairlane.schemes import registry
from fairlane.schemes.base import PLACES, Scheme

NAME = "chosen.p4"
MACRO = "CHOSEN"
"""With it, als.p4 includes the file of that name that lies in a folder given with -I, in place of the one beside itself."""


def has_choice(program: Path) -> bool:
    """Whether a P4 program takes its schemes from such a file. Programs of before have a macro for each scheme instead (`Scheme.macro`)."""
    return (program.parent / NAME).is_file()


def macros(schemes: Sequence[Scheme]) -> tuple[str, ...]:
    """By which a program of before chooses Fairlane's own schemes."""
    wanted = [scheme for scheme in schemes if registry.is_own(scheme) and not scheme.standing]
    wanted += [registry.SCHEMES[name] for scheme in wanted for name in scheme.needs]
    return tuple(scheme.macro for scheme in registry.in_order(wanted))


def source(scheme: Scheme, program: Path) -> Path:
    """A scheme's P4 file: the one beside the program, in schemes/NAME/, if there is one, which may be a user's copy."""
    beside = program.parent / "schemes" / scheme.name / scheme.file.name
    return beside if beside.is_file() else scheme.file


def text(schemes: Sequence[Scheme], files: Sequence[Path]) -> str:
    """files: of each scheme, in the same order."""
    lines = ["// The schemes of this program, in the order in which each place applies them.", ""]
    lines += [f'#include "{file.as_posix()}"' for file in files]
    for place in PLACES:
        controls = [scheme.controls[place].split() for scheme in schemes if place in scheme.controls]
        declared = "".join(f" {control}() {instance};" for control, instance in controls)
        applied = "".join(f" {instance}.apply(hdr, standard_metadata);" for _, instance in controls)
        lines += ["", f"#define {place.upper()}_CONTROLS{declared}", f"#define {place.upper()}{applied}"]
    return "\n".join(lines) + "\n"


def alone(scheme: Scheme) -> str:
    """The `chosen.p4` in a scheme's own folder: the standing schemes and this one, for packet tests and for compilers by hand
    (-D CHOSEN -I FOLDER -I p4src)."""
    schemes = registry.in_order((*registry.standing(), scheme))
    files = [Path(one.file.name) if one is scheme else Path("schemes") / one.name / one.file.name for one in schemes]
    return text(schemes, files)


def write(schemes: Sequence[Scheme], program: Path, folder: Path) -> Path:
    """Writes the file into a folder, for a program; returns its path."""
    path = folder / NAME
    files = [source(scheme, program).absolute() for scheme in schemes]
    path.write_text(text(schemes, files), encoding="utf-8", newline="\n")
    return path

"""The P4 files `chosen_headers.p4` and `chosen.p4`: which schemes a program has, and where als.p4 has their headers and applies their controls."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from fairlane.schemes import registry
from fairlane.schemes.base import PLACES, Scheme

HEADERS_NAME = "chosen_headers.p4"
NAME = "chosen.p4"
UDP_AND_RTP_BYTES = 8 + 12
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)
MACRO = "CHOSEN"
"""With it, als.p4 includes the files of these names that lie in a folder given with -I, in place of those beside itself."""


def has_choice(program: Path) -> bool:
    """Whether a P4 program takes its schemes from such files. Programs of before have a macro for each scheme instead (`Scheme.macro`)."""
    return (program.parent / NAME).is_file()


def by_macro(program: Path, schemes: Sequence[Scheme]) -> list[Scheme]:
    """Those that a program chooses by macros: of programs of before, all; of programs that take queue managements alone from such a file, the others."""
    if not has_choice(program):
        return list(schemes)
    return [] if (program.parent / HEADERS_NAME).is_file() else [scheme for scheme in schemes if scheme.everywhere]


def in_itself(program: Path) -> list[Scheme]:
    """The standing schemes that a program includes and applies itself, as programs of before do with the fair rate."""
    included = {name.rpartition("/")[2] for name in INCLUDE.findall(program.read_text(encoding="utf-8"))}
    return [scheme for scheme in registry.standing() if scheme.file.name in included]


def macros(schemes: Sequence[Scheme]) -> tuple[str, ...]:
    """By which a program of before chooses Fairlane's own schemes."""
    wanted = [scheme for scheme in schemes if registry.is_own(scheme) and not scheme.standing]
    wanted += [registry.SCHEMES[name] for scheme in wanted for name in scheme.needs]
    return tuple(scheme.macro for scheme in registry.in_order(wanted))


def _headers(schemes: Sequence[Scheme], include: Callable[[Scheme, Path], str]) -> str:
    """The text of `chosen_headers.p4`."""
    found = [(scheme, scheme.header, scheme.name.replace("-", "_")) for scheme in schemes if scheme.header is not None]
    lines = ["// The headers of data packets that this program's schemes read and write, and the parser's states for them.", ""]
    members: list[str] = []
    cases: list[str] = []
    states: list[str] = []
    emits: list[str] = []
    if found:
        lines += ['#include "rtp.p4"', *(f'#include "{include(scheme, scheme.header_file)}"' for scheme, _, _ in found), ""]
        members, states, emits = ["rtp_t rtp;"], ["RTP_STATES"], ["packet.emit(hdr.rtp);"]
    for _, header, name in found:
        members.append(f"{header.member};")
        room = UDP_AND_RTP_BYTES + 4 * (1 + header.words)
        cases.append(f"(RTP_EXTENDED &&& 0x1FE, {header.profile:#06x}, {header.words}, {room}..0xFFFF): parse_{name}_header;")
        extracts = f"packet.extract(hdr.rtp); packet.extract(hdr.{header.name});"
        emits.append(f"packet.emit(hdr.{header.name});")
        if header.hops:
            hop, stack = header.hops.split()
            members.append(f"{hop}[{header.most_hops}] {stack};")
            extracts += f" packet.extract(hdr.{stack}.next);" * header.most_hops
            emits.append(f"packet.emit(hdr.{stack});")
        states.append(f"state parse_{name}_header {{ {extracts} transition accept; }}")
    lines += [f"#define AFTER_UDP {'parse_data' if found else 'accept'}"]
    for macro, parts in {"DATA_HEADERS": members, "DATA_CASES": cases, "DATA_STATES": states, "DATA_EMITS": emits}.items():
        lines.append(" ".join(["#define", macro, *parts]))
    return "\n".join(lines) + "\n"


def _controls(schemes: Sequence[Scheme], include: Callable[[Scheme, Path], str]) -> str:
    """The text of `chosen.p4`."""
    lines = ["// The schemes of this program, in the order in which each place applies them.", ""]
    lines += [f'#include "{include(scheme, scheme.file)}"' for scheme in schemes]
    for place in PLACES:
        controls = [scheme.controls[place].split() for scheme in schemes if place in scheme.controls]
        declared = "".join(f" {control}() {instance};" for control, instance in controls)
        applied = "".join(f" {instance}.apply(hdr, standard_metadata);" for _, instance in controls)
        lines += ["", f"#define {place.upper()}_CONTROLS{declared}", f"#define {place.upper()}{applied}"]
    return "\n".join(lines) + "\n"


def texts(schemes: Sequence[Scheme], include: Callable[[Scheme, Path], str]) -> dict[str, str]:
    """Both files, by name. include: how they name a scheme's file."""
    return {HEADERS_NAME: _headers(schemes, include), NAME: _controls(schemes, include)}


def alone(scheme: Scheme) -> dict[str, str]:
    """The files in a scheme's own folder: the standing schemes and this one, for packet tests and for compilers by hand
    (-D CHOSEN -I FOLDER -I p4src)."""
    schemes = registry.in_order((*registry.standing(), scheme))
    return texts(schemes, lambda one, file: file.name if one is scheme else f"schemes/{one.name}/{file.name}")


def write(schemes: Sequence[Scheme], program: Path, folder: Path) -> None:
    """Writes the files into a folder, for a program. A scheme's P4 file is the one beside the program, in schemes/NAME/, if there is one, which may be a
    user's copy."""

    def include(scheme: Scheme, file: Path) -> str:
        beside = program.parent / "schemes" / scheme.name / file.name
        return (beside if beside.is_file() else file).absolute().as_posix()

    there = in_itself(program)
    for name, text in texts([scheme for scheme in schemes if scheme not in there], include).items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")

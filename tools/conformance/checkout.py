"""Where the programs are in a checkout of p4c, and which of them are for v1model."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)
# Included by other programs: no programs themselves.
_PARTS = ("include", "lib")


class NoCheckout(Exception):
    """The folder is not a checkout of p4c."""


@dataclass(frozen=True)
class Checkout:
    root: Path

    @classmethod
    def at(cls, root: Path) -> Checkout:
        root = root.resolve()
        for needed in ("testdata/p4_16_samples", "testdata/p4_16_errors", "p4include/v1model.p4"):
            if not (root / needed).exists():
                raise NoCheckout(
                    f"{root} has no {needed}: give the folder of a checkout, as `git clone --depth 1 https://github.com/p4lang/p4c` makes it"
                )
        return cls(root)

    @property
    def include(self) -> Path:
        return self.root / "p4include"

    @property
    def samples(self) -> Path:
        return self.root / "testdata/p4_16_samples"

    def v1model_samples(self) -> list[Path]:
        """The samples that include v1model.p4, themselves or through files of theirs."""
        return [p for p in self._programs(self.samples) if includes(p, "v1model.p4")]

    def psa_samples(self) -> list[Path]:
        """The samples that p4c's tests run on psa_switch: by name, and by what they include."""
        named = {p for pattern in ("psa-*.p4", "*-bmv2.p4") for p in self.samples.glob(pattern)}
        return sorted(
            p for p in named if re.search(r"include.*psa\.p4", text_of(p)) and not re.search(r"include.*(v1model\.p4|dpdk)", text_of(p))
        )

    def errors(self) -> list[Path]:
        return sorted((self.root / "testdata/p4_16_errors").glob("*.p4"))

    def all_p4_16(self) -> list[Path]:
        """Every file of testdata that is P4_16 or meant to be."""
        testdata = self.root / "testdata"
        return sorted(p for p in testdata.rglob("*.p4") if not re.match(r"(p4_14|v1_1)_|.*_outputs$", p.relative_to(testdata).parts[0]))

    def stored_messages(self, program: Path) -> str | None:
        """p4c's known messages about a program: the checkout keeps them in a file next to it."""
        folder = program.parent.with_name(program.parent.name + "_outputs")
        try:
            return (folder / f"{program.name}-stderr").read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None

    def stored_p4info(self, program: Path) -> str | None:
        """p4c's P4Info of a program, as the checkout keeps it."""
        folder = program.parent.with_name(program.parent.name + "_outputs")
        try:
            return (folder / f"{program.name}.p4info.txtpb").read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def name(self, program: Path) -> str:
        """The program's path below its folder of testdata: what misses are listed by."""
        return str(Path(*program.relative_to(self.root / "testdata").parts[1:]))

    def _programs(self, folder: Path) -> list[Path]:
        return sorted(
            p for p in folder.rglob("*.p4") if not any(part in _PARTS for part in p.relative_to(folder).parts[:-1]) and is_program(p)
        )


def is_program(path: Path) -> bool:
    """Programs in folders of their own come with parts, which declare no `main`."""
    return path.parent.name == "p4_16_samples" or re.search(r"\bmain\s*;", text_of(path)) is not None


@functools.cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


@functools.cache
def includes(path: Path, name: str) -> bool:
    for included in _INCLUDE.findall(text_of(path)):
        if Path(included).name == name:
            return True
        beside = path.parent / included
        if beside.is_file() and beside != path and includes(beside, name):
            return True
    return False

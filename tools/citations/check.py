"""Citations of the whole tree: each resolves, and none is in another form."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tools.citations import grammar, sources

SUFFIXES = frozenset(".py .rs .p4 .toml .md .html .tcl .js .in .lua .stf .sh .cc .thrift .yml".split())
# written by programs from files that are checked, or texts of others
GENERATED = (
    "docs/paper-results/",
    "docs/paper-results.md",
    "docs/wire-formats.md",
    "tools/wireshark/fairlane.lua",
    "tools/citations/sources/",
    "LICENSES/",
)
# these speak of wrong forms
OURS = ("tools/citations/", "tests/docs/test_citations.py")

# Between two words: blanks, or a line's end with the mark of a comment
_GAP = r"(?:[ \t]+|[ \t]*\n[ \t]*(?://[/!]?|#:?|\*|--|;|%)?[ \t]*)"
_WORD = r"(?:[Ss]ections?|[Aa]ppendi(?:x|ces)|[Ee]quations?|[Ff]igures?|[Tt]ables?|sec\.?|eqs?\.?|§)"
_PLACE_WORD = r"(?:[Ss]ections?|[Aa]ppendi(?:x|ces)|[Ee]quations?|§)"
# the compiler's own form, which its messages show: "P4_16 8.17 (struct types)"
_COMPILER = re.compile(r"\bP4_16 ([0-9]+(?:\.[0-9]+)*) \(")
_DOTTED = r"(?:[0-9]+|[A-H])(?:\.[0-9]+)+"


@dataclass(frozen=True)
class Fault:
    """file:line: what is wrong."""

    where: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.where}:{self.line}: {self.text}"


def outside(names: Iterable[str]) -> re.Pattern[str]:
    """Mentions of a place of an RFC or of a named source outside the form. Figures and tables of a paper may be named in prose."""
    known = "|".join(re.escape(name) for name in sorted(names, key=lambda name: (-len(name), name)) if not name.startswith("RFC "))
    rfc = r"RFCs?[ -]?[0-9]{3,5}"
    number = r"[\"(]?[0-9A-Z]"
    return re.compile(
        rf"(?<![\w\[/-])(?:{rfc}(?:'s|’s)?,?{_GAP}\(?{_WORD}{_GAP}?{number}"
        rf"|{rfc},?{_GAP}\(?{_DOTTED}\b(?!{_GAP}?(?:%|[a-zA-Z]?b/s|k?[bB]it|MB|ms\b|s\b))"
        rf"|{rfc}(?:'s)?{_GAP}\(\(?{_DOTTED}\b"
        + (
            rf"|(?:{known})(?:'s)?(?:{_GAP}(?:paper|draft|specification)(?:'s)?)?(?: [0-9.]+[0-9])?,?{_GAP}\(?{_PLACE_WORD}{_GAP}?{number}"
            if known
            else ""
        )
        + rf"|{_WORD}{_GAP}(?:[0-9A-H](?:\.[0-9]+)*)(?:(?:,{_GAP}|{_GAP}and{_GAP}|{_GAP}to{_GAP})[0-9A-H](?:\.[0-9]+)*)*{_GAP}(?:of|in){_GAP}(?:the{_GAP})?{rfc})"
    )


def files(root: Path) -> list[str]:
    """The tracked files that are checked."""
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True, check=True
    )
    names = sorted(listed.stdout.decode().split("\0"))
    kept = [name for name in names if Path(name).suffix in SUFFIXES or name.endswith("Makefile")]
    return [name for name in kept if not name.startswith(GENERATED) and not (root / name).is_symlink() and (root / name).is_file()]


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def faults(where: str, text: str, known: dict[str, sources.Source], names: frozenset[str], mention: re.Pattern[str]) -> list[Fault]:
    """What is wrong in one file. names, mention: of `known`, made once for all files."""
    if "RFC" not in text and not any(name in text for name in names):
        return []
    found: list[Fault] = []
    ends: list[int] = []
    for match, citation in grammar.citations(text, names):
        line = _line(text, match.start())
        if citation is None:
            found.append(Fault(where, line, f"{match[0]} is not in the form: [RFC 8298 sec 4.1.2.6], [DAA eq 1, 3], [ALS sec 3.1 to 3.3]"))
            continue
        if wrong := sources.fault(citation, known):
            found.append(Fault(where, line, f"{match[0]}: {wrong}"))
        if ends and text[ends[-1] : citation.start] == " ":
            found.append(Fault(where, line, f"{match[0]}: put a comma or a word between two citations, which Markdown takes for a link"))
        ends.append(citation.end)
    for match in _COMPILER.finditer(text) if "P4_16" in known else ():
        if wrong := known["P4_16"].fault(grammar.Place("sec", match[1], match[1])):
            found.append(Fault(where, _line(text, match.start()), wrong))
    for match in mention.finditer(text):
        said = " ".join(match[0].split())
        found.append(
            Fault(
                where, _line(text, match.start()), f"'{said}': write it as [RFC 8298 sec 4.1.2.6], [DAA eq 1] (tools/citations/grammar.py)"
            )
        )
    return found


def tree(root: Path, only: Iterable[str] = ()) -> tuple[int, list[Fault]]:
    """The number of citations, and all faults."""
    known = sources.load()
    names = frozenset(known)
    mention = outside(known)
    count, found = 0, []
    for where in list(only) or files(root):
        if where.startswith(OURS):
            continue
        text = (root / where).read_text(encoding="utf-8", errors="replace")
        count += sum(citation is not None for _, citation in grammar.citations(text, names))
        found += faults(where, text, known, names, mention)
    return count, found

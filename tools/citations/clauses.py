"""The clause pages, docs/clauses/rfcN.md: each requirement of the RFC is covered by a row that says whether it is met.

A row of a page, in tables with these columns, and others between them:

    | clause | rule | state | where, and by what test |
    | [RFC 6675 sec 5] 5/5, 5/6 | (A) MUST end recovery; SHOULD NOT clear the scoreboard | met | `a_test`; `Scoreboard::advance` |

5/5 is the fifth requirement of section 5 in tools/citations/sources/rfc6675.toml: a sentence with MUST, SHOULD, ... A section's rows name the requirements
that they cover. A section in which no row names any passes if it has as many rows, or key words in its rules, as requirements; the report counts those apart. One row that is
`not applicable` covers its whole sections, and the sections below them that have no row; a table | clause | reason | has such rows alone.
A row is `met` only where it names a test, a file or an identifier that exists, refers to one above, or says something and the page's introduction names the file;
tests and files that rows name exist. All other states give a reason.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tools.citations import check, grammar
from tools.citations.check import Fault
from tools.citations.grammar import KINDS
from tools.citations.sources import Source

PAGES = "docs/clauses"
COLUMNS = ("clause", "rule", "state", "where, and by what test")
STATES = ("met", "met in part", "met otherwise", "not met", "not applicable")
_WORDS = re.compile(r"\b(?:MUST|SHALL|REQUIRED|SHOULD|RECOMMENDED)\b")
_ID = re.compile(r"(?<![\w./])([0-9A-Z]+(?:\.[0-9]+)*/[0-9]+)(?:(?: to |-)([0-9A-Z]+(?:\.[0-9]+)*/[0-9]+))?")
FILES = frozenset(("py", "rs", "p4", "toml", "md", "stf", "tcl"))
_ABOVE = re.compile(r"\b(?:the same|above|the next table|the (?:\w+ ){0,3}tests?)\b")
_TEST = re.compile(r"(?:test|rfc)_\w+|[a-z][a-z0-9]*(?:_[a-z0-9]+){3,}")
_NAME = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\]\(([^)#\s]+)")


@dataclass(frozen=True)
class Row:
    """A row of a clause table. sections: those that it cites of the page's source; ids: requirements that it names."""

    line: int
    sections: tuple[str, ...]
    ids: tuple[str, ...]
    rule: str
    state: str
    where: str


@dataclass
class Page:
    """A clause page, and what of its tables is not in the form."""

    path: str
    title: str
    files: tuple[str, ...] = ()  # that its introduction names: of rows that name none
    rows: list[Row] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)


def cells(line: str) -> list[str]:
    """The cells of a table's row; a bar behind a backslash is none of its own."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def _expanded(cell: str) -> Iterator[str]:
    for first, last in _ID.findall(cell):
        if not last:
            yield first
            continue
        section, _, begin = first.partition("/")
        for number in range(int(begin), int(last.partition("/")[2]) + 1):
            yield f"{section}/{number}"


def page(path: str, text: str, source: Source) -> Page:
    """Reads a page's tables."""
    introduction = text.partition("\n|")[0]
    files = tuple(name for name in _NAME.findall(introduction) + _LINK.findall(introduction) if Path(name).suffix[1:] in FILES - {"md"})
    found = Page(path, next((line[2:] for line in text.splitlines() if line.startswith("# ")), path), files)
    header: list[str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("|"):
            header = None
            continue
        now = cells(line)
        if header is None:
            header = now
            if "state" in header and not _is_clauses(header):
                found.faults.append(Fault(path, number, f"a table of clauses has the columns | {' | '.join(COLUMNS)} |"))
            continue
        if set(line) <= set("|-: "):
            continue
        if header == ["clause", "reason"] and len(now) == 2:
            now = [now[0], "", "not applicable", now[1]]
        elif not _is_clauses(header):
            continue
        elif len(now) != len(header):
            found.faults.append(Fault(path, number, f"{len(now)} cells instead of {len(header)}; write a bar within a cell as \\|"))
            continue
        else:
            now = [now[header.index(column)] for column in COLUMNS]
        sections: list[str] = []
        for _, citation in grammar.citations(now[0], frozenset((source.name,))):
            if citation and citation.source == source.name:
                for place in citation.places:
                    if place.kind == "sec":
                        sections += _between(source, place.first, place.last)
        found.rows.append(Row(number, tuple(sections), tuple(_expanded(re.sub(r"\[[^\]]*\]", "", now[0]))), now[1], now[2], now[3]))
    return found


def _is_clauses(header: list[str]) -> bool:
    return [column for column in header if column in COLUMNS] == list(COLUMNS)


def _between(source: Source, first: str, last: str) -> list[str]:
    have = list(source.numbers["sec"])
    return have[have.index(first) : have.index(last) + 1] if first in have and last in have else []


def faults(read: Page, source: Source, root: Path, words: frozenset[str]) -> list[Fault]:
    """What is wrong with a page: rows, and requirements without one. words: all identifiers of the sources."""
    found = list(read.faults)
    default = any(_exists(name, root / read.path, root, words) for name in read.files)
    for row in read.rows:
        found += [Fault(read.path, row.line, text) for text in _row(row, source, root / read.path, root, words, default)]
    covered, unnamed = covers(read, source)
    for number, text in source.requirements.items():
        section = number.partition("/")[0]
        if number in covered or section in unnamed:
            continue
        rows = [row for row in read.rows if section in row.sections]
        if rows and not any(row.ids for row in rows):
            hint = f"section {section} has {_count(source, section)} requirements, and its rows have fewer: add one, or name {number} behind a row's citation"
        else:
            hint = f"no row of section {section} names it: write | [{source.name} sec {section}] {number} | ... |"
        found.append(Fault(read.path, rows[-1].line if rows else 1, f"{source.name} {number} is not covered ({text} ...): {hint}"))
    return found


def _row(row: Row, source: Source, path: Path, root: Path, words: frozenset[str], default: bool) -> Iterator[str]:
    for number in row.ids:
        if number not in source.requirements:
            yield f"{source.name} has no requirement {number}; tools/citations/sources/ lists them"
        elif number.partition("/")[0] not in row.sections:
            yield f"{number} is of section {number.partition('/')[0]}, which the row does not cite"
    if row.state not in STATES:
        yield f"'{row.state}' is not a state: {', '.join(STATES)}"
    elif not row.where:
        yield f"'{row.state}' without {'a test, a file or a name' if row.state == 'met' else 'a reason'}"
    names = {name: _exists(name, path, root, words) for name in _NAME.findall(row.where) + _LINK.findall(row.where)}
    for name, exists in names.items():
        if not exists and (_TEST.fullmatch(name) or Path(name).suffix[1:] in FILES):
            yield f"`{name}` does not exist"
    if row.state == "met" and row.where and not default and not _ABOVE.search(row.where) and not any(names.values()):
        yield "'met' names no test, file or identifier that exists (between backticks, or a link), and the page's introduction no file"


def _exists(name: str, path: Path, root: Path, words: frozenset[str]) -> bool:
    """A file, by its path from the root or the page, or by its end; or a name of the sources: `Type::method`, `a.b`, `--option value`."""
    if (root / name).exists() or (path.parent / name).exists() or name in words:
        return True
    parts = re.findall(r"[A-Za-z_]\w*", name.split(" ")[0])
    return Path(name).suffix[1:] not in FILES and any(len(part) > 2 for part in parts) and all(part in words for part in parts)


def _count(source: Source, section: str) -> int:
    return sum(number.partition("/")[0] == section for number in source.requirements)


def covers(read: Page, source: Source) -> tuple[dict[str, str], set[str]]:
    """The state of each requirement that rows cover, the worst of several; and the sections whose rows suffice without names."""
    rank = {state: at for at, state in enumerate(("not met", "met in part", "met otherwise", "met", "not applicable"))}
    covered: dict[str, str] = {}
    unnamed: set[str] = set()
    for row in read.rows:
        for number in row.ids:
            if number not in covered or rank.get(row.state, 0) < rank.get(covered[number], 0):
                covered[number] = row.state
    for section in dict.fromkeys(number.partition("/")[0] for number in source.requirements):
        numbers = [number for number in source.requirements if number.partition("/")[0] == section]
        rows = _rows(read, section)
        if not rows or any(number in row.ids for row in rows for number in numbers):
            continue
        if all(row.state == "not applicable" for row in rows):
            covered |= dict.fromkeys(numbers, "not applicable")
        elif not any(section in row.sections for row in rows):
            continue
        elif len(numbers) == 1 and len(rows) == 1:
            covered[numbers[0]] = rows[0].state
        elif sum(max(1, len(_WORDS.findall(row.rule))) for row in rows) >= len(numbers):
            unnamed.add(section)
    return covered, unnamed


def _rows(read: Page, section: str) -> list[Row]:
    """The rows of a section; without any, those of the section above it."""
    while section:
        rows = [row for row in read.rows if section in row.sections]
        if rows:
            return rows
        section = section.rpartition(".")[0]
    return []


def identifiers(root: Path) -> frozenset[str]:
    """What a page may name: all words of programs and their data, and the files by their names and the ends of their paths."""
    files = check.files(root)
    texts = [(root / name).read_text(encoding="utf-8", errors="replace") for name in files if Path(name).suffix[1:] in FILES - {"md"}]
    ends = ["/".join(Path(name).parts[-count:]) for name in files for count in (1, 2, 3)]
    return frozenset(re.findall(r"\w+", "\n".join(texts))).union(ends)


def unlisted(name: str) -> Source:
    """A source of which no list is known."""
    return Source(name, "", {kind: {} for kind in KINDS}, {})


def pages(root: Path, known: dict[str, Source]) -> list[tuple[Page, Source]]:
    """All clause pages with their sources: the one that most of their clauses cite."""
    found = []
    for path in sorted((root / PAGES).glob("*.md"), key=lambda path: (not path.stem.startswith("rfc"), len(path.stem), path.stem)):
        if path.name == "README.md":
            continue
        text = path.read_text(encoding="utf-8")
        clauses = "\n".join(line.split("|")[1] for line in text.splitlines() if line.startswith("| ["))
        cited = Counter(citation.source for _, citation in grammar.citations(clauses, frozenset(known)) if citation)
        name = max(cited, key=lambda name: cited[name], default="")
        read = page(f"{PAGES}/{path.name}", text, known.get(name) or unlisted(name))
        if name not in known:
            read.faults.append(
                Fault(read.path, 1, f"no list of {name or 'its source'}: `python -m tools.citations regenerate` writes those of RFCs")
            )
        found.append((read, known.get(name) or unlisted(name)))
    return found


def report(read: list[tuple[Page, Source]]) -> str:
    """docs/clauses/README.md."""
    text = [
        "# Clauses",
        "",
        "`python -m tools.citations report` writes this page from the others in this folder; `tests/docs/test_citations.py` checks them.",
        "Each requirement of an RFC, a sentence with MUST, SHOULD or RECOMMENDED, is covered by a row: met, met in part, met otherwise, not met with the reason, or not",
        "applicable. *Unnamed* are requirements of sections whose rows do not say which of them they cover. A page whose source has no list of requirements counts its rows.",
        "",
        "| page | requirements | met | in part | otherwise | not met | n/a | unnamed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one, source in read:
        covered, unnamed = covers(one, source)
        states = Counter(covered.values()) if source.requirements else Counter(row.state for row in one.rows)
        counts = [str(states[state]) for state in STATES]
        apart = sum(_count(source, section) for section in unnamed)
        total = str(len(source.requirements)) if source.requirements else f"{len(one.rows)} rows"
        text.append(f"| [{one.title}]({Path(one.path).name}) | {total} | {' | '.join(counts)} | {apart} |")
    return "\n".join(text) + "\n"

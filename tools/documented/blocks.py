"""The commands of the documentation: shell blocks of its pages, and their comments on running them.

A shell block begins with ```sh. Comments of the form `<!-- test: ... -->` on the lines before it describe how it is run; without a comment, each
`make test` runs it unchanged:

- `skip: REASON`      never run by a test
- `elsewhere: TEXT`   run already by this: a test file with its path, or a goal of the Makefile
- `slow`              run only by `make docs-commands`
- `root`              the same, and only as root with Mininet; so for each command with `sudo` or `--fabric mininet`
- `bmv2`              the same, and only where BMv2 is installed
- `short: SECONDS`    `make test` cuts its runs in virtual time to this; default 4 s
- `first: COMMAND`    run before it; a step that a reader does by hand
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

KINDS = frozenset(("skip", "elsewhere", "slow", "root", "bmv2", "with", "short", "first"))
FOLDERS = (
    "bench",
    "controller",
    "docs",
    "experiments",
    "fairlane",
    "hosts",
    "inputs",
    "labs",
    "p4src",
    "scripts",
    "switch",
    "teaching",
    "tests",
    "tools",
    "topologies",
    "web",
)
NOT_PAGES = frozenset(("target", "node_modules", "explain"))
SHELL = frozenset(("sh", "bash", "shell", "console"))

_MARK = re.compile(r"^<!-- test: (\w+)(?:: (.*?))? -->$")
_PROGRAMS = r"(fairlane(-\w+)?|make|python3?|cargo|\.venv/bin/\S+|sudo|git|scripts/\S+)"
_COMMAND = re.compile(rf"^\s*(\$ )?(\w+=\S+ )*{_PROGRAMS} [\w./-]")


class BadMark(ValueError):
    """A comment on a block that means nothing, with page and line."""


@dataclass(frozen=True)
class Block:
    """Some commands of one page. marks: what its page says of running them, in order; line: of the first command."""

    page: str
    line: int
    commands: tuple[str, ...]
    marks: tuple[tuple[str, str], ...]

    def said(self, kind: str) -> list[str]:
        return [text for name, text in self.marks if name == kind]

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"


def pages(root: Path) -> list[str]:
    """Paths of the pages with commands. The compiler's pages on its messages have none and are compiled by tests of their own."""
    found = ["README.md", "CONTRIBUTING.md"]
    for folder in FOLDERS:
        found += (path.relative_to(root).as_posix() for path in sorted((root / folder).rglob("*.md")))
    return [path for path in found if not NOT_PAGES.intersection(path.split("/"))]


def blocks(page: str, text: str) -> Iterator[Block]:
    """The shell blocks of a page, in order. BadMark for a comment that is none of the above, or has no block after it."""
    marks: list[tuple[str, str]] = []
    language: str | None = None
    begun = 0
    inside: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if language is not None:
            if stripped == "```":
                if language in SHELL:
                    yield Block(page, begun, tuple(_commands(inside)), tuple(marks))
                    marks = []
                language = None
            else:
                inside.append(line)
        elif stripped.startswith("```"):
            language, begun, inside = stripped[3:].split(" ")[0], number + 1, []
        elif stripped.startswith("<!-- test:"):
            match = _MARK.match(stripped)
            if match is None or match[1] not in KINDS or (match[2] is None) != (match[1] in ("slow", "root", "bmv2")):
                raise BadMark(
                    f"{page}:{number}: {stripped}: write one of {', '.join(sorted(KINDS))}; tools/documented/blocks.py explains them"
                )
            marks.append((match[1], match[2] or ""))
        elif stripped and marks:
            raise BadMark(f"{page}:{number}: a comment '<!-- test: ... -->' stands right before a shell block")


def _commands(lines: list[str]) -> Iterator[str]:
    """Lines joined at their backslashes, without comments and blank lines."""
    joined = ""
    for line in lines:
        joined += line.rstrip()
        if joined.endswith("\\"):
            joined = joined[:-1].rstrip() + " "
            continue
        command = re.sub(r"(^|\s)#.*$", "", joined).strip()
        if command:
            yield re.sub(r"\s+", " ", command)
        joined = ""


def stray(page: str, text: str) -> Iterator[str]:
    """Commands in a block without ```sh, which would never run. 'page:line: command' each."""
    language: str | None = None
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("```"):
            language = None if language is not None else stripped[3:].split(" ")[0]
            continue
        indented = language is None and line.startswith("    ")
        if (indented or language == "") and _COMMAND.match(line):
            yield f"{page}:{number}: {stripped}"

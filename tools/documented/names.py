"""Names in the pages: each file, command, option and key that a page names exists.

A name is text between backticks outside of blocks. These are names:

- `path/file.rs`, `file.py`, `folder/`: a tracked file or folder, by its path from the root, from the page's folder or its `src/`, or by the end of its
  path below the page's folder (below the root for a page of `docs/`). Of files that programs write (`summary.json`), the name is in the sources.
- `make GOAL`: a goal of a tracked Makefile.
- `fairlane COMMAND --option`: a command of the command line, and its options.
- `--option`: an option of some program of ours: in the command line, or in the sources.

Names in capitals (`FILE.p4`) and names that the page's own blocks create are the reader's own.
"""

from __future__ import annotations

import fnmatch
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

SOURCES = frozenset(("rs", "py", "p4", "toml", "md", "stf", "sh", "html", "css", "js", "proto", "thrift", "lua", "in", "lock", "yml"))
DATA = frozenset(("json", "jsonl", "csv", "txt", "svg", "pdf", "png", "pcap", "log", "parquet", "txtpb", "mahi", "whl", "bin", "ipynb"))
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_FILE = re.compile(r"(?:\./)?(?:[\w@+-][\w.@+-]*/)*[\w+-][\w.+-]*\.(\w+)")
_FOLDER = re.compile(r"(?:[\w.+-]+/)+")
_OPTION = re.compile(r"--[a-z][a-z0-9-]*")
_LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)")
_BELOW_TESTS = re.compile(r"(?<![\w./-])tests/[\w./*-]*\.(?:json|md|p4|py|stf)\b")
_PLACEHOLDER = re.compile(r"(?:^|[/_-])(?:[A-Z][A-Z0-9]+|NN|N|X)(?:[./_-]|$)")
_TEXT_OF = (
    "*.py",
    "*.rs",
    "*.toml",
    "*.js",
    "*.html",
    "*.thrift",
    "Makefile",
    "scripts/*",
    "*.p4",
    "*.yml",
    "*.lua",
    ".gitignore",
    ".ci/*",
    ".github/*",
)


@dataclass(frozen=True)
class Commands:
    """Of the command line: the options of each command ("new algorithm"), "" for none; those that pass theirs on are in `open`."""

    options: dict[str, frozenset[str]]
    open: frozenset[str] = frozenset()


@dataclass
class Checkout:
    """What there is. allowed: names of pages that are right without being any of these, with the reason."""

    root: Path
    commands: Commands
    allowed: dict[str, str] = field(default_factory=dict)
    of_others: dict[str, str] = field(default_factory=dict)
    """Pages that name the files of another project."""

    @cached_property
    def files(self) -> frozenset[str]:
        done = subprocess.run(["git", "ls-files", "-z"], cwd=self.root, capture_output=True, text=True, check=True)
        return frozenset(name for name in done.stdout.split("\0") if name)

    @cached_property
    def folders(self) -> frozenset[str]:
        return frozenset(str(parent) for name in self.files for parent in Path(name).parents)

    @cached_property
    def endings(self) -> dict[str, list[str]]:
        """The last part of a path -> the tracked paths, folders too."""
        found: dict[str, list[str]] = {}
        for name in (*self.files, *self.folders):
            found.setdefault(name.rpartition("/")[2], []).append(name)
        return found

    @cached_property
    def text(self) -> str:
        """Of the sources, for the names of files that programs write and for options."""
        done = subprocess.run(["git", "ls-files", "-z", *_TEXT_OF], cwd=self.root, capture_output=True, text=True, check=True)
        names = [
            name
            for name in done.stdout.split("\0")
            if name and not name.endswith(".md") and not re.match(r"tests/.*\btest_|tools/documented/names\.py", name)
        ]
        return "\n".join(path.read_text(encoding="utf-8", errors="replace") for name in names if (path := self.root / name).is_file())

    @cached_property
    def options(self) -> frozenset[str]:
        by_clap = re.findall(r'\blong\s*=\s*"([a-z][\w-]*)"', self.text)
        by_clap += [
            name.replace("_", "-") for name in re.findall(r"#\[arg\((?:[^()]|\([^()]*\))*\blong\b[^\]]*\]\s*(?:pub )?(\w+):", self.text)
        ]
        return frozenset((*_OPTION.findall(self.text), *(f"--{name}" for name in by_clap))).union(*self.commands.options.values())

    @cached_property
    def goals(self) -> frozenset[str]:
        """Of every tracked Makefile."""
        names = [name for name in self.files if name.rpartition("/")[2] == "Makefile" or name.endswith(".mk")]
        return frozenset(
            goal
            for name in names
            for goals in re.findall(r"^([\w-]+(?: +[\w-]+)*):(?!=)", (self.root / name).read_text(encoding="utf-8"), re.MULTILINE)
            for goal in goals.split()
        )

    def has(self, name: str, page: str) -> bool:
        """Whether a path that a page names is tracked."""
        name = name.removeprefix("./").rstrip("/")
        here = page.rpartition("/")[0]
        above = [str(parent) for parent in Path(page).parents]
        for base in (*above, f"{here}/src"):
            path = _normal(f"{base}/{name}")
            if path in self.files or path in self.folders or self._through_links(path):
                return True
        # A crate's page means its own files; other pages speak of all.
        below = f"{here}/" if here.startswith("switch/") else ""
        return any(
            path.startswith(below) and (path == name or path.endswith(f"/{name}")) for path in self.endings.get(name.rpartition("/")[2], ())
        )

    def _through_links(self, path: str) -> bool:
        real = (self.root / path).resolve()
        return real.is_relative_to(self.root) and str(real.relative_to(self.root)) in self.files | self.folders


def _normal(path: str) -> str:
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and parts:
            parts.pop()
        elif part not in (".", ""):
            parts.append(part)
    return "/".join(parts)


def spans(text: str) -> Iterator[tuple[int, str]]:
    """Line and text of each piece between backticks, outside of blocks."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip().startswith("```"):
            inside = not inside
        elif not inside:
            for match in _SPAN.finditer(line):
                yield number, match[2].strip()


def links(text: str) -> Iterator[tuple[int, str]]:
    """Line and target of each link to a file."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip().startswith("```"):
            inside = not inside
        elif not inside:
            for match in _LINK.finditer(_SPAN.sub("", line)):
                if "://" not in match[1] and not match[1].startswith("mailto:"):
                    yield number, match[1]


def faults(page: str, text: str, checkout: Checkout) -> Iterator[str]:
    """'page:line: name: what is wrong' for each name that is none."""
    own = "\n".join([*re.findall(r"^ *```.*?^ *```", text, re.MULTILINE | re.DOTALL), *re.findall(r"^    .*$", text, re.MULTILINE)])
    for number, span in spans(text):
        if span not in checkout.allowed:
            for fault in _of_span(span, page, own, checkout):
                yield f"{page}:{number}: {fault}"
    for number, target in links(text):
        path = _normal(f"{page.rpartition('/')[0]}/{target}")
        if path not in checkout.files and path not in checkout.folders:
            yield f"{page}:{number}: {target}: a link to nothing"


def faults_below_tests(name: str, text: str, checkout: Checkout) -> Iterator[str]:
    """'name:line: path: no such file' for each path in any tracked text, a page or a source, that leads below tests/ to no tracked file.

    A path is from the root, or from a folder above the text (a crate's own tests/). `*` stands for any characters.
    """
    above = [str(parent) for parent in Path(name).parents]
    for number, line in enumerate(text.splitlines(), 1):
        for path in _BELOW_TESTS.findall(line):
            if path not in READERS_OWN and not any(fnmatch.filter(checkout.files, _normal(f"{base}/{path}")) for base in above):
                yield f"{name}:{number}: {path}: no such file"


def _of_span(span: str, page: str, own: str, checkout: Checkout) -> Iterator[str]:
    words = span.split()
    if not words:
        return
    if words[0] == "make" and len(words) > 1 and re.fullmatch(r"[a-z][\w-]*", words[1]):
        if words[1] not in checkout.goals:
            yield f"{span}: no Makefile has a goal {words[1]}"
    elif words[0] in ("fairlane", "sudo") and "fairlane" in words[:2]:
        yield from _of_command(span, words[words.index("fairlane") + 1 :], checkout)
        return
    for word in words if words[0].startswith(("--", "fairlane-", "python", ".venv/")) else ():
        option = re.match(r"(--[a-z][a-z0-9-]*)(?:[=\s,)]|$)", word)
        if option and option[1] not in checkout.options and option[1] not in own:
            yield f"{span}: no program of ours has {option[1]}"
    if len(words) == 1 and page not in checkout.of_others:
        yield from _of_path(span, page, own, checkout)


def _of_command(span: str, words: list[str], checkout: Checkout) -> Iterator[str]:
    names = [word for word in words[:2] if re.fullmatch(r"[a-z][a-z0-9-]*", word)]
    command = next((" ".join(names[:n]) for n in (2, 1) if " ".join(names[:n]) in checkout.commands.options and len(names) >= n), "")
    group = any(other.startswith(f"{command} ") for other in checkout.commands.options)
    if len(names) == 2 and command == names[0] and group:
        yield f"{span}: no command 'fairlane {' '.join(names)}'"
    elif names and not command:
        yield f"{span}: no command 'fairlane {names[0]}'"
    elif command not in checkout.commands.open:
        for word in words:
            option = re.match(r"--[a-z][a-z0-9-]*", word)
            if option and option[0] not in checkout.commands.options[command]:
                yield f"{span}: 'fairlane {command}' has no {option[0]}"


def _of_path(span: str, page: str, own: str, checkout: Checkout) -> Iterator[str]:
    if _PLACEHOLDER.search(span) or span.startswith(("/", "~")):
        return
    match = _FILE.fullmatch(span)
    if match is None and not _FOLDER.fullmatch(span):
        return
    if match is not None and match[1] not in SOURCES | DATA:
        return
    if checkout.has(span, page) or span in own:
        return
    if match is not None and match[1] in DATA and _written(span.rpartition("/")[2], checkout.text):
        return
    if match is None and f"{span.rstrip('/').rpartition('/')[2]}" in checkout.text:
        return  # a folder that programs make
    yield f"{span}: no such {'folder' if match is None else 'file'}"


def _written(name: str, text: str) -> bool:
    """Whether the sources have a file's name, or what they make it of: `"fair_rates"`, `shown.jsonl`."""
    parts = name.split(".")
    return name in text or f'"{parts[0]}"' in text or (len(parts) > 2 and ".".join(parts[-2:]) in text)


def commands(app: object) -> Commands:
    """Of a typer app."""
    import click
    import typer

    found: dict[str, frozenset[str]] = {}
    passing: set[str] = set()

    def visit(command: click.Command, name: str) -> None:
        found[name] = frozenset(option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)) | {
            "--help"
        }
        if command.ignore_unknown_options:
            passing.add(name)
        for inner, below in getattr(command, "commands", {}).items():
            visit(below, f"{name} {inner}".strip())

    visit(typer.main.get_command(app), "")  # type: ignore[arg-type]
    return Commands(found, frozenset(passing))


ALLOWED = {
    "study.toml": "in the folder of a study",
    "--emit-externs": "an option of p4c that is accepted, an alias in the compiler's command line",
    "--dump": "the same",
    "json.py": "a module that a strange folder may hold",
    "exp.sh": "of the ABC authors' artifact",
    "fq.p4": "the page says that there is none",
    "experiment.toml": "in the folder of a film's run",
    "--no-compile": "an option of pip",
    "bmv2/psa.p4": "an include path of the compiler, without a file of its own",
    "x.p4": "any program of an exercise",
    "mycontroller.py": "of the tutorials' exercise p4runtime",
    "send.py": "of the tutorials' exercises",
    "results/lab-10/ranking.html": "written by a command of the lab itself",
    "my_rate.py": "the reader's own algorithm, of docs/own-algorithm.md",
    "my-queue.p4": "of the reader's own scheme, of docs/own-scheme.md",
    "my-queue/my-queue.p4": "of the reader's own scheme, of docs/own-scheme.md",
}
"""With the reason."""
READERS_OWN = frozenset(("tests/hosts/test_hosts_my_rate.py",))
"""Written by `fairlane new`."""
OF_OTHERS = {
    "docs/coming-from-p4-utils.md": "files of p4-utils and of the p4-learning exercises",
    "docs/coming-from-the-tutorials.md": "files of the P4 tutorials",
}

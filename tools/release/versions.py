"""The version stands in five files, each in one place; a release has the same in all, and its date where there is room for one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Place:
    file: str
    pattern: str
    """Group 1 is the version; group 2, where there is one, the date of its release."""
    text: str
    """What a new version writes in the place of `pattern`."""


CHANGELOG = "CHANGELOG.md"
NUMBER = re.compile(r"\d+\.\d+\.\d+")
PLACES = (
    Place("pyproject.toml", r'^version = "(.+)"$', 'version = "{version}"'),
    Place("switch/Cargo.toml", r'^version = "(.+)"$', 'version = "{version}"'),
    Place("CITATION.cff", r"^version: (\S+)(?:\ndate-released: (\S+))?$", "version: {version}\ndate-released: {date}"),
    Place(
        "codemeta.json", r'^  "version": "(.+?)"(?:,\n  "datePublished": "(.+)")?', '  "version": "{version}",\n  "datePublished": "{date}"'
    ),
    Place(CHANGELOG, r"^## (\d\S*)(?: - (\S+))?$", "## {version} - {date}"),
)
UNRELEASED = "## Unreleased\n"


def read(root: Path, place: Place) -> tuple[str | None, str | None]:
    """The version and the date that a file has."""
    found = re.search(place.pattern, (root / place.file).read_text(encoding="utf-8"), re.MULTILINE)
    return (found[1], found[2] if found.re.groups > 1 else None) if found else (None, None)


def version(root: Path) -> str:
    found, _ = read(root, PLACES[0])
    if found is None:
        raise SystemExit(f"{PLACES[0].file}: no line with a version")
    return found


def notes(root: Path, heading: str) -> str:
    """What CHANGELOG.md says under the heading of a version, or under Unreleased."""
    sections = re.split(r"^## (\S+).*\n", (root / CHANGELOG).read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(sections[1::2], sections[2::2], strict=True)).get(heading, "").strip()


def faults(root: Path, tag: str | None = None) -> list[str]:
    """Where files disagree; with the tag of a release also what a release would lack."""
    expected = tag.removeprefix("v") if tag else version(root)
    have = {place.file: read(root, place) for place in PLACES}
    found = [f"{file}: version {has or 'missing'}, not {expected}" for file, (has, _) in have.items() if has != expected]
    dated = {place.file: have[place.file][1] for place in PLACES if "{date}" in place.text}
    if len(set(dated.values())) > 1 or (tag and None in dated.values()):
        found.append("the date of the release: " + ", ".join(f"{date or 'none'} in {file}" for file, date in dated.items()))
    if tag and not tag.startswith("v"):
        found.append(f"tag {tag}: the tag of a release is v and its version, such as v{version(root)}")
    if tag and notes(root, "Unreleased"):
        found.append(f"{CHANGELOG}: lines under Unreleased, which belong to {tag}")
    if tag and not re.search(r"^repository-code: ", (root / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE):
        found.append(
            "CITATION.cff: no repository-code, which a reader of a release needs; write the repository's address there and as codeRepository into codemeta.json"
        )
    if not notes(root, expected):
        found.append(f"{CHANGELOG}: nothing under {expected}")
    return found


def write(root: Path, new: str, date: str) -> list[str]:
    """Writes a version and its date into every file; what was unreleased becomes its notes. Returns the files."""
    for place in PLACES:
        path = root / place.file
        text = path.read_text(encoding="utf-8")
        line = place.text.format(version=new, date=date)
        if place.file == CHANGELOG and read(root, place)[0] != new:
            path.write_text(text.replace(UNRELEASED, f"{UNRELEASED}\n{line}\n", 1), encoding="utf-8")
        else:
            path.write_text(re.sub(place.pattern, line, text, count=1, flags=re.MULTILINE), encoding="utf-8")
    return [place.file for place in PLACES]

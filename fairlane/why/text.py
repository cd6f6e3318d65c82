"""An explanation as text of 100 columns, in colours on a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.text import Text

from fairlane.why import story
from fairlane.why.explanation import Explanation, station_head
from fairlane.why.sources import Sources
from fairlane.why.story import Line, Row

WIDTH = 100
_GUTTER, _NAME = 8, 42
_STYLES = {"change": "bold", "cell": "bold", "hit": "green", "miss": "dim", "other": "dim", "note": "", "read": "dim"}
_MARKS = {"drop": "bold red", "sent": "bold green", "hit": "green", "miss": "yellow", "true": "", "false": ""}
_SAID = {"true": "  [true]", "false": "  [false]"}


def show(explanation: Explanation, console: Console) -> None:
    for line in lines(explanation):
        console.print(line, highlight=False, soft_wrap=True)


def lines(explanation: Explanation) -> Iterator[Text]:
    yield from _wrapped(explanation.head, "bold")
    sources = explanation.sources
    for station in explanation.stations:
        if explanation.is_run or station["kind"] != "switch":
            yield Text()
            yield from _wrapped(station_head(station, explanation.begin_ns), "bold")
        if station["kind"] == "switch":
            yield from _station(station, sources)
    yield Text()
    for sentence in explanation.end:
        yield from _wrapped(sentence, "bold red" if "ropped" in sentence or "ost " in sentence else "bold green")


def _station(station: dict[str, Any], sources: Sources) -> Iterator[Text]:
    part, file, copy = "", "", 0
    deciding = {at for end in station["ends"] for at in end["steps"]}
    for row in story.rows(station["steps"], sources):
        if (row.part, row.copy) != (part, copy):
            part, copy = row.part, row.copy
            yield Text()
            yield Text(f"{part}{f', copy {copy}' if copy else ''}", "bold underline")
        if row.file and row.file != file:
            file = row.file
            yield Text(f"  {file}", "dim")
        yield from _row(row, bool(deciding.intersection(row.ats)))
    if station.get("cut"):
        yield Text("  further steps were too many, and are left out")


def _row(row: Row, decides: bool) -> Iterator[Text]:
    gutter = f"{'>' if decides else ' '}{row.line or '':>{_GUTTER - 3}}  "
    head = row.head + _SAID.get(row.mark, "")
    style = "bold" if decides else _MARKS.get(row.mark, "")
    for n, piece in enumerate(textwrap.wrap(head, WIDTH - _GUTTER, break_on_hyphens=False) or [""]):
        yield Text(gutter if n == 0 else " " * _GUTTER, "bold") + Text(piece, style)
    for line in row.lines:
        yield from _line(line)


def _line(line: Line) -> Iterator[Text]:
    margin, style = " " * (_GUTTER + 4), _STYLES[line.kind]
    if line.kind in story.SIGNS:
        more = f"   ({line.after})" if line.after else ""
        pieces = textwrap.wrap(
            f"{story.SIGNS[line.kind]}{line.name}{more}", WIDTH - len(margin), subsequent_indent="  ", break_on_hyphens=False
        )
        yield from (Text(margin) + Text(piece, style) for piece in pieces)
        return
    value = line.before if line.kind == "read" else line.after
    if line.kind != "read" and line.before:
        value = f"{line.before} -> {line.after}" if line.after else line.before
    if len(margin) + max(_NAME, len(line.name)) + 2 + len(value) <= WIDTH:
        yield Text(margin) + Text(f"{line.name:{_NAME}}  {value}", style)
        return
    yield Text(margin) + Text(line.name, style)
    for piece in textwrap.wrap(value, WIDTH - len(margin) - 4):
        yield Text(f"{margin}    ") + Text(piece, style)


def _wrapped(sentence: str, style: str) -> Iterator[Text]:
    for piece in textwrap.wrap(sentence, WIDTH, break_on_hyphens=False):
        yield Text(piece, style)

"""An explanation as a page of one file: the source beside the steps, values that changed highlighted."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from fairlane.errors import Refusal
from fairlane.why import story
from fairlane.why.explanation import Explanation, station_head
from fairlane.why.sources import Sources
from fairlane.why.story import Line, Row

_TEMPLATE = Path(__file__).with_name("page.html")


def write(explanation: Explanation, path: Path) -> None:
    """Refusal: the file is there, or cannot be written."""
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text(explanation))
    except FileExistsError:
        raise Refusal(f"--page {path}: exists already, and is not overwritten") from None
    except OSError as error:
        raise Refusal(f"--page {path}: cannot be written: {error.strerror or error}") from error


def text(explanation: Explanation) -> str:
    sources = explanation.sources
    files: dict[str, dict[int, str]] = {}
    steps = []
    for station in explanation.stations:
        if explanation.is_run or station["kind"] != "switch":
            steps.append(f"<h2>{escape(station_head(station, explanation.begin_ns))}</h2>")
        if station["kind"] == "switch":
            steps += _station(station, sources, files, explanation.is_run)
    ends = "".join(f'<p class="end {_class(sentence)}">{escape(sentence)}</p>' for sentence in explanation.end)
    return Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=escape(explanation.head), end=ends, source="".join(_sources(files, sources)), steps="".join(steps)
    )


def _class(sentence: str) -> str:
    return "dropped" if "ropped" in sentence or "ost " in sentence else "sent"


def _station(station: dict[str, Any], sources: Sources, files: dict[str, dict[int, str]], is_run: bool) -> Iterator[str]:
    """files: by their names, the lines that ran, with their ids."""
    deciding = [(at, end["what"]) for end in station["ends"] for at in end["steps"]]
    of_step = dict(deciding)
    last = max(of_step, default=-1)
    part, open_ = "", False
    for row in story.rows(station["steps"], sources):
        shown = f"{row.part}{f', copy {row.copy}' if row.copy else ''}"
        if shown != part:
            part = shown
            if open_:
                yield "</ol>"
            of_node = f"{station['node']}: " if is_run else ""
            yield f"<h2>{escape(of_node + shown)}</h2><ol>"
            open_ = True
        decides = next((of_step[at] for at in row.ats if at in of_step), None)
        yield _row(row, station["steps"][row.ats[0]], decides, last in row.ats, files)
    if open_:
        yield "</ol>"


def _row(row: Row, step: dict[str, Any], decides: str | None, last: bool, files: dict[str, dict[int, str]]) -> str:
    line = ""
    file = (step.get("source") or {}).get("file", "")
    if file and row.line:
        known = files.setdefault(file, {})
        line = known.setdefault(row.line, f"f{list(files).index(file)}-{row.line}")
    classes = " ".join(filter(None, ("decides" if decides else "", "good" if decides == "sent" else "")))
    mark = f'<span class="mark">{row.mark}</span>' if row.mark in ("true", "false", "hit", "miss") else ""
    head = f"<code>{escape(row.head)}</code>" if step["kind"] in ("statement", "condition") else escape(row.head)
    head = f'<span class="{row.mark}">{head}</span>' if row.mark in ("drop", "sent") else head
    table = "".join(map(_line, row.lines))
    return (
        f'<li data-line="{line}"{" data-last=1" if last else ""} class="{classes}"><span class="line">{row.line or ""}</span>'
        f"<div>{head}{mark}{f'<table>{table}</table>' if table else ''}</div></li>"
    )


def _line(line: Line) -> str:
    name = escape(line.name)
    if line.kind in story.SIGNS:
        return f'<tr class="{line.kind}"><td>{story.SIGNS[line.kind]}{name}</td><td>{escape(line.after)}</td></tr>'
    if line.kind == "read":
        return f'<tr class="read"><td>{name}</td><td>{escape(line.before)}</td></tr>'
    before = f'<span class="before">{escape(line.before)}</span> &rarr; ' if line.before and line.after else escape(line.before)
    after = f'<span class="after">{escape(line.after)}</span>' if line.after else ""
    kind = line.kind if line.before or line.kind == "cell" else "new"
    return f'<tr class="{kind}"><td>{name}</td><td>{before}{after}</td></tr>'


def _sources(files: dict[str, dict[int, str]], sources: Sources) -> Iterator[str]:
    for file, ran in files.items():
        yield f"<h2>{escape(sources.shown(file))}</h2><pre>"
        for number, line in enumerate(sources.lines(file), 1):
            known = f' id="{ran[number]}" class="ran"' if number in ran else ""
            yield f"<span{known}><i>{number}</i>{escape(line)}</span>"
        yield "</pre>"

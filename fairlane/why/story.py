"""A packet's steps in words: rows with a place in the source, a head, and lines below it. `text` and `page` show them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fairlane.why import values
from fairlane.why.sources import Sources

Step = dict[str, Any]
SIGNS = {"hit": "+ ", "other": "= ", "miss": "- ", "note": ""}
"""Before lines of entries: the one that matched, others that match, those that do not."""


@dataclass(frozen=True)
class Line:
    """name: what it is about. before, after: values of a change; one of both is empty where only one is known. kind: "read", "change", "cell", "note", "hit", "miss",
    "other" of entries of a table."""

    kind: str
    name: str
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class Row:
    """ats: the places of its steps. file, line: in the source; "" and 0: nowhere. part: of the pipeline. mark: "drop", "sent", "hit", "miss", "true", "false" or ""."""

    ats: tuple[int, ...]
    part: str
    copy: int
    file: str
    line: int
    head: str
    mark: str = ""
    lines: list[Line] = field(default_factory=list)


def rows(steps: list[Step], sources: Sources) -> list[Row]:
    """Statements of one line that follow each other, such as those that set a whole struct, are one row."""
    found: list[Row] = []
    for at, step in enumerate(steps):
        row = _row(at, step, sources)
        before = found[-1] if found else None
        if before is not None and row.line and _is_same_line(steps[before.ats[-1]], step):
            lines = [*before.lines, *(line for line in row.lines if line not in before.lines)]
            found[-1] = dataclasses.replace(before, ats=(*before.ats, at), lines=lines)
            continue
        found.append(row)
    return found


def _is_same_line(one: Step, other: Step) -> bool:
    keys = ("kind", "copy", "packet")
    places = [[(step.get("source") or {}).get(key) for key in ("file", "line")] for step in (one, other)]
    return one["kind"] == "statement" and all(one[key] == other[key] for key in keys) and places[0] == places[1]


def _row(at: int, step: Step, sources: Sources) -> Row:
    source = step.get("source") or {}
    file, line = source.get("file", ""), source.get("line", 0)
    head, mark = _head(step, sources)
    return Row((at,), step["part"], step["copy"], sources.shown(file), line, head, mark, list(_lines(step)))


def _head(step: Step, sources: Sources) -> tuple[str, str]:
    """Words, and the mark."""
    kind, source = step["kind"], step.get("source") or {}
    text = sources.line(source.get("file", ""), source.get("line", 0)) or source.get("text", "")
    if kind == "statement":
        return text or "a statement without a place in the source", ""
    if kind == "condition":
        return f"{text or step['name']}", "true" if step["holds"] else "false"
    if kind == "table":
        return _table(step), "hit" if step.get("hit") else "miss"
    if kind == "action":
        return f"action {_short(step['name'])}", ""
    if kind == "state":
        return f"state {step['state']}", ""
    if kind == "extract":
        return f"extract {step['header']}", ""
    if kind == "set":
        return f"set {values.field(step['name'])} to {step['value']}", ""
    if kind == "select":
        return f"select {step['key']}: {step.get('next', 'no next state')}", ""
    if kind == "checksum":
        return _checksum(step)
    if kind == "drop":
        return f"dropped: {step.get('text') or step['cause']}", "drop"
    return _of_switch(step)


def _of_switch(step: Step) -> tuple[str, str]:
    kind = step["kind"]
    if kind == "received":
        return f"received on port {step['port']}", ""
    if kind == "sent":
        return f"sent out of port {step['port']}, {step['bytes']} bytes", "sent"
    if kind == "queue":
        return f"to the queue of port {step['port']}, priority {step['priority']}, behind {step['ahead']} packets", ""
    if kind == "dequeue":
        return f"from the queue of port {step['port']} after {step['waited_ns'] / 1e6:g} ms", ""
    if kind == "emit":
        return f"emit {step['header']}", ""
    return str(step.get("text", kind)), ""


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _checksum(step: Step) -> tuple[str, str]:
    name = step["name"]
    if "skipped" in step:
        return f"checksum {name}: left alone, since {step['skipped']}", ""
    if step.get("updated"):
        return f"checksum {name}: computed anew", ""
    right = step["right"]
    return (
        f"checksum {name}: {'right' if right else 'WRONG'}, computed {step['computed']}, in the packet {step['actual']}",
        "" if right else "false",
    )


def _table(step: Step) -> str:
    tried = step.get("candidates") or {}
    entries = tried.get("entries", 0)
    name = _short(step["name"])
    if not step["key"]:
        return f"table {name}, without key"
    size = f"{entries} {'entry' if entries == 1 else 'entries'}"
    if not step.get("hit"):
        return f"table {name}: no match, {size}"
    hit = next((c for c in tried.get("shown", ()) if c["hit"]), None)
    if hit is None:
        return f"table {name}: a match, {size}"
    more = "" if tried["matching"] < 2 else f", the best of {tried['matching']} that match"
    return f"table {name}: {size}, the {values.ordinal(hit['number'])} matched{_prefix(hit['entry'])}{more}"


def _prefix(entry: dict[str, Any]) -> str:
    found = next((m["prefix"] for m in entry["match"] if "prefix" in m), None)
    priority = f", priority {entry['priority']}" if "priority" in entry else ""
    return (f", prefix {found}" if found is not None else "") + priority


def call(runs: dict[str, Any] | None) -> str:
    """An action with its arguments."""
    if not runs:
        return "nothing"
    arguments = ", ".join(f"{a['name']} {values.said(a['value'], a['width'], a['name'])}" for a in runs["arguments"])
    return f"{_short(runs['name'])}({arguments})"


def _does(entry: dict[str, Any]) -> str:
    if "runs" in entry:
        return call(entry["runs"])
    for key in ("member", "group"):
        if key in entry:
            return f"{key} {entry[key]}"
    return " or ".join(call(choice["runs"]) for choice in entry.get("choices", ()))


def _lines(step: Step) -> Iterator[Line]:
    if step["kind"] == "table":
        yield from _of_table(step)
    changed = {change["name"] for change in step.get("changes", ())}
    for read in step.get("reads", ()):
        if read["name"] not in changed:
            yield Line("read", values.field(read["name"]), values.said(read["value"], read["width"], read["name"]))
    for cell in step.get("cells", ()):
        before, after = (str(cell.get(key)) if cell.get(key) is not None else "" for key in ("before", "after"))
        yield Line("cell", f"{cell['kind']} {_short(cell['name'])}[{cell['index']}]", before, after)
    for change in step.get("changes", ()):
        before, after = (
            "" if value is None else values.said(value, change["width"], change["name"])
            for value in (change.get("before"), change["after"])
        )
        if change["name"].endswith(".$valid$") and step["kind"] == "extract":
            continue
        yield Line("change", values.field(change["name"]), before, after)
    for note in step.get("notes", ()):
        yield Line("note", note)


def _of_table(step: Step) -> Iterator[Line]:
    for part in step["key"]:
        yield Line("read", part["name"], values.said(part["value"], part["width"], part["name"]))
    tried = step.get("candidates") or {}
    for candidate in tried.get("shown", ()):
        entry, fields = candidate["entry"], candidate["fields"]
        parts = [values.matched(m, p["width"], p["name"]) for m, p in zip(entry["match"], step["key"])]
        kind = "hit" if candidate["hit"] else "other" if all(fields) else "miss"
        why = _why_not(step, candidate)
        yield Line(kind, f"{values.ordinal(candidate['number'])}: {', '.join(parts)} -> {_does(entry)}", after=why)
    left = tried.get("entries", 0) - len(tried.get("shown", ()))
    if left > 0:
        cut = f", {tried['compared']} of them compared" if tried["compared"] < tried["entries"] else ""
        yield Line("note", f"{left} more, none of which comes nearer{cut}")
    if step.get("chosen"):
        yield Line("note", f"member {step['chosen']['member']} of group {step['chosen']['group']} is chosen")
    default = "" if step.get("hit") or not step["key"] else "the default: "
    yield Line("note", f"runs {default}{call(step.get('runs'))}")


def _why_not(step: Step, candidate: dict[str, Any]) -> str:
    if candidate["hit"]:
        return ""
    differ = [(part, m) for part, m, fits in zip(step["key"], candidate["entry"]["match"], candidate["fields"]) if not fits]
    if not differ:
        return "matches, but another is preferred"
    part, wanted = differ[0]
    also = f", and {len(differ) - 1} more" if len(differ) > 1 else ""
    return f"{part['name']} is {values.said(part['value'], part['width'], part['name'])}, not {values.matched(wanted, part['width'], part['name'])}{also}"

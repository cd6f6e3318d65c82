"""The user's own traces of links and arrivals, networks as GraphML, and distributions of sizes, in a study: results depend on their text, and each job carries it to its
worker."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fairlane.experiments import expressions, workloads
from fairlane.inputs.located_toml import Document, KeyPath
from fairlane.studies.study import Study
from fairlane.topologies import graphml, trace

_KEYS = (*trace.KEYS, graphml.KEY)


def own(document: Document) -> dict[str, Path]:
    """Files beside an experiment's file, by the names that it gives them; Fairlane's own are everywhere."""
    of_links = {
        document.at(path): (graphml if path[-1] == graphml.KEY else trace).file_of(document, path)
        for path in _keys(document.values.get("topology"), ("topology",))
    }
    of_workloads = {document.at(path): workloads.file_of(document, path) for path in _of_workloads(document)}
    return {name: file for name, file in (of_links | of_workloads).items() if file.parent not in (trace.FOLDER, workloads.FOLDER)}


_OF_WORKLOAD = (("sizes",), ("arrivals", "file"))
"""Keys of a workload that name files, where they are texts."""


def _of_workloads(document: Document) -> list[KeyPath]:
    tables = document.values.get("workloads")
    named = enumerate(tables) if isinstance(tables, list) else ()
    return [("workloads", i, *key) for i, table in named for key in _OF_WORKLOAD if isinstance(_inner(table, key), str)]


def _inner(value: Any, keys: KeyPath) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def carried(file: Path) -> tuple[str, str]:
    """Name and text under which a trace goes with a run: the name tells what is in the file."""
    text = file.read_text(encoding="utf-8")
    return f"{hashlib.sha256(text.encode()).hexdigest()[:16]}-{file.name}", text


def renamed(document: Document, names: Mapping[str, str]) -> Document:
    """The same experiment, its files under other names."""
    if not names:
        return document
    values = {**document.values, "topology": _renamed(document.values["topology"], names)}
    if "workloads" in values:
        values["workloads"] = [_workload_renamed(table, names) for table in values["workloads"]]
    return Document(document.name, values, document.places)


def _workload_renamed(table: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    renamed = dict(table)
    if isinstance(sizes := table.get("sizes"), str):
        renamed["sizes"] = names.get(sizes, sizes)
    if isinstance(file := _inner(table, ("arrivals", "file")), str):
        renamed["arrivals"] = {**table["arrivals"], "file": names.get(file, file)}
    return renamed


def everywhere(value: Any, names: Mapping[str, str]) -> Any:
    """Values of a study's file with other names for its files, wherever they stand: in keys that name files, on axes, in [let], in `where` tables, and
    as texts in expressions."""
    if isinstance(value, list | tuple):
        return [everywhere(inner, names) for inner in value]
    if isinstance(value, dict):
        return {key: everywhere(inner, names) for key, inner in value.items()}
    if expressions.is_expression(value):
        return expressions.with_texts(value, names)
    return names.get(value, value) if isinstance(value, str) else value


def placed(document: Document, traces: Mapping[str, str], folder: Path) -> Document:
    """The experiment as if it were a file in `folder`, which has its traces from now on."""
    folder.mkdir(exist_ok=True)
    for name, text in traces.items():
        if not (folder / name).is_file():
            (folder / name).write_text(text, encoding="utf-8", newline="\n")
    return Document(str(folder / Path(document.name).name), document.values, {})


def of_study(study: Study) -> dict[str, tuple[str, str]]:
    """By the names in the study's file: the name in its results' folder, and the text."""
    files = {name: file for point in study.sweep.points for name, file in own(point.document).items()}
    places = {name: file.name for name, file in files.items()}
    twice = {name for name in places if list(places.values()).count(places[name]) > 1}
    texts = {name: carried(file) for name, file in files.items()}
    return {name: (f"files/{texts[name][0] if name in twice else places[name]}", texts[name][1]) for name in files}


def _keys(value: Any, path: KeyPath) -> Iterator[KeyPath]:
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if key in _KEYS and isinstance(inner, str):
            yield (*path, key)
        else:
            yield from _keys(inner, (*path, key))


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_renamed(inner, names) for inner in value]
    if not isinstance(value, dict):
        return value
    return {key: names.get(v, v) if key in _KEYS and isinstance(v, str) else _renamed(v, names) for key, v in value.items()}

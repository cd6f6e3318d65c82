"""P4 programs and control planes of the user's own that a study's runs name: their text decides a run, and goes with it to wherever it runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairlane import user_files
from fairlane.experiments import loader
from fairlane.inputs.located_toml import Document
from fairlane.studies.study import Study
from fairlane.user_files import OwnSource


def own(document: Document) -> dict[str, OwnSource]:
    """Of an experiment, by key of `loader.OWN_FILES`. Refusal: a file of them cannot be read."""
    places = {key: path for key in loader.OWN_FILES if (path := loader.own_file_of(document, key)) is not None}
    return {key: source for key, path in places.items() if (source := user_files.own_source(key, str(path))) is not None}


def named(document: Document, names: Mapping[str, str]) -> Document:
    """The same experiment with other names of its files, by key."""
    control: dict[str, Any] = {**document.values.get("control", {}), **names}
    return Document(document.name, {**document.values, "control": control}, document.places)


def carried(source: OwnSource) -> str:
    """The name under which a file goes with a run: it tells what is in it, and in all that it includes."""
    return f"{source.digest[:16]}/{source.main}"


def placed(document: Document, sources: Mapping[str, OwnSource], folder: Path) -> Document:
    """The experiment with each of its files in a folder of `folder`."""
    return named(document, {key: str(source.place(folder / source.digest[:16])) for key, source in sources.items()})


def of_study(study: Study) -> tuple[dict[str, str], dict[str, str]]:
    """By the names in the study's file, the names in its results' folder; and there, text by name."""
    places: dict[str, str] = {}
    texts: dict[str, str] = {}
    numbers: dict[str, dict[str, int]] = {key: {} for key in loader.OWN_FILES}
    for point in study.sweep.points:
        control = point.document.values.get("control", {})
        if all(control[key] in places for key in loader.OWN_FILES if key in control):
            continue
        for key, source in own(point.document).items():
            folder = user_files.numbered_place(key, numbers[key].setdefault(source.digest, len(numbers[key])))
            places[control[key]] = f"{folder}/{source.main}"
            texts |= {f"{folder}/{file}": text for file, text in source.files}
    return places, texts

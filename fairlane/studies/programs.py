"""The user's own P4 programs in a study: results depend on their text, and each job carries it to its worker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairlane import user_files
from fairlane.experiments import loader
from fairlane.inputs.located_toml import Document
from fairlane.studies.study import Study
from fairlane.user_files import OwnProgram


def own(document: Document) -> OwnProgram | None:
    """The program of an experiment; None for one of Fairlane's. Refusal: a file of it cannot be read."""
    path = loader.program_of(document)
    return None if path is None else user_files.own_program(path)


def named(document: Document, program: str) -> Document:
    """The same experiment with another name for its program."""
    control: dict[str, Any] = {**document.values["control"], "program": program}
    return Document(document.name, {**document.values, "control": control}, document.places)


def carried(program: OwnProgram) -> str:
    """The name under which a program goes with a run: it tells what is in its files."""
    return f"{program.digest[:16]}/{program.main}"


def placed(document: Document, program: OwnProgram, folder: Path) -> Document:
    """The experiment with its program's files in a folder of `folder`."""
    return named(document, str(program.place(folder / program.digest[:16])))


def of_study(study: Study) -> tuple[dict[str, str], dict[str, str]]:
    """By the names in the study's file, the names in its results' folder; and there, text by name."""
    places: dict[str, str] = {}
    texts: dict[str, str] = {}
    numbers: dict[str, int] = {}
    for point in study.sweep.points:
        name = point.document.values.get("control", {}).get("program")
        if name in places or (program := own(point.document)) is None:
            continue
        folder = user_files.numbered_place(numbers.setdefault(program.digest, len(numbers)))
        places[name] = f"{folder}/{program.main}"
        texts |= {f"{folder}/{file}": text for file, text in program.files}
    return places, texts

"""Data that the evaluation of a run needs besides the raw records, stored with them: a failed evaluation can be repeated from it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pydantic

from fairlane.errors import Refusal
from fairlane.experiments.model import Experiment
from fairlane.fabrics.outcome import Outcome
from fairlane.results.nameless import of_experiment, without_folders
from fairlane.schemes import recorded, registry

_NAME = "run.json"


@dataclasses.dataclass(frozen=True)
class Finished:
    """A run that is over. fabric: "virtual" or "mininet"; target: what ran the P4 program."""

    experiment: Experiment
    outcome: Outcome
    fabric: str
    target: str


def write(raw: Path, run: Finished) -> None:
    """Into the folder of raw records. Floats keep infinities, which Python's JSON writes and reads."""
    half = raw / f".{_NAME}"
    said = {**without_folders(run), "experiment": of_experiment(run.experiment)}
    half.write_text(json.dumps(said), encoding="utf-8", newline="\n")
    half.replace(raw / _NAME)  # where it is, it is whole


def has_records(folder: Path) -> bool:
    """Whether a folder has the raw records of a run that is over."""
    return (folder / "raw" / _NAME).is_file()


def is_in(folder: Path) -> bool:
    """Whether a result folder has raw records and no evaluation."""
    return has_records(folder) and not (folder / "summary.json").exists()


def read(raw: Path) -> Finished:
    """What `write` wrote. Refusal when it cannot be read."""
    path = raw / _NAME
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        experiment = data["experiment"]
        for flow in experiment["flows"]:
            _with_attributes(flow["settings"])
        recorded.know(experiment)
        for link in experiment["topology"]["links"]:
            _with_schemes(link)
        run = pydantic.TypeAdapter(Finished).validate_python(data)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Refusal(f"{path}: cannot be read, so these records cannot be evaluated: {error}") from error
    return run


def _with_attributes(settings: dict[str, Any]) -> None:
    """An algorithm's parameters as an object with these fields: its own class may be in a file of the user's, and is not needed."""
    values = settings.get("parameters")
    if isinstance(values, dict):
        settings["parameters"] = dataclasses.make_dataclass("Parameters", list(values), frozen=True)(**values)


def _with_schemes(link: dict[str, Any]) -> None:
    """The parameters of a link's scheme as objects. ValueError for a scheme of the user's own that is neither loaded nor described."""
    known = registry.parameters()
    link["schemes"] = tuple(make(**values) for key, make in known.items() if (values := link.pop(key, None)) is not None)
    if (queue := link["queue"]) not in (registry.DROPTAIL, *known):
        raise ValueError(f"queue: {queue!r} is a scheme of your own: set {registry.FOLDERS_VARIABLE} to its folder")

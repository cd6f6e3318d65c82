"""Data that the evaluation of a run needs besides the raw records, stored with them: a failed evaluation can be repeated from it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairlane.errors import Refusal
from fairlane.experiments.model import Experiment
from fairlane.fabrics.outcome import Outcome
from fairlane.results.nameless import of_experiment, without_folders
from fairlane.schemes import recorded, registry
from fairlane.schemes.base import Parameters

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
    import pydantic  # takes longer than most evaluations, and few runs are read again

    path = raw / _NAME
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        experiment = data["experiment"]
        for flow in experiment["flows"]:
            _with_attributes(flow["settings"])
        recorded.know(experiment)
        for link in experiment["topology"]["links"]:
            _with_schemes(link, registry.parameters())
            if (queue := link["queue"]) not in (registry.DROPTAIL, *registry.names()):
                raise ValueError(f"queue: {queue!r} is a scheme of your own: set {registry.FOLDERS_VARIABLE} to its folder")
        _with_schemes(experiment["settings"]["control"], registry.parameters_everywhere())
        run = pydantic.TypeAdapter(Finished).validate_python(data)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Refusal(f"{path}: cannot be read, so these records cannot be evaluated: {error}") from error
    return run


def _with_attributes(settings: dict[str, Any]) -> None:
    """An algorithm's parameters as an object with these fields: its own class may be in a file of the user's, and is not needed."""
    values = settings.get("parameters")
    if isinstance(values, dict):
        settings["parameters"] = dataclasses.make_dataclass("Parameters", list(values), frozen=True)(**values)


def _with_schemes(table: dict[str, Any], known: Mapping[str, type[Parameters]]) -> None:
    """The parameters of schemes in a link or in the control plane's settings as objects."""
    table["schemes"] = tuple(make(**values) for key, make in known.items() if (values := table.pop(key, None)) is not None)

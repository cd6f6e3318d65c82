"""Texts without folders that may name a person, and that differ between machines."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

from fairlane.experiments.model import Experiment
from fairlane.inputs import schema
from fairlane.schemes import recorded


def nameless(word: str) -> str:
    """A word of a command line without folders that may name a person."""
    key, equals, value = word.rpartition("=")
    path = Path(value)
    if not (path.is_absolute() or value.startswith("~") or ".." in path.parts):
        return word
    here = Path.cwd()
    if path.is_relative_to(here) and ".." not in path.parts:
        return f"{key}{equals}{path.relative_to(here).as_posix()}"
    return f"{key}{equals}…/{path.name}"


def without_folders(value: Any) -> Any:
    """Plain data, of dataclasses too; texts in it that are whole paths have their last names alone."""
    return _without_folders(value, {})


def of_experiment(experiment: Experiment) -> dict[str, Any]:
    """An experiment as records have it: plain data, with descriptions of the user's own schemes."""
    of_links = ((link.aqm, link.queue_packets) for link in experiment.topology.links)
    everywhere = ((parameters, 0) for parameters in experiment.settings.control.schemes)
    return {**without_folders(experiment), **recorded.described([*of_links, *everywhere])}


_NUMBERS = frozenset((bool, int, float, type(None)))


def _without_folders(value: Any, known: dict[int, dict[str, Any]]) -> Any:
    """known: of dataclasses, by identity: thousands of flows share their settings."""
    if value is None or isinstance(value, (int, float)):
        return value
    if isinstance(value, str):
        return f"…/{Path(value).name}" if os.path.isabs(value) else value
    if isinstance(value, dict):
        return {key: inner if type(inner) in _NUMBERS else _without_folders(inner, known) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [inner if type(inner) in _NUMBERS else _without_folders(inner, known) for inner in value]
    if dataclasses.is_dataclass(value):
        if id(value) not in known:
            known[id(value)] = {
                key: inner if type(inner) in _NUMBERS else _without_folders(inner, known) for key, inner in schema.members(value).items()
            }
        return known[id(value)]
    return value

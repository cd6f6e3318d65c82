"""Texts without folders that may name a person, and that differ between machines."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def nameless(word: str) -> str:
    """A word of a command line without folders that may name a person."""
    key, equals, value = word.rpartition("=")
    path = Path(value)
    if not (path.is_absolute() or value.startswith("~") or ".." in path.parts):
        return word
    here = Path.cwd()
    if path.is_relative_to(here) and ".." not in path.parts:
        return f"{key}{equals}{path.relative_to(here)}"
    return f"{key}{equals}…/{path.name}"


def without_folders(value: Any) -> Any:
    """Plain data; texts in it that are whole paths have their last names alone."""
    if isinstance(value, str):
        return f"…/{Path(value).name}" if value.startswith("/") else value
    if isinstance(value, dict):
        return {key: without_folders(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_folders(inner) for inner in value]
    return value

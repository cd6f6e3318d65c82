"""Typer's applications, whose commands take plain values as they are.

Typer converts each value of a command line by pydantic, also one that nobody gave. To import it and to make its converters takes longer than
most commands run. Whatever is not plain goes to Typer, which converts or refuses it.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

_WHOLE = re.compile(r"-?[0-9]{1,15}", re.ASCII)
_DECIMAL = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?", re.ASCII)
_Function = TypeVar("_Function", bound=Callable[..., Any])
_OTHER = object()
"""In place of a value that Typer converts."""


def plain(value: Any, wanted: Any, info: Any) -> Any:
    """`value`, a text of the command line, as the type `wanted`, where Typer would give the same; otherwise `_OTHER`. info: Typer's, of the option."""
    if value is None or (isinstance(value, bool) and wanted is bool):
        return value
    if get_origin(wanted) is list and isinstance(value, (list, tuple)):
        found = [plain(one, get_args(wanted)[0], info) for one in value]
        return _OTHER if _OTHER in found else found
    if not isinstance(value, str) or not value.isascii() or info.parser is not None:
        return _OTHER
    if wanted is str:
        return value
    if get_origin(wanted) is Literal and value in get_args(wanted):
        return value
    if wanted in (int, float) and not info.clamp and (_WHOLE if wanted is int else _DECIMAL).fullmatch(value):
        number = wanted(value)
        fits = (info.min is None or number >= info.min) and (info.max is None or number <= info.max)
        return number if fits else _OTHER
    if wanted is Path and not _is_checked(info) and "\0" not in value and (os.access(value, os.R_OK) or not os.path.lexists(value)):
        return Path(value)
    return _OTHER


def _is_checked(info: Any) -> bool:
    """Whether Typer does more to a path than to ask whether it can be read."""
    return bool(
        info.exists or info.resolve_path or info.allow_dash or info.writable or info.path_type or not (info.file_okay and info.dir_okay)
    )


def _process(typers: Callable[[Any, Any], Any], option: Any, context: Any, value: Any) -> Any:
    """An option's value. typers: Typer's own way to it."""
    if option.required and value in (None, (), []):
        return typers(context, value)
    given = option.type_descriptor
    found = value if _is_default(option, context) else plain(value, given.annotation, given.parameter_info)
    if found is _OTHER:
        return typers(context, value)
    return found if option.callback is None else option.callback(context, option, found)


def _is_default(option: Any, context: Any) -> bool:
    source = context.get_parameter_source(option.name)
    return source is not None and source.name == "DEFAULT"


class _Plain:
    """A command or a group whose options take plain values as they are."""

    def get_params(self, ctx: Any) -> list[Any]:
        options: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for option in options:
            # Another Typer may not have what `plain` looks at.
            if hasattr(option, "type_descriptor") and "process_value" not in vars(option):
                option.process_value = functools.partial(_process, option.process_value, option)
        return options


class Command(_Plain, TyperCommand):
    """As Typer's."""


class Group(_Plain, TyperGroup):
    """As Typer's."""


class App(typer.Typer):
    """As Typer's."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"cls": Group, **settings})

    def command(self, name: str | None = None, **settings: Any) -> Callable[[_Function], _Function]:
        return super().command(name, **{"cls": Command, **settings})

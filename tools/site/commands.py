"""Writes the tables of options in docs/commands.md from the command line's own declarations: python -m tools.site.commands

A table stands between `<!-- options: NAME -->` and `<!-- end -->`."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer

from fairlane import cli

PAGE = Path(__file__).resolve().parents[2] / "docs" / "commands.md"
_WORDS = {int: "N", float: "NUMBER", Path: "PATH"}
_BLOCK = re.compile(r"(<!-- options: ([\w ]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def commands() -> dict[str, Any]:
    """Every command by the words that call it, groups resolved, as in 'new algorithm'."""
    found: dict[str, Any] = {}

    def visit(group: Any, words: str) -> None:
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                visit(command, f"{words}{name} ")
            else:
                found[f"{words}{name}"] = command

    visit(typer.main.get_command(cli.app), "")
    return found


def table(command: Any) -> str:
    """The arguments and options of a command as a Markdown table."""
    rows = ["| | what |", "|---|---|"]
    for parameter in command.params:
        if not getattr(parameter, "hidden", False):
            what = (getattr(parameter, "help", None) or "").replace("|", r"\|")
            rows.append(f"| `{_spelt(parameter)}` | {what}{_default(parameter)} |")
    return "\n".join(rows) + "\n"


def _spelt(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return parameter.metavar or (parameter.name or "").upper()
    name = "/".join([*parameter.opts, *parameter.secondary_opts])
    if parameter.is_flag:
        return name
    given = (parameter.metavar or "").replace("|", r"\|") or _value(parameter.type_descriptor.annotation)
    return f"{name} {given}"


def _value(annotation: Any) -> str:
    """What a user gives for a type: its choices, or a word for it."""
    if get_origin(annotation) is Literal:
        return r"\|".join(map(str, get_args(annotation)))
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return r"\|".join(choice.value for choice in annotation)
    inner = [kind for kind in get_args(annotation) if kind is not type(None)]
    return _value(inner[0]) if inner else _WORDS.get(annotation, "TEXT")


def _default(parameter: Any) -> str:
    shown = parameter.default
    if getattr(parameter, "is_flag", False) or shown in (None, ()) or not getattr(parameter, "show_default", True):
        return ""
    return f" Default: `{shown.value if isinstance(shown, Enum) else shown}`."


def written(page: str) -> str:
    """The page with every table regenerated."""
    every = commands()
    return _BLOCK.sub(lambda found: f"{found[1]}\n{table(every[found[2]])}\n{found[3]}", page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

"""`fairlane compile`, `switch`, `stf`, `fmt`, `lsp`: the programs of the P4 toolchain, by one name."""

from __future__ import annotations

import sys
from typing import Any

import typer
from typer.core import TyperCommand

from fairlane import probes, python_child
from fairlane.commands.app import App
from fairlane.errors import CANNOT_RUN_HERE, Refusal

app = App()


class _PassOn(TyperCommand):
    """A command that passes its arguments to another program unchanged: none is an option here, and `--` keeps its position."""

    ignore_unknown_options = True

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.args = args
        return args


@app.command(cls=_PassOn)
def compile(context: typer.Context) -> None:
    """Compile a P4 program: fairlane-compile, with p4c's flags."""
    _become("fairlane-compile", context.args)


@app.command(cls=_PassOn)
def switch(context: typer.Context) -> None:
    """Run one switch: fairlane-switch, with simple_switch_grpc's flags."""
    _become("fairlane-switch", context.args)


@app.command(cls=_PassOn)
def stf(context: typer.Context) -> None:
    """Run a packet test against a program, without interfaces or root: fairlane stf PROG.p4 TEST.stf"""
    _become("fairlane-stf", context.args)


@app.command(cls=_PassOn)
def fmt(context: typer.Context) -> None:
    """Format P4 source files: fairlane fmt [--check] [--diff] FILES"""
    _become("fairlane-fmt", context.args)


@app.command(cls=_PassOn)
def lsp(context: typer.Context) -> None:
    """Serve an editor: messages while you type, hover, definitions, completion (Language Server Protocol)."""
    _become("fairlane-lsp", context.args)


def _become(name: str, arguments: list[str]) -> None:
    program = probes.program(name)
    if program is None:
        raise Refusal(f"{name} is not built: run 'make build'.", CANNOT_RUN_HERE)
    sys.stdout.flush()
    python_child.become(program, [name, *arguments])

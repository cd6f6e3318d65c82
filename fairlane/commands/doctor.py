"""`fairlane doctor`: requirements of this machine, and its limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fairlane import probes
from fairlane.commands.app import App
from fairlane.commands.options import PortOption
from fairlane.errors import CANNOT_RUN_HERE
from fairlane.fabrics.places import Place
from fairlane.fabrics.switch_process import BMV2, EMBEDDED, FIRST_GRPC_PORT
from fairlane.terminal import console, say

if TYPE_CHECKING:
    from fairlane.capacity import Capacity

app = App()


@app.command()
def doctor(
    place: Annotated[
        Place,
        typer.Option("--for", help="The required fabric or switch: exit code 3 if this machine cannot run it."),
    ] = Place.VIRTUAL,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure", help="Measure the highest rate and number of flows with valid runs on Mininet on this machine (root, a minute)."
        ),
    ] = False,
    grpc_port: PortOption = FIRST_GRPC_PORT,
) -> None:
    """List the installed and the missing requirements, the consequences, and how to install the missing ones."""
    if measure:
        _measure_machine(grpc_port)
        return
    from fairlane import doctor as examination

    findings = examination.examine()
    if as_json:
        print(examination.as_json(findings))
    else:
        examination.show(console, findings)
    if examination.lacking(findings, place):
        raise typer.Exit(CANNOT_RUN_HERE)


def _measure_machine(grpc_port: int) -> None:
    from fairlane import capacity, measure

    has_bmv2 = probes.program(BMV2.program) is not None
    for target in (EMBEDDED, BMV2) if has_bmv2 else (EMBEDDED,):
        _say_capacity(target.name, measured := measure.measure(target, grpc_port, say))
        capacity.write(target.name, measured)
    if not has_bmv2:
        say(f"{BMV2}: not measured, there is no {BMV2.program} in PATH")
    say(f"written: {capacity.file()}; a run beyond these values prints a warning before it starts")


def _say_capacity(target: str, found: Capacity) -> None:
    for what, bound in (("packets a second, summed over switches", found.hops_per_s), ("flows", found.flows)):
        invalid = "" if bound.invalid is None else f", not valid from {bound.invalid:,.0f} on"
        more = " (the largest value tried)" if bound.true >= bound.tried else ""
        say(f"{target}: true up to {bound.true:,.0f} {what}{more}{invalid}")
    if not min(found.hops_per_s.true, found.flows.true):
        say(f"{target}: not even the first step was true, at a load average of {found.load:.1f}: measure again on an idle machine")

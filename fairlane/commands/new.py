"""`fairlane new`: a starting point for an algorithm or a scheme."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairlane import probes
from fairlane.commands.app import App
from fairlane.terminal import console, shown

app = App()


new = App(no_args_is_help=True, help="Create a starting point for your own code.")
app.add_typer(new, name="new")


@new.callback()
def _new() -> None:
    """Create a starting point for your own code."""


@new.command("algorithm")
def new_algorithm(
    name: Annotated[str, typer.Argument(help="Name of the flow kind: lower case, words joined by hyphens.", show_default=False)],
    acks: Annotated[
        bool, typer.Option("--acks", help="Receive an acknowledgement of each packet instead of reports, as delay-based algorithms need.")
    ] = False,
) -> None:
    """Write a rate-adaptation algorithm without its equation, and a test that fails until you add it."""
    from fairlane import skeleton

    checkout = probes.in_checkout()
    source, test = (shown(path) for path in skeleton.algorithm(name, probes.ROOT if checkout else Path(), checkout, acks))
    kind, pytest, named = name.replace("_", "-"), ".venv/bin/pytest" if checkout else "pytest", "" if checkout else f" --algorithm {source}"
    for line in (
        f"written: {source}",
        f"written: {test}",
        f"now write the equation into {source}, until this test passes:",
        f"    {pytest} {test}",
        "and run it:",
        f"    fairlane run dumbbell{named} --flow {kind}:2 --flow tcp-reno:2",
    ):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


@new.command("scheme")
def new_scheme(
    name: Annotated[str, typer.Argument(help="Name of the queue management: lower case, words joined by hyphens.", show_default=False)],
    chosen: Annotated[
        bool,
        typer.Option(
            "--chosen",
            help="NAME is the folder of a scheme that exists: only write its chosen.p4 and chosen_headers.p4 anew, after a change of name, places or header in scheme.py.",
        ),
    ] = False,
) -> None:
    """Write a folder with a working queue management, as a starting point for your own."""
    from fairlane import skeleton_scheme

    if chosen:
        for path in skeleton_scheme.choose(Path(name)):
            console.print(f"written: {shown(path)}", highlight=False, markup=False, soft_wrap=True)
        return
    files = [shown(path) for path in skeleton_scheme.scheme(name, Path())]
    p4src = shown(probes.PACKAGE / "p4src") if not probes.in_checkout() else "p4src"
    for line in (
        *(f"written: {path}" for path in files),
        "run it:",
        f"    fairlane run dumbbell --flow tcp-sack:4 --scheme {name} --queue {name}",
        "its packet test:",
        f"    fairlane stf -D CHOSEN -I {name} -I {p4src} {p4src}/als.p4 {name}/{name}.stf",
    ):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


@new.command("lab")
def new_lab(
    number: Annotated[str, typer.Argument(help="The lab's number, two digits, such as 11.", show_default=False)],
    title: Annotated[str, typer.Argument(help="Its title.", show_default=False)],
) -> None:
    """Write a lab with one function to fill in, its grader, solution and wrong answer, as a starting point for your own. In a checkout."""
    from fairlane.labs import begun

    files = begun.begin(number, title)
    for line in (
        *(f"written: {shown(path)}" for path in files),
        f"grade its solution: fairlane labs check {number} teaching/{number}/solution",
        f"add labs/{number}/answer.py to .gitignore: it is the student's own file",
    ):
        console.print(line, highlight=False, markup=False, soft_wrap=True)

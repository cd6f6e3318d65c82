"""`fairlane film`: a film over a link, with each algorithm."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairlane import errors
from fairlane.commands.app import App
from fairlane.commands.options import PortOption, fabric_option
from fairlane.errors import Refusal
from fairlane.fabrics.base import Fabric
from fairlane.fabrics.places import VIRTUAL
from fairlane.fabrics.switch_process import FIRST_GRPC_PORT
from fairlane.terminal import console

app = App()


@app.command()
def film(
    algorithms: Annotated[list[str], typer.Argument(help="Flow kinds, or FILE.py with your own.", show_default=False)],
    rate: Annotated[str, typer.Option(help="Rate of the link, and later rates as RATE@TIME.")] = "2mbit,1mbit@20s,2mbit@40s",
    rtt: Annotated[float, typer.Option(help="Round trip without queues in milliseconds.", min=0.0, max=2000.0)] = 40.0,
    buffer: Annotated[
        int | None, typer.Option(help="Length of the link's queue in packets. Default: 0.2 s at the first rate.", show_default=False, min=1)
    ] = None,
    seconds: Annotated[float, typer.Option(help="Length of the film in seconds.", min=2.0, max=3600.0)] = 60.0,
    film_file: Annotated[
        Path | None, typer.Option("--film", help="Your own film (mininet). Default: a generated film.", show_default=False)
    ] = None,
    fabric: Annotated[
        Fabric,
        fabric_option("virtual: modelled frames in virtual time; mininet: GStreamer encodes and decodes a film on real hosts (root)."),
    ] = VIRTUAL,
    grpc_port: PortOption = FIRST_GRPC_PORT,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers.")] = 1,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of film.json and the page; must not exist. Default: a new one in results/.", show_default=False),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 5 if the machine did not keep up with a run.")] = False,
) -> None:
    """Send a film with each algorithm over the same link: quality, freezes and delay of its frames, and a page with pictures."""
    from fairlane.films import carry_out
    from fairlane.films.model import Wanted

    if film_file is not None and not fabric.real_time:
        raise Refusal("--film: in virtual time frames are modelled, without pictures; add --fabric mininet")
    wanted = Wanted(tuple(algorithms), carry_out.rates(rate), rtt / 1e3, buffer, seconds, film_file, fabric, seed, grpc_port)
    true = carry_out.carry_out(wanted, out, console)
    if strict and not true:
        raise typer.Exit(errors.NOT_VALID)

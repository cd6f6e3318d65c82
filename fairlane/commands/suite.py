"""`fairlane suite`: a standard test suite with a sender."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairlane.commands.app import App
from fairlane.errors import CHECK_FAILED
from fairlane.schemes import registry
from fairlane.terminal import console
from fairlane.topologies.model import queues

app = App()


@app.command()
def suite(
    name: Annotated[str, typer.Argument(help="rfc8867, rfc8869, rfc7928 or l4s.", show_default=False)],
    algorithm: Annotated[
        str,
        typer.Option(
            help="The sender: a flow kind, or FILE.py with your own; for rfc7928 and l4s a kind of TCP.",
            metavar="KIND|FILE.py",
            show_default=False,
        ),
    ],
    case: Annotated[list[str] | None, typer.Option(help="Run only this case, such as 5.1. Repeatable.", show_default=False)] = None,
    queue: Annotated[
        str | None,
        typer.Option(help="Queue management of the bottleneck. Default: as in each case.", metavar="|".join(queues()), show_default=False),
    ] = None,
    program: Annotated[
        list[Path] | None,
        typer.Option(help="FILE.p4 that replaces the file of that name in p4src. Repeatable.", show_default=False),
    ] = None,
    scheme: Annotated[
        list[Path] | None, typer.Option(help="FOLDER with your own queue management for --queue. Repeatable.", show_default=False)
    ] = None,
    ecn: Annotated[
        bool,
        typer.Option(
            "--ecn",
            help=f"The tested flows use ECN, and the queues mark; without --queue, {registry.default_marking()} replaces drop-tail.",
        ),
    ] = False,
    loss: Annotated[
        float, typer.Option(help="Fraction of packets that the bottleneck loses at random in each direction.", min=0.0, max=0.99)
    ] = 0.0,
    jitter: Annotated[
        float,
        typer.Option(
            help="Jitter of the bottleneck: the absolute value of a Gaussian with this standard deviation in milliseconds, cut off at three times the deviation (RFC 8868: 5).",
            min=0.0,
            max=1000.0,
        ),
    ] = 0.0,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of suite.json and the page; must not exist. Default: a new one in results/.", show_default=False),
    ] = None,
    delay: Annotated[
        float | None,
        typer.Option(
            help="One-way delay of the bottleneck's link in milliseconds. Default: as in each case.",
            min=0.0,
            max=10_000.0,
            show_default=False,
        ),
    ] = None,
    rtp_log: Annotated[
        bool,
        typer.Option(
            "--rtp-log",
            help="Also log each RTP packet, sent and received, in the format of RFC 8868: rtp/CASE/FLOW.sent.log, FLOW.received.log.",
        ),
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 1 if a case fails.")] = False,
) -> None:
    """Run a standard test suite with a sender, in virtual time: suite.json, and a page with a picture for each case."""
    from fairlane import user_files
    from fairlane.suites import carry_out, cases

    for path in scheme or ():
        user_files.use_scheme(path)
    options = cases.Options(queue, tuple(program or ()), ecn, loss, jitter / 1000, None if delay is None else delay / 1000)
    passes = carry_out.carry_out(name, algorithm, out, console, options, rtp_log, tuple(case or ()))
    if strict and not passes:
        raise typer.Exit(CHECK_FAILED)

"""`fairlane why`: one packet's way, step by step, of a packet test, a capture or a finished run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairlane.commands.app import App
from fairlane.errors import Refusal
from fairlane.terminal import console, say

if TYPE_CHECKING:
    from fairlane.why.explanation import Explanation

app = App()
_OF_RUN = "Packet of a finished run"
_OF_CAPTURE = "Packet of a capture"


def _option(help_text: str, *names: str, panel: str | None = None, **more: Any) -> Any:
    return typer.Option(*names, help=help_text, show_default=False, rich_help_panel=panel, **more)


@app.command()
def why(
    what: Annotated[
        str, typer.Argument(metavar="PROGRAM|RESULTS", help="A P4 program, its BMv2 JSON, or a folder of results.", show_default=False)
    ],
    test: Annotated[Path | None, typer.Argument(metavar="[TEST.stf]", help="A packet test of the program.", show_default=False)] = None,
    packet: Annotated[
        int | None,
        _option(
            "Which packet: of a test or a capture from 1 (default: 1); of a flow by its number in the record of packets (--packets); control packets from 1."
        ),
    ] = None,
    include: Annotated[list[Path] | None, _option("Add a directory to look for included files in.", "-I", metavar="DIR")] = None,
    define: Annotated[list[str] | None, _option("Define a preprocessor macro.", "-D", metavar="NAME[=VALUE]")] = None,
    pcap: Annotated[Path | None, _option("A capture (pcap) whose packets come in.", panel=_OF_CAPTURE)] = None,
    port: Annotated[int | None, _option("The port at which they come in.", panel=_OF_CAPTURE, min=0, max=511)] = None,
    entries: Annotated[
        Path | None,
        _option("Entries: a packet test, sN-runtime.json, or commands of simple_switch_CLI.", panel=_OF_CAPTURE),
    ] = None,
    flow: Annotated[str | None, _option("The flow, as the results name it.", panel=_OF_RUN)] = None,
    part: Annotated[str | None, _option("data (default), ack, rtcp or empty: as in the record of packets.", panel=_OF_RUN)] = None,
    back: Annotated[bool, _option("The packet goes from the receiver to the sender.", "--back", panel=_OF_RUN)] = False,
    dropped: Annotated[
        int | None, _option("The first (1), second, ... packet that was dropped, of --flow if that is given.", panel=_OF_RUN, min=1)
    ] = None,
    cause: Annotated[str | None, _option("With --dropped: for this cause alone, such as tail or ingress.", panel=_OF_RUN)] = None,
    as_json: Annotated[bool, _option("Write data in place of text.", "--json")] = False,
    page: Annotated[Path | None, _option("Write a page, too; must not exist.", metavar="FILE.html")] = None,
) -> None:
    """Explain one packet's way, step by step: each statement with the values before and after, each table with the entries that it tried, and how the packet ended."""
    if page is not None and page.exists():
        raise Refusal(f"--page {page}: exists already, and is not overwritten")
    if Path(what).is_dir():
        _refuse(
            {"TEST.stf": test, "--pcap": pcap, "--port": port, "--entries": entries, "-I": include, "-D": define}, "a folder of results"
        )
        found = _of_run(Path(what), (flow, part, packet, back), dropped, cause)
    else:
        _refuse(
            {"--flow": flow, "--part": part, "--back": back, "--dropped": dropped, "--cause": cause},
            "a program; they are for a folder of results",
        )
        found = _of_program(what, test, (include or [], define or []), (pcap, port, entries), packet)
    if page is not None:
        from fairlane.why import page as pages

        pages.write(found, page)
    if as_json:
        print(json.dumps(found.data(), indent=1))
        return
    from fairlane.why import text

    text.show(found, console)
    if page is not None:
        say(f"page: {page}")


def _refuse(options: dict[str, object], what: str) -> None:
    given = [name for name, value in options.items() if value]
    if given:
        raise Refusal(f"{given[0]}: not with {what}")


def _of_run(folder: Path, which: tuple[str | None, str | None, int | None, bool], dropped: int | None, cause: str | None) -> Explanation:
    from fairlane.why import runs

    flow, part, packet, back = which
    if dropped is not None:
        if packet is not None or part is not None:
            raise Refusal("--packet, --part: not with --dropped, which finds the packet")
        runs.check_cause(cause)
        return runs.of_drop(folder, runs.Dropped(dropped, flow, cause))
    if cause is not None:
        raise Refusal("--cause: give --dropped N, too")
    if flow is None or packet is None:
        raise Refusal(f"{folder}: which packet? Give --flow NAME --packet N, or --dropped 1")
    return runs.of_packet(folder, runs.packet_of(flow, part or "data", packet, back))


def _of_program(
    what: str,
    test: Path | None,
    compiler: tuple[list[Path], list[str]],
    capture: tuple[Path | None, int | None, Path | None],
    packet: int | None,
) -> Explanation:
    from fairlane.why import packet_tests

    program = packet_tests.Program(packet_tests.source(what), *compiler)
    if not packet_tests.is_program(program.path):
        raise Refusal(f"{what}: is no P4 program, no BMv2 JSON (.json) and no folder of results")
    pcap, port, entries = capture
    number = 1 if packet is None else packet
    if number < 1:
        raise Refusal(f"--packet {number}: packets of a test and of a capture are counted from 1")
    if pcap is None:
        _refuse({"--entries": entries, "--port": port}, "a packet test, which has its own")
        if test is None:
            raise Refusal(f"{what}: which packet? Give a packet test, or --pcap FILE --port P, with --entries FILE for the tables")
        return packet_tests.of_test(program, test, number)
    if test is not None:
        raise Refusal("--pcap: not with a packet test; its entries go into --entries")
    if port is None:
        raise Refusal(f"--pcap {pcap}: give --port P, at which its packets come in")
    return packet_tests.of_capture(program, entries, pcap, number, port)

"""What a command imports before it works, and the plain values of its command line."""

from __future__ import annotations

import enum
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import artist, lines
from typer.core import TyperCommand

from fairlane import cli, probes
from fairlane.commands import app as applications
from fairlane.fabrics import virtual_fabric
from fairlane.results import canvas

needs_network = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")
_COMMAND = """
import atexit, sys
sys.argv = ["fairlane", *sys.argv[1:]]
atexit.register(lambda: print("imported:", *sys.modules, file=sys.stderr))
from fairlane.__main__ import main
main()
"""
NEVER = {"pandas", "matplotlib.pyplot", "pydantic", "grpc", "finsy", "asyncio", "jinja2", "distributed", "scipy"}
"""Each takes longer to import than the network of als-3 takes to run, or a good part of that time."""
EARLY = {*NEVER, "numpy", "matplotlib", "google.protobuf"}
LIGHT = {*EARLY, "rich", "fairlane.experiments", "fairlane.hosts", "fairlane.schemes.registry", "importlib.metadata"}


def imported(folder: Path, *words: str) -> set[str]:
    """The modules that a command has imported when it ends."""
    environment = {**os.environ, "PYTHONPATH": str(probes.ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", _COMMAND, *words], env=environment, cwd=folder, capture_output=True, text=True, check=False
    )
    return set(done.stderr.rpartition("imported:")[2].split())


@pytest.mark.parametrize(
    ("words", "without"),
    [
        (("--version",), LIGHT - {"importlib.metadata"}),
        (("run", "nosuch"), EARLY),
        (("run", "dumbbell", "--flow", "tcp:nosuch", "--duration", "5", "--queue", "red"), EARLY),
        (("env", "--unlink", "nowhere"), LIGHT),
        (("list",), NEVER),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",  # sets have another order in each process
)
def test_a_command_imports_no_library_that_it_does_not_need(tmp_path: Path, words: tuple[str, ...], without: set[str]) -> None:
    found = imported(tmp_path, *words)
    assert "fairlane.cli" in found
    assert found & without == set()


@needs_network
def test_a_run_imports_no_library_that_it_does_not_need(tmp_path: Path) -> None:
    """The pictures are there."""
    assert imported(tmp_path, "run", "als-3", "--duration", "3", "--out", "out") & NEVER == set()
    assert {path.name for path in (tmp_path / "out").glob("*.png")} == {"rates.png", "queue.png", "fair_rate.png"}


def test_each_command_has_a_module_and_each_module_a_command() -> None:
    group: Any = typer.main.get_command(cli.app)
    assert [command.name for command in group.commands.values()] == list(cli.COMMANDS)
    modules = {path.stem for path in Path(applications.__file__).parent.glob("*.py")}
    assert modules - set(cli.COMMANDS.values()) == {"__init__", "app", "options"}


class Colour(enum.Enum):
    RED = "red"


def both(wanted: Any, words: list[str], **settings: Any) -> list[Any]:
    """The values, or the refusals, of an option of this type, as Typer has them alone and here."""
    found: list[Any] = []
    for kind in (TyperCommand, applications.Command):
        made = applications.App()

        def command(value: Any = None) -> None:
            found.append(value)

        command.__annotations__ = {"value": wanted | None, "return": None}
        command.__defaults__ = (typer.Option(None, "--value", **settings),)
        made.command(cls=kind)(command)
        try:
            typer.main.get_command(made).main(words, standalone_mode=False)
        except typer._click.exceptions.ClickException as refused:
            found.append(refused.format_message())
    return found


TEXTS = st.one_of(
    st.text(max_size=8),
    st.integers().map(str),
    st.floats().map(repr),
    st.decimals(allow_nan=True).map(str),
    st.from_regex(r"[-+]?[0-9_]{1,20}(\.[0-9]{0,20})?(e[0-9]{1,3})?", fullmatch=True),
    st.sampled_from(
        ["auto", "embedded", "Auto", "red", "", " 1", "1 ", "0x10", "1_0", "٣", "-0", "00012", ".", "..", "/", "/nowhere", "~"]
    ),
).filter(lambda text: "\0" not in text)


@given(
    TEXTS,
    st.sampled_from(
        [
            (str, {}), (int, {}), (float, {}), (int, {"min": 1, "max": 65000}), (float, {"min": 0.0, "max": 0.99}), (int, {"min": 1, "clamp": True}), (Path, {}),
            (Path, {"exists": True}), (Path, {"resolve_path": True}), (Path, {"dir_okay": False}), (Literal["auto", "embedded"], {}),
            (Literal["auto", "embedded"], {"case_sensitive": False}), (Colour, {}), (list[str], {}), (list[Path], {}), (list[int], {}),
        ]
    ),
)  # fmt: skip
def test_a_plain_value_is_what_typer_makes_of_it(text: str, option: tuple[Any, dict[str, Any]]) -> None:
    wanted, settings = option
    typers, ours = both(wanted, [f"--value={text}"], **settings)
    assert (type(ours), repr(ours)) == (type(typers), repr(typers))


def test_an_option_that_nobody_gives_has_its_default() -> None:
    for wanted in (str, int, Path, list[str], Colour):
        assert both(wanted, []) == [None, None]


_FINSY = """
import sys
from fairlane.controller import messages
assert "finsy" not in sys.modules and "grpc" not in sys.modules
import finsy, finsy.proto
from finsy.proto import U128, p4r_grpc
import finsy.proto.p4.v1.p4runtime_pb2 as p4r
assert finsy.Switch and finsy.proto.p4r is p4r is messages.p4r and finsy.proto.p4i is messages.p4i and finsy.proto.p4d is messages.p4d
assert U128.encode(5) == messages.p4r.Uint128(low=5) and p4r_grpc.P4RuntimeStub
assert messages.load("p4.v1.p4runtime_pb2_grpc") is p4r_grpc
"""


def test_finsy_is_whole_after_its_messages_were_loaded_alone() -> None:
    subprocess.run([sys.executable, "-c", _FINSY], env={**os.environ, "PYTHONPATH": str(probes.ROOT)}, check=True)


def test_a_picture_has_the_bytes_that_matplotlib_writes(tmp_path: Path) -> None:
    def drawn() -> canvas.Figure:
        figure = canvas.Figure(figsize=(5, 3), dpi=90, layout="constrained")
        axes = figure.subplots(2, 1)
        axes[0].plot([0, 1, 2], [1e6, 3e6, 2e6], label="a line")
        axes[0].legend()
        right = axes[1].twinx()
        right.set_ylabel("right")
        axes[1].set_title("two lines\nof a title", loc="left")
        return figure

    drawn().savefig(tmp_path / "theirs.png")
    assert canvas.save(drawn(), tmp_path / "ours.png").read_bytes() == (tmp_path / "theirs.png").read_bytes()


def test_only_a_command_leaves_out_the_documentation_of_matplotlib() -> None:
    """Here, as in a notebook, it is there, and in both a line takes its properties."""
    assert "linewidth" in (lines.Line2D.set.__doc__ or "")
    assert hasattr(artist.Artist, "_update_set_signature_and_docstring")
    script = (
        "import sys; sys.argv = ['fairlane']; from fairlane.results import canvas; line = canvas.Line2D([], []); line.set(linewidth=3, color='red')\n"
        "assert (line.get_linewidth(), line.get_color()) == (3, 'red'); print('linewidth' in (canvas.Line2D.set.__doc__ or ''))"
    )
    environment = {**os.environ, "PYTHONPATH": str(probes.ROOT)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"

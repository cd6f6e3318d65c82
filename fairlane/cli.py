"""The command line, `fairlane`. Each command is a module of `fairlane.commands`, which is imported when its command is called."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.main import get_group

from fairlane import errors
from fairlane.commands.app import App, Group
from fairlane.errors import BAD_INPUT, NO_SPACE, Interrupted, Refusal, RunFailed, Unfinished
from fairlane.inputs.located_toml import ConfigError
from fairlane.schemes import FOLDERS_VARIABLE

COMMANDS = {
    "run": "run",
    "sweep": "sweep",
    "suite": "suite",
    "film": "film",
    "paper": "paper",
    "report": "report",
    "view": "view",
    "pack": "pack",
    "unpack": "pack",
    "list": "listing",
    "compile": "programs",
    "switch": "programs",
    "stf": "programs",
    "fmt": "programs",
    "lsp": "programs",
    "why": "why",
    "env": "env",
    "doctor": "doctor",
    "shell": "shell",
    "clean": "clean",
    "new": "new",
    "labs": "labs",
}
"""The module of each command, in the order of `fairlane --help`."""


class _Commands(Mapping[str, Any]):
    """The commands by name. Looking one up imports its module, and no other: all of them together take longer to import than most commands take to run."""

    def __init__(self, markup: Any) -> None:
        self._markup = markup
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            app = import_module(f"fairlane.commands.{COMMANDS[name]}").app
            app.rich_markup_mode = self._markup
            self._made[name] = get_group(app).commands[name]
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _Fairlane(Group):
    def __init__(self, *, commands: Any = None, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = _Commands(self.rich_markup_mode)


app = App(
    cls=_Fairlane,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Fairlane: P4 switches that write fair rates into senders' control packets, in virtual time or Mininet.",
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"fairlane {version('fairlane')}")
        raise typer.Exit


@app.callback()
def _options(
    version_: Annotated[
        bool, typer.Option("--version", help="Print the version of Fairlane, and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


def main() -> None:
    """Entry point: refusals and failures become one sentence on standard error, and an exit code."""
    try:
        errors.require_address_space()
        if FOLDERS_VARIABLE in os.environ:
            from fairlane import user_files

            user_files.check_environment()
        if not sys.stderr.isatty():
            app.rich_markup_mode = None  # a box of 80 columns breaks the path or key that the message names
        if "--mpi" in sys.argv and sys.platform == "linux":
            from fairlane.fabrics import rank_guard

            rank_guard.guarded()
        app()
    except ConfigError as error:
        _fail(str(error), BAD_INPUT)
    except Refusal as error:
        _fail(str(error), error.code)
    except RunFailed as error:
        _fail(f"{error}\nEverything that the run had started is cleaned up.", error.code)
    except Unfinished as error:
        _fail(str(error), error.code)
    except Interrupted as error:
        _fail(f"ended by {error.signal_name}; {error.kept or 'cleaned up, no results written'}.", error.code)
    except BrokenPipeError:
        sys.exit(0)  # the reader closed the pipe, as `head` does
    except Exception as error:  # noqa: BLE001 # the outermost handler
        _fail(_unexpected(error), errors.code_of(error))


def _unexpected(error: Exception) -> str:
    """The message for the user. The traceback, which only developers need, goes into a file."""
    said = errors.say(error)
    if errors.code_of(error) != errors.FAULT:
        return said
    import tempfile
    import traceback

    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="fairlane-fault-", suffix=".txt", delete=False) as file:
            traceback.print_exception(error, file=file)
    except OSError:
        return said
    return f"{said} The traceback is in {file.name}: please report it."


def _fail(message: str, code: int) -> None:
    print(f"fairlane: {message}", file=sys.stderr)
    if code == NO_SPACE:
        # Without memory, libraries crash while they unload, and the crash would set the exit code. Our own cleanup is complete here.
        sys.stdout.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    main()

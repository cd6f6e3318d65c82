"""`fairlane`, and `python -m fairlane`: Ctrl-C ends it in order from the first line on.

Python's own way would print a traceback wherever an import has just arrived, and some libraries turn an interrupt of their imports into
errors of another kind. So this file imports nothing of Fairlane before `main` has a handler.
"""

import os
import signal
import sys
from types import FrameType

_BY_CTRL_C = 130


def _ctrl_c(number: int, frame: FrameType | None) -> None:
    """While modules are imported nothing is there yet that has to be cleaned up: end at once. Otherwise raise what commands clean up after."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            _end(number, frame)
        frame = frame.f_back
    errors = sys.modules.get("fairlane.errors")
    if errors is None:
        _end(number, frame)
    else:
        raise errors.Interrupted("SIGINT")


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, b"fairlane: ended by SIGINT.\n")
    os._exit(_BY_CTRL_C)


def main() -> None:
    """The command line, `fairlane.cli`."""
    if sys.platform == "win32":  # into a pipe or a file, the same bytes as elsewhere
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(encoding="utf-8", newline="\n")
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where the caller ignores it, as `nohup` does
        signal.signal(signal.SIGINT, _ctrl_c)
    from fairlane.cli import main as command

    try:
        command()
    finally:
        if signal.getsignal(signal.SIGINT) is _ctrl_c:
            signal.signal(signal.SIGINT, _end)


if __name__ == "__main__":
    main()

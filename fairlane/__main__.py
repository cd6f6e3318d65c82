"""`fairlane`, and `python -m fairlane`: Ctrl-C, SIGTERM and SIGHUP end it in order from the first line on.

Python's own way would print a traceback wherever an import has just arrived, and some libraries turn an interrupt of their imports into
errors of another kind. So this file imports nothing of Fairlane before `main` has a handler.
"""

import os
import signal
import sys
from types import FrameType

_SIGNALS = [number for name in ("SIGINT", "SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None]
_ITS_OWN = (signal.SIG_DFL, signal.default_int_handler)
"""What Python does with a signal of which nobody said anything. Where the caller ignores it, as `nohup` does, that stays."""


def _interrupt(number: int, frame: FrameType | None) -> None:
    """While modules are imported nothing is there yet that has to be cleaned up: end at once. Otherwise raise what commands clean up after."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            _end(number, frame)
        frame = frame.f_back
    errors = sys.modules.get("fairlane.errors")
    if errors is None:
        _end(number, frame)
    else:
        raise errors.Interrupted(signal.Signals(number).name)


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, f"fairlane: ended by {signal.Signals(number).name}.\n".encode())
    os._exit(130 if number == signal.SIGINT else 143)


def main() -> None:
    """The command line, `fairlane.cli`."""
    if sys.platform == "win32":  # into a pipe or a file, the same bytes as elsewhere
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(encoding="utf-8", newline="\n")
    for number in _SIGNALS:
        if signal.getsignal(number) in _ITS_OWN:
            signal.signal(number, _interrupt)
    from fairlane.cli import main as command

    try:
        command()
    finally:
        for number in _SIGNALS:
            if signal.getsignal(number) is _interrupt:
                signal.signal(number, _end)


if __name__ == "__main__":
    main()

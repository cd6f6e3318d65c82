"""`fairlane`, and `python -m fairlane`: Ctrl-C, SIGTERM and SIGHUP end it cleanly, even during imports.

By default, Python would print a traceback of the interrupted import, and some libraries turn an interrupt during their import into
other errors. So this file imports nothing of Fairlane before `main` has a handler.
"""

from __future__ import annotations

import gc
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sys import UnraisableHookArgs
    from types import FrameType

_SIGNALS = [number for name in ("SIGINT", "SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None]
_ITS_OWN = (signal.SIG_DFL, signal.default_int_handler)
"""What Python does with a signal of which nobody said anything. Where the caller ignores it, as `nohup` does, that stays."""
_AGAIN_S = 0.01
_BETWEEN_SEARCHES = 10_000
"""New objects between two of Python's searches for garbage in cycles; its own choice is 700. A command makes hundreds of thousands of objects that stay,
and few cycles: modules, an experiment, records."""


class _State:
    begun = False
    """The command has begun: there may be something to clean up."""
    waiting = False
    """A signal has come during an import, and comes again."""


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Before the command begins nothing is there that has to be cleaned up: end at once. After that raise what commands clean up after, but while a
    module is imported come again: it would turn what is raised into an error of another kind, or stay half imported."""
    if not _State.begun:
        _end(number, frame)
    elif _importing(frame):
        _come_again(number)
    else:
        _State.waiting = False
        raise sys.modules["fairlane.errors"].Interrupted(signal.Signals(number).name)


def _unraisable(lost: UnraisableHookArgs) -> None:
    """Python drops what is raised while it frees an object, and in some calls of C code: an interrupt comes again then."""
    errors = sys.modules.get("fairlane.errors")
    if errors is None or not isinstance(lost.exc_value, errors.Interrupted):
        sys.__unraisablehook__(lost)
        return
    number = signal.Signals[lost.exc_value.signal_name]
    signal.signal(number, _interrupt)
    _come_again(number)


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _come_again(number: int) -> None:
    if not _State.waiting:
        _State.waiting = True
        import threading

        threading.Timer(_AGAIN_S, _again, (number,)).start()


def _again(number: int) -> None:
    if not _State.waiting:
        return
    _State.waiting = False
    if sys.platform == "win32":  # where os.kill ends a process at once
        signal.raise_signal(number)
    else:
        os.kill(os.getpid(), number)


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
    gc.set_threshold(_BETWEEN_SEARCHES, *gc.get_threshold()[1:])
    from fairlane.cli import main as command

    _State.begun = True
    sys.unraisablehook = _unraisable
    try:
        command()
    finally:
        for number in _SIGNALS:
            if signal.getsignal(number) is _interrupt:
                signal.signal(number, _end)


if __name__ == "__main__":
    main()

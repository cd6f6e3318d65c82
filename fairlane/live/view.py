"""The live view of a run, from the command line's side: its server, what is done with the run, and what is said about it."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import fairlane_virtual

from fairlane.errors import Refusal
from fairlane.live.drive import FASTEST, SLOWEST, Driver
from fairlane.live.sampler import Sampler
from fairlane.live.server import Server
from fairlane.live.session import Pace, Session
from fairlane.progress import Progress
from fairlane.virtual_fabric import Stage

# A page that is loaded again is away for a moment.
_AWAY_S = 3.0


def speed_of(text: str) -> float | None:
    """What `--live-speed` says. Refusal: it is no speed."""
    if text == "max":
        return None
    try:
        speed = float(text)
    except ValueError:
        speed = -1.0
    if speed != 0 and not SLOWEST <= speed <= FASTEST:
        raise Refusal(f"--live-speed {text}: a number of virtual seconds in a second, from {SLOWEST:g} to {FASTEST:g}, or max, or 0 to begin paused")
    return speed


def linger(server: Server, say: Callable[[str], None]) -> None:
    """While a page is open, or for one who sits at a terminal: until Ctrl-C."""
    pages, attended = server.pages, sys.stdout.isatty()
    if not attended and not pages.opened:
        return
    say(f"the page stays at {server.url} until {'Ctrl-C' if attended else 'it is closed'}")
    seen = time.monotonic()
    with contextlib.suppress(KeyboardInterrupt):
        while attended or time.monotonic() - seen < _AWAY_S:
            if pages.session.watched:
                seen = time.monotonic()
            time.sleep(0.1)


@dataclass(frozen=True)
class Options:
    """port: of the page, 0 takes a free one. speed: virtual seconds in a second, 0 begins paused, None is as fast as the machine can."""

    port: int = 0
    speed: float | None = 1.0


class LiveRun:
    """Shows one run in virtual time. started: called with the server once there is something to see."""

    def __init__(self, options: Options, started: Callable[[Server], None] | None = None) -> None:
        self._options = options
        self._started = started
        self.server: Server | None = None
        self.session: Session | None = None

    def __enter__(self) -> LiveRun:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def drive(self, stage: Stage, progress: Progress) -> list[dict[str, Any]]:
        """Run to the end; what readers changed. The page stays until `close`."""
        sampler = Sampler(stage.experiment, stage.timing, fairlane_virtual.DROP_CAUSES, estimate_red=False)
        speed = self._options.speed
        self.session = Session(stage.experiment, sampler, "virtual", Pace(paused=speed == 0, speed=speed or (None if speed is None else 1.0)))
        self.server = Server(self.session, self._options.port)
        self.server.start()
        progress.say(f"live view: {self.server.url}")
        if self._started is not None:
            self._started(self.server)
        Driver(stage, self.session, progress).run()
        return self.session.changes

    def linger(self, say: Callable[[str], None]) -> None:
        """While a page is open, or for one who sits at a terminal: until Ctrl-C."""
        if self.server is not None:
            linger(self.server, say)

    def close(self) -> None:
        if self.server is not None:
            self.server.stop()


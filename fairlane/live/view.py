"""The live view of a run, from the command line's side: its page, the control of the run, and the messages about it."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlane import native
from fairlane.errors import Interrupted, Refusal
from fairlane.fabrics.progress import Progress, Silent
from fairlane.fabrics.virtual_fabric import ActiveRun
from fairlane.live.drive import FASTEST, SLOWEST, Driver
from fairlane.live.page_process import Opening, PageProcess
from fairlane.live.session import Pace
from fairlane.results.fidelity import Fidelity

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
        raise Refusal(
            f"--live-speed {text}: give virtual seconds per second, from {SLOWEST:g} to {FASTEST:g}, or max, or 0 to begin paused"
        )
    return speed


def linger(url: str, pages: Callable[[], tuple[int, int]], say: Callable[[str], None]) -> None:
    """While a page is open, or for one who sits at a terminal: until Ctrl-C. pages: how many were opened, and how many are open now."""
    attended = sys.stdout.isatty()
    if not attended and not pages()[0]:
        return
    say(f"the page stays at {url} until {'Ctrl-C' if attended else 'it is closed'}")
    seen = time.monotonic()
    with contextlib.suppress(KeyboardInterrupt, Interrupted):
        while attended or time.monotonic() - seen < _AWAY_S:
            if pages()[1]:
                seen = time.monotonic()
            time.sleep(0.1)


@dataclass(frozen=True)
class Options:
    """port: of the page, 0 takes a free one. speed: virtual seconds in a second, 0 begins paused, None is as fast as the machine can."""

    port: int = 0
    speed: float | None = 1.0


class LiveRun:
    """Shows one run in virtual time. page: once it can be had."""

    def __init__(self, options: Options, progress: Progress = Silent()) -> None:
        self._options = options
        self._progress = progress
        self.page: PageProcess | None = None

    @property
    def driver(self) -> LiveRun:
        return self

    def watching(self, folder: Path) -> Progress:
        """The run tells the page what it writes."""
        return self._progress

    def judged(self, true: Fidelity) -> None:
        """Nothing to show: in virtual time nothing comes late."""

    def __enter__(self) -> LiveRun:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def drive(self, active: ActiveRun, progress: Progress) -> list[dict[str, Any]]:
        """Run to the end; what readers changed. The page stays until `close`."""
        speed = self._options.speed
        pace = Pace(paused=speed == 0, speed=speed or (None if speed is None else 1.0))
        self.page = self.open(
            Opening(active.experiment, active.timing, tuple(native.DROP_CAUSES), active.records.folder.resolve(), self._options.port, pace)
        )
        progress.say(f"live view: {self.page.url}")
        return Driver(active, self.page, pace, progress).run()

    def open(self, opening: Opening) -> PageProcess:
        """Refusal: as of `PageProcess`."""
        return PageProcess(opening)

    def linger(self, say: Callable[[str], None]) -> None:
        """While a page is open, or for one who sits at a terminal: until Ctrl-C."""
        page = self.page
        if page is not None and not page.gone:
            linger(page.url, lambda: _attendance(page), say)

    def close(self) -> None:
        if self.page is not None:
            self.page.close()


def _attendance(page: PageProcess) -> tuple[int, int]:
    page.poll()
    return page.attendance.opened, page.attendance.watching

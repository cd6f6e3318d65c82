"""Monitors switches and controller during a run: reports a process that dies, and restarts it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from fairlane.errors import RunFailed
from fairlane.fabrics.outcome import Event
from fairlane.fabrics.processes import Process

# More deaths than this of one process in a run, and the run ends: something is wrong that a restart does not mend.
MAX_RESTARTS = 5


@dataclass
class Watched:
    """A process that must run throughout. restart: starts it again and returns the new process. hopeless: the exit code after which it would only end again; its
    last line says why."""

    what: str
    process: Process
    restart: Callable[[], Process]
    restarts: int = 0
    died_s: float | None = None
    hopeless: int | None = None


@dataclass
class Supervisor:
    """restart_after_s: how long a dead process stays away. say: called with each event."""

    restart_after_s: float
    say: Callable[[Event], None]
    watched: list[Watched] = field(default_factory=list)

    def watch(self, what: str, process: Process, restart: Callable[[], Process], hopeless: int | None = None) -> None:
        self.watched.append(Watched(what, process, restart, hopeless=hopeless))

    def poll(self) -> None:
        """Look at each once. RunFailed when one dies again and again, or cannot be started."""
        now = time.time()
        for one in self.watched:
            if one.hopeless is not None and one.process.exit_code() == one.hopeless:
                raise RunFailed(one.process.last_words(1))
            if one.died_s is None:
                if one.process.exit_code() is not None:
                    one.died_s = now
                    # They say nothing about a process killed from outside.
                    words = "" if one.process.exit_code() in (-signal.SIGKILL, -signal.SIGTERM) else one.process.last_words(2)
                    self.say(
                        Event(
                            now,
                            f"{one.what} {one.process.how_it_ended()}; it is started again in {self.restart_after_s:g} s"
                            + (f" (last output: {words})" if words else ""),
                        )
                    )
            elif now - one.died_s >= self.restart_after_s:
                if one.restarts >= MAX_RESTARTS:
                    raise RunFailed(f"{one.what} died {one.restarts + 1} times: the run ends. Its output is {one.process.log}")
                one.process = one.restart()
                one.restarts += 1
                one.died_s = None
                self.say(Event(time.time(), f"{one.what} is started again"))

"""The page's process of a run in virtual time: `python -m fairlane.live.host FD`, started by `fairlane.live.page_process`. It ends with its run."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from typing import Any

from fairlane.errors import Refusal
from fairlane.experiments.model import Flow
from fairlane.fabrics.flows import record_roles
from fairlane.fabrics.places import VIRTUAL
from fairlane.fabrics.raw import JsonTail
from fairlane.live.page_process import Answer, Attendance, Changed, Failed, Opening, Request, Serving, Steered, Update, Wire
from fairlane.live.sampler import Sampler
from fairlane.live.server import Server
from fairlane.live.session import Session

# Where both want a core, it is the run's.
_GIVES_WAY = 5


class Mirror:
    """A run as its page shows it, kept by what the run tells and writes. request: sends a request to the run."""

    def __init__(self, opening: Opening, request: Callable[[Request], None]) -> None:
        self._sampler = Sampler(opening.experiment, opening.timing, opening.causes, estimate_averages=False)
        self._folder = opening.folder
        self._request = request
        self._records: list[tuple[str, str, JsonTail]] = []
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Callable[[str | None], object]] = {}
        self._lock = threading.Lock()
        self.session = Session(opening.experiment, self._sampler, VIRTUAL.name, opening.pace, steer=self._steer)
        for flow in opening.experiment.flows:
            if flow.start_s < opening.experiment.duration_s:
                self._follow(flow)

    def take(self, message: Update | Steered | Changed | Answer) -> None:
        """A message from the run."""
        if isinstance(message, Update):
            self._update(message)
        elif isinstance(message, Steered):
            self._set_pace(message)
        elif isinstance(message, Changed):
            self._change(message)
        else:
            with self._lock:
                answer = self._waiting.pop(message.number, None)
            if answer is not None:
                answer(message.refusal)

    def _update(self, update: Update) -> None:
        sampler = self._sampler
        for name, role, lines in self._records:
            sampler.flow(name, role, lines.records())
        sampler.sums(update.sums)
        for control in update.controls:
            sampler.control(*control)
        for average in update.averages:
            sampler.add_average(*average)
        sampler.advance(update.until_s)
        if sampler.times:
            self.session.shares.advance(sampler.times[-1], sampler.complete)
        self.session.pace = update.pace
        self.session.publish()

    def _set_pace(self, steered: Steered) -> None:
        with self._lock:
            self.session.pace = steered.pace
            left = list(self._waiting.values()) if steered.pace.finished else []
            if left:
                self._waiting.clear()
        for answer in left:
            answer("this run is over.")
        self.session.publish()

    def _change(self, changed: Changed) -> None:
        for flow in changed.flows:
            self._sampler.add_flow(flow)
            self._follow(flow)
        self._sampler.changed(changed.experiment)
        self.session.shares.changed(changed.experiment, changed.changes[0]["time_s"])
        self.session.changes.extend(changed.changes)

    def _follow(self, flow: Flow) -> None:
        self._records += [(flow.name, role, JsonTail(self._folder / f"{flow.name}.{role}.jsonl")) for role in record_roles(flow)]

    def _steer(self, what: dict[str, Any], answer: Callable[[str | None], object]) -> None:
        """From the server's thread. A request that comes as the run ends is answered too."""
        with self._lock:
            over = self.session.pace.finished
            number = next(self._numbers)
            if not over:
                self._waiting[number] = answer
        if over:
            answer("this run is over.")
        else:
            self._request(Request(number, what))


def main(descriptor: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "win32":
        os.nice(_GIVES_WAY)
    with socket.socket(fileno=descriptor) as end:
        wire = Wire(end)
        messages = wire.receive()
        opening = next(messages)
        mirror = Mirror(opening, wire.send)
        try:
            server = Server(mirror.session, opening.port, lambda opened, watching: wire.send(Attendance(opened, watching)))
        except Refusal as refusal:
            wire.send(Failed(str(refusal)))
            return
        server.start()
        wire.send(Serving(server.url))
        for message in messages:
            mirror.take(message)


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]))
    except (BrokenPipeError, ConnectionResetError):
        pass  # the run is no more
    # Whatever the server still does: there is nothing left to show.
    os._exit(0)

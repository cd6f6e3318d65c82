"""A separate process, `fairlane.live.host`, serves the page of a run in virtual time: in the run's own process, the server would
need Python's lock for every message.

The run writes its records to its files, as without a page; the page's process reads these files. Everything else, including viewers' requests, uses
a pair of sockets. When either end closes, the other ends, too.
"""

from __future__ import annotations

import pickle
import select
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlane import python_child
from fairlane.errors import CANNOT_RUN_HERE, Refusal
from fairlane.experiments.model import Experiment, Flow
from fairlane.fabrics.flows import Timing
from fairlane.live.session import Pace

_LENGTH = struct.Struct("=I")
_PIECE = 1 << 16
# How much may be on the way before the run keeps the rest for later.
_BUFFER_BYTES = 1 << 20
_BEGINS_WITHIN_S = 60.0
_ENDS_WITHIN_S = 5.0
_OWN_GROUP: dict[str, Any] = {"process_group": 0} if sys.version_info >= (3, 11) else {"start_new_session": True}
"""For Popen: Ctrl-C reaches the run alone. In the run's session, where Linux lets it give way to the run, from Python 3.11 on."""


@dataclass(frozen=True)
class Opening:
    """The first message to the page's process. folder: of the run's records. causes: of drops. port: of the page, 0 for a free one."""

    experiment: Experiment
    timing: Timing
    causes: tuple[str, ...]
    folder: Path
    port: int
    pace: Pace


@dataclass(frozen=True)
class Update:
    """until_s: the files contain all records up to this time, on their clock. sums: for `Sampler.sums`; controls, averages: what `Sampler.control` and
    `Sampler.add_average` take, call by call."""

    until_s: float
    sums: list[tuple[int, int, bytes]]
    controls: list[tuple[str, int, float, int, float, dict[str, int]]]
    averages: list[tuple[str, int, float, float]]
    pace: Pace


@dataclass(frozen=True)
class Steered:
    """The page is to show it at once."""

    pace: Pace


@dataclass(frozen=True)
class Changed:
    """Another experiment from now on: flows: those that are new. changes: as summary.json lists them."""

    experiment: Experiment
    flows: tuple[Flow, ...]
    changes: list[dict[str, Any]]


@dataclass(frozen=True)
class Answer:
    """To a request. refusal: None where it was carried out."""

    number: int
    refusal: str | None


@dataclass(frozen=True)
class Serving:
    """The page can be had at an address."""

    url: str


@dataclass(frozen=True)
class Failed:
    """There will be no page."""

    why: str


@dataclass(frozen=True)
class Request:
    """A viewer's request."""

    number: int
    what: dict[str, Any]


@dataclass(frozen=True)
class Attendance:
    """Number of pages opened so far, and of pages open now."""

    opened: int
    watching: int


class Wire:
    """One end of a pair of sockets between two processes of this program: whole messages in their order."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._out = bytearray()
        self._in = bytearray()
        self._sending = threading.Lock()
        self.closed = False
        """Whether the other end is."""

    def post(self, message: object) -> None:
        """Send it without ever waiting: what does not go out at once goes with the next `flush`."""
        if not self.closed:
            self._out += _packed(message)
            self.flush()

    def flush(self) -> bool:
        """Whether all is out."""
        try:
            while self._out and not self.closed:
                del self._out[: self._end.send(self._out, socket.MSG_DONTWAIT)]
        except BlockingIOError:
            return False
        except OSError:
            self.closed = True
        return True

    def take(self) -> Iterator[Any]:
        """Messages that are there."""
        try:
            while not self.closed:
                piece = self._end.recv(_PIECE, socket.MSG_DONTWAIT)
                self.closed = not piece
                self._in += piece
        except BlockingIOError:
            pass
        except OSError:
            self.closed = True
        yield from self._whole()

    def wait(self, seconds: float) -> None:
        """Until something comes, at most so long."""
        select.select([self._end], [self._end] if self._out else [], [], seconds)

    def send(self, message: object) -> None:
        """Wait until it is out. From any thread, where no other uses `post`. OSError: the other end is closed."""
        with self._sending:
            self._end.sendall(_packed(message))

    def receive(self) -> Iterator[Any]:
        """Messages as they come, until the other end is closed."""
        while piece := self._end.recv(_PIECE):
            self._in += piece
            yield from self._whole()

    def _whole(self) -> Iterator[Any]:
        at = 0
        while len(self._in) - at >= _LENGTH.size:
            end = at + _LENGTH.size + _LENGTH.unpack_from(self._in, at)[0]
            if len(self._in) < end:
                break
            yield pickle.loads(self._in[at + _LENGTH.size : end])
            at = end
        del self._in[:at]


def _packed(message: object) -> bytes:
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(data)) + data


class PageProcess:
    """The run's end. If the page dies, the run loses only the page: `gone` reports it."""

    def __init__(self, opening: Opening) -> None:
        """Returns when the page can be had. Refusal: its port is not free, or it does not start."""
        ours, theirs = socket.socketpair()
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
        self._end = ours
        self._wire = Wire(ours)
        self.requests: deque[Request] = deque()
        self.attendance = Attendance(0, 0)
        self.url = ""
        self._failed: str | None = None
        with theirs:
            self._process = subprocess.Popen(
                [*python_child.of_module("fairlane.live.host"), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                **_OWN_GROUP,
            )
        try:
            self._begin(opening)
        except BaseException:
            self.close()
            raise

    def _begin(self, opening: Opening) -> None:
        self._wire.post(opening)
        end_s = time.monotonic() + _BEGINS_WITHIN_S
        while not self.url and self._failed is None and not self.gone and time.monotonic() < end_s:
            self.wait(0.5)
        if not self.url:
            raise Refusal(self._failed or "the live view's process did not start: its output is above.", CANNOT_RUN_HERE)

    @property
    def gone(self) -> bool:
        return self._wire.closed

    def tell(self, message: Update | Steered | Changed | Answer) -> None:
        self._wire.post(message)

    def poll(self) -> None:
        """Take in what came: `requests`, `attendance`."""
        for message in self._wire.take():
            if isinstance(message, Request):
                self.requests.append(message)
            elif isinstance(message, Attendance):
                self.attendance = message
            elif isinstance(message, Serving):
                self.url = message.url
            elif isinstance(message, Failed):
                self._failed = message.why

    def wait(self, seconds: float) -> None:
        """Until it says something, at most so long."""
        self._wire.flush()
        self._wire.wait(seconds)
        self.poll()

    def settle(self) -> None:
        """Wait until the page has received everything, at most a few seconds."""
        end_s = time.monotonic() + _ENDS_WITHIN_S
        while not self._wire.flush() and time.monotonic() < end_s:
            self.wait(0.1)

    def close(self) -> None:
        """The page ends."""
        self._end.close()
        try:
            self._process.wait(_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

"""The single-threaded event loop that the socket runners share: deadlines, readable sockets, signals."""

from __future__ import annotations

import select
import signal
import socket
from collections.abc import Callable

from hosts.records import Clock

FOREVER_S = float("inf")


class Loop:
    """Waits for the earliest deadline or a readable socket. `select` takes microseconds, where epoll rounds up to 1 ms."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.stopping = False
        """Set by SIGTERM and SIGINT."""
        self._readers: dict[socket.socket, Callable[[], None]] = {}
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._timers: dict[str, float] = {}

    def catch_signals(self) -> None:
        """SIGTERM and SIGINT end the loop instead of the process; call from the main thread."""
        signal.set_wakeup_fd(self._wake_out.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: object) -> None:
        self.stopping = True

    def add_reader(self, sock: socket.socket, callback: Callable[[], None]) -> None:
        self._readers[sock] = callback

    def set_timer(self, name: str, at_s: float) -> None:
        self._timers[name] = at_s

    def cancel_timer(self, name: str) -> None:
        self._timers.pop(name, None)

    def next_timer_s(self) -> float:
        return min(self._timers.values(), default=FOREVER_S)

    def due_timers(self, now_s: float) -> list[str]:
        """Names of timers that have come due, earliest first; they are no longer pending."""
        if now_s < self.next_timer_s():
            return []
        due = sorted((at, name) for name, at in self._timers.items() if at <= now_s)
        for _, name in due:
            del self._timers[name]
        return [name for _, name in due]

    def wait(self, until_s: float) -> None:
        """Sleep until then, a readable socket, or a signal; call the readers of readable sockets."""
        # At most a day: select refuses what a C time_t cannot hold.
        timeout_s = min(max(0.0, until_s - self.clock.now_s()), 86_400.0)
        readable, _, _ = select.select([self._wake_in, *self._readers], (), (), timeout_s)
        for sock in readable:
            if sock is self._wake_in:
                self._wake_in.recv(64)
            else:
                self._readers[sock]()

    def wait_until(self, at_s: float) -> None:
        """Sleep until then, deaf to the readers; returns early when told to stop."""
        while not self.stopping and (left_s := at_s - self.clock.now_s()) > 0:
            if select.select([self._wake_in], (), (), min(left_s, 86_400.0))[0]:
                self._wake_in.recv(64)

    def close(self) -> None:
        for sock in (*self._readers, self._wake_in, self._wake_out):
            sock.close()

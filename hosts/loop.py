"""The single-threaded event loop that the socket runners share: readable sockets, signals, a deadline."""

from __future__ import annotations

import select
import signal
import socket
from collections.abc import Iterable

from hosts.records import Clock


class Loop:
    """Waits for a deadline or a readable socket. `select` takes microseconds, where epoll rounds up to 1 ms."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.stopping = False
        """Set by SIGTERM and SIGINT."""
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)

    def catch_signals(self) -> None:
        """SIGTERM and SIGINT end the loop instead of the process; call from the main thread."""
        signal.set_wakeup_fd(self._wake_out.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: object) -> None:
        self.stopping = True

    def wait(self, until_s: float, readers: Iterable[socket.socket] = ()) -> list[socket.socket]:
        """Sleep until then, a readable socket of `readers`, or a signal. The readable ones."""
        # At most a day: select refuses what a C time_t cannot hold.
        timeout_s = min(max(0.0, until_s - self.clock.now_s()), 86_400.0)
        readable, _, _ = select.select([self._wake_in, *readers], (), (), timeout_s)
        if self._wake_in in readable:
            self._wake_in.recv(64)
            readable.remove(self._wake_in)
        return readable

    def wait_until(self, at_s: float) -> None:
        """Sleep until then; returns early when told to stop."""
        while not self.stopping and self.clock.now_s() < at_s:
            self.wait(at_s)

    def close(self) -> None:
        self._wake_in.close()
        self._wake_out.close()

"""Drives a run in virtual time for the live view: in slices, at the speed that the page requests.

The network's behaviour and the records do not depend on the slices: an undisturbed run writes the same results as a run without a page.
"""

from __future__ import annotations

import dataclasses
import time
from collections import deque
from typing import Any

from fairlane.controller.timetable import NS
from fairlane.errors import Refusal
from fairlane.fabrics.progress import Progress
from fairlane.fabrics.virtual_fabric import SHOW_EVERY_S, STEP_NS, ActiveRun
from fairlane.live import changes
from fairlane.live.page_process import Answer, Changed, PageProcess, Request, Steered, Update
from fairlane.live.sampler import RECORD_S, counted, instants_ns
from fairlane.live.session import UPDATE_S, Pace

_RECORD_NS = round(RECORD_S * NS)
# A slice takes about so long: what comes between is pause, requests and updates.
_SLICE_S = 0.012
_SHORTEST_SLICE_NS = 100_000
# How long a run that is ahead of its pace waits.
_WAIT_S = 1 / 120
# A run that falls so far behind the pace asked for does not make up for it.
_MOST_BEHIND_S = 0.25
# Between two looks at the records: each tells of whole samples, and comes with them where they come no faster. A run as fast as the machine
# can has better things to do, and the page interpolates; without viewers, seldom.
_UPDATE_FROM_S, _FAST_UPDATE_S, _UNSEEN_S = 0.9 * UPDATE_S, 0.2, 0.25
# Between two looks for requests while the run goes on.
_POLL_S = 0.02
_SPEED_OVER_S = 1.0
SLOWEST, FASTEST = 0.001, 100_000.0


class Driver:
    """Takes a run to its end, and tells its page."""

    def __init__(self, active: ActiveRun, page: PageProcess, pace: Pace, progress: Progress) -> None:
        self._active = active
        self._page = page
        self._pace = pace
        self._progress = progress
        self._first_ns, self._every_ns = instants_ns(active.experiment, active.timing)
        self._sums: list[tuple[int, int, bytes]] = []
        self._controls: list[tuple[str, int, float, int, float, dict[str, int]]] = []
        self._averages: list[tuple[str, int, float, float]] = []
        self._changes: list[dict[str, Any]] = []
        self._alone = False
        self._step_until_ns: int | None = None
        self._slice_ns = _RECORD_NS
        self._anchor = (time.monotonic(), active.network.now_ns)
        self._reached: deque[tuple[float, int]] = deque()
        self._drained_s = self._shown_s = self._polled_s = 0.0
        self._drained_ns = self._taken_ns = 0
        ports = active.experiment.topology.ports()
        # Of each switch and register with averages: its scale, and ports.
        self._registers: dict[tuple[str, str], tuple[int, list[int]]] = {}
        for switch in active.experiment.topology.switches:
            for port in ports[switch]:
                if (average := port.link.average) is not None:
                    self._registers.setdefault((switch, average.register), (average.scale, []))[1].append(port.number)

    def run(self) -> list[dict[str, Any]]:
        """What readers changed on the way."""
        active, pace = self._active, self._pace
        active.controller.tap = lambda r: self._controls.append(
            (r.switch, r.port, r.time_s, r.connections, r.fair_rate_bps, counted(vars(r)))
        )
        end_ns = active.end_ns
        while active.network.now_ns < end_ns:
            self._obey()
            until_ns = self._until_ns()
            if until_ns is None:
                if self._due():
                    self._drain()
                self._page.wait(_WAIT_S)
                continue
            self._slice(min(until_ns, end_ns))
        self._drain()
        pace.finished, pace.paused = True, False
        self._page.tell(Steered(dataclasses.replace(pace)))
        self._page.settle()
        return self._changes

    def _until_ns(self) -> int | None:
        """How far the run may go now; None: not at all."""
        pace, now_ns = self._pace, self._active.network.now_ns
        flat_out = now_ns + self._slice_ns
        if now_ns < self._active.begin_ns or now_ns >= self._active.flows_end_ns:
            return flat_out  # nothing to be seen
        if self._step_until_ns is not None:
            if now_ns < self._step_until_ns:
                return min(flat_out, self._step_until_ns)
            self._step_until_ns = None
        if pace.paused:
            return None
        if pace.speed is None:
            return flat_out
        begun_s, begun_ns = self._anchor
        due_ns = begun_ns + round((time.monotonic() - begun_s) * pace.speed * NS)
        if due_ns - now_ns > _MOST_BEHIND_S * pace.speed * NS:
            self._set_out()
        # Shorter steps are not worth it.
        return min(due_ns, flat_out) if due_ns - now_ns >= pace.speed * 2 * _WAIT_S * NS else None

    def _set_out(self) -> None:
        """The pace counts from now."""
        self._anchor = (time.monotonic(), self._active.network.now_ns)

    def _slice(self, until_ns: int) -> None:
        network = self._active.network
        record_ns = (network.now_ns // _RECORD_NS + 1) * _RECORD_NS
        until_ns = min(until_ns, record_ns)
        begun = time.monotonic()
        before_ns = network.now_ns
        network.run_until(until_ns)
        now = time.monotonic()
        if until_ns == record_ns:
            self._read_averages(until_ns)
        if now - begun > _SLICE_S:
            self._slice_ns = max(_SHORTEST_SLICE_NS, (until_ns - before_ns) // 2)
        elif now - begun < _SLICE_S / 4:
            self._slice_ns = min(_RECORD_NS, 2 * self._slice_ns)
        if self._due() or before_ns < self._active.begin_ns <= until_ns:
            self._drain()
        elif until_ns - self._taken_ns >= STEP_NS:
            self._take()
        if now - self._shown_s >= SHOW_EVERY_S:
            self._shown_s = now
            self._progress.show(self._active.snapshot())

    def _due(self) -> bool:
        """Whether there is news for the page, and it is time to send it."""
        now_ns = self._active.network.now_ns
        if self._pace.paused and self._step_until_ns is None:
            return now_ns != self._drained_ns
        if now_ns // self._every_ns == self._drained_ns // self._every_ns:
            return False
        every_s = _UNSEEN_S if not self._page.attendance.watching else _FAST_UPDATE_S if self._pace.speed is None else _UPDATE_FROM_S
        return time.monotonic() - self._drained_s >= every_s

    def _read_averages(self, now_ns: int) -> None:
        for (switch, register), (scale, numbers) in self._registers.items():
            try:
                values = self._active.network.read_register(switch, register, numbers)
            except KeyError:
                self._registers = {}  # a program of another make
                return
            for number, value in zip(numbers, values):
                self._averages.append((switch, number, now_ns / NS, value / scale))

    def _take(self) -> None:
        """Records go into the files' buffers as often as in a run without a page, in pieces as small."""
        # Before the records are taken: it looks at them.
        self._sums += self._active.network.port_sums(self._first_ns, self._every_ns)
        # A port is read again where its rate changes at this very instant.
        self._first_ns = max(self._first_ns, self._active.network.now_ns + 1)
        self._active.records.drain()
        self._taken_ns = self._active.network.now_ns

    def _drain(self) -> None:
        active = self._active
        self._take()
        active.records.flush()
        now, now_ns = time.monotonic(), active.network.now_ns
        self._drained_s, self._drained_ns = now, now_ns
        self._reached.append((now, now_ns))
        while len(self._reached) > 2 and self._reached[1][0] < now - _SPEED_OVER_S:
            self._reached.popleft()
        (begun, begun_ns), (_, last_ns) = self._reached[0], self._reached[-1]
        self._pace.reached = round((last_ns - begun_ns) / NS / (now - begun), 2) if now - begun > 0.1 else None
        self._page.tell(
            Update(min(now_ns / NS, active.timing.end_s), self._sums, self._controls, self._averages, dataclasses.replace(self._pace))
        )
        self._sums, self._controls, self._averages = [], [], []

    def _obey(self) -> None:
        page, now = self._page, time.monotonic()
        if now - self._polled_s >= _POLL_S:
            self._polled_s = now
            page.poll()
        while page.requests:
            request = page.requests.popleft()
            refusal = None
            try:
                self._carry_out(request)
            except Refusal as error:
                refusal = str(error)
            page.tell(Answer(request.number, refusal))
            page.tell(Steered(dataclasses.replace(self._pace)))
        if page.gone and not self._alone:
            self._alone = True
            self._progress.say("live view: the page's process has ended; the run continues without it.")
            self._pace.paused, self._pace.speed, self._step_until_ns = False, None, None

    def _carry_out(self, asked: Request) -> None:
        request, pace = asked.what, self._pace
        what = request.get("do")
        if what == "pause":
            pace.paused = bool(request.get("paused"))
            self._step_until_ns = None
            self._set_out()
        elif what == "speed":
            pace.speed = _speed(request.get("speed"))
            self._set_out()
        elif what == "step":
            self._step(request.get("seconds"))
        else:
            self._change(request)

    def _step(self, seconds: Any) -> None:
        """On to the next multiple of a record's interval that is so far away."""
        if not isinstance(seconds, (int, float)) or not RECORD_S <= seconds <= 1e6:
            raise Refusal(f"a step takes {RECORD_S:g} s or more.")
        now_ns = self._active.network.now_ns
        self._pace.paused = True
        self._step_until_ns = max(now_ns // _RECORD_NS + round(seconds / RECORD_S), 1) * _RECORD_NS
        self._set_out()

    def _change(self, request: dict[str, Any]) -> None:
        self._drain()
        flows = len(self._active.experiment.flows)
        made = changes.apply(self._active, request)
        experiment = self._active.experiment
        self._changes.extend(made)
        self._page.tell(Changed(experiment, experiment.flows[flows:], made))


def _speed(given: Any) -> float | None:
    if given is None:
        return None
    if not isinstance(given, (int, float)) or not SLOWEST <= given <= FASTEST:
        raise Refusal(f"a speed is from {SLOWEST:g} to {FASTEST:g} virtual seconds per second, or as fast as possible.")
    return float(given)

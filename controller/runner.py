"""A control plane on the wall clock, over gRPC: `fairlane.controller.plane.engine` in one thread, and one more for each switch.

The controller reconnects to a lost switch. A plane that takes switches over (`ControlPlane.takes_over`) leaves a switch its pipeline, entries and counters if it
runs this program already; else the switch gets the program anew. Meanwhile the other switches are served.
"""

from __future__ import annotations

import heapq
import itertools
import json
import queue
import threading
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from fairlane.controller import changes
from fairlane.controller.als import AlsPlane, network_of
from fairlane.controller.config import Config, ConfigError, Tls
from fairlane.controller.grpc_client import GrpcSwitch, SwitchError
from fairlane.controller.messages import p4r
from fairlane.controller.plane.base import ControlPlane
from fairlane.controller.plane.calls import Cells, Rewritten
from fairlane.controller.plane.engine import Engine, Message
from fairlane.controller.plane.log import Log
from fairlane.controller.plane.names import Names, counter_rows
from fairlane.controller.plane.network import Node, PlaneConfig
from fairlane.controller.timetable import NS

_RETRY_S = 0.25
_MOST_WAITING = 1024
"""Messages of one switch that the plane has not seen yet: digests, packets, time-outs. A switch keeps what follows, and drops packets when it has too many."""
_Event: TypeAlias = Callable[[int], Sequence[Message]]
"""To be carried out; it is given when it happened, in nanoseconds of Unix time."""
_AT_ONCE, _IN_TURN = range(2)
"""Answers do not wait behind digests."""


_BEGAN_NS = time.time_ns() - time.monotonic_ns()


def _unix_ns() -> int:
    """Unix time that never steps while this process runs, as the hosts have it."""
    return _BEGAN_NS + time.monotonic_ns()


class _Log:
    """Events in `controller.jsonl`, which are printed, too, and what the plane records, once `records` is there."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._events = (folder / "controller.jsonl").open("a", encoding="utf-8", newline="\n")
        self._lock = threading.Lock()
        self.records: Log

    def event(self, kind: str, what: Mapping[str, object]) -> None:
        line = json.dumps({"time_s": time.time(), "event": kind, **what})
        with self._lock:
            self._events.write(line + "\n")
            self._events.flush()
        print(line, flush=True)

    def record(self, fields: Mapping[str, object]) -> None:
        self.records.record(fields)

    def rows(self, rows: Sequence[Any]) -> None:
        self.records.rows(rows)


class _Session:
    """Keeps one switch connected, and carries out calls in their order."""

    def __init__(self, index: int, node: Node, controller: Controller) -> None:
        self.node = node
        self.ready = threading.Event()
        """Whether it has its first entries."""
        self.pipeline = ""
        """What became of it: "pushed", or "kept"."""
        self._index = index
        self._controller = controller
        self._config = controller.config
        self._takes_over = controller.plane.takes_over
        self._json = Path(controller.config.bmv2_json)
        self._cookie = zlib.crc32(self._json.read_bytes() + controller.names.message.SerializeToString(deterministic=True)) or 1
        self._client: GrpcSwitch | None = None
        self._calls: queue.SimpleQueue[Message | str] = queue.SimpleQueue()
        """A text ends the connection: why."""
        self._room = threading.Semaphore(_MOST_WAITING)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._keep_connected, name=f"keep-{node.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._calls.put("")

    def join(self) -> None:
        self._thread.join(5.0)

    def carry_out(self, message: Message) -> None:
        self._calls.put(message)

    def _keep_connected(self) -> None:
        engine, log, name = self._controller.engine, self._controller.log, self.node.name
        said = ""
        while not self._stopped.is_set():
            # Calls of the connection before are forgotten with it.
            calls: queue.SimpleQueue[Message | str] = queue.SimpleQueue()
            self._calls = calls
            if self._stopped.is_set():
                return
            connected = False
            try:
                self._client = client = self._connect(calls)
                connected, said = True, ""
                fresh = self.pipeline == "pushed"
                self._controller.happened(_AT_ONCE, lambda now, fresh=fresh: engine.programmed(now, self._index, fresh))  # type: ignore[misc]
                while isinstance(message := calls.get(), Message):
                    self._call(client, message)
                reason = message
            except SwitchError as error:
                reason = str(error)
            if reason != said and not self._stopped.is_set():
                said = reason
                log.event("switch lost" if connected else "switch not ready", {"switch": name, "reason": reason})
            self._controller.happened(_AT_ONCE, lambda now: engine.lost(now, self._index))
            if self._client is not None:
                self._client.close()
                self._client = None
            self._stopped.wait(_RETRY_S)

    def _connect(self, calls: queue.SimpleQueue[Message | str]) -> GrpcSwitch:
        node = self.node
        self._client = client = GrpcSwitch(
            node.name,
            node.address,
            node.device_id,
            self._config.election_id,
            on_message=self._arrived,
            on_closed=calls.put,
            tls=self._controller.tls,
        )
        client.connect()
        kept = self._takes_over and client.cookie() == self._cookie
        if not kept:
            client.push_pipeline(self._controller.names.message, self._json, self._cookie)
        self.pipeline = "kept" if kept else "pushed"
        return client

    def _arrived(self, message: p4r.StreamMessageResponse) -> None:
        if message.HasField("error") and self._takes_over:
            self._controller.log.event("switch error", {"switch": self.node.name, "reason": message.error.message})
            return
        self._room.acquire()
        self._controller.happened(_IN_TURN, partial(self._took, message=message))

    def _took(self, now_ns: int, message: p4r.StreamMessageResponse) -> Sequence[Message]:
        self._room.release()
        return self._controller.engine.streamed(now_ns, self._index, message)

    def _call(self, client: GrpcSwitch, message: Message) -> None:
        """SwitchError: the switch is gone, or is to be connected anew."""
        request = message.request
        answer: Sequence[Any] | str = ()
        try:
            if isinstance(request, p4r.StreamMessageRequest):
                client.send(request)
                return
            if isinstance(request, Cells):
                answer = counter_rows(client.read(request.request.entities))
            elif isinstance(request, p4r.ReadRequest):
                answer = client.read(request.entities)
            elif isinstance(request, (p4r.WriteRequest, Rewritten)):
                updates = (request.message() if isinstance(request, Rewritten) else request).updates
                (client.write if self._takes_over else client.apply)(updates)
        except SwitchError as error:
            if not error.reason or self._takes_over:
                raise
            answer = error.reason
        self._controller.happened(_AT_ONCE, lambda now: self._controller.engine.answered(now, message.token, answer))


class Controller:
    """All switches of a configuration. `run` returns when `stop` was called."""

    def __init__(
        self,
        plane: ControlPlane,
        config: PlaneConfig,
        folder: Path,
        *,
        file: str = "",
        planned: Path | None = None,
        tls: Tls | None = None,
    ) -> None:
        """file: where the plane's class is, if it is the user's own. planned: a file of changes, read again after `reread`. ConfigError when it cannot be
        used."""
        self.plane, self.config, self.tls = plane, config, tls
        self.names = Names.read(Path(config.p4info))
        self.log = _Log(folder)
        self._ports = {node.name: {port.number for port in node.ports} for node in config.switches}
        self._planned_file = planned
        self._planned = [] if planned is None else changes.read(planned, self._ports)
        self.engine = Engine(plane, config, self.names, file, self.log)
        self.log.records = Log(folder, self.engine.tables, flush=True)
        self._count = itertools.count()
        self._events: queue.PriorityQueue[tuple[int, int, int, _Event | None]] = queue.PriorityQueue()
        self._timers: list[tuple[int, int]] = []
        """When they are due, with their tokens."""
        self._interval_ns = 0
        """The end of the interval under way."""
        self._was_ready = False
        self.sessions = [_Session(i, node, self) for i, node in enumerate(config.switches)]

    @classmethod
    def of(
        cls,
        config: Config,
        folder: Path,
        planned: Path | None = None,
        *,
        plane: AlsPlane | None = None,
        network: PlaneConfig | None = None,
        file: str = "",
    ) -> Controller:
        """Fairlane's own, or what is based on it."""
        plane = plane or AlsPlane()
        plane.config = config
        return cls(plane, network or network_of(config), folder, file=file, planned=planned, tls=config.tls)

    def happened(self, priority: int, event: _Event | None) -> None:
        """From any thread."""
        self._events.put((priority, next(self._count), _unix_ns(), event))

    def stop(self) -> None:
        self.happened(_AT_ONCE, None)

    def reread(self) -> None:
        """Read the file of changes again."""
        self.happened(_AT_ONCE, self._read_changes)

    def wait_ready(self, timeout_s: float) -> list[str]:
        """Wait for all switches; returns the names of the switches that are not ready in time."""
        deadline = time.monotonic() + timeout_s
        return [s.node.name for s in self.sessions if not s.ready.wait(max(0.0, deadline - time.monotonic()))]

    def run(self) -> None:
        """OwnFault: the user's own code is at fault."""
        for session in self.sessions:
            session.start()
        self._interval_ns = self.engine.next_ns(_unix_ns())
        try:
            while (found := self._next()) is not None:
                at_ns, event = found
                for message in event(at_ns):
                    if isinstance(message.request, int):
                        heapq.heappush(self._timers, (message.request, message.token))
                    else:
                        self.sessions[message.switch].carry_out(message)
                self._look_who_started()
        finally:
            for session in self.sessions:
                session.stop()
            for session in self.sessions:
                session.join()

    def _look_who_started(self) -> None:
        for session, switch in zip(self.sessions, self.engine.switches):
            if not switch.started:
                session.ready.clear()
            elif not session.ready.is_set():
                self.log.event("switch ready", {"switch": switch.name, "pipeline": session.pipeline})
                session.ready.set()
        if not self._was_ready and self.engine.ready:
            self._was_ready = True
            self.log.event("ready", {"switches": len(self.sessions)})

    def _next(self) -> tuple[int, _Event] | None:
        """Waits for it. What is due goes before what waits in the queue, which may never be empty. None: `stop` was called."""
        due_ns = min([self._interval_ns, *(change.at_ns for change in self._planned[:1]), *(at_ns for at_ns, _ in self._timers[:1])])
        wait_s = (due_ns - _unix_ns()) / NS
        if wait_s > 0:
            try:
                _, _, at_ns, event = self._events.get(timeout=wait_s)
                return None if event is None else (at_ns, event)
            except queue.Empty:
                pass
        # A wait may end a little early.
        now_ns = max(_unix_ns(), due_ns)
        if self._planned and self._planned[0].at_ns == due_ns:
            change = self._planned.pop(0)
            return now_ns, lambda now: self.engine.changed(now, change)
        if self._timers and self._timers[0][0] == due_ns:
            _, token = heapq.heappop(self._timers)
            return now_ns, lambda now: self.engine.answered(now, token, ())
        self._interval_ns = self.engine.next_ns(now_ns)
        return now_ns, self.engine.interval

    def _read_changes(self, now_ns: int) -> Sequence[Message]:
        try:
            self._planned = [] if self._planned_file is None else changes.read(self._planned_file, self._ports)
            self.log.event("changes read", {"changes": len(self._planned)})
        except ConfigError as error:
            self.log.event("changes refused", {"reason": str(error)})
        return ()

"""A control plane of one's own on the wall clock, over gRPC: `fairlane.controller.plane.engine` in one thread, and one more for each switch.

A switch that is lost or restarted gets the program anew, and then `on_start`.
"""

from __future__ import annotations

import json
import queue
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from finsy.proto import p4r

from fairlane.controller import changes
from fairlane.controller.config import ConfigError
from fairlane.controller.grpc_client import GrpcSwitch, SwitchError
from fairlane.controller.plane.base import ControlPlane
from fairlane.controller.plane.engine import Engine, Message
from fairlane.controller.plane.names import Names
from fairlane.controller.plane.network import Node, PlaneConfig
from fairlane.controller.timetable import NS

_RETRY_S = 0.25
_MOST_WAITING = 1024
"""Messages of one switch that the plane has not seen yet: digests, packets, time-outs. A switch keeps what follows, and drops packets when it has too many."""
_Event = Callable[[int], list[Message]]
"""What happened, to be carried out at the time of its turn, in nanoseconds of Unix time."""


class _Log:
    """JSON lines: `controller.jsonl` has events, which are printed, too; `control.jsonl` what the plane records."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._lock = threading.Lock()

    def event(self, kind: str, **what: object) -> None:
        fields = {"time_s": time.time(), "event": kind, **what}
        self._append("controller.jsonl", fields)
        print(json.dumps(fields), flush=True)

    def record(self, fields: Mapping[str, object]) -> None:
        self._append("control.jsonl", fields)

    def _append(self, name: str, fields: Mapping[str, object]) -> None:
        line = json.dumps(fields) + "\n"
        with self._lock, (self._folder / name).open("a", encoding="utf-8", newline="\n") as file:
            file.write(line)


class _Session:
    """Keeps one switch connected, and carries out calls in their order. happened: takes what happens."""

    def __init__(
        self, index: int, node: Node, config: PlaneConfig, names: Names, log: _Log, engine: Engine, happened: Callable[[_Event], None]
    ) -> None:
        self._index = index
        self._node = node
        self._config = config
        self._names = names
        self._log = log
        self._engine = engine
        self._happened = happened
        self._json = Path(config.bmv2_json)
        self._calls: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._room = threading.Semaphore(_MOST_WAITING)
        self._stopped = False
        self._thread = threading.Thread(target=self._keep_connected, name=f"keep-{node.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped = True
        self._calls.put(None)
        self._thread.join(5.0)

    def carry_out(self, message: Message) -> None:
        self._calls.put(message)

    def _keep_connected(self) -> None:
        said = ""
        while not self._stopped:
            # Calls of the connection before are forgotten with it.
            calls: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
            self._calls = calls
            node = self._node
            client = GrpcSwitch(
                node.name,
                node.address,
                node.device_id,
                self._config.election_id,
                on_message=self._arrived,
                on_closed=lambda reason, calls=calls: calls.put(None),  # type: ignore[misc]
            )
            try:
                client.connect()
                client.push_pipeline(self._names.message, self._json, zlib.crc32(self._json.read_bytes()) or 1)
                self._log.event("switch ready", switch=node.name, pipeline="pushed")
                said = ""
                self._happened(lambda now: self._engine.programmed(now, self._index))
                while (message := calls.get()) is not None:
                    self._call(client, message)
                if not self._stopped:
                    self._log.event("switch lost", switch=node.name)
            except SwitchError as error:
                if str(error) != said and not self._stopped:
                    said = str(error)
                    self._log.event("switch not ready", switch=node.name, reason=said)
            self._happened(self._lost)
            client.close()
            if not self._stopped:
                time.sleep(_RETRY_S)

    def _arrived(self, message: p4r.StreamMessageResponse) -> None:
        self._room.acquire()
        self._happened(partial(self._took, message=message))

    def _took(self, now_ns: int, message: p4r.StreamMessageResponse) -> list[Message]:
        self._room.release()
        return self._engine.streamed(now_ns, self._index, message)

    def _lost(self, now_ns: int) -> list[Message]:
        self._engine.lost(self._index)
        return []

    def _call(self, client: GrpcSwitch, message: Message) -> None:
        """SwitchError: the switch is gone."""
        if message.kind == "stream":
            client.send(message.request)
            return
        answer: list[p4r.Entity] | str = []
        try:
            if message.kind == "read":
                answer = client.read(message.request.entities)
            else:
                for update in message.request.updates:
                    client.apply(update)
        except SwitchError as error:
            if not error.reason:
                raise
            answer = error.reason
        self._happened(lambda now: self._engine.answered(now, message.token, answer))


class PlaneController:
    """All switches of a configuration. `run` returns when `stop` was called."""

    def __init__(self, config: PlaneConfig, plane: ControlPlane, file: str, folder: Path, planned: Path | None = None) -> None:
        """file: where the plane's class is. planned: a file of changes of links' rates, read again after `reread`."""
        self._config = config
        self._planned_file = planned
        self._planned: list[changes.RateChange] = []
        self._events: queue.SimpleQueue[_Event | None] = queue.SimpleQueue()
        self.log = _Log(folder)
        names = Names.read(Path(config.p4info))
        self._engine = Engine(plane, config, names, file, self.log.record)
        self._sessions = [
            _Session(i, node, config, names, self.log, self._engine, self._events.put) for i, node in enumerate(config.switches)
        ]
        self._was_ready = False
        self._interval_ns = 0
        """The end of the interval under way."""

    def stop(self) -> None:
        self._events.put(None)

    def reread(self) -> None:
        """Read the file of changes again."""
        self._events.put(self._read_changes)

    def run(self) -> None:
        """PlaneError: the user's own code is at fault."""
        for session in self._sessions:
            session.start()
        self._interval_ns = self._engine.next_ns(time.time_ns())
        try:
            while (event := self._next()) is not None:
                for message in event(time.time_ns()):
                    self._sessions[message.switch].carry_out(message)
                if self._engine.ready and not self._was_ready:
                    self._was_ready = True
                    self.log.event("ready", switches=len(self._sessions))
        finally:
            for session in self._sessions:
                session.stop()

    def _next(self) -> _Event | None:
        """Waits for it. What is due goes before what waits in the queue, which may never be empty. None: `stop` was called."""
        due_ns = min([self._interval_ns, *(change.at_ns for change in self._planned[:1])])
        wait_s = (due_ns - time.time_ns()) / NS
        if wait_s > 0:
            try:
                return self._events.get(timeout=wait_s)
            except queue.Empty:
                pass
        if self._planned and self._planned[0].at_ns == due_ns:
            change = self._planned.pop(0)
            return partial(self._engine.port_changed, switch=change.switch, port=change.port, rate_bps=change.rate_bps)
        # A wait may end a little early.
        self._interval_ns = self._engine.next_ns(max(time.time_ns(), due_ns))
        return self._engine.interval

    def _read_changes(self, now_ns: int) -> list[Message]:
        ports = {node.name: {port.number for port in node.ports} for node in self._config.switches}
        try:
            found = [] if self._planned_file is None else changes.read_for(self._planned_file, ports)
            self._planned = [change for change in found if isinstance(change, changes.RateChange)]
            self.log.event("changes read", changes=len(self._planned))
        except ConfigError as error:
            self.log.event("changes refused", reason=str(error))
        return []

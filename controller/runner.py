"""The control loop on the wall clock, over gRPC: one controller for many switches.

The controller reconnects to a lost switch, and writes its pipeline and entries again if the switch is empty. If only the controller
restarted, the switch keeps its pipeline and its counters. Meanwhile the controller serves the other switches.
"""

from __future__ import annotations

import csv
import dataclasses
import json
import threading
import time
import zlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import Any

from finsy.proto import p4r as p4runtime_pb2

from fairlane.controller.changes import Change
from fairlane.controller.changes import read as read_changes
from fairlane.controller.config import Config, ConfigError, Switch
from fairlane.controller.core import SwitchControl, counter_rows, digest_rows, record_kind, write_request
from fairlane.controller.grpc_client import GrpcSwitch, SwitchError
from fairlane.controller.multicast import Changes, Membership, MulticastControl
from fairlane.controller.p4info import P4Info
from fairlane.controller.records import PortRecord
from fairlane.controller.timetable import NS, Begin, Timetable

_RETRY_S = 0.25


class Log:
    """Records on disk as they happen: `controller.csv` (a line per port and interval), `memberships.csv` (a line per join and leave)
    and `controller.jsonl` (events). ports: kind of the records of ports."""

    def __init__(self, folder: Path, ports: type[PortRecord] = PortRecord) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._ports, self._memberships = _Table(folder / "controller.csv", ports), _Table(folder / "memberships.csv", Membership)
        self._events = (folder / "controller.jsonl").open("a", encoding="utf-8", newline="\n")
        self._lock = threading.Lock()

    def records(self, records: list[PortRecord]) -> None:
        with self._lock:
            self._ports.append(records)

    def memberships(self, changes: list[Membership]) -> None:
        with self._lock:
            self._memberships.append(changes)

    def event(self, kind: str, **what: object) -> None:
        line = json.dumps({"time_s": time.time(), "event": kind, **what})
        with self._lock:
            self._events.write(line + "\n")
            self._events.flush()
        print(line, flush=True)


class _Table:
    """A CSV file that a controller started again goes on writing."""

    def __init__(self, path: Path, kind: type) -> None:
        fresh = not path.exists() or path.stat().st_size == 0
        self._file = path.open("a", newline="", encoding="utf-8")
        self._writer = csv.writer(self._file)
        if fresh:
            self._writer.writerow(f.name for f in dataclasses.fields(kind))
            self._file.flush()

    def append(self, rows: Iterable[Any]) -> None:
        self._writer.writerows(dataclasses.astuple(row) for row in rows)
        self._file.flush()


class Multicast:
    """Joins and leaves of all switches, one after the other: a join at one switch changes others, and no write may overtake another."""

    def __init__(self, config: Config, p4info: P4Info, log: Log) -> None:
        self.control = MulticastControl(config, p4info)
        self._log = log
        self._lock = threading.RLock()
        self._clients: dict[str, GrpcSwitch] = {}
        self._reported = 0

    def packet_in(self, switch: str, packet: p4runtime_pb2.PacketIn) -> None:
        with self._lock:
            self._carry_out(self.control.on_packet_in(time.time(), switch, packet))

    def tick(self) -> None:
        with self._lock:
            self._carry_out(self.control.on_tick(time.time()))
            refused = sum(self.control.errors.values())
            if refused != self._reported:
                self._reported = refused
                self._log.event("packets refused", **{reason.value: n for reason, n in sorted(self.control.errors.items(), key=str)})

    def connected(self, switch: str, client: GrpcSwitch, fresh: bool) -> None:
        """SwitchError when this switch cannot be read."""
        with self._lock:
            found = None if fresh else client.read(self.control.read_entities())
            self._clients[switch] = client
            self._carry_out(self.control.on_connected(time.time(), switch, found))

    def disconnected(self, switch: str) -> None:
        with self._lock:
            self._clients.pop(switch, None)
            self.control.on_disconnected(switch)

    def _carry_out(self, changes: Changes) -> None:
        self._log.memberships(changes.memberships)
        for switch, wanted in changes.updates.items():
            client = self._clients.get(switch)
            if client is not None:
                try:
                    client.write(wanted)
                except SwitchError as error:
                    # Its state is no longer known: reconnect and read it back.
                    self.disconnected(switch)
                    client.abandon(str(error))
        for switch, message in changes.packets:
            if switch in self._clients:
                self._clients[switch].send(message)


class SwitchSession:
    """Keeps one switch connected, and does its share of each interval."""

    def __init__(self, switch: Switch, p4info: P4Info, config: Config, log: Log, multicast: Multicast) -> None:
        self.switch = switch
        self.ready = threading.Event()
        self._p4info = p4info
        self._config = config
        self._log = log
        self._json = Path(config.bmv2_json)
        self._cookie = zlib.crc32(self._json.read_bytes() + p4info.message.SerializeToString(deterministic=True)) or 1
        self._multicast = multicast
        self._control = SwitchControl(switch, p4info, config, multicast.control.group_ports(switch.name))
        self._control_lock = threading.Lock()
        # Held while a new connection gets its entries, so that no change falls between their reading and their use.
        self._filling = threading.Lock()
        self._client: GrpcSwitch | None = None
        # The interval that the switch was told to count, and the one before it. An interval that it was not told of, or not from
        # its beginning, says nothing of connections.
        self._epoch: int | None = None
        self._ended_epoch: int | None = None
        self._stop = threading.Event()
        self._lost = threading.Event()
        self._thread = threading.Thread(target=self._keep_connected, name=f"keep-{switch.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._lost.set()
        if self._client:
            self._client.close()

    def change(self, change: Change) -> None:
        """Something of this switch changes now. A switch that is not connected gets it with its entries."""
        with self._filling, self._control_lock:
            entities, kind = change.entities(self._control)
        client = self._client
        if client is None or not self.ready.is_set():
            return
        try:
            client.write(write_request(entities, kind).updates)
        except SwitchError as error:
            self._give_up(str(error))

    def begin(self, epoch: int) -> None:
        """Next epoch into the data plane, counters out of it."""
        client = self._client
        if client is None or not self.ready.is_set():
            return
        try:
            client.write(self._control.begin(epoch).message().updates)
            entities = client.read(self._control.counter_entities())
            with self._control_lock:
                self._control.on_counters(time.monotonic(), counter_rows(entities))
            self._ended_epoch, self._epoch = self._epoch, epoch
        except SwitchError as error:
            self._give_up(str(error))

    def finish(self, epoch: int) -> list[PortRecord]:
        client = self._client
        if client is None or not self.ready.is_set() or self._ended_epoch != epoch:
            return []
        with self._control_lock:
            rewrites, records = self._control.finish(time.time(), epoch)
        try:
            # A controller may have left the switch between its pipeline and its first entries: then there is nothing to modify yet.
            client.write(rewrites.message().updates)
        except SwitchError as error:
            self._give_up(str(error))
            return []
        # The record's time is when the values were in force.
        now = time.time()
        for record in records:
            record.time_s = now
        return records

    def _give_up(self, reason: str) -> None:
        if self.ready.is_set():
            self.ready.clear()
            self._log.event("switch lost", switch=self.switch.name, reason=reason)
        self._lost.set()

    def _keep_connected(self) -> None:
        said = ""
        while not self._stop.is_set():
            self._lost.clear()
            try:
                self._connect()
                said = ""
            except SwitchError as error:
                if str(error) != said:
                    said = str(error)
                    self._log.event("switch not ready", switch=self.switch.name, reason=said)
                self._lost.set()
            self._lost.wait()
            self.ready.clear()
            self._multicast.disconnected(self.switch.name)
            if self._client:
                self._client.close()
                self._client = None
            self._stop.wait(_RETRY_S)

    def _connect(self) -> None:
        switch = self.switch
        client = GrpcSwitch(
            switch.name,
            switch.address,
            switch.device_id,
            self._config.election_id,
            on_message=self._on_message,
            on_closed=self._give_up,
            tls=self._config.tls,
        )
        self._client = client
        client.connect()
        fresh = client.cookie() != self._cookie
        if fresh:
            client.push_pipeline(self._p4info.message, self._json, self._cookie)
            with self._control_lock:
                self._control.forget()
        self._epoch = self._ended_epoch = None
        with self._filling:
            client.insert(self._control.initial_entities(fresh))
            if not fresh:
                client.write(write_request(self._control.plain_entities(), p4runtime_pb2.Update.DELETE).updates)
            self._multicast.connected(switch.name, client, fresh)
            self.ready.set()
        self._log.event("switch ready", switch=switch.name, pipeline="pushed" if fresh else "kept")

    def _on_message(self, message: p4runtime_pb2.StreamMessageResponse) -> None:
        if message.HasField("digest"):
            with self._control_lock:
                answer = self._control.on_digest(message.digest.digest_id, message.digest.list_id, digest_rows(message.digest))
            client = self._client
            if answer is not None and client is not None:
                client.send(answer)
        elif message.HasField("packet"):
            self._multicast.packet_in(self.switch.name, message.packet)
        elif message.HasField("error"):
            self._log.event("switch error", switch=self.switch.name, reason=message.error.message)


class Controller:
    """All switches of a configuration, on the wall clock. `run` returns when `stop` was called."""

    def __init__(self, config: Config, folder: Path, changes: Path | None = None) -> None:
        """changes: a file of them, read again after `reread`. ConfigError when it cannot be used."""
        self._config = config
        self._changes = changes
        self._planned = [] if changes is None else read_changes(changes, config)
        self._reread = threading.Event()
        p4info = P4Info.read(Path(config.p4info))
        self.log = Log(folder, record_kind(p4info))
        self._multicast = Multicast(config, p4info, self.log)
        self.sessions = [SwitchSession(s, p4info, config, self.log, self._multicast) for s in config.switches]
        self._stop = threading.Event()

    def stop(self) -> None:
        self._stop.set()
        self._reread.set()

    def reread(self) -> None:
        """Read the file of changes again."""
        self._reread.set()

    def wait_ready(self, timeout_s: float) -> list[str]:
        """Wait for all switches; returns the names of the switches that are not ready in time."""
        deadline = time.monotonic() + timeout_s
        return [s.switch.name for s in self.sessions if not s.ready.wait(max(0.0, deadline - time.monotonic()))]

    def run(self) -> None:
        for session in self.sessions:
            session.start()
        # Changes have a thread of their own: a switch that is slow to answer must not delay them.
        threading.Thread(target=self._keep_changing, name="changes", daemon=True).start()
        timetable = Timetable(self._config.interval_s, self._config.grace_s)
        with ThreadPoolExecutor(max_workers=max(4, len(self.sessions))) as pool:
            try:
                while True:
                    step = timetable.next(time.time_ns())
                    if self._stop.wait(max(0, step.at_ns - time.time_ns()) / NS):
                        break
                    if isinstance(step, Begin):
                        list(pool.map(SwitchSession.begin, self.sessions, repeat(step.epoch)))
                    else:
                        self.log.records([r for rs in pool.map(SwitchSession.finish, self.sessions, repeat(step.epoch)) for r in rs])
                        self._multicast.tick()
            finally:
                for session in self.sessions:
                    session.stop()

    def _keep_changing(self) -> None:
        """Each change at its time, until the end; changes whose time has passed at once, in their order."""
        sessions = {session.switch.name: session for session in self.sessions}
        while not self._stop.is_set():
            wait_s = (self._planned[0].at_ns - time.time_ns()) / NS if self._planned else None
            if wait_s is not None and wait_s <= 0:
                change = self._planned.pop(0)
                sessions[change.switch].change(change)
            elif self._reread.wait(wait_s) and not self._stop.is_set():
                self._reread.clear()
                try:
                    self._planned = [] if self._changes is None else read_changes(self._changes, self._config)
                    self.log.event("changes read", changes=len(self._planned))
                except ConfigError as error:
                    self.log.event("changes refused", reason=str(error))

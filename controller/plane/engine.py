"""Drives a control plane: its events in, messages to switches out. Pure: time is an argument, and the caller carries the messages.

`fairlane.fabrics.virtual_control` carries them in virtual time, `fairlane.controller.runner` over gRPC.
"""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

from fairlane.controller.changes import AlsChange, Change, LinkChange, RateChange, RoutesChange
from fairlane.controller.messages import p4r
from fairlane.controller.p4info import NotInProgram
from fairlane.controller.plane.base import ControlPlane, Digest, DigestList, PacketIn
from fairlane.controller.plane.calls import Call, Kind, Request, Switch, SwitchRefused
from fairlane.controller.plane.names import Entry, Names, digest_rows
from fairlane.controller.plane.network import PlaneConfig
from fairlane.controller.timetable import NS
from fairlane.inputs.own_python import OwnFault


class PlaneError(OwnFault):
    """A fault of a control plane of one's own: the message names file, line and event."""


class Keeps(Protocol):
    """Takes what a control plane records."""

    def record(self, fields: Mapping[str, object]) -> None:
        """The time included."""

    def rows(self, rows: Sequence[Any]) -> None:
        """Of one kind of `Engine.tables`."""

    def event(self, kind: str, what: Mapping[str, object]) -> None:
        """For who watches a controller."""


@dataclass(frozen=True)
class Message:
    """To a switch, by number. token: the answer comes with it: entities of "read", `counter_rows` of "cells"; "stream" has none. A "timer" is answered when it is due,
    with nothing."""

    switch: int
    token: int
    kind: Kind
    request: Request


_NO_SWITCH = -1
"""Of timers."""
_EntryKey: TypeAlias = tuple[str, int, frozenset[tuple[str, int | tuple[int, int]]]]


def _key(entry: Entry) -> _EntryKey:
    """By which a switch knows a table's entry."""
    return entry.table, entry.priority, frozenset(entry.keys.items())


class _Task:
    """An event that awaits something."""

    def __init__(self, event: str, coroutine: Coroutine[Any, Any, None], switch: int | None) -> None:
        self.event = event
        self.coroutine = coroutine
        self.starts = switch


class Engine:
    """One for all switches of a configuration. Its methods are what happens; each returns the messages that follow. OwnFault from each."""

    def __init__(self, plane: ControlPlane, config: PlaneConfig, names: Names, file: str = "", keeps: Keeps | None = None) -> None:
        """file: where the plane's class is, for messages; "" for one of Fairlane's own, whose faults pass through."""
        self._plane = plane
        self._names = names
        self._file = file
        self._source = inspect.getfile(type(plane))
        self._now_ns = 0
        self._out: list[Message] = []
        self._token = 0
        # Calls under way by token, with the switch.
        self._calls: dict[int, tuple[int, Call[Any]]] = {}
        self._writes: dict[int, p4r.WriteRequest] = {}
        """Of calls under way by token, those with entries that may have timeouts."""
        self._timed: list[dict[_EntryKey, Entry]] = [{} for _ in config.switches]
        """By switch, entries with an idle timeout: of one that times out, a switch reports the keys alone."""
        self._event = ""
        self._starting: dict[int, set[int]] = {}
        """Of switches that have not all of their first entries: calls under way. Without calls, -1 stands for the event itself."""
        self._changed: dict[int, dict[int, None]] = {}
        """Of these switches, ports whose rates have changed meanwhile."""
        self.switches = [
            Switch(i, node.name, {port.number: port for port in node.ports}, node.toward, names, self._send)
            for i, node in enumerate(config.switches)
        ]
        self._numbers = {switch.name: i for i, switch in enumerate(self.switches)}
        self.interval_ns = round((type(plane).interval_s or config.interval_s) * NS)
        plane.switches = {switch.name: switch for switch in self.switches}
        plane.hosts = {host.name: host for host in config.hosts}
        plane._clock = lambda: self._now_ns / NS
        plane._keep = lambda fields: None if keeps is None else keeps.record({"t": self._now_ns / NS, **fields})
        plane._keep_rows = lambda rows: None if keeps is None else keeps.rows(rows)
        plane._report = lambda kind, what: None if keeps is None else keeps.event(kind, what)
        plane._timer = self._timer
        plane._start = self._spawn
        self.tables = plane._begin(names)
        """Kinds of records, and their files."""

    @property
    def ready(self) -> bool:
        """Whether every switch has what `on_start` gave it."""
        return all(switch.started for switch in self.switches)

    def next_ns(self, now_ns: int) -> int:
        """The end of the interval under way."""
        return (now_ns // self.interval_ns + 1) * self.interval_ns

    def programmed(self, now_ns: int, switch: int, fresh: bool = True) -> list[Message]:
        """A switch runs the program; fresh: without entries."""
        self._now_ns = now_ns
        self._forget(switch)
        self._starting[switch] = {-1}
        if self._overrides("on_digest") or self._overrides("on_digest_list"):
            for digest in self._names.message.digests:
                self._event = "on_digest"
                request = p4r.WriteRequest()
                request.updates.add(type=p4r.Update.INSERT).entity.CopyFrom(self._names.digest_config(digest))
                self._send(switch, "write", request, Call(lambda read: None))
        self._call("on_start" if fresh else "on_resume", self.switches[switch], starts=switch)
        return self._messages()

    def lost(self, now_ns: int, switch: int) -> list[Message]:
        """A switch no longer answers; its calls are forgotten."""
        self._now_ns = now_ns
        known = self.switches[switch].started or switch in self._starting
        self._forget(switch)
        if known:
            self._call("on_lost", self.switches[switch])
        return self._messages()

    def _forget(self, switch: int) -> None:
        self.switches[switch].started = False
        self._starting.pop(switch, None)
        self._changed.pop(switch, None)
        self._timed[switch].clear()
        for token in [token for token, (of, _) in self._calls.items() if of == switch]:
            _, call = self._calls.pop(token)
            self._writes.pop(token, None)
            if isinstance(call.waiter, _Task):
                call.waiter.coroutine.close()

    def interval(self, now_ns: int) -> list[Message]:
        self._now_ns = now_ns
        self._plane._interval = now_ns // self.interval_ns, self.interval_ns / NS
        if self.ready or self._plane.takes_over:
            self._call("on_interval")
        return self._messages()

    def changed(self, now_ns: int, change: Change) -> list[Message]:
        if isinstance(change, RateChange):
            return self.port_changed(now_ns, change.switch, change.port, change.rate_bps)
        if isinstance(change, LinkChange):
            return self._port_is(now_ns, change.switch, change.port, up=change.up)
        self._now_ns = now_ns
        if isinstance(change, AlsChange) and hasattr(self._plane, "on_als_change"):
            self._call("on_als_change", self.switches[self._numbers[change.switch]], change.als)
        if isinstance(change, RoutesChange) and hasattr(self._plane, "on_routes_change"):
            self._call("on_routes_change", self.switches[self._numbers[change.switch]], change.routes)
        return self._messages()

    def port_changed(self, now_ns: int, switch: str, port: int, rate_bps: int) -> list[Message]:
        return self._port_is(now_ns, switch, port, rate_bps=rate_bps)

    def _port_is(self, now_ns: int, switch: str, port: int, **values: Any) -> list[Message]:
        self._now_ns = now_ns
        number = self._numbers[switch]
        found = self.switches[number]
        found.ports[port] = replace(found.ports[port], **values)
        if found.started:
            self._call("on_port_change", found, found.ports[port])
        elif number in self._starting:
            self._changed.setdefault(number, {})[port] = None
        return self._messages()

    def answered(self, now_ns: int, token: int, read: Sequence[Any] | str) -> list[Message]:
        """read: what the switch read (`Message`), or why it refuses. An answer that nobody waits for any more is nothing."""
        self._now_ns = now_ns
        if token not in self._calls:
            return []
        switch, call = self._calls.pop(token)
        written = self._writes.pop(token, None)
        task = call.waiter
        if isinstance(read, str):
            refusal = SwitchRefused(f"switch {self.switches[switch].name} refuses it: {read}")
            if not isinstance(task, _Task):
                raise PlaneError(f"{call.where}: {refusal}")
            self._step(task, refusal)
        else:
            self._keep_timed(switch, written)
            try:
                call.answer(read)
            except (IndexError, KeyError) as error:
                raise PlaneError(f"{call.where}: the switch's answer has not what was asked for: {error!r}") from error
            if isinstance(task, _Task):
                self._step(task)
        self._settled(switch, token)
        return self._messages()

    def streamed(self, now_ns: int, switch: int, message: p4r.StreamMessageResponse) -> list[Message]:
        """A digest, a packet or an idle timeout."""
        self._now_ns = now_ns
        on = self.switches[switch]
        if message.HasField("digest"):
            return self.digests(now_ns, switch, message.digest.digest_id, message.digest.list_id, digest_rows(message.digest))
        if message.HasField("packet"):
            self._call("on_packet_in", on, PacketIn(message.packet.payload, self._names.read_packet(message.packet)))
        elif message.HasField("idle_timeout_notification"):
            for entry in message.idle_timeout_notification.table_entry:
                read = self._names.read_entry(entry)
                known = self._timed[switch].get(_key(read), read)
                self._call("on_idle_timeout", on, replace(read, action=known.action, values=known.values))
        elif message.HasField("error"):
            raise PlaneError(f"{self._before}switch {on.name}: {message.error.message}")
        return self._messages()

    def digests(self, now_ns: int, switch: int, digest_id: int, list_id: int, rows: Sequence[Sequence[int]]) -> list[Message]:
        """rows: of each message, its members as numbers."""
        self._now_ns = now_ns
        ack = p4r.DigestListAck(digest_id=digest_id, list_id=list_id)
        self._send(switch, "stream", p4r.StreamMessageRequest(digest_ack=ack), Call(lambda read: None))
        name, members = self._names.digest_members(digest_id)
        on = self.switches[switch]
        if self._overrides("on_digest_list"):
            self._call("on_digest_list", on, DigestList(name, members, rows))
        if self._overrides("on_digest"):
            for row in rows:
                self._call("on_digest", on, Digest(name, dict(zip(members, row))))
        return self._messages()

    def _keep_timed(self, switch: int, written: p4r.WriteRequest | None) -> None:
        """What a switch has now, after it has taken a call. written: with table entries."""
        for update in () if written is None else written.updates:
            given = update.entity.table_entry
            if given.is_default_action or not given.table_id:
                continue
            entry = self._names.read_entry(given)
            self._timed[switch].pop(_key(entry), None)
            if update.type != p4r.Update.DELETE and given.idle_timeout_ns:
                self._timed[switch][_key(entry)] = entry

    def _overrides(self, event: str) -> bool:
        """Whether the plane's class has a method of its own for an event."""
        return getattr(type(self._plane), event) is not getattr(ControlPlane, event)

    def _messages(self) -> list[Message]:
        made, self._out = self._out, []
        return made

    def _send(self, switch: int, kind: Kind, request: Request, call: Call[Any]) -> None:
        call.where = self._where()
        self._token += 1
        self._out.append(Message(switch, self._token, kind, request))
        if kind == "stream":
            call.answer([])
            return
        self._calls[self._token] = switch, call
        if isinstance(request, p4r.WriteRequest) and self._names.times_out:
            self._writes[self._token] = request
        if switch in self._starting:
            self._starting[switch].add(self._token)

    def _timer(self, time_s: float) -> Call[None]:
        call: Call[None] = Call(lambda read: None)
        self._send(_NO_SWITCH, "timer", round(time_s * NS), call)
        return call

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        event = self._event
        self._step(_Task(event, coroutine, None))
        self._event = event

    def _call(self, event: str, *arguments: Any, starts: int | None = None) -> None:
        """starts: the switch that has started when the event is over, and the calls that it made."""
        self._event = event
        try:
            made = getattr(self._plane, event)(*arguments)
        except Exception as error:  # whatever the user's code raises
            self._fail(event, error)
            raise
        if inspect.iscoroutine(made):
            self._step(_Task(event, made, starts))
        elif made is not None:
            raise PlaneError(f"{self._before}{event}: returns {made!r}; events return nothing")
        elif starts is not None:
            self._settled(starts, -1)

    def _step(self, task: _Task, error: Exception | None = None) -> None:
        """On with an event until it awaits something again."""
        self._event = task.event
        try:
            waits = task.coroutine.send(None) if error is None else task.coroutine.throw(error)
        except StopIteration:
            if task.starts is not None:
                self._settled(task.starts, -1)
            return
        except Exception as raised:  # whatever the user's code raises
            self._fail(task.event, raised)
            raise
        if not isinstance(waits, Call) or not waits.where:
            task.coroutine.close()
            what = "a batch that has not left: send it" if isinstance(waits, Call) else "something that is no call of a switch"
            raise PlaneError(f"{self._before}{task.event}: awaits {what}")
        waits.waiter = task

    def _settled(self, switch: int, token: int) -> None:
        left = self._starting.get(switch)
        if left is not None:
            left.discard(token)
            if not left:
                del self._starting[switch]
                on = self.switches[switch]
                on.started = True
                for port in self._changed.pop(switch, ()):
                    self._call("on_port_change", on, on.ports[port])

    def _where(self) -> str:
        """The line of the user's file that is being carried out."""
        frame = sys._getframe(1)
        while self._file and frame.f_code.co_filename != self._source:
            if frame.f_back is None:
                return f"{self._file}: {self._event}"
            frame = frame.f_back
        return f"{self._file}:{frame.f_lineno}: {self._event}" if self._file else self._event

    @property
    def _before(self) -> str:
        """Of a message."""
        return f"{self._file}: " if self._file else ""

    def _fail(self, event: str, error: Exception) -> None:
        """PlaneError where an event of a user's own plane has raised something, or a switch refuses a call. Else the error is to pass through."""
        if isinstance(error, OwnFault) or not (self._file or isinstance(error, SwitchRefused)):
            return
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == self._source]
        what = str(error) if isinstance(error, (NotInProgram, SwitchRefused)) else f"{type(error).__name__}: {error}"
        place = f"{self._file}{f':{lines[-1]}' if lines else ''}: " if self._file else ""
        raise PlaneError(f"{place}{event}: {what}") from error

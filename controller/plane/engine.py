"""Drives a control plane of one's own: its events in, messages to switches out. Pure: time is an argument, and the caller carries the messages.

`fairlane.fabrics.virtual_plane` carries them in virtual time, `fairlane.controller.plane.runner` over gRPC.
"""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypeVar

from finsy.proto import p4r

from fairlane.controller.plane.base import ControlPlane, Digest, PacketIn
from fairlane.controller.plane.calls import Call, Switch, SwitchRefused
from fairlane.controller.plane.names import Entry, Names, NotInProgram
from fairlane.controller.plane.network import PlaneConfig
from fairlane.controller.timetable import NS

T = TypeVar("T")


class PlaneError(Exception):
    """A fault of a control plane of one's own: the message names file, line and event."""


@dataclass(frozen=True)
class Message:
    """To a switch, by number. token: the answer comes with it. request: a WriteRequest, ReadRequest or StreamMessageRequest, not yet addressed; the last kind has
    no answer."""

    switch: int
    token: int
    kind: Literal["write", "read", "stream"]
    request: Any


_EntryKey: TypeAlias = tuple[str, int, frozenset[tuple[str, int | tuple[int, int]]]]


def _key(entry: Entry) -> _EntryKey:
    """By which a switch knows a table's entry."""
    return entry.table, entry.priority, frozenset(entry.keys.items())


class _Task:
    """An event that awaits something."""

    def __init__(self, event: str, coroutine: Coroutine[Any, Any, None], switch: int | None) -> None:
        self.event = event
        self.coroutine = coroutine
        self.starts = switch if event == "on_start" else None


class Engine:
    """One for all switches of a configuration. Its methods are what happens; each returns the messages that follow. PlaneError from each."""

    def __init__(
        self,
        plane: ControlPlane,
        config: PlaneConfig,
        names: Names,
        file: str = "",
        keep: Callable[[Mapping[str, object]], None] | None = None,
    ) -> None:
        """file: where the plane's class is, for messages. keep: takes what the plane records, the time included."""
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
        """Of calls under way by token, those with entries."""
        self._timed: list[dict[_EntryKey, Entry]] = [{} for _ in config.switches]
        """By switch, entries with an idle timeout: of one that times out, a switch reports the keys alone."""
        self._event = ""
        self._starting: dict[int, set[int]] = {}
        """Of switches that have not all of their first entries: calls under way. Without calls, -1 stands for the event itself."""
        self._switches = [
            Switch(i, node.name, {port.number: port for port in node.ports}, node.toward, names, self._send)
            for i, node in enumerate(config.switches)
        ]
        self._started = [False] * len(self._switches)
        plane.switches = {switch.name: switch for switch in self._switches}
        plane.hosts = {host.name: host for host in config.hosts}
        plane._clock = lambda: self._now_ns / NS
        plane._keep = lambda fields: None if keep is None else keep({"t": self._now_ns / NS, **fields})
        self.interval_ns = round((type(plane).interval_s or config.interval_s) * NS)

    @property
    def ready(self) -> bool:
        """Whether every switch has what `on_start` gave it."""
        return all(self._started)

    def next_ns(self, now_ns: int) -> int:
        """The end of the interval under way."""
        return (now_ns // self.interval_ns + 1) * self.interval_ns

    def programmed(self, now_ns: int, switch: int) -> list[Message]:
        """A switch runs the program, without entries."""
        self._now_ns = now_ns
        self.lost(switch)
        self._starting[switch] = {-1}
        if self.overrides("on_digest"):
            for digest in self._names.message.digests:
                self._event = "on_digest"
                request = p4r.WriteRequest()
                request.updates.add(type=p4r.Update.INSERT).entity.CopyFrom(self._names.digest_config(digest))
                self._send(switch, "write", request, lambda read: None)
        self._call("on_start", self._switches[switch], switch=switch)
        return self._messages()

    def lost(self, switch: int) -> None:
        """A switch no longer answers; its calls are forgotten."""
        self._started[switch] = False
        self._starting.pop(switch, None)
        self._timed[switch].clear()
        for token in [token for token, (of, _) in self._calls.items() if of == switch]:
            _, call = self._calls.pop(token)
            self._writes.pop(token, None)
            if isinstance(call.waiter, _Task):
                call.waiter.coroutine.close()

    def interval(self, now_ns: int) -> list[Message]:
        self._now_ns = now_ns
        if self.ready:
            self._call("on_interval")
        return self._messages()

    def port_changed(self, now_ns: int, switch: str, port: int, rate_bps: int) -> list[Message]:
        self._now_ns = now_ns
        found = next(one for one in self._switches if one.name == switch)
        found.ports[port] = replace(found.ports[port], rate_bps=rate_bps)
        if self._started[self._switches.index(found)]:
            self._call("on_port_change", found, found.ports[port])
        return self._messages()

    def answered(self, now_ns: int, token: int, read: list[p4r.Entity] | str) -> list[Message]:
        """read: what the switch read, or why it refuses. An answer that nobody waits for any more is nothing."""
        self._now_ns = now_ns
        if token not in self._calls:
            return []
        switch, call = self._calls.pop(token)
        written = self._writes.pop(token, None)
        task = call.waiter
        if isinstance(read, str):
            refusal = SwitchRefused(f"switch {self._switches[switch].name} refuses it: {read}")
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
        on = self._switches[switch]
        if message.HasField("digest"):
            ack = p4r.DigestListAck(digest_id=message.digest.digest_id, list_id=message.digest.list_id)
            self._send(switch, "stream", p4r.StreamMessageRequest(digest_ack=ack), lambda read: None)
            name, rows = self._names.read_digests(message.digest)
            for row in rows:
                self._call("on_digest", on, Digest(name, row))
        elif message.HasField("packet"):
            self._call("on_packet_in", on, PacketIn(message.packet.payload, self._names.read_packet(message.packet)))
        elif message.HasField("idle_timeout_notification"):
            for entry in message.idle_timeout_notification.table_entry:
                read = self._names.read_entry(entry)
                known = self._timed[switch].get(_key(read), read)
                self._call("on_idle_timeout", on, replace(read, action=known.action, values=known.values))
        elif message.HasField("error"):
            raise PlaneError(f"{self._file}: switch {on.name}: {message.error.message}")
        return self._messages()

    def _keep_timed(self, switch: int, written: p4r.WriteRequest | None) -> None:
        """What a switch has now, after it has taken a call. written: with table entries."""
        for update in () if written is None else written.updates:
            given = update.entity.table_entry
            if given.is_default_action:
                continue
            entry = self._names.read_entry(given)
            self._timed[switch].pop(_key(entry), None)
            if update.type != p4r.Update.DELETE and given.idle_timeout_ns:
                self._timed[switch][_key(entry)] = entry

    def overrides(self, event: str) -> bool:
        """Whether the plane's class has a method of its own for an event."""
        return getattr(type(self._plane), event) is not getattr(ControlPlane, event)

    def _messages(self) -> list[Message]:
        made, self._out = self._out, []
        return made

    def _send(
        self, switch: int, kind: Literal["write", "read", "stream"], request: Any, convert: Callable[[list[p4r.Entity]], T]
    ) -> Call[T]:
        call = Call(self._where(), convert)
        self._token += 1
        self._out.append(Message(switch, self._token, kind, request))
        if kind == "stream":
            call.answer([])
        else:
            self._calls[self._token] = switch, call
            if kind == "write" and request.updates[0].entity.HasField("table_entry"):
                self._writes[self._token] = request
            if switch in self._starting:
                self._starting[switch].add(self._token)
        return call

    def _call(self, event: str, *arguments: Any, switch: int | None = None) -> None:
        self._event = event
        try:
            made = getattr(self._plane, event)(*arguments)
        except Exception as error:  # whatever the user's code raises
            raise self._fault(event, error) from error
        if inspect.iscoroutine(made):
            self._step(_Task(event, made, switch))
        elif made is not None:
            raise PlaneError(f"{self._file}: {event}: returns {made!r}; events return nothing")
        elif switch is not None:
            self._settled(switch, -1)

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
            raise self._fault(task.event, raised) from raised
        if not isinstance(waits, Call):
            task.coroutine.close()
            raise PlaneError(f"{self._file}: {task.event}: awaits something that is no call of a switch")
        waits.waiter = task

    def _settled(self, switch: int, token: int) -> None:
        left = self._starting.get(switch)
        if left is not None:
            left.discard(token)
            if not left:
                del self._starting[switch]
                self._started[switch] = True

    def _where(self) -> str:
        """The line of the user's file that is being carried out."""
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != self._source:
            if frame.f_back is None:
                return f"{self._file}: {self._event}"
            frame = frame.f_back
        return f"{self._file}:{frame.f_lineno}: {self._event}"

    def _fault(self, event: str, error: Exception) -> PlaneError:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == self._source]
        what = str(error) if isinstance(error, (NotInProgram, SwitchRefused)) else f"{type(error).__name__}: {error}"
        return PlaneError(f"{self._file}{f':{lines[-1]}' if lines else ''}: {event}: {what}")

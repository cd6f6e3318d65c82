"""The user's own control plane in virtual time: drives `fairlane.controller.plane.engine` by the virtual clock; the network carries its P4Runtime messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from finsy.proto import p4r

from fairlane.controller.changes import Change, RateChange
from fairlane.controller.plane import own_file
from fairlane.controller.plane.engine import Engine, Message, PlaneError
from fairlane.controller.plane.names import Names
from fairlane.controller.plane.network import PlaneConfig
from fairlane.controller.records import PortRecord
from fairlane.errors import RunFailed
from fairlane.fabrics.control_plane import OwnPlane
from fairlane.fabrics.virtual_control import Action, first

# Timers: the end of an interval; from the first change on, changes by their place in the list.
_INTERVAL, _FIRST_CHANGE = 0, 16
# Tokens of what the plane does not see; its own count from 1.
_PIPELINE = 0
_RECORDS = "control.jsonl"


class VirtualPlane:
    """Its methods are the handlers that `fairlane.native.Network.set_control_plane` calls. It reports no record of a port: `latest` stays empty."""

    def __init__(self, config: PlaneConfig, own: OwnPlane, sentence: str, folder: Path, changes: Sequence[Change] = ()) -> None:
        """sentence: what a run says about its control plane. What the plane records goes to `control.jsonl` in `folder`. changes: of links, called as they happen.
        program: the compiled one, BMv2 JSON."""
        names = Names.read(Path(config.p4info))
        self.sentence = sentence
        self._config = config
        self._p4info = names.message
        self.program = Path(config.bmv2_json)
        self._json = self.program.read_bytes()
        self._changes = [change for change in changes if isinstance(change, RateChange)]
        self._path = folder / _RECORDS
        self._file: TextIO | None = None
        self._engine = Engine(own_file.made(own.file, own.kind), config, names, own.file, self._record)
        self.latest: dict[tuple[str, int], PortRecord] = {}
        self.tap: Callable[[PortRecord], None] | None = None

    @property
    def ready(self) -> bool:
        """Whether every switch has its first entries."""
        return self._engine.ready

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def check_rate(self, switch: str, port: int, rate_bps: int) -> None:
        """Any rate will do."""

    def ask_rate(self, switch: str, port: int, rate_bps: int) -> int:
        """An unplanned change of a link's rate at a switch; returns the timer with which the network must wake the control plane."""
        self._changes.append(RateChange(0, switch, port, rate_bps))
        return _FIRST_CHANGE + len(self._changes) - 1

    def on_start(self, now_ns: int) -> list[Action]:
        actions: list[Action] = []
        for index, node in enumerate(self._config.switches):
            actions += first(index, node.device_id, self._config.election_id, self._p4info, self._json, (_PIPELINE, _PIPELINE))
        actions += [("timer", change.at_ns, _FIRST_CHANGE + i) for i, change in enumerate(self._changes)]
        return [*actions, ("timer", self._engine.next_ns(now_ns), _INTERVAL)]

    def on_timer(self, now_ns: int, timer: int) -> list[Action]:
        if timer >= _FIRST_CHANGE:
            change = self._changes[timer - _FIRST_CHANGE]
            return self._carried(lambda: self._engine.port_changed(now_ns, change.switch, change.port, change.rate_bps))
        return [*self._carried(lambda: self._engine.interval(now_ns)), ("timer", self._engine.next_ns(now_ns), _INTERVAL)]

    def on_answer(self, now_ns: int, switch: int, token: int, code: str, text: str, responses: list[bytes]) -> list[Action]:
        if token == _PIPELINE:
            if code != "OK":
                raise RunFailed(f"switch {self._config.switches[switch].name} refuses its pipeline: {text}")
            return self._carried(lambda: self._engine.programmed(now_ns, switch))
        read = [entity for response in responses for entity in p4r.ReadResponse.FromString(response).entities]
        return self._carried(lambda: self._engine.answered(now_ns, token, read if code == "OK" else text.partition(": ")[2]))

    def on_stream(self, now_ns: int, switch: int, message: bytes) -> list[Action]:
        return self._carried(lambda: self._engine.streamed(now_ns, switch, p4r.StreamMessageResponse.FromString(message)))

    def _carried(self, happen: Callable[[], list[Message]]) -> list[Action]:
        """An event's messages as actions of the network."""
        try:
            return [(m.kind, m.switch, m.token, self._addressed(m)) for m in happen()]
        except PlaneError as error:
            raise RunFailed(str(error)) from error

    def _addressed(self, message: Message) -> bytes:
        request = message.request
        if not isinstance(request, p4r.StreamMessageRequest):
            request.device_id = self._config.switches[message.switch].device_id
        if isinstance(request, p4r.WriteRequest):
            request.election_id.low = self._config.election_id
        return bytes(request.SerializeToString())

    def _record(self, fields: Mapping[str, object]) -> None:
        if self._file is None:
            self._file = self._path.open("w", encoding="utf-8", newline="\n")
        self._file.write(json.dumps(fields) + "\n")

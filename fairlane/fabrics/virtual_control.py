"""The controller in virtual time: drives `fairlane.controller.core` by the virtual clock; the network carries its P4Runtime messages.

It follows `fairlane.controller.timetable`. Nothing blocks: each call is an action, its answer an event.
"""

from __future__ import annotations

import csv
import dataclasses
import operator
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from finsy.proto import p4i, p4r

from fairlane.controller.changes import AlsChange, Change, RateChange
from fairlane.controller.config import Config
from fairlane.controller.core import Rewrites, SwitchControl, record_kind, write_request
from fairlane.controller.multicast import Changes, Membership, MulticastControl
from fairlane.controller.p4info import P4Info
from fairlane.controller.records import PortRecord
from fairlane.controller.timetable import NS, Begin, Finish, Timetable
from fairlane.errors import RunFailed
from fairlane.inputs.own_python import OwnFault

if TYPE_CHECKING:
    from fairlane.native import Rewriter

# Timers: the timetable's next step; from the first change on, changes by their place in the list.
_STEP, _FIRST_CHANGE = 0, 16
# The request that an answer belongs to.
_PIPELINE, _ENTITIES, _EPOCH, _COUNTERS, _RATES, _STREAM, _LINK, _GROUPS, _ALS = range(9)
_WHAT = {
    _PIPELINE: "its pipeline",
    _ENTITIES: "its first entries",
    _EPOCH: "a new epoch",
    _COUNTERS: "a reading of its counters",
    _RATES: "its fair rates",
    _STREAM: "a message on the stream",
    _LINK: "a link's new rate",
    _GROUPS: "its multicast groups",
    _ALS: "to write fair rates, or not to",
}

Action: TypeAlias = tuple[Literal["timer"], int, int] | tuple[Literal["set_pipeline", "write", "read", "stream"], int, int, bytes]
"""("timer", at_ns, timer), or a call: its name, switch, token and serialised message."""


def first(switch: int, device_id: int, election_id: int, p4info: p4i.P4Info, program: bytes, tokens: tuple[int, int]) -> list[Action]:
    """What every switch is told first: who its primary controller is, and its program, BMv2 JSON. tokens: of the two calls."""
    arbitration = p4r.StreamMessageRequest()
    arbitration.arbitration.device_id = device_id
    arbitration.arbitration.election_id.low = election_id
    pipeline = p4r.SetForwardingPipelineConfigRequest(device_id=device_id, action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT)
    pipeline.election_id.low = election_id
    pipeline.config.p4info.CopyFrom(p4info)
    pipeline.config.p4_device_config = program
    pipeline.config.cookie.cookie = zlib.crc32(program) or 1
    return [
        ("stream", switch, tokens[0], arbitration.SerializeToString()),
        ("set_pipeline", switch, tokens[1], pipeline.SerializeToString()),
    ]


class VirtualController:
    """All switches of a configuration. Its methods are the handlers that `fairlane.native.Network.set_control_plane` calls."""

    def __init__(self, config: Config, folder: Path, changes: Sequence[Change] = ()) -> None:
        """Records go to `controller.csv` and `memberships.csv` in `folder`. changes: of links and switches, called as they happen. program: the
        compiled one, BMv2 JSON."""
        from fairlane import native  # where it is not built, `virtual_fabric.check_built` says so

        self._native = native
        self._changes = list(changes)
        self._config = config
        self._p4info = P4Info.read(Path(config.p4info))
        self.program = Path(config.bmv2_json)
        self._json = self.program.read_bytes()
        self._multicast = MulticastControl(config, self._p4info)
        self._controls = [SwitchControl(s, self._p4info, config, self._multicast.group_ports(s.name)) for s in config.switches]
        self._numbers = {s.name: i for i, s in enumerate(config.switches)}
        self._ready = [False] * len(self._controls)
        self._pending: dict[int, list[PortRecord]] = {}
        self._readings: dict[int, bytes] = {}
        # By switch and token, with the request that each was made of
        self._rewriters: dict[tuple[int, int], tuple[p4r.WriteRequest, Rewriter]] = {}
        self._timetable = Timetable(config.interval_s, config.grace_s)
        self._step: Begin | Finish | None = None
        self._files, self._writers = [], {}
        self._ports = ports = record_kind(self._p4info)
        # The values of a record in order; `dataclasses.astuple` copies each, which took as long as all else here.
        self._port_columns = operator.attrgetter(*(f.name for f in dataclasses.fields(ports)))
        for kind, name in ((ports, "controller.csv"), (Membership, "memberships.csv")):
            file = (folder / name).open("w", newline="", encoding="utf-8")
            self._files.append(file)
            self._writers[kind] = csv.writer(file, lineterminator="\n")
            self._writers[kind].writerow(f.name for f in dataclasses.fields(kind))
        self.latest: dict[tuple[str, int], PortRecord] = {}
        """The newest record of each switch and port."""
        self.tap: Callable[[PortRecord], None] | None = None
        """Is given each record, too."""

    @property
    def ready(self) -> bool:
        """Whether every switch has its pipeline and its first entries."""
        return all(self._ready)

    def close(self) -> None:
        for file in self._files:
            file.close()

    def check_rate(self, switch: str, port: int, rate_bps: int) -> None:
        """ValueError when the port's scheme cannot represent such a rate."""
        for control in self._controls:
            for known in control.switch.ports:
                if control.switch.name == switch and known.number == port:
                    for settings in known.schemes:
                        list(settings.entries(rate_bps))

    def ask_rate(self, switch: str, port: int, rate_bps: int) -> int:
        """An unplanned change of a link's rate at a switch; returns the timer with which the network must wake the controller."""
        self._changes.append(RateChange(0, switch, port, rate_bps))
        return _FIRST_CHANGE + len(self._changes) - 1

    def on_start(self, now_ns: int) -> list[Action]:
        actions: list[Action] = []
        for index, control in enumerate(self._controls):
            actions += first(
                index, control.switch.device_id, self._config.election_id, self._p4info.message, self._json, (_STREAM, _PIPELINE)
            )
        actions += [("timer", change.at_ns, _FIRST_CHANGE + i) for i, change in enumerate(self._changes)]
        return [*actions, self._await(now_ns)]

    def on_timer(self, now_ns: int, timer: int) -> list[Action]:
        if timer >= _FIRST_CHANGE:
            return self._change(self._changes[timer - _FIRST_CHANGE])
        step, actions = self._step, []
        for index, control in enumerate(self._controls):
            if not self._ready[index]:
                continue
            if isinstance(step, Begin):
                actions += [
                    self._rewrite(index, _EPOCH, control.begin(step.epoch)),
                    ("read", index, _COUNTERS, self._reading(index)),
                ]
            elif step is not None:
                try:
                    rewrites, self._pending[index] = control.finish(now_ns / NS, step.epoch)
                except OwnFault as error:
                    raise RunFailed(str(error)) from error
                actions.append(self._rewrite(index, _RATES, rewrites))
        if isinstance(step, Finish):
            actions += self._carry_out(self._multicast.on_tick(now_ns / NS))
        return [*actions, self._await(now_ns)]

    def _reading(self, switch: int) -> bytes:
        """The request that reads a switch's counters, the same each time."""
        if switch not in self._readings:
            control = self._controls[switch]
            request = p4r.ReadRequest(device_id=control.switch.device_id, entities=control.counter_entities())
            self._readings[switch] = request.SerializeToString()
        return self._readings[switch]

    def _await(self, now_ns: int) -> Action:
        """The timer of the timetable's next step."""
        self._step = self._timetable.next(now_ns)
        return ("timer", self._step.at_ns, _STEP)

    def on_answer(self, now_ns: int, switch: int, token: int, code: str, text: str, responses: list[bytes]) -> list[Action]:
        control = self._controls[switch]
        if code != "OK":
            raise RunFailed(f"switch {control.switch.name} refuses {_WHAT[token]}: {text}")
        if token == _PIPELINE:
            return [self._write(switch, _ENTITIES, control.initial_entities(), p4r.Update.INSERT)]
        if token == _ENTITIES:
            self._ready[switch] = True
            return self._carry_out(self._multicast.on_connected(now_ns / NS, control.switch.name, None))
        if token == _COUNTERS:
            control.on_counters(now_ns / NS, self._native.counter_rows(responses))
        elif token == _RATES:
            # A record's time is when its values are known to be in force.
            records = self._pending.pop(switch, [])
            for record in records:
                record.time_s = now_ns / NS
                self.latest[record.switch, record.port] = record
            self._writers[self._ports].writerows(map(self._port_columns, records))
            if self.tap is not None:
                for record in records:
                    self.tap(record)
        return []

    def on_digest(self, now_ns: int, switch: int, digest_id: int, list_id: int, rows: list[tuple[int, ...]]) -> list[Action]:
        answer = self._controls[switch].on_digest(digest_id, list_id, rows)
        return [] if answer is None else [("stream", switch, _STREAM, answer.SerializeToString())]

    def on_stream(self, now_ns: int, switch: int, message: bytes) -> list[Action]:
        response = p4r.StreamMessageResponse.FromString(message)
        control = self._controls[switch]
        if response.HasField("packet"):
            return self._carry_out(self._multicast.on_packet_in(now_ns / NS, control.switch.name, response.packet))
        if response.HasField("error"):
            raise RunFailed(f"switch {control.switch.name}: {response.error.message}")
        return []

    def _change(self, change: Change) -> list[Action]:
        index = self._numbers[change.switch]
        entities, kind = change.entities(self._controls[index])
        token = _ALS if isinstance(change, AlsChange) else _LINK
        # A switch that has no entries yet gets the new ones with its first.
        return [self._write(index, token, entities, kind)] if self._ready[index] else []

    def _carry_out(self, changes: Changes) -> list[Action]:
        self._writers[Membership].writerows(dataclasses.astuple(m) for m in changes.memberships)
        return [
            *(self._send(self._numbers[name], _GROUPS, p4r.WriteRequest(updates=wanted)) for name, wanted in changes.updates.items()),
            *(("stream", self._numbers[name], _STREAM, message.SerializeToString()) for name, message in changes.packets),
        ]

    def _write(self, switch: int, token: int, entities: list[p4r.Entity], kind: p4r.Update.Type.ValueType) -> Action:
        return self._send(switch, token, write_request(entities, kind))

    def _rewrite(self, switch: int, token: int, rewrites: Rewrites) -> Action:
        """What is written each interval, by the compiled module: a message is read anew only where more than its values has changed."""
        made, rewriter = self._rewriters.get((switch, token), (None, None))
        if rewriter is None or made is not rewrites.request:
            rewriter = self._native.Rewriter(self._addressed(switch, rewrites.request))
            self._rewriters[switch, token] = rewrites.request, rewriter
        return ("write", switch, token, rewriter.encoded(rewrites.values))

    def _send(self, switch: int, token: int, request: p4r.WriteRequest) -> Action:
        return ("write", switch, token, self._addressed(switch, request))

    def _addressed(self, switch: int, request: p4r.WriteRequest) -> bytes:
        request.device_id = self._controls[switch].switch.device_id
        request.election_id.low = self._config.election_id
        return request.SerializeToString()

"""A control plane in virtual time: drives `fairlane.controller.plane.engine` by the virtual clock; the network carries its P4Runtime messages.

Nothing blocks: each call is an action, its answer an event.
"""

from __future__ import annotations

import weakref
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fairlane.controller.als import AlsPlane, network_of
from fairlane.controller.changes import Change, RateChange
from fairlane.controller.config import Config
from fairlane.controller.messages import p4i, p4r
from fairlane.controller.plane.base import ControlPlane
from fairlane.controller.plane.calls import Cells, Rewrites, Rewritten
from fairlane.controller.plane.engine import Engine, Message
from fairlane.controller.plane.log import Log
from fairlane.controller.plane.names import Names
from fairlane.controller.plane.network import PlaneConfig
from fairlane.controller.records import PortRecord
from fairlane.errors import RunFailed
from fairlane.inputs.own_python import OwnFault

if TYPE_CHECKING:
    from fairlane.native import Rewriter

# Timers: the end of an interval; from the first change on, changes by their place in the list; from the first call on, the plane's own by their tokens.
_INTERVAL, _FIRST_CHANGE, _FIRST_CALL = 0, 16, 1 << 32
# Tokens of what the plane does not see; its own count from 1.
_PIPELINE = 0

Action: TypeAlias = tuple[Literal["timer"], int, int] | tuple[Literal["set_pipeline", "write", "read", "stream"], int, int, bytes]
"""("timer", at_ns, timer), or a call: its name, switch, token and serialised message."""


class VirtualControl:
    """All switches of a configuration. Its methods are the handlers that `fairlane.native.Network.set_control_plane` calls."""

    def __init__(
        self,
        plane: ControlPlane,
        config: PlaneConfig,
        folder: Path,
        changes: Sequence[Change] = (),
        *,
        file: str = "",
        sentence: str = "",
    ) -> None:
        """file: where the plane's class is, if it is the user's own. sentence: what a run says about its control plane. What the plane records goes to `folder`.
        changes: of links and switches, called as they happen. program: the compiled one, BMv2 JSON."""
        from fairlane import native  # where it is not built, `virtual_fabric.check_built` says so

        names = Names.read(Path(config.p4info))
        self._native = native
        self.sentence = sentence
        self._plane = plane
        self._config = config
        self._p4info = names.message
        self.program = Path(config.bmv2_json)
        self._json = self.program.read_bytes()
        self._changes = list(changes)
        self._engine = Engine(plane, config, names, file, self)
        self._log = Log(folder, self._engine.tables, flush=False)
        # With the message that each was made of.
        self._rewriters: weakref.WeakKeyDictionary[Rewrites, tuple[p4r.WriteRequest, Rewriter]] = weakref.WeakKeyDictionary()
        self._readings: weakref.WeakKeyDictionary[Cells, bytes] = weakref.WeakKeyDictionary()
        self._cells: set[int] = set()
        """Tokens of readings of counters' cells."""
        self.latest: dict[tuple[str, int], PortRecord] = {}
        """The newest record of each switch and port."""
        self.tap: Callable[[PortRecord], None] | None = None
        """Is given each record, too."""

    @classmethod
    def of(cls, config: Config, folder: Path, changes: Sequence[Change] = ()) -> VirtualControl:
        """Fairlane's own."""
        plane = AlsPlane()
        plane.config = config
        return cls(plane, network_of(config), folder, changes)

    @property
    def ready(self) -> bool:
        """Whether every switch has its pipeline and its first entries."""
        return self._engine.ready

    def close(self) -> None:
        self._log.close()

    def check_rate(self, switch: str, port: int, rate_bps: int) -> None:
        """ValueError when the port's scheme cannot represent such a rate."""
        self._plane._check_rate(switch, port, rate_bps)

    def ask_rate(self, switch: str, port: int, rate_bps: int) -> int:
        """An unplanned change of a link's rate at a switch; returns the timer with which the network must wake the control plane."""
        self._changes.append(RateChange(0, switch, port, rate_bps))
        return _FIRST_CHANGE + len(self._changes) - 1

    def on_start(self, now_ns: int) -> list[Action]:
        actions: list[Action] = []
        for index, node in enumerate(self._config.switches):
            actions += _first(index, node.device_id, self._config.election_id, self._p4info, self._json)
        actions += [("timer", change.at_ns, _FIRST_CHANGE + i) for i, change in enumerate(self._changes)]
        return [*actions, ("timer", self._engine.next_ns(now_ns), _INTERVAL)]

    def on_timer(self, now_ns: int, timer: int) -> list[Action]:
        if timer >= _FIRST_CALL:
            return self._carried(lambda: self._engine.answered(now_ns, timer - _FIRST_CALL, ()))
        if timer >= _FIRST_CHANGE:
            return self._carried(lambda: self._engine.changed(now_ns, self._changes[timer - _FIRST_CHANGE]))
        return [*self._carried(lambda: self._engine.interval(now_ns)), ("timer", self._engine.next_ns(now_ns), _INTERVAL)]

    def on_answer(self, now_ns: int, switch: int, token: int, code: str, text: str, responses: list[bytes]) -> list[Action]:
        if token == _PIPELINE:
            if code != "OK":
                raise RunFailed(f"switch {self._config.switches[switch].name} refuses its pipeline: {text}")
            return self._carried(lambda: self._engine.programmed(now_ns, switch))
        read: Sequence[Any] | str
        if code != "OK":
            read = text.partition(": ")[2]
        elif token in self._cells:
            self._cells.remove(token)
            read = self._native.counter_rows(responses)
        else:
            read = [entity for response in responses for entity in p4r.ReadResponse.FromString(response).entities]
        return self._carried(lambda: self._engine.answered(now_ns, token, read))

    def on_digest(self, now_ns: int, switch: int, digest_id: int, list_id: int, rows: list[tuple[int, ...]]) -> list[Action]:
        return self._carried(lambda: self._engine.digests(now_ns, switch, digest_id, list_id, rows))

    def on_stream(self, now_ns: int, switch: int, message: bytes) -> list[Action]:
        return self._carried(lambda: self._engine.streamed(now_ns, switch, p4r.StreamMessageResponse.FromString(message)))

    def _carried(self, happen: Callable[[], list[Message]]) -> list[Action]:
        """An event's messages as actions of the network."""
        try:
            return [self._action(message) for message in happen()]
        except OwnFault as error:
            raise RunFailed(str(error)) from error

    def _action(self, message: Message) -> Action:
        request, switch, token = message.request, message.switch, message.token
        if isinstance(request, int):
            return ("timer", request, _FIRST_CALL + token)
        if isinstance(request, Rewritten):
            return ("write", switch, token, self._rewriter(switch, request.of).encoded(request.values))
        if isinstance(request, Cells):
            self._cells.add(token)
            if request not in self._readings:
                self._readings[request] = self._addressed(switch, request.request)
            return ("read", switch, token, self._readings[request])
        kind: Literal["write", "read", "stream"] = "stream"
        if isinstance(request, p4r.WriteRequest):
            kind = "write"
        elif isinstance(request, p4r.ReadRequest):
            kind = "read"
        return (kind, switch, token, self._addressed(switch, request))

    def _rewriter(self, switch: int, rewrites: Rewrites) -> Rewriter:
        """Of the compiled module: a message is read anew only where more than its values has changed."""
        made, rewriter = self._rewriters.get(rewrites, (None, None))
        if rewriter is None or made is not rewrites.request:
            rewriter = self._native.Rewriter(self._addressed(switch, rewrites.request))
            self._rewriters[rewrites] = rewrites.request, rewriter
        return rewriter

    def _addressed(self, switch: int, request: p4r.WriteRequest | p4r.ReadRequest | p4r.StreamMessageRequest) -> bytes:
        if not isinstance(request, p4r.StreamMessageRequest):
            request.device_id = self._config.switches[switch].device_id
        if isinstance(request, p4r.WriteRequest):
            request.election_id.low = self._config.election_id
        return request.SerializeToString()

    # What the plane records.

    def record(self, fields: Mapping[str, object]) -> None:
        self._log.record(fields)

    def rows(self, rows: Sequence[Any]) -> None:
        self._log.rows(rows)
        for row in rows:
            if isinstance(row, PortRecord):
                self.latest[row.switch, row.port] = row
                if self.tap is not None:
                    self.tap(row)

    def event(self, kind: str, what: Mapping[str, object]) -> None:
        """Of no use: the run's end tells."""


def _first(switch: int, device_id: int, election_id: int, p4info: p4i.P4Info, program: bytes) -> list[Action]:
    """What every switch is told first: who its primary controller is, and its program, BMv2 JSON."""
    arbitration = p4r.StreamMessageRequest()
    arbitration.arbitration.device_id = device_id
    arbitration.arbitration.election_id.low = election_id
    pipeline = p4r.SetForwardingPipelineConfigRequest(device_id=device_id, action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT)
    pipeline.election_id.low = election_id
    pipeline.config.p4info.CopyFrom(p4info)
    pipeline.config.p4_device_config = program
    pipeline.config.cookie.cookie = zlib.crc32(program) or 1
    return [
        ("stream", switch, _PIPELINE, arbitration.SerializeToString()),
        ("set_pipeline", switch, _PIPELINE, pipeline.SerializeToString()),
    ]

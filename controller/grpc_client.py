"""One P4Runtime connection over gRPC: arbitration, pipeline, writes, reads, the message stream."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import grpc

from fairlane.controller import messages
from fairlane.controller.config import Tls
from fairlane.controller.messages import p4i as p4info_pb2
from fairlane.controller.messages import p4r as p4runtime_pb2

if TYPE_CHECKING:
    from finsy.proto import p4r_grpc as p4runtime_pb2_grpc
    from finsy.proto import rpc_code as code_pb2
    from finsy.proto import rpc_status as status_pb2
else:
    p4runtime_pb2_grpc = messages.load("p4.v1.p4runtime_pb2_grpc")
    code_pb2 = messages.load("google.rpc.code_pb2")
    status_pb2 = messages.load("google.rpc.status_pb2")

# Proxy variables of the environment would send loopback traffic away (behavioral-model#612, tutorials#190).
_OPTIONS = [
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_receive_message_length", 64 << 20),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
]
# The outcomes of more are longer than clients take by default (P4Runtime 1.4, "gRPC Metadata Maximum Size").
_MOST_UPDATES = 100


class SwitchError(RuntimeError):
    """The switch refused or does not answer; the message states which. reason: the switch's own message; "" without an answer."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class GrpcSwitch:
    """A session as primary controller of one device.

    on_message is called, on a thread of its own, with each StreamMessageResponse that is not about arbitration;
    on_closed, once, when the stream ends. Every call has a deadline of `timeout_s` and raises SwitchError.
    """

    def __init__(
        self,
        name: str,
        address: str,
        device_id: int,
        election_id: int,
        *,
        on_message: Callable[[p4runtime_pb2.StreamMessageResponse], None],
        on_closed: Callable[[str], None],
        timeout_s: float = 2.0,
        tls: Tls | None = None,
    ) -> None:
        """OSError when a file of `tls` cannot be read."""
        self.name = name
        self.device_id = device_id
        self._election = p4runtime_pb2.Uint128(low=election_id)
        self._timeout_s = timeout_s
        self._on_message = on_message
        self._on_closed = on_closed
        self._outgoing: queue.SimpleQueue[p4runtime_pb2.StreamMessageRequest | None] = queue.SimpleQueue()
        self._primary = threading.Event()
        self._refused = ""
        self._closing = False
        self._tls = tls
        self._channel = (
            grpc.insecure_channel(address, options=_OPTIONS)
            if tls is None
            else grpc.secure_channel(address, credentials(tls), options=_OPTIONS)
        )
        self._stub = p4runtime_pb2_grpc.P4RuntimeStub(self._channel)
        self._address = address

    def connect(self) -> None:
        """Open the stream and become primary; SwitchError when that does not happen in time."""
        try:
            grpc.channel_ready_future(self._channel).result(self._timeout_s)
        except grpc.FutureTimeoutError:
            how = "" if self._tls is None else f" over TLS with a certificate signed by {self._tls.ca}"
            raise SwitchError(f"{self.name}: no P4Runtime server answers at {self._address}{how}") from None
        threading.Thread(target=self._receive, name=f"stream-{self.name}", daemon=True).start()
        request = p4runtime_pb2.StreamMessageRequest()
        request.arbitration.device_id = self.device_id
        request.arbitration.election_id.CopyFrom(self._election)
        self._outgoing.put(request)
        if not self._primary.wait(self._timeout_s):
            raise SwitchError(f"{self.name}: {self._refused or 'no answer to arbitration'}")

    def close(self) -> None:
        self._closing = True
        self._outgoing.put(None)
        self._channel.close()

    def send(self, message: p4runtime_pb2.StreamMessageRequest) -> None:
        self._outgoing.put(message)

    def cookie(self) -> int | None:
        """The cookie of the pipeline that the switch runs; None when it has none."""
        request = p4runtime_pb2.GetForwardingPipelineConfigRequest(
            device_id=self.device_id, response_type=p4runtime_pb2.GetForwardingPipelineConfigRequest.COOKIE_ONLY
        )
        try:
            config = self._stub.GetForwardingPipelineConfig(request, timeout=self._timeout_s).config
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.FAILED_PRECONDITION:
                return None
            raise self._error("cannot read its pipeline", error) from error
        return config.cookie.cookie if config.HasField("cookie") else None

    def push_pipeline(self, p4info: p4info_pb2.P4Info, bmv2_json: Path, cookie: int) -> None:
        request = p4runtime_pb2.SetForwardingPipelineConfigRequest(
            device_id=self.device_id, election_id=self._election, action=p4runtime_pb2.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
        )
        request.config.p4info.CopyFrom(p4info)
        request.config.p4_device_config = Path(bmv2_json).read_bytes()
        request.config.cookie.cookie = cookie
        try:
            self._stub.SetForwardingPipelineConfig(request, timeout=15.0)
        except grpc.RpcError as error:
            raise self._error(f"refuses the pipeline {bmv2_json}", error) from error

    def write(self, wanted: Iterable[p4runtime_pb2.Update]) -> None:
        """Updates in their order; an insert of an existing entry becomes a modify, a delete of a missing one counts as done."""
        given = list(wanted)
        failures = self._send(given, {code_pb2.ALREADY_EXISTS, code_pb2.NOT_FOUND})
        again = []
        for i, code in sorted(failures.items()):
            if code == code_pb2.ALREADY_EXISTS:
                again.append(p4runtime_pb2.Update(type=p4runtime_pb2.Update.MODIFY, entity=given[i].entity))
            elif given[i].type != p4runtime_pb2.Update.DELETE:
                again.append(p4runtime_pb2.Update(type=p4runtime_pb2.Update.INSERT, entity=given[i].entity))
        self._send(again, set())

    def apply(self, wanted: Iterable[p4runtime_pb2.Update]) -> None:
        """Updates in their order, unchanged; SwitchError when one is refused for any reason."""
        self._send(list(wanted), set())

    def _send(self, wanted: Sequence[p4runtime_pb2.Update], tolerated: set[int]) -> dict[int, int]:
        """Codes of the updates that failed in a tolerated way, by position; other failures raise."""
        failures: dict[int, int] = {}
        for first in range(0, len(wanted), _MOST_UPDATES):
            found = self._send_some(wanted[first : first + _MOST_UPDATES], tolerated)
            failures |= {first + i: code for i, code in found.items()}
        return failures

    def _send_some(self, wanted: Sequence[p4runtime_pb2.Update], tolerated: set[int]) -> dict[int, int]:
        request = p4runtime_pb2.WriteRequest(device_id=self.device_id, election_id=self._election, updates=wanted)
        try:
            self._stub.Write(request, timeout=self._timeout_s)
        except grpc.RpcError as error:
            failures = _update_errors(error)
            if failures and set(failures.values()) <= tolerated:
                return failures
            raise self._error("refuses a write", error) from error
        return {}

    def read(self, entities: Iterable[p4runtime_pb2.Entity]) -> list[p4runtime_pb2.Entity]:
        request = p4runtime_pb2.ReadRequest(device_id=self.device_id, entities=entities)
        try:
            return [e for response in self._stub.Read(request, timeout=self._timeout_s) for e in response.entities]
        except grpc.RpcError as error:
            raise self._error("refuses a read", error) from error

    def _receive(self) -> None:
        reason = "stream ended"
        try:
            for response in self._stub.StreamChannel(iter(self._outgoing.get, None)):
                if response.HasField("arbitration"):
                    status = response.arbitration.status
                    if status.code == code_pb2.OK:
                        self._primary.set()
                    else:
                        self._refused = f"another controller is primary: {status.message}"
                else:
                    self._on_message(response)
        except grpc.RpcError as error:
            reason = f"{error.code().name}: {error.details()}"
            self._refused = self._refused or reason
        except ValueError:
            reason = "channel closed"
        if not self._closing:
            self._on_closed(reason)

    def _error(self, what: str, error: grpc.RpcError) -> SwitchError:
        refused = _update_messages(error)
        gone = error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)
        # BMv2 says why of each update alone.
        reason = error.details() or refused.removeprefix("update 0: ") or error.code().name
        return SwitchError(f"{self.name} {what}: {error.code().name}: {refused or error.details()}", "" if gone else reason)


def credentials(tls: Tls) -> grpc.ChannelCredentials:
    """What a channel needs of `tls`; OSError when a file cannot be read."""
    ca, key, certificate = (Path(name).read_bytes() if name else None for name in (tls.ca, tls.key, tls.certificate))
    return grpc.ssl_channel_credentials(ca, key, certificate)


def _status(error: grpc.RpcError) -> list[p4runtime_pb2.Error]:
    for item in error.trailing_metadata() or ():
        if item.key == "grpc-status-details-bin":
            status = status_pb2.Status.FromString(item.value)
            errors = []
            for detail in status.details:
                unpacked = p4runtime_pb2.Error()
                detail.Unpack(unpacked)
                errors.append(unpacked)
            return errors
    return []


def _update_errors(error: grpc.RpcError) -> dict[int, int]:
    return {i: e.canonical_code for i, e in enumerate(_status(error)) if e.canonical_code != code_pb2.OK}


def _update_messages(error: grpc.RpcError) -> str:
    def name(code: int) -> str:
        return code_pb2.Code.Name(cast("code_pb2.Code.ValueType", code))

    return "; ".join(
        f"update {i}: {name(e.canonical_code)} {e.message}" for i, e in enumerate(_status(error)) if e.canonical_code != code_pb2.OK
    )

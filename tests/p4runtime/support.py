"""A switch process and a plain gRPC client for the tests of the P4Runtime server.

The switch is `fairlane-switch` from FAIRLANE_BIN or `.venv/bin`, or what FAIRLANE_SWITCH names, for instance BMv2's
`simple_switch_grpc`. The program is compiled by `fairlane-compile` of the same folder, or by what FAIRLANE_P4C names.
"""

from __future__ import annotations

import itertools
import os
import queue
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from finsy.proto import U128, p4i, p4r, p4r_grpc, rpc_status
from google.protobuf import text_format

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("entities.p4")
CPU_PORT = 510
DEVICE_ID = 1

INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE


def tool(name: str, variable: str) -> str:
    """The path of a program of ours; skips the test when it is not built."""
    found = os.environ.get(variable) or str(Path(os.environ.get("FAIRLANE_BIN") or ROOT / ".venv" / "bin") / name)
    if not Path(found).is_file():
        pytest.skip(f"{name} is not built (make build), and {variable} does not name one")
    return found


def is_reference() -> bool:
    """True when the tests run against BMv2, to show that they are honest."""
    return "simple_switch" in os.environ.get("FAIRLANE_SWITCH", "")


@dataclass(frozen=True)
class Program:
    """A compiled program."""

    json: Path
    p4info: Path

    def info(self) -> p4i.P4Info:
        return text_format.Parse(self.p4info.read_text(), p4i.P4Info())

    def config(self, cookie: int | None = None) -> p4r.ForwardingPipelineConfig:
        config = p4r.ForwardingPipelineConfig(p4info=self.info(), p4_device_config=self.json.read_bytes())
        if cookie is not None:
            config.cookie.cookie = cookie
        return config


def compile_program(source: Path, folder: Path, arch: str = "v1model") -> Program:
    """Compiles a P4 program into a folder."""
    compiler = tool("fairlane-compile", "FAIRLANE_P4C")
    program = Program(folder / f"{source.stem}.json", folder / f"{source.stem}.p4info.txtpb")
    command = [compiler, "--std", "p4-16", "--arch", arch, "-o", str(program.json), "--p4runtime-files", str(program.p4info), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return program


def _ports() -> Iterator[int]:
    """Below those that the kernel gives to connections (32768 and up), and each of pytest's processes has its own: nobody takes one between
    a look and its use."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    first = 10_000 + 1_000 * (worker % 10)
    return itertools.cycle(range(first, first + 1_000, PORTS_EACH))


PORTS_EACH = 8
"""A run's switches take ports that follow each other."""
_PORTS = _ports()


def free_port() -> int:
    """The first of PORTS_EACH free TCP ports on loopback."""
    for first in itertools.islice(_PORTS, 1_000 // PORTS_EACH):
        try:
            for port in range(first, first + PORTS_EACH):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first
    raise AssertionError("all ports of this process's tests are taken")


@contextmanager
def switch(*, cpu_port: int | None = CPU_PORT, options: Sequence[str] = (), before: Callable[[], None] | None = None) -> Iterator[str]:
    """A switch without program and interfaces; gives the address of its P4Runtime server. options: of the target, more of them.
    before: is called in the switch's process, before the switch."""
    address = f"127.0.0.1:{free_port()}"
    command = [tool("fairlane-switch", "FAIRLANE_SWITCH"), "--no-p4", "--device-id", str(DEVICE_ID)]
    if is_reference():
        command += ["--thrift-port", str(free_port())]
    command += ["--", "--grpc-server-addr", address]
    if cpu_port is not None:
        command += ["--cpu-port", str(cpu_port)]
    command += options
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=before)
    try:
        wait_for(address, process)
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            _, errors = process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
    assert is_reference() or process.returncode == 0, errors


def wait_for(address: str, process: subprocess.Popen) -> None:
    host, port = address.split(":")
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise AssertionError(f"the switch ended with {process.returncode}: {process.communicate()[1]}")
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise AssertionError(f"nothing listens on {address}")


@contextmanager
def namespace(prefix: str, ports: Iterable[int], far: str) -> Iterator[str]:
    """A network namespace with a veth pair for each port, `swN` and the end that `far` names; skips the test where there can be none."""
    if os.geteuid() != 0:
        pytest.skip("needs root, for a network namespace and raw sockets")
    name = f"{prefix}-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        pytest.skip(f"no network namespace can be made here: {made.stderr.strip()}")
    try:
        lines = ["ip link set lo up"]
        for port in ports:
            lines.append(f"ip link add sw{port} type veth peer name {far}{port}")
            for end in (f"sw{port}", f"{far}{port}"):
                # Without IPv6 the kernel sends nothing of its own.
                lines += [f"[ ! -d /proc/sys/net/ipv6 ] || echo 1 > /proc/sys/net/ipv6/conf/{end}/disable_ipv6", f"ip link set {end} up"]
        subprocess.run(["ip", "netns", "exec", name, "sh", "-ec", "\n".join(lines)], check=True, timeout=30)
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False, timeout=30)


class Names:
    """Ids of a P4Info by name or alias."""

    def __init__(self, info: p4i.P4Info) -> None:
        self.info = info
        self.ids: dict[str, int] = {}
        for _, items in info.ListFields():
            if not isinstance(items, Iterable):
                continue
            for item in items:
                if hasattr(item, "preamble"):
                    self.ids[item.preamble.name] = item.preamble.id
                    self.ids.setdefault(item.preamble.alias, item.preamble.id)

    def __getitem__(self, name: str) -> int:
        return self.ids[name]

    def action(self, name: str, *arguments: int | bytes) -> p4r.Action:
        """An action with its arguments in order."""
        action = next(action for action in self.info.actions if action.preamble.id == self.ids[name])
        assert len(arguments) == len(action.params)
        params = [p4r.Action.Param(param_id=param.id, value=number(value)) for param, value in zip(action.params, arguments, strict=True)]
        return p4r.Action(action_id=action.preamble.id, params=params)


def number(value: int | bytes) -> bytes:
    """The canonical bytestring of a number; bytes stay as they are."""
    if isinstance(value, bytes):
        return value
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def exact(field: int, value: int | bytes) -> p4r.FieldMatch:
    return p4r.FieldMatch(field_id=field, exact=p4r.FieldMatch.Exact(value=number(value)))


def lpm(field: int, value: int | bytes, length: int) -> p4r.FieldMatch:
    return p4r.FieldMatch(field_id=field, lpm=p4r.FieldMatch.LPM(value=number(value), prefix_len=length))


def ternary(field: int, value: int | bytes, mask: int | bytes) -> p4r.FieldMatch:
    return p4r.FieldMatch(field_id=field, ternary=p4r.FieldMatch.Ternary(value=number(value), mask=number(mask)))


def in_range(field: int, low: int | bytes, high: int | bytes) -> p4r.FieldMatch:
    return p4r.FieldMatch(field_id=field, range=p4r.FieldMatch.Range(low=number(low), high=number(high)))


def optional(field: int, value: int | bytes) -> p4r.FieldMatch:
    return p4r.FieldMatch(field_id=field, optional=p4r.FieldMatch.Optional(value=number(value)))


def details(error: grpc.RpcError) -> list[p4r.Error]:
    """What grpc-status-details-bin says of each element of a batch."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            status = rpc_status.Status.FromString(value)
            assert status.code == error.code().value[0]
            assert status.message == error.details()
            unpacked = []
            for item in status.details:
                one = p4r.Error()
                assert item.Unpack(one)
                unpacked.append(one)
            return unpacked
    return []


class Stream:
    """A stream channel: sends, and sorts what comes by kind."""

    def __init__(self, stub: p4r_grpc.P4RuntimeStub) -> None:
        self._requests: queue.SimpleQueue[p4r.StreamMessageRequest | None] = queue.SimpleQueue()
        self.kinds: dict[str, queue.Queue] = {
            kind: queue.Queue() for kind in ("arbitration", "packet", "digest", "idle_timeout_notification", "error", "end")
        }
        self.call = stub.StreamChannel(iter(self._requests.get, None))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            for response in self.call:
                kind = response.WhichOneof("update")
                self.kinds[kind].put(getattr(response, kind))
            self.kinds["end"].put(None)
        except grpc.RpcError as error:
            self.kinds["end"].put(error)

    def send(self, **update: object) -> None:
        self._requests.put(p4r.StreamMessageRequest(**update))

    def arbitrate(self, election_id: int | None, *, device_id: int = DEVICE_ID, role: str = "") -> None:
        update = p4r.MasterArbitrationUpdate(device_id=device_id)
        if election_id is not None:
            update.election_id.CopyFrom(U128.encode(election_id))
        if role:
            update.role.name = role
        self.send(arbitration=update)

    def receive(self, kind: str, timeout: float = 5.0):
        try:
            return self.kinds[kind].get(timeout=timeout)
        except queue.Empty:
            raise AssertionError(f"no {kind} within {timeout} s") from None

    def nothing(self, kind: str, during: float = 0.3) -> None:
        """Fails when a message of the kind comes."""
        try:
            message = self.kinds[kind].get(timeout=during)
        except queue.Empty:
            return
        raise AssertionError(f"unexpected {kind}: {message}")

    def close(self) -> None:
        self._requests.put(None)
        self.call.cancel()
        self._reader.join(timeout=5)


class Client:
    """A P4Runtime client of one role and election id."""

    def __init__(
        self,
        address: str,
        *,
        election_id: int | None = 1,
        role: str = "",
        open_stream: bool = True,
        credentials: grpc.ChannelCredentials | None = None,
    ) -> None:
        options = [("grpc.max_receive_message_length", 64 << 20), ("grpc.enable_http_proxy", 0)]
        self.channel = (
            grpc.insecure_channel(address, options=options)
            if credentials is None
            else grpc.secure_channel(address, credentials, options=options)
        )
        self.stub = p4r_grpc.P4RuntimeStub(self.channel)
        self.address = address
        self.election_id = election_id
        self.role = role
        self.stream: Stream | None = None
        self.first: p4r.MasterArbitrationUpdate | None = None
        if open_stream:
            self.stream = Stream(self.stub)
            self.stream.arbitrate(election_id, role=role)
            self.first = self.stream.receive("arbitration")

    def _identity(self) -> dict[str, object]:
        identity: dict[str, object] = {"device_id": DEVICE_ID, "role": self.role}
        if self.election_id is not None:
            identity["election_id"] = U128.encode(self.election_id)
        return identity

    def push(self, config: p4r.ForwardingPipelineConfig | None, action: str = "VERIFY_AND_COMMIT") -> None:
        request = p4r.SetForwardingPipelineConfigRequest(**self._identity(), action=action, config=config)
        self.stub.SetForwardingPipelineConfig(request, timeout=20)

    def config(self, response_type: str = "ALL") -> p4r.GetForwardingPipelineConfigResponse:
        request = p4r.GetForwardingPipelineConfigRequest(device_id=DEVICE_ID, response_type=response_type)
        return self.stub.GetForwardingPipelineConfig(request, timeout=20)

    def updates(self, *updates: tuple[int, object], atomicity: str = "CONTINUE_ON_ERROR") -> None:
        """Writes a batch of (type, entity message)."""
        request = p4r.WriteRequest(**self._identity(), atomicity=atomicity)
        for kind, entity in updates:
            request.updates.append(p4r.Update(type=kind, entity=wrap(entity)))
        self.stub.Write(request, timeout=20)

    def insert(self, *entities: object) -> None:
        self.updates(*((INSERT, entity) for entity in entities))

    def modify(self, *entities: object) -> None:
        self.updates(*((MODIFY, entity) for entity in entities))

    def delete(self, *entities: object) -> None:
        self.updates(*((DELETE, entity) for entity in entities))

    def read(self, *entities: object) -> list:
        """What a read selects, as the messages of their kind."""
        request = p4r.ReadRequest(device_id=DEVICE_ID, entities=[wrap(entity) for entity in entities])
        found = []
        for response in self.stub.Read(request, timeout=20):
            for entity in response.entities:
                found.append(unwrap(entity))
        return found

    def close(self) -> None:
        if self.stream:
            self.stream.close()
        self.channel.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def wrap(entity: object) -> p4r.Entity:
    """The entity that holds a message of one kind."""
    if isinstance(entity, p4r.Entity):
        return entity
    kind = type(entity).__name__
    if kind in ("MulticastGroupEntry", "CloneSessionEntry"):
        inner = re.sub(r"(?<!^)(?=[A-Z])", "_", kind).lower()
        entity = p4r.PacketReplicationEngineEntry(**{inner: entity})
        kind = "PacketReplicationEngineEntry"
    return p4r.Entity(**{re.sub(r"(?<!^)(?=[A-Z])", "_", kind).lower(): entity})


def unwrap(entity: p4r.Entity) -> object:
    message = getattr(entity, entity.WhichOneof("entity"))
    if isinstance(message, p4r.PacketReplicationEngineEntry):
        message = getattr(message, message.WhichOneof("type"))
    return message


def refused(code: grpc.StatusCode, work: Callable[[], object], *words: str) -> str:
    """The work must fail with a code, of the request or of its only update; gives the message, which must hold the words."""
    with pytest.raises(grpc.RpcError) as caught:
        work()
    error = caught.value
    parts = details(error)
    if parts:
        failed = [part for part in parts if part.canonical_code]
        assert error.code() == grpc.StatusCode.UNKNOWN
        assert [part.canonical_code for part in failed] == [code.value[0]] * len(failed), failed
        message = failed[0].message
    else:
        assert error.code() == code, error
        message = error.details() or ""
    if not is_reference():
        for word in words:
            assert word in message, message
    return message


def without_proxy() -> dict[str, str]:
    """The environment without proxies, which gRPC would use even for loopback."""
    return {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}


def shell_python() -> str:
    """The Python with p4runtime-shell; skips the test when there is none."""
    found = os.environ.get("FAIRLANE_SHELL_PYTHON") or str(ROOT / ".venv-shell" / "bin" / "python")
    if not shutil.which(found):
        pytest.skip("p4runtime-shell is not installed: no .venv-shell (make test makes it), FAIRLANE_SHELL_PYTHON names none")
    return found

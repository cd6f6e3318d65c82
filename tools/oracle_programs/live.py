"""Cases on a running switch: its program by P4Runtime, its entries by P4Runtime or by Thrift (`simple_switch_CLI`), its packets as the
controller's (PacketOut and PacketIn), so that it needs neither interfaces nor root."""

from __future__ import annotations

import os
import queue
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
from finsy.proto import U128, p4i, p4r, p4r_grpc
from google.protobuf import text_format

from fairlane.bmv2 import environment
from tools.oracle_programs import syntax as s
from tools.oracle_programs import types as t
from tools.oracle_programs.cases import Case, parameters, prioritised
from tools.oracle_programs.stf_run import Verdict

DEVICE_ID = 1
START_S = 30.0
PACKET_S = 10.0
QUIET_S = 0.05
NOTHING_S = 2.0
"""How long a packet that must not leave may be under way, where none leaves after it."""
HIGHEST = 1000
"""Over Thrift the smaller priority wins: this less ours."""


class NotStarted(Exception):
    """The switch, or a program for it, did not start; the message contains its output."""


class Switch:
    """`simple_switch_grpc` of ours. Close it, or use it with `with`."""

    def __init__(self, programs: Path) -> None:
        self.programs = programs
        self.folder = tempfile.TemporaryDirectory(prefix="oracle-programs-")
        self.environment = environment.extended(os.environ)
        self.environment["PATH"] = f"{environment.COMMANDS}{os.pathsep}{programs}{os.pathsep}{self.environment['PATH']}"
        self.thrift = _free_port()
        address = f"127.0.0.1:{_free_port()}"
        self.log = (Path(self.folder.name) / "switch.log").open("wb+")
        command = ["simple_switch_grpc", "--no-p4", "--device-id", str(DEVICE_ID), "--thrift-port", str(self.thrift)]
        command += ["--notifications-addr", f"ipc://{self.folder.name}/notifications.ipc"]
        command += ["--", "--grpc-server-addr", address, "--cpu-port", str(s.CPU_PORT)]
        self.process = subprocess.Popen(command, env=self.environment, stdout=self.log, stderr=subprocess.STDOUT, cwd=self.folder.name)
        try:
            for port in (self.thrift, int(address.split(":")[1])):
                self._wait_for(port)
            self.channel = grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)])
            self.stub = p4r_grpc.P4RuntimeStub(self.channel)
            self._requests: queue.SimpleQueue[p4r.StreamMessageRequest | None] = queue.SimpleQueue()
            self._answers: queue.SimpleQueue[p4r.StreamMessageResponse] = queue.SimpleQueue()
            self.stream = self.stub.StreamChannel(iter(self._requests.get, None))
            threading.Thread(target=self._read, daemon=True).start()
            update = p4r.MasterArbitrationUpdate(device_id=DEVICE_ID, election_id=U128.encode(1))
            self._requests.put(p4r.StreamMessageRequest(arbitration=update))
            self._answers.get(timeout=START_S)
        except BaseException:
            self.close()
            raise

    def _wait_for(self, port: int) -> None:
        deadline = time.monotonic() + START_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise NotStarted(f"the switch does not listen on port {port}: {self.said()}") from None
                time.sleep(0.02)

    def said(self) -> str:
        self.log.flush()
        return Path(self.log.name).read_text(errors="replace")[-1000:]

    def _read(self) -> None:
        try:
            for answer in self.stream:
                self._answers.put(answer)
        except grpc.RpcError:
            return

    def close(self) -> None:
        if hasattr(self, "stream"):
            self._requests.put(None)
            self.stream.cancel()
            self.channel.close()
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        self.log.close()
        self.folder.cleanup()

    def __enter__(self) -> Switch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def play(self, case: Case, folder: Path, by: str) -> Verdict:
        """by: p4runtime or thrift."""
        source, json, info = (folder / f"{case.name}{suffix}" for suffix in (".p4", ".json", ".p4info.txtpb"))
        source.write_text(case.source(), encoding="utf-8")
        compiler = self.programs / "fairlane-compile"
        done = subprocess.run([compiler, "-o", json, "--p4runtime-files", info, source], capture_output=True, text=True)
        if done.returncode != 0:
            return Verdict("refused", done.stderr[-500:])
        try:
            names = self.load(json, info)
            if by == "p4runtime":
                self.write(case.program, names)
            else:
                said = self.command(case.program, names)
                if said:
                    return Verdict("refused", said)
            return self.send(case)
        except grpc.RpcError as error:
            kind = "refused" if self.process.poll() is None else "crashed"
            return Verdict(kind, f"{error.code()}: {error.details()}")

    def load(self, json: Path, info: Path) -> Names:
        parsed = text_format.Parse(info.read_text(encoding="utf-8"), p4i.P4Info())
        config = p4r.ForwardingPipelineConfig(p4info=parsed, p4_device_config=json.read_bytes())
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=DEVICE_ID, election_id=U128.encode(1), action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT, config=config
        )
        self.stub.SetForwardingPipelineConfig(request, timeout=PACKET_S)
        return Names(parsed)

    def write(self, program: s.Program, names: Names) -> None:
        """Entries and default actions by P4Runtime."""
        request = p4r.WriteRequest(device_id=DEVICE_ID, election_id=U128.encode(1))
        for table in program.tables:
            # The compiler has removed a table that no packet can reach.
            if table.name not in names.tables:
                continue
            if table.runtime_default is not None:
                action = p4r.TableAction(action=names.action(*table.runtime_default, program))
                default = p4r.TableEntry(table_id=names.tables[table.name], is_default_action=True, action=action)
                request.updates.append(p4r.Update(type=p4r.Update.MODIFY, entity=p4r.Entity(table_entry=default)))
            for entry in table.entries if table.how == "runtime" else []:
                new = p4r.TableEntry(
                    table_id=names.tables[table.name],
                    match=[_field_match(i, key, m) for i, (key, m) in enumerate(zip(table.keys, entry.matches), 1) if not m.any],
                    action=p4r.TableAction(action=names.action(entry.action, entry.data, program)),
                    priority=entry.priority if prioritised(table) else 0,
                )
                request.updates.append(p4r.Update(type=p4r.Update.INSERT, entity=p4r.Entity(table_entry=new)))
        if request.updates:
            self.stub.Write(request, timeout=PACKET_S)

    def command(self, program: s.Program, names: Names) -> str:
        """The same by simple_switch_CLI; what it says against them."""
        lines = cli_lines(program, set(names.tables))
        if not lines:
            return ""
        done = subprocess.run(
            ["simple_switch_CLI", "--thrift-port", str(self.thrift)],
            input="\n".join(lines) + "\n",
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        bad = [line for line in (done.stdout + done.stderr).splitlines() if "Invalid" in line or "Error" in line or "Unknown" in line]
        return "\n".join(bad[:5]) if bad or done.returncode == 0 else done.stderr[-500:]

    def send(self, case: Case) -> Verdict:
        """The packets one after the other; one that gets an answer is the last, so that nothing is left to wait for."""
        order = list(range(len(case.expected)))
        order.sort(key=lambda i: case.expected[i] is not None)
        wanted = [case.expected[i] for i in order]
        for i in order:
            self._requests.put(p4r.StreamMessageRequest(packet=p4r.PacketOut(payload=case.program.packets[i].data)))
        got: list[bytes] = []
        expected = [packet.data for packet in wanted if packet is not None]
        try:
            while len(got) < len(expected):
                got.append(self._packet(PACKET_S))
            if not expected:
                got.append(self._packet(NOTHING_S))
        except queue.Empty:
            pass
        if got == expected:
            return Verdict("passed")
        at = next((i for i, (one, other) in enumerate(zip(got, expected)) if one != other), min(len(got), len(expected)))
        shown = [pile[at].hex() if at < len(pile) else "nothing" for pile in (expected, got)]
        # What is late belongs to no later case.
        while True:
            try:
                self._packet(QUIET_S)
            except queue.Empty:
                break
        return Verdict("differs", f"packet {at + 1} of {len(expected)}: expected {shown[0]}, received {shown[1]}")

    def _packet(self, timeout_s: float) -> bytes:
        while True:
            answer = self._answers.get(timeout=timeout_s)
            if answer.WhichOneof("update") == "packet":
                return answer.packet.payload


class Names:
    """Ids of a P4Info, by the last part of each name."""

    def __init__(self, info: Any) -> None:
        self.tables = {_last(one.preamble.name): one.preamble.id for one in info.tables}
        self.actions = {_last(one.preamble.name): one for one in info.actions}

    def action(self, name: str, data: list[int], program: s.Program) -> Any:
        """An action with its data."""
        of = {p.name: t.to_bits(v, p.type) for p, v in zip(parameters(program, name), data)}
        params = [p4r.Action.Param(param_id=p.id, value=_bytes(of[p.name])) for p in self.actions[name].params]
        return p4r.Action(action_id=self.actions[name].preamble.id, params=params)


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _bytes(value: int) -> bytes:
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def _field_match(field: int, key: s.Key, m: s.Match) -> Any:
    match = p4r.FieldMatch(field_id=field)
    if key.kind == "exact":
        match.exact.value = _bytes(m.value)
    elif key.kind == "lpm":
        match.lpm.value, match.lpm.prefix_len = _bytes(m.value), m.other
    elif key.kind == "ternary":
        match.ternary.value, match.ternary.mask = _bytes(m.value), _bytes(m.other)
    elif key.kind == "range":
        match.range.low, match.range.high = _bytes(m.value), _bytes(m.other)
    else:
        match.optional.value = _bytes(m.value)
    return match


def cli_lines(program: s.Program, tables: set[str]) -> list[str]:
    """Commands for simple_switch_CLI."""
    lines = []
    for table in program.tables:
        if table.name not in tables:
            continue
        if table.runtime_default is not None:
            name, data = table.runtime_default
            lines.append(" ".join(["table_set_default", f"I.{table.name}", _action_name(name), *_data(program, name, data)]))
        for entry in table.entries if table.how == "runtime" else []:
            keys = [_cli_key(key, m) for key, m in zip(table.keys, entry.matches)]
            words = ["table_add", f"I.{table.name}", _action_name(entry.action), *keys, "=>", *_data(program, entry.action, entry.data)]
            lines.append(" ".join(words + ([str(HIGHEST - entry.priority)] if prioritised(table) else [])))
    return lines


def _action_name(name: str) -> str:
    return name if name == "NoAction" else f"I.{name}"


def _data(program: s.Program, action: str, data: list[int]) -> Iterator[str]:
    return (f"{t.to_bits(v, p.type):#x}" for p, v in zip(parameters(program, action), data))


def _cli_key(key: s.Key, m: s.Match) -> str:
    full = (1 << t.width(key.expression.type)) - 1
    if key.kind == "lpm":
        return f"{m.value:#x}/{0 if m.any else m.other}"
    if key.kind == "ternary":
        return f"{m.value:#x}&&&{0 if m.any else m.other:#x}"
    if key.kind == "optional":
        return f"{m.value:#x}&&&{0 if m.any else full:#x}"
    if key.kind == "range":
        return f"0x0->{full:#x}" if m.any else f"{m.value:#x}->{m.other:#x}"
    return f"{m.value:#x}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

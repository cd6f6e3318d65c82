"""Files over the kernel's TCP, between two processes on the loopback interface: what their records say, and in which order transfers go."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

import pytest

from fairlane.hosts.records import Clock
from fairlane.hosts.tcp_files import LINGERS_S, Host, Plan, Transfer
from tests.waiting import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
ADDRESS = {"a": "127.0.0.1", "b": "127.0.0.2"}
BYTES = 3_000_000


def free_ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.2", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def _when_read(fifo: Path, reader: subprocess.Popen[str]) -> TextIO:
    """For writing, once somebody reads."""

    def opened() -> TextIO | None:
        assert reader.poll() is None
        with contextlib.suppress(OSError):  # ENXIO: nobody yet
            return os.fdopen(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK), "w")
        return None

    found = until(opened)
    assert found is not None
    os.set_blocking(found.fileno(), True)  # a plan may be longer than what a pipe holds
    return found


class Both:
    """The plans of two hosts, and their processes."""

    def __init__(self, folder: Path, seconds: float = 3.0) -> None:
        self.folder = folder
        self.begin_s = time.time()
        self.end_s = self.begin_s + seconds
        self.transfers: dict[str, list[Transfer]] = {"a": [], "b": []}

    def add(self, name: str, sender: str, receiver: str, port: int, size: int, start_s: float = 0.0, **more: Any) -> None:
        for host, peer in ((sender, receiver), (receiver, sender)):
            more = {"stop_s": self.end_s, "mss": 1448, **more}
            own = {"name": name, "sends": host == sender, "local": ADDRESS[host], "peer": ADDRESS[peer], "port": port, "bytes": size}
            self.transfers[host].append(
                Transfer(**own, start_s=self.begin_s + start_s, congestion="cubic", packet_bytes=1500, **more)  # type: ignore[arg-type]
            )

    def start(self) -> list[subprocess.Popen[str]]:
        """All times move: the plan begins when both processes are there and read it, however long Python takes to start."""
        plans = {host: self.folder / f"files.{host}.json" for host in self.transfers}
        started = []
        for plan in plans.values():
            os.mkfifo(plan)
            command = [sys.executable, "-m", "fairlane.hosts.tcp_files", str(plan)]
            started.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
        opened = [_when_read(plan, process) for plan, process in zip(plans.values(), started, strict=True)]
        later_s = time.time() + 0.2 - self.begin_s
        self.begin_s, self.end_s = self.begin_s + later_s, self.end_s + later_s
        for transfers, plan in zip(self.transfers.values(), opened, strict=True):
            moved = [dataclasses.replace(t, start_s=t.start_s + later_s, stop_s=t.stop_s + later_s) for t in transfers]
            with plan:
                json.dump({"end_s": self.end_s + 0.3, "transfers": [dataclasses.asdict(t) for t in moved]}, plan)
        return started

    def run(self) -> list[str]:
        """What both said."""
        return [process.communicate(timeout=30)[1] for process in self.start()]

    def records(self, name: str, role: str) -> list[dict[str, Any]]:
        path = self.folder / f"{name}.{role}.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def wait_for(self, name: str, role: str, kind: str) -> None:
        path = self.folder / f"{name}.{role}.jsonl"
        until(lambda: path.exists() and f'"kind":"{kind}"' in path.read_text(), what=f"a record {kind} of {name}")

    @staticmethod
    def stop(processes: Sequence[subprocess.Popen[str]], pause_s: float = 0.0) -> None:
        """One after the other; none finds fault with that."""
        for process in processes:
            process.send_signal(signal.SIGTERM)
            time.sleep(pause_s)
        assert [(process.communicate(timeout=30)[1], process.returncode) for process in processes] == [("", 0), ("", 0)]

    def at(self, name: str, role: str, kind: str) -> float:
        return next(r["t"] for r in self.records(name, role) if r["kind"] == kind)


@pytest.fixture
def both(tmp_path: Path) -> Both:
    return Both(tmp_path)


def test_a_plan_reads_back(tmp_path: Path) -> None:
    both = Both(tmp_path)
    both.add("x", "a", "b", 1, 2, after=("y",), after_s=0.5)
    path = tmp_path / "p.json"
    path.write_text(json.dumps({"end_s": 5.0, "transfers": [dataclasses.asdict(t) for t in both.transfers["a"]]}))
    assert Plan.read(path) == Plan(5.0, tuple(both.transfers["a"]), tmp_path)


def test_a_file_arrives_and_both_ends_say_so(both: Both) -> None:
    (port,) = free_ports(1)
    both.add("file", "a", "b", port, BYTES, start_s=0.2)
    assert both.run() == ["", ""]
    sent, received = both.records("file", "sender"), both.records("file", "receiver")
    assert [r["kind"] for r in sent if r["kind"] != "sent"] == ["start", "first_data", "complete", "end"]
    assert 0 <= both.at("file", "sender", "start") - both.begin_s - 0.2 < 0.2
    assert next(r for r in sent if r["kind"] == "complete")["bytes"] == BYTES
    last = [r for r in sent if r["kind"] == "sent"][-1]
    assert last["sent_bytes"] >= BYTES and last["cwnd_bytes"] > 0 and 0 < last["rtt_s"] < 1
    # The intervals of the records, one behind the other, are the time from start to end.
    seconds = sum(r["seconds"] for r in sent if r["kind"] == "sent")
    assert seconds == pytest.approx(both.at("file", "sender", "complete") - both.at("file", "sender", "start"), abs=2e-3)
    assert sum(r["payload_bytes"] for r in received if r["kind"] == "data") == BYTES
    assert next(r for r in received if r["kind"] == "delivered")["bytes"] == BYTES
    assert both.at("file", "receiver", "delivered") <= both.at("file", "sender", "complete") + 1e-3


def test_transfers_wait_for_each_other_and_answers_share_a_connection(both: Both) -> None:
    ports = free_ports(4)
    both.add("ask", "a", "b", ports[0], 100, answered=True)
    both.add("answer", "b", "a", ports[1], 200_000, after=("ask",), after_s=0.1, answers=True)
    both.add("next", "a", "b", ports[2], 100, after=("answer",), after_s=0.2)
    both.add("also", "a", "b", ports[3], 5_000, start_s=1.5, after=("next", "ask"))
    assert both.run() == ["", ""]
    asked, answered = both.at("ask", "receiver", "delivered"), both.at("answer", "receiver", "delivered")
    assert both.at("ask", "sender", "complete") >= both.at("ask", "sender", "first_data")
    assert 0.1 <= both.at("answer", "sender", "start") - asked < 0.3
    assert both.at("answer", "sender", "first_data") - both.at("answer", "sender", "start") < 0.01
    assert 0.2 <= both.at("next", "sender", "start") - answered < 0.4
    assert 1.5 <= both.at("also", "sender", "start") - both.begin_s < 1.7
    assert all(both.at(name, "sender", "complete") for name in ("answer", "next", "also"))


def test_a_transfer_that_has_to_stop_is_not_complete(both: Both) -> None:
    ports = free_ports(2)
    both.add("long", "a", "b", ports[0], 10**12, stop_s=both.begin_s + 0.5)
    both.add("after", "b", "a", ports[1], 100, after=("long",))
    both.run()
    kinds = [r["kind"] for r in both.records("long", "sender")]
    assert "complete" not in kinds and kinds[-1] == "end" and both.records("after", "sender") == []
    # Data as fast as memory can copy it does not keep the sender from its clock.
    assert 0.0 <= both.at("long", "sender", "end") - both.begin_s - 0.5 < 0.2


@pytest.mark.parametrize("sends", [True, False])
def test_a_socket_that_never_waits_delays_neither_a_stop_nor_a_sample(tmp_path: Path, sends: bool) -> None:
    """asyncio's calls return without a turn of the loop where the socket takes, or has, everything at once."""
    (port,) = free_ports(1)
    begin_s = time.time() + 0.1
    stop_s = begin_s + 0.5
    own, peer = (ADDRESS["a"], ADDRESS["b"]) if sends else (ADDRESS["b"], ADDRESS["a"])
    transfer = Transfer("long", sends, own, peer, port, 10**15, begin_s, stop_s - (0.0 if sends else LINGERS_S), "cubic", 1500, 1448)
    host = Host(Plan(stop_s + 5.0, (transfer,), tmp_path), Clock())

    async def main() -> None:
        loop = asyncio.get_running_loop()

        async def at_once(connection: socket.socket, part: Any) -> int:
            assert time.time() < stop_s + 3.0, "it had to stop long ago"
            return len(part)

        loop.sock_sendall = loop.sock_recv_into = at_once  # type: ignore[method-assign, assignment]
        asked = asyncio.Event()
        with socket.create_server((peer, port)) if sends else contextlib.nullcontext():
            running = asyncio.create_task(host.run(asked))
            if not sends:
                await asyncio.sleep(0.05)  # it listens
                connection = socket.create_connection((own, port))
            await asyncio.sleep(stop_s + 0.2 - time.time())
            asked.set()
            await running
            if not sends:
                connection.close()

    asyncio.run(main())
    assert host.faults == []
    role = "sender" if sends else "receiver"
    records = [json.loads(line) for line in (tmp_path / f"long.{role}.jsonl").read_text().splitlines()]
    assert records[-1]["kind"] == "end" and 0.0 <= records[-1]["t"] - stop_s < 0.2
    assert len([r for r in records if r["kind"] in ("sent", "data")]) >= 4, records  # one each 0.1 s


def test_many_at_once_are_one_process(tmp_path: Path) -> None:
    both = Both(tmp_path, seconds=100.0)
    for n, port in enumerate(free_ports(200)):
        both.add(f"f{n}", "a", "b", port, 20_000, start_s=0.5)
    processes = both.start()
    for n in range(200):
        both.wait_for(f"f{n}", "sender", "end")
    both.stop(processes)
    assert all(both.at(f"f{n}", "sender", "complete") for n in range(200))


def test_a_host_that_nobody_listens_on_is_said_and_hurts_no_other(both: Both) -> None:
    ports = free_ports(2)
    both.add("good", "a", "b", ports[0], 1000)
    both.add("bad", "a", "b", ports[1], 1000, stop_s=both.begin_s + 20.0)
    both.end_s += 10.0
    both.transfers["b"].pop()
    said, _ = both.run()
    assert "fairlane.hosts.tcp_files: bad: Connection refused" in said or "bad:" in said
    assert both.at("good", "sender", "complete")


@pytest.mark.parametrize("pause_s", [0.0, 0.5])
@pytest.mark.parametrize("first", ["a", "b"])
def test_it_ends_when_it_is_asked_to(both: Both, first: str, pause_s: float) -> None:
    (port,) = free_ports(1)
    both.end_s += 60
    both.add("long", "a", "b", port, 10**12, stop_s=both.end_s)
    processes = both.start()
    both.wait_for("long", "receiver", "data")
    both.stop(processes if first == "a" else processes[::-1], pause_s)
    assert [r["kind"] for r in both.records("long", "sender")][-1] == "end"


def test_a_peer_that_goes_as_this_end_is_asked_to_is_no_fault(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    begin_s = time.time() + 0.1
    transfer = Transfer("long", True, ADDRESS["a"], ADDRESS["b"], port, 10**15, begin_s, begin_s + 100, "cubic", 1500, 1448)
    host = Host(Plan(begin_s + 100, (transfer,), tmp_path), Clock())

    async def main() -> None:
        asked = asyncio.Event()
        with socket.create_server((ADDRESS["b"], port)) as server:
            running = asyncio.create_task(host.run(asked))
            accepted, _ = await asyncio.get_running_loop().run_in_executor(None, server.accept)
            await asyncio.sleep(0.3)  # the sender waits for room
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            accepted.close()
            time.sleep(0.05)  # one turn of the loop sees both
            asked.set()
            await running

    asyncio.run(main())
    assert host.faults == []


def test_an_end_whose_peer_goes_away_says_so(both: Both) -> None:
    (port,) = free_ports(1)
    both.end_s += 3
    both.add("long", "a", "b", port, 10**12)
    sender, receiver = both.start()
    both.wait_for("long", "receiver", "data")
    receiver.kill()
    receiver.communicate()
    said = sender.communicate(timeout=30)[1]
    assert re.fullmatch(r"fairlane.hosts.tcp_files: long: (Connection reset by peer|Broken pipe)\n", said) and sender.returncode == 1
    assert both.at("long", "sender", "end") < both.end_s - 0.5

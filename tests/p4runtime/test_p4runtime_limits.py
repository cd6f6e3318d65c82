"""What a client may take of the switch's memory: each limit is an option, and a client that meets it is told, or loses what is its own."""

from __future__ import annotations

import contextlib
import json
import queue
import resource
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import grpc
import pytest
from finsy.proto import U128, p4d, p4r

from fairlane import probes

BENCH = probes.ROOT / "bench"
sys.path.insert(0, str(BENCH))

from hostile_clients import RawHttp2
from tests.p4runtime import support
from tests.p4runtime.support import Client, Names, Program, exact, number, refused

pytestmark = pytest.mark.skipif(support.is_reference(), reason="BMv2 has no such limits")

EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return support.compile_program(support.PROGRAM, tmp_path_factory.mktemp("p4runtime"))


@pytest.fixture(scope="module")
def names(program: Program) -> Names:
    return Names(program.info())


def frame(source: int, payload: bytes = b"") -> bytes:
    return b"\xff" * 6 + source.to_bytes(6, "big") + b"\x12\x34" + payload


def packet_out(payload: bytes, port: int, *, submit: bool = False) -> p4r.PacketOut:
    values = ((1, port), (2, int(submit)), (3, 0))
    return p4r.PacketOut(payload=payload, metadata=[p4r.PacketMetadata(metadata_id=i, value=number(value)) for i, value in values])


def l2_entry(names: Names, address: int) -> p4r.TableEntry:
    action = p4r.TableAction(action=names.action("l2_forward", 1))
    return p4r.TableEntry(table_id=names["l2"], match=[exact(1, address)], action=action)


def test_message_size(program: Program) -> None:
    """A longer request is refused, a longer message ends its stream; the connection and the others go on."""
    with support.switch(options=["--grpc-server-max-message", "100000"]) as address, Client(address) as client:
        long = program.config()
        long.p4_device_config += b" " * 100_000
        message = refused(EXHAUSTED, lambda: client.push(long), "the limit is: 100000 bytes", "--grpc-server-max-message")
        assert "too long" in message
        client.push(program.config())
        with Client(address, election_id=9) as other:
            other.stream.send(packet=packet_out(b"x" * 100_000, 1))
            error = other.stream.receive("end")
            assert error.code() == EXHAUSTED and "--grpc-server-max-message" in error.details()
        client.stream.arbitrate(10)
        assert client.config().config.p4_device_config == program.json.read_bytes()


def test_table_entries(program: Program, names: Names) -> None:
    """Below the size that the program declares, which is 64."""
    with support.switch(options=["--max-table-entries", "5"]) as address, Client(address) as client:
        client.push(program.config())
        client.insert(*(l2_entry(names, i) for i in range(5)))
        refused(EXHAUSTED, lambda: client.insert(l2_entry(names, 5)), "l2", "holds 5 entries", "--max-table-entries")
        refused(grpc.StatusCode.ALREADY_EXISTS, lambda: client.insert(l2_entry(names, 4)))
        client.modify(l2_entry(names, 4))
        client.delete(l2_entry(names, 4))
        client.insert(l2_entry(names, 5))
        # Of a batch, what finds room is in.
        with pytest.raises(grpc.RpcError) as caught:
            client.updates((support.INSERT, l2_entry(names, 6)), (support.DELETE, l2_entry(names, 0)), (support.INSERT, l2_entry(names, 7)))
        assert [error.canonical_code for error in support.details(caught.value)] == [EXHAUSTED.value[0], 0, 0]
        assert len(client.read(p4r.TableEntry(table_id=names["l2"]))) == 5


def test_streams() -> None:
    """A stream more is refused, whoever asks; one that ends makes room."""
    with (
        support.switch(options=["--grpc-server-max-streams", "2"]) as address,
        Client(address, election_id=1) as first,
        Client(address, election_id=2) as second,
    ):
        with Client(address, open_stream=False) as third:
            refused_stream = support.Stream(third.stub)
            error = refused_stream.receive("end")
            assert error.code() == EXHAUSTED
            assert "2 streams are open" in error.details() and "--grpc-server-max-streams" in error.details()
            # Requests need no stream.
            assert third.stub.Capabilities(p4r.CapabilitiesRequest(), timeout=10).p4runtime_api_version
        second.stream.close()
        # Its end reaches the switch in its own time.
        assert first.stream.receive("arbitration").status.code != 0
        with Client(address, election_id=3) as third:
            assert third.first.status.code == 0


def test_digest_backlog(program: Program, names: Names) -> None:
    """Of four lists that nobody acknowledges three are remembered: what was in the first is told again."""
    with support.switch(options=["--max-digest-backlog", "3"]) as address, Client(address) as client:
        client.push(program.config())
        config = p4r.DigestEntry.Config(max_timeout_ns=0, max_list_size=1, ack_timeout_ns=10**12)
        client.insert(p4r.DigestEntry(digest_id=names["learned_t"], config=config))

        def learn(source: int) -> None:
            client.stream.send(packet=packet_out(frame(source), 3, submit=True))

        def learned() -> int:
            (data,) = client.stream.receive("digest").data
            return int.from_bytes(data.struct.members[0].bitstring, "big")

        for source in (1, 2, 3):
            learn(source)
            assert learned() == source
        learn(1)
        client.stream.nothing("digest")
        learn(4)
        assert learned() == 4
        learn(3)
        client.stream.nothing("digest")
        learn(1)
        assert learned() == 1


def test_digest_lists_are_no_longer_than_the_backlog(program: Program, names: Names) -> None:
    with support.switch(options=["--max-digest-backlog", "3"]) as address, Client(address) as client:
        client.push(program.config())
        config = p4r.DigestEntry.Config(max_timeout_ns=10**12, max_list_size=1000, ack_timeout_ns=0)
        client.insert(p4r.DigestEntry(digest_id=names["learned_t"], config=config))
        for source in range(3):
            client.stream.send(packet=packet_out(frame(source), 3, submit=True))
        assert len(client.stream.receive("digest").data) == 3


def test_messages_that_wait_for_a_client(program: Program) -> None:
    """Of 6 MB for a client that does not read, what the connection holds and 16 messages arrive in the end; the rest is lost."""
    with support.switch(options=["--grpc-server-max-queue", "16"]) as address, Client(address, open_stream=False) as sleeper:
        requests: queue.SimpleQueue = queue.SimpleQueue()
        call = sleeper.stub.StreamChannel(iter(requests.get, None))
        requests.put(
            p4r.StreamMessageRequest(arbitration=p4r.MasterArbitrationUpdate(device_id=support.DEVICE_ID, election_id=U128.encode(1)))
        )
        assert next(call).arbitration.status.code == 0
        sleeper.push(program.config())
        sent = 600
        for index in range(sent):
            requests.put(p4r.StreamMessageRequest(packet=packet_out(frame(index, b"x" * 10_000), support.CPU_PORT)))
        # Once the last has gone through the switch, another request has been answered behind it.
        deadline = time.monotonic() + 60
        while requests.qsize() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert requests.qsize() == 0
        sleeper.stub.Capabilities(p4r.CapabilitiesRequest(), timeout=10)
        arrived: queue.SimpleQueue = queue.SimpleQueue()

        def read() -> None:
            with contextlib.suppress(grpc.RpcError):
                for response in call:
                    arrived.put(response)

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        received = 0
        with contextlib.suppress(queue.Empty):
            while arrived.get(timeout=3).WhichOneof("update") == "packet":
                received += 1
        call.cancel()
        reader.join(10)
        assert 16 <= received < sent


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """With a register of 65,536 cells, whose answer is 1.5 MB."""
    return support.compile_program(BENCH / "control.p4", tmp_path_factory.mktemp("large"))


def unread(address: str, request: p4r.ReadRequest, count: int) -> list[RawHttp2]:
    """Reads of which nobody takes anything, each on a connection of its own."""
    host, port = address.split(":")
    connections = [RawHttp2(socket.create_connection((host, int(port)))) for _ in range(count)]
    for connection in connections:
        connection.call("Read", request.SerializeToString())
    return connections


def test_a_read_goes_on_at_its_clients_pace_beyond_the_budget(large: Program) -> None:
    with support.switch(options=["--grpc-server-max-read-bytes", "1"]) as address, Client(address) as client:
        client.push(large.config())
        cells = client.read(p4r.RegisterEntry())
        assert [cell.index.index for cell in cells] == list(range(65_536))


def test_a_write_does_not_wait_for_those_who_do_not_read(large: Program) -> None:
    """Beyond their budget unread reads hold a write up for a second, and then end. The client's own next read is whole."""
    names = Names(large.info())
    with support.switch(options=["--grpc-server-max-read-bytes", "100000"]) as address, Client(address) as client:
        client.push(large.config())
        request = p4r.ReadRequest(device_id=support.DEVICE_ID, entities=[support.wrap(p4r.RegisterEntry())])
        connections = unread(address, request, 5)
        # They have begun, so that the write comes after them.
        time.sleep(0.5)
        begin = time.monotonic()
        client.modify(p4r.RegisterEntry(register_id=names["seen"], index=p4r.Index(index=7), data=p4d.P4Data(bitstring=b"\x05")))
        assert 0.5 < time.monotonic() - begin < 3
        assert client.read(p4r.RegisterEntry(register_id=names["seen"], index=p4r.Index(index=7)))[0].data.bitstring == b"\x05"
        for connection in connections:
            connection.close()


def test_a_read_too_many_ends_one_that_nobody_takes(large: Program) -> None:
    with support.switch(options=["--grpc-server-max-reads", "3"]) as address, Client(address) as client:
        client.push(large.config())
        request = p4r.ReadRequest(device_id=support.DEVICE_ID, entities=[support.wrap(p4r.RegisterEntry())])
        # All at once, before anybody is found to take nothing: what finds no room for a second is refused.
        connections = unread(address, request, 3)
        assert len(client.read(p4r.RegisterEntry())) == 65_536
        for connection in connections:
            connection.close()


def test_arrays_of_a_program_have_a_budget_together(large: Program, tmp_path: Path) -> None:
    """For P4Runtime and for a program of the command line."""
    json_text = json.loads(large.json.read_text())
    (counter,) = json_text["counter_arrays"]
    json_text["counter_arrays"] += [{**counter, "name": f"more_{i}", "id": 1000 + i, "size": 1 << 24} for i in range(20)]
    config = large.config()
    config.p4_device_config = json.dumps(json_text).encode()
    with support.switch() as address, Client(address) as client:
        refused(EXHAUSTED, lambda: client.push(config), "more_", "make arrays smaller")
        client.push(large.config())
    (tmp_path / "large.json").write_bytes(config.p4_device_config)
    switch = support.tool("fairlane-switch", "FAIRLANE_SWITCH")
    done = subprocess.run([switch, str(tmp_path / "large.json")], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "make arrays smaller" in done.stderr, done


def test_no_lack_of_memory_ends_the_switch(large: Program) -> None:
    """Within the budget, and beyond what the system gives: the push is refused, and the switch goes on."""
    json_text = json.loads(large.json.read_text())
    (counter,) = json_text["counter_arrays"]
    json_text["counter_arrays"] += [{**counter, "name": f"more_{i}", "id": 1000 + i, "size": 1 << 24} for i in range(3)]
    config = large.config()
    config.p4_device_config = json.dumps(json_text).encode()

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    with support.switch(before=limit) as address, Client(address) as client:
        client.push(large.config())
        refused(EXHAUSTED, lambda: client.push(config), "not enough memory")
        client.push(large.config())

"""Sessions with a real switch over gRPC: arbitration, pipelines, packet I/O, digests, capabilities, and how the server ends."""

from __future__ import annotations

import itertools
import queue
import socket
import subprocess
import threading
import time
from collections.abc import Iterator

import grpc
import pytest
from finsy.proto import U128, p4d, p4r, rpc_code

from tests.p4runtime import support
from tests.p4runtime.support import Client, Names, Program, exact, lpm, number, refused

Code = grpc.StatusCode
ELECTION_IDS = itertools.count(100)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return support.compile_program(support.PROGRAM, tmp_path_factory.mktemp("p4runtime"))


@pytest.fixture(scope="module")
def names(program: Program) -> Names:
    return Names(program.info())


@pytest.fixture
def address() -> Iterator[str]:
    with support.switch() as address:
        yield address


@pytest.fixture(scope="module")
def shared() -> Iterator[str]:
    """A switch for tests that leave nothing behind that matters."""
    with support.switch() as address:
        yield address


@pytest.fixture
def client(shared: str, program: Program) -> Iterator[Client]:
    with Client(shared, election_id=next(ELECTION_IDS)) as primary:
        primary.push(program.config())
        yield primary


def outcome(update: p4r.MasterArbitrationUpdate) -> tuple[int, int | None]:
    """Code and election id of a notification."""
    return update.status.code, U128.decode(update.election_id) if update.HasField("election_id") else None


OK, BACKUP, NO_PRIMARY = rpc_code.OK, rpc_code.ALREADY_EXISTS, rpc_code.NOT_FOUND


class TestArbitration:
    def test_the_highest_id_is_primary_and_all_hear_of_it(self, address: str) -> None:
        with Client(address, election_id=5) as first:
            assert outcome(first.first) == (OK, 5)
            with Client(address, election_id=3) as second:
                assert outcome(second.first) == (BACKUP, 5)
                first.stream.nothing("arbitration")
                with Client(address, election_id=1 << 64) as third:
                    assert outcome(third.first) == (OK, 1 << 64)
                    assert outcome(first.stream.receive("arbitration")) == (BACKUP, 1 << 64)
                    assert outcome(second.stream.receive("arbitration")) == (BACKUP, 1 << 64)
                # The primary is gone; the highest id seen stays, and nobody takes over by himself.
                if not support.is_reference():
                    assert outcome(first.stream.receive("arbitration")) == (NO_PRIMARY, 1 << 64)
                    assert outcome(second.stream.receive("arbitration")) == (NO_PRIMARY, 1 << 64)
                    first.stream.arbitrate((1 << 64) - 1)
                    assert outcome(first.stream.receive("arbitration")) == (NO_PRIMARY, 1 << 64)
                second.stream.arbitrate((1 << 64) + 1)
                assert outcome(second.stream.receive("arbitration")) == (OK, (1 << 64) + 1)

    def test_only_the_primary_writes(self, address: str, program: Program, names: Names) -> None:
        drop = p4r.TableEntry(
            table_id=names["routes"],
            is_default_action=True,
            action=p4r.TableAction(action=names.action("EntitiesIngress.drop")),
        )
        with Client(address, election_id=2) as primary, Client(address, election_id=1) as backup:
            refused(Code.PERMISSION_DENIED, lambda: backup.push(program.config()), "not primary")
            refused(Code.FAILED_PRECONDITION, lambda: primary.modify(drop), "SetForwardingPipelineConfig")
            primary.push(program.config())
            refused(Code.PERMISSION_DENIED, lambda: backup.modify(drop), "election id 1", "has 2")
            primary.modify(drop)
            # Anyone may read, without a stream too.
            with Client(address, open_stream=False) as reader:
                assert reader.read(p4r.TableEntry(table_id=names["routes"], is_default_action=True)) == [drop]
                if not support.is_reference():
                    reader.election_id = None
                    refused(Code.PERMISSION_DENIED, lambda: reader.modify(drop))
            # The primary steps down.
            primary.stream.arbitrate(1 + 2**100)
            primary.stream.receive("arbitration")
            refused(Code.PERMISSION_DENIED, lambda: primary.modify(drop))
            primary.election_id = 1 + 2**100
            primary.modify(drop)

    @pytest.mark.skipif(support.is_reference(), reason="PI elects the best that is left")
    def test_stepping_down(self, address: str) -> None:
        with Client(address, election_id=9) as primary, Client(address, election_id=8) as backup:
            backup.stream.nothing("arbitration", 0.05)
            primary.stream.arbitrate(7)
            assert outcome(primary.stream.receive("arbitration")) == (NO_PRIMARY, 9)
            assert outcome(backup.stream.receive("arbitration")) == (NO_PRIMARY, 9)

    def test_ids_that_never_win(self, address: str) -> None:
        with Client(address, election_id=None) as observer:
            assert observer.first.status.code != OK or support.is_reference()
            with Client(address, election_id=1) as primary:
                assert outcome(primary.first) == (OK, 1)
        if not support.is_reference():
            with Client(address, election_id=0) as zero:
                assert zero.first.status.code != OK

    def test_streams_that_are_closed(self, address: str) -> None:
        with Client(address, election_id=1) as first, Client(address, election_id=None, open_stream=False) as other:
            stream = support.Stream(other.stub)
            stream.arbitrate(1)
            assert stream.receive("end").code() == Code.INVALID_ARGUMENT
            if support.is_reference():
                return
            stream = support.Stream(other.stub)
            stream.arbitrate(4, device_id=77)
            error = stream.receive("end")
            assert error.code() == Code.NOT_FOUND
            assert "device id 1" in error.details()
            first.stream.arbitrate(1, role="other")
            assert first.stream.receive("end").code() == Code.FAILED_PRECONDITION

    @pytest.mark.skipif(support.is_reference(), reason="PI has no roles by name")
    def test_roles_are_apart(self, address: str, program: Program) -> None:
        with Client(address, election_id=5) as main, Client(address, election_id=5, role="telemetry") as telemetry:
            assert telemetry.first.role.name == "telemetry"
            assert telemetry.first.status.code == OK
            main.stream.nothing("arbitration", 0.05)
            telemetry.push(program.config())
            telemetry.role = "nobody"
            refused(Code.NOT_FOUND, lambda: telemetry.push(program.config()), "nobody")


class TestPipelines:
    def test_what_was_pushed_comes_back(self, client: Client, program: Program) -> None:
        config = program.config(cookie=0xABCD)
        client.push(config)
        assert client.config().config == config
        assert client.config("COOKIE_ONLY").config == p4r.ForwardingPipelineConfig(cookie=config.cookie)
        assert client.config("P4INFO_AND_COOKIE").config == p4r.ForwardingPipelineConfig(cookie=config.cookie, p4info=config.p4info)
        assert client.config("DEVICE_CONFIG_AND_COOKIE").config.p4_device_config == config.p4_device_config

    @pytest.mark.skipif(support.is_reference(), reason="PI answers FAILED_PRECONDITION")
    def test_nothing_pushed_yet(self, address: str) -> None:
        with Client(address, election_id=1) as client:
            assert not client.config().HasField("config")
            refused(Code.FAILED_PRECONDITION, lambda: client.read(p4r.TableEntry()))

    def test_verify_changes_nothing(self, client: Client, program: Program, names: Names) -> None:
        client.push(program.config(cookie=1))
        client.insert(p4r.MulticastGroupEntry(multicast_group_id=1))
        client.push(program.config(cookie=2), "VERIFY")
        assert client.config("COOKIE_ONLY").config.cookie.cookie == 1
        assert len(client.read(p4r.MulticastGroupEntry())) == 1
        client.push(program.config(cookie=3))
        assert client.read(p4r.MulticastGroupEntry()) == []

    @pytest.mark.skipif(support.is_reference(), reason="BMv2 exits on bad JSON or answers UNKNOWN")
    def test_bad_configs(self, client: Client, program: Program) -> None:
        good = program.config(cookie=1)
        client.push(good)

        def bad(change, *words: str, action: str = "VERIFY_AND_COMMIT") -> None:
            config = program.config(cookie=9)
            change(config)
            refused(Code.INVALID_ARGUMENT, lambda: client.push(config, action), *words)

        def cut(config: p4r.ForwardingPipelineConfig) -> None:
            config.p4_device_config = config.p4_device_config[: len(config.p4_device_config) // 2]

        def widen(config: p4r.ForwardingPipelineConfig) -> None:
            table = next(table for table in config.p4info.tables if table.preamble.alias == "routes")
            table.match_fields[0].bitwidth = 33

        def rename(config: p4r.ForwardingPipelineConfig) -> None:
            config.p4info.actions[0].preamble.name = "EntitiesIngress.other"

        def resize(config: p4r.ForwardingPipelineConfig) -> None:
            config.p4info.registers[0].size = 17

        for action in ("VERIFY", "VERIFY_AND_SAVE", "VERIFY_AND_COMMIT", "RECONCILE_AND_COMMIT"):
            bad(cut, "p4_device_config", "line", "column", action=action)
        bad(widen, "EntitiesIngress.routes", "hdr.ipv4.dst", "33 bits", "32 bits")
        bad(rename, "EntitiesIngress.other", "not in the BMv2 JSON")
        bad(resize, "last_source", "17 cells", "16")
        bad(lambda config: config.ClearField("p4info"), "p4info is not set")
        bad(lambda config: config.ClearField("p4_device_config"), "p4_device_config is empty")
        bad(lambda config: setattr(config, "p4_device_config", b"\xff\xfe"), "not text")
        bad(lambda config: setattr(config, "p4_device_config", b"{}"), "p4_device_config")
        refused(Code.INVALID_ARGUMENT, lambda: client.push(None), "config is not set")
        refused(Code.INVALID_ARGUMENT, lambda: client.push(good, "UNSPECIFIED"), "action")
        assert client.config().config == good

    @pytest.mark.skipif(support.is_reference(), reason="BMv2 swaps at the end of a packet")
    def test_save_then_commit(self, client: Client, program: Program, names: Names) -> None:
        refused(Code.NOT_FOUND, lambda: client.push(None, "COMMIT"), "VERIFY_AND_SAVE")
        client.insert(p4r.MulticastGroupEntry(multicast_group_id=1))
        client.push(program.config(cookie=5), "VERIFY_AND_SAVE")
        # Writes now go to the saved config, which is empty, and are replayed at COMMIT.
        assert client.read(p4r.MulticastGroupEntry()) == []
        client.insert(p4r.MulticastGroupEntry(multicast_group_id=2), member(names, 1), balance(names))
        refused(Code.INVALID_ARGUMENT, lambda: client.push(program.config(), "COMMIT"), "must not be set")
        client.push(None, "COMMIT")
        assert [group.multicast_group_id for group in client.read(p4r.MulticastGroupEntry())] == [2]
        assert client.read(p4r.TableEntry(table_id=names["balance"])) == [balance(names)]
        assert client.config("COOKIE_ONLY").config.cookie.cookie == 5
        refused(Code.NOT_FOUND, lambda: client.push(None, "COMMIT"))

    @pytest.mark.skipif(support.is_reference(), reason="PI replays less of the state")
    def test_reconcile_keeps_the_state(self, client: Client, program: Program, names: Names) -> None:
        drop = p4r.TableEntry(
            table_id=names["routes"],
            is_default_action=True,
            action=p4r.TableAction(action=names.action("EntitiesIngress.drop")),
        )
        entry = p4r.TableEntry(
            table_id=names["l2"],
            match=[exact(1, 5)],
            action=p4r.TableAction(action=names.action("l2_forward", 3)),
            counter_data=p4r.CounterData(packet_count=4),
            metadata=b"m",
            idle_timeout_ns=10**12,
        )
        cell = p4r.CounterEntry(
            counter_id=names["port_packets"], index=p4r.Index(index=2), data=p4r.CounterData(byte_count=10, packet_count=1)
        )
        register = p4r.RegisterEntry(register_id=names["last_source"], index=p4r.Index(index=2), data=p4d.P4Data(bitstring=b"\x33"))
        session = p4r.CloneSessionEntry(session_id=3, replicas=[p4r.Replica(port=b"\1")])
        digest = p4r.DigestEntry(digest_id=names["learned_t"], config=p4r.DigestEntry.Config(max_list_size=4, max_timeout_ns=7))
        client.insert(entry, session, digest, member(names, 1), balance(names), p4r.MulticastGroupEntry(multicast_group_id=9))
        client.modify(drop, cell, register)
        everything = (
            p4r.TableEntry(counter_data=p4r.CounterData()),
            p4r.TableEntry(table_id=names["routes"], is_default_action=True),
            p4r.CounterEntry(),
            p4r.RegisterEntry(),
            p4r.DigestEntry(),
            p4r.CloneSessionEntry(),
            p4r.MulticastGroupEntry(),
            p4r.ActionProfileMember(),
        )
        before = [client.read(request) for request in everything]
        # Another program in the eyes of the switch: the same with a blank more.
        config = program.config(cookie=6)
        config.p4_device_config += b"\n"
        client.push(config, "RECONCILE_AND_COMMIT")
        assert [client.read(request) for request in everything] == before
        assert client.config("COOKIE_ONLY").config.cookie.cookie == 6
        # A program without the table cannot keep its entries: refused, and nothing has changed.
        config.p4info.tables.remove(next(table for table in config.p4info.tables if table.preamble.alias == "l2"))
        refused(Code.INVALID_ARGUMENT, lambda: client.push(config, "RECONCILE_AND_COMMIT"), "does not fit")
        assert [client.read(request) for request in everything] == before

    @pytest.mark.skipif(support.is_reference(), reason="PI does not check device ids")
    def test_another_device(self, client: Client) -> None:
        request = p4r.GetForwardingPipelineConfigRequest(device_id=9)
        refused(Code.NOT_FOUND, lambda: client.stub.GetForwardingPipelineConfig(request, timeout=5), "device id 1")
        refused(Code.NOT_FOUND, lambda: list(client.stub.Read(p4r.ReadRequest(device_id=9), timeout=5)))
        refused(Code.NOT_FOUND, lambda: client.stub.Write(p4r.WriteRequest(device_id=9), timeout=5))
        refused(Code.NOT_FOUND, lambda: client.stub.Capabilities(p4r.CapabilitiesRequest(device_id=9), timeout=5))


def member(names: Names, member_id: int) -> p4r.ActionProfileMember:
    return p4r.ActionProfileMember(action_profile_id=names["spread"], member_id=member_id, action=names.action("set_nexthop", 1, 1))


def balance(names: Names) -> p4r.TableEntry:
    return p4r.TableEntry(table_id=names["balance"], match=[lpm(1, 0x0A000000, 8)], action=p4r.TableAction(action_profile_member_id=1))


def frame(source: int, target: int = 0xFFFFFFFFFFFF, kind: int = 0x1234, payload: bytes = b"payload") -> bytes:
    return target.to_bytes(6, "big") + source.to_bytes(6, "big") + kind.to_bytes(2, "big") + payload


def packet_out(payload: bytes, port: int, *, submit: bool = False) -> p4r.PacketOut:
    metadata = [p4r.PacketMetadata(metadata_id=index, value=number(value)) for index, value in ((1, port), (2, int(submit)), (3, 0))]
    return p4r.PacketOut(payload=payload, metadata=metadata)


class TestPackets:
    def test_out_and_in(self, client: Client) -> None:
        # Out by the CPU port itself, so that it comes back.
        client.stream.send(packet=packet_out(frame(1), support.CPU_PORT))
        packet = client.stream.receive("packet")
        assert packet.payload == frame(1)
        values = {item.metadata_id: item.value for item in packet.metadata}
        assert values == {1: number(support.CPU_PORT), 2: b"\5"}

    def test_through_the_tables(self, client: Client, names: Names) -> None:
        client.insert(
            p4r.TableEntry(
                table_id=names["l2"],
                match=[exact(1, 0xAA)],
                action=p4r.TableAction(action=names.action("l2_forward", support.CPU_PORT)),
            )
        )
        client.stream.send(packet=packet_out(frame(7, 0xAA), 4, submit=True))
        packet = client.stream.receive("packet")
        assert (packet.payload, packet.metadata[0].value) == (frame(7, 0xAA), b"\4")
        (direct,) = client.read(p4r.DirectCounterEntry(table_entry=p4r.TableEntry(table_id=names["l2"])))
        assert direct.data.packet_count == 1
        (cell,) = client.read(p4r.CounterEntry(counter_id=names["port_packets"], index=p4r.Index(index=4)))
        assert cell.data.packet_count == 1
        if not support.is_reference():
            (cell,) = client.read(p4r.RegisterEntry(register_id=names["last_source"], index=p4r.Index(index=4)))
            assert cell.data.bitstring == b"\7"

    def test_copies(self, client: Client, names: Names) -> None:
        """A multicast group and a clone session, both to the CPU port."""
        to_cpu = [p4r.Replica(port=number(support.CPU_PORT), instance=instance) for instance in (1, 2)]
        client.insert(p4r.MulticastGroupEntry(multicast_group_id=1, replicas=to_cpu))
        client.insert(p4r.CloneSessionEntry(session_id=8, replicas=to_cpu[:1]))
        client.insert(
            p4r.TableEntry(
                table_id=names["routes"],
                match=[lpm(1, 0x0A000000, 8)],
                action=p4r.TableAction(action=names.action("multicast", 1)),
            )
        )
        ip = bytes.fromhex("45000014000000004011000001020304") + bytes([10, 0, 0, 1])
        client.stream.send(packet=packet_out(frame(1, kind=0x0800, payload=ip), 2, submit=True))
        assert {client.stream.receive("packet").payload for _ in range(2)} == {frame(1, kind=0x0800, payload=ip)}
        client.stream.nothing("packet", 0.2)
        client.insert(
            p4r.TableEntry(
                table_id=names["acl"],
                match=[exact(4, 2)],
                priority=1,
                action=p4r.TableAction(action=names.action("mirror", 8)),
            )
        )
        client.stream.send(packet=packet_out(frame(1, kind=0x0800, payload=ip), 2, submit=True))
        for _ in range(3):
            client.stream.receive("packet")
        client.stream.nothing("packet", 0.2)

    def test_order_and_many(self, client: Client) -> None:
        for index in range(500):
            client.stream.send(packet=packet_out(frame(index), support.CPU_PORT))
        assert [client.stream.receive("packet").payload for _ in range(500)] == [frame(index) for index in range(500)]

    @pytest.mark.skipif(support.is_reference(), reason="PI reports other codes, or none")
    def test_refusals(self, client: Client, program: Program) -> None:
        good = packet_out(frame(1), support.CPU_PORT)

        def refused_packet(code: Code, *words: str, stream: support.Stream = client.stream, **change: object) -> None:
            packet = p4r.PacketOut()
            packet.CopyFrom(good)
            for index, value in change.get("values", {}).items():
                packet.metadata[index].value = value
            if "drop" in change:
                del packet.metadata[change["drop"]]
            stream.send(packet=packet)
            error = stream.receive("error")
            assert error.canonical_code == code.value[0], error
            assert error.packet_out.packet_out == packet
            for word in words:
                assert word in error.message

        refused_packet(Code.INVALID_ARGUMENT, "port", "10 bits", "9 bits", values={0: b"\2\0"})
        refused_packet(Code.INVALID_ARGUMENT, "submit_to_ingress", "empty", values={1: b""})
        refused_packet(Code.INVALID_ARGUMENT, "padding", "missing", drop=2)
        with Client(client.address, election_id=1) as backup:
            refused_packet(Code.PERMISSION_DENIED, "primary", stream=backup.stream)
            backup.stream.nothing("packet", 0.05)
        client.stream.nothing("packet", 0.1)

    @pytest.mark.skipif(support.is_reference(), reason="BMv2 drops such packets without a word")
    def test_no_cpu_port(self, program: Program) -> None:
        with support.switch(cpu_port=None) as address, Client(address) as client:
            client.push(program.config())
            client.stream.send(packet=packet_out(frame(1), 1))
            error = client.stream.receive("error")
            assert error.canonical_code == Code.FAILED_PRECONDITION.value[0]
            assert "--cpu-port" in error.message


class TestDigests:
    def enable(self, client: Client, names: Names, **config: int) -> None:
        client.insert(p4r.DigestEntry(digest_id=names["learned_t"], config=p4r.DigestEntry.Config(**config)))

    def learn(self, client: Client, *sources: int, port: int = 3) -> None:
        for source in sources:
            client.stream.send(packet=packet_out(frame(source), port, submit=True))

    @staticmethod
    def addresses(digest: p4r.DigestList) -> list[int]:
        return [int.from_bytes(data.struct.members[0].bitstring, "big") for data in digest.data]

    def test_configuration(self, client: Client, names: Names) -> None:
        entry = p4r.DigestEntry(
            digest_id=names["learned_t"], config=p4r.DigestEntry.Config(max_timeout_ns=1, max_list_size=2, ack_timeout_ns=3)
        )
        client.insert(entry)
        if not support.is_reference():
            assert client.read(p4r.DigestEntry()) == [entry]
            refused(Code.ALREADY_EXISTS, lambda: client.insert(entry), "learned_t")
            entry.config.max_list_size = -1
            refused(Code.INVALID_ARGUMENT, lambda: client.modify(entry), "max_list_size -1")
        entry.config.max_list_size = 5
        client.modify(entry)
        client.delete(entry)
        if not support.is_reference():
            assert client.read(p4r.DigestEntry()) == []
            refused(Code.NOT_FOUND, lambda: client.delete(entry))
            refused(Code.NOT_FOUND, lambda: client.modify(entry))
            refused(Code.INVALID_ARGUMENT, lambda: client.insert(p4r.DigestEntry(digest_id=5)))

    def test_each_at_once(self, client: Client, names: Names) -> None:
        self.enable(client, names, max_timeout_ns=0, max_list_size=1, ack_timeout_ns=0)
        self.learn(client, 0xAB, port=3)
        digest = client.stream.receive("digest")
        assert digest.digest_id == names["learned_t"]
        (data,) = digest.data
        members = data.struct.members
        assert [members[0].bitstring, members[1].bitstring] == [b"\xab", b"\3"]
        if not support.is_reference():
            assert members[2] == p4d.P4Data(bool=False)
            assert abs(digest.timestamp - time.time_ns()) < 10**10
        # Without a time for acknowledgement there is no cache.
        self.learn(client, 0xAB)
        assert client.stream.receive("digest").list_id != digest.list_id

    def test_lists_fill(self, client: Client, names: Names) -> None:
        self.enable(client, names, max_timeout_ns=10**11, max_list_size=3, ack_timeout_ns=10**11)
        self.learn(client, 1, 2, 2, 1)
        client.stream.nothing("digest", 0.2)
        self.learn(client, 3)
        assert sorted(self.addresses(client.stream.receive("digest"))) == [1, 2, 3]

    def test_lists_time_out(self, client: Client, names: Names) -> None:
        self.enable(client, names, max_timeout_ns=200_000_000, max_list_size=100, ack_timeout_ns=0)
        started = time.monotonic()
        self.learn(client, 1, 2)
        assert sorted(self.addresses(client.stream.receive("digest"))) == [1, 2]
        assert 0.15 < time.monotonic() - started < 5

    def test_known_until_acknowledged(self, client: Client, names: Names) -> None:
        self.enable(client, names, max_timeout_ns=0, max_list_size=1, ack_timeout_ns=10**11)
        self.learn(client, 1)
        first = client.stream.receive("digest")
        self.learn(client, 1)
        client.stream.nothing("digest", 0.2)
        client.stream.send(digest_ack=p4r.DigestListAck(digest_id=first.digest_id, list_id=first.list_id))
        self.learn(client, 1)
        assert self.addresses(client.stream.receive("digest")) == [1]

    def test_known_until_the_time_has_passed(self, client: Client, names: Names) -> None:
        self.enable(client, names, max_timeout_ns=0, max_list_size=1, ack_timeout_ns=1_000_000_000)
        begin = time.monotonic()
        self.learn(client, 1)
        client.stream.receive("digest")
        self.learn(client, 1)
        client.stream.nothing("digest", 0.1)
        time.sleep(max(0.0, begin + 1.1 - time.monotonic()))
        self.learn(client, 1)
        assert self.addresses(client.stream.receive("digest")) == [1]

    @pytest.mark.skipif(support.is_reference(), reason="PI does not report stream errors of acknowledgements")
    def test_unknown_acknowledgements(self, client: Client, names: Names) -> None:
        client.stream.send(digest_ack=p4r.DigestListAck(digest_id=5, list_id=1))
        error = client.stream.receive("error")
        assert error.canonical_code == Code.INVALID_ARGUMENT.value[0]
        assert error.digest_list_ack.digest_list_ack.digest_id == 5
        # A list that nobody knows any more is no error.
        client.stream.send(digest_ack=p4r.DigestListAck(digest_id=names["learned_t"], list_id=99))
        client.stream.nothing("error", 0.1)


class TestServer:
    def test_version(self, shared: str) -> None:
        with Client(shared, open_stream=False) as client:
            version = client.stub.Capabilities(p4r.CapabilitiesRequest(), timeout=5).p4runtime_api_version
            assert tuple(map(int, version.split("."))) >= (1, 4, 1) or support.is_reference()

    def test_streams_end_with_the_switch(self) -> None:
        with support.switch() as address:
            client = Client(address)
        if not support.is_reference():
            error = client.stream.receive("end", timeout=5)
            assert error is not None and error.code() == Code.UNAVAILABLE
        client.close()

    @pytest.mark.skipif(support.is_reference(), reason="says nothing")
    def test_the_address_is_in_use(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            command = [support.tool("fairlane-switch", "FAIRLANE_SWITCH"), "--no-p4", "--", "--grpc-server-addr", address]
            done = subprocess.run(command, capture_output=True, text=True, timeout=20)
        assert done.returncode != 0
        assert address in done.stderr
        assert "in use" in done.stderr

    def test_messages_of_megabytes(self, client: Client, program: Program) -> None:
        config = program.config(cookie=1)
        config.p4_device_config += b" " * (6 << 20)
        client.push(config)
        assert len(client.config().config.p4_device_config) > 6 << 20

    @pytest.mark.skipif(support.is_reference(), reason="PI writes to slow clients without limit")
    def test_a_client_that_does_not_read(self, shared: str, program: Program) -> None:
        """It loses packets; others are served meanwhile, and the switch keeps a bounded number of messages."""
        with Client(shared, open_stream=False) as sleeper, Client(shared, election_id=None) as other:
            election_id = next(ELECTION_IDS)
            requests: queue.SimpleQueue = queue.SimpleQueue()
            call = sleeper.stub.StreamChannel(iter(requests.get, None))
            update = p4r.MasterArbitrationUpdate(device_id=support.DEVICE_ID, election_id=U128.encode(election_id))
            requests.put(p4r.StreamMessageRequest(arbitration=update))
            assert next(call).arbitration.status.code == OK
            sleeper.election_id = election_id
            sleeper.push(program.config())
            payload = frame(1, payload=b"x" * 1400)
            for _ in range(12_000):
                requests.put(p4r.StreamMessageRequest(packet=packet_out(payload, support.CPU_PORT)))
            deadline = time.monotonic() + 20
            while other.read(p4r.CounterEntry()) and requests.qsize() and time.monotonic() < deadline:
                time.sleep(0.05)
            assert requests.qsize() == 0
            other.stream.arbitrate(election_id + 1)
            while other.stream.receive("arbitration").status.code != OK:
                pass
            next(ELECTION_IDS)
            other.election_id = election_id + 1
            other.stream.send(packet=packet_out(frame(2), support.CPU_PORT))
            # Packets of the sleeper that were under way go to the new primary.
            while other.stream.receive("packet").payload != frame(2):
                pass
            call.cancel()

    def test_clients_at_once(self, client: Client, names: Names) -> None:
        """Readers and packets while a client writes: each write is whole for each reader."""
        stop = threading.Event()
        torn: list[int] = []

        def read() -> None:
            with Client(client.address, open_stream=False) as reader:
                while not stop.is_set():
                    entries = [e for e in reader.read(p4r.TableEntry()) if e.table_id == names["l2"]]
                    torn.extend([len(entries)] if len(entries) % 4 else [])

        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        for start in range(0, 64, 4):
            client.stream.send(packet=packet_out(frame(start), 1, submit=True))
            client.insert(
                *(
                    p4r.TableEntry(
                        table_id=names["l2"],
                        match=[exact(1, address)],
                        action=p4r.TableAction(action=names.action("l2_forward", 1)),
                    )
                    for address in range(start, start + 4)
                )
            )
        stop.set()
        for reader in readers:
            reader.join()
        assert torn == []
        assert len(client.read(p4r.TableEntry(table_id=names["l2"]))) == 64

    @pytest.mark.skipif(support.is_reference(), reason="not about BMv2")
    def test_large_batches_report_every_code(self, client: Client, names: Names) -> None:
        """Clients refuse trailers beyond 8 KiB: the messages of the last errors give way, the codes do not."""
        entry = p4r.TableEntry(table_id=names["l2"], match=[exact(1, 1 << 50)])
        with pytest.raises(grpc.RpcError) as caught:
            client.insert(*[entry] * 100)
        assert [error.canonical_code for error in support.details(caught.value)] == [Code.INVALID_ARGUMENT.value[0]] * 100

    @pytest.mark.skipif(support.is_reference(), reason="not about BMv2")
    @pytest.mark.parametrize("count", [124, 400, 5000])
    def test_batches_too_large_for_codes_say_so(self, client: Client, names: Names, count: int) -> None:
        """A list of some outcomes would let the others pass for successes."""
        entry = p4r.TableEntry(table_id=names["l2"], match=[exact(1, 1 << 50)])
        with pytest.raises(grpc.RpcError) as caught:
            client.insert(*[entry] * count)
        assert caught.value.code() == grpc.StatusCode.UNKNOWN and support.details(caught.value) == []
        assert f"{count} of {count} updates failed; update 1 (INVALID_ARGUMENT)" in caught.value.details()
        assert "write at most 123 at once" in caught.value.details()

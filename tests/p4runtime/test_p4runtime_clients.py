"""The unmodified clients finsy and p4runtime-shell drive a real switch."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator

import finsy as fy
import pytest
from finsy.p4entity import P4ValueSetMember
from google.protobuf.struct_pb2 import Struct

from tests.p4runtime import support
from tests.p4runtime.support import Program

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return support.compile_program(support.PROGRAM, tmp_path_factory.mktemp("p4runtime"))


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "grpc_proxy"):
        monkeypatch.delenv(name, raising=False)
    with support.switch() as address:
        yield address


def run(address: str, program: Program, session, **options: object) -> None:
    """Runs a coroutine with a finsy switch that is ready."""

    async def connected() -> None:
        chosen = fy.SwitchOptions(p4info=program.p4info, p4blob=program.json, device_id=support.DEVICE_ID, fail_fast=True, **options)
        async with fy.Switch("s1", address, chosen) as switch:
            await session(switch)

    asyncio.run(asyncio.wait_for(connected(), timeout=60))


def frame(source: int, target: int = 0xAA) -> bytes:
    return target.to_bytes(6, "big") + source.to_bytes(6, "big") + b"\x12\x34finsy"


def out(source: int, port: int = 3) -> fy.P4PacketOut:
    return fy.P4PacketOut(frame(source), port=port, submit_to_ingress=1, padding=0)


def test_finsy_writes_and_reads(address: str, program: Program) -> None:
    async def session(switch: fy.Switch) -> None:
        assert switch.is_primary
        assert str(switch.p4runtime_version) == "1.4.1"
        entries = [
            fy.P4TableEntry("l2", match=fy.Match(dst="00:00:00:00:00:aa"), action=fy.Action("l2_forward", port=510)),
            fy.P4TableEntry("routes", match=fy.Match(dst="10.0.0.0/8"), action=fy.Action("forward", port=1)),
            fy.P4TableEntry(
                "acl",
                match=fy.Match(src="10.0.0.0/&255.0.0.0", ttl="0...9", port=3),
                action=fy.Action("EntitiesIngress.drop"),
                priority=4,
            ),
        ]
        await switch.write([+entry for entry in entries])
        # finsy reads match fields as numbers or text of its own choice: compare what it encodes.
        encoded = [entry.encode(switch.p4info) for entry in entries]
        for entry, expected in zip(entries, encoded, strict=True):
            (read,) = [read async for read in switch.read(fy.P4TableEntry(entry.table_id))]
            assert read.encode(switch.p4info) == expected
        await switch.write(
            [
                ~fy.P4TableEntry("routes", is_default_action=True, action=fy.Action("EntitiesIngress.drop")),
                ~fy.P4RegisterEntry("last_source", index=2, data=77),
                ~fy.P4CounterEntry("port_packets", index=2, data=fy.P4CounterData(packet_count=5, byte_count=6)),
                ~fy.P4MeterEntry("port_meter", index=2, config=fy.P4MeterConfig(cir=1, cburst=2, pir=3, pburst=4)),
                +fy.P4MulticastGroupEntry(7, replicas=[1, 2, (3, 9)]),
                +fy.P4CloneSessionEntry(8, replicas=[4]),
                +fy.P4ActionProfileMember("spread", member_id=1, action=fy.Action("set_nexthop", nexthop=1, port=2)),
                ~fy.P4ValueSetEntry("ip_like", members=[P4ValueSetMember(0x88B5)]),
            ]
        )
        (register,) = [read async for read in switch.read(fy.P4RegisterEntry("last_source", index=2))]
        assert register.data == 77
        (counter,) = [read async for read in switch.read(fy.P4CounterEntry("port_packets", index=2))]
        assert (counter.packet_count, counter.byte_count) == (5, 6)
        (group,) = [read async for read in switch.read(fy.P4MulticastGroupEntry(7))]
        assert len(group.replicas) == 3
        with pytest.raises(fy.P4ClientError) as caught:
            await switch.write([entries[0]])
        assert "ALREADY_EXISTS" in str(caught.value)
        await switch.delete_all()
        assert [read async for read in switch.read(fy.P4TableEntry("l2"))] == []

    run(address, program, session)


def test_finsy_packets_digests_and_counters(address: str, program: Program) -> None:
    async def session(switch: fy.Switch) -> None:
        await switch.write(
            [
                +fy.P4TableEntry("l2", match=fy.Match(dst="00:00:00:00:00:aa"), action=fy.Action("l2_forward", port=510)),
                +fy.P4DigestEntry("learned_t", max_list_size=1, max_timeout_ns=0, ack_timeout_ns=10**9),
            ]
        )
        packets, digests = switch.read_packets(), switch.read_digests("learned_t")
        next_packet, next_digest = asyncio.ensure_future(anext(packets)), asyncio.ensure_future(anext(digests))
        await asyncio.sleep(0)
        await switch.write([out(0x77)])
        packet = await asyncio.wait_for(next_packet, 5)
        assert packet.payload == frame(0x77)
        assert (packet["ingress_port"], packet["reason"]) == (3, 5)
        digest = await asyncio.wait_for(next_digest, 5)
        assert digest.data == [{"address": 0x77, "port": 3, "is_ip": False}]
        await switch.write([digest.ack()])
        (counter,) = [read async for read in switch.read(fy.P4CounterEntry("port_packets", index=3))]
        assert counter.packet_count == 1
        (direct,) = [read async for read in switch.read(fy.P4DirectCounterEntry("l2_counter"))]
        assert direct.packet_count == 1

    run(address, program, session)


def test_finsy_two_clients(address: str, program: Program) -> None:
    """The one that comes later with a lower id is a backup; when the primary goes, it takes over."""

    async def sessions() -> None:
        options = fy.SwitchOptions(
            p4info=program.p4info, p4blob=program.json, device_id=support.DEVICE_ID, initial_election_id=20, fail_fast=True
        )
        async with fy.Switch("first", address, options) as first:
            assert first.is_primary
            async with fy.Switch("second", address, options(initial_election_id=19)) as second:
                assert not second.is_primary
                assert second.primary_id == 20
                with pytest.raises(fy.P4ClientError) as caught:
                    await second.write([+fy.P4MulticastGroupEntry(1, replicas=[1])])
                assert "PERMISSION_DENIED" in str(caught.value) or "not primary" in str(caught.value)

    asyncio.run(asyncio.wait_for(sessions(), timeout=60))


def test_finsy_profiles_defaults_and_const_entries(address: str, program: Program) -> None:
    async def session(switch: fy.Switch) -> None:
        nexthop = lambda number: fy.Action("set_nexthop", nexthop=number, port=number)
        balance = fy.Match(dst="10.0.0.0/8")
        group = fy.P4ActionProfileGroup("spread", group_id=5, members=[fy.P4Member(1, weight=1), fy.P4Member(2, weight=3)])
        by_group = fy.P4TableEntry("balance", match=balance, action=fy.P4IndirectAction(group_id=5))
        await switch.write([+fy.P4ActionProfileMember("spread", member_id=n, action=nexthop(n)) for n in (1, 2)])
        await switch.insert([group, by_group])
        (read,) = [read async for read in switch.read(fy.P4ActionProfileGroup("spread"))]
        assert sorted((m.member_id, m.weight) for m in read.members) == [(1, 1), (2, 3)]
        (entry,) = [read async for read in switch.read(fy.P4TableEntry("balance"))]
        assert entry.action.group_id == 5
        with pytest.raises(fy.P4ClientError, match="FAILED_PRECONDITION"):
            await switch.delete([group])
        await switch.delete([by_group, group, *(fy.P4ActionProfileMember("spread", member_id=n) for n in (1, 2))])
        weighted = fy.P4IndirectAction([(2, nexthop(1)), (1, nexthop(2))])
        await switch.write([+fy.P4TableEntry("balance", match=balance, action=weighted)])
        (entry,) = [read async for read in switch.read(fy.P4TableEntry("balance"))]
        assert [weight for weight, _ in entry.action.action_set] == [2, 1]

        default = fy.P4TableEntry("routes", is_default_action=True)

        async def now() -> fy.P4TableEntry:
            (read,) = [read async for read in switch.read(default)]
            return read

        await switch.write([~fy.P4TableEntry("routes", is_default_action=True, action=fy.Action("forward", port=9))])
        assert ((await now()).action.name, (await now()).action.args) == ("forward", {"port": 9})
        await switch.modify([default])
        assert (await now()).action.name == "NoAction"
        constant = [read async for read in switch.read(fy.P4TableEntry("classes"))]
        assert len(constant) == 2 and all(entry.is_const for entry in constant)

    run(address, program, session)


def test_finsy_direct_resources_and_idle_timeouts(address: str, program: Program) -> None:
    async def session(switch: fy.Switch) -> None:
        rates = fy.P4MeterConfig(cir=10, cburst=20, pir=30, pburst=40)
        entry = fy.P4TableEntry(
            "l2",
            match=fy.Match(dst="00:00:00:00:00:aa"),
            action=fy.Action("l2_forward", port=510),
            meter_config=rates,
            counter_data=fy.P4CounterData(packet_count=7, byte_count=8),
            idle_timeout_ns=300_000_000,
            metadata=b"m",
        )
        idle = switch.read_idle_timeouts()
        notified = asyncio.ensure_future(anext(idle))
        await asyncio.sleep(0)
        await switch.write([+entry])
        (meter,) = [read async for read in switch.read(fy.P4DirectMeterEntry(table_entry=fy.P4TableEntry("l2")))]
        assert meter.config == rates
        (counter,) = [read async for read in switch.read(fy.P4DirectCounterEntry("l2_counter"))]
        assert (counter.packet_count, counter.data.byte_count) == (7, 8)
        note = await asyncio.wait_for(notified, 20)
        assert [entry.metadata for entry in note.table_entry] == [b"m"]

    run(address, program, session)


def test_finsy_digest_backlog(address: str, program: Program) -> None:
    """Lists fill to their size; what is not acknowledged is not told again."""

    async def session(switch: fy.Switch) -> None:
        await switch.write([+fy.P4DigestEntry("learned_t", max_list_size=3, max_timeout_ns=10**12, ack_timeout_ns=10**12)])
        digests = switch.read_digests("learned_t")
        first = asyncio.ensure_future(anext(digests))
        await asyncio.sleep(0)
        for source in (1, 2, 1, 3, 2, 4, 5):
            await switch.write([out(source)])
        learned = await asyncio.wait_for(first, 20)
        assert [message["address"] for message in learned.data] == [1, 2, 3]
        # Packets are queued, and an acknowledgement could overtake them.
        while (await anext(aiter(switch.read(fy.P4CounterEntry("port_packets", index=3))))).packet_count < 7:
            await asyncio.sleep(0.01)
        await switch.write([out(1), learned.ack(), out(1)])
        learned = await asyncio.wait_for(anext(digests), 20)
        assert sorted(message["address"] for message in learned.data) == [1, 4, 5]

    run(address, program, session)


def test_finsy_takeover_and_roles(address: str, program: Program) -> None:
    """A higher id takes over while the first is connected, which is told; a role of another name has a primary of its own."""

    async def sessions() -> None:
        options = fy.SwitchOptions(
            p4info=program.p4info, p4blob=program.json, device_id=support.DEVICE_ID, initial_election_id=20, fail_fast=True
        )
        async with fy.Switch("first", address, options) as first:
            demoted = asyncio.Event()
            first.ee.add_listener(fy.SwitchEvent.BECOME_BACKUP, lambda *_: demoted.set())
            async with fy.Switch("second", address, options(initial_election_id=30)) as second:
                assert second.is_primary
                await asyncio.wait_for(demoted.wait(), 20)
                assert not first.is_primary and first.primary_id == 30
                with pytest.raises(fy.P4ClientError):
                    await first.write([+fy.P4MulticastGroupEntry(1, replicas=[1])])
                await second.write([+fy.P4MulticastGroupEntry(1, replicas=[1])])
                async with fy.Switch(
                    "telemetry", address, options(initial_election_id=1, role_name="telemetry", role_config=Struct())
                ) as telemetry:
                    assert telemetry.is_primary and second.is_primary
                    await telemetry.write([+fy.P4MulticastGroupEntry(2, replicas=[2])])
                    assert len([group async for group in first.read(fy.P4MulticastGroupEntry())]) == 2

    asyncio.run(asyncio.wait_for(sessions(), timeout=60))


def test_shell(address: str, program: Program) -> None:
    python = support.shell_python()
    script = support.PROGRAM.with_name("shell_session.py")
    done = subprocess.run(
        [python, str(script), address, str(program.p4info), str(program.json)],
        capture_output=True,
        text=True,
        timeout=60,
        env=support.without_proxy(),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    backup = "You are not the primary client, you only have read access to the server"
    expected = ["version 1.4.1", "tables", "profiles", "replication", "packets", "counters", backup, "backup refused"]
    assert [line for line in done.stdout.splitlines() if line] == expected, done.stdout + done.stderr

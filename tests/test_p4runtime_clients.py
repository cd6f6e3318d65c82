"""The unmodified clients finsy and p4runtime-shell drive a real switch."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator

import finsy as fy
import pytest
from finsy.p4entity import P4ValueSetMember

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
        chosen = fy.SwitchOptions(
            p4info=program.p4info, p4blob=program.json, device_id=support.DEVICE_ID, fail_fast=True, **options
        )
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
        await switch.write([
            ~fy.P4TableEntry("routes", is_default_action=True, action=fy.Action("EntitiesIngress.drop")),
            ~fy.P4RegisterEntry("last_source", index=2, data=77),
            ~fy.P4CounterEntry("port_packets", index=2, data=fy.P4CounterData(packet_count=5, byte_count=6)),
            ~fy.P4MeterEntry("port_meter", index=2, config=fy.P4MeterConfig(cir=1, cburst=2, pir=3, pburst=4)),
            +fy.P4MulticastGroupEntry(7, replicas=[1, 2, (3, 9)]),
            +fy.P4CloneSessionEntry(8, replicas=[4]),
            +fy.P4ActionProfileMember("spread", member_id=1, action=fy.Action("set_nexthop", nexthop=1, port=2)),
            ~fy.P4ValueSetEntry("ip_like", members=[P4ValueSetMember(0x88B5)]),
        ])
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
        await switch.write([
            +fy.P4TableEntry("l2", match=fy.Match(dst="00:00:00:00:00:aa"), action=fy.Action("l2_forward", port=510)),
            +fy.P4DigestEntry("learned_t", max_list_size=1, max_timeout_ns=0, ack_timeout_ns=10**9),
        ])
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

"""Every entity of P4Runtime on a real switch, written and read over gRPC, and the code of every refusal."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import grpc
import pytest
from finsy.proto import p4d, p4r

from tests.p4runtime import support
from tests.p4runtime.support import Client, Names, Program, exact, in_range, lpm, number, optional, refused, ternary

Code = grpc.StatusCode
IP = 0x0A000000
ELECTION_IDS = itertools.count(1)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return support.compile_program(support.PROGRAM, tmp_path_factory.mktemp("p4runtime"))


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with support.switch() as address:
        yield address


@pytest.fixture
def client(address: str, program: Program) -> Iterator[Client]:
    """A primary on a switch that is fresh from its program."""
    with Client(address, election_id=next(ELECTION_IDS)) as primary:
        primary.push(program.config())
        yield primary


@pytest.fixture(scope="module")
def names(program: Program) -> Names:
    return Names(program.info())


def table_action(action: p4r.Action) -> p4r.TableAction:
    return p4r.TableAction(action=action)


def l2_entry(names: Names, mac: int, port: int = 1, **more: object) -> p4r.TableEntry:
    action = table_action(names.action("l2_forward", port))
    return p4r.TableEntry(table_id=names["l2"], match=[exact(1, mac)], action=action, **more)


def route(names: Names, prefix: int, length: int, port: int = 1, **more: object) -> p4r.TableEntry:
    action = table_action(names.action("forward", port))
    match = [lpm(1, prefix, length)] if length else []
    return p4r.TableEntry(table_id=names["routes"], match=match, action=action, **more)


def acl_entry(names: Names, match: list[p4r.FieldMatch], priority: int, **more: object) -> p4r.TableEntry:
    action = table_action(names.action("EntitiesIngress.drop"))
    return p4r.TableEntry(table_id=names["acl"], match=match, action=action, priority=priority, **more)


def keyed(message, **keep):
    """A message of the same kind with some of its fields."""
    return type(message)(**keep)


class TestTables:
    def test_what_is_written_is_read(self, client: Client, names: Names) -> None:
        entries = [
            l2_entry(names, 0x0000_0000_0001, 511),
            l2_entry(names, 0xFFFF_FFFF_FFFF, 0, metadata=b"opaque", idle_timeout_ns=5_000_000_000),
            route(names, 0, 0, 3),
            route(names, IP, 8),
            route(names, IP + 1, 32),
            acl_entry(names, [exact(4, 7)], 1),
            acl_entry(names, [ternary(1, IP, 0xFF000000), in_range(2, 0, 63), optional(3, 17), exact(4, 510)], 2**31 - 1),
        ]
        client.insert(*entries)
        read = client.read(*(p4r.TableEntry(table_id=names[name]) for name in ("l2", "routes", "acl")))
        key = lambda entry: entry.SerializeToString(deterministic=True)
        assert sorted(read, key=key) == sorted(entries, key=key)

    def test_wildcards_and_filters(self, client: Client, names: Names) -> None:
        drop = table_action(names.action("EntitiesIngress.drop"))
        to_drop = route(names, IP, 16, metadata=b"b")
        to_drop.action.CopyFrom(drop)
        client.insert(
            l2_entry(names, 1), route(names, IP, 8), to_drop, acl_entry(names, [exact(4, 1)], 5), acl_entry(names, [exact(4, 1)], 6)
        )
        everything = client.read(p4r.TableEntry())
        counts = {name: sum(entry.table_id == names[name] for entry in everything) for name in ("l2", "routes", "acl", "classes")}
        assert counts == {"l2": 1, "routes": 2, "acl": 2, "classes": 2}
        assert client.read(p4r.TableEntry(table_id=names["acl"], priority=6)) == [acl_entry(names, [exact(4, 1)], 6)]
        assert len(client.read(p4r.TableEntry(table_id=names["acl"], match=[exact(4, 1)]))) == 2
        assert client.read(p4r.TableEntry(table_id=names["routes"], match=[lpm(1, IP, 8)])) == [route(names, IP, 8)]
        assert client.read(p4r.TableEntry(table_id=names["routes"], match=[lpm(1, IP, 9)])) == []
        assert client.read(p4r.TableEntry(table_id=names["routes"], metadata=b"b")) == [to_drop]
        filtered = p4r.TableEntry(table_id=names["routes"], action=table_action(p4r.Action(action_id=names["EntitiesIngress.drop"])))
        assert client.read(filtered) == [to_drop]

    def test_modify_and_delete(self, client: Client, names: Names) -> None:
        client.insert(l2_entry(names, 1, 1, metadata=b"x"))
        client.modify(l2_entry(names, 1, 2))
        assert client.read(p4r.TableEntry(table_id=names["l2"])) == [l2_entry(names, 1, 2)]
        # Without an action the action stays; the rest is the new state all the same.
        client.modify(p4r.TableEntry(table_id=names["l2"], match=[exact(1, 1)], metadata=b"y"))
        assert client.read(p4r.TableEntry(table_id=names["l2"])) == [l2_entry(names, 1, 2, metadata=b"y")]
        # DELETE looks at the key alone.
        client.delete(p4r.TableEntry(table_id=names["l2"], match=[exact(1, 1)], action=table_action(p4r.Action(action_id=99))))
        assert client.read(p4r.TableEntry(table_id=names["l2"])) == []

    def test_bytes_in_any_padding_are_read_canonical(self, client: Client, names: Names) -> None:
        entry = l2_entry(names, 0)
        entry.match[0].exact.value = b"\0\0\0\0\0\0\0\x2a"
        entry.action.action.params[0].value = b"\0\0\x01\x07"
        client.insert(entry)
        assert client.read(p4r.TableEntry(table_id=names["l2"])) == [l2_entry(names, 0x2A, 0x107)]

    def test_default_entries(self, client: Client, names: Names) -> None:
        request = p4r.TableEntry(table_id=names["routes"], is_default_action=True)
        (default,) = client.read(request)
        assert default.action.action.action_id == names["NoAction"]
        drop = p4r.TableEntry(table_id=names["routes"], is_default_action=True, action=table_action(names.action("EntitiesIngress.drop")))
        client.modify(drop)
        assert client.read(request) == [drop]
        client.modify(request)
        assert client.read(request) == [default]
        refused(Code.INVALID_ARGUMENT, lambda: client.insert(drop), "only be modified")
        refused(Code.INVALID_ARGUMENT, lambda: client.delete(drop), "only be modified")
        with_match = p4r.TableEntry(table_id=names["routes"], is_default_action=True, match=[lpm(1, IP, 8)])
        refused(Code.INVALID_ARGUMENT, lambda: client.modify(with_match))
        table_only = p4r.TableEntry(table_id=names["routes"], is_default_action=True, action=table_action(names.action("to_controller")))
        refused(Code.PERMISSION_DENIED, lambda: client.modify(table_only), "entries only")
        constant = p4r.TableEntry(table_id=names["classes"], is_default_action=True, action=table_action(names.action("NoAction")))
        refused(Code.PERMISSION_DENIED, lambda: client.modify(constant), "constant")

    def test_constant_entries(self, client: Client, names: Names) -> None:
        entries = client.read(p4r.TableEntry(table_id=names["classes"]))
        assert [entry.is_const for entry in entries] == [True, True]
        first, second = sorted(entries, key=lambda entry: -entry.priority)
        assert list(first.match) == [ternary(1, 0x10, 0xF0)]
        assert list(second.match) == [ternary(1, 0xB8, 0xFF)]
        assert first.action.action == names.action("set_nexthop", 1, 1)
        new = p4r.TableEntry(table_id=names["classes"], match=[ternary(1, 1, 1)], priority=9, action=first.action)
        refused(Code.PERMISSION_DENIED, lambda: client.insert(new), "classes")
        refused(Code.PERMISSION_DENIED, lambda: client.delete(keyed(first, table_id=first.table_id, match=first.match, priority=2)))

    @pytest.mark.parametrize(
        ("change", "code", "words"),
        [
            (lambda e, n: e.match.pop(), Code.INVALID_ARGUMENT, ["hdr.ethernet.dst", "exact"]),
            (lambda e, n: e.match.append(exact(1, 2)), Code.INVALID_ARGUMENT, ["given twice"]),
            (lambda e, n: e.match.append(exact(9, 2)), Code.INVALID_ARGUMENT, ["field id 9"]),
            (lambda e, n: e.match[0].CopyFrom(lpm(1, 1, 48)), Code.INVALID_ARGUMENT, ["EXACT", "LPM"]),
            (lambda e, n: e.match[0].ClearField("exact"), Code.INVALID_ARGUMENT, ["hdr.ethernet.dst"]),
            (lambda e, n: setattr(e.match[0].exact, "value", b""), Code.INVALID_ARGUMENT, ["empty"]),
            (lambda e, n: setattr(e.match[0].exact, "value", b"\1" * 7), Code.INVALID_ARGUMENT, ["49 bits", "48 bits"]),
            (lambda e, n: setattr(e, "priority", 3), Code.INVALID_ARGUMENT, ["priority 3"]),
            (lambda e, n: setattr(e, "table_id", 0), Code.INVALID_ARGUMENT, ["table_id"]),
            (lambda e, n: setattr(e, "table_id", 0x02ABCDEF), Code.INVALID_ARGUMENT, ["0x02abcdef"]),
            (lambda e, n: setattr(e, "is_const", True), Code.INVALID_ARGUMENT, ["is_const"]),
            (lambda e, n: e.ClearField("action"), Code.INVALID_ARGUMENT, ["needs an action"]),
            (lambda e, n: setattr(e.action.action, "action_id", 0), Code.INVALID_ARGUMENT, ["action_id"]),
            (lambda e, n: e.action.action.CopyFrom(n.action("rewrite", 1, 1)), Code.INVALID_ARGUMENT, ["action id"]),
            (lambda e, n: e.action.action.CopyFrom(n.action("l2_miss")), Code.PERMISSION_DENIED, ["default entry only"]),
            (lambda e, n: e.action.action.params.pop(), Code.INVALID_ARGUMENT, ["l2_forward", "port", "missing"]),
            (lambda e, n: e.action.action.params.add(param_id=7, value=b"\1"), Code.INVALID_ARGUMENT, ["parameter id 7"]),
            (lambda e, n: setattr(e.action.action.params[0], "value", b"\2\0"), Code.INVALID_ARGUMENT, ["10 bits", "9 bits"]),
            (lambda e, n: setattr(e.action, "action_profile_member_id", 1), Code.INVALID_ARGUMENT, ["no action profile"]),
            (lambda e, n: setattr(e, "idle_timeout_ns", -1), Code.INVALID_ARGUMENT, ["idle_timeout_ns must be a positive value"]),
            (lambda e, n: e.time_since_last_hit.SetInParent(), Code.INVALID_ARGUMENT, ["time_since_last_hit"]),
            (lambda e, n: setattr(e.counter_data, "packet_count", -1), Code.INVALID_ARGUMENT, ["packet_count -1"]),
            (lambda e, n: setattr(e.meter_config, "cir", -1), Code.INVALID_ARGUMENT, ["cir -1"]),
        ],
    )
    def test_malformed_entries(self, client: Client, names: Names, change, code: Code, words: list[str]) -> None:
        entry = l2_entry(names, 0x0102_0304_0506)
        change(entry, names)
        refused(code, lambda: client.insert(entry), *words)
        assert client.read(p4r.TableEntry(table_id=names["l2"])) == []

    @pytest.mark.parametrize(
        ("match", "words"),
        [
            ([exact(4, 1), ternary(1, IP, 0)], ["mask is 0", "leave the field out"]),
            ([exact(4, 1), ternary(1, IP + 1, 0xFF000000)], ["outside its mask"]),
            ([exact(4, 1), in_range(2, 5, 4)], ["low 0x5 is above high 0x4"]),
            ([exact(4, 1), in_range(2, 0, 255)], ["everything"]),
            ([exact(4, 1), optional(3, 256)], ["9 bits", "8 bits"]),
            ([ternary(1, IP, 0xFF000000)], ["cannot be left out"]),
        ],
    )
    def test_malformed_keys(self, client: Client, names: Names, match: list[p4r.FieldMatch], words: list[str]) -> None:
        refused(Code.INVALID_ARGUMENT, lambda: client.insert(acl_entry(names, match, 1)), *words)

    def test_malformed_prefixes_and_priorities(self, client: Client, names: Names) -> None:
        bad = route(names, IP, 8)
        for length, words in ((0, "leave the field out"), (33, "32 bits"), (-1, "prefix_len -1"), (3, "beyond its prefix")):
            bad.match[0].lpm.prefix_len = length
            refused(Code.INVALID_ARGUMENT, lambda: client.insert(bad), words)
        refused(Code.INVALID_ARGUMENT, lambda: client.insert(acl_entry(names, [exact(4, 1)], 0)), "positive priority")
        refused(Code.INVALID_ARGUMENT, lambda: client.insert(acl_entry(names, [exact(4, 1)], -4)), "positive priority")

    def test_what_exists_and_what_does_not(self, client: Client, names: Names) -> None:
        client.insert(l2_entry(names, 1))
        refused(Code.ALREADY_EXISTS, lambda: client.insert(l2_entry(names, 1, 2)))
        assert client.read(p4r.TableEntry(table_id=names["l2"])) == [l2_entry(names, 1, 1)]
        refused(Code.NOT_FOUND, lambda: client.modify(l2_entry(names, 2)))
        refused(Code.NOT_FOUND, lambda: client.delete(l2_entry(names, 2)))

    def test_a_full_table(self, client: Client, names: Names) -> None:
        client.insert(*(route(names, IP + (i << 8), 24) for i in range(16)))
        refused(Code.RESOURCE_EXHAUSTED, lambda: client.insert(route(names, IP + (16 << 8), 24)), "routes")

    def test_a_table_without_key(self, client: Client, names: Names) -> None:
        entry = p4r.TableEntry(table_id=names["always"], action=table_action(names.action("NoAction")))
        refused(Code.INVALID_ARGUMENT, lambda: client.insert(entry), "no key")
        drop = p4r.TableEntry(table_id=names["always"], is_default_action=True, action=table_action(names.action("EntitiesIngress.drop")))
        client.modify(drop)
        assert client.read(p4r.TableEntry(table_id=names["always"], is_default_action=True)) == [drop]

    def test_idle_timeouts(self, client: Client, names: Names) -> None:
        refused(Code.INVALID_ARGUMENT, lambda: client.insert(route(names, IP, 8, idle_timeout_ns=1)), "do not support idle timeout")
        client.insert(l2_entry(names, 1, metadata=b"m", idle_timeout_ns=300_000_000), l2_entry(names, 2))
        elapsed = p4r.TableEntry(table_id=names["l2"], time_since_last_hit=p4r.TableEntry.IdleTimeout())
        times = [entry.time_since_last_hit.elapsed_ns for entry in client.read(elapsed)]
        assert all(0 <= time_ns < 5_000_000_000 for time_ns in times)
        note = client.stream.receive("idle_timeout_notification", timeout=5)
        (idle,) = note.table_entry
        assert (idle.table_id, list(idle.match), idle.metadata) == (names["l2"], [exact(1, 1)], b"m")
        assert idle.idle_timeout_ns == 300_000_000
        if not support.is_reference():
            assert abs(note.timestamp - time.time_ns()) < 10_000_000_000
            # The timer starts again.
            client.stream.receive("idle_timeout_notification", timeout=5)
        client.delete(l2_entry(names, 1))


class TestDirectResources:
    def test_counter(self, client: Client, names: Names) -> None:
        client.insert(l2_entry(names, 1, counter_data=p4r.CounterData(byte_count=5, packet_count=6)), l2_entry(names, 2))
        ask = p4r.TableEntry(table_id=names["l2"], counter_data=p4r.CounterData())
        counts = {entry.match[0].exact.value: entry.counter_data for entry in client.read(ask)}
        assert counts == {b"\1": p4r.CounterData(byte_count=5, packet_count=6), b"\2": p4r.CounterData()}
        assert not client.read(p4r.TableEntry(table_id=names["l2"]))[0].HasField("counter_data")
        # MODIFY leaves the counter alone unless it is set.
        client.modify(l2_entry(names, 1, 3))
        key = p4r.TableEntry(table_id=names["l2"], match=[exact(1, 1)])
        (direct,) = client.read(p4r.DirectCounterEntry(table_entry=key))
        assert direct.data == p4r.CounterData(byte_count=5, packet_count=6)
        client.modify(p4r.DirectCounterEntry(table_entry=key, data=p4r.CounterData(packet_count=1)))
        (direct,) = client.read(p4r.DirectCounterEntry(table_entry=key))
        assert direct.data == p4r.CounterData(packet_count=1)
        assert len(client.read(p4r.DirectCounterEntry(table_entry=p4r.TableEntry(table_id=names["l2"])))) == 2

    def test_counter_refusals(self, client: Client, names: Names) -> None:
        absent = p4r.TableEntry(table_id=names["l2"], match=[exact(1, 9)])
        refused(Code.NOT_FOUND, lambda: client.read(p4r.DirectCounterEntry(table_entry=absent)))
        refused(Code.NOT_FOUND, lambda: client.modify(p4r.DirectCounterEntry(table_entry=absent, data=p4r.CounterData(packet_count=1))))
        client.insert(l2_entry(names, 9))
        refused(Code.INVALID_ARGUMENT, lambda: client.insert(p4r.DirectCounterEntry(table_entry=absent)), "only be modified")
        other = p4r.DirectCounterEntry(table_entry=p4r.TableEntry(table_id=names["routes"]))
        refused(Code.INVALID_ARGUMENT, lambda: client.read(other), "no direct counter")
        with_counter = route(names, IP, 8, counter_data=p4r.CounterData(packet_count=1))
        refused(Code.INVALID_ARGUMENT, lambda: client.insert(with_counter), "no direct counter")

    def test_meter(self, client: Client, names: Names) -> None:
        rates = p4r.MeterConfig(cir=10, cburst=20, pir=30, pburst=40)
        client.insert(l2_entry(names, 1, meter_config=rates))
        ask = p4r.TableEntry(table_id=names["l2"], meter_config=p4r.MeterConfig())
        assert client.read(ask)[0].meter_config == rates
        key = p4r.TableEntry(table_id=names["l2"], match=[exact(1, 1)])
        (direct,) = client.read(p4r.DirectMeterEntry(table_entry=key))
        assert direct.config == rates
        faster = p4r.MeterConfig(cir=11, cburst=20, pir=30, pburst=40)
        client.modify(p4r.DirectMeterEntry(table_entry=key, config=faster))
        assert client.read(p4r.DirectMeterEntry(table_entry=key))[0].config == faster
        refused(
            Code.INVALID_ARGUMENT,
            lambda: client.modify(p4r.DirectMeterEntry(table_entry=key, config=p4r.MeterConfig(cir=5, pir=4))),
            "pir 4 is below cir 5",
        )
        # MODIFY of the entry without a configuration puts the default back.
        client.modify(l2_entry(names, 1))
        assert not client.read(ask)[0].HasField("meter_config")
        coloured = p4r.DirectMeterEntry(table_entry=key, counter_data=p4r.MeterCounterData())
        refused(Code.UNIMPLEMENTED, lambda: client.read(coloured), "colour")


class TestCells:
    def test_counters(self, client: Client, names: Names) -> None:
        counter = names["port_packets"]
        client.modify(p4r.CounterEntry(counter_id=counter, index=p4r.Index(index=3), data=p4r.CounterData(byte_count=7, packet_count=2)))
        (one,) = client.read(p4r.CounterEntry(counter_id=counter, index=p4r.Index(index=3)))
        assert (one.index.index, one.data.byte_count, one.data.packet_count) == (3, 7, 2)
        cells = client.read(p4r.CounterEntry(counter_id=counter))
        assert [cell.index.index for cell in cells] == list(range(8))
        assert sum(cell.data.packet_count for cell in cells) == 2
        assert len(client.read(p4r.CounterEntry())) == 8
        client.modify(p4r.CounterEntry(counter_id=counter, data=p4r.CounterData(packet_count=9)))
        assert [cell.data.packet_count for cell in client.read(p4r.CounterEntry(counter_id=counter))] == [9] * 8

    def test_counter_refusals(self, client: Client, names: Names) -> None:
        counter = names["port_packets"]
        at = lambda index: p4r.CounterEntry(counter_id=counter, index=p4r.Index(index=index), data=p4r.CounterData())
        refused(Code.OUT_OF_RANGE, lambda: client.modify(at(8)), "port_packets", "8 cells")
        refused(Code.OUT_OF_RANGE, lambda: client.read(at(8)), "8 cells")
        refused(Code.INVALID_ARGUMENT, lambda: client.modify(at(-1)), "negative")
        refused(Code.INVALID_ARGUMENT, lambda: client.insert(at(0)), "only be modified")
        refused(Code.INVALID_ARGUMENT, lambda: client.delete(at(0)), "only be modified")
        refused(Code.INVALID_ARGUMENT, lambda: client.read(p4r.CounterEntry(counter_id=77)), "77")

    def test_meters(self, client: Client, names: Names) -> None:
        meter = names["port_meter"]
        rates = p4r.MeterConfig(cir=1000, cburst=1500, pir=2000, pburst=3000)
        client.modify(p4r.MeterEntry(meter_id=meter, index=p4r.Index(index=1), config=rates))
        cells = client.read(p4r.MeterEntry(meter_id=meter))
        assert [cell.index.index for cell in cells] == [0, 1, 2, 3]
        assert cells[1].config == rates
        assert not cells[0].HasField("config")
        client.modify(p4r.MeterEntry(meter_id=meter, config=rates))
        assert all(cell.config == rates for cell in client.read(p4r.MeterEntry()))
        client.modify(p4r.MeterEntry(meter_id=meter, index=p4r.Index(index=2)))
        assert not client.read(p4r.MeterEntry(meter_id=meter, index=p4r.Index(index=2)))[0].HasField("config")
        refused(Code.OUT_OF_RANGE, lambda: client.modify(p4r.MeterEntry(meter_id=meter, index=p4r.Index(index=4))), "4 cells")
        excess = p4r.MeterConfig(cir=1, cburst=1, pir=1, pburst=1, eburst=1)
        refused(Code.INVALID_ARGUMENT, lambda: client.modify(p4r.MeterEntry(meter_id=meter, config=excess)), "eburst")

    @pytest.mark.skipif(support.is_reference(), reason="BMv2 has no register entries")
    def test_registers(self, client: Client, names: Names) -> None:
        register = names["last_source"]
        data = lambda value: p4d.P4Data(bitstring=number(value))
        client.modify(p4r.RegisterEntry(register_id=register, index=p4r.Index(index=5), data=data(0xAABB)))
        (one,) = client.read(p4r.RegisterEntry(register_id=register, index=p4r.Index(index=5)))
        assert one.data == data(0xAABB)
        cells = client.read(p4r.RegisterEntry(register_id=register))
        assert [cell.data.bitstring for cell in cells] == [b"\0"] * 5 + [b"\xaa\xbb"] + [b"\0"] * 10
        client.modify(p4r.RegisterEntry(register_id=register, data=data(7)))
        assert all(cell.data == data(7) for cell in client.read(p4r.RegisterEntry()))
        refused(
            Code.INVALID_ARGUMENT,
            lambda: client.modify(p4r.RegisterEntry(register_id=register, index=p4r.Index(index=0), data=data(1 << 48))),
            "last_source",
            "49 bits",
        )
        at = p4r.RegisterEntry(register_id=register, index=p4r.Index(index=16), data=data(1))
        refused(Code.OUT_OF_RANGE, lambda: client.modify(at), "16 cells")
        refused(Code.INVALID_ARGUMENT, lambda: client.modify(p4r.RegisterEntry(register_id=register, data=p4d.P4Data(bool=True))))
        refused(Code.INVALID_ARGUMENT, lambda: client.insert(p4r.RegisterEntry(register_id=register, data=data(1))))


class TestActionProfiles:
    def member(self, names: Names, member_id: int, port: int = 1, profile: str = "spread") -> p4r.ActionProfileMember:
        action = names.action("set_nexthop", member_id, port) if profile == "spread" else names.action("rewrite", member_id, port)
        return p4r.ActionProfileMember(action_profile_id=names[profile], member_id=member_id, action=action)

    def group(self, names: Names, group_id: int, members: dict[int, int], max_size: int = 0) -> p4r.ActionProfileGroup:
        listed = [p4r.ActionProfileGroup.Member(member_id=member, weight=weight) for member, weight in members.items()]
        return p4r.ActionProfileGroup(action_profile_id=names["spread"], group_id=group_id, members=listed, max_size=max_size)

    def entry(self, names: Names, **action: object) -> p4r.TableEntry:
        return p4r.TableEntry(table_id=names["balance"], match=[lpm(1, IP, 8)], action=p4r.TableAction(**action))

    def test_members_groups_and_entries(self, client: Client, names: Names) -> None:
        members = [self.member(names, 1), self.member(names, 2)]
        client.insert(*members)
        group = self.group(names, 1, {1: 1, 2: 3}, max_size=8)
        client.insert(group)
        client.insert(self.entry(names, action_profile_group_id=1))
        assert client.read(p4r.ActionProfileMember()) == members
        assert client.read(p4r.ActionProfileMember(action_profile_id=names["spread"], member_id=2)) == members[1:]
        (read,) = client.read(p4r.ActionProfileGroup())
        assert sorted((m.member_id, m.weight) for m in read.members) == [(1, 1), (2, 3)]
        assert client.read(p4r.TableEntry(table_id=names["balance"])) == [self.entry(names, action_profile_group_id=1)]
        client.modify(self.entry(names, action_profile_member_id=2))
        assert client.read(p4r.TableEntry(table_id=names["balance"])) == [self.entry(names, action_profile_member_id=2)]
        client.modify(self.member(names, 2, port=9), self.group(names, 1, {1: 5}, max_size=8))
        assert client.read(p4r.ActionProfileMember(action_profile_id=names["spread"], member_id=2)) == [self.member(names, 2, 9)]
        assert client.read(p4r.ActionProfileGroup(action_profile_id=names["spread"], group_id=1))[0].members[0].weight == 5

    def test_references_hold(self, client: Client, names: Names) -> None:
        refused(Code.NOT_FOUND, lambda: client.insert(self.entry(names, action_profile_member_id=1)))
        refused(Code.NOT_FOUND, lambda: client.insert(self.group(names, 1, {1: 1})), "no such member")
        client.insert(self.member(names, 1))
        client.insert(self.group(names, 1, {1: 1}))
        refused(Code.FAILED_PRECONDITION, lambda: client.delete(self.member(names, 1)))
        client.insert(self.entry(names, action_profile_group_id=1))
        refused(Code.FAILED_PRECONDITION, lambda: client.delete(self.group(names, 1, {})))
        client.delete(self.entry(names))
        client.delete(self.group(names, 1, {}))
        client.delete(self.member(names, 1))
        refused(Code.NOT_FOUND, lambda: client.delete(self.member(names, 1)))
        refused(Code.NOT_FOUND, lambda: client.delete(self.group(names, 1, {})))

    def test_refusals(self, client: Client, names: Names) -> None:
        client.insert(self.member(names, 1))
        refused(Code.ALREADY_EXISTS, lambda: client.insert(self.member(names, 1)))
        refused(Code.NOT_FOUND, lambda: client.modify(self.member(names, 2)))
        no_action = p4r.ActionProfileMember(action_profile_id=names["spread"], member_id=3)
        refused(Code.INVALID_ARGUMENT, lambda: client.insert(no_action), "no action")
        refused(Code.INVALID_ARGUMENT, lambda: client.insert(self.group(names, 1, {1: 0})), "positive")
        refused(Code.INVALID_ARGUMENT, lambda: client.insert(self.entry(names, action=names.action("NoAction"))), "action profile")
        twice = self.group(names, 1, {1: 1})
        twice.members.add(member_id=1, weight=1)
        refused(Code.INVALID_ARGUMENT, lambda: client.insert(twice), "twice")
        to_group = p4r.TableEntry(table_id=names["rewrite_table"], match=[exact(1, 1)], action=p4r.TableAction(action_profile_group_id=1))
        refused(Code.INVALID_ARGUMENT, lambda: client.insert(to_group), "no selector")
        client.insert(self.group(names, 1, {1: 1}, max_size=4))
        refused(Code.INVALID_ARGUMENT, lambda: client.modify(self.group(names, 1, {1: 1}, max_size=5)), "max_size")

    def test_profile_without_selector(self, client: Client, names: Names) -> None:
        client.insert(self.member(names, 3, 4, "rewrites"))
        entry = p4r.TableEntry(table_id=names["rewrite_table"], match=[exact(1, 3)], action=p4r.TableAction(action_profile_member_id=3))
        client.insert(entry)
        assert client.read(p4r.TableEntry(table_id=names["rewrite_table"])) == [entry]
        refused(
            Code.INVALID_ARGUMENT,
            lambda: client.insert(p4r.ActionProfileGroup(action_profile_id=names["rewrites"], group_id=1)),
            "no selector",
        )

    def test_one_shots(self, client: Client, names: Names) -> None:
        def one_shot(*weights: int) -> p4r.TableEntry:
            actions = [
                p4r.ActionProfileAction(action=names.action("set_nexthop", index + 1, index + 1), weight=weight)
                for index, weight in enumerate(weights)
            ]
            return self.entry(names, action_profile_action_set=p4r.ActionProfileActionSet(action_profile_actions=actions))

        client.insert(one_shot(1, 2))
        assert client.read(p4r.TableEntry(table_id=names["balance"])) == [one_shot(1, 2)]
        client.modify(one_shot(3))
        assert client.read(p4r.TableEntry(table_id=names["balance"])) == [one_shot(3)]
        refused(Code.INVALID_ARGUMENT, lambda: client.insert(self.member(names, 1)), "mixed")
        refused(Code.INVALID_ARGUMENT, lambda: client.modify(one_shot(0)), "positive")
        client.delete(one_shot(1))
        assert client.read(p4r.ActionProfileMember()) == []
        client.insert(self.member(names, 1))
        refused(Code.INVALID_ARGUMENT, lambda: client.insert(one_shot(1)), "mixed")


class TestReplication:
    def test_multicast_groups(self, client: Client) -> None:
        replicas = [p4r.Replica(port=number(port), instance=instance) for port, instance in ((1, 0), (1, 1), (300, 65535))]
        group = p4r.MulticastGroupEntry(multicast_group_id=7, replicas=replicas)
        client.insert(group)
        assert client.read(p4r.MulticastGroupEntry()) == [group]
        smaller = p4r.MulticastGroupEntry(multicast_group_id=7, replicas=replicas[:1])
        client.modify(smaller)
        assert client.read(p4r.MulticastGroupEntry(multicast_group_id=7)) == [smaller]
        refused(Code.ALREADY_EXISTS, lambda: client.insert(group))
        client.delete(p4r.MulticastGroupEntry(multicast_group_id=7))
        assert client.read(p4r.MulticastGroupEntry()) == []
        refused(Code.NOT_FOUND, lambda: client.delete(group))
        refused(Code.NOT_FOUND, lambda: client.modify(group))

    def test_ports_as_numbers(self, client: Client) -> None:
        group = p4r.MulticastGroupEntry(multicast_group_id=1, replicas=[p4r.Replica(egress_port=4, instance=1)])
        client.insert(group)
        assert client.read(p4r.MulticastGroupEntry(multicast_group_id=1)) == [group]

    @pytest.mark.parametrize(
        ("group", "code", "words"),
        [
            (p4r.MulticastGroupEntry(), Code.INVALID_ARGUMENT, "1 to 65535"),
            (p4r.MulticastGroupEntry(multicast_group_id=65536), Code.INVALID_ARGUMENT, "1 to 65535"),
            (p4r.MulticastGroupEntry(multicast_group_id=1, replicas=[p4r.Replica(port=b"\2\0")]), Code.INVALID_ARGUMENT, "port 512"),
            (p4r.MulticastGroupEntry(multicast_group_id=1, replicas=[p4r.Replica(port=b"")]), Code.INVALID_ARGUMENT, "empty"),
            (p4r.MulticastGroupEntry(multicast_group_id=1, replicas=[p4r.Replica()]), Code.INVALID_ARGUMENT, "no port"),
            (
                p4r.MulticastGroupEntry(multicast_group_id=1, replicas=[p4r.Replica(port=b"\1", instance=65536)]),
                Code.INVALID_ARGUMENT,
                "65536",
            ),
            (
                p4r.MulticastGroupEntry(multicast_group_id=1, replicas=[p4r.Replica(port=b"\1")] * 2),
                Code.INVALID_ARGUMENT,
                "twice",
            ),
            (
                p4r.MulticastGroupEntry(
                    multicast_group_id=1,
                    replicas=[p4r.Replica(port=b"\1", backup_replicas=[p4r.BackupReplica(port=b"\2", instance=1)])],
                ),
                Code.UNIMPLEMENTED,
                "backup_replicas",
            ),
        ],
    )
    @pytest.mark.skipif(support.is_reference(), reason="PI checks less")
    def test_malformed_groups(self, client: Client, group: p4r.MulticastGroupEntry, code: Code, words: str) -> None:
        refused(code, lambda: client.insert(group), words)

    def test_clone_sessions(self, client: Client) -> None:
        session = p4r.CloneSessionEntry(session_id=100, replicas=[p4r.Replica(port=b"\x02", instance=1)], packet_length_bytes=64)
        client.insert(session)
        assert client.read(p4r.CloneSessionEntry(session_id=100)) == [session]
        session.packet_length_bytes = 128
        client.modify(session)
        assert client.read(p4r.CloneSessionEntry()) == [session]
        refused(Code.ALREADY_EXISTS, lambda: client.insert(session))
        client.delete(p4r.CloneSessionEntry(session_id=100))
        assert client.read(p4r.CloneSessionEntry()) == []
        refused(Code.NOT_FOUND, lambda: client.read(p4r.CloneSessionEntry(session_id=100)))
        refused(Code.NOT_FOUND, lambda: client.modify(session))
        refused(Code.INVALID_ARGUMENT, lambda: client.insert(p4r.CloneSessionEntry()), "1 to")
        session.class_of_service = 1
        refused(Code.UNIMPLEMENTED, lambda: client.insert(session), "class_of_service")


@pytest.mark.skipif(support.is_reference(), reason="PI has no value sets for BMv2")
class TestValueSets:
    def test_members(self, client: Client, names: Names) -> None:
        members = [p4r.ValueSetMember(match=[exact(1, value)]) for value in (0x22F3, 0x893B)]
        entry = p4r.ValueSetEntry(value_set_id=names["ip_like"], members=members)
        assert client.read(p4r.ValueSetEntry()) == [p4r.ValueSetEntry(value_set_id=names["ip_like"])]
        client.modify(entry)
        assert client.read(p4r.ValueSetEntry(value_set_id=names["ip_like"])) == [entry]
        client.modify(p4r.ValueSetEntry(value_set_id=names["ip_like"]))
        assert client.read(p4r.ValueSetEntry()) == [p4r.ValueSetEntry(value_set_id=names["ip_like"])]

    def test_refusals(self, client: Client, names: Names) -> None:
        entry = lambda *values: p4r.ValueSetEntry(
            value_set_id=names["ip_like"], members=[p4r.ValueSetMember(match=[exact(1, value)]) for value in values]
        )
        refused(Code.INVALID_ARGUMENT, lambda: client.insert(entry(1)), "only be modified")
        refused(Code.RESOURCE_EXHAUSTED, lambda: client.modify(entry(1, 2, 3, 4, 5)), "size is 4")
        refused(Code.ALREADY_EXISTS, lambda: client.modify(entry(1, 1)), "twice")
        refused(Code.INVALID_ARGUMENT, lambda: client.modify(entry(0x10000)), "17 bits")


class TestBatches:
    def test_each_update_has_its_own_code(self, client: Client, names: Names) -> None:
        good, late = l2_entry(names, 1), l2_entry(names, 2)
        absent, wrong = l2_entry(names, 3), l2_entry(names, 1 << 60)
        with pytest.raises(grpc.RpcError) as caught:
            client.updates((support.INSERT, good), (support.DELETE, absent), (support.INSERT, wrong), (0, good), (support.INSERT, late))
        assert caught.value.code() == Code.UNKNOWN
        codes = [error.canonical_code for error in support.details(caught.value)]
        assert codes == [0, Code.NOT_FOUND.value[0], Code.INVALID_ARGUMENT.value[0], Code.INVALID_ARGUMENT.value[0], 0]
        assert client.read(p4r.TableEntry(table_id=names["l2"])) == [good, late]

    def test_reads_answer_what_they_can(self, client: Client, names: Names) -> None:
        client.insert(l2_entry(names, 1))
        request = p4r.ReadRequest(device_id=support.DEVICE_ID)
        request.entities.append(support.wrap(p4r.TableEntry(table_id=names["l2"])))
        request.entities.append(support.wrap(p4r.CounterEntry(counter_id=99)))
        request.entities.append(p4r.Entity())
        found = []
        with pytest.raises(grpc.RpcError) as caught:
            for response in client.stub.Read(request, timeout=5):
                found.extend(response.entities)
        assert len(found) == 1
        assert caught.value.code() == Code.UNKNOWN
        assert [error.canonical_code for error in support.details(caught.value)] == [0, 3, 3]

    @pytest.mark.skipif(support.is_reference(), reason="PI offers only CONTINUE_ON_ERROR")
    @pytest.mark.parametrize("atomicity", ["ROLLBACK_ON_ERROR", "DATAPLANE_ATOMIC"])
    def test_all_or_none(self, client: Client, names: Names, atomicity: str) -> None:
        counter = names["port_packets"]
        before = l2_entry(names, 1, counter_data=p4r.CounterData(packet_count=3), metadata=b"m")
        client.insert(before, l2_entry(names, 2))
        group = p4r.MulticastGroupEntry(multicast_group_id=1, replicas=[p4r.Replica(port=b"\1")])
        client.insert(group)
        everything = (
            p4r.TableEntry(counter_data=p4r.CounterData()),
            p4r.CounterEntry(),
            p4r.MulticastGroupEntry(),
            p4r.RegisterEntry(),
            p4r.TableEntry(table_id=names["routes"], is_default_action=True),
        )
        state = sorted(entity.SerializeToString(deterministic=True) for entity in client.read(*everything))
        drop = p4r.TableEntry(table_id=names["routes"], is_default_action=True, action=table_action(names.action("EntitiesIngress.drop")))
        batch = [
            (support.DELETE, before),
            (support.MODIFY, l2_entry(names, 2, 7)),
            (support.INSERT, l2_entry(names, 3)),
            (support.MODIFY, drop),
            (support.MODIFY, p4r.MulticastGroupEntry(multicast_group_id=1)),
            (support.MODIFY, p4r.CounterEntry(counter_id=counter, data=p4r.CounterData(packet_count=1))),
            (support.MODIFY, p4r.RegisterEntry(register_id=names["last_source"], data=p4d.P4Data(bitstring=b"\5"))),
        ]
        with pytest.raises(grpc.RpcError) as caught:
            client.updates(*batch, (support.INSERT, l2_entry(names, 2)), (support.INSERT, l2_entry(names, 9)), atomicity=atomicity)
        codes = [error.canonical_code for error in support.details(caught.value)]
        aborted = Code.ABORTED.value[0]
        assert codes == [aborted] * 7 + [Code.ALREADY_EXISTS.value[0], aborted]
        assert sorted(entity.SerializeToString(deterministic=True) for entity in client.read(*everything)) == state
        client.updates(*batch, atomicity=atomicity)
        assert sorted(entry.match[0].exact.value for entry in client.read(p4r.TableEntry(table_id=names["l2"]))) == [b"\2", b"\3"]

    def test_externs(self, client: Client) -> None:
        refused(Code.UNIMPLEMENTED, lambda: client.read(p4r.ExternEntry(extern_type_id=0x81)), "extern")

    def test_many_entities_come_in_pieces(self, client: Client, names: Names) -> None:
        if support.is_reference():
            pytest.skip("BMv2 has no register entries")
        request = p4r.ReadRequest(device_id=support.DEVICE_ID)
        request.entities.extend([support.wrap(p4r.RegisterEntry())] * 40)
        sizes = [len(response.entities) for response in client.stub.Read(request, timeout=5)]
        assert sum(sizes) == 640
        assert len(sizes) > 1

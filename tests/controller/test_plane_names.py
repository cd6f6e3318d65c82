"""A control plane's own names and values as P4Runtime entities, and back."""

from __future__ import annotations

from pathlib import Path

import pytest
from finsy.proto import p4d, p4i, p4r
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from fairlane import native, probes
from fairlane.controller.plane import network
from fairlane.controller.plane.base import ControlPlane, Digest, DigestList
from fairlane.controller.plane.calls import Cells, CounterValue, Rewritten, Switch, SwitchRefused
from fairlane.controller.plane.engine import Engine, PlaneError
from fairlane.controller.plane.names import Entry, Group, Key, Member, Names, NotInProgram, Value

PROGRAM = probes.ROOT / "tests" / "schemes" / "plane_events.p4"


@pytest.fixture(scope="module")
def names() -> Names:
    _, p4info, said = native.compile(PROGRAM)
    assert p4info is not None, said
    return Names(text_format.Parse(p4info, p4i.P4Info()))


@pytest.mark.parametrize(
    ("keys", "read"),
    [
        ({"hdr.ipv4.destination": "10.0.1.0/24"}, {"hdr.ipv4.destination": (0x0A000100, 24)}),
        ({"hdr.ipv4.destination": ("10.0.1.0", 24)}, {"hdr.ipv4.destination": (0x0A000100, 24)}),
        ({"hdr.ipv4.destination": (0x0A000107, 24)}, {"hdr.ipv4.destination": (0x0A000100, 24)}),
        ({"hdr.ipv4.destination": (0, 0)}, {}),
        ({}, {}),
    ],
)
def test_a_prefix_is_written_in_several_ways(names: Names, keys: dict[str, Key], read: dict[str, tuple[int, int]]) -> None:
    entry = names.entry("route", keys, "send", {"port": 3, "mac": "02:00:00:00:01:ff"})
    back = names.read_entry(entry)
    assert (back.table, back.keys, back.action) == ("I.route", read, "I.send")
    assert back.values == {"port": 3, "mac": 0x0200000001FF}


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(0, 0xFFFF), st.integers(0, 0xFFFF), st.integers(0, 100))
def test_an_entry_is_read_as_it_was_written(names: Names, value: int, mask: int, one: int, other: int, priority: int) -> None:
    low, high = sorted((one, other))
    keys: dict[str, Key] = {"hdr.ipv4.source": (value, mask), "hdr.ethernet.type": (low, high)}
    back = names.read_entry(names.entry("I.marks", keys, Member(7), priority=priority))
    wanted = {"hdr.ipv4.source": (value & mask, mask)} if mask else {}
    wanted |= {"hdr.ethernet.type": (low, high)} if (low, high) != (0, 0xFFFF) else {}
    assert (back.keys, back.action, back.priority) == (wanted, Member(7), priority or 1)


@pytest.mark.parametrize(
    ("table", "keys", "action", "values", "said"),
    [
        ("rout", {}, "send", {}, "no table 'rout'; the program has I.route"),
        ("route", {"hdr.ipv4.destination": "10.0.0.256/24"}, "send", {}, "table I.route, key hdr.ipv4.destination: "),
        ("route", {"hdr.ipv4.destination": 3}, "send", {}, "write (value, prefix length), not 3"),
        ("route", {"hdr.ipv4.destination": (3, 33)}, "send", {}, "33 is not a prefix length of 0 to 32"),
        ("route", {"hdr.ipv4.destination": ("02:00:00:00:00:01", 8)}, "send", {}, "02:00:00:00:00:01 does not fit in 32 bits"),
        ("route", {"hdr.ipv4.destination": ("host", 8)}, "send", {}, "'host' is neither a number nor an IPv4, IPv6 or Ethernet address"),
        ("route", {}, "mark", {"value": 1}, "table route has no action mark; it has I.to_cpu, I.send, I.copies"),
        ("route", {}, "sent", {}, "no action 'sent'; the program has"),
        ("route", {}, "send", {"port": 1}, "action send: its parameter 'mac' gets no value"),
        ("route", {}, "send", {"port": 512, "mac": 1}, "action send, parameter port: 512 does not fit in 9 bits"),
        ("route", {}, "send", {"out": 1}, "action send has no parameter 'out'; it has port, mac"),
        ("marks", {"hdr.ethernet.type": (2, 1)}, Group(1), {}, "the lowest, 2, is above the highest, 1"),
    ],
)
def test_a_wrong_name_or_value_is_told(
    names: Names, table: str, keys: dict[str, Key], action: str | Group, values: dict[str, Value], said: str
) -> None:
    with pytest.raises(NotInProgram) as refused:
        names.entry(table, keys, action, values)
    assert said in str(refused.value)


def test_only_tables_that_need_them_have_priorities(names: Names) -> None:
    with pytest.raises(NotInProgram, match="its entries have no priority"):
        names.entry("route", {}, "to_cpu", priority=3)


NETWORK = network.PlaneConfig(
    "",
    "",
    1.0,
    (
        network.Node("s1", 1, "", (network.Port(1, "02:01:00:01:00:01", "s2", 1, 1000, 0.1, 10),), {"h1": 1}),
        network.Node("s2", 2, "", (network.Port(1, "02:01:00:02:00:01", "s1", 1, 1000, 0.1, 10),), {"h1": 2}),
    ),
    (network.Host("h1", "10.0.2.1", "02:00:00:02:00:01", "s2", 2, "02:01:00:02:00:02"),),
)


def test_a_configuration_is_read_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(network.to_json(NETWORK))
    read = network.read(tmp_path / "c.json")
    assert (read.switches, read.hosts, read.interval_s) == (NETWORK.switches, NETWORK.hosts, 1.0)


class Plane(ControlPlane):
    interval_s = 0.25

    def __init__(self) -> None:
        self.told: list[object] = []

    async def on_start(self, switch: Switch) -> None:
        await switch.register("packets").write(0, 1)
        self.told.append(("started", switch.name, self.now_s))

    async def on_interval(self) -> None:
        try:
            self.told.append(await self.switches["s1"].counter("by_port").read(2))
        except SwitchRefused as refusal:
            self.told.append(str(refusal))
            self.switches["s1"].register("packets").write(0, 2)

    def on_digest(self, switch: Switch, digest: Digest) -> None:
        self.told.append((switch.name, digest))


def started(plane: ControlPlane, names: Names) -> Engine:
    driven = Engine(plane, NETWORK, names, "own.py")
    todo = [message for switch in (0, 1) for message in driven.programmed(5, switch)]
    while todo:
        todo += driven.answered(7, todo.pop(0).token, [])
    assert driven.ready
    return driven


def test_events_await_answers(names: Names) -> None:
    plane = Plane()
    driven = started(plane, names)
    assert plane.told == [("started", "s1", 7e-9), ("started", "s2", 7e-9)]
    assert driven.next_ns(driven.interval_ns - 1) == 250_000_000 and driven.next_ns(250_000_000) == 500_000_000
    (reading,) = driven.interval(250_000_000)
    assert (reading.switch, reading.kind, plane.told[2:]) == (0, "read", [])
    cell = p4r.CounterEntry(counter_id=1, index=p4r.Index(index=2), data=p4r.CounterData(packet_count=3, byte_count=40))
    assert driven.answered(251_000_000, reading.token, [p4r.Entity(counter_entry=cell)]) == []
    assert plane.told[2:] == [CounterValue(3, 40)]


def test_a_refusal_is_raised_where_it_is_awaited_and_ends_the_run_elsewhere(names: Names) -> None:
    plane = Plane()
    driven = started(plane, names)
    (reading,) = driven.interval(1)
    (writing,) = driven.answered(2, reading.token, "not today")
    assert plane.told[2:] == ["switch s1 refuses it: not today"]
    line = next(n for n, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "write(0, 2)" in text)
    with pytest.raises(PlaneError, match=rf"^own\.py:{line}: on_interval: switch s1 refuses it: no room$"):
        driven.answered(3, writing.token, "no room")


def test_a_lost_switch_starts_again(names: Names) -> None:
    plane = Plane()
    driven = started(plane, names)
    (reading,) = driven.interval(1)
    driven.lost(2, 0)
    assert not driven.ready and driven.answered(2, reading.token, "late") == [] and driven.interval(2) == []
    todo = driven.programmed(3, 0)
    while todo:
        todo += driven.answered(4, todo.pop(0).token, [])
    assert driven.ready and plane.told[-1] == ("started", "s1", 4e-9)


def test_changes_of_a_batch_leave_in_one_message(names: Names) -> None:
    class Own(ControlPlane):
        async def on_packet_in(self, switch: Switch, packet: object) -> None:
            batch = switch.batch()
            batch.multicast_group(7, [1, 2])
            batch.table("route").insert({"hdr.ipv4.destination": "10.0.1.0/24"}, "copies", {"group": 7, "mac": 1})
            assert len(batch) == 2
            await batch.send()
            await switch.batch().table("route").delete({})

    driven = started(Own(), names)
    packet = p4r.StreamMessageResponse(packet=p4r.PacketIn(payload=b""))
    (message,) = driven.streamed(1, 0, packet)
    assert isinstance(message.request, p4r.WriteRequest)
    assert [update.entity.WhichOneof("entity") for update in message.request.updates] == ["packet_replication_engine_entry", "table_entry"]
    with pytest.raises(PlaneError, match="on_packet_in: awaits a batch that has not left: send it"):
        driven.answered(2, message.token, [])


def test_cells_are_read_by_one_message_and_entries_rewritten_by_another(names: Names) -> None:
    entry = names.entry("route", {"hdr.ipv4.destination": "10.0.1.0/24"}, "send", {"port": 3, "mac": 5})
    told: list[object] = []

    class Own(ControlPlane):
        async def on_interval(self) -> None:
            switch = self.switches["s1"]
            if not told:
                self.cells, self.route = switch.cells({"by_port": [2, 1]}), switch.rewrites([names.read_entry(entry)])
            told.append(await self.cells.read())
            await self.route.write([{"port": len(told), "mac": 6}])

    driven = started(Own(), names)
    for number in (1, 2):
        (reading,) = driven.interval(number)
        assert isinstance(reading.request, Cells)
        wanted = [cell.counter_entry for cell in reading.request.request.entities]
        assert [cell.index.index for cell in wanted] == [2, 1]
        (writing,) = driven.answered(number, reading.token, [(wanted[0].counter_id, 2, number, 40), (wanted[0].counter_id, 1, 0, 0)])
        assert told[-1] == {"by_port": {2: CounterValue(number, 40), 1: CounterValue(0, 0)}}
        assert isinstance(writing.request, Rewritten)
        (update,) = writing.request.message().updates
        assert names.read_entry(update.entity.table_entry).values == {"port": number, "mac": 6}
        driven.answered(number, writing.token, [])


def test_what_is_spawned_goes_on_beside_and_ends_with_its_switch(names: Names) -> None:
    told: list[object] = []

    class Own(ControlPlane):
        def on_interval(self) -> None:
            for switch in self.switches.values():
                self.spawn(self.look(switch))
            told.append("spawned")

        async def look(self, switch: Switch) -> None:
            later = self.until(0.5)
            await switch.counter("by_port").read_all()
            await later
            told.append((switch.name, self.now_s))

        def on_lost(self, switch: Switch) -> None:
            told.append(("lost", switch.name))

    driven = started(Own(), names)
    messages = driven.interval(1)
    assert [(message.switch, message.kind, message.request == 500_000_000) for message in messages] == [
        (-1, "timer", True),
        (0, "read", False),
        (-1, "timer", True),
        (1, "read", False),
    ]
    assert told == ["spawned"]
    driven.lost(2, 0)
    assert driven.answered(3, messages[3].token, []) == []
    for timer in (messages[0], messages[2]):
        assert driven.answered(500_000_000, timer.token, ()) == []
    assert told == ["spawned", ("lost", "s1"), ("s2", 0.5)]


def test_digests_come_by_names_and_are_acknowledged(names: Names) -> None:
    plane = Plane()
    driven = started(plane, names)
    digest = names.digests["seen_t"].preamble.id
    members = [p4d.P4Data(bitstring=b"\x0a\x00\x00\x01"), p4d.P4Data(bitstring=b"\x02")]
    rows = [p4d.P4Data(struct=p4d.P4StructLike(members=members))]
    digests = p4r.StreamMessageResponse(digest=p4r.DigestList(digest_id=digest, list_id=4, data=rows))
    (ack,) = driven.streamed(9, 1, digests)
    assert plane.told[2:] == [("s2", Digest("seen_t", {"source": 0x0A000001, "port": 2}))]
    assert isinstance(ack.request, p4r.StreamMessageRequest)
    assert (ack.kind, ack.request.digest_ack.list_id) == ("stream", 4)

    class Lists(Plane):
        def on_digest_list(self, switch: Switch, digests: DigestList) -> None:
            self.told.append(digests)

    both = Lists()
    started(both, names).streamed(9, 1, digests)
    assert both.told[2:] == [DigestList("seen_t", ("source", "port"), [[0x0A000001, 2]]), plane.told[2]]


@given(st.lists(st.tuples(st.sampled_from(["insert", "modify", "delete", "default"]), st.integers(0, 2), st.booleans(), st.booleans())))
def test_an_idle_timeout_has_the_action_that_the_switch_has_taken_last(names: Names, steps: list[tuple[str, int, bool, bool]]) -> None:
    """Of each step: what is written, of which entry, with an idle timeout or without, and whether the switch takes it."""
    events: list[tuple[object, object]] = []
    keys = [{"hdr.ipv4.destination": (0, 0)}, {"hdr.ipv4.destination": (8, 32)}, {"hdr.ipv4.destination": (8, 31)}]

    class Own(ControlPlane):
        async def on_packet_in(self, switch: Switch, packet: object) -> None:
            table = switch.table("route")
            try:
                if step == "delete":
                    await table.delete(keys[one])
                elif step == "default":
                    await table.set_default("send", values)
                else:
                    await getattr(table, step)(keys[one], "send", values, idle_timeout_s=float(timed))
            except SwitchRefused:
                pass

        def on_idle_timeout(self, switch: Switch, entry: Entry) -> None:
            events.append((entry.action, entry.values))

    driven = started(Own(), names)
    has: dict[int, dict[str, int]] = {}
    for number, (step, one, timed, taken) in enumerate(steps):
        values = {"port": one, "mac": number}
        (message,) = driven.streamed(number, 0, p4r.StreamMessageResponse(packet=p4r.PacketIn(payload=b"")))
        driven.answered(number, message.token, [] if taken else "no")
        if taken and step != "default":
            has.pop(one, None)
            if step != "delete" and timed:
                has[one] = values
    for one, key in enumerate(keys):
        entry = names.entry("route", key)  # a switch reports the keys alone
        note = p4r.StreamMessageResponse(idle_timeout_notification=p4r.IdleTimeoutNotification(table_entry=[entry]))
        assert driven.streamed(99, 0, note) == []
        assert events[one] == (("I.send", has[one]) if one in has else (None, {}))


def test_a_direct_meter_is_of_an_entry(names: Names) -> None:
    plane = Plane()
    started(plane, names)
    with pytest.raises(NotInProgram, match="table marks has no direct meter"):
        plane.switches["s1"].table("marks").set_meter({}, 1, 2, 3, 4)


def test_an_event_awaits_nothing_but_switches(names: Names) -> None:
    class Sleeps(ControlPlane):
        async def on_interval(self) -> None:
            await Other()

    class Other:
        def __await__(self):  # type: ignore[no-untyped-def]
            yield 3

    with pytest.raises(PlaneError, match="on_interval: awaits something that is no call of a switch"):
        started(Sleeps(), names).interval(1)

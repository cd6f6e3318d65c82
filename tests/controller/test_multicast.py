"""Joins and leaves against a brute-force model: switches that take each P4Runtime update strictly, and packets that walk through them."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from finsy.proto import p4r
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane.controller import igmp
from fairlane.controller.config import Config, Igmp, Port, Route, Switch
from fairlane.controller.igmp import Kind, Reason
from fairlane.controller.multicast import FLOOD_ID, TABLE, TABLE_FROM, Membership, MulticastControl
from fairlane.controller.plane.base import PacketIn
from fairlane.controller.plane.calls import Switch as On
from fairlane.controller.plane.names import Entry, Names

GROUPS = (0xEF010001, 0xEF010002)
HOST_PORT = 100  # and up: ports with hosts
MAC = "02:00:00:00:00:01"


@dataclass
class Network:
    """Switches s0, s1, ... with links between them and hosts (switch, port)."""

    config: Config
    hosts: list[tuple[str, int]]
    far_end: dict[tuple[str, int], tuple[str, int]]

    def ip(self, host: tuple[str, int]) -> int:
        return 0x0A000000 | int(host[0][1:]) << 8 | host[1] - HOST_PORT + 1


def network(
    parents: list[int], hosts_on: list[int], extra: list[tuple[int, int]] = (), igmp_config: Igmp = Igmp(), routers: int = 0
) -> Network:
    """Switch i + 1 hangs on parents[i]; extra links close circles. routers: bit i, bit 8 + i: link i leads to a multicast router, there, back."""
    names = [f"s{i}" for i in range(len(parents) + 1)]
    ports: dict[str, list[Port]] = {name: [] for name in names}
    far_end = {}
    for i, (a, b) in enumerate([*((p, i + 1) for i, p in enumerate(parents)), *extra]):
        a_port, b_port = len(ports[names[a]]) + 1, len(ports[names[b]]) + 1
        ports[names[a]].append(Port(a_port, 1_000_000, peer=names[b], peer_port=b_port, multicast_router=bool(routers >> i & 1)))
        ports[names[b]].append(Port(b_port, 1_000_000, peer=names[a], peer_port=a_port, multicast_router=bool(routers >> 8 + i & 1)))
        far_end[names[a], a_port] = names[b], b_port
        far_end[names[b], b_port] = names[a], a_port
    hosts, switches = [], []
    for i, name in enumerate(names):
        mine = [HOST_PORT + n for n in range(hosts_on[i])]
        hosts += [(name, port) for port in mine]
        routes = tuple(Route(f"10.0.{i}.{n + 1}/32", port, MAC, MAC) for n, port in enumerate(mine))
        switches.append(Switch(name, i + 1, f"127.0.0.1:{9559 + i}", (*ports[name], *(Port(p, 1_000_000) for p in mine)), routes))
    return Network(Config("a", "b", tuple(switches), igmp=igmp_config), hosts, far_end)


@dataclass
class FakeSwitch:
    """What a switch holds. An insert of what is there, a change of what is not: both fail, as over P4Runtime."""

    p4info: Names
    groups: dict[int, frozenset[int]] = field(default_factory=dict)
    entries: dict[bytes, p4r.TableEntry] = field(default_factory=dict)
    default: int = 0

    def write(self, update: p4r.Update) -> None:
        if update.entity.HasField("table_entry") and update.entity.table_entry.is_default_action:
            assert update.type == p4r.Update.MODIFY and update.entity.table_entry.table_id == self.p4info.table_id(TABLE)
            self.default = int.from_bytes(update.entity.table_entry.action.action.params[0].value, "big")
            return
        if update.entity.HasField("table_entry"):
            entry = update.entity.table_entry
            key = p4r.TableEntry(table_id=entry.table_id, match=entry.match).SerializeToString(deterministic=True)
            store, value = self.entries, entry
        else:
            entry = update.entity.packet_replication_engine_entry.multicast_group_entry
            key = entry.multicast_group_id
            store, value = self.groups, frozenset(r.egress_port for r in entry.replicas)
            assert 0 < key < 65536
            assert value or update.type == p4r.Update.DELETE
        assert (key in store) == (update.type != p4r.Update.INSERT), update
        if update.type == p4r.Update.DELETE:
            del store[key]
        else:
            store[key] = value

    def read(self) -> list[Entry]:
        return [self.p4info.read_entry(entry) for entry in self.entries.values()]

    def copies(self, port: int, group: int) -> frozenset[int]:
        """Where a packet goes: as `forward.p4` says."""
        found = {
            entry.table: entry.values.get("group", 0)
            for entry in self.read()
            if entry.keys["hdr.ipv4.dst_address"] == group and entry.keys.get("standard_metadata.ingress_port", port) == port
        }
        number = found.get(TABLE_FROM, found.get(TABLE, self.default))
        copies = self.groups[number] if number else frozenset()
        # Of these alone the program's egress drops what would go back.
        return copies - {port} if number == FLOOD_ID else copies


class Run:
    """A controller and its switches."""

    def __init__(self, net: Network, p4info) -> None:
        self.net, self.p4info = net, p4info
        self.switches = {s.name: FakeSwitch(p4info) for s in net.config.switches}
        self.on = {s.name: On(i, s.name, {}, {}, p4info, self.carry) for i, s in enumerate(net.config.switches)}
        self.packets: list[tuple[str, p4r.StreamMessageRequest]] = []
        self.restarted()
        self.now_s = 0.0
        for name in self.switches:
            self.control.on_connected(0.0, name, None)

    def restarted(self) -> None:
        self.control = MulticastControl(self.net.config, self.p4info, self.on)

    def carry(self, number: int, kind: str, request, call) -> None:
        switch = self.net.config.switches[number]
        if kind == "stream":
            self.packets.append((switch.name, request))
            return
        for update in request.updates:
            self.switches[switch.name].write(update)
            for port in switch.ports:
                for group in GROUPS:
                    assert port.number not in self.switches[switch.name].copies(port.number, group), "a copy would go back"

    def say(self, host: tuple[str, int], kind: Kind, group: int) -> list[Membership]:
        frame = igmp.build(kind, group, self.net.ip(host), 2)
        return self.control.on_packet_in(self.now_s, host[0], PacketIn(frame, {"ingress_port": host[1]}))

    def reached(self, source: tuple[str, int], group: int) -> list[tuple[str, int]]:
        """Hosts that get a packet, as often as they get it."""
        arrived, todo, steps = [], [source], 0
        while todo:
            steps += 1
            assert steps < 1000, "a packet goes in circles"
            name, port = todo.pop()
            for out in self.switches[name].copies(port, group):
                if (name, out) in self.net.far_end:
                    todo.append(self.net.far_end[name, out])
                else:
                    arrived.append((name, out))
        return sorted(arrived)

    def check(self, members: set[tuple[tuple[str, int], int]]) -> None:
        for group in GROUPS:
            for source in self.net.hosts:
                assert self.reached(source, group) == sorted(h for h, g in members if g == group and h != source)
        for name, switch in self.switches.items():
            live = self.control.group_ports(name)
            assert dict(live.items()) == switch.groups
            if not members:
                assert set(switch.groups) <= {FLOOD_ID} and not switch.entries


@st.composite
def networks(draw, circles: bool) -> Network:
    count = draw(st.integers(1, 5))
    parents = [draw(st.integers(0, i)) for i in range(count - 1)]
    hosts_on = [draw(st.integers(0 if count > 1 else 1, 3)) for _ in range(count)]
    hosts_on[0] = max(1, hosts_on[0])
    numbers = st.integers(0, count - 1)
    pairs = st.lists(st.tuples(numbers, numbers).filter(lambda p: p[0] != p[1]), max_size=3) if circles and count > 1 else st.just([])
    return network(parents, hosts_on, extra := draw(pairs), routers=0 if extra else draw(st.sampled_from((0, 0, 1, 2, 0x0101, 0xFFFF))))


steps = st.lists(st.tuples(st.integers(0, 99), st.booleans(), st.sampled_from(GROUPS)), max_size=25)


@settings(max_examples=150)
@given(net=st.booleans().flatmap(lambda circles: networks(circles)), actions=steps)
def test_each_packet_reaches_each_member_once_and_nobody_else(p4info, net, actions):
    run, members = Run(net, p4info), set()
    run.check(members)
    for who, join, group in actions:
        host = net.hosts[who % len(net.hosts)]
        known = (host, group) in members
        changes = run.say(host, Kind.REPORT if join else Kind.LEAVE, group)
        (members.add if join else members.discard)((host, group))
        assert [m.event for m in changes] == ([] if known == join else ["join" if join else "leave"])
        run.check(members)
    assert not run.control.errors


@settings(max_examples=100)
@given(net=networks(False), actions=steps, later=steps, order=st.randoms(use_true_random=False), fresh=st.integers(0, 4))
def test_a_restarted_controller_takes_over_what_the_switches_hold(p4info, net, actions, later, order, fresh):
    run, members = Run(net, p4info), set()
    for who, join, group in actions:
        host = net.hosts[who % len(net.hosts)]
        run.say(host, Kind.REPORT if join else Kind.LEAVE, group)
        (members.add if join else members.discard)((host, group))
    run.restarted()
    names = list(run.switches)
    order.shuffle(names)
    for name in names:
        run.control.on_connected(1.0, name, run.switches[name].read())
        for group in GROUPS:
            for source in net.hosts:
                # Nobody loses a packet meanwhile.
                assert {h for h, g in members if g == group and h != source} <= set(run.reached(source, group))
    run.check(members)
    # A switch that starts anew gets all again; joins and leaves go on.
    name = names[fresh % len(names)]
    run.control.on_disconnected(name)
    run.switches[name] = FakeSwitch(p4info)
    for i, (who, join, group) in enumerate(later):
        host = net.hosts[who % len(net.hosts)]
        run.say(host, Kind.REPORT if join else Kind.LEAVE, group)
        (members.add if join else members.discard)((host, group))
        if i == len(later) // 2:
            run.control.on_connected(2.0, name, None)
    if not later:
        run.control.on_connected(2.0, name, None)
    run.check(members)


def test_a_leave_while_a_restarted_controller_has_not_heard_all_takes_effect_when_it_has(p4info):
    net = network([0], [1, 2])
    run = Run(net, p4info)
    source, stays, leaves = net.hosts
    run.say(stays, Kind.REPORT, GROUPS[0])
    run.say(leaves, Kind.REPORT, GROUPS[0])
    run.restarted()
    run.control.on_connected(1.0, "s1", run.switches["s1"].read())
    run.say(leaves, Kind.LEAVE, GROUPS[0])
    assert run.reached(source, GROUPS[0]) == [stays, leaves]
    run.control.on_connected(1.0, "s0", run.switches["s0"].read())
    run.check({(stays, GROUPS[0])})


def test_a_multicast_router_gets_packets_to_every_group(p4info):
    net = network([0, 1], [1, 0, 1], routers=1)
    run = Run(net, p4info)
    source, receiver = net.hosts
    for group in GROUPS:
        assert run.switches["s0"].copies(source[1], group) == {1}
        assert run.switches["s1"].copies(1, group) == frozenset()
    run.say(receiver, Kind.REPORT, GROUPS[0])
    run.check({(receiver, GROUPS[0])})
    # From elsewhere too, when it is a member's group or not, but never back.
    run.say(source, Kind.REPORT, GROUPS[0])
    run.check({(receiver, GROUPS[0]), (source, GROUPS[0])})
    for group in GROUPS:
        assert 1 not in run.switches["s0"].copies(1, group)
    for host in net.hosts:
        run.say(host, Kind.LEAVE, GROUPS[0])
    assert run.switches["s0"].copies(source[1], GROUPS[0]) == {1}
    # A restarted controller finds it so.
    run.restarted()
    for name, switch in run.switches.items():
        run.control.on_connected(1.0, name, switch.read())
    run.check(set())


def test_a_multicast_router_off_the_tree_is_refused(p4info):
    net = network([0], [1, 1], extra=[(0, 1)], routers=2)
    with pytest.raises(ValueError, match="switch s0: a port to a multicast router is not on the tree"):
        MulticastControl(net.config, p4info, {})


def test_without_queries_a_membership_lasts(p4info):
    net = network([0], [1, 1])
    run = Run(net, p4info)
    run.say(net.hosts[1], Kind.REPORT, GROUPS[0])
    assert run.control.on_tick(1e9) == []
    run.check({(net.hosts[1], GROUPS[0])})


def test_with_queries_a_membership_ends_with_its_interval(p4info):
    net = network([0], [1, 1], igmp_config=Igmp(query_interval_s=20, query_response_s=5))
    run = Run(net, p4info)
    run.say(net.hosts[1], Kind.REPORT, GROUPS[0])
    run.now_s = 10.0
    assert run.say(net.hosts[1], Kind.REPORT, GROUPS[0]) == []  # an answer to a query
    run.control.on_tick(54.9)
    run.check({(net.hosts[1], GROUPS[0])})
    changes = run.control.on_tick(55.0)
    assert [(m.event, m.group) for m in changes] == [("expire", "239.1.0.1")]
    run.check(set())


def test_queries_go_to_each_host_and_soon_at_the_start(p4info):
    net = network([0], [1, 2], igmp_config=Igmp(query_interval_s=20, query_response_s=5))
    run = Run(net, p4info)

    def asked(time_s: float) -> list[tuple[str, p4r.StreamMessageRequest]]:
        run.packets.clear()
        run.control.on_tick(time_s)
        return run.packets

    assert [t for t in range(60) if asked(float(t))] == [0, 5, 25, 45]
    packets = asked(65.0)
    assert [name for name, _ in packets] == ["s0", "s1", "s1"]
    (number,) = [m.id for m in p4info.packet_headers["packet_out"].metadata if m.name == "egress_port"]
    for (_, message), host in zip(packets, net.hosts):
        assert {m.metadata_id: int.from_bytes(m.value, "big") for m in message.packet.metadata}[number] == host[1]
        found = igmp.parse(message.packet.payload)
        assert (found.kind, found.group, found.source, found.max_response_s) == (Kind.QUERY, 0, 0, 5.0)


def test_what_is_forged_is_counted_and_changes_nothing(p4info):
    net = network([0], [1, 1])
    run = Run(net, p4info)
    host = net.hosts[1]
    report = igmp.build(Kind.REPORT, GROUPS[0], net.ip(host), 2)
    cases = [
        (Reason.TRUNCATED, host, report[:20]),
        (Reason.UNKNOWN_SOURCE, host, igmp.build(Kind.REPORT, GROUPS[0], net.ip(net.hosts[0]), 2)),
        (Reason.NOT_A_HOST_PORT, ("s1", 1), report),
        (Reason.UNKNOWN_PORT, ("s1", 77), report),
        (Reason.QUERY, host, igmp.build(Kind.QUERY, 0, net.ip(host), 2, 1.0)),
    ]
    for reason, (switch, port), frame in cases:
        before = run.control.errors[reason]
        assert run.control.on_packet_in(0.0, switch, PacketIn(frame, {"ingress_port": port})) == []
        assert run.control.errors[reason] == before + 1
    assert run.control.on_packet_in(0.0, "s1", PacketIn(report)) == []
    assert run.control.errors[Reason.NO_METADATA] == 1
    # Groups of the link itself are none of the switches' business, and no error.
    assert run.say(host, Kind.REPORT, 0xE00000FB) == []
    assert sum(run.control.errors.values()) == len(cases) + 1
    run.check(set())


def test_a_report_from_no_address_is_a_join_and_a_leave_is_not(p4info):
    """Reports "must not be rejected because the source IP address is set to 0.0.0.0" [RFC 4541 sec 2.1.1]."""
    net = network([0], [1, 1])
    run = Run(net, p4info)
    switch, port = host = net.hosts[1]
    for kind in (Kind.REPORT, Kind.LEAVE):
        run.control.on_packet_in(0.0, switch, PacketIn(igmp.build(kind, GROUPS[0], 0, 2), {"ingress_port": port}))
    assert run.control.errors == {Reason.UNKNOWN_SOURCE: 1}
    run.check({(host, GROUPS[0])})


def test_one_host_cannot_fill_the_tables(p4info):
    net = network([0], [1, 1], igmp_config=Igmp(max_groups_per_port=3))
    run = Run(net, p4info)
    for n in range(10):
        run.say(net.hosts[1], Kind.REPORT, 0xEF020000 + n)
    assert run.control.errors == {Reason.TOO_MANY_GROUPS: 7}
    assert len(run.switches["s0"].groups) == 3


@pytest.mark.parametrize("table", [TABLE, TABLE_FROM])
def test_a_full_table_refuses_a_join(p4info, table):
    net = network([0], [1, 3], igmp_config=Igmp(max_groups_per_port=10))
    run = Run(net, p4info)
    run.control._table_sizes[table] = 4
    members = set()
    for group in range(0xEF020000, 0xEF020004):
        for host in net.hosts[1:]:
            if run.say(host, Kind.REPORT, group):
                members.add((host, group))
    assert run.control.errors[Reason.TOO_MANY_GROUPS] == (0 if table == TABLE else 12 - len(members))
    run.say(net.hosts[0], Kind.REPORT, 0xEF020009)
    assert run.control.errors[Reason.TOO_MANY_GROUPS] > 0
    for group in range(0xEF020000, 0xEF02000A):
        assert run.reached(net.hosts[0], group) == sorted(h for h, g in members if g == group)


@given(payload=st.binary(max_size=80), port=st.integers(0, 511))
def test_no_packet_raises(p4info, payload, port):
    run = Run(network([0], [1, 1]), p4info)
    assert run.control.on_packet_in(0.0, "s0", PacketIn(payload, {"ingress_port": port})) == []
    assert sum(run.control.errors.values()) == 1

"""Joins and leaves become multicast groups of the switches ([ALS sec 4.3]: "joining and leaving a multicast session is done
explicitly", "instantaneously").

    packet-in --igmp--> member? of (switch, port, group) --tree--> ports that lead to a member --difference--> P4Runtime updates

For a group G, each switch replicates to the ports that lead to a member, never back to the packet's input port. "Leads
to" means along one tree that spans all switches. In a network that is a tree, as in the papers, these are the unicast routes. In other
networks, packets to groups stay on the tree, so that none loops or arrives twice.

A switch has these entries for group G with ports A:

    table multicast        G        -> multicast group with replicas A
    table multicast_from   (P, G)   -> multicast group with replicas A - {P}, or drop     for each P in A

A port that leads to a multicast router (`Port.multicast_router`) is in every A, and also gets packets to groups without members.

The controller writes the difference to the switch's present entries, additions before removals. The keys of `multicast_from` contain
A: a controller that connects to a running switch reads them back and knows the members without queries to hosts.

Pure: time is an argument; calls of `fairlane.controller.plane` carry out what follows.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, ip_network

from fairlane.controller import igmp
from fairlane.controller.config import Config, Route, Switch, mac
from fairlane.controller.igmp import IgmpError, Kind, Reason
from fairlane.controller.plane import calls
from fairlane.controller.plane.base import PacketIn
from fairlane.controller.plane.calls import Batch
from fairlane.controller.plane.names import Entry, Key, Names, Value

TABLE = "AlsIngress.forward.multicast"
TABLE_FROM = "AlsIngress.forward.multicast_from"
REPLICATE = "AlsIngress.forward.replicate"
DROP = "AlsIngress.forward.drop"
_GROUP, _PORT = "hdr.ipv4.dst_address", "standard_metadata.ingress_port"
PACKET_IN, PACKET_OUT = "packet_in", "packet_out"
MAX_GROUP_ID = 65534  # mcast_grp of v1model has 16 bits
FLOOD_ID = 65535
"""Of the multicast group that has the ports towards multicast routers."""


@dataclass(frozen=True)
class Membership:
    """A change: event is "join", "leave", "expire" or "restore" (found in a running switch). host: who sent the message, "" without."""

    time_s: float
    switch: str
    port: int
    group: str
    event: str
    host: str = ""


class Tree:
    """The spanning tree over a configuration's switches: breadth first from the first switch, ports in the order of their numbers."""

    def __init__(self, switches: Iterable[Switch]) -> None:
        by_name = {s.name: s for s in switches}
        edges: dict[str, list[tuple[int, str]]] = {name: [] for name in by_name}
        reached: set[str] = set()
        for root in by_name:
            todo = deque([root] if root not in reached else [])
            reached.add(root)
            while todo:
                name = todo.popleft()
                for port in sorted(by_name[name].ports, key=lambda p: p.number):
                    if port.peer and port.peer not in reached:
                        reached.add(port.peer)
                        edges[name].append((port.number, port.peer))
                        edges[port.peer].append((port.peer_port, name))
                        todo.append(port.peer)
        self.toward = {name: self._ports_toward(name, edges) for name in by_name}
        """For each switch, the port that leads to each other one that can be reached."""

    @staticmethod
    def _ports_toward(start: str, edges: Mapping[str, list[tuple[int, str]]]) -> dict[str, int]:
        toward: dict[str, int] = {}
        for port, neighbour in edges[start]:
            todo, before = [neighbour], {start}
            while todo:
                name = todo.pop()
                before.add(name)
                toward[name] = port
                todo += [n for _, n in edges[name] if n not in before]
        return toward


class _Installed:
    """What one switch holds. ports: replicas of each multicast group, by id; None: not known."""

    def __init__(self, name: str, live: dict[int, frozenset[int]]) -> None:
        self.name = name
        self.ids: dict[tuple[int, int | None], int] = {}
        """Id of the multicast group for (group's address, port that it excludes), 0 for drop."""
        self.ports: dict[int, frozenset[int] | None] = {}
        self._live = live
        self._last = 0
        live.clear()

    def set_ports(self, number: int, ports: frozenset[int] | None) -> None:
        self.ports[number] = ports
        if ports is not None:
            self._live[number] = ports

    def remove(self, number: int) -> None:
        del self.ports[number]
        self._live.pop(number, None)

    def new_id(self) -> int:
        """Ids come round late, so that a digest about a group that is gone is not taken for one about its successor."""
        for _ in range(MAX_GROUP_ID):
            self._last = self._last % MAX_GROUP_ID + 1
            if self._last not in self.ports:
                return self._last
        raise RuntimeError(f"all {MAX_GROUP_ID} multicast groups of a switch are in use: its tables must be smaller")

    def groups(self) -> set[int]:
        return {group for group, _ in self.ids}


class MulticastControl:
    """The members of each group, and the entries of the switches for them. Events return the changes of memberships.

    A membership belongs to a port: each host has its own link, so a leave needs no query for remaining members ([RFC 2236 sec 3]
    sends one), and takes effect at once. Without queries (`Igmp.query_interval_s` 0) a membership lasts until its leave; with them it
    lasts for the group membership interval (section 8.4) since the last report.
    """

    def __init__(self, config: Config, names: Names, on: Mapping[str, calls.Switch]) -> None:
        """on: where changes go, by switch."""
        self.errors: Counter[Reason] = Counter()
        """Packets that changed nothing, by reason."""
        self._igmp = config.igmp
        self._names = names
        self._on = on
        self._batches: dict[str, Batch] = {}
        self._switches = {s.name: s for s in config.switches}
        self._tree = Tree(config.switches)
        self._expiry: dict[str, dict[tuple[int, int], float]] = {name: {} for name in self._switches}
        """For each switch, (port, group) -> when the membership ends."""
        self._installed: dict[str, _Installed | None] = dict.fromkeys(self._switches)
        self._heard: set[str] = set()
        self._live: dict[str, dict[int, frozenset[int]]] = {name: {} for name in self._switches}
        self._table_sizes = {name: names.table(name).size for name in (TABLE, TABLE_FROM)}
        self._router_ports = {s.name: frozenset(p.number for p in s.ports if p.multicast_router) for s in config.switches}
        for name, ports in self._router_ports.items():
            if not ports <= set(self._tree.toward[name].values()):
                raise ValueError(f"switch {name}: a port to a multicast router is not on the tree that packets to groups take")
        self._next_query_s = 0.0
        self._queries_sent = 0

    def ask_names(self) -> None:
        """Every name of the program that joins and leaves need. NotInProgram."""
        self._names.check_packet_field(PACKET_IN, "ingress_port")
        self._names.check_packet_field(PACKET_OUT, "egress_port")
        for port in (None, 1):
            for number in (0, 1):
                table, keys = _keys(0, port)
                self._names.entry(table, keys, *_action(number))

    def group_ports(self, switch: str) -> Mapping[int, frozenset[int]]:
        """Ports of each multicast group of a switch, by id; the mapping follows all changes."""
        return self._live[switch]

    def members(self, group: int) -> list[tuple[str, int]]:
        """Switch and port of each member of a group."""
        return sorted((name, p) for name, held in self._expiry.items() for p, g in held if g == group)

    # -------------------------------------------------------------------------------------------------------- events

    def on_packet_in(self, now_s: float, switch: str, packet: PacketIn) -> list[Membership]:
        """An IGMP message, or anything else that came to the CPU port. Nothing that a host can send raises."""
        try:
            if "ingress_port" not in packet.fields:
                raise IgmpError(Reason.NO_METADATA)
            port = packet.fields["ingress_port"]
            message = igmp.parse(packet.payload)
            self._check(switch, port, message)
            if igmp.is_link_local(message.group):
                return []
            return self._change(now_s, switch, port, message)
        except IgmpError as error:
            self.errors[error.reason] += 1
            return []

    def on_tick(self, now_s: float) -> list[Membership]:
        """To be called each second or so: memberships that have run out, queries that are due."""
        changes: list[Membership] = []
        expired: set[int] = set()
        for name, held in self._expiry.items():
            for (port, group), end_s in sorted(held.items()):
                if end_s <= now_s:
                    del held[port, group]
                    expired.add(group)
                    changes.append(_membership(now_s, name, port, group, "expire"))
        self._update(expired)
        if self._igmp.query_interval_s and now_s >= self._next_query_s:
            self._queries_sent += 1
            # The first ones come sooner [RFC 2236 sec 8.6].
            startup = self._queries_sent < self._igmp.robustness
            self._next_query_s = now_s + self._igmp.query_interval_s / (4 if startup else 1)
            for name in self._switches:
                if self._installed[name] is not None:
                    self._query(name)
        return changes

    def on_connected(self, now_s: float, switch: str, found: Iterable[Entry] | None) -> list[Membership]:
        """A switch can be written to. found: its entries of `TABLE` and `TABLE_FROM`; None: its pipeline is fresh and holds no entries."""
        changes: list[Membership] = []
        installed = self._installed[switch] = _Installed(switch, self._live[switch])
        members = self._read_back(installed, found or ())
        first = switch not in self._heard
        self._heard.add(switch)
        self._flood(installed, found is None)
        touched = self._groups().union(*(i.groups() for i in self._installed.values() if i is not None))
        # Reports of hosts since then are newer than the switch's entries.
        if first and found is not None:
            for port, group in sorted(members):
                if self._is_host_port(switch, port) and (port, group) not in self._expiry[switch]:
                    self._expiry[switch][port, group] = now_s + self._lifetime_s
                    changes.append(_membership(now_s, switch, port, group, "restore"))
        self._update(touched)
        if self._igmp.query_interval_s:
            self._query(switch)
        return changes

    def on_disconnected(self, switch: str) -> None:
        """A switch cannot be written to until it is connected again."""
        self._installed[switch] = None

    # ---------------------------------------------------------------------------------------------------- membership

    @property
    def _lifetime_s(self) -> float:
        return self._igmp.membership_interval_s if self._igmp.query_interval_s else float("inf")

    def _groups(self) -> set[int]:
        return {group for held in self._expiry.values() for _, group in held}

    def _is_host_port(self, switch: str, number: int) -> bool:
        return any(p.number == number and not p.peer for p in self._switches[switch].ports)

    def _check(self, switch: str, number: int, message: igmp.Message) -> None:
        """IgmpError when a message comes from where none can [RFC 2236 sec 10]."""
        if all(p.number != number for p in self._switches[switch].ports):
            raise IgmpError(Reason.UNKNOWN_PORT, f"{switch} has no port {number}")
        if not self._is_host_port(switch, number):
            raise IgmpError(Reason.NOT_A_HOST_PORT, f"port {number} of {switch} leads to a switch")
        if message.kind is Kind.QUERY:
            raise IgmpError(Reason.QUERY, f"from port {number} of {switch}")
        if message.kind is Kind.REPORT and message.source == 0:
            return  # a host without an address yet, or one that reports for others [RFC 4541 sec 2.1.1]
        source = IPv4Address(message.source)
        best = max(
            (r for r in self._switches[switch].routes if source in ip_network(r.prefix)),
            key=lambda r: ip_network(r.prefix).prefixlen,
            default=None,
        )
        if best is None or best.port != number:
            raise IgmpError(Reason.UNKNOWN_SOURCE, f"{source} at port {number} of {switch}")

    def _change(self, now_s: float, switch: str, port: int, message: igmp.Message) -> list[Membership]:
        changes: list[Membership] = []
        held = self._expiry[switch]
        key = (port, message.group)
        known = key in held
        host = str(IPv4Address(message.source))
        if message.kind is Kind.REPORT:
            if not known and sum(p == port for p, _ in held) >= self._igmp.max_groups_per_port:
                raise IgmpError(Reason.TOO_MANY_GROUPS, f"port {port} of {switch}")
            held[key] = now_s + self._lifetime_s
            if not known and not self._fits(message.group):
                del held[key]
                raise IgmpError(Reason.TOO_MANY_GROUPS, "a switch's tables are full")
            if not known:
                changes.append(_membership(now_s, switch, port, message.group, "join", host))
        elif known:
            del held[key]
            changes.append(_membership(now_s, switch, port, message.group, "leave", host))
        if changes:
            self._update({message.group})
        return changes

    # -------------------------------------------------------------------------------------------------------- groups

    def ports_of(self, switch: str, group: int) -> frozenset[int]:
        """The ports of a switch that lead to a member."""
        toward = self._tree.toward[switch]
        if not any(g == group for held in self._expiry.values() for _, g in held):
            return frozenset()
        ports = {p for p, g in self._expiry[switch] if g == group} | self._router_ports[switch]
        ports |= {toward[name] for name, held in self._expiry.items() if name in toward and any(g == group for _, g in held)}
        return frozenset(ports)

    def _fits(self, group: int) -> bool:
        """Whether every switch's tables have room for its entries of a group."""
        for name, installed in self._installed.items():
            if installed is not None:
                others = [port for g, port in installed.ids if g != group]
                groups = others.count(None)
                if (
                    groups + 1 > self._table_sizes[TABLE]
                    or len(others) - groups + len(self.ports_of(name, group)) > self._table_sizes[TABLE_FROM]
                ):
                    return False
        return True

    def _update(self, groups: Iterable[int]) -> None:
        """Brings all switches to what these groups need, and sends it."""
        complete = len(self._heard) == len(self._switches)
        for group in sorted(groups):
            for name, installed in self._installed.items():
                if installed is None:
                    continue
                ports = self.ports_of(name, group)
                if not complete:
                    # A controller that was restarted does not know all members before it has heard all switches.
                    ports |= {p for g, p in installed.ids if g == group and p is not None}
                self._bring(installed, group, ports)
        batches, self._batches = self._batches, {}
        for batch in batches.values():
            batch.send()

    def _batch(self, installed: _Installed) -> Batch:
        """Of an event."""
        return self._batches.setdefault(installed.name, self._on[installed.name].batch())

    def _flood(self, installed: _Installed, fresh: bool) -> None:
        """What a switch does with groups without members."""
        ports = self._router_ports[installed.name]
        if not ports:
            return
        batch = self._batch(installed)
        (batch.multicast_group if fresh else batch.modify_multicast_group)(FLOOD_ID, sorted(ports))
        installed.set_ports(FLOOD_ID, ports)
        batch.table(TABLE).set_default(REPLICATE, {"group": FLOOD_ID})

    def _bring(self, installed: _Installed, group: int, ports: frozenset[int]) -> None:
        """A switch from its present entries of a group to `ports`."""
        for port in sorted(ports):
            self._set(installed, group, port, ports - {port})
        self._set(installed, group, None, ports)
        for port in sorted(p for g, p in installed.ids if g == group and p is not None and p not in ports):
            self._unset(installed, group, port)

    def _set(self, installed: _Installed, group: int, port: int | None, replicas: frozenset[int]) -> None:
        key = (group, port)
        before = installed.ids.get(key)
        if not replicas and port is None:
            if before is not None:
                self._unset(installed, group, None)
            return
        after = (before or installed.new_id()) if replicas else 0
        if after and after == before:
            if installed.ports[after] != replicas:
                self._batch(installed).modify_multicast_group(after, sorted(replicas))
                installed.set_ports(after, replicas)
            return
        batch = self._batch(installed)
        if after:
            batch.multicast_group(after, sorted(replicas))
            installed.set_ports(after, replicas)
        if after != before:
            table, keys = _keys(group, port)
            (batch.table(table).insert if before is None else batch.table(table).modify)(keys, *_action(after))
            installed.ids[key] = after
        if before and not after:
            batch.delete_multicast_group(before)
            installed.remove(before)

    def _unset(self, installed: _Installed, group: int, port: int | None) -> None:
        number = installed.ids.pop((group, port))
        batch = self._batch(installed)
        table, keys = _keys(group, port)
        batch.table(table).delete(keys)
        if number:
            batch.delete_multicast_group(number)
            installed.remove(number)

    def _read_back(self, installed: _Installed, found: Iterable[Entry]) -> set[tuple[int, int]]:
        """Take over a switch's entries; returns the (port, group) pairs that lead to members."""
        members = set()
        for entry in found:
            if _GROUP not in entry.keys:
                continue  # the default action
            group, port = entry.keys[_GROUP], entry.keys.get(_PORT)
            assert isinstance(group, int) and not isinstance(port, tuple), "the keys are exact"
            installed.ids[group, port] = number = entry.values.get("group", 0)
            if number:
                installed.set_ports(number, None)
            if port is not None:
                members.add((port, group))
        return members

    def _query(self, switch: str) -> None:
        """A general query to each port with a host."""
        for route in self._switches[switch].routes:
            if self._is_host_port(switch, route.port) and _is_of_a_host(route):
                frame = igmp.build(Kind.QUERY, 0, 0, mac(route.src_mac), self._igmp.query_response_s)
                self._on[switch].packet_out(frame, egress_port=route.port)


def _keys(group: int, port: int | None) -> tuple[str, dict[str, Key]]:
    """Of an entry: its table, too."""
    return (TABLE, {_GROUP: group}) if port is None else (TABLE_FROM, {_PORT: port, _GROUP: group})


def _action(number: int) -> tuple[str, dict[str, Value]]:
    """Of an entry with the multicast group of this id; 0 for none."""
    return (REPLICATE, {"group": number}) if number else (DROP, {})


def _membership(now_s: float, switch: str, port: int, group: int, event: str, host: str = "") -> Membership:
    return Membership(now_s, switch, port, str(IPv4Address(group)), event, host)


def _is_of_a_host(route: Route) -> bool:
    network = ip_network(route.prefix)
    return network.prefixlen == network.max_prefixlen

"""The routes of a switch as entries of its tables (p4src/forward.p4): one port, or a group of ports of equal cost.

    prefix --ipv4_lpm--> send: port, Ethernet addresses            one port; ipv6_lpm of an IPv6 prefix
    prefix --ipv4_lpm--> spread: group, seed                       several
             group --equal_cost--> group of the selector: members are numbered as their ports

Where routes change, a group whose routes all go on by the same ports has its members changed; other routes get another group, or a port.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import ip_network

from fairlane.controller.config import Hop, Route, Switch, mac
from fairlane.controller.plane.calls import Batch
from fairlane.controller.plane.names import Entry, Group

ROUTES = {4: "AlsIngress.forward.ipv4_lpm", 6: "AlsIngress.forward.ipv6_lpm"}
"""By the version of IP."""
SEND, SPREAD = "AlsIngress.forward.send", "AlsIngress.forward.spread"
EQUAL_COST = "AlsIngress.forward.equal_cost"
SELECTOR = "AlsIngress.forward.equal_cost_ports"


class RouteTable:
    """Of one switch."""

    def __init__(self, switch: Switch) -> None:
        self._seed = switch.seed
        self._routes = {route.prefix: route for route in switch.routes}
        self._groups: dict[tuple[int, ...], int] = {}
        """Number of the group of some ports."""
        self._members: dict[int, Hop] = {}
        self._grow(self._routes.values())

    def fill(self, batch: Batch) -> None:
        """Members and groups, which the entries need."""
        if self._members:
            selector = batch.selector(SELECTOR)
            for number, hop in self._members.items():
                selector.member(number, SEND, _values(hop))
            for ports, group in self._groups.items():
                selector.group(group, ports)

    def entries(self) -> Iterable[Entry]:
        for group in self._groups.values():
            yield Entry(EQUAL_COST, {"port_group": group}, Group(group))
        for route in self._routes.values():
            table, key = _place(route)
            yield Entry(table, key, *self._action(route))

    def change(self, batch: Batch | None, routes: Iterable[Route]) -> None:
        """These routes replace those of their prefixes, which there are. batch: gets what changes on the switch; None: it has none of it yet."""
        new = self._routes | {route.prefix: route for route in routes}
        old, self._routes = self._routes, new
        before = {prefix: self._action(route) for prefix, route in old.items()}
        for ports, group in list(self._groups.items()):
            onward = {_ports(new[prefix]) for prefix, route in old.items() if _ports(route) == ports}
            to = onward.pop() if len(onward) == 1 else ()
            if len(to) > 1 and to not in self._groups:
                del self._groups[ports]
                self._add_members(batch, new.values())
                self._groups[to] = group
                if batch is not None:
                    batch.selector(SELECTOR).modify_group(group, to)
        self._add_members(batch, new.values())
        for group, ports in self._grow(new.values()):
            if batch is not None:
                batch.selector(SELECTOR).group(group, ports)
                batch.table(EQUAL_COST).insert({"port_group": group}, Group(group))
        for prefix, route in new.items():
            after = self._action(route)
            if batch is not None and after != before[prefix]:
                table, key = _place(route)
                batch.table(table).modify(key, *after)

    def _grow(self, routes: Iterable[Route]) -> list[tuple[int, tuple[int, ...]]]:
        """Groups that these routes need and that there are not: their numbers and ports."""
        self._add_members(None, routes)
        added = []
        for route in routes:
            if len(ports := _ports(route)) > 1 and ports not in self._groups:
                self._groups[ports] = number = max(self._groups.values(), default=0) + 1
                added.append((number, ports))
        return added

    def _add_members(self, batch: Batch | None, routes: Iterable[Route]) -> None:
        for route in routes:
            for hop in route.hops if route.others else ():
                if hop.port not in self._members:
                    self._members[hop.port] = hop
                    if batch is not None:
                        batch.selector(SELECTOR).member(hop.port, SEND, _values(hop))

    def _action(self, route: Route) -> tuple[str, dict[str, int]]:
        if route.others:
            return SPREAD, {"group": self._groups[_ports(route)], "seed": self._seed}
        return SEND, _values(route)


def _ports(route: Route) -> tuple[int, ...]:
    return tuple(hop.port for hop in route.hops)


def _place(route: Route) -> tuple[str, Mapping[str, int | tuple[int, int]]]:
    """The table and the key of its entry."""
    network = ip_network(route.prefix)
    return ROUTES[network.version], {f"hdr.ipv{network.version}.dst_address": (int(network.network_address), network.prefixlen)}


def _values(hop: Hop | Route) -> dict[str, int]:
    return {"port": hop.port, "src_address": mac(hop.src_mac), "dst_address": mac(hop.dst_mac)}

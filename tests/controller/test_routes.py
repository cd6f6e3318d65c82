"""Routes as entries of a switch's tables: after any changes, a switch has what a fresh one would have for the same routes, whatever numbers its groups have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fairlane.controller.config import Hop, Route, Switch
from fairlane.controller.plane.names import Group
from fairlane.controller.routes import EQUAL_COST, RouteTable
from fairlane.controller.routes import ROUTES as TABLES

ROUTES = TABLES[4]
PREFIXES = [f"10.0.{n}.0/24" for n in range(1, 5)]


class Model:
    """A switch as its batch of changes leaves it. Members are ports; it refuses what a P4Runtime server refuses."""

    def __init__(self) -> None:
        self.members: dict[int, tuple[str, Mapping[str, Any]]] = {}
        self.groups: dict[int, tuple[int, ...]] = {}
        self.entries: dict[str, dict[Any, tuple[Any, Any]]] = {ROUTES: {}, EQUAL_COST: {}}
        self.calls = 0

    def selector(self, name: str) -> Model:
        return self

    def table(self, name: str) -> Table:
        return Table(self, self.entries[name])

    def member(self, number: int, action: str, values: Mapping[str, Any]) -> None:
        assert number not in self.members and values["port"] == number
        self.members[number] = action, values

    def group(self, number: int, members: Iterable[int]) -> None:
        assert number not in self.groups and set(members) <= self.members.keys()
        self.groups[number] = tuple(members)
        self.calls += 1

    def modify_group(self, number: int, members: Iterable[int]) -> None:
        assert number in self.groups and set(members) <= self.members.keys()
        self.groups[number] = tuple(members)
        self.calls += 1

    def leads(self) -> dict[Any, tuple[int, ...]]:
        """The ports of each prefix."""
        found = {}
        for key, (action, values) in self.entries[ROUTES].items():
            if action.endswith("send"):
                found[key] = (values["port"],)
            else:
                _, group = self.entries[EQUAL_COST][(("port_group", values["group"]),)][0], values["group"]
                found[key] = self.groups[group]
        return found


class Table:
    def __init__(self, model: Model, entries: dict[Any, tuple[Any, Any]]) -> None:
        self.model, self.entries = model, entries

    def insert(self, keys: Mapping[str, Any], action: Any, values: Mapping[str, Any] | None = None) -> None:
        key = tuple(keys.items())
        assert key not in self.entries
        if isinstance(action, Group):
            assert action.id in self.model.groups
        self.entries[key] = action, values

    def modify(self, keys: Mapping[str, Any], action: Any, values: Mapping[str, Any] | None = None) -> None:
        key = tuple(keys.items())
        assert key in self.entries
        self.entries[key] = action, values
        self.model.calls += 1


def route(prefix: str, ports: Iterable[int]) -> Route:
    first, *others = (Hop(port, f"02:01:00:01:00:{port:02x}", f"02:01:00:02:00:{port:02x}") for port in sorted(ports))
    return Route(prefix, first.port, first.src_mac, first.dst_mac, tuple(others))


routes_of_all = st.tuples(*(st.sets(st.integers(1, 4), min_size=1) for _ in PREFIXES))


def filled(table: RouteTable) -> Model:
    model = Model()
    table.fill(model)  # type: ignore[arg-type]
    for entry in table.entries():
        model.table(entry.table).insert(entry.keys, entry.action, entry.values)
    return model


@given(st.lists(routes_of_all, min_size=1, max_size=6))
def test_changes_lead_where_fresh_routes_lead(steps: list[tuple[set[int], ...]]) -> None:
    made = [[route(prefix, ports) for prefix, ports in zip(PREFIXES, step)] for step in steps]
    table = RouteTable(Switch("s1", 1, "", (), tuple(made[0]), seed=7))
    model = filled(table)
    for routes in made[1:]:
        table.change(model, routes)  # type: ignore[arg-type]
        assert model.leads() == filled(RouteTable(Switch("s1", 1, "", (), tuple(routes), seed=7))).leads()
        # A switch that restarts gets all of it anew.
        assert filled(table).leads() == model.leads()


def test_a_member_leaves_a_group_by_one_call() -> None:
    before = [route(prefix, (1, 2, 3)) for prefix in PREFIXES]
    table = RouteTable(Switch("s1", 1, "", (), tuple(before), seed=7))
    model = filled(table)
    table.change(model, [route(prefix, (1, 3)) for prefix in PREFIXES])  # type: ignore[arg-type]
    assert (model.calls, model.groups) == (len(model.groups) + 1, {1: (1, 3)})


def test_prefixes_of_ipv6_have_a_table_of_their_own() -> None:
    hops = (Hop(2, "02:00:00:00:00:01", "02:00:00:00:00:02"),)
    routes = (
        Route("fd00::a00:100/120", 1, "02:00:00:00:00:01", "02:00:00:00:00:02"),
        Route("fd00::a00:201/128", 1, "02:00:00:00:00:01", "02:00:00:00:00:02", hops),
    )
    entries = list(RouteTable(Switch("s1", 1, "", (), routes=routes, seed=7)).entries())
    assert [(entry.table, entry.keys, entry.action) for entry in entries if entry.table != EQUAL_COST] == [
        (TABLES[6], {"hdr.ipv6.dst_address": ((0xFD << 120) + 0x0A000100, 120)}, "AlsIngress.forward.send"),
        (TABLES[6], {"hdr.ipv6.dst_address": ((0xFD << 120) + 0x0A000201, 128)}, "AlsIngress.forward.spread"),
    ]

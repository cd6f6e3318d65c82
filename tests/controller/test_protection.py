import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.controller.config import Config, Port, Switch
from fairlane.controller.connections import Connection
from fairlane.controller.core import SwitchControl
from fairlane.controller.plane.names import Entry, Names
from fairlane.p4src.schemes.protection.limits import BYTE_SCALE, LEAST_DEPTH_BYTES, PERIOD_S, allowance_bps, limits, share_bps
from fairlane.p4src.schemes.protection.scheme import Protection
from fairlane.p4src.schemes.red.scheme import RedOfPort

B, TARGET = 10e6, 0.9


def test_worked_by_hand():
    # A port of 10 Mb/s that is 40 % used gives twice as much; one that is 75 % used gives 0.9 / 0.75 = 1.2 times as much.
    assert share_bps(1e6, 1e6, B, TARGET, 0.4, 4e6) == 2e6
    assert share_bps(1e6, 1e6, B, TARGET, 0.75, 7e6) == pytest.approx(1.2e6)
    # Full, with 12 Mb/s within the shares: 0.9 x 10 / 12 of the share.
    assert share_bps(4e6, 1e6, B, TARGET, 1.0, 12e6) == pytest.approx(3e6)
    # Full, with 8 Mb/s within the shares: it promises no more than there is, and stays.
    assert share_bps(4e6, 1e6, B, TARGET, 1.0, 8e6) == 4e6
    # Never below R_f, never above U_l b.
    assert share_bps(1.1e6, 1e6, B, TARGET, 1.0, 20e6) == 1e6
    assert share_bps(8e6, 1e6, B, TARGET, 0.0, 0.0) == 9e6


def test_the_allowance_is_what_tcp_may_take():
    # Three ALS and three TCP connections and a greedy one: R_f = 9 / 7 Mb/s, and one connection may have all that U_l leaves.
    assert allowance_bps(9e6 / 7, B, TARGET) == pytest.approx(9e6 / 7 + 1e6)
    # With many connections, twice the share.
    assert allowance_bps(0.5e6, B, TARGET) == 1e6
    # Alone on the link: the link.
    assert allowance_bps(9e6, B, TARGET) == B


def test_limits_are_in_the_data_planes_units():
    # 8 Mb/s are a byte per microsecond; a bucket holds two seconds of it.
    assert limits(8e6, 16e6) == {
        "share": BYTE_SCALE,
        "share_depth": 2_000_000 * BYTE_SCALE,
        "allowance": 2 * BYTE_SCALE,
        "allowance_depth": 4_000_000 * BYTE_SCALE,
    }
    # The slowest connection can send a frame.
    assert limits(100.0, 200.0)["share_depth"] == LEAST_DEPTH_BYTES * BYTE_SCALE
    assert limits(1.0, 1.0)["share"] == 1


@given(st.floats(8e3, 30e9))
def test_rates_are_as_near_as_stated(rate):
    told = limits(rate, rate)
    # At most half of 2^-20 bytes/us, 4 bit/s.
    assert abs(told["share"] / BYTE_SCALE * 8e6 - rate) <= 4.0
    assert told["share_depth"] < 1 << 62 and told["allowance_depth"] < 1 << 62
    assert told["share_depth"] / BYTE_SCALE >= rate / 8 * PERIOD_S - 1


def max_min(demands, capacity):
    """The level that fills the capacity: sum of min(demand, level) = capacity; from the definition, by bisection."""
    low, high = 0.0, capacity
    for _ in range(100):
        level = (low + high) / 2
        low, high = (level, high) if sum(min(d, level) for d in demands) < capacity else (low, level)
    return high


@given(st.lists(st.floats(1e3, 20e6), min_size=1, max_size=40), st.floats(0.5, 0.99))
def test_the_share_falls_to_max_min_where_the_port_is_full(demands, target):
    fair_rate = target * B / len(demands)
    share = target * B
    for _ in range(400):
        share = share_bps(share, fair_rate, B, target, 1.0, sum(min(d, share) for d in demands))
    wanted = min(max_min(demands, target * B), target * B)
    # Near a level that only few reach the last steps are short.
    assert max(fair_rate, wanted) * 0.999 <= share
    assert sum(min(d, share) for d in demands) <= target * B * 1.01


@given(st.lists(st.floats(1e3, 20e6), min_size=2, max_size=40))
def test_the_share_rises_until_the_port_is_used(demands):
    fair_rate = share = TARGET * B / len(demands)
    for _ in range(400):
        # Everyone is held to the share: what gets through is what the port sends.
        within = sum(min(d, share) for d in demands)
        share = share_bps(share, fair_rate, B, TARGET, min(1.0, within / B), within)
    assert share >= TARGET * B * 0.999 or sum(min(d, share) for d in demands) >= TARGET * B * 0.999


@given(st.floats(1e3, 9e6), st.floats(1e3, 9e6), st.floats(0, 1), st.floats(0, 1e9))
def test_the_share_stays_in_its_range(previous, fair_rate, utilisation, within):
    assert fair_rate <= share_bps(previous, fair_rate, B, TARGET, utilisation, within) <= TARGET * B


def control(p4info: Names, red: RedOfPort | None = None) -> SwitchControl:
    held = (Protection(),) if "within_share" in p4info.counters else ()
    ports = (Port(1, 10_000_000, held if red is None else (red, *held)), Port(2, 10_000_000, als=False))
    return SwitchControl(Switch("s1", 1, "127.0.0.1:1", ports), p4info, Config("", "", ()))


def limits_written(entries: list[Entry]) -> list[tuple[int, int]]:
    """(port, share) of each entry of a table of limits."""
    tables = {f"{where}.protection.hold.limits_of_port" for where in ("AlsIngress", "AlsEgress")}
    return [(*e.keys.values(), e.values["share"]) for e in entries if e.table in tables]


def test_the_controller_sets_limits_in_both_pipelines(protecting: Names) -> None:
    control_ = control(protecting)
    whole = round(9e6 / 8e6 * BYTE_SCALE)
    assert limits_written(control_.entries()) == [(1, whole), (1, whole)]
    # A switch that ran on keeps those that it has.
    assert limits_written(control_.entries(fresh=False)) == []


def test_the_controller_lowers_the_share_of_a_full_port(protecting: Names) -> None:
    control_ = control(protecting)
    assert control_.cells()["within_share"] == [1]
    for second, within_bytes in ((0.0, 0), (1.0, 1_500_000)):
        values = {"AlsEgress.ports.transmitted": round(1_250_000 * second), "within_share": within_bytes}
        control_.on_counters(second, {name: {1: (0, size)} for name, size in values.items()} | {"held_back": {1: (7, 0)}})
    connections = [Connection(1, 1, 0, source, 99) for source in range(9)]
    control_.on_connections(Connection._fields, connections)
    records = control_.finish(1.05, 1)
    # R_f is 1 Mb/s. 12 Mb/s came within shares of 9 Mb/s: 9 x 9 / 12.
    assert (records[0].fair_rate_bps, records[0].share_bps) == (1_000_000, 6_750_000)
    assert limits_written(control_.kept(als=True)) == [(1, round(6.75e6 / 8e6 * BYTE_SCALE))] * 2
    assert (records[0].within_share_bytes, records[0].held_packets) == (1_500_000, 7)
    # The port without ALS has no share.
    assert records[1].share_bps == 0


def test_without_protection_nothing_is_said_of_it(p4info: Names) -> None:
    control_ = control(p4info)
    records = control_.finish(1.0, 1)
    assert type(records[0]).__name__ == "PortRecord"
    assert sum(map(len, control_.cells().values())) == 2


def test_drops_by_red_are_read_of_ports_with_red(p4info: Names) -> None:
    control_ = control(p4info, RedOfPort(5, 15))
    wanted = [(name, port) for name, ports in control_.cells().items() for port in ports]
    assert [port for _, port in wanted] == [1, 2, 1, 1, 1, 1]
    values: dict[str, dict[int, tuple[int, int]]] = {}
    for count, (name, port) in enumerate(wanted):
        values.setdefault(name, {})[port] = (count, 0)
    control_.on_counters(1.0, values)
    records = control_.finish(1.0, 1)
    assert [(r.transmitted_packets, r.red_early_drops, r.red_forced_drops) for r in records] == [(0, 2 + 3, 4 + 5), (1, 0, 0)]


def test_drops_by_red_of_both_kinds_count_in_u(p4info: Names) -> None:
    control_ = control(p4info, RedOfPort(5, 15))
    sizes = {
        "AlsEgress.ports.transmitted": 1_250_000,
        "AlsIngress.red.decision.early_drops": 125_000,
        "AlsIngress.red.decision.forced_drops": 250_000,
        "AlsEgress.replica.decision.forced_drops": 250_000,
    }
    assert sizes.keys() <= control_.cells().keys()
    for second in (0.0, 1.0):
        control_.on_counters(second, {name: {1: (0, round(second * size))} for name, size in sizes.items()})
    records = control_.finish(1.05, 1)
    # 10 Mb/s sent and 5 Mb/s dropped, of 10.
    assert [r.utilisation_ppm for r in records] == [1_500_000, 0]


def test_few_cells_are_shared_by_chance() -> None:
    """The bound that docs/flow-protection.md states, ((n - 1) / W)^2, on small rows: pairs that share both cells with others."""
    rng, row, connections, shared = random.Random(3), 256, 40, 0
    rounds = 2_000
    for _ in range(rounds):
        cells = [(rng.randrange(row), rng.randrange(row)) for _ in range(connections)]
        first = [c[0] for c in cells]
        second = [c[1] for c in cells]
        shared += sum(first.count(a) > 1 and second.count(b) > 1 for a, b in cells)
    found = shared / rounds / connections
    bound = ((connections - 1) / row) ** 2
    assert 0.5 * bound < found < bound

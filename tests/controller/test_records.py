"""Which columns of raw/controller.csv are totals, and that each goes on where a switch is restarted."""

import csv
import dataclasses

import pytest

from fairlane.controller.config import Config, Port, Switch
from fairlane.controller.core import SwitchControl, record_kind
from fairlane.controller.plane.names import Names
from fairlane.controller.records import counted_columns, kind, loops, totals
from fairlane.fabrics import raw
from fairlane.schemes import registry
from tests.controller.conftest import compiled

PROTECTION = registry.SCHEMES["protection"]
EVERYTHING = kind(counted_columns(), loops())
COLUMNS = [f.name for f in dataclasses.fields(EVERYTHING)]


@pytest.fixture(scope="module")
def everything(tmp_path_factory) -> Names:
    """With each queue and flow protection."""
    return compiled(tmp_path_factory, "RED_ECN", schemes=[*registry.names(), "protection"])


def record_after(p4info: Names, first: int, second: int) -> dict:
    """Of a port, all of whose counters read `first`, and then `second`."""
    control = SwitchControl(Switch("s1", 1, "127.0.0.1:1", (Port(1, 10_000_000, (PROTECTION.settings(),)),)), p4info, Config("", "", ()))
    for time_s, value in ((0.0, first), (1.0, second)):
        control.on_counters(time_s, {name: {1: (value, 1000 * value)} for name in p4info.counters})
    records = control.finish(1.0, 1)
    return dataclasses.asdict(records[0])


def test_totals_are_the_columns_that_grow_with_the_switchs_counters(everything: Names) -> None:
    assert record_kind(everything) is EVERYTHING and "share_bps" in COLUMNS
    early, late = record_after(everything, 0, 7), record_after(everything, 100, 107)
    assert {column for column in COLUMNS if early[column] != late[column]} == totals()


@pytest.mark.parametrize("column", [c for c in COLUMNS if c not in ("time_s", "switch", "port")])
def test_only_totals_go_on_over_a_restart(column: str, tmp_path) -> None:
    values = [5, 50, 9, 80, 1, 4]
    with (tmp_path / "controller.csv").open("w", newline="") as file:
        rows = csv.DictWriter(file, COLUMNS, restval=0)
        rows.writeheader()
        rows.writerows({"time_s": float(t), "switch": "s1", "port": 1, column: value} for t, value in enumerate(values))
    read = raw.controller_columns(tmp_path)["s1", 1][column].tolist()
    assert read == ([5, 50, 59, 130, 131, 134] if column in totals() else values)

"""The table of sources (p4src/schemes/sources): what the controller writes, and what a forger gets in virtual time."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from fairlane.controller.config import Config, Port, Source, Switch
from fairlane.controller.core import SwitchControl
from fairlane.controller.p4info import P4Info
from tests.controller.conftest import compiled

ROOT = Path(__file__).resolve().parents[2]
SWITCH = Switch("s1", 1, "127.0.0.1:9559", (Port(1, 10**7), Port(2, 10**7)), sources=(Source("10.0.1.1", 1), Source("10.0.2.1", 2)))


@pytest.fixture(scope="module")
def guarding(tmp_path_factory: pytest.TempPathFactory) -> P4Info:
    return compiled(tmp_path_factory, schemes=["sources"])


def test_each_source_is_believed_at_its_ports(guarding: P4Info) -> None:
    entities = SwitchControl(SWITCH, guarding, Config("", "", (SWITCH,))).initial_entities()
    table = next(t for t in guarding.tables if t == "AlsIngress.sources.source_at")
    number = guarding.table_entry(table, {"hdr.ipv4.src_address": 1, "standard_metadata.ingress_port": 1}, "AlsIngress.sources.believe", {})
    written = [e.table_entry for e in entities if e.table_entry.table_id == number.table_id]
    assert [[m.exact.value for m in sorted(e.match, key=lambda m: m.field_id)] for e in written] == [
        [bytes([10, 0, 1, 1]), b"\1"],
        [bytes([10, 0, 2, 1]), b"\2"],
    ]


@pytest.fixture(scope="module")
def threats():
    sys.path.insert(0, str(ROOT / "bench"))
    spec = importlib.util.spec_from_file_location("threats", ROOT / "bench" / "threats.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["threats"] = module
    spec.loader.exec_module(module)
    return module


def test_the_table_takes_a_forger_its_effect(threats) -> None:
    without, with_ = (threats.run("spoofed sources", guard) for guard in (False, True))
    assert without["connections"] == 224 and with_["connections"] == 4
    assert without["fair_rate_bps"] < 0.05e6 and with_["fair_rate_bps"] == 2.25e6
    assert without["first_after_bps"] < 0.1e6 < 2.2e6 < with_["first_after_bps"]
    without, with_ = (threats.run("forged reports", guard) for guard in (False, True))
    assert without["first_after_bps"] < 0.02e6 and with_["first_after_bps"] > 2.2e6

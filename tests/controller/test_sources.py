"""The table of sources (p4src/schemes/sources): what the controller writes, and what a forger gets in virtual time."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from fairlane.controller.config import Config, Port, Source, Switch
from fairlane.controller.core import SwitchControl
from fairlane.controller.plane.names import Names
from tests.controller.conftest import compiled

ROOT = Path(__file__).resolve().parents[2]
SWITCH = Switch("s1", 1, "127.0.0.1:9559", (Port(1, 10**7), Port(2, 10**7)), sources=(Source("10.0.1.1", 1), Source("10.0.2.1", 2)))


@pytest.fixture(scope="module")
def guarding(tmp_path_factory: pytest.TempPathFactory) -> Names:
    return compiled(tmp_path_factory, schemes=["sources"])


def test_each_source_is_believed_at_its_ports(guarding: Names) -> None:
    entries = SwitchControl(SWITCH, guarding, Config("", "", (SWITCH,))).entries()
    written = [entry.keys for entry in entries if entry.table == "AlsIngress.sources.source_at"]
    assert written == [
        {"hdr.ipv4.src_address": 0x0A000101, "standard_metadata.ingress_port": 1},
        {"hdr.ipv4.src_address": 0x0A000201, "standard_metadata.ingress_port": 2},
    ]
    table = guarding.entry("AlsIngress.sources.source_at", written[0], "AlsIngress.sources.believe")
    assert sorted(key.exact.value for key in table.match) == [b"\1", bytes([10, 0, 1, 1])]


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

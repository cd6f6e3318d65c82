"""The committed ns-2 data are what ns-2 says: a sample of cases is run again. Skips without ns-2."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
_spec = importlib.util.spec_from_file_location("run_tcp", HERE / "run_tcp.py")
run_tcp = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(run_tcp)


def rows(name: str) -> list[dict]:
    return json.loads((HERE / "data" / name).read_text())


def test_every_case_has_its_row():
    for name, (_, cases) in run_tcp.FILES.items():
        assert [row["case"] for row in rows(name)] == cases(), name


@pytest.mark.skipif(shutil.which("ns") is None, reason="ns-2 is not installed (Debian: apt install ns2)")
@pytest.mark.parametrize(
    ("script", "data", "index"),
    [
        ("tcp_single.tcl", "tcp_single.json", 4),
        ("tcp_single.tcl", "tcp_single.json", 28),
        ("tcp_red.tcl", "tcp_red.json", 9),
        ("tcp_red.tcl", "tcp_network_red.json", 24),
    ],
)
def test_ns2_says_so_again(script, data, index):
    row = rows(data)[index]
    assert run_tcp.run(script, row["case"]) == row


def test_drops_within_a_window_are_one_loss_event():
    drops = [(0.0, 1), (0.05, 1), (0.1, 1), (0.11, 1), (0.12, 2), (0.5, 1)]
    assert run_tcp.loss_events(drops, 0.1) == 4
    assert run_tcp.loss_events([], 0.1) == 0

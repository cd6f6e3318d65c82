"""RAP and TFRC beside ns-2's agents: the committed data keep the tolerances, and both sides still say what is in them."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from pathlib import Path

import pytest

from fairlane.fabrics import virtual_fabric

HERE = Path(__file__).resolve().parent
_spec = importlib.util.spec_from_file_location("run_rates", HERE / "run_rates.py")
run_rates = importlib.util.module_from_spec(_spec)
sys.modules["run_rates"] = run_rates
_spec.loader.exec_module(run_rates)


def rows() -> list[dict]:
    return json.loads(run_rates.DATA.read_text())


def small(kind: str) -> dict:
    return next(row for row in rows() if row["case"]["kind"] == kind and row["case"]["flows"] == 4 and row["case"]["delay_ms"] == 20)


def test_every_case_has_its_row() -> None:
    assert [row["case"] for row in rows()] == run_rates.cases()
    assert all(len(row[side]) == len(run_rates.SEEDS) for row in rows() for side in ("ns2", "fairlane"))


@pytest.mark.parametrize("row", rows(), ids=lambda row: "{kind}-{flows}-{delay_ms}ms".format(**row["case"]))
def test_mean_rate_and_ratio_to_sack_are_those_of_ns2(row: dict) -> None:
    rate, ratio = run_rates.compare(row)
    assert abs(rate - 1) <= run_rates.RATE_TOLERANCE
    assert abs(ratio - 1) <= run_rates.RATIO_TOLERANCE


@pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")
@pytest.mark.parametrize("kind", ["rap", "tfrc"])
def test_a_run_here_still_has_the_committed_rates(kind: str) -> None:
    """The median of three seeds within the tolerance of ns-2's committed one."""
    row = small(kind)
    runs = [run_rates.run_fairlane(row["case"], seed) for seed in run_rates.SEEDS[:3]]
    rate, ratio = run_rates.compare({"fairlane": runs, "ns2": row["ns2"]})
    assert abs(rate - 1) <= run_rates.RATE_TOLERANCE
    assert abs(ratio - 1) <= run_rates.RATIO_TOLERANCE


@pytest.mark.skipif(shutil.which("ns") is None, reason="ns-2 is not installed (Debian: apt install ns2)")
@pytest.mark.parametrize("kind", ["rap", "tfrc"])
def test_ns2_says_so_again(kind: str) -> None:
    row = small(kind)
    run = run_rates.run_ns2(row["case"], row["ns2"][0]["seed"])
    assert run.pop("frozen") == 0
    assert run == row["ns2"][0]

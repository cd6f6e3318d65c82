"""One experiment on both fabrics: the same means. Takes about a minute, most of it real time."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from fairlane import probes
from fairlane.fabrics import virtual_fabric
from tests import missing
from tests.fabrics.late import summary_of

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]
if reason := missing.for_mininet("iperf3"):
    pytest.skip(reason, allow_module_level=True)
if virtual_fabric.native is None:
    pytest.skip("needs the module fairlane.native (make build)", allow_module_level=True)

ROOT = probes.ROOT
GRPC_PORT = 29659

_spec = importlib.util.spec_from_file_location("fabrics", ROOT / "bench" / "fabrics.py")
fabrics = importlib.util.module_from_spec(_spec)
sys.modules["fabrics"] = fabrics
_spec.loader.exec_module(fabrics)


def run(folder: Path, fabric: str, *arguments: str) -> Path:
    command = [sys.executable, "-m", "fairlane", "run", *arguments, "--fabric", fabric, "--out", str(folder / fabric)]
    if fabric == "mininet":
        command += ["--target", "embedded", "--grpc-port", str(GRPC_PORT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / fabric


@pytest.mark.alone
def test_als_3_has_the_same_means_in_virtual_time_and_in_mininet(tmp_path: Path) -> None:
    """Mean rate of each kind of flow within 10%, mean loss within one percentage point; over the last half of 40 s."""
    first, second = (summary_of(run(tmp_path, fabric, "als-3", "--duration", "40")) for fabric in ("virtual", "mininet"))
    compared = fabrics.rows(first, second)
    print(fabrics.table(compared))
    assert [r.label for r in compared if r.is_mean] == ["tcp-reno mean", "als mean"]
    assert all(r.agrees for r in compared), f"\n{fabrics.table(compared)}"


@pytest.mark.long
def test_flows_of_other_kinds_run_on_both(tmp_path: Path) -> None:
    """No file: constant bit rate within what the link has, and RAP beside it; each with its own settings."""
    words = (
        "dumbbell",
        "--flow",
        "cbr:2",
        "--flow",
        "rap@1",
        "--bottleneck",
        "4mbit",
        "--rtt",
        "30ms",
        "--queue",
        "red",
        "--duration",
        "12",
        "--packet-bytes",
        "500",
        "--set",
        "cbr.rate_bps=500000",
    )
    for fabric in ("virtual", "mininet"):
        folder = run(tmp_path, fabric, *words)
        summary = summary_of(folder)
        # 460 of 500 bytes are payload; RAP fills the link, and what RED drops of the stream for it is no part of what it sends.
        rates = {f["name"]: f["goodput_bps"] / (1 - f["loss_fraction"]) for f in summary["flows"]}
        assert all(f["loss_fraction"] < 0.15 for f in summary["flows"])
        assert rates["cbr-0"] == pytest.approx(460e3, rel=0.05) and rates["cbr-1"] == pytest.approx(460e3, rel=0.05)
        assert 1e6 < rates["rap"] < 3e6
        assert (folder / "rates.png").is_file() and not (folder / "fair_rate.png").is_file()


@pytest.mark.long
def test_video_above_ssvp_runs_on_both(tmp_path: Path) -> None:
    """Three videos share 1 Mb/s [SSVP fig 3]: together they fill it, and what each sender produced has left, waits or was thrown away."""
    words = ("ssvp-3", "--at", "kind=ssvp", "--at", "reading=additive", "--at", "application=mpeg4", "--duration", "20")
    for fabric in ("virtual", "mininet"):
        folder = run(tmp_path, fabric, *words)
        summary = summary_of(folder)
        assert 0.75e6 < sum(f["goodput_bps"] for f in summary["flows"]) < 1e6
        for name in (f["name"] for f in summary["flows"]):
            records = [json.loads(line) for line in (folder / "raw" / f"{name}.sender.jsonl").read_text().splitlines()]
            sent, produced = ([r for r in records if r["kind"] == kind][-1] for kind in ("sent", "application"))
            left = produced["produced_packets"] - produced["waiting_packets"] - produced["discarded_packets"]
            assert left == sent["sent_packets"] > 100

"""{our compiler, p4c} x {our switch, BMv2}: the ALS program under our controller, the same bytes out of every pair."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FAIR_RATE_OF_ONE = 9_000_000


def program(name: str) -> str | None:
    """One of ours from FAIRLANE_BIN or beside this Python, anybody else's from PATH."""
    folder = os.environ.get("FAIRLANE_BIN", str(Path(sys.executable).parent))
    return shutil.which(name, path=folder) or shutil.which(name)


@pytest.fixture(scope="module")
def namespace():
    if os.geteuid() != 0:
        pytest.skip("a network namespace needs root")
    name = f"fl-bmv2-{uuid.uuid4().hex[:8]}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    yield name
    subprocess.run(["ip", "netns", "del", name], check=True)


@pytest.mark.parametrize("switch", ["fairlane-switch", "simple_switch_grpc"])
@pytest.mark.parametrize("compiler", ["fairlane-compile", "p4c-bm2-ss"])
def test_als_over_p4runtime(compiler: str, switch: str, tmp_path: Path, namespace: str) -> None:
    compile_with, run_on = program(compiler), program(switch)
    if compile_with is None:
        pytest.skip(f"{compiler} is not installed")
    if run_on is None:
        pytest.skip(f"{switch} is not installed")
    out, info = tmp_path / "als.json", tmp_path / "als.p4info.txtpb"
    subprocess.run([compile_with, "-o", out, "--p4runtime-files", info, ROOT / "p4src/als.p4"], check=True)
    done = subprocess.run(
        ["ip", "netns", "exec", namespace, "unshare", "--net", sys.executable, str(ROOT / "tests/bmv2/drive.py"), run_on, out, info],
        cwd=tmp_path, capture_output=True, text=True, timeout=90)
    log = tmp_path / "switch.log"
    assert done.returncode == 0, done.stderr + (log.read_text() if log.exists() else "")
    result = json.loads(done.stdout.strip().splitlines()[-1])

    sent = bytes.fromhex(result["sent"])
    expected = bytearray(sent)
    expected[0:12] = bytes.fromhex("020000000022020000000021")
    expected[22] -= 1
    expected[24:26] = bytes.fromhex("cf82")  # the header checksum with the TTL one less
    expected[-12:-4] = FAIR_RATE_OF_ONE.to_bytes(8, "big")
    assert result["first"] == expected.hex()
    # One connection was seen on port 2, and what the controller then wrote is in force.
    assert result["digests"] == [1]
    assert result["records"] == [[1, 0, 0, FAIR_RATE_OF_ONE], [2, 1, 1, FAIR_RATE_OF_ONE]]
    assert result["second"][-24:-8] == FAIR_RATE_OF_ONE.to_bytes(8, "big").hex()

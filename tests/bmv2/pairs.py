"""als.p4 from either compiler on either switch, driven by a script of this folder in a network namespace of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fairlane import probes

ROOT = Path(__file__).resolve().parents[2]
COMPILERS = ("fairlane-compile", "p4c-bm2-ss")
SWITCHES = ("fairlane-switch", "simple_switch_grpc")


def drive(script: str, compiler: str, switch: str, folder: Path, timeout_s: float) -> Any:
    """What the script prints last, as JSON. Skips, with the reason, where root, the compiler or the switch is missing."""
    if not probes.is_root():
        pytest.skip("a network namespace needs root")
    programs = {name: probes.program(name) for name in (compiler, switch)}
    for name, found in programs.items():
        if found is None:
            pytest.skip(f"{name} is not installed")
    out, info = folder / "als.json", folder / "als.p4info.txtpb"
    subprocess.run([programs[compiler], "-o", out, "--p4runtime-files", info, ROOT / "p4src/als.p4"], check=True)
    done = subprocess.run(
        ["unshare", "--net", sys.executable, str(ROOT / "tests/bmv2" / script), str(programs[switch]), out, info],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )
    logs = "".join(f"\n{p.name}:\n{p.read_text()[-2000:]}" for p in sorted(folder.glob("*.log")))
    assert done.returncode == 0, done.stderr + done.stdout + logs
    return json.loads(done.stdout.strip().splitlines()[-1])

"""A program for PSA on interfaces, written to over gRPC: pushed, entries, a group, digests, counters. Needs root, for a namespace."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fairlane.fabrics.processes import spawn
from tests.p4runtime import support

FOLDER = Path(__file__).parent
PORTS = (1, 2, 3, 4)
ADDRESS = "127.0.0.1:9559"
pytestmark = pytest.mark.root


def test_psa_over_grpc_on_interfaces(tmp_path: Path) -> None:
    program = support.compile_program(FOLDER / "psa_switch.p4", tmp_path, arch="psa")
    with support.namespace("fpsa", PORTS, "host") as name:
        inside = ["ip", "netns", "exec", name]
        interfaces = [word for port in PORTS for word in ("-i", f"{port}@sw{port}")]
        command = [
            *inside,
            support.tool("fairlane-switch", "FAIRLANE_SWITCH"),
            "--no-p4",
            "--device-id",
            str(support.DEVICE_ID),
            *interfaces,
        ]
        switch = spawn("switch", [*command, "--", "--grpc-server-addr", ADDRESS], tmp_path / "switch.log")
        session = [*inside, sys.executable, "-m", "tests.p4runtime.psa_session", ADDRESS, str(program.p4info), str(program.json)]
        try:
            done = subprocess.run(
                session, cwd=support.ROOT, env=support.without_proxy(), capture_output=True, text=True, timeout=60, check=False
            )
        finally:
            switch.signal(signal.SIGTERM)
            switch.wait(10)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{switch.last_words(20)}"
    assert done.stdout.split() == ["pushed", "forwarded", "replicated", "learnt", "counted"]

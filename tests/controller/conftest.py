"""The ALS program's P4Info."""

import subprocess
from pathlib import Path

import pytest

from fairlane import probes
from fairlane.controller.p4info import P4Info

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def p4info(tmp_path_factory) -> P4Info:
    return compiled(tmp_path_factory)


@pytest.fixture(scope="session")
def protecting(tmp_path_factory) -> P4Info:
    """With flow protection."""
    return compiled(tmp_path_factory, "FLOW_PROTECTION")


def compiled(tmp_path_factory, *defines: str) -> P4Info:
    compiler = probes.program("fairlane-compile")
    if compiler is None:
        pytest.skip("fairlane-compile is not built (make build)")
    folder = tmp_path_factory.mktemp("als")
    info = folder / "als.p4info.txtpb"
    subprocess.run(
        [compiler, *(f"-D{name}" for name in defines), "-o", folder / "als.json", "--p4runtime-files", info, ROOT / "p4src/als.p4"],
        check=True,
        timeout=60,
    )
    return P4Info.read(info)

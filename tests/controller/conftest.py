"""The ALS program's P4Info."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from controller.p4info import P4Info

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def p4info(tmp_path_factory) -> P4Info:
    compiler = shutil.which("fairlane-compile", path=os.environ.get("FAIRLANE_BIN", str(Path(sys.executable).parent)))
    if compiler is None:
        pytest.skip("fairlane-compile is not built (make build)")
    folder = tmp_path_factory.mktemp("als")
    info = folder / "als.p4info.txtpb"
    subprocess.run([compiler, "-o", folder / "als.json", "--p4runtime-files", info, ROOT / "p4src/als.p4"], check=True, timeout=60)
    return P4Info.read(info)

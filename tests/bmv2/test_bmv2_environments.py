"""`fairlane env` beside environments of one's own: what a Python has itself is what it imports; Fairlane's fill what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from fairlane.bmv2 import environment
from tests.p4runtime import support

TUTORIALS = os.environ.get("FAIRLANE_TUTORIALS")
"""A checkout of p4lang/tutorials."""

CONTROLLERS = "from p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc\nfrom p4.config.v1 import p4info_pb2\nimport p4.tmp.p4config_pb2\n"
"""What the tutorials' library imports, beside google.rpc and grpc."""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment without any package."""
    folder = tmp_path_factory.mktemp("bare") / "V"
    venv.create(folder, symlinks=True)
    return folder


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with packages of these names, without a network: each says whose it is."""
    folder = tmp_path_factory.mktemp("own") / "V"
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    for name in ("p4/__init__", "p4/v1/__init__", "p4/v1/p4runtime_pb2", "google/rpc/code_pb2", "bm_runtime/__init__", "runtime_CLI"):
        path = site / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("WHOSE = 'own'\n", encoding="utf-8")
    (site / "bm_runtime" / "standard.py").write_text("from bm_runtime import WHOSE\n", encoding="utf-8")
    (protobuf,) = Path(sys.prefix).glob("lib/python3*/site-packages/google")
    for part in ("protobuf", "_upb"):
        (site / "google" / part).symlink_to(protobuf / part)
    return folder


def said(python: Path | str, code: str, before: str = "") -> str:
    """What a script prints in a shell that has run the lines of `fairlane env`, with `--packages` for a Python without Fairlane; the last line of a traceback where it fails."""
    script = f'{before}eval "$({sys.executable} -m fairlane env {"" if python == "python" else "--packages"} 2>/dev/null)"\ncd /; exec {python} -c "$SCRIPT"'
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    env = {**variables, "SCRIPT": code}
    done = subprocess.run(["bash", "-c", script], env=env, cwd=support.ROOT, text=True, capture_output=True, timeout=60, check=False)
    return done.stdout if done.returncode == 0 else done.stderr.splitlines()[-1]


def test_a_shell_in_its_own_environment_imports() -> None:
    """As in issue 32: p4runtime-shell of PyPI, with the p4runtime and the protobuf that it asks for."""
    python = support.shell_python()
    assert said(python, "import p4runtime_sh.shell; print('imports')") == "imports\n"
    code = f"{CONTROLLERS}import grpc\nfrom google.rpc import code_pb2, status_pb2\nprint(p4runtime_pb2.__file__)"
    assert said(python, code).startswith(str(Path(python).parent.parent))
    device = "from p4.tmp import p4config_pb2 as c; print(c.P4DeviceConfig(reassign=True, device_data=b'{}').SerializeToString())"
    assert said(python, device) == "b'\\x08\\x01\\x1a\\x02{}'\n"


def test_fairlanes_python_has_its_own(tmp_path: Path) -> None:
    code = f"{CONTROLLERS}import grpc, bm_runtime.standard, runtime_CLI, sswitch_CLI, bmpy_utils\nprint(p4runtime_pb2.__name__)"
    assert said("python", code) == "finsy.proto.p4.v1.p4runtime_pb2\n"


@pytest.mark.skipif(TUTORIALS is None, reason="FAIRLANE_TUTORIALS names no checkout of p4lang/tutorials")
@pytest.mark.parametrize("whose", ["Fairlane's", "own"])
def test_the_tutorials_library_imports(whose: str) -> None:
    python = "python" if whose == "Fairlane's" else support.shell_python()
    modules = "bmv2, convert, error_utils, helper, simple_controller, switch"
    code = f"import sys; sys.path.insert(0, {str(Path(TUTORIALS or '', 'utils'))!r}); from p4runtime_lib import {modules}; print('imports')"
    assert said(python, code) == "imports\n"


@pytest.mark.parametrize(
    "name", ["p4", "p4.v1", "p4.v1.p4runtime_pb2", "google.rpc.code_pb2", "bm_runtime", "bm_runtime.standard", "runtime_CLI"]
)
def test_an_environments_own_packages_are_not_hidden(own: Path, name: str) -> None:
    assert said(own / "bin/python", f"import {name} as m; print(m.WHOSE)") == "own\n"


def test_what_an_environment_lacks_is_fairlanes(own: Path) -> None:
    """Its p4 has no p4.tmp."""
    assert said(own / "bin/python", "from p4.tmp.p4config_pb2 import P4DeviceConfig as d; print(d(reassign=True))") == "reassign: true\n\n"


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("p4.v1.p4runtime_pb2", "p4runtime"),
        ("google.rpc.status_pb2", "googleapis-common-protos"),
        ("bm_runtime.standard.Standard", "'fairlane[bmv2]'"),
        ("bm_runtime.simple_pre.ttypes", "'fairlane[bmv2]'"),
        ("sswitch_runtime.SimpleSwitch", "'fairlane[bmv2]'"),
        ("runtime_CLI", "'fairlane[bmv2]'"),
        ("bmpy_utils", "'fairlane[bmv2]'"),
    ],
)
def test_a_python_without_any_is_told_what_to_install(bare: Path, name: str, package: str) -> None:
    python = bare / "bin/python"
    message = said(python, f"import {name}")
    assert message.startswith("ModuleNotFoundError: No module named '") and "fairlane.bmv2" not in message
    assert f"{python} -m pip install {package}, or use Fairlane's Python, {Path(sys.executable).parent}/python" in message


def test_an_active_environment_keeps_its_python(own: Path, bare: Path) -> None:
    where = "import sys; print(sys.prefix)"
    assert said("python", where, f"source {own}/bin/activate\n") == f"{own}\n"
    assert said("python", where) == f"{sys.prefix}\n"
    assert environment.foreign({"VIRTUAL_ENV": str(bare)}) == bare
    assert environment.foreign({"VIRTUAL_ENV": sys.prefix}) is None
    assert environment.foreign({"CONDA_PREFIX": str(bare), "CONDA_DEFAULT_ENV": "base"}) is None
    assert environment.foreign({"CONDA_PREFIX": str(bare), "CONDA_DEFAULT_ENV": "p4"}) == bare

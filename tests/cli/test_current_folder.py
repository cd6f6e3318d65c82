"""No Python process of ours imports from the folder that it runs in, where others may have put a `json.py`."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlane import probes, python_child

ROOT = probes.ROOT
FAIRLANE = probes.VENV_BIN / "fairlane"
NAMES = """
    abc argparse ast asyncio base64 bisect calendar codecs collections concurrent contextlib contextvars copy csv ctypes
    dataclasses datetime decimal email enum fcntl functools gc glob hashlib heapq importlib inspect io ipaddress itertools json
    keyword linecache locale logging math numbers opcode operator os pathlib pickle pkgutil platform posixpath queue random re
    resource runpy select selectors shutil signal site socket ssl stat string struct subprocess tempfile textwrap threading time
    token tokenize tomllib traceback types typing unittest urllib uuid warnings weakref zipfile zlib sitecustomize usercustomize
    distributed fairlane finsy google grpc jinja2 matplotlib mininet numpy pandas pyarrow pydantic rich scapy starlette thriftpy2
    typer uvicorn websockets p4utils gi
""".split()
"""Modules of the standard library, and packages that we use."""


@pytest.fixture
def hostile(tmp_path: Path) -> Iterator[Path]:
    """A folder where each of these modules would leave a mark."""
    folder, marks = tmp_path / "hostile", tmp_path / "marks"
    folder.mkdir(), marks.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text(
            f"open({str(marks / name)!r}, 'w').close()\nraise SystemExit('from the current folder: {name}')\n"
        )
    yield folder
    assert not list(marks.iterdir())


def run(folder: Path, *arguments: str, code: int = 0, timeout: float = 110) -> subprocess.CompletedProcess:
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONSAFEPATH")}
    done = subprocess.run([FAIRLANE, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=timeout)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def test_the_folder_is_hostile(tmp_path: Path) -> None:
    """As `python -m` would have it, which is how the processes were started once."""
    (tmp_path / "pickle.py").write_text("print('from the current folder')")
    command = [sys.executable, "-m", "fairlane.studies.worker"]
    done = subprocess.run(command, cwd=tmp_path, input="", capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert "from the current folder" in done.stdout + done.stderr


@pytest.mark.skipif(not FAIRLANE.is_file(), reason="no .venv: make setup")
@pytest.mark.parametrize(
    "arguments",
    [
        ["list"],
        ["doctor", "--json"],
        ["run", "als-3", "--duration", "2"],
        ["run", "dumbbell", "--flow", "rap:1", "--duration", "2", "--pcap", "pcaps", "--trace", "t.csv"],
        [
            "sweep",
            str(ROOT / "docs/examples/parking-lot-study.toml"),
            "--seeds",
            "2",
            "--duration",
            "2",
            "--at",
            "rate_bps=2e6",
            "--workers",
            "2",
        ],
        ["suite", "rfc8867", "nada"],
        ["film", "nada", "--seconds", "4"],
        ["labs", "copy", "mine"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_commands(hostile: Path, arguments: list[str]) -> None:
    if arguments[0] == "suite":
        arguments = ["suite", "rfc8867", "--algorithm", "nada", "--case", "5.1"]
    run(hostile, *arguments)


@pytest.mark.skipif(not FAIRLANE.is_file(), reason="no .venv: make setup")
def test_the_live_views_process(hostile: Path) -> None:
    pytest.importorskip("uvicorn")
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONSAFEPATH")}
    command = [FAIRLANE, "run", "als-3", "--duration", "4", "--live", "--live-speed", "max"]
    process = subprocess.Popen(command, cwd=hostile, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout is not None
        assert any("http://127.0.0.1" in line for line in process.stdout)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


@pytest.mark.skipif(not FAIRLANE.is_file(), reason="no .venv: make setup")
def test_grading(hostile: Path) -> None:
    run(hostile, "labs", "copy", "labs")
    shutil.copytree(ROOT / "teaching/02/solution", hostile / "labs/02", dirs_exist_ok=True)
    run(hostile, "labs", "check", "02")


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0 or not probes.has_mininet(), reason="needs root and Mininet")
@pytest.mark.skipif(not FAIRLANE.is_file(), reason="no .venv: make setup")
def test_the_processes_of_a_run_on_mininet(hostile: Path) -> None:
    """Controller, senders, receivers, iperf3's ends, idle loops."""
    command = [
        "run",
        "dumbbell",
        "--flow",
        "rap:1",
        "--flow",
        "tcp-cubic:1",
        "--duration",
        "3",
        "--fabric",
        "mininet",
        "--target",
        "embedded",
    ]
    run(hostile, *command, "--keep-awake", "--no-rtt-check", "--grpc-port", "9759", timeout=118)


def pythons() -> list[list[str]]:
    """Interpreters that are there, with the option that leaves the folder out where they have it. This one stands for 3.10 without the option, too, up to
    3.12: 3.13 imports linecache before the first statement."""
    found = [[sys.executable]] if sys.version_info < (3, 13) else []
    for number in range(10, 15):
        places = [shutil.which(f"python3.{number}"), *map(str, Path.home().glob(f".pyenv/versions/3.{number}.*/bin/python"))]
        works = [python for python in places if python and subprocess.run([python, "-c", ""], capture_output=True).returncode == 0]
        found += [[python, *(["-P"] if number > 10 else [])] for python in works]
    return found


def test_every_version_of_python_leaves_the_folder_out(hostile: Path) -> None:
    start = python_child.of_module("x")
    code = start[start.index("-c") + 1]
    for python in pythons():
        done = subprocess.run([*python, "-c", code, "platform"], cwd=hostile, capture_output=True, text=True)
        assert done.returncode == 0 and "Linux" in done.stdout, (python, done.stderr)


def test_every_start_of_python_is_this_one() -> None:
    """Whoever starts another process of ours with -m, or -c, or a script of the current folder, has to say why here."""
    allowed = {
        "fairlane/python_child.py": 1,
        "fairlane/bmv2/networks.py": 1,  # the user's own network.py, in its folder: docs/third-party-files.md
        "fairlane/fabrics/mininet_run.py": 1,  # awake.py, with -I
    }
    found = {}
    for path in (ROOT / "fairlane").rglob("*.py"):
        starts = path.read_text().count("[sys.executable")
        if starts:
            found[str(path.relative_to(ROOT))] = starts
    assert found == allowed

"""Runs in virtual time need nothing that Linux alone has: one goes here with the names hidden that Windows lacks, and gives the same bytes."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairlane import probes

ON_INTERFACES = {
    "fabrics/awake.py", "fabrics/bmv2_stats.py", "fabrics/bmv2_switches.py", "fabrics/delay_lines.py", "fabrics/leftovers.py",
    "fabrics/mininet_builder.py", "fabrics/mininet_run.py", "fabrics/processes.py", "bmv2/environment.py",
    "bmv2/commands/ports.py", "tutorials/mininet_network.py", "capacity.py", "probes.py", "hosts/film.py", "hosts/gstreamer_film.py", "hosts/tcp_iperf3.py",
}  # fmt: skip
"""Files of Mininet and BMv2, which read and write what Linux's kernel and programs do."""

_WITHOUT = """
import os, pathlib, signal, sys, types, warnings
warnings.simplefilter("ignore", EncodingWarning)  # of libraries
# Libraries look at the system while they are imported.
import asyncio, multiprocessing, selectors, shutil, subprocess, tempfile
import finsy, jinja2, matplotlib.pyplot, pandas, pydantic, rich.console, rich.live, rich.table, typer
for module in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[module] = None
for name in ("fork", "geteuid", "getuid", "getloadavg", "killpg", "nice", "sched_getaffinity", "setpgid", "setsid", "fchmod", "execv",
             "O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK"):
    delattr(os, name)
for name in ("SIGHUP", "SIGKILL", "SIGUSR1", "pthread_sigmask"):
    delattr(signal, name)
sys.platform = "win32"
shutil._use_fd_functions = False
shutil._rmtree_impl = getattr(shutil, "_rmtree_unsafe", None)
shutil._winapi = types.SimpleNamespace(NeedCurrentDirectoryForExePath=lambda name: True)
_rename = pathlib.Path.rename
def rename(folder, name):  # Windows renames no folder in which a file is open
    for descriptor in pathlib.Path("/proc/self/fd").iterdir():
        assert not (descriptor.is_symlink() and descriptor.readlink().is_relative_to(folder.absolute())), descriptor.readlink()
    return _rename(folder, name)
pathlib.Path.rename = rename
warnings.filterwarnings("error", category=EncodingWarning, module="fairlane")
from fairlane.__main__ import main
sys.argv[0] = "fairlane"
main()
"""


def _without(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-X", "warn_default_encoding", "-c", _WITHOUT, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=110)


def _files(folder: Path) -> dict[str, bytes]:
    """made.json names the system."""
    found = {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
    found.pop("made.json", None)
    return found


@pytest.mark.parametrize("arguments", [("als-3", "--duration", "10"), ("dumbbell", "--flow", "rap:1", "--flow", "tcp-sack:1", "--queue", "red", "--duration", "5")])  # fmt: skip
def test_a_run_in_virtual_time(arguments: tuple[str, ...], tmp_path: Path) -> None:
    here = [sys.executable, "-m", "fairlane", "run", *arguments, "--out", "here"]
    subprocess.run(here, cwd=tmp_path, check=True, capture_output=True, timeout=110)
    there = _without(tmp_path, "run", *arguments, "--out", "there")
    assert there.returncode == 0, there.stderr
    assert "switches and compiler in the process" in there.stdout
    expected = _files(tmp_path / "here")
    assert "flows.csv" in expected and expected == _files(tmp_path / "there")
    assert sorted(os.listdir(tmp_path)) == ["here", "there"]


def test_a_sweep(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(_SWEEP)
    for folder, run in (("here", _here), ("there", _without)):
        done = run(tmp_path, "sweep", "small.toml", "--workers", "2", "--out", folder)
        assert done.returncode == 0, done.stderr
    points = sorted((tmp_path / "here" / "points").rglob("seed*.json"))
    assert len(points) == 2
    for point in points:
        assert point.read_bytes() == (tmp_path / "there" / point.relative_to(tmp_path / "here")).read_bytes()


def _here(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "fairlane", *arguments], cwd=folder, capture_output=True, text=True, timeout=110)


_SWEEP = """
title = "One flow"
bottleneck = "s1->s2"
duration_s = 3.0
seeds = [1, 2]

[topology]
kind = "dumbbell"
pairs = 1
bottleneck = { rate_bps = 1e6, delay_s = 0.01, queue_packets = 40 }
access = { rate_bps = 100_000_000 }

[[flows]]
name = "one"
kind = "rap"

[measure]
rate = "= one.mean_bps"
"""


def test_doctor_says_what_can_run(tmp_path: Path) -> None:
    for place, code in (("virtual", 0), ("mininet", 3)):
        done = _without(tmp_path, "doctor", "--for", place)
        assert done.returncode == code, done.stdout + done.stderr
        assert "no Mininet" in done.stdout and "apt-get" not in done.stdout


def test_the_page_of_a_run_is_refused_in_a_sentence(tmp_path: Path) -> None:
    done = _without(tmp_path, "run", "als-3", "--live")
    assert (done.returncode, done.stdout) == (3, "") and "--live needs Linux or macOS" in done.stderr


def test_mininet_is_refused_in_a_sentence(tmp_path: Path) -> None:
    for arguments in (("run", "als-3", "--fabric", "mininet"), ("shell", "als-3"), ("clean",)):
        done = _without(tmp_path, *arguments)
        assert (done.returncode, done.stdout) == (3, ""), arguments
        assert "Mininet needs Linux" in done.stderr and len(done.stderr.splitlines()) == 1


def test_files_are_utf_8_with_the_same_ends_of_lines() -> None:
    """Elsewhere than on Linux, Python's defaults differ."""
    wrong = []
    found = (Path(folder) / name for folder, _, names in os.walk(probes.PACKAGE, followlinks=True) for name in names)
    for path in sorted(path for path in found if path.suffix == ".py"):
        name = str(path.relative_to(probes.PACKAGE))
        if name in ON_INTERFACES or name.startswith(("labs/0", "labs/1")):
            continue
        for call in (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)):
            needed = {"read_text": {"encoding"}, "write_text": {"encoding", "newline"}, "to_csv": {"lineterminator"}}
            lacking = needed.get(getattr(call.func, "attr", ""), set()) - {word.arg for word in call.keywords}
            wrong += [f"{name}:{call.lineno}: {', '.join(sorted(lacking))}"] if lacking else []
    assert not wrong

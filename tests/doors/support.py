"""Goes through a door as its owner does: a command line of theirs, in a shell that has run `fairlane env`, in network and mount namespaces of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fairlane import probes

ROOT = Path(__file__).resolve().parents[2]
SHELL_PYTHON = ROOT / ".venv-shell" / "bin" / "python"
"""An environment of a user's own, with p4runtime-shell and ptf."""
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def needs(*programs: str) -> list[pytest.MarkDecorator]:
    """Marks of a test that needs root, our programs and others of these names."""
    missing = [name for name in programs if shutil.which(name, path=SYSTEM_PATH) is None]
    return [
        pytest.mark.skipif(os.geteuid() != 0, reason="needs root: network namespaces"),
        pytest.mark.skipif(probes.program("fairlane-switch") is None, reason="fairlane-switch is not built (make build)"),
        pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)} (make test installs sudo; root: apt-get install)"),
        pytest.mark.timeout(400),
    ]


def sudos_python() -> pytest.MarkDecorator:
    """`sudo PATH=$PATH python3` starts the system's python3, wherever PATH leads, with the packages of .venv: those of another Python do not fit it."""
    say = "import sys; print('%d.%d' % sys.version_info[:2])"
    python = shutil.which("python3", path=SYSTEM_PATH)
    version = subprocess.run([python, "-c", say], text=True, capture_output=True).stdout.strip() if python else "none"
    own = f"{sys.version_info[0]}.{sys.version_info[1]}"
    return pytest.mark.skipif(version != own, reason=f"sudo's python3 is {version}, and .venv has Python {own} (UV_PYTHON)")


def checkout(variable: str, project: str, folder: Path) -> Path:
    """A copy of a public checkout whose folder an environment variable names; skips without it."""
    given = os.environ.get(variable)
    if not given:
        pytest.skip(f"needs a checkout of {project}: {variable}=FOLDER")
    return shutil.copytree(given, folder / "checkout", symlinks=True, ignore=shutil.ignore_patterns(".git"))


def run(script: str, folder: Path, *, said: str = "", before: str = "", env: str = "", timeout_s: float = 240) -> str:
    """What a bash script prints, both streams, in `folder`, after `eval "$(fairlane env)"`, with the options `env`. before: lines ahead of that, such as another environment's
    activation. Everything that it starts is gone afterwards. AssertionError if it ends with another code than 0."""
    fairlane = Path(sys.executable).with_name("fairlane")
    prepared = f'set -e; ip link set lo up; {before}\neval "$({fairlane} env {env})"\nset +e\n{script}'
    environment = {"PATH": SYSTEM_PATH, "HOME": str(folder), "TERM": "dumb", "LANG": "C.UTF-8", "USER": "root"}
    process = subprocess.Popen(
        ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", prepared],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        printed, _ = process.communicate(said, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        printed, _ = process.communicate()
        raise AssertionError(f"not done after {timeout_s:g} s:\n{printed}") from None
    assert process.returncode == 0, f"exit code {process.returncode}:\n{printed}"
    return printed


def with_ptf(folder: Path) -> str:
    """Lines that activate an environment with ptf, and put BMv2's names into /usr/local/bin, where sudo is made to look for programs: of this shell
    alone, by mounts."""
    activate = SHELL_PYTHON.with_name("activate")
    if not activate.with_name("ptf").is_file():
        pytest.skip("ptf is not installed: no .venv-shell (make test installs it)")
    names, sudoers = folder / "names", folder / "sudoers"
    for made in (names, sudoers):
        made.mkdir()
    (sudoers / "local").write_text('Defaults secure_path="/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"\n')
    (sudoers / "local").chmod(0o440)
    fairlane = Path(sys.executable).with_name("fairlane")
    mounts = f"mount --bind {names} /usr/local/bin; mount --bind {sudoers} /etc/sudoers.d"
    return f"{fairlane} env --link {names}; {mounts}; . {activate}"

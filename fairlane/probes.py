"""Abilities of the machine, found by trying: kernel queueing disciplines, ports, programs."""

from __future__ import annotations

import functools
import os
import shutil
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from fairlane.errors import CANNOT_RUN_HERE, Refusal

PACKAGE = Path(__file__).resolve().parent
"""What is installed: code, and beside it `p4src`, `experiments`, `labs`. In a checkout these are links to its top-level folders."""
ROOT = PACKAGE.parent
"""The checkout, where there is one."""
VENV_BIN = ROOT / ".venv" / "bin"
_SUFFIX = ".exe" if sys.platform == "win32" else ""

_QDISC_TRIALS = {
    "netem": "netem delay 1ms",
    "tbf": "tbf rate 1mbit burst 10k limit 100k",
    "htb": "htb",
    "fq": "fq",
    "red": "red limit 100000 min 10000 max 30000 avpkt 1000 bandwidth 10mbit",
}


def program(name: str) -> Path | None:
    """A program in the folder that FAIRLANE_BIN names, where another build is to be tried; one of ours, installed (`bin`), in .venv/bin of
    the checkout, or beside the interpreter; or one in PATH or the system's folders."""
    given = os.environ.get("FAIRLANE_BIN")
    for folder in (*([Path(given)] if given else ()), PACKAGE / "bin", VENV_BIN, Path(sys.executable).parent):
        own = folder / (name + _SUFFIX)
        if os.access(own, os.X_OK):
            return Path(own)
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/bin", "/bin"])
    found = shutil.which(name, path=path)
    return Path(found) if found else None


def source(path: str) -> Path:
    """A P4 program that an experiment names: one of Fairlane's own, such as p4src/als.p4, or one of the folder where one stands."""
    try:
        return own if (own := PACKAGE / path).is_file() else Path(path)
    except (OSError, ValueError):  # no file can have such a name
        return Path(path)


def is_own(source: Path) -> bool:
    """Whether a P4 program is one of Fairlane's own, as installed."""
    return source.is_relative_to(PACKAGE)


def in_checkout() -> bool:
    """Whether this is a checkout of the repository, and not an installed package."""
    return (PACKAGE / "p4src").is_symlink()


_EXTRAS = {"dask": "distributed", "live": "uvicorn", "mininet": "thriftpy2", "mpi": "mpi4py"}
"""A package that tells whether an extra of pyproject.toml is installed."""


def need(extra: str, what: str) -> None:
    """Refusal when an extra that `what` needs is not installed, with the command that installs it."""
    if find_spec(_EXTRAS[extra]) is None:
        raise Refusal(f"{what} needs packages that are not installed here: pip install 'fairlane[{extra}]'", CANNOT_RUN_HERE)


def need_linux() -> None:
    """Refusal elsewhere, of what runs on Mininet."""
    if sys.platform != "linux":
        raise Refusal("Mininet needs Linux. On this system, experiments run in virtual time: leave --fabric mininet out.", CANNOT_RUN_HERE)


def is_root() -> bool:
    return sys.platform != "win32" and os.geteuid() == 0


@functools.cache
def has_qdisc(kind: str) -> bool:
    """Whether the kernel has a queueing discipline: tried on a veth pair in a namespace that vanishes with the trial. Needs root."""
    if not is_root() or program("tc") is None:
        return False
    script = f"ip link add va type veth peer name vb && tc qdisc add dev va root {_QDISC_TRIALS[kind]}"
    done = subprocess.run(["unshare", "--net", "sh", "-c", script], capture_output=True, check=False, timeout=20)
    return done.returncode == 0


@functools.cache
def has_namespaces() -> bool:
    """Whether network namespaces can be made here, with an interface in them. Needs root."""
    done = subprocess.run(["unshare", "--net", "ip", "link", "set", "lo", "up"], capture_output=True, check=False, timeout=20)
    return done.returncode == 0


def port_in_use(port: int) -> bool:
    """Whether someone listens on 127.0.0.1:port (or on all addresses)."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def listener(port: int) -> int | None:
    """The process of this machine that accepts connections at 127.0.0.1:port or on all addresses; None: nobody does. 0: a process that we
    may not look into."""
    found = [inode for table in ("tcp", "tcp6") for inode in _listening(Path(f"/proc/net/{table}"), port)]
    if not found:
        return None
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            for entry in _links(process / "fd"):
                if any(entry == f"socket:[{inode}]" for inode in found):
                    return int(process.name)
    return 0


def _listening(table: Path, port: int) -> list[str]:
    """Inodes of listening sockets."""
    try:
        lines = [line.split() for line in table.read_text().splitlines()[1:]]
    except OSError:
        return []
    return [fields[9] for fields in lines if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port]


def _links(folder: Path) -> list[str]:
    found = []
    try:
        for entry in folder.iterdir():
            found.append(os.readlink(entry))
    except OSError:
        pass  # the process has ended, or closed a file
    return found


def has_mininet() -> bool:
    """Whether Mininet's Python package can be imported and its helper run."""
    try:
        import mininet.net  # noqa: F401
    except ImportError:
        return False
    return program("mnexec") is not None


def congestion_controls() -> list[str]:
    """The kernel's TCP congestion controls, those in modules not loaded yet left out."""
    try:
        return Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    except OSError:
        return []

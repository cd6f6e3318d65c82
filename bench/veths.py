"""Two hosts and a switch as network namespaces, joined by veth pairs; all of it gone again at the end.

    h1 [eth0] --- [s1-eth1] switch [s1-eth2] --- [eth0] h2

Needs root. The names carry the process id, so that several runs do not meet.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CLONE_NEWNET = 0x40000000
ADDRESSES = {"h1": "10.0.1.1/16", "h2": "10.0.2.2/16"}
SWITCH_PORTS = {1: "s1-eth1", 2: "s1-eth2"}


class CannotRun(Exception):
    """The sentence names the missing requirement of this machine."""


def missing() -> str | None:
    """Why namespaces cannot be made here, or None."""
    if os.geteuid() != 0:
        return "needs root, to make network namespaces"
    if shutil.which("ip") is None:
        return "needs the program ip (package iproute2)"
    probe = f"flprobe{os.getpid()}"
    done = subprocess.run(["ip", "netns", "add", probe], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return f"cannot make a network namespace: {done.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", probe], check=False)
    return None


def program(name: str) -> str | None:
    """A program of ours (in cargo's target folder, or next to the interpreter) or of the system."""
    root = Path(__file__).resolve().parent.parent
    places = [Path(sys.executable).parent, root / ".venv" / "bin"]
    told = os.environ.get("CARGO_TARGET_DIR")
    target = Path(told) if told else root / "switch" / "target"
    built = [target / "release", target / "debug"]
    for place in built + places if told else places + built:
        if os.access(place / name, os.X_OK):
            return str(place / name)
    return shutil.which(name)


def compile_p4(source: Path, folder: Path) -> Path:
    """P4 source -> BMv2 JSON, by fairlane-compile or, where that is not built, p4c."""
    output = folder / f"{source.stem}.json"
    compiler = program("fairlane-compile") or program("p4c-bm2-ss")
    if compiler is None:
        raise CannotRun("no P4 compiler: neither fairlane-compile (make build) nor p4c-bm2-ss")
    done = subprocess.run([compiler, "-o", str(output), str(source)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CannotRun(f"{compiler} does not compile {source}:\n{done.stderr.strip()}")
    return output


class Network:
    """The namespaces h1, h2 and s1; see the module."""

    def __init__(self) -> None:
        self._prefix = f"fl{os.getpid()}"
        self.names = {node: f"{self._prefix}-{node}" for node in ("h1", "h2", "s1")}

    def build(self) -> None:
        for name in self.names.values():
            _ip("netns", "add", name)
            self._sysctl(name, "net.ipv6.conf.all.disable_ipv6=1")
            self._sysctl(name, "net.ipv6.conf.default.disable_ipv6=1")
        for host in ADDRESSES:
            self.join(host)

    def join(self, host: str) -> None:
        """Make the veth pair between a host and its port, and set it up."""
        port = SWITCH_PORTS[list(ADDRESSES).index(host) + 1]
        _ip("link", "add", "name", "eth0", "netns", self.names[host], "type", "veth", "peer", "name", port, "netns", self.names["s1"])
        self.ip(host, "address", "add", ADDRESSES[host], "dev", "eth0")
        self.ip(host, "link", "set", "lo", "up")
        self.ip(host, "link", "set", "eth0", "up")
        self.ip("s1", "link", "set", port, "up")

    def remove(self) -> None:
        for name in self.names.values():
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def ip(self, node: str, *arguments: str) -> str:
        return _ip("-n", self.names[node], *arguments)

    def command(self, node: str, command: list[str]) -> list[str]:
        """The command line that runs a command in a node."""
        return ["ip", "netns", "exec", self.names[node], *command]

    def received(self, host: str) -> int:
        """Frames that have arrived at a host's interface, as its kernel counts them."""
        with self._inside(host), open("/proc/thread-self/net/dev") as table:
            for line in table:
                name, _, counts = line.partition(":")
                if name.strip() == "eth0":
                    return int(counts.split()[1])
        raise CannotRun(f"{host} has lost its interface")

    def socket(self, node: str, kind: int = socket.SOCK_DGRAM, family: int = socket.AF_INET) -> socket.socket:
        """A socket that lives in a node, though this process does not."""
        with self._inside(node):
            return socket.socket(family, kind)

    @contextmanager
    def _inside(self, node: str) -> Iterator[None]:
        libc = ctypes.CDLL(None, use_errno=True)
        with open("/proc/thread-self/ns/net") as home, open(f"/run/netns/{self.names[node]}") as there:
            if libc.setns(there.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), f"setns {self.names[node]}")
            try:
                yield
            finally:
                libc.setns(home.fileno(), CLONE_NEWNET)

    @staticmethod
    def _sysctl(name: str, setting: str) -> None:
        subprocess.run(["ip", "netns", "exec", name, "sysctl", "-qw", setting], capture_output=True, check=False)


@contextmanager
def network() -> Iterator[Network]:
    """A network, removed however the block ends."""
    made = Network()
    try:
        made.build()
        yield made
    finally:
        made.remove()


def _ip(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CannotRun(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout

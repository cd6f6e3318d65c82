"""A run's resources outside its own process, recorded so that they can be removed after the run was killed.

Each run keeps a file in /run/fairlane with its process, its interfaces' prefix, and its children, and removes it at its end. The next run,
`fairlane clean`, or `make stop` cleans up after runs whose process has ended, and changes nothing else.
During a run, its process holds a lock next to that file, because process numbers are valid only in their own namespace.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fairlane.errors import Refusal
from fairlane.fabrics.processes import Identity

FOLDER = Path("/run/fairlane")
# Name of an environment variable.
MARK = "FAIRLANE_RUN"
_NET = Path("/sys/class/net")
# What is killed has so long to be gone.
_DIE_S = 5.0


@dataclass
class RunRecord:
    """prefix: of all interfaces of this run in the root namespace, such as "f3a2-". ports: TCP ports that its switches serve. namespace: in
    which its processes have their numbers, 0 where that is not known. lock: open in the run itself."""

    prefix: str
    owner: Identity
    what: str
    children: list[Identity] = field(default_factory=list)
    path: Path | None = None
    ports: list[int] = field(default_factory=list)
    namespace: int = 0
    lock: int | None = None

    def alive(self) -> bool:
        """Whether the run's process lives, in whatever namespace."""
        assert self.path is not None
        try:
            with self.path.with_suffix(".lock").open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return False
        except BlockingIOError:
            return True
        except OSError:  # of a version that held none
            return self.owner.alive()

    def reachable(self) -> bool:
        """Whether the numbers of its processes are those that this process knows."""
        return self.namespace in (0, _namespace())

    @staticmethod
    def create(what: str, folder: Path = FOLDER, ports: Sequence[int] = ()) -> RunRecord:
        """Take a prefix that no interface and no other run has. Needs root. Refusal when a live run has one of the ports: it may not listen
        there yet."""
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            # Until the file is closed.
            fcntl.flock(lock, fcntl.LOCK_EX)
            for other in records(folder):
                shared = sorted(set(ports) & set(other.ports))
                if shared and other.alive():
                    raise Refusal(
                        f"port {shared[0]} belongs to a run that is under way: {other.what}, process {other.owner.pid}."
                        " 'make stop' ends it; --grpc-port picks other ports."
                    )
            return RunRecord._create(what, folder, list(ports))

    @staticmethod
    def _create(what: str, folder: Path, ports: list[int]) -> RunRecord:
        owner = Identity.of(os.getpid())
        assert owner is not None
        while True:
            prefix = f"f{secrets.token_hex(1)}{secrets.token_hex(1)[0]}-"
            path = folder / f"{prefix.rstrip('-')}.json"
            record = RunRecord(prefix, owner, what, path=path, ports=ports, namespace=_namespace())
            if interfaces(prefix):
                continue
            try:
                # A file of that name means that another run has just taken the prefix.
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
            except FileExistsError:
                continue
            record.lock = os.open(path.with_suffix(".lock"), os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
            fcntl.flock(record.lock, fcntl.LOCK_EX)
            record._save()
            return record

    def add(self, pid: int) -> None:
        """A child that must not outlive the run."""
        identity = Identity.of(pid)
        if identity is not None:
            self.children.append(identity)
            self._save()

    @property
    def mark(self) -> str:
        """The value of `MARK` in the environment of what a user starts on the run's hosts."""
        return f"{self.prefix}{self.owner.pid}-{self.owner.started}"

    def release(self) -> list[str]:
        """Remove the leftovers of the run, and its file; returns what was removed, in words."""
        killed = [member for child in self.children for member in child.session()] if self.reachable() else []
        _end(killed)
        # Only then: a child that lived on might have started more.
        marked = _marked(self.mark)
        _end(marked)
        removed = [f"process {one.pid}" for one in (*killed, *marked)]
        for name in interfaces(self.prefix):
            # Deleting one end of a pair takes the other along.
            if subprocess.run(["ip", "link", "del", name], capture_output=True, check=False).returncode == 0:
                removed.append(f"interface {name}")
        if self.path is not None:
            self.path.unlink(missing_ok=True)
            self.path.with_suffix(".lock").unlink(missing_ok=True)
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None
        return removed

    def _save(self) -> None:
        assert self.path is not None
        text = json.dumps(
            {
                "prefix": self.prefix,
                "what": self.what,
                "owner": [self.owner.pid, self.owner.started],
                "children": [[c.pid, c.started] for c in self.children],
                "ports": self.ports,
                "namespace": self.namespace,
            }
        )
        temporary = self.path.with_suffix(".new")
        temporary.write_text(text)
        temporary.replace(self.path)


def _namespace() -> int:
    """Of this process's numbers; 0 where the kernel has no such namespaces."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def _end(processes: Sequence[Identity]) -> None:
    """Kills them and waits until they are gone: on a busy machine that takes a while."""
    for process in processes:
        process.kill(signal.SIGKILL)
    deadline = time.monotonic() + _DIE_S
    while any(process.alive() for process in processes) and time.monotonic() < deadline:
        time.sleep(0.01)


def _marked(mark: str) -> list[Identity]:
    """Processes with this mark in their environment, whatever session they lead: a server that made itself a daemon keeps it."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            environment = (entry / "environ").read_bytes() if entry.name.isdigit() else b""
        except OSError:
            continue
        identity = Identity.of(int(entry.name)) if wanted in environment.split(b"\0") else None
        if identity is not None:
            found.append(identity)
    return found


def interfaces(prefix: str) -> list[str]:
    """Interfaces of this namespace whose names begin with `prefix`."""
    return sorted(p.name for p in _NET.iterdir() if p.name.startswith(prefix)) if _NET.is_dir() else []


def records(folder: Path = FOLDER) -> list[RunRecord]:
    """All runs on file, dead or alive."""
    found = []
    for path in sorted(folder.glob("f*.json")):
        try:
            data = json.loads(path.read_text())
            record = RunRecord(
                data["prefix"],
                Identity(*data["owner"]),
                data["what"],
                [Identity(*c) for c in data["children"]],
                path,
                data.get("ports", []),
                int(data.get("namespace", 0)),
            )
        except (OSError, ValueError, KeyError, TypeError):
            # An empty file is one that a run has this instant created, or died creating.
            if path.exists() and time.time() - path.stat().st_mtime > 10:
                path.unlink(missing_ok=True)
            continue
        # The prefix decides what is deleted: never take one that we did not create.
        if len(record.prefix) == 5 and record.prefix[0] == "f" and record.prefix[-1] == "-":
            found.append(record)
    return found


def clean(folder: Path = FOLDER) -> list[str]:
    """Remove the leftovers of dead runs; returns what was removed, in words."""
    removed = []
    for record in records(folder):
        if not record.alive():
            removed += record.release()
    return removed


def stop_live(timeout_s: float = 20.0, folder: Path = FOLDER) -> list[str]:
    """Ask running experiments to end, wait for them, and clean up after those that do not; returns what was ended."""
    live = [r for r in records(folder) if r.alive() and r.reachable()]
    for record in live:
        record.owner.kill(signal.SIGTERM)
    deadline = time.monotonic() + timeout_s
    for record in live:
        while record.owner.alive() and time.monotonic() < deadline:
            time.sleep(0.1)
        record.owner.kill(signal.SIGKILL)
    return [f"{record.what} (process {record.owner.pid})" for record in live]

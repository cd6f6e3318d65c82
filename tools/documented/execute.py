"""Runs blocks in a copy of the checkout, in the order of the pages; a command in several blocks runs once.

In `make test` runs are shortened, and only the first draws its plots, which need most of the time of a short run."""

from __future__ import annotations

import glob
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairlane import probes
from tools.documented.blocks import Block

# A run in virtual time is cut to so much (seconds) in each `make test`, unless its page says otherwise.
SHORT_S = "4"

# And one in Mininet whenever it is run.
MININET_S = "12"

# The environment is the checkout's own, and a goal of the copy's Makefile must not touch it.
_LEFT_ALONE = ("environment", "build", "debian-packages", "link-mininet")
_LAB = re.compile(r"fairlane labs check \d\d")
_METACHARACTERS = re.compile(r"[|;&><$(`]")


@dataclass(frozen=True)
class Done:
    """The result of a command. code: of its exit, None when its time was over; said: its output; cpu_s: processor time."""

    block: Block
    command: str
    code: int | None
    said: str
    cpu_s: float


@dataclass(frozen=True)
class NotRun:
    """A command that was not run, and why."""

    block: Block
    command: str
    reason: str


def copy(root: Path, to: Path) -> None:
    """The checkout as a clone would have it, with uncommitted changes, and its environments and compiled module linked."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root, check=True, capture_output=True, text=True
    )
    for name in listed.stdout.split("\0"):
        if name and ((root / name).is_file() or (root / name).is_symlink()):
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, to / name, follow_symlinks=False)
    for built in (*root.glob(".venv*"), *root.glob("fairlane/*.so")):
        (to / built.relative_to(root)).symlink_to(built)
    for script in _LEFT_ALONE:
        (to / "scripts" / script).write_text("#!/bin/sh\n")
    for lab in (to / "labs").glob("[0-9]*"):  # a reader has filled the TODOs in
        if (solved := to / "teaching" / lab.name / "solution").is_dir():
            shutil.copytree(solved, lab, dirs_exist_ok=True)


def why_not(block: Block, command: str, everything: bool) -> str | None:
    """The reason for which a command of a block is not run now; None when it is."""
    if block.said("skip"):
        return block.said("skip")[0]
    if block.said("elsewhere"):
        return f"run by {block.said('elsewhere')[0]}"
    if block.said("root") or command.startswith("sudo ") or "--fabric mininet" in command:
        if not everything:
            return "make docs-commands runs it, as root"
        if _no_mininet():
            return _no_mininet()
    if block.said("bmv2") and not (everything and probes.program("simple_switch_grpc")):
        return "BMv2 is not installed" if everything else "make docs-commands runs it"
    if not everything and _LAB.fullmatch(command):
        return "run by tests/labs/test_labs.py, which grades every lab"
    return "make docs-commands runs it" if block.said("slow") and not everything else None


def _no_mininet() -> str | None:
    if not probes.is_root():
        return "needs root"
    return None if shutil.which("mn") else "Mininet is not installed"


def _cut(words: list[str], seconds: str) -> list[str]:
    """A run's command with another duration."""
    if words[2].endswith(".json"):
        return words
    if "--duration" in words:
        at = words.index("--duration") + 1
        return [*words[:at], seconds, *words[at + 1 :]]
    return [*words, "--duration", seconds]


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Runner:
    """Commands in one copy. short: cut runs in virtual time."""

    def __init__(self, root: Path, short: bool, timeout_s: float) -> None:
        self._root = root
        self._short = short
        self._timeout_s = timeout_s
        path = os.pathsep.join([str(root / ".venv" / "bin"), os.environ["PATH"]])
        self._environment = os.environ | {"PATH": path, "PYTHONPATH": str(root), "COLUMNS": "120", "MPLBACKEND": "Agg"}
        self._worker: subprocess.Popen[str] | None = None
        self._algorithms: list[tuple[str, int]] = []
        self._drawn = False
        self._seen: set[tuple[str, ...]] = set()

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._worker is not None and self._worker.stdin is not None:
            self._worker.stdin.close()
            self._worker.wait(timeout=30)
            self._worker = None

    def run(self, block: Block) -> Iterator[Done | NotRun]:
        """Each command of a block that has not been run yet; ends with the first that fails."""
        first = [] if all(why_not(block, command, not self._short) for command in block.commands) else block.said("first")
        for command in (*first, *block.commands):
            reason = None if command in first else why_not(block, command, not self._short)
            key = (command, *block.said("short"))
            if reason is not None:
                yield NotRun(block, command, reason)
            elif key not in self._seen:
                self._seen.add(key)
                done = self._one(block, command)
                yield done
                if done.code != 0:
                    return

    def _one(self, block: Block, command: str) -> Done:
        command = re.sub(r"^sudo ", "", command)
        words = [] if _METACHARACTERS.search(command) else shlex.split(command)
        fairlane = bool(words) and words[0] in ("fairlane", ".venv/bin/fairlane")
        if fairlane and words[1] == "run":
            if "mininet" in words:
                words = _cut(words, MININET_S)
            elif self._short:
                words = _cut(words, (block.said("short") or [SHORT_S])[0])
        out = self._root / "build" / "documented.txt"
        out.parent.mkdir(exist_ok=True)
        if fairlane:
            code, cpu_s = self._forked([name for word in words[1:] for name in self._globbed(word)], out)
        else:
            before = _children_s()
            code = self._shell(command, out)
            cpu_s = _children_s() - before
        return Done(block, shlex.join(words) if fairlane else command, code, out.read_text(errors="replace"), cpu_s)

    def _globbed(self, word: str) -> list[str]:
        return sorted(glob.glob(word, root_dir=self._root)) or [word] if "*" in word else [word]

    def _forked(self, argv: Sequence[str], out: Path) -> tuple[int | None, float]:
        algorithms = [(path.name, path.stat().st_size) for path in sorted((self._root / "hosts" / "algorithms").glob("*.py"))]
        if algorithms != self._algorithms:  # a worker knows those that were there when it started
            self._stop()
            self._algorithms = algorithms
        plots = not (self._short and self._drawn and argv[0] == "run")
        self._drawn = self._drawn or argv[0] == "run"
        if self._worker is None:
            self._worker = subprocess.Popen(
                [sys.executable, "-m", "tools.documented.worker"],
                cwd=self._root,
                env=self._environment,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        assert self._worker.stdin is not None and self._worker.stdout is not None
        self._worker.stdin.write(json.dumps({"argv": argv, "out": str(out), "timeout_s": self._timeout_s, "plots": plots}) + "\n")
        self._worker.stdin.flush()
        code, cpu_s = json.loads(self._worker.stdout.readline())
        return code, cpu_s

    def _shell(self, command: str, out: Path) -> int | None:
        with out.open("w") as file:
            process = subprocess.Popen(
                ["bash", "-c", command],
                cwd=self._root,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                return process.wait(timeout=self._timeout_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return None


def run_all(blocks: Sequence[Block], root: Path, everything: bool, timeout_s: float, tell: Callable[[Done], None]) -> list[NotRun]:
    """Run the commands, and report each one; returns the commands that were not run, and why."""
    left: list[NotRun] = []
    with Runner(root, short=not everything, timeout_s=timeout_s) as runner:
        for block in blocks:
            for what in runner.run(block):
                if isinstance(what, Done):
                    tell(what)
                else:
                    left.append(what)
    return left

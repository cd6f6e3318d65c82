"""Runs programs with a time limit, and caches their output by the content of their input."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

CACHE_VERSION = 1
UNUSED_S = 3 * 24 * 3600
_QUOTED_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)


@dataclass(frozen=True)
class Run:
    """A program's output. `status` is None when it ran out of time, negative for a signal."""

    status: int | None
    output: str
    errors: str
    seconds: float
    files: dict[str, str] = field(default_factory=dict)

    @property
    def crashed(self) -> bool:
        """Died by a signal or a Rust panic."""
        return self.status == 101 or (self.status is not None and self.status < 0) or "panicked at" in self.errors

    @property
    def timed_out(self) -> bool:
        return self.status is None


@functools.cache
def content_hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@functools.cache
def source_hash(path: Path, include: tuple[Path, ...] = ()) -> str:
    """Hash of a program and of all files it includes, as far as they lie next to it or in `include`."""
    digest = hashlib.sha256()
    seen: set[Path] = set()
    waiting = [path]
    while waiting:
        file = waiting.pop().resolve()
        if file in seen:
            continue
        seen.add(file)
        text = file.read_bytes()
        digest.update(hashlib.sha256(text).digest())
        for name in _QUOTED_INCLUDE.findall(text):
            for folder in (file.parent, path.parent, *include):
                found = folder / os.fsdecode(name)
                if found.is_file():
                    waiting.append(found)
                    break
    return digest.hexdigest()


class Runner:
    """Runs commands, or answers from the cache. An argument `{name}` means an output file of that name."""

    def __init__(self, cache: Path | None) -> None:
        self.cache = cache

    def run(
        self,
        command: Sequence[str | Path],
        inputs: Sequence[str],
        outputs: Sequence[str] = (),
        timeout_s: float = 60.0,
        folder: Path | None = None,
    ) -> Run:
        """`inputs` are hashes of what the command reads; its first word's content counts, too. `outputs` are names of text files
        that it may write. `folder`, where it runs, does not count: a temporary one else."""
        program = Path(command[0])
        key = hashlib.sha256(json.dumps([CACHE_VERSION, [str(c) for c in command[1:]], list(inputs)]).encode()).hexdigest()
        kept = None
        if self.cache is not None:
            kept = self.cache / f"{program.name}-{content_hash(program)[:16]}" / key[:2] / f"{key[2:]}.json"
            with contextlib.suppress(OSError, ValueError, TypeError):
                return Run(**json.loads(kept.read_text(encoding="utf-8")))
        result = execute(command, outputs, timeout_s, folder)
        if kept is not None and not result.timed_out:
            kept.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=kept.parent, delete=False, encoding="utf-8") as part:
                json.dump(asdict(result), part)
            os.replace(part.name, kept)
        return result

    def forget_unused(self) -> None:
        """Removes outputs of program builds that were not used for days."""
        if self.cache is None or not self.cache.is_dir():
            return
        for build in self.cache.iterdir():
            newest = max((f.stat().st_mtime for f in build.rglob("*.json")), default=0.0)
            if time.time() - newest > UNUSED_S:
                for file in sorted(build.rglob("*"), reverse=True):
                    file.rmdir() if file.is_dir() else file.unlink(missing_ok=True)
                build.rmdir()


def execute(command: Sequence[str | Path], outputs: Sequence[str], timeout_s: float, folder: Path | None) -> Run:
    """Runs a command once, with all processes that it starts ended when its time is up."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as out:
        paths = {name: Path(out) / name for name in outputs}
        places = {f"{{{name}}}": str(path) for name, path in paths.items()}
        words = [places.get(str(c), str(c)) for c in command]
        started = time.monotonic()
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder or out, start_new_session=True
        )
        try:
            output, errors = process.communicate(timeout=timeout_s)
            status: int | None = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, errors = process.communicate()
            status = None
        files = {n: p.read_text(encoding="utf-8", errors="replace") for n, p in paths.items() if p.is_file()}
        return Run(status, output.decode(errors="replace"), errors.decode(errors="replace"), time.monotonic() - started, files)

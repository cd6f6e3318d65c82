"""The results' folder: it appears only when it is complete, and no other run removes it.

A run first makes `.NAME.unfinished` and works there: this reserves NAME against other runs in any namespace or on any machine. It locks
that folder (`fairlane.results.held`) until it publishes it.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import itertools
import json
import math
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fairlane.errors import Refusal
from fairlane.results import held, unfinished

PROVENANCE = ("made.json", "files")
"""What `fairlane.results.made` writes: it belongs to raw records, too."""
_TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)


class ResultFolder:
    """Work in `work`; `publish` renames it to `final` in one step, `discard` leaves nothing. rescued: folders of killed runs whose records
    were complete, and which can be evaluated."""

    def __init__(self, final: Path) -> None:
        """Refusal when `final` exists, another run will write it, or its parent cannot be written."""
        self.final = final.absolute()
        if os.path.lexists(self.final):
            raise Refusal(f"--out {final}: exists already, and results are never overwritten. Give another folder, or remove it.")
        self.rescued: list[Path] = []
        try:
            self.final.parent.mkdir(parents=True, exist_ok=True)
            self._take_up_abandoned()
            if self.final in self.rescued:
                raise Refusal(
                    f"--out {final}: has the complete records of a run that was killed: 'fairlane report {final}' evaluates them. Give another folder, or remove it."
                )
            self._held = held.Held.make(_work_of(self.final))
        except FileExistsError as error:
            raise Refusal(
                f"--out {final}: another run will write it, and works in {_work_of(final)}. Give another folder, or remove that one if no run is left."
            ) from error
        except OSError as error:
            raise Refusal(f"--out {final}: cannot be written: {error.strerror}") from error

    @staticmethod
    def reserve(out: Path | None, experiment: str, seed: int) -> ResultFolder:
        """The folder of `out`, or results/als-3/20240131-235959-seed1, with -2, -3, ... where another run of the same second has it."""
        if out is not None:
            return ResultFolder(out)
        first = Path("results") / experiment / f"{time.strftime('%Y%m%d-%H%M%S')}-seed{seed}"
        while True:
            folder = next(name for name in _numbered(first) if not (os.path.lexists(name) or os.path.lexists(_work_of(name))))
            try:
                return ResultFolder(folder)
            except Refusal as refusal:
                if not isinstance(refusal.__cause__, FileExistsError) and not os.path.lexists(folder):
                    raise

    @property
    def work(self) -> Path:
        return self._held.path

    def _take_up_abandoned(self) -> None:
        """Of killed runs, what is half-written goes; complete records stay, under their run's name."""
        for path in self.final.parent.glob(".*.unfinished"):
            with held.abandoned(path) as dead:
                if dead and unfinished.has_records(path):
                    with contextlib.suppress(OSError):
                        _clear_but(path, ("raw", *PROVENANCE, held.LOCK))
                        self.rescued.append(_renamed(path, path.with_name(path.name[1:].removesuffix(".unfinished"))))
                        (self.rescued[-1] / held.LOCK).unlink(missing_ok=True)
                    continue
            held.remove(path)

    def publish(self) -> Path:
        """The folder with its results: `final`, or where something appeared there meanwhile, the same with -2, -3, ..."""
        return self._move(self.final)

    def _move(self, wanted: Path) -> Path:
        try:
            self._held.path = _renamed(self._held.path, wanted)
        finally:
            self._held.keep()
        return self._held.path

    def keep_records(self) -> Path:
        """As `publish`, of the raw records alone."""
        kept = self.publish()
        with contextlib.suppress(OSError):  # no descriptor may be left to look with
            _clear_but(kept, ("raw", *PROVENANCE))
        return kept

    def keep_failed(self) -> None:
        """What there is of a run that failed, as `final` with -failed."""
        self._move(self.final.with_name(f"{self.final.name}-failed"))

    def discard(self) -> None:
        self._held.discard()


def _work_of(final: Path) -> Path:
    return final.with_name(f".{final.name}.unfinished")


def _numbered(first: Path) -> Iterator[Path]:
    return itertools.chain([first], (first.with_name(f"{first.name}-{number}") for number in itertools.count(2)))


def _renamed(work: Path, wanted: Path) -> Path:
    """A result is never thrown away: if the name is taken, another one is not."""
    for name in _numbered(wanted):
        if os.path.lexists(name):
            continue
        try:
            return work.rename(name)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
    raise AssertionError("names do not end")


def _clear_but(folder: Path, kept: tuple[str, ...]) -> None:
    for path in folder.iterdir():
        if path.name in kept:
            continue
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """JSON without NaN or Infinity, which are no JSON: they become null."""
    write_whole(path, json_text(value))


def json_text(value: Any) -> str:
    """The text that `write_json` writes: that of `json.dumps` with an indent of 2, which is written in Python and takes four times as long."""
    return _json(value, "\n") + "\n"


_quoted = json.encoder.encode_basestring_ascii
_FLAT = frozenset((str, int, float, bool, type(None)))
_WORDS = {None: "null", True: "true", False: "false"}


@functools.cache
def _flat(inner: str) -> Callable[[Any], str]:
    """The encoder of json, which is written in C, for values without inner ones. inner: as `_json` has it."""
    return json.JSONEncoder(separators=(f",{inner}", ": "), allow_nan=False, check_circular=False).encode


def _json(value: Any, line: str) -> str:
    """line: a line's end, and the indent of this value's line."""
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, float):
        return float.__repr__(value) if math.isfinite(value) else "null"
    if value is None or type(value) is bool:
        return _WORDS[value]
    if type(value) is int:
        return repr(value)
    inner = f"{line}  "
    if isinstance(value, dict):
        if value and _FLAT.issuperset(map(type, value.values())):
            try:
                return f"{{{inner}{_flat(inner)(value)[1:-1]}{line}}}"
            except ValueError:  # not a number
                pass
        members = [
            f"{_quoted(key) if isinstance(key, str) else _quoted(json.dumps(key))}: {_json(one, inner)}" for key, one in value.items()
        ]
        return f"{{{inner}{f',{inner}'.join(members)}{line}}}" if members else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{inner}{f',{inner}'.join([_json(one, inner) for one in value])}{line}]" if value else "[]"
    return json.dumps(value)


def write_whole(path: Path, content: str | bytes) -> Path:
    """A file that appears complete, or not at all, also if this process is killed or the machine stops. What others put into the folder, a link
    for example, is replaced and not followed."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", dir=path.parent)
    unfinished_file = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            if sys.platform != "win32":
                os.fchmod(file.fileno(), 0o666 & ~_umask())
            os.fsync(file.fileno())
        return unfinished_file.replace(path)
    except BaseException:
        unfinished_file.unlink(missing_ok=True)
        raise


def write_new(path: Path, content: str) -> None:
    """As `write_whole`. FileExistsError: there is a file or a link of that name."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | held.NO_LINK, 0o666))
    try:
        write_whole(path, content)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _umask() -> int:
    """Linux tells it; elsewhere one must set it to learn it."""
    try:
        return next(
            int(line.split()[1], 8)
            for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
            if line.startswith("Umask:")
        )
    except (OSError, StopIteration):
        return 0o022

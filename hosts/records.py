"""Run logs of host processes: one JSON object a line.

Every record has `kind`, `t` (Unix time, CLOCK_REALTIME seconds) and `mono_s` (CLOCK_MONOTONIC seconds, the same clock for all
processes of a machine). `t` is `mono_s` plus an offset read once at the start: it never steps during a run.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any


class Clock:
    """Monotonic time, and the Unix time that belongs to it."""

    def __init__(self) -> None:
        self.offset_s = time.time() - time.monotonic()

    def now_s(self) -> float:
        """Monotonic."""
        return time.monotonic()

    def unix_s(self, mono_s: float) -> float:
        return mono_s + self.offset_s

    def mono_s(self, unix_s: float) -> float:
        return unix_s - self.offset_s


class RecordWriter:
    """Writes records; buffers them, so that no packet waits for the disk. `flush` each second and `close` at the end."""

    def __init__(self, path: str, clock: Clock) -> None:
        """`path`: a file, truncated; or `-` for standard output. Raises `OSError`."""
        self._file = sys.stdout if path == "-" else open(path, "w", encoding="utf-8", buffering=1 << 16)
        self._owned = path != "-"
        self._clock = clock
        self._encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode

    def write(self, kind: str, mono_s: float, **fields: Any) -> None:
        record = {"kind": kind, "t": round(self._clock.unix_s(mono_s), 6), "mono_s": round(mono_s, 6), **fields}
        self._file.write(self._encode(record) + "\n")

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.flush()
        if self._owned:
            self._file.close()

"""Text files that are open only during a write: thousands of flows have more record files than a process may have open."""

from __future__ import annotations

from pathlib import Path

_OF_ONE = 1 << 16
_OF_ALL = 1 << 26
"""Characters that wait in memory until they are written: of one file, and of all files of a run."""


class RecordFiles:
    """The files of a run. `close` writes all that waits."""

    def __init__(self) -> None:
        self._files: list[RecordFile] = []
        self._waiting = 0

    def new(self, path: Path) -> RecordFile:
        """One more, which appears with its first bytes, or when all are closed; what was there is replaced."""
        self._files.append(RecordFile(path, self))
        return self._files[-1]

    def grown(self, characters: int) -> None:
        self._waiting += characters
        if self._waiting > _OF_ALL:
            self.flush()

    def flush(self) -> None:
        """Whoever reads the files finds all that was written. Raises `OSError`."""
        for file in self._files:
            file.flush()

    def close(self) -> None:
        for file in self._files:
            file.close()


class RecordFile:
    """One of them: of a text file what records need."""

    def __init__(self, path: Path, files: RecordFiles) -> None:
        self._path = path
        self._files = files
        self._parts: list[str] = []
        self._size = 0
        self._mode = "w"

    def write(self, text: str) -> None:
        self._parts.append(text)
        self._size += len(text)
        self._files.grown(len(text))
        if self._size > _OF_ONE:
            self.flush()

    def flush(self) -> None:
        if self._parts:
            self._append()

    def close(self) -> None:
        if self._parts or self._mode == "w":
            self._append()

    def _append(self) -> None:
        with self._path.open(self._mode, encoding="utf-8", newline="\n") as file:
            file.writelines(self._parts)
        self._files.grown(-self._size)
        self._parts, self._size, self._mode = [], 0, "a"

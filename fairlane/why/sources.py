"""The lines of a program's files."""

from __future__ import annotations

import os
from pathlib import Path

from fairlane import probes


class Sources:
    """Of what can be read; a file that is gone has no lines. root: the folder from which names that are not whole count."""

    def __init__(self, root: Path | None = None) -> None:
        self._root = root
        self._files: dict[str, list[str]] = {}

    def lines(self, file: str) -> list[str]:
        if file not in self._files:
            try:
                self._files[file] = self._path(file).read_text(encoding="utf-8", errors="replace").splitlines() if file else []
            except OSError:
                self._files[file] = []
        return self._files[file]

    def _path(self, file: str) -> Path:
        return Path(file) if self._root is None else self._root / file

    def line(self, file: str, number: int) -> str:
        """Without its margin; "" where there is none. number: from 1."""
        lines = self.lines(file)
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""

    def shown(self, file: str) -> str:
        """A file's name without folders of this machine."""
        if not file or not os.path.isabs(self._path(file)):
            return file
        path = Path(os.path.realpath(self._path(file)))
        for root in (Path.cwd(), probes.PACKAGE, probes.PACKAGE.resolve().parent):
            if path.is_relative_to(root):
                return path.relative_to(root).as_posix()
        return path.name

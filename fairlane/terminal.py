"""The console that commands print to."""

from __future__ import annotations

import os
from pathlib import Path

from rich.console import Console, ConsoleDimensions

_WIDE = 100_000


class OwnConsole(Console):
    """As rich's. Into a pipe or a file it prints lines as long as their content: rich assumes a terminal of 80 columns there, and cuts tables to it."""

    @property
    def size(self) -> ConsoleDimensions:
        found = super().size
        unknown = self._width is None and not self.file.isatty()
        return ConsoleDimensions(_WIDE, found.height) if unknown else found

    @size.setter
    def size(self, new_size: tuple[int, int]) -> None:
        self.width, self.height = new_size


console = OwnConsole()


def say(text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def shown(path: Path) -> str:
    """From the current folder on; whole where it is on another drive, as on Windows."""
    try:
        return os.path.relpath(path)
    except ValueError:
        return str(path)

"""make notebooks: writes labs/NN/lab.ipynb from labs/NN/notebook.py, unless it exists."""

from __future__ import annotations

import sys
from pathlib import Path

import jupytext

ROOT = Path(__file__).resolve().parents[2]


def sources() -> list[Path]:
    return sorted((ROOT / "labs").glob("[0-9][0-9]/notebook.py"))


def write(source: Path, notebook: Path) -> None:
    """A notebook without outputs, and without a trace of its source."""
    cells = jupytext.read(source)
    cells.metadata.pop("jupytext", None)
    jupytext.write(cells, notebook, fmt="ipynb")


def main() -> int:
    for source in sources():
        notebook = source.with_name("lab.ipynb")
        name = notebook.relative_to(ROOT)
        if notebook.exists():
            print(f"{name}: there, and left as it is; remove it for a new one")
            continue
        write(source, notebook)
        print(f"{name}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main())

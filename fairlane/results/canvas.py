"""matplotlib for the pictures of a run: its classes, and PNG files. Other modules of the evaluation of a run import them from here."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
import matplotlib.artist

from fairlane.results import made


def _leave_out_documentation() -> None:
    """matplotlib writes the documentation of each class while it is imported, 0.13 s in which it draws two pictures. Only a person at a Python prompt
    reads it, so in a process of Fairlane's commands it is left out. Another matplotlib may have other names: then it writes it."""
    if made.command() is None or "matplotlib.lines" in sys.modules:
        return
    matplotlib.artist.kwdoc = lambda artist: ""
    matplotlib.artist.Artist._update_set_signature_and_docstring = classmethod(lambda cls: None)  # type: ignore[attr-defined] # its own


_leave_out_documentation()

from matplotlib.axes import Axes as Axes  # noqa: E402
from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: E402
from matplotlib.figure import Figure as Figure  # noqa: E402
from matplotlib.lines import Line2D as Line2D  # noqa: E402

# A line is drawn in pieces: the cells of a whole one of 200,000 points take 360 MB.
matplotlib.rcParams["agg.path.chunksize"] = 10_000


def save(figure: Figure, path: Path) -> Path:
    """As `figure.savefig(path)`, the same bytes, of a figure whose layout is computed. `savefig` draws it twice, once for the layout alone. The figure cannot
    be drawn again at another size."""
    canvas = FigureCanvasAgg(figure)
    layout = figure.get_layout_engine()
    if layout is not None:
        layout.execute(figure)
        figure.set_layout_engine("none")
    canvas.print_png(path)  # type: ignore[no-untyped-call]
    return path

"""`film.json`, the pictures and `index.html` of a film."""

from __future__ import annotations

import base64
import dataclasses
import math
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.image import imread as read_image

from fairlane.films import model, pictures
from fairlane.films.model import Shown, Wanted
from fairlane.films.pictures import Film
from fairlane.results import compare, fidelity, frames, palette, result_folder
from fairlane.studies.page import environment

DATA, PAGE, VIDEO = "film.json", "index.html", "side-by-side.mp4"
_BIN_S = 0.5
_AFTER_CHANGE_S = 3.0
"""Of the pictures side by side: so long after a change of the link's rate."""


def _number(key: str, digits: int, factor: float = 1.0) -> Callable[[dict[str, Any]], str]:
    return lambda figures: "–" if figures[key] is None else f"{factor * figures[key]:.{digits}f}"


COLUMNS: list[tuple[str, Callable[[dict[str, Any]], str]]] = [
    ("encoded, Mb/s", _number("encoded_bps", 2, 1e-6)),
    ("SSIM", _number("ssim_mean", 3)),
    ("SSIM, worst 5 %", _number("ssim_5", 3)),
    ("PSNR, dB", _number("psnr_mean_db", 1)),
    ("delay, ms", _number("delay_median_s", 0, 1e3)),
    ("delay, 95 %", _number("delay_95_s", 0, 1e3)),
    ("delay, longest", _number("delay_max_s", 0, 1e3)),
    ("freezes", _number("freezes", 0)),
    ("frozen, s", _number("frozen_s", 1)),
    ("left out", lambda figures: str(figures["pictures"] - figures["encoded"])),
    ("damaged", _number("incomplete", 0)),
]


def instants(wanted: Wanted) -> list[float]:
    """Of the pictures side by side: after each change, and in the middle of the first phase."""
    edges = [t for t, _ in wanted.rates if t < wanted.seconds] + [wanted.seconds]
    return [round((edges[0] + edges[1]) / 2, 1), *(t + _AFTER_CHANGE_S for t in edges[1:-1] if t + _AFTER_CHANGE_S < wanted.seconds)]


def write(wanted: Wanted, shown: Sequence[Shown], film: Film | None, took_s: float, folder: Path) -> None:
    """All files into `folder`, which exists."""
    asked = {**dataclasses.asdict(wanted), "fabric": wanted.fabric.name, "film": None if film is None else film.what}
    said = {"version": version("fairlane"), "asked": asked, "took_s": round(took_s, 1), "flows": model.to_json(shown)}
    result_folder.write_json(folder / DATA, said)
    drawings: list[tuple[str, Callable[[Any], None]]] = []
    if film is not None:
        drawings.append(("quality", partial(_quality, shown=shown)))
    drawings += [("rate", partial(_rates, shown=shown, wanted=wanted)), ("delay", partial(_delays, shown=shown))]
    svgs = []
    for name, draw in drawings:
        svgs.append((name, compare.svg(partial(_over, draw=draw, seconds=wanted.seconds), name)))
    _drawn(folder / "film.png", drawings, wanted.seconds)
    if film is not None:
        _screens(folder / "screens.jpg", wanted, shown)
    stills = [(t, [(one.kind, _inline(one.stills[t])) for one in shown if t in one.stills]) for t in instants(wanted)]
    doubts = [(one.kind, fidelity.doubt(one.true.verdict, [r.what for r in one.true.reasons])) for one in shown]
    text = (
        environment(Path(__file__).parent)
        .get_template("film.html")
        .render(
            wanted=wanted, film=film, took_s=took_s, version=version("fairlane"), shown=shown, columns=COLUMNS, drawings=svgs,
            stills=[(t, row) for t, row in stills if row], doubts=[(kind, said) for kind, said in doubts if said],
            rate=pictures.FRAMES_PER_SECOND, video=VIDEO,
        )
    )  # fmt: skip
    result_folder.write_whole(folder / PAGE, text)


def _drawn(path: Path, drawings: Sequence[tuple[str, Callable[[Any], None]]], seconds: float) -> None:
    """The page's drawings, one above the other."""
    figure = Figure(figsize=(8.0, 2.6 * len(drawings)), layout="constrained")
    for axes, (_, draw) in zip(np.atleast_1d(figure.subplots(len(drawings), sharex=True)), drawings, strict=True):
        _over(axes, draw, seconds)
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=8, frameon=False)
    axes.set_xlabel("time, s")
    figure.savefig(path, dpi=110, metadata={"Software": None})


def _screens(path: Path, wanted: Wanted, shown: Sequence[Shown]) -> None:
    """What was on the screens: a row for each instant, a column for each algorithm."""
    rows = instants(wanted)
    figure = Figure(figsize=(3.2 * len(shown), 2.0 * len(rows)), layout="constrained")
    grid = figure.subplots(len(rows), len(shown), squeeze=False)
    for t, places in zip(rows, grid, strict=True):
        for axes, one in zip(places, shown, strict=True):
            axes.set_axis_off()
            if t in one.stills:
                axes.imshow(read_image(one.stills[t]))
            axes.set_title(f"{palette.LABELS.get(one.kind, one.kind)}, {t:g} s", fontsize=8)
    figure.savefig(path, dpi=120)


def _inline(path: Path) -> str:
    return "data:image/jpeg;base64," + base64.b64encode(path.read_bytes()).decode()


def _over(axes: Any, draw: Callable[[Any], None], seconds: float) -> None:
    draw(axes)
    axes.set_xlim(0, seconds)


def _colour(shown: Sequence[Shown], one: Shown) -> str:
    """Far apart on one picture: some schemes of different papers share a colour."""
    return palette.OTHERS[list(shown).index(one) % len(palette.OTHERS)]


def _binned(times: Sequence[float], values: Sequence[float], seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """Middles of half seconds, and means over them; nan where there is nothing."""
    edges = np.arange(0.0, seconds + 1e-9, _BIN_S)
    sums, _ = np.histogram(times, edges, weights=values)
    counts, _ = np.histogram(times, edges)
    return (edges[:-1] + edges[1:]) / 2, np.where(counts > 0, sums / np.maximum(counts, 1), math.nan)


def _quality(axes: Any, shown: Sequence[Shown]) -> None:
    for one in shown:
        times = [number / pictures.FRAMES_PER_SECOND for number in one.quality]
        values = [q.ssim for q in one.quality.values()]
        axes.plot(times, values, color=_colour(shown, one), linewidth=0.3, alpha=0.45)
        middles, means = _binned(times, values, one.experiment.duration_s)
        axes.plot(middles, means, color=_colour(shown, one), linewidth=1.4, label=palette.LABELS.get(one.kind, one.kind))
    axes.set_ylabel("SSIM of what is on the screen")


def _rates(axes: Any, shown: Sequence[Shown], wanted: Wanted) -> None:
    times = [*(t for t, _ in wanted.rates if t < wanted.seconds), wanted.seconds]
    levels = [rate / 1e6 for t, rate in wanted.rates if t < wanted.seconds]
    axes.step(times, [*levels, levels[-1]], where="post", color=palette.SHARE, linewidth=1.0, label="link")
    for one in shown:
        bins = np.arange(0.0, wanted.seconds + 1e-9, 1.0)
        sums, _ = np.histogram([f.produced_s for f in one.frames], bins, weights=[8e-6 * f.bytes for f in one.frames])
        axes.plot(bins[1:] - 0.5, sums, color=_colour(shown, one), linewidth=1.4, label=palette.LABELS.get(one.kind, one.kind))
        axes.plot(
            [f.produced_s for f in one.frames],
            [1e-6 * f.encoder_bps for f in one.frames],
            color=_colour(shown, one),
            linewidth=0.5,
            alpha=0.6,
        )
    axes.set_ylim(0, None)
    axes.set_ylabel("encoded, and allowed (thin), Mb/s")


def _delays(axes: Any, shown: Sequence[Shown]) -> None:
    for one in shown:
        delays = [math.nan if f.delay_s is None else 1e3 * f.delay_s for f in one.frames]
        axes.plot(
            [f.produced_s for f in one.frames],
            delays,
            color=_colour(shown, one),
            linewidth=0.9,
            label=palette.LABELS.get(one.kind, one.kind),
        )
        for a, b in frames.freezes(one.frames, pictures.FRAMES_PER_SECOND):
            axes.axvspan(a, b, color=_colour(shown, one), alpha=0.15, linewidth=0)
    axes.set_ylim(0, None)
    axes.set_ylabel("picture to screen, ms")

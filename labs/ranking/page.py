"""The report of a ranking: one page that stands alone, and the same table as CSV."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
import matplotlib
import pandas as pd
from matplotlib.figure import Figure

from fairlane.labs.ranking.measures import MARKS, Measures, score
from fairlane.results import palette

matplotlib.use("Agg")
import matplotlib.pyplot as plt

MARK_TEXTS = {
    "use": "how full the link is, alone with its like (95% is full mark)",
    "fairness": "Jain's index of four flows, one of which came late",
    "loss": "none is full mark, 10% and more none",
    "delay": "an empty queue is full mark, a full one none",
    "smoothness": "one less the variation of a flow's rate from second to second",
    "friendliness": "beside TCP SACK: the smaller rate over the larger",
}


@dataclass(frozen=True)
class Line:
    """A scheme in the ranking. own: whether it is the one that the report is for."""

    rank: int
    kind: str
    score: float
    measures: Measures
    own: bool

    @property
    def label(self) -> str:
        return self.kind if self.own else palette.label(self.kind)


def ranked(measured: Mapping[str, Measures], own: str, weights: Mapping[str, float]) -> list[Line]:
    """Best first; equal scores by name."""
    order = sorted(measured, key=lambda kind: (-score(measured[kind], weights), kind))
    return [Line(n, kind, score(measured[kind], weights), measured[kind], kind == own) for n, kind in enumerate(order, 1)]


def table(lines: Sequence[Line]) -> pd.DataFrame:
    """rank, scheme, score, marks as mark_NAME, measures."""
    return pd.DataFrame(
        [
            {
                "rank": line.rank,
                "scheme": line.kind,
                "score": line.score,
                **{f"mark_{k}": v for k, v in line.measures.marks().items()},
                **line.measures.as_json(),
            }
            for line in lines
        ]
    )


def write(lines: Sequence[Line], weights: Mapping[str, float], seed: int, pictures: Sequence[tuple[str, Figure]], folder: Path) -> Path:
    """`ranking.html` and `ranking.csv` in a folder, which is made; the page. pictures: of the own scheme's runs, with what they show."""
    folder.mkdir(parents=True, exist_ok=True)
    table(lines).to_csv(folder / "ranking.csv", index=False, lineterminator="\n")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))
    page = folder / "ranking.html"
    own = next(line for line in lines if line.own)
    shown = [(text, _svg(figure)) for text, figure in pictures]
    page.write_text(
        template.render(
            lines=lines,
            own=own,
            marks=MARK_TEXTS,
            weights=weights,
            seed=seed,
            pictures=shown,
            bars=_svg(_bars(lines, weights)),
            ratio=lambda x: "TCP has nothing" if math.isinf(x) else f"{x:.2f}",
        ),
        encoding="utf-8",
        newline="\n",
    )
    return page


def _bars(lines: Sequence[Line], weights: Mapping[str, float]) -> Figure:
    """What each mark adds to each score."""
    total = sum(weights.values())
    figure, axes = plt.subplots(figsize=(8, 0.6 + 0.28 * len(lines)), constrained_layout=True)
    left = [0.0] * len(lines)
    for number, mark in enumerate(MARKS):
        parts = [100 * weights[mark] * line.measures.marks()[mark] / total for line in lines]
        axes.barh(range(len(lines)), parts, left=left, color=palette.OTHERS[number], label=mark, edgecolor="white", linewidth=0.5)
        left = [a + b for a, b in zip(left, parts)]
    axes.set_yticks(range(len(lines)), [line.label for line in lines])
    for text, line in zip(axes.get_yticklabels(), lines):
        text.set_fontweight("bold" if line.own else "normal")
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("score")
    axes.legend(loc="upper center", bbox_to_anchor=(0.45, -0.09), ncols=6, frameon=False, fontsize=8, handlelength=1)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure


def _svg(figure: Figure) -> str:
    out = io.StringIO()
    with plt.rc_context({"svg.fonttype": "none", "svg.hashsalt": "fairlane"}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    plt.close(figure)
    text = out.getvalue()
    return text[text.index("<svg") :]

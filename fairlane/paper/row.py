"""A row of the ledger: an experiment file with its measures, figures and expectations.

    [measure]                               # from the figures of groups of flows and of the bottleneck: fairlane.paper.measures
    ratio = "= rap.mean_bps / tcp.mean_bps"

    [[curves]]                              # kept of each run for figures over time
    name = "R_f"
    of = "fair_rate"                        # "rate" | "sending_rate" | "fair_share" with `flows`; "fair_rate" | "queue" | "utilisation";
                                            # "mean_rates" with `flows`: over the flows' numbers, 1 to n, instead of time
    bin_s = 1.0

    [[figures]]
    title = "fairness ratio"
    x = "n"                                 # an axis: one line (or bar) for each value of `series`
    y = "ratio"                             # a measure
    series = "delay_s"
    paper = [ ["0.02", 2, 5.1], ]           # the points of the paper's figure: series, x, y

    [[figures]]
    title = "rates"
    curves = ["sender 0", "R_f"]            # over time, at the first seed of the points that `where` picks

The expectations are described in `fairlane.paper.judge`, the keys of `[ledger]` under `Ledger`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from fairlane.experiments.model import Paper
from fairlane.experiments.sweep import Sweep
from fairlane.inputs.located_toml import Document
from fairlane.paper.judge import Expectation, check_arithmetic
from fairlane.paper.reference import Reference


@dataclass(frozen=True)
class Curve:
    """A quantity over time in a figure. flows: names of flows, or of groups (the sum of their rates). mean_rates: of each flow of a
    group over the run's window, the first at 1, the second at 2."""

    name: str
    of: Literal["rate", "sending_rate", "fair_share", "fair_rate", "queue", "utilisation", "rtt", "loss", "mean_rates"]
    flows: str = ""
    bin_s: float = 1.0

    def __post_init__(self) -> None:
        if self.of in ("rate", "sending_rate", "fair_share", "rtt", "loss", "mean_rates") and not self.flows:
            raise ValueError(f"flows: {self.of} is of flows: name a flow or a group")
        if not self.bin_s > 0:
            raise ValueError(f"bin_s: must be positive, got {self.bin_s:g}")


@dataclass(frozen=True)
class Figure:
    """One drawing; see the module. log: axes that are logarithmic, "x", "y" or "xy"."""

    title: str
    x: str = ""
    y: str = ""
    series: str = ""
    kind: Literal["lines", "bars"] = "lines"
    curves: tuple[str, ...] = ()
    where: dict[str, Any] = field(default_factory=dict)
    x_label: str = ""
    y_label: str = ""
    log: Literal["", "x", "y", "xy"] = ""
    reference: tuple[float, ...] = ()
    paper: tuple[tuple[str, float, float], ...] = ()

    def __post_init__(self) -> None:
        if bool(self.curves) == bool(self.y):
            raise ValueError("curves: a figure has either 'curves' over time, or 'x' and 'y'")
        if self.y and not self.x:
            raise ValueError("x: name the axis of the sweep")


@dataclass(frozen=True)
class Ledger:
    """The row's entry in the ledger. differs: differences from the paper, and their reasons. reading: the reading of the paper under which the row
    holds. contradiction: the arithmetic by which the paper contradicts itself. ruled_out: for a row without an explanation, one sentence for each
    bounded experiment. reference: a file next to the experiment's, with another program's results at the same points (`fairlane.paper.reference`).
    `fairlane.paper.kinds` computes the row's kind from these. An empty text removes an inherited one."""

    row: str
    differs: str = ""
    reading: str = ""
    contradiction: str = ""
    ruled_out: tuple[str, ...] = ()
    reference: str = ""

    def __post_init__(self) -> None:
        check_arithmetic("contradiction", self.contradiction)
        if not all(text.strip() for text in self.ruled_out):
            raise ValueError("ruled_out: say in each entry which experiment ruled out which cause; one is empty")


@dataclass(frozen=True)
class Row:
    """One experiment file as the report sees it."""

    id: str
    title: str
    paper: Paper
    ledger: Ledger
    sweep: Sweep
    measures: dict[str, str]
    curves: tuple[Curve, ...]
    figures: tuple[Figure, ...]
    expectations: tuple[Expectation, ...]
    open: tuple[dict[str, str], ...]
    document: Document
    reference: Reference | None = None

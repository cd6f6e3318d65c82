"""A study: an experiment file that describes many runs, with measures of them and figures.

    seeds = [1, 2, 3, 4, 5]

    [sweep]                                 # the axes (`fairlane.experiments.sweep`)
    kind = ["rap", "tcp-cubic"]
    rate_bps = [2e6, 5e6, 10e6]

    [measure]                               # from the figures of groups of flows and of the bottleneck: fairlane.studies.measures
    goodput_bps = "= long.goodput_bps"

    [[curves]]                              # kept of each run for figures over time
    name = "R_f"
    of = "fair_rate"                        # "rate" | "sending_rate" | "fair_share" with `flows`; "fair_rate" | "queue" | "utilisation";
                                            # "mean_rates" with `flows`: over the flows' numbers, 1 to n, instead of time
    bin_s = 1.0

    [[figures]]
    title = "goodput of the long flow"
    x = "rate_bps"                          # an axis: one line (or bar) for each value of `series`
    y = "goodput_bps"                       # a measure
    series = "kind"
    paper = [ ["rap", 2e6, 1.1e6], ]        # points of a paper's figure: series, x, y

    [[figures]]
    title = "rates"
    curves = ["sender 0", "R_f"]            # over time, at the first seed of the points that `where` picks

    [keep]                                  # of each run, beside its measures
    files = ["packets.parquet"]

    [[compare]]                             # on the same seeds, at each point of the other axes
    measure = "goodput_bps"
    of = { kind = "rap" }
    to = { kind = "tcp-cubic" }

A file without [measure] or [[figures]] gets those of `fairlane.studies.defaults`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from fairlane.experiments.sweep import Sweep
from fairlane.inputs.located_toml import Document

FEW_SEEDS = 5
"""An interval over fewer seeds says little, and comes with a warning."""


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
class Comparison:
    """One [[compare]] table: the measure at `of` beside the measure at `to`, on the same seeds, where the other axes agree."""

    measure: str
    of: dict[str, Any]
    to: dict[str, Any]
    title: str = ""
    where: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.of or set(self.of) != set(self.to):
            raise ValueError("of: 'of' and 'to' give values of the same axes, as in of = { kind = \"rap\" }, to = { kind = \"tcp-cubic\" }")
        if self.of == self.to:
            raise ValueError("to: the same points as 'of'; compare two different ones")


PACKETS = ("packets.csv", "packets.parquet")


@dataclass(frozen=True)
class Keep:
    """What is kept of each run, in kept/RUN of the study's folder. files: "packets.csv" or "packets.parquet", the record of packets; "trace.csv", the log of their events;
    "captures", a pcap file for each direction of a link; "tables", flows.csv, links.csv and fair_rates.csv; "records", all raw records. links: whose packets are
    recorded, "s1->s2"; none: those of all that leave a switch. seeds: of the runs; none: all."""

    files: tuple[Literal["packets.csv", "packets.parquet", "trace.csv", "captures", "tables", "records"], ...]
    links: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.files:
            raise ValueError("files: name what is to be kept")
        if self.links and not set(self.files) & set(PACKETS):
            raise ValueError("links: of packets.csv or packets.parquet, which files does not name")

    @property
    def packets(self) -> str | None:
        """The file with the record of packets."""
        return next((name for name in PACKETS if name in self.files), None)


@dataclass(frozen=True)
class OwnFiles:
    """Algorithms, P4 files and schemes of the user's own, (name, text) of each file: they go with every run to wherever it runs. A scheme's files are
    called FOLDER/FILE. program_paths, control: whole paths of P4 files and of a
    control plane, as options give them."""

    algorithms: tuple[tuple[str, str], ...] = ()
    programs: tuple[tuple[str, str], ...] = ()
    schemes: tuple[tuple[str, str], ...] = ()
    program_paths: tuple[str, ...] = ()
    control: str = ""

    @property
    def scheme_folders(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name.partition("/")[0] for name, _ in self.schemes))


NO_FILES = OwnFiles()


@dataclass(frozen=True)
class Study:
    """One experiment file with its runs. duration_s: in place of the file's, for a quick pass. left_out: a sentence for each comparison of the file
    that the chosen points leave nothing of."""

    id: str
    title: str
    sweep: Sweep
    measures: dict[str, str]
    curves: tuple[Curve, ...]
    figures: tuple[Figure, ...]
    comparisons: tuple[Comparison, ...]
    document: Document
    duration_s: float | None = None
    files: OwnFiles = NO_FILES
    left_out: tuple[str, ...] = ()
    keep: Keep | None = None

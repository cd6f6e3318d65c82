"""The request for a film, and its results."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlane.experiments.model import Experiment
from fairlane.fabrics.base import Fabric
from fairlane.fabrics.switch_process import FIRST_GRPC_PORT
from fairlane.results import fidelity
from fairlane.results.frames import Frame, Quality


@dataclass(frozen=True)
class Wanted:
    """As on the command line. rates: of the link and from when on, the first from 0 s."""

    algorithms: tuple[str, ...]
    rates: tuple[tuple[float, float], ...]
    rtt_s: float
    buffer_packets: int | None
    seconds: float
    film: Path | None
    fabric: Fabric
    seed: int
    grpc_port: int = FIRST_GRPC_PORT


@dataclass(frozen=True)
class Shown:
    """What became of the film by one algorithm. true: the verdict on the run. took_s: of this machine's time. stills: the picture on the screen at
    each of the page's instants, as files in the folder."""

    kind: str
    experiment: Experiment
    frames: list[Frame]
    quality: dict[int, Quality]
    figures: dict[str, Any]
    true: fidelity.Fidelity
    took_s: float
    stills: dict[float, Path] = field(default_factory=dict)


def to_json(shown: Sequence[Shown]) -> list[Mapping[str, Any]]:
    """`flows` of film.json."""
    return [
        {
            "algorithm": one.kind,
            "figures": one.figures,
            "fidelity": {"verdict": one.true.verdict, "reasons": [r.what for r in one.true.reasons]},
            "took_s": round(one.took_s, 1),
            "frames": [
                {**dataclasses.asdict(f), **(dataclasses.asdict(q) if (q := one.quality.get(f.number)) else {})} for f in one.frames
            ],
        }
        for one in shown
    ]

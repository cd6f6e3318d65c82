"""Another program's results in a row's scenarios, point by point: a data file next to the experiment's, `[ledger] reference`.

    {"program": "ns-2", "cells": [{"axes": {"n": 4, "delay_s": 0.02}, "runs": [{"seed": 1, "ratio": 1.98}], "frozen_runs": 0}]}

A run's values have the names of the row's measures; `tests/oracle/run_rap.py` writes such files.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlane.inputs.located_toml import Document

Axes = tuple[tuple[str, Any], ...]
KEY = ("ledger", "reference")


@dataclass(frozen=True)
class Reference:
    """program: its name. runs: of each point, the values of every run by name."""

    program: str
    runs: Mapping[Axes, list[dict[str, Any]]] = field(default_factory=dict)

    def values(self, axes: Axes, measure: str) -> list[float]:
        """The values of all runs at a point; empty without runs."""
        return [float(run[measure]) for run in self.runs.get(_sorted(axes), ()) if run.get(measure) is not None]

    def median(self, axes: Axes, measure: str) -> float:
        """Over runs; NaN without runs."""
        known = self.values(axes, measure)
        return statistics.median(known) if known else math.nan

    def has(self, measure: str) -> bool:
        """Whether any run has this value."""
        return any(run.get(measure) is not None for runs in self.runs.values() for run in runs)


def load(document: Document, folder: Path, name: str) -> Reference | None:
    """What `name` in `folder` holds; None where a row names nothing. ConfigError with the row's file and line."""
    if not name:
        return None
    path = folder / name
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        runs = {_sorted(tuple(cell["axes"].items())): list(cell["runs"]) for cell in kept["cells"]}
        return Reference(str(kept["program"]), runs)
    except OSError as error:
        raise document.error(KEY, f"cannot read {path} ({error.strerror}): tests/oracle/run_rap.py writes it") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise document.error(KEY, f"{path} is not a reference: {type(error).__name__}: {error}") from error


def _sorted(axes: Axes) -> Axes:
    """Files may name axes in any order."""
    return tuple(sorted(axes, key=lambda pair: pair[0]))

"""A machine that is too busy for real time: a run on Mininet says so itself, and its figures mean nothing then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


def summary_of(folder: Path) -> dict[str, Any]:
    """Of a folder of results. Skips the test, with the reasons, where the run's own verdict is that the machine did not keep up."""
    summary: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    fidelity = summary.get("fidelity")  # none in virtual time
    if fidelity is not None and fidelity["verdict"] != "true":
        reasons = "; ".join(r["what"] for r in fidelity["reasons"])
        pytest.skip(f"the machine did not keep up with the run, which says so itself ({fidelity['verdict']}): {reasons}")
    return summary

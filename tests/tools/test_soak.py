"""What make soak makes of its samples: a leak is told from noise."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from fairlane import probes

ROOT = probes.ROOT


@pytest.fixture(scope="module")
def soak() -> ModuleType:
    spec = importlib.util.spec_from_file_location("soak", ROOT / "bench" / "soak.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules["soak"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _samples(rss_mb: Callable[[np.ndarray], np.ndarray]) -> pd.DataFrame:
    time_s = np.arange(0.0, 7200.0, 5.0)
    noise = np.random.default_rng(1).normal(0.0, 0.3, len(time_s))
    return pd.DataFrame({"time_s": time_s, "process": "switch", "rss_mb": rss_mb(time_s) + noise, "descriptors": 12, "way_ms": 1.0})


@pytest.mark.parametrize(
    ("rss_mb", "grows"),
    [
        (lambda t: 40 + 100 * t / 86_400, True),
        (lambda t: 40 + 0 * t, False),
        (lambda t: 40 + 1 * t / 86_400, False),
    ],
    ids=["a leak of 100 MB a day", "flat", "1 MB a day"],
)
def test_growth(soak: ModuleType, tmp_path: Path, rss_mb: Callable[[np.ndarray], np.ndarray], grows: bool) -> None:
    samples = _samples(rss_mb)
    found = {s.what: s for s in soak.slopes(samples)}
    assert found["rss_mb"].grows == grows and not found["descriptors"].grows and not found["way_ms"].grows
    soak.draw(samples, list(found.values()), tmp_path / "soak.png")
    assert (tmp_path / "soak.png").stat().st_size > 10_000


def test_memory_that_levels_off_does_not_grow_in_the_second_half(soak: ModuleType) -> None:
    (rss,) = (s for s in soak.slopes(_samples(lambda t: 40 + 10 * (1 - np.exp(-t / 600)))) if s.what == "rss_mb")
    assert rss.low > 0 and rss.later[0] < rss.per_day / 10

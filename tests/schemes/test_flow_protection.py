"""Flow protection end to end in virtual time: a greedy source is held to R_f, and without one nobody is."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlane.experiments import loader
from fairlane.fabrics import targets, virtual_fabric
from fairlane.fabrics.progress import Silent
from fairlane.results import series
from fairlane.studies import measures

MEASURES = {"greedy": "= greedy.mean_bps", "als": "= als.mean_bps", "tcp": "= tcp.mean_bps", "held": "= bottleneck.held_packets"}
FAIR_BPS = 10e6 * 0.9 / 7


def measured(folder: Path, *at: str) -> dict[str, float]:
    """Figures of the last 20 s of 40 of als-greedy at a point of its sweep."""
    experiment = loader.load(loader.find("als-greedy"), 40.0, 1, at=at)
    outcome = virtual_fabric.run(experiment, virtual_fabric.Options(targets.compiler()), folder, Silent())
    return measures.measure(series.load(folder, experiment, outcome.timing), MEASURES, {})


@pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")
def test_a_greedy_source_is_held_to_its_share(tmp_path: Path) -> None:
    got = measured(tmp_path, "protection=True", "shares=10")
    # A token bucket passes what it drains: F, which is R_f here, of frames of 1014 bytes; F comes down to R_f within a quarter of a minute.
    assert got["greedy"] == pytest.approx(FAIR_BPS * 1000 / 1014, rel=0.05)
    assert got["als"] == pytest.approx(FAIR_BPS, rel=0.05)
    assert got["tcp"] > FAIR_BPS


@pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")
def test_without_protection_it_starves_the_others(tmp_path: Path) -> None:
    got = measured(tmp_path, "protection=False", "shares=10")
    assert got["greedy"] > 5 * FAIR_BPS and got["tcp"] < 0.1 * FAIR_BPS and got["held"] == 0
    # "a minimal degree of protection by allowing the senders to transmit at their fair share" [ALS sec 5]: r = R_d (1 - l) for a loss
    # of a third and more, of which 1 - l arrives.
    assert 0.35 * FAIR_BPS < got["als"] < 0.6 * FAIR_BPS


@pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")
def test_who_keeps_the_share_is_not_touched(tmp_path: Path) -> None:
    assert measured(tmp_path, "protection=True", "shares=1")["held"] == 0

"""NADA and SCReAM within 15 % of their authors' code, rate and delay in each window of docs/media-against-authors.md."""

from __future__ import annotations

import pytest

from fairlane.fabrics import virtual_fabric
from tests.oracle import media

pytestmark = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")


@pytest.mark.parametrize("kind", ["nada", "scream"])
def test_rate_and_delay_are_those_of_the_authors_code(kind: str) -> None:
    known = media.reference()[kind]
    runs = range(0, media.RUNS, 3)
    flows, mine = media.ours(kind, runs)
    for window, phase, own in zip(media.windows(0.0), known["phases"], mine, strict=True):
        for name, value in zip(("rate_bps", "delay_ms"), own):
            assert 0.85 <= value / phase[name][0] <= 1.15, (window, name, value, phase[name])
    for n, flow in zip(runs, flows):
        assert abs(flow.lost.at(1e3) - known["lost_packets"][n]) <= 8

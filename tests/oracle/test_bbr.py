"""BBR against ns-3's committed results. Needs no ns-3. docs/bbr-against-ns3.md has all cells, and says why some differ."""

from __future__ import annotations

import pytest

from fairlane.fabrics import virtual_fabric
from tests.oracle import bbr, tables

pytestmark = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")


def test_without_losses_bbr_has_ns3s_goodput_and_queue() -> None:
    first = [
        (case, figures)
        for case, figures in bbr.reference()
        # ns-3 forgets its rate in ProbeRTT where a round trip is short.
        if case["seed"] == 1 and not case["beside"] and not (case["rtt_ms"] < 20 and case["seconds"] > 10)
    ]
    assert len(first) == 7
    for name, ns3, here in tables.cells(first, bbr.ours, bbr.cell, bbr.FIGURES):
        assert here["goodput"] == pytest.approx(ns3["goodput"], rel=0.02), name
        assert here["mean_queue"] == pytest.approx(ns3["mean_queue"], rel=0.05), name
        assert here["retransmitted"] == ns3["retransmitted"] == 0, name


def test_beside_cubic_a_deep_buffer_is_shared_as_in_ns3() -> None:
    first = [(case, figures) for case, figures in bbr.reference() if case["seed"] == 1 and case["beside"] and case["buffer"] == 200]
    (_, ns3, here), *_ = tables.cells(first, bbr.ours, bbr.cell, bbr.FIGURES)
    assert here["goodput"] == pytest.approx(ns3["goodput"], rel=0.2)
    assert here["goodput"] + here["beside"] == pytest.approx(ns3["goodput"] + ns3["beside"], rel=0.01)
    assert here["mean_queue"] == pytest.approx(ns3["mean_queue"], rel=0.05)


def test_every_cell_is_in_the_page() -> None:
    page = bbr.PAGE.read_text()
    for case, _ in bbr.reference():
        assert f"| {' | '.join(bbr.cell(case))} |" in page

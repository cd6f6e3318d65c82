"""Impaired links in runs in virtual time: rates against their formulas, checksums that catch what links corrupt, flows that survive, asymmetric paths, and
packets of 9000 bytes."""

from __future__ import annotations

import json
from math import sqrt
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fairlane import probes
from fairlane.experiments import loader
from fairlane.fabrics import targets, virtual_fabric
from fairlane.fabrics.progress import Silent
from fairlane.results import impairments, metrics, report, series
from fairlane.results.fidelity import IN_VIRTUAL_TIME
from fairlane.results.series import Series
from fairlane.studies import measures

pytestmark = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")
EXAMPLE = probes.ROOT / "docs" / "examples" / "impaired-links.toml"
BOUND = 4.5
"""Standard errors."""

FILE = """\
title = "one path"
bottleneck = "s1->s2"
duration_s = {duration}
window_from = 0.25
[topology]
kind = "dumbbell"
pairs = 1
bottleneck = {{ rate_bps = 10_000_000, delay_s = 0.01, queue_packets = 100{link} }}
access = {{ rate_bps = 100_000_000 }}
[[flows]]
name = "f"
kind = "{kind}"
{more}
"""


def run(folder: Path, path: Path) -> tuple[Series, dict[str, Any]]:
    """A run's records and its summary."""
    folder.mkdir(exist_ok=True)
    experiment = loader.load(path)
    outcome = virtual_fabric.run(experiment, virtual_fabric.Options(targets.compiler()), folder, Silent())
    recorded = series.load(folder, experiment, outcome.timing)
    return recorded, report.summary(experiment, metrics.compute(recorded), outcome, IN_VIRTUAL_TIME, "virtual", "embedded")


def of(tmp_path: Path, kind: str, link: str = "", more: str = "", duration: float = 20.0) -> tuple[Series, dict[str, Any]]:
    tmp_path.mkdir(exist_ok=True)
    path = tmp_path / "e.toml"
    path.write_text(FILE.format(kind=kind, link=f", {link}" if link else "", more=more, duration=duration))
    return run(tmp_path / "raw", path)


def counts(summary: dict[str, Any]) -> dict[str, dict[str, int]]:
    return {one["link"]: one for one in summary["impairments"]}


def near(found: float, packets: float, p: float) -> None:
    assert abs(found - packets * p) <= BOUND * sqrt(packets * p * (1 - p)), (found, packets, p)


def test_counts_have_the_rates_of_their_formulas(tmp_path: Path) -> None:
    """A packet of 500 bytes each millisecond."""
    link = "gemodel = { p = 0.01, r = 0.2 }, reorder = 0.05, reorder_delay_s = 0.0025, duplicate = 0.02, corrupt = 0.01"
    recorded, summary = of(tmp_path, "cbr", link, "packet_bytes = 500\nparameters = { rate_bps = 4_000_000.0 }", 60.0)
    found = counts(summary)
    assert found.keys() == {"s1->s2", "s2->s1"} and found["s2->s1"]["offered_packets"] == 0
    one = found["s1->s2"]
    sent = one["offered_packets"]
    assert sent == pytest.approx(45_000, abs=2)
    # The mean of the bad state, and the variance of a mean of two states with the correlation (1 - p - r)^k.
    mean, rho = 0.01 / 0.21, 0.79
    error = sqrt(sent * mean * (1 - mean) * (1 + rho) / (1 - rho))
    assert abs(one["lost_packets"] - sent * mean) <= BOUND * error
    arrived = sent - one["lost_packets"]
    near(one["duplicated_packets"], arrived, 0.02)
    near(one["corrupted_packets"], arrived, 0.01)
    # Held back 2.5 gaps, a packet is overtaken if one of the next two is neither lost nor held back: here nearly always.
    assert 0.97 * 0.05 * arrived - BOUND * sqrt(0.05 * arrived) <= one["reordered_packets"] <= 0.05 * arrived + BOUND * sqrt(0.05 * arrived)
    # Of 486 bytes without Ethernet's header 20 are IPv4's: the next switch drops these, the receiver the others.
    table = impairments.table(recorded)
    corrupted = table[table.link == "s1->s2"].corrupted_packets.sum()
    caught = summary["wrong_checksums"]
    assert caught.keys() == {"s1", "s2", "h1", "h2"} and caught["s1"] == caught["h1"] == 0
    assert caught["s2"] + caught["h2"] == pytest.approx(corrupted, abs=2)
    near(caught["s2"], corrupted, 20 / 500)
    # What the receiver misses: lost and corrupted packets.
    (flow,) = summary["flows"]
    assert flow["lost_packets"] == pytest.approx(one["lost_packets"] + one["corrupted_packets"], abs=15)


def test_what_is_counted_adds_up_in_the_table(tmp_path: Path) -> None:
    recorded, summary = run(tmp_path / "raw", EXAMPLE)
    table = impairments.table(recorded)
    start, end = summary["window_s"]
    within = table[(table.time_s > start) & (table.time_s <= end + 1e-9)].groupby("link").sum()
    for link, one in counts(summary).items():
        for name in impairments.COUNTS:
            assert within.loc[link, name] == pytest.approx(one[name], abs=1), (link, name)
    there, back = counts(summary)["s1->s2"], counts(summary)["s2->s1"]
    assert all(there[name] > 0 for name in impairments.COUNTS)
    assert back["lost_packets"] > 0 and not (back["reordered_packets"] or back["duplicated_packets"] or back["corrupted_packets"])
    assert all(flow["goodput_bps"] > 0.2e6 for flow in summary["flows"])
    assert sum(flow["goodput_bps"] for flow in summary["flows"]) > 5e6
    # There 20 + 2 x 2 ms, back 30 + 2 x 2 ms, and sending times.
    assert {round(trip["declared_s"], 3) for trip in summary["round_trips"]} == {0.059}


@pytest.mark.parametrize(
    "link",
    [
        "gemodel = { p = 0.001, r = 0.25 }",
        "reorder = 0.02, reorder_delay_s = 0.004",
        "duplicate = 0.05",
        "corrupt = 0.003",
        "loss = 0.0, back = { loss = 0.05, delay_s = 0.03 }",
    ],
    ids=["bursts", "reorder", "duplicate", "corrupt", "back"],
)
@pytest.mark.parametrize("kind", ["als", "tcp-sack", "tcp-cubic", "rap"])
def test_flows_survive(tmp_path: Path, kind: str, link: str) -> None:
    _, summary = of(tmp_path, kind, link)
    (flow,) = summary["flows"]
    least = 0.4e6 if kind == "rap" else 1.5e6
    assert flow["goodput_bps"] > least, (flow, summary["impairments"])


def test_copies_and_reordered_packets_are_no_losses_of_an_algorithm(tmp_path: Path) -> None:
    """A receiver counts sequence numbers, each once."""
    _, summary = of(tmp_path, "cbr", "reorder = 0.05, reorder_delay_s = 0.004, duplicate = 0.05", "parameters = { rate_bps = 4_000_000.0 }")
    (flow,) = summary["flows"]
    assert flow["lost_packets"] <= 4 and flow["goodput_bps"] == pytest.approx(4e6 * 960 / 1000, rel=0.01)


def test_each_direction_has_its_rate(tmp_path: Path) -> None:
    """Two flows of 20 Mb/s, one in each direction of a link with 10 and 2 Mb/s."""
    more = 'hosts = [["h1", "h2"]]\nparameters = { rate_bps = 20_000_000.0 }\n'
    more += '[[flows]]\nname = "b"\nkind = "cbr"\nhosts = [["h2", "h1"]]\nparameters = { rate_bps = 20_000_000.0 }\n'
    _, summary = of(tmp_path, "cbr", "back = { rate_bps = 2_000_000, queue_packets = 7 }", more)
    there, back = summary["flows"]
    assert there["goodput_bps"] == pytest.approx(10e6 * 960 / 1014, rel=0.01)
    assert back["goodput_bps"] == pytest.approx(2e6 * 960 / 1014, rel=0.01)
    assert back["fair_share_bps"] == pytest.approx(2e6, rel=0.01) and there["fair_share_bps"] == pytest.approx(10e6, rel=0.01)
    queues = {link["name"]: link["mean_queue_packets"] for link in summary["links"]}
    assert queues["s1->s2"] == pytest.approx(100, abs=1) and queues["s2->s1"] == pytest.approx(7, abs=0.5)


def test_the_model_begins_in_a_change(tmp_path: Path) -> None:
    change = '[[changes]]\nat_s = 10.0\nlink = "s1->s2"\ngemodel = { p = 0.05, r = 0.2 }\nduplicate = 0.1\ncorrupt = 0.1\n'
    recorded, summary = of(tmp_path, "cbr", more="parameters = { rate_bps = 4_000_000.0 }\n" + change)
    table = impairments.table(recorded)
    assert set(table.link) == {"s1->s2"}
    before, after = table[table.time_s <= 9.99], table[table.time_s > 10.1]
    assert before.lost_packets.sum() == before.duplicated_packets.sum() == before.corrupted_packets.sum() == 0
    packets = after.offered_packets.sum()
    assert after.lost_packets.sum() / packets == pytest.approx(0.2, rel=0.25)
    assert after.duplicated_packets.sum() / packets == pytest.approx(0.08, rel=0.25)
    assert sum(summary["wrong_checksums"].values()) == pytest.approx(after.corrupted_packets.sum(), abs=15)


def test_another_links_impairments_change_no_draws(tmp_path: Path) -> None:
    """What s1->s2 loses is the same whatever the way back does: a flow without feedback sends the same."""
    tables = []
    for back in ("loss = 0.0", "loss = 0.3, duplicate = 0.5, corrupt = 0.1"):
        parameters = "parameters = { rate_bps = 4_000_000.0 }"
        recorded, _ = of(tmp_path / str(len(tables)), "cbr", f"loss = 0.05, duplicate = 0.05, back = {{ {back} }}", parameters, 5.0)
        table = impairments.table(recorded)
        tables.append(table[table.link == "s1->s2"].reset_index(drop=True))
    pd.testing.assert_frame_equal(*tables)


@pytest.mark.parametrize(("kind", "payload"), [("als", 8972), ("tcp-cubic", 8948)])
def test_packets_of_9000_bytes(tmp_path: Path, kind: str, payload: int) -> None:
    recorded, summary = of(tmp_path, kind, more="packet_bytes = 9000")
    (flow,) = summary["flows"]
    assert flow["goodput_bps"] > (7e6 if kind == "als" else 9e6)
    window = recorded.experiment.window_s
    (record,) = recorded.flows
    each = record.goodput.over(*window) / (flow["sent_packets"] - flow["lost_packets"])
    assert each == pytest.approx(payload, rel=0.02)
    assert json.dumps(summary)


def test_a_studys_measures_have_the_counts(tmp_path: Path) -> None:
    recorded, summary = of(tmp_path, "rap", "duplicate = 0.05", duration=5.0)
    found = measures.measure(recorded, {"copies": "= bottleneck.duplicated_packets / bottleneck.offered_packets"}, {})
    one = counts(summary)["s1->s2"]
    assert found["copies"] == pytest.approx(one["duplicated_packets"] / one["offered_packets"], abs=0.002) and found["copies"] > 0.02

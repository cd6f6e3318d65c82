"""Figures of layered flows from hand-made records, whose values can be worked out by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from fairlane.experiments import loader
from fairlane.experiments.model import Experiment
from fairlane.fabrics.flows import Timing
from fairlane.results import layers, metrics, metrics_layers, plots_layers, series

TIMING = Timing(1000.0, 1200.0)
GROUPS = ["239.1.0.1", "239.1.0.2", "239.1.0.3"]
EXPERIMENT = """\
title = "layers"
bottleneck = "s1->s2"
duration_s = 200.0
[topology]
kind = "tree"
branches = [{ rate_bps = 1000000 }, { rate_bps = 2000000 }, { rate_bps = 3000000 }]
hosts_per_leaf = 2
access = { rate_bps = 10000000 }
[[flows]]
name = "als"
kind = "als-layered"
hosts = [["h1", "h2", "h4", "h6"]]
receiver_start_s = [100.0, 0.0, 0.0]
[[flows]]
name = "tcp"
kind = "tcp-reno"
count = 2
hosts = [["h1", "h3"], ["h1", "h5"]]
"""


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    (tmp_path / "layers.toml").write_text(EXPERIMENT)
    return loader.load(tmp_path / "layers.toml")


def lines(path: Path, records: list[dict]) -> None:
    path.write_text("".join(json.dumps({**r, "t": 1000.0 + r["t"]}) + "\n" for r in records))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Base at 170 kb/s, then from 101 s on at 90 and 70 each. h4 (2 Mb/s) has a second layer from 110 s on, h6 all three from 12 s on
    but for 10 s from 180 s on. TCP: 200 kb/s to h3, 400 to h5, of IPv4 datagrams. h2 receives 100 kb/s, h4 300, h6 no record."""
    folder = tmp_path / "raw"
    folder.mkdir()

    def adapt(t: float, low: float, high: float, rd_low: float, rd_high: float) -> dict:
        return {"kind": "als_layered.adapt", "t": t, "rate_bps": low, "r_max_bps": high, "rd_min_bps": rd_low, "rd_max_bps": rd_high}

    lines(
        folder / "als.sender.jsonl",
        [
            {"kind": "start", "t": 0.0, "headers_bytes": 40},
            adapt(5, 170e3, 260e3, 163_000.9, 225_000.9),
            adapt(101, 90e3, 230e3, 90e3, 225e3),
        ],
    )
    changes = [
        (0.1, "s3", 0, "join"),
        (0.1, "s4", 0, "join"),
        (12, "s4", 1, "join"),
        (12, "s4", 2, "join"),
        (100, "s2", 0, "join"),
        (110, "s3", 1, "join"),
        (180, "s4", 2, "leave"),
        (190, "s4", 2, "join"),
    ]
    (folder / "memberships.csv").write_text(
        "time_s,switch,port,group,event,host\n"
        + "".join(f"{1000 + t},{switch},2,{GROUPS[layer]},{event},\n" for t, switch, layer, event in changes)
    )
    # h2 hangs on port 2 of s2: port 1 leads to s1.
    lines(
        folder / "als.receiver-h2.jsonl",
        [
            {"kind": "start", "t": 99, "headers_bytes": 40},
            *(
                {"kind": "data", "t": float(t), "received_bytes": 12_500 * (t - 100), "received_packets": 0, "lost_packets": 0}
                for t in range(100, 201, 10)
            ),
        ],
    )
    lines(
        folder / "als.receiver-h4.jsonl",
        [
            {"kind": "start", "t": 0, "headers_bytes": 40},
            {"kind": "control", "t": 109, "rd_bps": 157_500, "u": 1, "layers_bps": [90_000, 67_500, 67_500]},
            *(
                {"kind": "data", "t": float(t), "received_bytes": 37_500 * t, "received_packets": 0, "lost_packets": 0}
                for t in range(0, 201, 10)
            ),
        ],
    )
    lines(
        folder / "als.receiver-h6.jsonl",
        [{"kind": "control", "t": 11, "rd_bps": 224_998, "u": 1}, {"kind": "control", "t": 189, "rd_bps": 224_999, "u": 1}],
    )
    for name, rate_bps in (("tcp-0", 200e3), ("tcp-1", 400e3)):
        # A payload of 948 bytes in each datagram of 1000.
        payload = rate_bps / 8 * 0.948
        lines(
            folder / f"{name}.receiver.jsonl",
            [{"kind": "data", "t": float(t), "seconds": 10.0, "received_payload_bytes": payload * t} for t in range(10, 201, 10)],
        )
        lines(
            folder / f"{name}.sender.jsonl",
            [
                {"kind": "sent", "t": float(t), "seconds": 10.0, "sent_bytes": rate_bps / 8 * t, "retransmits": 0}
                for t in range(10, 201, 10)
            ],
        )
    return folder


def values(folder: Path, experiment: Experiment) -> dict[str, float]:
    recorded = series.load(folder, experiment, TIMING)
    figures = metrics.compute(recorded)
    return {name: metric(recorded, figures) for name, metric in metrics_layers.CHECK_METRICS.items()}


def test_the_figures(folder: Path, experiment: Experiment) -> None:
    found = values(folder, experiment)
    # Before is 50 to 100 s, after is 150 to 200 s.
    assert found.pop("base_layer_before_kbps") == pytest.approx(170)
    assert found.pop("upper_layer_before_kbps") == pytest.approx(45)
    assert found.pop("base_layer_after_kbps") == pytest.approx(90)
    assert found.pop("upper_layer_after_kbps") == pytest.approx(70)
    counts = [[found.pop(f"layers_of_receiver_{n}_{when}") for when in ("before", "after")] for n in range(3)]
    assert counts == [[0, 1], [1, 2], [3, pytest.approx(3 - 10 / 50)]]
    # s1->s2: 100 to 200; s1->s3: 300 to 400. s1->s4 has no TCP.
    assert found.pop("lowest_als_tcp_ratio_after") == pytest.approx(100 / 200)
    assert found.pop("highest_als_tcp_ratio_after") == pytest.approx(300 / 400)
    assert found.pop("lowest_als_tcp_ratio_before") == 0
    assert found.pop("highest_als_tcp_ratio_before") == pytest.approx(0.75)
    # At 12 s R_d allowed the second layer, 163000 + 31000, but not the third, and at 190 s the third as well: 90000 + 2 x 67500 - 1.
    assert found.pop("probing_joins") == 2
    assert not found


def test_what_r_d_allows_is_judged_by_whole_bits(folder: Path, experiment: Experiment) -> None:
    (record,) = layers.load(folder, experiment, TIMING)
    assert [(t, h) for t, h, _ in metrics_layers.unallowed_joins(record)] == [(pytest.approx(12), "h6"), (pytest.approx(190), "h6")]
    path = folder / "als.receiver-h6.jsonl"
    path.write_text(path.read_text().replace("224998", "225000").replace("224999", "225000"))
    (record,) = layers.load(folder, experiment, TIMING)
    assert metrics_layers.unallowed_joins(record) == []
    # Before the first control packet nothing is allowed.
    path.write_text("")
    (record,) = layers.load(folder, experiment, TIMING)
    assert len(metrics_layers.unallowed_joins(record)) == 3


def test_without_records_nothing_is_measured(tmp_path: Path, experiment: Experiment) -> None:
    found = values(tmp_path, experiment)
    assert math.isnan(found["probing_joins"]) and math.isnan(found["lowest_als_tcp_ratio_after"])
    assert found["base_layer_after_kbps"] == 0


def test_a_plot_is_drawn_for_layered_flows_alone(folder: Path, experiment: Experiment, tmp_path: Path) -> None:
    recorded = series.load(folder, experiment, TIMING)
    drawn = plots_layers.draw(recorded, tmp_path, "a note")
    assert drawn == [tmp_path / "layers.png"] and drawn[0].stat().st_size > 10_000
    plain = series.Series(experiment, recorded.flows, recorded.links, recorded.fair_rates)
    assert plots_layers.draw(plain, tmp_path, "a note") == []

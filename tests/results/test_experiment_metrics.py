"""From raw records to figures, on hand-made records whose figures can be worked out by hand."""

from __future__ import annotations

import csv
import dataclasses
import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane import probes
from fairlane.experiments import loader
from fairlane.experiments.model import Experiment
from fairlane.fabrics import raw
from fairlane.fabrics.flows import Timing
from fairlane.fabrics.outcome import Outcome
from fairlane.live import finished
from fairlane.results import fidelity, metrics, report, result_folder, series
from fairlane.results.series import Steps
from fairlane.results.shares import ShareTable, max_min_shares

# The run begins at second 1000.4 of Unix time: observation intervals end 0.6 s, 1.6 s, ... later.
TIMING = Timing(1000.4, 1020.4)
EXPERIMENT = """\
title = "two flows"
bottleneck = "s1->s2"
duration_s = 20.0
paper = { reference = "ALS", section = "4", figure = "3" }
[topology]
kind = "dumbbell"
pairs = 2
bottleneck = { rate_bps = 1000000, queue_packets = 10, red = { minimum = 0.5, maximum = 0.95, max_p = 0.1, weight = 0.002 } }
access = { rate_bps = 10000000 }
[[flows]]
name = "tcp"
kind = "tcp-reno"
[[flows]]
name = "als"
kind = "als"
start_s = 4.0
"""
CHECKS = "".join(f'[[checks]]\nname = "{m}"\nmetric = "{m}"\nlow = 0.0\nhigh = 1.0\n' for m in loader.METRICS)


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    (tmp_path / "two.toml").write_text(EXPERIMENT + CHECKS)
    return loader.load(tmp_path / "two.toml")


def write_lines(path: Path, records: list[dict]) -> None:
    path.write_text("".join(json.dumps(r) + "\n" for r in records))


def write_csv(path: Path, rows: list[dict]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def switch_row(t: float, port: int, sent: float = 0, integral: float = 0, tail: int = 0) -> dict:
    return {
        "time_s": t,
        "unix_s": 1000.4 + t,
        "port": port,
        "tx_packets": 0,
        "tx_bytes": sent,
        "queue_packets": 0,
        "queue_integral_packet_s": integral,
        "queue_packets_mean": 0,
        "drop_ingress": 99,
        "drop_tail": tail,
    }


def controller_row(t: float, n: int, rate: int, port: int = 1, switch: str = "s1", early: int = 0) -> dict:
    return {
        "time_s": 1000.4 + t,
        "switch": switch,
        "port": port,
        "epoch": 1,
        "connections": n,
        "utilisation_ppm": 900000,
        "fair_rate_bps": rate,
        "transmitted_packets": 0,
        "transmitted_bytes": 0,
        "red_early_drops": early,
        "red_forced_drops": 0,
    }


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """TCP: 400 kb/s goodput throughout, one packet of 1000 bytes in 100 sent again. ALS from 4 s on: 100 packets/s of 1000
    bytes, 40 of them headers, 5 in 100 lost. Bottleneck: 100 kB/s, 4 packets waiting; 30 tail drops in the last half."""
    folder = tmp_path / "raw"
    folder.mkdir()
    rows = [switch_row(t, 1, 100_000 * t, 4 * t, 30 if t > 10 else 0) for t in range(22)]
    write_csv(folder / "s1.csv", rows + [switch_row(t, p) for t in range(22) for p in (2, 3)])
    write_csv(folder / "s2.csv", [switch_row(t, p) for t in range(22) for p in (1, 2, 3)])
    # Observation intervals end at 0.6, 1.6, ...; the values are in force 0.05 s later. ALS is counted from 5.65 s on.
    control = [controller_row(k + 0.65, 2 if k >= 5 else 1, 450_000 if k >= 5 else 900_000, early=k) for k in range(20)]
    write_csv(folder / "controller.csv", control)
    write_lines(
        folder / "tcp.receiver.jsonl",
        [{"kind": "data", "t": 1000.4 + t, "seconds": 1.0, "received_payload_bytes": 50_000 * t} for t in range(1, 21)],
    )
    write_lines(
        folder / "tcp.sender.jsonl",
        [{"kind": "sent", "t": 1000.4 + t, "seconds": 1.0, "sent_bytes": 99_000 * t, "retransmits": 1} for t in range(1, 21)],
    )
    write_lines(
        folder / "als.sender.jsonl",
        [{"kind": "sent", "t": 1000.4 + t, "rate_bps": 8e5, "sent_packets": 100 * (t - 4)} for t in range(4, 21)],
    )
    write_lines(
        folder / "als.receiver.jsonl",
        [
            {"kind": "start", "t": 1000.0, "headers_bytes": 40},
            *(
                {
                    "kind": "data",
                    "t": 1000.4 + t,
                    "received_packets": 95 * (t - 4),
                    "received_bytes": 95_000 * (t - 4),
                    "lost_packets": 5 * (t - 4),
                }
                for t in range(4, 21)
            ),
            # While R_f = 900 kb/s is in force until 5.65 s; one packet later claims more than 450 kb/s.
            *({"kind": "control", "t": 1000.4 + t, "rd_bps": rd} for t, rd in ((5.0, 900_000), (10.0, 450_000), (15.0, 450_001))),
        ],
    )
    return folder


def test_a_flow_none_of_whose_packets_arrive_any_more_has_lost_them(experiment: Experiment, records: Path) -> None:
    rows = [json.loads(line) for line in (records / "als.receiver.jsonl").read_text().splitlines()]
    at_8 = next(row for row in rows if row["kind"] == "data" and row["t"] == pytest.approx(1008.4))
    for row in rows:
        if row["kind"] == "data" and row["t"] > at_8["t"]:
            row.update({key: at_8[key] for key in ("received_packets", "received_bytes", "lost_packets")})
    write_lines(records / "als.receiver.jsonl", rows)
    als = metrics.compute(series.load(records, experiment, TIMING)).flows[1]
    assert (als.goodput_bps, als.sent_packets, als.lost_packets, als.loss_fraction) == (0, 1000, 1000, 1)
    # All are accounted for: 95 in 100 arrived by then, and no later one.
    lost = series.load(records, experiment, TIMING).flows[1].lost
    assert (lost.values[4], lost.values[-1]) == (5 * 4, 1600 - 95 * 4)


@pytest.mark.parametrize(("quiet_s", "lost"), [(1, 45), (3, 335)])
def test_packets_at_the_end_may_be_under_way(experiment: Experiment, records: Path, quiet_s: int, lost: int) -> None:
    """Where the receiver has heard nothing for less than two seconds."""
    rows = [json.loads(line) for line in (records / "als.receiver.jsonl").read_text().splitlines()]
    before = [row for row in rows if row["kind"] == "data"][-1 - quiet_s]
    for row in rows:
        if row["kind"] == "data" and row["t"] > before["t"]:
            row.update({key: before[key] for key in ("received_packets", "received_bytes", "lost_packets")})
    write_lines(records / "als.receiver.jsonl", rows)
    als = metrics.compute(series.load(records, experiment, TIMING)).flows[1]
    assert als.lost_packets == lost


def test_figures_of_hand_made_records(experiment: Experiment, records: Path) -> None:
    figures = metrics.compute(series.load(records, experiment, TIMING))
    tcp, als = figures.flows
    assert figures.window_s == (10.0, 20.0)
    assert tcp.goodput_bps == pytest.approx(400_000)
    assert (tcp.sent_packets, tcp.lost_packets, tcp.loss_fraction) == (1000, 10, 0.01)
    assert als.goodput_bps == pytest.approx(95 * 960 * 8)
    assert (als.sent_packets, als.lost_packets, als.loss_fraction) == (1000, 50, 0.05)
    assert tcp.fair_share_bps == als.fair_share_bps == pytest.approx(500_000)
    bottleneck = figures.links[0]
    assert (bottleneck.name, bottleneck.utilisation, bottleneck.mean_queue_packets) == ("s1->s2", pytest.approx(0.8), pytest.approx(4.0))
    assert bottleneck.drops == {"tail": 30, "red_early": 10}
    values = {c.check.name: c.value for c in figures.checks}
    assert values["als_mean_loss_fraction"] == pytest.approx(0.05)
    assert values["bottleneck_utilisation"] == pytest.approx(0.8)
    assert values["tcp_als_rate_ratio"] == pytest.approx(400_000 / 729_600)
    # Intervals that end at 1.6 to 19.6 s: ALS sends from 4.0 s on, so the one that ends at 4.6 should have said 2 as well.
    assert values["connections_exact_fraction"] == pytest.approx(18 / 19)
    assert values["fair_rate_delay_s"] == pytest.approx(1.65)
    assert values["desired_rate_within_fair_rate_fraction"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("rates_bps", "within_5", "within_10"),
    [
        # Shares are 500 kb/s on the link, so the sender's are 500 x 1000 / 1014. Averages are over 10 s, from 4, 5, ... 10 s on.
        (((4.0, 500_000), (14.0, 600_000)), math.inf, math.inf),  # right from 4 s to 6 s, 12% too much in the last 10 s
        (((4.0, 500_000), (14.0, 540_000)), 4.0, 4.0),  # 4.8% too much in the last 10 s
        (((4.0, 300_000), (10.0, 500_000)), 9.0, 8.0),  # from 8 s on 8% too little, from 9 s on 4%
    ],
)
def test_max_min_shares_are_reached_when_rates_stay_there(
    experiment: Experiment, records: Path, rates_bps: tuple, within_5: float, within_10: float
) -> None:
    recorded = series.load(records, experiment, TIMING)
    als = next(f for f in recorded.flows if f.flow.name == "als")
    als = dataclasses.replace(als, sending_rate=[(t, rate / 1.014) for t, rate in rates_bps])
    recorded = dataclasses.replace(recorded, flows=[f if f.flow.name != "als" else als for f in recorded.flows])
    values = {c.check.name: c.value for c in metrics.compute(recorded).checks}
    assert (values["max_min_reached_s"], values["max_min_reached_10_percent_s"]) == (within_5, within_10)


def test_queues_that_nobody_reported_are_unknown(experiment: Experiment, records: Path) -> None:
    """As BMv2 leaves them, of a program without the register that it reads."""
    rows = list(csv.DictReader((records / "s1.csv").open()))
    write_csv(records / "s1.csv", [{key: value for key, value in row.items() if not key.startswith("queue")} for row in rows])
    bottleneck = metrics.compute(series.load(records, experiment, TIMING)).links[0]
    assert bottleneck.utilisation == pytest.approx(0.8) and math.isnan(bottleneck.mean_queue_packets)
    assert finished.port_values({"rx_bytes": "1", "tx_bytes": "2"}, []) == pytest.approx((1, 2, math.nan), nan_ok=True)


def test_a_restarted_switch_goes_on_counting(experiment: Experiment, records: Path) -> None:
    for t, name in ((10, "s1.2.csv"), (15, "s1.10.csv")):
        write_csv(records / name, [switch_row(t + k, 1, 1000 * k) for k in range(5)])
    rows = (records / "s1.csv").read_text().splitlines()
    (records / "s1.csv").write_text("\n".join(rows[:11]) + "\n9.5,cut o")  # killed at 9 s
    frame = raw.switch_counters(records, "s1")
    sums = frame[frame["port"] == 1]["tx_bytes"].to_list()
    assert sums == sorted(sums) and sums[9:12] == [900_000, 900_000, 901_000] and sums[-1] == 908_000


def test_a_restarted_controllers_switch_goes_on_counting(tmp_path: Path) -> None:
    write_csv(tmp_path / "controller.csv", [controller_row(t, 1, 1, early=e) for t, e in enumerate((5, 9, 2, 4, 1))])
    assert raw.controller_records(tmp_path)["red_early_drops"].to_list() == [5, 9, 11, 13, 14]


def test_no_records_at_all_fail_every_check(experiment: Experiment, tmp_path: Path) -> None:
    figures = metrics.compute(series.load(tmp_path, experiment, TIMING))
    held = [c.check.name for c in figures.checks if c.holds]
    assert not held and not any(math.isfinite(c.value) for c in figures.checks)
    assert all(math.isnan(link.utilisation) and link.drops == {"tail": None} for link in figures.links)


def test_a_join_that_is_never_counted_takes_for_ever(experiment: Experiment, records: Path) -> None:
    write_csv(records / "controller.csv", [controller_row(k + 0.65, 1, 900_000) for k in range(20)])
    figures = metrics.compute(series.load(records, experiment, TIMING))
    check = next(c for c in figures.checks if c.check.metric == "fair_rate_delay_s")
    assert check.value == math.inf and not check.holds


def test_summary_has_the_documented_keys(experiment: Experiment, records: Path, tmp_path: Path) -> None:
    figures = metrics.compute(series.load(records, experiment, TIMING))
    summary = report.summary(experiment, figures, Outcome(TIMING), fidelity.IN_VIRTUAL_TIME, "mininet", "embedded")
    result_folder.write_json(tmp_path / "summary.json", summary)
    read = json.loads((tmp_path / "summary.json").read_text(), parse_constant=lambda c: pytest.fail(f"{c} is no JSON"))
    assert {"experiment", "fabric", "target", "seed", "duration_s", "window_s", "flows", "links", "checks"} <= set(read)
    assert set(read["flows"][0]) == {
        "name", "kind", "goodput_bps", "fair_share_bps", "sent_packets", "lost_packets", "loss_fraction", "completion_s", "slowdown",
    }  # fmt: skip
    assert set(read["links"][0]) == {"name", "rate_bps", "utilisation", "mean_queue_packets", "drops"}
    assert set(read["checks"][0]) == {"name", "value", "low", "high", "holds"}
    assert set(read["kinds"][0]) == {"kind", "flows", "mean_goodput_bps", "share", "mean_loss_fraction", "jain_index"}
    documented = (probes.ROOT / "docs" / "results.md").read_text()
    for key in [*read, *read["flows"][0], *read["kinds"][0], *read["links"][0], *read["checks"][0]]:
        assert f"`{key}`" in documented, key


def test_tables_add_up(experiment: Experiment, records: Path) -> None:
    recorded = series.load(records, experiment, TIMING)
    flows = series.flow_table(recorded, ShareTable(recorded))
    als = flows[flows["flow"] == "als"]
    assert als["sent_packets"].sum() == pytest.approx(1600) and als["time_s"].min() == 4.0
    assert flows[(flows["flow"] == "tcp") & (flows["time_s"] == 2.0)]["fair_share_bps"].item() == 1e6
    links = series.link_table(recorded)
    assert links[links["link"] == "s1->s2"]["queue_packets"].mean() == pytest.approx(4.0)


def test_growth_between_instants() -> None:
    steps = Steps.of([1.0, 3.0], [10.0, 30.0])
    assert (steps.over(0.0, 1.0), steps.over(1.0, 2.0), steps.over(2.0, 9.0)) == (10.0, 10.0, 10.0)
    assert math.isnan(Steps.of([], []).over(0.0, 1.0))


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)).filter(lambda p: p[0] != p[1]), min_size=1, max_size=9))
def test_max_min_shares_are_max_min(paths: list[tuple[int, int]]) -> None:
    """Each flow has a link on its path that is full, and on which no flow has more: the definition."""
    from fairlane.topologies import addressing, builders
    from fairlane.topologies.builders import LinkSpec

    topology = builders.chain(paths, 5, LinkSpec(1e6), LinkSpec(100e6))
    flows = [_always_on(f"f{i}", topology.hosts[i], topology.hosts[len(paths) + i]) for i in range(len(paths))]
    experiment = type("E", (), {"topology": topology, "seed": 1, "changes": ()})()
    shares = max_min_shares(series.Series(experiment, flows, {}, {}), 1.0)
    links: dict[tuple[str, int], dict[str, float]] = {}
    for f in flows:
        for port in addressing.path(topology, f.flow.sender, f.flow.receiver):
            links.setdefault((port.node, port.number), {})[f.flow.name] = shares[f.flow.name]
    rates = {(p.node, p.number): p.link.rate_bps for ps in topology.ports().values() for p in ps}
    for key, users in links.items():
        assert sum(users.values()) <= rates[key] * (1 + 1e-9)
    for f in flows:
        name = f.flow.name
        assert any(
            name in users and sum(users.values()) >= rates[key] * (1 - 1e-9) and shares[name] >= max(users.values()) * (1 - 1e-9)
            for key, users in links.items()
        )


def _always_on(name: str, sender: str, receiver: str) -> series.FlowRecord:
    from fairlane.experiments.kinds import TcpSettings
    from fairlane.experiments.model import Flow

    nothing = Steps.of([], [])
    return series.FlowRecord(Flow(name, "tcp-reno", sender, receiver, 0.0, TcpSettings()), nothing, nothing, nothing, [], [], (0.0, 10.0))


def test_the_max_min_table_of_the_als_paper() -> None:
    """[ALS table 1]: 250, 250, 500, 250, 250, 500, 750 kb/s."""
    from fairlane.topologies import builders
    from fairlane.topologies.builders import LinkSpec

    # C0 crosses all four links, C1 the first two, C2 the first, C3 the second, C4 the second and third, C5 the third, C6 the fourth.
    paths = [(1, 5), (1, 3), (1, 2), (2, 3), (2, 4), (3, 4), (4, 5)]
    topology = builders.chain(paths, 5, LinkSpec(1e6), LinkSpec(100e6))
    flows = [_always_on(f"C{i}", topology.hosts[i], topology.hosts[7 + i]) for i in range(7)]
    experiment = type("E", (), {"topology": topology, "seed": 1, "changes": ()})()
    shares = max_min_shares(series.Series(experiment, flows, {}, {}), 1.0)
    assert [round(shares[f"C{i}"] / 1e3) for i in range(7)] == [250, 250, 500, 250, 250, 500, 750]


def test_a_flow_with_several_receivers_is_one_connection_on_a_link_and_has_a_share_for_each() -> None:
    """[ALS sec 4.3], b/n: ten connections on links of 3, 2 and 1 Mb/s."""
    from fairlane.topologies import builders
    from fairlane.topologies.builders import LinkSpec

    topology = builders.tree([LinkSpec(3e6), LinkSpec(2e6), LinkSpec(1e6)], 10, LinkSpec(100e6))
    layered = [_always_on(f"l@{host}", "h1", host) for host in ("h2", "h12", "h22")]
    others = [_always_on(f"tcp-{i}", "h1", f"h{i}") for i in range(2, 32) if i not in (2, 12, 22)]
    experiment = type("E", (), {"topology": topology, "seed": 1, "changes": ()})()
    shares = max_min_shares(series.Series(experiment, layered + others, {}, {}), 1.0)
    assert [round(shares[f.flow.name] / 1e3) for f in layered] == [300, 200, 100]
    # Without the others the sender's link decides: one connection, not three.
    alone = max_min_shares(series.Series(experiment, layered, {}, {}), 1.0)
    assert [round(alone[f.flow.name] / 1e3) for f in layered] == [3000, 2000, 1000]

"""Suites: files, figures by hand on records made here, judging, and a case end to end."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from fairlane.ad_hoc import QUEUES
from fairlane.cli import app
from fairlane.errors import Refusal
from fairlane.experiments import loader
from fairlane.hosts import own_algorithms
from fairlane.hosts.algorithms import ALGORITHMS
from fairlane.inputs.located_toml import ConfigError
from fairlane.results.series import FlowRecord, LinkRecord, Series, Steps
from fairlane.suites import carry_out, cases, media

FILES = cases.files("rfc8867")


def case(number: str, kind: str = "nada") -> cases.Case:
    return cases.load(next(path for path in FILES if path.stem == number), kind)


# ---------------------------------------------------------------------------------------------------------------------- files


def test_every_case_is_there_and_says_what_it_leaves_out() -> None:
    assert [path.stem for path in FILES] == [f"5.{n}" for n in range(1, 9)]
    for path in FILES:
        found = cases.load(path, "nada")
        assert found.suite.case == path.stem and found.suite.cannot and found.suite.expect
        assert loader.load(path).duration_s == found.experiment.duration_s  # an experiment like any other


@pytest.mark.parametrize("kind", sorted(name for name, kind in ALGORITHMS.items() if not kind.layered))
def test_every_sender_of_ours_can_be_tested(kind: str) -> None:
    for path in FILES:
        flows = cases.load(path, kind).experiment.flows
        assert {f.kind for f in flows} <= {kind, "tcp-newreno"} and any(f.kind == kind for f in flows)
        assert all(f.settings.maximum_rate_bps == 1.5e6 for f in flows if f.kind == kind)


def test_capacities_and_times_are_those_of_the_rfcs_authors() -> None:
    """cisco/ns3-rmcat, rmcat-wired-test-suite.cc, with 10^6 for its 2^20."""
    rates = {n: case(n).experiment for n in ("5.1", "5.2", "5.3")}
    seen = {n: [(c.link, c.at_s, c.rate_bps) for c, _, _ in e.changes] for n, e in rates.items()}
    there, back = "s1->s2", "s2->s1"
    assert seen["5.1"] == [(there, 40, 2.5e6), (there, 60, 0.6e6), (there, 80, 1e6)]
    assert seen["5.2"] == [(there, 25, 2e6), (there, 50, 3.5e6), (there, 75, 1e6), (there, 100, 2e6)]
    assert seen["5.3"] == [(there, 20, 1e6), (back, 35, 0.8e6), (there, 40, 0.5e6), (there, 60, 2e6), (back, 70, 2e6)]
    starts = {n: [f.start_s for f in case(n).experiment.flows if f.kind == "nada"] for n in ("5.4", "5.5", "5.6", "5.8")}
    assert starts == {"5.4": [0, 20, 40], "5.5": [0, 10, 20, 30, 40], "5.6": [5], "5.8": [0, 0, 0, 60]}


def test_round_trips_of_5_5() -> None:
    topology = case("5.5").experiment.topology
    path = media.addressing.path
    delays = [sum(p.link.delay_s for p in path(topology, f.sender, f.receiver)) for f in case("5.5").experiment.flows]
    assert delays == pytest.approx([0.010, 0.025, 0.050, 0.100, 0.150])


def test_short_flows_of_5_7_end() -> None:
    sizes = {f.settings.file_bytes for f in case("5.7").experiment.flows if f.kind == "tcp-newreno"}
    assert len(sizes) == 10 and min(sizes) == 30_000 and max(sizes) == 50_000


@pytest.mark.parametrize(
    ("suite", "kind", "message"),
    [
        ("rfc8876", "nada", "unknown suite 'rfc8876'; did you mean 'rfc8867'?: there is rfc8867, rfc7928, l4s"),
        ("rfc8867", "nadda", "--algorithm nadda: no rate-adaptation algorithm of that name; did you mean 'nada'?"),
        ("rfc7928", "nada", "--algorithm nada: this suite tests queues with TCP"),
        ("rfc8867", "tcp-reno", "--algorithm tcp-reno: no rate-adaptation algorithm of that name"),
        ("rfc8867", "als-layered", "--algorithm als-layered: a layered flow goes to groups"),
    ],
)
def test_what_cannot_be_tested_is_refused(tmp_path: Path, suite: str, kind: str, message: str) -> None:
    done = CliRunner().invoke(app, ["suite", suite, "--algorithm", kind, "--out", str(tmp_path / "out")], catch_exceptions=True)
    assert done.exit_code != 0 and isinstance(done.exception, Refusal)
    assert str(done.exception).startswith(message) and not (tmp_path / "out").exists()


def test_an_expectation_of_no_figure_names_the_place(tmp_path: Path) -> None:
    for path in FILES[0].parent.glob("*.toml"):
        (tmp_path / path.name).write_text(path.read_text().replace('"least_use"', '"least_used"'))
    with pytest.raises(ConfigError, match=r"5\.1\.toml.*unknown figure 'least_used'; did you mean 'least_use'"):
        cases.load(tmp_path / "5.1.toml", "nada")


def test_every_queue_can_be_tested_with_every_tcp() -> None:
    for suite in ("rfc7928", "l4s"):
        for path in cases.files(suite):
            assert cases.load(path, "tcp-sack").suite.case.startswith(path.stem.lstrip("0").split("-")[0])
            for queue in QUEUES:
                found = cases.load(path, "tcp-cubic", queue).experiment
                links = [p.link for p in found.topology.ports()[found.bottleneck[0]] if p.number == found.bottleneck[1]]
                assert [link.queue for link in links] == [queue]
                assert {f.kind for f in found.flows if f.name.startswith("tested")} == {"tcp-cubic"}
    unresponsive = cases.load(cases.FOLDER / "rfc7928/5.3.toml", "tcp-sack").experiment
    assert [f.kind for f in unresponsive.flows] == ["tcp-sack", "cbr"]


# -------------------------------------------------------------------------------------------------------------------- figures


def test_fair_shares() -> None:
    """3.5 Mb/s for 1.5, 0.5 and without limit: 0.5, then 3 for two: 1.5 each."""
    assert media.fair_shares(3.5e6, [1.5e6, 0.5e6, math.inf]) == [1.5e6, 0.5e6, 1.5e6]
    assert media.fair_shares(3e6, [1.5e6] * 5) == [0.6e6] * 5


@given(st.floats(1e5, 1e8), st.lists(st.floats(1e5, 1e8), min_size=1, max_size=8))
def test_fair_shares_fill_the_link_and_favour_nobody(capacity: float, limits: list[float]) -> None:
    shares = media.fair_shares(capacity, limits)
    assert sum(shares) == pytest.approx(min(capacity, sum(limits)))
    assert all(share <= limit for share, limit in zip(shares, limits))
    short = [share for share, limit in zip(shares, limits) if share < limit * (1 - 1e-9)]
    assert not short or min(short) == pytest.approx(max(shares))


def steps(rate: float, start_s: float = 0.0, end_s: float = 100.0) -> Steps:
    times = np.arange(start_s, end_s + 0.05, 0.1)
    return Steps(times, rate * (times - start_s))


def records(bps: list[float], delay_s: float, lost_per_s: float = 0.0) -> Series:
    """Case 5.2 for 100 s at 2 Mb/s, flows of constant rates: what its phases came to is known."""
    chosen = case("5.2").experiment
    flows = []
    for flow, rate in zip(chosen.flows, bps):
        per_s = rate / 8000
        flows.append(
            FlowRecord(
                flow,
                goodput=steps(0.96 * rate / 8),
                sent=steps(per_s + lost_per_s),
                lost=steps(lost_per_s),
                sending_rate=[(0.0, rate)],
                controls=[],
                active=(0.0, 100.0),
                received=steps(rate / 8),
                packets=steps(per_s),
                delay=steps(per_s * delay_s),
            )
        )
    links = {}
    for node, name in (("s1", "s1->s2"), ("s2", "s2->s1")):
        port = next(p for p in chosen.topology.ports()[node] if p.peer in chosen.topology.switches)
        links[node, port.number] = LinkRecord(name, port, Steps.of([], []), None, {}, [(0.0, 2e6)])
    return Series(dataclasses.replace(chosen, duration_s=100.0, changes=()), flows, links, {})


def test_figures_of_constant_flows() -> None:
    """1.2 and 0.6 Mb/s of 2 Mb/s: use 0.9, shares 1.2 and 0.6. A delay of 90 ms less 50 ms, less 8000 bits at 2 Mb/s and twice at
    100 Mb/s = 4.16 ms: 35.84 ms of queue. 1.5 lost of 151.5 and 76.5 sent a second. Jain: 1.8^2 / (2 (1.44 + 0.36))."""
    (phase,) = media.phases(records([1.2e6, 0.6e6], 0.090, 1.5))
    assert (phase.start_s, phase.end_s, phase.capacity_bps) == (0.0, 100.0, pytest.approx(2e6))
    assert (phase.use, phase.total_use) == (pytest.approx(0.9), pytest.approx(0.9))
    assert sorted(phase.shares.values()) == pytest.approx([0.6, 1.2])
    assert phase.queueing_s == pytest.approx(0.03584, abs=1e-6)
    assert phase.loss == pytest.approx(3 / 228)
    assert phase.jain == pytest.approx(3.24 / 3.6)
    assert phase.convergence_s == 0.0
    totals = media.totals([phase])
    assert (totals["lowest_share"], totals["highest_share"]) == (pytest.approx(0.6), pytest.approx(1.2))
    assert math.isnan(totals["lowest_tcp_share"])


def test_the_wait_of_tcp_is_that_of_the_queue() -> None:
    """On average 2 datagrams of 1000 bytes wait for a link of 2 Mb/s: 8 ms."""
    given = records([1e6, 1e6], 0.0)
    flows = cases.load(cases.FOLDER / "rfc7928/5.1.1.toml", "tcp-sack").experiment.flows
    sized = [dataclasses.replace(flow, settings=dataclasses.replace(flow.settings, packet_bytes=1000)) for flow in flows]
    links = {key: dataclasses.replace(link, queue=steps(2.0)) for key, link in given.links.items()}
    tcp = [dataclasses.replace(record, flow=flow) for record, flow in zip(given.flows, sized)]
    (phase,) = media.phases(dataclasses.replace(given, flows=tcp, links=links))
    assert phase.queueing_s == pytest.approx(0.008)


def test_metrics_of_a_flow() -> None:
    made = records([1.2e6, 0.6e6], 0.090)
    figures = media.flow_figures(made, made.flows[0])
    assert (figures["sending_bps"], figures["receiving_bps"]) == (pytest.approx(1.2e6), pytest.approx(1.2e6))
    assert figures["goodput_bps"] == pytest.approx(0.96 * 1.2e6)
    assert (figures["sent_packets"], figures["loss"], figures["variation"]) == (15_000, 0.0, pytest.approx(0.0, abs=1e-9))
    assert [figures[name] for name in ("delay_mean_s", "delay_95_s", "delay_max_s")] == pytest.approx([0.09] * 3)


def test_a_rate_converges_when_it_stays_near_its_end() -> None:
    made = records([1.0e6, 0.5e6], 0.06)
    flow = made.flows[0]
    times = np.arange(0.0, 100.05, 0.1)
    received = np.where(times < 30, 0.2e6 / 8 * times, 0.2e6 / 8 * 30 + 1e6 / 8 * (times - 30))
    slow = dataclasses.replace(flow, received=Steps(times, received))
    assert media._converged_s([slow], 0.0, 100.0) == 30.0


def test_what_could_not_be_measured_does_not_hold() -> None:
    made = records([1.2e6, 0.6e6], 0.090)
    judged = cases.Judged(case("5.2"), made, [], media.totals([]))
    assert not judged.passes and all(check["value"] is None for check in judged.to_json()["checks"])


def test_judging() -> None:
    """Queueing of 36 ms and shares of 0.6 and 1.2 pass; 250 ms, or a share of 0.2, do not."""

    def failing(bps: list[float], delay_s: float) -> list[str]:
        made = records(bps, delay_s)
        phases = media.phases(made)
        return [c["figure"] for c in cases.Judged(case("5.2"), made, phases, media.totals(phases)).checks if not c["holds"]]

    assert failing([1.2e6, 0.6e6], 0.090) == []
    assert failing([1.2e6, 0.6e6], 0.304) == ["most_queueing_s"]
    assert failing([1.5e6, 0.2e6], 0.090) == ["lowest_share"]
    assert failing([0.6e6, 0.6e6], 0.090) == ["least_use"]


# ------------------------------------------------------------------------------------------------------------------ end to end


def test_a_suite_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cases with NADA: both pass, and the page shows both; a sender that does not adapt fails them."""
    pytest.importorskip("fairlane.native", reason="the module fairlane.native is not built: make build")
    monkeypatch.setattr(cases, "files", lambda suite: FILES[:1] + FILES[3:4])
    done = CliRunner().invoke(app, ["suite", "rfc8867", "--algorithm", "nada", "--out", str(tmp_path / "nada"), "--strict"])
    assert done.exit_code == 0, done.output
    data = json.loads((tmp_path / "nada/suite.json").read_text())
    assert (data["suite"], data["algorithm"]) == ("rfc8867", "nada")
    assert [(c["case"], c["passes"]) for c in data["cases"]] == [("5.1", True), ("5.4", True)]
    first = data["cases"][0]["figures"]
    assert [p["capacity_bps"] for p in first["phases"]] == [1e6, 2.5e6, 0.6e6, 1e6]
    assert first["phases"][2]["media_bps"] == pytest.approx(0.6e6, rel=0.2)
    page = (tmp_path / "nada/index.html").read_text()
    assert page.count("<svg") == 4 and "5.4: media flows of one algorithm" in page
    assert "src=" not in page and "<link" not in page
    again = CliRunner().invoke(app, ["suite", "rfc8867", "--algorithm", "nada", "--out", str(tmp_path / "nada")])
    assert isinstance(again.exception, Refusal)
    done = CliRunner().invoke(app, ["suite", "rfc8867", "--algorithm", "cbr", "--out", str(tmp_path / "cbr"), "--strict"])
    assert done.exit_code == 1
    assert not json.loads((tmp_path / "cbr/suite.json").read_text())["cases"][0]["passes"]


def test_an_algorithm_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(own_algorithms.FILES_VARIABLE, "")
    file = tmp_path / "mine.py"
    names = ("mine-of-suites", "other-of-suites")

    def write(*kinds: str) -> None:
        made = "".join(f'Kind("{kind}", "x", CBR[0].parameters, CBR[0].sender, CBR[0].receiver), ' for kind in kinds)
        imports = "from fairlane.hosts.algorithms.base import Kind\nfrom fairlane.hosts.algorithms.cbr import KINDS as CBR\n"
        file.write_text(f"{imports}KINDS = ({made})\n")

    try:
        write(*names[:1])
        assert carry_out.kind_of(str(file)) == "mine-of-suites"
        write(*names)
        with pytest.raises(Refusal, match="lists mine-of-suites, other-of-suites: a suite takes a file with one kind"):
            carry_out.kind_of(str(file))
    finally:
        for name in names:
            ALGORITHMS.pop(name, None)

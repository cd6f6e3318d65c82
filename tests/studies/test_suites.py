"""Suites: files, figures by hand on records made here, judging, and a case end to end."""

from __future__ import annotations

import csv
import dataclasses
import itertools
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from fairlane.cli import app
from fairlane.errors import Refusal
from fairlane.experiments import loader
from fairlane.experiments.model import Experiment
from fairlane.hosts import own_algorithms
from fairlane.hosts.algorithms import ALGORITHMS
from fairlane.hosts.records import headers_bytes
from fairlane.inputs.located_toml import ConfigError
from fairlane.results.series import FlowRecord, LinkRecord, Series, Steps
from fairlane.suites import carry_out, cases, distributions, media
from fairlane.topologies import addressing
from fairlane.topologies.model import Link, queues

FILES = cases.files("rfc8867")


def case(number: str, kind: str = "nada") -> cases.Case:
    return cases.load(next(path for path in FILES if path.stem == number), kind)


# ---------------------------------------------------------------------------------------------------------------------- files


def test_every_case_is_there_and_says_what_it_leaves_out() -> None:
    basic = ["5.1", "5.1-100", "5.1-jitter", "5.1-loss", "5.1-udp", "5.2", "5.3", "5.4", "5.5", "5.6", "5.6-1000", "5.7", "5.8"]
    assert [path.stem for path in FILES] == [*basic, "6.1", "6.2", "6.3"]
    for path in FILES:
        found = cases.load(path, "nada")
        assert found.suite.case == path.stem and found.suite.cannot_in_any and found.suite.expect
        assert loader.load(path).duration_s == found.experiment.duration_s  # an experiment like any other


@pytest.mark.parametrize("kind", sorted(name for name, kind in ALGORITHMS.items() if not kind.layered))
def test_every_sender_of_ours_can_be_tested(kind: str) -> None:
    for path in FILES:
        flows = cases.load(path, kind).experiment.flows
        media_flows = [f for f in flows if f.name.startswith("media")]
        assert media_flows and {f.kind for f in media_flows} == {kind}
        assert {f.kind for f in flows if f not in media_flows} <= {"cbr", "tcp-newreno"}
        assert all(f.settings.maximum_rate_bps == 1.5e6 for f in media_flows)


def test_capacities_and_times_are_the_rfcs() -> None:
    """Tables 1 to 6, and the timelines of 5.6 to 5.8; a starting time for each media flow."""
    rates = {n: case(n).experiment for n in ("5.1", "5.2", "5.3")}
    seen = {n: [(c.link, c.at_s, c.rate_bps) for c, _, _ in e.changes] for n, e in rates.items()}
    there, back = "s1->s2", "s2->s1"
    assert seen["5.1"] == [(there, 40, 2.5e6), (there, 60, 0.6e6), (there, 80, 1e6)]
    assert seen["5.2"] == [(there, 25, 2e6), (there, 50, 3.5e6), (there, 75, 1e6), (there, 100, 2e6)]
    assert seen["5.3"] == [(there, 20, 1e6), (back, 35, 0.8e6), (there, 40, 0.5e6), (there, 60, 2e6), (back, 70, 2e6)]
    starts = {n: [f.start_s for f in case(n).experiment.flows if f.kind == "nada"] for n in ("5.4", "5.5", "5.6", "5.7", "5.8")}
    assert starts == {"5.4": [0, 20, 40], "5.5": [0, 10, 20, 30, 40], "5.6": [5], "5.7": [5, 5], "5.8": [0, 0, 0, 60]}
    ends = {path.stem: {f.stop_s for f in cases.load(path, "nada").experiment.flows if f.kind == "nada"} for path in FILES}
    said = {
        "5.1": {99},
        "5.1-100": {99},
        "5.1-jitter": {99},
        "5.1-loss": {99},
        "5.1-udp": {99},
        "5.3": {99},
        "5.4": {119},
        "5.5": {299},
        "5.6": {119},
        "5.6-1000": {119},
        "5.7": {299},
        "5.8": {40, 119},
        "6.1": {119},
        "6.2": {99},
        "6.3": {299},
    }
    assert ends == {**said, "5.2": {124}}  # 5.2 has no end of its media


REFERENCE_BPS = {
    "5.1": 1e6,
    "5.1-100": 1e6,
    "5.1-jitter": 1e6,
    "5.1-loss": 1e6,
    "5.1-udp": 4e6,
    "6.1": 3.5e6,
    "6.2": 1e6,
    "6.3": 1.5e6,
    "5.2": 2e6,
    "5.3": 1e6,
    "5.4": 3.5e6,
    "5.5": 4e6,
    "5.6": 2e6,
    "5.6-1000": 2e6,
    "5.7": 2e6,
    "5.8": 3.5e6,
}


def bottleneck(experiment: Experiment) -> Link:
    node, number = experiment.bottleneck
    return next(p.link for p in experiment.topology.ports()[node] if p.number == number)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_buffer_is_300_ms_of_the_reference_capacity(path: Path) -> None:
    """[RFC 8867 sec 4.2], with packets of 1000 bytes; 5.6 has a second size."""
    # Of 5.1-udp three packets of four have 1500 bytes.
    packet_bits = 11_000 if path.stem == "5.1-udp" else 8000
    queue_s = bottleneck(cases.load(path, "nada").experiment).queue_packets * packet_bits / REFERENCE_BPS[path.stem]
    assert queue_s == pytest.approx(1.0 if path.stem == "5.6-1000" else 0.3, rel=0.015)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_media_are_a_video_and_an_audio(path: Path) -> None:
    """[RFC 8867 sec 4.3]: video of 150 kb/s to 1.5 Mb/s and at most 30 frames a second, audio of 20 kb/s with the same ends in time."""
    flows = cases.load(path, "nada").experiment.flows
    videos, audios = ([f for f in flows if f.name.startswith(name)] for name in ("media", "audio"))
    assert [(v.start_s, v.stop_s) for v in videos] == [(a.start_s, a.stop_s) for a in audios]
    for video in videos:
        source = video.settings.source
        assert (source.kind, source.min_rate_bps, source.max_rate_bps, source.frames_per_second) == ("film", 150e3, 1.5e6, 30)
    for audio in audios:
        payload = audio.settings.packet_bytes - headers_bytes(4)
        assert audio.settings.parameters.rate_bps * payload / audio.settings.packet_bytes == pytest.approx(20e3)


def test_background_udp_leaves_what_table_1_says() -> None:
    """4 - Y r Mb/s of UDP, r = 1 [RFC 8867 sec 5.1]; what media can use is the rest, whatever the UDP's fair share would be."""
    experiment = case("5.1-udp").experiment
    udp = [(f.start_s, f.settings.parameters.rate_bps) for f in experiment.flows if f.name.startswith("background")]
    assert bottleneck(experiment).rate_bps == 4e6 and not experiment.changes
    assert [(at, round(4e6 - rate)) for at, rate in udp] == [(0, 1e6), (40, 2.5e6), (60, 0.6e6), (80, 1e6)]
    made = records([1.0e6, 0.5e6], 0.06)
    beside = next(f for f in experiment.flows if f.name == "background-2")
    ends = {"sender": made.flows[0].flow.sender, "receiver": made.flows[0].flow.receiver, "start_s": 0.0, "stop_s": None}
    flows = [*made.flows, dataclasses.replace(made.flows[0], flow=dataclasses.replace(beside, **ends))]
    links = {key: dataclasses.replace(link, rates_bps=[(0.0, 4e6)]) for key, link in made.links.items()}
    (phase,) = media.phases(dataclasses.replace(made, flows=flows, links=links))
    assert phase.available_bps == pytest.approx(0.6e6) and phase.use == pytest.approx(2.5)


def test_what_the_rfc_expects_beside_tcp_is_the_lowest_media_rate() -> None:
    """[RFC 8867 sec 5.6, 5.7] have no share; [RFC 8868 sec 3] bounds the ratio of media flows alone."""
    for name in ("5.6", "5.6-1000", "5.7"):
        expected = {e.figure: e.low for e in case(name).suite.expect}
        assert expected["lowest_media_bps"] == 0.95 * 150e3 and not {"lowest_share", "lowest_tcp_share", "least_total_use"} & set(expected)
    assert "use_after_cross" in {e.figure for e in case("5.7").suite.expect}


def test_5_3_is_compared_with_a_way_back_without_impairment() -> None:
    found = case("5.3")
    assert found.reference is not None
    assert {c.link for c, *_ in found.reference.changes} == {"s1->s2"} and {c.link for c, *_ in found.experiment.changes} == {
        "s1->s2",
        "s2->s1",
    }
    assert [(f.name, f.start_s) for f in found.reference.flows] == [(f.name, f.start_s) for f in found.experiment.flows]


def test_the_way_there_of_5_1_100_has_100_ms() -> None:
    experiment = case("5.1-100").experiment
    assert [(c.link, c.at_s, c.delay_s) for c, *_ in experiment.changes if c.delay_s] == [("s1->s2", 0.0, 0.1)]
    assert bottleneck(experiment).delay_s == 0.05


def test_round_trips_of_5_5() -> None:
    topology = case("5.5").experiment.topology
    path = addressing.path
    delays = [sum(p.link.delay_s for p in path(topology, f.sender, f.receiver)) for f in case("5.5").experiment.flows]
    assert delays == pytest.approx([0.010, 0.025, 0.050, 0.100, 0.150] * 2)  # video, and audio


def test_priorities_of_6_1() -> None:
    """2 to 1 to 1, in the network and at the times of 5.4 [RFC 8867 sec 6.1]; a sender without priority goes without it, and says so."""
    found, plain = case("6.1"), case("5.4").experiment
    assert sorted(found.priorities.values()) == [1, 1, 2]
    media_flows = [f for f in found.experiment.flows if f.kind == "nada"]
    assert [f.settings.parameters.priority for f in media_flows] == [2, 1, 1]
    assert [(f.start_s, f.stop_s) for f in media_flows] == [(f.start_s, f.stop_s) for f in plain.flows if f.kind == "nada"]
    assert bottleneck(found.experiment) == bottleneck(plain)
    without = case("6.1", "gcc")
    assert without.priorities == found.priorities and any("gcc has no such parameter" in text for text in without.suite.cannot)


def test_6_2_marks_and_its_reference_does_not() -> None:
    found = case("6.2")
    assert found.reference is not None and not bottleneck(found.reference).marks and bottleneck(found.experiment).marks
    assert bottleneck(found.reference).queue == bottleneck(found.experiment).queue
    ecn = [[f.settings.parameters.ecn for f in e.flows if f.kind == "nada"] for e in (found.experiment, found.reference)]
    assert ecn == [[True], [False]]
    assert found.experiment.changes == found.reference.changes == case("5.1").experiment.changes


def test_bottlenecks_of_6_3() -> None:
    """2, 8 and 1.5 Mb/s; 100, 40 and 40 ms one way [RFC 8867 sec 6.3], figure 7: the second flow on the first bottleneck, the third on the last."""
    experiment = case("6.3").experiment
    path = addressing.path
    ways = {f.name: path(experiment.topology, f.sender, f.receiver) for f in experiment.flows}
    assert [sum(p.link.delay_s for p in ways[f"media-{n}"]) for n in (1, 2, 3)] == pytest.approx([0.1, 0.04, 0.04])
    trunks = {name: [f"{p.node}->{p.peer}" for p in way if {p.node, p.peer} <= {"s1", "s2", "s3", "s4"}] for name, way in ways.items()}
    assert trunks["media-1"] == ["s1->s2", "s2->s3", "s3->s4"] and (trunks["media-2"], trunks["media-3"]) == (["s1->s2"], ["s3->s4"])
    assert all(trunks[f"audio-{n}"] == trunks[f"media-{n}"] for n in (1, 2, 3))
    assert [p.link.rate_bps for p in ways["media-1"] if p.node != p.peer and p.link.rate_bps < 1e8] == [2e6, 8e6, 1.5e6]


def test_jitter_and_loss_of_the_bottleneck() -> None:
    """5 ms and three deviations [RFC 8868 sec 4.5.3]; 1 % [RFC 8868 sec 4.2]; and the same by option, whose losses the bound allows."""
    assert (bottleneck(case("5.1-jitter").experiment).jitter_std_s, bottleneck(case("5.1-loss").experiment).loss) == (0.005, 0.01)
    path = next(path for path in FILES if path.stem == "5.4")
    given = cases.load(path, "nada", cases.Options(loss=0.05, jitter_std_s=0.005))
    link = bottleneck(given.experiment)
    assert (link.loss, link.jitter_std_s) == (0.05, 0.005)
    bounds = [{e.figure: e.high for e in c.suite.expect}["most_loss"] for c in (case("5.4"), given)]
    assert bounds == pytest.approx([0.02, 0.07])


@pytest.mark.parametrize(("queue", "marking"), [(None, "codel"), ("pie", "pie"), ("dualpi2", "dualpi2"), ("step", "step")])
def test_ecn_of_a_whole_suite(queue: str | None, marking: str) -> None:
    """All basic cases with ECN [RFC 8867 sec 6.2]; TCP with it [RFC 7928 sec 4.5]."""
    for path in [*FILES, *cases.files("rfc7928")]:
        tcp = path.parent.name == "rfc7928"
        found = cases.load(path, "tcp-sack" if tcp else "scream", cases.Options(queue, ecn=True)).experiment
        assert bottleneck(found).queue == marking and bottleneck(found).marks
        tested = [f.settings for f in found.flows if f.kind == "scream" or (f.name.startswith("tested") and f.kind == "tcp-sack")]
        assert all((s if tcp else s.parameters).ecn for s in tested)


@pytest.mark.parametrize(
    ("kind", "queue", "message"),
    [("gcc", None, "--ecn: gcc has no parameter ecn: leave the option out"), ("nada", "droptail", "--ecn: droptail marks no packets")],
)
def test_ecn_that_cannot_be_is_refused(kind: str, queue: str | None, message: str) -> None:
    with pytest.raises(Refusal, match=message):
        cases.load(FILES[0], kind, cases.Options(queue, ecn=True))


def test_short_flows_of_5_7() -> None:
    """Ten sources, two of them ON at first [RFC 8867 sec 5.7]; all end before the media, so that recovery can be seen."""
    short = [f for f in case("5.7").experiment.flows if f.kind == "tcp-newreno"]
    sizes = {f.settings.file_bytes for f in short}
    assert len(sizes) == 10 and min(sizes) == 30_000 and max(sizes) == 50_000
    assert len({f.sender for f in short if f.start_s == 0.0}) == 2 and len({f.sender for f in short}) == 10
    assert max(f.start_s for f in short) < 240
    off = [b - a - 1 for n in range(3, 13) for a, b in itertools.pairwise(f.start_s for f in short if f.sender == f"h{n}")]
    assert min(off) >= 0 and np.mean(off) == pytest.approx(10, rel=0.2) and np.std(off) == pytest.approx(10, rel=0.25)  # [RFC 8868 sec 5.1]


@pytest.mark.parametrize(
    ("suite", "kind", "message"),
    [
        ("rfc8876", "nada", "unknown suite 'rfc8876'; did you mean 'rfc8869'?: there is rfc8867, rfc8869, rfc7928, l4s"),
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


def test_a_case_that_is_none_is_refused() -> None:
    with pytest.raises(Refusal, match=r"--case 5\.9: rfc8867 has no such case.*: there is 5\.1, 5\.1-100"):
        cases.files("rfc8867", ["5.1", "5.9"])


def test_an_expectation_of_no_figure_names_the_place(tmp_path: Path) -> None:
    for path in FILES[0].parent.glob("*.toml"):
        (tmp_path / path.name).write_text(path.read_text().replace('"least_use"', '"least_used"'))
    with pytest.raises(ConfigError, match=r"5\.1\.toml.*unknown figure 'least_used'; did you mean 'least_use'"):
        cases.load(tmp_path / "5.1.toml", "nada")


def test_every_queue_can_be_tested_with_every_tcp() -> None:
    for suite in ("rfc7928", "l4s"):
        for path in cases.files(suite):
            loaded = cases.load(path, "tcp-sack").suite
            assert loaded.case.startswith(path.stem.lstrip("0").split("-")[0])
            assert all("[RFC 7928 sec 4.2]" not in e.source and "RFC 7928 section" not in e.source for e in loaded.expect)
            for queue in queues():
                found = cases.load(path, "tcp-cubic", cases.Options(queue)).experiment
                links = [p.link for p in found.topology.ports()[found.bottleneck[0]] if p.number == found.bottleneck[1]]
                assert [link.queue for link in links] == [queue]
                chosen = suite == "rfc7928" and path.stem in ("5.2", "5.3-1")  # by the RFC
                assert {f.kind for f in found.flows if f.name.startswith("tested")} == (set() if chosen else {"tcp-cubic"})
    unresponsive = cases.load(cases.FOLDER / "rfc7928/5.3-2.toml", "tcp-sack").experiment
    assert [f.kind for f in unresponsive.flows] == ["tcp-sack", "cbr"]


def aqm(number: str, kind: str = "tcp-sack") -> Experiment:
    return cases.load(cases.FOLDER / f"rfc7928/{number}.toml", kind).experiment


@pytest.mark.parametrize(("number", "factor"), [("8.2.2", 0.036), ("8.2.3", 0.081), ("8.2.4", 0.114)])
def test_numbers_of_flows_are_those_of_the_congestion_levels(number: str, factor: float) -> None:
    """N = ROUND(factor S), S the bandwidth-delay product and the buffer, in packets [RFC 7928 sec 8.2.1 to 8.2.4]."""
    experiment = aqm(number)
    link, flow = bottleneck(experiment), experiment.flows[0]
    rtt_s = 2 * sum(p.link.delay_s for p in addressing.path(experiment.topology, flow.sender, flow.receiver))
    size = link.rate_bps * rtt_s / 8 / flow.settings.packet_bytes + link.queue_packets
    assert len(experiment.flows) == round(factor * size)


def test_congestion_varies_as_in_8_2_5() -> None:
    flows = aqm("8.2.5").flows
    assert [sum(f.start_s <= t and (f.stop_s is None or f.stop_s > t) for f in flows) for t in (10, 30, 50, 70, 90, 110)] == [
        8,
        18,
        25,
        8,
        18,
        25,
    ]


def test_capacity_of_8_2_6_changes_each_20_s_and_each_100_ms() -> None:
    assert [(c.at_s, c.rate_bps) for c, *_ in aqm("8.2.6").changes] == [(20, 1e7), (40, 1e8), (60, 1e7)]
    node, number = aqm("8.2.6-2").bottleneck
    trace = next(p.trace for p in aqm("8.2.6-2").topology.ports()[node] if p.number == number)
    assert trace is not None and {round(rate) for _, rate in trace.means_bps(0.1, 80.0)} == {10_000_000, 100_000_000}
    assert {round(rate) for _, rate in trace.means_bps(1.0, 80.0)} == {55_000_000}


def test_scenarios_of_rfc7928_section_5() -> None:
    """5.1.1: one flow, initial window of 3. 5.1.2: a long flow, then a file of 10 to 100 packets. 5.2: CUBIC alone. 5.3: UDP above capacity, alone; UDP of
    half to all of it beside one TCP."""
    (alone,) = aqm("5.1.1").flows
    assert (alone.kind, alone.settings.initial_window_packets, alone.settings.file_bytes) == ("tcp-sack", 3, None)
    for number, window in (("5.1.2", 3), ("5.1.2-10", 10)):
        long, file = aqm(number).flows
        payload = file.settings.packet_bytes - 52
        assert long.settings.file_bytes is None and long.start_s < file.start_s
        assert file.settings.initial_window_packets == window and 10 < file.settings.file_bytes / payload <= 50
    for kind in ("tcp-sack", "tcp-dctcp"):
        assert [f.kind for f in aqm("5.2", kind).flows] == ["tcp-cubic"]
    (udp,) = aqm("5.3-1").flows
    assert udp.kind == "cbr" and udp.settings.parameters.rate_bps > bottleneck(aqm("5.3-1")).rate_bps
    assert {f.sender for f in aqm("9.2").flows if f.name.startswith("tested-back")} == {f"h{n}" for n in range(25, 33)}
    assert {f.kind for f in aqm("9.1").flows} == {"tcp-sack", "cbr", "nada"}
    _, beside = aqm("5.3-2").flows
    assert 0.5 < beside.settings.parameters.rate_bps / 1e6 <= 1


# -------------------------------------------------------------------------------------------------------------------- figures


def test_fair_shares() -> None:
    """3.5 Mb/s for 1.5, 0.5 and without limit: 0.5, then 3 for two: 1.5 each."""
    link = ("s1", 1)
    assert media.fair_shares({link: 3.5e6}, [[link]] * 3, [1.5e6, 0.5e6, math.inf]) == [1.5e6, 0.5e6, 1.5e6]
    assert media.fair_shares({link: 3e6}, [[link]] * 5, [1.5e6] * 5) == [0.6e6] * 5


def test_fair_shares_over_two_bottlenecks() -> None:
    """2 and 1.5 Mb/s, as in [RFC 8867 sec 6.3]: the flow over both has half of the smaller, and leaves 1.25 Mb/s of the other."""
    a, b = ("s1", 1), ("s3", 1)
    assert media.fair_shares({a: 2e6, b: 1.5e6}, [[a, b], [a], [b]], [1.5e6] * 3) == [0.75e6, 1.25e6, 0.75e6]


@given(st.floats(1e5, 1e8), st.lists(st.floats(1e5, 1e8), min_size=1, max_size=8))
def test_fair_shares_fill_the_link_and_favour_nobody(capacity: float, limits: list[float]) -> None:
    shares = media.fair_shares({("s1", 1): capacity}, [[("s1", 1)]] * len(limits), limits)
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
                sent_bytes=steps(rate / 8 + 1000 * lost_per_s),
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
    """On average 2 packets wait, and 250 leave each second: 8 ms, whatever their sizes and the link's use."""
    given = records([1e6, 1e6], 0.0)
    settings = aqm("8.2.2").flows[0].settings
    links = {key: dataclasses.replace(link, queue=steps(2.0), packets=steps(250.0)) for key, link in given.links.items()}
    tcp = [
        dataclasses.replace(r, flow=dataclasses.replace(r.flow, name=f"tested-{n}", settings=settings)) for n, r in enumerate(given.flows)
    ]
    (phase,) = media.phases(dataclasses.replace(given, flows=tcp, links=links))
    assert phase.queueing_s == pytest.approx(0.008)


def test_metrics_of_a_flow() -> None:
    made = records([1.2e6, 0.6e6], 0.090)
    figures = media.flow_figures(made, made.flows[0])
    assert (figures["sending_bps"], figures["receiving_bps"]) == (pytest.approx(1.2e6), pytest.approx(1.2e6))
    assert (figures["sending_least_bps"], figures["sending_most_bps"]) == (pytest.approx(1.2e6), pytest.approx(1.2e6))
    assert (figures["sent_bytes"], figures["received_bytes"]) == (pytest.approx(15e6), pytest.approx(15e6))
    assert figures["goodput_bps"] == pytest.approx(0.96 * 1.2e6)
    assert (figures["sent_packets"], figures["loss"], figures["variation"]) == (15_000, 0.0, pytest.approx(0.0, abs=1e-9))
    assert [figures[name] for name in ("delay_mean_s", "delay_95_s", "delay_max_s")] == pytest.approx([0.09] * 3)


def moving(rates_bps: list[float], each_s: float) -> Steps:
    """A sum of bytes that grows by each rate for so long."""
    edges = each_s * np.arange(len(rates_bps) + 1)
    return Steps(edges, np.concatenate([[0.0], np.cumsum(np.array(rates_bps) * each_s / 8)]))


def test_ratio_of_two_flows_depends_on_the_interval() -> None:
    """Flows that take turns, 5 s each, 4 and 1 Mb/s: 1/4 in 1 s and in 5 s, 1 in 20 s."""
    first, second = (
        dataclasses.replace(f, received=moving(turns, 5.0))
        for f, turns in zip(records([1e6, 1e6], 0.06).flows, ([4e6, 1e6] * 10, [1e6, 4e6] * 10))
    )
    ratios = [media.ratio_of_flows([first, second], 50.0, 100.0, scale_s) for scale_s in media.SCALES_S]
    assert ratios == pytest.approx([0.25, 0.25, 1.0])
    assert math.isnan(media.ratio_of_flows([first], 50.0, 100.0, 1.0))
    starved = dataclasses.replace(second, received=moving([0.0], 100.0))
    assert media.ratio_of_flows([first, starved], 50.0, 100.0, 20.0) == 0.0


def test_swings_are_between_watermarks_within_half_a_second() -> None:
    """0.2 and 2 Mb/s in turns, 1 s each: the mean is 1.1, so 0.2 is below a half of it and 2 is not above twice. 0.1 and 4 Mb/s for 1.8 and 0.2 s: there and
    back each 2 s. With 1 s between the marks a change is no oscillation."""
    assert media.swings(moving([0.2e6, 2e6] * 10, 1.0), 0.0, 20.0) == 0
    assert media.swings(moving(([0.1e6] * 9 + [4e6]) * 5, 0.2), 0.0, 10.0) == 9
    assert math.isnan(media.swings(Steps.of([], []), 0.0, 10.0))
    assert media.swings(moving(([0.1e6] * 9 + [0.4e6] * 5 + [4e6] + [0.4e6] * 5) * 5, 0.2), 0.0, 20.0) == 0


def test_synchronization_is_the_part_of_flows_that_lose_together() -> None:
    """Of 0.2 s each: the first loses in two intervals, the second in one of them: (1/2 + 2/2) / 2. A flow alone, and flows without loss, have none."""
    base = records([1e6, 1e6], 0.06).flows
    first, second = (
        dataclasses.replace(f, lost=Steps(0.2 * np.arange(6), np.array(sums, dtype=float)))
        for f, sums in zip(base, ([0, 1, 1, 4, 4, 4], [0, 0, 0, 2, 2, 2]))
    )
    assert media.synchronization([first, second], 0.0, 1.0) == pytest.approx(0.75)
    assert math.isnan(media.synchronization([first], 0.0, 1.0)) and math.isnan(media.synchronization(base, 0.0, 1.0))


def test_recovery_is_a_phase_after_the_last_file() -> None:
    """Media take half of their part until a file ends at 60 s, then all of it."""
    made = records([0.5e6, 0.5e6], 0.06)
    received = Steps(np.array([0.0, 60.0, 100.0]), np.array([0.0, 0.5e6 / 8 * 60, 0.5e6 / 8 * 60 + 1e6 / 8 * 40]))
    flows = [dataclasses.replace(f, received=received) for f in made.flows]
    file = next(f for f in case("5.7").experiment.flows if f.kind == "tcp-newreno")
    short = dataclasses.replace(
        flows[0],
        flow=dataclasses.replace(file, sender=flows[0].flow.sender, receiver=flows[0].flow.receiver),
        active=(10.0, 60.0),
        completion_s=50.0,
    )
    phases = media.phases(dataclasses.replace(made, flows=[*flows, short]))
    assert [(p.start_s, p.end_s, p.after_cross) for p in phases] == [(0.0, 60.0, False), (60.0, 100.0, True)]
    totals = media.totals(phases)
    assert (totals["use_after_cross"], totals["least_use"]) == (pytest.approx(1.0), pytest.approx(0.5))
    assert totals["lowest_media_bps"] == pytest.approx(0.5e6)


def test_recovery_from_a_long_tcp_flow_begins_at_its_end() -> None:
    made = records([0.5e6, 0.5e6], 0.06)
    long = next(f for f in case("5.6").experiment.flows if f.kind == "tcp-newreno")
    ends = {"sender": made.flows[0].flow.sender, "receiver": made.flows[0].flow.receiver, "start_s": 20.0, "stop_s": 60.0}
    beside = dataclasses.replace(made.flows[0], flow=dataclasses.replace(long, **ends), active=(20.0, 60.0))
    phases = media.phases(dataclasses.replace(made, flows=[*made.flows, beside]))
    assert [(p.start_s, p.end_s, p.after_cross) for p in phases] == [(0.0, 20.0, False), (20.0, 60.0, False), (60.0, 100.0, True)]
    assert media.totals(phases)["use_after_cross"] == pytest.approx(0.5)


def test_degradation_is_beside_the_same_phase_of_the_reference() -> None:
    phases, reference = (media.phases(records(bps, 0.06)) for bps in ([0.6e6, 0.3e6], [0.8e6, 0.4e6]))
    assert media.totals(phases, reference=reference)["least_of_reference"] == pytest.approx(0.75)
    assert math.isnan(media.totals(phases)["least_of_reference"])
    assert media.totals(phases, reference=reference)["loss_over_reference"] == pytest.approx(0.0)
    slower = [dataclasses.replace(phase, queueing_s=phase.queueing_s - 0.02) for phase in phases]
    assert media.totals(phases, reference=slower)["queueing_over_reference_s"] == pytest.approx(0.02)
    longer = [dataclasses.replace(phase, end_s=120.0) for phase in reference]
    assert math.isnan(media.totals(phases, reference=longer)["least_of_reference"])  # other halves are compared with nothing


def test_priority_is_the_ratio_of_rates_when_all_flows_are_there() -> None:
    made = records([1.2e6, 0.6e6], 0.06)
    first, second = (f.flow.name for f in made.flows[:2])
    phases = media.phases(made)
    assert media.totals(phases, priorities={first: 2.0, second: 1.0})["priority_ratio"] == pytest.approx(2.0)
    assert media.totals(phases, priorities={first: 1.0, second: 2.0})["priority_ratio"] == pytest.approx(0.5)
    assert math.isnan(media.totals(phases, priorities={first: 2.0, "third": 1.0})["priority_ratio"])


def test_a_rate_converges_when_it_stays_near_its_end() -> None:
    made = records([1.0e6, 0.5e6], 0.06)
    flow = made.flows[0]
    times = np.arange(0.0, 100.05, 0.1)
    received = np.where(times < 30, 0.2e6 / 8 * times, 0.2e6 / 8 * 30 + 1e6 / 8 * (times - 30))
    slow = dataclasses.replace(flow, received=Steps(times, received))
    assert media._converged_s([slow], 0.0, 100.0) == 30.0


def test_goodput_and_delay_are_of_ten_least_round_trips() -> None:
    """50 ms one way: periods of 1 s [RFC 7928 sec 2.7]. A flow that has 1 Mb/s and then 0.4 Mb/s, half the time each: 0.96 of either is payload here."""
    made = records([1e6, 1e6], 0.090)
    moved = dataclasses.replace(made.flows[0], goodput=moving([1e6, 0.4e6], 50.0))
    periods, steady = distributions.of(dataclasses.replace(made, flows=[moved, made.flows[1]]))
    assert (periods.period_s, len(periods.goodput_bps)) == (1.0, 100)
    found = {part: (goodput, queueing) for part, goodput, queueing in periods.distribution()}
    assert [found[part][0] for part in (0, 45, 55, 100)] == pytest.approx([0.4e6, 0.4e6, 1e6, 1e6])
    # As in `test_figures_of_constant_flows`: 90 ms less the empty path.
    assert [found[part][1] for part in (0, 50, 100)] == pytest.approx([0.03584] * 3, abs=1e-6)
    assert [goodput for _, goodput, _ in steady.distribution()] == pytest.approx([0.96e6] * 21)


def test_an_ellipse_is_one_deviation_of_the_most_likely_gaussian() -> None:
    """Points at (+-3, 0) and (0, +-1), turned by 30 degrees: the variances along the axes are 18 / 4 and 2 / 4."""
    turn = math.radians(30)
    points = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]]) @ np.array(
        [[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]]
    )
    found = distributions.ellipse(points[:, 0] + 10, points[:, 1] + 20)
    assert found is not None
    assert (found.x, found.y) == (pytest.approx(10), pytest.approx(20))
    assert (found.width, found.height) == (pytest.approx(2 * math.sqrt(4.5)), pytest.approx(2 * math.sqrt(0.5)))
    assert found.degrees == pytest.approx(30)
    assert distributions.ellipse(np.array([1.0, 2.0, math.nan]), np.array([1.0, 2.0, 3.0])) is None


def test_gaps_between_losses() -> None:
    """Losses at 1, 2 (two at once) and 6 s: 5 s for three gaps, the longest 4 s [RFC 7928 sec 2.3]."""
    lost = Steps(np.array([0.0, 1.0, 2.0, 3.0, 6.0, 9.0]), np.array([0.0, 1.0, 3.0, 3.0, 4.0, 4.0]))
    assert media.loss_gaps_s(lost) == (pytest.approx(5 / 3), 4.0)
    assert all(map(math.isnan, media.loss_gaps_s(Steps(np.array([0.0, 1.0]), np.array([0.0, 1.0])))))
    assert all(map(math.isnan, media.loss_gaps_s(Steps.of([], []))))


def test_two_queue_managements_on_a_path() -> None:
    """Senders at L and at M, equally many, mild congestion [RFC 7928 sec 10.2]; both queues are the one that is tested; round trips of 100 ms."""
    for queue in ("pie", "red"):
        experiment = cases.load(cases.FOLDER / "rfc7928/10.toml", "tcp-sack", cases.Options(queue)).experiment
        path = addressing.path
        ways = [path(experiment.topology, f.sender, f.receiver) for f in experiment.flows]
        assert [way[0].peer for way in ways] == ["s1"] * 4 + ["s2"] * 4 and {way[-1].node for way in ways} == {"s3"}
        trunks = {(p.node, p.peer): p.link.queue for way in ways for p in way if p.node.startswith("s") and p.peer.startswith("s")}
        assert trunks == {("s1", "s2"): queue, ("s2", "s3"): queue}
        assert [2 * sum(p.link.delay_s for p in way) for way in ways] == pytest.approx([0.1] * 8)
    assert len(aqm("8.2.2").flows) == len(experiment.flows)


def test_the_start_of_a_flow_takes_a_round_trip() -> None:
    """SYN and its answer, 100 ms, and their transmissions: data leave then [RFC 7928 sec 2.2]; with PIE's burst allowance nothing is lost so early."""
    pytest.importorskip("fairlane.native", reason="the module fairlane.native is not built: make build")
    judged = cases.run(cases.load(cases.FOLDER / "rfc7928/5.1.1.toml", "tcp-sack", cases.Options("pie")))
    (figures,) = (media.flow_figures(judged.records, f) for f in judged.records.flows)
    assert 0.1 < figures["startup_s"] < 0.105 and 0 < figures["loss_gap_mean_s"] <= figures["loss_gap_most_s"]


def test_what_could_not_be_measured_does_not_hold() -> None:
    made = records([1.2e6, 0.6e6], 0.090)
    judged = cases.Judged(case("5.2"), made, [], media.totals([]))
    assert not judged.passes and all(check["value"] is None for check in judged.to_json()["checks"])


def test_judging() -> None:
    """Queueing of 36 ms and a ratio of 1/2 pass; 250 ms, or a ratio of 1/5, do not: 1.66 and 0.33 Mb/s are both within 0.333 to 3 of a share of 1 Mb/s."""

    def failing(bps: list[float], delay_s: float) -> list[str]:
        made = records(bps, delay_s)
        phases = media.phases(made)
        return [c["figure"] for c in cases.Judged(case("5.2"), made, phases, media.totals(phases)).checks if not c["holds"]]

    assert failing([1.2e6, 0.6e6], 0.090) == []
    assert failing([1.2e6, 0.6e6], 0.304) == ["most_queueing_s"]
    assert failing([1.66e6, 0.334e6], 0.090) == ["lowest_ratio_20s"]
    assert failing([1.5e6, 0.0], 0.090) == ["lowest_ratio_20s"]
    assert failing([0.6e6, 0.6e6], 0.090) == ["least_use"]


# ------------------------------------------------------------------------------------------------------------------ end to end


def check_rtp_logs(folder: Path, flows: list[dict[str, Any]]) -> None:
    """[RFC 8868 sec 3.1]: time, payload type, SSRC, sequence number, timestamp, marker, size of the payload; the metrics follow from them."""
    figures = {flow["name"]: flow for flow in flows}
    for name in ("media", "audio"):
        sent, received = ((folder / f"{name}.{end}.log").read_text().splitlines() for end in ("sent", "received"))
        assert all(re.fullmatch(r"\d+\.\d{6} \d{1,3} [0-9a-f]{1,8} \d{1,5} \d{1,10} [01] \d+", line) for line in (*sent, *received))
        # Figures end with the flow; a few packets are still under way.
        last_s = float(sent[-1].split()[0])
        assert len(sent) == figures[name]["sent_packets"] and all(
            float(line.split()[0]) > last_s for line in received[figures[name]["received_packets"] :]
        )
        # IP, UDP and RTP have 40 bytes.
        assert sum(int(line.split()[6]) + 40 for line in sent) == pytest.approx(figures[name]["sent_bytes"], rel=1e-6)
        assert len({line.split()[2] for line in (*sent, *received)}) == 1
        left_s = {line.split()[3]: float(line.split()[0]) for line in sent[:60_000]}
        delays = [float(line.split()[0]) - left_s[line.split()[3]] for line in received[:60_000]]
        assert np.mean(delays) == pytest.approx(figures[name]["delay_mean_s"], abs=2e-4) and min(delays) > 0.05


def test_a_suite_end_to_end(tmp_path: Path) -> None:
    """Two cases with NADA: both pass, and the page shows both; a sender that does not adapt fails them."""
    pytest.importorskip("fairlane.native", reason="the module fairlane.native is not built: make build")
    done = CliRunner().invoke(
        app,
        [
            "suite",
            "rfc8867",
            "--algorithm",
            "nada",
            "--case",
            "5.4",
            "--case",
            "5.1",
            "--out",
            str(tmp_path / "nada"),
            "--strict",
            "--rtp-log",
        ],
    )
    assert done.exit_code == 0, done.output
    data = json.loads((tmp_path / "nada/suite.json").read_text())
    assert (data["suite"], data["algorithm"]) == ("rfc8867", "nada")
    assert [(c["case"], c["passes"]) for c in data["cases"]] == [("5.1", True), ("5.4", True)]
    first = data["cases"][0]["figures"]
    assert [p["capacity_bps"] for p in first["phases"]] == [1e6, 2.5e6, 0.6e6, 1e6]
    assert first["phases"][2]["media_bps"] == pytest.approx(0.6e6, rel=0.2)
    assert (
        data["cases"][0]["figures"]["flows"][0]["frame_delay_mean_s"] > 0.05
        and data["cases"][0]["figures"]["flows"][0]["whole_frames"] > 2500
    )
    assert 0 < first["most_feedback"] < 0.2
    with open(tmp_path / "nada/rates.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["case"], row["flow"]) == ("5.1", "media")]
    assert float(rows[0]["time_s"]) == 0.2 and 490 <= len(rows) <= 500
    received = sum(0.2 * float(row["receiving_bps"]) for row in rows) / 8
    assert received == pytest.approx(data["cases"][0]["figures"]["flows"][0]["received_bytes"], rel=0.01)
    with open(tmp_path / "nada/links.csv", newline="") as file:
        links = [row for row in csv.DictReader(file) if row["case"] == "5.1"]
    assert [float(links[n]["capacity_bps"]) for n in (0, 200, 300, 400)] == [1e6, 2.5e6, 0.6e6, 1e6] and len(links) == 500
    carried = sum(0.2 * float(row["utilisation"]) * float(row["capacity_bps"]) for row in links) / 8
    assert carried == pytest.approx(sum(flow["received_bytes"] for flow in data["cases"][0]["figures"]["flows"]), rel=0.01)
    check_rtp_logs(tmp_path / "nada/rtp/5.1", data["cases"][0]["figures"]["flows"])
    page = (tmp_path / "nada/index.html").read_text()
    assert page.count("<svg") == 6 and "media flows of one algorithm [RFC 8867 sec 5.4]" in page
    assert "src=" not in page and "<link" not in page
    again = CliRunner().invoke(app, ["suite", "rfc8867", "--algorithm", "nada", "--out", str(tmp_path / "nada")])
    assert isinstance(again.exception, Refusal)
    done = CliRunner().invoke(app, ["suite", "rfc8867", "--algorithm", "cbr", "--case", "5.1", "--out", str(tmp_path / "cbr"), "--strict"])
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

"""Flows with congestion control feedback (RFC 8888) in virtual time: what is refused, what travels, what is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

import fairlane
from fairlane.experiments import loader
from fairlane.fabrics import targets, virtual_fabric
from fairlane.fabrics.progress import Silent
from fairlane.inputs.located_toml import ConfigError
from fairlane.results import series
from fairlane.results.series import FlowRecord

pytestmark = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")

EXPERIMENT = """
title = "feedback of RFC 8888"
duration_s = {duration_s}
bottleneck = "s1->s2"
window_from = 0.5

[topology]
kind = "dumbbell"
pairs = 1

[topology.bottleneck]
rate_bps = 1_000_000
delay_s = 0.05
queue_packets = 37
framing = "ip"
{queue}

[topology.access]
rate_bps = 100_000_000
delay_s = 0.0
queue_packets = 1000
framing = "ip"

[[flows]]
name = "media"
kind = "{kind}"
parameters = {{ {feedback}maximum_rate_bps = 1.5e6 }}
{rest}
"""
REPORTS = 'feedback = "rfc8888", '
BACK_FAILS = """
[[changes]]
at_s = 20.0
link = "s2->s1"
loss = 0.999999
"""


def write(folder: Path, kind: str = "nada", feedback: str = REPORTS, duration_s: float = 30.0, queue: str = "", rest: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "experiment.toml"
    path.write_text(EXPERIMENT.format(kind=kind, feedback=feedback, duration_s=duration_s, queue=queue, rest=rest))
    return path


def run(folder: Path, pcap: Path | None = None, **given) -> FlowRecord:
    experiment = loader.load(write(folder, **given))
    (folder / "raw").mkdir()
    options = virtual_fabric.Options(targets.compiler(), pcap=pcap)
    outcome = virtual_fabric.run(experiment, options, folder / "raw", Silent())
    (flow,) = series.load(folder / "raw", experiment, outcome.timing).flows
    return flow


def rate_bps(flow: FlowRecord, start_s: float, end_s: float) -> float:
    return 8 * flow.sent_bytes.over(start_s, end_s) / (end_s - start_s)


@pytest.mark.parametrize(
    ("kind", "feedback", "said"),
    [
        ("rap", REPORTS, 'rap does not use the arrival of each packet, which "rfc8888" reports; gcc, nada, scream do'),
        ("nada", 'feedback = "rfc8889", ', "rfc8888"),
        ("nada", REPORTS + "feedback_interval_s = 0.0, ", "must be 0.01 to 2 s, got 0 s"),
        ("nada", REPORTS + "feedback_interval_s = 8.0, ", "must be 0.01 to 2 s, got 8 s"),
    ],
)
def test_what_cannot_be_is_refused_by_file_and_key(tmp_path: Path, kind: str, feedback: str, said: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        loader.load(write(tmp_path, kind, feedback))
    assert "experiment.toml" in str(refusal.value) and "feedback" in str(refusal.value) and said in str(refusal.value)


def test_the_command_line_takes_it_as_a_setting() -> None:
    how = {"bottleneck": "1mbit", "rtt": "100ms", "duration_s": 20.0}
    flow = fairlane.run("dumbbell", "nada:1", settings=["nada.feedback=rfc8888", "nada.feedback_interval_s=0.05"], **how)
    assert flow.bottleneck["utilisation"] > 0.5
    with pytest.raises(ConfigError, match="rap does not use the arrival"):
        fairlane.run("dumbbell", "rap:1", settings=["rap.feedback=rfc8888"], **how)


@pytest.mark.parametrize("kind", ["nada", "scream", "gcc"])
def test_reports_cross_the_network_as_rtcp_and_steer_the_rate(tmp_path: Path, kind: str) -> None:
    """GCC grows by 8 % a second. About ten a second beside a full report each 2.5 to 7.5 s, none to the data port; headers of IP and UDP, 20 bytes, and 2 for each packet of two
    intervals [RFC 8888 sec 3.1]."""
    scapy = pytest.importorskip("scapy.all")
    from fairlane.native import parse_ccfb

    flow = run(tmp_path, tmp_path / "pcap", kind=kind)
    assert rate_bps(flow, 15.0, 30.0) > (0.4e6 if kind == "gcc" else 0.8e6)
    back = [f for f in scapy.rdpcap(str(tmp_path / "pcap" / "s2-s1.pcap")) if f.haslayer(scapy.UDP)]
    assert all(f[scapy.UDP].dport % 2 == 1 and f[scapy.IP].tos & 3 == 0 for f in back)
    payloads = [bytes(f[scapy.UDP].payload) for f in back]
    reports = [parse_ccfb(p) for p in payloads]
    assert all(report is not None for report in reports)
    said = [report[0] for report in reports if report]
    assert 270 <= len(said) <= 320
    first, *others = payloads
    assert first[1] == 201 and sum(p[1] == 205 for p in others) > 0.9 * len(others)
    numbers = set()
    for report in said:
        ((_, begin, packets),) = report["streams"]
        numbers |= {(begin + n) % 65_536 for n, packet in enumerate(packets) if packet is not None}
    # All that arrived but the last reports' worth.
    assert len(numbers) >= flow.packets.over(0.0, 29.7)
    overhead = sum(28 + len(p) for p in payloads) / flow.received.over(0.0, 30.0)
    assert overhead < 0.025


@pytest.mark.parametrize(("kind", "kept"), [("nada", 0.8), ("scream", 0.8), ("gcc", 0.4)])
def test_a_fifth_of_the_reports_lost_costs_little(tmp_path: Path, kind: str, kept: float) -> None:
    """[RFC 8888 sec 5]: of a single report that is lost, "the level of congestion has remained roughly the same". GCC's sender measures
    R_hat, which lacks the packets of which both reports were lost, and A_hat stays below 1.5 R_hat [GCC sec 5.5]."""
    lossy = '[[changes]]\nat_s = 0.0\nlink = "s2->s1"\nloss = 0.2\n'
    rates = [rate_bps(run(tmp_path / name, kind=kind, rest=rest), 15.0, 30.0) for name, rest in (("clean", ""), ("lossy", lossy))]
    assert rates[1] > kept * rates[0]


@pytest.mark.parametrize("kind", ["nada", "scream", "gcc"])
def test_without_reports_the_rate_falls(tmp_path: Path, kind: str) -> None:
    """[RFC 8888 sec 5]: "if multiple consecutive congestion control feedback packets are lost, then the media sender SHOULD rapidly reduce its
    sending rate". NADA and GCC take 2 s, `silence_s`; their least rate is 150 kb/s."""
    flow = run(tmp_path, kind=kind, rest=BACK_FAILS)
    assert rate_bps(flow, 18.0, 20.0) > (0.3e6 if kind == "gcc" else 0.8e6)
    assert rate_bps(flow, 23.0, 29.0) < 0.2e6


def test_marks_come_back_in_the_reports(tmp_path: Path) -> None:
    """CoDel that marks: NADA with ECN loses nothing and keeps a shorter queue than with marks that it does not hear of."""
    codel = 'queue = "codel"\n\n[topology.bottleneck.codel]\necn = true'
    marks = run(tmp_path / "marks", feedback=REPORTS + "ecn = true, ", queue=codel)
    plain = run(tmp_path / "plain")
    assert marks.lost.over(0.0, 30.0) == 0 and rate_bps(marks, 15.0, 30.0) > 0.6e6
    waited = [flow.delay.over(15.0, 30.0) / flow.packets.over(15.0, 30.0) for flow in (marks, plain)]
    assert waited[0] < 0.9 * waited[1]


def test_the_same_run_gives_the_same_records(tmp_path: Path) -> None:
    for name in ("one", "two"):
        run(tmp_path / name, duration_s=10.0)
    one, two = ({p.name: p.read_bytes() for p in (tmp_path / name / "raw").glob("*.jsonl")} for name in ("one", "two"))
    assert one == two and one

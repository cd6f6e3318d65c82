"""Headers of flows' own (docs/own-header.md), from P4 to an algorithm and back: in virtual time, and on Mininet with our switch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import fairlane
from fairlane import probes
from fairlane.errors import NOT_VALID, Refusal
from fairlane.fabrics import virtual_fabric
from fairlane.hosts import own_algorithms
from fairlane.hosts.algorithms.own_header import layout_of
from fairlane.hosts.algorithms.rcp import HEADER as RATE
from fairlane.hosts.algorithms.xcp import HEADER as CONGESTION
from fairlane.hosts.wire.formats import formats_of
from fairlane.inputs.located_toml import tomllib
from fairlane.schemes import registry
from fairlane.studies import points, read
from tests import missing

pytestmark = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")

EXAMPLE = probes.ROOT / "docs/examples/telemetry"
NETWORK = EXAMPLE / "telemetry.toml"

REPORTED = '''
from fairlane.hosts.algorithms.base import Interests, Kind, Receiver, SendFeedback, Sender, SetRate, SetTimer
from fairlane.hosts.algorithms.rcp import HEADER, UNLIMITED, RcpParameters

class ReportedSender(Sender):
    """RCP by reports: no packet is acknowledged."""
    interests = Interests(scheme="rcp", header=HEADER)

    def __init__(self, parameters):
        self.parameters = parameters

    def on_start(self, now_s, rng):
        return (SetRate(self.parameters.initial_rate_bps),)

    def on_feedback(self, now_s, feedback, rng):
        # None: no packet came since the report before.
        unknown = feedback.header is None or feedback.header.rate_bps == UNLIMITED
        return () if unknown else (SetRate(float(feedback.header.rate_bps)),)

class ReportedReceiver(Receiver):
    def __init__(self, parameters):
        self.parameters = parameters

    def on_start(self, now_s, rng):
        return (SetTimer("report", now_s + 0.05),)

    def on_timer(self, now_s, timer, reception, rng):
        return SendFeedback(), SetTimer("report", now_s + 0.05)

class LeastReceiver(ReportedReceiver):
    interests = Interests(least="rate_bps")

class FoldingReceiver(ReportedReceiver):
    def fold(self, kept, header):
        return kept._replace(rate_bps=min(kept.rate_bps, header.rate_bps))

KINDS = tuple(
    Kind(name, "for a test", RcpParameters, ReportedSender, receiver)
    for name, receiver in (("rcp-last", ReportedReceiver), ("rcp-least", LeastReceiver), ("rcp-folded", FoldingReceiver))
)
'''

LOST = """
from fairlane.hosts.algorithms.base import AckDetail, Header, Interests, Kind
from fairlane.hosts.algorithms.rcp import RcpParameters, RcpReceiver, RcpSender

class LostSender(RcpSender):
    interests = Interests(acks=AckDetail.EVERY, header=Header("nowhere_t", 1))

KINDS = (Kind("lost", "for a test", RcpParameters, LostSender, RcpReceiver),)
"""


STUDY = """
title = "two rates"
bottleneck = "s1->s2"
duration_s = 3
seeds = [1]
[sweep]
rate_bps = [1e6, 2e6]
[measure]
goodput_bps = "= rcp.goodput_bps"
[[flows]]
name = "rcp"
kind = "rcp"
[topology]
kind = "dumbbell"
pairs = 1
bottleneck = { rate_bps = "= rate_bps", delay_s = 0.01 }
access = { rate_bps = 1e8 }
"""

SETS = """
from fairlane.hosts.algorithms.base import AckDetail, Fill, Header, Interests, Kind, SetHeader, SetRate
from fairlane.hosts.algorithms.rcp import RcpParameters, RcpReceiver, RcpSender

SEEN = []

class SetsSender(RcpSender):
    interests = Interests(
        acks=AckDetail.EVERY,
        scheme="rcp",
        header=Header("rate_t", 0x5243, {"rate_bps": 5, "rtt_us": Fill.SEQUENCE}, returned=("rate_bps", "rtt_us")),
    )

    def on_ack(self, now_s, ack, rng):
        SEEN.append((ack.sequence, ack.header.rtt_us, ack.header.rate_bps))
        if ack.sequence == 3:
            return (SetHeader({"rate_bps": 7}),)
        return (SetHeader({"rate_bps": -1}),) if ack.sequence == self.parameters.min_rate_bps else ()

KINDS = (Kind("sets", "for a test", RcpParameters, SetsSender, RcpReceiver),)
"""


def test_a_window_follows_what_each_switch_of_the_path_writes() -> None:
    """The long flow crosses both links, so two switches write into its packets, and one into those of the others. The scheme's folder is all that it takes."""
    run = fairlane.run(NETWORK, schemes=[EXAMPLE])
    assert run.bottleneck["utilisation"] > 0.9 and not run.bottleneck["drops"]
    assert all(flow["lost_packets"] == 0 and flow["goodput_bps"] > 1e6 for flow in run.summary["flows"])
    late = run.links[(run.links.link == "s1->s2") & (run.links.time_s > 5)]
    assert late.queue_packets.mean() < 10


@pytest.mark.root
@pytest.mark.timeout(180)
def test_the_same_on_mininet(tmp_path: Path) -> None:
    if reason := missing.for_mininet():
        pytest.skip(reason)
    command = [sys.executable, "-m", "fairlane", "run", str(NETWORK), "--scheme", str(EXAMPLE), "--fabric", "mininet"]
    command += ["--target", "embedded", "--duration", "8", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # A busy machine makes the run invalid, which says nothing about headers.
    assert done.returncode in (0, NOT_VALID), done.stdout + done.stderr
    for number in range(3):
        records = [json.loads(line) for line in (tmp_path / f"out/raw/flow-{number}.sender.jsonl").read_text().splitlines()]
        # Without a header that comes back, they would stay at the first window.
        assert len({record["window_packets"] for record in records if record["kind"] == "sent"}) > 3


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("algorithm") / "reported.py"
    file.write_text(REPORTED)
    return file


@pytest.mark.parametrize("kind", ["rcp-last", "rcp-least", "rcp-folded"])
def test_reports_bring_back_what_the_receiver_makes_of_many_headers(kind: str, reported: Path) -> None:
    run = fairlane.run("dumbbell", f"{kind}:2", bottleneck="10mbit", rtt="60ms", buffer="4bdp", duration_s=10.0, algorithms=[reported])
    goodputs = [flow["goodput_bps"] for flow in run.summary["flows"]]
    assert min(goodputs) > 0.85 * 5e6 and max(goodputs) < 1.02 * 5e6


def test_a_sender_fills_fields_and_sets_them(tmp_path: Path) -> None:
    """5 and 7 bit/s are less than any switch's rate, so they come back as they are."""
    (tmp_path / "sets.py").write_text(SETS)
    fairlane.run("dumbbell", "sets", bottleneck="10mbit", rtt="60ms", duration_s=2.0, algorithms=[tmp_path / "sets.py"])
    seen = sys.modules[f"{own_algorithms.MODULES}sets"].SEEN
    assert len(seen) > 15 and all(sequence == filled for sequence, filled, _ in seen)
    rates = [rate for _, _, rate in seen]
    changed = rates.index(7)
    assert 3 < changed < 8 and set(rates[:changed]) == {5} and set(rates[changed:]) == {7}
    with pytest.raises(ValueError, match=r"rate_t\.rate_bps = -1: bit<64> holds 0 to 18446744073709551615"):
        fairlane.run("dumbbell", "sets", duration_s=2.0, settings=["sets.min_rate_bps=5"])


def test_a_program_without_the_header_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lost.py").write_text(LOST)
    with pytest.raises(Refusal, match=r"flow lost \(lost\): the P4 program has no header type 'nowhere_t'; it has .*ethernet_t"):
        fairlane.run("dumbbell", "lost", duration_s=1.0, algorithms=[tmp_path / "lost.py"])


def test_a_study_has_flows_with_a_header(tmp_path: Path) -> None:
    """Its runs share a compiled program, which is not in their own folders."""
    (tmp_path / "study.toml").write_text(STUDY)
    jobs = points.jobs(read.load(tmp_path / "study.toml"))
    goodputs = [points.run(job).result["values"]["goodput_bps"] for job in jobs]
    assert len(goodputs) == 2 and all(goodput > 1e5 for goodput in goodputs)


def test_the_layouts_of_p4_are_the_described_ones() -> None:
    """hosts/wire/formats.toml describes RCP's and XCP's headers for documents and dissectors; the senders take them from P4."""
    formats = formats_of(tomllib.loads((probes.ROOT / "hosts/wire/formats.toml").read_text()))
    programs = {}
    for header in (RATE, CONGESTION):
        scheme = next(one for one in registry.SCHEMES.values() if one.header is not None and one.header.type == header.type)
        p4src = probes.source("p4src/als.p4").parent
        programs[header.type], _, said = virtual_fabric.native.compile(p4src / "als.p4", include=[scheme.folder, p4src], define=["CHOSEN"])
        assert programs[header.type] is not None, said
        assert (scheme.header.profile, scheme.header.words) == (
            header.profile,
            layout_of(json.loads(programs[header.type]), header.type).bits // 32 - 1,
        )
    for header, form in ((RATE, formats["rate"]), (CONGESTION, formats["congestion"])):
        layout = layout_of(json.loads(programs[header.type]), header.type)
        assert [(f.name, f.bits) for f in layout.fields] == [(f.name, f.bits) for f in form.fields]
        assert [f.value for f in form.fields[:2]] == [header.profile, layout.bits // 32 - 1]

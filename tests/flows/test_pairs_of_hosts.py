"""Any number of flows between two hosts, in both directions, at once or one after the other: each has ports of its own."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane import api
from fairlane.experiments import loader
from fairlane.experiments.model import MAX_PORT_OFFSET, Flow
from fairlane.fabrics import virtual_fabric
from fairlane.results import completions

pytestmark = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")

NETWORK = """
title = "Several flows for a pair"
bottleneck = "s1->s2"
duration_s = DURATION
window_from = FROM
[topology]
kind = "dumbbell"
pairs = 2
bottleneck = { rate_bps = 10_000_000, delay_s = 0.01, queue_packets = 100 }
access = { rate_bps = 100_000_000 }
"""


def flow(name: str, kind: str, *pair: str, more: str = "") -> str:
    return f'[[flows]]\nname = "{name}"\nkind = "{kind}"\nhosts = [["{pair[0]}", "{pair[1]}"]]\n{more}\n'


def run(tmp_path: Path, *flows: str, duration: float = 10.0, window_from: float = 0.5, pcap: Path | None = None) -> api.Result:
    file = tmp_path / "run.toml"
    file.write_text(NETWORK.replace("DURATION", str(duration)).replace("FROM", str(window_from)) + "".join(flows))
    return api.run_experiment(loader.load(file), out=tmp_path / "out", pcap=pcap)


@pytest.mark.parametrize("kind", ["tcp-cubic", "rap", "als", "tfrc", "cbr"])
def test_flows_of_one_pair_share_a_link(tmp_path: Path, kind: str) -> None:
    """Two one way, and one back: the two share one direction, the third has the other."""
    flows = flow("a", kind, "h1", "h3", more="count = 2"), flow("back", kind, "h3", "h1")
    result = run(tmp_path, *flows, duration=30.0)
    one, other, back = (f["goodput_bps"] for f in result.summary["flows"])
    assert one > 0 and other > 0 and back > 0
    if kind.startswith("tcp"):
        # A segment of 1014 bytes carries 948, and acknowledgements of 66 bytes go the other way, one for each or for every second one.
        most = 10e6 * 948 / 1014
        assert 0.8 * most < one + other < most and 0.8 * most < back < most
    assert [f["fair_share_bps"] for f in result.summary["flows"]] == pytest.approx([5e6, 5e6, 10e6])


def test_kinds_mix_between_two_hosts(tmp_path: Path) -> None:
    kinds = ("als", "tcp-sack", "rap", "scream", "tcp-bbr")
    result = run(tmp_path, *(flow(kind, kind, "h1", "h3") for kind in kinds), flow("way-back", "tcp-reno", "h3", "h1"))
    assert all(f["goodput_bps"] > 0 for f in result.summary["flows"])


def test_a_pair_of_hosts_is_one_connection_for_als(tmp_path: Path) -> None:
    """[ALS sec 3.1]: three flows between two pairs of hosts are two connections, and R_f is half of what U_l leaves."""
    result = run(tmp_path, flow("a", "als", "h1", "h3", more="count = 2"), flow("b", "als", "h2", "h4"), duration=20.0)
    rates = result.recorded.fair_rates[result.recorded.experiment.bottleneck]
    later = [r for r in rates if r.time_s > 5]
    assert {r.connections for r in later} == {2} and {r.rate_bps for r in later} == {9e6 / 2}


def test_one_after_the_other(tmp_path: Path) -> None:
    """A hundred files between two hosts, each after the one before."""
    more = "count = 100\njoin_interval_s = 0.1\nparameters = { file_bytes = 20_000 }"
    result = run(tmp_path, flow("file", "tcp-cubic", "h1", "h3", more=more), duration=11.0, window_from=0.0)
    times = [f["completion_s"] for f in result.summary["flows"]]
    assert len(times) == 100 and max(times) - min(times) < 1e-9, "each has the network to itself"
    (kind,) = result.summary["kinds"]
    assert kind["complete"] == 100 and kind["completion_s"]["p50"] == pytest.approx(times[0])


@pytest.mark.parametrize("slow_bps", [2_000_000, 10_000_000, 400_000_000])
@pytest.mark.parametrize("timestamps", ["true", "false"])
@pytest.mark.parametrize("file_bytes", [1, 948, 949, 2257, 9_470])
def test_an_empty_network_slows_nothing_down(tmp_path: Path, file_bytes: int, timestamps: str, slow_bps: int) -> None:
    """A file that the initial window has room for takes as long as `empty_network_s` says, but for options of the handshake's two segments and for FIN, which is a segment of its own."""
    file = tmp_path / "run.toml"
    settings = f"parameters = {{ file_bytes = {file_bytes}, timestamps = {timestamps}, initial_window_packets = 10 }}"
    text = NETWORK.replace("DURATION", "2.0").replace("FROM", "0.0").replace("10_000_000", str(slow_bps))
    file.write_text(text + flow("one", "tcp-cubic", "h1", "h3", more=settings))
    (one,) = api.run_experiment(loader.load(file), out=tmp_path / "out").summary["flows"]
    more_s = sum(8 * (2 * 24 + 66) / rate_bps for rate_bps in (slow_bps, 100e6, 100e6))
    assert -1e-8 < one["completion_s"] * (1 - 1 / one["slowdown"]) <= more_s


def test_a_busy_network_slows_down(tmp_path: Path) -> None:
    more = "count = 8\nparameters = { file_bytes = 100_000 }"
    result = run(tmp_path, flow("file", "tcp-cubic", "h1", "h3", more=more), window_from=0.0)
    # Eight files of 84 kB and more on the wire, at 10 Mb/s.
    assert 6 < max(f["slowdown"] for f in result.summary["flows"]) < 20


def test_each_flow_has_ports_of_its_own(tmp_path: Path) -> None:
    result = run(
        tmp_path, flow("a", "als", "h1", "h3", more="count = 3"), flow("t", "tcp-sack", "h1", "h3"), pcap=tmp_path / "pcap", duration=2.0
    )
    assert all(f["goodput_bps"] > 0 for f in result.summary["flows"])
    data = (tmp_path / "pcap" / "h1-s1.pcap").read_bytes()
    ports, at = set(), 24
    while at + 16 <= len(data):
        held = struct.unpack_from("<I", data, at + 8)[0]
        frame = data[at + 16 : at + 16 + held]
        at += 16 + held
        if frame[23] in (6, 17):
            ports.add((frame[23], struct.unpack_from("!H", frame, 14 + 4 * (frame[14] & 15) + 2)[0]))
    assert ports == {(17, 5004), (17, 5005), (17, 5006), (17, 5007), (17, 5008), (17, 5009), (6, 5207)}


@pytest.mark.long
def test_a_workload_loads_its_link(tmp_path: Path) -> None:
    web = '[[workloads]]\nname = "web"\nkind = "tcp-cubic"\narrivals = { load = 0.3 }\nsizes = { mean_bytes = 10_000 }\n'
    result = run(tmp_path, web, duration=60.0, window_from=0.0)
    files = result.recorded.experiment.flows
    complete = {f["name"]: f for f in result.summary["flows"] if f["completion_s"] > 0}
    assert all(f.name in complete for f in files if f.start_s < 59), "a file takes less than a second"
    assert all(f["goodput_bps"] * f["completion_s"] == pytest.approx(8 * 10_000) for f in complete.values())
    utilisation = next(link["utilisation"] for link in result.summary["links"] if link["name"] == "s1->s2")
    # 11 segments, a SYN and a FIN for each file.
    assert utilisation == pytest.approx(len(files) * 8 * (10_000 + 11 * 66 + 78 + 66) / 60 / 10e6, rel=0.01)
    (kind,) = result.summary["kinds"]
    assert 1 <= kind["slowdown"]["p50"] <= kind["slowdown"]["p95"] <= kind["slowdown"]["p99"]


@given(st.lists(st.tuples(st.integers(0, 3), st.sets(st.integers(0, 3), min_size=1, max_size=3)), max_size=30))
def test_no_two_flows_of_a_pair_have_a_port_in_common(ends: list[tuple[int, set[int]]]) -> None:
    ports = loader.Ports()
    taken: dict[frozenset[int], list[int]] = {}
    for sender, receivers in ends:
        others = sorted(receivers - {sender})
        if not others:
            continue
        offset = ports.take(str(sender), [str(r) for r in others])
        assert offset % 2 == 0
        for receiver in others:
            taken.setdefault(frozenset((sender, receiver)), []).append(offset)
    assert all(len(set(offsets)) == len(offsets) for offsets in taken.values())


def test_ports_end() -> None:
    last = Flow("last", "cbr", "h1", "h2", 0.0, None, port_offset=MAX_PORT_OFFSET)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="h2 and h1 have 30001 flows already, as many as two hosts have ports for"):
        loader.Ports([last]).take("h2", ["h1"])


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50), st.sampled_from(completions.PERCENTILES))
def test_percentiles_are_numpys(values: list[float], part: int) -> None:
    np = pytest.importorskip("numpy")
    assert completions.percentile([*values, math.nan], part) == pytest.approx(float(np.percentile(values, part)), rel=1e-12, abs=1e-12)

"""The fabric in virtual time: the same experiment, program, controller and algorithms, the same result in every run."""

from __future__ import annotations

import hashlib
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from typer.testing import CliRunner

from experiments import loader
from fairlane import metrics, series, targets, virtual_fabric
from fairlane.cli import app
from fairlane.errors import Refusal
from fairlane.located_toml import ConfigError

pytestmark = pytest.mark.skipif(virtual_fabric.fairlane_virtual is None, reason="the module fairlane_virtual is not built: make build")


class Silent:
    """A progress display that shows nothing."""

    def say(self, text: str) -> None: ...

    def show(self, snapshot) -> None: ...

    def close(self) -> None: ...


def run(folder: Path, name: str = "als-3", duration_s: float = 20.0, seed: int = 1, **options):
    """Run an experiment; (experiment, outcome), its raw records in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    experiment = loader.load(loader.find(name), duration_s, seed)
    return experiment, virtual_fabric.run(experiment, virtual_fabric.Options(targets.compiler(), **options), folder, Silent())


def digests(folder: Path) -> dict[str, str]:
    """Of every raw record; the controller's configuration names files by their place."""
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.iterdir()) if p.name != "controller.json"}


def digests_of_run(folder: str, seed: int) -> dict[str, str]:
    run(Path(folder), duration_s=10.0, seed=seed)
    return digests(Path(folder))


def test_als_shares_the_dumbbell(tmp_path: Path) -> None:
    experiment, outcome = run(tmp_path, duration_s=60.0)
    recorded = series.load(tmp_path, experiment, outcome.timing)
    figures = metrics.compute(recorded)
    broken = [c for c in figures.checks if not c.holds]
    assert not broken
    assert all(f.sent_packets > 0 and f.goodput_bps > 0.5e6 for f in figures.flows)


def test_the_records_are_the_same_in_every_run_and_with_any_number_of_workers(tmp_path: Path) -> None:
    jobs = [(str(tmp_path / f"{workers}-{seed}-{n}"), seed) for workers in (1, 2) for seed in (1, 2) for n in (0, 1)]
    found: dict[str, dict[str, str]] = {}
    for workers in (1, 2):
        mine = [job for job in jobs if Path(job[0]).name.startswith(f"{workers}-")]
        with ProcessPoolExecutor(workers) as pool:
            for (folder, _), result in zip(mine, pool.map(digests_of_run, *zip(*mine))):
                found[Path(folder).name] = result
    for seed in (1, 2):
        first = found[f"1-{seed}-0"]
        assert len(first) > 15
        assert all(found[f"{workers}-{seed}-{n}"] == first for workers in (1, 2) for n in (0, 1))
    assert found["1-1-0"]["s1.csv"] != found["1-2-0"]["s1.csv"], "another seed must be another run"


def test_captures_are_read_by_scapy_with_virtual_timestamps(tmp_path: Path) -> None:
    scapy = pytest.importorskip("scapy.all")
    _, outcome = run(tmp_path / "raw", duration_s=6.0, pcap=tmp_path / "pcap")
    names = {p.name for p in (tmp_path / "pcap").iterdir()}
    assert {"s1-s2.pcap", "s2-s1.pcap", "h1-s1.pcap", "s1-h1.pcap"} <= names
    frames = scapy.rdpcap(str(tmp_path / "pcap" / "s1-s2.pcap"))
    assert len(frames) > 1000
    times = [float(f.time) for f in frames]
    assert times == sorted(times) and times[0] >= outcome.timing.begin_s
    # Checksums as a receiver would check them.
    for frame in frames[:300]:
        rebuilt = frame.copy()
        del rebuilt[scapy.IP].chksum
        layer = next((x for x in (scapy.TCP, scapy.UDP) if frame.haslayer(x)), None)
        if layer is not None and frame[layer].chksum:
            del rebuilt[layer].chksum
        rebuilt = scapy.Ether(bytes(rebuilt))
        assert rebuilt[scapy.IP].chksum == frame[scapy.IP].chksum
        if layer is not None:
            assert rebuilt[layer].chksum == frame[layer].chksum


def test_rtcp_of_the_network_is_what_the_hosts_codec_writes(tmp_path: Path) -> None:
    from hosts.wire import alsf, rtcp

    scapy = pytest.importorskip("scapy.all")
    run(tmp_path / "raw", duration_s=16.0, pcap=tmp_path / "pcap")
    compounds = {"there": [], "back": []}
    for name, frames in compounds.items():
        link = "s1-s2" if name == "there" else "s2-s1"
        for frame in scapy.rdpcap(str(tmp_path / "pcap" / f"{link}.pcap")):
            if frame.haslayer(scapy.UDP) and frame[scapy.UDP].dport % 2:
                frames.append(frame)
    assert len(compounds["there"]) > 5 and len(compounds["back"]) > 3
    for frame in compounds["there"]:
        assert bytes(frame[scapy.IP])[20:24] == alsf.ROUTER_ALERT_OPTION and frame[scapy.UDP].chksum == 0
    for name, frames in compounds.items():
        for frame in frames:
            payload = bytes(frame[scapy.UDP].payload)
            packets = rtcp.parse_compound(payload)
            assert rtcp.emit_compound(packets) == payload
            if name == "there":
                assert alsf.find_alsf(packets, from_sender=True) is not None


@pytest.mark.parametrize(("old", "new", "said"), [
    ("delay_s = 0.005", "delay_s = -0.005", "delay_s"),
    ("rate_bps = 10_000_000", "rate_bps = 0", "rate_bps"),
    ('kind = "tcp-reno"', 'kind = "tcp-renno"', "tcp-reno"),
    ('bottleneck = "s1->s2"', 'bottleneck = "s1->s7"', "s1->s7"),
    ("start_s = 0.0", "start_s = -1.0", "start_s"),
    ("start_s = 0.0", "start_s = 100.0", "after the run's end"),
    ("join_interval_s = 3.0", "join_interval_s = 30.0", "after the run's end"),
])
def test_what_cannot_be_is_refused_by_file_and_key(tmp_path: Path, old: str, new: str, said: str) -> None:
    base = (loader.FOLDER / "_rate_feedback.toml").read_text()
    text = (loader.FOLDER / "als-3.toml").read_text()
    assert old in base + text
    (tmp_path / "_rate_feedback.toml").write_text(base.replace(old, new))
    path = tmp_path / "bad.toml"
    path.write_text(text.replace(old, new))
    with pytest.raises(ConfigError) as refusal:
        loader.load(path)
    assert ".toml" in str(refusal.value) and said in str(refusal.value)
    assert not list(tmp_path.glob("raw*"))


def test_the_command_line_refuses_what_virtual_time_has_not(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["run", "als-3", "--target", "bmv2", "--out", str(tmp_path / "r")])
    assert isinstance(result.exception, Refusal) and "--fabric mininet" in str(result.exception)
    assert not (tmp_path / "r").exists()


def test_an_algorithm_that_fails_ends_the_run_with_its_own_exception(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hosts.algorithms.als import AlsSender

    def fail(self, now_s, feedback, rng):
        raise ZeroDivisionError("a student's mistake")

    monkeypatch.setattr(AlsSender, "on_feedback", fail)
    with pytest.raises(ZeroDivisionError, match="a student's mistake"):
        run(tmp_path)

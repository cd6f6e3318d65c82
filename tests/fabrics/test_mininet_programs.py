"""Real programs, files and workloads on Mininet, as a user starts them: what is measured, and that nothing stays behind."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fairlane import api
from fairlane.experiments import loader
from fairlane.fabrics import leftovers
from tests import missing
from tests.fabrics.late import summary_of
from tests.waiting import until

pytestmark = [pytest.mark.root, pytest.mark.timeout(180)]
if reason := missing.for_mininet():
    pytest.skip(reason, allow_module_level=True)

ROOT = Path(__file__).resolve().parent.parent.parent
GRPC_PORT = 27559
NETWORK = """
title = "t"
bottleneck = "s1->s2"
duration_s = DURATION
window_from = 0.0
[topology]
kind = "dumbbell"
pairs = 4
bottleneck = { rate_bps = 10_000_000, delay_s = 0.005, queue_packets = 100 }
access = { rate_bps = 100_000_000, delay_s = 0.0005 }
"""


def needs(*programs: str) -> pytest.MarkDecorator:
    absent = [name for name in programs if shutil.which(name) is None]
    return pytest.mark.skipif(bool(absent), reason=f"needs {', '.join(absent)}")


def command(name: str, pair: tuple[str, str], more: str) -> str:
    return f'[[flows]]\nname = "{name}"\nkind = "command"\nhosts = [["{pair[0]}", "{pair[1]}"]]\n{more}\n'


def arguments(file: Path, out: Path) -> list[str]:
    fixed = ["--fabric", "mininet", "--target", "embedded", "--grpc-port", str(GRPC_PORT), "--no-rtt-check"]
    return [sys.executable, "-m", "fairlane", "run", str(file), *fixed, "--out", str(out)]


def run(tmp_path: Path, text: str, duration: float = 6.0) -> tuple[dict[str, Any], Path, str]:
    """summary.json, the results' folder, and what was printed."""
    file = tmp_path / "run.toml"
    file.write_text(NETWORK.replace("DURATION", str(duration)) + text)
    done = subprocess.run(arguments(file, tmp_path / "out"), capture_output=True, text=True, cwd=ROOT, timeout=150)
    assert done.returncode in (0, 3, 4), done.stdout + done.stderr
    return json.loads((tmp_path / "out" / "summary.json").read_text()), tmp_path / "out", done.stdout


def flow(summary: dict[str, Any], name: str) -> dict[str, Any]:
    return next(f for f in summary["flows"] if f["name"] == name)


PING = command("ping", ("h1", "h5"), 'parameters.sender = ["ping", "-n", "-i", "0.2", "{receiver}"]\nparameters.stop_signal = "INT"')
IPERF = command(
    "iperf",
    ("h2", "h6"),
    'start_s = 1.0\nparameters.sender = ["iperf3", "-c", "{receiver}", "-p", "{port}", "-t", "2", "-J"]\n'
    'parameters.receiver = ["iperf3", "-s", "-1", "-p", "{port}"]',
)
HTTP = command(
    "http",
    ("h3", "h7"),
    'start_s = 3.0\nparameters.server = "sender"\n'
    'parameters.sender = ["{python}", "-m", "http.server", "{port}", "--bind", "{sender}", "--directory", "{here}"]\n'
    'parameters.receiver = ["curl", "-s", "-o", "{output}.got", "http://{sender}:{port}/page"]',
)


@needs("iperf3", "curl")
def test_programs_are_measured_as_they_measure_themselves(tmp_path: Path) -> None:
    (tmp_path / "page").write_bytes(bytes(range(256)) * 2000)
    summary, out, printed = run(tmp_path, PING + IPERF + HTTP, 8.0)
    assert summary["events"] == [], printed
    raw = out / "raw"
    summary_of(out)
    # iperf3's own count of what arrived, and the switches'.
    said = json.loads((raw / "iperf.sender.out").read_text())["end"]
    iperf = flow(summary, "iperf")
    table = pd.read_csv(out / "flows.csv")
    counted = table[table["flow"] == "iperf"]["goodput_bps"].sum() / 8
    assert counted == pytest.approx(said["sum_received"]["bytes"], rel=0.03)
    assert 2.0 <= iperf["completion_s"] < 3.5 and iperf["slowdown"] is None
    assert iperf["sent_packets"] > 500
    # The file came whole; what the switch counted is the file, its headers and nothing twice that was not lost.
    assert (raw / "http.receiver.got").read_bytes() == (tmp_path / "page").read_bytes()
    http = table[table["flow"] == "http"]["goodput_bps"].sum() / 8
    assert 512_000 < http < 512_000 * 1.05
    assert 0.4 < flow(summary, "http")["completion_s"] < 4.0
    # Pings of 84 bytes, five a second, of which the payload is 56.
    ping = flow(summary, "ping")
    sent = int(next(line for line in (raw / "ping.sender.out").read_text().splitlines() if "transmitted" in line).split()[0])
    assert ping["sent_packets"] == pytest.approx(sent, abs=1) and sent == pytest.approx(40, abs=4) and ping["completion_s"] is None
    assert ping["goodput_bps"] == pytest.approx(56 * 8 * 5, rel=0.1)
    # By the kernel: round trips of the sender's sockets.
    records = [json.loads(line) for line in (raw / "iperf.sender.jsonl").read_text().splitlines()]
    trips = [r["rtt_s"] for r in records if r["kind"] == "sockets" and r["rtt_s"]]
    assert trips and min(trips) > 0.010 and max(trips) < 0.5
    assert [k["kind"] for k in summary["kinds"]] == ["command ping", "command iperf", "command http"]


def test_a_program_that_fails_is_an_event_and_the_run_goes_on(tmp_path: Path) -> None:
    bad = command("bad", ("h2", "h6"), 'start_s = 1.0\nparameters.sender = ["sh", "-c", "echo why; exit 5"]')
    summary, out, printed = run(tmp_path, PING + bad, 4.0)
    assert [e["what"].partition(" early")[0] for e in summary["events"]] == ["bad.sender ended with code 1"]
    assert "sh ended with code 5; its output is in bad.sender.out" in printed and (out / "raw" / "bad.sender.out").read_text() == "why\n"
    assert flow(summary, "ping")["sent_packets"] > 10 and flow(summary, "bad")["completion_s"] is None


def test_nothing_stays_after_a_run_that_is_ended(tmp_path: Path) -> None:
    """SIGTERM to the run; programs that do not listen, and their children in sessions of their own, end too."""
    stubborn = command(
        "deaf", ("h2", "h6"), 'parameters.sender = ["sh", "-c", "trap \'\' TERM INT; setsid sleep 4242 & while :; do sleep 0.1; done"]'
    )
    file = tmp_path / "run.toml"
    file.write_text(NETWORK.replace("DURATION", "60") + PING + stubborn)
    log = (tmp_path / "printed").open("w+")
    process = subprocess.Popen(arguments(file, tmp_path / "out"), stdout=log, stderr=subprocess.STDOUT, cwd=ROOT)
    until(lambda: _running("sleep 4242") or process.poll() is not None)
    assert process.poll() is None, (tmp_path / "printed").read_text()
    record = next(r for r in leftovers.records() if r.owner.pid == process.pid)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) not in (0, None)
    assert not _running("sleep 4242") and leftovers.interfaces(record.prefix) == [] and not record.path.exists()
    assert not (tmp_path / "out").exists()


def test_nothing_stays_after_a_run_that_is_killed(tmp_path: Path) -> None:
    stubborn = command(
        "deaf", ("h2", "h6"), 'parameters.sender = ["sh", "-c", "trap \'\' TERM; setsid sleep 4343 & while :; do sleep 0.1; done"]'
    )
    file = tmp_path / "run.toml"
    file.write_text(NETWORK.replace("DURATION", "60") + stubborn)
    with (tmp_path / "printed").open("w") as log:
        process = subprocess.Popen(arguments(file, tmp_path / "out"), stdout=log, stderr=subprocess.STDOUT, cwd=ROOT)
    until(lambda: _running("sleep 4343") or process.poll() is not None)
    assert process.poll() is None, (tmp_path / "printed").read_text()
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)
    until(lambda: not _running("sleep 4343"), what="its end")
    leftovers.clean()


def _running(words: str) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().replace(b"\0", b" ").strip() == words.encode():
                return True
        except OSError:
            continue
    return False


FILES = """
[tcp]
packet_bytes = 1500
[[flows]]
name = "first"
kind = "tcp-cubic"
hosts = [["h4", "h8"]]
parameters = { file_bytes = 1_000_000 }
[[flows]]
name = "second"
kind = "tcp-cubic"
hosts = [["h8", "h4"]]
after = "first"
after_s = 0.5
parameters = { file_bytes = 200_000 }
[[workloads]]
name = "web"
kind = "tcp-cubic"
pattern = "request-response"
senders = ["h1", "h2"]
receivers = ["h5", "h6"]
arrivals = { kind = "deterministic", per_s = 2 }
start_s = 2.5
requests = 2
think_s = 0.1
sizes = { mean_bytes = 30_000 }
[[workloads]]
name = "search"
kind = "tcp-cubic"
pattern = "partition-aggregate"
fan_in = 3
senders = ["h3"]
receivers = ["h5", "h6", "h7"]
arrivals = { per_s = 2 }
start_s = 2.5
sizes = { mean_bytes = 10_000 }
"""


@pytest.mark.long
def test_files_and_queries_take_as_long_as_in_virtual_time(tmp_path: Path) -> None:
    """A file alone within a tenth: after slow start it is the link that counts. Means of queries within a factor: machines that are shared are late."""
    summary, out, printed = run(tmp_path, FILES, 8.0)
    assert summary["events"] == [], printed
    file = tmp_path / "run.toml"
    # One process for each host, whatever the number of its flows.
    assert len(list((out / "raw").glob("files.*.json"))) == 8
    assert "/tmp" not in (out / "raw" / "files.h1.json").read_text()
    summary_of(out)
    virtual = api.run_experiment(loader.load(file), out=tmp_path / "virtual").summary
    first, other = flow(summary, "first"), flow(virtual, "first")
    assert first["completion_s"] == pytest.approx(other["completion_s"], rel=0.15)
    assert first["slowdown"] == pytest.approx(other["slowdown"], rel=0.15)
    assert flow(summary, "second")["completion_s"] is not None
    assert [(q["workload"], q["queries"]) for q in summary["queries"]] == [(q["workload"], q["queries"]) for q in virtual["queries"]]
    for real, modelled in zip(summary["queries"], virtual["queries"]):
        assert real["complete"] >= modelled["complete"] - 1
        assert modelled["completion_s"]["p50"] * 0.7 < real["completion_s"]["p50"] < modelled["completion_s"]["p50"] * 3
    table = pd.read_csv(out / "queries.csv")
    assert set(table["workload"]) == {"web", "search"} and table["completion_s"].notna().any()


def test_the_schedule_of_files_is_kept(tmp_path: Path) -> None:
    text = '[[workloads]]\nname = "w"\nkind = "tcp-reno"\narrivals = { kind = "trace", file = "own.csv" }\n'
    (tmp_path / "own.csv").write_text(
        "time_s,bytes,sender,receiver\n" + "".join(f"{n / 10},2000,h{1 + n % 4},h{5 + n % 4}\n" for n in range(20))
    )
    summary, out, _ = run(tmp_path, text, 4.0)
    assert [f["name"] for f in summary["flows"]] == [f"w-{n}" for n in range(20)]
    assert all(not math.isnan(f["completion_s"] or math.nan) for f in summary["flows"])
    begin = summary["begin_unix_s"]
    late = []
    for n in range(20):
        start = json.loads((out / "raw" / f"w-{n}.sender.jsonl").read_text().splitlines()[0])
        late.append(start["t"] - begin - n / 10)
        assert start["late_s"] == pytest.approx(late[-1], abs=2e-3)
    assert min(late) >= -1e-3
    summary_of(out)
    assert sorted(late)[10] < 0.05


@needs("ffmpeg")
def test_a_film_by_ffmpeg_over_rtp(tmp_path: Path) -> None:
    """MPEG-2 of a test picture at 1 Mb/s, from start_s to the run's end."""
    film = command(
        "film",
        ("h1", "h5"),
        "start_s = 1.0\n"
        'parameters.sender = ["ffmpeg", "-nostdin", "-loglevel", "error", "-re", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25", '
        '"-c:v", "mpeg2video", "-b:v", "1M", "-minrate", "1M", "-maxrate", "1M", "-bufsize", "200k", "-f", "rtp_mpegts", '
        '"rtp://{receiver}:{port}"]',
    )
    summary, out, _ = run(tmp_path, film, 6.0)
    assert summary["events"] == [], (out / "raw" / "film.sender.out").read_text()
    assert 0.5e6 < flow(summary, "film")["goodput_bps"] < 2.5e6


@needs("curl")
@pytest.mark.skipif(find_spec("aioquic") is None, reason="needs aioquic (scripts/environment quic)")
@pytest.mark.timeout(300)
def test_the_example_runs(tmp_path: Path) -> None:
    """HTTP and QUIC beside ALS, shortened."""
    command = arguments(ROOT / "docs" / "examples" / "programs.toml", tmp_path / "out")
    done = subprocess.run([*command, "--duration", "20"], capture_output=True, text=True, cwd=ROOT, timeout=200)
    assert done.returncode in (0, 3, 4), done.stdout + done.stderr
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["events"] == [], done.stdout
    rates = {f["name"]: f["goodput_bps"] for f in summary["flows"]}
    assert rates.keys() == {"als-0", "als-1", "http", "quic", "ping"} and all(rate > 500 for rate in rates.values()), rates
    assert 6e6 < sum(rates.values()) < 10e6
    assert (tmp_path / "out" / "rates.png").stat().st_size > 0
    page = tmp_path / "page.html"
    subprocess.run([sys.executable, "-m", "fairlane", "report", str(tmp_path / "out"), "--out", str(page)], check=True, cwd=ROOT)
    assert "command http" in page.read_text() and "command quic" in page.read_text()


def test_the_prompt_takes_a_file_with_programs_and_workloads(tmp_path: Path) -> None:
    """Its flows do not run there: the network is theirs alone."""
    (tmp_path / "run.toml").write_text(NETWORK.replace("DURATION", "10") + FILES + PING.replace("h1", "h2", 1))
    (tmp_path / "commands").write_text("h1 ping -c 1 h5\nnodes\n")
    words = [sys.executable, "-m", "fairlane", "shell", str(tmp_path / "run.toml"), "--script", str(tmp_path / "commands")]
    done = subprocess.run([*words, "--grpc-port", str(GRPC_PORT)], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 packets transmitted, 1 received" in done.stdout + done.stderr  # where Mininet writes

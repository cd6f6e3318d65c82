"""`fairlane run` for real, shortened: results, disturbances, and that nothing stays behind. Takes about a minute in all."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairlane.fabrics import leftovers
from fairlane.fabrics.processes import Identity
from tests import missing
from tests.fabrics.late import summary_of
from tests.running import Run, flows_are_up, runs

pytestmark = [pytest.mark.root, pytest.mark.timeout(180)]
if reason := missing.for_mininet("iperf3"):
    pytest.skip(reason, allow_module_level=True)

# Not 9559: a run of someone else may be under way.
GRPC_PORT = 29559


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    with runs(tmp_path, "embedded", GRPC_PORT) as begin:
        yield begin


def counted_intervals(run: Run) -> set[str]:
    """The ends of those that the controller has recorded of s1 so far."""
    path = run.out.with_name(f".{run.out.name}.unfinished") / "raw" / "controller.csv"
    return {row["time_s"] for row in csv.DictReader(path.read_text().splitlines()) if row["switch"] == "s1"}


def test_a_run_writes_its_results_and_leaves_nothing(start: Callable[..., Run]) -> None:
    run = start("--duration", "14", "--seed", "3")
    run.wait_for(flows_are_up)
    record = run.record()
    members = [m for c in record.children for m in c.session()]
    assert run.process.wait(90) == 0, run.printed()
    assert leftovers.interfaces(record.prefix) == [] and not record.path.exists()
    assert not [m for m in members if m.alive()]
    summary = json.loads((run.out / "summary.json").read_text())
    assert (summary["experiment"], summary["target"], summary["seed"], summary["window_s"]) == ("als-3", "embedded", 3, [7.0, 14.0])
    # TCP and the sources that join at 0, 3, 6, 9 and 12 s.
    assert [f["name"] for f in summary["flows"]] == ["tcp-0", "tcp-1", "tcp-2", "als-0", "als-1", "als-2", "als-3", "als-4"]
    assert all(f["goodput_bps"] > 0 for f in summary["flows"])
    for name in ("flows.csv", "links.csv", "fair_rates.csv", "rates.png", "queue.png", "fair_rate.png"):
        assert (run.out / name).stat().st_size > 0
    assert summary["events"] == []
    for name in ("Flows", "Links between switches", "Checks", "The paper"):
        assert name in run.printed()
    values = {c["name"]: c["value"] for c in summary_of(run.out)["checks"]}
    assert values["seconds with n_conn exact"] >= 0.9
    assert values["sender packets with R_d <= R_f"] == 1.0
    assert values["R_f in force after a join"] <= 2.0
    assert values["bottleneck utilisation"] > 0.5


def test_a_killed_controller_and_a_killed_switch_do_not_end_a_run(start: Callable[..., Run]) -> None:
    run = start("--duration", "20", "--restart-after", "2")
    run.wait_for(flows_are_up)
    os.kill(run.child(" fairlane.controller "), signal.SIGKILL)
    before = counted_intervals(run)
    run.wait_for(lambda text: "the controller is started again" in text)
    run.wait_for(lambda _: len(counted_intervals(run) - before) >= 2)
    os.kill(run.child("fairlane-switch .*--device-id 2 "), signal.SIGKILL)
    run.wait_for(lambda text: "switch s2 is started again" in text)
    assert run.process.wait(90) == 0, run.printed()
    summary = json.loads((run.out / "summary.json").read_text())
    said = [e["what"] for e in summary["events"]]
    assert said == [
        "the controller was killed by SIGKILL; it is started again in 2 s",
        "the controller is started again",
        "switch s2 was killed by SIGKILL; it is started again in 2 s",
        "switch s2 is started again",
    ]
    # A controller that comes back leaves the R_f in force until it has counted a whole interval.
    restarted, died = summary["events"][1]["time_s"], summary["events"][2]["time_s"]
    rates = [line.split(",") for line in (run.out / "fair_rates.csv").read_text().splitlines()]
    at = {name: rates[0].index(name) for name in ("time_s", "link", "connections")}
    counts = [int(r[at["connections"]]) for r in rates[1:] if r[at["link"]] == "s1->s2" and restarted < float(r[at["time_s"]]) < died]
    assert counts and all(n >= 4 for n in counts), counts
    # The restarted switch was filled again: packets arrive at the end.
    rows = [line.split(",") for line in (run.out / "flows.csv").read_text().splitlines()]
    time_at, flow_at, goodput_at = (rows[0].index(c) for c in ("time_s", "flow", "goodput_bps"))
    assert sum(float(r[goodput_at]) for r in rows[1:] if r[flow_at].startswith("als") and float(r[time_at]) > 18) > 0


def test_a_run_whose_switches_stood_still_is_not_valid(start: Callable[..., Run]) -> None:
    run = start("--duration", "8", "--strict")
    run.wait_for(flows_are_up)
    switches = [run.child(f"fairlane-switch .*--device-id {n} ") for n in (1, 2)]
    begin_s = time.monotonic()
    for pid in switches:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(2.0)
    for pid in switches:
        os.kill(pid, signal.SIGCONT)
    stopped_s = time.monotonic() - begin_s
    assert run.process.wait(90) == 5, run.printed()
    fidelity = json.loads((run.out / "summary.json").read_text())["fidelity"]
    assert fidelity["verdict"] == "invalid" and stopped_s - 0.5 < fidelity["measured"]["gap_s"] < stopped_s + 1.5
    # What else is wrong with the run (late samples, a part not sampled) is the machine's.
    assert "gap_s" in {r["measure"] for r in fidelity["reasons"] if r["verdict"] == "invalid"}
    assert "INVALID" in run.printed() and "wrote no counters for" in run.printed()


@pytest.mark.parametrize(("number", "code"), [pytest.param(signal.SIGTERM, 143, marks=pytest.mark.long), (signal.SIGINT, 130)])
def test_a_signal_ends_a_run_in_order(start: Callable[..., Run], number: int, code: int) -> None:
    run = start("--duration", "40")
    run.wait_for(flows_are_up)
    record = run.record()
    os.kill(run.process.pid, number)
    assert run.process.wait(30) == code
    assert run.printed().splitlines()[-1] == f"fairlane: ended by {signal.Signals(number).name}; cleaned up, no results written."
    assert leftovers.interfaces(record.prefix) == [] and not record.path.exists()
    assert not [m for c in record.children for m in c.session()]
    assert [p.name for p in run.out.parent.iterdir()] == ["printed"]


def test_of_two_runs_started_together_one_says_whom_it_met(start: Callable[..., Run], tmp_path: Path) -> None:
    runs = [Run(tmp_path / name, "embedded", GRPC_PORT, "--duration", "5") for name in ("a", "b") if (tmp_path / name).mkdir() is None]
    codes = [run.process.wait(90) for run in runs]
    assert sorted(codes) == [0, 2], [run.printed() for run in runs]
    winner, loser = runs[codes.index(0)], runs[codes.index(2)]
    assert f"belongs to a run that is under way: fairlane als-3, process {winner.process.pid}" in loser.printed() or (
        f"port {GRPC_PORT} is taken" in loser.printed()
    )


def test_a_switch_of_somebody_else_is_not_taken_for_ours(start: Callable[..., Run]) -> None:
    run = start("--duration", "5")
    # Ports are looked at first; then a stranger comes.
    run.wait_for(lambda _: any(r.owner.pid == run.process.pid for r in leftovers.records()))
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stranger.bind(("127.0.0.1", GRPC_PORT + 1))
        stranger.listen()
        assert run.process.wait(60) == 4, run.printed()
    assert (
        f"is served by process {os.getpid()}, not by this run's switch s2" in run.printed() or "switch s2 ended with code" in run.printed()
    )


def test_a_taken_port_is_refused_before_anything_starts(start: Callable[..., Run]) -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", GRPC_PORT + 1))
        taken.listen()
        run = start()
        assert run.process.wait(30) == 2
    assert f"fairlane: port {GRPC_PORT + 1} is taken, and a switch serves P4Runtime on it." in run.printed()
    assert not [r for r in leftovers.records() if r.owner.pid == run.process.pid] and not run.out.exists()


def _typed(master: int, until: str, line: str = "") -> str:
    """What the prompt's terminal shows after a line, up to `until`."""
    os.write(master, line.encode())
    shown = ""
    while until not in shown:
        if not select.select([master], [], [], 40)[0]:
            raise AssertionError(f"no {until!r} within 40 s after {line!r}: {shown}")
        shown += os.read(master, 65536).decode(errors="replace")
    return shown


def test_the_prompt_knows_its_hosts_and_ends_their_servers(tmp_path: Path) -> None:
    process, master = pty.fork()
    if process == 0:
        # BMv2's rates are of packets, whatever their size.
        arguments = ["-m", "fairlane", "shell", "als-3", "--target", "embedded", "--grpc-port", str(GRPC_PORT)]
        os.execve(sys.executable, [sys.executable, *arguments], {**os.environ, "TERM": "dumb", "COLUMNS": "200"})
    try:
        greeting = _typed(master, "mininet> ")
        control = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
        assert f"congestion control, {control}." in " ".join(greeting.split())
        assert "Results: 0% dropped (2/2 received)" in _typed(master, "mininet> ", "pingpair\n")
        assert "1 received" in _typed(master, "mininet> ", "h1 ping -c 1 h11\n")
        pid_file = tmp_path / "iperf3.pid"
        _typed(master, "mininet> ", f"h1 iperf3 -s -D -p 5999 -I {pid_file}\n")
        measured = _typed(master, "mininet> ", "iperf h1 h11\n")
        found = re.search(r"received ([\d.]+) Mbit/s, congestion control (\w+)", measured)
        assert found and 7 < float(found[1]) <= 10 and found[2] == control, measured
        assert "no host h99" in _typed(master, "mininet> ", "iperf h1 h99\n")
        server = Identity.of(int(pid_file.read_text().rstrip("\0\n")))
        assert server is not None and server.alive()
        os.write(master, b"\x04")
        assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
        assert not server.alive()
    finally:
        os.close(master)
        leftovers.clean()


def test_a_script_at_the_prompt_runs_to_its_end(tmp_path: Path) -> None:
    """Each of its lines, also after a command that reads standard input."""
    script = tmp_path / "commands"
    script.write_text("sh cat\n# a comment\nh1 ping -c 1 h11\npy 'the ' + 'end'\n")
    command = [
        sys.executable,
        "-m",
        "fairlane",
        "shell",
        "als-3",
        "--target",
        "embedded",
        "--grpc-port",
        str(GRPC_PORT),
        "--script",
        str(script),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0, done.stderr
    assert "1 received" in done.stderr and "the end" in done.stderr  # where Mininet writes
    command[-1] = str(tmp_path / "none")
    refused = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert refused.returncode == 2 and command[-1] in refused.stderr  # in one piece, however long the path

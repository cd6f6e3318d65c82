"""`fairlane run als-3 --target bmv2` for real, shortened: results, disturbances, and that nothing stays behind. BMv2 is not part of
this project: where it is absent all of this is skipped. Takes about a minute and a half."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairlane import probes
from fairlane.fabrics import leftovers
from fairlane.fabrics.processes import Identity
from tests import missing
from tests.running import Run, flows_are_up, runs
from tests.waiting import until

pytestmark = [pytest.mark.root, pytest.mark.timeout(180)]
if reason := missing.for_mininet("simple_switch_grpc", "iperf3", built=("fairlane-link", "fairlane-compile")):
    pytest.skip(reason, allow_module_level=True)

GRPC_PORT = 27559


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    with runs(tmp_path, "bmv2", GRPC_PORT) as begin:
        yield begin


def members(record: leftovers.RunRecord) -> list[Identity]:
    """All processes of a run, in one look at /proc: where the machine is busy, a look for each child takes as long as the run."""
    led = {child.pid for child in record.children}
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(ProcessLookupError):
            if entry.name.isdigit() and os.getsid(int(entry.name)) in led:
                found.append(Identity.of(int(entry.name)))
    return [identity for identity in found if identity is not None]


def command(pid: int) -> list[str]:
    """The name of a process's program; nothing when it has ended meanwhile."""
    try:
        return [Path(f"/proc/{pid}/comm").read_text().strip()]
    except OSError:
        return []


@pytest.mark.alone
def test_a_run_on_bmv2_has_all_that_one_on_the_embedded_switch_has(start: Callable[..., Run]) -> None:
    run = start("--duration", "14", "--seed", "3", "--compiler", "fairlane", "--no-rtt-check")
    run.wait_for(flows_are_up)
    record = run.record()
    processes = members(record)
    names = {name for process in processes for name in command(process.pid)}
    assert "simple_switch_g" in names and ("fairlane-link" in names or probes.has_qdisc("netem"))
    assert run.process.wait(90) == 0, run.printed()
    assert leftovers.interfaces(record.prefix) == [] and not record.path.exists()
    assert not [p for p in processes if p.alive()]

    summary = json.loads((run.out / "summary.json").read_text())
    assert (summary["experiment"], summary["target"], summary["events"]) == ("als-3", "bmv2", [])
    assert "compiled by fairlane-compile" in run.printed() and "BMv2 counts packets" in summary["shaping"]
    assert all(f["goodput_bps"] > 0 for f in summary["flows"])
    # The same checks, by the same code; those of them that half a minute of load on the machine does not decide.
    values = {c["name"]: c["value"] for c in summary["checks"]}
    assert values["seconds with n_conn exact"] >= 0.9
    assert values["sender packets with R_d <= R_f"] == 1.0
    assert values["R_f in force after a join"] <= 2.0
    # 1233 packets/s of 1014 bytes are 10 Mb/s: a rate in packets that were off would show here.
    assert 0.5 < values["bottleneck utilisation"] <= 1.01
    bottleneck = next(x for x in summary["links"] if x["name"] == summary["bottleneck"])
    assert 1 < bottleneck["mean_queue_packets"] < 250
    if not probes.has_qdisc("netem"):
        assert summary["delay_lines"]["lost"] == 0 and 0 < summary["delay_lines"]["late_mean_us"] < 2000


def test_a_killed_switch_and_a_killed_delay_line_do_not_end_a_run(start: Callable[..., Run]) -> None:
    run = start("--duration", "16", "--restart-after", "1", "--no-rtt-check")
    run.wait_for(flows_are_up)
    os.kill(run.child("simple_switch_grpc .*--device-id 2 "), signal.SIGKILL)
    run.wait_for(lambda text: "switch s2 is started again" in text)
    if not probes.has_qdisc("netem"):
        os.kill(run.child("fairlane-link "), signal.SIGKILL)
        run.wait_for(lambda text: "the delay lines' process is started again" in text)
    assert run.process.wait(90) == 0, run.printed()
    summary = json.loads((run.out / "summary.json").read_text())
    assert summary["events"][0]["what"] == "switch s2 was killed by SIGKILL; it is started again in 1 s"
    # Filled again, its queues set again: packets arrive at the end, and the record of its ports goes on without a step back.
    with (run.out / "flows.csv").open() as file:
        assert sum(float(r["goodput_bps"]) for r in csv.DictReader(file) if float(r["time_s"]) > 14) > 0
    with (run.out / "raw" / "s2.csv").open() as file:
        rows = list(csv.DictReader(file))
    for port in {r["port"] for r in rows}:
        sums = [int(r["tx_bytes"]) for r in rows if r["port"] == port]
        assert sums == sorted(sums)
    assert not (run.out / "raw" / "s2.2.csv").exists()


def test_a_run_that_is_killed_leaves_no_process_and_only_what_the_next_one_removes(
    start: Callable[..., Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    sockets = set(Path("/tmp").glob("bmv2-[12]-notifications.ipc"))
    monkeypatch.setenv("TMPDIR", str(temporary))
    run = start("--duration", "40", "--no-rtt-check")
    run.wait_for(flows_are_up)
    record = run.record()
    processes = members(record)
    hosts = {os.readlink(f"/proc/{p.pid}/ns/net") for p in processes} - {os.readlink("/proc/self/ns/net")}
    assert len(hosts) == 20 and len(processes) > 40
    run.process.kill()
    run.process.wait()
    until(lambda: not [p for p in processes if p.alive()], what="the end of the run's children")
    # Hosts' namespaces have no name: they went with their last process.
    assert not hosts & {_namespace(path) for path in Path("/proc").iterdir() if path.name.isdigit()}
    leftovers.clean()
    assert leftovers.interfaces(record.prefix) == [] and not record.path.exists()
    # Nor sockets as simple_switch makes them without being asked (/tmp/bmv2-1-notifications.ipc).
    assert not [*temporary.iterdir(), *(set(Path("/tmp").glob("bmv2-[12]-notifications.ipc")) - sockets)]
    # Half-written results are hidden, and the next run beside them removes them.
    assert {p.name for p in tmp_path.iterdir() if not p.name.startswith(".")} == {"printed", "tmp"}


def _namespace(process: Path) -> str | None:
    try:
        return os.readlink(process / "ns" / "net")
    except OSError:
        return None


def test_a_taken_thrift_port_is_refused_before_anything_starts(start: Callable[..., Run]) -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", GRPC_PORT + 1001))
        taken.listen()
        run = start()
        assert run.process.wait(30) == 2
    assert f"fairlane: port {GRPC_PORT + 1001} is taken, and a switch serves Thrift on it." in run.printed()
    assert not run.out.exists()

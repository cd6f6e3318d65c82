"""Children die with their run, and what a dead run left behind is found again, and nothing else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fairlane import probes
from fairlane.errors import Refusal, RunFailed
from fairlane.fabrics import leftovers
from fairlane.fabrics.leftovers import RunRecord
from fairlane.fabrics.processes import Identity, Process, spawn, stop_all
from fairlane.fabrics.supervisor import MAX_RESTARTS, Supervisor
from tests.waiting import until

ROOT = probes.ROOT


def wait_until_gone(pid: int) -> None:
    until(lambda: Identity.of(pid) is None, what=f"the end of process {pid}")


def test_a_child_ends_when_asked(tmp_path: Path) -> None:
    child = spawn("sleeper", ["sleep", "60"], tmp_path / "log")
    stop_all([child])
    assert child.exit_code() == -signal.SIGTERM and child.how_it_ended() == "was killed by SIGTERM"


def test_a_deaf_child_is_made_to_end(tmp_path: Path) -> None:
    child = spawn("deaf", ["sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 0.1; done"], tmp_path / "log")
    until(lambda: child.last_words() == "deaf")
    stop_all([child], grace_s=0.2)
    assert child.exit_code() == -signal.SIGKILL


@pytest.mark.parametrize("with_children", [False, pytest.param(True, marks=pytest.mark.skipif(os.geteuid() != 0, reason="needs root"))])
def test_children_die_with_a_killed_parent(tmp_path: Path, with_children: bool) -> None:
    pids = tmp_path / "pids"
    # With children of its own, the grandchild (another session even) must go too.
    script = f"sleep 60 & setsid sleep 61 & echo $! >> {pids}; sleep 60" if with_children else f"echo $$ > {pids}; exec sleep 60"
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            (
                "import sys, time; from pathlib import Path; from fairlane.fabrics.processes import spawn\n"
                f"p = spawn('x', ['sh', '-c', {script!r}], Path({str(tmp_path / 'log')!r}), with_children={with_children})\n"
                "print(p.pid, flush=True); time.sleep(60)"
            ),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    child = int(parent.stdout.readline())
    until(lambda: pids.exists() and pids.read_text().strip())
    session = Identity.of(child).session()
    assert session
    parent.kill()
    parent.wait()
    wait_until_gone(child)
    for member in session:
        wait_until_gone(member.pid)
    if with_children:
        remaining = subprocess.run(["pgrep", "-f", "^sleep 61$"], capture_output=True, text=True, check=False).stdout.split()
        assert not [p for p in remaining if Identity.of(int(p))]


def test_a_process_is_not_mistaken_for_a_later_one() -> None:
    me = Identity.of(os.getpid())
    assert me.alive() and not Identity(me.pid, me.started + 1).alive()
    assert Identity.of(2**22 + 1) is None


def dead_run(folder: Path, children: list[Identity]) -> None:
    (folder / "f000.json").write_text(
        json.dumps({"prefix": "f000-", "what": "a run", "owner": [os.getpid(), 1], "children": [[c.pid, c.started] for c in children]})
    )


def test_only_what_dead_runs_left_is_removed(tmp_path: Path) -> None:
    mine, others = (spawn("sleeper", ["sleep", "60"], tmp_path / "log") for _ in range(2))
    live = RunRecord.create("this test", tmp_path)
    live.add(others.pid)
    reused = Identity(others.pid, Identity.of(others.pid).started - 5)  # the number was another process's once
    dead_run(tmp_path, [Identity.of(mine.pid), reused])
    try:
        removed = leftovers.clean(tmp_path)
        assert f"process {mine.pid}" in removed
        assert mine.wait(2.0) == -signal.SIGKILL
        assert f"process {others.pid}" not in removed and others.exit_code() is None
        assert not (tmp_path / "f000.json").exists() and live.path.exists()
    finally:
        stop_all([mine, others])
    assert live.release() == [] and not live.path.exists()


IN_ANOTHER_NAMESPACE = """
import os, signal, sys, time
from pathlib import Path
from fairlane.fabrics.leftovers import RunRecord
record = RunRecord.create("a run", Path(sys.argv[1]), ports=[9])
record.add(os.getpid())
print("holds", flush=True)
time.sleep(600)
"""


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="a namespace of processes needs root")
def test_a_live_run_in_another_namespace_is_left_alone(tmp_path: Path) -> None:
    """Its number is no process's here, or another's."""
    inside = [
        "unshare",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "sh",
        "-c",
        'for i in $(seq 300); do /bin/true; done; "$@"; exit $?',
        "sh",
    ]
    process = subprocess.Popen(
        [*inside, sys.executable, "-c", IN_ANOTHER_NAMESPACE, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    )
    assert process.stdout.readline() == "holds\n"
    (record,) = leftovers.records(tmp_path)
    assert record.alive() and not record.owner.alive() and not record.reachable()
    assert leftovers.clean(tmp_path) == [] and record.path.exists()
    assert leftovers.stop_live(0.1, tmp_path) == [] and process.poll() is None
    with pytest.raises(Refusal, match="port 9 belongs to a run that is under way"):
        RunRecord.create("another", tmp_path, ports=[9])
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    until(lambda: not record.alive())
    leftovers.clean(tmp_path)
    assert not list(tmp_path.glob("f*"))


def test_files_that_are_no_records_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "fabc.json").write_text('{"prefix": "", "what": "x", "owner": [1, 1], "children": []}')
    (tmp_path / "fabd.json").write_text("half a rec")
    assert leftovers.clean(tmp_path) == []
    assert len(list(tmp_path.iterdir())) == 2


class Dying:
    """Starts processes that end at once."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.starts = folder, 0

    def __call__(self) -> Process:
        self.starts += 1
        process = spawn("s1", ["sh", "-c", "echo out of luck; exit 7"], self.folder / "s1.log")
        process.wait(5.0)
        return process


def test_what_dies_is_said_and_started_again_but_not_for_ever(tmp_path: Path) -> None:
    said: list[str] = []
    dying = Dying(tmp_path)
    supervisor = Supervisor(0.0, lambda event: said.append(event.what))
    supervisor.watch("switch s1", dying(), dying)
    with pytest.raises(RunFailed, match="^switch s1 died 6 times: the run ends."):
        for _ in range(100):
            supervisor.poll()
    assert dying.starts == 1 + MAX_RESTARTS
    assert said[0].startswith("switch s1 ended with code 7; it is started again in 0 s (last output: out of luck")
    assert said[1] == "switch s1 is started again"


def test_a_dead_process_stays_away_for_its_time(tmp_path: Path) -> None:
    dying = Dying(tmp_path)
    supervisor = Supervisor(30.0, lambda event: None)
    supervisor.watch("switch s1", dying(), dying)
    for _ in range(5):
        supervisor.poll()
    assert dying.starts == 1

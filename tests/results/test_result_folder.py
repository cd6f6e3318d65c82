"""Results of runs beside each other: none is lost, whoever runs, ends or is killed in the same folder."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlane import probes
from fairlane.errors import Refusal
from fairlane.results import held, result_folder
from fairlane.results.result_folder import ResultFolder
from tests.waiting import until

ROOT = probes.ROOT

HOLDS = """
import sys, time
from pathlib import Path
from fairlane.results.result_folder import ResultFolder
folder = ResultFolder(Path(sys.argv[1]))
(folder.work / "raw").mkdir()
for name in sys.argv[2:]:
    (folder.work / name).write_text("x")
print("holds", flush=True)
time.sleep(600)
"""


def holder(out: Path, *files: str) -> subprocess.Popen:
    """A process that has reserved a result folder, and works in it."""
    process = subprocess.Popen([sys.executable, "-c", HOLDS, str(out), *files], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout.readline() == "holds\n"
    return process


def kill(process: subprocess.Popen) -> None:
    process.kill()
    process.wait()
    process.stdout.close() if process.stdout else None


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_half_written_results_of_a_killed_run_go_and_those_of_a_live_one_stay(tmp_path: Path) -> None:
    live, dead = holder(tmp_path / "live", "raw/s1.csv"), holder(tmp_path / "dead", "raw/s1.csv", "summary.json")
    try:
        kill(dead)
        assert names(tmp_path) == [".dead.unfinished", ".live.unfinished"]
        ResultFolder(tmp_path / "new").discard()
        assert names(tmp_path) == [".live.unfinished"] and (tmp_path / ".live.unfinished/raw/s1.csv").is_file()
    finally:
        kill(live)


def test_complete_records_of_a_killed_run_are_kept_under_its_name(tmp_path: Path) -> None:
    kill(holder(tmp_path / "a", "raw/run.json", "raw/s1.csv", "summary.json"))
    folder = ResultFolder(tmp_path / "b")
    folder.discard()
    assert folder.rescued == [tmp_path / "a"] and names(tmp_path) == ["a"] and names(tmp_path / "a") == ["raw"]
    kill(holder(tmp_path / "c", "raw/run.json"))
    with pytest.raises(Refusal, match="has the complete records of a run that was killed: 'fairlane report .*c' evaluates them"):
        ResultFolder(tmp_path / "c")


def test_what_is_not_provably_abandoned_is_left_alone(tmp_path: Path) -> None:
    """Without a lock, of another boot or machine, with a link or a pipe in place of the lock, and folders of earlier versions."""
    for name in ("nolock", "boot", "link", "pipe"):
        (tmp_path / f".{name}.unfinished/raw").mkdir(parents=True)
    (tmp_path / ".old.unfinished-99999999").mkdir()
    (tmp_path / f".boot.unfinished/{held.LOCK}").write_text("another boot\n")
    own = tmp_path / "own"
    own.write_bytes(Path("/proc/sys/kernel/random/boot_id").read_bytes())
    (tmp_path / f".link.unfinished/{held.LOCK}").symlink_to(own)
    os.mkfifo(tmp_path / f".pipe.unfinished/{held.LOCK}")
    before = names(tmp_path)
    ResultFolder(tmp_path / "new").discard()
    assert names(tmp_path) == before
    (tmp_path / ".nolock.unfinished" / held.LOCK).write_bytes(own.read_bytes())
    ResultFolder(tmp_path / "new").discard()
    assert names(tmp_path) == [name for name in before if name != ".nolock.unfinished"]


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make a folder of another user")
def test_root_removes_nothing_of_another_user(tmp_path: Path) -> None:
    kill(holder(tmp_path / "theirs", "raw/s1.csv"))
    os.chown(tmp_path / ".theirs.unfinished", 12345, 12345)
    ResultFolder(tmp_path / "new").discard()
    assert names(tmp_path) == [".theirs.unfinished"]


def test_a_folder_that_another_run_will_write_is_refused_at_the_start(tmp_path: Path) -> None:
    other = holder(tmp_path / "a")
    try:
        with pytest.raises(Refusal, match=r"another run will write it, and works in .*/\.a\.unfinished"):
            ResultFolder(tmp_path / "a")
    finally:
        kill(other)
    ResultFolder(tmp_path / "a").discard()
    assert names(tmp_path) == []


def test_results_are_published_beside_what_appeared_meanwhile(tmp_path: Path) -> None:
    folder = ResultFolder(tmp_path / "a")
    (folder.work / "summary.json").write_text("{}")
    for name in ("a", "a-2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "theirs").touch()
    assert folder.publish() == tmp_path / "a-3"
    assert names(tmp_path) == ["a", "a-2", "a-3"] and names(tmp_path / "a-3") == ["summary.json"]


def test_default_names_of_one_second_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(time, "strftime", lambda _: "20240131-235959")
    folders = [ResultFolder.reserve(None, "als-3", 1) for _ in range(3)]
    for folder in folders[:2]:
        folder.publish()
    folders.append(ResultFolder.reserve(None, "als-3", 1))
    first = "20240131-235959-seed1"
    assert [folder.final.name for folder in folders] == [first, f"{first}-2", f"{first}-3", f"{first}-4"]


def test_writing_replaces_links_and_does_not_follow_them(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("theirs")
    (tmp_path / "page").symlink_to(tmp_path / "target")
    result_folder.write_whole(tmp_path / "page", "ours")
    assert (tmp_path / "target").read_text() == "theirs" and (tmp_path / "page").read_text() == "ours"
    assert not (tmp_path / "page").is_symlink() and names(tmp_path) == ["page", "target"]
    os.chmod(tmp_path / "page", 0o666 & ~result_folder._umask())
    (tmp_path / "plain").write_text("")
    assert (tmp_path / "page").stat().st_mode == (tmp_path / "plain").stat().st_mode
    (tmp_path / "new").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileExistsError):
        result_folder.write_new(tmp_path / "new", "ours")
    assert not (tmp_path / "nowhere").exists()


def test_the_scratch_folder_of_a_live_study_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its process is called here: its own is a number of no process, as one of another namespace would be."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code = (
        "import time; from fairlane.results import held\nwith held.scratch('fairlane-study-') as made:\n"
        "    (made / 'records').write_text('x'); print('holds', flush=True); time.sleep(600)"
    )
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    processes = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT, env=env) for _ in range(2)]
    assert [process.stdout.readline() for process in processes] == ["holds\n"] * 2
    assert len(names(tmp_path)) == 2
    kill(processes[0])
    with held.scratch("fairlane-study-") as made:
        assert len(names(tmp_path)) == 2 and made.name in names(tmp_path)
    assert [names(path) for path in tmp_path.iterdir()] == [[held.LOCK, "records"]]
    kill(processes[1])


def second_begins() -> None:
    """Runs that start now have the same second in their names, most of the time."""
    time.sleep(1.02 - time.time() % 1)


def _four_runs(tmp_path: Path, begin: Callable[[int, list[str]], subprocess.Popen]) -> None:
    """Four runs with the same default name, one of them killed, and a fifth after them: every result that was finished is there."""
    results = tmp_path / "results" / "als-3"
    command = [sys.executable, "-m", "fairlane", "run", "als-3", "--duration", "8"]
    second_begins()
    runs = [begin(number, command if number else [*command[:-1], "3000"]) for number in range(4)]
    until(lambda: results.is_dir() and len(names(results)) >= 4)
    # The long run's name is known by its records alone.
    until(lambda: any(path.is_file() for path in results.glob(".*.unfinished/raw/controller.csv")))
    assert all(run.wait(100) == 0 for run in runs[1:])
    os.killpg(runs[0].pid, signal.SIGKILL)
    runs[0].wait()
    half = [name for name in names(results) if name.startswith(".")]
    assert len(half) == 1, names(results)
    subprocess.run(command, cwd=tmp_path, env=_environment(), check=True, capture_output=True)
    done = names(results)
    assert len(done) == 4 and not any(name.startswith(".") for name in done), done
    for name in done:
        assert json.loads((results / name / "summary.json").read_text())["duration_s"] == 8.0
        assert (results / name / "rates.png").is_file() and (results / name / "raw" / "run.json").is_file()


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def test_four_runs_of_one_second_lose_nothing(tmp_path: Path) -> None:
    def begin(_: int, command: list[str]) -> subprocess.Popen:
        return subprocess.Popen(command, cwd=tmp_path, env=_environment(), stdout=subprocess.DEVNULL, start_new_session=True)

    _four_runs(tmp_path, begin)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="a namespace of processes needs root")
@pytest.mark.skipif(shutil.which("unshare") is None, reason="no unshare (util-linux) in PATH")
def test_four_runs_in_two_namespaces_of_processes_lose_nothing(tmp_path: Path) -> None:
    """Two of the runs have numbers there that are no process's here; the run that is killed is one of them."""
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

    def begin(number: int, command: list[str]) -> subprocess.Popen:
        wrapped = [*inside, *command] if number < 2 else command
        return subprocess.Popen(wrapped, cwd=tmp_path, env=_environment(), stdout=subprocess.DEVNULL, start_new_session=True)

    _four_runs(tmp_path, begin)

"""Ctrl-C ends a command with exit code 130 and one sentence, SIGTERM and SIGHUP with 143, whenever they come: also while Python still imports
modules."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fairlane import probes

FAIRLANE = probes.VENV_BIN / "fairlane"
COMMANDS = (
    ("run", "als-3", "--duration", "4000", "--out", "o"),
    ("run", "dumbbell", "--flow", "rap:1", "--duration", "9000", "--out", "o"),
    ("sweep", "als-8", "--out", "o"),
    ("paper", "als-8", "--out", "o"),
)


def _processor_s(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def _takes_signals(pid: int) -> bool:
    """Whether a process of ours has its own handlers; what comes before is the interpreter's own. SIGHUP is the last, and Python has none for it."""
    caught = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGHUP - 1) & 1)


@pytest.mark.timeout(900)
@pytest.mark.skipif(not FAIRLANE.is_file(), reason="no fairlane in .venv/bin: run 'make build'")
@pytest.mark.parametrize(
    ("number_of_signal", "times"),
    [
        (signal.SIGINT, 6),
        (signal.SIGTERM, 2),
        (signal.SIGHUP, 2),
        *(pytest.param(number, 20, marks=pytest.mark.long) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)),
    ],
)
def test_an_interrupt_at_any_moment_of_the_start_gives_its_code_and_no_traceback(number_of_signal: int, times: int, tmp_path: Path) -> None:
    """Ctrl-C goes to a process group, as a terminal has it, so that every process gets it; the others to the command alone, as from `kill`."""
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    for number in range(times):
        command = COMMANDS[number % len(COMMANDS)]
        folder = tmp_path / str(number)
        folder.mkdir()
        wanted_s = rng.uniform(0, 1.5)
        process = subprocess.Popen(
            [FAIRLANE, *command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        while process.poll() is None and not (_takes_signals(process.pid) and _processor_s(process.pid) >= wanted_s):
            time.sleep(0.002)
            if command[0] != "run" and (folder / "o" / "points").is_dir():
                time.sleep(rng.uniform(0, 1))  # the parent waits for its workers, which import: it uses no processor
                break
        (os.killpg if number_of_signal == signal.SIGINT else os.kill)(process.pid, number_of_signal)
        out, err = process.communicate(timeout=60)
        what = f"seed {seed}, {command}, after {wanted_s:.3f} s of processor time: {process.returncode}\n{out}\n{err}"
        assert process.returncode == (130 if number_of_signal == signal.SIGINT else 143), what
        assert "Traceback" not in out + err and "Error" not in err, what
        assert err.startswith(f"fairlane: ended by {signal.Signals(number_of_signal).name}"), what
        assert not list(folder.glob("**/.*unfinished*")), what


def test_python_m_fairlane_is_the_same_program() -> None:
    done = subprocess.run([sys.executable, "-m", "fairlane", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("fairlane ")


def test_an_interrupt_while_a_running_command_imports_waits_for_what_cleans_up(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(0.1)\nwhole = True\n", encoding="utf-8"
    )
    script = """
import sys, time
from fairlane import __main__, cli, errors

def command():
    try:
        import slow
        time.sleep(10)
    except errors.Interrupted as error:
        print("cleaned up after", error.signal_name, sys.modules["slow"].whole)
        raise SystemExit(error.code)

cli.main = command
__main__.main()
"""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "cleaned up after SIGINT True\n", "")


def test_a_folder_whose_maker_is_interrupted_before_it_has_its_name_goes(tmp_path: Path) -> None:
    script = """
import os, signal, sys
from pathlib import Path
from fairlane.results import held

locked = held._locked

def interrupted(folder):
    os.kill(os.getpid(), signal.SIGINT)
    return locked(folder)

held._locked = interrupted
try:
    held.Held.make(Path(sys.argv[1]))
except KeyboardInterrupt:
    print("interrupted")
"""
    work = tmp_path / ".o.unfinished"
    done = subprocess.run([sys.executable, "-c", script, str(work)], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")
    assert not work.exists()


def test_an_interrupt_that_python_drops_comes_again(tmp_path: Path) -> None:
    script = """
import os, signal, time
from fairlane import __main__, cli, errors
from fairlane.fabrics.interrupts import interruptible

class Freed:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0)

def command():
    try:
        Freed()
        time.sleep(10)
    except errors.Interrupted as error:
        print("cleaned up after", error.signal_name)
    try:
        with interruptible():
            Freed()
            time.sleep(10)
    except errors.Interrupted as error:
        print("cleaned up after", error.signal_name)
        raise SystemExit(error.code)

cli.main = command
__main__.main()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (143, 2 * "cleaned up after SIGTERM\n", "")

"""The process that serves a run's page: what passes between the two, and that neither harms the other."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.errors import CANNOT_RUN_HERE
from fairlane.fabrics import virtual_fabric
from fairlane.fabrics.processes import Identity
from fairlane.hosts import own_algorithms

pytestmark = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")
if virtual_fabric.native is not None:
    from fairlane.live.page_process import Wire

PATIENCE_S = 60.0


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


@given(st.lists(st.binary(max_size=300_000), max_size=12), st.data())
def test_messages_arrive_whole_and_in_order_however_slowly_they_are_read(messages: list[bytes], data: st.DataObject) -> None:
    here, there = socket.socketpair()
    with here, there:
        ours, theirs = Wire(here), Wire(there)
        got: list[bytes] = []
        for message in messages:
            ours.post(message)  # never waits: far more than the sockets hold may be on its way
            if data.draw(st.booleans()):
                got += theirs.take()
        while not ours.flush():
            got += theirs.take()
        got += theirs.take()
        assert got == messages and not theirs.closed
        here.close()
        assert list(theirs.take()) == [] and theirs.closed
        theirs.post(b"to nobody")


def test_one_end_waits_for_the_other_and_for_its_end() -> None:
    here, there = socket.socketpair()
    got: list[object] = []
    reader = threading.Thread(target=lambda: got.extend(Wire(there).receive()))
    reader.start()
    with there:
        with here:
            wire = Wire(here)
            for number in range(50):
                wire.send((number, bytes(40_000)))
        reader.join(PATIENCE_S)
    assert [number for number, _ in got] == list(range(50))


class Live:
    """`fairlane run --live`, and the process of its page."""

    def __init__(self, folder: Path, *options: str, seconds: float = 30.0) -> None:
        self.out = folder / "out"
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "fairlane",
                "run",
                "dumbbell",
                "--flow",
                "als:2",
                "--flow",
                "tcp-sack:1",
                "--duration",
                str(seconds),
                "--out",
                str(self.out),
                "--live",
                *options,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        self.said = ""
        self.url = ""
        for line in self.process.stdout:
            self.said += line
            if found := re.search(r"live view: (http://\S+)", line):
                self.url = found[1]
                break
        assert self.url, self.said
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        assert len(children) == 1
        self.page = Identity.of(int(children[0]))

    def end(self) -> int:
        """Its exit code; what it said is in `said`."""
        self.said += self.process.communicate(timeout=PATIENCE_S)[0]
        return self.process.returncode

    def times(self) -> list[float]:
        with urllib.request.urlopen(self.url + "data.json", timeout=PATIENCE_S) as answer:
            return sorted({row["time_s"] for row in json.load(answer)["links"]})


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Callable[..., Live]]:
    made: list[Live] = []

    def make(*options: str, seconds: float = 30.0) -> Live:
        made.append(Live(tmp_path, *options, seconds=seconds))
        return made[-1]

    yield make
    for one in made:
        one.page.kill(signal.SIGKILL)
        one.process.kill()
        one.process.communicate()


def test_a_run_whose_page_dies_goes_on_and_says_so(live: Callable[..., Live]) -> None:
    run = live("--live-speed", "0")
    run.page.kill(signal.SIGKILL)
    assert run.end() == 0 and "the page's process has ended; the run continues without it" in run.said
    assert json.loads((run.out / "summary.json").read_text())["live_changes"] == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_page_ends_with_its_run_however_that_ends(live: Callable[..., Live], number: int) -> None:
    run = live("--live-speed", "1")
    until(lambda: len(run.times()) > 2)
    os.kill(run.process.pid, number)
    run.end()
    until(lambda: not run.page.alive())
    with pytest.raises(OSError), urllib.request.urlopen(run.url, timeout=PATIENCE_S):
        pass


def test_a_run_does_not_wait_for_a_page_that_stands_still(live: Callable[..., Live]) -> None:
    run = live("--live-speed", "2", seconds=6.0)
    until(lambda: len(run.times()) > 2)
    run.page.kill(signal.SIGSTOP)
    assert run.end() == 0 and (run.out / "summary.json").is_file()


OWN = """
from fairlane.hosts.algorithms.base import Kind
from fairlane.hosts.algorithms.als import AlsParameters, AlsReceiver, AlsSender

KINDS = (Kind("own-scheme", "ALS by another name", AlsParameters, AlsSender, AlsReceiver),)
"""


def test_a_page_knows_algorithms_of_ones_own_file(live: Callable[..., Live], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(own_algorithms.FILES_VARIABLE, "mine.py")
    run = live("--flow", "own-scheme:1", "--live-speed", "max", seconds=2.0)
    assert run.end() == 0, run.said
    assert "own-scheme" in {flow["kind"] for flow in json.loads((run.out / "summary.json").read_text())["flows"]}


def test_a_port_that_is_taken_is_refused_before_the_run(tmp_path: Path) -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        command = [
            sys.executable,
            "-m",
            "fairlane",
            "run",
            "dumbbell",
            "--flow",
            "als:1",
            "--duration",
            "2",
            "--out",
            str(tmp_path / "out"),
        ]
        done = subprocess.run([*command, "--live", "--live-port", str(port)], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == CANNOT_RUN_HERE and f"--live-port {port}" in done.stderr and not (tmp_path / "out").exists()

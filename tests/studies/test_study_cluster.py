"""A study on a dask cluster, made by the commands of docs/study.md: the same bytes as on this machine's cores, also when a worker is killed."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from fairlane.fabrics import virtual_fabric
from fairlane.studies import carry_out, read
from tests.studies.test_study import STUDY, contents, kept, sweep, wait_for_results


def dask(*arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "dask", *arguments]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


@pytest.fixture
def cluster() -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    scheduler = dask("scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard", "--no-show")
    workers = [dask("worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard") for _ in range(2)]
    yield address, workers
    for process in (*workers, scheduler):
        process.kill()
        process.wait()


@pytest.mark.timeout(180)
def test_a_cluster_gives_the_same_bytes_when_a_worker_is_killed(cluster: tuple[str, list[subprocess.Popen[bytes]]], tmp_path: Path) -> None:
    virtual_fabric.check_built()
    address, workers = cluster
    file = tmp_path / "small.toml"
    file.write_text(STUDY)
    run = sweep(file, tmp_path / "cluster", "--scheduler", address)
    wait_for_results(tmp_path / "cluster", 2)
    assert len(kept(tmp_path / "cluster")) < 12
    os.kill(workers[0].pid, signal.SIGKILL)
    output = run.communicate()[0]
    assert run.returncode == 0, output
    # It computed a run, or held the result of one that the client had not fetched: then Dask says so, and has it computed again.
    lost = r"The worker tcp://127\.0\.0\.1:\d+ is lost; small kind=.* runs again\.|Couldn't gather \d+ keys, rescheduling"
    assert re.search(lost, output), output
    carry_out.carry_out(read.load(file), tmp_path / "here", Console(quiet=True), workers=2)
    assert contents(tmp_path / "cluster") == contents(tmp_path / "here")

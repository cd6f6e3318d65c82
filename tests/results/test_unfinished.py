"""What a run has recorded stays, whatever stops its evaluation, and can be evaluated later."""

from __future__ import annotations

import dataclasses
import errno
import gc
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from fairlane import errors, execute, probes
from fairlane.experiments import loader
from fairlane.fabrics.places import VIRTUAL
from fairlane.results import metrics

ROOT = probes.ROOT


def _run(out: Path) -> None:
    experiment = loader.load(loader.find("als-3"), 12.0)
    execute.execute(VIRTUAL.ready(experiment), out, Console(quiet=True))


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        (MemoryError(), errors.NO_SPACE, "The memory is used up."),
        (OSError(errno.ENOSPC, "No space left on device", "flows.csv"), errors.NO_SPACE, "The disk is full. (flows.csv)"),
        (ValueError("odd"), errors.FAULT, "A bug in Fairlane: ValueError: odd."),
    ],
)
def test_an_evaluation_that_fails_is_done_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception, code: int, said: str
) -> None:
    _run(tmp_path / "whole")
    with monkeypatch.context() as broken:

        def compute(*_: object) -> None:
            raise fault

        broken.setattr(metrics, "compute", compute)
        with pytest.raises(errors.Unfinished) as raised:
            _run(tmp_path / "half")
    assert gc.isenabled()
    assert raised.value.code == code and str(raised.value).startswith(said) and "half/raw" in str(raised.value)
    assert sorted(p.name for p in (tmp_path / "half").iterdir()) == ["made.json", "raw"]
    execute.finish(tmp_path / "half", Console(quiet=True))
    for path in sorted((tmp_path / "whole").iterdir()):
        if path.suffix in (".csv", ".json") and path.name != "made.json":
            # An algorithm's parameters come back as an object of another class: the same names and values.
            assert (
                json.loads(path.read_text()) == json.loads((tmp_path / "half" / path.name).read_text())
                if path.suffix == ".json"
                else (path.read_bytes() == (tmp_path / "half" / path.name).read_bytes())
            ), path.name


def test_every_error_of_the_machine_has_a_sentence_and_a_code() -> None:
    for number in (errno.ENOSPC, errno.EMFILE, errno.ENOMEM, errno.EDQUOT):
        assert errors.code_of(OSError(number, os.strerror(number))) == errors.NO_SPACE
    assert errors.code_of(RuntimeError("can't start new thread")) == errors.NO_SPACE
    no_room = ImportError("libx.so: failed to map segment from shared object")
    assert errors.code_of(no_room) == errors.NO_SPACE and errors.say(no_room) == "The memory is used up."
    assert errors.code_of(OSError(errno.EACCES, "Permission denied", "x")) == errors.CANNOT_RUN_HERE
    assert errors.say(OSError(errno.EACCES, "Permission denied", "x")) == "Permission denied. (x)"


@pytest.mark.parametrize("limit", ["-n 24", "-v 250000", "-v 600000", "-f 200"])
def test_limits_of_the_machine_end_in_a_sentence(tmp_path: Path, limit: str) -> None:
    command = f"ulimit {limit}; exec {sys.executable} -m fairlane run als-3 --duration 12 --out {tmp_path}/out"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True)
    assert "Traceback" not in done.stderr + done.stdout, done.stderr
    assert done.returncode in (0, errors.NO_SPACE, errors.RUN_FAILED, errors.CANNOT_RUN_HERE), (done.returncode, done.stderr)
    if limit == "-v 250000":
        assert done.returncode == errors.NO_SPACE and "raise the limit" in done.stderr
    if limit == "-f 200":
        assert "was ended by SIGXFSZ" in done.stderr and "ulimit -a" in done.stderr
    if (tmp_path / "out").exists() and done.returncode:
        assert "The raw records are in" in done.stderr


def test_results_do_not_follow_a_dangling_link(tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to(tmp_path / "nowhere")
    with pytest.raises(errors.Refusal, match="exists already"):
        _run(tmp_path / "out")
    assert dataclasses.is_dataclass(execute.unfinished.Finished)


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--bottleneck", "1e30mbit", "rate_bps: at most 1e+12 bit/s"),
        ("--buffer", "1e30bdp", "queue_packets: at most 10000000 packets"),
        ("--rtt", "1000000000s", "delay_s: at most 1000 s"),
        ("--duration", "1e300", "--duration 1e+300: give a positive number of seconds, at most 1e+07"),
        ("--seed", "9" * 400, "seed: must be in 0 to 2^32 - 1"),
        ("--flow", "rap:" + "9" * 5000, "is not a number of flows"),
        ("--out", "a" * 300, "cannot be written"),
    ],
)
def test_huge_numbers_are_refused(tmp_path: Path, option: str, value: str, said: str) -> None:
    command = [sys.executable, "-m", "fairlane", "run", "dumbbell", "--flow", "rap:1", option, value]
    done = subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60)
    assert done.returncode == errors.BAD_INPUT and said in done.stderr and "Traceback" not in done.stderr, done.stderr[-600:]
    assert not (tmp_path / "results").exists()


def test_a_run_that_the_disk_cannot_hold_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 100_000})())
    with pytest.raises(errors.Refusal, match="would write at least .* MB of records") as raised:
        _run(tmp_path / "out")
    assert raised.value.code == errors.CANNOT_RUN_HERE and list(tmp_path.iterdir()) == []

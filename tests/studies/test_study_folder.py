"""The folder of a study is complete: its first line does it again from a copy of the folder alone, elsewhere, to the same records."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fairlane import errors, probes, skeleton
from fairlane.experiments import expressions
from fairlane.studies import traces

ROOT = probes.ROOT

STUDY = """\
title = "Own files"
bottleneck = "s1->s2"
duration_s = 3.0
seeds = [1, 2]

[sweep]
aqm = ["mine", "red"]
kind = ["own-rate", "tcp-cubic"]

[let]
way = "= 'mine/down.csv' if aqm == 'mine' else 'cellular-drive.mahi'"

[control]
program = "= 'mine/als.p4' if aqm == 'mine' else 'p4src/als.p4'"

[topology]
kind = "dumbbell"
pairs = 2
bottleneck = { rate_bps = 2e6, delay_s = 0.01, queue_packets = 30, queue = "red", trace = TRACE }
access = { rate_bps = 1e8, delay_s = 0.0, queue_packets = 1000 }

[[flows]]
name = "long"
kind = "= kind"

[measure]
long_bps = "= long.goodput_bps"
"""


def sweep(folder: Path, *words: str, code: int = 0) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "fairlane", "sweep", *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=110)
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A study whose P4 program includes a file of another folder, an algorithm, a P4 file in place of one of Fairlane's, and a trace."""
    folder = tmp_path / "home of someone"
    (folder / "mine").mkdir(parents=True)
    (folder / "common").mkdir()
    for path in (ROOT / "p4src").glob("*.p4"):
        shutil.copyfile(path, folder / "mine" / path.name)
    (folder / "mine/port_counters.p4").rename(folder / "common/port_counters.p4")
    als = (folder / "mine/als.p4").read_text()
    assert als.count('#include "port_counters.p4"') == 1
    (folder / "mine/als.p4").write_text(als.replace('#include "port_counters.p4"', '#include "../common/port_counters.p4"'))
    (folder / "mine/down.csv").write_text("time_s,rate_bps\n0,2e6\n1,1e6\n")
    (folder / "study.toml").write_text(STUDY.replace("TRACE", '"= way"'))
    source, _ = skeleton.algorithm("own-rate", folder, False)
    source.write_text(re.sub(r"raise NotImplementedError\(.*\)", "return 500_000.0", source.read_text()))
    return folder


def records(folder: Path) -> list[tuple[str, str, str]]:
    with (folder / "runs.csv").open() as file:
        return [(row["seed"], row["inputs_sha256"], row["records_sha256"]) for row in csv.DictReader(file)]


def test_a_studys_folder_is_done_again_elsewhere(project: Path, tmp_path: Path) -> None:
    sweep(project, "study.toml", "--algorithm", str(project / "own_rate.py"), "--out", "out")
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(project / "out", elsewhere)
    shutil.rmtree(elsewhere / "points")
    project.rename(tmp_path / "gone")
    names = sorted(str(path.relative_to(elsewhere)) for path in (elsewhere / "files").rglob("*") if path.is_file())
    assert {"files/down.csv", "files/own_rate.py", "files/program/common/port_counters.p4", "files/program/mine/als.p4"} <= set(names)
    told = re.match(r"# .* In this folder: fairlane sweep (.*)\n", (elsewhere / "study.toml").read_text())
    assert told is not None
    sweep(elsewhere, *told[1].split())
    first, again = records(elsewhere), records(elsewhere / "AGAIN")
    assert len(first) == 8 and len({digest for _, _, digest in first}) == 8
    assert again == first
    made = json.loads((elsewhere / "made.json").read_text())
    assert set(made["files"]) == set(names) and made["command"][:2] == ["fairlane", "sweep"]
    for path in elsewhere.rglob("*"):
        assert not path.is_file() or "home of someone" not in path.read_bytes().decode(errors="replace"), path


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda folder: (folder / "mine/als.p4").unlink(), r"study\.toml:14: control\.program: no file mine/als\.p4"),
        (lambda folder: (folder / "common/port_counters.p4").unlink(), r"mine/als\.p4 does not compile:"),
        (lambda folder: (folder / "mine/down.csv").unlink(), r"study\.toml:\d+: topology\.bottleneck\.trace: no file mine/down\.csv"),
    ],
    ids=["program", "include", "trace"],
)
def test_what_is_missing_is_found_before_the_first_run(project: Path, break_it, said: str) -> None:
    break_it(project)
    done = sweep(project, "study.toml", "--algorithm", "own_rate.py", "--out", "out", code=errors.BAD_INPUT)
    assert re.search(said, done.stderr), done.stderr
    assert not list((project / "out").rglob("*.json"))


def test_a_program_beside_the_study_is_found_from_any_folder(project: Path, tmp_path: Path) -> None:
    words = ["--algorithm", str(project / "own_rate.py"), "--seeds", "1", "--at", "kind=tcp-cubic", "--out", str(tmp_path / "out")]
    sweep(tmp_path, str(project / "study.toml"), *words)
    assert (tmp_path / "out/files/program/mine/als.p4").is_file()


def test_names_of_files_are_found_wherever_a_study_has_them() -> None:
    names = {"mine/als.p4": "files/program/als.p4"}
    given = {
        "sweep": {"program": ["mine/als.p4", "p4src/als.p4"]},
        "control": {"program": "= program if n > 2 else 'mine/als.p4'"},
        "figures": [{"where": {"program": "mine/als.p4"}}],
        "measure": {"x": "= a.goodput_bps / 2"},
        "bad": "= 'mine/als.p4",
    }
    found = traces.everywhere(given, names)
    assert found["sweep"]["program"] == ["files/program/als.p4", "p4src/als.p4"]
    assert expressions.evaluate(found["control"]["program"], {"n": 1, "program": "x"}) == "files/program/als.p4"
    assert found["figures"][0]["where"] == {"program": "files/program/als.p4"}
    assert found["measure"] == given["measure"] and found["bad"] == given["bad"]

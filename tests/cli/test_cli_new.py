"""`fairlane new algorithm`, in a copy of the project: what it writes fails for the right reason, and works once the equation is in."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fairlane import probes, skeleton
from fairlane.errors import Refusal

ROOT = probes.ROOT
PARTS = ("controller", "experiments", "fairlane", "hosts", "inputs", "p4src", "topologies", "labs")
SOLVED = """\
        if feedback.loss_fraction > 0:
            return self.rate_bps * (1 - feedback.loss_fraction)
        return self.rate_bps + 100_000.0
"""
SOLVED_BY_DELAY = """\
        if lost or queueing_s > 0.01:
            return self.rate_bps * 0.99
        return self.rate_bps + 1000.0
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for part in PARTS:
        shutil.copytree(ROOT / part, tmp_path / part, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "tests" / "hosts").mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path / "tests")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def python(project: Path, *arguments: str, at: Path | None = None) -> subprocess.CompletedProcess:
    """Run a module of Python in a folder. at: where Fairlane is imported from, when not from there."""
    compiler = probes.program("fairlane-compile")
    environment = {**os.environ, "PYTHONPATH": str(at or project), "COLUMNS": "160"}
    if compiler is not None:
        environment["FAIRLANE_BIN"] = str(compiler.parent)
    return subprocess.run(
        [sys.executable, "-m", *arguments], cwd=project, env=environment, capture_output=True, text=True, check=False, timeout=110
    )


def test_a_new_algorithm_fails_until_its_equation_is_in_and_then_runs(project: Path) -> None:
    done = python(project, "fairlane", "new", "algorithm", "my-rate")
    assert done.returncode == 0, done.stderr
    source, test = project / "hosts" / "algorithms" / "my_rate.py", project / "tests" / "hosts" / "test_hosts_my_rate.py"
    assert "hosts/algorithms/my_rate.py" in done.stdout and "tests/hosts/test_hosts_my_rate.py" in done.stdout

    # It is a flow kind at once, and its test says what is missing and where.
    assert "my-rate" in python(project, "fairlane", "list").stdout
    tested = python(project, "pytest", "-q", "-p", "no:cacheprovider", str(test))
    assert tested.returncode == 1
    assert "the equation is missing: write it into hosts/algorithms/my_rate.py, MyRateSender.next_rate_bps" in tested.stdout
    assert "3 failed, 2 passed" in tested.stdout

    text = source.read_text()
    start = text.index("        raise NotImplementedError(")
    source.write_text(text[:start] + SOLVED + text[text.index("\n", start) + 1 :])
    tested = python(project, "pytest", "-q", "-p", "no:cacheprovider", str(test))
    assert tested.returncode == 0, tested.stdout
    if probes.program("fairlane-compile") is None:
        pytest.skip("fairlane-compile is not built: make build")
    pytest.importorskip("fairlane.native")
    ran = python(project, "fairlane", "run", "dumbbell", "--flow", "my-rate:2", "--bottleneck", "1mbit", "--duration", "40", "--out", "out")
    assert ran.returncode == 0, ran.stderr
    summary = json.loads((project / "out" / "summary.json").read_text())
    assert [f["kind"] for f in summary["flows"]] == ["my-rate", "my-rate"]
    assert all(f["goodput_bps"] > 150_000 for f in summary["flows"])


def test_outside_a_checkout_the_two_files_stand_where_one_is(tmp_path: Path) -> None:
    source, test = skeleton.algorithm("my-rate", tmp_path, checkout=False)
    assert (source, test) == (tmp_path / "my_rate.py", tmp_path / "test_my_rate.py")
    tested = python(tmp_path, "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", "--rootdir", str(tmp_path), str(test), at=ROOT)
    assert "write it into my_rate.py, MyRateSender.next_rate_bps" in tested.stdout and "3 failed, 2 passed" in tested.stdout, tested.stdout


def test_a_skeleton_with_acknowledgements_fails_until_its_equation_is_in_and_then_keeps_the_queue_short(tmp_path: Path) -> None:
    source, test = skeleton.algorithm("my-delay", tmp_path, checkout=False, acks=True)
    pytest_ = ("pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", "--rootdir", str(tmp_path), str(test))
    tested = python(tmp_path, *pytest_, at=ROOT)
    assert "write it into my_delay.py, MyDelaySender.next_rate_bps" in tested.stdout and "3 failed, 2 passed" in tested.stdout, (
        tested.stdout
    )
    text = source.read_text()
    start = text.index("        raise NotImplementedError(")
    source.write_text(text[:start] + SOLVED_BY_DELAY + text[text.index("\n", start) + 1 :])
    tested = python(tmp_path, *pytest_, at=ROOT)
    assert tested.returncode == 0, tested.stdout
    pytest.importorskip("fairlane.native")
    command = (
        "run",
        "dumbbell",
        "--algorithm",
        source.name,
        "--flow",
        "my-delay:2",
        "--bottleneck",
        "2mbit",
        "--duration",
        "20",
        "--out",
        "out",
    )
    ran = python(tmp_path, "fairlane", *command, at=ROOT)
    assert ran.returncode == 0, ran.stderr
    link = json.loads((tmp_path / "out" / "summary.json").read_text())["links"][0]
    assert link["utilisation"] > 0.5
    assert link["drops"] in ({}, 0, None) or not any(link["drops"].values())


@pytest.mark.parametrize("acks", [False, True])
def test_no_place_of_the_skeleton_is_left_open(tmp_path: Path, acks: bool) -> None:
    for path in skeleton.algorithm("my-rate", tmp_path, checkout=False, acks=acks):
        text = path.read_text()
        assert not re.search(r"<[a-z ]+>|CLASS|TITLE|SOURCE|PACKAGE", text)
        assert max(map(len, text.splitlines())) <= 140


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("als", "there is a flow kind 'als' already: "),
        ("tcp-reno", "there is a flow kind 'tcp-reno' already: "),
        ("base", "hosts/algorithms/base.py exists already, and is not overwritten"),
        ("My-Rate", "'My-Rate' cannot be a flow kind: use lower-case letters"),
        ("3rate", "'3rate' cannot be a flow kind"),
        ("class", "'class' cannot be a flow kind"),
        ("../rate", "'../rate' cannot be a flow kind"),
    ],
)
def test_names_that_cannot_be_are_refused(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "hosts" / "algorithms").mkdir(parents=True)
    (tmp_path / "tests" / "hosts").mkdir(parents=True)
    (tmp_path / "hosts" / "algorithms" / "base.py").touch()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(Refusal) as refused:
        skeleton.algorithm(name, tmp_path)
    assert said in str(refused.value)
    assert sorted(tmp_path.rglob("*")) == before

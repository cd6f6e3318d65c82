"""Studies: the same bytes when stopped, killed or spread over workers; nothing that was computed is lost; tables, figures and page."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.console import Console

import fairlane
from fairlane import probes
from fairlane.errors import Refusal, RunFailed
from fairlane.fabrics import targets, virtual_fabric
from fairlane.hosts import own_algorithms
from fairlane.inputs import located_toml
from fairlane.inputs.located_toml import ConfigError
from fairlane.studies import carry_out, collect, compare, drawing, page, points, read, schedule
from fairlane.studies.study import Comparison
from tests.waiting import until

STUDY = """
title = "One flow of two kinds beside TCP"
bottleneck = "s1->s2"
duration_s = 3.0
seeds = [1, 2, 3]

[sweep]
kind = ["rap", "tcp-cubic"]
rate_bps = [1e6, 2e6]

[topology]
kind = "dumbbell"
pairs = 2
bottleneck = { rate_bps = "= rate_bps", delay_s = 0.01, queue_packets = 40 }
access = { rate_bps = 100_000_000 }

[[flows]]
name = "one"
kind = "= kind"
start_jitter_s = 0.5

[[flows]]
name = "tcp"
kind = "tcp-sack"

[measure]
one_rate = "= one.mean_bps"
ratio = "= one.mean_bps / tcp.mean_bps"

[[figures]]
title = "Rate"
x = "rate_bps"
y = "one_rate"
series = "kind"

[[compare]]
measure = "one_rate"
of = { kind = "rap" }
to = { kind = "tcp-cubic" }
"""

OWN = """\
from fairlane.hosts.algorithms.base import Interests, Kind, Receiver
from fairlane.hosts.algorithms.daa import DaaParameters, DaaReceiver, DaaSender


class OwnSender(DaaSender):
    def on_start(self, now_s, rng):
        HERE
        return super().on_start(now_s, rng)


KINDS = (Kind("own", "a test", DaaParameters, OwnSender, DaaReceiver),)
"""


@pytest.fixture(autouse=True)
def _built(monkeypatch: pytest.MonkeyPatch) -> None:
    virtual_fabric.check_built()
    monkeypatch.setenv(own_algorithms.FILES_VARIABLE, "")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(STUDY)
    return path


def contents(folder: Path) -> dict[str, bytes]:
    """All of a study's folder but how long runs took, and the command that made it."""
    left_out = ("took.jsonl", "made.json")
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file() and p.name not in left_out}


def sweep(path: Path, out: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "fairlane", "sweep", str(path), "--out", str(out), *arguments]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=path.parent)


def kept(out: Path) -> list[Path]:
    return list((out / "points").glob("*/*.json"))


def wait_for_results(out: Path, number: int) -> None:
    until(lambda: len(kept(out)) >= number)


def workers_of(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(c) for c in children if b"fairlane.studies.worker" in Path(f"/proc/{c}/cmdline").read_bytes()]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished study."""
    folder = tmp_path_factory.mktemp("done")
    (folder / "small.toml").write_text(STUDY)
    carry_out.carry_out(read.load(folder / "small.toml"), folder / "out", Console(quiet=True), workers=2)
    return folder / "out"


@pytest.mark.timeout(300)
def test_a_study_robbed_of_a_worker_killed_and_stopped_ends_with_the_same_bytes(done: Path, file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    killed = sweep(file, out, "--workers", "2")
    wait_for_results(out, 1)
    victim = workers_of(killed.pid)[0]
    os.kill(victim, signal.SIGKILL)
    wait_for_results(out, 3)
    killed.kill()
    output = killed.communicate()[0]
    assert "12 runs, none done before" in output
    assert re.search(rf"A worker \(process {victim}\) ended by signal SIGKILL; small kind=.* runs again\.", output), output

    there = len(kept(out))
    stopped = sweep(file, out, "--workers", "1")
    wait_for_results(out, there + 1)
    children = workers_of(stopped.pid)
    stopped.send_signal(signal.SIGINT)
    output = stopped.communicate()[0]
    assert f"12 runs, {there} of them done before" in output
    assert stopped.returncode == 130 and "Traceback" not in output
    assert re.search(r"ended by SIGINT; \d+ of 12 runs are kept in .*out; the same command continues there", output), output
    assert children and not any(Path(f"/proc/{pid}").exists() for pid in children)

    carry_out.carry_out(read.load(file), out, Console(quiet=True), workers=1)
    assert contents(out) == contents(done)


def test_a_worker_translates_a_program_once_and_reads_the_records_that_it_needs(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten thousand short runs are to take the time of the runs. A program of the reader's own may change, and is translated each time."""
    seen: list[Path] = []
    translate = targets.Toolchain.compile

    def counted(self: targets.Toolchain, source: Path, folder: Path, *more: tuple[Any, ...]) -> tuple[Path, Path]:
        seen.append(source)
        return translate(self, source, folder, *more)

    monkeypatch.setattr(targets.Toolchain, "compile", counted)
    points._folder.cache_clear()
    jobs = points.jobs(read.load(file))
    first = points.run(jobs[0])
    points.run(jobs[1])
    assert len(seen) == 1
    monkeypatch.setattr(points, "needed", lambda *_: None)
    with_all_records = points.run(jobs[0])
    assert len(seen) == 1 and with_all_records.result["values"] == first.result["values"]

    own = tmp_path / "own"
    shutil.copytree(probes.source("p4src/als.p4").parent, own)
    job = dataclasses.replace(
        jobs[0], document=located_toml.Document("own", {**jobs[0].document.values, "control": {"program": str(own / "als.p4")}}, {})
    )
    points.run(job)
    points.run(job)
    assert seen[1:] == [own / "als.p4"] * 2


def test_a_trace_of_ones_own_decides_the_runs_and_goes_with_them(tmp_path: Path) -> None:
    file, own = tmp_path / "followed.toml", tmp_path / "cell.csv"
    text = STUDY.replace('rate_bps = "= rate_bps", ', 'trace = "= file", ').replace(
        "rate_bps = [1e6, 2e6]", 'file = ["cell.csv", "indoor-steps.csv"]'
    )
    file.write_text(text.replace('x = "rate_bps"', 'x = "file"').replace("seeds = [1, 2, 3]", "seeds = [1]"))

    def jobs(rate_bps: int) -> list[points.Job]:
        own.write_text(f"0,{rate_bps}\n")
        return points.jobs(read.load(file))

    slow, fast = jobs(300_000), jobs(3_000_000)
    assert [a.inputs == b.inputs for a, b in zip(slow, fast)] == [False, True, False, True], "only runs that follow the file are done again"
    own.unlink()  # as on another machine
    assert [points.run(pickle.loads(pickle.dumps(job))).result["values"]["one_rate"] < 300_000 for job in (slow[2], fast[2])] == [
        True,
        False,
    ]

    jobs(800_000)
    out = tmp_path / "out"
    carry_out.carry_out(read.load(file), out, Console(quiet=True), workers=1)
    shutil.move(out, tmp_path / "elsewhere" / "out")
    moved = tmp_path / "elsewhere" / "out"
    again = points.jobs(read.load(moved / "study.toml"))
    assert (moved / "files" / "cell.csv").read_text() == "0,800000\n" and [j.inputs for j in again] == [j.inputs for j in jobs(800_000)]


def test_the_time_that_a_study_takes_has_the_start_of_its_workers(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = [dataclasses.replace(job, cost=0.5) for job in points.jobs(read.load(file))]
    collect._announce(Console(), "", jobs, jobs, 3, None)
    seconds = 12 * 0.5 + 3 * schedule.WORKER_S
    assert f"about {seconds:.0f} s of processor time, {seconds / 3:.0f} s by the clock" in capsys.readouterr().out


def test_tables_have_a_row_a_run_with_units_and_all_that_is_needed_to_redo_it(done: Path) -> None:
    table = pd.read_csv(done / "runs.csv")
    assert list(table.columns) == [
        "kind", "rate_bps", "seed", "one_rate_bps", "ratio", "fairlane_version", "inputs_sha256", "records_sha256",
    ]  # fmt: skip
    assert len(table) == 12 and not table.isna().any().any() and table.inputs_sha256.nunique() == 12
    pd.testing.assert_frame_equal(pd.read_parquet(done / "runs.parquet"), table, check_dtype=False)
    means = table.groupby(["kind", "rate_bps"]).one_rate_bps.mean()
    summary = pd.read_csv(done / "points.csv").set_index(["kind", "rate_bps"])
    assert summary.one_rate_bps.to_dict() == pytest.approx(means.to_dict())
    assert (summary.one_rate_bps_low <= summary.one_rate_bps).all() and (summary.one_rate_bps <= summary.one_rate_bps_high).all()


def test_the_study_that_lies_in_the_folder_gives_the_same_runs(done: Path, tmp_path: Path) -> None:
    again = read.load(done / "study.toml")
    inputs = sorted(pd.read_csv(done / "runs.csv").inputs_sha256)
    assert sorted(job.inputs for job in points.jobs(again)) == inputs


def test_the_page_and_the_figures(done: Path) -> None:
    text = (done / "index.html").read_text()
    body = text[text.index("<body>") :]
    assert "paper" not in re.sub(r"<svg.*?</svg>", "", body, flags=re.DOTALL)
    assert "1 Mb/s" in body and "1e+06" not in body and "1000000" not in body
    assert "3 seeds: intervals over fewer than 5 seeds are too narrow" in body
    assert "does not hold" not in body and "NO<" not in body
    assert {p.name for p in (done / "figures").iterdir()} == {"rate.svg", "rate.pdf"}
    assert (done / "figures" / "rate.pdf").read_bytes().startswith(b"%PDF")
    svg = (done / "figures" / "rate.svg").read_text()
    assert ">rate, Mb/s<" in svg and re.search(">one rate, [kM]b/s<", svg)


def test_python_gives_a_frame_and_computes_nothing_twice(done: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    shutil.copytree(done, tmp_path / "out")
    values = located_toml.parse(STUDY, "x").values
    frame = fairlane.sweep(values, out=tmp_path / "out", name="small")
    assert "12 of them done before" in capsys.readouterr().out
    table = pd.read_csv(done / "runs.csv")
    pd.testing.assert_frame_equal(frame, table, check_dtype=False)
    frame = fairlane.sweep(
        values, out=tmp_path / "out", name="small", axes={"kind": ["rap"], "rate_bps": [1e6]}, compare=[], seeds=range(1, 3)
    )
    assert "2 of them done before" in capsys.readouterr().out and len(frame) == 2


@pytest.mark.timeout(120)
def test_a_run_that_fails_leaves_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "own.py").write_text(OWN.replace("HERE", "1 / 0 if now_s < 0 else None"))
    (tmp_path / "small.toml").write_text(STUDY.replace('"tcp-cubic"]', '"own"]').replace('{ kind = "tcp-cubic" }', '{ kind = "own" }'))
    files = read.own_files([tmp_path / "own.py"])
    study = read.load(tmp_path / "small.toml", files=files)
    good = points.jobs(study)
    (tmp_path / "own.py").write_text(OWN.replace("HERE", "1 / 0"))
    study = read.load(tmp_path / "small.toml", files=read.own_files([tmp_path / "own.py"]))
    bad = points.jobs(study)
    # Another text of the user's file is another run; runs without it are the same.
    assert [a.inputs == b.inputs for a, b in zip(good, bad)] == [dict(job.axes)["kind"] == "rap" for job in good]
    with pytest.raises(RunFailed, match=r"ZeroDivisionError: division by zero.*So did 5 more\. The results of the other runs are kept"):
        carry_out.carry_out(study, tmp_path / "out", Console(width=300), workers=2)
    assert len(pd.read_csv(tmp_path / "out" / "runs.csv")) == 6
    assert "own.py, line 7" in capsys.readouterr().out
    assert "failed and is left out" in (tmp_path / "out" / "index.html").read_text()


@pytest.mark.timeout(120)
def test_a_run_that_ends_its_worker_again_and_again_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "LOST_WORKERS", 1)
    (tmp_path / "dies.py").write_text(OWN.replace("HERE", "__import__('os')._exit(7)").replace('"own"', '"dies"'))
    text = STUDY.replace('"rap", "tcp-cubic"', '"dies"').replace("1e6, 2e6", "1e6").replace("seeds = [1, 2, 3]", "seeds = [1]")
    (tmp_path / "small.toml").write_text(text[: text.index("[[compare]]")])
    study = read.load(tmp_path / "small.toml", files=read.own_files([tmp_path / "dies.py"]))
    said: list[str] = []
    ((_, outcome),) = schedule.run(points.jobs(study), said.append, workers=1)
    assert "the process that ran it ended 2 times" in outcome.reason
    assert len(said) == 1 and "ended by exit code 7; small kind=dies rate_bps=1000000.0 seed=1 runs again." in said[0]


def test_a_folder_of_something_else_is_refused(file: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(Refusal, match="holds something else than a study"):
        carry_out.carry_out(read.load(file), tmp_path / "mine", Console(quiet=True))
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize(
    "change, message",
    [
        (('measure = "one_rate"\nof', 'measure = "one_rat"\nof'), r"compare\[0\].measure: no measure 'one_rat'; did you mean 'one_rate'"),
        (('to = { kind = "tcp-cubic" }', 'to = { kind = "tcp-reno" }'), r"compare\[0\].to: picks no point of the sweep: kind = tcp-reno"),
        (('to = { kind = "tcp-cubic" }', "to = { rate_bps = 1e6 }"), r"compare\[0\].of: 'of' and 'to' give values of the same axes"),
        (("ratio = ", "kind = "), r"measure.kind: an axis of the sweep has this name"),
        (("one_rate = ", "rate = "), r"measure.rate: its column in tables is rate_bps, which an axis of the sweep has"),
        (('x = "rate_bps"', 'x = "rat_bps"'), r"figures\[0\].x: no axis or measure 'rat_bps'"),
    ],
)
def test_a_study_that_cannot_be_meant_is_refused(file: Path, change: tuple[str, str], message: str) -> None:
    file.write_text(STUDY.replace(*change))
    with pytest.raises(ConfigError, match=message):
        read.load(file)


def test_without_measures_and_figures_there_are_some(file: Path) -> None:
    file.write_text(STUDY[: STUDY.index("[measure]")])
    study = read.load(file)
    assert "one_goodput_bps" in study.measures and len(study.figures) == len(study.measures)
    assert {(f.x, f.series) for f in study.figures} == {("rate_bps", "kind")}


def test_a_comparison_pairs_the_seeds() -> None:
    def runs(**of_seed: float) -> list[dict]:
        return [{"seed": int(seed[1:]), "values": {"m": value}} for seed, value in of_seed.items()]

    results = {
        (("k", "a"), ("n", 1)): runs(s1=2.0, s2=20.0, s3=200.0, s9=7.0),
        (("k", "b"), ("n", 1)): runs(s1=1.0, s2=10.0, s3=100.0),
        (("k", "a"), ("n", 2)): runs(s1=1.0),
        (("k", "b"), ("n", 2)): runs(s1=0.0),
    }
    one, two = compare.effects(Comparison("m", {"k": "a"}, {"k": "b"}), results)
    assert (one.at, one.pairs, one.mean_of, one.mean_to, one.difference) == ((("n", 1),), 3, 74.0, 37.0, 37.0)
    # Each seed doubles: the ratio is 2 without any doubt, though the values of a side spread a hundredfold.
    assert one.ratio == pytest.approx(2.0) and one.ratio_interval == (pytest.approx(2.0), pytest.approx(2.0))
    assert one.differs
    assert (two.pairs, two.difference, two.difference_interval, two.ratio, two.differs) == (1, 1.0, None, None, None)


def test_lines_of_one_figure_have_colours_and_names_of_their_own() -> None:
    kinds = ["rap", "als", "ssvp-adp", "daa", "trabol", "tfrc"]  # the first three share a colour elsewhere, and so do the others
    assert len(set(drawing._colours(kinds).values())) == len(kinds)


def test_the_page_shows_a_range_of_nothing_as_a_dash(done: Path) -> None:
    study = read.load(done / "study.toml")
    results = {(("kind", "rap"), ("rate_bps", 1e7)): [{"seed": 1, "values": {"one_rate": None, "ratio": 0.5}}]}
    heads, lines = page.table(study, results)
    assert heads == ["kind", "rate_bps", "one_rate", "ratio"] and lines == [["rap", "10 Mb/s", "–", "0.5"]]


def test_results_of_a_changed_file_are_kept_for_when_it_changes_back(done: Path, tmp_path: Path) -> None:
    shutil.copytree(done, tmp_path / "out")
    (tmp_path / "small.toml").write_text(
        STUDY.replace("delay_s = 0.01", "delay_s = 0.02").replace("[1, 2, 3]", "[1]").replace("1e6, 2e6", "1e6")
    )
    carry_out.carry_out(read.load(tmp_path / "small.toml"), tmp_path / "out", Console(quiet=True), workers=2)
    (tmp_path / "small.toml").write_text(STUDY.replace("One flow", "A title decides nothing: one flow"))
    study = read.load(tmp_path / "small.toml")
    store = points.store.Store(tmp_path / "out" / "points")
    assert all(store.get(job.study, job.key, job.inputs) for job in points.jobs(study))
    assert json.loads(next((tmp_path / "out" / "points" / "small" / "earlier").iterdir()).read_text())["seed"] == 1


@pytest.mark.timeout(120)
@pytest.mark.parametrize("paper", ["", '[paper]\nreference = "mine"\nsection = "-"\nfigure = "-"\n'])
def test_a_sweep_of_no_paper_that_expects_nothing_ends_well(paper: str, tmp_path: Path) -> None:
    text = (
        STUDY.replace('kind = ["rap", "tcp-cubic"]', 'kind = ["rap"]')
        .replace("seeds = [1, 2, 3]", "seeds = [1]")
        .replace("1e6, 2e6", "1e6, 1e7")
    )
    (tmp_path / "small.toml").write_text(text[: text.index("[[compare]]")].replace("duration_s = 3.0", "duration_s = 1.0") + paper)
    command = [sys.executable, "-m", "fairlane", "run", "small.toml", "--strict", "--out", "out"]
    run = subprocess.run(command, text=True, capture_output=True, cwd=tmp_path)
    assert run.returncode == 0 and "0 of 0" not in run.stdout and "unexplained" not in run.stdout, run.stdout + run.stderr
    body = (tmp_path / "out" / "index.html").read_text().partition("<body>")[2]
    assert "10 Mb/s" in body and "paper" not in re.sub(r"<svg.*?</svg>", "", body, flags=re.DOTALL)
    run = subprocess.run([*command[:3], "paper", "small.toml"], text=True, capture_output=True, cwd=tmp_path)
    assert run.returncode == 2 and "small.toml: expects nothing of its runs" in run.stderr


def test_a_comparison_that_at_leaves_nothing_of_is_left_out_and_told(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY + '\n[[compare]]\nmeasure = "ratio"\nof = { rate_bps = 2e6 }\nto = { rate_bps = 1e6 }\n')
    chosen = read.load(path, at=["kind=rap"])
    assert [comparison.measure for comparison in chosen.comparisons] == ["ratio"]
    assert chosen.left_out == (
        "The comparison of one_rate, kind = rap with kind = tcp-cubic, is left out: no chosen point has kind = tcp-cubic.",
    )
    assert not read.load(path).left_out
    assert len(read.load(path).comparisons) == 2
    with Console(record=True, width=200) as console:
        carry_out.carry_out(read.load(path, at=["kind=rap", "rate_bps=1e6"], seeds=[1], duration_s=1), tmp_path / "out", console)
    assert "warning: The comparison of one_rate" in console.export_text()
    assert "is left out" in (tmp_path / "out" / page.FILE).read_text()

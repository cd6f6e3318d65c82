"""Rows of the ledger: what is there is not run again; what cannot be meant is refused; the page. Studies: test_study.py."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

from fairlane.experiments import loader
from fairlane.fabrics import virtual_fabric
from fairlane.inputs.located_toml import ConfigError
from fairlane.paper import make, read_row
from fairlane.studies import measures, points
from fairlane.studies.store import Store

ROW = """
title = "A small row"
bottleneck = "s1->s2"
duration_s = 8.0
window_from = 0.5
seeds = [1, 2]

[paper]
reference = "-"
section = "-"
figure = "-"

[sweep]
n = [1, 2]

[topology]
kind = "dumbbell"
pairs = "= 2 * n"
bottleneck = { rate_bps = "= n * 1_000_000", delay_s = 0.01, queue_packets = 40 }
access = { rate_bps = 100_000_000 }

[[flows]]
name = "rap"
kind = "rap"
count = "= n"
start_jitter_s = 0.5

[[flows]]
name = "tcp"
kind = "tcp-sack"
count = "= n"

[measure]
ratio = "= rap.mean_bps / tcp.mean_bps"
utilisation = "= bottleneck.utilisation"

[[curves]]
name = "queue"
of = "queue"

[[figures]]
title = "ratio"
x = "n"
y = "ratio"
paper = [["", 1, 1.0]]

[[figures]]
title = "queue"
curves = ["queue"]
where = { n = 2 }

[[expect]]
name = "full link"
measure = "utilisation"
low = 0.5

[[expect]]
name = "what cannot be"
measure = "utilisation"
low = 2.0
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(ROW)
    return path


@pytest.fixture(autouse=True)
def _built() -> None:
    virtual_fabric.check_built()


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*.json")}


class _Page(HTMLParser):
    """Ids, and every address that the page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name == "id":
                self.ids.append(value or "")
            elif name == "src" or (name.endswith("href") and not (value or "").startswith("#")):
                self.fetched.append(value or "")


@pytest.mark.timeout(300)
def test_a_pass_writes_one_page_and_runs_nothing_twice(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "report"
    console = Console(width=200)
    (outcome,) = make.run([read_row.load(small)], folder, console, workers=2)
    assert [v.holds for v in outcome.verdicts] == [True, False] and not outcome.holds
    page = _Page()
    text = (folder / "index.html").read_text()
    page.feed(text)
    assert page.fetched == [] and len(page.ids) == len(set(page.ids))
    assert "0 of 1 rows explained: holds 0, reading 0, contradiction 0, unexplained 1" in text and text.count("<svg") == 2
    before = contents(folder / "points")
    (folder / "points" / "small" / "n=2_seed=1.json").unlink()
    capsys.readouterr()
    make.run([read_row.load(small)], folder, console, workers=1)
    assert "4 runs, 3 of them done before" in capsys.readouterr().out
    assert contents(folder / "points") == before


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", ["als-8", "ssvp-3", "trabol-2", "rap-7"])
def test_the_records_that_a_point_writes_are_all_that_its_measures_and_curves_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    job = points.jobs(read_row.load(loader.find(name), quick=True))[0]
    some = points.run(job).result
    monkeypatch.setattr(points, "needed", lambda *_: None)
    every = points.run(job).result
    whole_run = any("run." in text for _, text in job.measures)
    assert (some["records_sha256"] == every["records_sha256"]) == whole_run == (name == "als-8")
    for key in some.keys() | every.keys():
        assert key == "records_sha256" or json.dumps(some[key]) == json.dumps(every[key]), key


def test_a_result_of_other_inputs_is_not_taken_and_not_thrown_away(small: Path, tmp_path: Path) -> None:
    (job, *_) = points.jobs(read_row.load(small))
    store = Store(tmp_path / "points")
    store.put(job.study, job.key, points.run(job).result, 1.0)
    kept = store.get(job.study, job.key, job.inputs)
    assert kept is not None
    small.write_text(ROW.replace("delay_s = 0.01", "delay_s = 0.02"))
    (other, *_) = points.jobs(read_row.load(small))
    assert store.get(other.study, other.key, other.inputs) is None
    store.put(other.study, other.key, {**points.run(other).result}, 1.0)
    assert store.get(other.study, other.key, other.inputs) is not None
    assert store.get(job.study, job.key, job.inputs) == kept  # taken again when the file is as before


@pytest.mark.parametrize(
    "change, message",
    [
        (
            ('measure = "utilisation"\nlow = 0.5', 'measure = "utilization"\nlow = 0.5'),
            r"expect\[0\].measure: no measure 'utilization'; did you mean 'utilisation'",
        ),
        (('x = "n"', 'x = "m"'), r"figures\[0\].x: no axis or measure 'm'"),
        (("rap.mean_bps /", "rapp.mean_bps /"), r"measure.ratio: no group of flows 'rapp'; did you mean 'rap'"),
        (("rap.mean_bps /", "rap.mean /"), r"measure.ratio: no figure 'mean'; did you mean 'mean_bps'"),
        (('curves = ["queue"]', 'curves = ["que"]'), r"figures\[1\].curves: no curve 'que'; did you mean 'queue'"),
        (("low = 2.0", "low = 2.0\nhigh = 1.0"), r"expect\[1\].low: 2 is above high, 1"),
        (("low = 2.0", ""), r"expect\[1\].low: an expectation without low and high cannot fail"),
        (("delay_s = 0.01", "delay_s = -0.01"), r"topology.bottleneck.*delay_s: "),
        (('kind = "rap"', 'kind = "rapp"'), r"flows\[0\].kind: unknown flow kind 'rapp'; did you mean 'rap'"),
    ],
)
def test_a_row_that_cannot_be_meant_is_refused_before_anything_runs(small: Path, change: tuple[str, str], message: str) -> None:
    small.write_text(ROW.replace(*change))
    with pytest.raises(ConfigError, match=rf"small.toml:\d+: {message}"):
        read_row.load(small)


def test_a_row_of_no_paper_loads(small: Path) -> None:
    small.write_text(ROW.replace('[paper]\nreference = "-"\nsection = "-"\nfigure = "-"\n', ""))
    assert read_row.load(small).paper.figure == "-"


def test_every_row_of_the_ledger_loads() -> None:
    for name in make.ids():
        for quick in (True, False):
            loaded = read_row.load(loader.find(name), quick)
            assert loaded.expectations and loaded.figures and loaded.paper.reports


def test_fairness_figures_are_the_papers() -> None:
    assert measures.jain_index([1.0, 1.0, 1.0]) == pytest.approx(1.0)
    assert measures.jain_index([1.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)
    assert measures.worst_case_fairness([2.0, 4.0, 8.0]) == 0.25

"""`fairlane report`: any finished runs beside each other, read from their results; what is no result is refused."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from fairlane import execute, probes
from fairlane.errors import Refusal
from fairlane.experiments import loader
from fairlane.fabrics import virtual_fabric
from fairlane.fabrics.places import VIRTUAL
from fairlane.inputs.located_toml import ConfigError
from fairlane.results import compare, report
from fairlane.results.figures import FlowFigures

pytestmark = pytest.mark.skipif(virtual_fabric.native is None, reason="needs the module fairlane.native (make build)")

EXPERIMENT = """
title = "small"
bottleneck = "s1->s2"
duration_s = 8.0
[topology]
kind = "dumbbell"
pairs = 2
bottleneck = { rate_bps = 1_000_000, delay_s = 0.01, queue_packets = 20 }
access = { rate_bps = 10_000_000 }
[[flows]]
name = "one"
kind = "rap"
[[flows]]
name = "tcp"
kind = "tcp-sack"
[[checks]]
name = "what cannot be"
metric = "bottleneck_utilisation"
low = 2.0
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two runs that differ in their seed, and one of a link twice as fast."""
    folder = tmp_path_factory.mktemp("runs")
    made = []
    for name, text, seed in (
        ("a", EXPERIMENT, 1),
        ("b", EXPERIMENT, 2),
        ("c", EXPERIMENT.replace("rate_bps = 1_000_000", "rate_bps = 2_000_000"), 1),
    ):
        path = folder / f"{name}.toml"
        path.write_text(text)
        execute.execute(VIRTUAL.ready(loader.load(path, seed=seed)), folder / name, Console(quiet=True))
        made.append(folder / name)
    return made


class Page(HTMLParser):
    """Text of a page, its ids, and whatever it would fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.fetched: list[str] = []
        self.cells: list[str] = []
        self._in_cell = False
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if given.get("id"):
            self.ids.append(str(given["id"]))
        for key in ("src", "href", "xlink:href"):
            if given.get(key) and not str(given[key]).startswith("#"):
                self.fetched.append(str(given[key]))
        if tag == "td":
            self.cells.append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        self._in_cell = self._in_cell and tag != "td"

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.cells[-1] += data


def test_the_table_says_what_the_summaries_say(finished: list[Path], capsys: pytest.CaptureFixture) -> None:
    runs = compare.load(finished)
    configured = json.loads((finished[2] / "experiment.json").read_text())
    assert (configured["seed"], [f["kind"] for f in configured["flows"]]) == (1, ["rap", "tcp-sack"])
    assert max(link["rate_bps"] for link in configured["topology"]["links"]) == 10e6 and configured["flows"][0]["settings"]["parameters"]
    lines = [dict(zip(compare.HEADS, line)) for line in compare.rows(runs)]
    assert len(lines) == 6 and [line["kind"] for line in lines[:2]] == ["RAP", "TCP SACK"]
    for run, first, second in zip(runs, lines[::2], lines[1::2]):
        summary = json.loads((run.folder / "summary.json").read_text())
        link = next(x for x in summary["links"] if x["name"] == "s1->s2")
        assert (first["run"], first["clock"], first["checks that hold"]) == (
            f"{run.folder.parent.name}/{run.folder.name}",
            "virtual time",
            "0 of 1",
        )
        assert first["utilisation"] == f"{link['utilisation']:.3f}" and first["queue, packets"] == f"{link['mean_queue_packets']:.1f}"
        for line, kind in zip((first, second), summary["kinds"]):
            assert line["goodput of a flow, Mb/s"] == f"{kind['mean_goodput_bps'] / 1e6:.3f}"
            assert line["share %"] == f"{100 * kind['share']:.1f}" and line["Jain"] == f"{kind['jain_index']:.3f}"
        assert second["run"] == second["utilisation"] == ""
    compare.show(runs, Console(width=200))
    assert capsys.readouterr().out.count("what cannot be: ") == 3


def test_the_table_is_whole_at_80_columns(finished: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """No value and no word of a head is folded, with the longest name of a kind."""
    long = tmp_path / "20261122-234353-seed1"
    shutil.copytree(finished[0], long)
    summary = json.loads((long / "summary.json").read_text())
    summary["kinds"][0]["kind"] = "trabol-memory"
    (long / "summary.json").write_text(json.dumps(summary))
    runs = compare.load([*finished, long])
    compare.show(runs, Console(width=80))
    printed = capsys.readouterr().out.splitlines()
    begin = next(i for i, line in enumerate(printed) if not line.strip())
    table = printed[begin : next(i for i, line in enumerate(printed) if line.startswith("run 1: what"))]
    assert max(map(len, table)) <= 80
    lines = [line.split() for line in table if line.strip()]
    written = [dict(zip(compare.HEADS, row)) for row in compare.rows(runs)]
    found = [line for line in lines if len(line) > 5 and not line[0].startswith(("run", "─", "Mb/s", "kind"))]
    assert len(found) == len(written) == 8
    for line, row in zip(found, written):
        text = " ".join(line)
        for head in ("kind", "goodput of a flow, Mb/s", "loss %", "share %", "Jain", "utilisation", "queue, packets", "checks that hold"):
            assert row[head] in text, (head, text)
    assert any(f"run 4: {runs[3].name} (a, seed 1, virtual time" in line for line in printed)


def test_names_of_flows_are_whole_at_80_columns(capsys: pytest.CaptureFixture) -> None:
    flow = FlowFigures("tcp-newreno-10", "trabol-memory", 12.345e6, 12.345e6, 1234567, 12345)
    Console(width=80).print(report._flows(SimpleNamespace(flows=[flow, flow])))  # type: ignore[arg-type]
    shown = capsys.readouterr().out
    assert shown.count("tcp-newreno-10") == shown.count("trabol-memory") == 2 and max(map(len, shown.splitlines())) <= 80


def test_in_a_pipe_nothing_is_cut(tmp_path: Path) -> None:
    """Without a terminal and without COLUMNS, 80 columns are nobody's width; a terminal of 50 columns breaks heads and numbers, and cuts none."""
    command = [
        sys.executable,
        "-m",
        "fairlane",
        "run",
        "dumbbell",
        "--flow",
        "trabol-memory:2",
        "--flow",
        "tcp-newreno:1",
        "--duration",
        "2",
    ]
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")}
    environment["PYTHONPATH"] = str(probes.ROOT)
    shown = subprocess.run(
        [*command, "--out", f"{tmp_path}/r"], capture_output=True, text=True, env=environment, check=True, cwd=tmp_path
    ).stdout
    assert "…" not in shown and "goodput Mb/s ┃ fair share Mb/s ┃ share % ┃ sent packets ┃ lost ┃ loss %" in shown
    summary = json.loads((tmp_path / "r" / "summary.json").read_text())
    for flow in summary["flows"]:
        line = next(line for line in shown.splitlines() if f"│ {flow['name']} " in line)
        assert f" {flow['goodput_bps'] / 1e6:.3f} " in line and f" {flow['sent_packets']} " in line
    narrow = Console(width=50, file=io.StringIO())
    narrow.print(report._flows(SimpleNamespace(flows=[FlowFigures("f", "k", 2838.123e6, 25000.0e6, 1234567890, 0)])))  # type: ignore[arg-type]
    assert "…" not in narrow.file.getvalue()  # type: ignore[attr-defined]


def test_of_thousands_of_flows_the_first_are_printed(capsys: pytest.CaptureFixture) -> None:
    flows = [FlowFigures(f"flow-{i}", "rap", 1e6, 1e6, 1, 0) for i in range(1000)]
    Console(width=200).print(report._flows(SimpleNamespace(flows=flows)))  # type: ignore[arg-type]
    assert capsys.readouterr().out.count("flow-") == 200


def test_the_page_stands_alone_and_reads_results_only(finished: list[Path], tmp_path: Path) -> None:
    # Raw records and the experiment's file are not needed, nor anything but the results.
    moved = tmp_path / "theirs"
    shutil.copytree(finished[0], moved, ignore=shutil.ignore_patterns("raw", "*.png"))
    compare.write(compare.load([moved, *finished[1:]]), tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    page = Page(text)
    assert page.fetched == [] and "@import" not in text
    assert len(page.ids) == len(set(page.ids)) and text.count("<svg") == 6
    assert page.cells[:2] == [f"{tmp_path.name}/theirs", "a"] and "NO" in page.cells
    assert [p.name for p in tmp_path.iterdir() if p.suffix != ".html" and p != moved] == []


def test_a_run_by_the_wall_clock_beside_one_in_virtual_time(finished: list[Path], tmp_path: Path) -> None:
    real = tmp_path / "real"
    shutil.copytree(finished[0], real)
    summary = json.loads((real / "summary.json").read_text())
    # As BMv2 leaves it, and as results do that do not name the link.
    summary |= {"fabric": "mininet", "target": "bmv2", "links": [{**x, "mean_queue_packets": None} for x in summary["links"]]}
    del summary["bottleneck"]
    (real / "summary.json").write_text(json.dumps(summary))
    links = (real / "links.csv").read_text().splitlines()
    at = links[0].split(",").index("queue_packets")
    (real / "links.csv").write_text(
        "\n".join([links[0], *(",".join(["" if i == at else v for i, v in enumerate(x.split(","))]) for x in links[1:])])
    )
    runs = compare.load([finished[0], real])
    assert [line[2] for line in compare.rows(runs)] == ["virtual time", "", "Mininet, wall clock", ""]
    assert [line[3] for line in compare.rows(runs)] == ["in the process", "", "BMv2", ""]
    assert runs[1].link["name"] == "s1->s2" and compare.rows(runs)[2][compare.HEADS.index("queue, packets")] == "–"
    compare.write(runs, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "no plot mixes them" in text and "Rates, virtual time" in text and "Rates, Mininet, wall clock" in text


def broken(folder: Path, results: Path, what: str) -> Path:
    copy = folder / "copy"
    shutil.copytree(results, copy)
    summary = json.loads((copy / "summary.json").read_text())
    if what == "no summary":
        (copy / "summary.json").unlink()
    elif what == "half a summary":
        (copy / "summary.json").write_text((copy / "summary.json").read_text()[:200])
    elif what == "other JSON":
        (copy / "summary.json").write_text("[1, 2]")
    elif what == "no kinds":
        del summary["kinds"]
        (copy / "summary.json").write_text(json.dumps(summary))
    elif what == "no flows":
        (copy / "summary.json").write_text(json.dumps({**summary, "flows": []}))
    elif what == "no table":
        (copy / "flows.csv").unlink()
    elif what == "another table":
        (copy / "links.csv").write_text("a,b\n1,2\n")
    elif what == "above":
        return results.parent
    elif what == "none":
        return folder / "nowhere"
    return copy


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("none", "nowhere: no such folder. Give folders that 'fairlane run' wrote"),
        ("no summary", "copy: not the results of a run: it has no summary.json."),
        ("above", "not the results of a run: it has no summary.json; it contains results, such as "),
        ("half a summary", "summary.json:13: not JSON: "),
        ("other JSON", "summary.json:1: expected an object"),
        ("no kinds", "summary.json:1: kinds: is missing. Give a folder as this version of 'fairlane run' wrote it."),
        ("no flows", "summary.json: a run without flows has nothing to compare."),
        ("no table", "flows.csv: cannot be read: No such file or directory."),
        ("another table", "links.csv: no column time_s."),
    ],
)
def test_folders_that_hold_no_results(finished: list[Path], tmp_path: Path, what: str, message: str) -> None:
    with pytest.raises((Refusal, ConfigError)) as refused:
        compare.load([finished[1], broken(tmp_path, finished[0], what)])
    assert message in str(refused.value)


def test_a_folder_twice_and_pages_that_cannot_be(finished: list[Path], tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="is given twice"):
        compare.load([finished[0], finished[0] / ".." / finished[0].name])
    (tmp_path / "there.html").write_text("")
    for name, message in (("there.html", "exists already"), ("page.pdf", "must end with .html"), ("no/page.html", "no folder")):
        with pytest.raises(Refusal, match=message):
            compare.check_out(tmp_path / name)

"""The page of results in the docs: made from its index, and only from a report that is complete."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairlane.experiments import loader
from fairlane.paper import index, make, read_row, sample
from fairlane.studies import points
from tools.site import results


def entry(row: str, **changes) -> dict:
    verdict = {"name": "ratio | at n < 4", "paper": "", "expected": "0.8 to 1.2", "found": "1.01", "holds": True, "not_at": []}
    return {
        "row": row,
        "ledger": "X",
        "title": "A row",
        "paper": "RAP figure 4",
        "kind": "holds",
        "expectations": 1,
        "held": 1,
        "reason": "",
        "differs": "",
        "ruled_out": [],
        "verdicts": [verdict],
        "contradicted": [],
        "seeds": [1, 2],
        "runs": 2,
        "processor_s": 60.0,
    } | changes


def report(folder: Path, rows: list[dict], page: str = "<html></html>", **changes) -> Path:
    folder.mkdir()
    (folder / "index.html").write_text(page)
    found = {
        "version": "0",
        "commit": "0123456789abcdef" * 2 + "01234567",
        "modified": False,
        "quick": False,
        "made": "2026-01-31 12:00:00 UTC",
        "processor_s": 600.0,
        "kinds": {},
        "rows": rows,
    } | changes
    (folder / index.FILE).write_text(json.dumps(found))
    return folder


@pytest.fixture
def complete() -> list[dict]:
    return [entry(name) for name in make.ids()]


def publish(folder: Path, tmp_path: Path, **options) -> str:
    results.publish(folder, page=tmp_path / "page.md", files=tmp_path / "files", **options)
    return (tmp_path / "page.md").read_text()


def test_the_committed_page_is_that_of_its_index() -> None:
    assert results.PAGE.read_text(encoding="utf-8") == results.written(json.loads((results.FILES / index.FILE).read_text()))


PUBLISHED = {row["row"]: row for row in json.loads((results.FILES / index.FILE).read_text())["rows"]}


LONG = {"als-mixed-b", "daa-3", "daa-7", "daa-t1", "ssvp-4c"}
"""Rows whose cheapest run takes more than 5 s."""


@pytest.mark.parametrize("row", [pytest.param(row, marks=[pytest.mark.long] if row in LONG else []) for row in make.ids()])
def test_a_row_is_as_new_as_the_code_or_says_that_it_is_not(row: str) -> None:
    """One run of each row gives what the published page was made from. If not: 'make paper', then 'make paper-results'; or, until then,
    'make paper-results ARGS=--check', which marks the row on the page."""
    assert row in PUBLISHED, "the published page lacks this row: run 'make paper', then 'make paper-results'"
    published = PUBLISHED[row]
    found = sample.differences(read_row.load(loader.find(row)), published.get("sample"))
    marked = bool(published.get("older"))
    assert bool(found) == marked, (
        f"the published page is {'marked as ' if marked else ''}older than the code, {'and is not' if marked else 'and does not say so'}"
        f" ({'; '.join(found) or 'the same figures'}): run 'make paper' and 'make paper-results', or 'make paper-results ARGS=--check'"
    )


def test_a_page_older_than_the_code_is_marked_and_says_so(complete: list[dict], tmp_path: Path) -> None:
    folder = report(tmp_path / "report", [{**complete[0], "row": "rap-4c"}, {**complete[1], "row": "trabol-3"}])
    publish(folder, tmp_path, draft=True)
    files, page = tmp_path / "files", tmp_path / "page.md"
    found = json.loads((files / index.FILE).read_text())
    for row in found["rows"]:
        job = sample.cheapest(read_row.load(loader.find(row["row"])))
        row["sample"] = {"axes": dict(job.axes), "seed": job.seed, "values": points.run(job).result["values"]}
    (files / index.FILE).write_text(json.dumps(found))
    assert results.check(page, files) == [] and "older" not in page.read_text()
    name = next(iter(found["rows"][1]["sample"]["values"]))
    found["rows"][1]["sample"]["values"][name] *= 1.001
    (files / index.FILE).write_text(json.dumps(found))
    assert results.check(page, files) == ["trabol-3"]
    text = page.read_text()
    assert "**holds**, older than the code |" in text and "The code gives other figures by now for trabol-3:" in text
    (text,) = json.loads((files / index.FILE).read_text())["rows"][1]["older"]
    assert text.startswith(f"{name}: ") and " then, " in text


def test_each_row_links_to_the_page_of_its_experiment() -> None:
    pages = results.experiment_pages()
    assert not set(make.ids()) - set(pages), "docs/experiments/README.md gives these rows no page"
    assert all((results.ROOT / "docs" / "experiments" / page).exists() for page in pages.values())
    assert (
        pages["als-mixed-b"] == "als-plain.md"
        and pages["rap-3c"] == "rap-3.md"
        and pages["rap-6"] == "rap-6.md"
        and pages["trabol-t1"] == "trabol-5.md"
    )


def test_each_row_stands_there_with_its_kind_and_reason(complete: list[dict], tmp_path: Path) -> None:
    complete[0] = entry(
        "rap-4b", kind="unexplained", held=0, reason="no <cause>\nis known", verdicts=[{**complete[0]["verdicts"][0], "holds": False}]
    )
    complete[1] = entry(
        "nowhere", kind="contradiction", contradicted=[{**complete[1]["verdicts"][0], "holds": False, "why": "2 > 1"}], ruled_out=[]
    )
    complete += [entry(name) for name in make.ids()[:2]]
    page = publish(report(tmp_path / "report", complete), tmp_path)
    assert r"| [rap-4b](experiments/rap-4.md) | RAP figure 4 | **unexplained** | 0 of 1 | no \<cause\> is known |" in page
    assert "| nowhere | RAP figure 4 | **contradiction** | 1 of 1 |" in page
    assert (
        f"**{len(complete) - 1} of {len(complete)} rows explained: holds {len(complete) - 2}, reading 0, contradiction 1, unexplained 1.**"
        in page
    )
    assert r"| ratio \| at n \< 4 | – | 0.8 to 1.2 | 1.01 | **no** |" in page and "Nothing is ruled out yet." in page
    assert r"| ratio \| at n \< 4 | – | 0.8 to 1.2 | 1.01 | no, as it must be |" in page and "cannot come out: 2 \\> 1" in page
    assert "a full pass, made on 2026-01-31 12:00:00 UTC with commit `0123456789ab`. It took 10 minutes" in page


def test_the_report_with_its_figures_comes_along_unless_it_is_large(
    complete: list[dict], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = report(tmp_path / "report", complete)
    assert (
        "(paper-results/report.html)" in publish(folder, tmp_path) and (tmp_path / "files" / "report.html").read_text() == "<html></html>"
    )
    monkeypatch.setattr(results, "MOST_BYTES", 5)
    assert "(paper-results/report.html)" not in publish(folder, tmp_path) and not (tmp_path / "files" / "report.html").exists()


def test_a_report_that_is_not_complete_is_refused(complete: list[dict], tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="none/index.json: cannot be read"):
        publish(tmp_path / "none", tmp_path)
    with pytest.raises(SystemExit, match=f"is without {complete[0]['row']}"):
        publish(report(tmp_path / "some", complete[1:]), tmp_path)
    quick = report(tmp_path / "quick", complete, quick=True)
    with pytest.raises(SystemExit, match="is of a quick pass"):
        publish(quick, tmp_path)
    assert "from a quick pass: fewer points and seeds" in publish(quick, tmp_path, draft=True)
    assert "**1 of 1 rows" in publish(report(tmp_path / "one", complete[:1]), tmp_path, draft=True)

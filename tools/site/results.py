"""Writes docs/paper-results.md from a report of `make paper`: python -m tools.site.results [FOLDER] [--draft]

With --check it makes no new page: it runs one run of each row again, and marks on the page the rows that are older than the code.

The page and the two files that it is made from and links to stand in docs/paper-results/: `index.json`, which says of each row what it is, and
`report.html`, the report itself with its figures."""

from __future__ import annotations

import argparse
import functools
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from fairlane.experiments import loader
from fairlane.paper import index, kinds, make, read_row, sample
from fairlane.results import result_folder

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "paper-results.md"
FILES = ROOT / "docs" / "paper-results"
MOST_BYTES = 3_000_000
"""Of a report that goes into the repository with its figures."""


def written(found: dict[str, Any], folder: Path = FILES) -> str:
    """The page. found: what `index.json` holds. folder: where the report with its figures may be."""
    rows = found["rows"]
    passes = "a quick pass: fewer points and seeds than the full one, so that rows may differ from it" if found["quick"] else "a full pass"
    lines = [
        "# Results: every figure and table of the papers",
        "",
        f"`make paper-results` writes this page from {passes}, made on {found['made']} with commit `{(found['commit'] or 'unknown')[:12]}`"
        f"{' and changes to it' if found['modified'] else ''}. It took {found['processor_s'] / 60:.0f} minutes of processor time.",
        *(["[The report with all figures](paper-results/report.html) is one file."] if (folder / "report.html").exists() else []),
        "[The papers' figures and tables](paper-report.md) says how to make it, and what each kind of a row means.",
        "",
        f"**{kinds.count([row['kind'] for row in rows])}.**",
        *_older([row["row"] for row in rows if row.get("older")]),
        "",
        "| kind | meaning |",
        "|---|---|",
        *(f"| {kind} | {meaning} |" for kind, meaning in kinds.legend([row["kind"] for row in rows]).items()),
        "",
        "| row | paper | kind | expectations that hold | reason |",
        "|---|---|---|---|---|",
        *(
            f"| {_link(row)} | {_cell(row['paper'])} | **{row['kind']}**{', older than the code' if row.get('older') else ''} | {row['held']} of {row['expectations']} | {_cell(row['reason']) or '–'} |"
            for row in rows
        ),
    ]
    for row in rows:
        lines += ["", f"## {row['row']}", "", *_section(row)]
    return "\n".join(lines) + "\n"


def _older(rows: list[str]) -> list[str]:
    if not rows:
        return []
    return ["", f"The code gives other figures by now for {', '.join(rows)}: `make paper` has not run again since it changed."]


def _section(row: dict[str, Any]) -> list[str]:
    lines = [
        f"{row['title']}. {row['runs']} runs, {len(row['seeds'])} seeds. **{row['kind']}**: {row['held']} of {row['expectations']} expectations hold.",
        "",
        "| expectation | the paper | expected | here | holds |",
        "|---|---|---|---|---|",
    ]
    for verdict in row["verdicts"] + row["contradicted"]:
        holds = (
            "yes"
            if verdict["holds"]
            else "not measured"
            if not verdict.get("measured", True)
            else "no, as it must be"
            if "why" in verdict
            else "**no**"
        )
        lines.append(f"| {' | '.join(_cell(verdict[key]) or '–' for key in ('name', 'paper', 'expected', 'found'))} | {holds} |")
    for verdict in row["contradicted"]:
        lines += ["", f"The paper's figure for *{_cell(verdict['name'])}* cannot come out: {_cell(verdict['why'])}"]
    if row["differs"] and row["differs"] != row["reason"]:
        lines += ["", _cell(row["differs"])]
    if row["ruled_out"]:
        lines += ["", "Ruled out by experiments:", "", *(f"- {_cell(text)}" for text in row["ruled_out"])]
    elif row["kind"] == "unexplained":
        lines += ["", "Nothing is ruled out yet."]
    return lines


@functools.cache
def experiment_pages() -> dict[str, str]:
    """Each row's page in docs/experiments/, from the first two columns of the table in its README.md."""
    lines = (ROOT / "docs" / "experiments" / "README.md").read_text(encoding="utf-8").splitlines()
    entries = [entry for line in lines if (entry := re.match(r"\| \[[\w-]+\]\(([\w-]+\.md)\) \| ([^|]+) \|", line))]
    return {name: entry[1] for entry in entries for name in re.findall(r"`([\w-]+)`", entry[2])}


def _link(row: dict[str, Any]) -> str:
    """A row's name, with a link if its experiment has a page."""
    page = experiment_pages().get(row["row"])
    return f"[{row['row']}](experiments/{page})" if page else row["row"]


def _cell(text: str) -> str:
    """Text from an experiment's file, unchanged, for a cell."""
    for special in "\\|*_<>[]":
        text = text.replace(special, f"\\{special}")
    return " ".join(text.split())


def publish(folder: Path, draft: bool = False, page: Path = PAGE, files: Path = FILES) -> None:
    """Write the page and its files. SystemExit with the reason for a report that lacks rows or is of a quick pass, unless
    a draft will do."""
    try:
        found = json.loads((folder / index.FILE).read_text())
    except (OSError, ValueError) as error:
        raise SystemExit(f"{folder / index.FILE}: cannot be read ({error}). 'make paper' writes it.") from error
    missing = sorted(set(make.ids()) - {row["row"] for row in found["rows"]})
    if missing and not draft:
        raise SystemExit(
            f"{folder / index.FILE}: is without {', '.join(missing)}. 'make paper' without names of rows makes all; --draft takes what is there."
        )
    if found["quick"] and not draft:
        raise SystemExit(f"{folder / index.FILE}: is of a quick pass. Run 'make paper', or give --draft: the page then says so.")
    files.mkdir(exist_ok=True)
    (files / "report.html").unlink(missing_ok=True)
    size = (folder / "index.html").stat().st_size
    if size <= MOST_BYTES:
        shutil.copyfile(folder / "index.html", files / "report.html")
    else:
        print(
            f"{folder / 'index.html'} has {size / 1e6:.1f} MB, more than {MOST_BYTES / 1e6:g}: the page goes without it.", file=sys.stderr
        )
    shutil.copyfile(folder / index.FILE, files / index.FILE)
    page.write_text(written(found, files), encoding="utf-8")


def check(page: Path = PAGE, files: Path = FILES) -> list[str]:
    """Mark the rows of the published page that are older than the code, and only those; the others lose a mark. The marked rows."""
    found = json.loads((files / index.FILE).read_text())
    for row in found["rows"]:
        row["older"] = sample.differences(read_row.load(loader.find(row["row"])), row.get("sample"))
    (files / index.FILE).write_text(result_folder.json_text(found), encoding="utf-8")
    page.write_text(written(found, files), encoding="utf-8")
    return [row["row"] for row in found["rows"] if row["older"]]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tools.site.results", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "results" / "paper", help="a report; default: results/paper")
    parser.add_argument("--draft", action="store_true", help="take a report of a quick pass or without some rows, too")
    parser.add_argument("--check", action="store_true", help="mark the rows of the published page that are older than the code")
    options = parser.parse_args()
    if options.check:
        print("older than the code: " + (", ".join(check()) or "none"))
    else:
        publish(options.folder, options.draft)

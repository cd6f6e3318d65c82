"""What students get: the labs in a folder in which every path, command and link of their texts works, and no solution.

    FOLDER/README.md, 01/ ... 10/        the tasks, the files to fill in, small programs and networks
    FOLDER/docs/, hosts/, p4src/, ...    the pages and sources that the texts name

Commands are for the folder that FOLDER is in, where it is called `labs`; in a folder of another name they are changed to that.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PAGES = (
    "docs/algorithms",
    "docs/decisions/linear-counting.md",
    "docs/decisions/red-in-ingress.md",
    "docs/experiments/als-8.md",
    "docs/experiments/als-t1.md",
)
"""Pages that the texts name, and folders of them: a wheel has them under labs/more (scripts/hatch_build.py)."""
_LEFT_OUT = ("solution", "grade.py", "lab.toml", "notebook.py", "Makefile", "points.json", "lab.ipynb", "__pycache__", "build")
_NAMED = re.compile(r"`((?:docs|hosts|p4src|experiments|controller|labs/ranking)/[\w./-]*)`|\b((?:hosts|p4src)/[\w/]+\.(?:py|p4))\b")
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_TEXTS = (".md", ".py", ".p4", ".stf")


def write(folder: Path, skeletons: dict[str, dict[str, str]], package: Path) -> None:
    """Into a new folder. skeletons: of each lab, the files to fill in. package: Fairlane's own files."""
    root = package.parent
    for number, files in skeletons.items():
        shutil.copytree(FOLDER / number, folder / number, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        for name, text in files.items():
            (folder / number / name).write_text(text, encoding="utf-8", newline="\n")
    (folder / "README.md").write_text(_readme(), encoding="utf-8", newline="\n")
    for path in [path for path in sorted(folder.rglob("*")) if path.suffix in _TEXTS]:
        text = path.read_text(encoding="utf-8")
        for name in _named(text):
            _bring(name, folder, package, root)
        if path.suffix == ".md":
            path.write_text(_commands(text, folder.name), encoding="utf-8", newline="\n")
    for page in sorted(folder.glob("docs/**/*.md")):
        page.write_text(_linked(page, page.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")


def _readme() -> str:
    table = [line for line in (FOLDER / "README.md").read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    return "\n".join(
        [
            "# Labs",
            "",
            "Ten exercises on feedback from inside the network: predict, run, plot, explain. All run in virtual time without root.",
            "",
            "```sh",
            "$EDITOR labs/04/fair_rate.p4  # fill in the TODOs",
            "fairlane labs check 04        # points, findings, and a hint",
            "```",
            "",
            "Commands are for the folder that this one is in. Paths such as `docs/algorithms/` and `hosts/algorithms/base.py` are in this folder.",
            "[ALS sec 3.1] in a task means section 3.1 of the ALS paper; [docs/algorithms](docs/algorithms/README.md) gives the papers' titles.",
            "[P4 in one page](01/primer.md) is for readers who have never seen P4.",
            "",
            "The files that you change are yours. To start one again, copy the labs to another folder: `fairlane labs copy /tmp/fresh`.",
            "",
            *table,
            "",
        ]
    )


def _named(text: str) -> Iterator[str]:
    for one in _NAMED.finditer(text):
        yield one[1] or one[2]


def pages(root: Path) -> Iterator[str]:
    """The files of `PAGES` in a checkout."""
    for name in PAGES:
        whole = root / name
        yield from (f"{path.relative_to(root).as_posix()}" for path in (sorted(whole.glob("*.md")) if whole.is_dir() else [whole]))


def _bring(name: str, folder: Path, package: Path, root: Path) -> None:
    """Copy a file that a text names, or the pages of a folder."""
    kept = name.removeprefix("labs/") if name.startswith("labs/") else name
    for place in (package, root, FOLDER / "more"):
        source = place / name
        if source.is_file() or source.is_dir():
            break
    else:
        return
    for one in [source] if source.is_file() else sorted(source.glob("*.md")) or sorted(source.glob("*.py")):
        target = folder / kept if source.is_file() else folder / kept / one.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(one, target)


def _commands(text: str, name: str) -> str:
    """For a folder of another name than `labs`. What is only for a checkout's tests goes."""
    text = re.sub(r"<!-- test: .*? -->\n", "", text)
    text = text.replace("labs/ranking/", "ranking/")
    if name == "labs":
        return text
    text = re.sub(r"(fairlane labs check) (\d\d)\b", rf"\1 \2 {name}/\2", text)
    text = re.sub(r"(python -m fairlane\.labs\.05\.control)\b", rf"\1 {name}/05", text)
    text = re.sub(r"(python -m fairlane\.labs\.09\.runs --seed \d+)", rf"\1 --answer {name}/09", text)
    return re.sub(r"\blabs/(\d\d)\b", rf"{name}/\1", text)


def _linked(page: Path, text: str) -> str:
    """Links to what has not come along are texts."""

    def link(found: re.Match[str]) -> str:
        target = found[3].partition("#")[0]
        if "://" in target or not target or (page.parent / target).exists():
            return found[0]
        return found[2]

    return _LINK.sub(link, text)

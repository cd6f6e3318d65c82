"""The site of the documentation: built strictly, whole, and without anything from another host."""

from __future__ import annotations

import base64
import os
import re
import subprocess
from pathlib import Path

import pytest

from fairlane import probes
from fairlane.experiments import loader
from tools.site import commands, playground

MKDOCS = probes.ROOT / ".venv" / "bin" / "mkdocs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not MKDOCS.exists():
        pytest.skip("no mkdocs in .venv: make docs, or make test, installs it")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [str(MKDOCS), "build", "--strict", "--config-file", "tools/site/mkdocs.yml", "--site-dir", str(folder)],
        cwd=probes.ROOT,
        text=True,
        capture_output=True,
        check=False,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


# What a browser gets by itself when it shows a page.
FETCHED = re.compile(
    r"""<(?:script|img|iframe|audio|video|source|link)\b(?![^>]*\brel="?(?:prev|next|canonical|alternate)\b)[^>]*?\b(?:src|href)="?([^"\s>]+)"""
)


@pytest.mark.parametrize(
    "tag", ['<script src="https://x/y.js">', '<link rel="stylesheet" href="//x/y.css">', '<img alt="z" src=http://x/y.png>']
)
def test_what_is_fetched_is_seen(tag: str) -> None:
    assert re.match(r"(\w+:)?//", FETCHED.findall(tag)[0])


def test_nothing_comes_from_another_host(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 150
    for page in pages:
        urls = FETCHED.findall(page.read_text(encoding="utf-8"))
        assert urls or page == site / "docs/paper-results/report.html", page  # the report is one file
        assert not [url for url in urls if re.match(r"(\w+:)?//", url)], page
    for style in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", style.read_text(encoding="utf-8")), style


def test_the_page_is_in_the_site_where_it_is_built(site: Path) -> None:
    boxes = _BOX.findall((site / "labs/04/index.html").read_text(encoding="utf-8"))
    assert boxes == ([("../../try/index.html", "lab=04")] if playground.PLAYGROUND.is_dir() else [])
    assert (site / "try/index.html").is_file() == playground.PLAYGROUND.is_dir()
    assert "make web" in (site / "web/index.html").read_text(encoding="utf-8")


_BOX = re.compile(r'<p class="try"><a href="([^"#]+)#([^"]+)">')


def test_labs_experiments_and_whole_examples_open_in_the_page() -> None:
    assert _BOX.findall(playground.with_boxes("labs/04/README.md", "# Lab 4: ALS\n\nText\n")) == [("../../try/index.html", "lab=04")]
    assert _BOX.findall(playground.with_boxes("docs/experiments/als-3.md", "# ALS\n")) == [("../../try/index.html", "experiment=als-3")]
    assert not _BOX.findall(playground.with_boxes("docs/experiments/README.md", "# Experiments\n"))
    whole, part = (probes.ROOT / "docs/examples/parking-lot.toml").read_text(), "[[flows]]\nname = 'é'\n"
    shown = playground.with_boxes(
        "docs/page.md", f"# Page\n\n```toml\n{part}```\n\nSee [a](examples/parking-lot.toml), and\nmore.\n\n```toml\n{whole}```\n"
    )
    boxes = _BOX.findall(shown)
    assert len(boxes) == 2 and {address for address, _ in boxes} == {"../try/index.html"}
    for _, place in boxes:
        kind, _, code = place.partition(":")
        assert kind == "try=toml" and base64.urlsafe_b64decode(code + "=" * (-len(code) % 4)).decode() == whole
    assert shown.index("more.") < shown.index(boxes[0][1])


def test_every_page_of_the_repository_is_there(site: Path) -> None:
    tracked = subprocess.run(["git", "ls-files", "*.md"], cwd=probes.ROOT, text=True, capture_output=True, check=True).stdout.split()
    for path in tracked:
        page = site / path.replace("README.md", "index.html").replace(".md", ".html")
        assert page.exists(), f"{path} is not in the site: does tools/site/hooks.py know its folder?"


@pytest.mark.parametrize("name", loader.names())
@pytest.mark.parametrize(("table", "as_written"), [("docs/experiments/README.md", "`{}`"), ("experiments/README.md", "`{}.toml`")])
def test_each_experiment_stands_in_both_tables_beside_a_page_that_names_it(name: str, table: str, as_written: str) -> None:
    path = probes.ROOT / table
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("|") and as_written.format(name) in line]
    assert len(lines) == 1, f"{table}: {len(lines)} lines have {name}"
    pages = [(path.parent / page).read_text(encoding="utf-8") for page in re.findall(r"\(([\w./-]+\.md)[)#]", lines[0])]
    assert any(re.search(rf"(?<![\w-]){name}(?![\w-])", page) for page in pages), f"{table}: no page beside {name} names it"


def test_the_page_of_commands_is_that_of_the_command_line() -> None:
    page = commands.PAGE.read_text(encoding="utf-8")
    assert page == commands.written(page), "python -m tools.site.commands writes its tables anew"
    missing = [name for name in commands.commands() if f"\n## fairlane {name}\n" not in page]
    assert not missing, f"{commands.PAGE}: no section '## fairlane {missing[0]}'"


def test_links_show_titles_and_commands_are_whole(site: Path) -> None:
    page = (site / "docs" / "index.html").read_text(encoding="utf-8")
    assert ">A queue management of your own</a></td>" in page and not re.search(r"<td><a [^>]*>[\w-]+\.md</a>", page)
    assert 'class="language-sh highlight"' in (site / "index.html").read_text(encoding="utf-8")
    assert "pre-wrap" in (site / "tools/site/code.css").read_text(encoding="utf-8")


def test_equations_and_programs_need_no_script(site: Path) -> None:
    concepts = (site / "docs" / "concepts.html").read_text(encoding="utf-8")
    assert "<math" in concepts and "```math" not in concepts
    assert '<span class="k">table</span>' in (site / "switch/p4/compiler/explain/action.html").read_text(encoding="utf-8")


def test_each_algorithm_has_its_equations(site: Path) -> None:
    pages = [page for page in (probes.ROOT / "docs/algorithms").glob("*.md") if page.name != "README.md"]
    assert len(pages) >= 13
    for page in pages:
        text = page.read_text(encoding="utf-8")
        drawn = (site / "docs/algorithms" / f"{page.stem}.html").read_text(encoding="utf-8")
        assert drawn.count('<math xmlns="http://www.w3.org/1998/Math/MathML" display="block"') == text.count("```math\n") > 0, page
        assert (
            drawn.count('<math xmlns="http://www.w3.org/1998/Math/MathML" display="inline"') == len(re.findall(r"\$`[^`\n]+`\$", text)) > 0
        ), page
        assert "$`" not in drawn and "`$" not in drawn and "math.css" in drawn, page


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("```math\n\\begin{aligned} a &= b \\end{aligned}\n```", "aligned"),
        ("```math\na \\unheardof b\n```", "unheardof"),
        ("```math\n\\left( a\n```", "left"),
        ("where $`\\frac{3bp}{8}`$ is", "3bp"),
    ],
)
def test_an_equation_that_cannot_be_drawn_stops_the_build(site: Path, text: str, named: str) -> None:
    code = """if True:
        import sys, markdown
        from tools.site import hooks
        fences = {"custom_fences": hooks.FENCES}
        markdown.markdown(sys.argv[1], extensions=["pymdownx.superfences", hooks.LineMath()], extension_configs={"pymdownx.superfences": fences})"""
    done = subprocess.run([str(MKDOCS.parent / "python"), "-c", code, text], cwd=probes.ROOT, text=True, capture_output=True, check=False)
    assert done.returncode != 0 and named in done.stderr.strip().splitlines()[-1], done.stderr

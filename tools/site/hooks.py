"""Hooks of mkdocs: pages keep the paths that they have in the repository, so that a link works there and on the site.

- Pages come from docs/ and from the folders' own READMEs; files that pages link to are copied beside them.
- A link to a folder goes to its README. A link whose text is the page's file name shows the page's title.
- In the nav, `docs/decisions/*.md` means every page of that name that is not elsewhere in it.
- If the page of `make web` is built, it is part of the site as try/index.html. Labs, experiments, and complete examples of P4 and TOML then have a box
  that opens them there.
- LaTeX, as a block ```math or in a line as $`x`$, both of which GitHub draws, becomes MathML, which browsers draw without any script.
"""

from __future__ import annotations

import html
import posixpath
import re
import shutil
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from xml.etree import ElementTree

import latex2mathml.converter
import pygments.lexers
import pygments.lexers._mapping
from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pymdownx.superfences import SuperFencesException

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.documented.blocks import FOLDERS  # noqa: E402
from tools.site.playground import LINK, PLAYGROUND, links, with_boxes  # noqa: E402

STYLES = ("tools/site/math.css", "tools/site/code.css")
NOT_PAGES = frozenset(("target", "node_modules", "__pycache__"))

_NAMED_LINK = re.compile(r"\[([\w./-]+)\]\(([\w./-]+\.md)(?=[)#])")
_CODE = re.compile(r"`[^`\n]*`")
_NAME = re.compile(r'<mrow>((?:<mi mathvariant="italic">\w</mi>){2,})</mrow>')
_PRIME = re.compile(r"<msup>(<mi[^>]*>[^<]*</mi>)<mi>&#x02032;</mi></msup>")  # fonts have it small and high by itself
_NOT_DRAWN = re.compile(r"\\\w*|<mn>[\d.]*[a-z]+")  # a command that the converter copies; 3bp, which it reads as big points
_FENCE = re.compile(r"^```p4 \w+$", re.MULTILINE)


def pages(root: Path = ROOT) -> list[str]:
    """Paths of all pages, from the root of the repository: those there, docs/, and every README and page of the folders."""
    found = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
    for folder in FOLDERS:
        found += (path.relative_to(root).as_posix() for path in sorted((root / folder).rglob("*.md")))
    return [path for path in found if not NOT_PAGES.intersection(path.split("/"))]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    pygments.lexers._mapping.LEXERS["P4Lexer"] = ("tools.site.p4lexer", "P4", ("p4",), ("*.p4",), ())
    fences = config.mdx_configs.setdefault("pymdownx.superfences", {})
    fences["custom_fences"] = FENCES
    config.markdown_extensions.append(LineMath())
    config.extra_css.extend(STYLES)
    every = pages()
    named = set(_named(config.nav))
    config.nav = _expanded(config.nav, [page for page in every if page not in named])
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    # Of the theme's files all; those of docs/ come below, under their paths in the repository.
    chosen = Files(
        [file for file in files if file.generated_by is not None or not Path(file.abs_src_path or "").is_relative_to(ROOT / "docs")]
    )
    assets = set(STYLES)
    for path in pages():
        chosen.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
        for target in links((ROOT / path).read_text(encoding="utf-8")):
            source = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
            if not source.endswith(".md") and (ROOT / source).is_file():
                assets.add(source)
    for source in sorted(assets):
        chosen.append(File.generated(config, source, abs_src_path=str(ROOT / source)))
    return chosen


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    folder = posixpath.dirname(page.file.src_uri)

    def readme(match: re.Match[str]) -> str:
        target = match[2]
        if "://" in target or not (ROOT / folder / target).is_dir():
            return match[0]
        return f"{match[1]}{posixpath.join(target, 'README.md')}{match[3] or ''}{match[4]}"

    def titled(match: re.Match[str]) -> str:
        text, target = match[1].rstrip("/"), match[2].removesuffix("README.md").rstrip("/")
        page_ = ROOT / folder / match[2]
        if text not in (target, posixpath.basename(target)) or not page_.is_file():
            return match[0]
        title = re.search(r"^# (.+)$", page_.read_text(encoding="utf-8"), re.MULTILINE)
        return f"[{title[1]}]({match[2]}" if title else match[0]

    if PLAYGROUND.is_dir():
        markdown = with_boxes(page.file.src_uri, markdown)
    lines = _FENCE.sub("```p4", _NAMED_LINK.sub(titled, LINK.sub(readme, markdown))).split("\n")
    # In a table GitHub wants a backslash before a bar of code, and Python-Markdown would show it.
    return "\n".join(_CODE.sub(lambda code: code[0].replace("\\|", "|"), line) if line.startswith("|") else line for line in lines)


def on_post_build(config: MkDocsConfig) -> None:
    if PLAYGROUND.is_dir():
        shutil.copytree(PLAYGROUND, Path(config.site_dir) / "try", dirs_exist_ok=True)


class EquationError(PluginError, SuperFencesException):
    """Stops the build: of a block's errors superfences lets only its own pass, and else shows the source."""


def mathml(source: str, display: str) -> str:
    """LaTeX as MathML; `display` is "block" or "inline". Raises `EquationError` for a command that the converter does not know, and would only copy."""
    try:
        drawn = latex2mathml.converter.convert(source.strip(), display=display)
        ElementTree.fromstring(drawn)  # an environment it does not know leaves a bare &
    except Exception as error:  # the converter raises many kinds
        raise EquationError(f"math: {error!r} in {source.strip()}") from error
    if unknown := _NOT_DRAWN.search(drawn):
        raise EquationError(f"math: {html.unescape(unknown[0])!r} would be shown as it is in {source.strip()}")
    # \mathit{SRTT} is one name, not four letters beside each other
    drawn = _NAME.sub(lambda letters: f'<mi class="name">{re.sub("<[^>]*>", "", letters[1])}</mi>', drawn)
    return _PRIME.sub(r'<mrow>\1<mo lspace="0" rspace="0">&#x02032;</mo></mrow>', drawn)


def _math(source: str, language: str, css_class: str, options: dict, md: object, **more: object) -> str:
    return f'<div class="equation">{mathml(source, "block")}</div>'


FENCES = [{"name": "math", "class": "math", "format": _math}]


class LineMath(Extension):
    """$`x`$ within a line or a cell."""

    def extendMarkdown(self, md: Markdown) -> None:
        md.inlinePatterns.register(_LineMathPattern(r"\$`([^`\n]+)`\$", md), "math", 195)  # before code in backticks, 190


class _LineMathPattern(InlineProcessor):
    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:
        return self.md.htmlStash.store(mathml(m[1], "inline")), m.start(0), m.end(0)


def _named(items: list) -> Iterator[str]:
    for item in items:
        if isinstance(item, str):
            if "*" not in item:
                yield item
        else:
            (value,) = item.values()
            yield from _named(value if isinstance(value, list) else [value])


def _expanded(items: list, free: list[str]) -> list:
    out: list = []
    for item in items:
        if isinstance(item, dict):
            ((title, value),) = item.items()
            out.append({title: _expanded(value, free) if isinstance(value, list) else value})
        elif "*" in item:
            out += [page for page in free if fnmatchcase(page, item) and page.count("/") == item.count("/")]
        else:
            out.append(item)
    return out

"""Boxes on pages of the site that open the page's subject in the page of `make web`: a lab, an experiment, or the text of an example.

A text goes into the address: `#try=toml:CODE`, CODE being its UTF-8 in base64url without padding. `web/src/main.js` reads it.
"""

from __future__ import annotations

import base64
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLAYGROUND = ROOT / "build" / "web"
_EXAMPLE = re.compile(r"^```(p4|toml)(?: \w+)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_WHOLE = {"p4": {"V1Switch", "main"}, "toml": {"bottleneck", "duration_s", "[[flows]]"}}
"""Words that only a whole program, or a whole experiment, has."""
_PLACES = (
    (r"labs/(\d\d)/README\.md", r"lab=\1", r"labs/\1/lab.toml", "do this lab"),
    (r"docs/experiments/([a-z0-9-]+)\.md", r"experiment=\1", r"experiments/\1.toml", "run this experiment"),
)
"""Pages, what opens for them, the file that must be there, and the words of the link."""
LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")


def links(text: str) -> Iterator[str]:
    """Targets of the links and pictures of a page that lead into the repository, without what follows '#'."""
    for match in LINK.finditer(text):
        if "://" not in match[2] and not match[2].startswith("mailto:"):
            yield match[2]


def with_boxes(path: str, markdown: str) -> str:
    """A page with links that open in a browser's page what it is about: a lab, an experiment, or the text of an example."""
    address = posixpath.relpath("try/index.html", posixpath.dirname(path) or ".")

    def box(place: str, what: str) -> str:
        return f'<p class="try"><a href="{address}#{place}">Try it: {what} in your browser</a></p>'

    def of_text(kind: str, text: str) -> str:
        """A box, or "" for a text that is not whole."""
        if not _WHOLE[kind] <= set(re.findall(r"[\w\[\]]+", text)):
            return ""
        code = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
        return f"\n\n{box(f'try={kind}:{code}', 'open this text')}\n"

    markdown = _EXAMPLE.sub(lambda block: block[0] + of_text(block[1], block[2]), markdown)
    for target in dict.fromkeys(links(markdown)):
        source = ROOT / posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        if source.suffix == ".toml" and source.is_relative_to(ROOT / "docs" / "examples") and source.is_file():
            # Below the paragraph of the file's first link.
            at = markdown.index(f"]({target}")
            end = markdown.find("\n\n", at)
            in_a_table = markdown[markdown.rfind("\n", 0, at) + 1] == "|"
            if end >= 0 and not in_a_table:
                markdown = f"{markdown[:end]}{of_text('toml', source.read_text(encoding='utf-8'))}{markdown[end:]}"
    title, newline, rest = markdown.partition("\n")
    for pattern, place, file, what in _PLACES:
        if (found := re.fullmatch(pattern, path)) and (ROOT / found.expand(file)).is_file():
            rest = f"\n{box(found.expand(place), what)}\n{rest}"
    return title + newline + rest

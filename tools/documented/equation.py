"""Carries out the manual step of docs/own-algorithm.md: puts the page's equation into the skeleton of `my-rate`."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

PAGE = Path("docs/own-algorithm.md")
SKELETON = Path("hosts/algorithms/my_rate.py")


def main() -> None:
    shown = re.search(r"```python\n(def next_rate_bps.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert shown is not None, f"{PAGE} shows no next_rate_bps"
    source = SKELETON.read_text(encoding="utf-8")
    method = re.search(r"    def next_rate_bps.*?(?=\n    def |\n\n\n|\Z)", source, re.DOTALL)
    assert method is not None, f"{SKELETON} has no next_rate_bps"
    SKELETON.write_text(source.replace(method[0], textwrap.indent(shown[1].rstrip(), "    ") + "\n"), encoding="utf-8")


if __name__ == "__main__":
    main()

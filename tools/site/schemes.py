"""Writes the table of schemes in p4src/schemes/README.md from their descriptions: python -m tools.site.schemes

The table stands between `<!-- schemes -->` and `<!-- end -->`."""

from __future__ import annotations

import dataclasses
import re
from typing import Any, cast

from fairlane import probes
from fairlane.schemes import registry
from fairlane.schemes.base import number, range_text

PAGE = probes.ROOT / "p4src" / "schemes" / "README.md"
_BLOCK = re.compile(r"(<!-- schemes -->\n).*?(<!-- end -->)", re.DOTALL)


def table() -> str:
    """A row for each parameter of each scheme that comes with Fairlane."""
    rows = ["| scheme | key | default | range | |", "|---|---|---|---|---|"]
    for name, scheme in registry.SCHEMES.items():
        what = (
            [f"drops count as {', '.join(f'`{c.cause}`' for c in scheme.counters if c.cause)}"]
            if any(c.cause for c in scheme.counters)
            else []
        )
        what += ["always marks"] if scheme.always_marks else []
        what += ["at every port, where a flow asks for it"] if scheme.everywhere else []
        for number_, field in enumerate(dataclasses.fields(cast(Any, scheme.parameters))):
            first = not number_
            rows.append(
                f"| {f'`{name}`' if first else ''} | `{field.name}` | {_value(field.default)} | {range_text(field.metadata)} |"
                f" {'; '.join([scheme.title, *what]) if first else ''} |"
            )
    return "\n".join(rows) + "\n"


def _value(value: Any) -> str:
    if value is None:
        return ""
    return number(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else f"`{str(value).lower()}`"


def page() -> str:
    """The page with its table as it should be."""
    return _BLOCK.sub(lambda found: f"{found[1]}\n{table()}\n{found[2]}", PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

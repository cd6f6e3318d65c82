"""Fairlane's command line, run loop, records, metrics, plots and report; `fairlane.run(...)` and `fairlane.sweep(...)` for use from Python (`fairlane.api`)."""

from __future__ import annotations

TYPE_CHECKING = False
"""Not `typing`'s: importing it takes longer than all that comes before `fairlane.__main__` can take care of Ctrl-C."""
if TYPE_CHECKING:
    from typing import Any

    from fairlane.api import Result, run, sweep

__all__ = ["Result", "run", "sweep"]


def __getattr__(name: str) -> Any:
    """The Python interface is imported when first asked for: the command line's modules need not wait for pandas and matplotlib."""
    if name in __all__:
        from fairlane import api

        return getattr(api, name)
    raise AttributeError(f"module 'fairlane' has no attribute {name!r}")

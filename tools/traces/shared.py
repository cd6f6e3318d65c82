"""Shared by the two models of [RFC 8869]: a user's media, and a trace's text."""

from __future__ import annotations

from collections.abc import Iterable

MEDIA_BPS = 1.5e6 + 36e3
"""The most of a user's video and audio [RFC 8867 sec 4.3]."""


def csv(rows: Iterable[tuple[float, int]]) -> str:
    """rows: time_s, rate_bps."""
    return "time_s,rate_bps\n" + "".join(f"{at_s:g},{rate}\n" for at_s, rate in rows)

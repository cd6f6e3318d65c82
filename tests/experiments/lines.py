"""Expected messages that name a line by what stands in it, so that a line added to a text that many tests share changes none of them."""

from __future__ import annotations

import re


def numbered(message: str, text: str) -> str:
    """The message with the line of `part` of the text, from 1, for "file.toml:<part>: ": the line in which the part begins.

    The part stands in the text once. A message without such a place is returned as it is.
    """

    def number(place: re.Match[str]) -> str:
        assert text.count(place[1]) == 1, f"{place[1]!r} is {text.count(place[1])} times in the text"
        return f".toml:{text.count(chr(10), 0, text.index(place[1])) + 1}: "

    return re.sub(r"\.toml:<(.*?)>: ", number, message, count=1, flags=re.DOTALL)

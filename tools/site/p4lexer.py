"""P4_16 for Pygments, which has no lexer of it: C's, with P4's words."""

from __future__ import annotations

from typing import ClassVar

from pygments.lexers.c_cpp import CLexer
from pygments.token import Keyword, Name, Number, Token

__all__ = ["P4Lexer"]

_WORDS = frozenset(
    """action actions apply const control default default_action direction entries enum error exit extern
    header header_union in inout key list out package parser return select size state struct switch table transition tuple type
    typedef value_set abstract if else for""".split()
)
_TYPES = frozenset("bit bool int string varbit void match_kind".split())
_VALUES = frozenset(("true", "false", "accept", "reject"))


class P4Lexer(CLexer):
    """P4_16."""

    name = "P4"
    aliases: ClassVar[list[str]] = ["p4"]
    filenames: ClassVar[list[str]] = ["*.p4"]

    def get_tokens_unprocessed(self, text: str, stack=("root",)):
        for index, token, value in super().get_tokens_unprocessed(text, stack):
            if token in Name or token in Keyword:
                yield index, _word(value), value
            elif token is Token.Error and value in "@&|":
                yield index, Token.Operator, value
            else:
                yield index, token, value


def _word(value: str):
    if value in _WORDS:
        return Keyword
    if value in _TYPES:
        return Keyword.Type
    return Number if value in _VALUES else Name

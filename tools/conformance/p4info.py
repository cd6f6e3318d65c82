"""P4Info of the samples that both compilers accept: is it equal, as parsed protobuf with its order?"""

from __future__ import annotations

import difflib

from finsy.proto import p4i
from google.protobuf import text_format

from tools.conformance.report import Count
from tools.conformance.suite import Suite


def count(suite: Suite) -> Count:
    result = Count("p4info", "P4Info of accepted samples are equal")
    ours = dict(suite.map(suite.ours.compile, suite.accepted_by_p4c()))
    refused = 0
    for program, compiled in ours.items():
        if not compiled.accepted:
            refused += 1
            continue
        result.add(suite.checkout.name(program), difference(suite.p4c.compile(program).p4info, compiled.p4info))
    if refused:
        result.notes.append(f"{refused} more are refused by ours and not counted")
    return result


def difference(theirs: str | None, ours: str | None) -> str | None:
    """The first line that differs, with the message it is in; None when the P4Info are equal."""
    messages = []
    for whose, text in (("p4c", theirs), ("our", ours)):
        try:
            messages.append(text_format.Parse(text or "", p4i.P4Info()))
        except text_format.ParseError as error:
            return f"{whose} P4Info cannot be read: {error}"
    if messages[0] == messages[1]:
        return None
    first, second = (_paths(text_format.MessageToString(m)) for m in messages)
    changed = [
        line for line in difflib.unified_diff(first, second, lineterm="", n=0) if line[:1] in "+-" and line[:3] not in ("---", "+++")
    ]
    return "; ".join(changed[:2])


def _paths(text: str) -> list[str]:
    """Each line of protobuf text with the names of the messages around it: `tables.match_fields.bitwidth: 9`."""
    around: list[str] = []
    lines = []
    for line in map(str.strip, text.splitlines()):
        if line.endswith("{"):
            around.append(line[:-1].strip())
            lines.append(".".join([*around, "{}"]))
        elif line == "}":
            around.pop()
        else:
            lines.append(".".join([*around, line]))
    return lines

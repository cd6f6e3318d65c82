"""What an RFC's text has: its sections, appendices, equations, figures, tables, numbered steps, and requirements."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_PAGE = re.compile(r"\[Page [0-9ivx]+\]\s*$|^RFC [0-9]+ .*[12][0-9]{3}\s*$")
_HEADING = re.compile(r"(?:Appendix |APPENDIX )?([0-9]+(?:\.[0-9]+)*|[A-Z](?:\.[0-9]+)*)[.:]?(?: +-+ +| +)(\S.*)")
_CAPTION = re.compile(r" +(Figure|Table|FIGURE|TABLE) ([0-9]+)(?:(?:[.:] *| -+ )(\S.*)| *)$")
_EQUATION = re.compile(r"[^(].*(?: {2}\(| \(Eq\. )([0-9]{1,2})\)$| {10,}\(([0-9]{1,2})\)$")
_STEP = re.compile(
    r" +(?:\(([0-9]{1,2}(?:\.[0-9]{1,2}|\.?[a-z])?|[A-Z](?:\.[0-9]+)?|[a-z])\)|([0-9]{1,2}[a-z]?|[A-Za-z]|R[0-9])[.)]|Step ([0-9]{1,2})[:.]) +\S"
)
_WORDS = r"MUST NOT|MUST|SHALL NOT|SHALL|REQUIRED|SHOULD NOT|SHOULD|NOT RECOMMENDED|RECOMMENDED"
_LOWER = r"must not|must|shall not|shall|should not|should(?! (?:also )?be (?:noted|aware))|not recommended|recommended"


@dataclass
class Contents:
    """By number: titles of sections and figures; the labels of the steps of each section; requirements by section and number."""

    title: str = ""
    sec: dict[str, str] = field(default_factory=dict)
    eq: list[str] = field(default_factory=list)
    fig: dict[str, str] = field(default_factory=dict)
    table: dict[str, str] = field(default_factory=dict)
    step: dict[str, list[str]] = field(default_factory=dict)
    requirements: dict[str, str] = field(default_factory=dict)


def lines(text: str) -> list[str]:
    """The text without page feet and heads, and without a second empty line."""
    kept: list[str] = []
    new_page = False
    for line in text.replace("\f", "").replace("\r", "").replace("\ufeff", "").split("\n"):
        line = line.rstrip()
        if _PAGE.search(line):
            new_page = True
        elif line or not kept or kept[-1]:
            if line:
                # a sentence goes on over the page's end
                if new_page and len(kept) > 1 and line.lstrip()[0].islower() and kept[-2][-1:] not in (".", ":", ";", ""):
                    kept.pop()
                new_page = False
            kept.append(line)
    return kept


def _follows(before: str | None, number: str) -> bool:
    """Whether a section of this number may stand after one of that: its child, its sister, or a sister of one above. Drafts and old RFCs leave none out."""
    if before is None:
        return number == "1"
    old, new = before.split("."), number.split(".")
    if new == [*old, "1"] or new == [*old, "0"]:
        return True
    if len(new) == 1 and new[0].isalpha():
        return new[0] == "A" if old[0].isdigit() else ord(new[0]) == ord(old[0]) + 1
    if len(new) > len(old) or new[:-1] != old[: len(new) - 1] or not new[-1].isdigit() or not old[len(new) - 1].isdigit():
        return False
    return int(new[-1]) == int(old[len(new) - 1]) + 1


def sections(text: str) -> list[tuple[str, str, list[str]]]:
    """Number, title and lines of each section, in order; a table of contents, which has the same numbers before, is left out."""
    found: list[tuple[str, str, list[str]]] = []
    kept = lines(text)
    skip = -1
    for at, line in enumerate(kept):
        if at <= skip:
            continue
        heading = _HEADING.fullmatch(line)
        # acknowledgements and addresses, which have no number, end the last section
        if re.match(r"(?:Acknowledg|Contributors|Authors?'|Full Copyright)", line) and found and not kept[at - 1]:
            break
        # a heading stands at the margin, below an empty line; in a table of contents points or a page's number follow
        if heading is None or re.search(r"\.{3}|(\. ){2}| {2,}[0-9]+$", heading[2]) or (at > 0 and kept[at - 1]):
            if found:
                found[-1][2].append(line)
            continue
        number, title = heading[1].removesuffix(".0"), heading[2]
        before = found[-1][0] if found else None
        if number == "1" and found and not _follows(before, "1"):
            found, before = [], None
        parent = number.rpartition(".")[0]
        if number == f"{parent}.1" and not _follows(before, number) and _follows(before, parent):
            found.append((parent, "", []))  # its heading is centred
        elif not _follows(before, number):
            if found:
                found[-1][2].append(line)
            continue
        # a long title goes on in the next lines, indented below itself
        skip, column = at, len(line) - len(title)
        while skip + 1 < len(kept) and re.match(rf" {{{min(4, column)},}}\S", kept[skip + 1]):
            skip += 1
            title += ("" if title.endswith("-") else " ") + kept[skip].strip()
        found.append((number, title, []))
    return found


def contents(text: str, *, keep_requirements: bool = False, lower_case: bool = False, without: tuple[str, ...] = ()) -> Contents:
    """What there is. lower_case: "must" and "should" in small letters count as requirements, too, as in an RFC that does not use RFC 2119's.
    without: sections that have no requirements of their own: introductions, summaries."""
    result = Contents(title=_title(text))
    for number, title, body in sections(text):
        result.sec[number] = title
        steps: list[str] = []
        for line in body:
            if caption := _CAPTION.fullmatch(line):
                kind = result.fig if caption[1].lower() == "figure" else result.table
                kind.setdefault(caption[2], caption[3] or "")
            if (equation := _EQUATION.match(line)) and not re.match(r" *\([0-9]+\) +\(", line):
                label = equation[1] or equation[2]
                # equations count up from 1; a number in brackets at the end of a sentence does not
                if int(label) == int(result.eq[-1]) + 1 if result.eq else label in ("1", "2"):
                    result.eq.append(label)
            if step := _STEP.match(line):
                label = step[1] or step[2] or step[3]
                if label not in steps:
                    steps.append(label)
        if steps and not title.lower().endswith(("references", "addresses")):
            result.step[number] = steps
        if keep_requirements and number.split(".")[0] not in without and not title.startswith(("Acknowledg", "Contributors")):
            result.requirements |= _requirements(number, body, lower_case)
    return result


def _title(text: str) -> str:
    """The lines above the abstract, or above the memo's status."""
    kept = lines(text)
    end = next((at for at, line in enumerate(kept) if re.match(r" *(Abstract|Status [Oo]f [Tt]his|STATUS OF)", line)), 0)
    while end > 0 and not kept[end - 1]:
        end -= 1
    begin = end
    while begin > 0 and kept[begin - 1]:
        begin -= 1
    return " ".join(line.strip() for line in kept[begin:end])


def _sentences(body: list[str]) -> list[str]:
    """The sentences of a section: lines of a paragraph are joined, and a paragraph ends a sentence."""
    # an item of a list begins a paragraph
    text = re.sub(r"\n(?= +(?:[o*+-]|\(?(?:[0-9]{1,2}|[A-Za-z])[.)]) +\S)", "\n\n", "\n".join(body))
    paragraphs = re.split(r"\n\s*\n", text)
    joined = [re.sub(r"(?<=[a-z])-\n\s*(?=[a-z])", "-", paragraph) for paragraph in paragraphs]
    plain = [" ".join(paragraph.split()) for paragraph in joined]
    return [
        sentence
        for paragraph in plain
        for sentence in re.split(r"(?<=[a-z0-9)\]\"][.;:])\s+(?=[A-Z(\"o])|(?<=\.\")\s+(?=[A-Z])", paragraph)
    ]


def _requirements(section: str, body: list[str], lower_case: bool) -> dict[str, str]:
    """The section's requirements by number: the sentence's strictest words and its first ones."""
    found: dict[str, str] = {}
    word = re.compile(rf"\b({_WORDS}{'|' + _LOWER if lower_case else ''})\b")
    for sentence in _sentences([line for line in body if not re.match(r" *[+|]", line)]):
        if "RFC2119" in sentence or "RFC 2119" in sentence or "BCP 14" in sentence or re.search("key ?words", sentence.lower()):
            continue
        words = list(dict.fromkeys(match[1].upper() for match in word.finditer(sentence)))
        if words:
            first = re.sub(r"^(?:[-o*+] |\(?[0-9A-Za-z.]{1,3}[.)] )+", "", sentence).split()
            found[f"{section}/{len(found) + 1}"] = f"{', '.join(words)}: {' '.join(first[:9])}"
    return found

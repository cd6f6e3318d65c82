"""Each citation of the tree is in the form of tools/citations/grammar.py and cites what is there; and faults of each kind are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlane import probes
from tools.citations import __main__ as tool
from tools.citations import check, clauses, grammar, rfc, sources
from tools.citations.grammar import Place

KNOWN = sources.load()
NAMES = frozenset(KNOWN)
MENTION = check.outside(KNOWN)

TEXT = """\
Network Working Group                                        A. Author
Request for Comments: 9999                                   July 2026


             A Protocol of Two Lines and
                     an Appendix

Abstract

   It has sections.

Table of Contents

   1.  Introduction  . . . . . . . . . . . . . . . . . . . . . . .   2
   2.  Rules . . . . . . . . . . . . . . . . . . . . . . . . . . .   2

1.  Introduction

   The key words "MUST" and "SHOULD" are those of RFC 2119 [RFC2119].

Author                       Informational                      [Page 1]

RFC 9999                        A Protocol                     July 2026

2.  Rules, and a Title that
    Goes on

   A sender MUST wait, and it
   SHOULD count.  A receiver need not.

   1)  It sends.
   2)  It MUST NOT send again.

      x = y + 1                    (1)

         Figure 1: A Picture

2.1.  More

   1.  a list that is no section

Appendix A.  Examples

   A sender should rest.

A.1.  One

"""


def found(where: str, text: str) -> list[str]:
    return [str(fault) for fault in check.faults(where, text, KNOWN, NAMES, MENTION)]


def test_every_citation_of_the_tree() -> None:
    count, faults = check.tree(probes.ROOT)
    assert not faults, "\n".join(map(str, faults))
    assert count > 1000


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("sec 4.1.2.6", [Place("sec", "4.1.2.6", "4.1.2.6")]),
        ("sec A.2", [Place("sec", "A.2", "A.2")]),
        ("eq 3, 9", [Place("eq", "3", "3"), Place("eq", "9", "9")]),
        ("sec 4.1 to 4.3", [Place("sec", "4.1", "4.3")]),
        ("sec IV.B, eq 20, 21", [Place("sec", "IV.B", "IV.B"), Place("eq", "20", "20"), Place("eq", "21", "21")]),
        ("sec 5 step 5.5, sec 2 step 2.5", [Place("sec", "5", "5", ("5.5",)), Place("sec", "2", "2", ("2.5",))]),
        ("sec 4.3 step 3, 6", [Place("sec", "4.3", "4.3", ("3", "6"))]),
        ("fig 2", [Place("fig", "2", "2")]),
    ],
)
def test_the_form(text: str, places: list[Place]) -> None:
    assert grammar.places(text) == tuple(places)
    assert [str(place) for place in places] == [str(place) for place in grammar.places(text) or ()]


@pytest.mark.parametrize(
    "text", ["section 4", "sec", "sec 4.", "sec 4 and 5", "eqs 3, 9", "eq 3-5", "step 4", "sec table", "sec 4, p 3", "sec 4 "]
)
def test_what_is_not_in_the_form(text: str) -> None:
    assert grammar.places(text) is None


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[RFC 8298 sec 4.1.2.9]", "RFC 8298 has no section 4.1.2.9; near: 4.1.2.1 Reaction to Packet Loss and ECN; "),
        ("[RFC 8698 eq 15]", "RFC 8698 has no equation 15; it has 1 to 14"),
        ("[RFC 8593 table 1]", "RFC 8593 has no table 1; it has no tables"),
        ("[ALS sec 6.1]", "ALS has no section 6.1; near: 1 Introduction"),
        ("[RFC 6298 sec 2 step 2.6]", "RFC 6298 has no step 2.6 in section 2; steps there: 2.1, 2.2, 2.3, 2.4, 2.5"),
        ("[RFC 6298 sec 2.3]", "RFC 6298 has no section 2.3"),
        ("[RFC 8698 eq 9 to 3]", "3 comes before 9"),
        ("[RFC 8698 eq 9 step 2]", "a step belongs to a section"),
        ("[RFC 9999 sec 1]", "no list of RFC 9999"),
        ("[RFC 5348 section 3.2.2]", "is not in the form"),
        ("[RFC 5348, sec 3.2.2]", "is not in the form"),
        ("[RFC5348 sec 3.2.2]", "is not in the form"),
        ("[SSVP eqs 3 and 9]", "is not in the form"),
        ("[GCC sec 5.5, the table]", "is not in the form"),
        ("[DAA eq 1] [DAA eq 2]", "put a comma or a word between two citations"),
        ("RFC 3550 section 6.3.1 says", "'RFC 3550 section 6': write it as"),
        ("RFC 3550, section 6.3.1", "'RFC 3550, section 6': write it as"),
        ("RFC 3550's section 6", "'RFC 3550's section 6': write it as"),
        ("RFC 3550 (section 6.3)", "'RFC 3550 (section 6': write it as"),
        ("section 6.3 of RFC 3550", "'section 6.3 of RFC 3550': write it as"),
        ("Sections 6.2 and 6.3 of RFC 3550", "'Sections 6.2 and 6.3 of RFC 3550': write it as"),
        ("RFC 3550 appendix A.7", "'RFC 3550 appendix A': write it as"),
        ("RFC 5681 equation 4", "'RFC 5681 equation 4': write it as"),
        ("the link of RFC 8867 5.1: 1 Mb/s", "'RFC 8867 5.1': write it as"),
        ("(RFC 8867, 5.1)", "'RFC 8867, 5.1': write it as"),
        ("RFC 6298 (5.4)", "'RFC 6298 (5.4': write it as"),
        ("# so says RFC 3550\n# section 6.3", "'RFC 3550 # section 6': write it as"),
        ("/// so says RFC 3550\n    /// section 6.3", "'RFC 3550 /// section 6': write it as"),
        ("P4_16 8.40 (arrays)", "P4_16 has no section 8.40"),
        ("(ALS paper, section 3.1)", "'ALS paper, section 3': write it as"),
        ("DAA's equation 4", "'DAA's equation 4': write it as"),
        ('P4Runtime specification 1.4, section "Bytestrings"', "'P4Runtime specification 1.4, section \"B': write it as"),
    ],
)
def test_a_wrong_citation_is_found(text: str, fault: str) -> None:
    (one,) = found("docs/a.md", f"# Title\n\n{text}\n")
    assert one.startswith("docs/a.md:3: ")
    assert fault in one


@pytest.mark.parametrize(
    "text",
    [
        "[RFC 8298 sec 4.1.2.6], [RFC 9332 sec A.2] and [RFC 8698 eq 11 to 14]",
        "RFC 8298, its first version, RFC 3042 (2001), RFC 3390: 2 to 4, RFC 8867's cases",
        "RFC 8867 has 1.5 Mb/s, and RFC 6298 1 s",
        "section 6.3 says what RFC 3550 asks for",
        "`a[ALS]` and [ALS](als.md), figure 3 of ALS, [RFC 7323]",
        "rfc_6675_5_1_a_recovery, rfc3550.txt, https://www.rfc-editor.org/rfc/rfc3550#section-6",
    ],
)
def test_a_right_text_has_no_fault(text: str) -> None:
    assert found("docs/a.md", text) == []


def test_what_an_rfc_has() -> None:
    """Against the text above, by eye: a table of contents, a page's end, a title of two lines, lists that are no sections."""
    has = rfc.contents(TEXT, keep_requirements=True)
    assert has.title == "A Protocol of Two Lines and an Appendix"
    assert has.sec == {"1": "Introduction", "2": "Rules, and a Title that Goes on", "2.1": "More", "A": "Examples", "A.1": "One"}
    assert (has.eq, has.fig, has.table, has.step) == (["1"], {"1": "A Picture"}, {}, {"2": ["1", "2"], "2.1": ["1"]})
    assert has.requirements == {"2/1": "MUST, SHOULD: A sender MUST wait, and it SHOULD count.", "2/2": "MUST NOT: It MUST NOT send again."}
    assert rfc.contents(TEXT, keep_requirements=True, lower_case=True).requirements["A/1"] == "SHOULD: A sender should rest."


def test_a_list_is_read_as_it_is_written(tmp_path: Path) -> None:
    has = rfc.contents(TEXT, keep_requirements=True)
    (tmp_path / "rfc9999.toml").write_text(sources.written("RFC 9999", has, "rfc9999.txt"), encoding="utf-8")
    (source,) = sources.load(tmp_path).values()
    assert (source.name, source.title, source.requirements) == ("RFC 9999", has.title, has.requirements)
    assert source.numbers == {"sec": has.sec, "eq": {"1": ""}, "fig": has.fig, "table": {}}
    assert source.step == has.step


@pytest.mark.skipif(not tool.TEXTS.is_dir(), reason="no texts of RFCs (rfc8298.txt) in ../rfc, or where FAIRLANE_RFC_TEXTS says")
def test_the_lists_are_those_of_the_texts() -> None:
    made, missing = tool.lists(probes.ROOT, tool.TEXTS)
    assert missing == []
    assert {path.name: text for path, text in made.items()} == {path.name: path.read_text(encoding="utf-8") for path in made}


def test_every_list_is_cited_or_of_a_paper() -> None:
    """Lists of RFCs that nothing cites any more go away with `regenerate`."""
    cited = set()
    for where in check.files(probes.ROOT):
        if not where.startswith(check.OURS):
            text = (probes.ROOT / where).read_text(encoding="utf-8", errors="replace")
            cited |= {citation.source for _, citation in grammar.citations(text, NAMES) if citation}
    assert {name for name in NAMES if name.startswith("RFC ")} <= cited


def test_every_requirement_has_its_row() -> None:
    """Each requirement of an RFC with a page in docs/clauses/ is covered by a row with a state, and the table of all pages is up to date."""
    pages = clauses.pages(probes.ROOT, KNOWN)
    words = clauses.identifiers(probes.ROOT)
    faults = [str(fault) for page, source in pages for fault in clauses.faults(page, source, probes.ROOT, words)]
    assert not faults, "\n".join(faults)
    assert clauses.report(pages) == (probes.ROOT / clauses.PAGES / "README.md").read_text(encoding="utf-8"), (
        "python -m tools.citations report"
    )


REQUIREMENTS = {"2/1": "MUST: A sender MUST wait", "2/2": "SHOULD: It SHOULD count", "3/1": "MUST: One"}
SOURCE = sources.Source("RFC 9999", "", {"sec": {"1": "", "2": "", "3": ""}, "eq": {}, "fig": {}, "table": {}}, {}, REQUIREMENTS)
HEAD = "# A page\n\n| clause | rule | state | where, and by what test |\n|---|---|---|---|\n"
THREE = "| [RFC 9999 sec 3] | MUST one | met | `Place` |\n"


def of_page(rows: str) -> tuple[clauses.Page, list[str]]:
    page = clauses.page("docs/clauses/rfc9999.md", rows, SOURCE)
    found = clauses.faults(page, SOURCE, probes.ROOT, frozenset(("Place", "test_a", "tools/citations/check.py", "check.py")))
    return page, [str(fault) for fault in found]


def test_requirements_by_name() -> None:
    page, faults = of_page(
        HEAD
        + "| [RFC 9999 sec 2] 2/1 | wait | met | `test_a` (`check.py`) |\n"
        + "| [RFC 9999 sec 1, 2] 2/1 to 2/2 | wait, count | met in part | counts late |\n"
        + THREE
    )
    assert faults == []
    assert clauses.covers(page, SOURCE) == ({"2/1": "met in part", "2/2": "met in part", "3/1": "met"}, set())
    assert clauses.report([(page, SOURCE)]).endswith("| [A page](rfc9999.md) | 3 | 1 | 2 | 0 | 0 | 0 | 0 |\n")


def test_a_section_without_names_has_as_many_rows() -> None:
    page, faults = of_page(HEAD + "| [RFC 9999 sec 2] | it MUST wait; SHOULD count | not met | no clock |\n" + THREE)
    assert faults == []
    assert clauses.covers(page, SOURCE) == ({"3/1": "met"}, {"2"})
    assert clauses.report([(page, SOURCE)]).endswith("| [A page](rfc9999.md) | 3 | 1 | 0 | 0 | 0 | 0 | 2 |\n")


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        (
            "| [RFC 9999 sec 2] 2/1 | wait | met | `test_a` |\n",
            "md:5: RFC 9999 2/2 is not covered (SHOULD: It SHOULD count ...): no row of section 2 names it",
        ),
        (
            "| [RFC 9999 sec 2] | wait | met | `test_a` |\n",
            "md:5: RFC 9999 2/1 is not covered (MUST: A sender MUST wait ...): section 2 has 2 requirements",
        ),
        ("| [RFC 9999 sec 2] 2/1, 2/2, 2/3 | wait | met | `test_a` |\n", "RFC 9999 has no requirement 2/3"),
        ("| [RFC 9999 sec 2] 2/1, 2/2, 3/1 | wait | met | `test_a` |\n", "3/1 is of section 3, which the row does not cite"),
        ("| [RFC 9999 sec 2] 2/1, 2/2 | wait | done | `test_a` |\n", "'done' is not a state"),
        ("| [RFC 9999 sec 2] 2/1, 2/2 | wait | not met |  |\n", "'not met' without a reason"),
        ("| [RFC 9999 sec 2] 2/1, 2/2 | wait | met |  |\n", "'met' without a test, a file or a name"),
        ("| [RFC 9999 sec 2] 2/1, 2/2 | wait | met | it is so |\n", "'met' names no test, file or identifier that exists"),
        ("| [RFC 9999 sec 2] 2/1, 2/2 | wait | met | `test_a`, `test_gone` |\n", "`test_gone` does not exist"),
        ("| [RFC 9999 sec 2] 2/1, 2/2 | wait | met in part | `test_a`, `gone.py` |\n", "`gone.py` does not exist"),
        ("| [RFC 9999 sec 2] 2/1, 2/2 | a|b | met | `test_a` |\n", "5 cells instead of 4"),
    ],
)
def test_what_is_wrong_with_a_row(rows: str, fault: str) -> None:
    _, faults = of_page(HEAD + rows + THREE)
    assert any(fault in one for one in faults), faults


def test_the_file_of_a_page() -> None:
    """A row that names none has the introduction's."""
    rows = "| [RFC 9999 sec 2] 2/1, 2/2 | wait | met | it is so |\n" + THREE
    assert len(of_page(HEAD.replace("# A page\n", "# A page\n\nThe code is `gone.py`.\n") + rows)[1]) == 1
    assert of_page(HEAD.replace("# A page\n", "# A page\n\nThe code is `check.py`.\n") + rows)[1] == []


def test_other_tables_of_clauses_are_faults() -> None:
    _, faults = of_page("# A page\n\n| section | clause | state |\n|---|---|---|\n| 2 | wait | met |\n\n" + HEAD + THREE)
    assert faults[0].startswith("docs/clauses/rfc9999.md:3: a table of clauses has the columns")

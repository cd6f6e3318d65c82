"""make citations: each citation of the tree is in the form, and what it cites exists."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tools.citations import check, clauses, grammar, rfc, sources

ROOT = Path(__file__).resolve().parents[2]
TEXTS = Path(os.environ.get("FAIRLANE_RFC_TEXTS", ROOT.parent / "rfc"))
LOWER_CASE = {"RFC 7928": ("1", "13"), "RFC 8867": ("1",), "RFC 8868": ("1",), "RFC 8869": ("1",)}
"""RFCs that do not write "must" and "should" in capitals: small letters count as requirements, too, but not in these sections."""


def cited(root: Path) -> list[str]:
    """The RFCs that the tree cites by section."""
    known = frozenset(sources.load())
    found = set()
    for where in check.files(root):
        if not where.startswith(check.OURS):
            text = (root / where).read_text(encoding="utf-8", errors="replace")
            found |= {citation.source for _, citation in grammar.citations(text, known) if citation}
    return sorted((name for name in found if name.startswith("RFC ")), key=lambda name: int(name[4:]))


def lists(root: Path, texts: Path) -> tuple[dict[Path, str], list[str]]:
    """The lists of cited RFCs, made from their texts, and what could not be done."""
    made: dict[Path, str] = {}
    missing = []
    names = cited(root)
    paged = {source.name for _, source in clauses.pages(root, {name: clauses.unlisted(name) for name in names})}
    for name in names:
        path, file = sources.file_of(name), f"rfc{name[4:]}.txt"
        if path.exists() and not sources.is_written(path):
            continue
        if not (texts / file).is_file():
            missing.append(f"{name}: no {texts / file}; put it there, or write tools/citations/sources/{path.name} by hand")
            continue
        text = (texts / file).read_text(encoding="utf-8", errors="replace")
        found = rfc.contents(text, keep_requirements=name in paged, lower_case=name in LOWER_CASE, without=LOWER_CASE.get(name, ()))
        made[path] = sources.written(name, found, file)
    return made, missing


def regenerate(root: Path, texts: Path) -> list[str]:
    """Writes the lists of cited RFCs, and removes those of others; returns what could not be done."""
    if not texts.is_dir():
        return [f"{texts}: no such folder; give the folder of RFC texts (rfc8298.txt) by --texts or FAIRLANE_RFC_TEXTS"]
    made, missing = lists(root, texts)
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
    wanted = {sources.file_of(name) for name in cited(root)}
    for path in sources.FOLDER.glob("rfc*.toml"):
        if sources.is_written(path) and path not in wanted:
            path.unlink()
    return missing


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.citations", description=__doc__)
    parser.add_argument("command", nargs="?", choices=("check", "regenerate", "report"), default="check")
    parser.add_argument("files", nargs="*", help="some files only")
    parser.add_argument("--texts", type=Path, default=TEXTS, help="folder of RFC texts, rfc8298.txt")
    options = parser.parse_args()
    for file in options.files:
        if not (ROOT / file).is_file():
            parser.error(f"{file}: no such file; give its path from the root of the checkout")
    if options.command == "regenerate":
        missing = regenerate(ROOT, options.texts)
        print("\n".join(missing), end="\n" if missing else "", file=sys.stderr)
        return 2 if missing else 0
    pages = clauses.pages(ROOT, sources.load())
    if options.command == "report":
        (ROOT / clauses.PAGES / "README.md").write_text(clauses.report(pages), encoding="utf-8")
    count, faults = check.tree(ROOT, options.files)
    words = clauses.identifiers(ROOT)
    faults += [
        fault
        for page, source in pages
        for fault in clauses.faults(page, source, ROOT, words)
        if page.path in (options.files or [page.path])
    ]
    for fault in faults:
        print(fault)
    print(f"{count} citations, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

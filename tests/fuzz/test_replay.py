"""Every file of the corpora through its target: what once was found is never lost again."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import targets

FILES = [(name, path) for name in targets.TARGETS for path in sorted((targets.CORPUS / name).iterdir())]


def test_there_is_a_corpus_for_each_target() -> None:
    assert {path.name for path in targets.CORPUS.iterdir()} == set(targets.TARGETS)
    assert {name for name, _ in FILES} == set(targets.TARGETS)


@pytest.mark.parametrize(("name", "path"), FILES, ids=lambda value: value if isinstance(value, str) else value.name)
def test_replay(name: str, path: Path) -> None:
    targets.TARGETS[name](path.read_bytes())

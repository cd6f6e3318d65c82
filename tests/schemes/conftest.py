"""What tests of schemes share."""

from __future__ import annotations

import pytest

from fairlane.hosts import own_algorithms
from fairlane.hosts.algorithms import ALGORITHMS
from fairlane.schemes import registry


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch):
    """The schemes that a test adds are gone after it, and the flow kinds that came with them."""
    before = [(known, dict(known)) for known in (registry.SCHEMES, ALGORITHMS)]
    for variable in (registry.FOLDERS_VARIABLE, own_algorithms.FILES_VARIABLE):
        monkeypatch.setenv(variable, "")
    yield
    for known, entries in before:
        known.clear()
        known.update(entries)

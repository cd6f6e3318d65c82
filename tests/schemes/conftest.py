"""What tests of schemes share."""

from __future__ import annotations

import sys

import pytest

from fairlane.hosts import own_algorithms
from fairlane.hosts.algorithms import ALGORITHMS
from fairlane.schemes import registry


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch):
    """The schemes that a test adds are gone after it, with their modules and flow kinds."""
    before = [(known, dict(known)) for known in (registry.SCHEMES, ALGORITHMS)]
    modules = set(sys.modules)
    for variable in (registry.FOLDERS_VARIABLE, own_algorithms.FILES_VARIABLE):
        monkeypatch.setenv(variable, "")
    yield
    for known, entries in before:
        known.clear()
        known.update(entries)
    for name in [name for name in sys.modules if name.startswith(registry.MODULES) and name not in modules]:
        del sys.modules[name]

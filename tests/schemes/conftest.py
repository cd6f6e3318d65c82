"""What tests of schemes share."""

from __future__ import annotations

import pytest

from fairlane.schemes import registry


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch):
    """The schemes that a test adds are gone after it."""
    before = dict(registry.SCHEMES)
    monkeypatch.setenv(registry.FOLDERS_VARIABLE, "")
    yield
    registry.SCHEMES.clear()
    registry.SCHEMES.update(before)

"""Property tests here have no deadline for one example: the machine may be busy with a build."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("hosts", deadline=None)
settings.load_profile("hosts")

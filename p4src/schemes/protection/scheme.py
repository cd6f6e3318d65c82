"""Flow protection, which [ALS sec 5] asks of routers (docs/flow-protection.md). `fairlane.controller.protection` has the limits, which follow each
observation interval."""

from __future__ import annotations

from dataclasses import dataclass

from fairlane.schemes.base import Parameters, Scheme


@dataclass(frozen=True)
class Protection(Parameters):
    """It has none: its limits follow from R_f and from what ports carry."""


SCHEME = Scheme(
    "protection",
    "flow protection",
    Protection,
    controls={"offered": "Protection protection", "copy": "ReplicaProtection protection"},
    everywhere=True,
    asked_by="protection",
    macro_name="FLOW_PROTECTION",
    order=30,
)

"""In-band telemetry: each switch writes into data packets what it knows of the port that the packet leaves by."""

from __future__ import annotations

from dataclasses import dataclass

from fairlane.schemes.base import DataHeader, Parameters, Scheme

HOPS = 4
"""As in telemetry_header.p4."""


@dataclass(frozen=True)
class Telemetry(Parameters):
    """It has none."""


SCHEME = Scheme(
    "telemetry",
    "telemetry",
    Telemetry,
    controls={"sent": "Telemetry telemetry"},
    header=DataHeader("telemetry_t telemetry", profile=0x5445, words=1 + 4 * HOPS, hops="hop_t hops", most_hops=HOPS),
    everywhere=True,
)

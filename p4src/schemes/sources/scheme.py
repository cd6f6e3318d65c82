"""Source addresses are believed only where their hosts' packets come in (docs/threats.md). The controller fills the table from network and addresses."""

from __future__ import annotations

from dataclasses import dataclass

from fairlane.schemes.base import Entry, Parameters, Scheme


@dataclass(frozen=True)
class Sources(Parameters):
    """It has none."""


def _believed(address: int, port: int) -> Entry:
    key = "hdr.ipv4.src_address" if address < 1 << 32 else "hdr.ipv6.src_address"
    return Entry("AlsIngress.sources.source_at", "believe", keys={key: address, "standard_metadata.ingress_port": port})


SCHEME = Scheme(
    "sources",
    "sources",
    Sources,
    controls={"entry": "Sources sources"},
    of_source=_believed,
    everywhere=True,
    asked_by="source_guard",
    macro_name="SOURCE_GUARD",
    order=31,
)

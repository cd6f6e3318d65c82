"""Numbers that the P4 programs and Python both need: Python's against the compiled program's P4Info, and against p4src/constants.p4."""

from __future__ import annotations

import re

from fairlane import probes
from fairlane.controller.p4info import P4Info
from fairlane.p4src.schemes.protection import limits as protection
from fairlane.p4src.schemes.red import scheme as red
from fairlane.topologies.model import CPU_PORT, MAX_PORT


def scales(p4info: P4Info, action: str) -> dict[str, int]:
    """For each parameter, 2 to the power of its bits behind the binary point, as the program annotates it."""
    return {p.name: 1 << int(re.fullmatch(r"@fraction_bits\((\d+)\)", a)[1]) for p in p4info.actions[action].params for a in p.annotations}


def test_red_has_the_programs_scales(p4info: P4Info) -> None:
    for action in ("AlsIngress.red.set_red", "AlsEgress.replica.set_red"):
        assert scales(p4info, action) == {
            "minimum": red.PACKET_SCALE,
            "maximum": red.PACKET_SCALE,
            "slope": red.UNIT_SCALE,
            "weight": red.UNIT_SCALE,
            "idle_decay": red.DECAY_SCALE,
        }
    assert scales(p4info, "AlsEgress.departure.set_link") == {"microseconds_per_byte": red.LINK_SCALE}
    # The average is kept in 32 bits.
    assert red.QUEUE_LIMIT_PACKETS == (1 << 32) // red.PACKET_SCALE - 1


def test_protection_has_the_programs_scale(protecting: P4Info) -> None:
    for place in ("AlsIngress", "AlsEgress"):
        found = scales(protecting, f"{place}.protection.hold.set_limits")
        assert len(found) == 4 and set(found.values()) == {protection.BYTE_SCALE}


def test_the_ports_are_the_programs() -> None:
    text = (probes.ROOT / "p4src" / "constants.p4").read_text()
    number = {name: int(value) for name, value in re.findall(r"const bit<9> (\w+)\s*= (\d+);", text)}
    assert (number["CPU_PORT"], number["CPU_PORT"] - 1) == (CPU_PORT, MAX_PORT)

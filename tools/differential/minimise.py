"""From packets that leave the switches unlike to the shortest test that shows it."""

from __future__ import annotations

from collections.abc import Sequence

from tools.bmv2.packets import Packet
from tools.bmv2.process import SwitchDied
from tools.differential.compare import Both, Comparison, Differs, Result

TRIES = 150
_QUIET_S = 0.03
# Each try may wait as long for a packet that never comes.
_LOST_S = 1.5


def first_alone(comparison: Comparison, packets: Sequence[Packet], others: int) -> Packet | None:
    """A packet that leaves fresh switches unlike when nothing came before it: the first that differs after those before it, or one of so
    many others."""
    found = _first(comparison, packets)
    spread = packets[:: max(len(packets) // others, 1)][:others] if others else []
    tries = [len(spread) + 1]
    candidates = spread if found is None else [packets[found], *spread]
    return next((packet for packet in candidates if _differs(comparison, [packet], tries)), None)


def minimise(comparison: Comparison, packets: Sequence[Packet]) -> str | None:
    """An STF test with what BMv2 does as expectation; None when these packets do not differ on fresh switches."""
    found = _first(comparison, packets)
    if found is None:
        return None
    packets = list(packets[: found + 1])
    tries = [TRIES]
    # Fewer packets before the one that differs: halves, quarters, ...
    step = len(packets)
    while step >= 1 and len(packets) > 1:
        at = 0
        while at < len(packets) - 1 and tries[0] > 0:
            fewer = packets[:at] + packets[min(at + step, len(packets) - 1) :]
            if _differs(comparison, fewer, tries):
                packets = fewer
            else:
                at += step
        step //= 2
    port, data = packets[-1]
    for length in (len(data) // 4, len(data) // 2, len(data) * 3 // 4, *range(max(len(data) - 8, 0), len(data))):
        if length < len(data) and tries[0] > 0 and _differs(comparison, [*packets[:-1], (port, data[:length])], tries):
            data = data[:length]
            break
    for at in range(len(data)):
        if data[at] and tries[0] > 0:
            zeroed = data[:at] + b"\0" + data[at + 1 :]
            if _differs(comparison, [*packets[:-1], (port, zeroed)], tries):
                data = zeroed
    return script(comparison, [*packets[:-1], (port, data)])


def script(comparison: Comparison, packets: Sequence[Packet]) -> str:
    """The setup and the packets, with what each switch sends."""
    lines = [f"# {comparison.case.program.name}", comparison.setup.read_text(encoding="utf-8").rstrip()]
    with comparison.fresh(_LOST_S) as both:
        for port, data in packets:
            lines.append(f"packet {port} {data.hex()}")
            ours = both.ours.exchange([(port, data)])[0]
            lines += [f"# ours: expect {out} {sent.hex()} $" for out, sent in ours] or ["# ours: nothing"]
            try:
                both.bmv2.packets.send([(port, data)])
                both.bmv2.packets.wait(len(ours), 1)
                both.bmv2.packets.settle(_QUIET_S)
                both.bmv2.check()
            except (OSError, SwitchDied) as error:
                lines.append(f"# BMv2 ended: {' '.join(str(error).split())}")
                break
            lines += [f"expect {out} {sent.hex()} $" for out, sent in both.bmv2.packets.take()] or ["# BMv2: nothing"]
    return "\n".join(lines) + "\n"


def _first(comparison: Comparison, packets: Sequence[Packet]) -> int | None:
    """The first packet that differs, sent one at a time."""
    with comparison.fresh(_LOST_S) as both:
        for i, packet in enumerate(packets):
            if _one_differs(both, packet):
                return i
    return None


def _differs(comparison: Comparison, packets: Sequence[Packet], tries: list[int]) -> bool:
    tries[0] -= 1
    with comparison.fresh(_LOST_S) as both:
        return any(_one_differs(both, packet) for packet in packets)


def _one_differs(both: Both, packet: Packet) -> bool:
    try:
        both.compare(0, [packet], Result())
        both.bmv2.packets.settle(_QUIET_S)
        both.bmv2.check()
    except (Differs, SwitchDied, OSError):
        return True
    return bool(both.bmv2.packets.received)

"""Propagation delays in user space, for targets that have none on kernels without netem: `fairlane-link` between switch and link.

    h1 ---------- f3a2-l0a | fairlane-link | f3a2-l0b ---------- f3a2-s1-p1
          veth                  delay              veth

One process serves all links of a run. Rate and queue stay in the switch's port: a delay line only adds the same delay in each direction.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairlane.topologies.model import Topology


@dataclass(frozen=True)
class DelayLine:
    """Of one link: its index in the topology, the delay of each direction, and the two interfaces in the root namespace between
    which frames are carried. `far` is on the side of `switch`, the later-named end of the link that is a switch."""

    link_index: int
    delay_s: float
    near: str
    far: str
    switch: str


@dataclass(frozen=True)
class Precision:
    """How late frames left their delay lines, over all links. late_p99_us: of the worst direction. lost: frames that arrived when a
    line was full, or that the kernel did not deliver or take."""

    frames: int
    late_mean_us: float
    late_p99_us: float
    late_max_us: float
    lost: int

    def sentence(self) -> str:
        """What was measured, in words."""
        lost = f", {self.lost} of them lost" if self.lost else ""
        return (
            f"delay lines: {self.frames} frames{lost}; they left {self.late_mean_us:.0f} us late on average, 99% within"
            f" {self.late_p99_us:.0f} us, the latest after {self.late_max_us / 1000:.1f} ms"
        )


def plan(topology: Topology, prefix: str) -> tuple[DelayLine, ...]:
    """A delay line for each link that has a delay. prefix: of the run's interfaces."""
    switches = set(topology.switches)
    lines = []
    for index, link in enumerate(topology.links):
        if link.delay_s > 0:
            # A host's end is a switch's at the other: one end is always a switch.
            switch = next(port.node for port in reversed(topology.ends(index)) if port.node in switches)
            lines.append(DelayLine(index, link.delay_s, f"{prefix}l{index}a", f"{prefix}l{index}b", switch))
    return tuple(lines)


def command(program: Path, lines: Sequence[DelayLine], report: Path) -> list[str]:
    """The command line of `fairlane-link`."""
    argv = [str(program)]
    for line in lines:
        argv += ["--link", f"{line.near},{line.far}={line.delay_s * 1e9:.0f}ns"]
    return argv + ["--report", str(report)]


def precision(reports: Sequence[Path]) -> Precision | None:
    """From the reports of the processes that served a run (several if one died); None without reports."""
    directions = []
    for path in reports:
        try:
            directions += json.loads(path.read_text())
        except (OSError, ValueError):
            continue
    frames = sum(d["frames"] for d in directions)
    if not frames:
        return None
    return Precision(
        frames,
        sum(d["late_mean_us"] * d["frames"] for d in directions) / frames,
        max(d["late_p99_us"] for d in directions),
        max(d["late_max_us"] for d in directions),
        sum(d["dropped"] + d["missed"] + d["failed"] for d in directions),
    )

"""A film's frames, from the records of a run: production and arrival times, omitted frames, freezes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from fairlane.arithmetic import total
from fairlane.fabrics import raw
from fairlane.hosts import film

CLOCK_HZ = 90_000
_FREEZE_MORE_S, _FREEZE_TIMES = 0.150, 3.0
"""A freeze: no new picture for max(3 d, d + 150 ms), d the mean time between pictures (freezeCount of W3C's WebRTC statistics)."""


@dataclass(frozen=True)
class Frame:
    """One picture of the film that was encoded. Times are seconds from the flow's start. arrived_s: its last packet. shown_s: when the decoder had
    its picture; without a decoder, when all of it had arrived; None: never. encoder_bps: what the encoder was allowed."""

    number: int
    produced_s: float
    packets: int
    bytes: int
    encoder_bps: float
    arrived_packets: int = 0
    arrived_s: float | None = None
    shown_s: float | None = None

    @property
    def whole(self) -> bool:
        return self.arrived_packets >= self.packets

    @property
    def delay_s(self) -> float | None:
        return None if self.shown_s is None else self.shown_s - self.produced_s


def read(folder: Path, flow: str, frames_per_second: float) -> list[Frame]:
    """In the order of the film. folder: of a run's raw records."""
    start_ns = 0
    found: dict[int, Frame] = {}
    for record in raw.flow_records(folder, flow, "sender"):
        if record["kind"] == "start":
            start_ns = round(record["mono_s"] * 1e9)
        if record["kind"] == "frame_produced":
            number = _number(record["timestamp"], frames_per_second)
            produced_s = (record["produced_ns"] - start_ns) / 1e9
            found[number] = Frame(number, produced_s, record["packets"], record["bytes"], record["encoder_bps"])
    for record in raw.flow_records(folder, flow, "receiver"):
        if record["kind"] == "frame_arrived" and (frame := found.get(_number(record["timestamp"], frames_per_second))):
            arrived_s = max((record["last_ns"] - start_ns) / 1e9, frame.arrived_s or 0.0)
            found[frame.number] = replace(frame, arrived_packets=frame.arrived_packets + record["packets"], arrived_s=arrived_s)
    _, shown = film.kept(folder / f"{flow}.receiver.jsonl")
    if not shown.exists():
        return [replace(f, shown_s=f.arrived_s if f.whole else None) for _, f in sorted(found.items())]
    for record in raw.json_lines(shown):
        if frame := found.get(_number(record["timestamp"], frames_per_second)):
            found[frame.number] = replace(frame, shown_s=(record["shown_ns"] - start_ns) / 1e9)
    return [frame for _, frame in sorted(found.items())]


def _number(timestamp: int, frames_per_second: float) -> int:
    return round(timestamp * frames_per_second / CLOCK_HZ)


def freezes(frames: Sequence[Frame], frames_per_second: float) -> list[tuple[float, float]]:
    """From when to when the same picture stood for too long."""
    shown = sorted(f.shown_s for f in frames if f.shown_s is not None)
    usual_s = 1.0 / frames_per_second
    longest_s = max(_FREEZE_TIMES * usual_s, usual_s + _FREEZE_MORE_S)
    return [(a, b) for a, b in itertools.pairwise(shown) if b - a > longest_s]


@dataclass(frozen=True)
class Quality:
    """Of what was on the screen in the place of a picture of the film."""

    ssim: float
    psnr_db: float


def figures(frames: Sequence[Frame], quality: Mapping[int, Quality], seconds: float, frames_per_second: float) -> dict[str, Any]:
    """What a table says of one flow; None where nothing was measured. quality: by the picture's number."""
    delays = [f.delay_s for f in frames if f.delay_s is not None]
    frozen = freezes(frames, frames_per_second)
    ssims, psnrs = [q.ssim for q in quality.values()], [q.psnr_db for q in quality.values()]
    return {
        "pictures": math.floor(seconds * frames_per_second),
        "encoded": len(frames),
        "shown": len(delays),
        "incomplete": sum(not f.whole for f in frames),
        "encoded_bps": 8 * sum(f.bytes for f in frames) / seconds,
        "freezes": len(frozen),
        "frozen_s": total(b - a for a, b in frozen),
        "delay_median_s": float(np.percentile(delays, 50)) if delays else None,
        "delay_95_s": float(np.percentile(delays, 95)) if delays else None,
        "delay_max_s": max(delays) if delays else None,
        "ssim_mean": fmean(ssims) if ssims else None,
        "ssim_5": float(np.percentile(ssims, 5)) if ssims else None,
        "psnr_mean_db": fmean(psnrs) if psnrs else None,
    }


def on_screen(frames: Sequence[Frame], time_s: float) -> Frame | None:
    """The newest picture that was there at an instant."""
    return max((f for f in frames if f.shown_s is not None and f.shown_s <= time_s), key=lambda f: f.number, default=None)

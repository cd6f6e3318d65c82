"""The film's pictures: generated, or from a file, as YUV4MPEG2 without compression."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from fairlane import probes
from fairlane.errors import CANNOT_RUN_HERE, Refusal, RunFailed

WIDTH, HEIGHT, FRAMES_PER_SECOND = 640, 360, 25
DRAWN_S = 30.0
"""A drawn film begins anew after so long."""
LONGEST_S = 120.0
"""Of a file; then it begins anew."""
DRAWING = (
    "mandelbrot=size={size}:rate={rate}:start_scale=3:end_scale=0.0001:end_pts=750:maxiter=200[deep];"
    "testsrc2=size=200x112:rate={rate}[card];[deep][card]overlay=x='10+4*n-floor(4*n/430)*430':y=10"
)
"""As ffmpeg's filters: a descent into Mandelbrot's set, every part of which moves, and a test card with a running clock across it."""


@dataclass(frozen=True)
class Film:
    """path: the pictures. what: for people."""

    path: Path
    what: str
    width: int = WIDTH
    height: int = HEIGHT
    frames_per_second: int = FRAMES_PER_SECOND

    @property
    def picture_bytes(self) -> int:
        return self.width * self.height * 3 // 2


def ffmpeg() -> str:
    """Refusal where it is missing."""
    found = probes.program("ffmpeg")
    if found is None:
        raise Refusal("a film's pictures and their quality need ffmpeg: apt-get install ffmpeg", CANNOT_RUN_HERE)
    return str(found)


def make(given: Path | None, seconds: float, folder: Path) -> Film:
    """The film for so many seconds in `folder`: of a file, scaled, or drawn. Refusal for a file that is none, and where the disk is too small."""
    if given is not None and not given.is_file():
        raise Refusal(f"--film {given}: there is no such file")
    length_s = min(seconds, DRAWN_S if given is None else LONGEST_S)
    film = Film(folder / "film.y4m", "drawn: Mandelbrot's set and a test card" if given is None else given.name)
    needed = length_s * film.frames_per_second * film.picture_bytes
    free = shutil.disk_usage(folder).free
    if needed > 0.9 * free:
        raise Refusal(
            f"the film's pictures take {needed / 1e6:,.0f} MB in {folder}, where {free / 1e6:,.0f} are free: set TMPDIR", CANNOT_RUN_HERE
        )
    size, rate = f"{film.width}x{film.height}", film.frames_per_second
    if given is None:
        source = ["-f", "lavfi", "-i", DRAWING.format(size=size, rate=rate)]
    else:
        fit = f"scale={film.width}:{film.height}:force_original_aspect_ratio=decrease,pad={film.width}:{film.height}:-1:-1,fps={rate}"
        source = ["-i", str(given), "-an", "-vf", fit]
    argv = [ffmpeg(), "-hide_banner", "-loglevel", "error", "-y", *source, "-t", f"{length_s:g}", "-pix_fmt", "yuv420p", str(film.path)]
    done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()[-1:] or ["no word"]
        if given is not None:
            raise Refusal(f"--film {given}: ffmpeg cannot read it: {reason[0]}")
        raise RunFailed(f"ffmpeg did not draw the film: {reason[0]}")
    return film

"""Quality by frame: decodes the received packets as the receiver did, and compares the shown pictures with the film by ffmpeg."""

from __future__ import annotations

import itertools
import re
import struct
import subprocess
import tempfile
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from fairlane.errors import RunFailed
from fairlane.films import pictures
from fairlane.films.pictures import Film
from fairlane.hosts import film as beside
from fairlane.results.frames import CLOCK_HZ, Frame, Quality

_HEAD = struct.Struct(">II")


def decoded(packets: Path, film: Film) -> Generator[tuple[int, bytes], None, None]:
    """Number and I420 bytes of each picture that the decoder makes of a file of packets. Closed early, it ends the decoder. RunFailed."""
    argv = [beside.PYTHON, "-I", str(beside.PROGRAM), "pictures", str(packets)]
    with ExitStack() as stack:
        words = stack.enter_context(tempfile.TemporaryFile("w+"))
        process = stack.enter_context(subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=words))
        stack.callback(process.kill)
        assert process.stdout is not None
        while len(head := process.stdout.read(_HEAD.size)) == _HEAD.size:
            timestamp, size = _HEAD.unpack(head)
            if size != film.picture_bytes:
                raise RunFailed(f"{packets.name}: a picture of {size} bytes, where the film's have {film.picture_bytes}")
            yield round(timestamp * film.frames_per_second / CLOCK_HZ), process.stdout.read(size)
        if process.wait() != 0:
            words.seek(0)
            raise RunFailed(f"{packets.name} cannot be decoded: {words.read().strip()[-300:]}")


class _Source:
    """The film's pictures, again from the first after the last."""

    def __init__(self, film: Film) -> None:
        self._file = film.path.open("rb")
        self._first = len(self._file.readline())
        self._size, self._each = film.picture_bytes, film.picture_bytes + len(b"FRAME\n")
        self._count = (film.path.stat().st_size - self._first) // self._each

    def __getitem__(self, number: int) -> bytes:
        self._file.seek(self._first + number % self._count * self._each + len(b"FRAME\n"))
        return self._file.read(self._size)

    def close(self) -> None:
        self._file.close()


def measure(packets: Path, film: Film, count: int, wanted: Collection[int], keep: Callable[[int, bytes], None]) -> dict[int, Quality]:
    """Of each of the film's first `count` pictures, from the first that was shown: what was on the screen in its place, which is the picture before
    where none came. keep: takes the pictures whose numbers are wanted. RunFailed."""
    with tempfile.TemporaryDirectory(prefix="fairlane-film-") as folder:
        ssim, psnr = Path(folder, "ssim"), Path(folder, "psnr")
        halves = "split[a][b];[a]crop=iw:ih/2:0:0,split[shown][shown2];[b]crop=iw:ih/2:0:ih/2,split[film][film2]"
        graph = f"{halves};[shown][film]ssim=stats_file={ssim}[c];[shown2][film2]psnr=stats_file={psnr}[d]"
        argv = [pictures.ffmpeg(), "-hide_banner", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "yuv420p"]
        argv += ["-video_size", f"{film.width}x{2 * film.height}", "-framerate", str(film.frames_per_second), "-i", "-"]
        argv += ["-filter_complex", graph, "-map", "[c]", "-f", "null", "-", "-map", "[d]", "-f", "null", "-"]
        source = _Source(film)
        first = None
        try:
            with subprocess.Popen(argv, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
                assert process.stdin is not None and process.stderr is not None
                try:
                    for number, shown in _on_screen(packets, film, count):
                        first = number if first is None else first
                        process.stdin.write(_stacked(shown, source[number], film))
                        if number in wanted:
                            keep(number, shown)
                    process.stdin.close()
                except BrokenPipeError:
                    pass
                said = process.stderr.read().decode(errors="replace").strip()
                if process.wait() != 0:
                    raise RunFailed(f"ffmpeg did not compare the pictures: {said[-300:]}")
        finally:
            source.close()
        if first is None:
            return {}
        values = zip(_values(ssim, r"All:([0-9.]+)"), _values(psnr, r"psnr_avg:([0-9.]+|inf)"), strict=True)
        return {first + n: Quality(*both) for n, both in enumerate(values)}


def _on_screen(packets: Path, film: Film, count: int) -> Iterator[tuple[int, bytes]]:
    """For each picture of the film, from the first that came: it, or the one before it on the screen."""
    last: bytes | None = None
    next_number = 0
    for number, picture in decoded(packets, film):
        if number < next_number:
            continue
        if last is not None:
            for missing in range(next_number, min(number, count)):
                yield missing, last
        if number >= count:
            return
        yield number, picture
        last, next_number = picture, number + 1
    if last is not None:
        for missing in range(next_number, count):
            yield missing, last


def _stacked(upper: bytes, lower: bytes, film: Film) -> bytes:
    """Two I420 pictures as one, one above the other."""
    luma = film.width * film.height
    chroma = luma // 4
    edges = (0, luma, luma + chroma, luma + 2 * chroma)
    return b"".join(part for a, b in itertools.pairwise(edges) for part in (upper[a:b], lower[a:b]))


def _values(path: Path, pattern: str) -> list[float]:
    """PSNR of equal pictures is infinite: 100 dB stands for it."""
    return [min(100.0, float(match[1])) for line in path.read_text(encoding="utf-8").splitlines() if (match := re.search(pattern, line))]


def side_by_side(flows: Sequence[tuple[Sequence[Frame], Path]], film: Film, seconds: float, path: Path) -> None:
    """A film of what was on each flow's screen at each instant, from left to right. flows: frames, and the packets that came. RunFailed."""
    screens = [_as_they_came(frames, packets, film, seconds) for frames, packets in flows]
    argv = [pictures.ffmpeg(), "-hide_banner", "-loglevel", "error", "-y", "-f", "rawvideo", "-pix_fmt", "yuv420p"]
    argv += ["-video_size", f"{film.width * len(flows)}x{film.height}", "-framerate", str(film.frames_per_second), "-i", "-"]
    argv += [
        "-vf",
        "scale=iw/2:ih/2",
        "-c:v",
        "libx264",
        "-preset",
        "veryfast",
        "-crf",
        "24",
        "-pix_fmt",
        "yuv420p",
        "-movflags",
        "+faststart",
        str(path),
    ]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stderr is not None
        try:
            for row in zip(*screens):
                process.stdin.write(_beside(row, film))
            process.stdin.close()
        except BrokenPipeError:
            pass
        said = process.stderr.read().decode(errors="replace").strip()
        if process.wait() != 0:
            raise RunFailed(f"ffmpeg did not write {path.name}: {said[-300:]}")


def _as_they_came(frames: Sequence[Frame], packets: Path, film: Film, seconds: float) -> Iterator[bytes]:
    """What is on the screen at each instant of the film's pace: grey before the first picture."""
    shown = sorted((f.shown_s, f.number) for f in frames if f.shown_s is not None)
    coming, screen, number, next_shown = decoded(packets, film), bytes([128]) * film.picture_bytes, -1, 0
    for instant in range(round(seconds * film.frames_per_second)):
        newest = number
        while next_shown < len(shown) and shown[next_shown][0] <= instant / film.frames_per_second:
            newest = max(newest, shown[next_shown][1])
            next_shown += 1
        while number < newest:
            number, screen = next(coming, (newest, screen))
        yield screen
    coming.close()


def _beside(row: Sequence[bytes], film: Film) -> bytes:
    """I420 pictures as one, from left to right."""
    luma = film.width * film.height
    parts = []
    for start, width, height in (
        (0, film.width, film.height),
        (luma, film.width // 2, film.height // 2),
        (luma * 5 // 4, film.width // 2, film.height // 2),
    ):
        planes = [np.frombuffer(picture, np.uint8, width * height, start).reshape(height, width) for picture in row]
        parts.append(np.hstack(planes).tobytes())
    return b"".join(parts)


def save_jpeg(picture: bytes, film: Film, path: Path) -> None:
    """RunFailed."""
    argv = [pictures.ffmpeg(), "-hide_banner", "-loglevel", "error", "-y", "-f", "rawvideo", "-pix_fmt", "yuv420p"]
    argv += ["-video_size", f"{film.width}x{film.height}", "-i", "-", "-frames:v", "1", "-q:v", "3", str(path)]
    done = subprocess.run(argv, input=picture, capture_output=True, check=False)
    if done.returncode != 0:
        raise RunFailed(f"ffmpeg did not write {path.name}: {done.stderr.decode(errors='replace').strip()[-300:]}")

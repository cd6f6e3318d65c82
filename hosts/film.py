"""The programs at the ends of a flow that carries a film: GStreamer's encoder and decoder, as processes of Debian's own Python."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from fairlane.hosts.records import IP_HEADER_BYTES
from fairlane.hosts.sources import Source

PROGRAM = Path(__file__).with_name("gstreamer_film.py")
PYTHON = "/usr/bin/python3"
"""Debian's, which finds python3-gi; an environment of one's own does not."""
PACKAGES = (
    "python3-gi gir1.2-gst-plugins-base-1.0 gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-plugins-bad "
    "gstreamer1.0-plugins-ugly gstreamer1.0-libav"
)
"""Of Debian, for `apt-get install`."""
HEADERS_BYTES = 84
"""IPv4 (IPv6 has 20 bytes more), UDP, the flow's RTP header with room for a rate header, and stamp; the film's own RTP packet is what is left of a data packet."""
KEY_INTERVAL_S = 2.0
"""Between key frames, where a source says none."""
_BUFFER_BYTES = 1 << 22
_PATIENCE_S = 6.0


class FilmError(Exception):
    """The program ended early, or did not end."""


class Beside:
    """A program beside an end, and the socket to it. OSError when it cannot be started."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            for end in (self.socket, theirs):
                # Root may have more than net.core.wmem_max: a key frame comes as one burst.
                option = socket.SO_SNDBUFFORCE if os.geteuid() == 0 and hasattr(socket, "SO_SNDBUFFORCE") else socket.SO_SNDBUF
                end.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
            argv = [PYTHON, "-I", str(PROGRAM), *arguments, "--fd", str(theirs.fileno())]
            self._process = subprocess.Popen(argv, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True)

    def close(self) -> None:
        """The flow is over. FilmError when the program failed."""
        self.socket.close()
        try:
            code = self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise FilmError(f"the film's program did not end within {_PATIENCE_S:g} s") from None
        if code != 0:
            raise FilmError(f"the film's program ended with exit code {code}; its words are above")


def encoder(source: Source, packet_bytes: int, start_ns: int, ip: int = 4) -> Beside:
    """Of a flow's sending end. ip: the version of IP."""
    given = {
        "file": source.file,
        "frames-per-second": source.frames_per_second,
        "key-interval-frames": source.key_interval_frames or round(KEY_INTERVAL_S * source.frames_per_second),
        "mtu": packet_bytes - HEADERS_BYTES - (IP_HEADER_BYTES[ip] - IP_HEADER_BYTES[4]),
        "first-rate": round(source.min_rate_bps),
        "most-waiting-ns": round(source.most_waiting_s * 1e9),
        "start-ns": start_ns,
    }
    return Beside(["encode", *(word for name, value in given.items() for word in (f"--{name}", str(value)))])


def decoder(log: str) -> Beside:
    """Of a flow's receiving end, with files beside its log."""
    packets, shown = kept(Path(log))
    return Beside(["decode", "--packets", str(packets), "--shown", str(shown)])


def kept(log: Path) -> tuple[Path, Path]:
    """A decoder's files beside the log of its end: the packets that came, and when pictures were there."""
    return log.with_suffix(".packets"), log.with_suffix(".shown.jsonl")


def missing() -> str | None:
    """What GStreamer lacks here, in one phrase; None: nothing."""
    try:
        done = subprocess.run([PYTHON, "-I", str(PROGRAM), "check"], capture_output=True, text=True, timeout=60, check=False)
    except OSError as error:
        return f"{PYTHON}: {error.strerror}"
    return (
        None
        if done.returncode == 0
        else done.stderr.strip().splitlines()[-1].removeprefix("missing: ")
        if done.stderr.strip()
        else "GStreamer"
    )

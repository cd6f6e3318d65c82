"""Fuzz targets in Python: functions that take any bytes. What they raise is a bug."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from fairlane import native, specs
from fairlane.controller import igmp
from fairlane.experiments import fabrics, loader
from fairlane.inputs.located_toml import ConfigError
from fairlane.studies import read

CORPUS = Path(__file__).parent / "corpus"


def rtcp(data: bytes) -> None:
    """RTCP compounds, RTP, our own reports and acknowledgements, IGMP: parsed or refused; a compound that parses comes out again."""
    compound = native.parse_rtcp(data)
    # A packet holds 31 of either.
    if compound is not None and len(compound["blocks"]) < 32 and len(compound["bye"]) < 32:
        assert native.parse_rtcp(native.emit_rtcp(specs.Compound(**compound))) == compound
    for parse in (native.parse_rtp, native.parse_ack, native.parse_report, native.parse_stamp):
        parse(data)
    try:
        igmp.parse(data)
    except igmp.IgmpError:
        pass


def experiment(data: bytes) -> None:
    """An experiment file, read for a run, for one on Mininet and as a study: the bytes as they are; or, when the first is below 32, a file
    of ours with some of its text replaced."""
    path = _folder() / "e.toml"
    path.write_bytes(_edited(data) if data and data[0] < 32 else data)
    for reads in (loader.load, partial(loader.load, laid_over=fabrics.laid_over), read.load):
        try:
            reads(path)
        except ConfigError as error:
            assert str(path.parent) in str(error) or "e.toml" in str(error), error


@cache
def _folder() -> Path:
    """In memory where there is such a place; the files that ours inherit from are there, too."""
    folder = Path(tempfile.mkdtemp(prefix="fairlane-fuzz-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    for source in loader.FOLDER.glob("*.toml"):
        (folder / source.name).write_bytes(source.read_bytes())
    return folder


@cache
def _ours() -> list[bytes]:
    return [(loader.FOLDER / f"{name}.toml").read_bytes() for name in ("als-3", "als-8", "als-t1", "rap-3", "daa-3", "trabol-3", "ssvp-4")]


def _edited(data: bytes) -> bytes:
    """Edits of three bytes (place, place, length) and a text that ends with a null."""
    files = _ours()
    text = files[data[0] % len(files)]
    rest = data[1:]
    while len(rest) > 3:
        new, _, after = rest[3:].partition(b"\0")
        at = int.from_bytes(rest[:2], "big") % (len(text) + 1)
        text = text[:at] + new + text[at + rest[2] % 32 :]
        rest = after
    return text


TARGETS: dict[str, Callable[[bytes], None]] = {"rtcp": rtcp, "experiment": experiment}

"""Results as one file: `pack` writes a folder of results into a compressed archive with a list of its files, `unpack` checks the list and writes the folder.

The same folder gives the same bytes: files in order, without owners and times. The archive is an ordinary .tar.gz; its first file is `MANIFEST`.
"""

from __future__ import annotations

import getpass
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import socket
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

from fairlane.errors import Refusal
from fairlane.results import held, made, result_folder

MANIFEST = "pack.json"
MAX_BYTES = 100 << 30
MAX_FILES = 1_000_000
_MAX_MANIFEST_BYTES = 256 << 20
_FORMAT = 1
_CHUNK = 1 << 20
_TEXTS = (".csv", ".html", ".json", ".jsonl", ".md", ".p4", ".py", ".svg", ".toml", ".txt", ".txtpb")
_STUDY = "study.toml"


def pack(folder: Path, out: Path, blind: bool = False) -> dict[str, Any]:
    """Writes `out`, which must not exist; returns its list. blind: it is refused that a text in it names this machine or its user. Refusal: there are no results, or
    the file cannot be written."""
    if not (folder / made.FILE).is_file():
        raise Refusal(f"{folder}: has no {made.FILE}: give a folder of results, of 'fairlane run' or 'fairlane sweep'.")
    files = sorted(_files(folder))
    if MANIFEST in files:
        raise Refusal(f"{folder}: has a {MANIFEST}: it is a folder that was unpacked. Pack results that were run.")
    if blind:
        _check_blind(folder, files)
    manifest = {"format": _FORMAT, "again": again(folder), "files": {name: _described(folder / name) for name in files}}
    try:
        with out.open("xb") as raw:
            try:
                _write(raw, folder, manifest)
            except BaseException:
                out.unlink(missing_ok=True)
                raise
    except FileExistsError:
        raise Refusal(f"{out}: exists already, and is not overwritten. Give another name, or remove it.") from None
    except OSError as error:
        raise Refusal(f"{out}: cannot be written: {error.strerror or error}") from error
    return manifest


def again(folder: Path) -> str:
    """The command that repeats results, in their folder."""
    if (folder / _STUDY).is_file():
        return f"fairlane sweep {_STUDY} --out AGAIN"
    command = json.loads((folder / made.FILE).read_text(encoding="utf-8")).get("command")
    return " ".join(command) if command else ""


def unpack(archive: Path, folder: Path) -> dict[str, Any]:
    """Writes `folder`, which must not exist, and returns the list. Refusal: it is no such archive, or a file in it is not as the list says; nothing is left then."""
    if os.path.lexists(folder):
        raise Refusal(f"{folder}: exists already, and is not overwritten. Give another folder, or remove it.")
    work = folder.with_name(f".{folder.name}.unpacking")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        made_here = held.Held.make(work)
    except OSError as error:
        raise Refusal(f"{folder}: cannot be written: {error.strerror or error}") from error
    try:
        manifest = _read(archive, work)
        work.rename(folder)
        made_here.path = folder
        made_here.keep()
    except BaseException as error:
        made_here.discard()
        if isinstance(error, (tarfile.TarError, EOFError, gzip.BadGzipFile)):
            raise Refusal(f"{archive}: no archive of 'fairlane pack', or cut short: {error}") from error
        if isinstance(error, OSError):
            raise Refusal(f"{error.filename or archive}: {error.strerror or error}") from error
        raise
    return manifest


def _files(folder: Path) -> Iterator[str]:
    for where, folders, names in os.walk(folder):
        for name in (*names, *folders):
            if (Path(where) / name).is_symlink():
                raise Refusal(f"{Path(where) / name}: is a link, which an archive would not keep. Put the file itself there.")
        yield from ((Path(where) / name).relative_to(folder).as_posix() for name in names)


def _described(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return {"bytes": path.stat().st_size, "sha256": _digest(file)}


def _digest(file: IO[bytes], to: IO[bytes] | None = None) -> str:
    digest = hashlib.sha256()
    while part := file.read(_CHUNK):
        digest.update(part)
        if to is not None:
            to.write(part)
    return digest.hexdigest()


def _write(raw: IO[bytes], folder: Path, manifest: dict[str, Any]) -> None:
    top = folder.resolve().name or "results"
    with (
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        text = result_folder.json_text(manifest).encode()
        tar.addfile(_member(f"{top}/{MANIFEST}", len(text)), io.BytesIO(text))
        for name, what in manifest["files"].items():
            with (folder / name).open("rb") as file:
                tar.addfile(_member(f"{top}/{name}", what["bytes"]), file)


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o644
    return member


def _read(archive: Path, work: Path) -> dict[str, Any]:
    def refuse(what: str) -> Refusal:
        return Refusal(f"{archive}: {what}")

    with tarfile.open(archive, mode="r|gz") as tar:
        first = tar.next()
        if first is None or not first.isreg() or PurePosixPath(first.name).name != MANIFEST or first.size > _MAX_MANIFEST_BYTES:
            raise refuse(f"its first file is no {MANIFEST}: no archive of 'fairlane pack'")
        listed = tar.extractfile(first)
        assert listed is not None
        text = listed.read()
        try:
            manifest = json.loads(text)
            files = {str(name): (int(what["bytes"]), str(what["sha256"])) for name, what in manifest["files"].items()}
            known = manifest["format"] == _FORMAT
            if not all(map(str.isprintable, (*files, manifest["again"]))):
                raise ValueError("a name or the command has characters that no terminal shows")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise refuse(f"{MANIFEST} is no list of files: {error}") from error
        if not known:
            raise refuse(f"format {manifest['format']!r}, and this version reads {_FORMAT}")
        total = sum(size for size, _ in files.values())
        if len(files) > MAX_FILES or total > MAX_BYTES:
            raise refuse(f"{len(files)} files with {total} bytes: at most {MAX_FILES} with {MAX_BYTES} are unpacked")
        if total > shutil.disk_usage(work).free:
            raise refuse(f"{total} bytes do not fit here")
        top = PurePosixPath(first.name).parent
        left = dict(files)
        while (member := tar.next()) is not None:
            path = PurePosixPath(member.name)
            name = path.relative_to(top).as_posix() if path.is_relative_to(top) else ""
            if not member.isreg() or ".." in path.parts or path.is_absolute() or name not in left:
                raise refuse(f"{member.name!r} is not in its list, or no plain file")
            size, sha256 = left.pop(name)
            if member.size != size:
                raise refuse(f"{name}: {member.size} bytes, and {size} in its list")
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            file = tar.extractfile(member)
            assert file is not None
            with (work / name).open("xb") as to:
                if _digest(file, to) != sha256:
                    raise refuse(f"{name}: other bytes than its list says")
        if left:
            raise refuse(f"{min(left)} is missing")
    (work / MANIFEST).write_bytes(text)
    return dict(manifest)


def _check_blind(folder: Path, files: list[str]) -> None:
    """Refusal: a text or a file's name says who or where."""
    known = {what: word for what, word in _names().items() if len(word) > 2}
    if not known:
        return
    pattern = re.compile("|".join(rf"(?<![A-Za-z0-9]){re.escape(word)}(?![A-Za-z0-9])" for word in known.values()), re.IGNORECASE)
    for name in files:
        lines = [name]
        if Path(name).suffix in _TEXTS:
            lines += (folder / name).read_text(encoding="utf-8", errors="replace").splitlines()
        for number, line in enumerate(lines):
            found = pattern.search(line)
            if found:
                what = next(what for what, word in known.items() if word.lower() == found[0].lower())
                where = f"{name}:{number}" if number else f"the name of {name}"
                raise Refusal(
                    f"{folder}: {where} has {found[0]!r}, {what}: blind reviewers would know you by it. Change it, and run again."
                )


def _names() -> dict[str, str]:
    """What this machine knows of its user."""
    found = {"the name of this machine": socket.gethostname(), "your home folder": str(Path.home())}
    try:
        user = getpass.getuser()
        if user != "root":
            found["your user name"] = user
    except (KeyError, OSError):
        pass
    for key, what in (("user.name", "your name in git"), ("user.email", "your address in git")):
        try:
            told = subprocess.run(["git", "config", key], capture_output=True, text=True, check=False).stdout.strip()
        except OSError:
            continue
        if told:
            found[what] = told
    return found

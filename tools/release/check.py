"""Checks that dist/ contains all files of a release, of one commit."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from tools.release import page, sbom

SUMS = "SHA256SUMS"
LINUX = ("manylinux_2_17_x86_64", "manylinux_2_17_aarch64")
OTHERS = r"win_amd64|macosx_\d+_\d+_(x86_64|arm64|universal2)"


def sdist(version: str) -> str:
    return f"fairlane-{version}.tar.gz"


def wheel(version: str, platform: str) -> str:
    return f"fairlane-{version}-cp310-abi3-{platform}.whl"


def names(version: str) -> list[str]:
    """What every release has."""
    return [
        *(wheel(version, platform) for platform in LINUX),
        sdist(version),
        page.file(version),
        *(sbom.file(kind, version) for kind in sbom.KINDS),
    ]


def files(dist: Path) -> list[Path]:
    """All but the sums, and what begins with a dot: uv leaves a .gitignore."""
    return sorted(path for path in dist.iterdir() if path.name != SUMS and not path.name.startswith("."))


def _commit(path: Path) -> dict[str, object]:
    """The commit that a wheel or an sdist was made of; empty if it names none, as where git was missing."""
    made: dict[str, object] = {}
    try:
        if path.suffix == ".whl":
            with zipfile.ZipFile(path) as archive:
                made = json.loads(archive.read("fairlane/commit.json"))
        else:
            with tarfile.open(path) as archive:
                member = archive.extractfile(f"{path.name.removesuffix('.tar.gz')}/fairlane/commit.json")
                made = json.loads(member.read()) if member else {}
    except KeyError:
        pass
    return made


def _faults_of(path: Path, commit: str, version: str) -> list[str]:
    if path.name.endswith((".whl", ".tar.gz")):
        made = _commit(path)
        return (
            [f"made of commit {made.get('commit', 'unknown')}, not {commit}"]
            if made.get("commit") != commit
            else ["made of changed files"]
            if made.get("changed")
            else []
        )
    if path.name.endswith(".cdx.json"):
        text = path.read_text(encoding="utf-8")
        return sbom.faults(text) + (
            [] if json.loads(text)["metadata"]["component"]["version"] == version else [f"of another version than {version}"]
        )
    with zipfile.ZipFile(path) as archive:
        return [] if f"{path.stem}/index.html" in archive.namelist() and archive.testzip() is None else ["no page in it"]


def faults(dist: Path, version: str, commit: str) -> list[str]:
    """What is missing in the folder, does not belong there, or is not what its name says."""
    wanted = names(version)
    there = files(dist)
    others = re.compile(re.escape(wheel(version, "")).replace(r"\.whl", rf"({OTHERS})\.whl"))
    found = [f"{dist / name}: missing" for name in wanted if not (dist / name).is_file()]
    found += [
        f"{path}: no file of release {version}; remove it" for path in there if path.name not in wanted and not others.fullmatch(path.name)
    ]
    if found:
        return found
    for path in there:
        found += [f"{path}: {fault}" for fault in _faults_of(path, commit, version)]
    packages = [str(path) for path in there if path.name.endswith((".whl", ".tar.gz"))]
    if subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *packages]).returncode:
        found.append(f"{dist}: PyPI would refuse a file: see above")
    return found


def sums(dist: Path) -> str:
    """Writes SHA256SUMS, which `sha256sum --check SHA256SUMS` reads."""
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files(dist)]
    (dist / SUMS).write_text("".join(lines), encoding="utf-8")
    return "".join(lines)

"""The wheel of dist/, where `make wheel` has made one of the files as they are now, and an sdist: they hold each of them."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from fairlane import probes

MADE = {"fairlane/native.abi3.so", "fairlane/bin/fairlane-switch", "fairlane/commit.json", "fairlane_bmv2_names.pth"}


def files() -> list[str]:
    """What the package has in a checkout, as git knows it, by its name in the wheel."""
    links = [path.name for path in probes.PACKAGE.iterdir() if path.is_symlink() and path.is_dir()]
    listed = subprocess.run(
        ["git", "ls-files", "-z", "fairlane", *links], cwd=probes.ROOT, text=True, capture_output=True, check=True
    ).stdout
    names = [name if name.startswith("fairlane/") else f"fairlane/{name}" for name in listed.split("\0") if name]
    return [name for name in names if not (probes.ROOT / name).is_symlink()]


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_wheel_holds_every_file_of_the_package(machine: str) -> None:
    wheels = list((probes.ROOT / "dist").glob(f"fairlane-*{machine}.whl"))
    if not wheels:
        pytest.skip(f"no wheel for {machine}: make wheel")
    made = wheels[0].stat().st_mtime
    present = [name for name in files() if (probes.ROOT / name).exists()]
    if any((probes.ROOT / name).stat().st_mtime > made for name in present):
        pytest.skip("files have changed since the wheel was made: make wheel")
    held = {name for name in zipfile.ZipFile(wheels[0]).namelist() if ".dist-info/" not in name}
    assert held == {*present, *MADE}


def test_an_sdist_holds_all_that_a_build_needs(tmp_path: Path) -> None:
    build = ["scripts/uv", "build", "--offline", "--quiet", "--sdist", "--no-build-isolation", "--python", sys.executable]
    subprocess.run([*build, "--out-dir", tmp_path], cwd=probes.ROOT, check=True)
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        assert not [member.name for member in archive if member.issym()]
        held = {name.split("/", 1)[1] for name in archive.getnames()}
    listed = subprocess.run(
        ["git", "ls-files", "-z", "switch", "scripts"], cwd=probes.ROOT, text=True, capture_output=True, check=True
    ).stdout
    needed = [name for name in listed.split("\0") if name and (probes.ROOT / name).exists()]
    assert {*files(), *needed, "pyproject.toml", "uv.lock", "README.md", "LICENSE"} <= held

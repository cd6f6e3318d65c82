"""The wheel of dist/, where `make wheel` has made one of the files as they are now: it holds each of them."""

from __future__ import annotations

import subprocess
import zipfile

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

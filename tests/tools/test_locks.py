"""The lock files: up to date, with hashes, and without an address but PyPI's."""

from __future__ import annotations

import re
import subprocess

import pytest

from fairlane import probes
from fairlane.inputs.located_toml import tomllib

PROJECTS = (".", "tests/p4runtime/shell")


@pytest.mark.parametrize("project", PROJECTS)
def test_the_lock_is_up_to_date(project: str) -> None:
    done = subprocess.run(
        [probes.ROOT / "scripts" / "uv", "lock", "--check", "--offline", "--project", project],
        cwd=probes.ROOT,
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, f"{done.stderr}\nAfter a change of pyproject.toml: scripts/uv lock --project {project}"


@pytest.mark.parametrize("project", PROJECTS)
def test_every_package_comes_from_pypi_with_a_hash(project: str) -> None:
    text = (probes.ROOT / project / "uv.lock").read_text()
    assert set(re.findall(r"https?://([^/\"]+)", text)) == {"pypi.org", "files.pythonhosted.org"}
    for package in tomllib.loads(text)["package"]:
        files = [*package.get("wheels", []), *([package["sdist"]] if "sdist" in package else [])]
        assert files or "registry" not in package["source"], package["name"]
        assert all(file["hash"].startswith("sha256:") for file in files), package["name"]


def test_the_makefile_asks_for_groups_that_there_are() -> None:
    asked = re.findall(r"scripts/environment ((?:[a-z]+ ?)+)$", (probes.ROOT / "Makefile").read_text(), re.MULTILINE)
    groups = tomllib.loads((probes.ROOT / "pyproject.toml").read_text())["dependency-groups"]
    assert asked
    assert {group for groups_ in asked for group in groups_.split()} <= set(groups)

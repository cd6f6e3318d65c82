"""`scripts/environment`, with a script in uv's place: what it makes anew, what it adds to, and what it leaves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fairlane import probes

UV = f"""#!/bin/bash
echo "$*" >>uv.log
case "$*" in
venv*)
    [ -z "${{NO_PYTHON:-}}" ] || exit 2
    sleep 0.2
    rm -rf "${{@: -1}}" && mkdir -p "${{@: -1}}/bin" && touch "${{@: -1}}/pyvenv.cfg"
    ln -s '{sys.executable}' "${{@: -1}}/bin/python"
    ;;
*--requirements*) eval "${{DURING_INSTALL:-}}" ;;
*--editable*) rm -f .venv/bin/fairlane-switch && echo entry point >.venv/bin/fairlane-switch ;;
esac
"""


class Checkout:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "scripts").mkdir(parents=True)
        for file in ("scripts/environment", "pyproject.toml", "uv.lock"):
            shutil.copy(probes.ROOT / file, folder / file)
        (folder / "scripts" / "uv").write_text(UV)
        (folder / "scripts" / "uv").chmod(0o755)

    def start(self, *groups: str, **variables: str) -> subprocess.Popen[str]:
        environment = {name: value for name, value in os.environ.items() if name != "UV_PYTHON"}
        environment |= {"UV_DEFAULT_INDEX": "https://example.org", **variables}
        return subprocess.Popen(["scripts/environment", *groups], cwd=self.folder, env=environment, text=True, stderr=subprocess.PIPE)

    def install(self, *groups: str, **variables: str) -> int:
        return self.start(*groups, **variables).wait()

    def calls(self, word: str) -> int:
        """Of uv, with a word."""
        return sum(word in line.split() for line in (self.folder / "uv.log").read_text().splitlines())

    @property
    def groups(self) -> list[str]:
        return (self.folder / ".venv" / "groups").read_text().split()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    made = Checkout(tmp_path / "a checkout")
    assert made.install("docs") == 0
    return made


def test_links_to_programs_stay_when_a_group_joins(checkout: Checkout) -> None:
    link = checkout.folder / ".venv" / "bin" / "fairlane-switch"
    link.unlink()
    link.symlink_to("/some where/fairlane-switch")
    assert checkout.install("lint") == 0
    assert checkout.calls("--editable") == 2
    assert link.readlink() == Path("/some where/fairlane-switch")


def test_groups_stay_and_run_is_always_among_them(checkout: Checkout) -> None:
    assert checkout.groups == ["docs", "run"]
    assert checkout.install("lint") == 0
    assert checkout.groups == ["docs", "lint", "run"]
    assert checkout.calls("venv") == 1
    done = (checkout.folder / "uv.log").read_text()
    assert checkout.install("docs") == 0
    assert (checkout.folder / "uv.log").read_text() == done


def test_a_group_that_pyproject_no_longer_has_does_not_stay(checkout: Checkout) -> None:
    (checkout.folder / ".venv" / "groups").write_text("docs former run\n")
    assert checkout.install("lint") == 0
    assert checkout.groups == ["docs", "lint", "run"]


def test_a_moved_checkout_gets_a_new_environment(checkout: Checkout) -> None:
    checkout.folder = checkout.folder.rename(checkout.folder.with_name("moved"))
    assert checkout.install("run") == 0
    assert (checkout.calls("venv"), checkout.groups) == (2, ["docs", "run"])


def test_a_killed_install_begins_anew_and_a_failed_one_goes_on(checkout: Checkout) -> None:
    assert checkout.install("lint", DURING_INSTALL="exit 2") == 2
    assert checkout.install("lint") == 0
    assert checkout.calls("venv") == 1
    assert checkout.install("test", DURING_INSTALL="kill -KILL $$") == 137
    assert checkout.install("test") == 0
    assert (checkout.calls("venv"), checkout.groups) == (2, ["docs", "lint", "run", "test"])


def test_another_python_is_asked_for_by_name(checkout: Checkout) -> None:
    assert checkout.install("run", UV_PYTHON="3.12") == 0
    assert checkout.calls("venv") == checkout.calls("3.12") + 1 == 2
    assert checkout.install("run", UV_PYTHON="3.12") == 0
    assert checkout.calls("venv") == 2


@pytest.mark.parametrize(("variables", "named"), [({}, "from 3.10 to 3.14"), ({"UV_PYTHON": "3.12"}, "3.12")])
def test_a_python_that_is_nowhere_is_named(tmp_path: Path, variables: dict[str, str], named: str) -> None:
    started = Checkout(tmp_path).start("run", NO_PYTHON="1", **variables)
    assert started.communicate()[1].startswith(f"fairlane: no Python {named} here")
    assert started.returncode == 1


@pytest.mark.skipif(not shutil.which("flock"), reason="no flock")
def test_two_at_once_make_one(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    both = [checkout.start("run"), checkout.start("run")]
    assert [one.wait() for one in both] == [0, 0]
    assert checkout.calls("venv") == checkout.calls("--editable") == 1

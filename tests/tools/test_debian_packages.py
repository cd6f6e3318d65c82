"""Which packages `scripts/debian-packages` installs, with an apt of ours in place of the system's."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fairlane import probes

TOOLS = ("awk", "bash", "cat", "dirname", "env", "head", "ls", "mkdir", "sed", "sort", "tail", "uname")
APT_GET = """#!/bin/bash
[ "$1" = update ] || echo "$@" >>"$LOG"
for broken in $BROKEN; do [[ " $* " != *" $broken "* ]] || exit 100; done
"""
APT_CACHE = """#!/bin/bash
if [ "$1" = policy ]; then
    while read -r name version; do [ "$name" != "$2" ] || printf '%s:\\n  Candidate: %s\\n' "$name" "$version"; done <"$OFFERED"
else
    awk '/^rustc-1/ { print $1 " - Rust" }' "$OFFERED"
fi
"""

pytestmark = pytest.mark.skipif(not shutil.which("dpkg"), reason="no dpkg, which compares versions as Debian does")


class System:
    """A machine that has nothing, and a release that offers `offered` (package: version)."""

    def __init__(self, folder: Path, offered: dict[str, str], apt: bool = True, root: bool = True, broken: str = "") -> None:
        self.folder = folder
        self._bin = folder / "bin"
        self._bin.mkdir()
        (folder / "scripts").mkdir()
        shutil.copy(probes.ROOT / "scripts" / "debian-packages", folder / "scripts")
        self._write(folder / "scripts" / "cargo", '#!/bin/bash\n[ "$1" = --need ] && echo 1.88\n')
        for tool in TOOLS:
            (self._bin / tool).symlink_to(shutil.which(tool) or tool)
        (folder / "offered").write_text("".join(f"{name} {version}\n" for name, version in offered.items()))
        self._write(self._bin / "id", f"#!/bin/bash\necho {0 if root else 1000}\n")
        if apt:
            self._write(self._bin / "apt-get", APT_GET)
            self._write(self._bin / "apt-cache", APT_CACHE)
            self._write(self._bin / "rustup", '#!/bin/bash\necho rustup "$@" >>"$LOG"\n')
            (self._bin / "dpkg").symlink_to(shutil.which("dpkg") or "dpkg")
        self._environment = {
            "PATH": str(self._bin),
            "SBIN": "",
            "OFFERED": str(folder / "offered"),
            "LOG": str(folder / "log"),
            "BROKEN": broken,
        }

    @staticmethod
    def _write(path: Path, text: str) -> None:
        path.write_text(text)
        path.chmod(0o755)

    def install(self, *groups: str) -> tuple[list[list[str]], str]:
        """The packages of each call of apt-get, or a call of rustup, and what the script said beside it."""
        done = subprocess.run(
            [self.folder / "scripts" / "debian-packages", *groups], env=self._environment, text=True, capture_output=True, check=True
        )
        log = self.folder / "log"
        calls = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
        options = ("install", "-q", "-y", "--no-install-recommends", "-oDPkg::Lock::Timeout=600")
        return [[word for word in call if word not in options] for call in calls], done.stderr


RUN = dict.fromkeys(["mininet", "iproute2", "iputils-ping", "ethtool", "iperf3", "procps", "gcc", "libc6-dev", "python3-venv"], "1")


@pytest.mark.parametrize(
    ("rusts", "chosen"),
    [
        ({"rustc": "1.63.0+dfsg1-2", "rustc-web": "1.96.0+dfsg1-1~deb12u2"}, ["rustc-web", "cargo-web"]),  # Debian 12
        ({"rustc": "1.97.1+dfsg1-1"}, ["rustc", "cargo"]),  # Debian testing
        ({"rustc": "1.97.1+dfsg1-1", "rustc-web": "1.98.0"}, ["rustc", "cargo"]),
        ({"rustc": "1.75.0", "rustc-1.80": "1.80.1", "rustc-1.89": "1.89.0"}, ["rustc-1.89", "cargo-1.89"]),  # Ubuntu
        ({"rustc": "1.75.0", "rustup": "1.27"}, ["rustup"]),
    ],
)
def test_the_first_rust_that_is_new_enough_is_taken(tmp_path: Path, rusts: dict[str, str], chosen: list[str]) -> None:
    calls, said = System(tmp_path, RUN | rusts).install("run", "build")
    assert calls[0][-len(chosen) :] == chosen
    assert {"mininet", "gcc", "python3-venv"} <= set(calls[0])
    assert not said
    assert calls[1:] == ([["rustup", "toolchain", "stable", "--profile", "minimal"]] if chosen == ["rustup"] else [])


def test_without_a_rust_that_is_new_enough_the_rest_is_installed(tmp_path: Path) -> None:
    calls, said = System(tmp_path, RUN | {"rustc": "1.75.0"}).install("run", "build")
    assert "gcc" in calls[0]
    assert said == "fairlane: this release has no package for rust; going on without.\n"


def test_a_package_that_the_release_lacks_is_one_sentence(tmp_path: Path) -> None:
    calls, said = System(tmp_path, {"tshark": "4", "chromium": "1", "openssl": "3", "curl": "8", "patch": "2", "sudo": "1"}).install("test")
    assert calls == [["tshark", "openssl", "chromium", "curl", "patch", "sudo"]]
    assert said == "fairlane: this release has no package for ns2; going on without.\n"


def test_a_package_that_cannot_be_installed_does_not_keep_the_others_out(tmp_path: Path) -> None:
    offered = {"tshark": "4", "chromium": "1", "openssl": "3", "curl": "8", "patch": "2", "sudo": "1", "ns2": "2"}
    calls, said = System(tmp_path, offered, broken="chromium").install("test")
    assert calls == [[*calls[0]], ["tshark"], ["openssl"], ["chromium"], ["ns2"], ["curl"], ["patch"], ["sudo"]]
    assert said == "fairlane: the package chromium could not be installed; going on without.\n"


def test_without_root_the_packages_are_named(tmp_path: Path) -> None:
    calls, said = System(tmp_path, RUN, root=False).install("test")
    assert not calls
    assert said == (
        "fairlane: missing here: tshark openssl chromium ns2 curl patch sudo (Debian's names). Install these packages as root; going on without.\n"
    )


def test_a_system_without_apt_is_one_sentence(tmp_path: Path) -> None:
    _, said = System(tmp_path, {}, apt=False).install("run", "web")
    assert said.count("\n") == 1
    assert "mininet iproute2" in said
    assert "This system has no apt-get" in said


def test_the_tools_for_rust_are_those_of_the_installed_rust(tmp_path: Path) -> None:
    system = System(tmp_path, {"rustfmt-web": "1.96", "rust-web-clippy": "1.96", "rustfmt": "1.63", "rust-clippy": "1.63"})
    system._write(system.folder / "bin" / "dpkg-query", "#!/bin/bash\necho 'ii rustc-web'\n")
    assert system.install("lint")[0] == [["rustfmt-web", "rust-web-clippy"]]


def test_an_unknown_group_is_refused(tmp_path: Path) -> None:
    done = subprocess.run([probes.ROOT / "scripts" / "debian-packages", "tests"], text=True, capture_output=True, env=os.environ)
    assert done.returncode == 2
    assert "unknown group 'tests' (build, run, film, test, npm, web, lint)" in done.stderr

"""The same command gives the same bytes, whatever the folder that it runs in, wherever Fairlane is installed, and on any machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fairlane import probes, skeleton
from tests import digests

ROOT = probes.ROOT
PROVENANCE = "made.json"


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another installation: the package with its links, in a folder of another name."""
    folder = tmp_path_factory.mktemp("another installation")
    shutil.copytree(ROOT / "fairlane", folder / "fairlane", ignore=shutil.ignore_patterns("__pycache__", "bin", "labs"))
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def run(folder: Path, installation: Path, *arguments: str) -> Path:
    folder.mkdir(parents=True)
    environment = {**os.environ, "PYTHONPATH": str(installation), "FAIRLANE_BIN": str(probes.VENV_BIN)}
    command = [sys.executable, "-m", "fairlane", *arguments, "--out", "out"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=110)
    assert done.returncode == 0, done.stderr
    return folder / "out"


def same(one: Path, other: Path) -> None:
    first, second = files(one), files(other)
    assert list(first) == list(second)
    assert [name for name in first if first[name] != second[name] and name != PROVENANCE] == []


@pytest.mark.parametrize(
    "arguments", [["als-3", "--duration", "3"], ["dumbbell", "--flow", "rap:1", "--flow", "tcp-cubic:1", "--duration", "3"]]
)
def test_a_run_gives_the_same_bytes_everywhere(tmp_path: Path, elsewhere: Path, arguments: list[str]) -> None:
    one = run(tmp_path / "one", ROOT, "run", *arguments)
    same(one, run(tmp_path / "a longer name/two", elsewhere, "run", *arguments))
    for name, content in files(one).items():
        for folder in (tmp_path, ROOT, Path.home()):
            if str(folder) != "/":
                assert str(folder).encode() not in content, name


def test_a_run_with_files_of_the_users_own_does_so_too(tmp_path: Path, elsewhere: Path) -> None:
    """Algorithm and P4 file lie in each folder; once they are named from it, once by their whole path."""
    outs = []
    for name, installation in (("one", ROOT), ("deep/two", elsewhere)):
        own = tmp_path / f"own-{Path(name).name}"
        own.mkdir()
        skeleton.algorithm("bytes-rate", own, False)
        (own / "red.p4").write_bytes((ROOT / "p4src/schemes/red/red.p4").read_bytes() + b"// mine\n")
        given = ["--algorithm", str(own / "bytes_rate.py"), "--program", str(own / "red.p4")]
        outs.append(
            run(tmp_path / name, installation, "run", "dumbbell", "--flow", "bytes-rate:1", "--queue", "red", "--duration", "3", *given)
        )
    same(*outs)
    for out in outs:
        assert (out / "files/bytes_rate.py").read_bytes() == (tmp_path / "own-one/bytes_rate.py").read_bytes()
        assert (out / "files/program/schemes/red/red.p4").read_bytes().endswith(b"// mine\n")
        for name, content in files(out).items():
            assert str(tmp_path).encode() not in content, name


@pytest.mark.parametrize("name", digests.known())
def test_a_run_gives_the_digest_that_it_gives_on_every_machine(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """digests.json was written with those functions of glibc that multiply and add in one step. On x86-64 this runs with the others, which answer
    otherwise in the last bit: a result that came from the C library would show. Where results were to move: tests/digests.py --write"""
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.cpu.hwcaps=-FMA,-FMA4,-AVX2")
    assert digests.of_run([sys.executable, "-m", "fairlane"], name) == digests.known()[name]["sha256"]


def test_the_digest_of_a_folder_is_sha256sums(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    for name in ("b", "a.csv", "raw/s1.csv", "rates.png", PROVENANCE, "raw-b"):
        (tmp_path / name).write_text(name)
    command = "find . -type f ! -name made.json ! -name '*.png' -printf '%P\\n' | LC_ALL=C sort | xargs sha256sum | sha256sum"
    printed = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert printed.split()[0] == digests.of_folder(tmp_path)

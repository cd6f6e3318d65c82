"""Results as one file: what comes out is what went in, and a file that was changed, or made to do harm, leaves nothing."""

from __future__ import annotations

import gzip
import io
import json
import os
import socket
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from fairlane.cli import app
from fairlane.errors import Refusal
from fairlane.results import made, pack


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    (folder / "raw").mkdir(parents=True)
    (folder / made.FILE).write_text(json.dumps({"command": ["fairlane", "run", "als-3"]}))
    (folder / "summary.json").write_text("{}")
    (folder / "raw" / "s1.csv").write_bytes(bytes(range(256)) * 5000)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file() and p.name != pack.MANIFEST}


def test_what_comes_out_is_what_went_in(results: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["pack", str(results)])
    assert done.exit_code == 0 and "mine.tar.gz: 3 files" in done.output
    os.utime(results / "summary.json", (1, 1))
    pack.pack(results, tmp_path / "again.tar.gz")
    assert (tmp_path / "mine.tar.gz").read_bytes() == (tmp_path / "again.tar.gz").read_bytes(), "the same folder, the same bytes"
    done = CliRunner().invoke(app, ["unpack", str(tmp_path / "mine.tar.gz"), "--out", str(tmp_path / "new")])
    assert done.exit_code == 0 and "fairlane run als-3" in done.output
    assert contents(tmp_path / "new") == contents(results)
    for command in (["pack", str(results)], ["unpack", str(tmp_path / "mine.tar.gz"), "--out", str(tmp_path / "new")]):
        again = CliRunner().invoke(app, command)
        assert isinstance(again.exception, Refusal) and "exists already" in str(again.exception)


def test_tar_reads_it(results: Path, tmp_path: Path) -> None:
    pack.pack(results, tmp_path / "x.tar.gz")
    with tarfile.open(tmp_path / "x.tar.gz") as tar:
        assert tar.getnames() == ["mine/pack.json", "mine/made.json", "mine/raw/s1.csv", "mine/summary.json"]
        assert {(m.uid, m.gid, m.uname, m.mtime) for m in tar} == {(0, 0, "", 0)}


def test_only_results_are_packed(results: Path, tmp_path: Path) -> None:
    (results / made.FILE).unlink()
    with pytest.raises(Refusal, match="has no made.json: give a folder of results"):
        pack.pack(results, tmp_path / "x.tar.gz")
    (results / made.FILE).write_text("{}")
    (results / "link").symlink_to("summary.json")
    with pytest.raises(Refusal, match="link: is a link"):
        pack.pack(results, tmp_path / "x.tar.gz")
    assert not (tmp_path / "x.tar.gz").exists()


def test_blind_results_name_nobody(results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack, "_names", lambda: {"your user name": "ada", "the name of this machine": socket.gethostname()})
    pack.pack(results, tmp_path / "x.tar.gz", blind=True)
    (results / "summary.json").write_text('{\n"file": "/home/ada/als.p4"\n}')
    with pytest.raises(Refusal, match="summary.json:2 has 'ada', your user name"):
        pack.pack(results, tmp_path / "y.tar.gz", blind=True)
    (results / "summary.json").rename(results / "ada.csv")
    with pytest.raises(Refusal, match="the name of ada.csv has 'ada'"):
        pack.pack(results, tmp_path / "y.tar.gz", blind=True)
    (results / "ada.csv").rename(results / "adaptation.csv")
    (results / "adaptation.csv").write_text("adaptive")
    pack.pack(results, tmp_path / "y.tar.gz", blind=True)


def edited(archive: Path, change: Callable[[tarfile.TarInfo, bytes], tuple[tarfile.TarInfo, bytes] | None]) -> None:
    """Each member by `change`, None leaves it out."""
    with tarfile.open(archive) as tar:
        members = [(m, f.read()) for m in tar if (f := tar.extractfile(m)) is not None]
    with tarfile.open(archive, "w:gz") as tar:
        for member, data in members:
            found = change(member, data)
            if found is not None:
                found[0].size = len(found[1])
                tar.addfile(found[0], io.BytesIO(found[1]))


def _named(name: str) -> Callable[[tarfile.TarInfo, bytes], tuple[tarfile.TarInfo, bytes]]:
    def change(member: tarfile.TarInfo, data: bytes) -> tuple[tarfile.TarInfo, bytes]:
        if member.name.endswith("s1.csv"):
            member.name = name
        return member, data

    return change


def _linked(kind: bytes) -> Callable[[tarfile.TarInfo, bytes], tuple[tarfile.TarInfo, bytes]]:
    def change(member: tarfile.TarInfo, data: bytes) -> tuple[tarfile.TarInfo, bytes]:
        if member.name.endswith("s1.csv"):
            member.type, member.linkname, data = kind, "../../../outside", b""
        return member, data

    return change


def _listed(**changed: object) -> Callable[[tarfile.TarInfo, bytes], tuple[tarfile.TarInfo, bytes]]:
    def change(member: tarfile.TarInfo, data: bytes) -> tuple[tarfile.TarInfo, bytes]:
        return (member, json.dumps({**json.loads(data), **changed}).encode()) if member.name.endswith("pack.json") else (member, data)

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m, d: (m, d.replace(b"a", b"b") if m.name.endswith("s1.csv") else d), "other bytes than its list says"),
        (lambda m, d: (m, d + b"x" if m.name.endswith("s1.csv") else d), "1280001 bytes, and 1280000 in its list"),
        (lambda m, d: None if m.name.endswith("s1.csv") else (m, d), "raw/s1.csv is missing"),
        (lambda m, d: None if m.name.endswith("pack.json") else (m, d), "its first file is no pack.json"),
        (_named("mine/../../outside"), "is not in its list"),
        (_named("/outside"), "is not in its list"),
        (_named("mine/summary.json"), "other bytes|and 2 in its list"),
        (_linked(tarfile.SYMTYPE), "is not in its list, or no plain file"),
        (_linked(tarfile.LNKTYPE), "is not in its list, or no plain file"),
        (_linked(tarfile.CHRTYPE), "is not in its list, or no plain file"),
        (_listed(format=2), "format 2, and this version reads 1"),
        (_listed(files=[]), "no list of files"),
        (_listed(files={"x": {"bytes": 10**15, "sha256": ""}}), "1000000000000000 bytes: at most"),
        (_listed(again="\x1b[2J"), "characters that no terminal shows"),
    ],
)  # fmt: skip
def test_a_changed_archive_leaves_nothing(
    results: Path, tmp_path: Path, change: Callable[[tarfile.TarInfo, bytes], tuple[tarfile.TarInfo, bytes] | None], said: str
) -> None:
    archive = tmp_path / "x.tar.gz"
    pack.pack(results, archive)
    edited(archive, change)
    with pytest.raises(Refusal, match=said):
        pack.unpack(archive, tmp_path / "new")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine", "x.tar.gz"] and not (tmp_path.parent / "outside").exists()


def test_no_archive_at_all(tmp_path: Path) -> None:
    for data in (b"", b"text", gzip.compress(b"text"), gzip.compress(b"x" * 2000)):
        (tmp_path / "x.tar.gz").write_bytes(data)
        with pytest.raises(Refusal):
            pack.unpack(tmp_path / "x.tar.gz", tmp_path / "new")
    done = CliRunner().invoke(app, ["unpack", str(tmp_path / "none.tar.gz")])
    assert isinstance(done.exception, Refusal) and "no such file" in str(done.exception)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.data())
def test_any_damage_is_found_or_harmless(results: Path, tmp_path: Path, data: st.DataObject) -> None:
    archive = tmp_path / "damaged.tar.gz"
    archive.unlink(missing_ok=True)
    pack.pack(results, archive)
    plain = bytearray(gzip.decompress(archive.read_bytes()))
    for at, value in data.draw(st.lists(st.tuples(st.integers(0, 6000), st.integers(0, 255)), min_size=1, max_size=6)):
        plain[at] = value
    archive.write_bytes(gzip.compress(bytes(plain[: data.draw(st.integers(1, len(plain)))]), 1))
    new = tmp_path / "new"
    try:
        pack.unpack(archive, new)
    except Refusal:
        assert not new.exists() and not list(tmp_path.glob(".*"))
        return
    assert contents(new) == contents(results)
    for path in sorted(new.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    new.rmdir()

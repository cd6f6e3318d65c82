"""Files that a command writes take no other file's place, and follow no link: neither of the user's own nor one that another user planted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairlane import errors, probes, specs
from fairlane.errors import Refusal
from fairlane.studies import store

ROOT = probes.ROOT
RUN = ["run", "dumbbell", "--flow", "rap:1", "--duration", "1"]


def fairlane(folder: Path, *words: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "fairlane", *words], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=110
    )


@pytest.mark.parametrize("kind", ["file", "link", "dangling link"])
@pytest.mark.parametrize(("option", "name"), [("--trace", "log.csv"), ("--pcap", "caps/h1-s1.pcap")])
def test_packet_logs_and_captures_replace_no_file(tmp_path: Path, option: str, name: str, kind: str) -> None:
    theirs, path = tmp_path / "theirs", tmp_path / name
    path.parent.mkdir(exist_ok=True)
    if kind != "dangling link":
        theirs.write_text("theirs")
    theirs.rename(path) if kind == "file" else path.symlink_to(theirs)
    given = name if option == "--trace" else "caps"
    done = fairlane(tmp_path, *RUN, option, given, "--out", "out")
    assert done.returncode == errors.BAD_INPUT and done.stdout == ""
    assert f"fairlane: {option} {given}: " in done.stderr and "not overwritten. Give another" in done.stderr
    assert not (tmp_path / "out").exists()
    assert path.read_text() == "theirs" if kind != "dangling link" else not theirs.exists()


def test_a_link_that_appears_meanwhile_is_not_followed(tmp_path: Path) -> None:
    """Whoever may write in the folder may put it there after the check."""
    from fairlane import native

    (tmp_path / "target").write_text("theirs")
    (tmp_path / "log.csv").symlink_to(tmp_path / "target")
    (tmp_path / "h1-s1.pcap").symlink_to(tmp_path / "target")
    network = native.Network(1)
    network.add_switch("s1", 1, cpu_port=510, priorities=1)
    network.add_host("h1", "10.0.0.1", "02:00:00:00:00:01", "02:00:00:00:00:02")
    link = specs.Link(rate_bps=1_000_000, delay_ns=0, queue_packets=10)
    network.connect("h1", 0, "s1", 1, link)
    with pytest.raises(OSError, match="exists"):
        network.trace(tmp_path / "log.csv")
    with pytest.raises(OSError, match="exists"):
        network.capture(tmp_path)
    assert (tmp_path / "target").read_text() == "theirs"


@pytest.mark.parametrize("option", ["--trace", "--pcap"])
def test_a_path_that_cannot_be_is_refused(tmp_path: Path, option: str) -> None:
    (tmp_path / "file").write_text("")
    done = fairlane(tmp_path, *RUN, option, "file" if option == "--pcap" else "nowhere/log.csv", "--out", "out")
    assert done.returncode == errors.BAD_INPUT and "Traceback" not in done.stderr and not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["points", "figures", "files", "files/program", "points/als-3", "points/als-3/earlier", "index.html"])
def test_a_study_whose_folder_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    path = tmp_path / "study" / name
    path.parent.mkdir(parents=True)
    (tmp_path / "study/points").mkdir(exist_ok=True) if name != "points" else None
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refusal, match=rf"--out .*study: {name} is a link, .* Remove it\."):
        store.check_own(tmp_path / "study")
    done = fairlane(tmp_path, "sweep", str(ROOT / "docs/examples/parking-lot-study.toml"), "--out", "study")
    assert done.returncode == errors.BAD_INPUT and list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for which a folder of another user is dangerous")
def test_root_continues_no_study_of_another_user(tmp_path: Path) -> None:
    (tmp_path / "study/points").mkdir(parents=True)
    os.chown(tmp_path / "study", 12345, 12345)
    done = fairlane(tmp_path, "sweep", str(ROOT / "docs/examples/parking-lot-study.toml"), "--out", "study")
    assert done.returncode == errors.BAD_INPUT
    assert "study: belongs to another user (uid 12345)" in done.stderr and "sudo -u" in done.stderr


def test_the_record_of_times_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("theirs")
    (tmp_path / "points/als-3").mkdir(parents=True)
    (tmp_path / "points/als-3/took.jsonl").symlink_to(tmp_path / "theirs")
    with pytest.raises(OSError):
        store.Store(tmp_path / "points").put("als-3", "seed=1", {"inputs": "a"}, 1.0)
    assert (tmp_path / "theirs").read_text() == "theirs"

"""A run's folder says what made it, and names nobody."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from fairlane import probes, skeleton
from fairlane.experiments import loader
from fairlane.inputs import schema
from fairlane.results import made
from fairlane.results.nameless import nameless, without_folders

ROOT = probes.ROOT


def test_a_runs_folder_says_what_made_it(tmp_path: Path) -> None:
    own = tmp_path / "someone"
    own.mkdir()
    source, _ = skeleton.algorithm("made-rate", own, False)
    (own / "red.p4").write_bytes((ROOT / "p4src/schemes/red/red.p4").read_bytes() + b"// mine\n")
    words = ["run", "dumbbell", "--flow", "made-rate:1", "--queue", "red", "--duration", "2", f"--out={tmp_path}/out"]
    words += ["--algorithm", str(source), "--program", "../someone/red.p4"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    (tmp_path / "here").mkdir()
    subprocess.run([sys.executable, "-m", "fairlane", *words], cwd=tmp_path / "here", env=environment, check=True, capture_output=True)
    told = json.loads((tmp_path / "out/made.json").read_text())
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip() or None
    assert told["fairlane"]["commit"] == commit and told["fairlane"]["changed"] in (True, False, None)
    assert len(told["fairlane"]["sources_sha256"]) == len(told["fairlane"]["module_sha256"]) == 64
    assert told["python"] == f"{platform.python_implementation()} {platform.python_version()}"
    assert told["command"] == ["fairlane", *words[:8], "--out=…/out", "--algorithm", "…/made_rate.py", "--program", "…/red.p4"]
    assert "files/made_rate.py" in told["files"] and "files/program/schemes/red/red.p4" in told["files"]
    assert (tmp_path / "out/files/made_rate.py").read_text() == source.read_text()
    program = json.loads((tmp_path / "out/experiment.json").read_text())["settings"]["control"]["program"]
    assert program == "files/program/als.p4" and (tmp_path / "out" / program).is_file()
    for path in (tmp_path / "out").rglob("*"):
        assert not path.is_file() or b"someone" not in path.read_bytes(), path
    # The folder's files are enough: the same records again.
    again = [
        *words[:8],
        "--algorithm",
        "files/made_rate.py",
        "--program",
        "files/program/schemes/red/red.p4",
        "--out",
        str(tmp_path / "again"),
    ]
    subprocess.run([sys.executable, "-m", "fairlane", *again], cwd=tmp_path / "out", env=environment, check=True, capture_output=True)
    first, second = ({p.name: p.read_bytes() for p in (tmp_path / name / "raw").iterdir()} for name in ("out", "again"))
    assert first == second


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("study.toml", "study.toml"),
        ("mine/study.toml", "mine/study.toml"),
        ("/home/alice/study.toml", "…/study.toml"),
        ("~/study.toml", "…/study.toml"),
        ("../alice/study.toml", "…/study.toml"),
        ("--out=/home/alice/out", "--out=…/out"),
        ("rap.source=/home/alice/film.y4m", "rap.source=…/film.y4m"),
        ("--rtt=40ms", "--rtt=40ms"),
        ("tcp://127.0.0.1:8786", "tcp://127.0.0.1:8786"),
        ("", ""),
    ],
)
def test_words_name_nobody(word: str, shown: str) -> None:
    assert nameless(word) == shown
    assert nameless(str(Path.cwd() / "here/x.toml")) == "here/x.toml"
    assert without_folders({"a": ["/home/alice/x", 1, "y/z"]}) == {"a": ["…/x", 1, "y/z"]}


def test_plain_data_of_shared_settings_is_made_once_and_is_what_dataclasses_make_of_it() -> None:
    experiment = loader.load(loader.find("als-3"))
    plain = without_folders(experiment)
    assert plain == without_folders(schema.plain(experiment)) and without_folders(experiment) is not plain
    first, second = (f["settings"] for f in plain["flows"][:2])
    assert (first is second) == (experiment.flows[0].settings is experiment.flows[1].settings)


def test_a_wheels_commit_is_the_one_it_was_built_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "PACKAGE", tmp_path)
    made.commit.cache_clear()
    try:
        assert made.commit() == (None, False)
        made.commit.cache_clear()
        (tmp_path / made.COMMIT).write_text('{"commit": "abc", "changed": true}')
        assert made.commit() == ("abc", True)
    finally:
        made.commit.cache_clear()


def test_a_notebooks_command_line_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/home/alice/ipykernel_launcher.py", "-f", "/home/alice/x.json"])
    assert made.command() is None
    monkeypatch.setattr(sys, "argv", ["/home/alice/bin/fairlane", "run", "als-3"])
    assert made.command() == ["fairlane", "run", "als-3"]


def test_the_users_index_is_not_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`git status` would write it anew, under a lock that a killed run leaves behind."""
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    (tmp_path / "file").write_text("text")
    for words in (["init", "-q"], ["add", "file"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], check=True)
    os.utime(tmp_path / "file", (1, 1))
    index = (tmp_path / ".git" / "index").read_bytes()
    monkeypatch.setattr(made.probes, "ROOT", tmp_path)
    monkeypatch.setattr(made.probes, "in_checkout", lambda: True)
    name, changed = made.commit.__wrapped__()
    assert name is not None and len(name) == 40 and not changed
    assert (tmp_path / ".git" / "index").read_bytes() == index
    subprocess.run([*git, "status", "--short"], check=True)
    assert (tmp_path / ".git" / "index").read_bytes() != index

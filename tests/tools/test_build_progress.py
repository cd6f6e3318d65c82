"""`scripts/build`, with a script in cargo's place: what it says of the work done, and the links it makes. `scripts/cargo` finds a Rust."""

import json
import os
import signal
import subprocess
import sys
import time
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

from fairlane import probes

CARGO = """#!/bin/sh
echo "$@" >"$0.arguments"
if [ "$1" = tree ]; then
    printf '%s\\n' 'fairlane-p4rt v0.1.0 (/somewhere)' 'tokio v1.54.1' 'tokio v1.54.1 (*)' 'serde_derive v1.0.229 (proc-macro)'
else
    cat "$0.messages"
    exit "$(cat "$0.code")"
fi
"""


@pytest.fixture
def build(tmp_path: Path) -> ModuleType:
    loader = SourceFileLoader("scripts_build", str(probes.ROOT / "scripts" / "build"))
    loaded = spec_from_loader(loader.name, loader)
    assert loaded
    module = module_from_spec(loaded)
    loader.exec_module(module)
    for folder in (".venv/bin", "fairlane"):
        (tmp_path / folder).mkdir(parents=True)
    module.ROOT = tmp_path  # type: ignore[attr-defined]
    module.CARGO = [str(tmp_path / "cargo")]  # type: ignore[attr-defined]
    (tmp_path / "cargo").write_text(CARGO)
    (tmp_path / "cargo").chmod(0o755)
    return module


def artifact(package: str, kind: str = "lib", fresh: bool = False) -> dict[str, object]:
    return {"reason": "compiler-artifact", "package_id": package, "target": {"kind": [kind]}, "fresh": fresh}


P4RT = "path+file:///somewhere/switch/node/p4rt#fairlane-p4rt@0.1.0"
TOKIO = "registry+https://github.com/rust-lang/crates.io-index#tokio@1.54.1"


def test_names_of_packages(build: ModuleType) -> None:
    names = [build.package_of(one) for one in (P4RT, TOKIO, "path+file:///somewhere/switch/bin/memory#0.1.0")]
    assert names == ["fairlane-p4rt", "tokio", "memory"]


def test_time_left_follows_from_the_seconds_done(build: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "SECONDS", {"fairlane-p4rt": 30.0, "tokio": 10.0})
    progress = build.Progress({"fairlane-p4rt", "tokio"})
    progress.end(0)
    progress.started -= 20
    assert "0% after 20 s, crates left: 2" in progress.line()
    progress.artifact(artifact(P4RT, "custom-build"))
    assert "0% after 20 s" in progress.line()
    progress.artifact(artifact(TOKIO))
    progress.artifact(artifact(TOKIO))
    assert "25% after 20 s, about 1 min 00 s left" in progress.line()
    progress.artifact(artifact(P4RT))
    assert "100% after 20 s, about 0 s left" in progress.line()


def test_what_was_there_is_no_work(build: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "SECONDS", {"fairlane-p4rt": 30.0, "tokio": 10.0})
    progress = build.Progress({"fairlane-p4rt", "tokio"})
    progress.end(0)
    progress.started -= 20
    progress.artifact(artifact(P4RT, fresh=True))
    assert "0% after 20 s, crates left: 1" in progress.line()
    progress.artifact(artifact(TOKIO))
    assert "100%" in progress.line()


@pytest.mark.parametrize("code", [0, 101])
def test_links_only_what_was_built(build: ModuleType, tmp_path: Path, code: int, capfd: pytest.CaptureFixture[str]) -> None:
    messages = [json.dumps(artifact(P4RT)), "a line of a build script", json.dumps({"reason": "build-finished", "success": not code})]
    (tmp_path / ".venv/bin/fairlane-switch").write_text("an entry point")
    (tmp_path / "cargo.messages").write_text("\n".join(messages) + "\n")
    (tmp_path / "cargo.code").write_text(str(code))
    assert build.main() == code
    assert ("compiled in" in capfd.readouterr().err) == (code == 0)
    assert f"--target-dir {tmp_path / 'switch/target'}" in (tmp_path / "cargo.arguments").read_text()
    links = {
        link.name: link.readlink() for folder in (".venv/bin", "fairlane") for link in (tmp_path / folder).iterdir() if link.is_symlink()
    }
    if code:
        assert links == {}
    else:
        assert len(links) == 10
        assert links["fairlane-compile"].name == "fairlane-switch"
        assert links["native.abi3.so"].name == "libfairlane_native.so"


def test_ctrl_c_while_cargo_works_is_no_traceback(build: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "cargo").write_text('#!/bin/sh\n[ "$1" = tree ] && exit\ntouch "$0.started"\nexec sleep 60\n')
    text = (probes.ROOT / "scripts" / "build").read_text().replace('ROOT / "scripts" / "cargo"', repr(str(tmp_path / "cargo")))
    process = subprocess.Popen(
        [sys.executable, "-c", f"__file__ = '{tmp_path}/scripts/build'\n{text}"],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not (tmp_path / "cargo.started").exists():
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in said


def test_cargo_is_found_without_a_home(tmp_path: Path) -> None:
    for name in ("cargo", "rustc"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {name} 99.0.0\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        [probes.ROOT / "scripts" / "cargo", "--where"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == (f"{tmp_path}/cargo\n", "")

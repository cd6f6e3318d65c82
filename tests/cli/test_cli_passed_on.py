"""Commands of `fairlane` that pass their words on to a program of ours: every word arrives, `--` included."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fairlane import probes
from tests.p4runtime import support
from tools.documented import blocks

PASSED_ON = ("switch", "compile", "stf")
FAIRLANE = [sys.executable, "-m", "fairlane"]


def documented() -> list[str]:
    """Every line of the pages that starts such a command."""
    found = []
    for page in blocks.pages(probes.ROOT):
        for block in blocks.blocks(page, (probes.ROOT / page).read_text(encoding="utf-8")):
            found += [line for line in block.commands if line.startswith(tuple(f"fairlane {name} " for name in PASSED_ON))]
    return found


def line_of_the_switch() -> str:
    (line,) = {line for line in documented() if line.startswith("fairlane switch") and " -- " in line}
    return line


@pytest.fixture(scope="module")
def recorders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with programs of our names that print the words that they were given."""
    folder = tmp_path_factory.mktemp("bin")
    for name in PASSED_ON:
        program = folder / f"fairlane-{name}"
        program.write_text(f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n", encoding="utf-8")
        program.chmod(0o755)
    return folder


def test_the_pages_show_such_commands() -> None:
    assert {line.split()[1] for line in documented()} == set(PASSED_ON)


@pytest.mark.parametrize(
    "line",
    sorted(
        {
            *documented(),
            *(
                f"fairlane {name} {words}"
                for name in PASSED_ON
                for words in ("-- a", "a -- b -- c", "--help", "-- --help", "-v -x=1 --y ''")
            ),
        }
    ),
)
def test_every_word_arrives(recorders: Path, line: str) -> None:
    _, name, *words = shlex.split(line, comments=True)
    env = {**os.environ, "FAIRLANE_BIN": str(recorders)}
    done = subprocess.run([*FAIRLANE, name, *words], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == words


@pytest.mark.root
def test_the_documented_switch_starts(tmp_path: Path) -> None:
    """docs/commands.md, to the letter: on interfaces of these names, in a network namespace of its own."""
    compiled = subprocess.run(
        [*FAIRLANE, "compile", "-o", tmp_path / "als.json", probes.ROOT / "p4src/als.p4"], capture_output=True, text=True, check=False
    )
    assert compiled.returncode == 0, compiled.stderr
    words = shlex.split(line_of_the_switch())[1:]
    with support.namespace("passed-on", (1, 2), "host") as name:
        links = "ip link add veth0 type veth peer name veth1; ip link add veth2 type veth peer name veth3; "
        up = "for end in 0 1 2 3; do ip link set veth$end up; done"
        subprocess.run(["ip", "netns", "exec", name, "sh", "-ec", links + up], check=True, timeout=30)
        command = ["ip", "netns", "exec", name, *FAIRLANE, *words]
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout and process.stderr
        try:
            first = process.stdout.readline()
            assert first.startswith("ready device 0 grpc 127.0.0.1:9559 ports 1@veth0 2@veth2"), first + process.stderr.read()
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 0
        finally:
            process.kill()
            process.communicate()

"""ptf, unmodified, sends packets into a real switch and sees what comes out, while its tests write over P4Runtime.

All of it is in a network namespace of its own: the switch, its four veth pairs, and ptf's runner, whose tests are in
tests/p4runtime/ptf_tests.
"""

from __future__ import annotations

import ast
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlane.fabrics.processes import spawn
from tests.p4runtime import support

FOLDER = Path(__file__).parent / "ptf_tests"
PORTS = (1, 2, 3, 4)
ADDRESS = "127.0.0.1:9559"


def names() -> list[str]:
    """The tests in the folder: classes with a `runTest`."""
    tree = ast.parse((FOLDER / "switch_tests.py").read_text())
    return [
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef) and any(isinstance(f, ast.FunctionDef) and f.name == "runTest" for f in node.body)
    ]


@pytest.fixture(scope="module")
def namespace() -> Iterator[str]:
    with support.namespace("fptf", PORTS, "ptf") as name:
        yield name


@pytest.fixture(scope="module")
def results(namespace: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What ptf says of each test: `ok`, or the end of its output."""
    runner = Path(support.shell_python()).with_name("ptf")
    if not runner.is_file():
        pytest.skip(f"ptf is not installed: no {runner} (make test installs it)")
    folder = tmp_path_factory.mktemp("ptf")
    program = support.compile_program(support.PROGRAM, folder)
    command = ["ip", "netns", "exec", namespace, support.tool("fairlane-switch", "FAIRLANE_SWITCH"), "--no-p4", "--device-id", "1"]
    for port in PORTS:
        command += ["-i", f"{port}@sw{port}"]
    switch = spawn("switch", [*command, "--", "--grpc-server-addr", ADDRESS, "--cpu-port", "510"], folder / "switch.log")
    ptf = [
        "ip",
        "netns",
        "exec",
        namespace,
        str(runner),
        "--test-dir",
        str(FOLDER),
        "--log-dir",
        str(folder / "log"),
        "--log-file",
        "ptf.log",
        "--default-timeout",
        "20",
        "--default-negative-timeout",
        "0.2",
        "--test-params",
        f"grpcaddr='{ADDRESS}';p4info='{program.p4info}';config='{program.json}'",
    ]
    for port in PORTS:
        ptf += ["-i", f"{port}@ptf{port}"]
    try:
        done = subprocess.run([*ptf, "switch_tests"], capture_output=True, text=True, timeout=400, cwd=folder, env=support.without_proxy())
    finally:
        switch.signal(signal.SIGTERM)
        switch.wait(10)
    said = done.stdout + done.stderr
    results = dict(re.findall(r"switch_tests\.(\w+) \.\.\. .*?(ok|FAIL|ERROR)$", said, re.MULTILINE | re.DOTALL))
    return {name: "ok" if results.get(name) == "ok" else f"{said[-6000:]}\n{switch.last_words(20)}" for name in names()}


@pytest.mark.timeout(420)
@pytest.mark.parametrize("name", names())
def test_ptf(results: dict[str, str], name: str) -> None:
    assert results[name] == "ok", results[name]

"""Changes that a controller on the wall clock is told of: the file, and a switch that gets them at their times."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fairlane import probes
from fairlane.controller import changes
from fairlane.controller.changes import AlsChange, LinkChange, RateChange, RoutesChange
from fairlane.controller.config import Config, ConfigError, Hop, Port, Route, Switch
from fairlane.controller.p4info import P4Info
from fairlane.controller.runner import Controller
from tests.controller.test_runner import ROOT, fair_rates
from tests.p4runtime import support
from tests.waiting import until

PORTS = {"s1": {1}}


def test_what_is_written_is_read_by_time(tmp_path: Path) -> None:
    file = tmp_path / "changes.json"
    assert changes.read(file, PORTS) == [], "no file yet"
    first, second = AlsChange(7, "s1", True), RateChange(9, "s1", 1, 8)
    file.write_text(changes.to_json([second, first]))
    assert changes.read(file, PORTS) == [first, second]
    route = Route("10.0.2.0/24", 1, "02:01:00:01:00:01", "02:01:00:02:00:01", (Hop(2, "02:01:00:01:00:02", "02:01:00:03:00:01"),))
    third, fourth = LinkChange(10, "s1", 1, False), RoutesChange(11, "s1", (route, dataclasses.replace(route, others=())))
    file.write_text(changes.to_json([fourth, third]))
    assert changes.read(file, {"s1": {1, 2}}) == [third, fourth]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "Expecting property name"),
        ("{}", "expected a list"),
        ("[3]", "[0]: expected an object"),
        ('[{"at_ns": 1, "switch": "s1"}]', "[0]: expected the keys at_ns, switch, port, rate_bps, got at_ns, switch"),
        ('[{"at_ns": 1.5, "switch": "s1", "als": true}]', "[0].at_ns: expected int, got 1.5"),
        ('[{"at_ns": 1, "switch": "s9", "als": true}]', "[0].switch: no switch 's9'"),
        ('[{"at_ns": 1, "switch": "s1", "port": 3, "rate_bps": 5}]', "[0].port: switch s1 has no port 3"),
        ('[{"at_ns": 1, "switch": "s1", "port": 1, "rate_bps": 0}]', "[0].rate_bps: must be positive, got 0"),
        ('[{"at_ns": 1, "switch": "s1", "port": 3, "up": true}]', "[0].port: switch s1 has no port 3"),
        ('[{"at_ns": 1, "switch": "s1", "port": 1, "up": 1}]', "[0].up: expected bool, got 1"),
        ('[{"at_ns": 1, "switch": "s1", "routes": 7}]', "[0].routes: expected a list"),
        (
            '[{"at_ns": 1, "switch": "s1", "routes": [{"prefix": "10.0.2.0/24", "port": 3, "src_mac": "", "dst_mac": ""}]}]',
            "[0].routes[0].port: the switch has no port 3",
        ),
    ],
)
def test_a_bad_file_is_refused_by_entry(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "changes.json"
    file.write_text(text)
    with pytest.raises(ConfigError) as raised:
        changes.read(file, PORTS)
    assert str(raised.value).startswith(f"{file}: {said}")


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """JSON and P4Info of als.p4, where switch and compiler are built."""
    switch, compiler = probes.program("fairlane-switch"), probes.program("fairlane-compile")
    if switch is None or compiler is None:
        pytest.skip("fairlane-switch or fairlane-compile is not built (make build)")
    monkeypatch.setenv("FAIRLANE_SWITCH", str(switch))
    out, info = tmp_path / "als.json", tmp_path / "als.p4info.txtpb"
    subprocess.run([compiler, "-o", out, "--p4runtime-files", info, ROOT / "p4src/als.p4"], check=True, timeout=60)
    return out, info


@contextmanager
def controlled(
    address: str, program: tuple[Path, Path], folder: Path, file: Path
) -> Iterator[tuple[Controller, Callable[[list[int]], None]]]:
    """A controller of a switch of two ports that runs, and what waits for the switch's fair rates."""
    out, info = program
    description = Switch("s1", support.DEVICE_ID, address, (Port(1, 10_000_000), Port(2, 2_000_000)), ())
    controller = Controller.of(Config(str(info), str(out), (description,), interval_s=0.5), folder, file)
    session, p4info = controller.sessions[0], P4Info.read(info)
    runner = threading.Thread(target=controller.run)
    runner.start()

    def wait_for(rates: list[int]) -> None:
        until(lambda: sorted(fair_rates(session._client, p4info)) == rates, what=f"{rates}")

    try:
        assert session.ready.wait(20)
        yield controller, wait_for
    finally:
        controller.stop()
        runner.join(10)


def test_a_switch_gets_its_changes_while_it_runs(tmp_path: Path, program: tuple[Path, Path]) -> None:
    """A new rate of a port moves its fair rate; then the switch no longer writes fair rates. A bad file changes nothing."""
    file, folder = tmp_path / "changes.json", tmp_path / "records"
    with support.switch() as address, controlled(address, program, folder, file) as (controller, wait_for):

        def reread(text: str) -> None:
            file.write_text(text)
            controller.reread()

        wait_for([1_800_000, 9_000_000])
        now = time.time_ns()
        reread(changes.to_json([RateChange(now - 1, "s1", 1, 4_000_000), RateChange(now + 10**8, "s1", 2, 20_000_000)]))
        wait_for([3_600_000, 18_000_000])
        reread("[]]")
        reread(changes.to_json([AlsChange(time.time_ns(), "s1", False)]))
        wait_for([])
    events = [json.loads(line)["event"] for line in (folder / "controller.jsonl").read_text().splitlines()]
    assert "changes read" in events and "switch lost" not in events


def test_a_controller_started_again_makes_up_for_changes_that_it_missed(tmp_path: Path, program: tuple[Path, Path]) -> None:
    file, folder = tmp_path / "changes.json", tmp_path / "records"
    with support.switch() as address:
        with controlled(address, program, folder, file) as (_, wait_for):
            wait_for([1_800_000, 9_000_000])
        missed = [RateChange(time.time_ns(), "s1", 1, 4_000_000), AlsChange(time.time_ns(), "s1", False)]
        file.write_text(changes.to_json(missed))
        with controlled(address, program, folder, file) as (_, wait_for):
            wait_for([])
        file.write_text(changes.to_json([*missed, AlsChange(time.time_ns(), "s1", True)]))
        with controlled(address, program, folder, file) as (_, wait_for):
            wait_for([1_800_000, 3_600_000])
    events = [json.loads(line) for line in (folder / "controller.jsonl").read_text().splitlines()]
    assert [e["pipeline"] for e in events if e["event"] == "switch ready"] == ["pushed", "kept", "kept"]

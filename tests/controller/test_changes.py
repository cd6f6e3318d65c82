"""Changes that a controller on the wall clock is told of: the file, and a switch that gets them at their times."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from pathlib import Path

import pytest

from fairlane import probes
from fairlane.controller import changes
from fairlane.controller.changes import AlsChange, RateChange
from fairlane.controller.config import Config, ConfigError, Port, Switch
from fairlane.controller.p4info import P4Info
from fairlane.controller.runner import Controller
from tests.controller.test_runner import ROOT, fair_rates
from tests.p4runtime import support

CONFIG = Config("info", "json", (Switch("s1", 1, "127.0.0.1:1", (Port(1, 5),)),))


def test_what_is_written_is_read_by_time(tmp_path: Path) -> None:
    file = tmp_path / "changes.json"
    assert changes.read(file, CONFIG) == [], "no file yet"
    first, second = AlsChange(7, "s1", True), RateChange(9, "s1", 1, 8)
    file.write_text(changes.to_json([second, first]))
    assert changes.read(file, CONFIG) == [first, second]


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
    ],
)
def test_a_bad_file_is_refused_by_entry(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "changes.json"
    file.write_text(text)
    with pytest.raises(ConfigError) as raised:
        changes.read(file, CONFIG)
    assert str(raised.value).startswith(f"{file}: {said}")


def test_a_switch_gets_its_changes_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new rate of a port moves its fair rate; then the switch no longer writes fair rates. A bad file changes nothing."""
    program, compiler = probes.program("fairlane-switch"), probes.program("fairlane-compile")
    if program is None or compiler is None:
        pytest.skip("fairlane-switch or fairlane-compile is not built (make build)")
    monkeypatch.setenv("FAIRLANE_SWITCH", str(program))
    out, info, file = tmp_path / "als.json", tmp_path / "als.p4info.txtpb", tmp_path / "changes.json"
    subprocess.run([compiler, "-o", out, "--p4runtime-files", info, ROOT / "p4src/als.p4"], check=True, timeout=60)
    p4info = P4Info.read(info)
    with support.switch() as address:
        description = Switch("s1", support.DEVICE_ID, address, (Port(1, 10_000_000), Port(2, 2_000_000)), ())
        controller = Controller(Config(str(info), str(out), (description,), interval_s=0.5), tmp_path / "records", file)
        session = controller.sessions[0]
        runner = threading.Thread(target=controller.run)
        runner.start()

        def reread(text: str) -> None:
            file.write_text(text)
            controller.reread()

        def wait_for(rates: list[int]) -> None:
            deadline = time.monotonic() + 20
            while sorted(fair_rates(session._client, p4info)) != rates:
                assert time.monotonic() < deadline, fair_rates(session._client, p4info)
                time.sleep(0.1)

        try:
            assert session.ready.wait(20)
            wait_for([1_800_000, 9_000_000])
            now = time.time_ns()
            reread(changes.to_json([RateChange(now - 1, "s1", 1, 4_000_000), RateChange(now + 10**8, "s1", 2, 20_000_000)]))
            wait_for([3_600_000, 18_000_000])
            reread("[]]")
            reread(changes.to_json([AlsChange(time.time_ns(), "s1", False)]))
            wait_for([])
        finally:
            controller.stop()
            runner.join(10)
    events = [json.loads(line)["event"] for line in (tmp_path / "records" / "controller.jsonl").read_text().splitlines()]
    assert "changes read" in events and "switch lost" not in events

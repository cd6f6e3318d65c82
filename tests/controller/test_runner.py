"""The control loop on the wall clock against a real switch without interfaces."""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path

import pytest
from finsy.proto import p4r

from fairlane import probes
from fairlane.controller.config import Config, Port, Switch
from fairlane.controller.grpc_client import GrpcSwitch
from fairlane.controller.p4info import P4Info
from fairlane.controller.runner import Controller
from tests.p4runtime import support
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("program", ["fairlane-switch", "simple_switch_grpc"])
def test_a_switch_left_between_pipeline_and_entries_is_filled(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy switch may take the pipeline, and the entries only after their deadline: the next session finds the pipeline, and no entry."""
    switch_program, compiler = probes.program(program), probes.program("fairlane-compile")
    if switch_program is None or compiler is None:
        pytest.skip(f"{program} or fairlane-compile is not installed")
    monkeypatch.setenv("FAIRLANE_SWITCH", str(switch_program))
    out, info = tmp_path / "als.json", tmp_path / "als.p4info.txtpb"
    subprocess.run([compiler, "-o", out, "--p4runtime-files", info, ROOT / "p4src/als.p4"], check=True, timeout=60)
    p4info = P4Info.read(info)
    with support.switch() as address:
        description = Switch("s1", support.DEVICE_ID, address, (Port(1, 10_000_000), Port(2, 2_000_000)), ())
        controller = Controller.of(Config(str(info), str(out), (description,), interval_s=0.5), tmp_path / "records")
        session = controller.sessions[0]
        first = GrpcSwitch("s1", address, support.DEVICE_ID, 1, on_message=lambda _: None, on_closed=lambda _: None, timeout_s=10.0)
        first.connect()
        first.push_pipeline(p4info.message, out, session._cookie)
        first.close()

        runner = threading.Thread(target=controller.run)
        runner.start()
        try:
            assert session.ready.wait(60)
            found = lambda: fair_rates(session._client, p4info) if session._client and session.ready.is_set() else []
            rates = until(lambda: found() if len(found()) >= 2 else [])
        finally:
            controller.stop()
            runner.join(10)
    assert sorted(rates) == [1_800_000, 9_000_000]
    events = [json.loads(line)["event"] for line in (tmp_path / "records" / "controller.jsonl").read_text().splitlines()]
    assert "switch ready" in events and "switch lost" not in events


def fair_rates(client: GrpcSwitch, p4info: P4Info) -> list[int]:
    asked = p4r.Entity(table_entry=p4r.TableEntry(table_id=p4info.table_id("AlsEgress.fair_rate.fair_rate")))
    return [int.from_bytes(e.table_entry.action.action.params[0].value, "big") for e in client.read([asked])]

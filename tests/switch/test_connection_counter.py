"""The two connection counters: on virtual time beside each other, in both compilers, and for real, switch and controller."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

from fairlane import probes
from fairlane.controller.config import Config, Port, Switch
from fairlane.controller.core import SwitchControl
from fairlane.controller.p4info import P4Info
from fairlane.controller.plane.names import Names
from fairlane.experiments import loader
from fairlane.fabrics import targets, virtual_fabric
from fairlane.fabrics.progress import Silent

ROOT = probes.ROOT
sys.path.insert(0, str(ROOT / "bench"))

import counter as bench
from veths import missing, network

compilers = [name for name in ("fairlane-compile", "p4c-bm2-ss") if probes.program(name)]


def connections(folder: Path, counter: str, seconds: float) -> dict[tuple[str, str, str], int]:
    """n_conn by switch, port and epoch of als-3 with that counter."""
    folder.mkdir()
    (folder / "e.toml").write_text(f'inherits = "{ROOT / "experiments/als-3"}"\n[control]\ncounter = "{counter}"\n')
    experiment = loader.load(folder / "e.toml", seconds, 1)
    assert experiment.settings.control.counter == counter
    virtual_fabric.run(experiment, virtual_fabric.Options(targets.compiler()), folder, Silent())
    with (folder / "controller.csv").open(newline="") as file:
        return {(r["switch"], r["port"], r["epoch"]): int(r["connections"]) for r in csv.DictReader(file)}


@pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")
def test_of_few_connections_both_count_the_same(tmp_path: Path) -> None:
    exact = connections(tmp_path / "exact", "exact", 8.0)
    sketch = connections(tmp_path / "sketch", "sketch", 8.0)
    assert exact.keys() == sketch.keys()
    assert max(exact.values()) >= 5
    # Two of so few share a slot of a thousand or more in hardly any interval, and then they count as one.
    assert all(abs(exact[key] - sketch[key]) <= 1 for key in exact)
    assert sum(exact[key] != sketch[key] for key in exact) <= len(exact) // 20


@pytest.mark.skipif(len(compilers) < 2, reason="needs fairlane-compile (make build) and p4c-bm2-ss")
def test_both_compilers_show_the_same_sketch(tmp_path: Path) -> None:
    infos = []
    for compiler in compilers:
        info = tmp_path / f"{compiler}.txtpb"
        subprocess.run(
            [
                probes.program(compiler),
                "-DCONNECTION_SKETCH",
                "-o",
                tmp_path / "als.json",
                "--p4runtime-files",
                info,
                ROOT / "p4src/als.p4",
            ],
            check=True,
            timeout=300,
            capture_output=True,
        )
        infos.append(P4Info.read(info).message)
    assert infos[0] == infos[1]


@pytest.mark.skipif("fairlane-compile" not in compilers, reason="fairlane-compile is not built: make build")
def test_regions_cover_every_port_and_epochs_reach_both_controls(tmp_path: Path) -> None:
    json_path, p4info_path = bench.compile_als("sketch", tmp_path)
    names = Names.read(p4info_path)
    switch = Switch("s1", 1, "127.0.0.1:9559", tuple(Port(number, 1_000_000) for number in range(1, 6)))
    control = SwitchControl(switch, names, Config(str(p4info_path), str(json_path), (switch,)))
    regions = {f"{where}.connections.sketch.region" for where in ("AlsIngress", "AlsEgress")}
    written = [entry for entry in control.entries() if entry.table in regions]
    assert len(written) == 2 * len(switch.ports)
    assert len({entry.keys["port"] for entry in written}) == len(switch.ports)
    assert {entry.table for entry in control.epoch_entries()} == {
        f"{where}.connections.sketch.observation" for where in ("AlsIngress", "AlsEgress")
    }
    assert control.begin(7) == [{"number": 7}] * 2
    # No digests to ask for: the program sends none.
    assert not names.message.digests


lacking = missing() or (
    None if probes.program("fairlane-switch") and "fairlane-compile" in compilers else "needs fairlane-switch (make build)"
)


@pytest.mark.skipif(lacking is not None, reason=str(lacking))
@pytest.mark.parametrize("counter", bench.COUNTERS)
def test_the_real_switch_and_controller_count(tmp_path: Path, counter: str) -> None:
    with network() as net:
        net.ip("s1", "link", "set", "lo", "up")
        row = bench.measure(net, counter, 500, 3, 100_000, tmp_path / counter)
    assert row.found, "no interval was closed"
    if row.lost == 0:
        assert row.holds, row
    # A busy machine may lose frames and intervals; nobody who did not send may be counted.
    assert max(row.found) <= 500 * (1 + 3 * row.stated_error) + 0.5
    assert min(row.delays_ms) >= 50

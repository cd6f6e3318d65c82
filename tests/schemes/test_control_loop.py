"""A scheme's own control loop: the example of docs/own-scheme.md, put into the folder that `fairlane new scheme` writes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from fairlane import api, probes, skeleton_scheme, user_files
from fairlane.controller import records
from fairlane.controller.config import Config, Port, Switch
from fairlane.controller.core import SwitchControl
from fairlane.controller.plane.names import Names
from fairlane.errors import Refusal, RunFailed
from fairlane.fabrics import targets, virtual_fabric
from fairlane.schemes import recorded, registry

EXAMPLE = re.compile(r"^class Follow\(PortLoop\):\n.*?(?=^```$)", re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(registry.FOLDERS_VARIABLE, raising=False)
    skeleton_scheme.scheme("my-queue", tmp_path)
    description = tmp_path / "my-queue" / "scheme.py"
    text = description.read_text()
    example = EXAMPLE.findall((probes.ROOT / "docs" / "own-scheme.md").read_text())
    assert len(example) == 1
    text = re.sub(r"    def entries.*?(?=\n\n\n)", "", text, flags=re.DOTALL)
    text = text.replace("import Counter,", "import Column, Counter,").replace(
        "Parameters, Scheme", "Parameters, PortInterval, PortLoop, Scheme"
    )
    description.write_text(
        text.replace("SCHEME = Scheme(", example[0] + "\n\nSCHEME = Scheme(").replace("    MyQueue,\n", "    MyQueue,\n    loop=Follow,\n")
    )
    yield tmp_path / "my-queue"
    registry.SCHEMES.pop("my-queue", None)


@pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")
def test_the_limit_follows_the_connections(folder: Path, tmp_path: Path) -> None:
    api.run(
        "dumbbell",
        ["tcp-sack:6"],
        schemes=[folder],
        queue="my-queue",
        duration_s=10,
        out=tmp_path / "out",
    )
    rows = pd.read_csv(next((tmp_path / "out").rglob("controller.csv")))
    followed = rows[rows["my_queue_limit"] > 0]
    # Only the bottleneck's two ends have the scheme; data and acknowledgements are six connections there.
    assert len(followed[["switch", "port"]].drop_duplicates()) == 2
    assert (followed["my_queue_limit"] == followed["connections"].mul(2).clip(lower=10)).all()
    assert 12 in set(followed["my_queue_limit"])


def test_other_ports_have_no_loop(folder: Path, tmp_path: Path) -> None:
    """Entries where the port has the scheme; columns of zeros at the others."""
    scheme = registry.load(folder)
    _, p4info = targets.compiler().compile(probes.source("p4src/als.p4"), tmp_path, ("CHOSEN",), (folder,))
    ports = (Port(1, 10_000_000, (scheme.settings(limit_packets=3),)), Port(2, 10_000_000))
    info = Names.read(p4info)
    control = SwitchControl(Switch("s1", 1, "127.0.0.1:1", ports), info, Config("", "", ()))
    table = "AlsEgress.my_queue.parameters"
    of_table = [entry for entry in control.entries() if entry.table == table]
    assert [list(entry.keys.values()) for entry in of_table] == [[1]]
    records = control.finish(1.0, 1)
    assert [record.my_queue_limit for record in records] == [3, 0]
    assert [entry.table for entry in control.kept(als=True)].count(table) == 1


def test_a_loops_column_is_its_own(folder: Path) -> None:
    description = folder / "scheme.py"
    description.write_text(description.read_text().replace('Column("my_queue_limit")', 'Column("held_packets")'))
    with pytest.raises(Refusal, match="column 'held_packets' is one of the controller's own"):
        user_files.use_scheme(folder)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (("= settings.limit_packets", "= settings.limit"), r"scheme\.py:\d+: Follow: AttributeError: .*'limit'"),
        (("2 * seen.connections", "2 / seen.connections"), r"scheme\.py:\d+: Follow: ZeroDivisionError"),
        (('{"my_queue_limit": self', '{"limit": self'), r"Follow: ValueError: recorded: 'limit' is not in `columns`"),
    ],
)
def test_a_loop_that_fails_is_refused_at_its_line(folder: Path, edit: tuple[str, str], said: str) -> None:
    description = folder / "scheme.py"
    assert description.read_text().count(edit[0]) == 1
    description.write_text(description.read_text().replace(*edit))
    with pytest.raises(Refusal, match=said):
        api.run("dumbbell", ["tcp-sack:1"], schemes=[folder], queue="my-queue", duration_s=2)


def test_a_loop_that_fails_later_ends_the_run(folder: Path) -> None:
    description = folder / "scheme.py"
    description.write_text(description.read_text().replace("2 * seen.connections", "[2][seen.connections]"))
    with pytest.raises(RunFailed, match=r"scheme\.py:\d+: Follow: IndexError"):
        api.run("dumbbell", ["tcp-sack:1"], schemes=[folder], queue="my-queue", duration_s=5)


@pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")
def test_results_describe_a_loops_columns(folder: Path, tmp_path: Path) -> None:
    """Whoever reads them needs no folder: what a column counts is known."""
    description = folder / "scheme.py"
    description.write_text(
        description.read_text().replace('Column("my_queue_limit")', 'Column("my_queue_limit", total=True, cause="limited")')
    )
    api.run("dumbbell", ["tcp-sack:1"], schemes=[folder], queue="my-queue", duration_s=2, out=tmp_path / "out")
    del registry.SCHEMES["my-queue"]
    assert "my_queue_limit" not in records.totals()
    recorded.know(json.loads((tmp_path / "out" / "experiment.json").read_text()))
    assert records.loop_drops()["my_queue_limit"] == "limited" and "my_queue_limit" in records.totals()

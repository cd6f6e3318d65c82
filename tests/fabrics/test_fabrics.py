"""A fabric and a switch are types: code asks them, and compares no name of theirs."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairlane import ad_hoc, execute, probes
from fairlane.cli import app
from fairlane.errors import Refusal
from fairlane.fabrics import places
from fairlane.fabrics.base import Settings
from fairlane.fabrics.places import MININET, VIRTUAL
from fairlane.fabrics.switch_process import BMV2, EMBEDDED
from fairlane.terminal import console

NAMES = {"virtual", "mininet", "bmv2", "embedded"}
# A key of the P4 tutorials' files, whose only value is "bmv2".
FILE_FORMATS = {"tutorials/runtime.py"}


def compared(source: str) -> Iterator[int]:
    """The lines that compare something with a name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            words = {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
            # Names of several things at once are keys of a file.
            if words and words <= NAMES:
                yield node.lineno
        elif isinstance(node, ast.MatchValue) and isinstance(node.value, ast.Constant) and node.value.value in NAMES:
            yield node.lineno


def test_no_name_of_a_fabric_or_switch_is_compared_outside_fabrics() -> None:
    found = [
        f"{path.relative_to(probes.PACKAGE)}:{line}"
        for folder in (probes.PACKAGE, *(p for p in probes.PACKAGE.iterdir() if p.is_symlink()))
        for path in sorted(folder.rglob("*.py"))
        if path.relative_to(probes.PACKAGE).as_posix() not in FILE_FORMATS and "fabrics" not in path.relative_to(probes.PACKAGE).parts
        for line in compared(path.read_text(encoding="utf-8"))
    ]
    assert not found


@pytest.mark.parametrize("line", ['fabric == "virtual"', '"bmv2" in found', 'x in ("mininet", "bmv2")', 'a if t != "embedded" else b'])
def test_a_comparison_is_found(line: str) -> None:
    assert list(compared(line)) == [1]


def test_a_fabric_has_one_object() -> None:
    assert [places.named(name) for name in places.NAMES] == [VIRTUAL, MININET]
    with pytest.raises(Refusal, match="'moon' is not one of 'virtual', 'mininet'"):
        places.named("moon")
    assert (places.clock_of("mininet"), places.clock_of("moon")) == ("Mininet, wall clock", "moon")
    assert [places.switch_of(name) for name in ("virtual", "embedded", "bmv2", "moon")] == ["in the process", "embedded", "BMv2", "moon"]


def test_an_unknown_fabric_is_told_like_any_choice() -> None:
    said = CliRunner().invoke(app, ["run", "als-3", "--fabric", "moon"], terminal_width=200)
    assert said.exit_code == 2 and "'moon' is not one of 'virtual', 'mininet'" in said.output and "error, " not in said.output


def test_a_fabric_refuses_what_it_cannot_do() -> None:
    experiment = ad_hoc.experiment("dumbbell", ad_hoc.Options(("rap:1",)), 1.0, 1)
    with pytest.raises(Refusal, match="--target bmv2 runs in real time only"):
        VIRTUAL.ready(experiment, Settings("bmv2"))
    with pytest.raises(Refusal, match="--trace: only virtual time"):
        MININET.ready(experiment, Settings(trace=Path("log")))
    assert VIRTUAL.obstacle() is None and not VIRTUAL.real_time and MININET.real_time


def test_a_switch_names_its_services() -> None:
    assert EMBEDDED.services(9559) == {9559: "P4Runtime"}
    assert BMV2.services(9559) == {9559: "P4Runtime", 10559: "Thrift"}


def test_records_of_an_unknown_fabric_are_not_evaluated(tmp_path: Path) -> None:
    out = tmp_path / "out"
    execute.execute(VIRTUAL.ready(ad_hoc.experiment("dumbbell", ad_hoc.Options(("rap:1",)), 1.0, 1)), out, console)
    (out / "summary.json").unlink()
    kept = json.loads((out / "raw" / "run.json").read_text())
    (out / "raw" / "run.json").write_text(json.dumps({**kept, "fabric": "moon"}))
    with pytest.raises(Refusal, match="'moon' is not one of"):
        execute.finish(out, console)

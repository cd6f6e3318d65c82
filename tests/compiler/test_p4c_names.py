"""`p4c` and `p4c-bm2-ss` of `fairlane env`, with the command lines that p4c's users write, in a folder of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from finsy.proto import p4i, p4r
from google.protobuf import json_format, text_format

from fairlane import probes

ROOT = probes.ROOT
PROGRAM = ROOT / "tests/p4/signed_action_data/signed_action_data.p4"
pytestmark = pytest.mark.skipif(probes.program("fairlane-compile") is None, reason="fairlane-compile is not built")


def shell(folder: Path, commands: str) -> subprocess.CompletedProcess[str]:
    """Commands for a shell that has run the lines of `fairlane env`."""
    lines = f'set -e\neval "$({sys.executable} -m fairlane env)"\ncd {folder}\n{commands}'
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(["bash", "-c", lines], env=env, text=True, capture_output=True, timeout=120, check=False)


def made(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("command", "files"),
    [
        # p4-guide's PTF scripts, and its READMEs.
        ("p4c --target bmv2 --arch v1model x.p4", {"x.json"}),
        (
            "p4c --target bmv2 --arch v1model --p4runtime-files x.p4info.txtpb,x.p4info.json x.p4_16.p4",
            {"x.p4_16.json", "x.p4info.txtpb", "x.p4info.json"},
        ),
        ("p4c -o build/deep x.p4_16.p4", {"build/deep/x.p4_16.json"}),
        # p4-utils.
        ("p4c x.p4 --target bmv2 --arch v1model --std p4-16 -o ./ --p4runtime-files ./x_p4rt.txt", {"x.json", "x_p4rt.txt"}),
        # p4lang/tutorials: today's Makefile, and an old one.
        (
            "mkdir -p build && p4c-bm2-ss --p4v 16 --p4runtime-files build/x.p4.p4info.txtpb -o build/x.json x.p4",
            {"build/x.json", "build/x.p4.p4info.txtpb"},
        ),
        (
            "p4c-bm2-ss --p4v 16 --p4runtime-file x.p4info --p4runtime-format text -o x.json x.p4",
            {"x.json", "x.p4info"},
        ),
        # DASH.
        (
            "p4c-bm2-ss -DTARGET_BMV2_V1MODEL x.p4 -o d.json --p4runtime-files d_p4rt.json,d_p4rt.txt --toJSON d_ir.json",
            {"d.json", "d_p4rt.json", "d_p4rt.txt"},
        ),
        # UP4, ngsdn and stratum.
        (
            "p4c-bm2-ss --arch v1model -o bmv2.json -DWITH_INT --p4runtime-files p4info.txt,p4info.bin --Wdisable=unused x.p4",
            {"bmv2.json", "p4info.txt", "p4info.bin"},
        ),
        ("p4c-bm2-ss --p4runtime-entries-files e.txtpb,e.json,e.bin x.p4", {"e.txtpb", "e.json", "e.bin"}),
        ("p4c -E -o out x.p4 && p4c -e -o again out/x.p4i", {"out/x.p4i", "again/x.json"}),
        ("p4c-bm2-ss -E x.p4 > x.i", {"x.i"}),
        # Without -o the compiler behind the driver only checks, as p4c's.
        ("p4c-bm2-ss x.p4", set()),
    ],
)
def test_files_are_where_p4c_puts_them(tmp_path: Path, command: str, files: set[str]) -> None:
    sources = {"x.p4", "x.p4_16.p4"}
    for name in sources:
        shutil.copy(PROGRAM, tmp_path / name)
    done = shell(tmp_path, command)
    assert done.returncode == 0, done.stderr
    assert made(tmp_path) - sources == files
    for name in files:
        if name.endswith(".json") and name not in {"e.json", "d_p4rt.json", "x.p4info.json"}:
            assert "I.take" in [action["name"] for action in json.loads((tmp_path / name).read_text())["actions"]]


def test_every_format_holds_the_same_p4info_and_entries(tmp_path: Path) -> None:
    shutil.copy(PROGRAM, tmp_path / "x.p4")
    done = shell(tmp_path, "p4c --p4runtime-files i.txtpb,i.json,i.bin --p4runtime-entries-files e.txtpb,e.json,e.bin x.p4")
    assert done.returncode == 0, done.stderr
    for name, kind in (("i", p4i.P4Info), ("e", p4r.WriteRequest)):
        text = text_format.Parse((tmp_path / f"{name}.txtpb").read_text(), kind())
        assert text == kind.FromString((tmp_path / f"{name}.bin").read_bytes())
        assert text == json_format.Parse((tmp_path / f"{name}.json").read_text(), kind())
        assert json.loads(json_format.MessageToJson(text)) == json.loads((tmp_path / f"{name}.json").read_text())
    entries = p4r.WriteRequest.FromString((tmp_path / "e.bin").read_bytes())
    params = [[param.value.hex() for param in update.entity.table_entry.action.action.params] for update in entries.updates]
    assert params == [
        ["1f", "0800", "0100000000", "ff" * 9],
        ["0f", "07ff", "00ffffffff", "00" * 8 + "01"],
    ]
    assert all(update.entity.table_entry.is_const for update in entries.updates)


def test_what_is_not_supported_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    shutil.copy(PROGRAM, tmp_path / "x.p4")
    for options, sentence in (
        ("--std p4-14", "P4_14 is not supported"),
        ("--p4runtime-files x.p4info", "name the file .txtpb, .txt, .json or .bin"),
        ("--fromJSON ir.json", "give the program itself"),
        ("--arch pna", "invalid value 'pna'"),
    ):
        done = shell(tmp_path, f"p4c {options} x.p4")
        assert done.returncode == 2 and sentence in done.stderr, (options, done.stderr)
    assert made(tmp_path) == {"x.p4"}


@pytest.mark.skipif("FAIRLANE_DASH" not in os.environ, reason="FAIRLANE_DASH names no checkout of sonic-net/DASH")
def test_dash_compiles_with_its_own_command_line(tmp_path: Path) -> None:
    pipeline = Path(os.environ["FAIRLANE_DASH"], "dash-pipeline")
    out = f"{tmp_path}/dash_pipeline"
    done = shell(
        pipeline,
        f"p4c-bm2-ss -DTARGET_BMV2_V1MODEL bmv2/dash_pipeline.p4 -o {out}.json"
        f" --p4runtime-files {out}_p4rt.json,{out}_p4rt.txt --toJSON {out}_ir.json",
    )
    assert done.returncode == 0, done.stderr
    info = json_format.Parse(Path(f"{out}_p4rt.json").read_text(), p4i.P4Info())
    assert info == text_format.Parse(Path(f"{out}_p4rt.txt").read_text(), p4i.P4Info())
    assert len(info.tables) > 20

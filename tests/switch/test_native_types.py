"""`fairlane/native.pyi` and the compiled module say the same: names, parameters and defaults by mypy's stubtest; dictionaries by their keys."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from fairlane import probes, specs

pytest.importorskip("mypy")
native = pytest.importorskip("fairlane.native", reason="the module fairlane.native is not built: make build")

STUB = probes.PACKAGE / "native.pyi"
# Log is iterated by its items, which mypy takes for no iteration; builds for fuzzing have fuzz.
NOT_IN_BOTH = ["fairlane.native.Log.__iter__", "fairlane.native.fuzz"]


def test_names_parameters_and_defaults_are_those_of_the_module(tmp_path: Path) -> None:
    (tmp_path / "allowed").write_text("\n".join(NOT_IN_BOTH))
    command = [
        sys.executable,
        "-m",
        "mypy.stubtest",
        "fairlane.native",
        "--allowlist",
        str(tmp_path / "allowed"),
        "--ignore-unused-allowlist",
    ]
    done = subprocess.run(command, cwd=probes.ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def keys(name: str) -> list[str]:
    """Those of a TypedDict of the stub, which alone has it."""
    classes = [
        node for node in ast.walk(ast.parse(STUB.read_text(encoding="utf-8"))) if isinstance(node, ast.ClassDef) and node.name == name
    ]
    return [field.target.id for field in classes[0].body if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)]


def test_dictionaries_have_the_stated_keys() -> None:
    ack = native.parse_ack(native.emit_ack(1, 0))
    report = native.parse_report(
        native.emit_report(
            specs.Report(
                highest_sequence=1,
                echo_ns=2,
                delay_us=3,
                receive_rate_bps=4,
                loss_event_rate=None,
                expected_packets=5,
                lost_packets=6,
                reporter=7,
            )
        )
    )
    stamp = native.parse_stamp(native.emit_stamp(1, 2))
    rtp = native.parse_rtp(native.emit_rtp(1, 2, 3, b"payload"))
    rtcp = native.parse_rtcp(native.emit_rtcp(specs.Compound(1, cname=b"name")))
    (ccfb,) = native.parse_ccfb(native.emit_ccfb(1, [(2, 3, [(0, 1), None])], 4))
    found = {"_Ack": ack, "_Report": report, "_Stamp": stamp, "_Rtp": rtp, "_Rtcp": rtcp, "_Ccfb": ccfb, "_Work": native.Network(1).work()}
    assert {name: list(parsed) for name, parsed in found.items()} == {name: keys(name) for name in found}


def test_a_call_with_another_type_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(
        "from fairlane import native\n"
        "network = native.Network('1')\n"
        "network.add_switch('s1')\n"
        "network.add_hosts()\n"
        "for time_ns, kind, fields in network.take_flow_logs('f')[0]:\n"
        "    time_ns + kind\n"
    )
    command = [sys.executable, "-m", "mypy", "--config-file", str(probes.ROOT / "pyproject.toml"), str(tmp_path / "wrong.py")]
    done = subprocess.run(command, cwd=probes.ROOT, capture_output=True, text=True)
    errors = [line.split(": error: ")[0].rpartition(":")[2] for line in done.stdout.splitlines() if ": error: " in line]
    assert errors == ["2", "3", "4", "6"], done.stdout


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        ({"rate_bps": "fast"}, TypeError, "Link.rate_bps: 'str' object"),
        ({"rate_bps": -1}, OverflowError, "Link.rate_bps: can't convert negative"),
        ({"weight": 0}, ValueError, "Link.weight: "),
        ({"loss": (0.1, 0.2)}, TypeError, r"Link.loss: give a probability or \(good_to_bad, .*got \(0.1, 0.2\)"),
        ({"corrupt": 2.0}, ValueError, r"link h1-s1: probability corrupt = 2: must be in \[0, 1\]"),
        ({"weight": 1, "time_shift_ns": 1}, ValueError, "a port has one scheduler"),
    ],
)
def test_a_wrong_field_is_named(wrong: dict, error: type[Exception], says: str) -> None:
    network = native.Network(1)
    network.add_switch("s1", 1)
    network.add_host("h1", "10.0.0.1", "02:00:00:00:00:01", "02:00:00:00:00:02")
    with pytest.raises(error, match=says):
        network.connect("h1", 0, "s1", 1, specs.Link(**wrong))

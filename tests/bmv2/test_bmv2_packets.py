"""Our packet tests on real BMv2, with our compiler's JSON; and what drives it."""

from __future__ import annotations

import socket
import struct
import subprocess
import threading
from pathlib import Path

import pytest

from fairlane import probes
from tests.schemes import test_ipv6
from tools.bmv2 import process, runtime, stf
from tools.bmv2.program import Key, Program, UnknownName, find
from tools.bmv2.runtime import port_map

ROOT = probes.ROOT
# simple_switch runs v1model alone.
TESTS = [(t.with_suffix(".p4"), t) for t in sorted((ROOT / "tests/p4").glob("*/*.stf")) if not t.stem.startswith("psa_")]
TESTS += [(ROOT / "p4src/als.p4", t) for t in sorted([*(ROOT / "tests/p4src").glob("*.stf"), *(ROOT / "p4src/schemes").glob("*/*.stf")])]
# Tests of a program built otherwise than by default.
DEFINED = {"sketch": ["-D", "CONNECTION_SKETCH"], "ipv6": ["-D", "IPV6"]}


def options(test: Path) -> list[str]:
    """Of the compiler, for a test's program."""
    if test.parent.parent.name == "schemes":
        return ["-D", "CHOSEN", "-I", str(test.parent), "-I", str(ROOT / "p4src")]
    return DEFINED.get(test.stem, [])


# BMv2 counts a prefix from the top of whole bytes: of a key of 12 bits, the first four are padding, so that prefixes up to 4 match everything.
NOT_ON_BMV2 = {"lpm_unaligned"}
ABSENT = process.why_absent()


@pytest.mark.skipif(ABSENT is not None, reason=f"no BMv2: {ABSENT}")
@pytest.mark.parametrize(
    ("source", "test"),
    [
        pytest.param(source, test, id=test.stem, marks=pytest.mark.xfail(strict=True) if test.stem in NOT_ON_BMV2 else ())
        for source, test in TESTS
    ],
)
def test_on_bmv2(source: Path, test: Path, tmp_path: Path) -> None:
    compiler = probes.program("fairlane-compile")
    if compiler is None:
        pytest.skip("fairlane-compile is not built: run `make build`")
    json = tmp_path / "program.json"
    subprocess.run([compiler, *options(test), "-o", json, source], check=True, timeout=60)
    with process.Bmv2(json) as switch:
        outcome = stf.play(switch, Program.load(json), test.read_text(encoding="utf-8"))
    assert not outcome.differences, "\n".join(outcome.differences)


@pytest.mark.skipif(ABSENT is not None, reason=f"no BMv2: {ABSENT}")
@pytest.mark.parametrize("name", test_ipv6.SCHEMES)
def test_a_scheme_over_ipv6_on_bmv2(name: str, tmp_path: Path) -> None:
    compiler = probes.program("fairlane-compile")
    if compiler is None:
        pytest.skip("fairlane-compile is not built: run `make build`")
    json, folder = tmp_path / "program.json", ROOT / "p4src/schemes" / name
    subprocess.run([compiler, "-DIPV6", *options(folder / f"{name}.stf"), "-o", json, ROOT / "p4src/als.p4"], check=True, timeout=60)
    with process.Bmv2(json) as switch:
        outcome = stf.play(switch, Program.load(json), test_ipv6.of_scheme(name))
    assert not outcome.differences, "\n".join(outcome.differences)


@pytest.mark.skipif(ABSENT is not None, reason=f"no BMv2: {ABSENT}")
def test_a_wrong_expectation_fails_on_bmv2(tmp_path: Path) -> None:
    compiler = probes.program("fairlane-compile")
    if compiler is None:
        pytest.skip("fairlane-compile is not built: run `make build`")
    json = tmp_path / "program.json"
    subprocess.run([compiler, "-o", json, ROOT / "tests/p4/basic/basic.p4"], check=True, timeout=60)
    text = (ROOT / "tests/p4/basic/basic.stf").read_text(encoding="utf-8").replace("expect 2", "expect 4")
    with process.Bmv2(json) as switch:
        outcome = stf.play(switch, Program.load(json), text)
    assert any("port 4: expected 1 packets, received 0" in d for d in outcome.differences)


def test_patterns() -> None:
    assert stf.matches("01*f", b"\x01\xaf\x00")
    assert stf.matches("", b"\x01")
    assert not stf.matches("01*f$", b"\x01\xaf\x00")
    assert not stf.matches("0102", b"\x01")
    assert not stf.matches("02", b"\x01")


@pytest.mark.parametrize(
    ("text", "prefix", "kind", "want"),
    [
        ("0x0a**", None, "lpm", {"key": b"\x0a\x00", "prefix_length": 8}),
        ("0x0a00", 8, "lpm", {"key": b"\x0a\x00", "prefix_length": 8}),
        ("0x0a0*", None, "ternary", {"key": b"\x0a\x00", "mask": b"\xff\xf0"}),
        ("0x3&&&0x7", None, "ternary", {"key": b"\x00\x03", "mask": b"\x00\x07"}),
        ("5", None, "ternary", {"key": b"\x00\x05", "mask": b"\xff\xff"}),
        ("0b11", None, "ternary", {"key": b"\x00\x03", "mask": b"\x00\x03"}),
        ("1..0x10", None, "range", {"start": b"\x00\x01", "end_": b"\x00\x10"}),
        ("7", None, "exact", {"key": b"\x00\x07"}),
    ],
)
def test_keys(text: str, prefix: int | None, kind: str, want: dict) -> None:
    assert vars(getattr(stf.key_match(text, prefix, Key("k", kind, 16, ("h", "k"))), kind)) == want


def test_keys_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="needs 17 bits"):
        stf.key_match("0x10000", None, Key("k", "exact", 16, ("h", "k")))
    with pytest.raises(ValueError, match="prefix length"):
        stf.key_match("1", 8, Key("k", "exact", 16, ("h", "k")))


def test_names() -> None:
    assert find("table", "t", ["A.tt", "A.t"]) == 1
    with pytest.raises(UnknownName, match=r"A\.t or B\.t"):
        find("table", "t", ["A.t", "B.t"])
    assert port_map([0, 3]) == "1001"


def test_thrift_call_refusal_and_end() -> None:
    """A server that answers one call, refuses the next and ends, byte by byte as Thrift writes it."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                for result in (struct.pack("!bhq", 10, 0, -7), struct.pack("!bhbhi", 12, 1, 8, 1, 18) + b"\0"):
                    asked.append(connection.recv(200))
                    connection.sendall(struct.pack("!Ii", 0x80010002, 1) + b"m" + struct.pack("!i", 0) + result + b"\0")

        thread = threading.Thread(target=serve)
        thread.start()
        client = runtime.Runtime(server.getsockname()[1])
        assert client.register_read("r", 3) == -7
        with pytest.raises(runtime.Refused, match="register_read: .*18"):
            client.register_read("r", 3)
        thread.join(5)
        with pytest.raises(ConnectionError, match="does not answer"):
            client.register_read("r", 3)
        client.close()
    arguments = b"\x08\0\1\0\0\0\0" + b"\x0b\0\2\0\0\0\1r" + b"\x08\0\3\0\0\0\3" + b"\0"
    assert asked[0][:8] + asked[0][8:33] + asked[0][37:] == bytes.fromhex("80010001") + b"\0\0\0\x19standard:bm_register_read" + arguments

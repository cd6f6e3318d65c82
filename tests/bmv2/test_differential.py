"""A few thousand generated packets through our switch and BMv2; a million each are `make differential`'s matter."""

from __future__ import annotations

import copy
import dataclasses
import random
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from fairlane import probes
from tools.bmv2 import process
from tools.bmv2.packets import message
from tools.bmv2.program import Program
from tools.differential import entries, suite
from tools.differential.compare import Comparison, Differs
from tools.differential.minimise import minimise
from tools.differential.ours import Ours
from tools.differential.stream import Stream
from tools.differential.walk import Walker

ROOT = suite.ROOT
PACKETS = 1500
CASES = {case.name: case for case in suite.load()}


@pytest.fixture(scope="module")
def tools() -> dict[str, Path]:
    found = {name: probes.program(name) for name in ("fairlane-compile", "fairlane-replay")}
    missing = [name for name, path in found.items() if path is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not built: run `make build`")
    return {name: path for name, path in found.items() if path is not None}


def compiled(tools: dict[str, Path], source: Path, folder: Path) -> Path:
    path = folder / f"{source.stem}.json"
    subprocess.run([tools["fairlane-compile"], "-o", path, source], check=True, timeout=60)
    return path


@pytest.mark.skipif(process.why_absent() is not None, reason=f"no BMv2: {process.why_absent()}")
@pytest.mark.parametrize("name", CASES)
def test_same_bytes_ports_and_drops(name: str, tools: dict[str, Path], tmp_path: Path) -> None:
    case = CASES[name]
    comparison = Comparison.prepare(case, compiled(tools, case.program, tmp_path), tmp_path, tools["fairlane-replay"], seed=7)
    try:
        result = comparison.run(PACKETS, lambda _: None)
    except Differs as differs:
        pytest.fail(f"{differs}\n{minimise(comparison, differs.packets) if differs.packets else ''}")
    assert result.packets == PACKETS
    # Packets that are all dropped, or never, would show little.
    assert result.out > PACKETS // 20


@pytest.mark.skipif(process.why_absent() is not None, reason=f"no BMv2: {process.why_absent()}")
def test_a_wrong_translation_shows_when_compilers_are_crossed(tools: dict[str, Path], tmp_path: Path) -> None:
    """BMv2 runs the program of a compiler that decrements the TTL by 2; with one program for both switches nothing would differ."""
    case = CASES["basic"]
    right = compiled(tools, case.program, tmp_path)
    changed = tmp_path / "tests/p4/basic/basic.p4"
    shutil.copytree(case.program.parents[1] / "include", tmp_path / "tests/p4/include")
    changed.parent.mkdir()
    source = case.program.read_text(encoding="utf-8")
    changed.write_text(source.replace("ttl - 1", "ttl - 2"), encoding="utf-8")
    assert changed.read_text(encoding="utf-8") != source
    wrong = tmp_path / "wrong.json"
    subprocess.run([tools["fairlane-compile"], "-o", wrong, changed], check=True, timeout=60)
    comparison = Comparison.prepare(case, right, tmp_path, tools["fairlane-replay"], seed=7, bmv2_json=wrong)
    with pytest.raises(Differs):
        comparison.run(PACKETS, lambda _: None)


def test_entries_for_keys_that_are_expressions(tools: dict[str, Path], tmp_path: Path) -> None:
    text = (ROOT / "tests/p4/basic/basic.p4").read_text(encoding="utf-8")
    changed = text.replace("hdr.ipv4.dst : lpm;", "hdr.ipv4.dst[31:8] : exact; hdr.ipv4.ttl & 0xf : ternary;")
    assert changed != text
    source = tmp_path / "keys.p4"
    source.write_text(changed.replace("../include", str(ROOT / "tests/p4/include")), encoding="utf-8")
    json = compiled(tools, source, tmp_path)
    program = Program.load(json)
    lines = entries.draw(program, program, Walker(program), random.Random(3), CASES["basic"], [])
    assert any('"hdr.ipv4.dst[31:8]":' in line for line in lines)
    setup = tmp_path / "setup.stf"
    setup.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with Ours(tools["fairlane-replay"], json, setup) as ours:
        assert ours.exchange([(1, bytes(64))]) == [[]]


def test_entries_keep_to_the_mask_of_another_compiler(tools: dict[str, Path], tmp_path: Path) -> None:
    """p4c makes a masked key of `field & constant`: BMv2 takes entries that differ beyond the mask for one."""
    text = (ROOT / "tests/p4/basic/basic.p4").read_text(encoding="utf-8")
    source = tmp_path / "masked.p4"
    source.write_text(
        text.replace("hdr.ipv4.dst : lpm;", "hdr.ipv4.ttl & 0x3 : exact;").replace("../include", str(ROOT / "tests/p4/include")),
        encoding="utf-8",
    )
    program = Program.load(compiled(tools, source, tmp_path))
    document = copy.deepcopy(program.document)
    (key,) = next(t["key"] for p in document["pipelines"] for t in p["tables"] if t["key"])
    key["mask"] = "0x03"
    lines = entries.draw(program, Program(document), Walker(program), random.Random(3), CASES["basic"], [])
    values = [int(line.split(":")[1].split()[0], 0) for line in lines]
    assert values and max(values) <= 3 and len(set(values)) == len(values)


@pytest.mark.skipif(process.why_absent() is not None, reason=f"no BMv2: {process.why_absent()}")
def test_a_difference_is_found_and_made_small(tools: dict[str, Path], tmp_path: Path) -> None:
    """Our switch is told another port for one route; the test that comes out has one packet and names both ports."""
    case = CASES["basic"]
    comparison = Comparison.prepare(case, compiled(tools, case.program, tmp_path), tmp_path, tools["fairlane-replay"], seed=7)
    text = comparison.setup.read_text()
    other = tmp_path / "other.stf"
    other.write_text(text.replace("forward(dst:0x0000000000c1, port:2)", "forward(dst:0x0000000000c1, port:6)"))
    assert other.read_text() != text
    comparison = dataclasses.replace(comparison, our_setup=other)
    with pytest.raises(Differs) as differs:
        comparison.run(PACKETS, lambda _: None)
    test = minimise(comparison, differs.value.packets)
    assert test is not None
    assert test.count("\npacket ") == 1
    assert "\n# ours: expect 6 " in test
    assert "\nexpect 2 " in test


def test_packets_are_the_same_for_the_same_seed_and_reach_the_parser(tools: dict[str, Path], tmp_path: Path) -> None:
    program = Program.load(compiled(tools, CASES["source_routing"].program, tmp_path))
    first, again, other = (Stream(program, Walker(program), [], seed) for seed in ("1", "1", "2"))
    assert first.batch(3, 100) == again.batch(3, 100) != other.batch(3, 100)
    assert first.batch(3, 100) != first.batch(4, 100)
    walker = Walker(program)
    rng = random.Random(1)
    paths = Counter(" ".join(walker.make(rng).headers) for _ in range(200))
    assert any(path.startswith("ethernet hops[0] hops[1]") for path in paths), paths
    assert "ethernet" in paths


def test_a_packet_taken_apart_gives_its_fields(tools: dict[str, Path], tmp_path: Path) -> None:
    program = Program.load(compiled(tools, CASES["basic"].program, tmp_path))
    walker = Walker(program)
    layout = walker.take_apart(bytes.fromhex("00000000000b00000000000a08004500001c00000000401165d00a0000010a000101") + b"\1\2")
    assert set(layout.headers) == {"ethernet", "ipv4"}
    assert layout.get(*layout.headers["ipv4"]["dst"]) == 0x0A000101
    layout.set(*layout.headers["ipv4"]["ttl"], 9)
    stream = Stream(program, walker, [], "1")
    for fix in stream.checksums:
        fix(layout)
    # The TTL 55 less is 0x3700 more in the checksum.
    assert layout.get(*layout.headers["ipv4"]["checksum"]) == 0x65D0 + 0x3700


def test_messages_to_bmv2() -> None:
    assert message(5, b"ab") == b"\x01" + (14).to_bytes(8, "big") + bytes([3, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0]) + b"ab"

"""`fairlane why`: packets of packet tests, of captures and of runs; its text, its data by its schema, its page.

`python tests/why/test_why.py` writes the expected texts anew.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fairlane import probes
from fairlane.errors import Refusal
from fairlane.why import entries, explanation, packet_tests, page, runs, story, values

ROOT = probes.ROOT
BASIC = ROOT / "tests/p4/basic/basic.p4"
BASIC_TEST = BASIC.with_suffix(".stf")
ROUTER = ROOT / "teaching/01/solution/router.p4"
ROUTER_TEST = ROUTER.with_suffix(".stf")
GOLDENS = {"hit": 2, "miss": 4, "expired": 5}

jsonschema = pytest.importorskip("jsonschema")
pytestmark = pytest.mark.skipif(packet_tests.native is None, reason="fairlane.native is not built: run `make build`")


def why(*arguments: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """As a user calls it, into a pipe."""
    command = [sys.executable, "-m", "fairlane", "why", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)


def text_of(number: int) -> str:
    done = why("tests/p4/basic/basic.p4", "tests/p4/basic/basic.stf", "--packet", str(number))
    assert done.returncode == 0, done.stderr
    return done.stdout


def of_basic(number: int) -> explanation.Explanation:
    return packet_tests.of_test(packet_tests.Program(BASIC), BASIC_TEST, number)


def switch(found: explanation.Explanation, node: str | None = None) -> dict[str, Any]:
    return next(station for station in found.stations if station["kind"] == "switch" and station["node"] == node)


def changes(station: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Of statements: the last change of each field."""
    of = (change for step in station["steps"] if step["kind"] == "statement" for change in step.get("changes", ()))
    return {change["name"]: (change["before"], change["after"]) for change in of}


def valid(data: dict[str, Any]) -> None:
    jsonschema.validate(data, json.loads(explanation.SCHEMA.read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", GOLDENS)
def test_text(name: str) -> None:
    expected = (Path(__file__).with_name(f"{name}.txt")).read_text(encoding="utf-8")
    found = text_of(GOLDENS[name])
    assert found == expected
    assert max(map(len, found.splitlines())) <= 100
    assert "\x1b" not in found


def test_values_before_and_after_are_those_of_the_frames() -> None:
    """What came in, changed as the program says, is what came out."""
    found = of_basic(2)
    station = switch(found)
    frame, out = bytes.fromhex(station["frame"]), bytes.fromhex(station["out"][0]["frame"])
    changed = changes(station)
    assert changed["ipv4.ttl"] == (hex(frame[22]), hex(out[22]))
    assert int(changed["ethernet.dst"][1], 16).to_bytes(6, "big") == out[:6]
    assert int(changed["ethernet.src"][1], 16).to_bytes(6, "big") == out[6:12]
    assert changed["standard_metadata.egress_spec"] == ("0x0", hex(station["out"][0]["port"]))
    checksum = next(step for step in station["steps"] if step["kind"] == "checksum" and step.get("updated"))["changes"][0]
    assert (checksum["before"], checksum["after"]) == (hex(int.from_bytes(frame[24:26], "big")), hex(int.from_bytes(out[24:26], "big")))


def test_a_table_shows_the_entries_that_it_compared() -> None:
    table = next(step for step in switch(of_basic(2))["steps"] if step["kind"] == "table")
    tried = table["candidates"]
    assert (tried["entries"], tried["compared"], tried["matching"]) == (3, 3, 2)
    assert [(one["number"], one["hit"], all(one["fields"])) for one in tried["shown"]] == [
        (2, True, True),
        (1, False, True),
        (3, False, False),
    ]
    assert table["entry"]["match"] == [{"value": "0xa000102", "prefix": 32}]


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (1, "Sent out of port 2: line 31, sm.egress_spec = port in action forward, which table routes ran for its 1st entry."),
        (3, "Dropped at the end of ingress: line 29, mark_to_drop(sm) in action drop, which table routes ran for its 3rd entry."),
        (4, "Dropped at the end of ingress: line 29, mark_to_drop(sm) in action drop, which table routes ran because no entry matched."),
    ],
)
def test_the_end_names_the_cause(number: int, sentence: str) -> None:
    assert of_basic(number).end == [sentence]


def test_the_wrong_router_of_lab_1_is_found(tmp_path: Path) -> None:
    """docs/why.md: the condition compares the time to live with 0, and the packet with 1 goes on."""
    wrong = tmp_path / "wrong.p4"
    right = ROUTER.read_text(encoding="utf-8")
    wrong.write_text(right.replace("hdr.ipv4.ttl <= 1", "hdr.ipv4.ttl == 0"), encoding="utf-8")
    assert wrong.read_text(encoding="utf-8") != right

    def condition(program: Path) -> tuple[dict[str, Any], explanation.Explanation]:
        found = packet_tests.of_test(packet_tests.Program(program), ROUTER_TEST, 3)
        return next(step for step in switch(found)["steps"] if step["kind"] == "condition"), found

    step, found = condition(wrong)
    assert not step["holds"]
    assert {read["name"]: read["value"] for read in step["reads"]}["ipv4.ttl"] == "0x1"
    assert found.end[0].startswith("Sent out of port 2")
    step, found = condition(ROUTER)
    assert step["holds"]
    assert found.end[0].startswith("Dropped at the end of ingress")


@pytest.mark.parametrize("test", ["forwarding", "multicast", "rewriting"])
def test_data_follows_the_schema_on_als(test: str) -> None:
    program = packet_tests.Program(ROOT / "p4src/als.p4")
    for number in (1, 2):
        found = packet_tests.of_test(program, ROOT / f"tests/p4src/{test}.stf", number)
        valid(found.data())
        assert found.end
        rows = story.rows(switch(found)["steps"], found.sources)
        assert any(row.line and row.head for row in rows)
        # Each statement has its whole line, not the piece of it that the compiler's JSON has.
        assert not any(row.head.endswith("...") for row in rows)


def test_copies_have_steps_and_ends_of_their_own() -> None:
    found = packet_tests.of_test(
        packet_tests.Program(ROOT / "tests/p4/clone_recirculate/clone_recirculate.p4"),
        ROOT / "tests/p4/clone_recirculate/clone_recirculate.stf",
        1,
    )
    valid(found.data())
    station = switch(found)
    assert {step["copy"] for step in station["steps"]} > {0}
    sent = [step["port"] for step in station["steps"] if step["kind"] == "sent"]
    assert sorted(sent) == sorted(out["port"] for out in station["out"])


def pcap(path: Path, frames: list[bytes]) -> None:
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    path.write_bytes(head + b"".join(struct.pack("<IIII", 0, 0, len(f), len(f)) + f for f in frames))


def test_a_capture_is_explained_as_the_packet_test_is(tmp_path: Path) -> None:
    """With the packet test's entries, with the same as commands of simple_switch_CLI, and as a file of the tutorials."""
    frames = [bytes.fromhex(switch(of_basic(number))["frame"]) for number in (1, 2)]
    pcap(tmp_path / "seen.pcap", frames)
    (tmp_path / "entries.txt").write_text(
        "table_add routes forward 10.0.1.0/24 => 00:00:00:00:00:c1 2\n"
        "table_add SwitchIngress.routes forward 10.0.1.2/32 => 0xc2 3\n"
        "table_add routes drop 10.0.2.0/24 =>\n",
        encoding="utf-8",
    )
    entry = {"table": "SwitchIngress.routes", "action_name": "SwitchIngress.forward"}
    table_entries = [
        entry | {"match": {"hdr.ipv4.dst": ["10.0.1.0", 24]}, "action_params": {"dst": "00:00:00:00:00:c1", "port": 2}},
        entry | {"match": {"hdr.ipv4.dst": ["10.0.1.2", 32]}, "action_params": {"dst": "00:00:00:00:00:c2", "port": 3}},
        {
            "table": "SwitchIngress.routes",
            "match": {"hdr.ipv4.dst": ["10.0.2.0", 24]},
            "action_name": "SwitchIngress.drop",
            "action_params": {},
        },
    ]
    runtime = {"target": "bmv2", "p4info": "a", "bmv2_json": "b", "table_entries": table_entries}
    (tmp_path / "s1-runtime.json").write_text(json.dumps(runtime), encoding="utf-8")

    def told(found: explanation.Explanation) -> list[Any]:
        return [
            {key: value for key, value in step.items() if key != "time_ns"}
            for step in switch(found)["steps"]
            if "timestamp" not in str(step)
        ]

    expected = told(of_basic(2))
    for file in (BASIC_TEST, tmp_path / "entries.txt", tmp_path / "s1-runtime.json"):
        found = packet_tests.of_capture(packet_tests.Program(BASIC), file, tmp_path / "seen.pcap", 2, 1)
        valid(found.data())
        assert told(found) == expected, file


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("table_add routs forward 10.0.1.0/24 => 1 2", "no table 'routs'"),
        ("table_add routes forward => 1 2", "1 fields in its key"),
        ("table_add routes forward 10.0.1.0/24 => 1", "takes 2 arguments"),
        ("table_add routes forward a.b/24 => 1 2", "is no number"),
        ("frobnicate 1", "frobnicate"),
    ],
)
def test_wrong_entries_are_refused_by_file_and_line(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "e.txt").write_text(f"\n{line}\n", encoding="utf-8")
    pcap(tmp_path / "a.pcap", [bytes(64)])
    with pytest.raises(Refusal, match=said) as refused:
        packet_tests.of_capture(packet_tests.Program(BASIC), tmp_path / "e.txt", tmp_path / "a.pcap", 1, 1)
    assert "e.txt:2" in str(refused.value)


def test_a_packet_test_gives_its_entries_alone() -> None:
    text = entries.script(BASIC_TEST, BASIC)
    lines = BASIC_TEST.read_text(encoding="utf-8").splitlines()
    assert text.split("\n") == ["" if line.startswith(("packet", "expect")) else line for line in lines]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("missing.p4",), "is no P4 program"),
        (("tests/p4/basic/basic.p4",), "Give a packet test, or --pcap"),
        (("tests/p4/basic/basic.p4", "tests/p4/basic/basic.stf", "--packet", "0"), "counted from 1"),
        (("tests/p4/basic/basic.p4", "tests/p4/basic/basic.stf", "--packet", "99"), "no packet 99"),
        (("tests/p4/basic/basic.p4", "tests/p4/basic/basic.stf", "--flow", "als-0"), "--flow: not with a program"),
        (("tests/p4/basic/basic.p4", "--pcap", "missing.pcap"), "give --port"),
        (("tests/p4/basic/basic.p4", "--pcap", "missing.pcap", "--port", "1"), "missing.pcap: cannot be read"),
        (("docs", "--dropped", "1"), "no raw records"),
        (("docs",), "which packet"),
    ],
)
def test_wrong_calls_are_refused(arguments: tuple[str, ...], said: str) -> None:
    done = why(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_the_page_has_the_program_beside_the_steps(tmp_path: Path) -> None:
    found = of_basic(4)
    page.write(found, tmp_path / "why.html")
    text = (tmp_path / "why.html").read_text(encoding="utf-8")
    assert text.count('class="ran"') >= 5
    assert "mark_to_drop(sm)" in text
    assert "because no entry matched" in text
    assert "http" not in text.replace("http-equiv", "")  # of one file
    with pytest.raises(Refusal, match="exists already"):
        page.write(found, tmp_path / "why.html")


def test_values_are_written_as_people_write_them() -> None:
    assert values.said("0xa000102", 32, "ipv4.dst_address") == "10.0.1.2"
    assert values.said("0xa000102", 32, "meta.rate") == "167772418 (0xa000102)"
    assert values.said("0x20", 128, "ipv6.dst_addr") == "::20"
    assert values.said("0xc1", 48, "ethernet.dst") == "00:00:00:00:00:c1"
    assert values.said("0x3d09c8", 48, "standard_metadata.ingress_global_timestamp") == "4000200 (0x3d09c8)"
    assert values.said("0x1", 1, "ipv4.$valid$") == "valid"
    assert [values.ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 112)] == [
        "1st",
        "2nd",
        "3rd",
        "4th",
        "11th",
        "12th",
        "13th",
        "21st",
        "112th",
    ]
    assert values.matched({"value": "0xa000000", "mask": "0xff000000"}, 32, "dst") == "10.0.0.0 &&& 255.0.0.0"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """TCP over a short queue, which drops, with the record of packets."""
    folder = tmp_path_factory.mktemp("why")
    options = ["--flow", "tcp-sack:2", "--duration", "2", "--buffer", "10", "--packets", "packets.csv", "--out", "results"]
    done = subprocess.run(
        [sys.executable, "-m", "fairlane", "run", "dumbbell", *options], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return folder / "results"


def record(results: Path) -> list[dict[str, str]]:
    import csv

    with (results.parent / "packets.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_packet_of_a_run_is_where_the_record_of_packets_has_it(results: Path) -> None:
    rows = [row for row in record(results) if row["flow"] == "tcp-sack-0" and row["part"] == "data" and not row["drop"]]
    number = int(rows[len(rows) // 2]["packet"])
    found = runs.of_packet(results, runs.packet_of("tcp-sack-0", "data", number, back=False))
    valid(found.data())
    links = [row["link"] for row in rows if int(row["packet"]) == number]
    stations = [station for station in found.stations if station["kind"] == "switch"]
    assert [station["node"] for station in stations] == [link.partition("->")[0] for link in links][: len(stations)]
    assert found.stations[0]["kind"] == "sent"
    assert found.end[0].startswith("Received by")
    # The next switch gets the frame that left the one before: the time to live goes down.
    lives = [bytes.fromhex(station["frame"])[22] for station in stations]
    assert lives == list(range(lives[0], lives[0] - len(lives), -1))


def test_the_first_dropped_packet_of_a_run_is_that_of_the_record(results: Path) -> None:
    dropped = [row for row in record(results) if row["drop"] == "tail"]
    first = min(dropped, key=lambda row: float(row["arrival_s"]))
    found = runs.of_drop(results, runs.Dropped(1, cause="tail"))
    valid(found.data())
    assert (found.source["flow"], found.source["number"]) == (first["flow"], int(first["packet"]))
    assert found.source["dropped"]["node"] == first["link"].partition("->")[0]
    assert "queue of port" in found.end[-1]
    assert "is full" in found.end[-1]
    last = [station for station in found.stations if station["kind"] == "switch"][-1]
    queue = next(step for step in last["steps"] if step["kind"] == "queue")
    assert queue["ahead"] == int(first["queue_packets"]) == 10


def test_other_runs_are_refused(results: Path) -> None:
    with pytest.raises(Refusal, match="there is no flow 'tcp-sack-9'"):
        runs.of_packet(results, runs.packet_of("tcp-sack-9", "data", 0, back=False))
    with pytest.raises(Refusal, match="was never sent"):
        runs.of_packet(results, runs.packet_of("tcp-sack-0", "data", 1, back=False))
    with pytest.raises(Refusal, match="fewer than 99999 packets"):
        runs.of_drop(results, runs.Dropped(99999))


def test_a_run_that_comes_out_differently_is_refused(results: Path) -> None:
    path = results / "raw/s1.csv"
    before = path.read_text(encoding="utf-8")
    lines = before.splitlines(keepends=True)
    try:
        path.write_text("".join([*lines[:2], lines[2].replace(",", ",9", 1), *lines[3:]]), encoding="utf-8")
        with pytest.raises(Refusal, match=r"line 3 of raw/s1.csv differs"):
            runs.of_drop(results, runs.Dropped(1))
    finally:
        path.write_text(before, encoding="utf-8")


if __name__ == "__main__":
    os.chdir(ROOT)
    for name_, number_ in GOLDENS.items():
        Path(__file__).with_name(f"{name_}.txt").write_text(text_of(number_), encoding="utf-8", newline="\n")

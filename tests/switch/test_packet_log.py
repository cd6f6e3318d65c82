"""BMv2's packet log: its words for some programs, its levels, where it goes; and what packet tests cover.

`tests/bmv2/test_bmv2_packet_log.py` compares the words with BMv2's. `python tests/switch/test_packet_log.py` writes the expected files anew.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc

from fairlane import probes

ROOT = probes.ROOT
STF = probes.program("fairlane-stf")
SWITCH = probes.program("fairlane-switch")
GOLDENS = ["basic", "clone_recirculate", "multicast", "profile", "source_routing", "options", "link_monitor"]
# Programs and packet tests of p4src, with the options that build them.
ALS = "p4src/als.p4"
COVERED = [
    ([], ["forwarding", "multicast", "rewriting"]),
    (["-D", "CONNECTION_SKETCH"], ["sketch"]),
    (["-D", "IPV6"], ["ipv6"]),
]
UNREACHED = ROOT / "tests/p4src/unreached.txt"

pytestmark = pytest.mark.skipif(STF is None or SWITCH is None, reason="fairlane-stf is not built: run `make build`")


def play(*arguments: str | Path) -> str:
    done = subprocess.run([str(STF), *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def packet_log(name: str, level: str = "trace") -> str:
    """A program's packet log, without the verdict of its test."""
    source = f"tests/p4/{name}/{name}"
    return "".join(line for line in play(f"{source}.p4", f"{source}.stf", "-L", level).splitlines(True) if not line.startswith(source))


@pytest.mark.parametrize("name", GOLDENS)
def test_words(name: str) -> None:
    assert packet_log(name) == (ROOT / f"tests/p4/{name}/{name}.log").read_text(encoding="utf-8")


def test_a_level_leaves_out_those_below_it() -> None:
    def heads(text: str) -> list[str]:
        return re.findall(r"^\[[TDIWE]\] .*$", text, re.MULTILINE)

    everything = heads(packet_log("basic"))
    assert {line[1] for line in everything} == set("TDE")
    for level, letters in (("debug", "DIWE"), ("info", "IWE"), ("warn", "WE"), ("error", "E")):
        assert heads(packet_log("basic", level)) == [line for line in everything if line[1] in letters], level


def test_a_level_that_there_is_not() -> None:
    done = subprocess.run([str(STF), "-L", "loud", "a.p4", "a.stf"], capture_output=True, text=True, timeout=20)
    assert done.returncode == 2
    assert "use trace, debug, info, warn or error" in done.stderr


PROGRAM = """#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> kind; bit<8> value; }
struct headers { h_t h; h_t more; }
struct meta { }
parser P(packet_in p, out headers hdr, inout meta m, inout standard_metadata_t sm) {
    state start {
        p.extract(hdr.h);
        transition select(hdr.h.kind) { 1: second; default: accept; }
    }
    state second {
        p.extract(hdr.more);
        transition accept;
    }
}
control V(inout headers hdr, inout meta m) { apply { } }
control I(inout headers hdr, inout meta m, inout standard_metadata_t sm) {
    action forward(bit<9> port) {
        sm.egress_spec = port;
    }
    action discard() {
        mark_to_drop(sm);
    }
    table t {
        key = { hdr.h.value: exact; }
        actions = { forward; discard; }
        default_action = discard();
    }
    apply {
        t.apply();
        if (hdr.h.kind == 7) {
            hdr.h.value = 9;
        }
    }
}
control E(inout headers hdr, inout meta m, inout standard_metadata_t sm) { apply { } }
control C(inout headers hdr, inout meta m) { apply { } }
control D(packet_out p, in headers hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


def test_coverage_counted_by_hand(tmp_path: Path) -> None:
    """One packet that hits, one that misses; none of kind 7 or 1."""
    (tmp_path / "p.p4").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "p.stf").write_text("add t h.value:1 forward(port:3)\npacket 0 0001\nexpect 3 0001\npacket 0 0002\n", encoding="utf-8")
    said = play(tmp_path / "p.p4", tmp_path / "p.stf", "--coverage", tmp_path / "c.info")
    assert "coverage: 2 of 3 statements (66.7 %)" in said
    assert "coverage: 1 of 2 branches (50.0 %)" in said
    assert "coverage: 1 of 3 parser transitions (33.3 %)" in said
    assert "coverage: 2 of 2 table actions (100.0 %)" in said
    lcov = (tmp_path / "c.info").read_text(encoding="utf-8")
    lines = {int(line): int(count) for line, count in re.findall(r"^DA:(\d+),(\d+)$", lcov, re.MULTILINE)}
    assert lcov.splitlines()[1] == f"SF:{tmp_path}/p.p4"
    # State start, state second, forward's and discard's statements, table, condition, what depends on it.
    assert lines == {7: 2, 11: 0, 19: 1, 22: 1, 24: 2, 31: 2, 32: 0}
    branches = re.findall(r"^BRDA:(\d+),0,(\d+),(.+)$", lcov, re.MULTILINE)
    assert sorted(branches) == sorted(
        [("7", "0", "2"), ("7", "1", "0"), ("11", "0", "-"), ("24", "0", "1"), ("24", "1", "1"), ("31", "0", "2"), ("31", "1", "0")]
    )
    page = (tmp_path / "c.html").read_text(encoding="utf-8")
    assert '<span class="none">   32        0              hdr.h.value = 9;</span>' in page


def p4src_coverage() -> tuple[dict[str, list[int]], str]:
    """Reached and all of each kind, and what no packet test of p4src reaches."""
    runs = [(options, [f"tests/p4src/{test}.stf" for test in tests]) for options, tests in COVERED]
    for scheme in sorted((ROOT / "p4src/schemes").glob("*/*.stf")):
        folder = scheme.parent.relative_to(ROOT)
        runs.append((["-D", "CHOSEN", "-I", str(folder), "-I", "p4src"], [str(scheme.relative_to(ROOT))]))
    counts: dict[tuple[str, str, str], int] = {}
    with tempfile.TemporaryDirectory() as folder_name:
        report = Path(folder_name) / "c.info"
        for options, tests in runs:
            play(*options, ALS, *tests, "--coverage", report)
            for item in json.loads(report.with_suffix(".json").read_text(encoding="utf-8")):
                # Without lines: they change with every comment.
                key = (os.path.normpath(item["file"]) if item["file"] else "p4src", item["kind"], item["name"])
                counts[key] = counts.get(key, 0) + item["count"]
    totals: dict[str, list[int]] = {}
    for (_, kind, _), count in counts.items():
        total = totals.setdefault(kind, [0, 0])
        total[0] += count > 0
        total[1] += 1
    unreached = "".join(f"{file}: {kind}: {name}\n" for (file, kind, name), count in sorted(counts.items()) if count == 0)
    return totals, unreached


def test_what_the_packet_tests_of_p4src_do_not_reach() -> None:
    """A piece that a new statement or a changed test leaves unreached is named here: test it, or add it to the list."""
    totals, unreached = p4src_coverage()
    for kind, (reached, total) in totals.items():
        print(f"p4src: {reached} of {total} {kind}")
    assert unreached == UNREACHED.read_text(encoding="utf-8")


def log_of_a_client(folder: Path, libraries: str | None) -> str:
    """What a switch logs while a client asks for its capabilities."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    environment = {**os.environ, **({"FAIRLANE_LOG_LIBRARIES": libraries} if libraries else {})}
    command = [str(SWITCH), "--no-p4", "--log-file", str(folder / "s1"), "-L", "trace", "--", "--grpc-server-addr", f"127.0.0.1:{port}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as switch:
        try:
            assert switch.stdout is not None and switch.stdout.readline().startswith("ready")
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                p4r_grpc.P4RuntimeStub(channel).Capabilities(p4r.CapabilitiesRequest(), timeout=20)
        finally:
            switch.terminate()
            switch.wait(20)
    return (folder / "s1.txt").read_text(encoding="utf-8")


def test_the_log_has_bmv2s_form_and_no_line_of_the_http2_library(tmp_path: Path) -> None:
    log = log_of_a_client(tmp_path, None)
    today = time.strftime("%H:", time.gmtime())
    form = re.compile(r"\[\d\d:\d\d:\d\d\.\d{3}\] \[bmv2\] \[[TDIWE]\] \[thread \d+\] .+")
    assert all(form.fullmatch(line) for line in log.splitlines()), log
    assert "P4Runtime server listening" in log and today in log
    assert "Streams::" not in log, log


def test_the_http2_library_speaks_when_asked(tmp_path: Path) -> None:
    assert "Streams::recv_eof" in log_of_a_client(tmp_path, "h2=trace")


def test_a_request_for_a_library_that_cannot_be_read(tmp_path: Path) -> None:
    environment = {**os.environ, "FAIRLANE_LOG_LIBRARIES": "h2=loud"}
    command = [str(SWITCH), "--no-p4", "--log-file", str(tmp_path / "s1"), "-L", "trace"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=20)
    assert done.returncode == 1
    assert "FAIRLANE_LOG_LIBRARIES=h2=loud" in done.stderr and "write it as h2=debug" in done.stderr


if __name__ == "__main__":
    for golden in GOLDENS:
        (ROOT / f"tests/p4/{golden}/{golden}.log").write_text(packet_log(golden), encoding="utf-8")
    reached_of_all, missed = p4src_coverage()
    UNREACHED.write_text(missed, encoding="utf-8")
    sys.stdout.write(f"{reached_of_all}\n")

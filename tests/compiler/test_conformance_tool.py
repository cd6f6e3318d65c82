"""The tool that counts against p4c's samples, on a checkout and compilers made up here."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from fairlane import probes
from tools.bmv2 import process
from tools.bmv2.program import Program
from tools.conformance import __main__ as program
from tools.conformance import errors, generated_tests, p4info, pairs, panics, psa, random_programs, samples, stf, warnings
from tools.conformance import runs as runs_module
from tools.conformance.checkout import Checkout, NoCheckout
from tools.conformance.compilers import Compiled, Compiler, Message, our_errors, p4c_errors
from tools.conformance.report import Count, Known, Miss, show
from tools.conformance.runs import Run, Runner, execute
from tools.conformance.suite import Suite

# A compiler that does what the program's comments say.
COMPILER = """#!/bin/sh
while [ $# -gt 1 ]; do
    case $1 in -o) json=$2; shift ;; --p4runtime-files) info=$2; shift ;; -I) shift ;; esac
    shift
done
grep -q "panics: WHO" "$1" && { echo "thread 'main' panicked at a.rs:1:2" >&2; exit 101; }
if grep -q "refuses: WHO" "$1"; then echo "$1:2:3: error[name]: WHO cannot find \\`x\\`" >&2; exit 1; fi
grep -q "warns: WHO" "$1" && echo "$1:3:9: warning[invalid-header]: accessing a field" >&2
echo "{}" > "$json"
echo "tables { preamble { id: $(grep -c "other id: WHO" "$1") } }" > "$info"
echo x >> "COUNT"
"""
RUNNER = '#!/bin/sh\ngrep -q pass "$2" || { echo "a.stf:3: port 1: not sent"; exit 1; }\n'


def executable(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    root = tmp_path / "p4c"
    programs = root / "testdata/p4_16_samples"
    for folder in (programs, root / "testdata/p4_16_errors", root / "testdata/p4_16_errors_outputs", root / "p4include"):
        folder.mkdir(parents=True)
    (root / "p4include/v1model.p4").touch()
    head = "#include <v1model.p4>\n"
    for name, text in {
        "good.p4": head,
        "refused.p4": head + "// refuses: ours",
        "both.p4": head + "// refuses: ours refuses: p4c",
        "panic.p4": head + "// panics: ours",
        "info.p4": head + "// other id: ours",
        "psa.p4": "#include <psa.p4>\n",
        "through.p4": '#include "good.p4"\n',
        "good.stf": "pass",
        "info.stf": "fail",
    }.items():
        (programs / name).write_text(text)
    (root / "testdata/p4_16_errors/a.p4").write_text("// refuses: ours")
    (root / "testdata/p4_16_errors/b.p4").write_text("")
    (root / "testdata/p4_16_errors_outputs/a.p4-stderr").write_text("a.p4(2): [--Werror=not-found] error: x: declaration not found\n")
    checkout = Checkout.at(root)
    runner = Runner(tmp_path / "cache")
    made = {
        who: executable(tmp_path / f"{who}-compile", COMPILER.replace("WHO", who).replace("COUNT", str(tmp_path / f"{who}.count")))
        for who in ("ours", "p4c")
    }
    return Suite(
        checkout,
        Compiler(made["ours"], checkout, runner, ours=True),
        Compiler(made["p4c"], checkout, runner, ours=False),
        executable(tmp_path / "stf", RUNNER),
        runner,
        jobs=2,
    )


def stored(suite: Suite, name: str, text: str) -> None:
    folder = suite.checkout.samples.with_name("p4_16_samples_outputs")
    folder.mkdir(exist_ok=True)
    (folder / f"{name}-stderr").write_text(text)


def misses(count: Count) -> dict[str, str]:
    return {m.program: m.cause for m in count.misses}


def test_samples_are_those_for_v1model_that_p4c_accepts(suite: Suite) -> None:
    count = samples.count(suite)
    assert (count.good, count.total) == (3, 5)  # good, info, through; not refused, panic; both.p4 and psa.p4 do not count
    assert misses(count) == {"refused.p4": "ours cannot find `x`", "panic.p4": "PANIC: panicked at a.rs:1:2"}


def test_warnings_by_flow_are_held_against_the_stored_ones_line_by_line(suite: Suite) -> None:
    folder = suite.checkout.samples
    (folder / "same.p4").write_text("#include <psa.p4>\n// warns: ours\n")
    (folder / "more.p4").write_text("#include <psa.p4>\n// warns: ours\n")
    (folder / "alone.p4").write_text("#include <psa.p4>\n// warns: ours\n")
    invalid = "[--Wwarn=invalid-header] warning: accessing a field of an invalid header h\n"
    stored(suite, "same.p4", f"same.p4(3): {invalid}    h.a = 1;\n[--Wwarn=uninitialized-use] warning: tmp may be uninitialized\n")
    stored(suite, "more.p4", f"more.p4(3): {invalid}more.p4(5): [--Wwarn=uninitialized-use] warning: x may be uninitialized\n")
    stored(suite, "alone.p4", "alone.p4(3): [--Wwarn=unused] warning: 'x' is unused\n")
    count = warnings.count(suite)
    assert (count.good, count.total) == (1, 2)
    assert misses(count) == {"more.p4": "line 5: uninitialized-use"}
    assert "invalid-header, by line: 2 both, 1 ours only, 0 p4c only" in count.notes
    assert "uninitialized-use, by line: 0 both, 0 ours only, 1 p4c only" in count.notes


def test_p4info_is_compared_where_both_accept(suite: Suite) -> None:
    count = p4info.count(suite)
    assert (count.good, count.total) == (2, 3)
    assert misses(count) == {"info.p4": "+tables.preamble.id: 1"}  # protobuf text leaves out a zero


def test_errors_count_the_lines_of_both(suite: Suite) -> None:
    count = errors.count(suite)
    assert (count.good, count.total) == (1, 2)
    assert misses(count) == {"b.p4": "p4c has no error stored"}
    assert "1 have an error of ours on the line of p4c's first" in count.notes[1]


def test_packet_tests_for_each_pair(suite: Suite) -> None:
    for count in stf.count(suite)[:2]:
        assert (count.good, count.total) == (1, 2)
        assert misses(count) == {"info.p4": "port 1: not sent"}


def test_psa_samples_are_held_against_stored_p4info_and_packet_tests(suite: Suite) -> None:
    folder = suite.checkout.samples
    for name, text in {
        "psa-a.p4": "",
        "psa-b.p4": "// refuses: ours",
        "x-bmv2.p4": "// other id: ours",
        "psa-v1.p4": '#include "v1model.p4"',
    }.items():
        (folder / name).write_text(f"#include <bmv2/psa.p4>\n{text}\n")
    (folder / "psa-a.stf").write_text("pass")
    (folder / "psa-b.stf").write_text("pass")
    (folder / "x-bmv2.stf").write_text("fail")
    outputs = folder.with_name("p4_16_samples_outputs")
    outputs.mkdir()
    for name in ("psa-a", "x-bmv2"):
        (outputs / f"{name}.p4.p4info.txtpb").write_text("tables { preamble { id: 0 } }")
    listed = suite.checkout.root / "backends/bmv2/CMakeLists.txt"
    listed.parent.mkdir(parents=True)
    listed.write_text("set (XFAIL_TESTS\n  # why\n  testdata/p4_16_samples/psa-b.p4 # because\n)\n")
    accepted, equal, passed = psa.count(suite)
    assert (accepted.good, accepted.total) == (2, 3)  # psa-v1.p4 is not one for PSA
    assert misses(accepted) == {"psa-b.p4": "ours cannot find `x`"}
    assert "p4c expects 1 of them to fail with p4c-bm2-psa and psa_switch: psa-b.p4" in accepted.notes
    assert misses(equal) == {"x-bmv2.p4": "+tables.preamble.id: 1"} and equal.total == 2
    assert misses(passed) == {"psa-b.p4": "not compiled: ours cannot find `x`", "x-bmv2.p4": "port 1: not sent"}


def test_generated_tests_count_where_p4c_and_bmv2_pass_them(suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three tests for good.p4: the first passes everywhere, the second with p4c and BMv2 alone, the third nowhere."""
    generator = executable(
        tmp_path / "p4testgen",
        "#!/bin/sh\nfor last; do true; done\ncase $last in */good.p4) ;; *) exit 1 ;; esac\n"
        "echo pass > good_1.stf; echo no > good_2.stf; echo wrong > good_3.stf\n",
    )
    monkeypatch.setattr(pairs, "bmv2", lambda _suite, _json, test: "port 1: nothing" if "wrong" in test.read_text() else None)
    count = generated_tests.count(dataclasses.replace(suite, testgen=generator))
    assert (count.good, count.total) == (1, 2)
    assert misses(count) == {"good.p4 2": "port 1: not sent"}
    assert count.notes[-1].startswith("1 tests not counted")


@pytest.mark.skipif(process.why_absent() is not None, reason=f"no BMv2: {process.why_absent()}")
@pytest.mark.skipif(probes.program("fairlane-replay") is None, reason="fairlane-replay is not built (make build)")
def test_random_programs_are_crossed(suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler in p4c's place translates the second program wrongly, and refuses the third, which then does not count."""
    basic = probes.ROOT / "tests/p4/basic/basic.p4"
    text = basic.read_text(encoding="utf-8").replace('"../include/', f'"{basic.parents[1]}/include/')
    (tmp_path / "basic.p4").write_text(text, encoding="utf-8")
    generator = executable(tmp_path / "p4smith", f'#!/bin/sh\n(echo "// seed $6"; cat {tmp_path}/basic.p4) > "$7"\n')
    ours = probes.program("fairlane-compile")
    assert ours is not None
    other = executable(
        tmp_path / "p4c-bm2-ss",
        '#!/bin/sh\nshift 2\nfor last; do true; done\ngrep -q "seed 3" "$last" && exit 1\n'
        f'grep -q "seed 2" "$last" && sed -i "s/ttl - 1/ttl - 2/" "$last"\n{ours} "$@"\n'
        'sed -i "s/ttl - 2/ttl - 1/" "$last"\n',
    )
    monkeypatch.setattr(random_programs, "KEPT", tmp_path / "random")
    replay = probes.program("fairlane-replay")
    assert replay is not None
    checkout, runner = suite.checkout, suite.runner
    crossed = dataclasses.replace(
        suite,
        ours=Compiler(ours, checkout, runner, ours=True),
        p4c=Compiler(other, checkout, runner, ours=False),
        replay=replay,
        smith=generator,
        random=3,
    )
    count = random_programs.count(crossed)
    assert (count.good, count.total) == (1, 2)
    assert "port " in misses(count)["random-2.p4"]
    assert count.notes == ["1 not counted: p4c refuses the program"]
    kept = {path.name for path in (tmp_path / "random").iterdir()}
    assert "random-2.differs.stf" in kept and "random-1.p4" not in kept


def test_a_program_with_state_is_told_from_one_without() -> None:
    def program(**arrays: list[object]) -> Program:
        lists = ("actions", "header_types", "headers", "pipelines", "register_arrays", "counter_arrays", "meter_arrays")
        return Program({**{name: [] for name in lists}, **arrays})

    assert not random_programs._keeps_state(program())
    assert random_programs._keeps_state(program(register_arrays=[{"name": "r", "id": 0, "bitwidth": 8, "size": 1}]))


def test_a_read_of_what_nothing_has_written_is_told_from_a_difference(suite: Suite, tmp_path: Path) -> None:
    """Only where both compilers warn of it."""
    source = tmp_path / "program.p4"
    source.write_text("", encoding="utf-8")

    def warns(text: str) -> Compiled:
        return Compiled(Run(0, "", text, 0.0))

    ours = warns("program.p4:1:1: warning[uninitialized-use]: `x` may be uninitialized")
    for said, undefined in (("[--Wwarn=uninitialized_out_param] warning: x", True), ("[--Wwarn=unused] warning: x", False)):
        other = executable(tmp_path / "p4c-bm2-ss", f"#!/bin/sh\necho '{said}' >&2\n")
        crossed = dataclasses.replace(suite, p4c=Compiler(other, suite.checkout, Runner(None), ours=False))
        assert random_programs._reads_unwritten(crossed, source, ours) is undefined
        assert not random_programs._reads_unwritten(crossed, source, warns(""))


def test_a_program_keeps_the_name_under_which_it_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our programs are one executable, which is each of them by its name."""
    target = executable(tmp_path / "fairlane-switch", "#!/bin/sh\n")
    (tmp_path / "fairlane-compile").symlink_to(target)
    monkeypatch.setenv("FAIRLANE_BIN", str(tmp_path))
    assert program._program("fairlane-compile").name == "fairlane-compile"


def test_panics_are_looked_for_everywhere(suite: Suite) -> None:
    assert list(misses(panics.count(suite))) == ["p4_16_samples/panic.p4"]


def test_a_second_run_starts_nothing_and_a_changed_include_does(suite: Suite, tmp_path: Path) -> None:
    runs = tmp_path / "ours.count"
    samples.count(suite)
    before = runs.read_text()
    samples.count(suite)
    assert runs.read_text() == before
    (suite.checkout.samples / "good.p4").write_text("#include <v1model.p4>\n// changed")
    runs_module.source_hash.cache_clear()
    for name in ("good.p4", "through.p4"):
        suite.ours.compile(suite.checkout.samples / name)
    assert len(runs.read_text()) == len(before) + 4


def test_a_run_out_of_time_ends_its_children(tmp_path: Path) -> None:
    script = executable(tmp_path / "slow", "#!/bin/sh\nsleep 60 & echo $! > pid\nwait\n")
    run = execute([script], (), 0.5, tmp_path)
    assert run.timed_out
    child = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        for _ in range(1000):  # the child is reaped by init
            os.kill(child, 0)
            if Path(f"/proc/{child}/stat").read_text().split(")")[1].split()[0] == "Z":
                raise ProcessLookupError


def test_known_divergences_are_marked_and_must_still_be_there() -> None:
    known = Known({"samples": {"a.p4": "a table twice", "b.p4": "gone"}})
    count = Count("samples", "accepted", total=3, good=1, misses=[Miss("a.p4", "refused"), Miss("c.p4", "`y` is 7 wide")])
    text, as_filed = show(count, known)
    assert not as_filed
    assert "known: a table twice" in text and "NEW: `…` is N wide" in text
    assert text.splitlines()[-1].strip() == "b.p4"
    assert show(Count("samples", "accepted", 2, 1, [Miss("a.p4", "refused")]), Known({"samples": {"a.p4": "x"}}))[1]


def test_messages_of_both_compilers() -> None:
    assert our_errors("a.p4:9:11: error[name]: no `x`\n 9 | x\n1 error\nerror: cannot read") == [
        Message("a.p4", 9, "name", "no `x`"),
        Message("", 0, "", "cannot read"),
    ]
    text = (
        "a.p4(4): [--Wwarn=unused] warning: x\na.p4(9): [--Werror=type-error] error: y\nb.p4(3):syntax error, unexpected x\n"
        "[--Werror=overlimit] error: 2 errors encountered, aborting compilation\n"
    )
    assert p4c_errors(text) == [Message("a.p4", 9, "type-error", "y"), Message("b.p4", 3, "", "syntax error, unexpected x")]


def test_the_filed_divergences_can_be_read() -> None:
    with_stf = {f"stf {c}/{s}" for c in ("ours", "p4c") for s in ("ours", "bmv2")}
    assert set(Known.load().causes) <= {*program.KINDS, *with_stf, "psa samples"}


def test_a_folder_that_is_no_checkout(tmp_path: Path) -> None:
    with pytest.raises(NoCheckout, match="git clone"):
        Checkout.at(tmp_path)

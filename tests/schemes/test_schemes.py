"""Schemes: each is a folder that is found by itself; a folder of a user's own comes in by --scheme, by the same loader."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

import fairlane
from fairlane import cli, errors, execute, probes, skeleton_scheme, user_files
from fairlane.controller.plane.names import Names
from fairlane.errors import Refusal
from fairlane.experiments import loader
from fairlane.fabrics import targets, virtual_fabric
from fairlane.fabrics.places import VIRTUAL
from fairlane.inputs import located_toml
from fairlane.live import restore
from fairlane.results import metrics
from fairlane.schemes import chosen, recorded, registry
from fairlane.schemes.base import PLACES
from fairlane.topologies.model import Link
from tools.site import schemes

needs_module = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")
AFD = probes.ROOT / "docs" / "examples" / "afd"
TELEMETRY = probes.ROOT / "docs" / "examples" / "telemetry"
MIXED = """
title = "two schemes"
bottleneck = "s1->s2"
duration_s = 15
[[flows]]
name = "tcp"
kind = "tcp-sack"
count = 2
hosts = [["h1", "h3"], ["h2", "h4"]]
[topology]
kind = "graph"
nodes = [
  {name = "h1", kind = "host"}, {name = "h2", kind = "host"}, {name = "h3", kind = "host"}, {name = "h4", kind = "host"},
  {name = "s1", kind = "switch"}, {name = "s2", kind = "switch"}, {name = "s3", kind = "switch"},
]
links = [
  {ends = ["s1", "s2"], rate_bps = 4e6, delay_s = 0.01, queue_packets = 40, queue = "codel"},
  {ends = ["s2", "s3"], rate_bps = 1.5e6, delay_s = 0.01, queue_packets = 40, queue = "pie"},
  {ends = ["h1", "s1"], rate_bps = 1e8}, {ends = ["h2", "s1"], rate_bps = 1e8},
  {ends = ["h3", "s3"], rate_bps = 1e8}, {ends = ["h4", "s2"], rate_bps = 1e8},
]
"""


def test_every_folder_is_a_scheme_and_has_its_program() -> None:
    folders = {path.name for path in registry.FOLDER.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == set(registry.SCHEMES)
    for scheme in [*registry.SCHEMES.values(), registry.load(AFD)]:
        assert set(scheme.controls) <= set(PLACES) and scheme.parameters.__doc__
        for name, text in chosen.alone(scheme).items():
            assert (scheme.folder / name).read_text() == text, f"{scheme.name}/{name}: as `chosen.alone` writes it"
        text = "".join(path.read_text() for path in scheme.folder.glob("*.p4"))
        for control in scheme.controls.values():
            assert f"control {control.split()[0]}(" in text


def test_the_files_of_a_changed_folder_are_written_anew(tmp_path: Path) -> None:
    trail = tmp_path / "trail"
    trail.mkdir()
    for path in TELEMETRY.iterdir():
        if path.is_file() and path.suffix != ".toml":
            text = path.read_text().replace("telemetry", "trail").replace("Telemetry", "Trail").replace("5445", "5452")
            (trail / path.name.replace("telemetry", "trail")).write_text(text.replace("HOPS = 4", "HOPS = 3").replace("HOPS 4", "HOPS 3"))
    written = skeleton_scheme.choose(trail)
    assert [path.name for path in written] == ["chosen_headers.p4", "chosen.p4"]
    headers, controls = (path.read_text() for path in written)
    assert "(RTP_EXTENDED &&& 0x1FE, 0x5452, 13, 76..0xFFFF): parse_trail_header;" in headers and "hop_t[3] hops;" in headers
    assert '#include "trail.p4"' in controls and "Trail() trail;" in controls
    again = [path.stat().st_mtime_ns for path in written]
    with pytest.raises(Refusal, match="scheme.py"):
        skeleton_scheme.choose(tmp_path)
    assert [path.stat().st_mtime_ns for path in written] == again


def test_the_programs_own_choice_is_the_standing_schemes() -> None:
    wanted = chosen.texts(registry.standing(), lambda scheme, file: f"schemes/{scheme.name}/{file.name}")
    for name, text in wanted.items():
        lines = (probes.PACKAGE / "p4src" / name).read_text().splitlines()
        assert [line for line in lines if line.startswith("#")] == [line for line in text.splitlines() if line.startswith("#")]


@pytest.mark.parametrize("name", registry.SCHEMES)
def test_what_a_scheme_fills_and_reads_is_in_its_program(name: str, tmp_path: Path) -> None:
    scheme = registry.SCHEMES[name]
    defines = ("CHOSEN", *(counter.macro for counter in scheme.counters if counter.macro))
    source = probes.source("p4src/als.p4")
    _, info = targets.compiler().compile(source, tmp_path, defines, (scheme.folder,))
    p4info = Names.read(info)
    for entry in [*scheme.parameters().of_port(100).entries(1e7), *scheme.of_every_port(1e7)]:
        p4info.entry(entry.table, {entry.key: 1}, entry.action_name, entry.values)
    for counter in scheme.counter_names:
        p4info.counter_id(counter)


@pytest.mark.parametrize("folder", [*(scheme.folder for scheme in registry.SCHEMES.values()), AFD], ids=lambda folder: folder.name)
def test_a_scheme_passes_its_packet_test(folder: Path) -> None:
    program = probes.program("fairlane-stf")
    if program is None:
        pytest.skip("fairlane-stf is not built (make build)")
    p4src = probes.PACKAGE / "p4src"
    command = [program, "-D", "CHOSEN", "-I", folder, "-I", p4src, p4src / "als.p4", folder / f"{folder.name}.stf"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_table_of_schemes_is_the_one_that_the_descriptions_give() -> None:
    assert schemes.PAGE.read_text(encoding="utf-8") == schemes.page(), "python -m tools.site.schemes"


@needs_module
def test_links_of_one_run_have_different_schemes(tmp_path: Path) -> None:
    (tmp_path / "mixed.toml").write_text(MIXED)
    experiment = loader.load(tmp_path / "mixed.toml")
    assert [scheme.name for scheme in experiment.schemes] == ["red", "codel", "pie", "fair_rate"]
    result = fairlane.run(tmp_path / "mixed.toml", out=tmp_path / "out")
    drops = {link["name"]: set(link["drops"]) for link in result.summary["links"]}
    assert "codel" in drops["s1->s2"] and "pie" in drops["s2->s3"]
    assert "pie" not in drops["s1->s2"] and "codel" not in drops["s2->s3"]


def fairlane_(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fairlane", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=110)


def records(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "raw").iterdir()}


@needs_module
@pytest.mark.timeout(300)
def test_a_new_scheme_runs_as_it_is_and_again_from_its_results(tmp_path: Path) -> None:
    made = fairlane_(tmp_path, "new", "scheme", "my-queue")
    assert made.returncode == 0, made.stderr
    stf = ["stf", "-D", "CHOSEN", "-I", "my-queue", "-I", str(probes.PACKAGE / "p4src"), str(probes.PACKAGE / "p4src" / "als.p4")]
    tested = fairlane_(tmp_path, *stf, "my-queue/my-queue.stf")
    assert tested.returncode == 0 and "passed" in tested.stdout, tested.stdout + tested.stderr
    words = ["run", "dumbbell", "--flow", "tcp-sack:4", "--queue", "my-queue", "--duration", "10"]
    ran = fairlane_(tmp_path, *words, "--scheme", "my-queue", "--out", "out")
    assert ran.returncode == 0, ran.stderr
    link = json.loads((tmp_path / "out" / "summary.json").read_text())["links"][0]
    assert link["drops"]["my_queue"] > 0
    # Elsewhere, from what the results hold.
    shutil.move(tmp_path / "my-queue", tmp_path / "gone")
    again = fairlane_(tmp_path, *words, "--scheme", "out/files/schemes/my-queue", "--out", "again")
    assert again.returncode == 0, again.stderr
    assert records(tmp_path / "again") == records(tmp_path / "out")
    assert str(tmp_path) not in (tmp_path / "out" / "raw" / "als.json").read_text()
    # `fairlane view` shows the results, and runs nothing that they hold.
    written = json.loads((tmp_path / "out" / "experiment.json").read_text())
    assert written["topology"]["links"][0]["queue"] == "my-queue"
    link = restore.experiment_of(written).topology.links[0]
    assert (link.queue, link.causes, link.priorities, link.marks) == ("my-queue", {"my_queue": "aqm_drops"}, 1, False)
    assert f"{registry.MODULES}my_queue" not in sys.modules
    # Records of before do not describe it.
    registry.SCHEMES.pop("my-queue")
    assert restore.experiment_of({**written, recorded.KEY: {}}).topology.links[0].queue == "droptail"


@needs_module
@pytest.mark.timeout(300)
def test_a_study_with_a_scheme_is_done_again_in_its_folder(tmp_path: Path) -> None:
    skeleton_scheme.scheme("my-queue", tmp_path)
    shutil.copy(probes.ROOT / "docs" / "examples" / "own-queue-study.toml", tmp_path)
    words = ["--seeds", "1", "--duration", "5"]
    done = fairlane_(tmp_path, "sweep", "own-queue-study.toml", "--scheme", "my-queue", *words, "--out", "out")
    assert done.returncode == 0, done.stderr
    shutil.rmtree(tmp_path / "my-queue")
    again = fairlane_(tmp_path / "out", "sweep", "study.toml", "--scheme", "files/schemes/my-queue", *words[2:], "--out", "AGAIN")
    assert again.returncode == 0, again.stderr
    first, second = (folder / "runs.csv" for folder in (tmp_path / "out", tmp_path / "out" / "AGAIN"))
    digests = [[line.rsplit(",", 1)[1] for line in path.read_text().splitlines()] for path in (first, second)]
    assert digests[0] == digests[1] and len(digests[0]) == 3


@needs_module
def test_a_queue_with_state_per_flow_shares_a_link(tmp_path: Path) -> None:
    """docs/own-scheme.md has its figures."""
    how = {"settings": ["cbr.rate_bps=8e6"], "duration_s": 20.0}
    shared = {}
    for queue in ("droptail", "afd"):
        result = fairlane.run("dumbbell", ["tcp-sack:4", "cbr:1"], queue=queue, schemes=str(AFD), **how)
        shared[queue] = result.per_flow["goodput_bps"]
    assert shared["droptail"].drop("cbr").max() < 0.6e6
    assert shared["afd"].drop("cbr").min() > 1.4e6
    # The paper's target of the queue.
    assert 15 < result.bottleneck["mean_queue_packets"] < 25


def test_parameters_of_an_own_scheme_are_checked_at_their_place() -> None:
    user_files.use_scheme(AFD)
    assert Link(("a", "b"), 1e6, queue="afd").aqm == registry.SCHEMES["afd"].parameters()
    text = 'title = "x"\nbottleneck = "s1->s2"\n[[flows]]\nname = "a"\nkind = "rap"\n[topology]\nkind = "dumbbell"\npairs = 1\n'
    text += "[topology.access]\nrate_bps = 1e7\n[topology.bottleneck]\nrate_bps = 1e6\n[topology.bottleneck.afd]\n"
    for line, said in (
        ("target_packets = 0", "x.toml:14: topology.bottleneck.afd.target_packets: from 1 to 100000 packets, got 0 packets"),
        ("targets = 1", "x.toml:14: topology.bottleneck.afd.targets: unknown key"),
        ("alpha = 3", "x.toml:14: topology.bottleneck.afd.alpha: must be less than beta"),
    ):
        with pytest.raises(located_toml.ConfigError) as refused:
            loader.from_document(located_toml.parse(text + line, "x.toml"), "x")
        assert said in str(refused.value)


def edited(folder: Path, file: str, before: str, after: str) -> None:
    text = (folder / file).read_text()
    assert before in text
    (folder / file).write_text(text.replace(before, after))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: (folder / "scheme.py").unlink(), "no scheme: a scheme's folder has a file scheme.py"),
        (lambda folder: (folder / "my-queue.p4").unlink(), "no P4 file my-queue.p4"),
        (lambda folder: edited(folder, "scheme.py", "SCHEME =", "OTHER ="), "describes no scheme. Write SCHEME ="),
        (lambda folder: edited(folder, "scheme.py", '"my-queue"', '"pie"'), "a scheme called 'pie' comes with Fairlane"),
        (lambda folder: edited(folder, "scheme.py", '"departure"', '"exit"'), "no place 'exit'; there are entry, offered"),
        (lambda folder: edited(folder, "scheme.py", '"aqm_drops"', '"share_bps"'), "column 'share_bps' is one of the controller's own"),
        (lambda folder: edited(folder, "scheme.py", '"aqm_drops"', '"class"'), "column 'class': use lower-case letters"),
        (
            lambda folder: edited(
                folder, "scheme.py", "    MyQueue,\n", '    __import__("fairlane.p4src.schemes.pie.scheme", fromlist=["Pie"]).Pie,\n'
            ),
            "Pie is the class of the scheme 'pie': write a class of your own",
        ),
        (lambda folder: edited(folder, "scheme.py", "import annotations", "import annotation"), "scheme.py cannot be read: SyntaxError"),
    ],
)
def test_a_folder_that_is_none_is_refused(tmp_path: Path, spoil, said: str) -> None:
    skeleton_scheme.scheme("my-queue", tmp_path)
    spoil(tmp_path / "my-queue")
    with pytest.raises(Refusal) as refused:
        user_files.use_scheme(tmp_path / "my-queue")
    assert said in str(refused.value) and "my-queue" in str(refused.value)
    assert all(scheme.parameters.scheme is scheme for scheme in registry.SCHEMES.values() if registry.is_own(scheme))


@needs_module
def test_names_that_differ_between_the_two_files_are_told_before_a_run(tmp_path: Path, monkeypatch, capsys) -> None:
    skeleton_scheme.scheme("my-queue", tmp_path)
    edited(tmp_path / "my-queue", "my-queue.p4", ") drops;", ") lost;")
    edited(tmp_path / "my-queue", "my-queue.p4", "drops.count", "lost.count")
    edited(tmp_path / "my-queue", "my-queue.p4", "bit<64> chance,", "bit<64> chances,")
    edited(tmp_path / "my-queue", "my-queue.p4", "likely = chance;", "likely = chances;")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", "fairlane run dumbbell --flow rap:1 --scheme my-queue --queue my-queue --out o".split())
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capsys.readouterr().err
    assert ended.value.code == 2 and "my-queue: the P4 file and scheme.py differ in 2 names" in said
    assert "counter 'AlsEgress.my_queue.drops'" in said and "docs/own-scheme.md" in said


@needs_module
def test_a_parameter_of_the_p4_file_alone_gets_no_value(tmp_path: Path, monkeypatch, capsys) -> None:
    skeleton_scheme.scheme("my-queue", tmp_path)
    edited(tmp_path / "my-queue", "my-queue.p4", "bit<64> chance,", "bit<64> chance, bit<32> longest_us,")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", "fairlane run dumbbell --flow rap:1 --scheme my-queue --queue my-queue --out o".split())
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capsys.readouterr().err
    assert ended.value.code == 2 and "my-queue: the P4 file and scheme.py differ in a name:" in said
    assert "action AlsEgress.my_queue.set_parameters: its parameter 'longest_us' gets no value" in said


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("red", "there is a scheme 'red' already"),
        ("droptail", "there is a scheme 'droptail' already"),
        ("My", "'My' cannot be a scheme: use lower-case letters"),
        ("../x", "'../x' cannot be a scheme"),
        ("there", "exists already, and is not overwritten"),
    ],
)
def test_names_that_cannot_be_are_refused(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(Refusal) as refused:
        skeleton_scheme.scheme(name, tmp_path)
    assert said in str(refused.value) and sorted(tmp_path.iterdir()) == [tmp_path / "there"]


@needs_module
@pytest.mark.parametrize(
    ("name", "said"),
    [("none", "SyntaxError"), ("counter", "TypeError"), ("table", "keyword `table`"), ("connections", "`connections` is already declared")],
)
def test_a_name_whose_words_are_taken_is_refused_and_leaves_nothing(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(Refusal, match=f"'{name}' cannot be a scheme: a name that is made of it has another meaning") as refused:
        skeleton_scheme.scheme(name, tmp_path)
    assert said in str(refused.value) and not list(tmp_path.iterdir()) and name not in registry.SCHEMES


def test_a_folder_of_the_environment_that_is_none_is_told_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(registry.FOLDERS_VARIABLE, str(tmp_path / "nowhere"))
    done = fairlane_(tmp_path, "list")
    assert done.returncode == errors.BAD_INPUT and done.stdout == ""
    assert done.stderr.startswith(f"fairlane: FAIRLANE_SCHEMES: {tmp_path}/nowhere: ") and "Traceback" not in done.stderr


def test_a_folder_that_the_environment_could_not_list_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / f"a{os.pathsep}b"
    skeleton_scheme.scheme("my-queue", folder)
    with pytest.raises(Refusal, match=f"'{os.pathsep}' is in the name"):
        user_files.use_scheme(folder / "my-queue")
    assert not registry.listed()


def test_a_second_folder_with_the_same_scheme_is_refused_unless_it_is_a_copy(tmp_path: Path) -> None:
    one, two, copy = (tmp_path / place / "twice" for place in ("one", "two", "copy"))
    skeleton_scheme.scheme("twice", one.parent)
    for other in (two, copy):
        shutil.copytree(one, other)
    user_files.use_scheme(one)
    for file, before in (("scheme.py", "SCHEME ="), ("twice.p4", "control ")):
        edited(two, file, before, f" {before}" if file == "twice.p4" else f"# mine\n{before}")
        with pytest.raises(
            Refusal, match=rf"two/twice: a scheme called 'twice' comes from {one} already: give one of the two another name"
        ):
            user_files.use_scheme(two)
        shutil.copy(one / file, two / file)
    assert registry.SCHEMES["twice"].folder == one
    user_files.use_scheme(copy)
    edited(copy, "scheme.py", "SCHEME =", "# changed since\nSCHEME =")
    user_files.use_scheme(copy)
    shutil.rmtree(copy)
    user_files.use_scheme(one)
    assert registry.SCHEMES.pop("twice").folder == one


def test_files_that_a_scheme_includes_go_with_it_or_are_refused(tmp_path: Path) -> None:
    skeleton_scheme.scheme("my-queue", tmp_path)
    folder = tmp_path / "my-queue"
    (folder / "parts").mkdir()
    (folder / "parts" / "a.p4h").write_text("const bit<32> A = 1;\n")
    (tmp_path / "b.p4").write_text("const bit<32> B = 1;\n")
    p4 = (folder / "my-queue.p4").read_text()
    (folder / "my-queue.p4").write_text('#include "parts/a.p4h"\n// #include "../b.p4"\n' + p4)
    files = user_files.scheme_files(registry.SCHEMES[user_files.use_scheme(folder)])
    assert set(files) == {"scheme.py", "my-queue.p4", "my-queue.stf", "chosen.p4", "chosen_headers.p4", "parts/a.p4h"}
    (folder / "parts" / "a.p4h").write_text('#include "../../b.p4"\n')
    with pytest.raises(Refusal, match=r"parts/a\.p4h: includes .*/b\.p4, which is outside the scheme's folder") as refused:
        user_files.use_scheme(folder)
    assert str(refused.value).startswith(f"--scheme {folder}: ") and "my-queue" not in registry.SCHEMES


@needs_module
def test_where_the_folders_are_does_not_change_the_program(tmp_path: Path) -> None:
    """One of them is in a folder that is inside the other's."""
    programs = []
    for place in (tmp_path / "one", tmp_path / "another" / "place"):
        for name, parent in (("outer-queue", place), ("inner-queue", place / "deeper")):
            registry.SCHEMES.pop(name, None)
            skeleton_scheme.scheme(name, parent)
            user_files.use_scheme(parent / name)
        text = MIXED.replace('"codel"', '"outer-queue"').replace('"pie"', '"inner-queue"')
        experiment = loader.from_document(located_toml.parse(text, "mixed.toml"), "mixed")
        program, _ = targets.compiled(experiment, targets.compiler(), place)
        programs.append(program.read_text())
    assert programs[0] == programs[1] and '"inner-queue/inner-queue.p4"' in programs[0] and '"outer-queue/outer-queue.p4"' in programs[0]


@needs_module
def test_an_unfinished_run_is_evaluated_without_the_schemes_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its records describe the scheme: `fairlane report` needs no file of the user's, and runs none."""
    before = dict(registry.SCHEMES)
    text = MIXED.replace('"codel"', '"afd", afd = {target_packets = 10}').replace("duration_s = 15", "duration_s = 4")
    user_files.use_scheme(AFD)
    ready = VIRTUAL.ready(loader.from_document(located_toml.parse(text, "mixed.toml"), "mixed"))
    execute.execute(ready, tmp_path / "whole", Console(quiet=True))
    with monkeypatch.context() as broken:
        broken.setattr(metrics, "compute", lambda *_: 1 / 0)
        with pytest.raises(errors.Unfinished):
            execute.execute(ready, tmp_path / "half", Console(quiet=True))
    registry.SCHEMES.clear()
    registry.SCHEMES.update(before)
    execute.finish(tmp_path / "half", Console(quiet=True))
    assert registry.SCHEMES["afd"].parameters.__name__ == "Recorded"
    for name in ("experiment.json", "summary.json"):
        whole, half = (json.loads((tmp_path / folder / name).read_text()) for folder in ("whole", "half"))
        assert half == whole
    assert (tmp_path / "half" / "links.csv").read_bytes() == (tmp_path / "whole" / "links.csv").read_bytes()
    assert "afd" in next(link for link in whole["links"] if link["name"] == "s1->s2")["drops"]


def test_what_a_record_says_of_an_own_scheme_is_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """RED as if it were a user's own: it has an average, and counters with causes."""
    link = Link(("a", "b"), 1e6, queue="red", queue_packets=60)
    monkeypatch.setattr(registry, "is_own", lambda scheme: False)
    said = json.loads(json.dumps(recorded.described([(link.aqm, link.queue_packets), (None, 9)])))
    values = vars(link.aqm)
    registry.SCHEMES.pop("red")
    recorded.know({**said, "settings": {"control": {}}, "topology": {"links": [{"red": None}, {"red": values}]}})
    read = registry.SCHEMES["red"].parameters(**values)
    assert read.average(60) == link.average and read.average(61) is None
    assert (read.scheme.counters, read.marks, read.priorities) == (link.aqm.scheme.counters, False, 1)
    assert recorded.described([(link.aqm, 60)]) == recorded.described([(read, 60)])


@needs_module
def test_the_change_of_the_page_is_one_that_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/own-scheme.md, "Change it": what the page shows is what this puts into the files."""
    page = (probes.ROOT / "docs" / "own-scheme.md").read_text()
    skeleton_scheme.scheme("my-queue", tmp_path)
    folder = tmp_path / "my-queue"
    changes = (
        ("my-queue.p4", "if ((bit<64>)draw < likely) {", "if ((bit<64>)draw < likely || standard_metadata.deq_timedelta > longest) {"),
        ("my-queue.p4", "bool ecn = false;", "bool ecn = false;\n    bit<32> longest = 0;  // microseconds"),
        ("my-queue.p4", "bit<64> chance, bit<1> marking", "bit<64> chance, bit<32> longest_us, bit<1> marking"),
        ("my-queue.p4", "likely = chance;", "likely = chance;\n        longest = longest_us;"),
        ("my-queue.stf", "chance:0x100000000, ", "chance:0x100000000, longest_us:1000000, "),
        ("scheme.py", "    ecn: bool = False", '    longest_s: float = parameter(0.05, 0.001, 10, "s")\n    ecn: bool = False'),
        ("scheme.py", "2**32), ", '2**32), "longest_us": microseconds(self.longest_s), '),
        ("scheme.py", "Scheme, parameter", "Scheme, microseconds, parameter"),
    )
    for file, before, after in changes:
        edited(folder, file, before, after)
    shown = (
        "likely || standard_metadata.deq_timedelta > longest) {",
        "bit<32> longest = 0;  // microseconds",
        "bit<64> chance, bit<32> longest_us, bit<1> marking",
        "longest = longest_us;",
        "`longest_us:1000000`",
        'longest_s: float = parameter(0.05, 0.001, 10, "s")',
        '"longest_us": microseconds(self.longest_s),',
        "`microseconds` comes from `fairlane.schemes.base`",
    )
    assert all(text in page for text in shown)
    monkeypatch.chdir(tmp_path)
    p4src = probes.PACKAGE / "p4src"
    options = ["-D", "CHOSEN", "-I", "my-queue", "-I", str(p4src), str(p4src / "als.p4"), "my-queue/my-queue.stf"]
    tested = fairlane_(tmp_path, "stf", *options)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    registry.SCHEMES.pop("my-queue")
    result = fairlane.run("dumbbell", ["tcp-sack:4"], queue="my-queue", schemes=[folder], duration_s=5.0)
    assert result.bottleneck["drops"]["my_queue"] > 0

"""`fairlane fmt`: its options and exit codes, and the programs of this repository before and after."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from fairlane import probes
from tools import formatting

ROOT = probes.ROOT
FMT = probes.program("fairlane-fmt")
pytestmark = pytest.mark.skipif(FMT is None, reason="fairlane-fmt is not built")


def fmt(*arguments: str | Path, text: str | None = None) -> subprocess.CompletedProcess[str]:
    assert FMT is not None
    return subprocess.run([str(FMT), *map(str, arguments)], input=text, capture_output=True, text=True, timeout=60, check=False)


def test_it_writes_checks_and_shows_what_changes(tmp_path: Path) -> None:
    program = tmp_path / "x.p4"
    program.write_text("const bit<8>  X=1 ; // one\n")
    assert fmt("--check", tmp_path).stdout == f"{program}\n"
    shown = fmt("--diff", program)
    assert (shown.returncode, shown.stdout.splitlines()[-2:]) == (1, ["-const bit<8>  X=1 ; // one", "+const bit<8> X = 1; // one"])
    assert program.read_text() == "const bit<8>  X=1 ; // one\n"
    assert fmt(program).returncode == 0
    assert program.read_text() == "const bit<8> X = 1; // one\n"
    again = fmt("--check", "--diff", program)
    assert (again.returncode, again.stdout) == (0, "")


def test_standard_input_goes_to_standard_output() -> None:
    done = fmt("-", text="error{A,\nB}")
    assert (done.returncode, done.stdout) == (0, "error {\n    A,\n    B\n}\n")


def test_what_it_leaves_has_a_place_a_reason_and_a_status_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "latin.p4").write_bytes(b"// one\n// \xe9\n")
    (tmp_path / "open.p4").write_text("bit<8>  x; /* never\n")
    (tmp_path / "plain.p4").write_text("error{A}\n")
    done = fmt(tmp_path)
    assert done.returncode == 7
    assert "latin.p4:2: left as it is: the text is not UTF-8" in done.stderr
    assert "open.p4:1:12: left as it is: the comment does not end" in done.stderr
    assert "1 of 3 files formatted, 2 left as they are" in done.stderr
    assert (tmp_path / "plain.p4").read_text() == "error { A }\n"
    assert (tmp_path / "open.p4").read_text() == "bit<8>  x; /* never\n"


def test_wrong_words_are_refused(tmp_path: Path) -> None:
    missing = fmt(tmp_path / "no.p4")
    assert missing.returncode == 2
    assert "no.p4: cannot read it" in missing.stderr
    assert fmt("--width", "7", "-", text="").returncode == 2


@pytest.mark.parametrize("folder", ["p4src", "labs", "tests/p4", "docs/examples"])
def test_our_programs_compile_to_the_same(folder: str, tmp_path: Path) -> None:
    compiler = probes.program("fairlane-compile")
    assert FMT is not None
    if compiler is None:
        pytest.skip("fairlane-compile is not built")
    shutil.copytree(
        ROOT / folder,
        tmp_path / "copy",
        ignore=lambda path, names: [name for name in names if (Path(path) / name).is_file() and not name.endswith(".p4")],
    )
    found = formatting.compare(tmp_path / "copy", [f"-I{ROOT / 'p4src'}"], compiler, FMT)
    assert (found.left, found.differences) == ([], [])
    if folder in ("p4src", "labs"):
        assert found.compiled

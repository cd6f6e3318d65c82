"""Every lab: the skeleton scores nothing, the solution all, each typical mistake less, with its own hint."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from fairlane import probes
from fairlane.labs.grading import Answer, Check, Missed, check, labs, runner
from fairlane.labs.grading.answer import close, number

LABS = [labs.load(n) for n in labs.numbers()]
SHORT = 3
"""So many typical mistakes of each lab in `make test`; `make test-long` has the others."""
MISTAKES = [
    pytest.param(lab, mistake, id=f"{lab.number}-{mistake.name}", marks=[pytest.mark.long] if number >= SHORT else [])
    for lab in LABS
    for number, mistake in enumerate(labs.mistakes(lab))
]


def graded(lab: labs.Lab, folder: Path) -> runner.Grade:
    return labs.graded(lab, folder)


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.number)
def test_the_skeleton_scores_nothing(lab: labs.Lab, tmp_path: Path) -> None:
    grade = graded(lab, labs.skeleton(lab, tmp_path))
    assert grade.points == 0
    assert all(s.hint for s in grade.scores), runner.text(grade)


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.number)
def test_the_solution_scores_all(lab: labs.Lab, tmp_path: Path) -> None:
    grade = graded(lab, labs.solution(lab, tmp_path))
    assert grade.points == grade.of, runner.text(grade)
    assert not any(s.printed for s in grade.scores), "what is shown as printed by the answer is printed by it alone"


@pytest.mark.parametrize(("lab", "mistake"), MISTAKES)
def test_each_mistake_costs_points_and_has_its_hint(lab: labs.Lab, mistake: labs.Wrong, tmp_path: Path) -> None:
    grade = graded(lab, labs.wrong(lab, mistake, tmp_path))
    assert grade.points < grade.of
    assert any(mistake.hint in score.hint for score in grade.scores), runner.text(grade)


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.number)
def test_mistakes_differ_and_are_enough(lab: labs.Lab) -> None:
    assert len(labs.mistakes(lab)) >= 5
    assert len({m.hint for m in labs.mistakes(lab)}) >= 5


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.number)
def test_a_lab_is_whole(lab: labs.Lab, tmp_path: Path) -> None:
    page = (lab.folder / "README.md").read_text()
    assert page.startswith(f"# Lab {int(lab.number)}: {lab.settings.title}")
    for part in ("Aim", "Theory", "Predict", "Run", "Plot", "Explain"):
        assert f"## {part}" in page, part
    assert len(page.splitlines()) <= 80, "one page"
    for name in lab.settings.files:
        assert "TODO" in (labs.skeleton(lab, tmp_path) / name).read_text()
        assert "TODO" not in (labs.solution(lab, tmp_path) / name).read_text()


PRIMER = Path(probes.ROOT, "labs", "01", "primer.md")


def _played(folder: Path, find: str = "", replace: str = "") -> str:
    program = folder / "primer.p4"
    text = PRIMER.with_suffix(".p4").read_text()
    assert find in text
    program.write_text(text.replace(find, replace, 1) if find else text)
    done = subprocess.run(
        [str(probes.program("fairlane-stf")), "-v", str(program), str(PRIMER.with_suffix(".stf"))],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_the_primer_says_what_its_program_does(tmp_path: Path) -> None:
    """Each piece of P4 on the page is in the program, and what the page says of changes comes true."""
    page, program = PRIMER.read_text(), " ".join(PRIMER.with_suffix(".p4").read_text().split())
    pieces = re.findall(r"```p4\n(.*?)```", page, re.DOTALL)
    assert len(pieces) == 5 and all(" ".join(piece.split()) in program for piece in pieces[:4])
    assert "passed (4 packets in, 1 out)" in _played(tmp_path)
    assert "FAILED (4 packets in, 2 out)" in _played(tmp_path, "MOST_HOPS = 8", "MOST_HOPS = 9")
    assert "label 7 has 1 hops" in _played(tmp_path, "hops + 1;", f"hops + 1; {pieces[4]}")
    assert "there is no table `labels`" in _played(tmp_path, "labels.apply();", "forward(2);")
    assert "`+` is not defined on `bit<8>` and `bit<9>`" in _played(tmp_path, "hops + 1;", "hops + standard_metadata.ingress_port;")
    assert "port 2: expected 1 packets, received 0" in _played(tmp_path, "standard_metadata.egress_spec = port;", "")


def test_the_course_has_every_lab_once_and_its_minutes() -> None:
    rows = re.findall(
        r"^\| (\d+) \|.*\[(\d\d)\]\(\d\d/README.md\), (\d+) min \| (.*) \|$", (PRIMER.parents[1] / "course.md").read_text(), re.MULTILINE
    )
    assert [(int(week), number, int(minutes)) for week, number, minutes, _ in rows] == [
        (n, lab.number, lab.settings.minutes) for n, lab in enumerate(LABS, 1)
    ]
    for (*_, handed_in), lab in zip(rows, LABS):
        assert all(f"`{name}`" in handed_in for name in lab.settings.files)


def test_make_check_writes_points(tmp_path: Path) -> None:
    target = tmp_path / "points.json"
    command = [
        str(probes.VENV_BIN / "python"),
        "-m",
        "fairlane.labs.grading",
        "04",
        "--answer",
        "teaching/04/solution",
        "--json",
        str(target),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=probes.ROOT)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "lab 04: 10 of 10 points")
    told = json.loads(target.read_text())
    assert (told["lab"], told["points"], told["of"], len(told["checks"])) == ("04", 10, 10, 6)


# ------------------------------------------------------------------------------------------- broken code of a student


def one(tmp_path: Path, text: str, limit_s: float = 30) -> runner.Score:
    """Grade a file `own.py` by a check that calls its function f, and another check after it."""
    (tmp_path / "own.py").write_text(text)

    @check(2, "f", limit_s)
    def calls(answer: Answer) -> None:
        close(answer.function("own.py", "f")(3), 9.0, "f(3)", "is it the square?")

    @check(1, "goes on")
    def goes_on(answer: Answer) -> None:
        answer.path("own.py")

    first, second = runner.grade("00", [calls, goes_on], tmp_path).scores
    assert second.points == 1, "the grader goes on"
    return first


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("def f(x):\n    return x * x\n", "", ""),
        ("def f(x):\n    return x + x\n", "f(3) gives 6, which is not it", "is it the square?"),
        (
            "def f(x):\n    y = 0\n    return x / y\n",
            "own.py:3: in f: return x / y\nZeroDivisionError: division by zero",
            "the line is yours",
        ),
        ("def f(x)\n    return x\n", "own.py:1: expected ':': def f(x)", "cannot read"),
        ("def f(x):\n    return float('nan')\n", "f(3) gives nan", "divided by zero"),
        ("def f(x):\n    x * x\n", "f(3) gives None, which is no number but None", "end with 'return'"),
        ("def f(x):\n    return '9'\n", "f(3) gives '9', which is no number but a str", "end with 'return'"),
        ("def f(x):\n    return f(x)\n", "own.py:2: in f", "when does it stop"),
        ("def g(x):\n    return x\n", "own.py: there is no function f", "keep its name"),
        ("import sys\n\ndef f(x):\n    sys.exit(0)\n", "own.py:4: in f: sys.exit(0)\nSystemExit: 0", "the line is yours"),
        ("import os\n\ndef f(x):\n    os._exit(0)\n", "ended the program", "sys.exit and the like"),
        ("def f(x):\n    print('x' * 10 ** 6)\n    return 9\n", "", ""),
    ],
)
def test_broken_code_is_told_with_its_line(tmp_path: Path, text: str, message: str, hint: str) -> None:
    score = one(tmp_path, text)
    assert message in score.message
    assert hint in score.hint
    assert score.points == (0 if message else 2)


def test_a_loop_without_end_is_told_with_its_line(tmp_path: Path) -> None:
    score = one(tmp_path, "def f(x):\n    while x > 0:\n        x = x + 1\n    return x\n", limit_s=1)
    assert score.points == 0
    assert score.message.startswith(("own.py:2: still not done", "own.py:3: still not done"))
    assert "loop" in score.hint


PRINTING = """
import os, sys
def f(x):
    print("x is", x)
    print("to stderr", file=sys.stderr)
    sys.stdout.write("no newline, ")
    sys.stdout.flush()
    {end}
"""


@pytest.mark.parametrize("end", ["return 9", "return 8", "os._exit(3)", "raise ValueError"])
def test_prints_are_shown_however_the_code_ends(tmp_path: Path, end: str) -> None:
    assert one(tmp_path, PRINTING.replace("{end}", end)).printed == "x is 3\nto stderr\nno newline,"


def test_prints_of_a_loop_without_end_are_shown_without_their_middle(tmp_path: Path) -> None:
    printed = one(tmp_path, "def f(x):\n    while True:\n        print(x)\n        x += 1\n", limit_s=0.3).printed
    assert printed.startswith("3\n4\n5\n") and "bytes left out" in printed and len(printed) < 2100


def test_a_message_and_a_print_are_told_once(tmp_path: Path) -> None:
    def same(answer: Answer) -> None:
        print("from the file")
        raise Missed("does not compile", "look at the line")

    told = runner.text(runner.grade("00", [Check(1, "first", same), Check(1, "second", same), Check(1, "third", same)], tmp_path))
    assert told.splitlines() == [
        "[ ] 0/1  first",
        "         does not compile",
        "         hint: look at the line",
        "         your program prints:",
        "           from the file",
        "[ ] 0/1  second",
        "         the same as for 'first'",
        "         your program prints the same as for 'first'",
        "[ ] 0/1  third",
        "         the same as for 'first'",
        "         your program prints the same as for 'first'",
        "lab 00: 0 of 3 points",
    ]


def test_a_syntax_error_in_p4_is_told_once(tmp_path: Path) -> None:
    lab = labs.load("04")
    labs.solution(lab, tmp_path)
    program = tmp_path / "fair_rate.p4"
    program.write_text(program.read_text().replace("= fair_rate_bps;", "= fair_rate_bps", 1))
    told = runner.text(graded(lab, tmp_path))
    assert told.count("expected `;`") == 1 and told.count("the same as for") == len(lab.checks) - 1


def test_after_a_loop_without_end_the_other_checks_wait_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_AFTER_A_LOOP_S", 0.2)
    (tmp_path / "own.py").write_text("def f(x):\n    while True:\n        x += 1\n")

    def calls(answer: Answer) -> None:
        answer.function("own.py", "f")(3)

    first, second = runner.grade("00", [Check(1, "first", calls, 0.5), Check(1, "second", calls, 30)], tmp_path).scores
    assert "still not done after 0.5 s" in first.message and "still not done after 0.2 s" in second.message


def test_points_for_part_of_it(tmp_path: Path) -> None:
    def half(answer: Answer) -> None:
        raise Missed("half of it", "go on", points=2)

    assert runner.grade("00", [Check(3, "half", half)], tmp_path).points == 2


def test_p4_that_does_not_compile_names_its_line(tmp_path: Path) -> None:
    lab = labs.load("04")
    labs.wrong(lab, next(m for m in labs.mistakes(lab) if m.name == "does not compile"), tmp_path)
    score = graded(lab, tmp_path).scores[0]
    assert "fair_rate.p4:" in score.message and "desired_rate" in score.message


@pytest.mark.parametrize("value", [True, None, "1", [1.0], float("inf")])
def test_what_is_no_number(value: object) -> None:
    with pytest.raises(Missed):
        number(value, "f(1)")

"""What the grader says of a student's algorithm file, called by hand and within a virtual run: file, line, and then it goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlane import api
from fairlane.labs.grading import Answer, algorithms, check, runner

FILE = """\
from dataclasses import dataclass

from fairlane.hosts.algorithms.base import AckDetail, Interests, Kind, Receiver, Sender, SetRate, SetTimer


@dataclass(frozen=True)
class Parameters:
    max_rate_bps: float = 1e6


class Own(Sender):
    interests = Interests(acks=AckDetail.LOSSES)

    def __init__(self, parameters):
        self.calls = 0

    def on_start(self, now_s, rng):
        return (SetRate(1e5), SetTimer("x", now_s + 1))

    def on_timer(self, now_s, timer, rng):
        self.calls += 1
        if self.calls == 3:
            BROKEN
        return (SetTimer("x", now_s + 1),)


class Other(Receiver):
    def __init__(self, parameters):
        pass


KINDS = (Kind("own", "of a test", Parameters, Own, Other),)
"""
LINE = 1 + FILE[: FILE.index("BROKEN")].count("\n")


def graded(folder: Path, text: str, limit_s: float = 30) -> runner.Score:
    """Of a virtual run with the file; the grader goes on to another check."""
    (folder / "own.py").write_text(text)

    @check(2, "runs", limit_s)
    def runs(answer: Answer) -> None:
        algorithms.use(answer, "own.py", "own")
        api.run("dumbbell", ["own"], bottleneck="1mbit", rtt="20ms", duration_s=5)

    @check(1, "goes on")
    def goes_on(answer: Answer) -> None:
        answer.path("own.py")

    first, second = runner.grade("00", [runs, goes_on], folder).scores
    assert second.points == 1, "the grader goes on"
    return first


def broken(statement: str) -> str:
    return FILE.replace("BROKEN", statement)


def test_a_file_without_mistakes_runs(tmp_path: Path) -> None:
    score = graded(tmp_path, broken("pass"))
    assert (score.points, score.message) == (2, "")


@pytest.mark.parametrize(
    ("statement", "message", "hint"),
    [
        ("1 / 0", "in on_timer: 1 / 0\nZeroDivisionError", "the line is yours"),
        ("self.rate", "in on_timer: self.rate\nAttributeError", "the line is yours"),
        ("return None", "on_timer returns None, which is no tuple of actions", "() for nothing"),
        ("return SetRate(1e5)", "on_timer returns SetRate(rate_bps=100000.0, burst_packets=1), which is no tuple", "has a comma"),
        ("return (1e5,)", "on_timer returns 100000.0 among its actions", "may return SetRate"),
        ("return (SetRate(float('nan')),)", "on_timer returns SetRate(rate_bps=nan)", "divided by zero"),
        ("return (SetRate(float('inf')),)", "on_timer returns SetRate(rate_bps=inf)", "divided by zero"),
        ("return (SetRate('fast'),)", "on_timer returns SetRate(rate_bps='fast'): that is no number", "what types"),
        ("return (SetRate(-5.0),)", "on_timer returns SetRate(rate_bps=-5.0): above 0", "clamp"),
        ("return (SetTimer('x', float('nan')),)", "on_timer returns SetTimer(at_s=nan)", "divided by zero"),
    ],
)
def test_a_handler_within_a_run_is_told_with_its_line(tmp_path: Path, statement: str, message: str, hint: str) -> None:
    score = graded(tmp_path, broken(statement))
    assert score.points == 0
    assert score.message.startswith(f"own.py:{LINE}: {message}")
    assert hint in score.hint


def test_a_loop_without_end_within_a_run(tmp_path: Path) -> None:
    score = graded(tmp_path, broken("\n            while True:\n                self.calls += 1"), limit_s=2)
    assert score.message.startswith((f"own.py:{LINE + 1}: still not done", f"own.py:{LINE + 2}: still not done"))


def test_a_timer_that_stops_time(tmp_path: Path) -> None:
    score = graded(tmp_path, FILE.replace("BROKEN", "pass").replace("now_s + 1),)", "0.5),)"))
    assert score.message.startswith(f"own.py:{LINE + 1}: on_timer: called") and "time does not go on" in score.message
    assert "at once" in score.hint


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('(SetRate(1e5), SetTimer("x", now_s + 1))', '(SetTimer("x", now_s + 1),)', "own.py:18: on_start returns (SetTimer(name='x'"),
        ("self.calls = 0", "self.calls = zero", "own.py:15: in __init__: self.calls = zero\nNameError"),
        ('"own"', '"mine"', "own.py: KINDS lists 'mine', not 'own'"),
        ("KINDS =", "KIND =", "own.py: KINDS is None"),
        ("Own, Other)", "Other, Own)", "which is no Sender"),
        ("class Own(Sender):", "class Own(Sender)", "own.py:11: expected ':': class Own(Sender)"),
    ],
)
def test_a_file_that_cannot_run(tmp_path: Path, before: str, after: str, message: str) -> None:
    text = broken("pass")
    assert before in text
    score = graded(tmp_path, text.replace(before, after))
    assert score.points == 0 and message in score.message and score.hint


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return x * 2", ""),
        ("y = x - 3\n    return float('nan') if y == 0 else y", "own.py:3: f(3) gives nan"),
        ("if x > 5:\n        return 1.0", "own.py:2: f(3) gives None, which is no number but None"),
        ("return [x]", "own.py:2: f(3) gives [3], which is no number but a list"),
    ],
)
def test_a_function_is_told_with_its_line(tmp_path: Path, body: str, message: str) -> None:
    (tmp_path / "own.py").write_text(f"def f(x):\n    {body}\n")
    score = runner.grade("00", [check(1, "f")(lambda answer: algorithms.function(answer, "own.py", "f")(3) and None)], tmp_path).scores[0]
    assert score.message == message


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return [x, 2 * x]", ""),
        ("return (x, 1)", ""),
        ("return x", "own.py:2: f(3) gives 3, which is no list of 2 numbers"),
        ("return [x]", "own.py:2: f(3) gives [3], which is no list of 2 numbers"),
        ("return [x, None]", "own.py:2: f(3), number 2, gives None, which is no number but None"),
        ("y = float('inf')\n    return [y, x]", "own.py:3: f(3), number 1, gives inf"),
    ],
)
def test_a_list_is_told_with_its_line(tmp_path: Path, body: str, message: str) -> None:
    (tmp_path / "own.py").write_text(f"def f(x):\n    {body}\n")
    score = runner.grade("00", [check(1, "f")(lambda answer: algorithms.numbers(answer, "own.py", "f", 2)(3) and None)], tmp_path).scores[0]
    assert score.message == message


def test_a_check_that_needs_another_is_not_tried_without_it(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("def f():\n    while True:\n        pass\n")

    @check(1, "runs", 1)
    def runs(answer: Answer) -> None:
        answer.function("own.py", "f")()

    @check(1, "there")
    def there(answer: Answer) -> None:
        answer.path("own.py")

    @check(1, "after one that holds")
    def after_there(answer: Answer) -> None:
        answer.needs(there)

    @check(1, "after one that does not")
    def after_runs(answer: Answer) -> None:
        answer.needs(there, runs)
        answer.function("own.py", "f")()

    scores = runner.grade("00", [runs, there, after_there, after_runs], tmp_path).scores
    assert [s.points for s in scores] == [0, 1, 1, 0]
    assert scores[3].message == "not tried yet: 'runs' does not hold" and scores[3].hint


WINDOW = """\
from dataclasses import dataclass

from fairlane.hosts.algorithms.base import AckDetail, Interests, Kind, Receiver, Sender, SetLossTimeout, SetWindow


@dataclass(frozen=True)
class Parameters:
    max_rate_bps: float = 10e6


class Window(Sender):
    interests = Interests(acks=AckDetail.EVERY)

    def __init__(self, parameters):
        self.window, self.answered = 2.0, -1

    def on_start(self, now_s, rng):
        return (SetWindow(self.window), SetLossTimeout(1.0, 4.0))

    def on_ack(self, now_s, ack, rng):
        self.window = min(self.window + 1 / self.window, 1000.0)
        return (SetWindow(self.window),)

    def on_loss(self, now_s, loss, rng):
        if loss.last_sequence <= self.answered:
            return ()
        self.answered = loss.path.last_sent_sequence
        self.window = max(1.0, self.window / 2)
        return (SetWindow(self.window),)


class Acks(Receiver):
    def __init__(self, parameters):
        pass


KINDS = (Kind("my-scheme", "a window", Parameters, Window, Acks),)
"""


@pytest.mark.long
def test_lab_10_takes_a_scheme_of_acknowledgements_and_a_window(tmp_path: Path) -> None:
    """As its page says: judged by the runs, where no reports can be made up."""
    from fairlane.labs.grading import labs

    lab = labs.load("10")
    (tmp_path / "my_scheme.py").write_text(WINDOW)
    grade = labs.graded(lab, tmp_path)
    assert [score.points for score in grade.scores[:4]] == [1, 1, 1, 0], runner.text(grade)
    assert grade.points >= 5, runner.text(grade)
    assert "measures" in grade.facts

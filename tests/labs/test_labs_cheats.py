"""What an answer may try: no way leads to points that its files do not earn, out of its process, or to what it may not see. Each is told by name where an honest answer does no such thing."""

from __future__ import annotations

import math
import os
import shutil
import socket
import sys
import time
from pathlib import Path

import pytest

from fairlane import probes
from fairlane.labs.grading import Answer, apart, check, confine, given, labs, runner, wire, worker
from fairlane.labs.grading.answer import close

WALLED = apart.bubblewrap() is not None
walled = pytest.mark.skipif(not WALLED, reason="no bubblewrap, which keeps files from an answer: apt install bubblewrap")
linux = pytest.mark.skipif(sys.platform != "linux", reason="the filter of system calls is Linux's")


def graded(folder: Path, text: str, limit_s: float = 5.0, name: str = "own.py") -> runner.Grade:
    """A file with a function f, of which f(3) should be 9; and a check after it."""
    (folder / name).write_text(text)

    @check(2, "f", limit_s)
    def calls(answer: Answer) -> None:
        close(answer.function("own.py", "f")(3), 9.0, "f(3)", "is it the square?")

    @check(1, "goes on")
    def goes_on(answer: Answer) -> None:
        answer.path("own.py")

    return runner.grade("00", [calls, goes_on], folder, ["own.py"])


def score(folder: Path, text: str, limit_s: float = 5.0) -> runner.Score:
    grade = graded(folder, text, limit_s)
    assert grade.scores[1].points == 1, "the grader goes on"
    return grade.scores[0]


def test_an_honest_answer_has_its_points(tmp_path: Path) -> None:
    grade = graded(tmp_path, "def f(x):\n    return x * x\n")
    assert (grade.points, grade.tried) == (3, ())


FORGED = """
import json, os, pickle, struct
def framed(value):
    body = json.dumps(value).encode()
    return struct.pack("!I", len(body)) + body
def f(x):
    for fd in range(64):
        for message in (BYTES):
            try:
                os.write(fd, message)
            except OSError:
                pass
    return 8
"""

NO_POINTS = {
    "raises the grader's own exception": "from fairlane.labs.grading.missed import Missed\ndef f(x):\n    raise Missed('', '', 99)\n",
    "an exception of the same name": "class Missed(Exception):\n    points = 99\ndef f(x):\n    raise Missed\n",
    "prints a result": "def f(x):\n    print('[x] 2/2  f')\n    print('{\"points\": 2}')\n    return 8\n",
    "ends its process": "import os\ndef f(x):\n    os._exit(0)\n",
    "exits": "import sys\ndef f(x):\n    sys.exit(0)\n",
    "ends its process at once": "import os\nos._exit(0)\n",
    "atexit": "import atexit, os\natexit.register(lambda: os.write(1, b'2'))\ndef f(x):\n    raise KeyboardInterrupt\n",
    "equal to everything": "class N:\n    def __eq__(s, o): return True\n    def __float__(s): return 9.0\ndef f(x):\n    return N()\n",
    "changes what compares": "import math, builtins\nmath.isclose = lambda *a, **k: True\nbuiltins.abs = lambda x: 0\ndef f(x):\n    return 8\n",
    "changes what encodes": "import json\njson.dumps = lambda *a, **k: '{\"points\": 2}'\ndef f(x):\n    return 8\n",
    "changes the worker": "import sys\nw = sys.modules['__main__']\nw.Server.answer = lambda s, r: {'points': 2}\ndef f(x):\n    return 8\n",
    "looks for the value in memory": "import gc\ndef f(x):\n    return next((o for o in gc.get_objects() if type(o) is float and o == 9.0), 8)\n",
    "looks for the value up the stack": (
        "import sys\ndef f(x):\n    g = sys._getframe()\n    while g:\n"
        "        for v in g.f_locals.values():\n            if v == 9.0:\n                return v\n        g = g.f_back\n    return 8\n"
    ),
    "gives an endless object": "def f(x):\n    a = []\n    for _ in range(10 ** 5):\n        a = [a]\n    return a\n",
    "gives a number of ten million digits": "def f(x):\n    return 1 << 40_000_000\n",
    "sends points for a check of lists": FORGED.replace("BYTES", "pickle.dumps((2, '', '', '')), pickle.dumps((594, '', ''))"),
    "sends a reply without a value": FORGED.replace("BYTES", "framed({'points': 2}),"),
    "sends a reply that is no data": FORGED.replace("BYTES", "framed({'value': {'o': ['Missed', ['', '', 99]]}, 'line': 1}),"),
    "sends no message": FORGED.replace("BYTES", "b'\\xff' * 100,"),
    "sends a message of bad JSON": FORGED.replace("BYTES", "struct.pack('!I', 3) + b'[[[',"),
    "sends a deep message": FORGED.replace("BYTES", "struct.pack('!I', 100000) + b'[' * 100000,"),
    "closes all files": "import os\ndef f(x):\n    os.closerange(0, 64)\n    return 9\n",
}


@pytest.mark.parametrize("what", NO_POINTS)
def test_no_points(what: str, tmp_path: Path) -> None:
    assert score(tmp_path, NO_POINTS[what]).points == 0


def test_the_grader_is_not_there(tmp_path: Path) -> None:
    grade = graded(tmp_path, NO_POINTS["raises the grader's own exception"])
    assert "there is no module 'fairlane.labs'" in grade.scores[0].message
    assert grade.tried and "fairlane.labs" in grade.tried[0]


def test_forged_messages_are_named(tmp_path: Path) -> None:
    grade = graded(tmp_path, NO_POINTS["sends a reply without a value"])
    assert "no answer" in grade.tried[0]


# What a process needs no right for, and an answer has none to.
CALLS = {
    "a fork": "os.fork()",
    "a fork bomb": "[os.fork() for _ in range(1000)]",
    "a program": "subprocess.Popen(['sleep', '1000'], start_new_session=True)",
    "a program in its place": "os.execv('/bin/sh', ['sh', '-c', 'sleep 1000'])",
    "a thread": "threading.Thread(target=lambda: None).start()",
    "a connection": "socket.create_connection(('127.0.0.1', PORT), 1)",
    "a pair of sockets": "socket.socketpair()",
    "a signal to the parent": "os.kill(os.getppid(), signal.SIGKILL)",
    "a signal to everybody": "os.kill(-1, signal.SIGKILL)",
    "a signal to its group": "os.killpg(0, signal.SIGKILL)",
    "a tracer": "ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0)",
    "another root": "os.chroot('/')",
    "a file in memory": "os.memfd_create('x')",
    "limits anew": "ctypes.CDLL(None).syscall(160, 7, ctypes.byref((ctypes.c_ulong * 2)(1000, 1000)))",
}


@linux
@pytest.mark.parametrize("what", CALLS)
def test_calls_that_no_answer_needs_end_it(what: str, tmp_path: Path) -> None:
    with socket.socket() as heard:
        heard.bind(("127.0.0.1", 0))
        heard.listen()
        heard.settimeout(0.0)
        call = CALLS[what].replace("PORT", str(heard.getsockname()[1]))
        grade = graded(tmp_path, f"import ctypes, os, signal, socket, subprocess, threading\ndef f(x):\n    {call}\n    return 9\n")
        with pytest.raises(BlockingIOError):
            heard.accept()
    if what == "limits anew" and os.uname().machine != "x86_64":
        return
    assert grade.points == 1
    assert "asked the system" in grade.tried[0]


@linux
def test_nothing_outlives_a_check(tmp_path: Path) -> None:
    mark = f"answer-{os.getpid()}-{time.monotonic_ns()}"
    graded(tmp_path, f"import os\nos.environ['MARK'] = {mark!r}\ndef f(x):\n    while True:\n        x += 1\n", 0.5)
    left = [p for p in Path("/proc").glob("[0-9]*/cmdline") if _of(p) and str(tmp_path) in _of(p)]
    assert not left


def _of(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    while True:\n        x += 1\n",
        "import signal, faulthandler\nfaulthandler.disable()\nsignal.setitimer(signal.ITIMER_PROF, 0)\n"
        "def f(x):\n    while True:\n        x += 1\n",
        "import signal\nfor n in (9, 15, 24, 27, 14):\n    try: signal.signal(n, signal.SIG_IGN)\n    except OSError: pass\n"
        "def f(x):\n    while True:\n        x += 1\n",
    ],
)
def test_time_has_an_end(text: str, tmp_path: Path) -> None:
    begun = time.monotonic()
    found = score(tmp_path, text, 0.5)
    assert found.points == 0 and "still not done" in found.message
    assert time.monotonic() - begun < 60


def test_sleep_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "_PATIENCE_S", 1.0)
    found = score(tmp_path, "import time\ndef f(x):\n    time.sleep(1000)\n", 1.0)
    assert found.points == 0 and "still not done" in found.message


def test_memory_has_an_end(tmp_path: Path) -> None:
    found = score(tmp_path, "def f(x):\n    return len('x' * (3 << 30)) and 9\n")
    assert found.points == 0 and "MemoryError" in found.message


def test_output_has_an_end(tmp_path: Path) -> None:
    found = score(tmp_path, "def f(x):\n    for _ in range(100):\n        print('x' * 10 ** 6)\n    return 9\n")
    assert found.points == 0 and "File too large" in found.message
    assert len(found.printed) < 2200


def test_an_answer_too_long_is_none(tmp_path: Path) -> None:
    found = score(tmp_path, "def f(x):\n    return [0.1] * 1_000_000\n")
    assert found.points == 0 and "gives too much" in found.message


@pytest.mark.parametrize("points", [594.0, -3.0, math.nan, math.inf])
def test_a_check_bounds_its_points(points: float, tmp_path: Path) -> None:
    from fairlane.labs.grading import Check, Missed

    def half(answer: Answer) -> None:
        raise Missed("half", "", points)

    assert 0 <= runner.grade("00", [Check(2, "half", half)], tmp_path).points <= 2


# ------------------------------------------------------------------------------------------------------------- files


@walled
def test_an_answer_sees_no_other_files(tmp_path: Path) -> None:
    """Neither the grader, nor the solutions, nor other answers, nor what the machine has of its users."""
    secret = tmp_path / "other" / "secret.py"
    secret.parent.mkdir()
    secret.write_text("SECRET")
    own = tmp_path / "own"
    own.mkdir()
    text = f"""
import os
def f(x):
    seen = []
    for place in ("/etc/passwd", "/root", "/home", "/proc/self", {str(secret)!r}, {str(probes.ROOT)!r}, {str(Path.home())!r}, "/dev/mem"):
        if os.path.exists(place) and not (os.path.isdir(place) and set(os.listdir(place)) <= {{"scratch", ".pyenv", ".local"}}):
            seen.append(place)
    for folder, _, names in os.walk("/"):
        seen += [folder + "/" + name for name in names if name in ("grade.py", "my_rap.py", "red.p4", "lab.toml", "others.json")]
    return seen or 9
"""
    assert score(own, text, 20.0).message == ""


@linux
def test_nothing_is_written_outside(tmp_path: Path) -> None:
    target = tmp_path / "written"
    text = f"""
import os
def f(x):
    for path in ({str(target)!r}, __file__, os.path.dirname(__file__) + "/more", "/usr/x", "/x", "/given/x", "/root/x"):
        try:
            open(path, "w").write("x")
        except OSError:
            continue
        return path
    return 9
"""
    found = score(tmp_path, text)
    assert found.message == "" and not target.exists()


@walled
def test_the_scratch_folder_has_an_end_and_vanishes(tmp_path: Path) -> None:
    text = "def f(x):\n    for n in range(10):\n        open(f'/tmp/{n}', 'wb').write(b'x' * 15_000_000)\n    return 9\n"
    found = score(tmp_path, text)
    assert found.points == 0 and "No space left" in found.message
    assert score(tmp_path, "import os\ndef f(x):\n    return os.listdir('/tmp') or 9\n").message == ""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no links and pipes")
@pytest.mark.parametrize("kind", ["link", "folder", "pipe", "device", "long"])
def test_what_is_no_file_is_no_answer(kind: str, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    right = tmp_path / "other" / "own.py"
    right.write_text("def f(x):\n    return x * x\n")
    folder = tmp_path / "answer"
    folder.mkdir()
    own = folder / "own.py"
    if kind == "link":
        own.symlink_to(right)
    elif kind == "folder":
        own.mkdir()
    elif kind == "pipe":
        os.mkfifo(own)
    elif kind == "device":
        own.symlink_to("/dev/zero")
    else:
        own.write_text("def f(x):\n    return x * x\n" + "#" * 300_000)

    @check(2, "f")
    def calls(answer: Answer) -> None:
        close(answer.function("own.py", "f")(3), 9.0, "f(3)", "")

    grade = runner.grade("00", [calls], folder, ["own.py"])
    assert grade.points == 0 and len(grade.tried) == 1 and grade.tried[0].startswith("own.py: ")


# ------------------------------------------------------------------------------------------------------------- P4

INCLUDES = [
    '#include "/etc/passwd"',
    '#include "RED"',
    "#include <../p4src/schemes/red/red.p4>",
    '# /* x */ include "RED"',
    '#inc\\\nlude "RED"',
    '#define WHERE "RED"\n#include WHERE',
    '/* */ #include "RED"',
    '#if 0\n#include "RED"\n#endif',
]


@pytest.mark.parametrize("line", INCLUDES)
def test_p4_includes_only_what_the_lab_gives(line: str, tmp_path: Path) -> None:
    lab = labs.load("03")
    labs.skeleton(lab, tmp_path)
    red = probes.PACKAGE / "p4src" / "schemes" / "red" / "red.p4"
    (tmp_path / "red.p4").write_text(f"{line.replace('RED', str(red))}\n")
    grade = runner.grade("03", lab.checks[:2], tmp_path, ["red.p4"])
    assert grade.points == 0
    assert "an answer includes core.p4 and v1model.p4, and nothing else" in grade.tried[0]
    assert "root:" not in runner.text(grade)


def test_the_routers_own_includes_are_given(tmp_path: Path) -> None:
    lab = labs.load("01")
    labs.solution(lab, tmp_path)
    assert runner.grade("01", lab.checks[:1], tmp_path, ["router.p4"]).points == 3


# ------------------------------------------------------------------------------------------------------------- whole labs


@pytest.mark.parametrize(("number", "index"), [("06", 0), ("07", 0), ("02", 0), ("08", 0)])
def test_a_solution_within_reach_of_nobody(number: str, index: int, tmp_path: Path) -> None:
    """The labs' own texts, read from where the checkout has them."""
    lab = labs.load(number)
    labs.solution(lab, tmp_path / "right")
    for name in lab.settings.files:
        (tmp_path / name).write_text(f"exec(open({str(tmp_path / 'right' / name)!r}).read())\n")
    if WALLED:
        assert runner.grade(number, lab.checks[index : index + 1], tmp_path, lab.settings.files, lab.settings.gives).points == 0


def test_fairlanes_own_counter_is_not_there(tmp_path: Path) -> None:
    lab = labs.load("05")
    labs.skeleton(lab, tmp_path)
    for line in ("from fairlane.controller.core import ConnectionCounter", "from fairlane.controller.connections import ConnectionCounter"):
        (tmp_path / "counting.py").write_text(line + "\n")
        assert runner.grade("05", lab.checks[:1], tmp_path, lab.settings.files, lab.settings.gives).points == 0


@pytest.mark.parametrize("number", labs.numbers())
def test_a_lab_gives_no_solution(number: str, tmp_path: Path) -> None:
    """What an answer can import has none of the functions and classes that it has to write, and the skeletons can be imported with it."""
    lab = labs.load(number)
    place = given.place(tmp_path / "given", lab.settings.gives)
    texts = [path.read_text() for path in (place / "fairlane").rglob("*.py")]
    for word in ("class ConnectionCounter", "class AlsLayeredSender", "class RapSender", "def fair_rate_bps", "def max_min"):
        assert not any(word in text for text in texts)
    skeleton = labs.skeleton(lab, tmp_path / "answer")
    server = apart.start(skeleton, place, apart.Limits(20.0))
    for name in lab.settings.files:
        if name.endswith(".py"):
            assert "error" not in server.ask({"do": "has", "with": [name, "f"]}, lambda: 0.5)
    server.close()


# ------------------------------------------------------------------------------------------------------------- parts


@linux
def test_without_bubblewrap_the_filter_still_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLANE_LABS_WALL", "none")
    apart.bubblewrap.cache_clear()
    try:
        assert "apt install bubblewrap" in apart.protection()
        target = tmp_path / "written"
        assert score(tmp_path, f"def f(x):\n    open({str(target)!r}, 'w').write('x')\n    return 9\n").points == 0
        assert not target.exists()
        assert "asked the system" in graded(tmp_path, "import os\ndef f(x):\n    os.fork()\n    return 9\n").tried[0]
        assert score(tmp_path, "def f(x):\n    return x * x\n").points == 2
    finally:
        apart.bubblewrap.cache_clear()


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filters_jumps_lead_somewhere(machine: str) -> None:
    for inside in (True, False):
        rules = confine.program(machine, inside)
        count = len(rules) // 8
        assert count * 8 == len(rules) and count < 4096
        for n in range(count):
            code, if_true, if_false = rules[8 * n] | rules[8 * n + 1] << 8, rules[8 * n + 2], rules[8 * n + 3]
            if code & 7 == 5:
                assert n + 1 + max(if_true, if_false) < count


VALUES = [None, True, 3, -(1 << 100), 0.1, math.inf, "x", [1, [2]], (1, "a"), {"a": 1, 2: (3,)}, {}, [], ()]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_data_comes_back_as_it_was(value: object) -> None:
    message = wire.framed(wire.encoded(value))
    found = wire.decoded(wire.unframed(lambda n, left=[message]: (left[0][:n], left.__setitem__(0, left[0][n:]))[0]), {})
    assert found == value and type(found) is type(value)


def test_what_is_no_data_comes_as_its_text() -> None:
    found = wire.decoded(wire.encoded([object, lambda: 0, {1}]), {})
    assert all(isinstance(one, wire.Foreign) for one in found)


def test_a_worker_in_the_same_process_says_the_same(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("def f(x):\n    return x / 0\n")
    here = apart.Here(tmp_path)
    assert here.ask({"do": "call", "with": ["own.py", "f", wire.encoded((3,))]}, lambda: 0.5)["error"]["own"][:2] == ["own.py", 2]
    assert isinstance(here._server, worker.Server)
    shutil.rmtree(tmp_path)

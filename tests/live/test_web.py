"""The page of `make web` in real browsers: a run there leaves the same records as the command line's, and every lab is graded as elsewhere.

FAIRLANE_WEB=all tries every wrong answer of every lab, and all labs in Firefox too, which takes half an hour.
"""

from __future__ import annotations

import base64
import functools
import http.server
import io
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlane import probes
from fairlane.labs.grading import labs
from tests.live.web_browsers import Browser, opened, until

ROOT = probes.ROOT
PAGE = ROOT / "build" / "web"
PATHS = ("als.json", "controller.json")
"""Records that name files of the machine they were made on."""
_TOLD: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 120}
ALL = os.environ.get("FAIRLANE_WEB") == "all"
LABS = [labs.load(number) for number in labs.numbers()]
QUICK = ("01", "03", "04", "06")
"""Labs whose solutions are graded in some seconds."""
WRONG = [
    (lab, mistake)
    for lab in LABS
    for mistake in labs.mistakes(lab)
    if ALL or (lab.number in ("01", "04") and mistake == labs.mistakes(lab)[1])
]

pytestmark = [
    pytest.mark.skipif(not (PAGE / "packages.zip").is_file(), reason="no build/web: 'make web' builds it"),
    pytest.mark.timeout(600),
]


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


def _server() -> http.server.ThreadingHTTPServer:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(PAGE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with _server() as server:
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module", params=["chromium", "firefox"])
def browser(request: pytest.FixtureRequest, address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with opened(request.param, tmp_path_factory.mktemp(request.param)) as browser:
        browser.goto(address)
        _ready(browser)
        yield browser
        assert not browser.faults
        assert all(url.startswith(("http://127.0.0.1:", "blob:", "data:", "about:")) for url in browser.asked), (
            "nothing is fetched from another host"
        )


@pytest.fixture
def page(browser: Browser) -> Browser:
    """With nothing kept from tests before."""
    browser.evaluate("localStorage.clear()")
    _go(browser, "")
    _go(browser, "experiment=als-3")
    return browser


def _ready(page: Browser) -> None:
    until(page, "!document.getElementById('run').disabled")


def _go(page: Browser, place: str) -> None:
    page.evaluate(f"location.hash = {place!r}")
    page.evaluate("new Promise(done => setTimeout(done, 50))")
    _ready(page)


def _set(page: Browser, element: str, value: object) -> None:
    page.evaluate(f"document.getElementById({element!r}).value = {str(value)!r}")


def _click(page: Browser, element: str) -> None:
    page.evaluate(f"document.getElementById({element!r}).click()")


def _text(page: Browser, element: str) -> str:
    return page.evaluate(f"document.getElementById({element!r}).textContent")


def _put(page: Browser, place: str, files: dict[str, str]) -> None:
    """Files as a user left them: the browser keeps them by their place."""
    _go(page, "")
    page.evaluate(f"localStorage.setItem({'fairlane/' + place!r}, {json.dumps(json.dumps(files))})")
    _go(page, place)


def _type(page: Browser, text: str) -> None:
    """At the begin of the file that is open."""
    where = "document.querySelector('.cm-line').getBoundingClientRect()"
    page.click(*page.evaluate(f"[{where}.left + 7, {where}.top + {where}.height / 2]"))
    page.evaluate("new Promise(requestAnimationFrame)")
    page.keys("\ue011" + text)


def _run(page: Browser, seconds: int, seed: int) -> None:
    _set(page, "seconds", seconds)
    _set(page, "seed", seed)
    _click(page, "run")
    until(page, "document.getElementById('state').textContent.match(/Done|ended/) && !document.getElementById('run').disabled", 240)


def _archive(page: Browser, button: str) -> zipfile.ZipFile:
    """What a button hands over as a download."""
    page.evaluate(
        "window.handed = null, window.makes ??= URL.createObjectURL, URL.createObjectURL = blob => makes.call(URL, handed = blob)"
    )
    _click(page, button)
    until(page, "window.handed")
    text = page.evaluate(
        "new Promise(done => { const r = new FileReader(); r.onload = () => done(r.result.split(',')[1]); r.readAsDataURL(handed); })"
    )
    return zipfile.ZipFile(io.BytesIO(base64.b64decode(text)))


def _graded(page: Browser, lab: labs.Lab, folder: Path) -> tuple[str, list[str]]:
    """The line of points, and what is said of each check."""
    _put(page, f"lab={lab.number}", {name: (folder / name).read_text() for name in lab.settings.files})
    _click(page, "check")
    until(page, "document.getElementById('points').textContent", 400)
    return _text(page, "points"), page.evaluate("[...document.querySelectorAll('#score li')].map(item => item.innerText)")


# ------------------------------------------------------------------------------------------------------------ runs


def test_records_are_those_of_the_command_line(page: Browser, tmp_path: Path) -> None:
    _run(page, 20, 3)
    assert _text(page, "state").startswith("Done"), _text(page, "ended")
    archive = _archive(page, "records")
    command = [sys.executable, "-m", "fairlane", "run", "als-3", "--duration", "20", "--seed", "3", "--out", str(tmp_path / "run")]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    names = [name for name in archive.namelist() if Path(name).name not in PATHS]
    assert {path.name for path in (tmp_path / "run" / "raw").iterdir()} - {"run.json"} == {Path(n).name for n in archive.namelist()}
    assert [name for name in names if archive.read(name) != (tmp_path / "run" / name).read_bytes()] == []


_INK = """(() => {
  const canvas = document.querySelector('#rates canvas');
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let coloured = 0;
  for (let at = 0; at < data.length; at += 4) coloured += data[at + 3] > 128 && Math.max(...data.slice(at, at + 3)) - Math.min(...data.slice(at, at + 3)) > 60;
  return [canvas.getBoundingClientRect().width, coloured];
})()"""


def test_curves_are_seen_at_each_width(page: Browser) -> None:
    assert page.evaluate("document.querySelectorAll('figure:not([hidden])').length") == 0
    _run(page, 10, 1)
    for width, least in ((1280, 500), (420, 350)):
        page.size(width, 900)
        until(page, f"document.querySelector('#rates canvas').getBoundingClientRect().width <= {width}", 10)
        page.evaluate("new Promise(done => setTimeout(done, 300))")
        shown, coloured = page.evaluate(_INK)
        page.size(1280, 900)
        assert shown >= least and coloured > 500, (width, shown, coloured)


def test_the_compiler_s_messages_are_below_the_program(page: Browser) -> None:
    page.evaluate("[...document.querySelectorAll('#tabs button')].find(tab => tab.textContent == 'red.p4').click()")
    _type(page, "control Broken( {\n")
    until(page, "document.querySelector('.cm-lintRange-error')", 30)
    assert "red.p4:" in _text(page, "said")
    # The first message stands under its line, too.
    assert page.evaluate("document.querySelector('.below').textContent").startswith("error")
    _click(page, "reset")
    until(page, "!document.querySelector('.cm-lintRange-error')", 30)
    assert "*" not in _text(page, "tabs")


def test_a_run_can_be_stopped_and_another_started(page: Browser) -> None:
    _set(page, "seconds", 5000)
    _click(page, "run")
    until(page, "!document.getElementById('stop').disabled")
    _click(page, "stop")
    _ready(page)
    _run(page, 5, 1)
    assert _text(page, "state").startswith("Done"), _text(page, "ended")


def test_a_user_s_own_algorithm_runs_in_a_changed_experiment(page: Browser) -> None:
    _go(page, "experiment=my-rate")
    text = page.evaluate("fetch('content.json').then(answer => answer.json())")
    own = next(one["text"] for one in text["experiments"] if one["name"] == "my-rate").replace("count = 2", "count = 3", 1)
    _put(page, "experiment=my-rate", {"my-rate.toml": own})
    _run(page, 8, 1)
    assert "my_rate.py:" in _text(page, "ended") and "the equation is missing" in _text(page, "ended")
    algorithm = re.sub(r"raise NotImplementedError\(.*\)", "return 300_000.0", text["files"]["my_rate.py"])
    _put(page, "experiment=my-rate", {"my-rate.toml": own, "my_rate.py": algorithm})
    _run(page, 8, 1)
    assert _text(page, "state").startswith("Done"), _text(page, "ended")
    records = _archive(page, "records")
    assert {"raw/own-0.sender.jsonl", "raw/own-2.sender.jsonl"} <= set(records.namelist())
    sent = [json.loads(line) for line in records.read("raw/own-2.sender.jsonl").decode().splitlines()]
    assert {line["rate_bps"] for line in sent if line["kind"] == "sent"} == {100_000.0, 300_000.0}
    _put(
        page, "experiment=my-rate", {"my-rate.toml": own, "my_rate.py": algorithm.replace("return (SetRate(", "return (1 / 0, SetRate(", 1)}
    )
    _run(page, 8, 1)
    assert "my_rate.py:" in _text(page, "ended") and "ZeroDivisionError" in _text(page, "ended")
    _put(page, "experiment=my-rate", {"my-rate.toml": own.replace("pairs = 8", "pears = 8")})
    _run(page, 8, 1)
    assert "my-rate.toml:12: topology.pears" in _text(page, "ended")


@pytest.mark.parametrize("own", [False, True], ids=["changed", "own"])
def test_a_checkout_runs_exported_files_alike(page: Browser, tmp_path: Path, own: bool) -> None:
    content = page.evaluate("fetch('content.json').then(answer => answer.json())")
    texts = {one["name"]: one["text"] for one in content["experiments"]}
    if own:
        name = "my-rate"
        files = {"my_rate.py": re.sub(r"raise NotImplementedError\(.*\)", "return 300_000.0", content["files"]["my_rate.py"])}
        expected = {"experiments/my-rate.toml", "experiments/my_rate.py"}
    else:
        name = "als-3"
        red = content["files"]["red.p4"]
        files = {"als-3.toml": texts[name].replace("seed", "# mine\nseed", 1) + "\n# mine\n", "red.p4": f"// mine\n{red}"}
        expected = {"experiments/als-3.toml", "p4src/red.p4"}
    _put(page, f"experiment={name}", files)
    archive = _archive(page, "files")
    assert set(archive.namelist()) == expected
    command = re.search(r"\.venv/bin/fairlane (run .*)", _text(page, "state"))
    assert command is not None, _text(page, "state")
    _run(page, 8, 1)
    records = _archive(page, "records")
    # A checkout: what the archive has lies over it.
    for path in (ROOT / name for name in ("p4src", "experiments")):
        shutil.copytree(path, tmp_path / path.name, ignore=shutil.ignore_patterns("__pycache__"))
    archive.extractall(tmp_path)
    given = [*command[1].split(), "--duration", "8", "--seed", "1", "--out", "run"]
    given += [] if own else ["--program", "p4src/red.p4"]
    done = subprocess.run([sys.executable, "-m", "fairlane", *given], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, **_TOLD)
    assert done.returncode == 0, done.stdout + done.stderr
    names = [name for name in records.namelist() if Path(name).name not in PATHS]
    assert [name for name in names if records.read(name) != (tmp_path / "run" / name).read_bytes()] == []


def test_an_example_of_the_documentation_opens_and_runs(page: Browser) -> None:
    text = (ROOT / "docs" / "examples" / "parking-lot.toml").read_text()
    _go(page, "try=toml:" + base64.urlsafe_b64encode(text.encode()).decode().rstrip("="))
    assert "example.toml" in _text(page, "tabs")
    _run(page, 5, 1)
    assert _text(page, "state").startswith("Done"), _text(page, "ended")


# ------------------------------------------------------------------------------------------------------------ labs


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.number)
def test_the_skeleton_scores_nothing(page: Browser, lab: labs.Lab, tmp_path: Path) -> None:
    points, said = _graded(page, lab, labs.skeleton(lab, tmp_path))
    assert points.startswith(f"Lab {lab.number}: 0 of ")
    assert "Hint: " in said[0]


@pytest.mark.parametrize("lab", [lab for lab in LABS if ALL or lab.number in QUICK], ids=lambda lab: lab.number)
def test_the_solution_scores_all(page: Browser, lab: labs.Lab, tmp_path: Path) -> None:
    points, said = _graded(page, lab, labs.solution(lab, tmp_path))
    of = sum(check.points for check in lab.checks)
    assert points == f"Lab {lab.number}: {of} of {of} points", said


@pytest.mark.parametrize(("lab", "mistake"), WRONG, ids=[f"{lab.number}-{m.name}" for lab, m in WRONG])
def test_each_mistake_costs_points_and_has_its_hint(page: Browser, lab: labs.Lab, mistake: labs.Wrong, tmp_path: Path) -> None:
    points, said = _graded(page, lab, labs.wrong(lab, mistake, tmp_path))
    of = sum(check.points for check in lab.checks)
    assert points != f"Lab {lab.number}: {of} of {of} points"
    assert any(mistake.hint in one for one in said), said


def test_a_packet_test_shows_the_digit_that_differs(page: Browser, tmp_path: Path) -> None:
    lab = labs.load("01")
    test = labs.solution(lab, tmp_path) / "router.stf"
    lines = test.read_text().splitlines()
    line = next(i for i, text in enumerate(lines) if text.startswith("expect 2 "))
    lines[line] = lines[line].replace("3f11 64cb", "3f11 6dcb")
    test.write_text("\n".join(lines) + "\n")
    _, said = _graded(page, lab, tmp_path)
    told = next(one for one in said if "expected in line" in one).splitlines()
    at = next(i for i, text in enumerate(told) if f"(expected in line {line + 1})" in text)
    expected, received, caret = told[at + 1 : at + 4]
    assert (expected[caret.index("^")], received[caret.index("^")]) == ("d", "4")
    # In the editor, too: until the file is changed.
    page.evaluate("[...document.querySelectorAll('#tabs button')].find(tab => tab.textContent.startsWith('router.stf')).click()")
    until(page, "document.querySelector('.cm-lintRange-error')", 30)
    assert page.evaluate("document.querySelector('.cm-lintRange-error').textContent") == "d"
    assert page.evaluate("document.querySelector('.below').textContent") == "differs in byte 24: received 64"
    # All of the line is seen.
    assert page.evaluate("document.querySelector('.cm-lintRange-error').getBoundingClientRect().right < innerWidth")
    # Groups of digits, with what is marked among them.
    assert page.evaluate("document.querySelector('.cm-lintRange-error').closest('.cm-line').textContent") == lines[line]
    _type(page, "# mine\n")
    until(page, "!document.querySelector('.cm-lintRange-error')", 30)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("while True:\n            now_s += 1\n", "my_rap.py:74: still not done after 12 s"),
        ("import os\n        os._exit(3)\n", "the answer ended the program (exit code 3)"),
    ],
    ids=["loop", "exit"],
)
def test_an_answer_that_does_not_end_or_ends_too_much(
    page: Browser, code: str, message: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if "firefox-loop" in request.node.name and not ALL:
        pytest.skip("FAIRLANE_WEB=all waits for the loop in Firefox, too")
    lab = labs.load("06")
    program = labs.solution(lab, tmp_path) / "my_rap.py"
    before, at, after = program.read_text().partition("    def on_start(")
    head, end, body = after.partition(":\n        ")
    program.write_text(f"{before}{at}{head}{end}{code}        {body}")
    points, said = _graded(page, lab, tmp_path)
    assert points == "Lab 06: 4 of 10 points"
    assert any(message in one for one in said), said


def test_files_are_kept_and_exported_where_a_checkout_has_them(page: Browser, address: str) -> None:
    _go(page, "lab=04")
    _type(page, "// mine\n")
    page.goto(f"{address}#experiment=als-4")
    _ready(page)
    _go(page, "lab=04")
    assert _text(page, "tabs") == "fair_rate.p4 *"
    archive = _archive(page, "files")
    assert archive.namelist() == ["labs/04/fair_rate.p4"]
    assert archive.read("labs/04/fair_rate.p4").decode().startswith("// mine\n")


def _walk(page: Browser, keys: str, until_found: set[str]) -> set[str]:
    """Ids, or roles, of what has the focus one after another."""
    found: set[str] = set()
    for _ in range(60):
        page.keys(keys)
        found.add(
            page.evaluate("document.activeElement.id || document.activeElement.getAttribute('role') || document.activeElement.tagName")
        )
        if until_found <= found:
            break
    return found


def test_all_is_reached_by_keyboard(page: Browser) -> None:
    _go(page, "lab=04")
    wanted = {"place", "task", "tab", "textbox", "check", "reset", "files", "experiment", "seconds", "seed", "run"}
    assert wanted <= _walk(page, "\ue004", wanted)
    page.evaluate("document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', ctrlKey: true, bubbles: true}))")
    until(page, "document.getElementById('points').textContent")


_REPLACE = """text => {
  const content = document.querySelector('.cm-content');
  content.focus();
  content.dispatchEvent(new KeyboardEvent('keydown', { key: 'a', keyCode: 65, ctrlKey: true, bubbles: true, cancelable: true }));
  // Firefox takes data and dataType, Chromium clipboardData.
  const clipboardData = new DataTransfer();
  clipboardData.setData('text/plain', text);
  content.dispatchEvent(new ClipboardEvent('paste', { clipboardData, data: text, dataType: 'text/plain', bubbles: true, cancelable: true }));
}"""
"""Selects all of the file that is open, and pastes a text over it."""


def test_a_student_s_path(page: Browser, tmp_path: Path) -> None:
    """Choose, read, edit, check, follow the hint, have all points, and take the files to a checkout that grades them alike."""
    lab = labs.load("04")
    page.evaluate("(s => { s.value = 'lab=04'; s.dispatchEvent(new Event('change')); })(document.getElementById('place'))")
    until(page, "document.getElementById('task').textContent.includes('R_f')")
    _ready(page)
    for folder, points in (
        (labs.wrong(lab, labs.mistakes(lab)[0], tmp_path / "wrong"), None),
        (labs.solution(lab, tmp_path / "right"), 10),
    ):
        text = (folder / "fair_rate.p4").read_text()
        page.evaluate(f"({_REPLACE})({json.dumps(text)})")
        until(page, "document.getElementById('tabs').textContent.includes('*')")
        _click(page, "check")
        until(page, "document.getElementById('points').textContent && !document.getElementById('check').disabled")
        if points is None:
            assert labs.mistakes(lab)[0].hint in _text(page, "score")
        else:
            assert _text(page, "points") == f"Lab 04: {points} of {points} points"
    _archive(page, "files").extractall(tmp_path)
    command = [sys.executable, "-m", "fairlane.labs.grading", "04", "--answer", str(tmp_path / "labs" / "04")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert "10 of 10" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("place", ["lab=01", "lab=04", "lab=09", "experiment=als-3"])
@pytest.mark.parametrize("width", [420, 1280])
def test_nothing_is_wider_than_the_page(page: Browser, place: str, width: int) -> None:
    page.size(width, 900)
    _go(page, place)
    wide, shown = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    page.size(1280, 900)
    assert wide <= shown


_FAINT = """(() => {
  const numbers = colour => { const c = document.createElement('canvas').getContext('2d'); c.fillStyle = colour; c.fillRect(0, 0, 1, 1); return [...c.getImageData(0, 0, 1, 1).data]; };
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const paper = element => { for (let e = element; e; e = e.parentElement) { const found = numbers(getComputedStyle(e).backgroundColor); if (found[3] > 250) return found; } };
  const faint = [];
  for (const element of document.body.querySelectorAll('*')) {
    const text = [...element.childNodes].filter(node => node.nodeType === 3 && node.data.trim()).map(node => node.data.trim()).join(' ');
    if (!text || element.disabled || !element.checkVisibility({ visibilityProperty: true }) || element.tagName === 'NOSCRIPT') continue;
    const [a, b] = [light(numbers(getComputedStyle(element).color)), light(paper(element))];
    const contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (contrast < 4.5) faint.push(`${contrast.toFixed(2)} ${element.tagName}.${element.className} ${text.slice(0, 40)}`);
  }
  return [light(paper(document.body)), faint];
})()"""
"""How light the page is, and texts with less contrast than WCAG 2.1's 4.5 (success criterion 1.4.3)."""


def _faint(page: Browser, folder: Path, papers: tuple[float, float]) -> list[str]:
    lab = labs.load("04")
    _graded(page, lab, labs.wrong(lab, labs.mistakes(lab)[0], folder))
    found = [page.evaluate(_FAINT)]
    _go(page, "experiment=als-3")
    page.evaluate("[...document.querySelectorAll('#tabs button')].find(tab => tab.textContent == 'red.p4').click()")
    _type(page, "control Broken( {\n")
    until(page, "document.querySelector('.below')", 30)
    found.append(page.evaluate(_FAINT))
    _click(page, "reset")
    _run(page, 5, 1)
    found.append(page.evaluate(_FAINT))
    assert all(papers[0] <= paper <= papers[1] for paper, _ in found)
    return [text for _, faint in found for text in faint]


def test_all_texts_are_read_easily(page: Browser, tmp_path: Path) -> None:
    assert _faint(page, tmp_path / "wrong", (0.9, 1.0)) == []


@pytest.mark.parametrize("name", ["chromium", "firefox"])
def test_all_texts_are_read_easily_in_the_dark(address: str, tmp_path: Path, name: str) -> None:
    with opened(name, tmp_path, dark=True) as page:
        page.goto(address)
        _ready(page)
        assert _faint(page, tmp_path / "wrong", (0.0, 0.05)) == []


def test_it_works_without_a_network_once_opened(browser: Browser) -> None:
    page = browser
    with _server() as server:
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        page.evaluate("navigator.serviceWorker.ready.then(() => null)")
        until(page, "caches.keys().then(names => names.length > 0)")
        _ready(page)
        until(page, "caches.match('packages.zip')")
        server.shutdown()
        server.server_close()
        page.goto(f"http://127.0.0.1:{server.server_port}/?again#experiment=als-3")
        _ready(page)
        _run(page, 5, 1)
        assert _text(page, "state").startswith("Done"), _text(page, "ended")

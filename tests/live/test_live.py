"""The live view: what it writes, whom it answers, and its page in a browser."""

from __future__ import annotations

import asyncio
import csv
import io
import itertools
import json
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import websockets
import websockets.sync.client

from fairlane import ad_hoc, execute
from fairlane.errors import BAD_INPUT, Refusal
from fairlane.experiments.model import Experiment
from fairlane.fabrics import targets, virtual_fabric
from fairlane.fabrics.flows import record_roles
from fairlane.fabrics.outcome import Outcome
from fairlane.fabrics.progress import Silent
from fairlane.results.result_folder import ResultFolder

pytestmark = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")
if virtual_fabric.native is not None:
    from fairlane.live import columns, finished, follow
    from fairlane.live.host import Mirror
    from fairlane.live.page_process import Opening, PageProcess
    from fairlane.live.sampler import SENT, Sampler
    from fairlane.live.server import Server
    from fairlane.live.session import Session
    from fairlane.live.view import LiveRun, Options, speed_of

CHROMIUM = shutil.which("chromium")
# This machine may be busy with much else.
PATIENCE_S = 60.0


def experiment(*flows: str, seconds: float = 6.0, queue: str = "red", bottleneck: str = "2mbit") -> Experiment:
    return ad_hoc.experiment("dumbbell", ad_hoc.Options(flows or ("als:2", "tcp-sack:1"), bottleneck=bottleneck, queue=queue), seconds, 1)


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


class ControlValues(PageProcess):
    """What its process is told, told to a mirror here as well."""

    def __init__(self, opening: Opening) -> None:
        super().__init__(opening)
        self.mirror = Mirror(opening, lambda request: None)

    def tell(self, message: object) -> None:
        super().tell(message)
        self.mirror.take(message)


class Mirrored(LiveRun):
    def open(self, opening: Opening) -> ControlValues:
        return ControlValues(opening)


class Run:
    """A run in a thread, its page served."""

    def __init__(self, what: Experiment, folder: Path, speed: float | None = 0) -> None:
        self.live = Mirrored(Options(speed=speed))
        self.folder = folder
        folder.mkdir()
        self.outcome: Outcome | None = None
        self._thread = threading.Thread(target=self._work, args=(what,))
        self._thread.start()
        until(lambda: (self.live.page is not None and bool(self.sampler.times)) or not self._thread.is_alive())

    def _work(self, what: Experiment) -> None:
        self.outcome = virtual_fabric.run(what, virtual_fabric.Options(targets.compiler(), live=self.live), self.folder, Silent())

    @property
    def url(self) -> str:
        return self.live.page.url

    @property
    def session(self) -> Session:
        return self.live.page.mirror.session

    @property
    def sampler(self) -> Sampler:
        return self.session.sampler

    def ask(self, **request: object) -> str | None:
        """The answer that a page gets: None, or a refusal."""
        with websockets.sync.client.connect(self.url.replace("http", "ws") + "socket", max_size=None) as connection:
            connection.send(json.dumps({"number": 1, **request}))
            while (answer := json.loads(connection.recv(PATIENCE_S)))["is"] != "answer":
                pass
            return answer["refusal"]

    @property
    def now_s(self) -> float:
        return self.sampler.times[-1]

    def finish(self) -> Outcome:
        if not self.session.pace.finished:
            self.ask(do="speed", speed=None)
            self.ask(do="pause", paused=False)
        self._thread.join(PATIENCE_S)
        assert self.outcome is not None
        return self.outcome

    def close(self) -> None:
        if self._thread.is_alive():
            self.finish()
        self.live.close()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Paused as its first flows start."""
    made = Run(experiment(), tmp_path / "raw")
    yield made
    made.close()


def test_a_run_that_nobody_touches_writes_what_it_writes_without_a_page(tmp_path: Path) -> None:
    what = experiment("als:1", "rap:1", "tcp-sack:1", seconds=4.0)
    plain = tmp_path / "plain"
    plain.mkdir()
    outcome = virtual_fabric.run(what, virtual_fabric.Options(targets.compiler()), plain, Silent())
    shown = Run(what, tmp_path / "shown", speed=40.0)
    read = len(_update(shown)["times"])
    other = shown.finish()
    shown.close()
    assert read > 0 and other.live_changes == [] and other.changed is None and other.round_trips == outcome.round_trips
    names = sorted(path.name for path in plain.iterdir())
    assert names == sorted(path.name for path in shown.folder.iterdir()) and len(names) > 10
    for name in names:
        ours, theirs = ((folder / name).read_bytes() for folder in (plain, shown.folder))
        assert ours.replace(b"plain", b"shown") == theirs, name


def _update(run: Run) -> dict:
    """The first that a page is told, after who it is."""

    async def listen() -> dict:
        async with websockets.connect(run.url.replace("http", "ws") + "socket") as connection:
            assert json.loads(await connection.recv())["is"] == "hello"
            while True:
                update = json.loads(await connection.recv())
                if "times" in update:
                    return update

    return asyncio.run(asyncio.wait_for(listen(), PATIENCE_S))


def test_what_is_changed_changes_the_run_and_its_results_say_so(run: Run, tmp_path: Path) -> None:
    assert run.ask(do="step", seconds=1.0) is None
    until(lambda: run.now_s >= 0.9)
    for refusal, request in (
        ("unknown flow kind 'rop'; did you mean", {"do": "add", "kind": "rop", "from": "h1", "to": "h5"}),
        ("cannot join a run", {"do": "add", "kind": "als-layered", "from": "h1", "to": "h5"}),
        ("no host 'h9'", {"do": "add", "kind": "rap", "from": "h9", "to": "h5"}),
        ("cannot send to itself", {"do": "add", "kind": "rap", "from": "h1", "to": "h1"}),
        ("no flow 'als-7'", {"do": "stop", "flow": "als-7"}),
        ("a link's rate is from", {"do": "rate", "port": "s1:1", "rate_bps": 0}),
        ("a link's rate is from", {"do": "rate", "port": "s1:1", "rate_bps": "fast"}),
        ("RED parameter idle_decay", {"do": "rate", "port": "s1:1", "rate_bps": 1e12}),
        ("no port 's1:77'", {"do": "rate", "port": "s1:77", "rate_bps": 1e6}),
        ("unknown request 'dance'", {"do": "dance"}),
        ("a step takes", {"do": "step", "seconds": 0}),
        ("a speed is from", {"do": "speed", "speed": -1}),
    ):
        said = run.ask(**request)
        assert said is not None and refusal in said, (said, request)
    assert run.ask(do="add", kind="rap", **{"from": "h1", "to": "h5"}) is None
    assert run.ask(do="stop", flow="tcp-sack") is None
    assert run.ask(do="rate", port="s1:1", rate_bps=1e6, both=True) is None
    assert run.ask(do="add", kind="tcp-sack", **{"from": "h3", "to": "h6"}) is None
    outcome = run.finish()
    assert run.ask(do="pause", paused=True) == "this run is over."
    done = [(c["do"], c.get("flow") or c["link"]) for c in outcome.live_changes]
    assert done == [("add", "rap.1"), ("stop", "tcp-sack"), ("rate", "s1->s2"), ("rate", "s2->s1"), ("add", "tcp-sack.1")]
    assert all(0.9 <= c["time_s"] <= 1.2 for c in outcome.live_changes)
    assert [f.name for f in outcome.changed.flows] == ["als-0", "als-1", "tcp-sack", "rap.1", "tcp-sack.1"]
    results = ResultFolder(tmp_path / "results")
    shutil.copytree(run.folder, results.work / "raw")
    folder = execute.publish(outcome.changed, outcome, results)
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["live_changes"] == outcome.live_changes
    flows = {f["name"]: f for f in summary["flows"]}
    assert flows["tcp-sack"]["goodput_bps"] is None  # stopped before the window
    assert min(flows["rap.1"]["goodput_bps"], flows["tcp-sack.1"]["goodput_bps"]) > 0
    # Half the link for four flows: what the controller told, and what was fair.
    with (run.folder / "controller.csv").open() as file:
        told = [row for row in csv.DictReader(file) if (row["switch"], row["port"]) == ("s1", "1")]
    assert (int(told[-2]["connections"]), int(told[-2]["fair_rate_bps"])) == (4, 225_000)
    assert flows["als-0"]["fair_share_bps"] == pytest.approx(250_000)
    assert next(x for x in summary["links"] if x["name"] == "s1->s2")["rate_bps"] == pytest.approx(1e6)

    # The same folder on the page afterwards: the same samples, and RED's average near the one that the switch had.
    session = finished.open_results(folder)
    live, again = run.sampler, session.sampler
    assert session.note and session.changes == outcome.live_changes
    assert again.times == live.times and [line.name for line in again.lines] == [line.name for line in live.lines]
    for a, b in zip(live.lines, again.lines):
        assert a.bytes[-1] > 0 and a.bytes[-1] == pytest.approx(b.bytes[-1])
        assert a.counts(-1) == b.counts(-1)
    # What was sent so far grows, also where all is read at once.
    assert again.lines[0].counts(20)[0] < again.lines[0].counts(-1)[0]
    key = ("s1", 1)
    differences = [abs(a - b) for a, b in zip(live.ports[key].averages, again.ports[key].averages) if a is not None]
    assert len(differences) > 50 and max(live.ports[key].averages[1:]) > 1 and sum(differences) / len(differences) < 0.5
    last = len(live.times) - 1
    assert live.ports[key].at(last)[SENT] == pytest.approx(again.ports[key].at(last)[SENT])
    assert live.ports[key].controls == again.ports[key].controls

    # And as it would have been followed while it was written.
    sampler = Sampler(outcome.changed, outcome.timing, follow.CAUSES, estimate_averages=True)
    growing = tmp_path / "growing"
    growing.mkdir()
    follower = follow.Follower(sampler, growing)
    for part in (0.3, 0.7, 1.0):
        for name in (
            "s1.csv",
            "s2.csv",
            "controller.csv",
            *(f"{f.name}.{r}.jsonl" for f in outcome.changed.flows for r in record_roles(f)),
        ):
            data = (run.folder / name).read_bytes()
            (growing / name).write_bytes(data[: int(part * len(data))])
        follower.poll(outcome.timing.begin_s + part * 4 if part < 1 else outcome.timing.end_s)
    assert sampler.times == again.times
    for a, b in zip(sampler.lines, again.lines):
        # Of TCP, what the switch sent to its receiver: what comes twice counts, too.
        assert a.bytes[-1] == pytest.approx(b.bytes[-1], rel=0.05 if a.flow.kind == "tcp-sack" else 1e-6), a.name


def test_it_answers_this_machine_alone(run: Run) -> None:
    port = urllib.parse.urlsplit(run.url).port

    def status(**headers: str) -> int:
        request = urllib.request.Request(run.url, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                assert "default-src 'self'" in answer.headers["content-security-policy"]
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    assert status() == status(Host=f"localhost:{port}", Origin=f"http://localhost:{port}") == 200
    token = urllib.parse.urlsplit(run.url).path.strip("/")
    assert len(token) >= 20
    for path in ("/", f"/{token}", f"/{token[:-1]}/", f"/{token}x/", "/data.json", "/page/main.js", f"/?token={token}"):
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE_S)
    assert status(Host=f"evil.example:{port}") == status(Host="127.0.0.1") == status(Origin="http://evil.example") == 403
    assert status(Origin=f"https://127.0.0.1:{port}") == status(Origin="null") == 403

    async def connect(origin: str | None, path: str = f"/{token}/socket") -> bool:
        try:
            async with websockets.connect(f"ws://127.0.0.1:{port}{path}", origin=origin) as connection:
                await connection.send("no object")
                while True:
                    answer = json.loads(await connection.recv())
                    if answer["is"] == "answer":
                        return "must be an object" in answer["refusal"]
        except websockets.InvalidStatus as refused:
            assert refused.response.status_code == 403
            return False

    assert asyncio.run(connect(f"http://127.0.0.1:{port}")) and asyncio.run(connect(None))
    assert not asyncio.run(connect("http://evil.example"))
    assert not asyncio.run(connect(None, "/socket"))
    with pytest.raises(Refusal, match=f"--live-port {port}"):
        Server(run.session, port)


def test_options_and_folders_that_cannot_be_are_refused(tmp_path: Path) -> None:
    assert [speed_of(text) for text in ("1", "0.5", "max", "0")] == [1.0, 0.5, None, 0.0]
    for text in ("fast", "-1", "nan", "1e9"):
        with pytest.raises(Refusal, match="--live-speed"):
            speed_of(text)
    with pytest.raises(Refusal, match="holds no results"):
        finished.open_results(tmp_path)


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("chromium is not installed: scripts/debian-packages test")
    playwright = pytest.importorskip("playwright.sync_api", reason="the Python package playwright is not installed: make setup")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def page(browser) -> Iterator:
    """Fails on any error of the page's."""
    opened = browser.new_page(viewport={"width": 1300, "height": 900}, color_scheme="light")
    opened.set_default_timeout(PATIENCE_S * 1000)
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    yield opened
    opened.close()
    assert not errors


def _clock(page) -> float:
    return float(page.text_content("#time").split()[0])


def _wait_for_clock(page, later_than_s: float) -> None:
    """It is drawn a frame after the page knows."""
    page.wait_for_function(f"() => parseFloat(document.getElementById('time').textContent) > {later_than_s}")


def test_the_page_shows_steers_and_saves_a_run(run: Run, page, tmp_path: Path) -> None:
    page.goto(run.url)
    page.wait_for_selector("#flows tbody tr")
    assert page.locator("#pause").inner_text() == "Go on" and _clock(page) < 0.2
    # A step moves by what it says, and stays.
    page.keyboard.press(".")
    _wait_for_clock(page, 0.85)
    stepped = _clock(page)
    assert 0.85 < stepped <= 1.1
    # It goes on, and pauses.
    page.select_option("#speed", "2")
    page.keyboard.press(" ")
    page.wait_for_function(f"() => fairlane.store.now.time > {stepped + 0.3} && fairlane.frames > 5")
    page.keyboard.press(" ")
    page.wait_for_function("() => fairlane.store.state.paused")
    paused = run.now_s
    time.sleep(0.1)
    assert run.now_s == paused < 5
    # A flow is added, a link changed, a flow stopped.
    page.select_option("#add-kind", "rap")
    page.click("#add button")
    page.wait_for_function("() => document.querySelectorAll('#flows tbody tr').length === 4")
    page.fill("#rate-value", "1.2")
    page.click("#rate button")
    page.wait_for_function("() => document.getElementById('changes').textContent.includes('s2->s1 has 1.2 Mb/s')")
    page.get_by_role("button", name="Stop tcp-sack").click()
    page.select_option("#step-size", "1")
    for _ in range(2):
        before = run.now_s
        page.click("#step")
        page.wait_for_function(f"() => fairlane.store.now.time > {before + 0.9}")
    page.wait_for_function("() => document.querySelector('#ports tbody tr').innerText.includes('1.2')")
    rows = page.locator("#flows tbody tr").all_inner_texts()
    assert rows[3].startswith("rap.1") and "stopped" in rows[2] and "0.400" in rows[0]
    # n counts the three that are left, U_l = 0.9.
    told = page.evaluate("() => fairlane.store.now.ports['s1:1']")
    assert told["rate"] == 1.2e6 and told["connections"] in (3, 4) and told["fair_rate"] == 1_080_000 // told["connections"]
    # A refusal is told.
    page.select_option("#add-from", "h1")
    page.select_option("#add-to", "h1")
    page.click("#add button")
    page.wait_for_selector("#refusal:not(:empty)")
    assert "h1 cannot send to itself" in page.text_content("#refusal")
    # What is on the page can be had.
    with page.expect_download() as download:
        page.click("text=flows CSV")
    table = list(csv.DictReader(io.StringIO(download.value.path().read_text())))
    assert {row["flow"] for row in table} == {"als-0", "als-1", "tcp-sack", "rap.1"} and float(table[-1]["time_s"]) == pytest.approx(
        run.now_s
    )
    with page.expect_download() as download:
        page.click("text=JSON")
    assert [c["do"] for c in json.loads(download.value.path().read_text())["live_changes"]] == ["add", "rate", "rate", "stop"]
    with page.expect_download() as download:
        page.click("#figure")
    assert download.value.path().read_bytes().startswith(b"\x89PNG") and download.value.path().stat().st_size > 20_000
    # To the end, and back with the slider.
    page.select_option("#speed", "max")
    page.click("#pause")
    page.wait_for_function("() => fairlane.store.state.finished")
    page.wait_for_selector("#slider", state="visible")
    _wait_for_clock(page, 5.8)
    assert not page.is_visible("#add")
    page.evaluate("() => { slider.value = 1; slider.dispatchEvent(new Event('input')); }")
    page.wait_for_function("() => Math.abs(fairlane.store.now.time - 1) < 0.15")
    page.wait_for_function("() => document.querySelector('#flows tbody').rows[3].innerText.includes('from')")
    assert "over" in page.text_content("#spoken") and len(run.finish().live_changes) == 4


def test_the_page_is_for_everybody(run: Run, page) -> None:
    page.goto(run.url)
    page.wait_for_selector("#flows tbody tr")
    page.keyboard.press(".")
    page.wait_for_function("() => fairlane.store.now.time > 0.85")
    nameless = page.evaluate("""() => [...document.querySelectorAll("button, select, input, a")]
        .filter(e => e.offsetParent && !(e.labels?.length || e.textContent.trim() || e.ariaLabel)).map(e => e.outerHTML)""")
    assert nameless == []
    levels = page.evaluate("() => [...document.querySelectorAll('h1, h2, h3')].filter(h => h.offsetParent).map(h => +h.tagName[1])")
    assert levels[0] == 1 and all(b - a <= 1 for a, b in itertools.pairwise(levels)) and levels.count(1) == 1
    assert page.get_attribute("#spoken", "aria-live") == "polite" and "flows" in page.text_content("#spoken")
    # Every control is reached by the keyboard, and shows it.
    page.focus("#pause")
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.id") == "step"
    assert page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle") == "solid"
    # Values of a chart in words.
    page.click("#queue ~ details summary")
    page.wait_for_function("""() => document.getElementById("queue-values").textContent.includes("RED's average")""")
    # Light and dark, by the system and by the button.
    ground = "() => getComputedStyle(document.documentElement).backgroundColor"
    light = page.evaluate(ground)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"() => ({ground})() !== '{light}'")
    page.click("#theme")
    assert page.evaluate(ground) == light and page.inner_text("#theme") == "Theme: light"
    # A narrow window scrolls one way.
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_function("() => document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("width", [1280, 420])
def test_stop_buttons_are_in_sight(run: Run, page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(run.url)
    page.wait_for_selector("#flows tbody tr")
    page.keyboard.press(".")
    page.wait_for_function("() => fairlane.store.now.time > 0.85")
    beyond = page.evaluate("""() => [...document.querySelectorAll("#flows td button")].map(button =>
        button.getBoundingClientRect().right - button.closest(".scroll").getBoundingClientRect().right)""")
    assert len(beyond) == 3 and max(beyond) <= 0.5
    hidden = page.evaluate("() => { const s = document.querySelector('#flows').parentElement; return s.scrollWidth - s.clientWidth; }")
    assert width == 420 or hidden <= 0, "nothing of the table is out of sight in a window of usual width"


def test_fifty_flows_are_drawn_in_time(page, tmp_path: Path) -> None:
    run = Run(experiment("als:25", "tcp-sack:25", seconds=4.0, bottleneck="20mbit"), tmp_path / "raw")
    try:
        page.goto(run.url)
        page.wait_for_selector("#flows tbody tr")
        page.select_option("#speed", "0.5")
        page.select_option("#window", "10")
        page.click("#pause")
        page.wait_for_function("() => fairlane.frames > 12")
        median_ms = page.evaluate("() => fairlane.drawMs.toSorted((a, b) => a - b)[Math.floor(fairlane.drawMs.length / 2)]")
        assert median_ms < 1000 / 30
        assert page.locator("#flows tbody tr").count() == 50
    finally:
        run.close()


def test_a_view_that_would_rush_by_is_turned_like_a_page(page, tmp_path: Path) -> None:
    run = Run(experiment("als:2", "tcp-sack:2", seconds=60.0), tmp_path / "raw")
    try:
        page.goto(run.url)
        page.wait_for_selector("#flows tbody tr")
        page.select_option("#speed", "10")
        page.select_option("#window", "10")
        page.click("#pause")
        page.wait_for_function("() => fairlane.view.now > 12")
        seen = page.evaluate("""() => new Promise(done => {
            const seen = [], look = () => {
                seen.push([fairlane.view.from, fairlane.view.now, fairlane.view.to]);
                if (seen.length < 60) requestAnimationFrame(look); else done(seen);
            };
            look();
        })""")
        assert all(begin <= now <= end and end - begin == pytest.approx(10) for begin, now, end in seen), seen
        # Time goes on from frame to frame, the view a quarter of its width at once.
        begins, nows = sorted({begin for begin, _, _ in seen}), {now for _, now, _ in seen}
        assert 3 * len(begins) < len(nows)
        assert all(b - a > 2 for a, b in itertools.pairwise(begins)) and len(begins) > 1
    finally:
        run.close()


# A noisy line with a gap, a dashed one, steps, and one that does not change, at 40 samples to a second: several to a pixel.
_LINES = """
    let state = 1;
    const random = () => (state = state * 16807 % 2147483647) / 2147483647;
    const times = Array.from({length: 4000}, (_, i) => (i + 1) / 40);
    const noise = times.map((_, i) => i > 1500 && i < 1700 ? null : 5 + 4 * random());
    const lines = dashes => [
        {values: noise, colour: "#0064a0", width: 1, alpha: 0.5},
        {values: times.map(t => 5 + 4 * Math.sin(t)), colour: "#c8380a", width: 2.4, dash: dashes},
        {values: times.map(t => Math.floor(t / 3) % 8), colour: "#009e73", width: 2, step: true, dash: dashes},
        {flat: 2, colour: "#000000", width: 1.2, dash: dashes},
    ];
    const about = {tops: {y: 10}, height: 120, ratio: 1, key: ""};
    // On white, and but for what antialiasing rounds: a lost joint or another dash differs by most of a colour.
    const pixels = (strip, from, to) => {
        const data = strip.pen.getImageData(from - strip.origin, 0, to - from, about.height).data;
        return Array.from(data, (value, i) => i % 4 === 3 ? value : 255 + (value - 255) * data[i - i % 4 + 3] / 255);
    };
    const same = (a, b) => a.length === b.length && a.every((value, i) => Math.abs(value - b[i]) < 64);
"""


def test_a_picture_drawn_in_pieces_is_the_one_drawn_at_once(run: Run, page) -> None:
    page.goto(run.url)
    # All in view: also where dashes stand.
    assert page.evaluate(
        """async () => {
        const {Strip} = await import("./page/strip.js");
        """
        + _LINES
        + """
        const [pieces, whole] = [new Strip(), new Strip()], frame = {...about, lines: lines([7, 5]), left: 0, width: 500, perSecond: 5, spare: 1};
        let drawn = 0;
        for (let count = 1; count < times.length; count += 1 + Math.floor(60 * random())) drawn += pieces.update({...frame, times: times.slice(0, count)});
        pieces.update({...frame, times});
        whole.update({...frame, times});
        const picture = pixels(whole, 0, 500);
        const once = whole.update({...frame, times});
        whole.update({...frame, times, tops: {y: 9}});
        return [drawn > 100, once, same(pixels(pieces, 0, 500), picture), same(pixels(whole, 0, 500), picture)];
    }"""
    ) == [True, False, True, False]
    # A view that moves with time, and back.
    assert page.evaluate(
        """async () => {
        const {Strip} = await import("./page/strip.js");
        """
        + _LINES
        + """
        const [moving, still] = [new Strip(), new Strip()], frame = {...about, lines: lines([]), width: 300, perSecond: 20, spare: 2}, found = [];
        for (let count = 400; count < times.length; count += 90) {
            const left = Math.round(times[count] * 20) - 290;
            moving.update({...frame, left, times: times.slice(0, count)});
            if (count % 4 === 0) found.push(left);
        }
        const end = moving.origin + 20;
        moving.update({...frame, left: end, times});
        still.update({...frame, left: end - 40, times});
        const ahead = same(pixels(moving, end, end + 300), pixels(still, end, end + 300));
        moving.update({...frame, left: 700, times});
        still.key = null;
        still.update({...frame, left: 660, times});
        return [found.length > 5, ahead, same(pixels(moving, 700, 1000), pixels(still, 700, 1000))];
    }"""
    ) == [True, True, True]


def test_a_picture_of_many_samples_keeps_the_extremes(run: Run, page) -> None:
    page.goto(run.url)
    assert page.evaluate(
        """async () => {
        const {needed} = await import("./page/strip.js");
        """
        + _LINES
        + """
        const columns = times.map(t => Math.floor(3 * t)), kept = needed(columns, noise, 10, 3990);
        const of = column => [...Array(3980).keys()].map(i => i + 10).filter(i => columns[i] === column && noise[i] != null).map(i => noise[i]);
        let wrong = 0;
        for (let column = columns[10]; column <= columns[3989]; column++) {
            const all = of(column), few = kept.filter(i => columns[i] === column && noise[i] != null).map(i => noise[i]);
            const ends = values => [Math.min(...values), Math.max(...values), values[0], values.at(-1)].join();
            if (all.length && ends(all) !== ends(few)) wrong += 1;
        }
        return [wrong, kept.every((k, i) => i === 0 || k > kept[i - 1]), kept.length < 2000, kept.filter(i => noise[i] == null).length > 0];
    }"""
    ) == [0, True, True, True]


def test_time_glides_towards_what_is_known_and_not_beyond(run: Run, page) -> None:
    page.goto(run.url)
    steps = page.evaluate("""async () => {
        const {glide} = await import("./page/glide.js");
        Object.assign(glide, {from: 0, last: 0, since: 0});
        glide.begin();
        const shown = [];
        for (let ms = 0; ms < 3000; ms += 20) {
            if (ms % 100 === (ms >= 1500 && ms < 1600 ? 40 : 0)) glide.to(Math.floor(ms / 100) / 10 + 0.1, ms + 1);
            shown.push([glide.at(ms + 10), ms / 1000 + 0.1]);
        }
        return shown;
    }""")
    values = [value for value, _ in steps]
    assert all(value <= known + 1e-9 for value, known in steps) and values[-1] > 2.8
    # It goes on in each frame, also where updates come late for once, and evenly.
    moves = [b - a for a, b in itertools.pairwise(values)][20:]
    assert min(moves) > 0 and max(moves) < 3 * 0.02


def test_downloads_hold_every_sample_however_it_is_drawn(run: Run, page) -> None:
    page.goto(run.url)
    page.wait_for_selector("#flows tbody tr")
    run.finish()
    page.wait_for_function("() => fairlane.store.state.finished")
    sampler = run.sampler
    count = len(sampler.times)
    # In whatever pieces the page was told of them.
    for line in sampler.lines:
        assert columns.rates(sampler, line, 0, count) == [columns.rates(sampler, line, i, i + 1)[0] for i in range(count)]
    wanted = {line.name: columns.rates(sampler, line, 0, count) for line in sampler.lines}
    assert page.evaluate("() => [fairlane.store.times, ...fairlane.store.rates]") == [sampler.times, *wanted.values()]
    table = list(csv.DictReader(io.StringIO(urllib.request.urlopen(run.url + "flows.csv", timeout=PATIENCE_S).read().decode())))
    assert count > 55 and len(table) == sum(value is not None for values in wanted.values() for value in values)
    assert all(int(row["goodput_bps"]) == wanted[row["flow"]][sampler.times.index(float(row["time_s"]))] for row in table)
    links = list(csv.DictReader(io.StringIO(urllib.request.urlopen(run.url + "links.csv", timeout=PATIENCE_S).read().decode())))
    assert len(links) == count * len(sampler.ports)


def test_the_command_says_where_the_page_is_and_ends_when_nobody_looks(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fairlane", "run", "dumbbell", "--flow", "als:1", "--duration", "2", "--out", str(tmp_path / "out")]
    done = subprocess.run(
        [*command, "--live", "--live-speed", "max"], capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stderr
    assert "live view: http://127.0.0.1:" in done.stdout and "results:" in done.stdout and "stays" not in done.stdout
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["live_changes"] == []
    refused = subprocess.run([*command, "--live-speed", "2"], capture_output=True, text=True, timeout=PATIENCE_S)
    assert refused.returncode == BAD_INPUT and "only with --live" in refused.stderr

"""What the live view of 50 flows does and costs: the frames of its page at each speed in each view, and how much slower the run is.

    .venv/bin/python bench/live_view.py [frames|slowdown] [PAIRS]

frames: a page in headless Chromium. "frames" are those in which the page moved time on, by its own count; "pictures" is a check on them in
a second pass: how many times a second the pixels of the large chart were others than the frame before (reading them costs the page something).
slowdown: `fairlane run` as fast as the machine can, without a page and with one, in turns: wall clock, processor time of the run's process,
of its page's, and of all processes of the browser. Each run has a process of its own, because where a process's memory happens to lie
makes it faster or slower by a sixth, and there are many of them. Pairs during which other processes took more than a tenth of a core are told,
but not counted.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

FLOWS = ("als:25", "tcp-sack:25")
VIEWS = ("10", "30", "60", "all")
SPEEDS = (1.0, 2.0, 5.0, 10.0, None)
LONG_S = 150.0
_LOOK_S, _SETTLE_S = 2.5, 0.5
# What others may take of a core while a pair of runs is measured, and how many pairs are tried for one that counts.
_CALM, _MOST_TRIES = 0.1, 3
# Where frames are counted from: most views move by then, and the fastest run does not end meanwhile.
_FROM_S = 30.0
# The last sample that the page has.
_KNOWN = "() => fairlane.store.times.at(-1)"
# Pixels of the large chart that differ from those of the frame before.
_PICTURES = """() => {
    const canvas = document.querySelector("#rates canvas"), pen = canvas.getContext("2d");
    let before = null;
    fairlane.pictures = 0;
    const look = () => {
        const now = new Uint32Array(pen.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
        if (before && now.some((pixel, i) => pixel !== before[i])) fairlane.pictures += 1;
        before = now;
        requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
}"""


def processor_s(pid: int) -> float:
    """Processor time so far of a process, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children_s(root: int) -> float:
    """Processor time so far of all processes below one, in seconds."""
    spent: dict[int, tuple[int, float]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            spent[int(folder.name)] = (int(fields[1]), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"))
    below = {root}
    while more := {pid for pid, (parent, _) in spent.items() if parent in below} - below:
        below |= more
    return sum(spent[pid][1] for pid in below - {root})


def busy_s() -> float:
    """Processor time so far of everything on this machine, in seconds."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    return (sum(fields[:3]) + sum(fields[5:7])) / os.sysconf("SC_CLK_TCK")


def browser_s(run: Run) -> float:
    """Processor time so far of all processes of the browser, in seconds: of this process's children, all but the run and its page's process."""
    return children_s(os.getpid()) - processor_s(run.pid) - children_s(run.pid)


@dataclass
class Cost:
    """Seconds; spent: processor time of the run's process. page: of the process that serves its page; browser: of all its processes; others:
    of all else on this machine, as a part of a core. frames: a second."""

    wall: float
    spent: float
    others: float
    page: float = 0.0
    browser: float = 0.0
    frames: float = 0.0


class Meter:
    def __init__(self, run: Run) -> None:
        self._run = run
        self._before = self._read()

    def _read(self) -> tuple[float, ...]:
        return time.monotonic(), processor_s(self._run.pid), children_s(self._run.pid), browser_s(self._run), busy_s()

    def cost(self) -> Cost:
        """Since it was made."""
        wall, spent, page, browser, busy = (now - before for now, before in zip(self._read(), self._before))
        return Cost(wall, spent, (busy - spent - page - browser) / wall, page, browser)


class Run:
    """`fairlane run` in its own process, with its output so far."""

    def __init__(self, folder: str, *options: str) -> None:
        flows = [word for flow in FLOWS for word in ("--flow", flow)]
        self._process = subprocess.Popen(
            [
                Path(sys.executable).with_name("fairlane"),
                "run",
                "dumbbell",
                *flows,
                "--bottleneck",
                "50mbit",
                "--queue",
                "red",
                "--seed",
                "1",
                "--duration",
                str(LONG_S),
                "--out",
                f"{folder}/results",
                *options,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.pid = self._process.pid

    def wait_for(self, pattern: str) -> str:
        """The pattern's group, in the next line that has it."""
        said = []
        for line in self._process.stdout:
            said.append(line)
            if found := re.search(pattern, line):
                return found[1]
        raise RuntimeError("".join(said))

    def end(self) -> None:
        self._process.terminate()
        self._process.communicate()


def run_plain() -> Cost:
    """From the run's own report; its processor time equals its wall clock."""
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder)
        meter = Meter(run)
        wall = float(run.wait_for(r"virtual time: [\d.]+ s in ([\d.]+) s"))
        cost = meter.cost()
        run.end()
    return Cost(wall, wall, cost.others)


@contextlib.contextmanager
def shown(page: Page) -> Iterator[Run]:
    """A run on a page, paused at its beginning."""
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder, "--live", "--live-speed", "0")
        page.goto(run.wait_for(r"(http://\S+)"))
        page.wait_for_function("() => fairlane.store.flows.length > 0")
        page.select_option("#speed", "max")
        # The cost of opening a page is not the run's.
        time.sleep(_SETTLE_S)
        try:
            yield run
        finally:
            page.goto("about:blank")
            run.end()


def run_shown(page: Page) -> Cost:
    """From the click that lets it go to its end."""
    with shown(page) as run:
        page.evaluate("() => { fairlane.frames = 0; }")
        meter = Meter(run)
        page.click("#pause")
        page.wait_for_function("() => fairlane.store.state.finished", timeout=300_000, polling=20)
        cost = meter.cost()
        cost.frames = page.evaluate("() => fairlane.frames") / cost.wall
    return cost


def frames(page: Page) -> None:
    page.goto("about:blank")
    page.evaluate("() => { window.asked = 0; const ask = () => { asked += 1; requestAnimationFrame(ask); }; ask(); }")
    time.sleep(_SETTLE_S)
    asked = page.evaluate(
        f"async () => {{ const before = asked; await new Promise(f => setTimeout(f, {1000 * _LOOK_S})); return asked - before; }}"
    )
    print(f"an empty page is asked for {asked / _LOOK_S:.1f} frames a second\n")
    print("view  speed  reached   frames/s  pictures/s  ms a frame  browser, of a core")
    for view in VIEWS:
        for speed in SPEEDS:
            with shown(page) as run:
                page.select_option("#window", view)
                page.click("#pause")
                page.wait_for_function(f"() => ({_KNOWN})() > {_FROM_S}", timeout=300_000, polling=20)
                page.select_option("#speed", "max" if speed is None else f"{speed:g}")
                time.sleep(_SETTLE_S)
                page.evaluate("() => { fairlane.frames = 0; fairlane.drawMs.length = 0; }")
                begun, browser, at_s = time.monotonic(), browser_s(run), page.evaluate(_KNOWN)
                time.sleep(_LOOK_S)
                drawn, each = page.evaluate("() => [fairlane.frames, fairlane.drawMs.reduce((a, b) => a + b, 0) / fairlane.drawMs.length]")
                took = time.monotonic() - begun
                browser, reached = (browser_s(run) - browser) / took, (page.evaluate(_KNOWN) - at_s) / took
                page.evaluate(_PICTURES)
                time.sleep(0.2)
                seen, begun = page.evaluate("() => fairlane.pictures"), time.monotonic()
                time.sleep(_LOOK_S)
                pictures = (page.evaluate("() => fairlane.pictures") - seen) / (time.monotonic() - begun)
            name = "max" if speed is None else f"{speed:g}x"
            print(
                f"{view:>4}  {name:>5}  {reached:6.1f}x  {drawn / took:9.1f}  {pictures:10.1f}  {each:10.2f}  {100 * browser:17.0f} %",
                flush=True,
            )


def slowdown(page: Page, pairs: int) -> None:
    print(f"\n{LONG_S:g} s of virtual time, as fast as it goes, each in a process of its own, in turns")
    without, beside = [], []
    for i in range(_MOST_TRIES * pairs):
        # Each comes first as often as the other.
        if i % 2 == 0:
            plain, live = run_plain(), run_shown(page)
        else:
            live, plain = run_shown(page), run_plain()
        calm = max(plain.others, live.others) <= _CALM
        print(
            f"  {plain.wall:.2f} s and {live.wall:.2f} s ({100 * (live.wall / plain.wall - 1):+.1f} %); others took {plain.others:.2f} and "
            f"{live.others:.2f} of a core{'' if calm else ': not counted'}",
            flush=True,
        )
        if calm:
            without.append(plain)
            beside.append(live)
        if len(without) == pairs:
            break
    print(f"medians of {len(without)} pairs")
    if not without:
        return
    plain, live, spent, served, browser, rate = (
        statistics.median(values)
        for values in zip(*((a.wall, b.wall, b.spent, b.page / b.wall, b.browser / b.wall, b.frames) for a, b in zip(without, beside)))
    )
    print(
        f"without a page {plain:.2f} s; with one {live:.2f} s, its process {spent:.2f} s of processor, its page's {served:.2f} and the browser "
        f"{browser:.2f} of a core, {rate:.1f} frames/s (least {min(row.frames for row in beside):.1f})"
    )
    each = [100 * (b.wall / a.wall - 1) for a, b in zip(without, beside)]
    low, high = interval(each)
    mean = 100 * (sum(row.wall for row in beside) / sum(row.wall for row in without) - 1)
    print(f"slower by {statistics.median(each):+.1f} %, 95 % interval {low:+.1f} to {high:+.1f} %; all together {mean:+.1f} %")


def interval(values: list[float]) -> tuple[float, float]:
    """Confidence interval of the median, by resampling."""
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(2000))
    return medians[49], medians[1949]


def main() -> None:
    what = sys.argv[1] if len(sys.argv) > 1 else "both"
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 12
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        if what in ("both", "frames"):
            frames(page)
        if what in ("both", "slowdown"):
            slowdown(page, pairs)
        browser.close()


if __name__ == "__main__":
    main()

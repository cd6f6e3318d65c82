"""What the live view costs: one experiment of 50 flows, as fast as the machine can, without a page and with one open in Chromium, in turn.

    .venv/bin/python bench/live_view.py [RUNS] [SECONDS]

Prints medians of the run's wall clock and processor time (of this process, with its server's thread), and the page's frames a second
and milliseconds a frame.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from experiments.model import Experiment
from fairlane import quick, targets, virtual_fabric
from fairlane.live.server import Server
from fairlane.live.session import Command
from fairlane.live.view import LiveRun, Options
from fairlane.progress import Progress, Silent

FLOWS = ("als:25", "tcp-sack:25")


class Plain:
    """A run as it is without the live view, by the clock."""

    wall = spent = 0.0

    def drive(self, stage: virtual_fabric.Stage, progress: Progress) -> list[dict[str, Any]]:
        begun, processor = time.monotonic(), time.process_time()
        virtual_fabric.advance(stage, progress)
        self.wall, self.spent = time.monotonic() - begun, time.process_time() - processor
        return []


def run(experiment: Experiment, page: Page | None) -> tuple[float, float, float | None, float | None]:
    """Wall clock, processor time, frames a second, milliseconds a frame."""
    live = Plain() if page is None else LiveRun(Options(speed=0))

    def work() -> None:
        with tempfile.TemporaryDirectory() as folder:
            virtual_fabric.run(experiment, virtual_fabric.Options(targets.compiler(), live=live), Path(folder), Silent())

    if page is None:
        work()
        return live.wall, live.spent, None, None
    thread = threading.Thread(target=work)
    thread.start()
    while live.server is None or not live.session.sampler.times:
        time.sleep(0.01)
    _open(page, live.server)
    time.sleep(1.0)
    # What it took to open the page is not the run's.
    page.evaluate("() => { fairlane.frames = 0; fairlane.drawMs.length = 0; }")
    over = threading.Event()
    live.session.listen(lambda: over.set() if live.session.pace.finished else None)
    live.session.pace.speed = None
    begun, processor = time.monotonic(), time.process_time()
    live.session.put(Command({"do": "pause", "paused": False}, lambda refusal: None))
    over.wait()
    wall, spent = time.monotonic() - begun, time.process_time() - processor
    frames = page.evaluate("() => fairlane.frames") / wall
    per_frame = page.evaluate("() => fairlane.drawMs.reduce((a, b) => a + b, 0) / fairlane.drawMs.length")
    thread.join()
    live.close()
    return wall, spent, frames, per_frame


def _open(page: Page, server: Server) -> None:
    page.goto(server.url)
    page.wait_for_function("() => fairlane.store.flows.length > 0")


def main() -> None:
    runs, seconds = (int(sys.argv[1]) if len(sys.argv) > 1 else 5), (float(sys.argv[2]) if len(sys.argv) > 2 else 20.0)
    experiment = quick.experiment("dumbbell", quick.Options(FLOWS, bottleneck="50mbit", queue="red"), seconds, 1)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        without, with_page = [], []
        for _ in range(runs):
            without.append(run(experiment, None))
            with_page.append(run(experiment, page))
        browser.close()
    plain, live = ([statistics.median(r[i] for r in rows) for i in (0, 1)] for rows in (without, with_page))
    fps, per_frame = (statistics.median(r[i] for r in with_page) for i in (2, 3))
    print(f"{experiment.settings.title}; {seconds:g} s of virtual time, medians of {runs}")
    print(f"without a page: {plain[0]:.2f} s, processor {plain[1]:.2f} s")
    more = [100 * (b / a - 1) for a, b in zip(plain, live)]
    print(f"with a page:    {live[0]:.2f} s ({more[0]:+.1f} %), processor {live[1]:.2f} s ({more[1]:+.1f} %)")
    print(f"the page: {fps:.1f} frames a second, {per_frame:.1f} ms to draw each")


if __name__ == "__main__":
    main()

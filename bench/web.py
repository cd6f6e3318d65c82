"""Figures of the page of `make web`, in Chromium, from loopback:

    python bench/web.py

seconds from opening to Run and to the first curve (median of OPENINGS, each by a new browser), megabytes loaded, a run's seconds beside the native module's (interpreter, and machine
code; medians of OPENINGS), and the memory of a run of 50 flows. Processor time is that of the page's process, with the drawing of curves and the browser's compiler in it.
"""

from __future__ import annotations

import base64
import functools
import http.server
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "build" / "web"
OPENINGS = 3
_TICKS = os.sysconf("SC_CLK_TCK")

FIFTY = """
title = "50 flows"
duration_s = 60.0
bottleneck = "s1->s2"
[control]
program = "p4src/als.p4"
[topology]
kind = "dumbbell"
pairs = 50
[topology.bottleneck]
rate_bps = 20_000_000
delay_s = 0.02
queue_packets = 100
[topology.access]
rate_bps = 100_000_000
delay_s = 0.0
queue_packets = 1000
[[flows]]
name = "als"
kind = "als"
count = 25
[[flows]]
name = "tcp"
kind = "tcp-sack"
count = 25
"""
TCP_ALONE = (
    FIFTY.replace('kind = "als"\ncount = 25', 'kind = "tcp-reno"\ncount = 5')
    .replace("count = 25", "count = 5")
    .replace('"50 flows"', '"TCP"')
)

_NATIVE = """
import sys, tempfile, time
from pathlib import Path
from fairlane.experiments import loader
from fairlane.fabrics import targets, virtual_fabric
from fairlane.fabrics.progress import Silent
chosen = loader.load(loader.find(sys.argv[1]), 60.0, 1)
with tempfile.TemporaryDirectory() as folder:
    begun, cpu = time.monotonic(), time.process_time()
    virtual_fabric.run(chosen, virtual_fabric.Options(targets.ModuleCompiler()), Path(folder), Silent())
    print(time.monotonic() - begun, time.process_time() - cpu)
"""


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


def _page_process() -> int:
    """Of this program's browser, the renderer that has used most processor time."""
    found = [int(p.parent.name) for p in Path("/proc").glob("[0-9]*/cmdline") if b"--type=renderer" in p.read_bytes()]
    return max((process for process in found if _is_ours(process)), key=_cpu_s)


def _is_ours(process: int) -> bool:
    while process > 1:
        if process == os.getpid():
            return True
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    return False


def _cpu_s(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _peak_mb(process: int) -> float:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1e3


def _page(browser: Any) -> Any:
    """Without the service worker, which loads all files a second time, behind the page."""
    return browser.new_context(viewport={"width": 1280, "height": 900}, service_workers="block").new_page()


def _open(playwright: Any, chromium: str, address: str) -> dict[str, float]:
    """Seconds from opening to each step, and what was loaded, of a browser that knows nothing."""
    with playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"]) as browser:
        page = _page(browser)
        sizes: list[int] = []
        page.on("requestfinished", lambda request: sizes.append(request.sizes()["responseBodySize"]))
        page.goto(address)
        page.wait_for_selector("#run:not([disabled])", timeout=300_000)
        page.click("#run")
        page.wait_for_function("performance.getEntriesByName('fairlane-drawn').length > 0", timeout=300_000)
        found = {
            f"{told} after (s)": page.evaluate(f"performance.getEntriesByName('fairlane-{name}')[0].startTime") / 1e3
            for told, name in (("text and editor", "shown"), ("Run", "ready"), ("the first curve", "drawn"))
        }
        return {**found, "processor time of the page (s)": _cpu_s(_page_process()), "loaded (MB)": sum(sizes) / 1e6}


def _run(page: Any, name: str, text: str | None) -> tuple[float, float]:
    """Seconds and processor time of 60 s of virtual time."""
    page.evaluate("location.hash = ''")
    if text is not None:
        page.evaluate(
            "([key, text]) => localStorage.setItem(key, text)", [f"fairlane/experiment={name}", json.dumps({f"{name}.toml": text})]
        )
    page.evaluate(f"location.hash = 'experiment={name}'")
    page.wait_for_selector("#run:not([disabled])")
    page.fill("#seconds", "60")
    process = _page_process()
    begun, cpu = time.monotonic(), _cpu_s(process)
    page.click("#run")
    page.wait_for_function("document.getElementById('state').textContent.match(/Done|ended/)", timeout=600_000)
    assert page.text_content("#state").startswith("Done"), page.text_content("#ended")
    return time.monotonic() - begun, _cpu_s(process) - cpu


def _native(experiment: str, machine_code: str) -> tuple[float, float]:
    """Seconds and processor time."""
    done = subprocess.run(
        [sys.executable, "-c", _NATIVE, experiment],
        env={**os.environ, "FAIRLANE_MACHINE_CODE": machine_code, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, cpu = map(float, done.stdout.split())
    return seconds, cpu


def _medians(found: list[tuple[float, float]]) -> list[float]:
    return [statistics.median(column) for column in zip(*found)]


def main() -> None:
    chromium = shutil.which("chromium")
    if chromium is None or not (PAGE / "packages.zip").is_file():
        raise SystemExit("bench/web.py: needs chromium (apt-get install chromium) and build/web (make web)")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(PAGE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/"
    load = os.getloadavg()[0]
    with sync_playwright() as playwright:
        code = base64.urlsafe_b64encode(TCP_ALONE.encode()).decode().rstrip("=")
        for what, place in (("als-3, with algorithms in Python", "experiment=als-3"), ("ten TCP flows, without", f"try=toml:{code}")):
            opened = [_open(playwright, chromium, f"{address}#{place}") for _ in range(OPENINGS)]
            told = ", ".join(f"{name} {statistics.median(one[name] for one in opened):.1f}" for name in opened[0])
            print(f"{what}: {told}", flush=True)
    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"]) as browser:
        print(f"{platform.machine()}, {os.cpu_count()} processors, load {load:.1f}; Chromium {browser.version}")
        page = _page(browser)
        page.goto(f"{address}#experiment=als-3")
        page.wait_for_selector("#run:not([disabled])", timeout=300_000)
        _run(page, "als-3", None)
        for what, name, text in (("als-3", "als-3", None), ("ten TCP flows", "rap-4", TCP_ALONE)):
            path = name
            if text is not None:
                (PAGE.parent / "web-bench.toml").write_text(text)
                path = str(PAGE.parent / "web-bench.toml")
            # In turns, so that all meet the same machine.
            found = [(_run(page, name, text), _native(path, "never"), _native(path, "auto")) for _ in range(OPENINGS)]
            (seconds, cpu), (never, never_cpu), (auto, _) = (_medians(list(column)) for column in zip(*found))
            print(
                f"60 s of {what}: {seconds:.2f} s in the page, {cpu:.2f} s of processor time; native {never:.2f} s interpreted, {auto:.2f} s by machine code:"
                f" {100 * never / seconds:.0f} % of the interpreter's speed, {100 * never_cpu / cpu:.0f} % in processor time"
            )
        seconds, cpu = _run(page, "rap-4", FIFTY)
        print(
            f"50 flows: {seconds:.1f} s, {cpu:.1f} s of processor time, at most {_peak_mb(_page_process()):.0f} MB of memory in the page's process"
        )
    server.shutdown()


if __name__ == "__main__":
    main()

"""The page of `make web` in a real browser: a run there leaves the same records as the command line's."""

from __future__ import annotations

import functools
import http.server
import io
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "build" / "web"
CHROMIUM = shutil.which("chromium")
PATHS = ("als.json", "controller.json")
"""Records that name files of the machine they were made on."""

pytestmark = [
    pytest.mark.skipif(not (PAGE / "packages.zip").is_file(), reason="no build/web: 'make web' builds it"),
    pytest.mark.timeout(300),
]


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(PAGE))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def _browser(playwright):
    if CHROMIUM is None:
        pytest.skip("chromium is not installed: scripts/debian-packages test")
    return playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


@pytest.fixture
def page(address: str) -> Iterator:
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright, _browser(playwright) as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        page.wait_for_selector("#run:not([disabled])", timeout=120_000)
        yield page
        assert not faults
        assert all(url.startswith((address, "blob:", "data:")) for url in asked), "nothing is fetched from another host"


def _run(page, seconds: int, seed: int) -> None:
    page.fill("#seconds", str(seconds))
    page.fill("#seed", str(seed))
    page.click("#run")
    page.wait_for_function("document.getElementById('state').textContent.match(/Done|ended/)", timeout=120_000)


def test_records_are_those_of_the_command_line(page, tmp_path: Path) -> None:
    _run(page, 20, 3)
    assert page.text_content("#state").startswith("Done")
    with page.expect_download() as download:
        page.click("#export")
    archive = zipfile.ZipFile(io.BytesIO(Path(download.value.path()).read_bytes()))
    command = [sys.executable, "-m", "fairlane", "run", "als-3", "--duration", "20", "--seed", "3", "--out", str(tmp_path / "run")]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    names = [name for name in archive.namelist() if Path(name).name not in PATHS]
    assert {path.name for path in (tmp_path / "run" / "raw").iterdir()} - {"run.json"} == {Path(n).name for n in archive.namelist()}
    assert [name for name in names if archive.read(name) != (tmp_path / "run" / name).read_bytes()] == []
    assert page.locator("#rates canvas").count() == 1


def test_the_compiler_s_messages_are_below_the_program(page) -> None:
    page.click("#tabs button:has-text('red.p4')")
    page.locator(".cm-content").click()
    page.keyboard.press("Control+Home")
    page.keyboard.type("control Broken( {\n")
    page.wait_for_selector(".cm-lintRange-error", timeout=30_000)
    assert "red.p4" in page.text_content("#said")


def test_a_run_can_be_stopped_and_another_started(page) -> None:
    page.fill("#seconds", "5000")
    page.click("#run")
    page.wait_for_selector("#stop:not([disabled])")
    page.click("#stop")
    page.wait_for_selector("#run:not([disabled])", timeout=120_000)
    _run(page, 10, 1)
    assert page.text_content("#state").startswith("Done")


def test_it_works_without_a_network_once_opened(address: str) -> None:
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright, _browser(playwright) as browser:
        context = browser.new_context()
        page = context.new_page()
        page.goto(address)
        page.evaluate("navigator.serviceWorker.ready")
        page.wait_for_function("caches.keys().then(names => names.length > 0)")
        page.wait_for_selector("#run:not([disabled])", timeout=120_000)
        context.set_offline(True)
        page.reload()
        page.wait_for_selector("#run:not([disabled])", timeout=120_000)
        _run(page, 5, 1)
        assert page.text_content("#state").startswith("Done")

"""Browsers that tests of the page drive, with the few operations that they need: Chromium by Playwright, Debian's Firefox by WebDriver BiDi."""

from __future__ import annotations

import base64
import itertools
import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import pytest

NAMES = {"chromium": ("chromium",), "firefox": ("firefox-esr", "firefox")}
"""Programs, the first that is there is taken."""


class Browser(Protocol):
    """faults: exceptions of the page. asked: addresses that it asked for."""

    faults: list[str]
    asked: list[str]

    def goto(self, address: str) -> None: ...

    def evaluate(self, expression: str) -> Any:
        """What a JavaScript expression gives, awaited; JSON's types."""

    def keys(self, text: str) -> None:
        """Type into what has the focus; \\ue011 is Home and \\ue004 Tab, as WebDriver has them."""

    def click(self, x: float, y: float) -> None:
        """With the mouse."""

    def size(self, width: int, height: int) -> None: ...

    def picture(self, path: Path) -> None: ...


def until(browser: Browser, expression: str, seconds: float = 120) -> None:
    """Wait until an expression is true."""
    end = time.monotonic() + seconds
    while not browser.evaluate(f"Boolean({expression})"):
        if time.monotonic() > end:
            state = browser.evaluate("document.getElementById('state')?.textContent ?? document.body?.textContent")
            raise AssertionError(f"not true after {seconds:g} s: {expression}; the page says: {state}")
        time.sleep(0.05)


@contextmanager
def opened(name: str, folder: Path, dark: bool = False) -> Iterator[Browser]:
    """A headless browser with an empty profile in `folder`; the test is skipped where there is none. dark: it asks pages for dark colours."""
    program = next(filter(None, map(shutil.which, NAMES[name])), None)
    if program is None:
        pytest.skip(f"{name} is not installed: apt-get install {NAMES[name][0]}")
    with (_chromium if name == "chromium" else _firefox)(program, folder, dark) as browser:
        yield browser


class _Chromium:
    def __init__(self, page: Any) -> None:
        self._page = page
        self.faults: list[str] = []
        self.asked: list[str] = []
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("dialog", lambda dialog: dialog.accept())

    def goto(self, address: str) -> None:
        self._page.goto(address)

    def evaluate(self, expression: str) -> Any:
        return self._page.evaluate(f"async () => ({expression})")

    def keys(self, text: str) -> None:
        for key in text:
            if name := {"\ue011": "Home", "\ue004": "Tab"}.get(key):
                self._page.keyboard.press(name)
            else:
                self._page.keyboard.type(key)

    def click(self, x: float, y: float) -> None:
        self._page.mouse.click(x, y)

    def size(self, width: int, height: int) -> None:
        self._page.set_viewport_size({"width": width, "height": height})

    def picture(self, path: Path) -> None:
        self._page.screenshot(path=path)


_running: list[Any] = []


@contextmanager
def _playwright() -> Iterator[Any]:
    """A process has one, whichever browsers are open."""
    if _running:
        yield _running[0]
        return
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        _running.append(playwright)
        try:
            yield playwright
        finally:
            _running.clear()


@contextmanager
def _chromium(program: str, folder: Path, dark: bool) -> Iterator[Browser]:
    with _playwright() as playwright, playwright.chromium.launch(executable_path=program, args=["--no-sandbox"]) as browser:
        yield _Chromium(browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="dark" if dark else "light"))


class _Firefox:
    """WebDriver BiDi: JSON messages over a socket, answers by number, events between them."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self.faults: list[str] = []
        self.asked: list[str] = []
        self._ask("session.new", capabilities={"alwaysMatch": {"unhandledPromptBehavior": {"default": "accept"}}})
        self._ask("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])
        self._context = self._ask("browsingContext.getTree")["contexts"][0]["context"]
        self._ask("browsingContext.activate", context=self._context)
        self.size(1280, 900)

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            told = json.loads(self._socket.recv(timeout=300))
            if told.get("id") == number:
                if told["type"] == "error":
                    raise AssertionError(f"{method}: {told['error']}: {told['message']}")
                return told["result"]
            if told.get("method") == "log.entryAdded" and told["params"]["type"] == "javascript" and told["params"]["level"] == "error":
                self.faults.append(told["params"]["text"])
            elif told.get("method") == "network.beforeRequestSent":
                self.asked.append(told["params"]["request"]["url"])

    def goto(self, address: str) -> None:
        self._ask("browsingContext.navigate", context=self._context, url=address, wait="complete")

    def evaluate(self, expression: str) -> Any:
        told = self._ask(
            "script.evaluate",
            expression=f"(async () => JSON.stringify(await ({expression})) ?? 'null')()",
            target={"context": self._context},
            awaitPromise=True,
            userActivation=True,
        )
        if told["type"] == "exception":
            raise AssertionError(told["exceptionDetails"]["text"])
        return json.loads(told["result"]["value"])

    def keys(self, text: str) -> None:
        actions = [{"type": kind, "value": "\ue007" if key == "\n" else key} for key in text for kind in ("keyDown", "keyUp")]
        self._ask("input.performActions", context=self._context, actions=[{"type": "key", "id": "keys", "actions": actions}])

    def click(self, x: float, y: float) -> None:
        actions = [
            {"type": "pointerMove", "x": round(x), "y": round(y)},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0},
        ]
        self._ask("input.performActions", context=self._context, actions=[{"type": "pointer", "id": "mouse", "actions": actions}])

    def size(self, width: int, height: int) -> None:
        self._ask("browsingContext.setViewport", context=self._context, viewport={"width": width, "height": height})

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._ask("browsingContext.captureScreenshot", context=self._context)["data"]))


@contextmanager
def _firefox(program: str, folder: Path, dark: bool) -> Iterator[Browser]:
    client = pytest.importorskip("websockets.sync.client")
    command = [program, "--headless", "--no-remote", "--profile", str(folder), "--remote-debugging-port", "0", "about:blank"]
    settings = {
        "app.update.enabled": False,
        "browser.shell.checkDefaultBrowser": False,
        "layout.css.prefers-color-scheme.content-override": 0 if dark else 1,
    }
    (folder / "user.js").write_text("".join(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in settings.items()))
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stderr is not None
            address = next(found[0] for line in process.stderr if (found := re.search(r"ws://[\d.:]+", line)))
            with client.connect(f"{address}/session", max_size=None, open_timeout=60) as socket:
                yield _Firefox(socket)
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=20)
            process.kill()

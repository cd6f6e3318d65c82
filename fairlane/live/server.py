"""The page's server: on loopback alone, in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import csv
import hmac
import importlib.util
import io
import json
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from fairlane.errors import CANNOT_RUN_HERE, Refusal
from fairlane.live import columns
from fairlane.live.session import TABLE_S, UPDATE_S, Reader, Session

PAGE = Path(__file__).parent / "page"
_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; "
        b"connect-src 'self' ws://127.0.0.1:* ws://localhost:*; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]
_LONGEST_MESSAGE = 4096
# After so long without updates a page's writer looks less often.
_STILL_S = 1.0


class Guard:
    """Answers only requests to this machine's own name, from pages that came from here: a name that an attacker's server
    points at loopback (DNS rebinding) is neither. And only below the token, the first part of every path, which other users of this machine do not know."""

    def __init__(self, app: ASGIApp, port: int, token: str) -> None:
        self._app = app
        self._token = token.encode()
        self._hosts = {f"{name}:{port}".encode() for name in ("127.0.0.1", "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        given = dict(scope["headers"])
        origin = given.get(b"origin")
        ours = given.get(b"host", b"").lower() in self._hosts and (origin is None or origin.lower().removeprefix(b"http://") in self._hosts)
        token, slash, rest = scope["path"].removeprefix("/").partition("/")
        if ours and slash and hmac.compare_digest(token.encode(), self._token):
            await self._app({**scope, "path": f"/{rest}", "raw_path": None}, receive, _with_headers(send))
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            why = (
                "This page is at the whole address that was printed."
                if ours
                else "This page answers to http://127.0.0.1 and http://localhost only."
            )
            await PlainTextResponse(why, 403)(scope, receive, send)


def _with_headers(send: Send) -> Send:
    async def sender(message: Any) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *_HEADERS]
        await send(message)

    return sender


class Pages:
    """Those that are open. tell: called with how many were opened so far and how many are open, when that changes."""

    def __init__(self, session: Session, tell: Callable[[int, int], None] | None = None) -> None:
        self.session = session
        self.opened = self.watching = 0
        self._tell_number = tell
        self._loop: asyncio.AbstractEventLoop | None = None
        self._events: set[asyncio.Event] = set()
        session.listen(self._published)

    def _published(self) -> None:
        if self._events and self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the server has ended
                self._loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        for event in self._events:
            event.set()

    async def socket(self, connection: WebSocket) -> None:
        """One page: updates go out at the pace at which it takes them, requests come in."""
        await connection.accept()
        self._loop = asyncio.get_running_loop()
        reader, event = Reader(self.session), asyncio.Event()
        self._events.add(event)
        self._count(1)
        answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        try:
            await connection.send_text(_text(self.session.hello()))
            event.set()
            writer = asyncio.create_task(self._write(connection, reader, event, answers))
            try:
                while True:
                    await self._take(await connection.receive_text(), reader, event, answers)
            finally:
                writer.cancel()
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await writer
        except (WebSocketDisconnect, RuntimeError):
            pass
        finally:
            self._events.discard(event)
            self._count(-1)

    def _count(self, more: int) -> None:
        self.watching += more
        self.opened += max(more, 0)
        if self._tell_number is not None:
            self._tell_number(self.opened, self.watching)

    async def _write(self, connection: WebSocket, reader: Reader, event: asyncio.Event, answers: asyncio.Queue[dict[str, Any]]) -> None:
        loop = asyncio.get_running_loop()
        last = loop.time()
        while True:
            # Where nothing happens, requests and publications wake it.
            again = loop.call_later(UPDATE_S if loop.time() - last < _STILL_S else TABLE_S, event.set)
            await event.wait()
            again.cancel()
            event.clear()
            while not answers.empty():
                await connection.send_text(_text(answers.get_nowait()))
            update = reader.update()
            if update is not None:
                last = loop.time()
                await connection.send_text(_text(update))

    async def _take(self, text: str, reader: Reader, event: asyncio.Event, answers: asyncio.Queue[dict[str, Any]]) -> None:
        loop = asyncio.get_running_loop()

        def answer(number: Any, refusal: str | None) -> None:
            answers.put_nowait({"is": "answer", "number": number, "refusal": refusal})
            event.set()

        try:
            request = json.loads(text)
            what, number = request["do"], request.get("number")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            answer(None, "a message must be an object with the key 'do'")
            return
        if what == "choose":
            try:
                reader.choose(str(request.get("port")))
                event.set()
            except KeyError:
                answer(number, f"there is no port {request.get('port')}")
        elif what == "hosts":
            reader.show_hosts(bool(request.get("show")))
            event.set()
        elif what == "look":
            at_s = request.get("at")
            moment = reader.moment(float(at_s) if isinstance(at_s, (int, float)) else 0.0)
            answers.put_nowait({"is": "moment", "now": moment})
            event.set()
        elif self.session.steer is None:
            answer(number, "only a run in virtual time can be steered.")
        else:
            self.session.steer(request, lambda refusal: loop.call_soon_threadsafe(answer, number, refusal))


_text = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False).encode


def flows_csv(session: Session) -> Iterator[list[Any]]:
    """Goodput over the last second, at each sample."""
    sampler = session.sampler
    count = len(sampler.times)
    yield ["time_s", "flow", "kind", "goodput_bps", "fair_share_bps"]
    found = [columns.rates(sampler, line, 0, count) for line in sampler.lines]
    for i, time_s in enumerate(sampler.times[:count]):
        shares = session.shares.at(time_s)
        for line, rates in zip(sampler.lines, found):
            if rates[i] is not None:
                yield [time_s, line.name, line.flow.kind, rates[i], round(shares[line.name]) if line.name in shares else ""]


def ports_csv(session: Session) -> Iterator[list[Any]]:
    sampler = session.sampler
    count = len(sampler.times)
    causes = list(dict.fromkeys(c for port in sampler.ports.values() for c in columns.drop_causes(sampler, port)))
    scheme = next((f"{port.average.title.lower()}_" for port in sampler.ports.values() if port.average is not None), "")
    yield [
        "time_s",
        "link",
        "load",
        "queue_packets",
        f"{scheme}average_packets",
        f"{scheme}drop_probability",
        "connections",
        "fair_rate_bps",
        *(f"drop_{cause}" for cause in causes),
    ]
    for port in sampler.ports.values():
        found = columns.port_columns(sampler, port, 0, count)
        names = ("load", "queue", "average", "probability", "connections", "fair_rate")
        for i, time_s in enumerate(sampler.times[:count]):
            values = [found[name][i] for name in names]
            drops = [found["drops"][cause][i] if cause in found["drops"] else 0 for cause in causes]
            yield [time_s, port.name, *("" if value is None else value for value in values), *drops]


def _csv(rows: Iterator[list[Any]], name: str) -> Response:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return Response(text.getvalue(), media_type="text/csv", headers={"content-disposition": f'attachment; filename="{name}"'})


def _records(rows: Iterator[list[Any]]) -> list[dict[str, Any]]:
    header = next(rows)
    return [dict(zip(header, (None if value == "" else value for value in row))) for row in rows]


def application(session: Session, pages: Pages, port: int, token: str) -> ASGIApp:
    """The page, its files, its socket and its downloads, all below /TOKEN/."""
    name = session.sampler.experiment.id

    async def index(request: Request) -> Response:
        return FileResponse(PAGE / "index.html")

    def flows(request: Request) -> Response:
        return _csv(flows_csv(session), f"{name}-flows.csv")

    def ports(request: Request) -> Response:
        return _csv(ports_csv(session), f"{name}-links.csv")

    def everything(request: Request) -> Response:
        body = {
            "experiment": name,
            "seed": session.sampler.experiment.seed,
            "live_changes": session.changes,
            "flows": _records(flows_csv(session)),
            "links": _records(ports_csv(session)),
        }
        return JSONResponse(body, headers={"content-disposition": f'attachment; filename="{name}.json"'})

    chart = importlib.util.find_spec("uplot")
    if chart is None or not chart.submodule_search_locations:
        raise Refusal("the live view needs the Python package uplot-python: run 'make setup'.", CANNOT_RUN_HERE)
    routes = [
        Route("/", index),
        Route("/flows.csv", flows),
        Route("/links.csv", ports),
        Route("/data.json", everything),
        WebSocketRoute("/socket", pages.socket),
        Mount("/chart", StaticFiles(directory=Path(chart.submodule_search_locations[0]) / "static")),
        Mount("/page", StaticFiles(directory=PAGE)),
    ]
    return Guard(Starlette(routes=routes), port, token)


class Server:
    """Serves a session until it is stopped."""

    def __init__(self, session: Session, port: int = 0, tell: Callable[[int, int], None] | None = None) -> None:
        """port: 0 takes a free one. tell: as of `Pages`. Refusal: it is not free."""
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind(("127.0.0.1", port))
        except OSError as error:
            self._socket.close()
            raise Refusal(
                f"--live-port {port}: {error.strerror}. Give another port, or leave the option out to use a free one.", CANNOT_RUN_HERE
            ) from error
        self.port = self._socket.getsockname()[1]
        self.pages = Pages(session, tell)
        self._token = secrets.token_urlsafe(16)
        config = uvicorn.Config(
            application(session, self.pages, self.port, self._token),
            log_level="critical",
            access_log=False,
            lifespan="off",
            ws="websockets-sansio",
            ws_max_size=_LONGEST_MESSAGE,
            ws_per_message_deflate=False,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, name="live view", daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/{self._token}/"

    def start(self) -> None:
        self._socket.listen()
        self._thread.start()

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(5.0)
        self._socket.close()

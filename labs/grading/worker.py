"""The process in which an answer runs: it does what the grader asks, and sends data back. It knows no check, no expected value and no points.

    python -I -S worker.py ANSWER IN OUT STACKS CPU_S MEMORY WALLED

IN and OUT are pipes from and to the grader. After CPU_S of processor time, the place in the answer is written to STACKS.

`Server` does the work, and a page, which has no processes, uses it directly.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import os
import pickle
import random
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __name__ != "__main__":
    from fairlane.labs.grading import confine, wire
else:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import confine
    import wire

BASE = "fairlane.hosts.algorithms.base"
CONNECTIONS = "fairlane.controller.connections"
_MOST_LINE = 300


class Server:
    """Answers requests about the files of a folder. draw: the next random number of the run."""

    def __init__(self, folder: Path, draw: Callable[[], float]) -> None:
        self._folder = folder
        self._modules: dict[str, ModuleType] = {}
        self._objects: list[Any] = []
        self._random = _Random(draw)
        self._known: dict[str, Callable[..., Any]] | None = None

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Of one request: {"value", "line"}, or {"error"}: what the answer raised, and where."""
        try:
            value, line = getattr(self, "do_" + request["do"])(*request.get("with", ()))
            return {"value": wire.encoded(value), "line": line}
        except BaseException as error:  # whatever an answer raises, SystemExit too
            if getattr(error, "passes", False):
                raise
            return {"error": self._told(error)}

    # ---------------------------------------------------------------------------------------------- requests

    def do_has(self, file: str, name: str) -> tuple[Any, int]:
        """Whether there is such a function or class."""
        return callable(getattr(self._module(file), name, None)), 0

    def do_call(self, file: str, name: str, arguments: Any) -> tuple[Any, int]:
        """What a function gives, and the line of the file that it returned from."""
        call = getattr(self._module(file), name)
        return self._watched(call, self._folder / file, arguments)

    def do_make(self, file: str, name: str, arguments: Any) -> tuple[Any, int]:
        """An object of a class: its number."""
        made, line = self._watched(getattr(self._module(file), name), self._folder / file, arguments)
        return self._keep(made), line

    def do_method(self, number: int, file: str, name: str, arguments: Any) -> tuple[Any, int]:
        """What a method of an object gives."""
        return self._watched(getattr(self._objects[number], name), self._folder / file, arguments)

    def do_methods(self, number: int, file: str, name: str, many: Any) -> tuple[Any, int]:
        """A method called many times; nothing comes back."""
        call = getattr(self._objects[number], name)
        for arguments in self._values(many):
            call(*arguments)
        return None, 0

    def do_size(self, number: int) -> tuple[Any, int]:
        """Bytes of an object's attributes, where the process's own memory cannot be seen from outside."""
        return len(pickle.dumps(vars(self._objects[number]))), 0

    def do_kinds(self, file: str) -> tuple[Any, int]:
        """What the file's KINDS lists: of each kind what a run has to know."""
        base = importlib.import_module(BASE)
        listed = getattr(self._module(file), "KINDS", None)
        if not isinstance(listed, tuple) or not all(isinstance(kind, base.Kind) for kind in listed):
            return {"wrong": wire._shown(listed)}, 0
        return {"kinds": [self._of_kind(kind, base) for kind in listed]}, 0

    def do_half(self, file: str, kind: str, half: str, values: Any) -> tuple[Any, int]:
        """A sender or receiver, made of parameters: its number, and the events that it wants."""
        base = importlib.import_module(BASE)
        found = next(one for one in self._module(file).KINDS if one.name == kind)
        parameters = found.parameters(**self._values(values))
        made, _ = self._watched(getattr(found, half), self._folder / file, None, (parameters,))
        whole = base.Sender if half == "sender" else base.Receiver
        if not isinstance(made, whole):
            return {"wrong": wire._shown(made)}, 0
        own = [n for n in dir(whole) if n.startswith("on_") and getattr(type(made), n, None) is not getattr(whole, n)]
        own += [n for n in vars(made) if n.startswith("on_") and n not in own]
        return {"number": self._keep(made), "interests": made.interests, "handlers": own}, 0

    def do_handle(self, number: int, file: str, name: str, arguments: Any) -> tuple[Any, int]:
        """What a handler returns."""
        return self._watched(getattr(self._objects[number], name), self._folder / file, arguments)

    # ---------------------------------------------------------------------------------------------- inside

    def _of_kind(self, kind: Any, base: Any) -> dict[str, Any]:
        fields = []
        for field in dataclasses.fields(kind.parameters):
            default = field.default if field.default is not dataclasses.MISSING else None
            if field.default_factory is not dataclasses.MISSING:
                default = field.default_factory()
            fields.append([field.name, str(field.type), default])
        interests = {half: getattr(getattr(kind, half), "interests", None) for half in ("sender", "receiver")}
        halves = {half: one if isinstance(one, base.Interests) else base.Interests() for half, one in interests.items()}
        return {
            "name": kind.name,
            "summary": kind.summary,
            "class": f"{kind.parameters.__module__}:{kind.parameters.__qualname__}",
            "fields": fields,
            "layered": bool(kind.layered),
            **halves,
        }

    def _module(self, name: str) -> ModuleType:
        if name not in self._modules:
            path = self._folder / name
            spec = importlib.util.spec_from_file_location(f"lab_answer_{path.stem}", path)
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module
            spec.loader.exec_module(module)
            self._modules[name] = module
        return self._modules[name]

    def _keep(self, made: Any) -> int:
        self._objects.append(made)
        return len(self._objects) - 1

    def _values(self, encoded: Any) -> Any:
        if self._known is None:
            self._known = {"Draws": lambda: self._random}
            for name in (BASE, CONNECTIONS):
                try:
                    module = importlib.import_module(name)
                except ImportError:  # not given to this lab
                    continue
                self._known.update({n: _maker(c) for n, c in vars(module).items() if isinstance(c, type) and c.__module__ == name})
        return wire.decoded(encoded, self._known)

    def _watched(self, call: Any, path: Path, encoded: Any, arguments: tuple[Any, ...] = ()) -> tuple[Any, int]:
        """What a call gives, and the line of the file that it returned from; 0 when none of the file's did."""
        given = arguments if encoded is None else self._values(encoded)
        line = 0
        own = str(path)

        def note(frame: FrameType, event: str, argument: Any) -> None:
            nonlocal line
            if event == "return" and frame.f_code.co_filename == own:
                line = frame.f_lineno

        before = sys.getprofile()
        sys.setprofile(note)
        try:
            return call(*given), line
        finally:
            sys.setprofile(before)

    def _told(self, error: BaseException) -> dict[str, Any]:
        found: dict[str, Any] = {"type": type(error).__name__[:60], "text": _text(error), "own": None, "missing": None}
        if isinstance(error, ModuleNotFoundError):
            found["missing"] = str(error.name)[:100]
        if isinstance(error, SyntaxError) and (name := self._name(error.filename or "")):
            found["own"] = [name, error.lineno or 0, "", (error.text or "").strip()[:_MOST_LINE]]
            found["text"] = str(error.msg)[:_MOST_LINE]
            return found
        own = [frame for frame in traceback.extract_tb(error.__traceback__)[-1000:] if self._name(frame.filename)]
        if isinstance(error, RecursionError):  # the innermost has just been entered: a caller's line calls
            own = [frame for frame in own if not (frame.line or "").lstrip().startswith("def ")] or own
        if own:
            found["own"] = [self._name(own[-1].filename), own[-1].lineno or 0, own[-1].name[:60], (own[-1].line or "").strip()[:_MOST_LINE]]
        return found

    def _name(self, file: str) -> str:
        try:
            return str(Path(file).resolve().relative_to(self._folder.resolve()))
        except (ValueError, OSError):
            return ""


def _text(error: BaseException) -> str:
    try:
        return str(error)[:2000]
    except Exception:  # noqa: BLE001 - whatever an answer's __str__ raises
        return ""


def _maker(kind: type) -> Callable[..., Any]:
    return (lambda name: kind[name]) if hasattr(kind, "__members__") else kind  # type: ignore[index]


class _Random(random.Random):
    """The run's random numbers, which the grader draws."""

    def __new__(cls, draw: Callable[[], float]) -> _Random:
        return super().__new__(cls)

    def __init__(self, draw: Callable[[], float]) -> None:
        super().__init__()
        self._draw = draw

    def random(self) -> float:
        return self._draw()

    def getrandbits(self, k: int) -> int:
        return int(self._draw() * (1 << min(k, 52)))


def main() -> None:
    """Serve until the grader closes its end."""
    folder, asked, told, stacks, cpu_s, memory, walled = sys.argv[1:8]
    requests, replies = os.fdopen(int(asked), "rb"), os.fdopen(int(told), "wb", buffering=0)

    class Out(EOFError):
        passes = True

    def read(count: int) -> bytes:
        return requests.read(count)

    def draw() -> float:
        replies.write(wire.framed({"draw": 0}))
        try:
            return float(wire.unframed(read))
        except EOFError:
            raise Out from None

    server = Server(Path(folder), draw)
    os.chdir(folder)
    sys.stdout = open(1, "w", buffering=1, errors="replace", closefd=False)
    sys.stderr = open(2, "w", buffering=1, errors="replace", closefd=False)
    confine.confine(float(cpu_s), int(memory), int(stacks), walled == "1")
    try:
        while True:
            reply = server.answer(wire.unframed(read))
            try:
                sys.stdout.flush()
            except (OSError, ValueError):  # it has printed more than a file may have, or closed it
                pass
            try:
                replies.write(wire.framed(reply))
            except wire.WireError as error:
                replies.write(wire.framed({"error": {"type": "TooMuch", "text": str(error), "own": None, "missing": None}}))
    except EOFError:
        os._exit(0)


if __name__ == "__main__":
    main()

"""A student's algorithm file: its flow kinds in virtual runs, its handlers and functions called one by one, all of them watched.

What a handler returns is looked at before the network has it: the network would refuse it, too, but far from the student's line. An
exception of a handler passes through the network unchanged, and the grader finds the line in it.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, get_args

from fairlane.hosts import algorithms
from fairlane.hosts.algorithms.base import (
    Kind,
    Layer,
    PathState,
    Receiver,
    ReceiverAction,
    Sender,
    SenderAction,
    SetRate,
    SetWindow,
)
from fairlane.labs.grading.answer import Answer, number
from fairlane.labs.grading.missed import Missed

_HANDLERS: dict[type, tuple[str, ...]] = {
    Sender: ("on_start", "on_feedback", "on_leave", "on_ack", "on_loss", "on_timer"),
    Receiver: ("on_start", "on_control", "on_gap", "on_timer"),
}
_ACTIONS: dict[type, tuple[type, ...]] = {Sender: get_args(SenderAction), Receiver: get_args(ReceiverAction)}
# Calls at one instant: a network of this size has a few packets at once, a timer that is set to no later time has all of them.
_MOST_AT_ONCE = 5000
_LEAST = {("SetRate", "rate_bps"): 0.0, ("SetWindow", "window_packets"): 1.0, ("SetRate", "burst_packets"): 1.0}
_ABOVE = {("SetRate", "rate_bps")}


def use(answer: Answer, file: str, kind: str) -> Kind:
    """The flow kind of a student's file, known to runs of this process by its name. Missed: the file has no such kind."""
    listed = getattr(answer.module(file), "KINDS", None)
    if not isinstance(listed, tuple) or not all(isinstance(k, Kind) for k in listed):
        raise Missed(f"{file}: KINDS is {listed!r}, and should be a tuple of Kind", "the skeleton's last lines have it: do not change them")
    found: Kind | None = next((k for k in listed if k.name == kind), None)
    if found is None:
        names = ", ".join(repr(k.name) for k in listed) or "nothing"
        raise Missed(f"{file}: KINDS lists {names}, not {kind!r}", "keep the name that the skeleton gives it")
    path = answer.path(file)
    watched = dataclasses.replace(
        found, sender=lambda p: _watch(found.sender(p), Sender, path), receiver=lambda p: _watch(found.receiver(p), Receiver, path)
    )
    algorithms.ALGORITHMS[kind] = watched
    return watched


def function(answer: Answer, file: str, name: str) -> Callable[..., float]:
    """A function of a student's file whose value must be a finite number: Missed with file and line when it gives another thing."""
    call, path = answer.function(file, name), answer.path(file)

    def asked(*arguments: Any) -> float:
        value, line = _called(call, path, *arguments)
        return number(value, f"{_place(path, line)}: {name}({', '.join(map(_shown, arguments))})")

    return asked


def numbers(answer: Answer, file: str, name: str, count: int) -> Callable[..., list[float]]:
    """As `function`, for one that gives a list or tuple of `count` finite numbers."""
    call, path = answer.function(file, name), answer.path(file)

    def asked(*arguments: Any) -> list[float]:
        value, line = _called(call, path, *arguments)
        what = f"{_place(path, line)}: {name}({', '.join(map(_shown, arguments))})"
        if not isinstance(value, list | tuple) or len(value) != count:
            raise Missed(
                f"{what} gives {value!r}, which is no list of {count} numbers",
                "does every way through the function end with 'return' and the whole list?",
            )
        return [number(one, f"{what}, number {n},") for n, one in enumerate(value, 1)]

    return asked


def rate_of(actions: tuple[Any, ...]) -> float | None:
    """In bit/s, of the last `SetRate` among the actions; None without one."""
    return next((a.rate_bps for a in reversed(actions) if isinstance(a, SetRate)), None)


def path_state(srtt_s: float, last_sent: int = 100, highest_acked: int = 90) -> PathState:
    """What a runner would know of a path with a steady round trip."""
    return PathState(srtt_s, srtt_s, srtt_s / 10, last_sent - highest_acked, last_sent, highest_acked)


def _watch(half: Any, base: type, path: Path) -> Any:
    """The same object, with handlers that check what they return."""
    if not isinstance(half, base):
        raise Missed(f"{path.name}: makes {half!r}, which is no {base.__name__}", "KINDS names the classes in the order sender, receiver")
    repeats = _Repeats(path)
    for name in _HANDLERS[base]:
        setattr(half, name, _watched(name, getattr(half, name), base, path, repeats))
    return half


def _watched(name: str, handler: Callable[..., Any], base: type, path: Path, repeats: _Repeats) -> Callable[..., Any]:
    def run(now_s: float, *arguments: Any) -> Any:
        actions, line = _called(handler, path, now_s, *arguments)
        where = f"{_place(path, line)}: {name}"
        _check_actions(actions, base, where)
        if name == "on_start" and base is Sender and not any(isinstance(a, SetRate | SetWindow) for a in actions):
            raise Missed(f"{where} returns {actions!r}: neither SetRate nor SetWindow", "how fast is the flow to start?")
        repeats.count(now_s, where)
        return actions

    return run


class _Repeats:
    """Counts calls at one instant."""

    def __init__(self, path: Path) -> None:
        self.now_s = math.nan
        self.calls = 0

    def count(self, now_s: float, where: str) -> None:
        self.calls = self.calls + 1 if now_s == self.now_s else 1
        self.now_s = now_s
        if self.calls > _MOST_AT_ONCE:
            raise Missed(
                f"{where}: called {self.calls} times at the same instant, {now_s:g} s: time does not go on",
                "to what time does SetTimer set the timer? One that has passed means: at once",
            )


def _called(call: Callable[..., Any], path: Path, *arguments: Any) -> tuple[Any, int]:
    """What a call gives, and the line of the file that it returned from; 0 when none of the file's did."""
    line = 0
    own = str(path)

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal line
        if event == "return" and frame.f_code.co_filename == own:
            line = frame.f_lineno

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        return call(*arguments), line
    finally:
        sys.setprofile(before)


def _shown(argument: Any) -> str:
    return f"{argument:g}" if isinstance(argument, int | float) else " ".join(str(argument).split())


def _place(path: Path, line: int) -> str:
    return f"{path.name}:{line}" if line else path.name


def _check_actions(actions: Any, base: type, where: str) -> None:
    """Missed when they are not what a handler may return."""
    if not isinstance(actions, tuple | list):
        what = "a generator" if hasattr(actions, "send") else repr(actions)
        raise Missed(
            f"{where} returns {what}, which is no tuple of actions",
            "a handler returns a tuple on every way through it: () for nothing, and a tuple of one has a comma: (SetRate(x),)",
        )
    for action in actions:
        if not isinstance(action, _ACTIONS[base]):
            known = ", ".join(kind.__name__ for kind in _ACTIONS[base])
            raise Missed(
                f"{where} returns {action!r} among its actions", f"a {base.__name__.lower()} may return {known} (hosts/algorithms/base.py)"
            )
        _check_values(action, where)


def _check_values(action: Any, where: str) -> None:
    kind = type(action).__name__
    for field in dataclasses.fields(action):
        value = getattr(action, field.name)
        if field.name == "layers":
            _check_layers(value, f"{where} returns {kind}")
        elif str(field.type).startswith(("float", "int")) and not (value is None and "None" in str(field.type)):
            _check_number(value, (kind, field.name), f"{where} returns {kind}({field.name}={value!r})")


def _check_number(value: Any, key: tuple[str, str], what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Missed(f"{what}: that is no number", "what types have the values that you calculate it from?")
    if not math.isfinite(value):
        raise Missed(what, "is something divided by zero, or by a value that may be zero, or is nan - nan hidden in it?")
    least = _LEAST.get(key, 0.0)
    if value < least or (key in _ABOVE and value == least):
        raise Missed(
            f"{what}: {'above' if key in _ABOVE else 'at least'} {least:g} is wanted", "what keeps the value within its limits? (clamp)"
        )


def _check_layers(value: Any, what: str) -> None:
    if not isinstance(value, tuple) or not all(isinstance(layer, Layer) for layer in value):
        raise Missed(f"{what}(layers={value!r}), which is no tuple of Layer", "Layer(address, rate_bps), base first")
    for layer in value:
        _check_number(layer.rate_bps, ("Layer", "rate_bps"), f"{what} with {layer!r}")

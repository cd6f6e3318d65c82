"""A student's algorithm file: its flow kinds in virtual runs, its handlers and functions called one by one, all of them watched.

What a handler returns is looked at before the network has it: the network would refuse it, too, but far from the student's line. An
exception of a handler passes through the network unchanged, and the grader finds the line in it.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

from fairlane.hosts import algorithms
from fairlane.hosts.algorithms.base import (
    Interests,
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
from fairlane.labs.grading import wire
from fairlane.labs.grading.answer import Answer, number
from fairlane.labs.grading.missed import Missed
from fairlane.labs.grading.student import Student

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
    """The flow kind of a student's file, known to runs of this process by its name: what the network calls asks the answer's process. Missed: the file
    has no such kind."""
    path = answer.path(file)
    told, _ = answer.student.ask("kinds", file)
    if "wrong" in told:
        raise Missed(
            f"{file}: KINDS is {told['wrong']}, and should be a tuple of Kind", "the skeleton's last lines have it: do not change them"
        )
    listed = told["kinds"]
    found = next((one for one in listed if one["name"] == kind), None)
    if found is None:
        names = ", ".join(repr(str(one["name"])) for one in listed) or "nothing"
        raise Missed(f"{file}: KINDS lists {names}, not {kind!r}", "keep the name that the skeleton gives it")
    made = Kind(
        kind,
        str(found["summary"])[:200],
        _parameters(answer, file, found),
        _Halves(answer.student, path, kind, Sender, _interests(found["sender"], file)),
        _Halves(answer.student, path, kind, Receiver, _interests(found["receiver"], file)),
        found["layered"] is True,
    )
    algorithms.ALGORITHMS[kind] = made
    return made


def _parameters(answer: Answer, file: str, found: dict[str, Any]) -> type:
    """The parameters' class: one that the lab gives, or one with the same fields."""
    module, _, name = str(found["class"]).partition(":")
    if f"{module.removeprefix('fairlane.').replace('.', '/')}.py" in [path.partition(":")[0] for path in answer.gives]:
        return getattr(importlib.import_module(module), name)  # type: ignore[no-any-return]
    fields: list[tuple[str, type, Any]] = []
    for field, _, default in found["fields"]:
        if not re.fullmatch(r"[A-Za-z]\w{0,60}", str(field)) or not isinstance(default, bool | int | float | str):
            raise Missed(
                f"{file}: the parameter {field!s:.60} has the default {default!r}", "a parameter is a number, a text, or True or False"
            )
        fields.append((field, type(default), dataclasses.field(default=default)))
    return dataclasses.make_dataclass("Parameters", fields, frozen=True)


_WANTED: dict[str, type] = {"gaps": bool, "rtcp": bool, "loss_distance_packets": int, "timed_acks": bool, "scheme": str}


def _interests(given: Any, file: str) -> Interests:
    if not isinstance(given, Interests):
        raise Missed(f"{file}: interests is {given!r}, which is no Interests", "interests = Interests(...), as the skeleton has it")
    for name, kind in _WANTED.items():
        if type(getattr(given, name)) is not kind:
            raise Missed(
                f"{file}: Interests({name}={getattr(given, name)!r})",
                f"{name} is {'True or False' if kind is bool else 'a ' + kind.__name__}",
            )
    if given.header is not None or given.least is not None:
        raise Missed(f"{file}: Interests(header=...)", "packets of the labs have no header of their own: use what events say")
    if not 1 <= given.loss_distance_packets <= 1000:
        raise Missed(f"{file}: Interests(loss_distance_packets={given.loss_distance_packets})", "from 1 to 1000")
    return given


@dataclasses.dataclass(frozen=True)
class _Halves:
    """What makes a sender or receiver: an object that stands for the answer's."""

    student: Student
    path: Path
    kind: str
    base: type
    interests: Interests

    def __call__(self, parameters: Any) -> Any:
        values = {field.name: getattr(parameters, field.name) for field in dataclasses.fields(parameters)}
        half = self.base.__name__.lower()
        told, _ = self.student.ask("half", self.path.name, self.kind, half, wire.encoded(values))
        if "wrong" in told:
            raise Missed(
                f"{self.path.name}: makes {told['wrong']}, which is no {self.base.__name__}",
                "KINDS names the classes in the order sender, receiver",
            )
        stands = (_SenderThere if self.base is Sender else _ReceiverThere)()
        stands.interests = _interests(told["interests"], self.path.name)
        repeats = _Repeats()
        for name in _HANDLERS[self.base]:
            if name in told["handlers"] or (name == "on_start" and self.base is Sender):
                setattr(stands, name, _asks(self, told["number"], name, repeats))
        return stands


class _SenderThere(Sender):
    def on_start(self, now_s: float, rng: Any) -> tuple[SenderAction, ...]:
        raise NotImplementedError  # replaced in each object


class _ReceiverThere(Receiver):
    pass


def function(answer: Answer, file: str, name: str) -> Callable[..., float]:
    """A function of a student's file whose value must be a finite number: Missed with file and line when it gives another thing."""
    answer.function(file, name)

    def asked(*arguments: Any) -> float:
        value, line = answer.student.call(file, name, arguments)
        return number(value, f"{_place(file, line)}: {name}({', '.join(map(_shown, arguments))})")

    return asked


def numbers(answer: Answer, file: str, name: str, count: int) -> Callable[..., list[float]]:
    """As `function`, for one that gives a list or tuple of `count` finite numbers."""
    answer.function(file, name)

    def asked(*arguments: Any) -> list[float]:
        value, line = answer.student.call(file, name, arguments)
        what = f"{_place(file, line)}: {name}({', '.join(map(_shown, arguments))})"
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


def _asks(half: _Halves, number_: int, name: str, repeats: _Repeats) -> Callable[..., Any]:
    """A handler of the answer's object, whose actions are looked at before the network has them."""

    def run(now_s: float, *arguments: Any) -> Any:
        *events, rng = arguments
        given = wire.encoded((now_s, *events, wire.Draws()))
        actions, line = half.student.ask("handle", number_, half.path.name, name, given, draw=rng.random)
        where = f"{_place(half.path.name, line)}: {name}"
        _check_actions(actions, half.base, where)
        if name == "on_start" and half.base is Sender and not any(isinstance(a, SetRate | SetWindow) for a in actions):
            raise Missed(f"{where} returns {actions!r}: neither SetRate nor SetWindow", "how fast is the flow to start?")
        repeats.count(now_s, where)
        return actions

    return run


class _Repeats:
    """Counts calls at one instant."""

    def __init__(self) -> None:
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


def _shown(argument: Any) -> str:
    return f"{argument:g}" if isinstance(argument, int | float) else " ".join(str(argument).split())


def _place(file: str, line: int) -> str:
    return f"{file}:{line}" if line else file


def _check_actions(actions: Any, base: type, where: str) -> None:
    """Missed when they are not what a handler may return."""
    if not isinstance(actions, tuple | list):
        what = repr(actions)
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


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 100


_OTHERS: dict[str, Callable[[Any], bool]] = {
    "name": _is_word,
    "kind": _is_word,
    "values": lambda v: (
        isinstance(v, tuple) and len(v) < 100 and all(isinstance(one, tuple) and len(one) == 2 and _is_word(one[0]) for one in v)
    ),
    "before_sending": lambda v: isinstance(v, bool),
    "addresses": lambda v: isinstance(v, tuple) and all(type(one) is int and 0 <= one < 1 << 32 for one in v),
}
"""Fields of actions that are neither numbers nor layers: whether a value fits."""


def _check_values(action: Any, where: str) -> None:
    kind = type(action).__name__
    for field in dataclasses.fields(action):
        value = getattr(action, field.name)
        if field.name in _OTHERS:
            if not _OTHERS[field.name](value):
                raise Missed(f"{where} returns {kind}({field.name}={value!r})", f"hosts/algorithms/base.py says what {field.name} is")
        elif field.name == "layers":
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

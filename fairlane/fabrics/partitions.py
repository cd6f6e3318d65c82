"""The processes of a network that is divided (`partition_plan`): each simulates its part, with the algorithms of its hosts; the first one is the caller's, and has
the control plane. They are forked when the network is there, so that all have the same."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fairlane.errors import RunFailed
from fairlane.fabrics.interrupts import ENDING
from fairlane.fabrics.partition_plan import Plan

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkProcess

    from fairlane.native import Network

_Result = TypeVar("_Result")
_GRACE_S = 5.0
"""For the others to say why they have ended, and to end."""


@dataclass(frozen=True)
class Part:
    """What one process has: `own` of the parts of a plan. switches: numbers by name."""

    own: int
    plan: Plan
    switches: dict[str, int]

    def has(self, switch: str) -> bool:
        return self.plan.homes[self.switches[switch]] == self.own


@dataclass(frozen=True)
class Cost:
    """What dividing cost in one part. windows: in which the parts ran on their own. frames, sent_bytes, messages: that went to others. waited_s: for others. cpu_s: of the process, from
    the division to its end."""

    switches: int
    windows: int
    frames: int
    sent_bytes: int
    messages: int
    waited_s: float
    cpu_s: float
    lookahead_s: float


@dataclass(frozen=True)
class Done(Generic[_Result]):
    """What the parts have brought back, in their order."""

    results: list[_Result]
    costs: list[Cost]


@dataclass
class _Child:
    """One that runs. said: ("done", result, cost), or ("failed", exception, its traceback), as soon as it has said so."""

    process: ForkProcess
    pipe: Connection
    said: tuple[Any, ...] | None = field(default=None)


def said(costs: Sequence[Cost], parts: str) -> str:
    """About a run that is over. parts: what they are, such as processes."""
    frames, waited = sum(cost.frames for cost in costs), ", ".join(f"{cost.waited_s:.1f}" for cost in costs)
    first = costs[0]
    return (
        f"{len(costs)} {parts}: {first.windows} windows of {first.lookahead_s * 1e6:g} us or more, {frames} packets between {parts}; "
        f"waited {waited} s; processor {', '.join(f'{cost.cpu_s:.1f}' for cost in costs)} s"
    )


def obstacle() -> str:
    """Why this system cannot divide a network; "" if it can."""
    return "" if sys.platform == "linux" else "needs Linux, where processes are forked with the network"


def run(network: Network, plan: Plan, switches: Sequence[str], work: Callable[[Part], _Result]) -> Done[_Result]:
    """Calls `work` in one process for each part, in each with the network as its part; the first is this one. What `work` raises in one of them ends all, and is
    raised here. RunFailed: a process was ended."""
    import multiprocessing  # which other runs need not load

    from fairlane import native

    context = multiprocessing.get_context("fork")
    numbers = {name: number for number, name in enumerate(switches)}
    mesh = native.Mesh(plan.parts)
    children: list[_Child] = []

    def apart(own: int) -> tuple[_Result, Cost]:
        before = cpu_s()
        network.partition(own, list(plan.homes), mesh)
        result = work(Part(own, plan, numbers))
        return result, cost_of(network, plan.homes.count(own), cpu_s() - before)

    def in_child(own: int, pipe: Connection) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends all
        for number in ENDING:
            signal.signal(number, signal.SIG_DFL)
        _die_with_parent()
        try:
            said: tuple[Any, ...] = ("done", *apart(own))
        except BaseException as error:  # noqa: BLE001 - the first process raises it
            said = ("failed", portable(error), "".join(traceback.format_exception(error)))
        pipe.send(said)
        pipe.close()

    try:
        for own in range(1, plan.parts):
            here, there = context.Pipe(duplex=False)
            process = context.Process(target=in_child, args=(own, there), name=f"fairlane-part-{own}", daemon=True)
            process.start()
            there.close()
            children.append(_Child(process, here))
        try:
            first, cost = apart(0)
        except ConnectionError:
            failure = _why(children, plan, switches)
            raise failure from failure.__cause__
        _listen(children, None)
        for child in children:
            if child.said is None or child.said[0] == "failed":
                failure = _why(children, plan, switches)
                raise failure from failure.__cause__
        said = [child.said for child in children if child.said is not None]
        return Done([first, *(one[1] for one in said)], [cost, *(one[2] for one in said)])
    finally:
        mesh.close()
        _end(children)


def cost_of(network: Network, switches: int, used_s: float) -> Cost:
    counts = network.partition_counts()
    sent = int(counts["windows"]), int(counts["frames"]), int(counts["bytes"]), int(counts["messages"])
    return Cost(switches, *sent, counts["waited_s"], used_s, counts["lookahead_ns"] / 1e9)


def cpu_s() -> float:
    import resource  # which Windows does not have

    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _die_with_parent() -> None:
    """Even where that is killed."""
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG, prctl(2)
    if os.getppid() == 1:
        os._exit(1)


def portable(error: BaseException) -> BaseException:
    """It, if it can be sent; otherwise RunFailed that says the same."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - pickling a user's own class may raise anything
        return RunFailed(f"{type(error).__name__}: {error}")
    return error


class Elsewhere(Exception):
    """The traceback of another process, shown as the cause of what is raised in this one."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def _listen(children: Sequence[_Child], patience_s: float | None) -> None:
    """Until all have said something or ended. patience_s: None waits for them."""
    from multiprocessing.connection import wait

    left: dict[Any, _Child] = {child.pipe: child for child in children if child.said is None}
    while left:
        heard = wait(list(left), patience_s)
        if not heard:
            return
        for pipe in heard:
            child = left.pop(pipe)
            try:
                child.said = child.pipe.recv()
            except (EOFError, OSError):
                continue
            if child.said is not None and child.said[0] == "failed" and patience_s is None:
                patience_s = _GRACE_S  # the others notice


def _why(children: Sequence[_Child], plan: Plan, switches: Sequence[str]) -> BaseException:
    """What ended a run: an exception of one part, not that it missed another; or a process that did not come so far."""
    _listen(children, _GRACE_S)
    failed: list[tuple[BaseException, str]] = [child.said[1:] for child in children if child.said is not None and child.said[0] == "failed"]
    for error, text in failed:
        if not isinstance(error, ConnectionError):
            error.__cause__ = Elsewhere(text)
            return error
    for part, child in enumerate(children, 1):
        if child.said is None:
            child.process.join(_GRACE_S)
            code = child.process.exitcode
            how = (
                "does not answer"
                if code is None
                else f"was ended by {signal.Signals(-code).name}"
                if code < 0
                else f"ended with code {code}"
            )
            names = [name for name, home in zip(switches, plan.homes) if home == part]
            which = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}, {len(names)} switches"
            return RunFailed(f"The process {child.process.pid} of part {part} of the network ({which}) {how}: the run ended with it.")
    return RunFailed("The processes of the network's parts have lost each other.")


def _end(children: Sequence[_Child]) -> None:
    """Nothing stays behind."""
    for child in children:
        child.pipe.close()
        if child.process.is_alive():
            child.process.join(0.2 if child.said is not None else 0)
        if child.process.is_alive():
            child.process.kill()
        child.process.join()
        child.process.close()

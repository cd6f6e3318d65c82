"""`fairlane doctor --measure`: the highest rate and number of flows with valid runs in real time on this machine.

There are two runs on Mininet. In the first, sources of a constant rate join one after the other, so each step multiplies the packets a second by the square
root of 2. In the second, adaptive flows join and double in number. Each step is a separate window with the measures and limits of any run
(`fairlane.results.fidelity`). The bound is the last step before the first that is not true. One doubtful step between two true ones is ignored:
in a step of a second, a delay of 10 ms already affects one frame in a hundred.
"""

from __future__ import annotations

import datetime
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairlane import capacity
from fairlane.capacity import Bound, Capacity, Load
from fairlane.experiments import loader
from fairlane.experiments.model import Experiment
from fairlane.fabrics import mininet_run, raw, targets
from fairlane.fabrics.interrupts import interruptible
from fairlane.fabrics.outcome import Outcome
from fairlane.fabrics.progress import Silent
from fairlane.fabrics.switch_process import Target
from fairlane.inputs import located_toml
from fairlane.results import fidelity
from fairlane.results.fidelity import Verdict

_PACKET_BYTES = 1000
_SWITCHES = 2
_FIRST_BPS = 10e6
_RATE_STEPS, _RATE_STEP_S = 13, 1.0
_FLOW_STEPS, _FLOW_STEP_S = (4, 8, 16, 32), 2.5
_DELIVERED = 0.97
"""Of what a constant source offers, so much must arrive, for no queue is full."""

_TOPOLOGY = """title = "{title}"
bottleneck = "s1->s2"
duration_s = {duration_s}
[topology]
kind = "dumbbell"
pairs = {pairs}
bottleneck = {{ rate_bps = {rate_bps}, delay_s = 0.01, queue_packets = 10000, queue = "droptail" }}
access = {{ rate_bps = {rate_bps}, delay_s = 0.0, queue_packets = 10000 }}
"""
_FLOWS = """[[flows]]
name = "step-{step}"
kind = "{kind}"
count = {count}
start_s = {start_s}
parameters = {{ {parameters} }}
"""


@dataclass(frozen=True)
class Step:
    """begin_s, end_s: of the window in its run. offered_bps: of constant sources in sum, 0 of adaptive ones."""

    begin_s: float
    end_s: float
    load: Load
    offered_bps: float = 0.0


@dataclass(frozen=True)
class Judged:
    step: Step
    verdict: Verdict
    why: str


def rates() -> tuple[Experiment, list[Step]]:
    """Constant sources that join: each step has the square root of 2 times the rate of the one before."""
    steps, groups, before = [], [], 0.0
    for number in range(_RATE_STEPS):
        offered = _FIRST_BPS * 2 ** (number / 2)
        start = number * _RATE_STEP_S
        groups.append(
            _FLOWS.format(
                step=number, kind="cbr", count=1, start_s=start, parameters=f"rate_bps = {offered - before:.1f}, max_rate_bps = 1e10"
            )
        )
        packets = offered / (8 * _PACKET_BYTES)
        # The first fifth of a second belongs to the start of a process.
        steps.append(Step(start + 0.2, start + _RATE_STEP_S, Load(packets * _SWITCHES, number + 1), offered))
        before = offered
    return _experiment("doctor-rates", groups, _RATE_STEPS, 1e10, _RATE_STEPS * _RATE_STEP_S), steps


def flows() -> tuple[Experiment, list[Step]]:
    """Adaptive flows that join, each step with twice as many as before."""
    steps, groups, before = [], [], 0
    for number, count in enumerate(_FLOW_STEPS):
        start = number * _FLOW_STEP_S
        groups.append(_FLOWS.format(step=number, kind="rap", count=count - before, start_s=start, parameters=""))
        steps.append(Step(start + 0.5, start + _FLOW_STEP_S, Load(0.0, count)))
        before = count
    return _experiment("doctor-flows", groups, before, 2e7, len(_FLOW_STEPS) * _FLOW_STEP_S), steps


def _experiment(name: str, groups: Sequence[str], pairs: int, rate_bps: float, duration_s: float) -> Experiment:
    text = _TOPOLOGY.format(title=name, duration_s=duration_s, pairs=pairs, rate_bps=rate_bps) + "".join(groups)
    return loader.from_document(located_toml.parse(text, name), name)


def measure(target: Target, first_grpc_port: int, say: Callable[[str], None]) -> Capacity:
    """Run and judge; about a minute. Refusal and RunFailed as of any run on Mininet."""
    load = os.getloadavg()[0]
    say(f"{capacity.mark()}; load {load:.1f}; target {target}")
    found = {}
    plans: tuple[tuple[str, Callable[[], tuple[Experiment, list[Step]]], Callable[[Load], float]], ...] = (
        ("hops_per_s", rates, lambda load: load.hops_per_s),
        ("flows", flows, lambda load: load.flows),
    )
    for what, plan, of in plans:
        experiment, steps = plan()
        judged = _run(experiment, steps, target, first_grpc_port, say)
        for j in judged:
            rate = f"{j.step.offered_bps / 1e6:5.0f} Mb/s, {j.step.load.hops_per_s:7,.0f} packets/s at {_SWITCHES} switches"
            say(f"  {rate if what == 'hops_per_s' else f'{j.step.load.flows:3} flows'}: {j.verdict}{f' ({j.why})' if j.why else ''}")
        found[what] = bound([(of(j.step.load), j.verdict) for j in judged])
    return Capacity(datetime.datetime.now().astimezone().isoformat(timespec="seconds"), load, **found)


def bound(judged: Sequence[tuple[float, Verdict]]) -> Bound:
    """Of values in rising order and the verdict at each. A single doubtful one between two true ones is passed over."""
    true = 0.0
    for place, (value, verdict) in enumerate(judged):
        hiccup = verdict == "doubtful" and 0 < place < len(judged) - 1 and judged[place + 1][1] == "true" and judged[place - 1][1] == "true"
        if verdict == "true":
            true = value
        elif not hiccup:
            break
    invalid = next((value for value, verdict in judged if verdict == "invalid" and value > true), None)
    return Bound(true, invalid, judged[-1][0])


def _run(experiment: Experiment, steps: Sequence[Step], target: Target, first_grpc_port: int, say: Callable[[str], None]) -> list[Judged]:
    say(f"{experiment.id}: {experiment.duration_s:g} s on Mininet, {len(experiment.flows)} flows in the end")
    toolchain = targets.resolve(target.name, experiment.topology)
    with tempfile.TemporaryDirectory(prefix="fairlane-doctor-") as name, interruptible():
        folder = Path(name)
        outcome = mininet_run.run(experiment, mininet_run.Options(toolchain, first_grpc_port, rtt_check=False), folder, Silent())
        return [judge(folder, experiment, outcome, step) for step in steps]


def judge(folder: Path, experiment: Experiment, outcome: Outcome, step: Step) -> Judged:
    """One step of a run whose raw records are in `folder`."""
    found = fidelity.of_window(folder, experiment, outcome, step.begin_s, step.end_s)
    reasons = found.reasons
    if step.offered_bps and (delivered := _delivered_bps(folder, experiment, outcome, step) / step.offered_bps) < _DELIVERED:
        what = f"{100 * delivered:.0f} % of the packets arrive, and no queue is full"
        return Judged(step, "invalid", "; ".join([what, *(r.what for r in reasons[:1])]))
    return Judged(step, found.verdict, reasons[0].what if reasons else "")


def _delivered_bps(folder: Path, experiment: Experiment, outcome: Outcome, step: Step) -> float:
    """What the last switch sent to receivers, in IP packets as sources count them."""
    switch = experiment.topology.switches[-1]
    rows = raw.switch_counters(folder, switch)
    to_hosts = [p.number for p in experiment.topology.ports()[switch] if p.peer in experiment.topology.hosts]
    rows["unix_s"] -= outcome.timing.begin_s
    rows = rows[(rows["unix_s"] >= step.begin_s) & (rows["unix_s"] <= step.end_s) & rows["port"].isin(to_hosts)]
    if rows.empty:
        return 0.0
    groups = rows.groupby("port")
    seconds = rows["unix_s"].max() - rows["unix_s"].min()
    packets = (groups["tx_packets"].last() - groups["tx_packets"].first()).sum()
    return float(packets * _PACKET_BYTES * 8 / seconds) if seconds > 0 else 0.0

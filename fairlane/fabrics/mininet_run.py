"""The run loop on the Mininet fabric: builds the network, starts control plane and flows, watches, measures, cleans up."""

from __future__ import annotations

import contextlib
import math
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlane import errors, python_child
from fairlane.controller import changes as controller_changes
from fairlane.controller.timetable import NS
from fairlane.errors import RunFailed
from fairlane.experiments.model import Experiment
from fairlane.fabrics import awake, control_plane, descriptors, flows, leftovers, preflight, raw, targets
from fairlane.fabrics.flows import Timing
from fairlane.fabrics.leftovers import RunRecord
from fairlane.fabrics.link_plans import LinkPlans
from fairlane.fabrics.monitor import Monitor
from fairlane.fabrics.outcome import Event, Outcome
from fairlane.fabrics.own_headers import Headers, program_file
from fairlane.fabrics.processes import Process, spawn, stop_all
from fairlane.fabrics.progress import Progress
from fairlane.fabrics.raw import json_lines
from fairlane.fabrics.supervisor import Supervisor
from fairlane.fabrics.targets import Toolchain

if TYPE_CHECKING:
    from fairlane.fabrics.mininet_builder import MininetNetwork

_CONTROLLER_TIMEOUT_S = 20.0
# Two processes for each flow are started before the first packet; each takes about so long on one core (seconds).
_START_PER_PROCESS_S = 0.3
_POLL_S = 0.2
# Each pair of hosts takes a process.
_MOST_PINGS = 100
# Mininet's shell of it: both ends of a terminal. Flows are processes, with files of their own.
_FILES_OF_A_NODE = 2
# The controller's file of changes.
_CHANGES = "changes.json"


@dataclass(frozen=True)
class Options:
    """restart_after_s: seconds before a dead switch or controller is restarted. rtt_check: end the run when a path's measured
    round trip differs from the declared one. keep_awake: loops that keep the processors from sleeping; None: on a virtual machine. pcap: record all frames of all switch ports."""

    toolchain: Toolchain
    first_grpc_port: int
    restart_after_s: float = 1.0
    rtt_check: bool = True
    keep_awake: bool | None = None
    pcap: bool = False


@contextlib.contextmanager
def network(
    experiment: Experiment, options: Options, folder: Path, say: Callable[[str], None]
) -> Iterator[tuple[MininetNetwork, Process, Callable[[], Process]]]:
    """The running network with its controller, always cleaned up at the end: (network, controller, and the function that starts a controller again)."""
    preflight.check_machine(experiment)
    nodes = len(experiment.topology.nodes)
    descriptors.provide(nodes * _FILES_OF_A_NODE, f"{_FILES_OF_A_NODE} of each of {nodes} hosts and switches")
    for what in leftovers.clean():
        say(f"removed the leftovers of a dead run: {what}")
    grpc_ports = {name: options.first_grpc_port + i for i, name in enumerate(experiment.topology.switches)}
    preflight.check_ports(list(grpc_ports.values()), options.toolchain.target)
    json_path, p4info_path = targets.compiled(experiment, options.toolchain, folder)
    plane = control_plane.plane_of(experiment, p4info_path)
    if sentence := plane.sentence(experiment):
        say(sentence)
    headers = Headers(json_path, experiment.topology.ip)
    for flow in experiment.flows:
        headers.of(flow)
    # Mininet is imported only where it is needed: it may not be installed.
    from fairlane.fabrics.mininet_builder import FabricError, MininetNetwork

    record = RunRecord.create(f"fairlane {experiment.id}", ports=list(grpc_ports.values()))
    fabric = None
    controllers: list[Process] = []
    try:
        try:
            fabric = MininetNetwork(
                experiment.topology,
                folder=folder,
                record=record,
                toolchain=options.toolchain,
                first_grpc_port=options.first_grpc_port,
                seed=experiment.seed,
                pcap=options.pcap,
                host_tcp=flows.host_tcp(experiment),
                count_flows=any(flow.commands is not None for flow in experiment.flows),
                packet_sizes=flows.packet_sizes(experiment),
                plans=LinkPlans.of(experiment),
                program=json_path,
            )
            for sentence in fabric.sentences():
                say(sentence)
            fabric.start()
        except FabricError as error:
            raise RunFailed(str(error)) from error
        control_plane.write_for(plane, experiment, fabric.addressing, grpc_ports, (json_path, p4info_path), folder)

        def start_controller() -> Process:
            argv = [*python_child.of_module("fairlane.controller"), *plane.options(folder), "--out", str(folder)]
            argv += ["--changes", str(folder / _CHANGES)]
            controllers.append(spawn("controller", argv, folder / "controller.log"))
            record.add(controllers[-1].pid)
            return controllers[-1]

        controller = start_controller()
        _wait_for_controller(controller, folder)
        yield fabric, controller, start_controller
    finally:
        stop_all(controllers)
        if fabric is not None:
            fabric.stop()
        record.release()


def begin_changes(experiment: Experiment, fabric: MininetNetwork, controller: Process, folder: Path, begin_ns: int) -> None:
    """Switches and controller learn when the run begins, from which the times of all changes count."""
    from fairlane.fabrics.mininet_builder import FabricError

    try:
        fabric.begin_links(begin_ns)
    except FabricError as error:
        raise RunFailed(str(error)) from error
    changes = control_plane.changes(experiment, begin_ns)
    if changes:
        (folder / _CHANGES).write_text(controller_changes.to_json(changes) + "\n")
        controller.signal(signal.SIGHUP)


def run(experiment: Experiment, options: Options, folder: Path, progress: Progress) -> Outcome:
    """Run an experiment; its raw records are in `folder` afterwards. Refusal: nothing was started. RunFailed: it ended early."""
    say = progress.say
    late = [f.name for f in experiment.flows if f.start_s >= experiment.duration_s]
    if late:
        say(f"note: {', '.join(late)} would start after the end of a run of {experiment.duration_s:g} s, and never send")
    with network(experiment, options, folder, say) as (fabric, controller, start_controller), ExitStack() as stack:
        outcome = Outcome(Timing(0.0, 0.0), shaping="; ".join(fabric.sentences()))
        if awake.on_virtual_machine() if options.keep_awake is None else options.keep_awake:
            stack.callback(stop_all, [spawn("idle loops", [sys.executable, "-IS", awake.__file__], folder / "awake.log")])
            say(
                "loops of the lowest priority keep the processors awake: the host of a virtual machine takes idle ones away (--no-keep-awake)"
            )
        try:
            outcome.round_trips = _check_round_trips(fabric, experiment, options.rtt_check, say)
        except RunFailed:
            _check_alive(controller)  # which is why nobody answers
            raise
        waiting = Waiting()

        def happened(event: Event) -> None:
            outcome.events.append(event)
            say(event.what)

        supervisor = Supervisor(options.restart_after_s, happened)
        supervisor.watch("the controller", controller, start_controller, hopeless=errors.BAD_INPUT)
        for switch in fabric.switches:
            assert switch.process is not None, "it is ready"
            supervisor.watch(f"switch {switch.name}", switch.process, partial(_again, partial(fabric.restart, switch)))
        if fabric.delays is not None:
            supervisor.watch("the delay lines' process", fabric.delays, lambda: _again(fabric.start_delays))
        outcome.timing = _timing(experiment)
        begin_changes(experiment, fabric, controller, folder, round(outcome.timing.begin_s * NS))
        agents = _start_flows(fabric, experiment, outcome.timing, folder)
        try:
            _watch(experiment, outcome.timing, supervisor, agents, Monitor(experiment, folder), progress, happened, waiting)
        finally:
            progress.close()
            stop_all(agent.process for agent in agents)
        outcome.waiting, outcome.stolen = waiting.parts(), waiting.stolen()
        if experiment.corrupts:
            raw.write_wrong_checksums(folder, {name: fabric.wrong_checksums(name) for name in experiment.topology.machines})
        try:
            if LinkPlans.of(experiment).keeps_round_trips:
                outcome.round_trips_after = _round_trips(fabric, experiment)
        except RunFailed as error:
            happened(Event(time.time(), f"a path no longer answers: {error}"))
    outcome.delay_lines = fabric.precision()
    if outcome.delay_lines is not None:
        say(outcome.delay_lines.sentence())
    return outcome


_STEAL = 7
"""The place of "steal" in the first line of /proc/stat (proc_stat(5))."""


def _processor_times() -> list[int]:
    """user, nice, system, idle, iowait, irq, softirq, steal of all processors, in ticks; what follows is part of user and nice."""
    with open("/proc/stat") as file:
        return [int(word) for word in file.readline().split()[1 : _STEAL + 2]]


@dataclass
class Waiting:
    """Follows how long processes are ready and have no processor. first, last: (seconds on a clock that does not step, seconds waited)
    at the first and last look, by name; a process that is started again counts from its start. begun: the processors' times then."""

    first: dict[str, tuple[int, float, float]] = field(default_factory=dict)
    last: dict[str, tuple[float, float]] = field(default_factory=dict)
    next_s: float = 0.0
    begun: list[int] = field(default_factory=_processor_times)

    def look(self, processes: Iterable[tuple[str, Process]]) -> None:
        """Once a second: it reads a file for each thread."""
        now = time.monotonic()
        if now < self.next_s:
            return
        self.next_s = now + 1.0
        for name, process in processes:
            waited = process.waited_s()
            if name not in self.first or self.first[name][0] != process.pid:
                self.first[name] = (process.pid, now, waited)
            elif process.exit_code() is None:
                self.last[name] = (now, waited)

    def parts(self) -> dict[str, float]:
        """The part of the time looked at that each process waited; several threads may wait at once, which counts once at most."""
        found = {}
        for name, (_, first_s, waited) in self.first.items():
            now, then = self.last.get(name, (first_s, waited))
            if now > first_s:
                found[name] = min(1.0, max(0.0, (then - waited) / (now - first_s)))
        return found

    def stolen(self) -> float:
        """The part of the processors' time that the host of a virtual machine gave to others, 0 to 1."""
        spent = [now - then for now, then in zip(_processor_times(), self.begun)]
        return spent[_STEAL] / sum(spent) if sum(spent) else 0.0


def _again(start: Callable[[], Process]) -> Process:
    """Start something that had died. RunFailed when it cannot be started."""
    from fairlane.fabrics.mininet_builder import FabricError

    try:
        return start()
    except FabricError as error:
        raise RunFailed(str(error)) from error


def _check_alive(controller: Process) -> None:
    """RunFailed when a user's own file has ended it, with its sentence."""
    if controller.exit_code() == errors.BAD_INPUT:
        raise RunFailed(controller.last_words(1))


def _wait_for_controller(controller: Process, folder: Path) -> None:
    deadline = time.monotonic() + _CONTROLLER_TIMEOUT_S
    while time.monotonic() < deadline:
        if any(e.get("event") == "ready" for e in json_lines(folder / "controller.jsonl")):
            return
        _check_alive(controller)
        if controller.exit_code() is not None:
            raise _no_controller(controller, f"the controller {controller.how_it_ended()} before the switches were ready")
        time.sleep(0.05)
    raise _no_controller(controller, f"the controller was not ready after {_CONTROLLER_TIMEOUT_S:g} s")


def _no_controller(controller: Process, what: str) -> RunFailed:
    words = controller.last_words(8)
    lacking = errors.used_up_in(words)
    return RunFailed(f"{what}. {lacking}", errors.NO_SPACE) if lacking else RunFailed(f"{what}:\n{words}")


def _check_round_trips(fabric: MininetNetwork, experiment: Experiment, enforce: bool, say: Callable[[str], None]) -> list[dict[str, Any]]:
    trips = _round_trips(fabric, experiment)
    wrong = [t for t in trips if not t["holds"]]
    worst = max(trips, key=lambda t: abs(t["measured_s"] - t["declared_s"]))
    if wrong:
        what = "; ".join(
            f"{t['sender']} -> {t['receiver']}: declared {t['declared_s'] * 1e3:.2f} ms, measured {t['measured_s'] * 1e3:.2f} ms"
            for t in wrong[:5]
        )
        if enforce:
            raise RunFailed(
                f"round trips are off by more than 20% and 1 ms: {what}. The machine is too busy, or a link's delay is not in "
                "force; --no-rtt-check runs anyway, and the results record it."
            )
        say(f"warning: round trips are off: {what}")
    else:
        say(
            f"round trips as declared: {len(trips)} paths, largest difference {abs(worst['measured_s'] - worst['declared_s']) * 1e3:.2f} ms"
            f" of {worst['declared_s'] * 1e3:.2f} ms"
        )
    return trips


def _round_trips(fabric: MininetNetwork, experiment: Experiment) -> list[dict[str, Any]]:
    """Of each path between hosts that have a flow: `round_trips` of summary.json. RunFailed when there is no answer."""
    from fairlane.fabrics.mininet_builder import FabricError

    try:
        trips = fabric.round_trips(_some_pairs(experiment))
    except FabricError as error:
        raise RunFailed(str(error)) from error
    return [
        {"sender": t.sender, "receiver": t.receiver, "declared_s": t.declared_s, "measured_s": t.measured_s, "holds": t.holds}
        for t in trips
    ]


def _some_pairs(experiment: Experiment) -> list[tuple[str, str]]:
    """Of the pairs of hosts that have a flow, so many as can be pinged at once, evenly over all of them."""
    pairs = list(dict.fromkeys((f.sender, r) for f in experiment.flows for r in f.all_receivers))
    return pairs[:: math.ceil(len(pairs) / _MOST_PINGS)]


def _timing(experiment: Experiment) -> Timing:
    """Time for all programs to start, then a whole observation interval without pings, then a phase within the interval that
    the seed draws: joins must not fall on the intervals' edges."""
    interval = experiment.settings.control.interval_s
    earliest = time.time() + 1.0 + flows.processes(experiment) * _START_PER_PROCESS_S / max(1, os.cpu_count() or 1)
    phase = random.Random(f"{experiment.seed}/phase").uniform(0.1, 0.9)
    begin = (math.floor(earliest / interval) + 1 + phase) * interval
    return Timing(begin, begin + experiment.duration_s)


@dataclass(frozen=True)
class Agent:
    """A process on a host. end_s: Unix time at which it is to end. may_end: before that, with exit code 0."""

    process: Process
    end_s: float
    may_end: bool

    def is_lost(self) -> bool:
        code = self.process.exit_code()
        return code is not None and time.time() < self.end_s and not (self.may_end and code == 0)


def _start_flows(fabric: MininetNetwork, experiment: Experiment, timing: Timing, folder: Path) -> list[Agent]:
    """Each process on a host."""
    agents = []
    marks_s, switch_program = (0.0, *experiment.window_s), program_file(experiment, folder)
    for index, flow in enumerate(experiment.flows):
        if flow.start_s >= experiment.duration_s or flows.is_file(flow):
            continue
        logs = {role: str(folder / f"{flow.name}.{role}.jsonl") for role in flows.record_roles(flow)}
        for program in flows.programs(
            flow,
            fabric.addressing.hosts,
            timing,
            experiment.seed * 1000 + index,
            logs,
            experiment.seed,
            marks_s,
            switch_program,
        ):
            process = fabric.spawn(program.host, program.name, program.argv, folder / f"{program.name}.log", program.with_children)
            agents.append(Agent(process, timing.stop_s(flow), program.may_end))
    for program in flows.file_programs(experiment, fabric.addressing.hosts, timing, folder):
        process = fabric.spawn(program.host, program.name, program.argv, folder / f"{program.name}.log")
        agents.append(Agent(process, timing.end_s, program.may_end))
    return agents


def _watch(
    experiment: Experiment,
    timing: Timing,
    supervisor: Supervisor,
    agents: list[Agent],
    monitor: Monitor,
    progress: Progress,
    happened: Callable[[Event], None],
    waiting: Waiting,
) -> None:
    """Until the flows have ended."""
    lost: set[str] = set()
    while time.time() < timing.end_s + 0.5:
        supervisor.poll()
        if timing.begin_s <= time.time() < timing.end_s:
            waiting.look([*((w.what, w.process) for w in supervisor.watched), *((a.process.name, a.process) for a in agents)])
        for agent in agents:
            process = agent.process
            if process.name not in lost and agent.is_lost():
                lost.add(process.name)
                happened(
                    Event(
                        time.time(),
                        f"{process.name} {process.how_it_ended()} early; the run continues without it"
                        f" (last output: {process.last_words(2) or 'nothing'})",
                    )
                )
        if len(lost) == len(agents):
            raise RunFailed("no flow is left: the run ends")
        progress.show(monitor.snapshot(time.time() - timing.begin_s))
        time.sleep(_POLL_S)
    deadline = time.monotonic() + 8.0
    for agent in agents:
        agent.process.wait(max(0.0, deadline - time.monotonic()))

"""The control plane of a run, Fairlane's or the user's own, and its configuration from experiment and topology."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fairlane import probes
from fairlane.controller import config as controller_config
from fairlane.controller import names
from fairlane.controller.als import AlsPlane, network_of
from fairlane.controller.changes import AlsChange, Change, LinkChange, RateChange, RoutesChange
from fairlane.controller.config import Config, Hop, Port, Route, Source, Switch
from fairlane.controller.p4info import P4Info
from fairlane.controller.plane import ControlPlane, own_file
from fairlane.controller.plane import network as plane_network
from fairlane.controller.plane.engine import PlaneError
from fairlane.controller.plane.network import PlaneConfig
from fairlane.controller.timetable import NS
from fairlane.errors import ProgramRefused, Refusal
from fairlane.experiments import loader, paths
from fairlane.experiments.model import Control, Experiment
from fairlane.inputs import schema
from fairlane.inputs.located_toml import Document, KeyPath, show
from fairlane.inputs.own_python import OwnFault
from fairlane.schemes import registry
from fairlane.topologies import addressing as addresses
from fairlane.topologies import equal_cost
from fairlane.topologies.addressing import Addressing
from fairlane.topologies.model import Link

PROGRAM_KEY, PLANE_KEY = ("control", loader.PROGRAM), ("control", loader.PLANE)
CONFIGURATION, NETWORK = "controller.json", "network.json"
_OF_ANY_PLANE = (*loader.OWN_FILES, "interval_s", "reroute_s")
"""Keys of [control] that have an effect without Fairlane's controller."""


def configuration(experiment: Experiment, addressing: Addressing, grpc_ports: dict[str, int], json: Path, p4info: Path) -> Config:
    """grpc_ports: of each switch, on 127.0.0.1. Device ids are 1, 2, ... in the order of the topology's switches."""
    switches = []
    ports = experiment.topology.ports()
    switch_names = set(experiment.topology.switches)
    control = experiment.settings.control
    everywhere = experiment.everywhere
    guarded = any(scheme.of_source for scheme in experiment.schemes)
    arrivals = (
        addresses.arrivals(experiment.topology, [failed for _, failed in paths.history(experiment)])
        if guarded
        else dict.fromkeys(experiment.topology.switches, ())
    )
    routers = control.multicast_router_links
    # At some time of the run.
    spread = {name: any(len(r.hops) > 1 for r in addressing.routes[name]) for name in experiment.topology.switches}
    for change in _reroutes(experiment, 0):
        spread[change.switch] |= any(r.others for r in change.routes)
    known = {f"{p.node}->{p.peer}" for name in switch_names for p in ports[name] if p.peer in switch_names}
    for link in routers:
        if link not in known:
            raise Refusal(
                f"control.multicast_router_links: no link {link!r} from one switch to the next; there are {', '.join(sorted(known))}."
            )
    for index, name in enumerate(experiment.topology.switches):
        switches.append(
            Switch(
                name=name,
                device_id=index + 1,
                address=f"127.0.0.1:{grpc_ports[name]}",
                ports=tuple(
                    Port(
                        p.number,
                        round(p.link.rate_bps),
                        (*_schemes(p.link), *(everywhere if name not in control.plain_switches else ())),
                        als=name not in control.plain_switches,
                        peer=p.peer if p.peer in switch_names else "",
                        peer_port=p.peer_port if p.peer in switch_names else 0,
                        multicast_router=f"{name}->{p.peer}" in routers,
                    )
                    for p in ports[name]
                ),
                routes=tuple(map(_route, addressing.routes[name])),
                sources=tuple(Source(addressing.hosts[host].ip, port) for host, port in arrivals[name]),
                seed=equal_cost.seed_of(experiment.seed, name) if spread[name] else 0,
            )
        )
    _check_changes(experiment)
    return Config(str(p4info), str(json), tuple(switches), control.utilisation_target, control.interval_s)


def _route(route: addresses.Route) -> Route:
    first, *others = (Hop(hop.port, hop.src_mac, hop.dst_mac) for hop in route.hops)
    return Route(route.prefix, first.port, first.src_mac, first.dst_mac, tuple(others))


@dataclasses.dataclass(frozen=True)
class Plane:
    """The control plane of a run. file: the Python file of its class, as it was given; "" for none: the class is Fairlane's, or one that fills no table."""

    kind: type[ControlPlane] = AlsPlane
    file: str = ""

    @property
    def als(self) -> bool:
        """Whether it does what Fairlane's controller does."""
        return issubclass(self.kind, AlsPlane)

    def options(self, folder: Path) -> list[str]:
        """Of `python -m fairlane.controller`, with the files of `write_for`."""
        given = ["--control", self.file] if self.file else []
        given += ["--config" if self.als else "--network", str(folder / CONFIGURATION)]
        return [*given, "--network", str(folder / NETWORK)] if self.als and self.file else given

    def sentence(self, experiment: Experiment) -> str:
        """What a run says about it; "" for Fairlane's."""
        program = Path(experiment.settings.control.program).name
        if self.file:
            return f"control plane: {self.kind.__name__} of {self.file}"
        if self.als:
            return ""
        return f"control plane: none. {program} has no table of als.p4, and nothing fills its tables; --control FILE.py or plane of [control] does (docs/own-program.md)"


def plane_of(experiment: Experiment, p4info: Path) -> Plane:
    """A program without any table of als.p4 has the experiment's, or one that fills nothing. ProgramRefused names everything that a program for Fairlane's
    controller, or a class that is based on it, lacks, a setting that has no effect without that controller, or the fault of the control plane's file."""
    control = experiment.settings.control
    plane = Plane(ControlPlane)
    if control.plane:
        try:
            plane = Plane(own_file.load(Path(control.plane)), control.plane)
        except PlaneError as error:
            raise ProgramRefused(str(error), PLANE_KEY) from error
    if (plane.als or not control.plane) and check_program(experiment, p4info):
        return plane if plane.als else Plane()
    if plane.als:
        raise ProgramRefused(
            f"{control.plane}: {plane.kind.__name__} is based on AlsPlane, and {control.program} has no table of als.p4: base it on ControlPlane.",
            PLANE_KEY,
        )
    if probes.is_own(probes.source(control.program)):
        raise ProgramRefused(
            f"{control.plane}: {control.program} has Fairlane's controller. Name a P4 program of your own as well: "
            f"--program FILE.p4, or program of [control]; or base {plane.kind.__name__} on AlsPlane (docs/own-program.md).",
            PLANE_KEY,
        )
    _check_effective(experiment)
    return plane


def _check_effective(experiment: Experiment) -> None:
    """ProgramRefused: a setting is for als.p4 and Fairlane's controller, and the experiment has neither."""
    settings, usual = experiment.settings, schema.members(Control())
    without = f"and {settings.control.program} has neither"
    for link in experiment.topology.links:
        if link.aqm is not None:
            raise ProgramRefused(
                f"link {' - '.join(link.ends)}: the queue management {link.queue} is part of als.p4, and {settings.control.program} is another "
                'program: leave --queue out, or write queue = "droptail".',
                ("topology", link.queue or ""),
            )
    for name, value in schema.members(settings.control).items():
        if name not in _OF_ANY_PLANE and value != usual[name]:
            key = ("control", name)
            raise ProgramRefused(f"{show(key)} is for als.p4 and its controller, {without}: leave it out.", key)
    for i, change in enumerate(settings.changes):
        if change.als is not None:
            raise ProgramRefused(f"als of a switch is for als.p4 and its controller, {without}: leave this change out.", ("changes", i))
    for i, check in enumerate(settings.checks):
        if check.metric in loader.OF_CONTROLLER:
            raise ProgramRefused(
                f"{check.metric} comes from records of als.p4's controller, {without}: leave this check out.", ("checks", i, "metric")
            )


def check_program(experiment: Experiment, p4info: Path) -> bool:
    """Whether the experiment's program is for Fairlane's controller: it has some table of als.p4. ProgramRefused then names everything that it lacks, unless it
    and its schemes are Fairlane's own."""
    control = experiment.settings.control
    own_schemes = [scheme for scheme in experiment.schemes if not registry.is_own(scheme)]
    if probes.is_own(probes.source(control.program)) and not own_schemes:
        return True
    config = configuration(
        experiment, addresses.assign(experiment.topology), dict.fromkeys(experiment.topology.switches, 0), p4info, p4info
    )
    als_later = {change.switch for change, _, _ in experiment.changes if change.als}
    try:
        asked = names.asked(config, P4Info.read(p4info), als_later, joins=any(flow.receivers for flow in experiment.flows))
    except OwnFault as error:
        raise Refusal(str(error)) from error
    lacking = asked.lacking
    if not asked.tables:
        return False
    if lacking and probes.is_own(probes.source(control.program)):
        raise ProgramRefused(
            f"{', '.join(str(scheme.folder) for scheme in own_schemes)}: the P4 file and {registry.DESCRIPTION} differ in "
            f"{'a name' if len(lacking) == 1 else f'{len(lacking)} names'}:\n  "
            + "\n  ".join(lacking)
            + "\nGive both files the same names (docs/own-scheme.md)."
        )
    if lacking:
        raise ProgramRefused(
            f"{control.program} lacks {'a name' if len(lacking) == 1 else f'{len(lacking)} names'} of als.p4, which the controller fills or "
            f"reads in this experiment:\n  "
            + "\n  ".join(lacking)
            + "\nGive it these full names (docs/own-p4-program.md, docs/own-aqm.md), or "
            "run it with a control plane of its own: --control FILE.py, or plane of [control] (docs/own-program.md)."
        )
    return True


def plane_configuration(
    experiment: Experiment, addressing: Addressing, grpc_ports: dict[str, int], json: Path, p4info: Path
) -> PlaneConfig:
    """As `configuration`, for a control plane of one's own: the network itself."""
    topology = experiment.topology
    ports = topology.ports()
    nodes = []
    for index, name in enumerate(topology.switches):
        found = tuple(
            plane_network.Port(
                p.number,
                addressing.port_macs[name, p.number],
                p.peer,
                p.peer_port if p.peer in topology.switches else 0,
                round(p.link.rate_bps),
                p.link.delay_s,
                p.link.queue_packets,
            )
            for p in ports[name]
        )
        nodes.append(plane_network.Node(name, index + 1, f"127.0.0.1:{grpc_ports[name]}", found, addresses.toward(topology, name)))
    hosts = tuple(
        plane_network.Host(name, host.ip, host.mac, ports[name][0].peer, ports[name][0].peer_port, host.gateway_mac)
        for name, host in addressing.hosts.items()
    )
    return PlaneConfig(str(p4info), str(json), experiment.settings.control.interval_s, tuple(nodes), hosts)


def write_for(
    plane: Plane, experiment: Experiment, addressing: Addressing, grpc_ports: dict[str, int], program: tuple[Path, Path], folder: Path
) -> tuple[Config | None, PlaneConfig]:
    """What its controller needs, and the files of it in `folder`: `CONFIGURATION`, and for a user's class that is based on Fairlane's `NETWORK`. program: BMv2 JSON and P4Info."""
    config = configuration(experiment, addressing, grpc_ports, *program) if plane.als else None
    network = plane_configuration(experiment, addressing, grpc_ports, *program) if plane.file or config is None else network_of(config)
    write(config or network, folder / CONFIGURATION)
    if config is not None and plane.file:
        write(network, folder / NETWORK)
    return config, network


def located(
    error: ProgramRefused, document: Document | None, programs: Sequence[str | Path] = (), control: str | Path | None = None
) -> Exception:
    """The same refusal, at the option that gave the files, or at the key of the experiment's file. programs, control: as options gave them."""
    for key in (error.key, PROGRAM_KEY):
        if key == PROGRAM_KEY and programs:
            return ProgramRefused(f"--program {', '.join(map(str, programs))}: {error}", key)
        if key == PLANE_KEY and control is not None:
            return ProgramRefused(f"--control {error}", key)
        if document is not None and (place := _place(document, key)) is not None:
            return document.error(place, str(error))
    return error


def _place(document: Document, key: KeyPath) -> KeyPath | None:
    """Of a key in a document; of ("topology", QUEUE), the first key that gives a link this queue management."""
    if key in document.places:
        return key
    if key[0] != "topology":
        return None
    of_links = (path for path in document.places if path[0] == "topology")
    return next((path for path in of_links if path[-1] == key[-1] or (path[-1] == "queue" and document.at(path) == key[-1])), None)


def _schemes(link: Link) -> tuple[Any, ...]:
    """As the controller has them, whose thresholds may be packets instead of fractions of the buffer. Refusal when the P4 program's numbers cannot hold them."""
    if link.aqm is None:
        return ()
    try:
        of_port = link.aqm.of_port(link.queue_packets)
        list(of_port.entries(link.rate_bps))
    except ValueError as error:
        raise Refusal(f'link {" - ".join(link.ends)}: {error}; give a smaller queue_packets, or queue = "droptail".') from error
    return (of_port,)


def changes(experiment: Experiment, begin_ns: int) -> list[Change]:
    """What the controller is told of as it happens, as a router knows the rates of its own links, and whether it knows ALS. Of a link
    that follows a trace it is told, at the end of each observation interval, the mean of that interval."""
    found: list[Change] = []
    for change, node, port in experiment.changes:
        at_ns = begin_ns + round(change.at_s * NS)
        if change.als is not None:
            found.append(AlsChange(at_ns, node, change.als))
        elif change.up is not None:
            known_ns = at_ns + round(experiment.settings.control.reroute_s * NS)
            ends = experiment.topology.both_ends(node, port)
            found += [LinkChange(known_ns, p.node, p.number, change.up) for p in ends if p.node in experiment.topology.switches]
        if change.rate_bps is not None and node in experiment.topology.switches:
            found.append(RateChange(at_ns, node, port, round(change.rate_bps)))
    interval_s = experiment.settings.control.interval_s
    for node in experiment.topology.switches:
        for p in experiment.topology.ports()[node]:
            if p.trace is not None:
                means = p.trace.means_bps(interval_s, experiment.duration_s)
                found += [RateChange(begin_ns + round((start_s + interval_s) * NS), node, p.number, round(bps)) for start_s, bps in means]
    return sorted([*found, *_reroutes(experiment, begin_ns)], key=lambda change: change.at_ns)


def _reroutes(experiment: Experiment, begin_ns: int) -> Iterator[RoutesChange]:
    """Of each switch, the routes that follow failures of links."""
    topology, (_, *times) = experiment.topology, paths.history(experiment)
    before = addresses.routes(topology) if times else {}
    for since_s, failed in times:
        routes = addresses.routes(topology, failed)
        for switch in topology.switches:
            known = set(before[switch])
            if changed := tuple(_route(route) for route in routes[switch] if route not in known):
                yield RoutesChange(begin_ns + round(since_s * NS), switch, changed)
        before = routes


def _check_changes(experiment: Experiment) -> None:
    """Refusal when a rate that a port will have is none that its scheme can represent."""
    ports = {(p.node, p.number): p for name in experiment.topology.switches for p in experiment.topology.ports()[name]}
    for change in changes(experiment, 0):
        if isinstance(change, RateChange):
            port = ports[change.switch, change.port]
            _schemes(dataclasses.replace(port.link, rate_bps=float(change.rate_bps)))


def write(config: Config | PlaneConfig, path: Path) -> None:
    """The program's files, which are beside `path`, by their names: the same bytes wherever that is."""
    named = dataclasses.replace(config, p4info=Path(config.p4info).name, bmv2_json=Path(config.bmv2_json).name)
    text = controller_config.to_json(named) if isinstance(named, Config) else plane_network.to_json(named)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")

"""The controller's configuration file, from experiment and topology."""

from __future__ import annotations

from pathlib import Path

from fairlane.controller import config as controller_config
from fairlane.controller.config import Config, Port, Route, Switch
from fairlane.controller.red import Red as ControllerRed
from fairlane.errors import Refusal
from fairlane.experiments.model import Experiment
from fairlane.topologies.addressing import Addressing
from fairlane.topologies.model import Link


def configuration(experiment: Experiment, addressing: Addressing, grpc_ports: dict[str, int], json: Path, p4info: Path) -> Config:
    """grpc_ports: of each switch, on 127.0.0.1. Device ids are 1, 2, ... in the order of the topology's switches."""
    switches = []
    ports = experiment.topology.ports()
    names = set(experiment.topology.switches)
    control = experiment.settings.control
    routers = control.multicast_router_links
    known = {f"{p.node}->{p.peer}" for name in names for p in ports[name] if p.peer in names}
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
                        _red(p.link),
                        als=name not in control.plain_switches,
                        peer=p.peer if p.peer in names else "",
                        peer_port=p.peer_port if p.peer in names else 0,
                        multicast_router=f"{name}->{p.peer}" in routers,
                    )
                    for p in ports[name]
                ),
                routes=tuple(Route(r.prefix, r.port, r.src_mac, r.dst_mac) for r in addressing.routes[name]),
            )
        )
    return Config(str(p4info), str(json), tuple(switches), control.utilisation_target, control.interval_s)


def _red(link: Link) -> ControllerRed | None:
    """Thresholds as packets instead of fractions of the buffer. Refusal when the P4 program's numbers cannot hold them."""
    if link.red is None:
        return None
    red = link.red
    try:
        parameters = ControllerRed(
            red.minimum * link.queue_packets, red.maximum * link.queue_packets, red.max_p, red.weight, red.mean_packet_bytes
        )
        parameters.action_parameters(link.rate_bps)
    except ValueError as error:
        raise Refusal(f'link {" - ".join(link.ends)}: {error}; give a smaller queue_packets, or queue = "droptail".') from error
    return parameters


def write(config: Config, path: Path) -> None:
    path.write_text(controller_config.to_json(config) + "\n")

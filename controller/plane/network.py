"""The network as a control plane of one's own sees it: switches with their ports, and hosts. Plain data, which JSON carries to the controller's process."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlane.controller.config import ConfigError


@dataclass(frozen=True)
class Host:
    """ip: IP address, such as "10.0.1.1" or "fd00::a00:101". mac: its Ethernet address, such as "02:00:00:01:00:01". switch, port: where it is connected. gateway_mac: the
    Ethernet destination of every frame that it sends."""

    name: str
    ip: str
    mac: str
    switch: str
    port: int
    gateway_mac: str


@dataclass(frozen=True)
class Port:
    """A port of a switch, and the link in its direction. number: as in P4, from 1. mac: Ethernet address of the switch there. peer: name of the switch or host at
    the other end. peer_port: its port; 0 for a host. rate_bps: in bit/s. delay_s: one way. queue_packets: capacity of the port's queue. up: whether the link works."""

    number: int
    mac: str
    peer: str
    peer_port: int
    rate_bps: int
    delay_s: float
    queue_packets: int
    up: bool = True


@dataclass(frozen=True)
class Node:
    """A switch. address: of its P4Runtime server. toward: by name of each host, the port on the way there (least delay, then fewest hops)."""

    name: str
    device_id: int
    address: str
    ports: tuple[Port, ...]
    toward: Mapping[str, int]


@dataclass(frozen=True)
class PlaneConfig:
    """What a controller with a control plane of one's own needs. p4info, bmv2_json: files. interval_s: between two intervals' ends."""

    p4info: str
    bmv2_json: str
    interval_s: float
    switches: tuple[Node, ...]
    hosts: tuple[Host, ...]
    election_id: int = 1


def to_json(config: PlaneConfig) -> str:
    """The text that `read` reads back."""
    return json.dumps(dataclasses.asdict(config), indent=1)


def read(path: Path) -> PlaneConfig:
    """Files are named from the folder of `path`. ConfigError names the file that cannot be used."""
    try:
        raw: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return PlaneConfig(
            str(path.parent / raw["p4info"]),
            str(path.parent / raw["bmv2_json"]),
            float(raw["interval_s"]),
            tuple(Node(**{**node, "ports": tuple(Port(**port) for port in node["ports"])}) for node in raw["switches"]),
            tuple(Host(**host) for host in raw["hosts"]),
            int(raw["election_id"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path}: no configuration of a control plane: {error}") from error

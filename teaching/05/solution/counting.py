"""Lab 5: the control plane's part: how many connections a port has, and what each may have [ALS sec 3.1].

Exact: the switch reports each connection it sees in an observation interval (p4src/connections.p4), and the controller counts them. By
sketch: the switch only says how many of m slots were hit (connection_sketch.p4), and the controller estimates (Whang, Vander-Zanden, Taylor 1990,
section 3). n connections; u of m slots hit; t = n/m:

    n = -m ln(1 - u/m)                                          (1)
    standard error / n = sqrt(m (e^t - t - 1)) / n              (5)
"""

from __future__ import annotations

# BEGIN SOLUTION
import math
from collections import defaultdict

# END SOLUTION
from collections.abc import Iterable, Mapping

from fairlane.controller.connections import Connection


class ConnectionCounter:
    """Counts connections, pairs of source and destination address. Epochs are the numbers of observation intervals, which grow."""

    def __init__(self) -> None:
        # BEGIN SOLUTION
        self.seen: dict[int, set[Connection]] = {}
        self.open_from = 0
        # SKELETON
        # # TODO 1: its state. Then add and close.
        # pass
        # END SOLUTION

    def add(self, connection: Connection) -> None:
        """A report: epoch, egress_port, multicast_group (0: the packet went to egress_port), src_address, dst_address.

        The same connection may be reported several times, and a report may come late, when its interval is closed already.
        """
        # BEGIN SOLUTION
        if connection.epoch >= self.open_from:
            self.seen.setdefault(connection.epoch, set()).add(connection)
        # SKELETON
        # pass
        # END SOLUTION

    def close(self, epoch: int, group_ports: Mapping[int, Iterable[int]]) -> dict[int, int]:
        """n of each port in that interval. group_ports: the ports of each multicast group; a packet to a group leaves by all of them.

        What is not needed any more must not stay: a controller runs for months.
        """
        # BEGIN SOLUTION
        pairs: dict[int, set[tuple[int, int]]] = defaultdict(set)
        for connection in self.seen.pop(epoch, ()):
            ports = group_ports.get(connection.multicast_group, ()) if connection.multicast_group else (connection.egress_port,)
            for port in ports:
                pairs[port].add((connection.src_address, connection.dst_address))
        self.open_from = epoch + 1
        self.seen = {later: found for later, found in self.seen.items() if later > epoch}
        return {port: len(found) for port, found in pairs.items()}
        # SKELETON
        # return {}
        # END SOLUTION


def fair_rate_bps(bandwidth_bps: float, utilisation_target: float, connections: int) -> int:
    """R_f in whole bit/s, of bandwidth b, target utilisation U_l and n connections. A port without connections offers what one would get."""
    # BEGIN SOLUTION
    return int(bandwidth_bps * utilisation_target / max(connections, 1))
    # SKELETON
    # return 0  # TODO 2
    # END SOLUTION


def estimate(used: int, slots: int) -> float:
    """n from u and m, equation 1. When no slot is left, as though half a slot were."""
    # BEGIN SOLUTION
    return -slots * math.log(max(slots - used, 0.5) / slots)
    # SKELETON
    # return 0.0  # TODO 3
    # END SOLUTION


def standard_error(connections: float, slots: int) -> float:
    """Of the estimate, as part of n; equation 5. 0 for no connections."""
    # BEGIN SOLUTION
    if connections <= 0:
        return 0.0
    load = connections / slots
    return math.sqrt(slots * (math.expm1(load) - load)) / connections
    # SKELETON
    # return 0.0  # TODO 3
    # END SOLUTION

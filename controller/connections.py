"""Counts connections (pairs of source and destination addresses) per observation interval and output port."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Connection(NamedTuple):
    """One digest: a pair seen in interval `epoch` on its way to a port, or to a multicast group when that is not 0."""

    epoch: int
    egress_port: int
    multicast_group: int
    src_address: int
    dst_address: int


class ConnectionCounter:
    """Exact count from digests: each pair counts once per interval and port, for any number of reports.

    Memory is bounded by the pairs of two intervals: a report about an interval that is already closed is dropped, and
    counted in `late`.
    """

    def __init__(self) -> None:
        self._seen: dict[int, set[Connection]] = defaultdict(set)
        self._open_from = 0
        self.late = 0

    def add(self, connection: Connection) -> None:
        if connection.epoch < self._open_from:
            self.late += 1
        else:
            self._seen[connection.epoch].add(connection)

    def close(self, epoch: int, group_ports: Mapping[int, Iterable[int]]) -> dict[int, int]:
        """n_conn of each port in that interval, and forget it. A pair sent to a group counts at each of its ports."""
        pairs: dict[int, set[tuple[int, int]]] = defaultdict(set)
        for seen in self._seen.pop(epoch, ()):
            ports = group_ports.get(seen.multicast_group, ()) if seen.multicast_group else (seen.egress_port,)
            for port in ports:
                pairs[port].add((seen.src_address, seen.dst_address))
        self._open_from = epoch + 1
        for stale in [e for e in self._seen if e <= epoch]:
            del self._seen[stale]
        return {port: len(members) for port, members in pairs.items()}

"""Fairlane's own control plane, for programs with the tables of als.p4: `AlsPlane`. A class that is based on it changes a part of it (docs/own-program.md).

    an interval begins   each switch gets its epoch, and the port counters are read
    a grace later        the digests of the ended interval have come: n_conn and U of each port, and what control loops write (R_f)

Joins and leaves of multicast groups take effect at once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from fairlane.controller.config import Config, Route
from fairlane.controller.core import DIGEST, SwitchControl, record_kind
from fairlane.controller.multicast import TABLE, TABLE_FROM, Membership, MulticastControl
from fairlane.controller.plane.base import ControlPlane, DigestList, PacketIn
from fairlane.controller.plane.calls import Call, Rewrites, Switch, Table
from fairlane.controller.plane.names import Entry, Names
from fairlane.controller.plane.network import Node, PlaneConfig, Port
from fairlane.controller.records import PortRecord
from fairlane.controller.timetable import epoch


class _Served:
    """A switch and what it is to have. epoch: of the interval that it was told to count; None where that is not known. filled: its first entries have left."""

    def __init__(self, switch: Switch, control: SwitchControl) -> None:
        self.switch = switch
        self.control = control
        self.epoch: int | None = None
        self.first = True
        """Whether no interval has begun since this control plane has it."""
        self.filled = False
        self.epochs = switch.rewrites(control.epoch_entries(), default=True)
        self.cells = switch.cells(control.cells())
        self._rates: tuple[tuple[int, ...], Rewrites] | None = None

    def fill(self, fresh: bool) -> Call[None]:
        """All that it is to have."""
        batch = self.switch.batch()
        self.control.routes.fill(batch)
        for entry in self.control.entries(fresh):
            batch.table(entry.table).insert(entry.keys, entry.action or "", entry.values)
        return batch.send()

    def change_routes(self, routes: Iterable[Route]) -> None:
        batch = self.switch.batch()
        self.control.routes.change(batch if self.filled else None, routes)
        if len(batch):
            batch.send()

    def insert(self, entries: Iterable[Entry]) -> Call[None]:
        return self._each(entries, lambda table, entry: table.insert(entry.keys, str(entry.action), entry.values))

    def modify(self, entries: Iterable[Entry]) -> Call[None]:
        return self._each(entries, lambda table, entry: table.modify(entry.keys, str(entry.action), entry.values))

    def delete(self, entries: Iterable[Entry]) -> Call[None]:
        return self._each(entries, lambda table, entry: table.delete(entry.keys))

    def _each(self, entries: Iterable[Entry], change: Callable[[Table, Entry], object]) -> Call[None]:
        """In one message."""
        batch = self.switch.batch()
        for entry in entries:
            change(batch.table(entry.table), entry)
        return batch.send()

    def write_rates(self) -> Call[None]:
        """What control loops write."""
        entries = self.control.kept(als=True)
        ports = tuple(port.number for port in self.control.switch.ports if port.als)
        if self._rates is None or self._rates[0] != ports:
            self._rates = ports, self.switch.rewrites(entries)
        return self._rates[1].write(entry.values for entry in entries)


class AlsPlane(ControlPlane):
    """Routes, links, schemes, fair rates and multicast groups of all switches of `config`, which the run sets before the first event."""

    takes_over = True
    config: Config

    def _begin(self, names: Names) -> Mapping[type, str]:
        self._multicast = MulticastControl(self.config, names, self.switches)
        groups = self._multicast.group_ports
        self._served = {
            switch.name: _Served(self.switches[switch.name], SwitchControl(switch, names, self.config, groups(switch.name)))
            for switch in self.config.switches
        }
        self._digest = names.digests[DIGEST].preamble.name if DIGEST in names.digests else ""
        self._refused = 0
        return {record_kind(names): "controller.csv", Membership: "memberships.csv"}

    def _check_rate(self, switch: str, port: int, rate_bps: int) -> None:
        for known in self._served[switch].control.switch.ports:
            for settings in known.schemes if known.number == port else ():
                list(settings.entries(rate_bps))

    def on_records(self, switch: Switch, records: Sequence[PortRecord]) -> Awaitable[None] | None:
        """An interval of a switch is closed, and its fair rates are in force: the record of each port, which raw/controller.csv has."""

    async def on_start(self, switch: Switch) -> None:
        self._served[switch.name].control.forget()
        await self._fill(switch, fresh=True)
        self._keep_rows(self._multicast.on_connected(self.now_s, switch.name, None))

    async def on_resume(self, switch: Switch) -> None:
        served = self._served[switch.name]
        served.first = False
        await self._fill(switch, fresh=False)
        # What it may still have of ports that no longer write fair rates.
        await served.delete(served.control.kept(als=False))
        found = [*await switch.table(TABLE).read(), *await switch.table(TABLE_FROM).read()]
        self._keep_rows(self._multicast.on_connected(self.now_s, switch.name, found))

    def _fill(self, switch: Switch, fresh: bool) -> Call[None]:
        served = self._served[switch.name]
        served.filled = True
        for port in served.control.switch.ports:
            if switch.ports[port.number].rate_bps != port.rate_bps:  # it has changed while there was no switch
                served.control.change_rate(port.number, switch.ports[port.number].rate_bps)
        return served.fill(fresh)

    def on_lost(self, switch: Switch) -> Awaitable[None] | None:
        served = self._served[switch.name]
        served.epoch, served.first, served.filled = None, False, False
        self._multicast.on_disconnected(switch.name)
        return None

    def on_interval(self) -> Awaitable[None] | None:
        number, length_s = self._interval
        finish_s = number * length_s + self.config.grace_s
        for served in self._served.values():
            if served.switch.started:
                self.spawn(self._end(served, number, finish_s))
        self.spawn(self._tick(finish_s))
        return None

    async def _end(self, served: _Served, number: int, finish_s: float) -> None:
        """An interval of a switch has ended, and the next one, of this number, has begun."""
        control, begun, ended = served.control, epoch(number), epoch(number - 1)
        # An interval that a switch was not told of, or not from its beginning, says nothing of connections.
        known = served.first or served.epoch == ended
        served.first, served.epoch = False, begun
        grace = self.until(finish_s)
        served.epochs.write(control.begin(begun))
        values = await served.cells.read()
        if served.epoch != begun:
            return  # it was lost, or did not answer for a whole interval
        control.on_counters(self.now_s, values)
        await grace
        if not known or served.epoch != begun:
            return
        records = control.finish(self.now_s, ended)
        # Where a controller has left the switch between its pipeline and its first entries, there is nothing to modify yet.
        await served.write_rates()
        for record in records:
            record.time_s = self.now_s
        self._keep_rows(records)
        more = self.on_records(served.switch, records)
        if more is not None:
            await more

    async def _tick(self, at_s: float) -> None:
        await self.until(at_s)
        self._keep_rows(self._multicast.on_tick(self.now_s))
        errors = self._multicast.errors
        if sum(errors.values()) != self._refused:
            self._refused = sum(errors.values())
            self._report("packets refused", {reason.value: n for reason, n in sorted(errors.items(), key=str)})

    def on_digest_list(self, switch: Switch, digests: DigestList) -> Awaitable[None] | None:
        if digests.name == self._digest:
            self._served[switch.name].control.on_connections(digests.members, digests.rows)
        return None

    def on_packet_in(self, switch: Switch, packet: PacketIn) -> Awaitable[None] | None:
        self._keep_rows(self._multicast.on_packet_in(self.now_s, switch.name, packet))
        return None

    def on_port_change(self, switch: Switch, port: Port) -> Awaitable[None] | None:
        served = self._served[switch.name]
        if any(known.number == port.number and known.rate_bps != port.rate_bps for known in served.control.switch.ports):
            served.modify(served.control.change_rate(port.number, port.rate_bps))
        return None  # where a link has failed, routes change: `on_routes_change`

    def on_als_change(self, switch: Switch, als: bool) -> Awaitable[None] | None:
        """The ports of a switch write fair rates from now on, or no longer do."""
        served = self._served[switch.name]
        changed = served.control.change_als(als)
        if served.filled:  # else it gets them with its first entries
            (served.insert if als else served.delete)(changed)
        return None

    def on_routes_change(self, switch: Switch, routes: Sequence[Route]) -> Awaitable[None] | None:
        """These routes replace those of their prefixes: links have failed, or work again."""
        self._served[switch.name].change_routes(routes)
        return None

    def ask_names(self) -> None:
        """Every name of the program that joins and leaves need. NotInProgram."""
        self._multicast.ask_names()


def network_of(config: Config) -> PlaneConfig:
    """The network as far as the configuration has it: without hosts, addresses and delays."""
    nodes = tuple(
        Node(
            switch.name,
            switch.device_id,
            switch.address,
            tuple(Port(port.number, "", port.peer, port.peer_port, port.rate_bps, 0.0, 0) for port in switch.ports),
            {},
        )
        for switch in config.switches
    )
    return PlaneConfig(config.p4info, config.bmv2_json, config.interval_s, nodes, (), config.election_id)

"""BMv2's needs beyond the command line: queues set over Thrift, and records that it does not write itself."""

from __future__ import annotations

from collections.abc import Sequence

from fairlane.fabrics import bmv2_ports
from fairlane.fabrics.bmv2_ports import PacketSizes
from fairlane.fabrics.bmv2_stats import QUEUE_REGISTER, Sampler
from fairlane.fabrics.bmv2_thrift import Bmv2Error
from fairlane.fabrics.switch_process import SwitchSettings
from fairlane.topologies.model import Topology


class Bmv2Switches:
    """The BMv2 switches of one network. reports_queues: whether their program does (`bmv2_stats.reports_queues`)."""

    def __init__(self, sizes: PacketSizes, reports_queues: bool) -> None:
        self._sizes = sizes
        self._reports_queues = reports_queues
        self._sampler: Sampler | None = None

    def sentences(self, topology: Topology) -> list[str]:
        said = bmv2_ports.sentences(topology, self._sizes)
        if not self._reports_queues:
            said.append(f"BMv2 reports no queue lengths, and the program has no register {QUEUE_REGISTER}: the results have no queues")
        return said

    def configure(self, settings: SwitchSettings) -> str | None:
        """Rates, depths and delays of a switch that has just started; what went wrong, None when nothing did."""
        try:
            bmv2_ports.apply(settings.ports, settings.thrift_port, self._sizes)
        except Bmv2Error as error:
            return str(error)
        return None

    def start_records(self, switches: Sequence[SwitchSettings]) -> None:
        self._sampler = Sampler(switches, queues=self._reports_queues)
        self._sampler.start()

    def stop(self) -> None:
        """To be called while the switches and their interfaces are still there."""
        if self._sampler is not None:
            self._sampler.stop()

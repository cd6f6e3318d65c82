"""BMv2's needs beyond the command line: queues set over Thrift, and records that it does not write itself."""

from __future__ import annotations

from collections.abc import Sequence

from fairlane.fabrics import bmv2_ports
from fairlane.fabrics.bmv2_ports import PacketSizes
from fairlane.fabrics.bmv2_stats import Sampler
from fairlane.fabrics.bmv2_thrift import Bmv2Error
from fairlane.fabrics.switch_process import SwitchSettings
from fairlane.topologies.model import Topology


class Bmv2Switches:
    """The BMv2 switches of one network."""

    def __init__(self, sizes: PacketSizes) -> None:
        self._sizes = sizes
        self._sampler: Sampler | None = None

    def sentences(self, topology: Topology) -> list[str]:
        return bmv2_ports.sentences(topology, self._sizes)

    def configure(self, settings: SwitchSettings) -> str | None:
        """Rates, depths and delays of a switch that has just started; what went wrong, None when nothing did."""
        try:
            bmv2_ports.apply(settings.ports, settings.thrift_port, self._sizes)
        except Bmv2Error as error:
            return str(error)
        return None

    def start_records(self, switches: Sequence[SwitchSettings]) -> None:
        self._sampler = Sampler(switches)
        self._sampler.start()

    def stop(self) -> None:
        """To be called while the switches and their interfaces are still there."""
        if self._sampler is not None:
            self._sampler.stop()

"""Fairlane's controller with a cap on every fair rate."""

from collections.abc import Sequence

from fairlane.controller.als import AlsPlane
from fairlane.controller.plane import Switch
from fairlane.controller.records import PortRecord

TABLE, ACTION = "AlsEgress.fair_rate.fair_rate", "AlsEgress.fair_rate.set_fair_rate"


class Capped(AlsPlane):
    most_bps = 1_000_000

    def on_records(self, switch: Switch, records: Sequence[PortRecord]) -> None:
        """The interval's fair rates are in force: lower those above the cap."""
        for record in records:
            if record.fair_rate_bps > self.most_bps:
                values = {"rate_bps": self.most_bps, "utilisation_ppm": record.utilisation_ppm}
                switch.table(TABLE).modify({"standard_metadata.egress_port": record.port}, ACTION, values)

    async def on_interval(self) -> None:
        """As Fairlane's, and a line with the rates that each switch has."""
        super().on_interval()
        for switch in self.switches.values():
            if switch.started:
                entries = await switch.table(TABLE).read()
                self.record(switch=switch.name, rates_bps=[entry.values["rate_bps"] for entry in entries])

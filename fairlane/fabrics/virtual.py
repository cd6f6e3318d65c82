"""Virtual time, as a fabric: needs no root. `virtual_fabric` runs it."""

from __future__ import annotations

from collections.abc import Sequence

from fairlane.experiments import sweep
from fairlane.experiments.model import Experiment
from fairlane.fabrics import flows, targets
from fairlane.fabrics.base import Fabric, Ready, Settings
from fairlane.fabrics.switch_process import BMV2
from fairlane.inputs.located_toml import Document


class Virtual(Fabric):
    name = "virtual"
    clock = "virtual time"
    real_time = False
    target = "virtual"
    """In records: the switches are in the process."""

    def ready(self, experiment: Experiment, settings: Settings = Settings()) -> Ready:
        from fairlane.fabrics import virtual_fabric  # loads the compiled module

        self.check_target(settings.target)
        for flow in experiment.flows:
            if flow.commands is not None:
                raise flows.only_real(flow)
        virtual_fabric.check_built()
        compiler = targets.compiler(settings.compiler)
        if settings.packets is not None:
            settings.packets.check(experiment.topology)
        options = virtual_fabric.Options(
            compiler,
            settings.control_delay_s,
            settings.pcap,
            settings.trace,
            settings.live,
            packets=settings.packets,
            cores=settings.cores,
            ranks=settings.ranks,
        )
        return Ready(
            experiment,
            self,
            self.target,
            compiler.why,
            lambda folder, progress: virtual_fabric.run(experiment, options, folder, progress),
        )

    def has_target(self, choice: targets.Choice) -> bool:
        return choice != BMV2.name

    def laid_over(self, document: Document, at: Sequence[str] = ()) -> Document:
        return sweep.narrowed(document, at)

    def differences(self, document: Document) -> str:
        return ""

    def obstacle(self) -> str | None:
        return None

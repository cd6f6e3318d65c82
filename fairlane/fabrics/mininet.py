"""Mininet, as a fabric: real processes and the kernel's TCP on the wall clock, as root on Linux. `mininet_run` runs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlane import probes
from fairlane.errors import Refusal
from fairlane.experiments import fabrics
from fairlane.experiments.model import Experiment
from fairlane.fabrics import flows, preflight, targets
from fairlane.fabrics.base import Fabric, Ready, Settings
from fairlane.inputs.located_toml import Document

if TYPE_CHECKING:
    from fairlane.fabrics.mininet_run import Options


class Mininet(Fabric):
    name = "mininet"
    clock = "Mininet, wall clock"
    real_time = True

    def ready(self, experiment: Experiment, settings: Settings = Settings()) -> Ready:
        options = self.options(experiment, settings)
        try:
            experiment = flows.with_tcp_ports(experiment)
        except ValueError as error:
            raise Refusal(f"{error}: give them hosts of their own, or run it without --fabric mininet.") from error
        from fairlane.fabrics import mininet_run  # Linux's alone

        toolchain = options.toolchain
        run = lambda folder, progress: mininet_run.run(experiment, options, folder, progress)
        return Ready(experiment, self, toolchain.target.name, toolchain.why, run)

    def options(self, experiment: Experiment, settings: Settings) -> Options:
        """As `ready`, for a network without its flows (`fairlane shell`)."""
        if settings.trace is not None:
            raise Refusal("--trace: only virtual time can log every packet; --pcap captures packets on both fabrics.")
        if settings.packets is not None:
            raise Refusal(
                "--packets: only virtual time knows what becomes of each packet in a queue; on Mininet --pcap captures packets before and after it."
            )
        preflight.check_machine(experiment)
        from fairlane.fabrics.mininet_run import Options

        return Options(
            targets.resolve(
                settings.target,
                experiment.topology,
                flows.packet_sizes(experiment),
                settings.compiler,
                experiment.changes,
                flows_counted=any(flow.commands is not None for flow in experiment.flows),
            ),
            settings.first_grpc_port,
            settings.restart_after_s,
            settings.rtt_check,
            settings.keep_awake,
            settings.pcap is not None,
        )

    def has_target(self, choice: targets.Choice) -> bool:
        return True

    def laid_over(self, document: Document, at: Sequence[str] = ()) -> Document:
        return fabrics.laid_over(document, at)

    def differences(self, document: Document) -> str:
        return "; ".join(text for text in (fabrics.laid(document), fabrics.left_out(document)) if text)

    def obstacle(self) -> str | None:
        return "root" if not probes.is_root() else "Mininet" if not probes.has_mininet() else None

"""User-defined headers in flows' data packets, with the layouts from a run's compiled P4 program."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any

from fairlane import probes
from fairlane.errors import Refusal
from fairlane.experiments.kinds import AlgorithmSettings
from fairlane.experiments.model import Experiment, Flow
from fairlane.hosts.algorithms import carried_of, header_of
from fairlane.hosts.algorithms.own_header import Carried


def program_file(experiment: Experiment, folder: Path) -> Path:
    """The compiled program, BMv2 JSON, in the folder of a run's raw records."""
    return folder / f"{probes.source(experiment.settings.control.program).stem}.json"


class Headers:
    """Of a run's flows. The program is read when the first flow asks."""

    def __init__(self, program: Path, ip: int = 4) -> None:
        """program: BMv2 JSON. ip: the version of IP."""
        self._file, self._ip = program, ip

    @cached_property
    def _program(self) -> dict[str, Any]:
        return dict(json.loads(self._file.read_text(encoding="utf-8")))

    def of(self, flow: Flow) -> Carried | None:
        """None: the flow's packets have none. Refusal names the flow, and what is wrong with the header or the program."""
        if header_of(flow.kind) is None or not isinstance(flow.settings, AlgorithmSettings):
            return None
        try:
            return carried_of(flow.kind, self._program, flow.settings.packet_bytes, self._ip)
        except ValueError as error:
            raise Refusal(f"flow {flow.name} ({flow.kind}): {error}") from error

    def bytes_of(self, flow: Flow) -> int:
        """What the header adds to each of the flow's data packets."""
        carried = self.of(flow)
        return 0 if carried is None else len(carried.initial)

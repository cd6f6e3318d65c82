"""A fabric is a place where experiments run: a clock, switches, hosts. Callers query its abilities and never compare its name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from fairlane.errors import Refusal
from fairlane.experiments.model import Experiment
from fairlane.fabrics.packets import PacketRecord
from fairlane.fabrics.switch_process import FIRST_GRPC_PORT
from fairlane.fabrics.targets import Choice, CompilerChoice
from fairlane.inputs.located_toml import Document

if TYPE_CHECKING:
    from fairlane.fabrics.outcome import Outcome
    from fairlane.fabrics.progress import Progress
    from fairlane.fabrics.ranks import Ranks
    from fairlane.fabrics.virtual_fabric import Driving


@dataclass(frozen=True)
class Settings:
    """Settings of a run, of every fabric: each uses those that it has. control_delay_s: virtual, one way between the controller and each switch.
    first_grpc_port, restart_after_s, rtt_check, keep_awake: Mininet, as `mininet_run.Options`. pcap: where captures go. trace: a file for
    the log of every packet. packets: the record of their stays in queues. cores: processes over which
    virtual time divides the network; None: as many as make the run faster. ranks: of MPI, in place of them. live: drives the run in virtual time in place of `virtual_fabric.advance`."""

    target: Choice = "auto"
    compiler: CompilerChoice = "auto"
    control_delay_s: float = 0.001
    first_grpc_port: int = FIRST_GRPC_PORT
    restart_after_s: float = 1.0
    rtt_check: bool = True
    keep_awake: bool | None = None
    pcap: Path | None = None
    trace: Path | None = None
    packets: PacketRecord | None = None
    cores: int | None = 1
    live: Driving | None = None
    ranks: Ranks | None = None


@dataclass(frozen=True)
class Ready:
    """An experiment on a fabric that can run it. target: what runs the P4 program, as records name it. why: a sentence about that choice. run:
    leaves the raw records in a folder. RunFailed: the run ended early."""

    experiment: Experiment
    fabric: Fabric
    target: str
    why: str
    run: Callable[[Path, Progress], Outcome]


class Fabric(ABC):
    """One object for each fabric, in `places`."""

    name: ClassVar[str]
    """On the command line and in records."""
    clock: ClassVar[str]
    """In words."""
    real_time: ClassVar[bool]
    """Whether runs follow the wall clock, and hosts run real programs. Otherwise all is modelled, and nothing comes late."""

    @abstractmethod
    def ready(self, experiment: Experiment, settings: Settings = Settings()) -> Ready:
        """Refusal: why the experiment or these settings cannot run here."""

    @abstractmethod
    def has_target(self, choice: Choice) -> bool:
        """Whether the switch that is asked for runs here."""

    def check_target(self, choice: Choice) -> None:
        """Refusal where `has_target` is False."""
        if not self.has_target(choice):
            raise Refusal(f"--target {choice} runs in real time only: add --fabric mininet.")

    @abstractmethod
    def laid_over(self, document: Document, at: Sequence[str] = ()) -> Document:
        """An experiment's file as this fabric runs it. at: "AXIS=VALUE", one value of an axis of its sweep. ConfigError names file, line and key."""

    @abstractmethod
    def differences(self, document: Document) -> str:
        """How the experiment differs here from its file, in words; "" when it does not."""

    @abstractmethod
    def obstacle(self) -> str | None:
        """What this machine lacks, besides programs that `make build` makes: "root", "Mininet"; None when nothing is missing."""

    def __str__(self) -> str:
        return self.name

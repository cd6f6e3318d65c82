"""Memory-based TRABOL: Bangolae, Jayasumana and Chandrasekar, section 2, figures 1 and 2.

As TRABOL (`trabol.py`), but a loss in the middle of a climb is remembered: "the loss must be due to the bandwidth utilization
between the previous step and the current step. In the next cycle, the rate is increased only until the previous rate" [TRABOL
sec 2].

    L_r > MAX_LOSS at step i of a climb:   step_iteration = i - 1, memory_variable = 1        [TRABOL fig 1]
    next climb:                            P_nn grows for step_iteration steps only           [TRABOL fig 1]
    TIMER, started when a climb has ended: step_iteration is set again, the climb continues   [TRABOL fig 1]

Step i is P_nn = P_min + i, so that the next climb ends one step below the loss, as section 2 has it. Figure 1's loop counts from 0:
read literally, it ends one step lower still.

A loss outside a climb, on the rate where it ended, changes no memory: figure 1 stores it inside the loop of the climb. A loss
report that comes at step 0 describes packets sent before the decrease, and changes none either (i - 1 would be -1).

As printed, figure 1 sets step_iteration again when the timer fires and then does not use it until the next loss; section 2
says that "based on a timer, the maximum rate is probed periodically", so the climb goes on at once. The timer's length is open
in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlane.hosts.algorithms.base import Kind, Note, Rng, SenderAction, SetTimer, Timer, require_positive
from fairlane.hosts.algorithms.trabol import TrabolParameters, TrabolReceiver, TrabolSender, of_path

PROBE_TIMER = "trabol_memory.probe"


@dataclass(frozen=True, slots=True)
class TrabolMemoryParameters(TrabolParameters):
    """Those of TRABOL, and the timer."""

    probe_interval_s: float = 30.0
    """TIMER: from the end of a climb to the next probe of the maximum rate. The paper is silent. Several climbs at 10 Mb/s, so
    that a flow spends most of its time at the remembered rate, and finds bandwidth that became free within half a minute."""

    def __post_init__(self) -> None:
        TrabolParameters.__post_init__(self)
        require_positive("TrabolMemoryParameters", probe_interval_s=self.probe_interval_s)


class TrabolMemorySender(TrabolSender):
    """The sending half: the memory-based congestion manager [TRABOL fig 1]."""

    parameters: TrabolMemoryParameters

    def __init__(self, parameters: TrabolMemoryParameters = TrabolMemoryParameters()) -> None:
        super().__init__(parameters)
        self.step_iteration = self._all_steps
        self.memory_variable = False
        self._probe_due_s: float | None = None

    @property
    def _all_steps(self) -> int:
        """Steps from MIN_RATE to the target rate."""
        return self.parameters.packets_per_ray - self.min_packets

    @property
    def highest_packets(self) -> int:
        return self.min_packets + self.step_iteration

    def on_timer(self, now_s: float, timer: Timer, rng: Rng) -> tuple[SenderAction, ...]:
        if timer.name != PROBE_TIMER:
            return super().on_timer(now_s, timer, rng)
        if self._probe_due_s is None or now_s < self._probe_due_s:
            return ()
        self._probe_due_s = None
        self.memory_variable = False
        self.step_iteration = self._all_steps  # "Reinitialize step_iteration" [TRABOL fig 1]
        self.set_congestion, self.held = True, 0
        return (Note("trabol_memory.probe", (("packets_per_ray", self.packets),)),)

    def _on_congestion(self, loss: float) -> tuple[SenderAction, ...]:
        step = self.packets - self.min_packets
        remembered: tuple[SenderAction, ...] = ()
        if self.set_congestion and step > 0:
            self.step_iteration = step - 1  # step_iteration = i - 1 [TRABOL fig 1]
            self.memory_variable = True  # memory_variable = 1 [TRABOL fig 1]
            remembered = (Note("trabol_memory.remember", (("step", step), ("highest_packets", self.highest_packets))),)
        self._to_min_rate(loss)
        return remembered

    def _on_top(self, now_s: float) -> tuple[SenderAction, ...]:
        if not self.memory_variable or self._probe_due_s is not None:
            return ()
        self._probe_due_s = now_s + self.parameters.probe_interval_s
        return (SetTimer(PROBE_TIMER, self._probe_due_s),)  # "Start TIMER" [TRABOL fig 1]


KINDS = (
    Kind(
        "trabol-memory",
        "TRABOL that climbs only to the step before its last loss, and probes higher by a timer [TRABOL sec 2, fig 1]",
        TrabolMemoryParameters,
        TrabolMemorySender,
        TrabolReceiver,
        of_path=of_path,
    ),
)

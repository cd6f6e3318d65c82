"""The highest rate without loss, by bisection ([RFC 2544 sec 26.1]: throughput), as a pure function of trials."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

LOSS_ALLOWED = 0.001
"""Of the frames sent in a trial: 0.1%. RFC 2544 allows none, which on a machine that also does other things ends nowhere."""
STEP = 1.3
RESOLUTION = 0.04


@dataclass(frozen=True)
class Trial:
    """The fate of frames sent at an even rate. offered_per_s: the generator's actual rate."""

    offered_per_s: float
    sent: int
    received: int

    @property
    def loss(self) -> float:
        return max(0.0, 1 - self.received / self.sent) if self.sent else 0.0

    @property
    def passed(self) -> bool:
        return self.sent > 0 and self.loss < LOSS_ALLOWED


@dataclass(frozen=True)
class Found:
    """rate_per_s: the highest rate offered in a trial that passed, 0 when none did. limited: the generator could offer no more, so
    that the true rate may be higher."""

    rate_per_s: float
    limited: bool
    trials: int


def highest_rate(start_per_s: float, trial: Callable[[float], Trial], most_trials: int = 9) -> Found:
    """From a guess up or down in steps to a rate that passes and one that fails, then halves of what is between, until they are
    within 4%."""
    passed, failed = 0.0, float("inf")
    rate, best, limited, trials = max(start_per_s, 1.0), 0.0, False, 0
    while trials < most_trials:
        result = trial(rate)
        trials += 1
        if result.passed:
            passed, best = rate, max(best, result.offered_per_s)
            if result.offered_per_s < 0.9 * rate:
                limited = True
                break
        else:
            failed = rate
        if failed <= passed * (1 + RESOLUTION):
            break
        if failed == float("inf"):
            rate = passed * STEP
        elif passed == 0:
            rate = failed / STEP if trials < 4 else failed / 2
        else:
            rate = (passed + failed) / 2
    return Found(best, limited, trials)

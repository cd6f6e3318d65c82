"""The behaviour of a rate-based sender when reports stop. The papers do not define it: DAA, AIMD over RTCP and SSVP share this rule.

A sender without a report for `report_timeout_s` multiplies its rate by `silence_factor`, again after each further
`report_timeout_s`, down to its lowest rate. Without such a rule a broken path back to the sender leaves it at its last rate for
ever. Halving on missing feedback is TFRC's rule [RFC 5348 sec 4.4]. Nothing here is a flow kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fairlane.hosts.algorithms.base import SetTimer, clamp, require_positive


@dataclass(slots=True)
class SilenceWatch:
    """Remembers when the last report came."""

    timer: str
    """Name of the timer that wakes the sender."""
    timeout_s: float
    heard_s: float = 0.0
    due_s: float = 0.0

    def start(self, now_s: float) -> SetTimer:
        """The flow begins: count from now."""
        self.heard_s = now_s
        return self._wait_until(now_s + self.timeout_s)

    def heard(self, now_s: float) -> None:
        """A report came. The timer that is running finds out when it comes due: no action is needed for each report."""
        self.heard_s = max(self.heard_s, now_s)

    def expired(self, now_s: float) -> tuple[bool, SetTimer | None]:
        """The timer came due: whether reports are missing, and the next timer. A timer of an earlier setting does nothing."""
        if now_s < self.due_s:
            return False, None
        # Compared as the sum that the next timer uses: a difference could round so that the timer comes due at once, for ever.
        silent = self.heard_s + self.timeout_s <= now_s
        return silent, self._wait_until((now_s if silent else self.heard_s) + self.timeout_s)

    def _wait_until(self, at_s: float) -> SetTimer:
        self.due_s = at_s
        return SetTimer(self.timer, at_s)


class RateLimits(Protocol):
    """The parameters that the algorithms of this rule share."""

    @property
    def initial_rate_bps(self) -> float: ...
    @property
    def min_rate_bps(self) -> float: ...
    @property
    def max_rate_bps(self) -> float: ...
    @property
    def report_timeout_s(self) -> float: ...
    @property
    def silence_factor(self) -> float: ...


def initial_rate(parameters: RateLimits) -> float:
    """`initial_rate_bps` within the limits of the same parameters."""
    return clamp(parameters.initial_rate_bps, parameters.min_rate_bps, parameters.max_rate_bps)


def require_rate_limits(owner: str, parameters: RateLimits) -> None:
    """Check those parameters.

    Raises `ValueError` naming the parameter at fault.
    """
    require_positive(
        owner,
        initial_rate_bps=parameters.initial_rate_bps,
        max_rate_bps=parameters.max_rate_bps,
        min_rate_bps=parameters.min_rate_bps,
        report_timeout_s=parameters.report_timeout_s,
        silence_factor=parameters.silence_factor,
    )
    if parameters.min_rate_bps > parameters.max_rate_bps:
        raise ValueError(f"{owner}.min_rate_bps = {parameters.min_rate_bps!r} is above max_rate_bps = {parameters.max_rate_bps!r}")
    if parameters.silence_factor > 1:
        raise ValueError(f"{owner}.silence_factor = {parameters.silence_factor!r}: silence must not raise the rate")

"""SSVP-ADP, SSVP with alpha and beta that follow the path: Papadimitriou and Zhang, section IV.B.

As SSVP (`ssvp.py`), but when congestion is found the decrease aims at the knee, where the bottleneck is busy and its queue empty:

    beta  = K_knee / K(t) = RTT_min / RTT(t)          [SSVP eq 20]
    IPG   = IPG RTT(t) / RTT_min                      [SSVP eq 21]
    alpha = 4 (1 - beta^2) / 3                        [SSVP eq 2]

RTT_min estimates the round-trip propagation delay. Until the first decrease alpha is SSVP's 0.31 [SSVP sec VI].

Equation 21 lengthens the gap; the packets in a round trip, k = RTT / IPG [SSVP eq 7], are beta k, as equation 17 requires. When
the queue has drained RTT is RTT_min and k has fallen by beta twice: the paper's own two definitions do not meet. This file
follows equation 21, which the paper states for the sender.

RTT_min is the least sample of all, for the paper equates it with RTT_0. `rtt_min_window_s` bounds its age, as a reading of our own.

Choice that the paper leaves open: which sample is RTT(t), `rtt_at_decrease`. Equation 20 gives beta = 1 when the newest RTT is the least,
hence alpha = 0 and a constant rate for ever, and a wrong sample of the RTT can give beta any value. So beta is limited to
[`min_beta`, `max_beta`].
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import inf

from fairlane.hosts.algorithms.base import Kind, clamp, require_positive
from fairlane.hosts.algorithms.ssvp import SsvpParameters, SsvpReceiver, SsvpSender
from fairlane.hosts.algorithms.ssvp_model import friendly_alpha

NEWEST, BEFORE_LOSS, SMOOTHED = "newest", "before-loss", "smoothed"


@dataclass(frozen=True, slots=True)
class SsvpAdpParameters(SsvpParameters):
    """Those of SSVP, whose `alpha` and `beta` hold until the first decrease, and how beta is found."""

    rtt_at_decrease: str = NEWEST
    """RTT(t) of equation 20. "newest": the last sample, "the current" one [SSVP sec IV.B]. "before-loss": that of the last report
    that told of no loss, as it is "normally observed before the buffer overflows". "smoothed": TCP's average (RFC 6298, 1/8)."""

    rtt_min_window_s: float = 0.0
    """RTT_min is the least sample of so many seconds before the newest one. 0: of all samples, "the round-trip propagation delay
    RTT_0" [SSVP sec IV.B]. A window of a few round trips sees the standing queue as part of the path, so that beta comes near 1: with
    0.25 to 0.5 s figure 3 comes out, which a lifelong RTT_min cannot give by equation 17 (docs/experiments/ssvp-3.md)."""

    min_beta: float = 0.1
    """Least beta. The paper is silent. A tenth is a buffer of nine bandwidth-delay products [SSVP eq 17]: beyond that the
    sample of the RTT is more likely false."""

    max_beta: float = 0.99
    """Greatest beta. The paper is silent. Below 1, so that each decrease is one and alpha stays positive: 0.99 gives alpha = 0.027,
    and the queue of equation 17 is a hundredth of the bandwidth-delay product."""

    def __post_init__(self) -> None:
        SsvpParameters.__post_init__(self)
        require_positive("SsvpAdpParameters", min_beta=self.min_beta, max_beta=self.max_beta)
        if not 0 <= self.rtt_min_window_s < inf:
            raise ValueError(
                f"SsvpAdpParameters.rtt_min_window_s = {self.rtt_min_window_s!r}: seconds, finite; 0 keeps the least sample for ever"
            )
        if self.rtt_at_decrease not in (NEWEST, BEFORE_LOSS, SMOOTHED):
            raise ValueError(
                f"SsvpAdpParameters.rtt_at_decrease = {self.rtt_at_decrease!r}: say {NEWEST!r}, {BEFORE_LOSS!r} or {SMOOTHED!r}"
            )
        if not self.min_beta <= self.max_beta < 1:
            raise ValueError(
                f"SsvpAdpParameters.min_beta = {self.min_beta!r}, max_beta = {self.max_beta!r}: must be in this order and below 1"
            )


class SsvpAdpSender(SsvpSender):
    """The sending half [SSVP sec IV.B]."""

    parameters: SsvpAdpParameters

    def __init__(self, parameters: SsvpAdpParameters = SsvpAdpParameters()) -> None:
        super().__init__(parameters)
        self.rtt_min_s: float | None = None
        """RTT_min, the least sample of the window; `None` before the first."""
        self._least: deque[tuple[float, float]] = deque()
        """(instant, sample): the samples of the window that no later one is below, so they ascend and the first is RTT_min."""
        self.rtt_of_beta_s: float | None = None
        """RTT(t) of equation 20; `None` before the first sample."""
        self.alpha, self.beta = parameters.alpha, parameters.beta

    def _sample(self, now_s: float, rtt_s: float, congested: bool) -> None:
        super()._sample(now_s, rtt_s, congested)
        self.rtt_min_s = self._least_of_window(now_s)
        which, before = self.parameters.rtt_at_decrease, self.rtt_of_beta_s
        if before is None or which == NEWEST or (which == BEFORE_LOSS and not congested):
            self.rtt_of_beta_s = self.rtt_s
        elif which == SMOOTHED:
            self.rtt_of_beta_s = before + (self.rtt_s - before) / 8  # [RFC 6298 sec 2 step 2.3]

    def _least_of_window(self, now_s: float) -> float:
        """RTT_min with the newest sample, `rtt_s`, taken at `now_s`."""
        window_s, least = self.parameters.rtt_min_window_s, self._least
        if not window_s:
            return self.rtt_s if self.rtt_min_s is None else min(self.rtt_min_s, self.rtt_s)
        while least and least[-1][1] >= self.rtt_s:
            least.pop()
        least.append((now_s, self.rtt_s))
        while least[0][0] < now_s - window_s:
            least.popleft()
        return least[0][1]

    def _factors(self) -> tuple[float, float]:
        return self.alpha, self.beta

    def _decrease(self) -> None:
        p = self.parameters
        if self.rtt_min_s is not None and self.rtt_of_beta_s is not None:
            self.beta = clamp(self.rtt_min_s / self.rtt_of_beta_s, p.min_beta, p.max_beta)  # beta = RTT_min / RTT(t) [SSVP eq 20]
            self.alpha = friendly_alpha(self.beta)  # alpha = 4 (1 - beta^2) / 3 [SSVP eq 2]
        super()._decrease()  # IPG = IPG / beta [SSVP eq 4] = IPG RTT(t) / RTT_min [SSVP eq 21]


KINDS = (
    Kind(
        "ssvp-adp",
        "SSVP whose decrease aims at the knee: beta = RTT_min / RTT, alpha to match [SSVP sec IV.B, eq 20, 21]",
        SsvpAdpParameters,
        SsvpAdpSender,
        SsvpReceiver,
    ),
)

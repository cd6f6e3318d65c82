"""When a flow over RTP must cease [RFC 8083]; the breakers themselves are `switch/net/endpoint/src/circuit_breaker.rs`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fairlane.hosts.sources import Spelled, check_positive
from fairlane.specs import Breaker


@dataclass(frozen=True)
class CircuitBreaker(Spelled):
    """action: off; cease: the flow ends when a breaker trips; reduce: when congestion trips, it first sends a tenth [RFC 8083 sec 4.5].
    usable_loss, usable_rtt_s: loss fraction and round-trip time in seconds above which the media is unusable, None without a bound;
    unusable_s: seconds that this must last [RFC 8083 sec 4.4]."""

    action: Literal["off", "cease", "reduce"] = "off"
    usable_loss: float | None = None
    usable_rtt_s: float | None = None
    unusable_s: float = 10.0

    NOUN = "circuit breaker"

    def __post_init__(self) -> None:
        check_positive(self, "usable_rtt_s", "unusable_s")
        if self.usable_loss is not None and not 0 <= self.usable_loss < 1:
            raise ValueError(f"usable_loss: must be at least 0 and below 1, got {self.usable_loss:g}")
        if self.action == "off" and self.text() != "off":
            raise ValueError('action: give "cease" or "reduce"; with "off" the other keys have no effect')

    def native(self) -> Breaker | None:
        """What `fairlane.native` takes; None: off."""
        return None if self.action == "off" else Breaker(self.action == "reduce", self.usable_loss, self.usable_rtt_s, self.unusable_s)

"""Random early detection of a queue (Floyd and Jacobson 1993): real values in, the fixed-point numbers of `red.p4` out."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Context, Decimal

from fairlane.schemes.base import Average, Counter, Entry, Parameters, Scheme, parameter

PACKET_SCALE = 1 << 20
UNIT_SCALE = 1 << 32
DECAY_SCALE = 1 << 40
LINK_SCALE = 1 << 20
QUEUE_LIMIT_PACKETS = 4095
_FIELD_MAXIMUM = (1 << 32) - 1
# A platform's log1p may differ in its last bit from another's; decimal logarithms are rounded correctly everywhere.
_DECIMAL = Context(prec=60)


@dataclass(frozen=True)
class Red(Parameters):
    """Thresholds as fractions of the buffer.

    minimum, maximum: in [0, 1], minimum < maximum. max_p: drop probability just below the maximum, in (0, 1].
    weight: of the moving average, in (0, 1). mean_packet_bytes: typical packet, for the decay in idle time. ecn: between the
    thresholds, packets of an ECN-capable transport are marked instead of dropped [RFC 3168 sec 5, 7]. The defaults: the maximum three times
    the minimum, as Floyd advises, and their paper's weight.
    """

    minimum: float = parameter(0.25, 0, 1)
    maximum: float = parameter(0.75, 0, 1)
    max_p: float = parameter(0.1, 0, 1)
    weight: float = parameter(0.002, 0, 1)
    mean_packet_bytes: int = parameter(1000, 1, math.inf, "bytes")
    ecn: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.minimum < self.maximum <= 1:
            raise ValueError(f"minimum: RED needs 0 <= minimum < maximum <= 1, got {self.minimum} and {self.maximum}")
        _check(self.max_p, self.weight, self.mean_packet_bytes)
        super().__post_init__()

    @property
    def macros(self) -> tuple[str, ...]:
        return ("RED_ECN",) if self.ecn else ()

    def average(self, queue_packets: int) -> Average:
        low, high = self.minimum * queue_packets, self.maximum * queue_packets
        return Average("RED", "red_average", PACKET_SCALE, self.weight, self.mean_packet_bytes, low, high, self.max_p)

    def of_port(self, queue_packets: int) -> RedOfPort:
        return RedOfPort(
            self.minimum * queue_packets, self.maximum * queue_packets, self.max_p, self.weight, self.mean_packet_bytes, self.ecn
        )


@dataclass(frozen=True)
class RedOfPort:
    """Random early detection of one port.

    minimum_packets, maximum_packets: thresholds of the average queue, 0 <= minimum < maximum <= 4095. The others are as in `Red`, which has
    their ranges and their defaults.
    """

    minimum_packets: float
    maximum_packets: float
    max_p: float = Red.max_p
    weight: float = Red.weight
    mean_packet_bytes: float = Red.mean_packet_bytes
    ecn: bool = Red.ecn

    def __post_init__(self) -> None:
        if not 0 <= self.minimum_packets < self.maximum_packets <= QUEUE_LIMIT_PACKETS:
            raise ValueError(
                f"RED thresholds need 0 <= minimum < maximum <= {QUEUE_LIMIT_PACKETS} packets,"
                f" got {self.minimum_packets} and {self.maximum_packets}"
            )
        _check(self.max_p, self.weight, self.mean_packet_bytes)

    def action_parameters(self, rate_bps: float) -> dict[str, int]:
        """Arguments of the P4 action `set_red`, or `set_red_ecn`, for a port of this rate; ValueError when one does not fit 32 bits."""
        typical_s = self.mean_packet_bytes * 8 / rate_bps
        values = {
            "minimum": round(self.minimum_packets * PACKET_SCALE),
            "maximum": round(self.maximum_packets * PACKET_SCALE),
            "slope": round(self.max_p / (self.maximum_packets - self.minimum_packets) * UNIT_SCALE),
            "weight": round(self.weight * UNIT_SCALE),
            "idle_decay": round(_decay(self.weight) / (typical_s * 1e6) * DECAY_SCALE),
        }
        for name, value in values.items():
            if not 0 < value <= _FIELD_MAXIMUM and not (name == "minimum" and value == 0):
                raise ValueError(
                    f"RED parameter {name} is {value} in fixed point, outside 1..{_FIELD_MAXIMUM}:"
                    f" {self} at {rate_bps} bit/s cannot be represented"
                )
        return values

    def entries(self, rate_bps: float) -> Iterable[Entry]:
        values, action = self.action_parameters(rate_bps), "set_red_ecn" if self.ecn else "set_red"
        yield Entry("AlsIngress.red.red_parameters", action, values)
        yield Entry("AlsEgress.replica.red_parameters", action, values)


def _check(max_p: float, weight: float, mean_packet_bytes: float) -> None:
    """ValueError for a value outside its range, whatever thresholds are counted in."""
    if not 0 < max_p <= 1:
        raise ValueError(f"max_p: must be in (0, 1], got {max_p}")
    if not 0 < weight < 1:
        raise ValueError(f"weight: must be in (0, 1), got {weight}")
    if mean_packet_bytes < 1:
        raise ValueError(f"mean_packet_bytes: must be positive, got {mean_packet_bytes}")


def _decay(weight: float) -> float:
    """-ln(1 - weight), to the nearest float: the same on every machine."""
    return float(-_DECIMAL.ln(_DECIMAL.subtract(Decimal(1), Decimal(weight))))


def link_parameters(rate_bps: float) -> dict[str, int]:
    """Argument of the P4 action `set_link`: microseconds a byte takes, times 2^20."""
    return {"microseconds_per_byte": max(1, min(_FIELD_MAXIMUM, round(8e6 / rate_bps * LINK_SCALE)))}


def _link(rate_bps: float) -> Iterable[Entry]:
    yield Entry("AlsEgress.departure.link", "set_link", link_parameters(rate_bps))


SCHEME = Scheme(
    "red",
    "RED",
    Red,
    controls={"arrival": "RedArrival red", "copy": "RedReplica replica", "after": "RedDeparture departure"},
    counters=(
        Counter(
            "red_early_drops",
            ("AlsIngress.red.decision.early_drops", "AlsEgress.replica.decision.early_drops"),
            cause="red_early",
            load=True,
            label="RED, early",
        ),
        Counter(
            "red_forced_drops",
            ("AlsIngress.red.decision.forced_drops", "AlsEgress.replica.decision.forced_drops"),
            cause="red_forced",
            load=True,
            label="RED, forced",
        ),
        Counter("marks", ("AlsIngress.red.decision.marks", "AlsEgress.replica.decision.marks"), macro="RED_ECN"),
    ),
    settings=RedOfPort,
    order=1,
    standing=True,
    queue_register="red_queue",
    of_every_port=_link,
)

"""RED parameters: real values in, the fixed-point numbers of `p4src/red.p4` out."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal

from fairlane.topologies import model

PACKET_SCALE = 1 << 20
UNIT_SCALE = 1 << 32
DECAY_SCALE = 1 << 40
LINK_SCALE = 1 << 20
QUEUE_LIMIT_PACKETS = 4095
_FIELD_MAXIMUM = (1 << 32) - 1
# A platform's log1p may differ in its last bit from another's; decimal logarithms are rounded correctly everywhere.
_DECIMAL = Context(prec=60)


@dataclass(frozen=True)
class Red:
    """Random early detection of one port (Floyd and Jacobson 1993).

    minimum_packets, maximum_packets: thresholds of the average queue, 0 <= minimum < maximum <= 4095. The others are as in
    `fairlane.topologies.model.Red`, which has their ranges and their defaults.
    """

    minimum_packets: float
    maximum_packets: float
    max_p: float = model.Red.max_p
    weight: float = model.Red.weight
    mean_packet_bytes: float = model.Red.mean_packet_bytes
    ecn: bool = model.Red.ecn

    def __post_init__(self) -> None:
        if not 0 <= self.minimum_packets < self.maximum_packets <= QUEUE_LIMIT_PACKETS:
            raise ValueError(
                f"RED thresholds need 0 <= minimum < maximum <= {QUEUE_LIMIT_PACKETS} packets,"
                f" got {self.minimum_packets} and {self.maximum_packets}"
            )
        model.check_red(self.max_p, self.weight, self.mean_packet_bytes)

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


def _decay(weight: float) -> float:
    """-ln(1 - weight), to the nearest float: the same on every machine."""
    return float(-_DECIMAL.ln(_DECIMAL.subtract(Decimal(1), Decimal(weight))))


def link_parameters(rate_bps: float) -> dict[str, int]:
    """Argument of the P4 action `set_link`: microseconds a byte takes, times 2^20."""
    return {"microseconds_per_byte": max(1, min(_FIELD_MAXIMUM, round(8e6 / rate_bps * LINK_SCALE)))}

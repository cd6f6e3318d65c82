"""The utilisation of a port, U of [ALS sec 3.1]."""

from __future__ import annotations

PPM = 1_000_000


def utilisation_ppm(transmitted_bytes: int, dropped_bytes: int, elapsed_s: float, bandwidth_bps: float) -> int:
    """U of a port in parts per million: bits offered to the link in the interval over its capacity.

    transmitted_bytes, dropped_bytes: >= 0, sent, and dropped by schemes whose drops count as load. The bytes sent count as 1 at most; above 1, U gives the drops of an
    overloaded port, a fraction of 1 - 1 / U (docs/decisions/sender-based-als.md). At most 2^32 - 1 ppm, the size of the field. A reading
    that spans no time gives 0.
    """
    if elapsed_s <= 0:
        return 0
    possible_bytes = elapsed_s * bandwidth_bps / 8
    return min((1 << 32) - 1, round(PPM * (min(transmitted_bytes / possible_bytes, 1.0) + dropped_bytes / possible_bytes)))

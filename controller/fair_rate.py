"""The fair share of a port, R_f = b U_l / n_conn [ALS sec 3.1]."""

from __future__ import annotations

PPM = 1_000_000


def fair_rate_bps(bandwidth_bps: float, utilisation_target: float, connections: int) -> int:
    """R_f in bit/s.

    bandwidth_bps: b, the bandwidth of the port, > 0. utilisation_target: U_l in (0, 1], 0.9 in the paper.
    connections: n_conn >= 0, seen in the last observation interval; a port without connections offers the rate of a single
    connection, since the next sender will be alone.

    Raises ValueError for values outside these ranges.
    """
    if not bandwidth_bps > 0:
        raise ValueError(f"bandwidth must be positive, got {bandwidth_bps} bit/s")
    if not 0 < utilisation_target <= 1:
        raise ValueError(f"utilisation target must be in (0, 1], got {utilisation_target}")
    if connections < 0:
        raise ValueError(f"connections must not be negative, got {connections}")
    return int(bandwidth_bps * utilisation_target / max(connections, 1))  # [ALS sec 3.1]


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

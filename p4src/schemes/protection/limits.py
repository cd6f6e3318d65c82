"""The limits of flow protection: how much a connection may send through a port.

[ALS sec 5] asks routers to protect adaptive flows from greedy ones and leaves the method open. Here a connection that keeps sending more than
its allowance A is found and limited to its share F. Both follow from the fair rate R_f of [ALS sec 3.1] and from two measurements of the
port in the last observation interval: its utilisation U (with drops that count as load) and C, the bit/s of all connections within their shares.

    F <- F min(2, U_l / U)        U < U_l: some connections use less than their share, so others may use more
    F <- F min(1, U_l b / C)      otherwise: the sum of the shares exceeds U_l b
    R_f <= F <= U_l b

    A  = min(2 F, F + (1 - U_l) b)

F is R_f if every connection sends at least R_f. If some send less, n_conn still counts them (acknowledgements of TCP are
such connections), F rises until sum_i min(r_i, F) = U_l b: the max-min share. Like ALS, A leaves (1 - U_l) b in total for TCP.
"""

from __future__ import annotations

BYTE_SCALE = 1 << 20
"""Of the data plane's rates (bytes per microsecond) and depths (bytes)."""
PERIOD_S = 2.0
"""Depth of a bucket over its rate. TCP's slow start and sawtooth are shorter bursts."""
LEAST_DEPTH_BYTES = 3028
"""Two frames of 1514 bytes: the slowest connection must be able to send one."""
_MOST_RISE = 2.0
_RATE_MAXIMUM = (1 << 32) - 1


def share_bps(
    previous_bps: float, fair_rate_bps: float, bandwidth_bps: float, utilisation_target: float, utilisation: float, within_bps: float
) -> float:
    """F of the next interval in bit/s.

    previous_bps: F of the interval that ended. fair_rate_bps: R_f. bandwidth_bps: b > 0. utilisation_target: U_l in (0, 1].
    utilisation: U >= 0. within_bps: C >= 0, of frames.
    """
    most = utilisation_target * bandwidth_bps
    if utilisation < utilisation_target:
        change = utilisation_target / max(utilisation, utilisation_target / _MOST_RISE)
    else:
        change = min(1.0, most / max(within_bps, most))
    return min(max(previous_bps * change, fair_rate_bps), most)


def allowance_bps(share: float, bandwidth_bps: float, utilisation_target: float) -> float:
    """A in bit/s; arguments as of `share_bps`."""
    return min(2 * share, share + (1 - utilisation_target) * bandwidth_bps)


def limits(share: float, allowance: float) -> dict[str, int]:
    """Arguments of the P4 action `set_limits`. share, allowance: bit/s, > 0; the data plane knows rates up to 32 Gb/s."""
    return {**_bucket("share", share), **_bucket("allowance", allowance)}


def _bucket(name: str, rate_bps: float) -> dict[str, int]:
    depth = max(rate_bps / 8 * PERIOD_S, LEAST_DEPTH_BYTES)
    return {name: max(1, min(_RATE_MAXIMUM, round(rate_bps / 8e6 * BYTE_SCALE))), f"{name}_depth": round(depth * BYTE_SCALE)}

"""The TCP throughput equation [RFC 5348 sec 3.1], which is also [SSVP eq 1], and its inverse for the first loss interval.

                                    s
    X_Bps = ------------------------------------------------------------
             R sqrt(2 b p / 3) + t_RTO (3 sqrt(3 b p / 8) p (1 + 32 p^2))

Padhye's model has min(1, 3 sqrt(3 b p / 8)) in the second term; neither the RFC nor the paper has the minimum.
"""

from __future__ import annotations

from math import inf, sqrt

MIN_LOSS_EVENT_RATE = 1e-9
"""The smallest loss event rate that a report carries, one in 10^9."""
_HALVINGS = 50


def throughput_bps(packet_bytes: float, rtt_s: float, loss_event_rate: float, rto_s: float, acked_packets: float = 1.0) -> float:
    """X_Bps in bit/s [RFC 5348 sec 3.1]; infinite without loss or delay. acked_packets: b, packets that one TCP ACK acknowledges."""
    p, b = loss_event_rate, acked_packets
    denominator = rtt_s * sqrt(2 * b * p / 3) + rto_s * (3 * sqrt(3 * b * p / 8) * p * (1 + 32 * p * p))  # [RFC 5348 sec 3.1], [SSVP eq 1]
    return 8 * packet_bytes / denominator if denominator > 0 else inf


def loss_event_rate_for(rate_bps: float, packet_bytes: float, rtt_s: float, rto_s: float, acked_packets: float = 1.0) -> float:
    """The p whose throughput is `rate_bps` [RFC 5348 sec 6.3.1], within `MIN_LOSS_EVENT_RATE` ... 1; the RFC asks for 5%."""
    low, high = MIN_LOSS_EVENT_RATE, 1.0
    if throughput_bps(packet_bytes, rtt_s, low, rto_s, acked_packets) <= rate_bps:
        return low
    if throughput_bps(packet_bytes, rtt_s, high, rto_s, acked_packets) >= rate_bps:
        return high
    for _ in range(_HALVINGS):  # the throughput falls as p grows; halving on a logarithmic scale
        middle = sqrt(low * high)
        if throughput_bps(packet_bytes, rtt_s, middle, rto_s, acked_packets) > rate_bps:
            low = middle
        else:
            high = middle
    return sqrt(low * high)

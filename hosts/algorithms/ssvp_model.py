"""The throughput model of SSVP and its knee and cliff: Papadimitriou and Zhang, sections III and IV.A, equations 2 and 6 to 19.

One bottleneck of capacity B, a buffer behind it, a round-trip propagation delay RTT_0, packets of length S, and K packets sent
each round trip by all flows together. Below the knee (K_knee) there is no queue and throughput grows with K; between knee and
cliff (K_cliff) the queue grows and throughput is B; above the cliff the buffer overflows [SSVP sec IV.A, fig 1]. SSVP-ADP aims
its decrease at the knee. No flow kind is here: the algorithms are in `ssvp.py` and `ssvp_adp.py`.

Lengths in bytes, rates in bit/s, times in seconds; arguments must be positive unless noted.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlane.arithmetic import square, total


def friendly_alpha(beta: float) -> float:
    """alpha of an AIMD flow that decreases by `beta` (0 to 1) and shares with TCP [SSVP eq 2]."""
    return 4 * (1 - square(beta)) / 3  # alpha = 4 (1 - beta^2) / 3 [SSVP eq 2]


def mean_throughput_bps(packet_lengths: Sequence[float], duration_s: float) -> float:
    """Of the packets sent in `duration_s` [SSVP eq 6]."""
    return sum(packet_lengths) * 8 / duration_s  # (1 / T) sum of S_ij [SSVP eq 6]


def packets_per_rtt(rtt_s: float, ipg_s: float) -> float:
    """k_i: packets that a flow sends in a round trip [SSVP eq 7]."""
    return rtt_s / ipg_s  # k_i = RTT / IPG_i [SSVP eq 7]


def flow_throughput_bps(packets: float, packet_bytes: float, rtt_s: float) -> float:
    """Of a flow that sends `packets` a round trip [SSVP eq 8]; with RTT = RTT_0 + queueing delay this is [SSVP eq 18]."""
    return packets * packet_bytes * 8 / rtt_s  # k_i S_i / RTT [SSVP eq 8, 18]


def instantaneous_rate_bps(packet_bytes: float, ipg_s: float) -> float:
    """R_i [SSVP eq 3, 9], the transmission time of a packet neglected as there."""
    return packet_bytes * 8 / ipg_s  # R_i = S_i / IPG_i [SSVP eq 3, 9]


def system_throughput_bps(packets: Sequence[float], packet_bytes: Sequence[float], rtt_s: float) -> float:
    """Of all flows, `packets[i]` of length `packet_bytes[i]` a round trip [SSVP eq 10]."""
    return total(flow_throughput_bps(k, s, rtt_s) for k, s in zip(packets, packet_bytes, strict=True))  # [SSVP eq 10]


def packets_at_rtt(rtt_s: float, capacity_bps: float, packet_bytes: float) -> float:
    """K: what all flows send in a round trip when the bottleneck is busy and the round trip is `rtt_s` [SSVP eq 19]."""
    return rtt_s * capacity_bps / (packet_bytes * 8)  # K = (RTT_0 + qdelay) B / S [SSVP eq 19]


def knee_packets(propagation_rtt_s: float, capacity_bps: float, packet_bytes: float) -> float:
    """K_knee: the link is full and the queue empty [SSVP eq 12]."""
    return packets_at_rtt(propagation_rtt_s, capacity_bps, packet_bytes)  # K_knee = RTT_0 B / S [SSVP eq 12]


def cliff_packets(propagation_rtt_s: float, buffer_packets: float, capacity_bps: float, packet_bytes: float) -> float:
    """K_cliff: the buffer is full [SSVP eq 16]."""
    longest_s = queueing_delay_s(buffer_packets, capacity_bps, packet_bytes)
    return packets_at_rtt(propagation_rtt_s + longest_s, capacity_bps, packet_bytes)  # (RTT_0 + qdelay_max) B / S [SSVP eq 16]


def queueing_delay_s(queued_packets: float, capacity_bps: float, packet_bytes: float) -> float:
    """Delay of a queue of Delta K packets (0 or more) [SSVP eq 14]."""
    return queued_packets * packet_bytes * 8 / capacity_bps  # qdelay = Delta K S / B [SSVP eq 14]


def bottleneck_throughput_bps(packets: float, propagation_rtt_s: float, capacity_bps: float, packet_bytes: float) -> float:
    """Of the whole system at K = `packets`, below the cliff: K S / RTT_0 up to the knee, then B [SSVP eq 11, 13, 15]."""
    queued = max(0.0, packets - knee_packets(propagation_rtt_s, capacity_bps, packet_bytes))  # K = K_knee + Delta K [SSVP eq 13]
    rtt_s = propagation_rtt_s + queueing_delay_s(queued, capacity_bps, packet_bytes)
    return flow_throughput_bps(packets, packet_bytes, rtt_s)  # K S / (RTT_0 + qdelay) [SSVP eq 11]; = B above the knee [SSVP eq 15]


def beta_to_knee(propagation_rtt_s: float, buffer_packets: float, capacity_bps: float, packet_bytes: float) -> float:
    """The decrease that leads from the cliff to the knee [SSVP eq 17]."""
    knee = knee_packets(propagation_rtt_s, capacity_bps, packet_bytes)
    return 1 / (1 + buffer_packets / knee)  # 1 / (1 + bufSize S / (RTT_0 B)) [SSVP eq 17]

"""Constant bit rate: always sends at one rate; no feedback, no congestion control.

The papers warn of this traffic, "non-congestion controlled UDP" [DAA sec 1], and the Iperf UDP stream of [TRABOL sec 3,
figs 3 and 4], which reduces a TCP connection's throughput as its rate is raised. There is no equation: the rate is the parameter.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlane.hosts.algorithms.base import Kind, Receiver, Rng, Sender, SenderAction, SetRate, require_positive


@dataclass(frozen=True, slots=True)
class CbrParameters:
    """The rate, and the limit of the link it is sent over."""

    rate_bps: float = 1e6
    """The rate, IPv4 headers included. No paper names one: TRABOL sweeps it up to 100 Mb/s [TRABOL fig 3]."""

    max_rate_bps: float = 1e9
    """The rate of the sender's own link: more than that cannot leave the host, so a higher `rate_bps` is limited to it."""

    def __post_init__(self) -> None:
        require_positive("CbrParameters", rate_bps=self.rate_bps, max_rate_bps=self.max_rate_bps)


class CbrSender(Sender):
    """Sends; hears nothing."""

    def __init__(self, parameters: CbrParameters = CbrParameters()) -> None:
        self.parameters = parameters
        self.rate_bps = min(parameters.rate_bps, parameters.max_rate_bps)

    def on_start(self, now_s: float, rng: Rng) -> tuple[SenderAction, ...]:
        return (SetRate(self.rate_bps),)


class CbrReceiver(Receiver):
    """Counts, as every receiver's runner does, and says nothing."""

    def __init__(self, parameters: CbrParameters = CbrParameters()) -> None:
        self.parameters = parameters


KINDS = (
    Kind(
        "cbr",
        "constant bit rate, no congestion control: the UDP stream of [TRABOL sec 3, fig 3]",
        CbrParameters,
        CbrSender,
        CbrReceiver,
    ),
)

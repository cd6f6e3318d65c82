"""A fluid model of ALS routers, to watch an algorithm in a closed loop without a network: deterministic, milliseconds to run.

Rates are flows of bits, queues are numbers, packets do not exist but for RTCP. It is a means for tests, goldens and the plots in
`docs/`; results that a report shows come from the fabrics. Kept from reality: the algorithms themselves, the RTCP timetables,
the 8-bit loss fraction, and routers that count connections and set R_f = b U_l / n_conn each second [ALS sec 3.1].
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from hosts.algorithms.als import AlsParameters, AlsReceiver, AlsSender
from hosts.algorithms.base import Control, Feedback, SetControl, SetRate, SetReport, SetTimer, Timer
from hosts.wire.schedule import RtcpParameters, RtcpSchedule

STEP_S = 0.1
UTILISATION_LEVEL = 0.9
"""U_l [ALS sec 3.1]."""
CONTROL_BYTES = 120
"""Of an RTCP compound packet, with headers; only the timetable uses it."""


@dataclass(slots=True)
class FluidLink:
    """A router's output port."""

    capacity_bps: float
    buffer_bits: float
    queue_bits: float = 0.0
    utilisation: float = 0.0
    """U of the last second: what was sent over capacity."""
    fair_rate_bps: float = 0.0
    """R_f; 0 until the first second has passed: control packets go by unchanged."""
    load_bits: float = 0.0
    """In the present second."""


@dataclass(slots=True)
class FluidFlow:
    """One ALS sender and receiver, `path` the links between them."""

    name: str
    path: tuple[int, ...]
    start_s: float = 0.0
    parameters: AlsParameters = field(default_factory=AlsParameters)


@dataclass(frozen=True, slots=True)
class Sample:
    """State of one flow at one instant."""

    t_s: float
    rate_bps: float
    """What the sender sends."""
    goodput_bps: float
    """What reaches the receiver."""
    desired_rate_bps: float | None
    """R_d that the receiver heard last."""
    air_bps: float | None
    """AIR_i."""


class _End:
    """Both ends of a flow, as the model runs them."""

    def __init__(self, number: int, flow: FluidFlow, now_s: float, seed: int) -> None:
        self.flow = flow
        self.rng = random.Random(f"{seed}/{flow.name}")
        self.ssrc, self.receiver_ssrc = 2 * number + 1, 2 * number + 2
        self.sender, self.receiver = AlsSender(flow.parameters), AlsReceiver()
        self.rate_bps = 0.0
        self.goodput_bps = 0.0
        self.control: SetControl | None = None
        self.report: SetReport | None = None
        self.timers: dict[str, float] = {}
        self.expected_bits = self.lost_bits = 0.0
        self.apply(self.sender.on_start(now_s, self.rng))
        self.apply(self.receiver.on_start(now_s, self.rng))
        rtcp = RtcpParameters(session_bandwidth_bps=flow.parameters.max_rate_bps)
        self.sender_rtcp = RtcpSchedule(now_s, rtcp, self.ssrc, CONTROL_BYTES, self.rng.random)
        self.receiver_rtcp = RtcpSchedule(now_s, rtcp, self.receiver_ssrc, CONTROL_BYTES, self.rng.random)

    def apply(self, actions: tuple) -> None:
        for action in actions:
            match action:
                case SetRate(rate_bps):
                    self.rate_bps = rate_bps
                case SetControl():
                    self.control = action
                case SetReport():
                    self.report = action
                case SetTimer(name, at_s):
                    self.timers[name] = at_s

    def exchange(self, now_s: float, links: list[FluidLink]) -> None:
        """Timers and RTCP of one step."""
        self.sender_rtcp.sent_data(now_s)
        self.receiver_rtcp.received_data(now_s, self.ssrc)
        if now_s >= self.sender_rtcp.next_s and self.sender_rtcp.expire(now_s):
            self.sender_rtcp.sent_rtcp(now_s, CONTROL_BYTES)
            self.receiver_rtcp.received_rtcp(now_s, self.ssrc, CONTROL_BYTES)
            rate, utilisation = self.control.desired_rate_bps, self.control.utilisation
            for number in self.flow.path:
                link = links[number]
                if link.fair_rate_bps and rate >= link.fair_rate_bps:  # [ALS sec 3.1]
                    rate, utilisation = link.fair_rate_bps, link.utilisation
            self.apply(self.receiver.on_control(now_s, Control(self.ssrc, rate, utilisation), self.rng))
        if now_s >= self.receiver_rtcp.next_s and self.receiver_rtcp.expire(now_s):
            self.receiver_rtcp.sent_rtcp(now_s, CONTROL_BYTES)
            self.sender_rtcp.received_rtcp(now_s, self.receiver_ssrc, CONTROL_BYTES)
            lost = self.lost_bits / self.expected_bits if self.expected_bits else 0.0
            self.expected_bits = self.lost_bits = 0.0
            feedback = Feedback(
                reporter=self.receiver_ssrc,
                loss_fraction=min(int(lost * 256), 255) / 256,  # RFC 3550 section 6.4.1
                desired_rate_bps=None if self.report is None else self.report.desired_rate_bps,
                utilisation=None if self.report is None else self.report.utilisation,
            )
            self.apply(self.sender.on_feedback(now_s, feedback, self.rng))
        for name, at_s in list(self.timers.items()):
            if now_s >= at_s:
                del self.timers[name]
                self.apply(self.sender.on_timer(now_s, Timer(name), self.rng))


def run(links: list[FluidLink], flows: list[FluidFlow], duration_s: float, seed: int) -> dict[str, list[Sample]]:
    """Samples of each flow at every whole second of its life. The same arguments give the same samples."""
    ends: list[_End] = []
    waiting = sorted(enumerate(flows), key=lambda x: x[1].start_s)
    samples: dict[str, list[Sample]] = {flow.name: [] for flow in flows}
    for step in range(round(duration_s / STEP_S)):
        now_s = step * STEP_S
        while waiting and waiting[0][1].start_s <= now_s:
            number, flow = waiting.pop(0)
            ends.append(_End(number, flow, now_s, seed))
        _carry(links, ends)
        for end in ends:
            end.exchange(now_s, links)
        if step % round(1 / STEP_S) == 0:
            _observe(links, ends)
            for end in ends:
                entry = end.sender.receivers.get(end.receiver_ssrc)
                samples[end.flow.name].append(
                    Sample(
                        t_s=round(now_s, 6),
                        rate_bps=end.rate_bps,
                        goodput_bps=end.goodput_bps,
                        desired_rate_bps=None if end.report is None else end.report.desired_rate_bps,
                        air_bps=None if entry is None else entry.air_bps,
                    )
                )
    return samples


def _carry(links: list[FluidLink], ends: list[_End]) -> None:
    """Move one step's bits. Links are visited in order of number, so a path's numbers must rise."""
    inflow = {end.ssrc: end.rate_bps * STEP_S for end in ends}
    for number, link in enumerate(links):
        users = [end for end in ends if number in end.flow.path]
        offered = sum(inflow[end.ssrc] for end in users)
        served = min(link.queue_bits + offered, link.capacity_bps * STEP_S)
        backlog = link.queue_bits + offered - served
        lost = max(0.0, backlog - link.buffer_bits)
        link.queue_bits = backlog - lost
        link.load_bits += served + lost
        passed = 1.0 - lost / offered if offered else 1.0
        carried = min(1.0, served / (offered * passed)) if offered * passed else 1.0
        for end in users:
            end.lost_bits += inflow[end.ssrc] * (1.0 - passed)
            inflow[end.ssrc] *= passed * carried
    for end in ends:
        end.expected_bits += end.rate_bps * STEP_S
        end.goodput_bps = inflow[end.ssrc] / STEP_S


def _observe(links: list[FluidLink], ends: list[_End]) -> None:
    """What the control plane does each second [ALS sec 3.1]."""
    for number, link in enumerate(links):
        connections = sum(number in end.flow.path for end in ends)
        if connections:
            link.fair_rate_bps = link.capacity_bps * UTILISATION_LEVEL / connections  # R_f = b U_l / n_conn [ALS sec 3.1]
        link.utilisation = link.load_bits / link.capacity_bps
        link.load_bits = 0.0

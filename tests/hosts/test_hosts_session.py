"""Both ends of a flow as pure sessions over a toy network: paced, windowed, acknowledged, reported, layered; and lies."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts.algorithms import base
from hosts.algorithms.base import AckDetail, Interests, LossCause
from hosts.session.common import Options, Timers
from hosts.session.receiver import ReceiverSession
from hosts.session.reporters import Reporters
from hosts.session.sender import SenderSession
from hosts.wire.acks import AckPacket, parse_ack
from hosts.wire.alsf import find_alsf
from hosts.wire.reports import ReportPacket
from hosts.wire.rtcp import Bye, ReceiverReport, ReportBlock, SenderReport, emit_compound, parse_compound
from hosts.wire.rtp import parse_rtp
from hosts.wire.stamp import parse_stamp

OFFSET_S = 1_700_000_000.0
GROUPS = (0xEF010001, 0xEF010002, 0xEF010003)


def options(ssrc: int, packet_bytes: int = 1000) -> Options:
    return Options(
        algorithm="test", local="10.0.0.1", peer="10.0.0.2", port=5004, packet_bytes=packet_bytes, max_rate_bps=1e6, ssrc=ssrc, seed=1,
        start_unix_s=None, stop_unix_s=None, pacing_jitter=0.0, exact_loss=False, log="-",
    )  # fmt: skip


@dataclass
class Net:
    """Sender and receivers, a delay each way, and a rule by which data is lost."""

    sender: SenderSession
    receivers: list[ReceiverSession]
    delay_s: float = 0.05
    loses: Callable[[int], bool] = lambda number: False
    loses_back: Callable[[int], bool] = lambda number: False
    now: float = 100.0
    events: list = field(default_factory=list)
    data: list[tuple[int, bytes]] = field(default_factory=list)
    direct: list[bytes] = field(default_factory=list)
    control: list[bytes] = field(default_factory=list)
    members: dict[int, set[int]] = field(default_factory=dict)
    numbers: int = 0

    def run(self, until_s: float) -> None:
        """Relative to now."""
        end = self.now + until_s
        if not self.members:
            for number, receiver in enumerate(self.receivers):
                self.members[number] = set() if receiver.layered else {0}
                receiver.start(self.now)
            self.sender.start(self.now)
        while True:
            self._drain()
            due = min([self.sender.next_s(), *(r.next_s() for r in self.receivers), *(e[0] for e in self.events[:1])])
            if due > end:
                self.now = end
                return
            self.now = max(self.now, due)
            while self.events and self.events[0][0] <= self.now:
                heapq.heappop(self.events)[2]()
                self._drain()
            for end_of_flow in (self.sender, *self.receivers):
                end_of_flow.wake(self.now)
                self._drain()
            while (stream := self.sender.next_packet(self.now)) is not None:
                self._send(stream.group, bytes(stream.packet), len(self.data))
                self.sender.departed(self.now, stream)

    def _later(self, what: Callable[[], None]) -> None:
        self.numbers += 1
        heapq.heappush(self.events, (self.now + self.delay_s, self.numbers, what))

    def _send(self, group: int, packet: bytes, number: int) -> None:
        self.data.append((group, packet))
        if self.loses(number):
            return

        def arrive() -> None:
            for index, receiver in enumerate(self.receivers):
                if group in self.members[index]:
                    receiver.on_direct(self.now, bytearray(packet), len(packet), group)

        self._later(arrive)

    def _drain(self) -> None:
        outbox = self.sender.outbox
        for payload in outbox.control:
            self._later(lambda p=payload: [r.on_control(self.now, p) for r in self.receivers])
        self.control += outbox.control
        outbox.control.clear()
        for payload in outbox.reflected:
            self._later(lambda p=payload: [r.on_control(self.now, p) for r in self.receivers])
        outbox.reflected.clear()
        for index, receiver in enumerate(self.receivers):
            outbox = receiver.outbox
            if outbox.membership is not None:
                self.members[index], outbox.membership = set(outbox.membership), None
            for payload in outbox.direct:
                self.direct.append(payload)
                if not self.loses_back(len(self.direct) - 1):
                    self._later(lambda p=payload: self.sender.on_direct(self.now, bytearray(p), len(p), 0))
            for payload in outbox.control:
                self._later(lambda p=payload: self.sender.on_control(self.now, p))
            self.control += outbox.control
            outbox.direct.clear()
            outbox.control.clear()


class Records(list):
    """A recorder."""

    def __call__(self, kind: str, now: float, **fields: object) -> None:
        self.append((kind, now, fields))

    def of(self, kind: str) -> list[dict]:
        return [fields for k, _, fields in self if k == kind]


def net(sender: base.Sender, receiver: base.Receiver, layered: bool = False, receivers: int = 1, packet_bytes: int = 1000, **more) -> Net:
    log = Records()
    source = SenderSession(options(7, packet_bytes), sender, random.Random(1), OFFSET_S, log, layered)
    acks = sender.interests.acks is not AckDetail.NONE
    sinks = [ReceiverSession(options(90 + n, packet_bytes), receiver if n == 0 else type(receiver)(), random.Random(n), OFFSET_S, Records(), acks, layered)
             for n in range(receivers)]  # fmt: skip
    made = Net(source, sinks, **more)
    made.log = log
    return made


class Paced(base.Sender):
    """A fixed rate."""

    def __init__(self, rate_bps: float = 80_000.0, burst: int = 1) -> None:
        self.rate_bps, self.burst = rate_bps, burst

    def on_start(self, now_s, rng):
        return (base.SetRate(self.rate_bps, self.burst),)


class Deaf(base.Receiver):
    pass


def test_a_flow_without_feedback_sends_data_alone() -> None:
    made = net(Paced(), Deaf())
    made.run(10.0)
    assert len(made.data) in (100, 101) and not made.direct and not made.control
    totals = made.receivers[0].totals()
    assert len(made.data) - totals["received_packets"] in (0, 1) and totals["lost_packets"] == 0
    made.sender.finish(made.now)
    made.receivers[0].finish(made.now)
    assert not made.sender.outbox.control and not made.receivers[0].outbox.control  # no BYE where there is no RTCP session


def test_bursts_leave_back_to_back_at_the_same_mean_rate() -> None:
    made = net(Paced(80_000.0, burst=5), Deaf())
    made.run(10.0)
    instants = [parse_stamp(parse_rtp(packet).payload).sent_ns for _, packet in made.data]
    assert len(instants) in (100, 105)
    for at in range(0, len(instants), 5):
        assert len(set(instants[at : at + 5])) == 1
    gaps = {round((b - a) / 1e9, 6) for a, b in zip(instants[::5], instants[5::5])}
    assert gaps == {0.5}


class Acked(base.Sender):
    """Writes down what it is told."""

    interests = Interests(acks=AckDetail.LOSSES)

    def __init__(self, rate_bps: float = 400_000.0, timeout_s: float | None = None, before_sending: bool = False) -> None:
        self.rate_bps, self.timeout_s, self.before_sending = rate_bps, timeout_s, before_sending
        self.losses: list[base.Loss] = []
        self.acks: list[base.Ack] = []
        self.paths: list[base.PathState] = []

    def on_start(self, now_s, rng):
        more = () if self.timeout_s is None else (base.SetLossTimeout(self.timeout_s, before_sending=self.before_sending),)
        return (base.SetRate(self.rate_bps), base.SetTimer("look", now_s + 1.0), *more)

    def on_ack(self, now_s, ack, rng):
        self.acks.append(ack)
        return ()

    def on_loss(self, now_s, loss, rng):
        self.losses.append(loss)
        return ()

    def on_timer(self, now_s, timer, rng):
        self.paths.append(timer.path)
        return (base.SetTimer("look", now_s + 1.0),)


def test_each_packet_is_acknowledged_and_gaps_are_losses() -> None:
    """50 packets/s, packets 10, 11 and 30 lost: found when the third packet that came after them is acknowledged, 14 and 33."""
    algorithm = Acked()
    made = net(algorithm, Deaf(), loses={10, 11, 30}.__contains__)
    made.run(2.01)
    assert [(x.first_sequence, x.last_sequence, x.lost_packets, x.cause, x.path.highest_acked_sequence) for x in algorithm.losses] == [
        (10, 11, 2, LossCause.GAP, 14), (30, 30, 1, LossCause.GAP, 33)
    ]
    assert not algorithm.acks  # LOSSES: acknowledgements without news are not told
    assert [parse_ack(p).sequence for p in made.direct] == [n for n in range(len(made.data)) if n not in (10, 11, 30)][: len(made.direct)]
    path = algorithm.paths[0]
    assert (path.srtt_s, path.latest_rtt_s) == pytest.approx((0.1, 0.1)) and 5 <= path.in_flight_packets <= 6
    assert path.last_sent_sequence - path.highest_acked_sequence == path.in_flight_packets


def test_lost_acknowledgements_lose_nothing() -> None:
    algorithm = Acked()
    made = net(algorithm, Deaf(), loses_back=lambda n: n % 4 != 0)
    made.run(3.0)
    assert algorithm.losses == []


def test_a_blackout_is_a_timeout() -> None:
    """From packet 20 on nothing arrives: 0.5 s after each was sent it is lost."""
    algorithm = Acked(timeout_s=0.5)
    made = net(algorithm, Deaf(), loses=lambda n: n >= 20)
    made.run(2.0)
    assert algorithm.losses and {x.cause for x in algorithm.losses} == {LossCause.TIMEOUT}
    assert algorithm.losses[0].first_sequence == 20
    lost = sum(x.lost_packets for x in algorithm.losses)
    assert lost + 20 + made.sender._acks.in_flight_packets == len(made.data)


def test_a_timeout_before_sending_is_found_when_a_packet_leaves() -> None:
    """A packet of 1000 bytes each 0.8 s, 0.5 s of timeout, nothing arrives: the timer finds packet 0 lost 0.5 s after it was sent,
    the look before sending when packet 1 is to leave, 0.8 s after it."""
    for before_sending, found_s in ((False, 0.5), (True, 0.8)):
        made = net(Acked(10_000.0, 0.5, before_sending), Deaf(), loses=lambda n: True)
        made.run(4.0)
        sent_s = [parse_stamp(parse_rtp(packet).payload).sent_ns * 1e-9 for _, packet in made.data]
        losses = [(fields["first_sequence"], now) for kind, now, fields in made.log if kind == "loss"]
        assert len(losses) >= 3
        assert losses == [(n, pytest.approx(sent_s[n] + found_s, abs=1e-6)) for n, _ in enumerate(losses)]


class Windowed(Acked):
    """Ten packets, halved at a loss."""

    interests = Interests(acks=AckDetail.EVERY)

    def on_start(self, now_s, rng):
        return (base.SetWindow(10.0), base.SetLossTimeout(1.0))

    def on_loss(self, now_s, loss, rng):
        self.losses.append(loss)
        return (base.SetWindow(5.0),)


def test_a_window_is_all_that_is_under_way() -> None:
    """Ten packets each 0.1 s; after the loss of packet 35 five."""
    algorithm = Windowed()
    made = net(algorithm, Deaf(), loses={35}.__contains__)
    made.run(0.299)
    assert len(made.data) == 30
    made.run(1.0)
    assert [x.first_sequence for x in algorithm.losses] == [35]
    assert sum(a.newly_acked_packets for a in algorithm.acks) + 1 + made.sender._acks.in_flight_packets == len(made.data)
    assert made.sender._acks.in_flight_packets == 5
    assert made.log.of("path")[-1]["window_packets"] == 5.0
    assert [(x["first_sequence"], x["lost_packets"], x["cause"]) for x in made.log.of("loss")] == [(35, 1, "gap")]


def test_a_window_opens_again_after_all_is_lost() -> None:
    made = net(Windowed(), Deaf(), loses=lambda n: n < 10)
    made.run(2.5)
    assert made.receivers[0].totals()["received_packets"] > 30


def test_a_refused_packet_is_tried_again_with_the_same_number() -> None:
    made = net(Windowed(), Deaf())
    sender = made.sender
    sender.start(5.0)
    first = sender.next_packet(5.0)
    sender.refused(5.0, first)
    assert sender.next_packet(5.0) is None and 5.0 < sender.next_s() <= 5.001
    again = sender.next_packet(5.001)
    assert parse_stamp(parse_rtp(bytes(again.packet)).payload).sequence == 0


class Reporting(base.Receiver):
    """A report each 0.5 s."""

    interests = Interests(gaps=True)

    def __init__(self, rate: float | None = None) -> None:
        self.rate, self.gaps, self.seen = rate, [], []

    def on_start(self, now_s, rng):
        return (base.SetTimer("report", now_s + 0.5),)

    def on_timer(self, now_s, timer, reception, rng):
        self.seen.append(reception)
        return (base.SendFeedback(self.rate), base.SetTimer("report", now_s + 0.5))

    def on_gap(self, now_s, gap, rng):
        self.gaps.append(gap)
        return ()


class Stamping(Paced):
    """Tells the receiver the round-trip time that it heard."""

    def __init__(self, rate_bps: float = 80_000.0) -> None:
        super().__init__(rate_bps)
        self.heard: list[base.Feedback] = []

    def on_feedback(self, now_s, feedback, rng):
        self.heard.append(feedback)
        return (base.StampData(feedback.rtt_s),)


def test_own_reports_carry_loss_rate_and_round_trip() -> None:
    """100 packets/s of 1000 bytes, each tenth lost."""
    sender, receiver = Stamping(800_000.0), Reporting(0.02)
    made = net(sender, receiver, loses=lambda n: n % 10 == 5)
    made.run(5.0)
    assert 8 <= len(sender.heard) <= 10
    for feedback in sender.heard[1:]:
        assert feedback.rtt_s == pytest.approx(0.1, abs=0.001)
        assert feedback.loss_fraction == pytest.approx(0.1, abs=0.021)
        assert feedback.receive_rate_bps == pytest.approx(720_000, rel=0.03)
        assert (feedback.loss_event_rate, feedback.reporter) == (0.02, 90)
    assert all(g.first_lost_sequence == g.last_lost_sequence for g in receiver.gaps)
    assert receiver.gaps[0].after_s - receiver.gaps[0].before_s == pytest.approx(0.02)
    assert receiver.gaps[0].reception.lost_packets == 1
    last = receiver.seen[-1]
    assert last.sender_rtt_s == pytest.approx(0.1, abs=0.001) and receiver.seen[0].sender_rtt_s is None
    assert last.received_bytes == 1000 * last.received_packets
    assert next(parse_stamp(parse_rtp(p).payload).rtt_us for _, p in made.data) == 0
    records = made.log.of("feedback")
    assert len(records) == len(sender.heard) and records[0]["lost_packets"] >= 4


def test_nothing_is_reported_before_the_first_packet() -> None:
    made = net(Paced(8_000.0), Reporting(), loses=lambda n: True)
    made.run(3.0)
    assert made.direct == [] and len(made.data) == 3


def test_small_packets_have_no_room_for_the_round_trip() -> None:
    made = net(Stamping(), Reporting(), packet_bytes=56)
    with pytest.raises(TypeError, match="test stamps data: packets must have 60 bytes or more"):
        made.run(2.0)


class Layers(Paced):
    """Three layers with RTCP."""

    interests = Interests(rtcp=True)

    def __init__(self) -> None:
        self.heard: list[base.Feedback] = []
        self.left: list[int] = []

    def on_start(self, now_s, rng):
        layers = tuple(base.Layer(a, r) for a, r in zip(GROUPS, (80_000.0, 40_000.0, 0.0)))
        return (base.SetRate(80_000.0), base.SetControl(1e6, 0.5, layers), base.SetLayers(layers))

    def on_feedback(self, now_s, feedback, rng):
        self.heard.append(feedback)
        return ()

    def on_leave(self, now_s, reporter, rng):
        self.left.append(reporter)
        return ()


class Joining(base.Receiver):
    """The base layer, and after 20 s the second, until 40 s."""

    interests = Interests(rtcp=True)

    def on_start(self, now_s, rng):
        return (base.JoinLayers(GROUPS[:1]), base.SetTimer("join", now_s + 20.0), base.SetTimer("leave", now_s + 40.0))

    def on_timer(self, now_s, timer, reception, rng):
        return (base.JoinLayers(GROUPS[:2] if timer.name == "join" else GROUPS[:1]),)

    def on_control(self, now_s, control, rng):
        return (base.SetReport(control.desired_rate_bps, control.utilisation),)


def test_layers_are_streams_of_their_own_to_groups() -> None:
    sender = Layers()
    made = net(sender, Joining(), layered=True, receivers=2)
    made.run(19.9)
    first, second = made.receivers
    before = first.totals()["received_packets"]
    assert abs(before - 199) <= 2 and before == second.totals()["received_packets"]
    made.run(20.0)
    assert abs(first.totals()["received_packets"] - before - 300) <= 4
    made.run(20.1)
    totals = first.totals()
    assert totals["lost_packets"] == 0 and totals["foreign_packets"] == 0
    packets = {group: [parse_rtp(p) for g, p in made.data if g == group] for group in GROUPS}
    assert [{p.ssrc for p in packets[g]} for g in GROUPS] == [{7}, {8}, set()]
    assert abs(len(packets[GROUPS[0]]) - 600) <= 1 and abs(len(packets[GROUPS[1]]) - 300) <= 1
    for group in GROUPS[:2]:
        assert [parse_stamp(p.payload).sequence for p in packets[group]] == list(range(len(packets[group])))
    compounds = [parse_compound(p) for p in made.control]
    blocks = [len(c[0].blocks) for c in compounds if isinstance(c[0], ReceiverReport)]
    assert {1, 2} <= set(blocks)
    assert all(len(find_alsf(c, True).layers) == 3 for c in compounds if isinstance(c[0], SenderReport))
    assert made.sender.outbox.control_group == GROUPS[0]
    # One report is one feedback, however many layers it is about.
    assert len(sender.heard) == sum(b > 0 for b in blocks) or len(sender.heard) == sum(b > 0 for b in blocks) - 1
    assert {f.reporter for f in sender.heard} == {90, 91} and all(f.loss_fraction == 0 for f in sender.heard)
    assert [x["rate_bps"] for x in made.log.of("layer_sent")[-3:]] == [80_000.0, 40_000.0, 0.0]
    assert [x["group"] for x in made.receivers[0]._record.of("join")] == ["239.1.0.1", "239.1.0.2"]
    assert [x["group"] for x in made.receivers[0]._record.of("leave")] == ["239.1.0.2"]
    last = made.receivers[0]._record.of("layer_data")[-2:]
    assert [x["member"] for x in last] == [True, False] and abs(last[1]["received_packets"] - 100) <= 1


def test_loss_on_layers_is_of_all_packets() -> None:
    """Base layer 10 packets/s without loss, second layer 5 packets/s of which every other is lost."""
    sender = Layers()
    made = net(sender, Joining(), layered=True)
    made.loses = lambda n: made.data[-1][0] == GROUPS[1] and len([1 for g, _ in made.data if g == GROUPS[1]]) % 2 == 0
    made.run(39.0)
    after = [f.loss_fraction for f in sender.heard[-2:]]
    assert after and all(0.1 < x < 0.25 for x in after)  # half of a third


def test_receivers_of_a_group_hear_each_other_through_the_sender() -> None:
    """RFC 5760, simple feedback model; a session with one peer reflects nothing."""
    made = net(Layers(), Joining(), layered=True, receivers=12)
    made.run(20.0)
    assert [r._member.schedule.members for r in made.receivers] == [13] * 12 and made.sender._member.schedule.members == 13
    assert all(r.totals()["foreign_packets"] == r.totals()["malformed_packets"] == 0 for r in made.receivers)
    assert not any(r._record.of("bye") for r in made.receivers)
    made.receivers[3].finish(made.now)
    made.run(0.3)
    assert [r._member.schedule.members for n, r in enumerate(made.receivers) if n != 3] == [12] * 11
    assert not any(r._record.of("bye") for r in made.receivers)  # the source is still there
    single = net(Layers(), Joining())
    single.sender.layered = False
    single.sender.on_control(single.now, emit_compound([ReceiverReport(90)]))
    assert not single.sender.outbox.reflected


def test_a_receiver_that_falls_silent_leaves_for_the_algorithm() -> None:
    """RFC 3550 section 6.3.5: after five intervals, 25 s here."""
    sender = Layers()
    made = net(sender, Joining(), layered=True, receivers=2)
    made.run(20.0)
    made.receivers.pop()
    made.run(20.0)
    assert sender.left == []
    made.run(20.0)
    assert sender.left == [91] and [x["ssrc"] for x in made.log.of("timeout")] == [91]


def test_blocks_of_upper_layers_name_no_sender_report() -> None:
    """Only the base layer's source sends SRs: LSR and DLSR of others are 0 (RFC 3550 section 6.4.1)."""
    made = net(Layers(), Joining(), layered=True)
    made.run(39.0)
    blocks = [c[0].blocks for c in map(parse_compound, made.control) if isinstance(c[0], ReceiverReport) and len(c[0].blocks) == 2]
    assert blocks and all(base.ssrc == 7 and base.lsr and upper.ssrc == 8 and (upper.lsr, upper.dlsr) == (0, 0) for base, upper in blocks)


def test_a_goodbye_reaches_the_algorithm() -> None:
    sender = Layers()
    made = net(sender, Joining(), layered=True)
    made.run(10.0)
    made.receivers[0].finish(made.now)
    made.run(1.0)
    assert sender.left == [90] and isinstance(parse_compound(made.control[-1])[-1], Bye)


def test_many_receivers_that_leave_together_space_their_byes() -> None:
    """RFC 3550 section 6.3.7: 51 receivers and a sender are more than 50 members."""
    sender = Layers()
    made = net(sender, Joining(), layered=True, receivers=51)
    made.run(20.0)
    leave = made.now
    for receiver in made.receivers:
        receiver.finish(leave)
    received = [r.totals()["received_packets"] for r in made.receivers]
    made.run(1.0)
    assert sender.left == []
    made.run(5.0)
    assert sorted(sender.left) == [90 + n for n in range(51)]
    assert all(r.next_s() == float("inf") for r in made.receivers)
    assert [r.totals()["received_packets"] for r in made.receivers] == received  # data no longer counts


def test_few_receivers_that_leave_together_say_bye_at_once() -> None:
    sender = Layers()
    made = net(sender, Joining(), layered=True, receivers=49)
    made.run(20.0)
    for receiver in made.receivers:
        receiver.finish(made.now)
    made.run(0.3)
    assert len(sender.left) == 49


def test_a_receiver_that_has_not_reported_leaves_without_bye() -> None:
    """RFC 3550 section 6.3.7: the first report comes after 1 s at the earliest."""
    sender = Layers()
    made = net(sender, Joining(), layered=True, receivers=2)
    made.run(0.9)
    made.receivers[0].finish(made.now)
    made.run(10.0)
    assert sender.left == [] and made.receivers[0].next_s() == float("inf")


@pytest.mark.parametrize(
    "action", [base.SetWindow(5.0), base.SetLossTimeout(1.0), base.SetLayers(()), base.SetReport(1.0, 1.0), base.JoinLayers((1,))]
)
def test_an_action_for_another_flow_is_named(action: object) -> None:
    class Wrong(Paced):
        def on_start(self, now_s, rng):
            return (base.SetRate(1e5), action)

    with pytest.raises(TypeError, match=f"test asks for {type(action).__name__}"):
        net(Wrong(), Deaf()).run(1.0)


def test_a_sender_that_starts_without_a_rate_is_named() -> None:
    class Silent(Paced):
        def on_start(self, now_s, rng):
            return ()

    with pytest.raises(TypeError, match="test starts without SetRate or SetWindow"):
        net(Silent(), Deaf()).run(1.0)


LIES = st.one_of(
    st.binary(max_size=60),
    st.builds(AckPacket, st.integers(0, 2**48 - 1), st.integers(0, 2**32 - 1)).map(AckPacket.emit),
    st.builds(
        ReportPacket, st.integers(0, 2**48 - 1), st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1),
        st.none() | st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1),
    ).map(ReportPacket.emit),
)  # fmt: skip


class Credulous(Acked):
    """Looks at every number that it is told."""

    interests = Interests(acks=AckDetail.EVERY, rtcp=True)

    def on_feedback(self, now_s, feedback, rng):
        assert 0.0 <= feedback.loss_fraction <= 1.0 and (feedback.rtt_s is None or 0.0 <= feedback.rtt_s < 1e12)
        assert feedback.receive_rate_bps is None or 0.0 <= feedback.receive_rate_bps < float("inf")
        return ()


@given(st.lists(st.tuples(st.booleans(), LIES), max_size=30))
def test_whatever_arrives_the_flow_goes_on(lies: list) -> None:
    made = net(Credulous(timeout_s=1.0), Deaf())
    for to_sender, raw in lies:
        made.run(0.02)
        for end_of_flow in (made.sender,) if to_sender else made.receivers:
            end_of_flow.on_direct(made.now, bytearray(raw), len(raw), 0)
            end_of_flow.on_control(made.now, raw)
    sent = len(made.data)
    made.run(1.0)
    assert len(made.data) - sent in (49, 50, 51)
    book = made.sender._acks
    assert 0 <= book.in_flight_packets <= len(made.data)


def test_timers_replace_cancel_and_come_in_order() -> None:
    timers = Timers()
    for action in (base.SetTimer("b", 2.0), base.SetTimer("a", 3.0), base.SetTimer("a", 1.0), base.SetTimer("c", 1.5), base.CancelTimer("c"), base.CancelTimer("x")):
        assert timers.take(action)
    assert not timers.take(base.SetRate(1.0))
    assert timers.next_s() == 1.0 and timers.due(0.5) == []
    assert timers.due(2.0) == ["a", "b"] and timers.next_s() == float("inf")


def block(ssrc: int, highest: int, lost: int, fraction: int) -> ReportBlock:
    return ReportBlock(ssrc, fraction, lost, highest, 900, 0, 0)


def test_losses_of_two_layers_by_hand() -> None:
    """Since the report before, 10 of 100 packets of the base layer (25/256) and 25 of 50 of the next (128/256) were lost."""
    for exact in (False, True):
        reporters = Reporters(exact)
        first = ReceiverReport(90, (block(8, 50, 0, 64), block(7, 100, 0, 0)))
        ((feedback, fields),) = reporters.read((first,), [7, 8], 0)
        assert (feedback.loss_fraction, fields["loss_exact"]) == (0.125, None)  # nothing to count yet: the mean of 0 and 1/4
        second = ReceiverReport(90, (block(8, 100, 25, 128), block(7, 200, 10, 25)))
        ((feedback, fields),) = reporters.read((second,), [7, 8], 0)
        assert fields["loss_exact"] == 35 / 150
        assert fields["loss_8bit"] == pytest.approx((100 * 25 / 256 + 50 * 128 / 256) / 150)
        assert feedback.loss_fraction == (fields["loss_exact"] if exact else fields["loss_8bit"])
        assert fields["cumulative_lost"] == 10 and feedback.jitter_s == 0.01
        # The next layer was left, and came again: what it lost meanwhile is not counted.
        reporters.read((ReceiverReport(90, (block(7, 300, 10, 0),)),), [7, 8], 0).__next__()
        third = ReceiverReport(90, (block(7, 400, 20, 26), block(8, 9000, 0, 255)))
        ((feedback, fields),) = reporters.read((third,), [7, 8], 0)
        assert fields["loss_exact"] == 0.1 and fields["loss_8bit"] == 26 / 256


def test_one_stream_keeps_the_fraction_of_its_block() -> None:
    reporters = Reporters(False)
    for _ in range(2):  # the second time no packet was expected: forged, and still what it says
        ((feedback, _),) = reporters.read((ReceiverReport(90, (block(7, 5, 0, 255),)),), [7], 0)
        assert feedback.loss_fraction == 255 / 256
    assert list(reporters.read((ReceiverReport(90, (block(6, 5, 0, 255),)),), [7], 0)) == []


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**32 - 1), st.integers(-(2**23), 2**23 - 1), st.integers(0, 255)), max_size=20))
def test_forged_blocks_give_fractions(rows: list) -> None:
    for exact in (False, True):
        reporters = Reporters(exact)
        for at in range(0, len(rows), 3):
            blocks = tuple(block(7 + layer, highest, lost, fraction) for layer, highest, lost, fraction in rows[at : at + 3])
            for feedback, _ in reporters.read((ReceiverReport(90, blocks),), [7, 8, 9], 0):
                assert 0.0 <= feedback.loss_fraction <= 1.0

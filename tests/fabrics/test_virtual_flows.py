"""Trivial algorithms in Python over the network in virtual time: what they are told, what leaves, what is recorded."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fairlane import specs
from fairlane.fabrics import virtual_fabric
from fairlane.hosts.algorithms import base
from tests.fabrics import two_hosts

pytestmark = pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")

SECOND = 10**9


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A switch of two ports that sends on whatever comes."""
    return two_hosts.program(tmp_path_factory.mktemp("forward"))


def add(network, sender: base.Sender, receiver: base.Receiver, stop_ns: int = 20 * SECOND, **options) -> None:
    two_hosts.add(network, "f", sender, receiver, stop_ns, **{"phase": 0.0, **options})


class Responsive(base.Sender):
    """Sends at what arrived, and a little more; says its round trip in the data."""

    def __init__(self) -> None:
        self.heard: list[tuple[float, base.Feedback]] = []

    def on_start(self, now_s, rng):
        return (base.SetRate(0.5e6),)

    def on_feedback(self, now_s, feedback, rng):
        self.heard.append((now_s, feedback))
        return (base.SetRate(max(1e5, 1.05 * feedback.receive_rate_bps)), base.StampData(feedback.rtt_s))


class Periodic(base.Receiver):
    """Reports four times a second."""

    interests = base.Interests(gaps=True)

    def __init__(self) -> None:
        self.gaps: list[base.Gap] = []
        self.receptions: list[base.ReceptionState] = []

    def on_start(self, now_s, rng):
        return (base.SetTimer("report", now_s + 0.25),)

    def on_gap(self, now_s, gap, rng):
        self.gaps.append(gap)
        return (base.Note("gap", (("packets", gap.last_lost_sequence - gap.first_lost_sequence + 1),)),)

    def on_timer(self, now_s, timer, reception, rng):
        self.receptions.append(reception)
        return (base.SendFeedback(0.5 if self.gaps else None), base.SetTimer("report", now_s + 0.25))


def test_own_feedback_reaches_the_sender_and_its_records(program: str, tmp_path: Path) -> None:
    network = two_hosts.wire(program, rate_bps=2_000_000, delay_ns=5_000_000, queue_packets=10)
    sender, receiver = Responsive(), Periodic()
    add(network, sender, receiver)
    network.capture(tmp_path)
    network.run_until(21 * SECOND)
    sent, received = network.take_flow_logs("f")
    reports = [fields for _, kind, fields in sent if kind == "feedback"]
    # It grows past the link, and finds its end.
    assert len(reports) == len(sender.heard) > 75
    assert max(f.receive_rate_bps for _, f in sender.heard) > 1.9e6
    assert receiver.gaps and any(f.loss_event_rate == 0.5 for _, f in sender.heard) and sender.heard[0][1].loss_event_rate is None
    assert all(f.rtt_s >= 0.02 and 0 <= f.loss_fraction < 1 and f.reporter == 2 for _, f in sender.heard)
    lost = sum(g.last_lost_sequence - g.first_lost_sequence + 1 for g in receiver.gaps)
    assert lost == sum(fields["packets"] for _, kind, fields in received if kind == "gap")
    assert lost >= sum(r["lost_packets"] for r in reports) > 0
    stamped = [r.sender_rtt_s for r in receiver.receptions]
    assert stamped[0] is None and min(abs(stamped[-1] - f.rtt_s) for _, f in sender.heard[-4:]) <= 0.5e-6
    ends = [fields for log in (sent, received) for _, kind, fields in log if kind == "end"]
    assert [e["rtcp_sent_packets"] for e in ends] == [0, 0] and ends[0]["feedback_packets"] == len(reports)
    # On the wire: 44 bytes from data port to data port, version 1, type 2.
    scapy = pytest.importorskip("scapy.all")
    frames = [f for f in scapy.rdpcap(str(tmp_path / "s1-h1.pcap")) if f.haslayer(scapy.UDP)]
    assert len(frames) >= len(reports)
    for frame in frames:
        payload = bytes(frame[scapy.UDP].payload)
        assert (frame[scapy.UDP].sport, frame[scapy.UDP].dport, len(payload), payload[0]) == (5004, 5004, 44, 0x12)


def test_a_stamp_without_room_is_refused(program: str) -> None:
    network = two_hosts.wire(program)

    class Stamps(base.Sender):
        def on_start(self, now_s, rng):
            return (base.SetRate(1e5), base.StampData(0.1))

    add(network, Stamps(), base.Receiver(), packet_bytes=56)
    with pytest.raises(RuntimeError, match="flow f: StampData needs packets of 60 bytes"):
        network.run_until(SECOND)


class Fixed(base.Sender):
    def __init__(self, rate_bps: float) -> None:
        self.rate_bps = rate_bps

    def on_start(self, now_s, rng):
        return (base.SetRate(self.rate_bps),)


def test_an_application_limits_what_is_sent_and_lateness_is_counted(program: str, tmp_path: Path) -> None:
    scapy = pytest.importorskip("scapy.all")
    Application = virtual_fabric.native.Application
    network = two_hosts.wire(program, rate_bps=10_000_000, delay_ns=5_000_000, queue_packets=100)
    add(network, Fixed(0.3e6), base.Receiver(), application=Application.mpeg4(), buffer_packets=20)
    network.capture(tmp_path)
    network.run_until(21 * SECOND)
    sent, received = network.take_flow_logs("f")
    produced = [fields for _, kind, fields in sent if kind == "application"][-1]
    last_sent = [fields for _, kind, fields in sent if kind == "sent"][-1]
    last = [fields for _, kind, fields in received if kind == "data"][-1]
    assert produced["produced_packets"] == last_sent["sent_packets"] + produced["waiting_packets"] + produced["discarded_packets"]
    assert produced["discarded_packets"] > 0 and last["received_bytes"] == last_sent["sent_bytes"] < 1000 * last_sent["sent_packets"]
    # 0.3 Mb/s is less than the video is: what waits for its turn is late, but packets still come one after the other.
    assert last["overdue_packets"] > last["delayed_packets"] == 0
    assert max(fields["age_max_ns"] for _, kind, fields in received if kind == "data") > 75_000_000
    sizes = set()
    for frame in scapy.rdpcap(str(tmp_path / "s1-h2.pcap")):
        rebuilt = frame.copy()
        del rebuilt[scapy.IP].chksum, rebuilt[scapy.UDP].chksum, rebuilt[scapy.UDP].len
        rebuilt = scapy.Ether(bytes(rebuilt))
        assert (rebuilt[scapy.IP].chksum, rebuilt[scapy.UDP].chksum, rebuilt[scapy.UDP].len) == (
            frame[scapy.IP].chksum,
            frame[scapy.UDP].chksum,
            frame[scapy.UDP].len,
        )
        stamp = bytes(frame[scapy.UDP].payload)[12:40]
        sent_ns, produced_ns = int.from_bytes(stamp[:8], "big"), int.from_bytes(stamp[20:], "big")
        assert 0 <= sent_ns - produced_ns < 20 * 1000 * 8 / 0.3e6 * SECOND + SECOND and produced_ns % 40_000_000 == 0
        sizes.add(len(frame))
    assert max(sizes) == 1014 and len(sizes) > 5


def test_applications_have_their_rates(program: str) -> None:
    Application = virtual_fabric.native.Application
    for application, least, most in (
        (Application.cbr(200_000), 199e3, 201e3),
        (Application.on_off(400_000, 0.3, (0.3, 1.5)), 100e3, 300e3),
        (Application.renewal(200_000, "exponential", 300.0), 180e3, 220e3),
        (Application.renewal(200_000, 2.5), 150e3, 250e3),
    ):
        network = two_hosts.wire(program, rate_bps=10_000_000)
        add(network, Fixed(1e6), base.Receiver(), application=application)
        network.run_until(21 * SECOND)
        _, received = network.take_flow_logs("f")
        rate_bps = [fields for _, kind, fields in received if kind == "data"][-1]["received_bytes"] * 8 / 20
        assert least < rate_bps < most
    with pytest.raises(ValueError, match="buffer of 0 packets"):
        add(two_hosts.wire(program), Fixed(1e6), base.Receiver(), application=Application.cbr(1), buffer_packets=0)
    with pytest.raises(ValueError, match="neither .exponential. nor .constant."):
        Application.renewal(1000, "normal")
    with pytest.raises(ValueError, match="rate_bps"):
        add(two_hosts.wire(program), Fixed(1e6), base.Receiver(), application=Application.cbr(0))


GROUPS = (0xEF010001, 0xEF010002)


class Layered(base.Sender):
    interests = base.Interests(rtcp=True)

    def __init__(self) -> None:
        self.heard: list[base.Feedback] = []

    def on_start(self, now_s, rng):
        layers = (base.Layer(GROUPS[0], 2e5), base.Layer(GROUPS[1], 1e5))
        return (base.SetLayers(layers), base.SetControl(1e6, 0.25, layers))

    def on_feedback(self, now_s, feedback, rng):
        self.heard.append(feedback)
        return ()


class Joining(base.Receiver):
    """Joins both layers with the first control packet, and leaves the upper one at 30 s."""

    interests = base.Interests(rtcp=True)

    def on_start(self, now_s, rng):
        return (base.SetTimer("leave", 30.0),)

    def on_control(self, now_s, control, rng):
        join = (base.JoinLayers(tuple(layer.address for layer in control.layers)),) if now_s < 30 else ()
        return (base.SetReport(control.desired_rate_bps, control.utilisation), *join)

    def on_timer(self, now_s, timer, reception, rng):
        return (base.JoinLayers(GROUPS[:1]),)


def layered(network, sender: base.Sender, receivers, stop_ns: int = 40 * SECOND, base_group: str = "239.1.0.1") -> None:
    network.add_layered_flow(
        specs.GroupPath("l", "h1", base_group, 5004, 0, stop_ns),
        specs.Half(sender, random.Random(1), ssrc=1, cname="s"),
        receivers,
        specs.Session(packet_bytes=1000, session_bandwidth_bps=1e6),
    )


def receiver(algorithm: base.Receiver, host: str = "h2", **options):
    return specs.LayeredReceiver(host, specs.Half(algorithm, random.Random(2), ssrc=2, cname="r"), **options)


def test_a_layered_flow_joins_in_igmp_and_records_its_layers(program: str, tmp_path: Path) -> None:
    network = two_hosts.wire(program, rate_bps=10_000_000, delay_ns=5_000_000)
    sender = Layered()
    layered(network, sender, [receiver(Joining(), start_ns=2 * SECOND)])
    network.capture(tmp_path)
    network.run_until(41 * SECOND)
    sent, received = network.take_layered_logs("l")
    assert list(received) == ["h2"]
    changes = [(kind, fields["group"]) for _, kind, fields in received["h2"] if kind in ("join", "leave")]
    assert changes == [("join", "239.1.0.1"), ("join", "239.1.0.2"), ("leave", "239.1.0.2")]
    last = {f["layer"]: f for _, kind, f in received["h2"] if kind == "layer_data"}
    joined_s = next(t for t, kind, f in received["h2"] if kind == "join" and f["group"] == "239.1.0.2") / SECOND
    assert last[0]["received_packets"] == pytest.approx(38.5 * 25, rel=0.02) and last[0]["member"]
    assert last[1]["received_packets"] == pytest.approx((30 - joined_s) * 12.5, abs=2) and not last[1]["member"]
    assert [last[k]["lost_packets"] for k in (0, 1)] == [0, 0]
    rates = {f["layer"]: (f["group"], f["rate_bps"]) for _, kind, f in sent if kind == "layer_sent"}
    assert rates == {0: ("239.1.0.1", 2e5), 1: ("239.1.0.2", 1e5)}
    assert (
        len(sender.heard) > 3
        and {f.desired_rate_bps for f in sender.heard[1:]} == {1e6}
        and all(f.loss_fraction == 0 for f in sender.heard)
    )

    scapy = pytest.importorskip("scapy.all")
    from scapy.layers.igmp import IGMP

    said = []
    for frame in scapy.rdpcap(str(tmp_path / "h2-s1.pcap")):
        if frame[scapy.IP].proto == 2:
            ip = frame[scapy.IP]
            message = IGMP(bytes(ip.payload))
            assert (ip.ttl, bytes(ip)[20:24], frame.src) == (1, bytes([0x94, 4, 0, 0]), "02:00:00:01:00:02")
            octets = [int(x) for x in ip.dst.split(".")]
            assert frame.dst == f"01:00:5e:{octets[1] & 127:02x}:{octets[2]:02x}:{octets[3]:02x}"
            checked = IGMP(bytes(message))
            del checked.chksum
            assert IGMP(bytes(checked)).chksum == message.chksum
            said.append((message.type, ip.dst, message.gaddr))
    base_group, upper = "239.1.0.1", "239.1.0.2"
    report, leave = 0x16, 0x17
    # Each join is said twice; both groups are left, the base one at the end.
    assert sorted(said) == sorted(
        [(report, base_group, base_group)] * 2
        + [(report, upper, upper)] * 2
        + [(leave, "224.0.0.2", upper), (leave, "224.0.0.2", base_group)]
    )
    data = [f for f in scapy.rdpcap(str(tmp_path / "h1-s1.pcap")) if f[scapy.UDP].dport == 5004]
    ssrcs = {(f[scapy.IP].dst, int.from_bytes(bytes(f[scapy.UDP].payload)[8:12], "big")) for f in data}
    assert ssrcs == {(base_group, 1), (upper, 2)}
    controls = [f for f in scapy.rdpcap(str(tmp_path / "h1-s1.pcap")) if f[scapy.UDP].dport == 5005]
    assert {(f[scapy.IP].dst, f.dst, f[scapy.UDP].chksum) for f in controls} == {(base_group, "01:00:5e:01:00:01", 0)}


def test_what_cannot_be_is_refused_in_clear_text(program: str) -> None:
    for said, options in (
        ("base group 10.0.0.1", {"base_group": "10.0.0.1"}),
        ("is named twice", {"twice": True}),
        ("unknown host", {"host": "h3"}),
    ):
        receivers = [receiver(Joining(), options.pop("host", "h2"))] * (2 if options.pop("twice", False) else 1)
        with pytest.raises(ValueError, match=said):
            layered(two_hosts.wire(program), Layered(), receivers, **options)
    network = virtual_fabric.native.Network(1, end_ns=SECOND)
    network.add_switch("s1", 1)
    network.add_host("h1", "10.0.1.1", "02:00:00:01:00:01", "02:01:00:01:00:01")
    network.connect("h1", 0, "s1", 1, specs.Link())
    network.schedule_loss(SECOND, "h1", 0, 0.5)
    for said, change in (
        ("after the run's end at 1000000000 ns", lambda: network.schedule_rate(SECOND + 1, "h1", 0, 1)),
        ('unknown node "h7"; did you mean "h1"', lambda: network.schedule_delay(0, "h7", 0, 1)),
        ("port 9 of s1 has none", lambda: network.schedule_delay(0, "s1", 9, 1)),
        ("p = 2: must be in", lambda: network.schedule_loss(0, "h1", 0, 2.0)),
        ("the run ends at", lambda: network.run_until(2 * SECOND)),
    ):
        with pytest.raises(ValueError, match=said):
            change()

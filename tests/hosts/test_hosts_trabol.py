"""TRABOL with and without memory: each line of its figure 1 worked by hand."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane import ad_hoc, api
from fairlane.experiments import loader
from fairlane.fabrics import virtual_fabric
from fairlane.hosts.algorithms.base import Feedback, ReceptionState, SendFeedback, SetRate, SetTimer, Timer
from fairlane.hosts.algorithms.trabol import REPORT_TIMER, SILENCE_TIMER, Ray, TrabolParameters, TrabolReceiver, TrabolSender, ray_time_s
from fairlane.hosts.algorithms.trabol_memory import PROBE_TIMER, TrabolMemoryParameters, TrabolMemorySender

RNG = random.Random(0)
SMALL = {"max_rate_bps": 8e6, "packet_bytes": 1000, "packets_per_ray": 10, "min_rate_bps": 1.6e6, "hold_reports": 2}
"""1000 packets a second, a ray of 10 packets in 10 ms, MIN_RATE 2 packets a ray."""


def started(kind: type = TrabolSender, **changes: object) -> TrabolSender:
    parameters = TrabolMemoryParameters if kind is TrabolMemorySender else TrabolParameters
    sender = kind(parameters(**{**SMALL, **changes}))
    sender.on_start(0.0, RNG)
    return sender


def tell(sender: TrabolSender, *losses: float, now_s: float = 1.0) -> list[int]:
    """P_nn after each report."""
    after = []
    for loss in losses:
        sender.on_feedback(now_s, Feedback(7, loss, receive_rate_bps=1e6), RNG)
        after.append(sender.packets)
    return after


def climb(sender: TrabolSender) -> int:
    """Reports without loss until the climb ends; the P_nn reached."""
    for _ in range(1000):
        tell(sender, 0.0)
        if not sender.set_congestion:
            return sender.packets
    raise AssertionError("the climb does not end")


# ------------------------------------------------------------------------------------------------------- figure 1, lines


def test_ray_time_and_packet_time() -> None:
    """T_t = P_n / R_t: 10 / 1000 a second = 10 ms; T_a = T_t / P_n = 1 ms [TRABOL fig 1]."""
    ray = Ray(target_rate=1000, full_packets=10, packets=4)
    assert (ray.time_s, ray.packet_time_s) == (pytest.approx(0.010), pytest.approx(0.001))
    assert ray_time_s(TrabolParameters(**SMALL)) == pytest.approx(0.010)


def test_gaps_of_a_reduced_ray() -> None:
    """T_r = 4 / 1000 a second = 4 ms; G_t = T_t - T_r = 6 ms; G_a = G_t / P_nn = 1.5 ms; R_s = 4 / 10 ms = 400 a second [TRABOL fig 1]."""
    ray = Ray(target_rate=1000, full_packets=10, packets=4)
    assert ray.sending_time_s == pytest.approx(0.004)
    assert ray.total_gap_s == pytest.approx(0.006)
    assert ray.gap_s == pytest.approx(0.0015)
    assert ray.rate == pytest.approx(400)


@given(st.integers(1, 200), st.integers(1, 200), st.floats(1, 1e6))
def test_packets_and_gaps_fill_the_ray(full: int, packets: int, target_rate: float) -> None:
    """P_nn (T_a + G_a) = T_t, so the sender's mean rate is R_s [TRABOL fig 1]: what as-printed T_r = P_nn / R_m would break."""
    ray = Ray(target_rate, max(full, packets), packets)
    assert ray.packets * (ray.packet_time_s + ray.gap_s) == pytest.approx(ray.time_s)
    assert ray.rate * (ray.packet_time_s + ray.gap_s) == pytest.approx(1)


def test_reduced_number_of_packets() -> None:
    """P_nn = R_m T_t: 200 a second x 10 ms = 2 [TRABOL fig 1]; whole packets, no less than MIN_RATE: 150 a second are 2 as well."""
    assert started().min_packets == 2
    assert started(min_rate_bps=1.2e6).min_packets == 2
    assert started(min_rate_bps=None).min_packets == 1
    assert started(min_rate_bps=8e6).min_packets == 10


def test_loss_above_the_threshold_goes_to_min_rate() -> None:
    """L_r > MAX_LOSS: "reduce the rate by D-factor to MIN_RATE" [TRABOL fig 1]; 0.05 itself is not above."""
    sender = started()
    assert sender.rate_bps == 8e6 and tell(sender, 0.05) == [10]
    actions = sender.on_feedback(1.0, Feedback(7, 0.06), RNG)
    assert SetRate(1.6e6, burst_packets=4) in actions and sender.set_congestion


def test_climb_by_one_packet_a_step() -> None:
    """P_nn = P_nn + 1 until P_n, each step held for `iterations` = 2 + round(16 x 0.06) = 3 reports [TRABOL fig 1]."""
    sender = started()
    assert tell(sender, 0.06, *[0.0] * 7) == [2, 2, 2, 3, 3, 3, 4, 4]
    assert climb(sender) == 10 and sender.rate_bps == 8e6
    assert tell(sender, 0.0, 0.0, 0.0, 0.0) == [10] * 4  # set_congestion = 0: the same rate


def test_steps_are_held_longer_after_a_greater_loss() -> None:
    """ "iteration" is "determined by the loss rate" [TRABOL sec 2]: 2 + 16 x 0.25 = 6 against 2 + round(0.96) = 3."""
    few, many = started(), started()
    tell(few, 0.06)
    tell(many, 0.25)
    assert (few.iterations, many.iterations) == (3, 6)


def test_flow_starts_at_the_target_rate_or_climbs_to_it() -> None:
    assert TrabolSender(TrabolParameters(**SMALL)).on_start(0.0, RNG)[0] == SetRate(8e6, burst_packets=4)
    sender = started(initial_rate_bps=4e6)
    assert sender.rate_bps == 4e6 and climb(sender) == 10


def test_loss_in_a_climb_without_memory_changes_no_later_climb() -> None:
    sender = started()
    tell(sender, 0.06, *[0.0] * 9, 0.06)
    assert climb(sender) == 10


# ---------------------------------------------------------------------------------------------------------- with memory


def test_next_climb_stops_before_the_step_of_the_loss() -> None:
    """step_iteration = i - 1 [TRABOL fig 1]: 2, 3, 4, 5 is step 3; the next climb ends at step 2, P_nn = 4."""
    sender = started(TrabolMemorySender)
    assert tell(sender, 0.06, *[0.0] * 9)[-1] == 5
    tell(sender, 0.06)
    assert (sender.step_iteration, sender.memory_variable, sender.packets) == (2, True, 2)
    assert climb(sender) == 4
    assert tell(sender, *[0.0] * 20) == [4] * 20


def test_loss_at_the_last_step_counts_to_the_climb_while_it_is_held() -> None:
    """The loop of figure 1 holds the last step, too, before it ends [TRABOL fig 1]; "about the maximum rate" of [TRABOL fig 2]."""
    sender = started(TrabolMemorySender)
    tell(sender, 0.06, *[0.0] * 24)
    assert sender.packets == 10 and sender.set_congestion
    tell(sender, 0.06)
    assert climb(sender) == 9


def test_loss_outside_a_climb_changes_no_memory() -> None:
    sender = started(TrabolMemorySender)
    tell(sender, 0.06)  # at the target rate, before any climb
    assert not sender.memory_variable and climb(sender) == 10
    tell(sender, 0.06, *[0.0] * 9, 0.06)
    assert climb(sender) == 4
    tell(sender, 0.06)  # at the remembered rate
    assert climb(sender) == 4


def test_late_news_of_the_same_loss_changes_no_memory() -> None:
    """Reports of packets sent before the decrease come at step 0."""
    sender = started(TrabolMemorySender)
    tell(sender, 0.06, *[0.0] * 9, 0.06, 0.5, 0.5)
    assert sender.step_iteration == 2


def test_timer_probes_the_maximum_rate() -> None:
    """TIMER starts when the climb has ended; then step_iteration is set anew and the climb goes on [TRABOL sec 2, fig 1]."""
    sender = started(TrabolMemorySender)
    tell(sender, 0.06, *[0.0] * 9, 0.06)
    timers: list[SetTimer] = []
    while sender.set_congestion:
        actions = sender.on_feedback(2.0, Feedback(7, 0.0), RNG)
        timers += [a for a in actions if isinstance(a, SetTimer)]
    assert timers == [SetTimer(PROBE_TIMER, 32.0)]
    assert sender.on_timer(31.0, Timer(PROBE_TIMER), RNG) == ()
    sender.on_timer(32.0, Timer(PROBE_TIMER), RNG)
    assert sender.packets == 4 and climb(sender) == 10
    assert sender.on_timer(33.0, Timer(PROBE_TIMER), RNG) == ()


def test_mean_rate_with_memory_is_higher() -> None:
    """ "the average throughput [with memory] is greater" [TRABOL sec 2], behind a bottleneck that loses above 7 packets a ray."""

    def mean_packets(kind: type) -> float:
        sender, total = started(kind), 0
        for ray in range(2000):
            total += min(sender.packets, 7)
            over = max(0, sender.packets - 7)
            sender.on_feedback(ray / 100, Feedback(7, over / sender.packets), RNG)
        return total / 2000

    assert mean_packets(TrabolMemorySender) > 1.15 * mean_packets(TrabolSender)


# ------------------------------------------------------------------------------------------------------------ behaviour


def test_silence_is_congestion() -> None:
    sender = started()
    assert SetRate(1.6e6, burst_packets=4) in sender.on_timer(2.0, Timer(SILENCE_TIMER), RNG)
    assert sender.on_feedback(2.5, Feedback(7, 0.0, receive_rate_bps=0.0), RNG) == ()
    tell(sender, 0.0, now_s=3.0)
    assert sender.on_timer(4.0, Timer(SILENCE_TIMER), RNG) == (SetTimer(SILENCE_TIMER, 5.0),)


def test_receiver_reports_each_ray_that_brought_something() -> None:
    receiver = TrabolReceiver(TrabolParameters(**SMALL))

    def at(now_s: float, packets: int) -> tuple:
        return receiver.on_timer(now_s, Timer(REPORT_TIMER), ReceptionState(packets, 0, 0, 0, 0.0), RNG)

    assert receiver.on_start(0.0, RNG) == (SetTimer(REPORT_TIMER, pytest.approx(0.010)),)
    assert at(0.010, 9) == (SendFeedback(), SetTimer(REPORT_TIMER, pytest.approx(0.020)))
    assert at(0.015, 12) == ()
    assert at(0.020, 9) == (SetTimer(REPORT_TIMER, pytest.approx(0.030)),)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"min_rate_bps": 1e9}, "TrabolParameters.min_rate_bps = 1000000000.0: must be above 0 and at most max_rate_bps = 90000000.0"),
        ({"max_loss": 1.0}, "TrabolParameters.max_loss = 1.0: a fraction from 0 up to, but not, 1"),
        ({"packets_per_ray": 0}, "TrabolParameters.packets_per_ray = 0: must be positive and finite"),
        ({"hold_reports_per_loss": -1.0}, "TrabolParameters.hold_reports_per_loss = -1.0: must be 0 or more, and finite"),
    ],
)
def test_bad_parameters_are_named(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        replace(TrabolParameters(), **changes)
    assert str(caught.value) == message


# ---------------------------------------------------------------------------------------------------- rates, by the path


def set_up(*flows: str, settings: tuple[str, ...] = (), bottleneck: str = "10mbit") -> dict:
    """Of the first flow. Senders' links are ten times as fast as the bottleneck."""
    options = ad_hoc.Options(flows=flows, bottleneck=bottleneck, settings=settings)
    return ad_hoc.experiment("dumbbell", options, 10.0, 1).flows[0].settings.given


@pytest.mark.parametrize("kind", ["trabol", "trabol-memory"])
def test_rates_follow_from_the_slowest_link_of_the_path(kind: str) -> None:
    """MAX_RATE is the link's capacity [TRABOL sec 3], MIN_RATE a tenth of it, or half of an even share of the link: 10 / 20 / 2 Mb/s for 20 flows."""
    few, many = set_up(f"{kind}:1", "tcp-sack:3"), set_up(f"{kind}:5", "tcp-sack:15")
    assert (few["max_rate_bps"], few["min_rate_bps"]) == (10e6, 1e6)
    assert (many["max_rate_bps"], many["min_rate_bps"]) == (10e6, 0.25e6)
    own = set_up(f"{kind}:1", settings=(f"{kind}.max_rate_bps=5e6",))
    assert (own["max_rate_bps"], own["min_rate_bps"]) == (5e6, 0.5e6)
    own = set_up(f"{kind}:1", settings=(f"{kind}.min_rate_bps=3e6",))
    assert (own["max_rate_bps"], own["min_rate_bps"]) == (10e6, 3e6)


def test_the_papers_experiments_state_theirs() -> None:
    for name in ("trabol-2", "trabol-5", "trabol-t1"):
        document = loader.read(loader.find(name)).values
        for kind in ("trabol", "trabol-memory"):
            assert kind not in document or {"max_rate_bps", "min_rate_bps"} <= set(document[kind]), (name, kind)


@pytest.mark.skipif(virtual_fabric.native is None, reason="the module fairlane.native is not built: make build")
@pytest.mark.parametrize("kind", ["trabol", "trabol-memory"])
@pytest.mark.parametrize("flows", [1, 2, 8])
def test_tcp_is_not_starved_beside_as_many(kind: str, flows: int) -> None:
    """Half of an even share is the least. With a tenth of the sender's link as MIN_RATE TCP had 1 % of the link, or nothing."""
    result = api.run("dumbbell", [f"{kind}:{flows}", f"tcp-sack:{flows}"], bottleneck="10mbit", duration_s=30, seed=1)
    assert 0.5 < result.of_kind("tcp-sack")["share"] < 0.9
    assert result.bottleneck["utilisation"] > 0.95

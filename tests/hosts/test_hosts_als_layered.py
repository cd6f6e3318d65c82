"""Layered ALS: the sizes and joins of [ALS sec 3.4] worked by hand, on the tree of [ALS fig 7]."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.hosts.algorithms.als import ADAPTATION_TIMER
from fairlane.hosts.algorithms.als_layered import AlsLayeredParameters, AlsLayeredReceiver, AlsLayeredSender
from fairlane.hosts.algorithms.base import Control, Feedback, JoinLayers, Layer, SetControl, SetLayers, SetRate, SetReport, Timer

RNG = random.Random(0)
BASE, SECOND, THIRD = GROUPS = AlsLayeredParameters().group_addresses


def heard(reporter: int, rd_bps: float, loss: float = 0.0) -> Feedback:
    return Feedback(reporter=reporter, loss_fraction=loss, desired_rate_bps=rd_bps, utilisation=1.0)


def adapted(reports: list[Feedback], **changes: object) -> tuple:
    sender = AlsLayeredSender(replace(AlsLayeredParameters(), **changes))
    sender.on_start(0.0, RNG)
    for report in reports:
        sender.on_feedback(1.0, report, RNG)
    return sender.on_timer(5.0, Timer(ADAPTATION_TIMER), RNG)


def of(kind: type, actions: tuple) -> list:
    return [a for a in actions if isinstance(a, kind)]


def rates(actions: tuple) -> list[float]:
    [layers] = of(SetLayers, actions)
    assert tuple(layer.address for layer in layers.layers) == GROUPS
    return [layer.rate_bps for layer in layers.layers]


def sizes(actions: tuple) -> list[float]:
    [control] = of(SetControl, actions)
    assert tuple(layer.address for layer in control.layers) == GROUPS
    return [layer.rate_bps for layer in control.layers]


def control(rd_bps: float, *layer_sizes: float) -> Control:
    layers = tuple(Layer(a, s) for a, s in zip(GROUPS, layer_sizes, strict=True))
    return Control(sender=1, desired_rate_bps=rd_bps, utilisation=0.9, layers=layers)


def test_layer_rates() -> None:
    """r_min on the basic layer, (r_max - r_min) / 2 on the two upper ones [ALS sec 3.4].

    U = 1 leaves AIR at 5 kb/s [ALS sec 3.3]: r = 95, 275 and 185 kb/s, so 95, 90 and 90 kb/s.
    """
    actions = adapted([heard(0, 90e3), heard(1, 270e3), heard(2, 180e3)])
    assert rates(actions) == [95e3, 90e3, 90e3]
    assert of(SetRate, actions) == [SetRate(95e3)]


def test_layer_rates_with_loss() -> None:
    """r_1 = 270 (1 - 0.5) = 135 kb/s [ALS sec 3.3] is below r_2 = 185 kb/s: 95, then (185 - 95) / 2 = 45 kb/s each."""
    assert rates(adapted([heard(0, 90e3), heard(1, 270e3, loss=0.5), heard(2, 180e3)])) == [95e3, 45e3, 45e3]


def test_announced_sizes() -> None:
    """R_d,min, then (R_d,max - R_d,min) / 2 [ALS sec 3.4]: 90 and (270 - 90) / 2 = 90 kb/s, without AIR and without losses."""
    assert sizes(adapted([heard(0, 90e3), heard(1, 270e3, loss=0.5), heard(2, 180e3)])) == [90e3, 90e3, 90e3]


def test_announcement_keeps_what_the_source_asks_of_routers() -> None:
    """[ALS sec 3.3]: R_d of the own link, U = 0."""
    [said] = of(SetControl, adapted([heard(0, 90e3)]))
    assert (said.desired_rate_bps, said.utilisation) == (10e6, 0.0)
    [said] = of(SetControl, adapted([heard(0, 90e3)], desired_rate_bps=3e6))
    assert said.desired_rate_bps == 3e6


@pytest.mark.parametrize(
    ("rd_bps", "groups"),
    [
        (270e3, (BASE, SECOND, THIRD)),
        (269e3, (BASE, SECOND)),
        (180e3, (BASE, SECOND)),
        (179e3, (BASE,)),
        (90e3, (BASE,)),
        (10e3, (BASE,)),
    ],
)
def test_join_condition(rd_bps: float, groups: tuple[int, ...]) -> None:
    """Layers up to n while R_d >= sum of R_L,i [ALS sec 3.4], sizes 90, 90, 90 kb/s: 180 for two, 270 for three."""
    receiver = AlsLayeredReceiver()
    assert receiver.on_start(0.0, RNG) == (JoinLayers((BASE,)),)
    actions = receiver.on_control(1.0, control(rd_bps, 90e3, 90e3, 90e3), RNG)
    assert actions[0] == SetReport(desired_rate_bps=rd_bps, utilisation=0.9)
    assert of(JoinLayers, actions) == ([JoinLayers(groups)] if len(groups) > 1 else [])
    assert of(JoinLayers, receiver.on_control(2.0, control(rd_bps, 90e3, 90e3, 90e3), RNG)) == []


def test_leaving_is_the_same_decision() -> None:
    """R_d falls from 270 to 100 kb/s: the basic layer remains [ALS sec 3.4]."""
    receiver = AlsLayeredReceiver()
    receiver.on_control(1.0, control(270e3, 90e3, 90e3, 90e3), RNG)
    assert of(JoinLayers, receiver.on_control(2.0, control(100e3, 90e3, 90e3, 90e3), RNG)) == [JoinLayers((BASE,))]


def test_announcing_what_is_sent_would_lock_a_receiver_out() -> None:
    """The paper's example for announcing R_d and not r [ALS sec 3.4]: R_d,2 = 270 kb/s < 95 + 90 + 90 kb/s."""
    actions = adapted([heard(0, 90e3), heard(1, 270e3)])
    told, sent = AlsLayeredReceiver(), AlsLayeredReceiver()
    told.on_control(1.0, control(270e3, *sizes(actions)), RNG)
    sent.on_control(1.0, control(270e3, *rates(actions)), RNG)
    assert (len(told.joined), len(sent.joined)) == (3, 2)


def test_a_receiver_that_no_router_answers_stays_in_the_basic_layer() -> None:
    """R_d as announced, U = 0 [ALS sec 3.5]: 10 Mb/s would be enough for all three."""
    receiver = AlsLayeredReceiver()
    unanswered = replace(control(10e6, 90e3, 90e3, 90e3), utilisation=0.0)
    assert of(JoinLayers, receiver.on_control(1.0, unanswered, RNG)) == []
    assert of(JoinLayers, receiver.on_control(2.0, control(270e3, 90e3, 90e3, 90e3), RNG)) == [JoinLayers(GROUPS)]
    assert of(JoinLayers, receiver.on_control(3.0, unanswered, RNG)) == [JoinLayers((BASE,))]


def test_a_receiver_that_no_router_answers_takes_part_with_the_rate_of_daa() -> None:
    """Reporter 0: r_0 = R_d,0 = r + A = 100 + 50 kb/s [DAA eq 4]; reporter 1: 270 kb/s and 5 kb/s of AIR: 150, then 62.5 kb/s each."""
    plain = Feedback(reporter=0, loss_fraction=0.0, rtt_s=0.1, desired_rate_bps=10e6, utilisation=0.0)
    actions = adapted([plain, heard(1, 270e3)])
    assert rates(actions) == [150e3, 62.5e3, 62.5e3]
    assert sizes(actions) == [150e3, 60e3, 60e3]


def test_upper_layers_are_empty_while_losses_contradict_a_receivers_fair_rate() -> None:
    """Four reports in a row with losses from a router that is half idle: R_d,0 = 2 Mb/s is not the bottleneck's."""
    wrong = Feedback(reporter=0, loss_fraction=0.5, rtt_s=0.1, desired_rate_bps=2e6, utilisation=0.5)
    assert rates(adapted([wrong, heard(1, 270e3)]))[1] > 0
    base, *upper = rates(adapted([*[wrong] * 4, heard(1, 270e3)]))
    assert base < 100e3 and upper == [0.0, 0.0]


def test_one_receiver_needs_one_layer() -> None:
    """r_max = r_min: nothing is left for the upper layers, and nobody joins them."""
    actions = adapted([heard(0, 90e3)])
    assert rates(actions) == [95e3, 0, 0]
    receiver = AlsLayeredReceiver()
    receiver.on_control(1.0, control(90e3, *sizes(actions)), RNG)
    assert receiver.joined == (BASE,)


def test_start_and_silence_send_the_basic_layer_alone() -> None:
    sender = AlsLayeredSender()
    actions = sender.on_start(0.0, RNG)
    assert of(SetRate, actions) == [SetRate(100e3)] and rates(actions) == [100e3, 0, 0]
    sender.on_feedback(1.0, heard(0, 90e3), RNG)
    sender.on_feedback(1.0, heard(1, 270e3), RNG)
    for now_s in (5.0, 10.0, 15.0, 20.0, 25.0):
        assert rates(sender.on_timer(now_s, Timer(ADAPTATION_TIMER), RNG)) == [95e3, 90e3, 90e3]
    for reporter in (0, 1):
        sender.on_leave(26.0, reporter, RNG)
    actions = sender.on_timer(30.0, Timer(ADAPTATION_TIMER), RNG)
    assert rates(actions) == [47.5e3, 0, 0] and of(SetControl, actions) == []


def test_control_without_sizes_changes_no_membership() -> None:
    receiver = AlsLayeredReceiver()
    receiver.on_control(1.0, control(270e3, 90e3, 90e3, 90e3), RNG)
    assert of(JoinLayers, receiver.on_control(2.0, Control(1, 90e3, 0.9), RNG)) == []
    assert receiver.joined == GROUPS


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=20), st.integers(1, 6))
def test_best_receiver_joins_all_and_worst_the_basic_layer(fair_rates: list[int], layers: int) -> None:
    """The sizes never exceed R_d,max in sum, and the basic layer is R_d,min, whatever the rounding [ALS sec 3.4]."""
    groups = tuple(range(0xEF000000, 0xEF000000 + layers))
    parameters = AlsLayeredParameters(max_rate_bps=2.0**41, group_addresses=groups)
    sender = AlsLayeredSender(parameters)
    sender.on_start(0.0, RNG)
    for reporter, rate in enumerate(fair_rates):
        sender.on_feedback(1.0, heard(reporter, float(rate)), RNG)
    [said] = of(SetControl, sender.on_timer(5.0, Timer(ADAPTATION_TIMER), RNG))
    best, worst = AlsLayeredReceiver(parameters), AlsLayeredReceiver(parameters)
    best.on_control(6.0, Control(1, float(max(fair_rates)), 0.9, said.layers), RNG)
    worst.on_control(6.0, Control(1, float(min(fair_rates)), 0.9, said.layers), RNG)
    carrying = [layer for layer in said.layers[1:] if layer.rate_bps > 0]
    assert best.joined == groups[: 1 + len(carrying)]
    assert worst.joined == groups[:1]


@given(st.lists(st.tuples(st.integers(0, 2**32 - 1), st.floats())), st.floats())
def test_forged_announcements_join_no_strange_groups(layers: list[tuple[int, float]], rd_bps: float) -> None:
    receiver = AlsLayeredReceiver()
    receiver.on_control(1.0, Control(1, rd_bps, 0.5, tuple(Layer(a, r) for a, r in layers)), RNG)
    assert receiver.joined[0] == BASE and len(set(receiver.joined)) == len(receiver.joined)
    assert all(0xE0000100 <= address <= 0xEFFFFFFF for address in receiver.joined)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ((), "group_addresses is empty"),
        ((0x0A000001,), "167772161 is not an IPv4 group"),
        ((BASE, BASE), "each layer needs a group of its own"),
    ],
)
def test_bad_groups_are_named(groups: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match="AlsLayeredParameters.group_addresses") as caught:
        AlsLayeredParameters(group_addresses=groups)
    assert message in str(caught.value)

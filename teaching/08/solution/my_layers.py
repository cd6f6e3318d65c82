"""Lab 8: a stream in three layers, each sent to a group of its own [ALS sec 3.4]. The flow kind is `my-layers`.

The unicast part of ALS is there: for each receiver i the sender knows R_d,i, the fair rate of its path, and r_i, the rate that it works out for
it (section 3.3). The three functions are what layers add.
"""

from __future__ import annotations

# BEGIN SOLUTION
from math import floor

# END SOLUTION
from fairlane.hosts.algorithms.als import AlsReceiver, AlsSender
from fairlane.hosts.algorithms.als_layered import AlsLayeredParameters
from fairlane.hosts.algorithms.base import (
    Control,
    JoinLayers,
    Kind,
    Layer,
    Note,
    ReceiverAction,
    Rng,
    SenderAction,
    SetControl,
    SetLayers,
    SetRate,
)

LAYERS = 3


def layer_rates_bps(receiver_rates_bps: list[float]) -> list[float]:
    """At what rate to send each layer, the basic one first, from the r_i of all receivers (there is at least one)."""
    # BEGIN SOLUTION
    lowest, highest = min(receiver_rates_bps), max(receiver_rates_bps)
    return [lowest, (highest - lowest) / 2, (highest - lowest) / 2]
    # SKELETON
    # # TODO 1: who must be able to receive the basic layer? What do all layers make together?
    # return [8_000.0, 0.0, 0.0]
    # END SOLUTION


def announced_sizes_bps(desired_rates_bps: list[float]) -> list[int]:
    """What control packets say of each layer's size, in whole bit/s, from the R_d,i of all receivers."""
    # BEGIN SOLUTION
    lowest, highest = min(desired_rates_bps), max(desired_rates_bps)
    return [floor(lowest), floor((highest - lowest) / 2), floor((highest - lowest) / 2)]
    # SKELETON
    # # TODO 2: not the rates of TODO 1. Why? And which way are they to be rounded?
    # return [0, 0, 0]
    # END SOLUTION


def layers_to_join(desired_rate_bps: float, sizes_bps: list[float]) -> int:
    """How many layers a receiver is to have, from the R_d and the sizes of a control packet: 1 is the basic layer alone."""
    # BEGIN SOLUTION
    count, total = 1, sizes_bps[0]
    for size in sizes_bps[1:]:
        total += size
        if size <= 0 or total > desired_rate_bps:
            break
        count += 1
    return count
    # SKELETON
    # # TODO 3: without the need for probing. A layer of size 0 carries nothing.
    # return 1
    # END SOLUTION


class MyLayersSender(AlsSender):
    """The sending half: ALS of section 3.3, with the rates of layers instead of one rate."""

    parameters: AlsLayeredParameters

    def on_start(self, now_s: float, rng: Rng) -> tuple[SenderAction, ...]:
        return (*super().on_start(now_s, rng), self.layers([self.rate_bps, 0.0, 0.0]))

    def layers(self, rates_bps: list[float]) -> SetLayers:
        """To the runner: what to send to each group."""
        return SetLayers(tuple(Layer(group, float(rate)) for group, rate in zip(self.parameters.group_addresses, rates_bps, strict=True)))

    def _adapt(self, now_s: float) -> tuple[SenderAction, ...]:
        """An adaptation point; self.receivers has r_i and R_d,i of the receivers that reported lately."""
        if not self.receivers:
            return (*super()._adapt(now_s), self.layers([self.rate_bps, 0.0, 0.0]))
        rates = [entry.rate_bps for entry in self.receivers.values()]
        desired = [entry.desired_rate_bps for entry in self.receivers.values()]
        layers = self.layers(layer_rates_bps(rates))
        self.rate_bps = layers.layers[0].rate_bps
        sizes = announced_sizes_bps(desired)
        announced = tuple(Layer(group, float(size)) for group, size in zip(self.parameters.group_addresses, sizes, strict=True))
        note = (
            ("rate_bps", self.rate_bps),
            ("receivers", len(rates)),
            ("r_max_bps", max(rates)),
            ("rd_min_bps", min(desired)),
            ("rd_max_bps", max(desired)),
        )
        return (SetRate(self.rate_bps), layers, SetControl(self.parameters.max_rate_bps, 0.0, announced), Note("als_layered.adapt", note))


class MyLayersReceiver(AlsReceiver):
    """The receiving half: echoes R_d and U, and is a member of the groups that R_d has room for."""

    parameters: AlsLayeredParameters
    joined = 1

    def on_start(self, now_s: float, rng: Rng) -> tuple[ReceiverAction, ...]:
        return (JoinLayers(self.parameters.group_addresses[:1]),)

    def on_control(self, now_s: float, control: Control, rng: Rng) -> tuple[ReceiverAction, ...]:
        echo = super().on_control(now_s, control, rng)
        if not control.layers:  # the sender has heard of no receiver yet
            return echo
        wanted = layers_to_join(control.desired_rate_bps, [layer.rate_bps for layer in control.layers])
        if wanted == self.joined:
            return echo
        self.joined = wanted
        return (*echo, JoinLayers(self.parameters.group_addresses[:wanted]))


KINDS = (Kind("my-layers", "ALS in layers, of lab 8", AlsLayeredParameters, MyLayersSender, MyLayersReceiver, layered=True),)

"""ALS with layers, for receivers of different capacities: Sisalem and Schulzrinne, section 3.4.

The sender keeps r_i and R_d,i of each receiver as unicast ALS does [ALS sec 3.3], and splits its stream at each adaptation point:

    rate of the basic layer    r_min = min(r_i)
    rate of each upper layer   (r_max - r_min) / 2                 of the two upper layers

Its control packets announce other sizes, from the network's values and not from the sending rates, since the r_i lie above R_d,i:

    size of the basic layer    R_d,min = min(R_d,i)
    size of each upper layer   (R_d,max - R_d,min) / 2

A receiver is a member of the basic layer from its start. It joins the layers up to n, without probing, while

    R_d >= sum over i = 0 ... n of R_L,i

with R_d and the sizes R_L,i of the control packet, and leaves the others [ALS sec 3.4].

The paper sets three layers, "arbitrarily"; with another number of groups the 2 above is the number of upper layers. Sizes are
announced in whole bit/s, rounded down: their sum then never exceeds R_d,max, and the best receiver can join all. Receivers do not
join a layer of size 0 (all receivers have the same rate): it carries no data. The R_d,i of all members of the RTP session count, as in ALS: the
paper says "seen in the last adaptation interval", which with reports that come every 5 s on average would drop a receiver from time
to time and make the layers flap.

Nor does the paper define layers without ALS routers [ALS sec 3.5]. A receiver without an answering router (U = 0) has no R_d to
join by, and stays in the basic layer; its r_i and R_d,i come from DAA. While the losses of some receiver contradict its R_d
(`fairlane.hosts.algorithms.als`), everything is sent on the basic layer: R_d would let that receiver join more than its path carries, and
the sender cannot make it leave.

`SetRate` is the rate of the basic layer, `SetLayers` the rate of every layer. `SetControl` is the announcement.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

from fairlane.hosts.algorithms.als import AlsParameters, AlsReceiver, AlsSender
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

MULTICAST_FIRST, MULTICAST_LAST = 0xE0000100, 0xEFFFFFFF
"""224.0.1.0 to 239.255.255.255: IPv4 groups that routers forward [RFC 5771 sec 4 to 10]."""


@dataclass(frozen=True, slots=True)
class AlsLayeredParameters(AlsParameters):
    """Those of ALS, and the groups."""

    group_addresses: tuple[int, ...] = (0xEF010001, 0xEF010002, 0xEF010003)
    """IPv4 group of each layer, the basic one first, as 32-bit numbers; as many layers as groups. Three: "we arbitrarily set the
    number of layers to three" [ALS sec 3.4]. 239.1.0.1 and up: administratively scoped (RFC 2365)."""

    def __post_init__(self) -> None:
        AlsParameters.__post_init__(self)
        # A list in an experiment file stays a list: compared and hashed, it must be a tuple.
        object.__setattr__(self, "group_addresses", tuple(self.group_addresses))
        if not self.group_addresses:
            raise ValueError("AlsLayeredParameters.group_addresses is empty: name at least the basic layer's group")
        for address in self.group_addresses:
            if not (isinstance(address, int) and MULTICAST_FIRST <= address <= MULTICAST_LAST):
                raise ValueError(
                    f"AlsLayeredParameters.group_addresses: {address!r} is not an IPv4 group that routers forward "
                    "(224.0.1.0 to 239.255.255.255, as a number)"
                )
        if len(set(self.group_addresses)) != len(self.group_addresses):
            raise ValueError(f"AlsLayeredParameters.group_addresses = {self.group_addresses!r}: each layer needs a group of its own")


class AlsLayeredSender(AlsSender):
    """The sending half [ALS sec 3.4]."""

    parameters: AlsLayeredParameters

    def __init__(self, parameters: AlsLayeredParameters = AlsLayeredParameters()) -> None:
        super().__init__(parameters)
        self.layer_rates_bps = self._split(self.rate_bps, self.rate_bps)
        """What is sent on each layer, the basic one first."""

    def on_start(self, now_s: float, rng: Rng) -> tuple[SenderAction, ...]:
        return (*super().on_start(now_s, rng), self._layers())

    def _adapt(self, now_s: float) -> tuple[SenderAction, ...]:
        p = self.parameters
        rates = [e.rate_bps for e in self.receivers.values()]
        if not rates:
            # Silence, as in unicast: the basic layer alone, since no known receiver could use more.
            decided = super()._adapt(now_s)
            self.layer_rates_bps = self._split(self.rate_bps, self.rate_bps)
            return (*decided, self._layers())

        r_min, r_max = min(rates), max(rates)  # r_min = min(r_i), r_max = max(r_i) [ALS sec 3.4]
        if any(e.contradicted for e in self.receivers.values()):
            r_max = r_min
        self.rate_bps = r_min
        self.layer_rates_bps = self._split(r_min, r_max)  # r_min, then (r_max - r_min) / 2 each [ALS sec 3.4]
        desired = [e.desired_rate_bps for e in self.receivers.values()]
        # R_d,min, then (R_d,max - R_d,min) / 2 each [ALS sec 3.4]
        sizes = [floor(size_bps) for size_bps in self._split(min(desired), max(desired))]
        announced = tuple(Layer(address, float(size)) for address, size in zip(p.group_addresses, sizes, strict=True))
        return (
            SetRate(self.rate_bps),
            self._layers(),
            SetControl(desired_rate_bps=p.announced_bps, utilisation=0.0, layers=announced),
            Note(
                "als_layered.adapt",
                (
                    ("rate_bps", self.rate_bps),
                    ("receivers", len(rates)),
                    ("r_max_bps", r_max),
                    ("rd_min_bps", min(desired)),
                    ("rd_max_bps", max(desired)),
                ),
            ),
        )

    def _split(self, lowest_bps: float, highest_bps: float) -> tuple[float, ...]:
        """The basic layer at the lowest rate, the difference to the highest in equal parts on the upper ones [ALS sec 3.4]."""
        upper = len(self.parameters.group_addresses) - 1
        return (lowest_bps, *((highest_bps - lowest_bps) / upper for _ in range(upper)))

    def _layers(self) -> SetLayers:
        addresses = self.parameters.group_addresses
        return SetLayers(tuple(Layer(a, rate) for a, rate in zip(addresses, self.layer_rates_bps, strict=True)))


class AlsLayeredReceiver(AlsReceiver):
    """The receiving half: echoes R_d and U as in unicast, and joins what R_d has room for [ALS sec 3.4]."""

    parameters: AlsLayeredParameters

    def __init__(self, parameters: AlsLayeredParameters = AlsLayeredParameters()) -> None:
        super().__init__(parameters)
        self.joined = parameters.group_addresses[:1]

    def on_start(self, now_s: float, rng: Rng) -> tuple[ReceiverAction, ...]:
        return (JoinLayers(self.joined),)  # "The receivers start by joining the basic layer" [ALS sec 3.4]

    def on_control(self, now_s: float, control: Control, rng: Rng) -> tuple[ReceiverAction, ...]:
        echo = super().on_control(now_s, control, rng)
        if not control.layers:
            return echo  # The sender has heard no receiver yet and knows no sizes: stay.
        wanted = self._wanted(control)
        if wanted == self.joined:
            return echo
        self.joined = wanted
        values = (("layers", len(wanted)), ("rd_bps", control.desired_rate_bps))
        return (*echo, JoinLayers(wanted), Note("als_layered.join", values))

    def _wanted(self, control: Control) -> tuple[int, ...]:
        """The groups up to the largest n with R_d >= sum of R_L,i, i = 0 ... n; never fewer than the basic layer's."""
        wanted = list(self.parameters.group_addresses[:1])
        if control.utilisation == 0:
            return tuple(wanted)  # no router wrote R_d: it says nothing of the path
        total_bps = control.layers[0].rate_bps
        for layer in control.layers[1:]:
            total_bps += layer.rate_bps
            enough = control.desired_rate_bps >= total_bps  # R_d >= sum of R_L,i [ALS sec 3.4]
            # A control packet may be forged: accept only groups that a router forwards, each once.
            known = MULTICAST_FIRST <= layer.address <= MULTICAST_LAST and layer.address not in wanted
            if not (enough and known and layer.rate_bps > 0):
                break
            wanted.append(layer.address)
        return tuple(wanted)


KINDS = (
    Kind(
        "als-layered",
        "ALS to multicast groups: receivers' rates set the layers' sizes, and R_d decides what to join, without probing [ALS sec 3.4]",
        AlsLayeredParameters,
        AlsLayeredSender,
        AlsLayeredReceiver,
        layered=True,
    ),
)

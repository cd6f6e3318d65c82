"""ALS, the Adaptive Load Service, unicast (and one rate for a group): Sisalem and Schulzrinne, sections 3.2 and 3.3.

Routers write the smallest fair rate of the path, R_d, and that router's utilisation U into the sender's control packets
[ALS sec 3.1]; receivers echo the pair in their reports [ALS sec 3.2]; the sender keeps for each receiver i

    AIR_i = AIR_i* + AIR_i* (1 - U_i)      no loss: the increase grows the faster the emptier the bottleneck is
    r_i   = R_d,i + AIR_i

    r_i   = R_d,i (1 - l_i)                loss l_i: R_d is outdated
    AIR_i = 5 kb/s

and at adaptation points, every 5 s, sends at r = min r_i [ALS sec 3.3]. AIR_i* is the AIR_i after the previous report.

What the paper leaves open, and what is done here, each a parameter of `AlsParameters`: the rate before the first feedback,
the lowest rate, receivers that fall silent, reports without R_d. Values from the network are limited to their possible
ranges, so that no report can make a rate negative, infinite, above the maximum, or stuck.
"""

from __future__ import annotations

from dataclasses import dataclass

from hosts.algorithms.base import (
    Control,
    Feedback,
    Interests,
    Kind,
    Note,
    Receiver,
    ReceiverAction,
    Rng,
    Sender,
    SenderAction,
    SetControl,
    SetRate,
    SetReport,
    SetTimer,
    Timer,
    clamp,
    require_positive,
)

ADAPTATION_TIMER = "als.adaptation"


@dataclass(frozen=True, slots=True)
class AlsParameters:
    """The paper's values, and names for what it leaves open."""

    max_rate_bps: float = 10e6
    """The rate of the sender's own link. No rate goes above it; it is also R_d when the desired rate is not known [ALS sec 3.3]."""

    desired_rate_bps: float | None = None
    """R_d that the application wishes for; `None` = not known, `max_rate_bps` is announced [ALS sec 3.3]."""

    initial_air_bps: float = 5_000.0
    """AIR_i at the start and after a loss: "an initial small value that we arbitrarily chose to be 5 kb/s" [ALS sec 3.3]."""

    adaptation_interval_s: float = 5.0
    """Time between adaptation points [ALS sec 3.3]."""

    initial_rate_bps: float = 100_000.0
    """Rate before the first feedback. The paper is silent. 100 kb/s is a hundredth of the paper's bottleneck, so that a flow
    which joins before any router was asked adds little load, and twelve packets of 1000 bytes a second, so that the first
    report can see losses."""

    min_rate_bps: float = 8_000.0
    """No rate goes below it. The paper is silent. One packet of 1000 bytes a second: enough that receivers still notice the
    flow and report on it, without which a rate of zero would last for ever."""

    first_report_s: float = 25.0
    """How long a new flow waits for its first report. The paper is silent. Five times the smallest mean report interval, after
    which RTCP counts a silent member no longer (RFC 3550 section 6.3.5)."""

    silence_factor: float = 0.5
    """When no receiver counts, and the flow is older than `first_report_s`, each adaptation point multiplies the rate by
    this, down to `min_rate_bps`. The paper is silent. Halving on missing feedback is TFRC's rule (RFC 5348 section 4.4)."""

    max_receivers: int = 4096
    """Receivers remembered at once; reports of further ones are ignored, so that forged reporters cannot use up memory."""

    def __post_init__(self) -> None:
        require_positive(
            "AlsParameters",
            max_rate_bps=self.max_rate_bps,
            initial_air_bps=self.initial_air_bps,
            adaptation_interval_s=self.adaptation_interval_s,
            initial_rate_bps=self.initial_rate_bps,
            min_rate_bps=self.min_rate_bps,
            first_report_s=self.first_report_s,
            silence_factor=self.silence_factor,
            max_receivers=self.max_receivers,
        )
        if self.desired_rate_bps is not None:
            require_positive("AlsParameters", desired_rate_bps=self.desired_rate_bps)
        if self.min_rate_bps > self.max_rate_bps:
            raise ValueError(
                f"AlsParameters.min_rate_bps = {self.min_rate_bps!r} is above max_rate_bps = {self.max_rate_bps!r}"
            )
        if self.silence_factor > 1:
            raise ValueError(f"AlsParameters.silence_factor = {self.silence_factor!r}: silence must not raise the rate")


@dataclass(slots=True)
class ReceiverEntry:
    """What the sender's data base holds of receiver i [ALS sec 3.3]."""

    air_bps: float
    """AIR_i."""
    rate_bps: float
    """r_i."""
    desired_rate_bps: float
    """R_d,i, or what stood in for it."""


class AlsSender(Sender):
    """The sending half of ALS [ALS sec 3.3]."""

    interests = Interests(rtcp=True)

    def __init__(self, parameters: AlsParameters = AlsParameters()) -> None:
        self.parameters = parameters
        self.rate_bps = clamp(parameters.initial_rate_bps, parameters.min_rate_bps, parameters.max_rate_bps)
        self.receivers: dict[int, ReceiverEntry] = {}
        self._started_s = 0.0
        self._next_adaptation_s = 0.0

    def on_start(self, now_s: float, rng: Rng) -> tuple[SenderAction, ...]:
        p = self.parameters
        self._started_s = now_s
        self._next_adaptation_s = now_s + p.adaptation_interval_s
        desired_bps = p.max_rate_bps if p.desired_rate_bps is None else min(p.desired_rate_bps, p.max_rate_bps)
        return (
            SetRate(self.rate_bps),
            # "a network utilization field (U) that is initialized to 0"; R_d unknown: the output link's rate [ALS sec 3.3]
            SetControl(desired_rate_bps=desired_bps, utilisation=0.0),
            SetTimer(ADAPTATION_TIMER, self._next_adaptation_s),
        )

    def on_feedback(self, now_s: float, feedback: Feedback, rng: Rng) -> tuple[SenderAction, ...]:
        p = self.parameters
        entry = self.receivers.get(feedback.reporter)
        if entry is None:
            if len(self.receivers) >= p.max_receivers:
                return (Note("als.ignored", (("reporter", feedback.reporter), ("reason", "too many receivers"))),)
            entry = ReceiverEntry(p.initial_air_bps, self.rate_bps, self.rate_bps)
            self.receivers[feedback.reporter] = entry

        # A report without R_d comes from a receiver that has not yet seen a control packet, or knows nothing of ALS. The paper
        # sends the source to "sender based adaptation schemes" then [ALS sec 3.5]: the rate in use stands in for R_d.
        if feedback.desired_rate_bps is None:
            desired_bps, utilisation = self.rate_bps, 1.0
        else:
            desired_bps = clamp(feedback.desired_rate_bps, 0.0, p.max_rate_bps)
            # U above 1 would shrink AIR, and U = 2 would hold it at 0 for ever.
            utilisation = clamp(1.0 if feedback.utilisation is None else feedback.utilisation, 0.0, 1.0)
        entry.desired_rate_bps = desired_bps
        loss = clamp(feedback.loss_fraction, 0.0, 1.0)

        if loss > 0.0:
            wanted_bps = desired_bps * (1.0 - loss)  # r_i = R_d,i (1 - l_i) [ALS sec 3.3]
            entry.air_bps = p.initial_air_bps  # AIR_i = 5 kb/s [ALS sec 3.3]
        else:
            grown_bps = entry.air_bps + entry.air_bps * (1.0 - utilisation)  # AIR_i = AIR_i* + AIR_i* (1 - U_i) [ALS sec 3.3]
            entry.air_bps = min(grown_bps, p.max_rate_bps)  # more would change no rate, and it doubles at most each report
            wanted_bps = desired_bps + entry.air_bps  # r_i = R_d,i + AIR_i [ALS sec 3.3]
        entry.rate_bps = clamp(wanted_bps, p.min_rate_bps, p.max_rate_bps)
        return (
            Note(
                "als.report",
                (
                    ("reporter", feedback.reporter),
                    ("loss", loss),
                    ("rd_bps", feedback.desired_rate_bps),
                    ("u", feedback.utilisation),
                    ("air_bps", entry.air_bps),
                    ("r_i_bps", entry.rate_bps),
                ),
            ),
        )

    def on_leave(self, now_s: float, reporter: int, rng: Rng) -> tuple[SenderAction, ...]:
        self.receivers.pop(reporter, None)
        return ()

    def on_timer(self, now_s: float, timer: Timer, rng: Rng) -> tuple[SenderAction, ...]:
        p = self.parameters
        if timer.name != ADAPTATION_TIMER or now_s < self._next_adaptation_s:
            return ()
        # Points lie on a fixed grid: a late wake-up moves none of those that follow, and one that is missed is skipped.
        missed = int((now_s - self._next_adaptation_s) / p.adaptation_interval_s)
        self._next_adaptation_s += (1 + missed) * p.adaptation_interval_s
        return (*self._adapt(now_s), SetTimer(ADAPTATION_TIMER, self._next_adaptation_s))

    def _adapt(self, now_s: float) -> tuple[SenderAction, ...]:
        """What an adaptation point decides; the receivers left in the data base are those that count."""
        p = self.parameters
        if self.receivers:
            self.rate_bps = min(e.rate_bps for e in self.receivers.values())  # r = r_min = min(r_i) [ALS sec 3.3]
        elif now_s - self._started_s > p.first_report_s:
            self.rate_bps = max(self.rate_bps * p.silence_factor, p.min_rate_bps)
        return (
            SetRate(self.rate_bps),
            Note("als.adapt", (("rate_bps", self.rate_bps), ("receivers", len(self.receivers)))),
        )


class AlsReceiver(Receiver):
    """The receiving half of ALS: echoes what the newest control packet said [ALS sec 3.2]."""

    interests = Interests(rtcp=True)

    def __init__(self, parameters: AlsParameters = AlsParameters()) -> None:
        self.parameters = parameters

    def on_control(self, now_s: float, control: Control, rng: Rng) -> tuple[ReceiverAction, ...]:
        # "The receiver includes these values in its control messages" [ALS sec 3.2]: unchanged, whatever they are.
        return (SetReport(desired_rate_bps=control.desired_rate_bps, utilisation=control.utilisation),)


KINDS = (
    Kind("als", "routers advertise fair rates, senders add AIR to reach max-min shares [ALS sec 3.1-3.3]", AlsParameters, AlsSender, AlsReceiver),
)

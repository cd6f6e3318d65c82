"""ALS, the Adaptive Load Service, unicast (and one rate for a group): Sisalem and Schulzrinne, sections 3.2, 3.3 and 3.5.

Routers write the smallest fair rate of the path, R_d, and that router's utilisation U into the sender's control packets
[ALS sec 3.1]; receivers echo the pair in their reports [ALS sec 3.2]; the sender keeps for each receiver i

    AIR_i = AIR_i* + AIR_i* (1 - U_i)      no loss: the lower the utilisation, the faster the increase grows
    r_i   = R_d,i + AIR_i

    r_i   = R_d,i (1 - l_i)                loss l_i: R_d is outdated
    AIR_i = 5 kb/s

and at adaptation points, every 5 s, sends at r = min r_i [ALS sec 3.3]. AIR_i* is the AIR_i after the previous report.

"If the receivers or the network do not support ALS ... the sender can refer to sender based adaptation schemes" [ALS sec 3.5].
The scheme here is DAA (`fairlane.hosts.algorithms.daa`), for each receiver on its own:

    r_i = min(r_TCP,i, r + A)                  no router answers: no R_d came back, or R_d as announced with U = 0
    r_i = min(the above, r_i of section 3.3)   a router answers, but the losses contradict R_d: another link is the bottleneck

A report with losses contradicts R_d when the router that wrote R_d was not full (U < `full_utilisation`), or when the loss is more than
`loss_limit` above what that router dropped itself, 1 - 1 / U of its packets when U > 1. One such report may only mean that R_d is
outdated [ALS sec 3.3], and a link with a small buffer loses packets although it is idle at times. So the second line applies from the
fourth report in a row on, until a report without loss for which the first line reaches R_d.

Choices that the paper leaves open, each a parameter of `AlsParameters`: the rate before the first feedback,
the lowest rate, receivers without reports, the condition for section 3.5. Values from the network are limited to their possible
ranges, so that no report can make a rate negative, infinite, above the maximum, or constant for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

from fairlane.hosts.algorithms.base import (
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
from fairlane.hosts.algorithms.daa import DaaParameters, DirectAdjustment

ADAPTATION_TIMER = "als.adaptation"


@dataclass(frozen=True, slots=True)
class AlsParameters:
    """The paper's values, and names for the choices that it leaves open."""

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
    which RTCP counts a silent member no longer [RFC 3550 sec 6.3.5]."""

    silence_factor: float = 0.5
    """When no receiver counts, and the flow is older than `first_report_s`, each adaptation point multiplies the rate by
    this, down to `min_rate_bps`. The paper is silent. Halving on missing feedback is TFRC's rule [RFC 5348 sec 4.4]."""

    packet_bytes: float = 1000.0
    """M of [DAA eq 1], an IPv4 datagram of data in bytes. Only for section 3.5, as are the following."""

    additive_increase_bps: float = 50_000.0
    """A of [DAA eq 4], for each adaptation interval. Its default there, and the reason for it."""

    full_utilisation: float = 0.9
    """The lowest U, in (0, 1], of a router whose link may be the one that loses packets. The paper is silent. U_l, which sources at
    their fair rates make on the link of R_d; less means that another link holds them back."""

    loss_limit: float = 0.05
    """How much more, in (0, 1], a report may lose than the router of R_d dropped. The paper is silent. Sources that follow R_d lose up to
    2% of their packets [ALS sec 4.1.2]."""

    contradicting_reports: int = 4
    """So many reports in a row contradict R_d. The paper is silent. With a buffer of 40 packets, two in a row with losses and
    U < 0.9 come by chance in 2% of reports, four in less than 0.1%."""

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
            packet_bytes=self.packet_bytes,
            additive_increase_bps=self.additive_increase_bps,
            full_utilisation=self.full_utilisation,
            loss_limit=self.loss_limit,
            contradicting_reports=self.contradicting_reports,
            max_receivers=self.max_receivers,
        )
        if self.desired_rate_bps is not None:
            require_positive("AlsParameters", desired_rate_bps=self.desired_rate_bps)
        if self.min_rate_bps > self.max_rate_bps:
            raise ValueError(f"AlsParameters.min_rate_bps = {self.min_rate_bps!r} is above max_rate_bps = {self.max_rate_bps!r}")
        if self.silence_factor > 1:
            raise ValueError(f"AlsParameters.silence_factor = {self.silence_factor!r}: silence must not raise the rate")
        for name in ("full_utilisation", "loss_limit"):
            if getattr(self, name) > 1:
                raise ValueError(f"AlsParameters.{name} = {getattr(self, name)!r}: a fraction is at most 1")

    @property
    def announced_bps(self) -> float:
        """R_d of the sender's control packets: "In case the desired rate is not known, ... the rate of the output link" [ALS sec 3.3]."""
        return self.max_rate_bps if self.desired_rate_bps is None else min(self.desired_rate_bps, self.max_rate_bps)


@dataclass(slots=True)
class ReceiverEntry:
    """What the sender's data base holds of receiver i [ALS sec 3.3]."""

    air_bps: float
    """AIR_i."""
    rate_bps: float
    """r_i."""
    desired_rate_bps: float
    """R_d,i, or what stood in for it."""
    path: DirectAdjustment
    """Loss and round trip, and the rate of section 3.5."""
    contradictions: int = 0
    """Reports in a row whose losses contradict R_d."""
    contradicted: bool = False
    """Whether they say that another link than that of R_d is the bottleneck."""


class AlsSender(Sender):
    """The sending half of ALS [ALS sec 3.3]."""

    interests = Interests(rtcp=True)

    def __init__(self, parameters: AlsParameters = AlsParameters()) -> None:
        self.parameters = parameters
        self.rate_bps = clamp(parameters.initial_rate_bps, parameters.min_rate_bps, parameters.max_rate_bps)
        self.receivers: dict[int, ReceiverEntry] = {}
        self._sender_based = DaaParameters(
            packet_bytes=parameters.packet_bytes,
            additive_increase_bps=parameters.additive_increase_bps,
            max_rate_bps=max(parameters.announced_bps, parameters.min_rate_bps),
            min_rate_bps=parameters.min_rate_bps,
        )
        self._started_s = 0.0
        self._next_adaptation_s = 0.0

    def on_start(self, now_s: float, rng: Rng) -> tuple[SenderAction, ...]:
        p = self.parameters
        self._started_s = now_s
        self._next_adaptation_s = now_s + p.adaptation_interval_s
        return (
            SetRate(self.rate_bps),
            # "a network utilization field (U) that is initialized to 0" [ALS sec 3.3]
            SetControl(desired_rate_bps=p.announced_bps, utilisation=0.0),
            SetTimer(ADAPTATION_TIMER, self._next_adaptation_s),
        )

    def on_feedback(self, now_s: float, feedback: Feedback, rng: Rng) -> tuple[SenderAction, ...]:
        p = self.parameters
        entry = self.receivers.get(feedback.reporter)
        if entry is None:
            if len(self.receivers) >= p.max_receivers:
                return (Note("als.ignored", (("reporter", feedback.reporter), ("reason", "too many receivers"))),)
            entry = ReceiverEntry(p.initial_air_bps, self.rate_bps, self.rate_bps, DirectAdjustment(self._sender_based))
            self.receivers[feedback.reporter] = entry

        loss = clamp(feedback.loss_fraction, 0.0, 1.0)
        sender_based_bps = entry.path.on_report(feedback, self.rate_bps)  # min(r_TCP,i, r + A) [DAA sec 4]
        answer_bps = self._answer_bps(feedback)
        answered = answer_bps is not None
        if answer_bps is not None:
            desired_bps = clamp(answer_bps, 0.0, p.max_rate_bps)
            load = 1.0 if feedback.utilisation is None else feedback.utilisation
            # U above 1 would shrink AIR, and U = 2 would hold it at 0 for ever.
            utilisation = clamp(load, 0.0, 1.0)
            self._judge(entry, loss, load, sender_based_bps >= desired_bps)
        else:
            # Until the round trip is known, which r_TCP needs, the rate in use stands in for R_d. A receiver that has seen no control
            # packet yet knows neither.
            desired_bps, utilisation = self.rate_bps, 1.0

        sender_based = not answered and entry.path.rtt_s is not None
        if sender_based:
            desired_bps = wanted_bps = sender_based_bps  # r_i = min(r_TCP,i, r + A) [ALS sec 3.5]
            entry.air_bps = p.initial_air_bps
        elif loss > 0.0:
            wanted_bps = desired_bps * (1.0 - loss)  # r_i = R_d,i (1 - l_i) [ALS sec 3.3]
            entry.air_bps = p.initial_air_bps  # AIR_i = 5 kb/s [ALS sec 3.3]
        else:
            grown_bps = entry.air_bps + entry.air_bps * (1.0 - utilisation)  # AIR_i = AIR_i* + AIR_i* (1 - U_i) [ALS sec 3.3]
            entry.air_bps = min(grown_bps, p.max_rate_bps)  # more would change no rate, and it doubles at most each report
            wanted_bps = desired_bps + entry.air_bps  # r_i = R_d,i + AIR_i [ALS sec 3.3]
        if entry.contradicted:
            wanted_bps = min(wanted_bps, sender_based_bps)
            entry.air_bps = p.initial_air_bps
        entry.desired_rate_bps = desired_bps
        entry.rate_bps = clamp(wanted_bps, p.min_rate_bps, p.max_rate_bps)
        report = Note(
            "als.report",
            (
                ("reporter", feedback.reporter),
                ("loss", loss),
                ("rd_bps", feedback.desired_rate_bps),
                ("u", feedback.utilisation),
                ("air_bps", entry.air_bps),
                ("r_i_bps", entry.rate_bps),
            ),
        )
        if not sender_based and not entry.contradicted:
            return (report,)
        values = (
            ("reporter", feedback.reporter),
            ("answered", int(answered)),
            ("l_s", entry.path.smoothed_loss),
            ("tau_s", entry.path.rtt_s),
            ("sender_based_bps", sender_based_bps),
        )
        return report, Note("als.sender_based", values)

    def _answer_bps(self, feedback: Feedback) -> float | None:
        """R_d, if a router wrote it and U [ALS sec 3.1]. A router with R_f above the announced R_d leaves both unchanged: it
        sets no limit, and neither do plain routers."""
        desired_bps = feedback.desired_rate_bps
        if desired_bps is not None and (desired_bps < floor(self.parameters.announced_bps) or feedback.utilisation):
            return desired_bps
        return None

    def _judge(self, entry: ReceiverEntry, loss: float, utilisation: float, reaches_desired: bool) -> None:
        """Find out whether the losses contradict R_d. After one report alone it may be "outdated due to a change in the network
        conditions" [ALS sec 3.3]."""
        p = self.parameters
        dropped = 1.0 - 1.0 / max(utilisation, 1.0)  # by the router that wrote U
        elsewhere = loss > dropped + p.loss_limit or (loss > 0.0 and utilisation < p.full_utilisation)
        entry.contradictions = entry.contradictions + 1 if elsewhere else 0
        if entry.contradictions >= p.contradicting_reports and entry.path.rtt_s is not None:
            entry.contradicted = True
        elif loss == 0.0 and reaches_desired:
            entry.contradicted = False

    def on_leave(self, now_s: float, reporter: int, rng: Rng) -> tuple[SenderAction, ...]:
        self.receivers.pop(reporter, None)
        return ()

    def on_timer(self, now_s: float, timer: Timer, rng: Rng) -> tuple[SenderAction, ...]:
        p = self.parameters
        if timer.name != ADAPTATION_TIMER or now_s < self._next_adaptation_s:
            return ()
        # Points lie on a fixed grid: a late wake-up moves no later point, and a missed point is skipped.
        missed = int((now_s - self._next_adaptation_s) / p.adaptation_interval_s)
        self._next_adaptation_s += (1 + missed) * p.adaptation_interval_s
        return (*self._adapt(now_s), SetTimer(ADAPTATION_TIMER, self._next_adaptation_s))

    def _adapt(self, now_s: float) -> tuple[SenderAction, ...]:
        """The decision of an adaptation point; the receivers left in the data base are those that count."""
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
    """The receiving half of ALS: echoes the values of the newest control packet [ALS sec 3.2]."""

    interests = Interests(rtcp=True)

    def __init__(self, parameters: AlsParameters = AlsParameters()) -> None:
        self.parameters = parameters

    def on_control(self, now_s: float, control: Control, rng: Rng) -> tuple[ReceiverAction, ...]:
        # "The receiver includes these values in its control messages" [ALS sec 3.2]: always unchanged.
        return (SetReport(desired_rate_bps=control.desired_rate_bps, utilisation=control.utilisation),)


KINDS = (
    Kind(
        "als",
        "routers advertise fair rates, senders add AIR to reach max-min shares [ALS sec 3.1 to 3.3]",
        AlsParameters,
        AlsSender,
        AlsReceiver,
    ),
)

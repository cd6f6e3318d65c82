"""`fairlane new algorithm NAME`: a rate-adaptation algorithm without its equation, and a test that fails until you add it."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

from fairlane.errors import Refusal
from fairlane.experiments import kinds

_ALGORITHM = '''\
"""TITLE: say here what it does, and where it comes from: paper, section, equations.

    r = ...          its equations, as the paper has them

Where the paper leaves a choice: the choice and its reason, each a parameter of `CLASSParameters`.

An algorithm is two state machines without clock, socket or randomness: events come in with the time, actions go out. This one
<events>

`hosts/algorithms/base.py` lists all events and actions: <others>,
windows, timers, reports of the receiver's own. `rap.py`, `tfrc.py` and `als.py` are there to learn from.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlane.hosts.algorithms.base import (
<imports>
    Receiver,
    Rng,
    Sender,
    SenderAction,
    SetRate,
    clamp,
    require_positive,
)


@dataclass(frozen=True, slots=True)
class CLASSParameters:
    """The paper's values. An experiment sets them by name: parameters = { initial_rate_bps = 200_000.0 }."""

    initial_rate_bps: float = 100_000.0
    """Until the first <event>."""

    min_rate_bps: float = 8_000.0
    """No rate goes below it: one packet of 1000 bytes a second, so that receivers still notice the flow."""

    max_rate_bps: float = 10e6
    """No rate goes above it. The rate of the sender's own link, unless an experiment sets another."""

    def __post_init__(self) -> None:
        require_positive(
            "CLASSParameters",
            initial_rate_bps=self.initial_rate_bps,
            min_rate_bps=self.min_rate_bps,
            max_rate_bps=self.max_rate_bps,
        )
        if self.min_rate_bps > self.max_rate_bps:
            raise ValueError(f"CLASSParameters.min_rate_bps = {self.min_rate_bps!r} is above max_rate_bps = {self.max_rate_bps!r}")


class CLASSSender(Sender):
    """The sending half: decides at what rate to send."""

<interests>

    def __init__(self, parameters: CLASSParameters = CLASSParameters()) -> None:
        self.parameters = parameters
        self.rate_bps = clamp(parameters.initial_rate_bps, parameters.min_rate_bps, parameters.max_rate_bps)<state>

    def on_start(self, now_s: float, rng: Rng) -> tuple[SenderAction, ...]:
        return (SetRate(self.rate_bps),)

<handlers>
        raise NotImplementedError("the equation is missing: write it into SOURCE, CLASSSender.next_rate_bps")


class CLASSReceiver(Receiver):
    """The receiving half: <receiver> come by themselves, so there is nothing to decide."""

    interests = Interests(<receiver interests>)

    def __init__(self, parameters: CLASSParameters = CLASSParameters()) -> None:
        self.parameters = parameters


KINDS = (
    Kind(
        "NAME",
        "one line for 'fairlane list': what it does [paper and section]",
        CLASSParameters,
        CLASSSender,
        CLASSReceiver,
    ),
)
'''

_BY_REPORTS = {
    "events": "gets each receiver's report, which comes by RTCP about every 5 s, and answers with a rate.",
    "others": "acknowledgements of each packet (`fairlane new algorithm NAME --acks`)",
    "imports": "    Feedback,\n    Interests,\n    Kind,",
    "event": "report",
    "interests": "    # rtcp: reports come on RTCP's timetable.\n    interests = Interests(rtcp=True)",
    "handlers": '''\
    def on_feedback(self, now_s: float, feedback: Feedback, rng: Rng) -> tuple[SenderAction, ...]:
        p = self.parameters
        # A report comes from the network and may be forged: the rate always stays within its bounds.
        self.rate_bps = clamp(self.next_rate_bps(feedback), p.min_rate_bps, p.max_rate_bps)
        return (SetRate(self.rate_bps),)

    def next_rate_bps(self, feedback: Feedback) -> float:
        """The new rate, from `self.rate_bps` and the report.

        Put the equation here, with its number: `# [PAPER eq 1]`. A report has `loss_fraction` (0 to 1, since the report before) and
        where known `rtt_s`, `jitter_s`; on paths with ALS routers `desired_rate_bps` and `utilisation`.
        """''',
    "state": "",
    "receiver": "RTCP reports",
    "receiver interests": "rtcp=True",
}
_BY_ACKS = {
    "events": "gets an acknowledgement of each packet, about a round trip after it was sent, and answers with a rate.",
    "others": "reports by RTCP",
    "imports": "    Ack,\n    AckDetail,\n    Interests,\n    Kind,\n    Loss,",
    "event": "acknowledgement",
    "interests": "    # EVERY: on_ack runs for each acknowledgement with news. LOSSES: on_loss alone runs, which costs less.\n"
    "    interests = Interests(acks=AckDetail.EVERY)",
    "handlers": '''\
    def on_ack(self, now_s: float, ack: Ack, rng: Rng) -> tuple[SenderAction, ...]:
        # The smallest round trip so far is the path's without queues; the rest is queueing delay.
        self.base_rtt_s = ack.rtt_s if self.base_rtt_s is None else min(self.base_rtt_s, ack.rtt_s)
        return self._set(self.next_rate_bps(ack.rtt_s - self.base_rtt_s, lost=False))

    def on_loss(self, now_s: float, loss: Loss, rng: Rng) -> tuple[SenderAction, ...]:
        return self._set(self.next_rate_bps(0.0, lost=True))

    def _set(self, rate_bps: float) -> tuple[SenderAction, ...]:
        p = self.parameters
        # Acknowledgements come from the network and may be forged: the rate always stays within its bounds.
        self.rate_bps = clamp(rate_bps, p.min_rate_bps, p.max_rate_bps)
        return (SetRate(self.rate_bps),)

    def next_rate_bps(self, queueing_s: float, lost: bool) -> float:
        """The new rate, from `self.rate_bps`, the queueing delay that the acknowledged packet met, or a loss.

        Put the equation here, with its number: `# [PAPER eq 1]`. An `Ack` also has `newly_acked_packets`, `ecn` and `path`, the smoothed
        round trip; with `Interests(timed_acks=True)` of the receiver `one_way_delay_s`; and what routers wrote into the packet.
        """''',
    "state": "\n        self.base_rtt_s: float | None = None",
    "receiver": "acknowledgements",
    "receiver interests": "timed_acks=True",
}

_TEST = '''\
"""TITLE: fails until the equation is in SOURCE. Add a test for each equation, worked by hand:

    def test_increase() -> None:
        # r = r + 50 kb/s without loss [PAPER eq 1]: 100 -> 150 kb/s
        assert rate_after(report(loss=0.0)) == 150_000
"""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from fairlane.hosts.algorithms.base import Feedback, SetRate
from PACKAGE import KINDS, CLASSParameters, CLASSSender

RNG = random.Random(0)
DEFAULTS = CLASSParameters()


def report(loss: float = 0.0, rtt_s: float | None = 0.05) -> Feedback:
    return Feedback(reporter=7, loss_fraction=loss, rtt_s=rtt_s)


def rate_after(*reports: Feedback, **changes: float) -> float:
    """The rate in bit/s after these reports, 5 s apart. changes: parameters other than the defaults."""
    sender = CLASSSender(replace(DEFAULTS, **changes))
    rates = [a.rate_bps for a in sender.on_start(0.0, RNG) if isinstance(a, SetRate)]
    for number, feedback in enumerate(reports):
        rates += [a.rate_bps for a in sender.on_feedback(5.0 * (number + 1), feedback, RNG) if isinstance(a, SetRate)]
    return rates[-1]


def test_users_find_it_by_name() -> None:
    assert [(kind.name, kind.sender) for kind in KINDS] == [("NAME", CLASSSender)]


def test_starts_at_the_initial_rate() -> None:
    assert rate_after() == DEFAULTS.initial_rate_bps


def test_reports_without_loss_raise_the_rate() -> None:
    assert rate_after(report(), report(), report()) > DEFAULTS.initial_rate_bps


def test_loss_lowers_the_rate() -> None:
    before = (report(), report())
    assert rate_after(*before, report(loss=0.25)) < rate_after(*before)


@given(st.lists(st.builds(report, st.floats(0, 1), st.none() | st.floats(0, 1e3)), max_size=30))
def test_no_report_takes_the_rate_out_of_its_bounds(reports: list[Feedback]) -> None:
    assert DEFAULTS.min_rate_bps <= rate_after(*reports) <= DEFAULTS.max_rate_bps
'''


_TEST_OF_ACKS = '''\
"""TITLE: fails until the equation is in SOURCE. Add a test for each equation, worked by hand:

    def test_increase() -> None:
        # r = r + 1 kb/s for each acknowledgement without queue [PAPER eq 1]: 100 -> 101 kb/s
        assert rate_after(ack(0.05)) == 101_000
"""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from fairlane.hosts.algorithms.base import Ack, Loss, LossCause, PathState, SetRate
from PACKAGE import KINDS, CLASSParameters, CLASSSender

RNG = random.Random(0)
DEFAULTS = CLASSParameters()
PATH = PathState(latest_rtt_s=0.05, srtt_s=0.05, rttvar_s=0.01, in_flight_packets=10, last_sent_sequence=9, highest_acked_sequence=1)


def ack(rtt_s: float) -> Ack:
    return Ack(sequence=1, rtt_s=rtt_s, newly_acked_packets=1, path=PATH)


LOST = Loss(first_sequence=2, last_sequence=2, lost_packets=1, cause=LossCause.GAP, path=PATH)


def rate_after(*events: Ack | Loss, **changes: float) -> float:
    """The rate in bit/s after these events, 10 ms apart. changes: parameters other than the defaults."""
    sender = CLASSSender(replace(DEFAULTS, **changes))
    rates = [a.rate_bps for a in sender.on_start(0.0, RNG) if isinstance(a, SetRate)]
    for number, event in enumerate(events):
        now_s = 0.01 * (number + 1)
        actions = sender.on_loss(now_s, event, RNG) if isinstance(event, Loss) else sender.on_ack(now_s, event, RNG)
        rates += [a.rate_bps for a in actions if isinstance(a, SetRate)]
    return rates[-1]


def test_users_find_it_by_name() -> None:
    assert [(kind.name, kind.sender) for kind in KINDS] == [("NAME", CLASSSender)]


def test_starts_at_the_initial_rate() -> None:
    assert rate_after() == DEFAULTS.initial_rate_bps


def test_acknowledgements_without_queue_raise_the_rate() -> None:
    assert rate_after(*[ack(0.05)] * 30) > DEFAULTS.initial_rate_bps


def test_a_loss_lowers_the_rate() -> None:
    before = [ack(0.05)] * 30
    assert rate_after(*before, LOST) < rate_after(*before)


@given(st.lists(st.just(LOST) | st.builds(ack, st.floats(1e-6, 1e3)), max_size=30))
def test_no_event_takes_the_rate_out_of_its_bounds(events: list[Ack | Loss]) -> None:
    assert DEFAULTS.min_rate_bps <= rate_after(*events) <= DEFAULTS.max_rate_bps
'''


def algorithm(name: str, root: Path, checkout: bool = True, acks: bool = False) -> tuple[Path, Path]:
    """Write the two files of a new flow kind: (algorithm, test). acks: it hears of each packet, in place of reports. root: a checkout, where they join Fairlane's own; or any other folder,
    which they are written into. Refusal when the name is invalid or taken, or a file is in the way; then nothing is written."""
    if not re.fullmatch(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*", name) or keyword.iskeyword(name):
        raise Refusal(
            f"{name!r} cannot be a flow kind: use lower-case letters and digits, words joined by hyphens, no Python keyword,"
            " such as 'my-rate'"
        )
    kind, module = name.replace("_", "-"), name.replace("-", "_")
    if kind in kinds.tables():
        raise Refusal(f"there is a flow kind {kind!r} already: {kinds.summary(kind) if kind in kinds.names() else 'of all of TCP'}")
    names = (f"hosts/algorithms/{module}.py", f"tests/hosts/test_hosts_{module}.py") if checkout else (f"{module}.py", f"test_{module}.py")
    files = (root / names[0], root / names[1])
    for path in files:
        if path.exists():
            raise Refusal(f"{path.relative_to(root)} exists already, and is not overwritten: choose another name, or remove it.")
    title = kind.replace("-", " ")
    words = {
        "CLASS": "".join(part.capitalize() for part in module.split("_")),
        "NAME": kind,
        "TITLE": title[0].upper() + title[1:],
        "SOURCE": names[0],
        "PACKAGE": f"fairlane.hosts.algorithms.{module}" if checkout else module,
    }
    filled = _ALGORITHM
    for word, replacement in (_BY_ACKS if acks else _BY_REPORTS).items():
        filled = filled.replace(f"<{word}>", replacement)
    for path, text in zip(files, (filled, _TEST_OF_ACKS if acks else _TEST)):
        for word, replacement in words.items():
            text = text.replace(word, replacement)
        try:
            with path.open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
        except OSError as error:
            raise Refusal(f"{path}: cannot be written: {error.strerror}") from error
    return files

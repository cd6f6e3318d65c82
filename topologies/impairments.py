"""What a link does to frames on the way, by the names of tc-netem (man tc-netem): loss in bursts, reordering, duplication, corruption."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairlane.schemes.base import MAX_DELAY_S


def check_probability(name: str, value: float) -> None:
    """ValueError for a number outside [0, 1]."""
    if not 0 <= value <= 1:
        raise ValueError(f"{name}: must be a probability in [0, 1], got {value:g}")


@dataclass(frozen=True)
class Gemodel:
    """Loss of Gilbert and Elliott: a good and a bad state. Before each frame the state changes: from good to bad with probability p in (0, 1], from bad
    to good with r in (0, 1]. A frame is lost with loss_bad in the bad state, netem's 1-h, and with loss_good in the good one, its 1-k; both in [0, 1].
    A link begins in the good state.

    Source: E. O. Elliott, "Estimates of Error Rates for Codes on Burst-Noise Channels", Bell System Technical Journal 42(5), 1963.
    """

    p: float
    r: float
    loss_bad: float = 1.0
    loss_good: float = 0.0

    def __post_init__(self) -> None:
        for name in ("p", "r"):
            value = getattr(self, name)
            if not 0 < value <= 1:
                raise ValueError(f"{name}: must be a probability in (0, 1], got {value:g}: the model changes its state now and then")
        check_probability("loss_bad", self.loss_bad)
        check_probability("loss_good", self.loss_good)
        if not self.mean_loss < 1:
            raise ValueError("loss_good: every frame is lost: give a loss_bad or loss_good below 1")

    @property
    def mean_loss(self) -> float:
        """Part of the frames that are lost in the long run: p / (p + r) of them meet the bad state."""
        bad = self.p / (self.p + self.r)
        return bad * self.loss_bad + (1 - bad) * self.loss_good

    @property
    def native(self) -> tuple[float, float, float, float]:
        """As `fairlane.specs.Loss`."""
        return self.p, self.r, self.loss_good, self.loss_bad


def check_loss(loss: float, gemodel: Gemodel | None) -> None:
    """ValueError for a loss that no link has."""
    if not 0 <= loss < 1:
        raise ValueError(f"loss: must be a probability in [0, 1), got {loss:g}")
    if loss and gemodel is not None:
        raise ValueError("gemodel: frames are lost in bursts, or each frame alike by 'loss': leave out one of the two")


def check(reorder: float, reorder_delay_s: float | None, duplicate: float, corrupt: float) -> None:
    """ValueError for impairments that no link has. reorder_delay_s: None where it is not known here."""
    for name, value in (("reorder", reorder), ("duplicate", duplicate), ("corrupt", corrupt)):
        check_probability(name, value)
    if reorder_delay_s is None:
        return
    if not 0 <= reorder_delay_s <= MAX_DELAY_S:
        raise ValueError(f"reorder_delay_s: must be in [0, {MAX_DELAY_S:g}] s, got {reorder_delay_s:g} s")
    if reorder and not reorder_delay_s:
        raise ValueError("reorder: frames that are held back need a time: give 'reorder_delay_s' as well")


def instead(values: Mapping[str, object]) -> dict[str, object]:
    """Values of a link's other direction, and with them the defaults of keys that these replace: a loss replaces bursts, a rate a trace."""
    found = dict(values)
    for together, default in ((("rate_bps", "trace"), None), (("loss", "gemodel"), None), (("jitter_s", "jitter_std_s"), 0.0)):
        if any(key in values for key in together):
            found |= {key: 0.0 if key == "loss" else default for key in together if key not in values and key != "rate_bps"}
    return found

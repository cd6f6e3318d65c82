"""Loss events, loss intervals and the loss event rate p: a TFRC receiver's state [RFC 5348 sec 5].

Lost packets within a round trip of the first one are one loss event [sec 5.2]. A loss interval is the number of packets from one
event's first to the next one's [sec 5.3]. p is one over a weighted mean of the last eight, and of the open one where that
lowers p [sec 5.4]; a long time without loss discounts the older intervals [sec 5.5].
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, floor

from fairlane.arithmetic import total


def weights(n: int) -> tuple[float, ...]:
    """w_0 ... w_(n-1) [RFC 5348 sec 5.4]; for n = 8: 1, 1, 1, 1, 0.8, 0.6, 0.4, 0.2."""
    return tuple(1.0 if i < n / 2 else 2 * (n - i) / (n + 2) for i in range(n))  # [RFC 5348 sec 5.4]


@dataclass(slots=True)
class LossHistory:
    """Of one flow. n: intervals remembered. discounting: sec 5.5, with its smallest factor."""

    n: int = 8
    discounting: bool = True
    discount_threshold: float = 0.25
    intervals: list[float] = field(default_factory=list)
    """I_1, I_2, ...: closed, the newest first; n at most."""
    discounts: list[float] = field(default_factory=list)
    """DF_1, DF_2, ... beside them."""
    start_sequence: int | None = None
    """First lost packet of the newest event, with which I_0 begins; None: nothing was lost yet."""
    start_s: float = 0.0
    """When it would have arrived."""

    def lost(self, first: int, last: int, before_s: float, after_s: float, rtt_s: float, first_interval: float) -> bool:
        """Packets `first` ... `last` did not come between two arrivals. `first_interval`: I_1 if this is the first loss of all
        [RFC 5348 sec 6.3.1]. Returns whether an event began."""
        if self.start_sequence is not None and first <= self.start_sequence:
            return False  # reported twice
        count = last - first + 1
        spacing_s = max(0.0, after_s - before_s) / (count + 1)

        def nominal_s(sequence: int) -> float:
            # T_loss = T_before + (T_after - T_before) (S_loss - S_before) / (S_after - S_before) [RFC 5348 sec 5.2]
            return before_s + spacing_s * (sequence - first + 1)

        if self.start_sequence is None:
            self.intervals, self.discounts = [max(1.0, first_interval)], [1.0]
            self._begin(first, nominal_s(first))
            begins, began = first, True
        else:
            begins, began = first, False
            if nominal_s(first) <= self.start_s + rtt_s:  # T_old + R >= T_loss: of the same event [RFC 5348 sec 5.2]
                if nominal_s(last) <= self.start_s + rtt_s:
                    return False
                begins = min(last, first - 1 + ceil((self.start_s + rtt_s - before_s) / spacing_s))
            self._close(begins, nominal_s(begins))
            began = True
        # A hole longer than a round trip holds more events, each as many packets long as fit in one.
        if spacing_s > 0.0 and nominal_s(last) > self.start_s + rtt_s:
            step = floor(min(rtt_s / spacing_s, float(count))) + 1
            more = (last - begins) // step
            for i in range(max(1, more - self.n), more + 1):  # earlier ones would be forgotten at once
                if i == more - self.n:
                    self.start_sequence = begins + (i - 1) * step
                self._close(begins + i * step, nominal_s(begins + i * step))
        return began

    def loss_event_rate(self, highest_sequence: int) -> float:
        """p, with I_0 up to the highest number received [RFC 5348 sec 5.4, 5.5]; 0 before the first loss."""
        if self.start_sequence is None:
            return 0.0
        open_interval = float(max(1, highest_sequence - self.start_sequence + 1))
        w = weights(self.n)
        closed = list(zip(self.intervals, self.discounts))
        df = self._discount(open_interval)
        total0 = open_interval * w[0]  # I_tot0, W_tot0: with the open interval [RFC 5348 sec 5.5]
        weight0 = w[0]
        # The oldest of n, or of as many as there are, makes room for I_0: I_tot0 has I_0 ... I_(k-1), I_tot1 I_1 ... I_k [RFC 5348 sec 5.4]
        for i, (interval, discount) in enumerate(closed[:-1], start=1):
            total0 += interval * w[i] * discount * df
            weight0 += w[i] * discount * df
        total1, weight1 = self._closed_sums()
        p = min(weight0 / total0, weight1 / total1)  # p = min(W_tot0/I_tot0, W_tot1/I_tot1) [RFC 5348 sec 5.5]
        return min(1.0, p)

    def mean_closed(self) -> float:
        """I_tot1 / W_tot1 in packets: the weighted mean of the closed intervals [RFC 5348 sec 5.5]; there must be one."""
        total, weight = self._closed_sums()
        return total / weight

    def _closed_sums(self) -> tuple[float, float]:
        """I_tot1 and W_tot1: of the closed intervals [RFC 5348 sec 5.5]."""
        parts = list(zip(weights(self.n), self.intervals, self.discounts))
        return total(w * i * d for w, i, d in parts), total(w * d for w, _, d in parts)

    def _discount(self, open_interval: float) -> float:
        """DF: below 1 when the open interval is more than twice the mean of the others [RFC 5348 sec 5.5]."""
        if not self.discounting:
            return 1.0
        mean = self.mean_closed()
        if open_interval <= 2 * mean:
            return 1.0
        return max(2 * mean / open_interval, self.discount_threshold)  # DF = max(2 I_mean / I_0, THRESHOLD) [RFC 5348 sec 5.5]

    def _begin(self, sequence: int, at_s: float) -> None:
        self.start_sequence, self.start_s = sequence, at_s

    def _close(self, sequence: int, at_s: float) -> None:
        """An event begins with packet `sequence`, not the first: I_0 becomes I_1 [RFC 5348 sec 5.3]."""
        assert self.start_sequence is not None
        length = float(max(1, sequence - self.start_sequence))  # S_B - S_A [RFC 5348 sec 5.3]
        df = self._discount(length)
        # What is discounted stays so: DF_(i+1) = DF DF_i for i > 0; I_0 was not discounted, and DF_1 = DF_0 = 1 [RFC 5348 sec 5.5]
        self.discounts = [1.0, *(df * discount for discount in self.discounts)][: self.n]
        self.intervals = [length, *self.intervals][: self.n]
        self._begin(sequence, at_s)

"""The capacity that 802.11n leaves each direction, by the setup of [RFC 8869 sec 3.2.2]: 52 Mb/s raw, one frame at a time.

Access point and stations contend by the distributed coordination function: each waits for a number of idle slots, drawn from a window that doubles with each collision; who
ends its wait at the same slot as another collides. Each sender offers as much as its flows' highest rates, no more. Stations that receive answer each eighth frame with a
small one, as feedback. No frame is aggregated, none is lost but by collisions, after seven of which it counts as lost. Each direction's throughput in each 100 ms is its trace.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

from tools.traces.shared import MEDIA_BPS, csv

RAW_BPS = 52e6
"""MCS index 11 [RFC 8869 sec 3.1.2]."""
BIN_S = 0.1
_SLOT_S, _SIFS_S, _PREAMBLE_S, _ACK_S, _SYMBOL_S = 9e-6, 16e-6, 36e-6, 28e-6, 4e-6
_DIFS_S = _SIFS_S + 2 * _SLOT_S
_WINDOW, _MOST_WINDOW, _RETRIES = 16, 1024, 7
_MAC_BYTES, _SERVICE_BITS = 44, 22
_DATA_BYTES, _FEEDBACK_BYTES, _EACH = 1000, 100, 8


@dataclass(frozen=True)
class More:
    """Further stations that send in a part of the time."""

    stations: int
    offered_bps: float
    from_s: float
    until_s: float


@dataclass(frozen=True)
class Wifi:
    """down: flows of the access point. up: stations that send. flow_bps: the most of each flow. of: "up" or "down", the direction whose trace this is."""

    name: str
    seed: int
    of: str
    down: int
    up: int
    flow_bps: float = MEDIA_BPS
    more: More | None = None
    length_s: float = 120.0

    def rows(self, until_s: float = math.inf) -> Iterator[tuple[float, int]]:
        """(time_s, rate_bps) of each 100 ms, until some time."""
        rng = random.Random(self.seed)
        end_s = min(until_s, self.length_s)
        # Of each sender: what it offers in frames a second, from when to when. The access point is the first; feedback comes from as many stations as it has flows.
        frame_bits = 8 * _DATA_BYTES
        offers: list[tuple[str, float, float, float]] = [("down", self.down * self.flow_bps / frame_bits, 0.0, end_s)] if self.down else []
        offers += [("feedback", 0.0, 0.0, end_s)] * self.down
        offers += [("up", self.flow_bps / frame_bits, 0.0, end_s)] * self.up
        if self.more is not None:
            offers += [("up", self.more.offered_bps / frame_bits, self.more.from_s, self.more.until_s)] * self.more.stations
        waiting = [0] * len(offers)
        windows = [_WINDOW] * len(offers)
        tries = [0] * len(offers)
        # When each sender's next frame comes, spread at random over the first interval.
        comes = [(start_s + rng.random() / rate, n) for n, (_, rate, start_s, _) in enumerate(offers) if rate]
        heapq.heapify(comes)
        contending: list[tuple[int, int]] = []
        idle, now_s, bits, answered, row = 0, 0.0, 0.0, 0, 0

        def contend(n: int) -> None:
            heapq.heappush(contending, (idle + rng.randrange(windows[n]), n))

        def offer(n: int) -> None:
            waiting[n] += 1
            if waiting[n] == 1:
                contend(n)

        while True:
            while comes and comes[0][0] <= now_s:
                at_s, n = heapq.heappop(comes)
                _, rate, _, stop_s = offers[n]
                # A tenth of a second of frames waits at most: a sender that cannot keep up does not save for later.
                if waiting[n] <= rate * BIN_S:
                    offer(n)
                if at_s + 1 / rate < stop_s:
                    heapq.heappush(comes, (at_s + 1 / rate, n))
            if not contending:
                now_s = comes[0][0] if comes else end_s
            else:
                first, _ = contending[0]
                senders = []
                while contending and contending[0][0] == first:
                    senders.append(heapq.heappop(contending)[1])
                now_s += _DIFS_S + (first - idle) * _SLOT_S + max(_frame_s(offers[n][0]) for n in senders) + _SIFS_S + _ACK_S
                idle = first
                for n in senders:
                    collided = len(senders) > 1
                    tries[n] = tries[n] + 1 if collided and tries[n] < _RETRIES - 1 else 0
                    windows[n] = min(_MOST_WINDOW, 2 * windows[n]) if tries[n] else _WINDOW
                    if tries[n] == 0:
                        waiting[n] -= 1
                        bits += frame_bits * (not collided and offers[n][0] == self.of)
                        if not collided and offers[n][0] == "down":
                            answered += 1
                            if answered % _EACH == 0:
                                offer(1 + answered // _EACH % self.down)
                    if waiting[n]:
                        contend(n)
            while now_s >= (row + 1) * BIN_S - 1e-9:
                yield round(row * BIN_S, 3), round(bits / BIN_S)
                row, bits = row + 1, 0.0
                if row * BIN_S >= end_s - 1e-9:
                    return

    def text(self, until_s: float = math.inf) -> str:
        return csv(self.rows(until_s))


def _frame_s(kind: str) -> float:
    payload_bytes = _FEEDBACK_BYTES if kind == "feedback" else _DATA_BYTES
    symbols = math.ceil((8 * (payload_bytes + _MAC_BYTES) + _SERVICE_BITS) / (RAW_BPS * _SYMBOL_S))
    return _PREAMBLE_S + symbols * _SYMBOL_S

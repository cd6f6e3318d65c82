"""The capacity that an LTE cell leaves one user, by the setup of [RFC 8869 sec 2.1.2, 2.2.2].

Users arrive in 21 cells as a Poisson process, stay as long as a call, 30 s, and walk or drive straight on. After 30 s one more user arrives in the middle, the one whose trace
this is, and stays until 60 s. Each 5 ms its cell serves its users by proportional fairness: highest rate now over mean rate served. Users of media and the cell's web
traffic have as much to send as their rates; the observed user always has data, so that its trace is what it could have. What the others leave goes to it, too.
Each of five subbands is served by itself.

The radio: 7 sites of three sectors; path loss, shadowing, antenna and powers as simulators quote them for 3GPP's case 1 and case 3 (TS 25.814); one antenna that sends
and two that receive, full interference from all other sectors, Rayleigh fading of each subband at the user's speed. A rate is the bandwidth times a part of Shannon's, as 3GPP TR 36.942 has it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from tools.traces.shared import MEDIA_BPS, csv

CALL_S = 30.0
"""Media duration per user [RFC 8869 sec 2.1.2]."""
EVALUATED_S = (30.0, 60.0)
"""[RFC 8869 sec 2.1.2]."""
SITES, SECTORS = 7, 3
"""21 cells [RFC 8869 sec 2.1.2]."""
SLOT_S, BIN_S, SUBBANDS = 0.005, 0.05, 5
_BANDWIDTH_HZ = 50 * 180e3
"""Of 10 MHz [RFC 8869 sec 2.1.2], 50 resource blocks carry data."""
_CARRIER_HZ = 2e9
_CELL_DBM, _USER_DBM, _ANTENNA_DBI, _PENETRATION_DB, _SHADOW_DB, _LEAST_M = 46.0, 24.0, 14.0, 20.0, 8.0, 35.0
_NOISE_DBM_HZ, _USER_NOISE_DB, _CELL_NOISE_DB, _UPLINK_INTERFERENCE_DB = -174.0, 9.0, 5.0, 6.0
_SHARE = {False: (0.6, 4.4), True: (0.4, 2.0)}
"""Downlink, uplink: part of Shannon's rate, and the most in bit/s per Hz."""
_LEAST_SINR = 0.1
_AVERAGED_S = 1.0
"""Of the mean rate that proportional fairness divides by."""
_CHECKED_S, _MARGIN_DB, _INTERRUPTION_S = 0.1, 3.0, 0.05
"""A user goes over to a cell that is stronger by so much; nothing is served meanwhile, and nothing lost."""


@dataclass(eq=False)
class User:
    """Position in metres at its arrival; shadows_db: of each site. offered_bps: infinite for the observed user."""

    arrives_s: float
    leaves_s: float
    x_m: float
    y_m: float
    heading: float
    speed_mps: float
    offered_bps: float
    shadows_db: list[float]
    fading: list[list[float]] = field(default_factory=list)
    """Of each subband: the parts of two receivers' complex gains."""
    cell: int = -1
    served_bps: float = 1e5
    waiting_bits: float = 0.0
    sinr: float = 0.0

    def at(self, now_s: float) -> tuple[float, float]:
        gone_m = self.speed_mps * (now_s - self.arrives_s)
        return self.x_m + gone_m * math.cos(self.heading), self.y_m + gone_m * math.sin(self.heading)


@dataclass(frozen=True)
class Lte:
    """intensity: users that arrive in each second, in all cells. radius_m: of a cell, a third of the distance between sites. web_bps: other traffic of each cell."""

    name: str
    seed: int
    uplink: bool
    intensity: float
    radius_m: float
    speed_kmh: float
    web_bps: float

    def users(self) -> list[User]:
        """The observed user, the web traffic of each sector, and the users who arrive until the evaluation ends."""
        rng = random.Random(self.seed)
        observed = self._user(rng, *EVALUATED_S, 0, math.inf)
        web = [self._user(rng, 0.0, EVALUATED_S[1], site, self.web_bps) for site in range(SITES) for _ in range(SECTORS)]
        for user in web:
            user.speed_mps = 0.0
        calls = []
        at_s = rng.expovariate(self.intensity)
        while at_s < EVALUATED_S[1]:
            calls.append(self._user(rng, at_s, at_s + CALL_S, rng.randrange(SITES), MEDIA_BPS))
            at_s += rng.expovariate(self.intensity)
        return [observed, *web, *calls]

    def _user(self, rng: random.Random, arrives_s: float, leaves_s: float, site: int, offered_bps: float) -> User:
        """Somewhere in the hexagon of a site, drawn as a circle of the same area."""
        hexagon_m = math.sqrt(math.sqrt(27) / (2 * math.pi)) * math.sqrt(3) * self.radius_m
        far_m, way = hexagon_m * math.sqrt(rng.random()), 2 * math.pi * rng.random()
        x_m, y_m = _sites(self.radius_m)[site]
        common = rng.gauss(0.0, 1.0)
        shadows = [_SHADOW_DB * (common + rng.gauss(0.0, 1.0)) / math.sqrt(2) for _ in range(SITES)]
        heading = 2 * math.pi * rng.random()
        return User(
            arrives_s,
            leaves_s,
            x_m + far_m * math.cos(way),
            y_m + far_m * math.sin(way),
            heading,
            self.speed_kmh / 3.6,
            offered_bps,
            shadows,
            [[rng.gauss(0.0, 1.0) for _ in range(4)] for _ in range(SUBBANDS)],
        )

    def _gains_db(self, user: User, now_s: float) -> list[float]:
        """Of the way between a user and each cell."""
        x_m, y_m = user.at(now_s)
        gains = []
        for (site_x, site_y), shadow_db in zip(_sites(self.radius_m), user.shadows_db):
            far_m = max(_LEAST_M, math.hypot(x_m - site_x, y_m - site_y))
            way_db = _ANTENNA_DBI - 128.1 - 37.6 * math.log10(far_m / 1000) - _PENETRATION_DB + shadow_db
            degrees = math.degrees(math.atan2(y_m - site_y, x_m - site_x))
            for sector in range(SECTORS):
                off = (degrees - 120 * sector + 180) % 360 - 180
                gains.append(way_db - min(12 * (off / 70) ** 2, 20.0))
        return gains

    def _tune(self, user: User, now_s: float) -> bool:
        """Its cell and its mean ratio of signal to interference and noise; whether it has just changed the cell."""
        gains = self._gains_db(user, now_s)
        best = max(range(len(gains)), key=lambda cell: gains[cell])
        before = user.cell
        if before < 0 or gains[best] > gains[before] + _MARGIN_DB:
            user.cell = best
        if self.uplink:
            noise_db = _NOISE_DBM_HZ + 10 * math.log10(_BANDWIDTH_HZ) + _CELL_NOISE_DB + _UPLINK_INTERFERENCE_DB
            user.sinr = 10 ** ((_USER_DBM + gains[user.cell] - noise_db) / 10)
        else:
            noise = 10 ** ((_NOISE_DBM_HZ + 10 * math.log10(_BANDWIDTH_HZ) + _USER_NOISE_DB - _CELL_DBM) / 10)
            others = sum(10 ** (gain / 10) for cell, gain in enumerate(gains) if cell != user.cell)
            user.sinr = 10 ** (gains[user.cell] / 10) / (others + noise)
        return 0 <= before != user.cell

    def _rate_bps(self, sinr: float) -> float:
        """Of one subband."""
        part, most = _SHARE[self.uplink]
        return _BANDWIDTH_HZ / SUBBANDS * min(most, part * math.log2(1 + sinr)) if sinr >= _LEAST_SINR else 0.0

    def rows(self, until_s: float = EVALUATED_S[1]) -> Iterator[tuple[float, int]]:
        """(time_s, rate_bps) of each 50 ms of the evaluation, until some time."""
        users = self.users()
        observed, rng = users[0], random.Random(f"{self.seed}/fading")
        keep = _bessel(2 * math.pi * self.speed_kmh / 3.6 * _CARRIER_HZ / 299_792_458 * SLOT_S)
        spread = math.sqrt(1 - keep**2)
        interrupted_s, bits = -1.0, 0.0
        here: list[User] = []
        for slot in range(round((until_s - EVALUATED_S[0]) / SLOT_S)):
            now_s = EVALUATED_S[0] + slot * SLOT_S
            if slot % round(_CHECKED_S / SLOT_S) == 0:
                present = [user for user in users if user.arrives_s <= now_s < user.leaves_s]
                gone_over = [user for user in present if self._tune(user, now_s)]
                if observed in gone_over:
                    interrupted_s = now_s + _INTERRUPTION_S
                here = [user for user in present if user.cell == observed.cell]
            for user in here:
                user.fading = [[keep * part + spread * rng.gauss(0.0, 1.0) for part in band] for band in user.fading]
                user.waiting_bits = min(user.waiting_bits + user.offered_bps * SLOT_S, user.offered_bps)
            served = [0.0] * len(here)
            for band in range(SUBBANDS):
                rates = [self._rate_bps(user.sinr * sum(part * part for part in user.fading[band]) / 4) for user in here]
                left_s = SLOT_S
                for n in sorted(range(len(here)), key=lambda n: -rates[n] / here[n].served_bps):
                    user = here[n]
                    if rates[n] <= 0 or (user is observed and now_s < interrupted_s):
                        continue
                    took_s = min(left_s, user.waiting_bits / rates[n])
                    served[n] += took_s * rates[n]
                    user.waiting_bits -= took_s * rates[n]
                    left_s -= took_s
                    if left_s <= 0:
                        break
            for n, user in enumerate(here):
                user.served_bps += SLOT_S / _AVERAGED_S * (served[n] / SLOT_S - user.served_bps)
                user.served_bps = max(user.served_bps, 1e3)
            bits += served[here.index(observed)]
            if (slot + 1) % round(BIN_S / SLOT_S) == 0:
                yield round(now_s + SLOT_S - BIN_S, 3), round(bits / BIN_S)
                bits = 0.0

    def text(self, until_s: float = EVALUATED_S[1]) -> str:
        """Before the evaluation the first rate of it, after it the last but 0."""
        rows = list(self.rows(until_s))
        (_, first), last = rows[0], next(rate for _, rate in reversed(rows) if rate)
        return csv([(0.0, max(1, first)), *rows, (until_s, last)])


def _sites(radius_m: float) -> list[tuple[float, float]]:
    around = [math.radians(60 * n + 30) for n in range(SITES - 1)]
    return [(0.0, 0.0), *((3 * radius_m * math.cos(a), 3 * radius_m * math.sin(a)) for a in around)]


def _bessel(x: float) -> float:
    """J0: the correlation of fading after a time (Clarke's model); 0 where the series would say less, as a process of one memory has none."""
    term = total = 1.0
    for n in range(1, 40):
        term *= -((x / 2) ** 2) / n**2
        total += term
    return max(0.0, total)

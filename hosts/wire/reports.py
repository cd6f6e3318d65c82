"""Reports that a receiver sends when its algorithm says so (hosts/wire/formats.toml, `report`), and the counts behind them."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from hosts.wire.errors import MalformedPacket

VERSION = 1
TYPE = 2
BYTES = 44
HAS_LOSS_EVENT_RATE = 1
"""Flag."""
LOSS_EVENT_RATE_UNIT = 1e-9

_LAYOUT = Struct("!QQIQIIII")
_FIRST = (VERSION << 4 | TYPE) << 56
_BITS = {
    "highest_sequence": 48,
    "echo_ns": 64,
    "delay_us": 32,
    "receive_rate_bps": 64,
    "expected_packets": 32,
    "lost_packets": 32,
    "reporter": 32,
}


@dataclass(frozen=True, slots=True)
class ReportPacket:
    """What a report says."""

    highest_sequence: int
    """Extended; 48 bits."""
    echo_ns: int
    """Send instant of the newest data packet, 64 bits."""
    delay_us: int
    """Since that packet arrived, 32 bits."""
    receive_rate_bps: int
    """Since the previous report, 64 bits."""
    loss_event_rate_ppb: int | None
    """Parts per thousand million, 32 bits; `None`: not in this report."""
    expected_packets: int
    """Since the previous report, 32 bits; so `lost_packets`."""
    lost_packets: int
    reporter: int
    """SSRC, 32 bits."""

    @property
    def loss_fraction(self) -> float:
        """Lost / expected, at most 1; 0 when none was expected."""
        return min(1.0, self.lost_packets / self.expected_packets) if self.expected_packets else 0.0

    @property
    def loss_event_rate(self) -> float | None:
        return None if self.loss_event_rate_ppb is None else self.loss_event_rate_ppb * LOSS_EVENT_RATE_UNIT

    def emit(self) -> bytes:
        """Raises `ValueError` naming a field that does not fit."""
        for name, bits in _BITS.items():
            if not 0 <= getattr(self, name) < 1 << bits:
                raise ValueError(f"{name} = {getattr(self, name)}: does not fit {bits} bits")
        first = _FIRST | self.highest_sequence
        rate = self.loss_event_rate_ppb
        if rate is None:
            rate = 0
        elif 0 <= rate < 1 << 32:
            first |= HAS_LOSS_EVENT_RATE << 48
        else:
            raise ValueError(f"loss_event_rate_ppb = {rate}: does not fit 32 bits")
        return _LAYOUT.pack(
            first,
            self.echo_ns,
            self.delay_us,
            self.receive_rate_bps,
            rate,
            self.expected_packets,
            self.lost_packets,
            self.reporter,
        )


def parse_report(payload: bytes | bytearray | memoryview) -> ReportPacket:
    """Raises `MalformedPacket`. `parse_report(r.emit()) == r`."""
    if len(payload) != BYTES:
        raise MalformedPacket(min(len(payload), BYTES), f"report of {len(payload)} bytes, must be {BYTES}")
    first, echo_ns, delay_us, receive_rate_bps, rate, expected, lost, reporter = _LAYOUT.unpack(payload)
    if first >> 60 != VERSION:
        raise MalformedPacket(0, f"report version {first >> 60}, must be {VERSION}")
    if first >> 56 & 15 != TYPE:
        raise MalformedPacket(0, f"type {first >> 56 & 15}, must be {TYPE}")
    return ReportPacket(
        highest_sequence=first & (1 << 48) - 1,
        echo_ns=echo_ns,
        delay_us=delay_us,
        receive_rate_bps=receive_rate_bps,
        loss_event_rate_ppb=rate if first >> 48 & HAS_LOSS_EVENT_RATE else None,
        expected_packets=expected,
        lost_packets=lost,
        reporter=reporter,
    )


def loss_event_rate_field(rate: float | None) -> int | None:
    """A loss event rate as the field holds it: rounded, limited to 0 to 1; NaN becomes 0. Error at most 0.5e-9."""
    return None if rate is None else round(min(rate, 1.0) * 1e9) if rate > 0.0 else 0


class ReportBook:
    """At the receiver: what has been reported, so that each report speaks of the time since the one before."""

    __slots__ = ("_since_s", "_bytes", "_expected", "_received")

    def __init__(self) -> None:
        self.begin(0.0, 0)

    def begin(self, now_s: float, total_bytes: int) -> None:
        """A source's first packet came, the last of `total_bytes` counted so far: the first rate is of what follows it."""
        self._since_s, self._bytes, self._expected, self._received = now_s, total_bytes, 0, 0

    def close(self, now_s: float, total_bytes: int, expected_packets: int, received_packets: int) -> tuple[int, int, int]:
        """A report is sent: bit/s, expected packets, lost packets since the one before. A rate over no time is 0."""
        elapsed_s = now_s - self._since_s
        rate_bps = int(8 * (total_bytes - self._bytes) / elapsed_s) if elapsed_s > 0 else 0
        expected, received = expected_packets - self._expected, received_packets - self._received
        self._since_s, self._bytes, self._expected, self._received = now_s, total_bytes, expected_packets, received_packets
        expected = max(0, min(expected, 0xFFFFFFFF))
        return rate_bps, expected, max(0, min(expected - received, 0xFFFFFFFF))

"""NTP timestamps (RFC 3550 section 4): seconds since 1 January 1900 as 32.32 fixed point, and the middle 32 bits."""

from __future__ import annotations

NTP_EPOCH_OFFSET_S = 2_208_988_800
"""Seconds from 1 January 1900 to 1 January 1970."""


def ntp_from_unix(unix_s: float) -> int:
    """The 64-bit timestamp of a Unix time; wraps every 136 years, as the format does."""
    whole, fraction = divmod(unix_s, 1.0)
    return ((int(whole) + NTP_EPOCH_OFFSET_S) << 32) + int(fraction * 4294967296.0) & 0xFFFFFFFFFFFFFFFF


def middle_32(ntp: int) -> int:
    """The compact form in LSR: 16 bits of seconds, 16 of fraction (unit 1/65536 s)."""
    return ntp >> 16 & 0xFFFFFFFF


def dlsr_units(delay_s: float) -> int:
    """A delay in units of 1/65536 s, limited to what the 32-bit DLSR field holds."""
    return max(0, min(int(delay_s * 65536), 0xFFFFFFFF))


def round_trip_s(arrival_ntp: int, lsr: int, dlsr: int) -> float | None:
    """RTT = A - LSR - DLSR (RFC 3550 section 6.4.1), in seconds, resolution 15 us.

    `None` when the reporter had seen no sender report (LSR = 0), or when the result is negative or above 2^15 s: the
    difference of 32-bit timestamps then says that the fields are wrong, or forged.
    """
    if lsr == 0:
        return None
    units = (middle_32(arrival_ntp) - lsr - dlsr) & 0xFFFFFFFF
    return units / 65536 if units < 0x80000000 else None

"""When to send RTCP packets (RFC 3550 sections 6.2, 6.3, appendix A.7).

Between two reports of a member lie on average Td seconds, Td >= 5 s ("the average value between generating two RTCP packets at
the same source" [ALS sec 3.3] is this minimum). Each wait is drawn from [0.5 Td, 1.5 Td] / (e - 3/2): timer reconsideration
lengthens the mean by that constant, and the division takes it back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import e

COMPENSATION = e - 1.5
"""1.21828: RFC 3550 section 6.3.1."""
MAX_MEMBERS_FOR_PROMPT_BYE = 50
"""Members up to which a participant that leaves says BYE at once (RFC 3550 section 6.3.7)."""


@dataclass(frozen=True, slots=True)
class RtcpParameters:
    """RFC 3550 section 6.2's recommended values."""

    session_bandwidth_bps: float
    """Bandwidth of the session, fixed for its life."""
    rtcp_fraction: float = 0.05
    """RTCP's part of it."""
    sender_fraction: float = 0.25
    """Senders' part of that, while they are at most this part of the members."""
    min_interval_s: float = 5.0
    timeout_intervals: float = 5.0
    """M of section 6.3.5: a member silent for so many Td is gone; a sender for two."""


class RtcpSchedule:
    """The RTCP timetable of one participant; `random` yields uniform draws from [0, 1)."""

    def __init__(
        self, now_s: float, parameters: RtcpParameters, own_ssrc: int, first_packet_bytes: int, random: Callable[[], float]
    ) -> None:
        """`first_packet_bytes`: likely size of the first compound packet, UDP and IP headers included (section 6.3.2)."""
        self._parameters = parameters
        self._own_ssrc = own_ssrc
        self._random = random
        self._members: dict[int, float] = {own_ssrc: now_s}  # SSRC -> last heard
        self._senders: dict[int, float] = {}
        self._initial = True
        self._has_sent = False  # RTP or RTCP, ever
        self._byes: int | None = None  # of one that leaves: BYE packets, its own included, in place of members
        self._average_bytes = float(first_packet_bytes)
        self._last_s = now_s  # tp
        self._pmembers = 1
        self._silent: list[int] = []
        self.next_s = now_s + self._draw()  # tn
        """When to call `expire`."""

    @property
    def members(self) -> int:
        return len(self._members)

    def deterministic_interval_s(self) -> float:
        """Td of this participant (section 6.3.1)."""
        return self._interval_s(self._own_ssrc in self._senders)

    def _interval_s(self, sends: bool) -> float:
        """Td of a sender, or of a receiver."""
        p = self._parameters
        members, senders = len(self._members) if self._byes is None else self._byes, len(self._senders)
        bandwidth = p.session_bandwidth_bps * p.rtcp_fraction / 8
        n = members
        if senders <= members * p.sender_fraction:
            if sends:
                bandwidth *= p.sender_fraction
                n = senders
            else:
                bandwidth *= 1 - p.sender_fraction
                n = members - senders
        minimum = p.min_interval_s / 2 if self._initial else p.min_interval_s
        return max(minimum, n * self._average_bytes / bandwidth)

    def _draw(self) -> float:
        return self.deterministic_interval_s() * (self._random() + 0.5) / COMPENSATION

    def sent_data(self, now_s: float) -> None:
        """This participant sent RTP data (section 6.3.8)."""
        self._senders[self._own_ssrc] = now_s
        self._has_sent = True

    def received_data(self, now_s: float, ssrc: int) -> None:
        """A data packet of `ssrc` arrived (section 6.3.3)."""
        if self._byes is not None:
            return
        self._members[ssrc] = now_s
        self._senders[ssrc] = now_s

    def received_rtcp(self, now_s: float, ssrc: int, packet_bytes: int) -> None:
        """A compound packet of `ssrc` arrived, `packet_bytes` with UDP and IP headers (section 6.3.3)."""
        if self._byes is not None:
            return
        self._members[ssrc] = now_s
        self._average(packet_bytes)

    def received_bye(self, now_s: float, ssrc: int, packet_bytes: int) -> None:
        """`ssrc` left, by a compound packet that `received_rtcp` has had: reverse reconsideration (section 6.3.4). A participant that
        leaves too counts the BYE, whether it knows `ssrc` or not (section 6.3.7)."""
        if self._byes is not None and ssrc != self._own_ssrc:
            self._byes += 1
            self._average(packet_bytes)
            return
        if ssrc == self._own_ssrc or self._members.pop(ssrc, None) is None:
            return
        self._senders.pop(ssrc, None)
        members = len(self._members)
        if members < self._pmembers:
            ratio = members / self._pmembers
            self.next_s = now_s + ratio * (self.next_s - now_s)
            self._last_s = now_s - ratio * (now_s - self._last_s)
            self._pmembers = members

    def leave(self, now_s: float, packet_bytes: int) -> bool:
        """This participant leaves; its BYE compound has `packet_bytes`, headers included (section 6.3.7). True: send it now. False:
        more than 50 members; send it when `expire` says so. A participant that has sent nothing must not say BYE: `next_s` is
        infinite."""
        if not self._has_sent:
            self.next_s = float("inf")
            return False
        if len(self._members) <= MAX_MEMBERS_FOR_PROMPT_BYE:
            return True
        self._last_s = now_s
        self._byes = 1
        self._senders.clear()
        self._initial = True
        self._average_bytes = float(packet_bytes)
        self.next_s = now_s + self._draw()
        return False

    def expire(self, now_s: float) -> bool:
        """The time `next_s` has come. True: send a report now and call `sent_rtcp`, or send BYE. False: reconsidered, wait for the
        new `next_s` (sections 6.3.5 to 6.3.7)."""
        if self._byes is None:
            self._time_out(now_s)
        due_s = self._last_s + self._draw()
        self._pmembers = len(self._members)
        if due_s > now_s:
            self.next_s = due_s
            return False
        return True

    def sent_rtcp(self, now_s: float, packet_bytes: int) -> None:
        """A report went out (section 6.3.6)."""
        self._average(packet_bytes)
        self._last_s = now_s
        self._initial = False
        self._has_sent = True
        self.next_s = now_s + self._draw()

    def take_silent(self) -> list[int]:
        """Members that timed out since the last call (section 6.3.5)."""
        silent, self._silent = self._silent, []
        return silent

    def _average(self, packet_bytes: int) -> None:
        self._average_bytes += (packet_bytes - self._average_bytes) / 16

    def _time_out(self, now_s: float) -> None:
        # "for a receiver, that is, with we_sent false": a sender's own Td is far shorter than its receivers' in a large group.
        member_limit = now_s - self._parameters.timeout_intervals * self._interval_s(sends=False)
        sender_limit = now_s - 2 * self.deterministic_interval_s()
        own = self._own_ssrc
        for ssrc in [s for s, heard in self._members.items() if heard < member_limit and s != own]:
            del self._members[ssrc]
            self._senders.pop(ssrc, None)
            self._silent.append(ssrc)
        for ssrc in [s for s, heard in self._senders.items() if heard < sender_limit]:
            del self._senders[ssrc]

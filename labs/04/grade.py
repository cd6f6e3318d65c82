"""Lab 4: what the program must do to control packets, one by one, and then in a network."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fairlane import api
from fairlane.labs.grading import NETWORK_S, Answer, Missed, check
from fairlane.labs.grading.answer import stf

ENTRIES = """
add ipv4_lpm hdr.ipv4.dst_address:0x0a000202/32 send(port:2, src_address:0x21, dst_address:0x22)
add ipv4_lpm hdr.ipv4.dst_address:0x0a000300/24 send(port:3, src_address:0x21, dst_address:0x22)
add fair_rate standard_metadata.egress_port:2 set_fair_rate(rate_bps:900000, utilisation_ppm:870000)
"""
FAIR_RATE_BPS, UTILISATION_PPM = 900_000, 870_000
# Ethernet and IPv4 with router alert; the header checksums fit the time to live, which the switch counts down.
_IN = "00000000000b00000000000a08004600006c000000004011{}0a0001010a00{}94040000"
_OUT = "00000000002200000000002108004600006c000000003f11{}0a0001010a00{}94040000"
_CHECKSUMS = {"0202": ("ce7a", "cf7a"), "0301": ("cd7b", "ce7b")}
_PORTS = {"0202": 2, "0301": 3}
# UDP, then RTCP: SR, SDES, and the APP packet ALSF up to R_d.
_RTCP = (
    "138d138d0054{:04x}"
    "80c8000600001111010203040506070800000009"
    "0000000a000003e8"
    "81ca000500001111010b68314031302e302e302e31000000"
    "80cc000500001111414c5346"
)
FIRST = "first make the check before this one hold"


@dataclass(frozen=True)
class Fields:
    """Of a control packet: R_d in bit/s, U in ppm, UDP checksum."""

    desired_rate_bps: int
    utilisation_ppm: int
    checksum: int = 0

    def __str__(self) -> str:
        return f"R_d = {self.desired_rate_bps:,} bit/s, U = {self.utilisation_ppm:,} ppm, UDP checksum 0x{self.checksum:04x}"

    def hex(self) -> str:
        return f"{_RTCP.format(self.checksum)}{self.desired_rate_bps:016x}{self.utilisation_ppm:08x}"

    @staticmethod
    def of(packet: str) -> Fields:
        end = packet.removesuffix("$")
        return Fields(int(end[-24:-8], 16), int(end[-8:], 16), int(end[88:92], 16))


FAIR = Fields(FAIR_RATE_BPS, UTILISATION_PPM)


def seen(answer: Answer, sent: Fields, expected: Fields, destination: str = "0202") -> str:
    """The difference between the switch's output and the expected one; "" without a difference."""
    before, after = _CHECKSUMS[destination]
    told = stf(
        answer.als_compiled(),
        f"{ENTRIES}packet 1 {_IN.format(before, destination)}{sent.hex()}\n"
        f"expect {_PORTS[destination]} {_OUT.format(after, destination)}{expected.hex()} $\n",
    )
    received = re.search(r"received ([0-9a-f]+)", told)
    return "" if not told else f"in:  {sent}\nout: {Fields.of(received[1])}" if received else told


def works_at_all(answer: Answer) -> None:
    if seen(answer, Fields(10_000_000, 0), FAIR):
        raise Missed("a packet that asks for more than the fair rate does not get it", FIRST)


@check(3, "a sender that asks for more than the fair rate gets the fair rate, and U")
def lowers(answer: Answer) -> None:
    sent = Fields(10_000_000, 0)
    told = seen(answer, sent, FAIR)
    if told and not seen(answer, sent, Fields(FAIR_RATE_BPS, 0)):
        raise Missed(
            f"port 2 has R_f = 900 kb/s and U = 87%\n{told}", "the controller gives two values; does each of them reach the packet?", 1
        )
    if told:
        raise Missed(f"port 2 has R_f = 900 kb/s and U = 87%\n{told}", "which of the two rates is the smaller, and which must travel on?")


@check(1, "a sender that asks for exactly the fair rate hears of the utilisation")
def equal(answer: Answer) -> None:
    works_at_all(answer)
    told = seen(answer, Fields(FAIR_RATE_BPS, 5), FAIR)
    if told:
        raise Missed(
            f"port 2 has R_f = 900 kb/s and U = 87%\n{told}",
            "section 3.1 of the paper: what is to happen when a sender asks for exactly the fair rate?",
        )


@check(2, "what an earlier switch has limited to less stays as it is")
def keeps(answer: Answer) -> None:
    works_at_all(answer)
    limited = Fields(600_000, 990_000)
    told = seen(answer, limited, limited)
    if told:
        raise Missed(
            f"port 2 has R_f = 900 kb/s; an earlier switch wrote its own, smaller one\n{told}",
            "two switches on a path, the first the tighter: what would the first of two switches be for, if the second overwrote it?",
        )


@check(1, "a port without a fair rate changes nothing")
def no_entry(answer: Answer) -> None:
    works_at_all(answer)
    sent = Fields(10_000_000, 7)
    told = seen(answer, sent, sent, "0301")
    if told:
        raise Missed(
            f"port 3 has no entry in the table\n{told}", "what does a table do when no entry matches, and how can the apply block tell?"
        )


@check(1, "a changed packet does not fail its UDP checksum")
def checksum(answer: Answer) -> None:
    works_at_all(answer)
    told = seen(answer, Fields(10_000_000, 0, 0x1234), FAIR)
    if told:
        raise Missed(
            f"a sender wrote a UDP checksum, and the switch changed the packet\n{told}",
            "the checksum was over the bytes before the change; RFC 768 has a value for 'there is none'",
        )


@check(2, "five senders share a link of 2 Mb/s, in virtual time", NETWORK_S)
def shares(answer: Answer) -> None:
    works_at_all(answer)
    result = api.run(
        "dumbbell",
        ["als:5"],
        bottleneck="2mbit",
        rtt="20ms",
        queue="red",
        duration_s=60,
        programs=[answer.program("fair_rate.p4")],
        settings=["als.maximum_rate_bps=2e6"],
    )
    rates, loss = result.goodputs_bps.values(), result.of_kind("als")["mean_loss_fraction"]
    if loss > 0.02:
        raise Missed(f"the flows lose {100 * loss:.1f}% of their packets", "do they hear of a rate that five of them can have together?")
    if min(rates) < 0.7 * 0.9 * 2e6 / 5 or max(rates) > 1.1 * 0.9 * 2e6 / 5:
        raise Missed(
            f"rates from {min(rates) / 1e3:.0f} to {max(rates) / 1e3:.0f} kb/s, of a share of {0.9 * 2e6 / 5e3:.0f} kb/s",
            "follow R_d from switch to receiver to sender; which of the packets above comes out wrong?",
        )


CHECKS = [lowers, equal, keeps, no_entry, checksum, shares]

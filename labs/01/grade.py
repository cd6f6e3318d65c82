"""Lab 1: the router packet by packet and in a network of three; then its test, held against a right router and six faulty ones."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from fairlane import probes, user_files
from fairlane.fabrics import targets
from fairlane.labs.grading import NETWORK_S, Answer, Missed, check
from fairlane.labs.grading.answer import stf
from fairlane.labs.grading.packets import Seen, checksum, ipv4, played
from fairlane.tutorials import programs, topology, virtual_network

FIRST = "first make the check before this one hold"
PROGRAM, TEST = "router.p4", "router.stf"
NETWORK = Path(__file__).resolve().parent / "network" / "topology.json"
ENTRIES = [
    f"add ipv4_lpm hdr.ipv4.dst_address:{prefix} send(port:{port}, src_address:0x08000000{port:02x}aa, dst_address:0x08000000{port:02x}bb)"
    for prefix, port in (("0x0a000000/8", 3), ("0x0a000200/24", 2), ("0x0a000205/32", 4))
]
PORTS = (2, 3, 4)
TO = {"10.0.2.2": 2, "10.0.9.9": 3, "10.0.2.5": 4}


@dataclass(frozen=True)
class Fault:
    """Faulty routers that a test should detect: their behaviour, and the change to `p4src/als.p4` that causes it."""

    what: str
    file: str
    find: str
    replace: str


FAULTS = (
    Fault(
        "leaves the time to live as it is",
        "forward.p4",
        "dst_address = dst_address;\n        hdr.IP.ttl = hdr.IP.ttl - 1;",
        "dst_address = dst_address;",
    ),
    Fault("sends packets on whose time to live is used up", "forward.p4", "hdr.IP.ttl <= 1", "hdr.IP.ttl == 0"),
    Fault(
        "leaves the Ethernet addresses as they are",
        "forward.p4",
        "hdr.ethernet.src_address = src_address;\n        hdr.ethernet.dst_address = dst_address;",
        "",
    ),
    Fault(
        "sends packets without a route by port 2",
        "forward.p4",
        "actions = { send; spread; drop; }\n        size = 4096;\n        default_action = drop();",
        "actions = { send; spread; drop; }\n        size = 4096;\n        default_action = send(2, 0, 0);",
    ),
    Fault("sends packets on whose header checksum is wrong", "forward.p4", " || standard_metadata.checksum_error == 1", ""),
    Fault("does not compute the header checksum anew", "checksum.p4", "update_checksum(hdr.ipv4.isValid() &&", "update_checksum(false &&"),
)


def play(answer: Answer, *frames: bytes) -> Seen:
    try:
        return played(answer.p4(PROGRAM), [*ENTRIES, *(f"packet 1 {frame.hex()}" for frame in frames)], PORTS)
    except RuntimeError as error:
        raise Missed(
            str(error),
            "does the table have the name, the key and the match that TODO 3 asks for, and is it applied? "
            "What is not used, the compiler leaves out",
        ) from None


def one(answer: Answer, destination: str = "10.0.2.2", ttl: int = 64) -> bytes:
    """The frame that comes out of the port that it should."""
    seen = play(answer, ipv4("10.0.1.1", destination, ttl))
    frames = seen.out.get(TO[destination], [])
    if len(frames) != 1:
        others = ", ".join(f"port {port}" for port in seen.out) or "nowhere"
        routes = "10.0.0.0/8 -> port 3, 10.0.2.0/24 -> port 2, 10.0.2.5/32 -> port 4"
        hint = (
            "which of two prefixes that both match counts, and which kind of match is that?"
            if seen.out
            else "follow the packet: does the parser find IPv4, is the table applied, does the action set the port?"
        )
        raise Missed(f"routes: {routes}\na packet to {destination} comes out of: {others}", hint)
    return frames[0]


def forwards_at_all(answer: Answer) -> None:
    try:
        one(answer)
    except Missed as missed:
        raise Missed(missed.message, FIRST) from None


@check(3, "packets leave by the port of the longest prefix")
def forwards(answer: Answer) -> None:
    for destination in TO:
        one(answer, destination)


@check(1, "the frame has the next link's Ethernet addresses")
def ethernet(answer: Answer) -> None:
    forwards_at_all(answer)
    frame = one(answer)
    if (frame[:6].hex(), frame[6:12].hex()) != ("0800000002bb", "0800000002aa"):
        raise Missed(
            f"send(src_address 08:00:00:00:02:aa, dst_address 08:00:00:00:02:bb); the frame goes from {frame[6:12].hex(':')} to {frame[:6].hex(':')}",
            "a frame has two Ethernet addresses, and both change on each link",
        )


@check(1, "the time to live is one less")
def time_to_live(answer: Answer) -> None:
    forwards_at_all(answer)
    left = one(answer)[22]
    if left != 63:
        raise Missed(
            f"time to live 64 comes in, {left} goes out",
            "what ends a packet that routers send around in a circle? How many routers may it cross?",
        )


@check(1, "the header checksum fits the changed header")
def header_checksum(answer: Answer) -> None:
    forwards_at_all(answer)
    frame = one(answer)
    if frame[22] == 64:
        raise Missed("the header is as it was", FIRST)
    if checksum(frame[14:34]):
        raise Missed(
            f"the header that goes out is {frame[14:34].hex()}, and its checksum is wrong",
            "the checksum covers the header; what has changed in it?",
        )


def dropped(answer: Answer, what: str, frame: bytes, hint: str) -> None:
    seen = play(answer, frame)
    if seen.out:
        raise Missed(f"{what} leaves by port {next(iter(seen.out))}", hint)


@check(1, "a used-up time to live ends a packet, and one of 2 does not")
def expired(answer: Answer) -> None:
    forwards_at_all(answer)
    one(answer, ttl=2)
    for ttl in (1, 0):
        dropped(
            answer,
            f"a packet with time to live {ttl}",
            ipv4("10.0.1.1", "10.0.2.2", ttl),
            "with which time to live does a packet reach its last router?",
        )


def asks_first(answer: Answer) -> None:
    """Missed when nothing keeps the ingress from a header that is not there: this switch reads zeros there, another one anything (primer.md)."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", answer.text(PROGRAM), flags=re.DOTALL)
    ingress = text[text.find("control RouterIngress") :].partition("control RouterEgress")[0]
    if not re.search(r"isValid|ether_type|parser_error", ingress):
        raise Missed(
            "an ARP frame: RouterIngress reads fields of an IPv4 header that is not there",
            "a header that the parser has not found has no defined values: which method tells whether it is there?",
        )


@check(1, "what is not IPv4, is damaged, or has no route is dropped")
def broken(answer: Answer) -> None:
    forwards_at_all(answer)
    dropped(
        answer,
        "a packet to 192.168.1.1, which has no route,",
        ipv4("10.0.1.1", "192.168.1.1"),
        "what does the table do when nothing matches?",
    )
    dropped(
        answer,
        "a packet with a wrong header checksum",
        ipv4("10.0.1.1", "10.0.2.2", checksum_off_by=1),
        "RouterVerifyChecksum looks at the checksum, and leaves its finding somewhere",
    )
    dropped(
        answer,
        "an ARP frame",
        bytes.fromhex("ffffffffffff08000000011108060001080006040001") + bytes(20),
        "what does the table look at when there is no IPv4 header?",
    )
    asks_first(answer)


@check(2, "three routers and three hosts: everybody reaches everybody, in virtual time", NETWORK_S)
def network(answer: Answer) -> None:
    forwards_at_all(answer)
    answer.p4(PROGRAM)
    found = programs.find(topology.read(NETWORK), [answer.program(PROGRAM)], targets.compiler(), answer.scratch)
    transfers = virtual_network.run(topology.read(NETWORK), found, None, lambda _: None)
    lost = [f"{t.source} to {t.target}" for t in transfers if not t.arrived]
    if lost:
        raise Missed(
            f"TCP did not get through from {', '.join(lost)}",
            "which of the packets above comes out wrong? A host drops a wrong header checksum, too",
        )


def _tested(answer: Answer, fault: Fault | None) -> str:
    """What the answer's test says of a right router, or of one with a fault; "" when it passes."""
    folder = answer.scratch / "routers" / (fault.what if fault else "right").replace(" ", "-")
    program = user_files.assemble(probes.PACKAGE / "p4src" / "als.p4", [], folder)
    if fault is not None:
        path = folder / fault.file
        text = path.read_text()
        if text.count(fault.find) != 1:
            raise RuntimeError(f"p4src/{fault.file} has changed: {fault.find!r} is {text.count(fault.find)} times in it")
        path.write_text(text.replace(fault.find, fault.replace))
    said = stf(Answer(folder, folder).compiled(program, folder), answer.text(TEST))
    if place := re.match(r"als\.stf:(\d+: .*)", said):
        raise Missed(f"{TEST}:{place[1]}", "the head of the skeleton lists the commands; the table and its action are those of router.p4")
    return said.replace("als.stf: ", "")


def _found(answer: Answer) -> list[Fault]:
    return [fault for fault in FAULTS if _tested(answer, fault)]


@check(1, "router.stf passes with a right router")
def passes(answer: Answer) -> None:
    said = _tested(answer, None)
    if said:
        raise Missed(said, "a right router does not do what the test expects; compare what it sent, byte by byte")
    if not _found(answer):
        raise Missed(
            "the test passes with every router, right or not", "a test that expects nothing finds nothing: what must come out of port 2?"
        )


@check(4, "router.stf finds faulty routers out")
def finds(answer: Answer) -> None:
    if _tested(answer, None):
        raise Missed("the test fails with a right router", FIRST)
    found = _found(answer)
    missed = [fault.what for fault in FAULTS if fault not in found]
    if missed:
        raise Missed(
            "the test passes with a router that\n" + "\n".join(f"- {what}" for what in missed),
            "send a packet that such a router would treat otherwise, and expect what a right one does; a port counts once the test names it",
            round(4 * len(found) / len(FAULTS), 1),
        )


CHECKS = [forwards, ethernet, time_to_live, header_checksum, expired, broken, network, passes, finds]

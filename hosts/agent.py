"""`python -m fairlane.hosts.agent`: one end of one flow over UDP. The endpoint (`switch/net/endpoint`) and the algorithm decide which packets it sends, and when.

Ends at `--stop-at`, after `--duration`, or on SIGTERM or SIGINT, with a complete log; exit code 0. It sends RTCP BYE as [RFC 3550 sec 6.3.7]
allows: after a signal only if BYE need not wait. Exit code 2, with a message: bad arguments, a socket or log file that cannot be opened, an
algorithm that requests something that its half of a flow cannot do.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import random
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, TextIO, get_type_hints

from fairlane import native
from fairlane.hosts import arguments, film, own_algorithms
from fairlane.hosts.algorithms import ALGORITHMS, carried_of, header_of
from fairlane.hosts.circuit_breaker import CircuitBreaker
from fairlane.hosts.records import NS, Clock, FlowWriter, opened, version_of
from fairlane.hosts.sources import Source, Spelled
from fairlane.specs import Half, Place, Reception, RtpOptions, Session

ROLES = ("sender", "receiver")
NO_ALGORITHM = "none"
"""A flow without feedback: what its source produces leaves at once."""
FLUSH_PERIOD_NS = NS
_NEVER_NS = (1 << 64) - 1


def _spelled(kind: type[Spelled]) -> Callable[[str], Spelled]:
    def parse(text: str) -> Spelled:
        try:
            return kind.parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m fairlane.hosts.agent", description="One end of one flow.")
    parser.add_argument("--role", choices=ROLES, required=True)
    parser.add_argument("--algorithm", choices=[*sorted(ALGORITHMS), NO_ALGORITHM], default="als")
    parser.add_argument(
        "--source", type=_spelled(Source), default=Source(), metavar="KIND[:KEY=VALUE,...]",
        help="what produces the data: persistent (default), cbr, on-off, renewal, mpeg4, film, as in on-off:rate_bps=1e6,on_s=0.5",
    )  # fmt: skip
    parser.add_argument("--local", type=arguments.address, required=True, help="own IP address")
    parser.add_argument(
        "--peer", type=arguments.address, required=True, help="the other end's IP address; of a layered sender: of one receiver"
    )
    parser.add_argument("--port", type=arguments.port, default=5004, help="even UDP port of RTP data, same at both ends (default 5004)")
    parser.add_argument("--start-at", type=float, metavar="T", help="Unix time to start at (default: at once)")
    end = parser.add_mutually_exclusive_group()
    end.add_argument("--stop-at", type=float, metavar="T", help="Unix time to stop at (default: on SIGTERM)")
    end.add_argument("--duration", type=arguments.duration, metavar="S", help="seconds from the start")
    parser.add_argument(
        "--packet-bytes", type=arguments.packet_bytes, default=1000, help="size of a data packet, IP header included (default 1000)"
    )
    parser.add_argument("--max-rate", type=arguments.rate, default=10e6, help="rate of the own link: 10mbit, 500kbit (default 10mbit)")
    parser.add_argument("--ssrc", type=arguments.ssrc, help="default: drawn from the seed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--run-seed", type=int, help="seed of the run, from which the end draws as in virtual time (default: --seed)")
    parser.add_argument("--flow", metavar="NAME", help="the flow's name, for the same draws (default: the algorithm's)")
    parser.add_argument("--pacing-jitter", type=arguments.fraction, default=0.0, help="move each packet by up to half this part of a gap")
    parser.add_argument(
        "--loss-resolution",
        choices=("rfc3550", "exact"),
        default="rfc3550",
        help="the report's 8-bit fraction lost, or the difference of cumulative counts",
    )
    parser.add_argument(
        "--circuit-breaker", type=_spelled(CircuitBreaker), default=CircuitBreaker(), metavar="ACTION[:KEY=VALUE,...]",
        help="off (default), cease or reduce, as in cease:usable_loss=0.1, the same at both ends (RFC 8083)",
    )  # fmt: skip
    parser.add_argument(
        "--report-interval", type=arguments.duration, metavar="S",
        help="packets are acknowledged in reports, so often (RFC 8888); both ends the same",
    )  # fmt: skip
    parser.add_argument(
        "--program", metavar="FILE.json",
        help="the switches' compiled program (BMv2 JSON), which has the layout of the header that the algorithm's packets carry",
    )  # fmt: skip
    parser.add_argument("--param", action="append", default=[], metavar="NAME=VALUE", help="a parameter of the algorithm; repeatable")
    parser.add_argument(
        "--mark", type=float, action="append", default=[], metavar="T", help="record the sums at this Unix time, too; repeatable"
    )
    parser.add_argument("--log", default="-", metavar="FILE", help="JSON lines; - is standard output")
    return parser


def algorithm_parameters(algorithm: str, max_rate_bps: float, packet_bytes: int, assignments: list[str]) -> object:
    """The parameters dataclass of `algorithm`. Raises `ValueError` naming the assignment at fault."""
    kind = ALGORITHMS[algorithm].parameters
    known = get_type_hints(kind)
    values: dict[str, object] = {
        name: value for name, value in (("max_rate_bps", max_rate_bps), ("packet_bytes", packet_bytes)) if name in known
    }
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals or name not in known:
            raise ValueError(f"--param {assignment}: {algorithm} knows {', '.join(f'{n}=' for n in known)}")
        try:
            values[name] = arguments.typed(text, known[name])
        except ValueError as error:
            raise ValueError(f"--param {assignment}: {error}") from None
    return kind(**values)


def main(argv: list[str] | None = None) -> int:
    own_algorithms.load_listed()
    parser = build_parser()
    args = parser.parse_args(argv)
    if args.algorithm == NO_ALGORITHM and not args.source.limits:
        parser.error("--algorithm none sends what a source produces: give --source cbr, on-off, renewal or mpeg4")
    if args.circuit_breaker.native() and (args.algorithm == NO_ALGORITHM or ALGORITHMS[args.algorithm].layered):
        parser.error(f"--circuit-breaker: for a flow over RTP with one receiver, not for {args.algorithm}")
    try:
        parameters: Any = (
            None if args.algorithm == NO_ALGORITHM else algorithm_parameters(args.algorithm, args.max_rate, args.packet_bytes, args.param)
        )
        carried = _carried(args)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    if args.duration is not None:
        args.stop_at = max(time.time(), args.start_at or 0.0) + args.duration
    if args.stop_at is not None and args.start_at is not None and args.stop_at <= args.start_at:
        parser.error(f"--stop-at {args.stop_at} is not after --start-at {args.start_at}")
    if args.ssrc is None:
        args.ssrc = random.Random(f"{args.seed}/{args.role}").getrandbits(32)
    try:
        file = opened(args.log)
    except OSError as error:
        return _refuse(f"cannot write the log {args.log}: {error.strerror or error}")
    with stop_signals() as stop, contextlib.closing(file) if args.log != "-" else contextlib.nullcontext():
        clock = Clock()
        start_ns = time.monotonic_ns() if args.start_at is None else clock.mono_ns(args.start_at)
        try:
            beside = _beside(args, start_ns)
            end = open_end(args, parameters, carried, clock, start_ns, stop.fileno(), beside)
        except (OSError, ValueError) as error:
            return _refuse(str(error))
        described = {
            "role": args.role,
            "options": {**vars(args), "source": asdict(args.source), "circuit_breaker": asdict(args.circuit_breaker)},
            "parameters": parameters and asdict(parameters),
        }
        writer = FlowWriter(
            file,
            args.packet_bytes,
            args.role == "sender",
            epoch_ns=clock.offset_ns,
            start=described,
            start_ns=start_ns,
            extension_bytes=0 if carried is None else len(carried.initial),
            ip=version_of(args.local),
        )
        try:
            run(end, writer, file, stop)
            if beside is not None:
                beside.close()
        except (OSError, TypeError, film.FilmError) as error:
            return _refuse(str(error))
    return 0


def _carried(args: argparse.Namespace) -> Any:
    """The header of their own that data packets have, or None. Raises `OSError`, `ValueError`."""
    header = header_of(args.algorithm)
    if header is None:
        return None
    if args.program is None:
        raise ValueError(f"--algorithm {args.algorithm}: packets carry the P4 header {header.type}: give its program, --program FILE.json")
    return carried_of(args.algorithm, json.loads(Path(args.program).read_text(encoding="utf-8")), args.packet_bytes, version_of(args.local))


def _beside(args: argparse.Namespace, start_ns: int) -> film.Beside | None:
    """What encodes or shows the film that the flow carries. Raises `OSError`, `ValueError`."""
    if args.source.kind != "film":
        return None
    if args.log == "-" and args.role == "receiver":
        raise ValueError("--source film: give --log FILE, beside which the film's packets are kept")
    return (
        film.encoder(args.source, args.packet_bytes, start_ns, version_of(args.local)) if args.role == "sender" else film.decoder(args.log)
    )


def _refuse(what: str) -> int:
    print(f"fairlane.hosts.agent: {what}", file=sys.stderr)
    return 2


def run(end: native.HostEnd, writer: FlowWriter, file: TextIO, stop: Stop) -> None:
    """From start time to stop time or signal. Raises what the end's `run_until` raises."""
    gc.collect()
    gc.freeze()
    gc.disable()  # nothing here makes reference cycles; a collection would delay packets
    running, flush_ns = True, time.monotonic_ns()
    while running:
        running = end.run_until(flush_ns)
        flush_ns = time.monotonic_ns() + FLUSH_PERIOD_NS
        if stop.asked:
            # Without waiting for BYE's turn: a participant may leave without one [RFC 3550 sec 6.3.7].
            end.close()
            running = False
        for time_ns, kind, fields in end.take_log():
            if kind == "end":
                fields["send_errors"] = end.refused_packets
            writer.write(time_ns, kind, fields)
        file.flush()


def open_end(
    args: argparse.Namespace, parameters: Any, carried: Any, clock: Clock, start_ns: int, wake_fd: int, beside: film.Beside | None = None
) -> native.HostEnd:
    """carried: of both halves. Raises `OSError`, `ValueError`."""
    make = native.HostEnd
    kind = ALGORITHMS.get(args.algorithm)
    base_group = str(IPv4Address(parameters.group_addresses[0])) if kind is not None and kind.layered else None
    place = Place(
        args.local, args.peer, args.port, start_ns=start_ns, stop_ns=_NEVER_NS if args.stop_at is None else clock.mono_ns(args.stop_at),
        epoch_ns=clock.offset_ns, name=args.flow or args.algorithm,
        seed=(args.seed if args.run_seed is None else args.run_seed) % (1 << 64), base_group=base_group, wake_fd=wake_fd,
        film_fd=None if beside is None else beside.socket.fileno(), marks_ns=[clock.mono_ns(at) for at in args.mark],
    )  # fmt: skip
    if kind is None:
        return make.source(place, args.source.application(), packet_bytes=args.packet_bytes) if args.role == "sender" else make.sink(place)
    rng = random.Random(f"{args.seed}/{args.role}/{args.ssrc}")
    identity = {"ssrc": args.ssrc, "cname": f"{args.algorithm}-{args.ssrc:08x}@{args.local}"}
    sender = kind.sender(parameters)
    sender.carried = carried
    report_interval_ns = None if args.report_interval is None else round(args.report_interval * NS)
    if args.role == "sender":
        session = Session(
            packet_bytes=args.packet_bytes, session_bandwidth_bps=args.max_rate, pacing_jitter=args.pacing_jitter,
            exact_loss=args.loss_resolution == "exact",
        )  # fmt: skip
        options = RtpOptions(
            report_interval_ns=report_interval_ns, application=args.source.application(outside=True),
            buffer_packets=args.source.buffer_packets, circuit_breaker=args.circuit_breaker.native(),
        )  # fmt: skip
        return make.sender(place, Half(sender, rng, **identity), session, options)
    receiver = kind.receiver(parameters)
    receiver.carried = carried
    # The receiver asks the sending half whether it wants acknowledgements.
    reception = Reception(
        session_bandwidth_bps=args.max_rate, acks=sender.interests.acks.value != "none", report_interval_ns=report_interval_ns,
        media=args.source.limits, film=args.source.kind == "film", rtcp=args.circuit_breaker.native() is not None,
        delay_threshold_ns=args.source.delay_threshold_ns,
    )  # fmt: skip
    return make.receiver(place, Half(receiver, rng, **identity), reception)


class Stop:
    """Whether SIGTERM or SIGINT came, and a file that can be read then."""

    def __init__(self, wake: socket.socket) -> None:
        self.asked = False
        self.fileno = wake.fileno

    def ask(self, number: int, frame: object) -> None:
        self.asked = True


@contextlib.contextmanager
def stop_signals() -> Iterator[Stop]:
    """SIGTERM and SIGINT ask for the end, instead of ending the process."""
    read, write = socket.socketpair()
    write.setblocking(False)
    stop = Stop(read)
    with read, write:
        signal.set_wakeup_fd(write.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop.ask)
        yield stop
        signal.set_wakeup_fd(-1)


if __name__ == "__main__":
    sys.exit(main())

"""`python -m hosts.agent`: one end of one rate-adaptive flow.

Ends at `--stop-at`, after `--duration`, or on SIGTERM or SIGINT, with an RTCP BYE and a complete log; exit code 0. Exit code 2:
bad arguments, or a socket or log file that cannot be opened; the message says which.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from dataclasses import fields
from ipaddress import AddressValueError, IPv4Address

from hosts.algorithms import ALGORITHMS
from hosts.runner_udp import MAX_PACKET_BYTES, MIN_PACKET_BYTES, RUNNERS, Options
from hosts.sockets import SocketError

_UNITS = {"": 1.0, "bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}


def parse_rate(text: str) -> float:
    """Bit/s of `10mbit`, `500kbit`, `1gbit`, `250000`. Raises `ValueError`."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([a-z]*)", text.strip().lower())
    if match is None or match[2] not in _UNITS or float(match[1]) == 0:
        raise ValueError(f"{text!r} is no rate: write a positive number of bit/s, or one with bit, kbit, mbit or gbit (10mbit)")
    return float(match[1]) * _UNITS[match[2]]


def _rate(text: str) -> float:
    try:
        return parse_rate(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _address(text: str) -> str:
    try:
        return str(IPv4Address(text))
    except AddressValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no IPv4 address: {error}") from None


def _port(text: str) -> int:
    if not text.isdecimal() or not 2 <= int(text) <= 65534 or int(text) % 2:
        raise argparse.ArgumentTypeError(f"{text!r}: RTP data uses an even port from 2 to 65534, RTCP the next one")
    return int(text)


def _ssrc(text: str) -> int:
    try:
        value = int(text, 0)
    except ValueError:
        value = -1
    if not 0 <= value < 1 << 32:
        raise argparse.ArgumentTypeError(f"{text!r}: an SSRC is a number from 0 to 4294967295 (0x... is accepted)")
    return value


def _packet_bytes(text: str) -> int:
    if not text.isdecimal() or not MIN_PACKET_BYTES <= int(text) <= MAX_PACKET_BYTES:
        raise argparse.ArgumentTypeError(f"{text!r}: from {MIN_PACKET_BYTES} (headers and time stamp) to {MAX_PACKET_BYTES}")
    return int(text)


def _fraction(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r}: a fraction from 0 to 1")
    return value


def _duration(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r}: a positive number of seconds")
    return value


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hosts.agent", description="One end of one rate-adaptive flow.")
    parser.add_argument("--role", choices=sorted(RUNNERS), required=True)
    parser.add_argument("--algorithm", choices=sorted(ALGORITHMS), default="als")
    parser.add_argument("--local", type=_address, required=True, help="own IPv4 address")
    parser.add_argument("--peer", type=_address, required=True, help="the other end's IPv4 address")
    parser.add_argument("--port", type=_port, default=5004, help="even UDP port of RTP data, same at both ends (default 5004)")
    parser.add_argument("--start-at", type=float, metavar="T", help="Unix time to start at (default: at once)")
    end = parser.add_mutually_exclusive_group()
    end.add_argument("--stop-at", type=float, metavar="T", help="Unix time to stop at (default: on SIGTERM)")
    end.add_argument("--duration", type=_duration, metavar="S", help="seconds from the start")
    parser.add_argument(
        "--packet-bytes", type=_packet_bytes, default=1000, help="size of a data packet, IPv4 header included (default 1000)"
    )
    parser.add_argument("--max-rate", type=_rate, default=10e6, help="rate of the own link: 10mbit, 500kbit (default 10mbit)")
    parser.add_argument("--ssrc", type=_ssrc, help="default: drawn from the seed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pacing-jitter", type=_fraction, default=0.0, help="move each packet by up to half this part of a gap")
    parser.add_argument(
        "--loss-resolution",
        choices=("rfc3550", "exact"),
        default="rfc3550",
        help="the report's 8-bit fraction lost, or the difference of cumulative counts",
    )
    parser.add_argument(
        "--param", action="append", default=[], metavar="NAME=VALUE", help="a parameter of the algorithm; repeatable"
    )
    parser.add_argument("--log", default="-", metavar="FILE", help="JSON lines; - is standard output")
    return parser


def algorithm_parameters(algorithm: str, max_rate_bps: float, assignments: list[str]) -> object:
    """The parameters dataclass of `algorithm`. Raises `ValueError` naming the assignment at fault."""
    kind = ALGORITHMS[algorithm].parameters
    known = {f.name: f.type for f in fields(kind)}
    values: dict[str, float | int] = {"max_rate_bps": max_rate_bps} if "max_rate_bps" in known else {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals or name not in known:
            raise ValueError(f"--param {assignment}: {algorithm} knows {', '.join(f'{n}=' for n in known)}")
        try:
            values[name] = int(text) if known[name] == "int" else float(text)
        except ValueError:
            raise ValueError(f"--param {assignment}: {text!r} is no number") from None
    return kind(**values)


def main(argv: list[str] | None = None) -> int:
    parser = build_parser()
    args = parser.parse_args(argv)
    try:
        parameters = algorithm_parameters(args.algorithm, args.max_rate, args.param)
    except ValueError as error:
        parser.error(str(error))
    stop_at = args.stop_at
    if args.duration is not None:
        stop_at = max(time.time(), args.start_at or 0.0) + args.duration
    if stop_at is not None and args.start_at is not None and stop_at <= args.start_at:
        parser.error(f"--stop-at {stop_at} is not after --start-at {args.start_at}")
    ssrc = random.Random(f"{args.seed}/{args.role}").getrandbits(32) if args.ssrc is None else args.ssrc
    options = Options(
        algorithm=args.algorithm,
        local=args.local,
        peer=args.peer,
        port=args.port,
        packet_bytes=args.packet_bytes,
        max_rate_bps=args.max_rate,
        ssrc=ssrc,
        seed=args.seed,
        start_unix_s=args.start_at,
        stop_unix_s=stop_at,
        pacing_jitter=args.pacing_jitter,
        exact_loss=args.loss_resolution == "exact",
        log=args.log,
    )
    try:
        runner = RUNNERS[args.role](options, parameters)
    except (SocketError, TypeError) as error:
        print(f"hosts.agent: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"hosts.agent: cannot write the log {args.log}: {error.strerror or error}", file=sys.stderr)
        return 2
    runner.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())

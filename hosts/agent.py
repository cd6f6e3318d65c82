"""`python -m hosts.agent`: one end of one rate-adaptive flow.

Ends at `--stop-at`, after `--duration`, or on SIGTERM or SIGINT, with a complete log; exit code 0. RTCP BYE goes out where RFC 3550
section 6.3.7 lets it: after a signal only if it need not wait. Exit code 2: bad arguments, a socket or log file that cannot be opened, an algorithm that asks for what its half of a flow cannot do; the message
says which.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from typing import get_type_hints

from hosts import arguments, own_algorithms
from hosts.algorithms import ALGORITHMS
from hosts.runner_udp import Runner
from hosts.session.common import Options
from hosts.session.make import ROLES
from hosts.sockets import SocketError


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hosts.agent", description="One end of one rate-adaptive flow.")
    parser.add_argument("--role", choices=ROLES, required=True)
    parser.add_argument("--algorithm", choices=sorted(ALGORITHMS), default="als")
    parser.add_argument("--local", type=arguments.address, required=True, help="own IPv4 address")
    parser.add_argument("--peer", type=arguments.address, required=True, help="the other end's IPv4 address; of a layered sender: of one receiver")
    parser.add_argument("--port", type=arguments.port, default=5004, help="even UDP port of RTP data, same at both ends (default 5004)")
    parser.add_argument("--start-at", type=float, metavar="T", help="Unix time to start at (default: at once)")
    end = parser.add_mutually_exclusive_group()
    end.add_argument("--stop-at", type=float, metavar="T", help="Unix time to stop at (default: on SIGTERM)")
    end.add_argument("--duration", type=arguments.duration, metavar="S", help="seconds from the start")
    parser.add_argument(
        "--packet-bytes", type=arguments.packet_bytes, default=1000, help="size of a data packet, IPv4 header included (default 1000)"
    )
    parser.add_argument("--max-rate", type=arguments.rate, default=10e6, help="rate of the own link: 10mbit, 500kbit (default 10mbit)")
    parser.add_argument("--ssrc", type=arguments.ssrc, help="default: drawn from the seed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pacing-jitter", type=arguments.fraction, default=0.0, help="move each packet by up to half this part of a gap")
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
    try:
        parameters = algorithm_parameters(args.algorithm, args.max_rate, args.packet_bytes, args.param)
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
        runner = Runner(args.role, options, parameters)
    except OSError as error:
        print(f"hosts.agent: cannot write the log {args.log}: {error.strerror or error}", file=sys.stderr)
        return 2
    except SocketError as error:
        return refuse(error)
    try:
        runner.run()
    except (SocketError, TypeError) as error:
        return refuse(error)
    return 0


def refuse(error: Exception) -> int:
    print(f"hosts.agent: {error}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())

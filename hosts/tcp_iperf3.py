"""Competing TCP: the kernel's Reno, driven by iperf3 (3.12, Debian 12), its results in the form of the other run logs.

`python -m fairlane.hosts.tcp_iperf3 --role receiver ...` at one end, `--role sender ...` at the other, with the arguments of
`fairlane.hosts.agent`. iperf3 3.12 prints its JSON only at the end, so the records appear then; they are also written if SIGTERM or
SIGINT ends the test early. Exit code 1: iperf3 failed; its message is on standard error.

Two defaults of iperf3 are unsuitable:

* It reads and counts in blocks of 128 KiB, more than a second of a 1 Mb/s flow. The block here is one segment's payload.
* Linux "reno" still uses SACK, RACK and tail loss probes. `PAPER_RENO_SYSCTLS` turns them off, so that a namespace's TCP is
  the Reno of the papers, "with fast retransmission and fast recovery algorithms" [ALS sec 4.1].
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fairlane.hosts import arguments
from fairlane.hosts.records import Clock, RecordWriter, headers_bytes, version_of

TIMESTAMP_OPTION_BYTES = 12
"""[RFC 7323 sec A]: ten bytes and two of padding, in every segment, within the MSS."""
CONNECT_RETRY_S = 10.0
"""How long a sender goes on knocking when no receiver listens yet."""

PAPER_RENO_SYSCTLS = {
    "net.ipv4.tcp_sack": "0",
    "net.ipv4.tcp_dsack": "0",
    "net.ipv4.tcp_recovery": "0",
    "net.ipv4.tcp_early_retrans": "0",
    "net.ipv4.tcp_no_metrics_save": "1",
}
"""Per network namespace: no SACK, no RACK, no tail loss probe, nothing remembered from an earlier connection."""

PAPER_SACK_SYSCTLS = {**PAPER_RENO_SYSCTLS, "net.ipv4.tcp_sack": "1"}
"""Reno with SACK. Linux 6.17 and later find losses of SACK connections with RACK whatever tcp_recovery says."""

LEAST_MSS = 88
"""The least that a socket takes for TCP_MAXSEG (TCP_MIN_MSS); a route's `advmss` goes below."""


@dataclass(frozen=True, slots=True)
class TcpFlow:
    """One bulk TCP flow, persistent: it always has data to send."""

    local: str
    """The sender's IP address."""
    peer: str
    """The receiver's."""
    port: int
    packet_bytes: int = 1000
    """Full segments as IP datagrams, headers included."""
    congestion: str = "reno"
    interval_s: float = 0.5
    """Length of a record's interval, 0.1 s or more."""
    timestamps: bool = True
    """Whether the kernel sends TCP timestamps (net.ipv4.tcp_timestamps)."""

    @property
    def mss(self) -> int:
        """What `-M` sets: options included."""
        return self.packet_bytes - headers_bytes(version_of(self.local))

    @property
    def segment_payload_bytes(self) -> int:
        return self.mss - (TIMESTAMP_OPTION_BYTES if self.timestamps else 0)

    def receiver_command(self) -> list[str]:
        """One test, then exit."""
        return ["iperf3", "-s", "-1", "-J", "-i", f"{self.interval_s:g}", "-B", self.peer, "-p", str(self.port)]

    def sender_command(self, duration_s: float) -> list[str]:
        """Data leave from the port that they go to, as in virtual time: switches choose among ways of equal cost by it. iperf3 takes whole seconds: `duration_s`
        is rounded up. An MSS below `LEAST_MSS` is for the receiver's route to advertise."""
        mss = ["-M", str(self.mss)] if self.mss >= LEAST_MSS else []
        return [
            "iperf3", "-c", self.peer, "-B", self.local, "-p", str(self.port), "--cport", str(self.port), "-J", "-i", f"{self.interval_s:g}",
            "-t", str(max(1, -int(-duration_s // 1))), "-C", self.congestion, *mss, "-l", str(self.segment_payload_bytes),
        ]  # fmt: skip


class Iperf3Error(Exception):
    """iperf3 printed no result; the message is its own."""


def parse_result(text: str, flow: TcpFlow, begun_s: float) -> list[dict[str, Any]]:
    """Records of an iperf3 JSON result, of either end, `mono_s` counted from `begun_s`. Raises `Iperf3Error`.

    Receiver: kind `data`, with `bytes` (IP datagrams, computed from payload and segment size), `payload_bytes`, and the
    totals `received_bytes`, `received_payload_bytes`. Sender: kind `sent`, with the same in `sent_...`, `retransmits` in the
    interval, `cwnd_bytes`, `rtt_s`. A result that a signal cut short is parsed as far as it goes.
    """
    try:
        result = json.loads(text)
        intervals = result["intervals"]
        error = result.get("error", "")
        if not intervals:
            raise Iperf3Error(error or "no interval measured")
        records: list[dict[str, object]] = []
        total = 0
        for interval in intervals:
            stream, whole = interval["streams"][0], interval["sum"]
            payload = int(whole["bytes"])
            total += payload
            record: dict[str, object] = {
                "kind": "sent" if stream["sender"] else "data",
                "mono_s": begun_s + float(whole["end"]),
                "seconds": float(whole["seconds"]),
                "bytes": _datagram_bytes(payload, flow),
                "payload_bytes": payload,
            }
            if stream["sender"]:
                record |= {
                    "sent_bytes": _datagram_bytes(total, flow),
                    "sent_payload_bytes": total,
                    "retransmits": int(whole.get("retransmits", 0)),
                    "cwnd_bytes": int(stream.get("snd_cwnd", 0)),
                    "rtt_s": stream.get("rtt", 0) / 1e6,
                }
            else:
                record |= {"received_bytes": _datagram_bytes(total, flow), "received_payload_bytes": total}
            records.append(record)
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise Iperf3Error(f"iperf3 printed no result that can be read ({error!r}): {text.strip()[:200] or 'nothing'}") from error
    return records


def _datagram_bytes(payload_bytes: int, flow: TcpFlow) -> int:
    """Payload with headers, as if all segments were full."""
    return round(payload_bytes * flow.packet_bytes / flow.segment_payload_bytes)


def kernel_sends_timestamps() -> bool:
    """In this process's network namespace."""
    return Path("/proc/sys/net/ipv4/tcp_timestamps").read_text().strip() != "0"


def established_connections(port: int) -> int:
    """TCP connections of this namespace that are established from or to `port`."""
    count = 0
    for table in (Path("/proc/self/net/tcp"), Path("/proc/self/net/tcp6")):
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            _, local, remote, state, *_ = line.split()
            count += state == "01" and port in (int(local[-4:], 16), int(remote[-4:], 16))
    return count


class _Stop(Exception):
    """A signal asked for the end."""


def _on_signal(number: int, frame: object) -> None:
    raise _Stop


def run(role: str, flow: TcpFlow, start_unix_s: float | None, duration_s: float, log: RecordWriter, clock: Clock) -> int:
    """Run one end and write its records; the exit code."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _on_signal)
    begun_s = clock.now_s()
    text = complaint = ""
    try:
        if role == "sender" and start_unix_s is not None:
            time.sleep(max(0.0, clock.mono_ns(start_unix_s) / 1e9 - clock.now_s()))
        begun_s = clock.now_s()
        log.write("start", begun_s, role=role, algorithm=f"tcp-{flow.congestion}", options=asdict(flow))
        give_up_s = begun_s + CONNECT_RETRY_S
        while True:
            command = flow.receiver_command() if role == "receiver" else flow.sender_command(duration_s)
            begun_s, text, complaint = _one_test(command, flow.port, clock)
            if role == "receiver" or "unable to connect" not in text or clock.now_s() > give_up_s:
                break
            time.sleep(0.2)
    except _Stop:
        pass
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)  # the records are written in any case
    code = 0
    try:
        for record in parse_result(text, flow, begun_s) if text else ():
            kind, at_s = record.pop("kind"), record.pop("mono_s")
            log.write(kind, at_s, **record)
    except Iperf3Error as error:
        print(f"fairlane.hosts.tcp_iperf3: {error}\n{complaint}".rstrip(), file=sys.stderr)
        code = 1
    log.write("end", clock.now_s())
    log.close()
    return code


def _one_test(command: list[str], port: int, clock: Clock) -> tuple[float, str, str]:
    """Monotonic time at which the data connection stood, standard output, standard error."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        begun_s = clock.now_s()
        process = subprocess.Popen(command, stdout=out, stderr=err, stdin=subprocess.DEVNULL)
        try:
            # iperf3 says when a test began in whole seconds only. It opens a control connection, then one for data.
            while process.poll() is None:
                begun_s = clock.now_s()
                if established_connections(port) >= 2:
                    break
                time.sleep(0.02)
            process.wait()
        except _Stop:
            process.terminate()  # it still prints what it has
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        out.seek(0)
        err.seek(0)
        return begun_s, out.read(), err.read()


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fairlane.hosts.tcp_iperf3", description="One end of one bulk TCP flow, by iperf3.")
    parser.add_argument("--role", choices=("receiver", "sender"), required=True)
    parser.add_argument("--local", type=arguments.address, required=True, help="own IP address")
    parser.add_argument("--peer", type=arguments.address, required=True, help="the other end's IP address")
    parser.add_argument("--port", type=int, default=5201)
    parser.add_argument("--start-at", type=float, metavar="T", help="Unix time at which the sender starts (default: at once)")
    end = parser.add_mutually_exclusive_group()
    end.add_argument("--stop-at", type=float, metavar="T", help="Unix time at which the sender stops")
    end.add_argument("--duration", type=arguments.duration, metavar="S", help="seconds the sender sends (default 60)")
    parser.add_argument("--packet-bytes", type=arguments.packet_bytes, default=1000, help="a full segment as an IP datagram (default 1000)")
    parser.add_argument("--congestion", default="reno", help="the kernel's congestion control (default reno)")
    parser.add_argument("--interval", type=float, default=0.5, metavar="S", help="length of a record's interval (default 0.5)")
    parser.add_argument("--log", default="-", metavar="FILE", help="JSON lines; - is standard output")
    args = parser.parse_args(argv)
    if not 0.1 <= args.interval <= 60:
        parser.error(f"--interval {args.interval}: iperf3 takes 0.1 to 60 s")
    if not 1 <= args.port <= 65535:
        parser.error(f"--port {args.port}: from 1 to 65535")
    sending = args.role == "sender"
    flow = TcpFlow(
        local=args.local if sending else args.peer,
        peer=args.peer if sending else args.local,
        port=args.port,
        packet_bytes=args.packet_bytes,
        congestion=args.congestion,
        interval_s=args.interval,
        timestamps=kernel_sends_timestamps(),
    )
    duration_s = args.duration or 60.0
    if args.stop_at is not None:
        duration_s = args.stop_at - max(time.time(), args.start_at or 0.0)
        if duration_s <= 0:
            parser.error(f"--stop-at {args.stop_at} is not after the start")
    clock = Clock()
    try:
        log = RecordWriter(args.log, clock)
    except OSError as error:
        print(f"fairlane.hosts.tcp_iperf3: cannot write the log {args.log}: {error.strerror or error}", file=sys.stderr)
        return 2
    try:
        return run(args.role, flow, args.start_at, duration_s, log, clock)
    except FileNotFoundError:
        print("fairlane.hosts.tcp_iperf3: iperf3 is not installed (apt-get install iperf3)", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

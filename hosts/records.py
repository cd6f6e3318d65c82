"""Run logs of host processes: one JSON object a line.

Every record has `kind`, `t` (Unix time, CLOCK_REALTIME seconds) and `mono_s` (CLOCK_MONOTONIC seconds, the same clock for all
processes of a machine). `t` is `mono_s` plus an offset read once at the start: it never steps during a run.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, TextIO

NS = 1_000_000_000
IP_HEADER_BYTES = {4: 20, 6: 40}
"""By the version of IP, without options."""
TCP_KINDS = ("tcp_sent", "tcp_data", "complete", "delivered")
_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def headers_bytes(ip: int) -> int:
    """Of IP, UDP, RTP; or of IP and TCP without options. ip: the version."""
    return IP_HEADER_BYTES[ip] + 20


def plain_headers_bytes(ip: int) -> int:
    """Of IP and UDP, of a plain source's packets."""
    return IP_HEADER_BYTES[ip] + 8


def version_of(address: str) -> int:
    """Of an IP address."""
    return 6 if ":" in address else 4


class Clock:
    """Monotonic time, and the Unix time that belongs to it."""

    def __init__(self) -> None:
        self.offset_ns = time.time_ns() - time.monotonic_ns()

    def now_s(self) -> float:
        """Monotonic."""
        return time.monotonic()

    def unix_s(self, mono_s: float) -> float:
        return mono_s + self.offset_ns / NS

    def mono_ns(self, unix_s: float) -> int:
        """Of a Unix time; 0 of one before the clock began."""
        return max(0, round(unix_s * NS) - self.offset_ns)


def opened(path: str) -> TextIO:
    """A file, truncated, whose writes wait in memory; or `-`, standard output. Raises `OSError`."""
    return sys.stdout if path == "-" else open(path, "w", encoding="utf-8", buffering=1 << 16, newline="\n")


class RecordWriter:
    """Writes records; buffers them, so that no packet waits for the disk. `flush` each second and `close` at the end."""

    def __init__(self, path: str, clock: Clock) -> None:
        """`path`: a file, truncated; or `-` for standard output. Raises `OSError`."""
        self._file = opened(path)
        self._owned = path != "-"
        self._clock = clock

    def write(self, kind: str, mono_s: float, **fields: Any) -> None:
        record = {"kind": kind, "t": round(self._clock.unix_s(mono_s), 6), "mono_s": round(mono_s, 6), **fields}
        self._file.write(_encode(record) + "\n")

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.flush()
        if self._owned:
            self._file.close()


class Written(Protocol):
    """Of a file, what records need."""

    def write(self, text: str, /) -> object: ...


class FlowWriter:
    """What `fairlane.native` has recorded of one end of a flow, as `hosts/README.md` describes it."""

    def __init__(
        self,
        file: Written,
        packet_bytes: int,
        is_sender: bool,
        *,
        epoch_ns: int = 0,
        start: Mapping[str, Any] | None = None,
        start_ns: int | None = None,
        kinds: frozenset[str] | None = None,
        extension_bytes: int = 0,
        ip: int = 4,
    ) -> None:
        """epoch_ns: Unix time of the end's instant 0. start: fields of the `start` record. start_ns: when the end was to start.
        kinds: of an algorithm's records to write, None for all. TCP's few are always written. extension_bytes: of RTP's header in each data packet. ip: the version of
        IP."""
        self._file = file
        self._packet_bytes = packet_bytes
        self._is_sender = is_sender
        self._epoch_ns = epoch_ns
        self._start = start or {}
        self._start_ns = start_ns
        self._kinds = kinds
        self._headers_bytes = headers_bytes(ip) + extension_bytes
        self._last_ns = 0
        self._retransmitted = 0
        self._received = (0, 0)

    def write(self, time_ns: int, kind: str, fields: dict[str, Any]) -> None:
        if self._kinds is not None and kind not in self._kinds and kind not in TCP_KINDS:
            return
        mono_s = round(time_ns / NS, 9)
        unix_s = round((time_ns + self._epoch_ns) / NS, 9) if self._epoch_ns else mono_s
        if kind == "data":  # most records: the encoder of json takes as long again
            self._file.write(f'{{"kind":"data","t":{unix_s!r},"mono_s":{mono_s!r},{self._data(fields)}}}\n')
            return
        for record_kind, record in self._records(time_ns, kind, fields):
            self._file.write(_encode({"kind": record_kind, "t": unix_s, "mono_s": mono_s, **record}) + "\n")

    def _records(self, time_ns: int, kind: str, fields: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        seconds = (time_ns - self._last_ns) / NS
        if kind == "start":
            self._last_ns = time_ns
            late_ns = 0 if self._start_ns is None else max(0, time_ns - self._start_ns)
            yield "start", {**self._start, "late_s": late_ns / NS, "headers_bytes": self._headers_bytes}
        elif kind == "tcp_sent":
            if seconds > 0:
                again = fields["retransmitted"] - self._retransmitted
                self._retransmitted = fields["retransmitted"]
                rtt_ns = fields["srtt_ns"]
                yield "sent", {
                    "seconds": seconds, "sent_bytes": (fields["segments"] - fields["retransmitted"]) * self._packet_bytes,
                    "retransmits": again, "loss_events": fields["loss_events"], "timeouts": fields["timeouts"],
                    "cwnd_bytes": fields["cwnd_bytes"], "rtt_s": None if rtt_ns is None else rtt_ns / NS,
                }  # fmt: skip
            self._last_ns = time_ns
        elif kind == "tcp_data":
            packets, payload = fields["segments"], fields["delivered_bytes"]
            if self._last_ns:
                yield "data", {
                    "seconds": seconds, "payload_bytes": payload - self._received[1], "received_packets": packets,
                    "received_payload_bytes": payload, **_since(fields),
                }  # fmt: skip
            self._received = (packets, payload)
            self._last_ns = time_ns
        elif kind == "end":
            yield "end", {f"{'sent' if self._is_sender else 'received'}_packets": fields.pop("packets"), **fields}
        else:
            yield kind, fields

    def _data(self, fields: Mapping[str, Any]) -> str:
        """The fields of a record of received data, as JSON."""
        packets, received = fields["received_packets"], fields["received_bytes"]
        new, new_bytes = packets - self._received[0], received - self._received[1]
        self._received = (packets, received)
        highest = fields["highest_sequence"]
        mean_s = round(fields["delay_sum_ns"] / new / NS, 9) if new else "null"
        most_s = round(fields["delay_max_ns"] / NS, 9) if new else "null"
        text = (
            f'"packets":{new},"bytes":{new_bytes},"received_packets":{packets},"received_bytes":{received},'
            f'"highest_sequence":{"null" if highest is None else highest},"lost_packets":{fields["lost_packets"]},'
            f'"delay_mean_s":{mean_s},"delay_max_s":{most_s}'
        )
        for name in ("delayed_packets", "overdue_packets"):
            if name in fields:
                text += f',"{name}":{fields[name]}'
        return f'{text},"since_s":{fields["since_ns"] / NS}' if "since_ns" in fields else text


def _since(fields: Mapping[str, Any]) -> dict[str, float]:
    """Of a marked instant: how long ago the packet before came."""
    return {"since_s": fields["since_ns"] / NS} if "since_ns" in fields else {}

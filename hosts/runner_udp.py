"""Input and output of one flow end over UDP sockets: clock, loop, log. What is sent and when is the session's to say.

One process a flow end, one thread, one loop. Data goes over port P, RTCP over P + 1. Records go to a JSON-lines file;
`hosts/README.md` lists them.
"""

from __future__ import annotations

import gc
import random
import socket
from dataclasses import asdict
from typing import Any

from hosts.loop import Loop
from hosts.records import Clock, RecordWriter
from hosts.session.common import Options, Session
from hosts.session.make import is_layered, make_session
from hosts.session.stream import HEADERS_BYTES
from hosts.transport import open_transport

MOST_AT_ONCE = {"data": 64, "direct": 256, "control": 64}
"""Datagrams before the loop looks at its other work: a flood of one kind must not stop the others."""
FLUSH_PERIOD_S = 1.0


class Runner:
    """Runs one end of a flow."""

    def __init__(self, role: str, options: Options, parameters: object) -> None:
        """Raises `SocketError`, and `OSError` for the log."""
        self.role = role
        self.options = options
        self.parameters = parameters
        self.clock = Clock()
        self.log = RecordWriter(options.log, self.clock)
        rng = random.Random(f"{options.seed}/{role}/{options.ssrc}")
        self.session: Session = make_session(role, options, parameters, rng, self.clock.offset_s, self.log.write)
        self.transport = open_transport(role, options, is_layered(options))
        self.loop = Loop(self.clock)
        self.send_errors = 0
        self.rtcp_sent_packets = 0
        self._buffer = bytearray(65_536)
        self._listen()

    def run(self) -> None:
        """From start time to stop time or signal; then BYE, last records, sockets closed. After a signal a BYE that must wait is left out."""
        options = self.options
        self.loop.catch_signals()
        gc.collect()
        gc.freeze()
        gc.disable()  # nothing here makes reference cycles; a collection would delay packets
        if options.start_unix_s is not None:
            self.loop.wait_until(self.clock.mono_s(options.start_unix_s))
        now = self.clock.now_s()
        stop_s = float("inf") if options.stop_unix_s is None else self.clock.mono_s(options.stop_unix_s)
        self._write_start(now)
        flush_s = now
        try:
            if not self.loop.stopping:
                self.session.start(now)
            while not self.loop.stopping and (now := self.clock.now_s()) < stop_s:
                self.session.wake(now)
                self._send_outbox()
                self._send_data(now)
                if now >= flush_s:
                    self.log.flush()
                    flush_s = now + FLUSH_PERIOD_S
                self._read(self.loop.wait(min(self.session.next_s(), stop_s), self._sockets))
            self._read(self.transport.groups())
            self.session.finish(self.clock.now_s())
            self._send_outbox()
            # A signal ends the wait for BYE's turn: a participant may leave without one (RFC 3550 section 6.3.7).
            while not self.loop.stopping and (due_s := self.session.next_s()) < float("inf"):
                self._read(self.loop.wait(due_s, self._sockets))
                self.session.wake(self.clock.now_s())
                self._send_outbox()
            self.log.write(
                "end",
                self.clock.now_s(),
                **self.session.totals(),
                send_errors=self.send_errors,
                rtcp_sent_packets=self.rtcp_sent_packets,
            )
        finally:
            self.log.close()
            self.loop.close()
            self.transport.close()

    def _write_start(self, now: float) -> None:
        wanted = self.options.start_unix_s
        self.log.write(
            "start",
            now,
            role=self.role,
            late_s=0.0 if wanted is None else round(max(0.0, now - self.clock.mono_s(wanted)), 6),
            options=asdict(self.options),
            parameters=asdict(self.parameters),
            headers_bytes=HEADERS_BYTES,
        )
        self.log.flush()

    # ------------------------------------------------------------------------------------------------------------------- out

    def _send_data(self, now: float) -> None:
        session = self.session
        for _ in range(MOST_AT_ONCE["data"]):
            stream = session.next_packet(now)
            if stream is None:
                return
            try:
                self.transport.send_data(stream)
            except OSError:
                # The packet never left (full local queue, no route), or an ICMP error of an earlier one is reported now: not
                # sent, and its sequence number is used by the next, so that receivers see network losses alone.
                self.send_errors += 1
                session.refused(now, stream)
            else:
                session.departed(now, stream)
            now = self.clock.now_s()

    def _send_outbox(self) -> None:
        outbox = self.session.outbox
        if outbox.membership is not None:
            self.transport.set_membership(outbox.membership)
            outbox.membership = None
            self._listen()
        for payload in outbox.direct:
            try:
                self.transport.send_direct(payload)
            except OSError:
                self.send_errors += 1
        outbox.direct.clear()
        for payload in outbox.control:
            try:
                self.transport.send_control(payload, outbox.control_group)
                self.rtcp_sent_packets += 1
            except OSError:
                # A report that cannot leave is a lost report (no route, no listener yet, full queue): the next one follows.
                self.send_errors += 1
        outbox.control.clear()
        for payload in outbox.reflected:
            try:
                self.transport.reflect(payload, outbox.control_group)
            except OSError:
                self.send_errors += 1
        outbox.reflected.clear()

    # -------------------------------------------------------------------------------------------------------------------- in

    def _listen(self) -> None:
        self._groups = self.transport.groups()
        self._sockets = (*self._groups, *self.transport.controls())

    def _read(self, readable: Any) -> None:
        for sock in readable:
            group = self._groups.get(sock)
            if group is None:
                self._read_control(sock)
            else:
                self._read_direct(sock, group)

    def _read_direct(self, sock: socket.socket, group: int) -> None:
        buffer, outbox = self._buffer, self.session.outbox
        for _ in range(MOST_AT_ONCE["direct"]):
            try:
                size, address = sock.recvfrom_into(buffer)
            except BlockingIOError:
                return
            except OSError:  # an ICMP error of an earlier sending, reported once; or a socket closed by a change of groups
                if sock.fileno() < 0:
                    return
                continue
            if self.transport.accepts(address):
                self.session.on_direct(self.clock.now_s(), buffer, size, group)
                if outbox.direct or outbox.control or outbox.membership is not None:
                    self._send_outbox()

    def _read_control(self, sock: socket.socket) -> None:
        for _ in range(MOST_AT_ONCE["control"]):
            try:
                payload, address = sock.recvfrom(65_535)
            except BlockingIOError:
                return
            except OSError:
                if sock.fileno() < 0:
                    return
                continue
            if self.transport.accepts(address):
                self.session.on_control(self.clock.now_s(), payload)
                self._send_outbox()

"""BMv2's Thrift port: queue rates and depths, which its command line does not set, and registers, which its P4Runtime server
does not serve (it answers UNIMPLEMENTED). BMv2's own Python bindings are not needed: `fairlane.bmv2.interface` has the services. Packet tests
use more of them over the same `Connection` (`tools/bmv2/runtime.py`)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from thriftpy2.protocol import TBinaryProtocol, TMultiplexedProtocol
from thriftpy2.thrift import TClient, TException
from thriftpy2.transport import TBufferedTransport, TSocket

from fairlane.bmv2 import interface

CONTEXT = 0
"""The one that simple_switch has."""
_SERVICES = ("standard", "simple_pre_lag", "simple_switch")
_REGISTER_CODES = {1: "no such register", 2: "no such index"}


class Bmv2Error(RuntimeError):
    """BMv2 refused a call, or does not answer."""


class NoSuchRegister(Bmv2Error):
    """The program has no such register or index; or the switch has no program yet."""


class Connection:
    """One TCP connection to the services of a switch on this machine. Calls raise what thriftpy2 raises, and give up after `timeout_s`."""

    def __init__(self, port: int, timeout_s: float) -> None:
        milliseconds = int(timeout_s * 1000)
        self._transport = TBufferedTransport(TSocket("127.0.0.1", port, socket_timeout=milliseconds, connect_timeout=milliseconds))
        protocol = TBinaryProtocol(self._transport)
        self._clients = {name: interface.client(name)(TMultiplexedProtocol(protocol, name)) for name in _SERVICES}

    def open(self) -> None:
        self._transport.open()

    def service(self, name: str) -> TClient:
        """name: as BMv2 calls it, such as "standard"."""
        return self._clients[name]

    def close(self) -> None:
        self._transport.close()


class Bmv2Thrift:
    """One connection. Every call raises Bmv2Error when it fails, and gives up after `timeout_s`. Not for several threads at once."""

    def __init__(self, port: int, timeout_s: float = 10.0) -> None:
        self._where = f"127.0.0.1:{port}"
        self._connection = Connection(port, timeout_s)
        self._standard, self._switch = self._connection.service("standard"), self._connection.service("simple_switch")
        self._call(self._connection.open)

    @staticmethod
    def connect(port: int, within_s: float = 10.0) -> Bmv2Thrift:
        """Connect to a switch that may still be starting."""
        deadline = time.monotonic() + within_s
        while True:
            try:
                return Bmv2Thrift(port)
            except Bmv2Error:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(0.05)

    def set_queue(self, port: int, rate_pps: int, depth_packets: int) -> None:
        """Packets per second, of any size, that leave the queue of `port`, and how many may wait in it."""
        for method, value in ((self._switch.set_egress_queue_depth, depth_packets), (self._switch.set_egress_queue_rate, rate_pps)):
            if self._call(method, port, value) != 0:
                raise Bmv2Error(f"BMv2 at {self._where} refuses port {port}: {rate_pps} packets/s, {depth_packets} waiting")

    def registers(self, name: str) -> list[int]:
        """All values of a register array."""
        values: list[int] = self._register(self._standard.bm_register_read_all, name)
        return values

    def register(self, name: str, index: int) -> int:
        value: int = self._register(self._standard.bm_register_read, name, index)
        return value

    def set_register(self, name: str, index: int, value: int) -> None:
        self._register(self._standard.bm_register_write, name, index, value)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Bmv2Thrift:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _register(self, method: Callable[..., Any], name: str, *arguments: int) -> Any:
        try:
            return self._call(method, CONTEXT, name, *arguments)
        except interface.module("standard").InvalidRegisterOperation as refused:
            what = f"BMv2 at {self._where}: register {name}{list(arguments[:1]) or ''}"
            reason = _REGISTER_CODES.get(refused.code)
            raise NoSuchRegister(f"{what}: {reason}") if reason else Bmv2Error(f"{what}: error {refused.code}") from None

    def _call(self, method: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return method(*arguments)
        except interface.module("standard").InvalidRegisterOperation:
            raise
        except (TException, OSError, EOFError) as error:
            raise Bmv2Error(f"BMv2's Thrift port {self._where} does not answer: {error}") from error

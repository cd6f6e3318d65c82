"""The record of BMv2's ports, which the embedded switch writes itself (`--stats`): the same columns, as far as BMv2 provides them.

Bytes and packets come from the kernel's counters of the port's interface. The queue length comes from the P4 program's register
(`Scheme.queue_register`), read over Thrift: samples, while the embedded switch has the exact integral. A program without this register has no
columns of queues: their lengths are unknown, not 0. BMv2 does not count drops by a
full queue, so there are no columns of drops; the program itself counts its schemes' drops, and the controller reads these counters.
"""

from __future__ import annotations

import contextlib
import csv
import json
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from fairlane.fabrics.bmv2_thrift import Bmv2Error, Bmv2Thrift, NoSuchRegister
from fairlane.fabrics.switch_process import SwitchSettings
from fairlane.schemes import registry

COLUMNS = (
    "time_s",
    "unix_s",
    "port",
    "rx_packets",
    "rx_bytes",
    "tx_packets",
    "tx_bytes",
)
QUEUE_COLUMNS = ("queue_packets", "queue_integral_packet_s", "queue_packets_mean")
QUEUE_REGISTER = next(scheme.queue_register for scheme in registry.standing() if scheme.queue_register)
_PROC_NET_DEV = Path("/proc/net/dev")


def reports_queues(program: Path) -> bool:
    """Whether a compiled program (BMv2 JSON) has the register with the queues' lengths."""
    arrays = json.loads(program.read_text(encoding="utf-8"))["register_arrays"]
    return any(array["name"] == QUEUE_REGISTER for array in arrays)


@dataclass(frozen=True)
class Counts:
    """Of an interface, since it was made."""

    rx_packets: int
    rx_bytes: int
    tx_packets: int
    tx_bytes: int


def interface_counts(text: str) -> dict[str, Counts]:
    """What /proc/net/dev says of each interface (proc_net(5))."""
    counts = {}
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        numbers = rest.split()
        if colon and len(numbers) >= 10:
            rx_bytes, rx_packets, tx_bytes, tx_packets = (int(numbers[i]) for i in (0, 1, 8, 9))
            counts[name.strip()] = Counts(rx_packets, rx_bytes, tx_packets, tx_bytes)
    return counts


@dataclass
class Integral:
    """Of a sampled quantity over time, straight lines between the samples."""

    total: float = 0.0
    last: tuple[float, float] | None = None

    def add(self, time_s: float, value: float) -> float:
        """Take a sample; the mean since the one before."""
        mean = value
        if self.last is not None and time_s > self.last[0]:
            mean = (self.last[1] + value) / 2
            self.total += mean * (time_s - self.last[0])
        self.last = (time_s, value)
        return mean


@dataclass
class PortTable:
    """Rows of one switch's ports, from samples of counters and queues."""

    ports: Mapping[int, str]
    queues: dict[int, Integral] = field(default_factory=dict)

    def rows(self, time_s: float, unix_s: float, counts: Mapping[str, Counts], waiting: Sequence[int] | None) -> list[tuple[object, ...]]:
        """One row for each port whose interface is there. waiting: packets by port number; ports beyond have none. None: nobody knows them."""
        rows: list[tuple[object, ...]] = []
        for port, interface in self.ports.items():
            seen = counts.get(interface)
            if seen is None:
                continue
            row = (f"{time_s:.6f}", f"{unix_s:.6f}", port, seen.rx_packets, seen.rx_bytes, seen.tx_packets, seen.tx_bytes)
            rows.append(row if waiting is None else (*row, *self._queue(time_s, port, waiting)))
        return rows

    def _queue(self, time_s: float, port: int, waiting: Sequence[int]) -> tuple[object, ...]:
        queue = waiting[port] if port < len(waiting) else 0
        integral = self.queues.setdefault(port, Integral())
        mean = integral.add(time_s, queue)
        return queue, f"{integral.total:.6f}", f"{mean:.3f}"


class Sampler:
    """Writes each switch's file every `interval_s` seconds on a thread of its own, from `start` to `stop`. A switch that dies is
    found again when it is back; meanwhile its queues are empty. queues: whether the program reports them (`reports_queues`)."""

    def __init__(self, switches: Sequence[SwitchSettings], interval_s: float = 0.1, queues: bool = True) -> None:
        self._interval_s = interval_s
        self._switches = [_Watched(s, queues) for s in switches]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bmv2-stats", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """After a last row. Nothing happens when it never started."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(10.0)

    def _run(self) -> None:
        due = time.monotonic()
        while True:
            last = self._stop.is_set()
            try:
                for switch in self._switches:
                    switch.sample()
            except OSError as error:
                # The records end here, which the run's fidelity says.
                logging.getLogger(__name__).warning("no more counters of BMv2's ports: %s", error)
                break
            if last:
                break
            # A tick that was missed altogether is left out.
            due += self._interval_s * (1 + max(0.0, time.monotonic() - due) // self._interval_s)
            self._stop.wait(max(0.0, due - time.monotonic()))
        for switch in self._switches:
            switch.close()


class _Watched:
    def __init__(self, settings: SwitchSettings, queues: bool) -> None:
        self._settings = settings
        self._queues = queues
        self._table = PortTable({p.number: p.interface for p in settings.ports})
        self._thrift: Bmv2Thrift | None = None
        self._file: TextIO | None = None

    def sample(self) -> None:
        waiting = self._waiting() if self._queues else None
        counts = interface_counts(_PROC_NET_DEV.read_text())
        if self._file is None:
            self._file = self._settings.stats.open("w", newline="")
            csv.writer(self._file).writerow((*COLUMNS, *QUEUE_COLUMNS) if self._queues else COLUMNS)
        csv.writer(self._file).writerows(self._table.rows(time.monotonic(), time.time(), counts, waiting))
        self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            # What is still to be written finds no room either.
            with contextlib.suppress(OSError):
                self._file.close()
        self._disconnect()

    def _waiting(self) -> Sequence[int]:
        try:
            if self._thrift is None:
                self._thrift = Bmv2Thrift(self._settings.thrift_port)
            return self._thrift.registers(QUEUE_REGISTER)
        except NoSuchRegister:
            # It has no program yet, so nothing waits.
            return ()
        except Bmv2Error:
            self._disconnect()
            return ()

    def _disconnect(self) -> None:
        if self._thrift is not None:
            with contextlib.suppress(OSError):
                self._thrift.close()
            self._thrift = None

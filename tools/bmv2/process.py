"""A simple_switch process."""

from __future__ import annotations

import contextlib
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from tools.bmv2.packets import PacketPort
from tools.bmv2.runtime import Refused, Runtime

PROGRAM = "simple_switch"
# No packet may be lost in a queue.
QUEUE_DEPTH = 1_000_000
PRIORITIES = 8


def why_absent() -> str | None:
    """Why there is no BMv2 to drive; None when there is."""
    if shutil.which(PROGRAM) is None:
        return f"{PROGRAM} is not in PATH"
    said = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, timeout=20).stdout
    missing = [option for option in ("--packet-in", "--thrift-port") if option not in said]
    return f"{PROGRAM} was built without {', '.join(missing)}" if missing else None


class SwitchDied(Exception):
    """simple_switch ended by itself; the message has the signal and the end of its log."""


class NotStarted(SwitchDied):
    """simple_switch did not begin to answer: as a rule, it refuses the program."""


class Bmv2:
    """One running switch: `runtime` to control it, `packets` in and out. Close it, or use it with `with`."""

    def __init__(self, program_json: Path, log_level: str | None = None, start_timeout_s: float = 60.0, executable: str = PROGRAM) -> None:
        self._executable = executable
        self.folder = Path(tempfile.mkdtemp(prefix="bmv2-"))
        # BMv2 adds the ending.
        self.log = self.folder / "switch.txt"
        self._out = (self.folder / "out").open("wb")
        try:
            try:
                self._start(program_json, log_level, start_timeout_s)
            except NotStarted:
                # Somebody else may have taken its port just before it could.
                self._start(program_json, log_level, start_timeout_s)
        except BaseException:
            self.close()
            raise

    def _start(self, program_json: Path, log_level: str | None, timeout_s: float) -> None:
        port, device = _free_port(), random.randrange(1 << 31)
        logging: list[str] = []
        if log_level:
            logging = ["--log-file", str(self.log.with_suffix("")), "--log-flush", "-L", log_level, "--log-file-max-size", str(1 << 30)]
        self._process = subprocess.Popen(
            [
                self._executable,
                "--packet-in",
                f"ipc://{self.folder}/packets",
                "--thrift-port",
                str(port),
                "--device-id",
                str(device),
                "--notifications-addr",
                f"ipc://{self.folder}/notifications",
                *logging,
                str(program_json),
                "--",
                "--priority-queues",
                str(PRIORITIES),
            ],
            stdout=self._out,
            stderr=subprocess.STDOUT,
            cwd=self.folder,
        )
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                self.runtime = Runtime(port)
                if self.runtime.device_id() != device:
                    self.kill()
                    raise NotStarted(f"another switch has taken its Thrift port {port}")
                # The server answers before all of its services are registered.
                self.runtime.set_all_egress_queue_depths(QUEUE_DEPTH)
                self.packets = PacketPort(self.folder / "packets")
                return
            except (OSError, Refused) as error:
                try:
                    self.check()
                except SwitchDied as died:
                    raise NotStarted(str(died)) from None
                if time.monotonic() > deadline:
                    self.kill()
                    raise NotStarted(f"no answer at its Thrift port within {timeout_s:.0f} s: {error}\n{self.said()}") from None
                time.sleep(0.01)

    def check(self) -> None:
        """Raises SwitchDied when the process has ended."""
        status = self._process.poll()
        if status is not None:
            name = signal.Signals(-status).name if status < 0 else f"exit status {status}"
            raise SwitchDied(f"{name}\n{self.said()}".strip())

    def settle_death(self) -> None:
        """Waits a moment for a process that is ending."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)

    def said(self) -> str:
        """The end of its output."""
        return (self.folder / "out").read_text(errors="replace")[-2000:]

    def read_log(self) -> str:
        """What it has logged."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(10)

    def close(self) -> None:
        for part in ("packets", "runtime"):
            if hasattr(self, part):
                with contextlib.suppress(OSError):
                    getattr(self, part).close()
        if hasattr(self, "_process"):
            self.kill()
        self._out.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Bmv2:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _free_port() -> int:
    """A port without a listener, below those that the kernel gives to connections."""
    while True:
        port = random.randrange(20000, 30000)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port

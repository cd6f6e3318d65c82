"""The faults: what each does to a run, and which ends of it are in order."""

from __future__ import annotations

import contextlib
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from fairlane import errors
from tools.chaos.subject import Place, Subject

LIMITED = (errors.NO_SPACE, errors.CANNOT_RUN_HERE)
STOPPED = (0, errors.RUN_FAILED)
UNTRUE = ("doubtful", "invalid")


@dataclass(frozen=True)
class Fault:
    """name: with the place, unique. strike: does it, while the subject runs; what was hit. ends: exit codes in order. marked: a run that ends with 0 must not call
    itself true. arguments: of the command. disk_kb: of the file system for results; limits: of ulimit."""

    place: Place
    name: str
    strike: Callable[[Subject, random.Random], str] | None
    ends: tuple[int, ...] = (0,)
    marked: bool = False
    arguments: tuple[str, ...] = ()
    disk_kb: int = 0
    limits: str = ""

    @property
    def key(self) -> str:
        return f"{self.place.value}: {self.name}"


def _kill(pattern: str) -> Callable[[Subject, random.Random], str]:
    def strike(subject: Subject, rng: random.Random) -> str:
        pid = rng.choice(subject.children(pattern))
        subject.signal(pid, signal.SIGKILL)
        return f"killed a process of {pattern!r}"

    return strike


def _stop(pattern: str, seconds: float) -> Callable[[Subject, random.Random], str]:
    def strike(subject: Subject, rng: random.Random) -> str:
        for pid in (stopped := subject.children(pattern)):
            subject.signal(pid, signal.SIGSTOP)
        time.sleep(seconds)
        for pid in stopped:
            subject.signal(pid, signal.SIGCONT)
        return f"stopped {len(stopped)} processes of {pattern!r} for {seconds:g} s"

    return strike


def _stop_all(subject: Subject, rng: random.Random) -> str:
    pids = [subject.pid, *subject.children("")]
    for pid in pids:
        subject.signal(pid, signal.SIGSTOP)
    time.sleep(3.0)
    for pid in pids:
        subject.signal(pid, signal.SIGCONT)
    return f"stopped the whole run, {len(pids)} processes, for 3 s"


def _end(number: signal.Signals) -> Callable[[Subject, random.Random], str]:
    def strike(subject: Subject, rng: random.Random) -> str:
        subject.signal(subject.pid, number)
        return f"sent {number.name} to the run"

    return strike


def _hogs(subject: Subject, rng: random.Random) -> str:
    count = rng.choice([2, 4, 8])
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        time.sleep(3.0)
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
    return f"{count} busy loops for 3 s"


def _clock_steps(subject: Subject, rng: random.Random) -> str:
    """The machine's, and back: all of its programs see it."""
    step_s = rng.choice([-2.0, 2.0])
    time.clock_settime(time.CLOCK_REALTIME, time.time() + step_s)
    try:
        time.sleep(2.0)
    finally:
        time.clock_settime(time.CLOCK_REALTIME, time.time() - step_s)
    return f"the clock stepped by {step_s:+g} s and back"


def _interface(gone: bool) -> Callable[[Subject, random.Random], str]:
    def strike(subject: Subject, rng: random.Random) -> str:
        name = rng.choice(subject.interfaces())
        if gone:
            subprocess.run(["ip", "link", "del", name], check=True, capture_output=True)
            return f"deleted {name}"
        subprocess.run(["ip", "link", "set", name, "down"], check=True, capture_output=True)
        time.sleep(2.0)
        subprocess.run(["ip", "link", "set", name, "up"], check=False, capture_output=True)
        return f"{name} was down for 2 s"

    return strike


_NOISE = """
import random, socket, sys
r = random.Random(int(sys.argv[1]))
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(([n for _, n in socket.if_nameindex() if n != "lo"][0], 0))
for i in range(3000):
    f = bytearray(r.randbytes(r.choice([14, 20, 34, 60, 200, 1400])))
    if i % 2:
        f[12:14] = b"\\x08\\x00"
    if i % 4 == 3 and len(f) >= 34:
        f[14], f[23] = 0x46, r.choice([2, 17])
    s.send(f)
"""


def _frames(subject: Subject, rng: random.Random) -> str:
    """From a host's own namespace: frames that are nearly right, and noise."""
    pid = rng.choice(subject.children(r"\.sender|--role sender|fairlane-host|host"))
    done = subprocess.run(
        ["nsenter", "-t", str(pid), "-n", sys.executable, "-c", _NOISE, str(rng.randrange(1 << 30))],
        capture_output=True,
        text=True,
        check=False,
    )
    return f"3,000 frames of noise from a host ({done.stderr.strip().splitlines()[-1] if done.returncode else 'sent'})"


def _noise_at(port: int, rng: random.Random) -> str:
    """Half-open connections, noise, and broken HTTP/2 at a port of 127.0.0.1."""
    sent = 0
    for number in range(40):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            if number % 3 == 1:
                connection.sendall(rng.randbytes(rng.choice([1, 24, 9000])))
            elif number % 3 == 2:
                connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + rng.randbytes(200))
            sent += 1
    return f"noise on {sent} connections to port {port}"


def _noise(subject: Subject, rng: random.Random) -> str:
    return _noise_at(subject.grpc_port + rng.randrange(2), rng)


def _controllers(subject: Subject, rng: random.Random) -> str:
    """Others that want to be primary, come and go, and write nonsense."""
    import grpc
    from finsy.proto import p4r, p4r_grpc

    number = rng.choice([0, 1, 7])
    for turn in range(10):
        channel = grpc.insecure_channel(f"127.0.0.1:{subject.grpc_port}", options=[("grpc.enable_http_proxy", 0)])
        stub = p4r_grpc.P4RuntimeStub(channel)
        request = p4r.StreamMessageRequest()
        request.arbitration.device_id = 1
        request.arbitration.election_id.low = number
        never = threading.Event()

        def requests(request: p4r.StreamMessageRequest = request, never: threading.Event = never) -> Iterator[p4r.StreamMessageRequest]:
            yield request
            never.wait(2.0)

        with contextlib.suppress(grpc.RpcError, StopIteration):
            next(stub.StreamChannel(requests(), timeout=2.0))
        with contextlib.suppress(grpc.RpcError):
            stub.Write(
                p4r.WriteRequest(device_id=rng.randrange(3), updates=[p4r.Update(type=p4r.Update.INSERT)] * (1 + turn * 50)), timeout=2.0
            )
        never.set()
        channel.close()
    return f"10 controllers with election id {number}"


def _page(subject: Subject, rng: random.Random) -> str:
    """Requests without the token, noise, and nonsense over the page's socket."""
    import urllib.error
    import urllib.request

    import websockets.exceptions
    import websockets.sync.client

    found = re.search(r"live view: (http://127\.0\.0\.1:(\d+)/\S*)", subject.printed())
    if found is None:
        return "there was no page"
    for path in ("", "x/", "../../etc/passwd", "socket"):
        with contextlib.suppress(urllib.error.HTTPError, OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{found[2]}/{path}", timeout=5)
            raise AssertionError(f"the page answered /{path} without its token")
    said = _noise_at(int(found[2]), rng)
    messages = [
        "",
        "{",
        "[]",
        '{"do": 1}',
        '{"do": "speed", "number": NaN}',
        '{"do": "add"}',
        '{"do": "rate", "port": "s9:9", "bps": -1}',
        "x" * 4000,
    ]
    address = found[1].replace("http", "ws") + "socket"
    with (
        contextlib.suppress(OSError, websockets.exceptions.WebSocketException),
        websockets.sync.client.connect(address, max_size=None) as connection,
    ):
        for _ in range(50):
            connection.send(rng.choice(messages))
    return f"{said}; 50 messages of nonsense"


def _page_dies(subject: Subject, rng: random.Random) -> str:
    subject.signal(rng.choice(subject.descendants("fairlane.live.host")), signal.SIGKILL)
    return "killed the page's process"


def _worker_dies(subject: Subject, rng: random.Random) -> str:
    workers = subject.descendants("spawn_main|forkserver|worker|multiprocessing")
    if not workers:
        return "there was no worker"
    subject.signal(rng.choice(workers), signal.SIGKILL)
    return "killed a worker"


ENDED = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 143}
CLOCK = Fault(Place.MININET, "the clock steps", _clock_steps, STOPPED, True)
"""Only where it is asked for: it happens to the whole machine."""
_MININET = (
    Fault(Place.MININET, "a switch is killed", _kill("fairlane-switch|simple_switch"), STOPPED, True),
    Fault(Place.MININET, "the controller is killed", _kill("fairlane.controller"), STOPPED, True),
    Fault(Place.MININET, "a sender is killed", _kill(r"sender|iperf3 .*-c"), STOPPED, True),
    Fault(Place.MININET, "a switch stands still for 1.5 s", _stop("fairlane-switch|simple_switch", 1.5), STOPPED, True),
    Fault(Place.MININET, "the whole run stands still", _stop_all, STOPPED, True),
    Fault(Place.MININET, "busy loops", _hogs, STOPPED),
    Fault(Place.MININET, "an interface is down", _interface(False), STOPPED),
    Fault(Place.MININET, "an interface is gone", _interface(True), STOPPED),
    Fault(Place.MININET, "noise from a host", _frames, STOPPED),
    Fault(Place.MININET, "noise at P4Runtime", _noise, STOPPED),
    Fault(Place.MININET, "other controllers", _controllers, STOPPED),
    Fault(Place.MININET, "the run is killed", _end(signal.SIGKILL), (-9,)),
    *(Fault(Place.MININET, f"{number.name}", _end(number), (code,)) for number, code in ENDED.items()),
    Fault(Place.MININET, "a full disk", None, (*LIMITED, errors.RUN_FAILED), disk_kb=1200),
    Fault(Place.MININET, "few descriptors", None, (*LIMITED, errors.RUN_FAILED, 0), limits="-n 40"),
)
FAULTS = (
    *_MININET,
    # BMv2 writes fewer records than the embedded switch.
    *(replace(fault, place=Place.BMV2, disk_kb=fault.disk_kb // 3) for fault in _MININET),
    *(Fault(Place.VIRTUAL, f"{number.name}", _end(number), (code, 0)) for number, code in ENDED.items()),
    Fault(Place.VIRTUAL, "a full disk", None, LIMITED, disk_kb=1500),
    Fault(Place.VIRTUAL, "a full disk, later", None, LIMITED, disk_kb=4000, arguments=("--duration", "120")),
    Fault(Place.VIRTUAL, "few descriptors", None, (*LIMITED, 0), limits="-n 24"),
    Fault(Place.VIRTUAL, "little memory", None, (*LIMITED, 0), limits="-v 900000"),
    Fault(Place.VIRTUAL, "no room for files", None, (*LIMITED, 0), limits="-f 200"),
    Fault(Place.LIVE, "noise and nonsense at the page", _page, (0, 130)),
    Fault(Place.LIVE, "the page's process is killed", _page_dies, (0, 130)),
    Fault(Place.STUDY, "a worker is killed", _worker_dies, (0,)),
    Fault(Place.STUDY, "SIGINT, and again", _end(signal.SIGINT), (130, 0)),
    Fault(Place.STUDY, "the study is killed, and again", _end(signal.SIGKILL), (-9, 0)),
)

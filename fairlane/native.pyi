# The types of switch/bin/python; its sources say what each function does. Instants and durations are nanoseconds. A build for fuzzing has `fuzz`, too.
import sys
from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any, Final, Literal, Protocol, TypeAlias, TypedDict, final

from fairlane.hosts.algorithms.base import Receiver, Sender
from fairlane.specs import (
    Alsf,
    Block,
    Compound,
    FlowPath,
    GroupPath,
    Half,
    LayeredReceiver,
    Link,
    Loss,
    Place,
    Reception,
    Report,
    RtpOptions,
    SenderInfo,
    Session,
    Tcp,
)

__all__ = [
    "DROP_CAUSES",
    "PACKET_COLUMNS",
    "PORT_COLUMNS",
    "QUEUE_COLUMNS",
    "Application",
    "Log",
    "Network",
    "Rewriter",
    "__version__",
    "compile",
    "counter_rows",
    "emit_ack",
    "emit_ccfb",
    "emit_report",
    "emit_rtcp",
    "emit_rtp",
    "emit_stamp",
    "packet_test",
    "parse_ack",
    "parse_ccfb",
    "parse_report",
    "parse_rtcp",
    "parse_rtp",
    "parse_stamp",
    "round_trip_s",
]

_Path: TypeAlias = str | PathLike[str]
# Seconds: a mean, or (mean, shape) of Pareto's distribution.
_Period: TypeAlias = float | tuple[float, float]
# Switches by number, and their ports.
_Ports: TypeAlias = set[tuple[int, int]] | frozenset[tuple[int, int]]
# at, id; switch, token, message
_ControlAction: TypeAlias = tuple[Literal["timer"], int, int] | tuple[Literal["set_pipeline", "write", "read", "stream"], int, int, bytes]

class _ControlPlane(Protocol):
    """It may have `on_digest(now_ns, switch, digest_id, list_id, rows)` besides."""

    def on_start(self, now_ns: int, /) -> Sequence[_ControlAction]: ...
    def on_timer(self, now_ns: int, timer: int, /) -> Sequence[_ControlAction]: ...
    def on_answer(
        self, now_ns: int, switch: int, token: int, code: str, text: str, responses: list[bytes], /
    ) -> Sequence[_ControlAction]: ...
    def on_stream(self, now_ns: int, switch: int, message: bytes, /) -> Sequence[_ControlAction]: ...

class _Work(TypedDict):
    events: int
    link_traversals: int
    switch_packets: int
    data_packets: int

DROP_CAUSES: Final[list[str]]
PORT_COLUMNS: Final[str]
QUEUE_COLUMNS: Final[str]
PACKET_COLUMNS: Final[str]
__version__: Final[str]

@final
class Application:
    @staticmethod
    def cbr(rate_bps: int) -> Application: ...
    @staticmethod
    def on_off(rate_bps: int, on: _Period, off: _Period) -> Application: ...
    @staticmethod
    def renewal(rate_bps: int, gaps: float | str, mean_bytes: float | None = None) -> Application: ...
    @staticmethod
    def mpeg4(rate_scale: float = 1.0, parameters: str | None = None) -> Application: ...
    @staticmethod
    def film(
        frames_per_second: float,
        key_interval_frames: int | None,
        min_rate_bps: float,
        max_rate_bps: float,
        most_waiting_ns: int,
        *,
        outside: bool = False,
    ) -> Application: ...

@final
class Log:
    """A sequence of (time_ns, kind, fields): hosts/README.md has the fields of each kind."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> tuple[int, str, dict[str, Any]]: ...
    def __iter__(self) -> Iterator[tuple[int, str, dict[str, Any]]]: ...

@final
class Network:
    def __new__(
        cls,
        seed: int,
        *,
        epoch_ns: int = 0,
        control_delay_ns: int = 1_000_000,
        record_interval_ns: int = 100_000_000,
        end_ns: int | None = None,
    ) -> Network: ...
    @property
    def now_ns(self) -> int: ...
    def add_switch(self, name: str, device_id: int, *, cpu_port: int | None = None, priorities: int = 1) -> int: ...
    def add_host(self, name: str, ip: str, mac_address: str, gateway_mac: str) -> None: ...
    def connect(self, a: str, a_port: int, b: str, b_port: int, there: Link, back: Link | None = None) -> None: ...
    def load(self, switch: str, bmv2_json: str) -> None: ...
    def add_rtp_flow(
        self, path: FlowPath, sender: Half[Sender], receiver: Half[Receiver], session: Session, options: RtpOptions | None = None
    ) -> None: ...
    def add_layered_flow(
        self, path: GroupPath, sender: Half[Sender], receivers: Sequence[LayeredReceiver[Receiver]], session: Session
    ) -> None: ...
    def add_tcp_flow(self, path: FlowPath, tcp: Tcp) -> None: ...
    def add_source_flow(self, path: FlowPath, application: Application, *, packet_bytes: int) -> None: ...
    def start_after(self, name: str, after: list[str], delay_ns: int) -> None: ...
    def stop_flow(self, name: str, at_ns: int) -> None: ...
    def schedule_rate(self, at_ns: int, node: str, port: int, rate_bps: int | None) -> None: ...
    def schedule_delay(self, at_ns: int, node: str, port: int, delay_ns: int) -> None: ...
    def schedule_loss(self, at_ns: int, node: str, port: int, loss: Loss | None) -> None: ...
    def schedule_jitter(self, at_ns: int, node: str, port: int, jitter_ns: int, jitter_std_ns: int = 0) -> None: ...
    def schedule_opportunities(self, at_ns: int, node: str, port: int, opportunities_ns: Sequence[int], bytes: int) -> None: ...
    def schedule_rates(self, at_ns: int, node: str, port: int, rates: Sequence[tuple[int, int]]) -> None: ...
    def schedule_frame(self, at_ns: int, host: str, frame: bytes) -> None: ...
    def set_control_plane(self, plane: _ControlPlane) -> None: ...
    def wake_control_plane(self, at_ns: int, id: int) -> None: ...
    def mark(self, at_ns: Sequence[int]) -> None: ...
    def capture(self, directory: _Path) -> None: ...
    def trace(self, path: _Path) -> None: ...
    def record_packets(self, path: _Path, origin_ns: int, only: Sequence[tuple[str, int]] | None = None) -> None: ...
    def measure_delays(self, from_ns: int, to_ns: int) -> None: ...
    def delays(self) -> list[tuple[Literal["wait", "round_trip", "one_way"], int, int, int, str]]: ...
    def run_until(self, end_ns: int) -> None: ...
    def take_flow_logs(self, flow: str) -> tuple[Log, Log]: ...
    def take_layered_logs(self, flow: str) -> tuple[Log, dict[str, Log]]: ...
    def take_port_rows(self, only: _Ports | None = None) -> list[str]: ...
    def take_queue_rows(self, only: _Ports | None = None) -> list[str]: ...
    def port_interval(self, switch: int, port: int) -> tuple[float, float] | None: ...
    def port_sums(self, first_ns: int, step_ns: int) -> list[tuple[int, int, bytes]]: ...
    def read_register(self, switch: str, register: str, indices: Sequence[int]) -> list[int]: ...
    def channel_stats(self) -> list[tuple[str, str, int, int, int, int, int, int]]: ...
    def work(self) -> _Work: ...

@final
class Rewriter:
    def __new__(cls, request: bytes) -> Rewriter: ...
    def encoded(self, values: Sequence[Sequence[bytes]]) -> bytes: ...

def compile(program: _Path, *, include: Sequence[_Path] = ..., define: Sequence[str] = ...) -> tuple[str | None, str | None, str]: ...
def packet_test(program: _Path, test: _Path, *, verbose: bool = False) -> tuple[bool, str]: ...
def counter_rows(responses: Sequence[bytes]) -> list[tuple[int, int, int, int]]: ...

if sys.platform == "linux":
    __all__ += ["HostEnd"]

    @final
    class HostEnd:
        @property
        def refused_packets(self) -> int: ...
        @staticmethod
        def sender(place: Place, half: Half[Sender], session: Session, options: RtpOptions | None = None) -> HostEnd: ...
        @staticmethod
        def receiver(place: Place, half: Half[Receiver], reception: Reception) -> HostEnd: ...
        @staticmethod
        def source(place: Place, application: Application, *, packet_bytes: int) -> HostEnd: ...
        @staticmethod
        def sink(place: Place) -> HostEnd: ...
        def run_until(self, until_ns: int) -> bool: ...
        def close(self) -> None: ...
        def take_log(self) -> Log: ...
        def sent(self) -> tuple[list[tuple[int, int, bool, bytes]], list[tuple[int, int, bool]]]: ...

class _Ack(TypedDict):
    sequence: int
    history: int
    ecn: int
    arrived_ns: int | None
    header: bytes

class _Report(TypedDict):
    highest_sequence: int
    echo_ns: int
    delay_us: int
    receive_rate_bps: int
    loss_event_rate: int | None
    expected_packets: int
    lost_packets: int
    reporter: int
    header: bytes

class _Stamp(TypedDict):
    sent_ns: int
    sequence: int
    rtt_us: int | None
    produced_ns: int | None

class _Rtp(TypedDict):
    sequence: int
    timestamp: int
    ssrc: int
    extension: bytes
    payload: bytes

class _Rtcp(TypedDict):
    ssrc: int
    sender: SenderInfo | None
    blocks: list[Block]
    cname: bytes
    from_sender: Alsf | None
    from_receiver: Alsf | None
    bye: list[int]

# ssrc, begin, of each packet (ecn, arrival time offset) or None
_Reported: TypeAlias = tuple[int, int, Sequence[tuple[int, int] | None]]

class _Ccfb(TypedDict):
    ssrc: int
    streams: list[_Reported]
    timestamp: int

def emit_ack(sequence: int, history: int, arrived_ns: int | None = None, header: bytes | None = None, ecn: int = 0) -> bytes: ...
def parse_ack(payload: bytes) -> _Ack | None: ...
def emit_report(report: Report) -> bytes: ...
def parse_report(payload: bytes) -> _Report | None: ...
def emit_stamp(sent_ns: int, sequence: int, rtt_us: int | None = None, produced_ns: int | None = None) -> bytes: ...
def parse_stamp(payload: bytes, media: bool = False) -> _Stamp | None: ...
def emit_rtp(sequence: int, timestamp: int, ssrc: int, payload: bytes, extension: bytes | None = None) -> bytes: ...
def parse_rtp(packet: bytes) -> _Rtp | None: ...
def emit_rtcp(compound: Compound) -> bytes: ...
def parse_rtcp(payload: bytes) -> _Rtcp | None: ...
def emit_ccfb(ssrc: int, streams: Sequence[_Reported], timestamp: int) -> bytes: ...
def parse_ccfb(payload: bytes) -> list[_Ccfb] | None: ...
def round_trip_s(arrival_ntp: int, lsr: int, dlsr: int) -> float | None: ...

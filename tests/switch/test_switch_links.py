"""fairlane-switch --links on real interfaces: losses, jitter, changes, traces, and the file read again. Needs root, as test_switch_realtime.py."""

from __future__ import annotations

import csv
import json
import signal
import statistics
import time
from pathlib import Path
from typing import Any

import pytest

from tests.switch.test_switch_realtime import HEADERS, Flow, last_rows, net, program, switch

pytestmark = pytest.mark.root
__all__ = ["net", "program"]  # fixtures
OUT = {"port": 2, "direction": "out", "from": "s1", "to": "h2"}
IN = {"port": 1, "direction": "in", "from": "h1", "to": "s1"}


def write(path: Path, *links: dict[str, Any], begin: bool = True) -> int:
    """The file, for a run that begins now; returns when that is."""
    now = time.time_ns()
    path.write_text(json.dumps({"seed": 1, "links": links, **({"begin_unix_ns": now} if begin else {})}))
    return now


def burst(flow: Flow, count: int, payload: bytes = b"x", gap_s: float = 0.0) -> list[int]:
    """When the datagrams arrived (Unix nanoseconds), in their order."""
    arrived: list[tuple[bytes, int]] = []
    thread = flow.collect(arrived)
    for number in range(count):
        flow.send(number.to_bytes(4, "big") + payload)
        if gap_s:
            time.sleep(gap_s)
    thread.join()
    # The question for the address is asked again on a busy machine, and its answers come late.
    arrived = [(got, instant) for got, instant in arrived if not got.startswith(b"resolve")]
    numbers = [int.from_bytes(got[:4], "big") for got, _ in arrived]
    assert numbers == sorted(numbers), "a link does not change the order"
    return [instant for _, instant in arrived]


def test_a_port_follows_a_trace_in_the_middle_of_a_run(net, program, tmp_path: Path) -> None:
    """An opportunity of 1500 bytes each 80 ms, two at the third; a frame of 1500 bytes takes one."""
    file = tmp_path / "links.json"
    trace = {"opportunities_ns": [80_000_000, 160_000_000, 240_000_000, 240_000_000], "bytes": 1500}
    write(file, {**OUT, "trace": trace}, begin=False)
    with switch(net, program, "--links", file, "--", "--grpc-server-addr", "127.0.0.1:9621") as process, Flow(net) as flow:
        assert len(burst(flow, 8)) == 8, "before the run begins, the link has its rate"
        begin = write(file, {**OUT, "trace": trace})
        process.send_signal(signal.SIGHUP)
        assert process.stdout.readline() == "links read\n"
        arrived = burst(flow, 9, bytes(1500 - HEADERS - 4))
        assert len(arrived) == 9
        # In units of 80 ms; two of three opportunities are alone. None comes before its own; a busy machine may carry a few late.
        slots = [(instant - begin) / 80e6 for instant in arrived]
        every = [n for n in range(1, 20) for _ in range(2 if n % 3 == 0 else 1)]
        waits = [[slot - n for slot, n in zip(slots, every[first:])] for first in range(len(every) - len(slots) + 1)]
        assert any(min(wait) > -0.02 and statistics.median(wait) < 0.25 for wait in waits), slots


@pytest.mark.parametrize(
    ("jitter", "least_ms"), [({"jitter_ns": 10_000_000}, 24), ({"jitter_std_ns": 3_333_333}, 22.6)], ids=["uniform", "gaussian"]
)
def test_what_comes_to_a_port_is_lost_late_and_changed(net, program, tmp_path: Path, jitter: dict[str, int], least_ms: float) -> None:
    """A host's sending end: 20 to 30 ms of delay, a fifth lost; after a second nothing is lost, and all take 5 ms."""
    file = tmp_path / "links.json"
    later = {"at_ns": 0, "loss": 0.0, "delay_ns": 5_000_000, "jitter_ns": 0}
    write(file, {**IN, "delay_ns": 20_000_000, **jitter, "loss": 0.2})
    with switch(net, program, "--links", file, "--", "--grpc-server-addr", "127.0.0.1:9622") as process, Flow(net) as flow:
        sent: list[int] = []
        delays_ms = []
        for number in range(300):
            sent.append(time.time_ns())
            flow.send(number.to_bytes(4, "big"))
            time.sleep(0.001)
        flow._receiver.settimeout(0.3)
        while (arrival := flow.receive()) is not None:
            delays_ms.append((arrival[1] - sent[int.from_bytes(arrival[0], "big")]) / 1e6)
        assert 200 <= len(delays_ms) <= 275, len(delays_ms)
        inside = [delay for delay in delays_ms if 19.9 < delay < 32]
        assert len(inside) > 0.95 * len(delays_ms), "a busy machine adds to few"
        # The order is kept, so that most wait for one that was later: above the middle of 20 to 30 ms, and above the mean of half a Gaussian, 2.66 ms.
        assert least_ms < sum(inside) / len(inside) < 31
        write(file, {**IN, "delay_ns": 20_000_000, "changes": [later]})
        process.send_signal(signal.SIGHUP)
        assert process.stdout.readline() == "links read\n"
        flow.round_trip(b"none is lost now", 1)
        first_ms = []
        for _ in range(4):
            start = time.time_ns()
            arrived = burst(flow, 50)
            assert len(arrived) == 50
            first_ms.append((arrived[0] - start) / 1e6)
        # A busy machine makes some of them late, and none early.
        assert 4.9 < min(first_ms) < 15, first_ms
    assert process.returncode == 0


def test_frames_are_copied_overtaken_corrupted_and_lost_in_bursts(net, program, tmp_path: Path) -> None:
    """What a port sends, and its counts at the end."""
    file = tmp_path / "links.json"
    write(file, {**OUT, "duplicate": 1.0})
    stats = ("--stats", tmp_path / "stats.csv")
    with switch(net, program, "--links", file, *stats, "--", "--grpc-server-addr", "127.0.0.1:9624") as process, Flow(net) as flow:

        def now(**impairments: object) -> None:
            write(file, {**OUT, **impairments})
            process.send_signal(signal.SIGHUP)
            assert process.stdout.readline() == "links read\n"

        assert len(burst(flow, 50, gap_s=0.001)) == 100
        # One bit of each is wrong, wherever it is: the kernel drops all.
        now(corrupt=1.0)
        assert burst(flow, 50) == []
        now(gemodel={"p": 1.0, "r": 1e-9, "loss_bad": 1.0, "loss_good": 0.0})
        assert burst(flow, 50) == []
        now(reorder=0.3, reorder_delay_ns=20_000_000)
        arrived: list[tuple[bytes, int]] = []
        thread = flow.collect(arrived)
        for number in range(200):
            flow.send(number.to_bytes(4, "big"))
            time.sleep(0.001)
        thread.join()
        numbers = [int.from_bytes(got[:4], "big") for got, _ in arrived if not got.startswith(b"resolve")]
        assert sorted(numbers) == list(range(200))
        overtaken = sum(number < max(numbers[: at + 1]) for at, number in enumerate(numbers))
        assert 30 < overtaken < 100, overtaken
        now()
        assert len(burst(flow, 50)) == 50
    with (tmp_path / "stats.links.csv").open() as rows:
        last = list(csv.DictReader(rows))[-1]
    counts = {name: int(value) for name, value in last.items() if name.endswith("_packets")}
    assert last["link"] == "s1->h2" and counts["reordered_packets"] == overtaken
    assert all(50 <= counts[f"{what}_packets"] < 60 for what in ("lost", "duplicated", "corrupted")), counts


def test_a_failed_link_loses_what_comes_and_what_is_under_way(net, program, tmp_path: Path) -> None:
    """In both directions, one after the other. The port counts what it loses itself; what comes to it, the other end has lost."""
    file, stats = tmp_path / "links.json", tmp_path / "stats.csv"
    write(file, OUT, IN, begin=False)
    options = ("--port-delay", "2=400ms", "--links", file, "--stats", stats, "--", "--grpc-server-addr", "127.0.0.1:9625")
    with switch(net, program, *options) as process, Flow(net) as flow:

        def fail(entry: dict[str, Any]) -> float:
            """The link is down from 0.5 to 1.5 s from now; returns when it fails."""
            changes = [{"at_ns": 500_000_000, "up": False}, {"at_ns": 1_500_000_000, "up": True}]
            write(file, {**entry, "changes": changes})
            process.send_signal(signal.SIGHUP)
            assert process.stdout.readline() == "links read\n"
            return time.monotonic() + 0.5

        for entry in (OUT, IN):
            fails_s = fail(entry)
            time.sleep(max(0.0, fails_s + 0.4 - time.monotonic()))
            assert burst(flow, 20) == []
            time.sleep(max(0.0, fails_s + 1.3 - time.monotonic()))
            assert len(burst(flow, 7)) == 7
        fails_s = fail(OUT)
        # The port delays frames by 0.4 s: it has still got them when the link fails.
        time.sleep(max(0.0, fails_s - 0.2 - time.monotonic()))
        assert burst(flow, 11) == []
    lost = {port: int(row["drop_link_down"]) for port, row in last_rows(stats).items()}
    # Now and then the kernel asks for an address again.
    assert 31 <= lost[2] < 36 and lost[1] == 0, lost


def test_a_file_that_is_refused_leaves_the_links_alone(net, program, tmp_path: Path) -> None:
    file = tmp_path / "links.json"
    write(file, {**OUT, "loss": 0.0})
    with switch(net, program, "--links", file, "--", "--grpc-server-addr", "127.0.0.1:9623") as process, Flow(net) as flow:
        for entry, said in (
            ({**OUT, "loss": 2}, "links[0]: loss: 2 is not a probability from 0 to 1"),
            ({**OUT, "corrupt": 1.5}, "links[0]: corrupt: 1.5 is not a probability from 0 to 1"),
            ({**OUT, "gemodel": {"p": 0.1, "r": 2, "loss_bad": 1, "loss_good": 0}}, "links[0]: bad_to_good: 2 is not a probability"),
            ({**OUT, "port": 7}, "links[0]: no -i option makes a port 7"),
            ({**OUT, "rate_bps": 5}, "links[0]: the rate, delay and overhead of what a port sends are options: --port-rate"),
            ({**IN, "changes": [{"at_ns": 0, "rate_bps": 0}]}, "links[0]: rate_bps: a rate of 0 bit/s never sends"),
            ({**OUT, "trace": {"opportunities_ns": [2, 1], "bytes": 9}}, "links[0]: entry 2 of the trace is before the one before it"),
            ({**OUT, "los": 1}, "unknown field `los`"),
        ):
            write(file, entry)
            process.send_signal(signal.SIGHUP)
            line = process.stderr.readline()
            assert line.startswith(f"fairlane-switch: --links {file}: ") and said in line and "the links stay as they are" in line, line
        flow.round_trip(b"still there", 1)

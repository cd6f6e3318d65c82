"""Target bmv2, part by part: queues and registers over Thrift, and the record that stands in for the embedded switch's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairlane.fabrics.bmv2_stats import Counts, Integral, PortTable, interface_counts, reports_queues
from tests.bmv2 import pairs


@pytest.mark.root
@pytest.mark.parametrize("compiler", pairs.COMPILERS)
def test_a_port_has_the_rate_and_the_queue_it_was_given(compiler: str, tmp_path: Path) -> None:
    result = pairs.drive("queues.py", compiler, "simple_switch_grpc", tmp_path, timeout_s=90)
    arrivals = result["arrivals"]
    # 20 wait, or 21 when one had left before the last of them came; a few more find room when the burst takes longer than 40 ms.
    assert 20 <= len(arrivals) <= 30
    # 25 packets a second over the whole burst, but for how late a busy machine sent the first and the last.
    assert arrivals[-1] - arrivals[0] == pytest.approx(0.04 * (len(arrivals) - 1), abs=0.2)

    # The program saw that queue grow and drain, and the record has it.
    header, *rows = result["rows"]
    towards = [dict(zip(header, row)) for row in rows if row[2] == "2"]
    waiting = [int(row["queue_packets"]) for row in towards]
    assert 8 <= max(waiting) <= 20 and waiting[-1] == 0
    # The integral of 20, 19, ... 0 waiting packets, 40 ms each, is 8.4 packet seconds; samples on a busy machine miss some of it.
    assert 3 <= float(towards[-1]["queue_integral_packet_s"]) <= 11
    # What left the port, and what came in at the other, as the kernel counts them.
    assert (int(towards[-1]["tx_packets"]), int(towards[-1]["tx_bytes"])) == (len(arrivals), 1000 * len(arrivals))
    assert [row[header.index("rx_packets")] for row in rows if row[2] == "1"][-1] == "60"

    # Registers: over Thrift, since BMv2's P4Runtime server does not serve them.
    assert "UNIMPLEMENTED" in result["over p4runtime"]
    assert result["register"] == [41, [0, 0, 41, 0]]


@pytest.mark.root
def test_what_bmv2_refuses_is_said(tmp_path: Path) -> None:
    result = pairs.drive("queues.py", "fairlane-compile", "simple_switch_grpc", tmp_path, timeout_s=90)
    assert result["unanswered"].startswith("Bmv2Error: BMv2's Thrift port 127.0.0.1:10559 does not answer: ")
    assert result["gone"].startswith("Bmv2Error: ")
    assert result["no program"] == "NoSuchRegister: BMv2 at 127.0.0.1:10559: register red_queue: no such register"
    assert result["no register"] == "NoSuchRegister: BMv2 at 127.0.0.1:10559: register blue_queue: no such register"
    assert result["no index"] == "NoSuchRegister: BMv2 at 127.0.0.1:10559: register red_queue[512]: no such index"


def test_the_kernels_counters_are_read_by_name() -> None:
    text = (
        "Inter-|   Receive                                                |  Transmit\n"
        " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n"
        "    lo:     100       2    0    0    0     0          0         0      100       2    0    0    0     0       0          0\n"
        "f3a2-s1-p1: 1014000 1000   0    0    0     0          0         0    66000    1001    0    0    0     0       0          0\n"
    )
    assert interface_counts(text) == {"lo": Counts(2, 100, 2, 100), "f3a2-s1-p1": Counts(1000, 1014000, 1001, 66000)}
    assert interface_counts("") == {}


def test_an_integral_of_samples_is_of_straight_lines() -> None:
    integral = Integral()
    assert integral.add(10.0, 4.0) == 4.0
    assert integral.add(10.5, 8.0) == 6.0
    assert integral.add(10.5, 2.0) == 2.0  # no time has passed
    assert integral.add(11.5, 0.0) == 1.0
    assert integral.total == 0.5 * 6.0 + 1.0 * 1.0


def test_rows_are_of_the_ports_that_are_there() -> None:
    table = PortTable({1: "a", 2: "b", 3: "gone"})
    counts = {"a": Counts(1, 2, 3, 4), "b": Counts(5, 6, 7, 8), "other": Counts(0, 0, 0, 0)}
    table.rows(1.0, 100.0, counts, [0, 0, 10])
    assert table.rows(2.0, 101.0, counts, [0, 0, 20]) == [
        ("2.000000", "101.000000", 1, 1, 2, 3, 4, 0, "0.000000", "0.000"),
        ("2.000000", "101.000000", 2, 5, 6, 7, 8, 20, "15.000000", "15.000"),
    ]
    # A switch without a program: nothing waits.
    assert [row[7] for row in table.rows(3.0, 102.0, counts, ())] == [0, 0]
    # A program that reports no queues.
    assert table.rows(4.0, 103.0, counts, None)[1] == ("4.000000", "103.000000", 2, 5, 6, 7, 8)


def test_a_program_without_the_register_reports_no_queues(tmp_path: Path) -> None:
    program = tmp_path / "own.json"
    for names, reports in (([], False), (["other"], False), (["other", "red_queue"], True)):
        program.write_text(json.dumps({"register_arrays": [{"name": name} for name in names]}))
        assert reports_queues(program) == reports

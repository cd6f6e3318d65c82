"""Flows of kind `command`: what files may say, how programs run and end, and what switches and the kernel count of them."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.errors import Refusal
from fairlane.experiments import commands, loader
from fairlane.experiments.model import Experiment
from fairlane.fabrics import flows, places, preflight
from fairlane.fabrics.flows import Timing
from fairlane.fabrics.switch_process import PortSetting, SwitchSettings, embedded_command
from fairlane.hosts.tcp_sockets import TcpInfo, TcpSockets, descendants, inodes_of, parse
from fairlane.inputs.located_toml import ConfigError
from fairlane.results import conversations, series
from fairlane.topologies import addressing
from tests.waiting import until

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
NETWORK = """
title = "t"
bottleneck = "s1->s2"
duration_s = 10.0
[topology]
kind = "dumbbell"
pairs = 2
bottleneck = { rate_bps = 10_000_000, delay_s = 0.01, queue_packets = 100 }
access = { rate_bps = 100_000_000 }
"""
IPERF = """
[[flows]]
name = "web"
kind = "command"
hosts = [["h1", "h3"]]
start_s = 2.0
parameters.sender = ["iperf3", "-c", "{receiver}", "-p", "{port}", "-t", "{seconds}"]
parameters.receiver = ["iperf3", "-s", "-1", "-p", "{port}"]
"""
PING = '[[flows]]\nname = "ping"\nkind = "command"\nhosts = [["h1", "h3"]]\nparameters.sender = ["ping", "-n", "{receiver}"]\n'


def load(tmp_path: Path, text: str) -> Experiment:
    file = tmp_path / "run.toml"
    file.write_text(NETWORK + text)
    return loader.load(file)


def refused(tmp_path: Path, text: str) -> str:
    with pytest.raises(ConfigError) as found:
        load(tmp_path, text)
    return str(found.value)


@given(st.text(), st.dictionaries(st.sampled_from(sorted(commands.PLACES)), st.text(alphabet="abc123./"), min_size=1))
def test_what_is_no_place_stays(text: str, values: dict[str, str]) -> None:
    escaped = text.replace("{", "{{").replace("}", "}}")
    assert commands.filled(escaped, values) == text
    name, value = next(iter(values.items()))
    assert commands.filled(f"{escaped}{{{name}}}{escaped}", values) == f"{text}{value}{text}"
    assert commands.filled(commands.at_home("{here}", text), {}) == text


def test_the_places_have_their_values(tmp_path: Path) -> None:
    """The end that waits runs from before the begin, and a little longer."""
    experiment = load(tmp_path, IPERF)
    hosts = addressing.assign(experiment.topology).hosts
    logs = {role: str(tmp_path / f"web.{role}.jsonl") for role in ("sender", "receiver")}
    server, client = flows.programs(experiment.flows[0], hosts, Timing(100.0, 110.0), 1, logs)
    assert (server.host, client.host) == ("h3", "h1")
    assert client.argv[client.argv.index("--") + 1 :] == ("iperf3", "-c", hosts["h3"].ip, "-p", "5201", "-t", "8")
    at = {key: client.argv[client.argv.index(key) + 1] for key in ("--start-at", "--stop-at", "--output", "--log")}
    assert at == {"--start-at": "102.000000", "--stop-at": "110.000000", "--output": logs["sender"][:-5] + "out", "--log": logs["sender"]}
    assert server.argv[server.argv.index("--start-at") + 1] == "0.000000" and server.may_end and server.with_children
    assert server.argv[server.argv.index("--stop-at") + 1] == "110.500000"


def test_here_is_the_folder_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = NETWORK + PING.replace('"ping"', '"{here}/tool"', 1).replace('name = "{here}/tool"', 'name = "ping"').replace(
        '["ping"', '["{here}/tool"'
    )
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "run.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    made = loader.load(Path("in/run.toml")).flows[0].commands
    assert made is not None and made.sender[0] == "in/tool" and made.label == "ping"
    monkeypatch.chdir("/")
    made = loader.load(tmp_path / "in" / "run.toml").flows[0].commands
    assert made is not None and made.sender[0].endswith("in/tool")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{receiver}", "{recevier}", "run.toml:16: flows[0].parameters.sender: no place {recevier}; did you mean 'receiver'?"),
        (
            'parameters.sender = ["iperf3"',
            'parameters.sender = [""',
            "flows[0].parameters.sender: its first text is the program, got an empty one",
        ),
        ("parameters.sender =", "parameters.sends =", "flows[0].parameters.sends: unknown key of command; did you mean 'sender'?"),
        ("start_s = 2.0", "parameters.grace_s = 0.0", "flows[0].parameters.grace_s: above 0 and at most 60 s, got 0 s"),
        ("start_s = 2.0", "parameters.exit_codes = [256]", "flows[0].parameters.exit_codes: give at least one, from 0 to 255"),
        ("start_s = 2.0", 'parameters.stop_signal = "KILL"', "flows[0].parameters.stop_signal: expected one of 'TERM', 'INT', got 'KILL'"),
    ],
)
def test_a_bad_command_is_refused_at_its_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert message in refused(tmp_path, IPERF.replace(old, new, 1))


def test_a_command_without_programs_is_refused(tmp_path: Path) -> None:
    assert 'sender: give the program of an end and its arguments, as sender = ["ping", "-n", "{receiver}"]' in refused(
        tmp_path, '[[flows]]\nname = "a"\nkind = "command"\n'
    )


def test_two_commands_whose_packets_look_alike_are_refused(tmp_path: Path) -> None:
    other = PING.replace('name = "ping"', 'name = "other"')
    assert "ping and other: commands without {port} between the same hosts" in refused(tmp_path, PING + other)
    load(tmp_path, PING + IPERF + other.replace('["h1", "h3"]', '["h3", "h1"]'))  # all different


def test_virtual_time_refuses_real_programs(tmp_path: Path) -> None:
    experiment = load(tmp_path, PING)
    with pytest.raises(Refusal, match="flow ping: kind command runs real programs, and virtual time has none: add --fabric mininet"):
        places.VIRTUAL.ready(experiment)


def test_a_program_that_is_not_there_is_refused(tmp_path: Path) -> None:
    experiment = load(tmp_path, PING.replace('["ping"', '["no-such-program-here"'))
    with pytest.raises(
        Refusal, match="flow ping: no program 'no-such-program-here' for its sender in PATH here: install it, or give its path"
    ):
        preflight._check_commands(experiment)


def test_a_host_listens_on_each_port_once(tmp_path: Path) -> None:
    """In virtual time flows between other hosts may have the same port; programs would find it taken."""
    ends = ('["h1", "h3"]', '["h2", "h3"]', '["h3", "h2"]', '["h1", "h4"]', '["h1", "h3"]')
    experiment = load(tmp_path, "".join(IPERF.replace('["h1", "h3"]', pair).replace('"web"', f'"web{n}"') for n, pair in enumerate(ends)))
    apart = flows.with_tcp_ports(experiment).flows
    of_hosts = [(host, f.port_offset) for f in apart for host in (f.sender, f.receiver)]
    assert len(set(of_hosts)) == len(of_hosts) and all(f.port_offset % 2 == 0 for f in apart)
    assert [dataclasses.replace(f, port_offset=0) for f in apart] == [dataclasses.replace(f, port_offset=0) for f in experiment.flows]
    assert [f.port_offset for f in experiment.flows] == [0, 0, 2, 0, 2]


def test_only_a_run_with_commands_counts_conversations(tmp_path: Path) -> None:
    def command(count: bool) -> list[str]:
        settings = SwitchSettings(
            "s1", 1, 9559, (PortSetting(1, "e1", 1e6, 10, 0.0),), tmp_path / "s1.log", tmp_path / "s1.csv", count_flows=count
        )
        return embedded_command(Path("fairlane-switch"), settings)

    assert set(command(True)) - set(command(False)) == {"--count-flows"}


# What switches counted.


HEADER = "unix_s,port,direction,source,destination,protocol,source_port,destination_port,packets,bytes,payload_bytes\n"


def counted(tmp_path: Path, experiment: Experiment, *rows: tuple[float, str, int, str, str, str, int, int, int, int, int, int]) -> Any:
    """rows: time, switch, port, direction, source, destination (hosts), protocol, ports, packets, bytes, payload."""
    ips = {name: host.ip for name, host in addressing.assign(experiment.topology).hosts.items()}
    for switch in ("s1", "s2"):
        own = [r for r in rows if r[1] == switch]
        text = "".join(f"{r[0]},{r[2]},{r[3]},{ips[r[4]]},{ips[r[5]]},{','.join(map(str, r[6:]))}\n" for r in own)
        (tmp_path / f"{switch}.flows.csv").write_text(HEADER + text)
    return conversations.of_run(tmp_path, experiment, 1000.0)


def test_a_conversation_belongs_to_the_flow_of_its_port(tmp_path: Path) -> None:
    experiment = load(tmp_path, IPERF + PING)
    first, last = (next(p.peer_port for p in experiment.topology.ports()[host]) for host in ("h1", "h3"))
    found = counted(
        tmp_path,
        experiment,
        (999.0, "s1", first, "in", "h1", "h3", 1, 0, 0, 4, 336, 224),  # before the run: Fairlane's own
        (1002.1, "s1", first, "in", "h1", "h3", 6, 40000, 5201, 10, 10_000, 9_480),
        (1002.1, "s1", first, "in", "h1", "h3", 1, 0, 0, 6, 504, 336),
        (1002.2, "s1", first, "in", "h1", "h3", 6, 40000, 5201, 30, 30_000, 28_440),
        (1002.2, "s2", last, "out", "h1", "h3", 6, 40000, 5201, 25, 25_000, 23_700),
        (1002.2, "s2", last, "in", "h3", "h1", 6, 5201, 40000, 12, 600, 0),  # acknowledgements
        (1002.2, "s2", last + 7, "out", "h1", "h3", 6, 40000, 5201, 99, 99_000, 99_000),  # another port
        (1003.0, "s1", first, "in", "h1", "h3", 17, 9999, 9998, 5, 500, 360),  # nobody's ports: the one without ports
    )
    web, ping = found["web"], found["ping"]
    assert web.sent.times_s == pytest.approx([2.0, 2.1, 2.2]) and list(web.sent.packets) == [0, 10, 30]
    assert list(web.received.payload_bytes) == [0, 23_700]
    assert ping.sent.times_s == pytest.approx([2.0, 2.1, 2.9, 3.0]) and list(ping.sent.packets) == [0, 2, 2, 7]
    assert list(ping.received.packets) == [0]


def test_sums_go_on_where_a_switch_was_restarted(tmp_path: Path) -> None:
    experiment = load(tmp_path, IPERF)
    first = experiment.topology.ports()["h1"][0].peer_port
    row = (1002.1, "s1", first, "in", "h1", "h3", 6, 40000, 5201, 10, 10_000, 9_480)
    counted(tmp_path, experiment, row)
    (tmp_path / "s1.flows.csv").rename(tmp_path / "s1.2.flows.csv")
    found = counted(tmp_path, experiment, (1001.0, *row[1:]))
    assert list(found["web"].sent.packets) == [0, 10, 10, 20]


def test_lost_packets_are_those_that_never_come() -> None:
    missing = series.np.asarray([0.0, 5.0, 9.0, 7.0, 3.0, 12.0, 4.0])
    assert list(series._lost_by(missing)) == [0, 3, 3, 3, 3, 4, 4]


def test_a_record_has_what_switches_and_the_kernel_said(tmp_path: Path) -> None:
    experiment = load(tmp_path, IPERF)
    first, last = (next(p.peer_port for p in experiment.topology.ports()[host]) for host in ("h1", "h3"))
    found = counted(
        tmp_path,
        experiment,
        (1002.2, "s1", first, "in", "h1", "h3", 6, 40000, 5201, 10, 10_000, 9_480),
        (1004.2, "s1", first, "in", "h1", "h3", 6, 40000, 5201, 110, 110_000, 104_280),
        (1002.2, "s2", last, "out", "h1", "h3", 6, 40000, 5201, 10, 10_000, 9_480),
        (1004.2, "s2", last, "out", "h1", "h3", 6, 40000, 5201, 108, 108_000, 102_384),
    )
    records = [
        {"kind": "start", "t": 1002.13, "mono_s": 1.0, "role": "sender"},
        {"kind": "sockets", "t": 1002.5, "mono_s": 1.0, "connected": 2, "rtt_s": 0.05, "cwnd_bytes": 20_000, "retransmitted": 1},
        {"kind": "end", "t": 1004.63, "mono_s": 1.0, "exit_code": 0, "stopped": False},
    ]
    (tmp_path / "web.sender.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    record = series._command(tmp_path, experiment.flows[0], Timing(1000.0, 1010.0), found["web"])
    assert record.active == pytest.approx((2.13, 4.2)) and record.completion_s == pytest.approx(2.5)
    assert record.goodput.over(0, 10) == 102_384 and record.lost.over(0, 10) == 2 and record.sent.over(0, 10) == 110
    assert list(record.round_trips) == [(pytest.approx(2.5), 0.05)] and list(record.outstanding) == [(pytest.approx(2.5), 20_000)]
    records[-1]["stopped"] = True
    (tmp_path / "web.sender.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    assert math.isnan(series._command(tmp_path, experiment.flows[0], Timing(1000.0, 1010.0), found["web"]).completion_s)


# How a program runs and ends.


def run(tmp_path: Path, *argv: str, options: tuple[str, ...] = (), seconds: float = 1.0) -> tuple[int, list[dict[str, Any]], str, str]:
    """Exit code, records, output, and what the process itself said."""
    done = subprocess.run([*wrapped(tmp_path, seconds, options), *argv], capture_output=True, text=True, timeout=30)
    records = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    output = tmp_path / "out"
    return done.returncode, records, output.read_text() if output.exists() else "", done.stderr


def wrapped(tmp_path: Path, seconds: float, options: tuple[str, ...] = ()) -> list[str]:
    at = (
        "--start-at",
        "0",
        "--stop-at",
        f"{time.time() + seconds:.3f}",
        "--log",
        str(tmp_path / "log.jsonl"),
        "--output",
        str(tmp_path / "out"),
    )
    return [sys.executable, "-m", "fairlane.hosts.command", "--role", "sender", *at, *options, "--"]


@linux
def test_a_program_that_ends_by_itself(tmp_path: Path) -> None:
    code, records, output, _ = run(tmp_path, "sh", "-c", "echo out; echo err >&2; exit 3", options=("--exit-codes", "0,3"))
    assert code == 0 and output == "out\nerr\n"
    assert [r["kind"] for r in records] == ["start", "end"] and records[1]["exit_code"] == 3 and records[1]["stopped"] is False


@linux
def test_a_program_that_fails_is_said(tmp_path: Path) -> None:
    code, records, _, said = run(tmp_path, "sh", "-c", "exit 4")
    assert code == 1 and records[-1]["exit_code"] == 4 and "sh ended with code 4; its output is in out" in said
    code, records, _, said = run(tmp_path, str(tmp_path / "not-there"))
    assert code == 1 and records[-1]["exit_code"] is None and "No such file or directory" in said


@linux
@pytest.mark.parametrize("name", ["TERM", "INT"])
def test_a_program_is_stopped_by_its_signal(tmp_path: Path, name: str) -> None:
    code, records, output, _ = run(
        tmp_path, "sh", "-c", f"trap 'echo {name}; exit 9' {name}; sleep 20 & wait", options=("--stop-signal", name)
    )
    assert code == 0 and output == f"{name}\n" and records[-1]["stopped"] is True
    assert records[-1]["t"] - records[0]["t"] < 1.5


@linux
def test_a_program_that_does_not_listen_is_killed_with_its_children(tmp_path: Path) -> None:
    children = "trap '' TERM; sleep 321 & echo $!; while :; do sleep 0.1; done"
    code, records, output, _ = run(tmp_path, "sh", "-c", children, options=("--grace", "0.3"))
    assert code == 0 and records[-1]["exit_code"] == -signal.SIGKILL
    assert not Path(f"/proc/{output.split()[0]}/cmdline").exists() or not Path(f"/proc/{output.split()[0]}/cmdline").read_text()


@linux
def test_it_ends_with_its_program_when_it_is_asked_to(tmp_path: Path) -> None:
    process = subprocess.Popen([*wrapped(tmp_path, 60), "sh", "-c", "echo $$; exec sleep 300"])
    until(lambda: (tmp_path / "out").exists() and (tmp_path / "out").read_text())
    pid = int((tmp_path / "out").read_text())
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert json.loads((tmp_path / "log.jsonl").read_text().splitlines()[-1])["stopped"] is True


@linux
def test_output_has_a_bound(tmp_path: Path) -> None:
    code, _, output, _ = run(tmp_path, "sh", "-c", "head -c 20000000 /dev/zero | tr '\\0' x", seconds=10.0)
    assert code == 0 and len(output) == 16_000_000 + len("\n[more is left out]\n") and output.endswith("\n[more is left out]\n")


@linux
def test_its_sockets_are_recorded(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        program = f"import socket, time; c = socket.create_connection(('127.0.0.1', {listening.getsockname()[1]})); c.sendall(bytes(5000)); time.sleep(9)"
        process = subprocess.Popen([*wrapped(tmp_path, 1.0), sys.executable, "-c", program])
        with listening.accept()[0]:
            assert process.wait(10) == 0
    found = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    known = [r for r in found if r["kind"] == "sockets" and r["acked_bytes"] > 5000]
    assert known and known[0]["connected"] == 1 and 0 < known[0]["rtt_s"] < 0.1 and known[0]["cwnd_bytes"] > 0


# What the kernel says of sockets.


@linux
def test_the_kernel_and_ss_agree(tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()) as client,
        listening.accept()[0] as peer,
    ):
        client.sendall(bytes(10_000))
        left = 10_000
        while left:
            left -= len(peer.recv(left))
        sockets = TcpSockets()
        own = inodes_of(["self"])
        found = next(s for s in sockets.read() if s.local_port == client.getsockname()[1])
        assert found.inode in own and found.established and found.peer_port == listening.getsockname()[1]
        assert found.info.acked_bytes == 10_001 and found.info.retransmits == 0 and found.info.data_segments >= 1
        direct = TcpInfo.of(client)
        assert (direct.cwnd_bytes, direct.acked_bytes) == (found.info.cwnd_bytes, found.info.acked_bytes)
        shown = subprocess.run(["ss", "-tinHO", "sport", "=", f":{found.local_port}"], capture_output=True, text=True).stdout.split()
        if any(word.startswith("cwnd:") for word in shown):
            words = dict(word.split(":", 1) for word in shown if word.count(":") == 1)
            assert int(words["cwnd"]) * int(words["mss"]) == found.info.cwnd_bytes
            assert float(words["rtt"].split("/")[0]) / 1e3 == pytest.approx(found.info.rtt_s, abs=1e-6)
        sockets.close()


@given(st.binary(min_size=72, max_size=400))
def test_no_answer_of_the_kernel_is_a_fault(body: bytes) -> None:
    parse(body)


@linux
def test_descendants_are_of_all_generations() -> None:
    process = subprocess.Popen(["sh", "-c", "sh -c 'sleep 30 & wait' & wait"])
    try:
        until(lambda: len(descendants(str(process.pid))) >= 2)
        assert len(descendants(str(process.pid))) == 2 and str(process.pid) in descendants()
    finally:
        for pid in descendants(str(process.pid)):
            os.kill(int(pid), signal.SIGKILL)
        process.kill()
        process.wait()

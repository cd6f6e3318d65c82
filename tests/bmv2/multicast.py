"""Run inside a namespace of its own by test_multicast_kernel.py: two switches in a row, three hosts in namespaces of their own whose
kernels speak IGMPv2, the controller over gRPC.

    h0 - 2:s1:1 - 1:s2:2 - h2        h1 - 3:s1

Arguments: the switch's program, the BMv2 JSON, the P4Info. Prints one JSON object: who got what.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parent)]

from drive import compound, run
from fairlane.controller.config import Config, Igmp, Port, Route, Switch
from fairlane.controller.runner import Controller

GROUP = "239.1.0.1"
HOSTS = {"h0": ("s1", 2, "10.0.1.1"), "h1": ("s1", 3, "10.0.1.2"), "h2": ("s2", 2, "10.0.2.1")}
RATES = {("s1", 1): 3_000_000, ("s1", 2): 8_000_000, ("s1", 3): 4_000_000, ("s2", 1): 8_000_000, ("s2", 2): 2_000_000}
GRPC = {"s1": 9559, "s2": 9560}


class Host:
    """A process of host.py."""

    def __init__(self, name: str) -> None:
        self.name = name
        switch, port, ip = HOSTS[name]
        self.process = subprocess.Popen(
            ["unshare", "--net", sys.executable, str(Path(__file__).with_name("host.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        peer = f"{switch}-{port}"
        run("ip", "link", "add", peer, "type", "veth", "peer", "name", name)
        run("sysctl", "-q", "-w", f"net.ipv6.conf.{peer}.disable_ipv6=1")
        run("ip", "link", "set", peer, "up")
        deadline = time.monotonic() + 5
        own = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{self.process.pid}/ns/net") == own and time.monotonic() < deadline:
            time.sleep(0.01)
        run("ip", "link", "set", name, "netns", str(self.process.pid))
        self.do("setup", name, ip, mac(name), ip.rpartition(".")[0] + ".254", mac(peer))

    def do(self, *command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def mac(name: str) -> str:
    return f"02:00:00:00:00:{[*HOSTS, 's1-2', 's1-3', 's2-2'].index(name) + 1:02x}"


def configuration(bmv2_json: str, p4info: str, igmp: Igmp = Igmp()) -> Config:
    switches = []
    for i, name in enumerate(GRPC):
        ports = tuple(
            Port(n, rate, **({"peer": {"s1": "s2", "s2": "s1"}[name], "peer_port": 1} if n == 1 else {}))
            for (s, n), rate in RATES.items()
            if s == name
        )
        local = [Route(f"{ip}/32", port, mac(f"{name}-{port}"), mac(host)) for host, (s, port, ip) in HOSTS.items() if s == name]
        remote = [Route(f"{ip}/32", 1, "02:00:00:00:01:01", "02:00:00:00:01:02") for s, _, ip in HOSTS.values() if s != name]
        switches.append(Switch(name, i + 1, f"127.0.0.1:{GRPC[name]}", ports, (*local, *remote)))
    return Config(p4info, bmv2_json, tuple(switches), igmp=igmp)


class Control:
    """A controller in a thread, until `stop`."""

    def __init__(self, config: Config) -> None:
        self.controller = Controller.of(config, Path("control"))
        self.thread = threading.Thread(target=self.controller.run, daemon=True)
        self.thread.start()
        late = self.controller.wait_ready(20)
        assert not late, f"no answer from {late}"

    def stop(self) -> None:
        self.controller.stop()
        self.thread.join(10)


def rows() -> list[dict]:
    with open("control/memberships.csv", newline="") as file:
        return [{**row, "time_s": float(row["time_s"])} for row in csv.DictReader(file)]


def memberships() -> list[list[str]]:
    return [[row[key] for key in ("switch", "port", "group", "event", "host")] for row in rows()]


def until(condition, timeout_s: float = 5.0) -> float:
    """Wait; how long it took. It is an error when the time is over."""
    begin = time.monotonic()
    while not condition():
        if time.monotonic() - begin > timeout_s:
            raise TimeoutError(f"not within {timeout_s} s; memberships {memberships()}")
        time.sleep(0.002)
    return time.monotonic() - begin


def main(program: str, bmv2_json: str, p4info: str) -> None:
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "s1-1", "type", "veth", "peer", "name", "s2-1")
    for name in ("s1-1", "s2-1"):
        run("sysctl", "-q", "-w", f"net.ipv6.conf.{name}.disable_ipv6=1")
        run("ip", "link", "set", name, "up")
    hosts = {name: Host(name) for name in HOSTS}
    processes = []
    result: dict = {}
    try:
        for i, (name, grpc_port) in enumerate(GRPC.items()):
            interfaces = [x for s, port in RATES if s == name for x in ("-i", f"{port}@{s}-{port}")]
            log = open(f"{name}.log", "w")
            extra = ["--thrift-port", str(9090 + i)] if "simple_switch" in program else []
            processes.append(
                subprocess.Popen(
                    [
                        program,
                        "--no-p4",
                        "--device-id",
                        str(i + 1),
                        *interfaces,
                        *extra,
                        "--",
                        "--grpc-server-addr",
                        f"127.0.0.1:{grpc_port}",
                        "--cpu-port",
                        "510",
                    ],
                    stdout=log,
                    stderr=log,
                )
            )
            for _ in range(100):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", grpc_port)) == 0:
                        break
                time.sleep(0.1)
        control = Control(configuration(bmv2_json, p4info))

        def got(sender: str, *receivers: str) -> dict[str, list[int]]:
            """R_d of each packet that a host gets of one that `sender` sends: once these have theirs, and a while after that."""
            time.sleep(0.3)
            for host in hosts.values():
                host.do("take")
            hosts[sender].do("send", GROUP, compound(100_000_000, 0).hex())
            found: dict[str, list[int]] = {name: [] for name in hosts}

            def taken() -> bool:
                for name, host in hosts.items():
                    found[name] += [int(payload[-24:-8], 16) for _, payload in host.do("take")]
                return all(found[name] for name in receivers)

            with contextlib.suppress(TimeoutError):  # whoever compares sees which one has none
                until(taken)
            time.sleep(0.5)
            taken()
            return found

        result["nobody"] = got("h0")
        # One after the other: messages of two switches may overtake each other.
        hosts["h1"].do("join", GROUP)
        until(lambda: len(memberships()) == 1)
        hosts["h2"].do("join", GROUP)
        until(lambda: len(memberships()) == 2)
        result["two"] = got("h0", "h1", "h2")
        hosts["h0"].do("join", GROUP)
        until(lambda: len(memberships()) == 3)
        result["three"] = {name: got(name, *(other for other in HOSTS if other != name)) for name in HOSTS}

        # While h0 sends each few milliseconds: how long after a leave and a join does the stream end and begin?
        stop = threading.Event()

        def stream() -> None:
            while not stop.is_set():
                hosts["h0"].do("send", GROUP, compound(100_000_000, 0).hex())
                time.sleep(0.002)

        thread = threading.Thread(target=stream)
        thread.start()
        time.sleep(0.3)
        # Three times, since a busy machine is late now and then.
        leaves, joins = [], []
        for others in (3, 5, 7):
            left = time.time()
            hosts["h2"].do("leave", GROUP)
            until(lambda others=others: len(memberships()) == others + 1)
            leaves.append(rows()[-1]["time_s"] - left)
            time.sleep(0.5)
            hosts["h2"].do("take")
            arrived: list[list] = []
            joined = time.time()
            hosts["h2"].do("join", GROUP)
            until(lambda arrived=arrived: arrived.extend(hosts["h2"].do("take")) or arrived)
            joins.append(arrived[0][0] - joined)
            until(lambda others=others: len(memberships()) == others + 2)
        result["leave_s"], result["join_s"] = min(leaves), min(joins)
        stop.set()
        thread.join()
        hosts["h0"].do("leave", GROUP)
        until(lambda: len(memberships()) == 10)
        hosts["h2"].do("leave", GROUP)
        until(lambda: len(memberships()) == 11)
        result["one"] = got("h0", "h1")

        control.stop()
        result["alone"] = got("h0", "h1")
        control = Control(configuration(bmv2_json, p4info))
        until(lambda: len(memberships()) == 12)
        result["restarted"] = got("h0", "h1")
        hosts["h2"].do("join", GROUP)
        until(lambda: len(memberships()) == 13)
        result["joined again"] = got("h0", "h1", "h2")
        control.stop()

        # With queries: who answers stays, who cannot any more goes.
        control = Control(configuration(bmv2_json, p4info, Igmp(query_interval_s=1.0, query_response_s=0.5)))
        until(lambda: len(memberships()) == 15)
        time.sleep(4)
        result["answered"] = len(memberships())
        run("ip", "link", "set", "s2-2", "down")
        result["expired_s"] = until(lambda: len(memberships()) == 16, 10)
        result["expired"] = got("h0", "h1")
        control.stop()
    finally:
        for process in processes:
            process.terminate()
        for host in hosts.values():
            host.process.stdin.close()
        for process in [*processes, *(h.process for h in hosts.values())]:
            process.wait(10)
    print(json.dumps({**result, "memberships": memberships()}))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Mininet's prompt, with an `iperf` that ends: Mininet 2.3 waits for a line that iperf 2.1 does not print, and hangs."""

from __future__ import annotations

import json
import subprocess

from mininet.cli import CLI
from mininet.log import error, output

from fairlane import probes

_PORT = 5001
_SECONDS = 5
_PATIENCE_S = 20


class Prompt(CLI):
    """All of Mininet's commands."""

    def do_iperf(self, line: str) -> None:
        """TCP from one host to another for 5 s, by iperf3. Without hosts: from the first to the last.
        Usage: iperf node1 node2"""
        names = line.split() or [self.mn.hosts[0].name, self.mn.hosts[-1].name]
        unknown = [name for name in names if name not in [host.name for host in self.mn.hosts]]
        if len(names) != 2 or unknown:
            error(f"no host {unknown[0]}\n" if unknown else "give two hosts: iperf h1 h2\n")
            return
        iperf3 = probes.program("iperf3")
        if iperf3 is None:
            error("iperf needs iperf3: apt-get install iperf3\n")
            return
        client, server = (self.mn[name] for name in names)
        output(f"*** Iperf: TCP from {client.name} to {server.name}, {_SECONDS} s\n")
        listening = server.popen([str(iperf3), "-s", "-1", "-p", str(_PORT), "--forceflush"], stderr=subprocess.STDOUT, text=True)
        try:
            begun = ""
            while "listening" not in begun:
                heard = listening.stdout.readline()
                if not heard:
                    error(f"{server.name}: {begun.strip() or 'iperf3 ended'}\n")
                    return
                begun += heard
            command = [str(iperf3), "-c", server.IP(), "-p", str(_PORT), "-t", str(_SECONDS), "-J", "--connect-timeout", "5000"]
            sending = client.popen(command, text=True)
            try:
                report = json.loads(sending.communicate(timeout=_PATIENCE_S)[0])
            except subprocess.TimeoutExpired:
                error(f"no answer from {server.name} within {_PATIENCE_S} s\n")
                return
            finally:
                sending.kill()
        finally:
            listening.kill()
            listening.wait()
        if "error" in report:
            error(f"{client.name}: {report['error']}\n")
            return
        end = report["end"]
        sent, received = (end[key]["bits_per_second"] / 1e6 for key in ("sum_sent", "sum_received"))
        output(f"*** Results: sent {sent:.3g} Mbit/s, received {received:.3g} Mbit/s, congestion control {end['sender_tcp_congestion']}\n")

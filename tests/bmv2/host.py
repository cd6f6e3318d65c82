"""A host for multicast.py, in a network namespace of its own: commands as JSON on standard input, one answer each on standard output.

["setup", interface, ip, mac, gateway_ip, gateway_mac]   ["join", group]   ["leave", group]   ["send", group, hex payload]
["take"] gives what has arrived since the last time: [seconds, hex payload] each.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time

PORT = 5005
SO_NO_CHECK = 11  # asm/socket.h: UDP checksum 0
IP_OPTIONS = 4  # linux/in.h
ROUTER_ALERT = b"\x94\x04\0\0"


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


class Host:
    def setup(self, interface: str, ip: str, mac: str, gateway_ip: str, gateway_mac: str) -> None:
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "set", interface, "address", mac)
        run("sysctl", "-q", "-w", f"net.ipv6.conf.{interface}.disable_ipv6=1", f"net.ipv4.conf.{interface}.force_igmp_version=2")
        run("ip", "addr", "add", f"{ip}/24", "dev", interface)
        run("ip", "link", "set", interface, "up")
        run("ip", "neigh", "add", gateway_ip, "lladdr", gateway_mac, "dev", interface)
        run("ip", "route", "add", "default", "via", gateway_ip)
        self.ip = socket.inet_aton(ip)
        self.arrived: list[tuple[float, str]] = []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, self.ip)
        self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 16)
        self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
        self.socket.setsockopt(socket.IPPROTO_IP, IP_OPTIONS, ROUTER_ALERT)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_NO_CHECK, 1)
        self.socket.bind(("", PORT))
        threading.Thread(target=self._receive, daemon=True).start()

    def _receive(self) -> None:
        while True:
            payload = self.socket.recv(2000)
            self.arrived.append((time.time(), payload.hex()))

    def join(self, group: str) -> None:
        self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + self.ip)

    def leave(self, group: str) -> None:
        self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_DROP_MEMBERSHIP, socket.inet_aton(group) + self.ip)

    def send(self, group: str, payload: str) -> None:
        self.socket.sendto(bytes.fromhex(payload), (group, PORT))

    def take(self) -> list[tuple[float, str]]:
        taken, self.arrived = self.arrived, []
        return taken


host = Host()
for line in sys.stdin:
    name, *arguments = json.loads(line)
    print(json.dumps(getattr(host, name)(*arguments)), flush=True)

"""RACK-TLP of this machine's kernel: files of which a link loses chosen transmissions. Writes data/tail_loss.json, with which
switch/net/tcp/tests/rack.rs compares.

    sudo python -m tests.oracle.run_tail_loss       Linux, as root; two minutes

Two network namespaces, and between them a program that carries each frame 50 ms later and loses what a case names: the number of the segment,
and of its transmission, from 1 on. Segments carry 948 octets; the sender has Reno with SACK.
"""

from __future__ import annotations

import ctypes
import heapq
import json
import os
import select
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path

SEGMENTS, PAYLOAD, ONE_WAY_S, RUNS = 20, 948, 0.05, 5
NAMES = ("rka", "rkb")
ADDRESSES = ("10.9.0.1", "10.9.0.2")
CASES: dict[str, list[tuple[int, int]]] = {
    "none": [],
    "last": [(19, 1)],
    "last three": [(17, 1), (18, 1), (19, 1)],
    "last three, and the first retransmission": [(17, 1), (18, 1), (19, 1), (17, 2)],
    "last ten": [(n, 1) for n in range(10, 20)],
    "sixth": [(5, 1)],
    "sixth, and its retransmission": [(5, 1), (5, 2)],
}
NETNS = 0x40000000  # CLONE_NEWNET
OFFLOADS = "rx off tx off sg off tso off gso off gro off"


def shell(*commands: str) -> None:
    for command in commands:
        subprocess.run(command.split(), check=True, stdout=subprocess.DEVNULL)


def build() -> None:
    for name, address in zip(NAMES, ADDRESSES, strict=True):
        inside = f"ip netns exec {name}"
        shell(f"ip netns add {name}", f"ip link add {name}-link type veth peer name eth0 netns {name}", f"ip link set {name}-link up")
        shell(f"ethtool -K {name}-link {OFFLOADS}", f"{inside} ethtool -K eth0 {OFFLOADS}")
        shell(f"{inside} ip addr add {address}/24 dev eth0", f"{inside} ip link set eth0 up")
        shell(f"{inside} sysctl -w net.ipv4.tcp_no_metrics_save=1", f"{inside} sysctl -w net.ipv4.tcp_congestion_control=reno")
    for name, other, address in zip(NAMES, reversed(NAMES), reversed(ADDRESSES), strict=True):
        show = ["ip", "netns", "exec", other, "cat", "/sys/class/net/eth0/address"]
        shell(f"ip netns exec {name} ip neigh replace {address} lladdr {subprocess.check_output(show, text=True).strip()} dev eth0")


def remove() -> None:
    for name in NAMES:
        for what in (f"link del {name}-link", f"netns del {name}"):
            subprocess.run(["ip", *what.split()], stderr=subprocess.DEVNULL, check=False)


def enter(name: str) -> None:
    """Moves this thread into a namespace."""
    with open(f"/var/run/netns/{name}") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), NETNS) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Link(threading.Thread):
    """Carries TCP both ways. sent: (s after the SYN, segment) of each data segment that the sender sent."""

    def __init__(self, lost: list[tuple[int, int]]) -> None:
        super().__init__(daemon=True)
        self.lost, self.stop = lost, False
        self.sent: list[tuple[float, int]] = []
        self._began_s, self._isn = 0.0, 0
        self._ends = [socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) for _ in NAMES]
        for end, name in zip(self._ends, NAMES, strict=True):
            end.bind((f"{name}-link", 0))
            end.setblocking(False)

    def run(self) -> None:
        on_the_way: list[tuple[float, int, int, bytes]] = []
        count = 0
        while not self.stop:
            while on_the_way and on_the_way[0][0] <= time.monotonic():
                _, _, way, frame = heapq.heappop(on_the_way)
                self._ends[1 - way].send(frame)
            wait = on_the_way[0][0] - time.monotonic() if on_the_way else 0.01
            for end in select.select(self._ends, [], [], min(max(wait, 0.0), 0.01))[0]:
                frame, (_, _, direction, *_) = end.recvfrom(2000)
                way = self._ends.index(end)
                is_tcp = frame[12:14] == b"\x08\x00" and frame[23] == socket.IPPROTO_TCP
                if direction != socket.PACKET_OUTGOING and is_tcp and not (way == 0 and self._loses(frame)):
                    count += 1
                    heapq.heappush(on_the_way, (time.monotonic() + ONE_WAY_S, count, way, frame))
        for end in self._ends:
            end.close()

    def _loses(self, frame: bytes) -> bool:
        tcp = 14 + 4 * (frame[14] & 15)
        sequence, flags = struct.unpack("!I", frame[tcp + 4 : tcp + 8])[0], frame[tcp + 13]
        length = 14 + struct.unpack("!H", frame[16:18])[0] - tcp - 4 * (frame[tcp + 12] >> 4)
        if flags & 2:
            self._isn, self._began_s = sequence, time.monotonic()
        if length <= 0:
            return False
        segment = ((sequence - self._isn - 1) & 0xFFFFFFFF) // PAYLOAD
        self.sent.append((time.monotonic() - self._began_s, segment))
        return (segment, sum(number == segment for _, number in self.sent)) in self.lost


def transfer(lost: list[tuple[int, int]]) -> tuple[float, list[tuple[float, int]]]:
    """Seconds from the SYN to the arrival of the last octet, and what was sent."""
    link, listens, arrived = Link(lost), threading.Event(), [0.0]
    link.start()

    def receive() -> None:
        enter(NAMES[1])
        with socket.create_server((ADDRESSES[1], 5000)) as server:
            listens.set()
            connection, _ = server.accept()
            with connection:
                while connection.recv(65536):
                    arrived[0] = time.monotonic()

    def send() -> None:
        enter(NAMES[0])
        with socket.socket() as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, PAYLOAD + 12)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.connect((ADDRESSES[1], 5000))
            connection.sendall(bytes(SEGMENTS * PAYLOAD))
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)

    receiver, sender = threading.Thread(target=receive), threading.Thread(target=send)
    receiver.start()
    listens.wait(5)
    began = time.monotonic()
    sender.start()
    for thread in (sender, receiver):
        thread.join(30)
    link.stop = True
    link.join()
    return arrived[0] - began, link.sent


def main() -> None:
    remove()
    try:
        build()
        cases = []
        for name, lost in CASES.items():
            runs = sorted((transfer(lost) for _ in range(RUNS)), key=lambda run: run[0])
            sent = runs[RUNS // 2][1]
            again = [[round(s * 1000), number] for n, (s, number) in enumerate(sent) if number in [m for _, m in sent[:n]]]
            cases.append({"name": name, "lost": lost, "arrived_ms": [round(s * 1000) for s, _ in runs], "again_ms": again})
            print(json.dumps(cases[-1]), flush=True)
        text = json.dumps({"kernel": f"Linux {os.uname().release.split('-')[0]}", "cases": cases}, indent=1)
        (Path(__file__).parent / "data" / "tail_loss.json").write_text(text + "\n")
    finally:
        remove()


if __name__ == "__main__":
    main()

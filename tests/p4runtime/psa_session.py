"""A P4Runtime session with a switch that runs psa_switch.p4 on interfaces: run in the switch's namespace, with address, P4Info and JSON.

The other ends of ports 1 to 4 are `host1` to `host4`. It writes entries and a group, sends frames, and prints one line for each thing that
it has seen to work, as its test expects.
"""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from finsy.proto import p4r

from tests.p4runtime.support import Client, Names, Program, exact, number

ALL_PROTOCOLS = 3
PATIENCE_S = 5.0


class Hosts:
    """Raw sockets on the interfaces; a frame that a socket itself sends is not given back by its `receive`."""

    def __init__(self, ports: Iterable[int]) -> None:
        self._sockets = {}
        for port in ports:
            opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
            opened.bind((f"host{port}", ALL_PROTOCOLS))
            opened.settimeout(PATIENCE_S)
            self._sockets[port] = opened

    def send(self, port: int, frame: bytes) -> None:
        self._sockets[port].send(frame)

    def receive(self, port: int) -> bytes:
        while True:
            frame, address = self._sockets[port].recvfrom(2048)
            if address[2] != socket.PACKET_OUTGOING:
                return frame

    def silent(self, port: int, seconds: float = 0.2) -> bool:
        """Whether nothing comes within this time."""
        self._sockets[port].settimeout(seconds)
        try:
            self.receive(port)
        except TimeoutError:
            return True
        finally:
            self._sockets[port].settimeout(PATIENCE_S)
        return False


def frame(to: int, source: int, kind: int = 0x1234) -> bytes:
    return to.to_bytes(6, "big") + source.to_bytes(6, "big") + kind.to_bytes(2, "big") + b"psa"


def main(address: str, p4info: str, json: str) -> None:
    program = Program(Path(json), Path(p4info))
    hosts, names = Hosts((1, 2, 3, 4)), Names(program.info())
    with Client(address) as client:
        client.push(program.config())
        assert client.config().config.p4info.pkg_info.arch == "psa"
        print("pushed")

        client.insert(p4r.DigestEntry(digest_id=names["learn"], config=p4r.DigestEntry.Config(max_list_size=1)))
        target = p4r.TableEntry(table_id=names["forward"], match=[exact(1, 0xAA)], action=p4r.TableAction(action=names.action("send", 2)))
        known = p4r.TableEntry(table_id=names["sources"], match=[exact(1, 0x11)], action=p4r.TableAction(action=names.action("know")))
        client.insert(target, known)
        hosts.send(1, frame(0xAA, 0x11))
        assert hosts.receive(2) == frame(0xAA, 0x11)
        assert hosts.silent(3)
        hosts.send(1, frame(0xBB, 0x11))
        assert hosts.silent(2), "a frame without an entry is dropped"
        print("forwarded")

        replicas = [p4r.Replica(egress_port=port, instance=10 + port) for port in (3, 4)]
        client.insert(p4r.MulticastGroupEntry(multicast_group_id=7, replicas=replicas))
        flood = p4r.TableEntry(table_id=names["forward"], match=[exact(1, 0xFF)], action=p4r.TableAction(action=names.action("flood", 7)))
        client.insert(flood)
        hosts.send(1, frame(0xFF, 0x11))
        assert [hosts.receive(port) for port in (3, 4)] == [frame(0xFF, 0x11, instance) for instance in (13, 14)]
        print("replicated")

        hosts.send(2, frame(0xAA, 0x22))
        assert hosts.receive(2) == frame(0xAA, 0x22)
        stream = client.stream
        assert stream is not None
        digest = stream.receive("digest")
        (sample,) = digest.data
        assert [member.bitstring for member in sample.struct.members] == [number(0x22), number(2)], digest
        stream.send(digest_ack=p4r.DigestListAck(digest_id=digest.digest_id, list_id=digest.list_id))
        print("learnt")

        deadline = time.monotonic() + PATIENCE_S
        asked = p4r.DirectCounterEntry(table_entry=p4r.TableEntry(table_id=names["forward"], match=target.match))
        while (counted := client.read(asked)[0].data.packet_count) != 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert counted == 2, counted
        print("counted")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Run inside a namespace of its own by test_bmv2.py: a switch, two veth pairs, ALS packets in and out.

Arguments: the switch's program, the BMv2 JSON, the P4Info. Prints one JSON object.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from finsy.proto import p4r

from fairlane.controller.config import Config, Port, Route, Switch
from fairlane.controller.core import SwitchControl
from fairlane.controller.grpc_client import GrpcSwitch
from fairlane.controller.plane import calls
from fairlane.controller.plane.names import Names, counter_rows, digest_rows
from tests.waiting import until

ADDRESS = "127.0.0.1:9559"


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def frame(payload: bytes) -> bytes:
    """An ALS sender's control packet from 10.0.1.1 to 10.0.2.2: router alert, UDP checksum 0."""
    total = 24 + 8 + len(payload)
    header = bytearray(b"\x46\0" + total.to_bytes(2, "big") + b"\0\0\0\0\x40\x11\0\0" + bytes([10, 0, 1, 1, 10, 0, 2, 2]) + b"\x94\x04\0\0")
    words = sum(int.from_bytes(header[i : i + 2], "big") for i in range(0, 24, 2))
    words = (words & 0xFFFF) + (words >> 16)
    header[10:12] = (~(words + (words >> 16)) & 0xFFFF).to_bytes(2, "big")
    udp = (5005).to_bytes(2, "big") * 2 + (8 + len(payload)).to_bytes(2, "big") + b"\0\0"
    return b"\2\0\0\0\0\1\2\0\0\0\0\2\x08\0" + bytes(header) + udp + payload


def compound(rate_bps: int, utilisation_ppm: int) -> bytes:
    report = b"\x80\xc8\0\6" + (0x1111).to_bytes(4, "big") + bytes(20)
    description = b"\x81\xca\0\3" + (0x1111).to_bytes(4, "big") + b"\1\4h1h1\0\0"
    app = b"\x80\xcc\0\5" + (0x1111).to_bytes(4, "big") + b"ALSF" + rate_bps.to_bytes(8, "big") + utilisation_ppm.to_bytes(4, "big")
    return report + description + app


def main(program: str, bmv2_json: str, p4info_path: str) -> None:
    run("ip", "link", "set", "lo", "up")
    for i in (1, 2):
        run("ip", "link", "add", f"sw{i}", "type", "veth", "peer", "name", f"host{i}")
        for name in (f"sw{i}", f"host{i}"):
            run("sysctl", "-q", "-w", f"net.ipv6.conf.{name}.disable_ipv6=1")
            run("ip", "link", "set", name, "up")
    log = open("switch.log", "w")
    switch = subprocess.Popen(
        [program, "--no-p4", "--device-id", "1", "-i", "1@sw1", "-i", "2@sw2", "--", "--grpc-server-addr", ADDRESS, "--cpu-port", "510"],
        stdout=log,
        stderr=log,
    )
    try:
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", 9559)) == 0:
                    break
            time.sleep(0.1)
        ports = (Port(1, 10_000_000), Port(2, 10_000_000))
        route = Route("10.0.2.2/32", 2, "02:00:00:00:00:21", "02:00:00:00:00:22")
        description = Switch("s1", 1, ADDRESS, ports, (route,))
        names = Names.read(Path(p4info_path))
        control = SwitchControl(description, names, Config(p4info_path, bmv2_json, (description,)))
        digests: list = []

        def on_message(message) -> None:
            if message.HasField("digest"):
                digests.append(len(message.digest.data))
                _, members = names.digest_members(message.digest.digest_id)
                control.on_connections(members, digest_rows(message.digest))
                ack = p4r.DigestListAck(digest_id=message.digest.digest_id, list_id=message.digest.list_id)
                client.send(p4r.StreamMessageRequest(digest_ack=ack))

        client = GrpcSwitch("s1", ADDRESS, 1, 1, on_message=on_message, on_closed=print, timeout_s=5.0)
        client.connect()
        client.push_pipeline(names.message, Path(bmv2_json), 7)
        # What a control plane's calls send, carried out at once; of readings, `answers` has the answer.
        answers: list = []

        def carry(number: int, kind: str, request, call) -> None:
            if kind == "cells":
                call.answer(counter_rows(client.read(request.request.entities)))
                answers.append(call._answers[0])
            else:
                client.write((request.message() if isinstance(request, calls.Rewritten) else request).updates)

        on = calls.Switch(0, "s1", {}, {}, names, carry)
        digest = names.digest_config(names.digests["connection_t"])
        client.write([p4r.Update(type=p4r.Update.INSERT, entity=digest)])
        for entry in control.entries():
            on.table(entry.table).insert(entry.keys, entry.action, entry.values)
        on.rewrites(control.epoch_entries(), default=True).write(control.begin(5))

        # Of protocol 0 until they are bound: else they would take what passes on any interface meanwhile.
        sender, receiver = (socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) for _ in range(2))
        sender.bind(("host1", 3))
        receiver.bind(("host2", 3))
        receiver.settimeout(5.0)
        sender.send(frame(compound(100_000_000, 0)))
        received = receiver.recv(2000)
        until(lambda: digests, limit_s=10.0)
        on.cells(control.cells()).read()
        control.on_counters(1.0, answers[0])
        records = control.finish(2.0, 5)
        entries = control.kept(als=True)
        on.rewrites(entries).write(entry.values for entry in entries)
        sender.send(frame(compound(100_000_000, 0)))
        again = receiver.recv(2000)
        client.close()
    finally:
        switch.terminate()
        switch.wait(10)
    print(
        json.dumps(
            {
                "first": received.hex(),
                "second": again.hex(),
                "sent": frame(compound(100_000_000, 0)).hex(),
                "digests": digests,
                "records": [[r.port, r.connections, r.transmitted_packets, r.fair_rate_bps] for r in records],
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])

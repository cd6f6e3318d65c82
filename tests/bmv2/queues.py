"""Run inside a namespace of its own by test_bmv2_target.py: a burst into a slow port of BMv2, whose queue is set and watched over Thrift.

Arguments: the switch's program, the BMv2 JSON, the P4Info. Prints one JSON object.
"""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from finsy.proto import p4r

from fairlane.controller.config import Config, Port, Route, Switch
from fairlane.controller.core import SwitchControl
from fairlane.controller.grpc_client import GrpcSwitch, SwitchError
from fairlane.controller.plane.names import Names
from fairlane.fabrics import bmv2_ports
from fairlane.fabrics.bmv2_ports import PacketSizes
from fairlane.fabrics.bmv2_stats import Sampler
from fairlane.fabrics.bmv2_thrift import Bmv2Error, Bmv2Thrift
from fairlane.fabrics.switch_process import PortSetting, SwitchSettings, bmv2_command
from tests.bmv2.drive import frame, run

SO_TIMESTAMPNS = 35  # asm-generic/socket.h
# 25 packets/s of 1000 bytes on the link, 20 of them waiting.
SIZES = PacketSizes(986, 986)
RATE_BPS, QUEUE, BURST = 200_000, 20, 60


def refusal(call) -> str:
    try:
        call()
    except (Bmv2Error, SwitchError) as error:
        return f"{type(error).__name__}: {error}"
    return "no refusal"


def main(program: str, bmv2_json: str, p4info_path: str) -> None:
    run("ip", "link", "set", "lo", "up")
    for i in (1, 2):
        run("ip", "link", "add", f"sw{i}", "type", "veth", "peer", "name", f"host{i}")
        for name in (f"sw{i}", f"host{i}"):
            run("sysctl", "-q", "-w", f"net.ipv6.conf.{name}.disable_ipv6=1")
            run("ip", "link", "set", name, "up")
    ports = (PortSetting(1, "sw1", 1e9, 1000, 0.0), PortSetting(2, "sw2", RATE_BPS, QUEUE, 0.0))
    settings = SwitchSettings("s1", 1, 9559, ports, Path("s1.log"), Path("s1.csv"))
    result: dict = {"unanswered": refusal(lambda: Bmv2Thrift(settings.thrift_port))}
    with settings.log.open("w") as log:
        switch = subprocess.Popen(bmv2_command(Path(program), settings), stdout=log, stderr=log)
    try:
        bmv2_ports.apply(ports, settings.thrift_port, SIZES)
        thrift = Bmv2Thrift.connect(settings.thrift_port)
        result["no program"] = refusal(lambda: thrift.registers("red_queue"))
        told = (Port(1, 1_000_000_000), Port(2, RATE_BPS))
        description = Switch("s1", 1, settings.address, told, (Route("10.0.2.2/32", 2, "02:00:00:00:00:21", "02:00:00:00:00:22"),))
        p4info = Names.read(Path(p4info_path))
        control = SwitchControl(description, p4info, Config(p4info_path, bmv2_json, (description,)))
        client = GrpcSwitch("s1", settings.address, 1, 1, on_message=lambda _: None, on_closed=lambda _: None, timeout_s=10.0)
        client.connect()
        client.push_pipeline(p4info.message, Path(bmv2_json), 1)
        entries = [p4info.entry(e.table, e.keys, e.action, e.values) for e in control.entries()]
        client.write(p4r.Update(type=p4r.Update.INSERT, entity=p4r.Entity(table_entry=entry)) for entry in entries)
        sampler = Sampler([settings], interval_s=0.02)
        sampler.start()
        while not settings.stats.exists() or settings.stats.read_text().count("\n") < 3:
            time.sleep(0.01)

        sender, receiver = (socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) for _ in range(2))
        sender.bind(("host1", 3))
        receiver.bind(("host2", 3))
        receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        receiver.settimeout(1.0)
        data = frame(bytes(1000 - 14 - 24 - 8))
        arrivals = []
        for _ in range(BURST):
            sender.send(data)
        while True:
            try:
                _, ancillary, _, _ = receiver.recvmsg(2000, 64)
            except TimeoutError:
                break
            # When the kernel had it, not when this process came to read it.
            arrivals.append(sum(struct.unpack("qq", ancillary[0][2])[i] * scale for i, scale in enumerate((1.0, 1e-9))))
        sampler.stop()
        entry = p4r.RegisterEntry(register_id=next(r.preamble.id for r in p4info.message.registers if r.preamble.name == "red_queue"))
        entry.index.index = 2
        result["over p4runtime"] = refusal(lambda: client.read([p4r.Entity(register_entry=entry)]))
        thrift.set_register("red_queue", 7, 41)
        result |= {
            "arrivals": arrivals,
            "rows": [line.split(",") for line in settings.stats.read_text().splitlines()],
            "register": [thrift.register("red_queue", 7), thrift.registers("red_queue")[5:9]],
            "no register": refusal(lambda: thrift.registers("blue_queue")),
            "no index": refusal(lambda: thrift.register("red_queue", 512)),
        }
        client.close()
        thrift.close()
    finally:
        switch.terminate()
        switch.wait(10)
    result["gone"] = refusal(lambda: Bmv2Thrift(settings.thrift_port))
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])

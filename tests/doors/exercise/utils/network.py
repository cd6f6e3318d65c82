"""network.py SWITCH PROGRAM.json P4INFO: two hosts, a switch that is started with the options of the P4 tutorials, its entries over P4Runtime, and
Mininet's prompt. It imports what their utils import, and nothing of Fairlane's."""

import os
import queue
import sys
import time

import grpc
from google.protobuf import text_format
from google.rpc import code_pb2, status_pb2  # noqa: F401  (their utils read errors by them)
from mininet.cli import CLI
from mininet.link import TCLink
from mininet.net import Mininet
from mininet.node import Host, Switch
from mininet.topo import Topo
from p4.config.v1 import p4info_pb2
from p4.tmp import p4config_pb2
from p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc

GRPC, THRIFT = 50051, 9090


class P4Switch(Switch):
    def __init__(self, name, program=None, json=None, **options):
        Switch.__init__(self, name, **options)
        self.program, self.json = program, json

    def start(self, controllers):
        words = [self.program]
        for port, interface in self.intfs.items():
            if not interface.IP():
                words += ["-i", f"{port}@{interface.name}"]
        words += ["--pcap pcaps", "--nanolog", "ipc:///tmp/bm-0-log.ipc", "--device-id", "0", self.json, "--log-console"]
        words += [f"--thrift-port {THRIFT}", "--", f"--grpc-server-addr 0.0.0.0:{GRPC}"]
        self.cmd(" ".join(words) + f" >logs/{self.name}.log 2>&1 &")

    def stop(self):
        self.cmd("kill %" + self.program)
        self.cmd("wait")
        self.deleteIntfs()


class QuietHost(Host):
    def config(self, **parameters):
        super().config(**parameters)
        for kind in ("rx", "tx", "sg"):
            self.cmd(f"/sbin/ethtool --offload {self.defaultIntf()} {kind} off")


def program(json_file, info_file, macs):
    """How many entries were written, and how many are read."""
    with open(info_file) as file:
        info = text_format.Parse(file.read(), p4info_pb2.P4Info())
    with open(json_file, "rb") as file:
        device = p4config_pb2.P4DeviceConfig(reassign=True, device_data=file.read())
    stub = p4runtime_pb2_grpc.P4RuntimeStub(grpc.insecure_channel(f"127.0.0.1:{GRPC}"))
    said = queue.Queue()
    first = p4runtime_pb2.StreamMessageRequest()
    first.arbitration.election_id.low = 1
    said.put(first)
    stream = stub.StreamChannel(iter(said.get, None))
    assert next(stream).arbitration.status.code == code_pb2.OK
    push = p4runtime_pb2.SetForwardingPipelineConfigRequest(action=p4runtime_pb2.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT)
    push.election_id.low = 1
    push.config.p4info.CopyFrom(info)
    push.config.p4_device_config = device.SerializeToString()
    stub.SetForwardingPipelineConfig(push)
    table = info.tables[0].preamble.id
    action = next(a for a in info.actions if a.preamble.alias == "to_port").preamble.id
    for port, mac in enumerate(macs, start=1):
        write = p4runtime_pb2.WriteRequest()
        write.election_id.low = 1
        entry = write.updates.add(type=p4runtime_pb2.Update.INSERT).entity.table_entry
        entry.table_id = table
        entry.match.add(field_id=1).exact.value = bytes.fromhex(mac.replace(":", ""))
        entry.action.action.action_id = action
        entry.action.action.params.add(param_id=1, value=port.to_bytes(2, "big"))
        stub.Write(write)
    group = p4runtime_pb2.WriteRequest()
    group.election_id.low = 1
    all_ports = group.updates.add(type=p4runtime_pb2.Update.INSERT).entity.packet_replication_engine_entry.multicast_group_entry
    all_ports.multicast_group_id = 1
    for port in range(1, len(macs) + 1):
        all_ports.replicas.add(egress_port=port, instance=1)
    stub.Write(group)
    read = p4runtime_pb2.ReadRequest()
    read.entities.add().table_entry.table_id = table
    found = sum(len(answer.entities) for answer in stub.Read(read))
    said.put(None)
    return len(macs), found


def main(switch, json_file, info_file):
    macs = ["08:00:00:00:01:11", "08:00:00:00:02:22"]
    topology = Topo()
    topology.addSwitch("s1", cls=P4Switch, program=switch, json=json_file)
    for number, mac in enumerate(macs, start=1):
        topology.addHost(f"h{number}", ip=f"10.0.0.{number}/24", mac=mac)
        topology.addLink(f"h{number}", "s1", port2=number, delay="0ms", bw=None)
    net = Mininet(topo=topology, link=TCLink, host=QuietHost, controller=None)
    net.start()
    time.sleep(2)
    print("s1: {} entries written, {} read".format(*program(json_file, info_file, macs)), flush=True)
    CLI(net)
    net.stop()


if __name__ == "__main__":
    os.makedirs("logs", exist_ok=True)
    main(*sys.argv[1:])

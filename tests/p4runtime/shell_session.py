"""A session of the unmodified p4runtime-shell with a switch: run by .venv-shell's Python, with address, P4Info and JSON.

Prints one line for each thing it has seen to work, as its test expects.
"""

import sys
import threading

import p4runtime_sh.shell as sh
from p4runtime_sh.p4runtime import P4RuntimeException, P4RuntimeWriteException

CPU_PORT = 510


def frame(source: int, target: int, payload: bytes = b"shell") -> bytes:
    return target.to_bytes(6, "big") + source.to_bytes(6, "big") + b"\x12\x34" + payload


def tables() -> None:
    entry = sh.TableEntry("EntitiesIngress.l2")(action="l2_forward")
    entry.match["hdr.ethernet.dst"] = "00:00:00:00:00:aa"
    entry.action["port"] = str(CPU_PORT)
    entry.metadata = b"cookie"
    entry.insert()
    (read,) = list(sh.TableEntry("EntitiesIngress.l2").read())
    assert read.match["hdr.ethernet.dst"].exact.value == b"\xaa", read
    assert read.action["port"].value == CPU_PORT.to_bytes(2, "big"), read
    assert read.metadata == b"cookie"
    try:
        entry.insert()
    except P4RuntimeWriteException as error:
        assert "ALREADY_EXISTS" in str(error), error
    else:
        raise AssertionError("the same entry was inserted twice")

    acl = sh.TableEntry("acl")(action="EntitiesIngress.drop")
    acl.match["hdr.ipv4.src"] = "10.0.0.0&&&255.0.0.0"
    acl.match["hdr.ipv4.ttl"] = "0..5"
    acl.match["hdr.ipv4.protocol"] = "17"
    acl.match["meta.port"] = "3"
    acl.priority = 10
    acl.insert()
    assert sum(1 for _ in sh.TableEntry("acl").read()) == 1
    acl.delete()
    route = sh.TableEntry("routes")(action="forward")
    route.match["hdr.ipv4.dst"] = "10.1.0.0/16"
    route.action["port"] = "1"
    route.insert()
    route.action["port"] = "2"
    route.modify()
    default = sh.TableEntry("routes")(action="EntitiesIngress.drop", is_default=True)
    default.modify()
    assert sum(1 for _ in sh.TableEntry("routes").read()) == 1
    print("tables")


def profiles() -> None:
    for number in (1, 2):
        member = sh.ActionProfileMember("spread")(member_id=number, action="set_nexthop")
        member.action["nexthop"] = str(number)
        member.action["port"] = str(number)
        member.insert()
    group = sh.ActionProfileGroup("spread")(group_id=1)
    group.add(1, 1).add(2, 2)
    group.insert()
    entry = sh.TableEntry("balance")
    entry.match["hdr.ipv4.dst"] = "10.0.0.0/8"
    entry.group_id = 1
    entry.insert()
    assert sum(1 for _ in sh.ActionProfileMember("spread").read()) == 2
    print("profiles")


def replication() -> None:
    group = sh.MulticastGroupEntry(5)
    group.add(1, 1).add(2, 1)
    group.insert()
    (read,) = list(sh.MulticastGroupEntry(5).read())
    assert sorted(replica.egress_port for replica in read.replicas) == [1, 2]
    session = sh.CloneSessionEntry(9)
    session.add(3, 1)
    session.packet_length_bytes = 100
    session.insert()
    (read,) = list(sh.CloneSessionEntry(9).read())
    assert read.packet_length_bytes == 100
    session.delete()
    print("replication")


def packets() -> None:
    received = []
    packet_in = sh.PacketIn()
    digests = sh.DigestList()
    digest = sh.DigestEntry("learned_t")
    digest.max_list_size = 1
    digest.max_timeout_ns = 1_000_000
    digest.ack_timeout_ns = 1_000_000_000
    digest.insert()
    sniffer = threading.Thread(target=lambda: received.extend(packet_in.sniff(timeout=2)))
    sniffer.start()
    packet = sh.PacketOut(payload=frame(0x77, 0xAA))
    packet.metadata["port"] = "3"
    packet.metadata["submit_to_ingress"] = "1"
    packet.metadata["padding"] = "0"
    packet.send()
    lists = list(digests.sniff(timeout=2))
    sniffer.join()
    assert [message.packet.payload for message in received] == [frame(0x77, 0xAA)], received
    assert {item.metadata_id: item.value for item in received[0].packet.metadata}[1] == b"\3"
    assert [message.digest.data[0].struct.members[0].bitstring for message in lists] == [b"\x77"], lists
    print("packets")


def counters() -> None:
    (read,) = list(sh.CounterEntry("port_packets")(index=3).read())
    assert read.packet_count == 1, read
    assert sum(1 for _ in sh.CounterEntry("port_packets").read()) == 8
    direct = sh.DirectCounterEntry("l2_counter")
    direct.table_entry.match["hdr.ethernet.dst"] = "00:00:00:00:00:aa"
    (read,) = list(direct.read())
    assert read.packet_count == 1, read
    meter = sh.MeterEntry("port_meter")(index=1)
    meter.cir, meter.cburst, meter.pir, meter.pburst = 1, 2, 3, 4
    meter.modify()
    (read,) = list(meter.read())
    assert (read.cir, read.cburst, read.pir, read.pburst) == (1, 2, 3, 4), read
    print("counters")


def another_client(address: str) -> None:
    primary = sh.client
    sh.client = None
    try:
        sh.setup(device_id=1, grpc_addr=address, election_id=(0, 1), verbose=False)
    except SystemExit:
        pass
    else:
        entry = sh.TableEntry("routes")(action="forward")
        entry.match["hdr.ipv4.dst"] = "10.2.0.0/16"
        entry.action["port"] = "1"
        try:
            entry.insert()
        except (P4RuntimeException, P4RuntimeWriteException, Exception) as error:  # noqa: BLE001 - the shell's versions raise different ones
            assert "PERMISSION_DENIED" in str(error), error
        else:
            raise AssertionError("a backup wrote")
        sh.teardown()
    sh.client = primary
    print("backup refused")


def main() -> None:
    address, p4info, json = sys.argv[1:]
    sh.setup(device_id=1, grpc_addr=address, election_id=(0, 10), config=sh.FwdPipeConfig(p4info, json), verbose=False)
    print(f"version {sh.APIVersion()}")
    tables()
    profiles()
    replication()
    packets()
    counters()
    another_client(address)
    sh.teardown()


main()

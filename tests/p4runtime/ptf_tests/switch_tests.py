"""Packets in, packets out: what a controller writes over P4Runtime, seen on the wire. Run by ptf (tests/p4runtime/test_p4runtime_ptf.py).

The program is ../entities.p4. Ports 1 to 4 have interfaces; a packet that nothing forwards leaves by port 0, which has none.
"""

import time

import grpc
import ptf
import ptf.testutils as tu
from ptf.base_tests import BaseTest
from ptf_controller import DELETE, INSERT, MODIFY, Controller, number, p4r

DST = "00:00:00:00:00:aa"
DST_NUMBER = 0xAA
IP = lambda text: int.from_bytes(bytes(map(int, text.split("."))), "big")
# Runs of ptf on one switch: each test's controller takes over from the one before.
ELECTION_IDS = iter(range(int(time.time()) << 8, 1 << 62))


class SwitchTest(BaseTest):
    """A primary on a switch that is fresh from its program."""

    def setUp(self):
        BaseTest.setUp(self)
        self.dataplane = ptf.dataplane_instance
        self.controllers = []
        self.p4 = self.controller()
        self.assertEqual(self.p4.arbitrate(), 0)
        self.p4.push(tu.test_param_get("config"))
        self.dataplane.flush()

    def tearDown(self):
        for controller in self.controllers:
            controller.close()
        BaseTest.tearDown(self)

    def controller(self):
        controller = Controller(tu.test_param_get("grpcaddr"), tu.test_param_get("p4info"), next(ELECTION_IDS))
        self.controllers.append(controller)
        return controller

    def l2(self, port, dst=DST_NUMBER, **more):
        self.p4.insert("l2", [(1, "exact", dst)], self.p4.action("l2_forward", port), **more)

    def route(self, prefix, length, port):
        self.p4.insert("routes", [(1, "lpm", IP(prefix), length)], self.p4.action("forward", port))

    def sent(self, packet, *ports, port=1):
        """Sent into a port, the packet comes out of these ports, and of no others."""
        tu.send_packet(self, port, packet)
        tu.verify_packets(self, packet, list(ports))


def udp(src="10.0.0.1", dst="10.1.2.3", ttl=64, tos=0, **more):
    return tu.simple_udp_packet(eth_dst=DST, ip_src=src, ip_dst=dst, ip_ttl=ttl, ip_tos=tos, **more)


class ExactEntries(SwitchTest):
    def runTest(self):
        packet = tu.simple_eth_packet(eth_dst=DST, eth_type=0x1234)
        self.sent(packet)
        self.l2(2)
        self.sent(packet, 2)
        key = [(1, "exact", DST_NUMBER)]
        self.p4.write(MODIFY, table_entry=self.p4.entry("l2", key, self.p4.action("l2_forward", 3)))
        self.sent(packet, 3)
        self.p4.write(DELETE, table_entry=self.p4.entry("l2", key))
        self.sent(packet)


class LongestPrefix(SwitchTest):
    def runTest(self):
        self.route("10.0.0.0", 8, 2)
        self.route("10.1.0.0", 16, 3)
        self.route("10.1.2.3", 32, 4)
        self.sent(udp(dst="10.9.9.9"), 2)
        self.sent(udp(dst="10.1.9.9"), 3)
        self.sent(udp(dst="10.1.2.3"), 4)
        self.sent(udp(dst="11.1.2.3"))


class DefaultEntry(SwitchTest):
    def runTest(self):
        packet = udp()
        default = self.p4.entry("routes", (), self.p4.action("forward", 4), is_default_action=True)
        self.p4.write(MODIFY, table_entry=default)
        self.sent(packet, 4)
        self.p4.write(MODIFY, table_entry=self.p4.entry("routes", (), None, is_default_action=True))
        self.sent(packet)


class TernaryRangeOptional(SwitchTest):
    """The higher priority wins; a range, an optional field and a mask decide who is in."""

    def runTest(self):
        here = (4, "exact", 1)
        self.p4.insert("acl", [here, (1, "ternary", IP("10.0.0.0"), IP("255.0.0.0"))], self.p4.action("forward", 2), priority=1)
        self.p4.insert("acl", [here, (2, "range", 0, 9)], self.p4.action("forward", 3), priority=2)
        self.p4.insert("acl", [here, (3, "optional", 6)], self.p4.action("forward", 4), priority=3)
        self.sent(udp(ttl=64), 2)
        self.sent(udp(ttl=9), 3)
        self.sent(udp(ttl=10), 2)
        self.sent(tu.simple_tcp_packet(eth_dst=DST, ip_src="10.0.0.1", ip_ttl=5), 4)
        self.sent(udp(src="11.0.0.1"))
        self.sent(udp(ttl=9), port=2)


class ConstantEntries(SwitchTest):
    def runTest(self):
        self.sent(udp(tos=0xB8), 2)
        self.sent(udp(tos=0x14), 1)
        (const, *_) = self.p4.read(table_entry=self.p4.entry("classes"))
        with self.assertRaises(grpc.RpcError):
            self.p4.write(DELETE, table_entry=const)
        self.sent(udp(tos=0xB8), 2)


class ValueSet(SwitchTest):
    """The parser takes the frames of another EtherType for IPv4 while a member says so."""

    def runTest(self):
        self.route("10.0.0.0", 8, 2)
        packet = udp()
        packet["Ether"].type = 0x88B5
        self.sent(packet)
        member = p4r.ValueSetMember(match=[p4r.FieldMatch(field_id=1, exact=p4r.FieldMatch.Exact(value=b"\x88\xb5"))])
        self.p4.write(MODIFY, value_set_entry=p4r.ValueSetEntry(value_set_id=self.p4.ids["ip_like"], members=[member]))
        self.sent(packet, 2)


class MulticastGroup(SwitchTest):
    def runTest(self):
        self.group(INSERT, 2, 3, 4)
        self.p4.insert("routes", [(1, "lpm", IP("239.0.0.0"), 8)], self.p4.action("multicast", 7))
        packet = udp(dst="239.1.1.1")
        self.sent(packet, 2, 3, 4)
        self.group(MODIFY, 4)
        self.sent(packet, 4)
        self.group(DELETE)
        self.sent(packet)

    def group(self, kind, *ports):
        replicas = [p4r.Replica(egress_port=port, instance=1) for port in ports]
        group = p4r.MulticastGroupEntry(multicast_group_id=7, replicas=replicas)
        self.p4.write(kind, packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(multicast_group_entry=group))


class CloneSession(SwitchTest):
    """The original to one port, a copy cut to 60 bytes to another."""

    def runTest(self):
        self.l2(2)
        replicas = [p4r.Replica(egress_port=4, instance=1)]
        session = p4r.CloneSessionEntry(session_id=9, replicas=replicas, packet_length_bytes=60)
        self.p4.write(INSERT, packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(clone_session_entry=session))
        self.p4.insert("acl", [(4, "exact", 1)], self.p4.action("mirror", 9), priority=1)
        packet = udp(pktlen=200)
        tu.send_packet(self, 1, packet)
        tu.verify_packet(self, packet, 2)
        tu.verify_packet(self, bytes(packet)[:60], 4)
        tu.verify_no_other_packets(self)


class Selector(SwitchTest):
    """Flows spread over a group's members, each always over the same; members come and go."""

    FLOWS = [f"10.0.{i}.{7 * i % 251}" for i in range(30)]

    def runTest(self):
        for port in (2, 3):
            member = p4r.ActionProfileMember(
                action_profile_id=self.p4.ids["spread"], member_id=port, action=self.p4.action("set_nexthop", port, port)
            )
            self.p4.write(INSERT, action_profile_member=member)
        self.group(INSERT, {2: 1, 3: 1})
        self.p4.insert("balance", [(1, "lpm", IP("10.1.0.0"), 16)], p4r.TableAction(action_profile_group_id=5))
        first = [self.port_of(src) for src in self.FLOWS]
        self.assertEqual(set(first), {2, 3})
        self.assertEqual([self.port_of(src) for src in self.FLOWS], first)
        self.group(MODIFY, {3: 1})
        self.assertEqual({self.port_of(src) for src in self.FLOWS}, {3})
        entry = self.p4.entry("balance", [(1, "lpm", IP("10.1.0.0"), 16)], p4r.TableAction(action_profile_member_id=2))
        self.p4.write(MODIFY, table_entry=entry)
        self.assertEqual({self.port_of(src) for src in self.FLOWS}, {2})
        tu.verify_no_other_packets(self)

    def group(self, kind, weights):
        members = [p4r.ActionProfileGroup.Member(member_id=m, weight=w) for m, w in weights.items()]
        group = p4r.ActionProfileGroup(action_profile_id=self.p4.ids["spread"], group_id=5, members=members)
        self.p4.write(kind, action_profile_group=group)

    def port_of(self, src):
        packet = udp(src=src)
        tu.send_packet(self, 1, packet)
        result = tu.dp_poll(self, exp_pkt=packet)
        self.assertIsInstance(result, self.dataplane.PollSuccess, result.format())
        return result.port


class OneShotSelector(Selector):
    """The same with the actions in the entry itself."""

    def runTest(self):
        self.p4.insert("balance", [(1, "lpm", IP("10.1.0.0"), 16)], self.one_shot({3: 1, 4: 3}))
        found = [self.port_of(src) for src in self.FLOWS]
        self.assertEqual(set(found), {3, 4})
        self.assertGreater(found.count(4), found.count(3))

    def one_shot(self, weights):
        actions = [
            p4r.ActionProfileAction(action=self.p4.action("set_nexthop", port, port), weight=weight) for port, weight in weights.items()
        ]
        return p4r.TableAction(action_profile_action_set=p4r.ActionProfileActionSet(action_profile_actions=actions))


class ProfileMember(SwitchTest):
    """A member without selector rewrites what the constant entries sent to its next hop; a new action of it counts at once."""

    def runTest(self):
        member = p4r.ActionProfileMember(
            action_profile_id=self.p4.ids["rewrites"], member_id=1, action=self.p4.action("rewrite", 0x0A0B0C0D0E0F, 0x020202020202)
        )
        self.p4.write(INSERT, action_profile_member=member)
        self.p4.insert("rewrite_table", [(1, "exact", 2)], p4r.TableAction(action_profile_member_id=1))
        packet = udp(tos=0xB8)
        expected = packet.copy()
        expected["Ether"].dst, expected["Ether"].src = "0a:0b:0c:0d:0e:0f", "02:02:02:02:02:02"
        tu.send_packet(self, 1, packet)
        tu.verify_packets(self, expected, [2])
        member.action.CopyFrom(self.p4.action("rewrite", 0x0A0B0C0D0E10, 0x020202020202))
        self.p4.write(MODIFY, action_profile_member=member)
        expected["Ether"].dst = "0a:0b:0c:0d:0e:10"
        tu.send_packet(self, 1, packet)
        tu.verify_packets(self, expected, [2])


class Counters(SwitchTest):
    def runTest(self):
        self.l2(2)
        packet = tu.simple_eth_packet(pktlen=100, eth_dst=DST, eth_type=0x1234)
        for _ in range(3):
            self.sent(packet, 2)
        self.sent(packet, 2, port=3)
        cells = self.p4.read(counter_entry=p4r.CounterEntry(counter_id=self.p4.ids["port_packets"]))
        self.assertEqual([(c.data.packet_count, c.data.byte_count) for c in cells[:4]], [(0, 0), (3, 300), (0, 0), (1, 100)])
        (direct,) = self.p4.read(direct_counter_entry=p4r.DirectCounterEntry(table_entry=self.p4.entry("l2")))
        self.assertEqual((direct.data.packet_count, direct.data.byte_count), (4, 400))


class Meters(SwitchTest):
    """Bytes beyond a meter's bursts are red, which the program drops."""

    def runTest(self):
        self.l2(2)
        packet = tu.simple_eth_packet(pktlen=100, eth_dst=DST, eth_type=0x1234)
        config = p4r.MeterConfig(cir=1, cburst=250, pir=1, pburst=250)
        cell = p4r.MeterEntry(meter_id=self.p4.ids["port_meter"], index=p4r.Index(index=1), config=config)
        self.p4.write(MODIFY, meter_entry=cell)
        self.sent(packet, 2)
        self.sent(packet, 2)
        self.sent(packet)
        self.sent(packet, 2, port=3)
        self.p4.write(MODIFY, meter_entry=p4r.MeterEntry(meter_id=self.p4.ids["port_meter"], index=p4r.Index(index=1)))
        self.sent(packet, 2)


class Registers(SwitchTest):
    def runTest(self):
        tu.send_packet(self, 3, tu.simple_eth_packet(eth_dst=DST, eth_src="00:00:00:12:34:56", eth_type=0x1234))
        tu.verify_no_other_packets(self)
        entry = p4r.RegisterEntry(register_id=self.p4.ids["last_source"], index=p4r.Index(index=3))
        (cell,) = self.p4.read(register_entry=entry)
        self.assertEqual(cell.data.bitstring, b"\x12\x34\x56")


class Digests(SwitchTest):
    """A source is told once until its list is acknowledged; what waits fills a list."""

    def runTest(self):
        config = p4r.DigestEntry.Config(max_list_size=2, max_timeout_ns=10**11, ack_timeout_ns=10**11)
        self.p4.write(INSERT, digest_entry=p4r.DigestEntry(digest_id=self.p4.ids["learned_t"], config=config))
        self.learn(1, 1)
        self.p4.none("digest")
        self.learn(2)
        first = self.p4.next("digest")
        self.assertEqual(self.sources(first), [1, 2])
        self.learn(1, 2)
        self.p4.none("digest")
        self.p4.send(digest_ack=p4r.DigestListAck(digest_id=first.digest_id, list_id=first.list_id))
        # The acknowledgement is on the stream, packets are on the wire: a read tells that it has arrived.
        self.p4.read(digest_entry=p4r.DigestEntry(digest_id=first.digest_id))
        time.sleep(0.2)
        self.learn(1, 3)
        self.assertEqual(self.sources(self.p4.next("digest")), [1, 3])

    def learn(self, *sources):
        for source in sources:
            tu.send_packet(self, 4, tu.simple_eth_packet(eth_dst=DST, eth_src=f"00:00:00:00:00:{source:02x}", eth_type=0x1234))

    @staticmethod
    def sources(message):
        return [int.from_bytes(data.struct.members[0].bitstring, "big") for data in message.data]


class PacketIo(SwitchTest):
    def runTest(self):
        packet = udp()
        metadata = [p4r.PacketMetadata(metadata_id=i, value=number(v)) for i, v in ((1, 3), (2, 0), (3, 0))]
        self.p4.send(packet=p4r.PacketOut(payload=bytes(packet), metadata=metadata))
        tu.verify_packets(self, packet, [3])
        self.p4.insert("routes", [(1, "lpm", IP("10.1.0.0"), 16)], self.p4.action("to_controller"))
        self.sent(packet, port=2)
        packet_in = self.p4.next("packet")
        self.assertEqual(packet_in.payload, bytes(packet))
        self.assertEqual({m.metadata_id: m.value for m in packet_in.metadata}, {1: b"\2", 2: b"\5"})


class IdleTimeout(SwitchTest):
    """Packets keep an entry alive; without them the controller is told."""

    def runTest(self):
        self.l2(2, idle_timeout_ns=1_500_000_000)
        packet = tu.simple_eth_packet(eth_dst=DST, eth_type=0x1234)
        for _ in range(8):
            tu.send_packet(self, 1, packet)
            self.p4.none("idle_timeout_notification", 0.3)
        note = self.p4.next("idle_timeout_notification")
        self.assertEqual(note.table_entry[0].match[0].exact.value, b"\xaa")


class Arbitration(SwitchTest):
    """A second controller takes over: it gets the packets and may write, the first may not; traffic goes on all the while."""

    def runTest(self):
        self.l2(2)
        packet = tu.simple_eth_packet(eth_dst=DST, eth_type=0x1234)
        to_cpu = udp()
        self.p4.insert("routes", [(1, "lpm", IP("10.1.0.0"), 16)], self.p4.action("to_controller"))
        backup = self.controller()
        backup.election_id = 1
        self.assertNotEqual(backup.arbitrate(), 0)
        self.refused(backup, grpc.StatusCode.PERMISSION_DENIED)
        self.sent(packet, 2)
        second = self.controller()
        self.assertEqual(second.arbitrate(), 0)
        self.assertNotEqual(self.p4.next("arbitration").status.code, 0)
        self.refused(self.p4, grpc.StatusCode.PERMISSION_DENIED)
        self.sent(packet, 2)
        self.sent(to_cpu)
        self.assertEqual(second.next("packet").payload, bytes(to_cpu))
        self.p4.none("packet")
        key = [(1, "exact", DST_NUMBER)]
        second.write(MODIFY, table_entry=second.entry("l2", key, second.action("l2_forward", 4)))
        self.sent(packet, 4)
        # Without any controller the switch forwards as it was told.
        second.close()
        self.sent(packet, 4)

    def refused(self, controller, code):
        with self.assertRaises(grpc.RpcError) as caught:
            controller.write(MODIFY, table_entry=controller.entry("routes", (), controller.action("forward", 3), is_default_action=True))
        self.assertEqual(caught.exception.code(), code)

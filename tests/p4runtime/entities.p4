/* One of every entity that P4Runtime can write or read on v1model, for the tests of the P4Runtime server.
 *
 * ingress: packet-out -> straight to its port, or, with submit_to_ingress, on as if it had come in there; then learn the source
 *          (digest), count, look up each table. So a test needs no interface.
 * egress:  the packet_in header for the CPU port.
 */
#include <core.p4>
#include <v1model.p4>

const bit<9> CPU_PORT = 510;
const bit<32> LEARN = 1;
const bit<2> RED = 2;

@controller_header("packet_in")
header packet_in_h {
    bit<9> ingress_port;
    bit<7> reason;
}

@controller_header("packet_out")
header packet_out_h {
    bit<9> port;
    bit<1> submit_to_ingress;
    bit<6> padding;
}

header ethernet_h {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_h {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> len;
    bit<16> id;
    bit<3>  flags;
    bit<13> fragment;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

struct headers_t {
    packet_in_h  packet_in;
    packet_out_h packet_out;
    ethernet_h   ethernet;
    ipv4_h       ipv4;
}

struct metadata_t {
    bit<9>  port;
    bit<2>  color;
    bit<12> nexthop;
}

struct learned_t {
    bit<48> address;
    bit<9>  port;
    bool    is_ip;
}

parser EntitiesParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    value_set<bit<16>>(4) ip_like;

    state start {
        transition select(standard.ingress_port) {
            CPU_PORT: from_cpu;
            default: ethernet;
        }
    }
    state from_cpu {
        packet.extract(hdr.packet_out);
        transition ethernet;
    }
    state ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x0800: ipv4;
            ip_like: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control EntitiesVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control EntitiesIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    counter(8, CounterType.packets_and_bytes) port_packets;
    meter(4, MeterType.bytes) port_meter;
    register<bit<48>>(16) last_source;
    direct_counter(CounterType.packets_and_bytes) l2_counter;
    direct_meter<bit<2>>(MeterType.packets) l2_meter;

    action drop() {
        mark_to_drop(standard);
    }
    action forward(bit<9> port) {
        standard.egress_spec = port;
    }
    action l2_forward(bit<9> port) {
        l2_meter.read(meta.color);
        l2_counter.count();
        standard.egress_spec = port;
    }
    action l2_miss() {
        l2_meter.read(meta.color);
        l2_counter.count();
    }
    action multicast(bit<16> group) {
        standard.mcast_grp = group;
    }
    action to_controller() {
        standard.egress_spec = CPU_PORT;
    }
    action mirror(bit<32> session) {
        clone(CloneType.I2E, session);
    }
    action set_nexthop(bit<12> nexthop, bit<9> port) {
        meta.nexthop = nexthop;
        standard.egress_spec = port;
    }
    action rewrite(bit<48> dst, bit<48> src) {
        hdr.ethernet.dst = dst;
        hdr.ethernet.src = src;
    }

    /* exact; direct counter and meter; idle timeout */
    table l2 {
        key = { hdr.ethernet.dst: exact; }
        actions = { l2_forward; @defaultonly l2_miss; }
        default_action = l2_miss();
        counters = l2_counter;
        meters = l2_meter;
        support_timeout = true;
        size = 64;
    }

    /* longest prefix */
    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { forward; drop; multicast; @tableonly to_controller; @defaultonly NoAction; }
        default_action = NoAction();
        size = 16;
    }

    /* ternary, range, optional, exact */
    table acl {
        key = {
            hdr.ipv4.src: ternary;
            hdr.ipv4.ttl: range;
            hdr.ipv4.protocol: optional;
            meta.port: exact;
        }
        actions = { drop; forward; mirror; to_controller; NoAction; }
        default_action = NoAction();
        size = 32;
    }

    /* constant entries, constant default */
    table classes {
        key = { hdr.ipv4.tos: ternary; }
        actions = { set_nexthop; NoAction; }
        const default_action = NoAction();
        const entries = {
            0x10 &&& 0xf0: set_nexthop(1, 1);
            0xb8: set_nexthop(2, 2);
        }
    }

    /* an action profile without selector */
    action_profile(16) rewrites;
    table rewrite_table {
        key = { meta.nexthop: exact; }
        actions = { rewrite; NoAction; }
        implementation = rewrites;
        size = 16;
    }

    /* and one with */
    action_selector(HashAlgorithm.crc16, 32, 14) spread;
    table balance {
        key = {
            hdr.ipv4.dst: lpm;
            hdr.ipv4.src: selector;
            hdr.ipv4.protocol: selector;
        }
        actions = { set_nexthop; drop; NoAction; }
        implementation = spread;
        size = 16;
    }

    /* no key */
    table always {
        actions = { NoAction; drop; }
        default_action = NoAction();
    }

    apply {
        meta.port = standard.ingress_port;
        if (hdr.packet_out.isValid()) {
            meta.port = hdr.packet_out.port;
            if (hdr.packet_out.submit_to_ingress == 0) {
                standard.egress_spec = hdr.packet_out.port;
                exit;
            }
        }
        port_packets.count((bit<32>) meta.port);
        port_meter.execute_meter((bit<32>) meta.port, meta.color);
        if (meta.color == RED) {
            mark_to_drop(standard);
            exit;
        }
        last_source.write((bit<32>) meta.port, hdr.ethernet.src);
        learned_t learned;
        learned.address = hdr.ethernet.src;
        learned.port = meta.port;
        learned.is_ip = hdr.ipv4.isValid();
        digest<learned_t>(LEARN, learned);
        always.apply();
        l2.apply();
        if (hdr.ipv4.isValid()) {
            routes.apply();
            classes.apply();
            balance.apply();
            rewrite_table.apply();
            acl.apply();
        }
    }
}

control EntitiesEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        if (standard.egress_port == CPU_PORT) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = meta.port;
            hdr.packet_in.reason = 5;
        }
    }
}

control EntitiesCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control EntitiesDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(EntitiesParser(), EntitiesVerify(), EntitiesIngress(), EntitiesEgress(), EntitiesCompute(), EntitiesDeparser()) main;

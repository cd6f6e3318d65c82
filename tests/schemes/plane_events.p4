// A program that uses everything that a control plane of one's own can be asked about: tests/schemes/test_plane.py fills it.

#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> type;
}

header ipv4_t {
    bit<96> first;
    bit<32> source;
    bit<32> destination;
}

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<7> unused;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<7> unused;
}

struct headers_t {
    packet_in_t  packet_in;
    packet_out_t packet_out;
    ethernet_t   ethernet;
    ipv4_t       ipv4;
}

struct seen_t {
    bit<32> source;
    bit<9>  port;
}

struct meta_t {
    bit<32> pace;
}

const bit<9> CPU = 510;

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start {
        transition select(standard.ingress_port) {
            CPU: from_cpu;
            default: frame;
        }
    }

    state from_cpu {
        packet.extract(hdr.packet_out);
        transition frame;
    }

    state frame {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x0800: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control V(inout headers_t hdr, inout meta_t meta) {
    apply { }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    register<bit<16>>(8) limit;   // cell 0: the packet that is reported
    register<bit<16>>(8) packets;
    counter(8, CounterType.packets_and_bytes) by_port;
    meter(8, MeterType.bytes) rates;
    direct_counter(CounterType.packets_and_bytes) hits;
    direct_meter<bit<32>>(MeterType.bytes) pace;
    action_selector(HashAlgorithm.crc32, 16, 8) spread;

    action to_cpu() {
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = standard.ingress_port;
        standard.egress_spec = CPU;
    }

    action send(bit<9> port, bit<48> mac) {
        hits.count();
        pace.read(meta.pace);
        hdr.ethernet.destination = mac;
        standard.egress_spec = port;
    }

    action copies(bit<16> group, bit<48> mac) {
        hits.count();
        pace.read(meta.pace);
        hdr.ethernet.destination = mac;
        standard.mcast_grp = group;
    }

    table route {
        key = { hdr.ipv4.destination: lpm; }
        actions = { to_cpu; send; copies; }
        default_action = to_cpu();
        counters = hits;
        meters = pace;
        support_timeout = true;
    }

    action mark(bit<16> value) {
        hdr.ethernet.source[15:0] = value;
    }

    table marks {
        key = {
            hdr.ipv4.source: ternary;
            hdr.ethernet.type: range;
            standard.ingress_port: selector;
        }
        actions = { mark; NoAction; }
        implementation = spread;
    }

    apply {
        if (hdr.packet_out.isValid()) {
            standard.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else if (hdr.ipv4.isValid()) {
            bit<32> colour;
            rates.execute_meter((bit<32>)standard.ingress_port, colour);
            marks.apply();
            route.apply();
            bit<16> count;
            bit<16> wanted;
            packets.read(count, 0);
            limit.read(wanted, 0);
            count = count + 1;
            packets.write(0, count);
            by_port.count(colour);
            if (meta.pace == 2) {
                by_port.count(3);
            }
            if (count == wanted) {
                digest<seen_t>(1, { hdr.ipv4.source, standard.ingress_port });
            }
        }
    }
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply { }
}

control C(inout headers_t hdr, inout meta_t meta) {
    apply { }
}

control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;

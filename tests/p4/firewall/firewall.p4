// A stateful firewall: connections opened from inside (port 1) leave two bits in a Bloom filter; packets from outside pass only where
// both are set.
#include "../include/common.p4"

const bit<32> CELLS = 4096;

header tcp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<32> sequence;
    bit<32> acknowledgement;
    bit<4>  offset;
    bit<6>  unused;
    bit<1>  urg;
    bit<1>  ack;
    bit<1>  psh;
    bit<1>  rst;
    bit<1>  syn;
    bit<1>  fin;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    tcp_t      tcp;
}
struct meta_t { }

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) {
            6: tcp;
            default: accept;
        }
    }
    state tcp {
        packet.extract(hdr.tcp);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control SwitchIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    register<bit<1>>(CELLS) first;
    register<bit<1>>(CELLS) second;
    bit<32> a;
    bit<32> b;
    bit<1> in_first;
    bit<1> in_second;

    action positions(ip4_t inside, ip4_t outside, bit<16> inside_port, bit<16> outside_port) {
        hash(a, HashAlgorithm.crc16, 32w0, { inside, outside, inside_port, outside_port, hdr.ipv4.protocol }, CELLS);
        hash(b, HashAlgorithm.crc32, 32w0, { inside, outside, inside_port, outside_port, hdr.ipv4.protocol }, CELLS);
    }

    apply {
        if (!hdr.tcp.isValid()) {
            mark_to_drop(sm);
        } else if (sm.ingress_port == 1) {
            sm.egress_spec = 2;
            positions(hdr.ipv4.src, hdr.ipv4.dst, hdr.tcp.src_port, hdr.tcp.dst_port);
            if (hdr.tcp.syn == 1) {
                first.write(a, 1);
                second.write(b, 1);
            }
        } else {
            sm.egress_spec = 1;
            positions(hdr.ipv4.dst, hdr.ipv4.src, hdr.tcp.dst_port, hdr.tcp.src_port);
            first.read(in_first, a);
            second.read(in_second, b);
            if (in_first != 1 || in_second != 1) {
                mark_to_drop(sm);
            }
        }
    }
}

control SwitchEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control Compute(inout headers_t hdr, inout meta_t meta) { apply { } }
control SwitchDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }

V1Switch(P(), Verify(), SwitchIngress(), SwitchEgress(), Compute(), SwitchDeparser()) main;

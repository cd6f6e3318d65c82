// Two ports for one virtual address: a hash of the flow picks an index into a group, a second table maps it to a next hop.
#include "../include/common.p4"

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    udp_t      udp;
}
struct meta_t { bit<14> choice; }

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
            17: udp;
            default: accept;
        }
    }
    state udp {
        packet.extract(hdr.udp);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control SwitchIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action drop() { mark_to_drop(sm); }
    action choose(bit<16> base, bit<32> count) {
        hash(meta.choice, HashAlgorithm.crc16, base,
             { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, hdr.udp.src_port, hdr.udp.dst_port }, count);
    }
    action next_hop(ip4_t address, port_t port) {
        hdr.ipv4.dst = address;
        sm.egress_spec = port;
    }
    table group {
        key = { hdr.ipv4.dst : lpm; }
        actions = { choose; drop; }
        default_action = drop();
    }
    table hop {
        key = { meta.choice : exact; }
        actions = { next_hop; drop; }
        default_action = drop();
        size = 16;
    }
    apply {
        if (hdr.udp.isValid()) {
            if (group.apply().hit) {
                hop.apply();
            }
        } else {
            drop();
        }
    }
}

control SwitchEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control Compute(inout headers_t hdr, inout meta_t meta) { apply { } }
control SwitchDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
    }
}

V1Switch(P(), Verify(), SwitchIngress(), SwitchEgress(), Compute(), SwitchDeparser()) main;

/* For the tests of files in the form of the P4 tutorials: a table for each kind of match, a multicast group, a clone session.
 *
 * ingress: broadcasts, ARP and all else that is not IPv4 go to multicast group 1, without the port they came by;
 *          IPv4 to where `routes` says; what `filter` picks is dropped, or copied to clone session 5 as well
 * egress:  the source address of the port; no copy back
 */
#include <core.p4>
#include <v1model.p4>

const bit<48> BROADCAST = 0xffffffffffff;
const bit<32> MIRROR = 5;

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
    ethernet_h ethernet;
    ipv4_h     ipv4;
}

struct metadata_t { }

parser ForwardParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
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

control ForwardVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control ForwardIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action drop() {
        mark_to_drop(standard);
    }
    action forward(bit<48> dst, bit<9> port) {
        hdr.ethernet.dst = dst;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        standard.egress_spec = port;
    }
    action mirror() {
        clone(CloneType.I2E, MIRROR);
    }

    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { forward; drop; }
        default_action = drop();
        size = 64;
    }

    table filter {
        key = {
            hdr.ipv4.src: ternary;
            hdr.ipv4.ttl: range;
            hdr.ipv4.protocol: optional;
        }
        actions = { drop; mirror; NoAction; }
        default_action = NoAction();
        size = 64;
    }

    apply {
        if (hdr.ipv4.isValid() && hdr.ethernet.dst != BROADCAST) {
            routes.apply();
            filter.apply();
        } else {
            standard.mcast_grp = 1;
        }
    }
}

control ForwardEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action source(bit<48> address) {
        hdr.ethernet.src = address;
    }
    table sources {
        key = { standard.egress_port: exact; }
        actions = { source; NoAction; }
        default_action = NoAction();
    }
    apply {
        if (hdr.ipv4.isValid() && hdr.ethernet.dst != BROADCAST) {
            sources.apply();
        } else if (standard.egress_port == standard.ingress_port) {
            mark_to_drop(standard);
        }
    }
}

control ForwardCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.len, hdr.ipv4.id, hdr.ipv4.flags, hdr.ipv4.fragment,
              hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control ForwardDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(ForwardParser(), ForwardVerify(), ForwardIngress(), ForwardEgress(), ForwardCompute(), ForwardDeparser()) main;

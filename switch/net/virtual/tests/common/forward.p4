// IPv4 destination -> port or multicast group, and nothing else: for tests of the network around the switch. IGMP goes nowhere.

#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
    bit<128> rest;
    bit<32>  dst;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
}

struct metadata_t {}

parser ForwardParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
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
    apply {}
}

control ForwardIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action drop() {
        mark_to_drop(standard_metadata);
    }
    action send(bit<9> port) {
        standard_metadata.egress_spec = port;
    }
    action replicate(bit<16> group) {
        standard_metadata.mcast_grp = group;
    }
    table route {
        key = { hdr.ipv4.dst : exact; }
        actions = { send; replicate; drop; }
        default_action = drop();
    }
    apply {
        // The protocol is byte 9 of the header.
        if (hdr.ipv4.rest[55:48] == 2) {
            drop();
        } else {
            route.apply();
        }
    }
}

control ForwardEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {}
}

control ForwardUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control ForwardDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(ForwardParser(), ForwardVerify(), ForwardIngress(), ForwardEgress(), ForwardUpdate(), ForwardDeparser()) main;

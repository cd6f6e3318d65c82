// The sender lists output ports in a stack of headers; each switch takes the first off.
#include "../include/common.p4"

const bit<16> TYPE_ROUTE = 0x1234;
#define HOPS 9

header hop_t {
    bit<1>  bottom;
    bit<15> port;
}

struct headers_t {
    ethernet_t  ethernet;
    hop_t[HOPS] hops;
    ipv4_t      ipv4;
}
struct meta_t { }

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_ROUTE: hop;
            default: accept;
        }
    }
    state hop {
        packet.extract(hdr.hops.next);
        transition select(hdr.hops.last.bottom) {
            1: ipv4;
            default: hop;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control SwitchIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action drop() { mark_to_drop(sm); }
    action next_hop() {
        sm.egress_spec = (port_t)hdr.hops[0].port;
        hdr.hops.pop_front(1);
    }
    action last_hop() {
        hdr.ethernet.type = TYPE_IPV4;
    }
    action age() {
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }
    apply {
        if (hdr.hops[0].isValid() && sm.parser_error == error.NoError) {
            if (hdr.hops[0].bottom == 1) {
                last_hop();
            }
            next_hop();
            if (hdr.ipv4.isValid()) {
                age();
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
        packet.emit(hdr.hops);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(P(), Verify(), SwitchIngress(), SwitchEgress(), Compute(), SwitchDeparser()) main;

// A header of its own between Ethernet and IPv4: one table tunnels by destination id, another forwards plain packets, and the
// tunnel is put on at its entry and taken off at its exit.
#include "../include/common.p4"

const bit<16> TYPE_TUNNEL = 0x1212;

header tunnel_t {
    bit<16> inner_type;
    bit<16> destination;
}

struct headers_t {
    ethernet_t ethernet;
    tunnel_t   tunnel;
    ipv4_t     ipv4;
}
struct meta_t { }

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_TUNNEL: tunnel;
            TYPE_IPV4: ipv4;
            default: accept;
        }
    }
    state tunnel {
        packet.extract(hdr.tunnel);
        transition select(hdr.tunnel.inner_type) {
            TYPE_IPV4: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout meta_t meta) { apply { } }

control SwitchIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    counter(16, CounterType.packets) entered;

    action drop() { mark_to_drop(sm); }
    action forward(port_t port) { sm.egress_spec = port; }
    action enter(bit<16> destination, port_t port) {
        hdr.tunnel.setValid();
        hdr.tunnel.destination = destination;
        hdr.tunnel.inner_type = hdr.ethernet.type;
        hdr.ethernet.type = TYPE_TUNNEL;
        sm.egress_spec = port;
        entered.count((bit<32>)destination);
    }
    action leave(port_t port) {
        hdr.ethernet.type = hdr.tunnel.inner_type;
        hdr.tunnel.setInvalid();
        sm.egress_spec = port;
    }

    table plain {
        key = { hdr.ipv4.dst : lpm; }
        actions = { forward; enter; drop; }
        default_action = drop();
    }
    table tunnelled {
        key = { hdr.tunnel.destination : exact; }
        actions = { forward; leave; drop; }
        default_action = drop();
    }
    apply {
        if (hdr.tunnel.isValid()) {
            tunnelled.apply();
        } else if (hdr.ipv4.isValid()) {
            plain.apply();
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
        packet.emit(hdr.tunnel);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(P(), Verify(), SwitchIngress(), SwitchEgress(), Compute(), SwitchDeparser()) main;

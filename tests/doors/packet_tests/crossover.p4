// Frames of port 0 leave through port 1, and the other way round; a table may say otherwise for a destination address.
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> type;
}

struct headers {
    ethernet_t ethernet;
}

struct metadata { }

parser Parse(packet_in packet, out headers h, inout metadata m, inout standard_metadata_t standard) {
    state start {
        packet.extract(h.ethernet);
        transition accept;
    }
}

control Verify(inout headers h, inout metadata m) {
    apply { }
}

control Cross(inout headers h, inout metadata m, inout standard_metadata_t standard) {
    action to_port(bit<9> port) {
        standard.egress_spec = port;
    }

    action cross() {
        standard.egress_spec = standard.ingress_port ^ 1;
    }

    table hosts {
        key = {
            h.ethernet.destination: exact;
        }
        actions = {
            to_port;
            cross;
        }
        default_action = cross;
    }

    apply {
        hosts.apply();
    }
}

control Nothing(inout headers h, inout metadata m, inout standard_metadata_t standard) {
    apply { }
}

control Compute(inout headers h, inout metadata m) {
    apply { }
}

control Deparse(packet_out packet, in headers h) {
    apply {
        packet.emit(h.ethernet);
    }
}

V1Switch(Parse(), Verify(), Cross(), Nothing(), Compute(), Deparse()) main;

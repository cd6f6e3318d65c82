// Two hosts and a switch: frames go to the port of their destination address, and broadcasts to all other ports.
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

control Pair(inout headers h, inout metadata m, inout standard_metadata_t standard) {
    action to_port(bit<9> port) {
        standard.egress_spec = port;
    }

    action to_all() {
        standard.mcast_grp = 1;
    }

    table hosts {
        key = {
            h.ethernet.destination: exact;
        }
        actions = {
            to_port;
            to_all;
        }
        default_action = to_all;
    }

    apply {
        hosts.apply();
    }
}

control Others(inout headers h, inout metadata m, inout standard_metadata_t standard) {
    apply {
        if (standard.egress_port == standard.ingress_port) {
            mark_to_drop(standard);
        }
    }
}

control Compute(inout headers h, inout metadata m) {
    apply { }
}

control Deparse(packet_out packet, in headers h) {
    apply {
        packet.emit(h.ethernet);
    }
}

V1Switch(Parse(), Verify(), Pair(), Others(), Compute(), Deparse()) main;
